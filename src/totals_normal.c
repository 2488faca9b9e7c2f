/* Methods "collapse" and "clt", normal totals: records that are normal given theta, and a
 * statistic made of totals of the variables and of their products. Exact if no
 * record lies outside the bounds.
 *
 * State: the complete-data statistic c of the records in coordinates without constraint
 * (totals.c), and those coordinates of theta that do not integrate out. Target (MATH
 * part 10):
 *
 *   volume(coordinates) marginal(c) eta(z | A c)
 *
 * of totals_density.c. Hamiltonian Monte Carlo moves all of it (hmc.c): NUTS in warmup;
 * after it jittered trajectories of SHARE of the length that NUTS gave its own, which take
 * fewer steps for as much, but for one in NUTS_EVERY: where scales change from place to
 * place one length does not suit all. Absolute kernels are rounded off within a step of 0.
 * Then the model's own update draws theta given c.
 *
 * A prior that is cut off: marginal() does not know of it, so the target is short of the
 * probability w(c) that theta given c lies within. A transition is kept if a theta that is
 * drawn from the uncut distribution given the new c lies within: a step with probability w(c'),
 * which is reversible for the target times w.
 *
 * Bounds that clamp ("clt"): c is that of the records before they are clamped. Given c the
 * released totals are taken to be normal, with the mean that clamped.c expects and a covariance
 * Gamma Gamma' that R estimates beforehand (clt_spread()): they are that mean plus Gamma u, u
 * standard normal coordinates more. Directions in which the noise drowns the covariance are left
 * out of Gamma; the noise that moves c is wider by them.
 *
 * The number of records n may be unknown. Then it is moved beside the totals, which its steps take
 * along (totals_size.c): the target has the factor
 *
 *   p(n) pi^((n - 1) d / 2) n^(-d / 2) / Gamma_d((n - 1) / 2) times what marginal() leaves out
 *
 * in addition, which is the rest of the Wishart density of the scatter and of that of the totals. n
 * is larger than d, so that the scatter keeps its rank.
 *
 * Starts: the release with fresh noise added, so that chains start apart, corrected
 * towards what the prior thinks likely and made possible. Scales for the metric's start
 * are second differences there.
 *
 * Cost for d columns: O(d^3 + components) a gradient, free of n. No allocation in any
 * loop.
 */
#include "block.h"
#include "dist.h"
#include "hmc.h"
#include "linalg.h"
#include "method_collapse.h"
#include "totals_density.h"
#include "totals_size.h"

#include <Rmath.h>

struct normal {
    struct model model;
    struct totals_density density; /* its c is that of the state, where measure() was last */
    struct hmc hmc;
    const double *lower, *upper; /* bounds of the columns, natural units */
    double n;
    struct totals_size size;     /* size.prior NULL: n is known */
    struct component *component; /* unknown n: those of the density, their constants those of n */
    double *rate, *pace, *trial; /* these constants for each record; a column; a gradient */
    const double *released, *weight;
    struct rng *rng;
    double *theta;
    int leapfrogs; /* of the last iteration */

    /* With bounds that clamp: columns of Gamma, and how many; the release less Gamma u. */
    const double *spread;
    int directions;
    double *shifted;

    double *statistic, energy; /* of the state */

    /* workspace */
    double *old, *work;
    double *mean, *chol,
        *normal_draw; /* distribution of a record, in the order of the model's distribution */
    double *guess;    /* while starting */
    double *variance; /* of entries of c, while starting */
};

enum { START_DRAWS = 25, MOST_STEPS = 1 << HMC_MOST_DEPTH, NUTS_EVERY = 10, SIZE_STEPS = 2 };

static const double SHARE = 0.7;

/* eigenvalues of the correlations at the start, and share of the expected scatter */
static const double LEAST_EIGENVALUE = 0.05, LEAST_SCATTER = 0.05;

/* how far apart a normal distribution's quartiles are, in standard deviations */
static const double QUARTILES = 1.349;

static double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static void copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

/* ---- the state ----------------------------------------------------------------------- */

static int coordinates(const struct normal *s) { return s->density.size + s->directions; }

/* Where noise is small, totals and u are strongly correlated; up to so many coordinates
 * warmup can learn how. */
enum { FEW = 60 };

static enum hmc_metric metric(const struct normal *s) {
    return s->density.clamped && coordinates(s) <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

static void shift_release(struct normal *s, const double *u) {
    const int count = s->density.components;
    if (s->directions > 0) copy(s->shifted, s->released, count);
    for (int j = 0; j < s->directions; ++j) {
        const double *restrict column = s->spread + (size_t)j * (size_t)count;
        for (int k = 0; k < count; ++k) s->shifted[k] -= u[j] * column[k];
    }
}

/* Of totals and of what is kept of theta, in the density's own coordinates. */
static const double *place(struct normal *s, const double *q) {
    if (!s->size.prior) return q;
    totals_size_place(&s->size, q);
    return s->size.place;
}

/* For hmc.h: of totals, of what is kept of theta and of u. */
static double log_density(void *self, const double *q, double *gradient) {
    struct normal *s = self;
    const int count = s->density.components;
    const double *u = q + s->density.size;
    double *of_u = gradient + s->density.size, square = 0;
    shift_release(s, u);
    const double log_density = totals_log_density(&s->density, place(s, q), gradient);
    for (int j = 0; s->size.prior && j < s->model.columns; ++j) gradient[j] *= s->size.stretch[j];
    for (int j = 0; j < s->directions; ++j) {
        const double *restrict column = s->spread + (size_t)j * (size_t)count;
        double sum = 0;
        for (int k = 0; k < count; ++k) sum += column[k] * s->density.slope[k];
        of_u[j] = sum - u[j];
        square += u[j] * u[j];
    }
    return log_density - 0.5 * square;
}

/* c, the released components and their misfit, of the state */
static void measure(struct normal *s) {
    totals_expand(&s->density.totals, place(s, s->hmc.q), s->density.c);
    totals_density_expect(&s->density);
    shift_release(s, s->hmc.q + s->density.size);
    s->energy = 0;
    for (int k = 0; k < s->density.components; ++k) {
        s->statistic[k] = component_value(s->density.component + k, s->density.seen) +
                          s->released[k] - s->density.released[k];
        const double r = (s->released[k] - s->statistic[k]) * s->weight[k];
        s->energy += k < s->density.absolute ? fabs(r) : 0.5 * r * r;
    }
}

/* ---- the number of records ---------------------------------------------------------- */

static void set_size(struct normal *s, double n) {
    struct totals *totals = &s->density.totals;
    totals_size_set(&s->size, n);
    s->n = totals->n = n;
    totals->power = n - 1;
    totals->design[0] = sqrt(n);
    for (int k = 0; k < s->density.components; ++k) s->component[k].constant = n * s->rate[k];
}

/* what a factor of the target depends on n alone */
static double log_size(const struct normal *s, double n) {
    const double log_prior = totals_size_log_prior(&s->size, n);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    const int d = s->model.columns;
    return log_prior + 0.5 * (n - 1) * d * log(M_PI) - 0.5 * d * log(n) -
           dist_log_multigamma(d, 0.5 * (n - 1)) + s->model.class->marginal_size(s->model.self, n);
}

static int is_within(struct normal *s);

/* What a step of n holds: the coordinates, n being next to where it is or from where warmup saw it;
 * or c, measured from where the release measures columns. With a mean that is far from there in
 * units of the standard deviation the scatter of a known c shrinks fast as n falls, and coordinates
 * bend. */
enum size_step { WALK, FRESH, HELD };

/* Of T and other coordinates, whose density log_size() is part of, the log volume over that of what
 * is held; c is expanded. */
static double log_volume(const struct normal *s, enum size_step kind) {
    const struct totals *t = &s->density.totals;
    double sum = 0;
    if (kind != HELD) return s->size.log_volume;
    for (int i = 0; i < t->d; ++i) sum += log(t->factor[(size_t)i * (size_t)t->width + (size_t)i]);
    return -(t->d + 1) * sum;
}

/* The coordinates of c, which `gained` records change as those do that are where the release
 * measures columns from, with n as it is now; 0 if no n records have it. */
static int hold(struct normal *s, double gained) {
    const int at = s->density.totals.size, d = s->model.columns, *order = s->model.order;
    double *c = s->density.c;
    for (int i = 0; i < d; ++i) {
        const double pace = s->pace[i] * totals_size_told(&s->size, i);
        c[order[i]] += gained * pace;
        for (int j = 0; j <= i; ++j)
            c[moments_at(d, order[i], order[j])] +=
                gained * pace * s->pace[j] * totals_size_told(&s->size, j);
    }
    if (totals_coordinates(&s->density.totals, s->density.c, s->size.place) != PLUGIN_OK) return 0;
    totals_size_free(&s->size, s->size.place, s->hmc.q);
    copy(s->hmc.q + at, s->old + at, s->model.keeps);
    return 1;
}

/* A step of n; c and the density are not those of the state after it. */
static int move_size(struct normal *s, enum size_step kind, int learning) {
    struct size_slope *learner = kind == HELD ? &s->size.linear : &s->size.logarithmic;
    double log_ratio, log_density = -INFINITY;
    const double old = s->n, n = kind == FRESH ? size_slope_fresh(learner, s->n, s->rng, &log_ratio)
                                               : size_slope_walk(learner, s->n, s->rng, &log_ratio);
    const double log_new = log_size(s, n);
    copy(s->old, s->hmc.q, coordinates(s));
    if (log_new > -INFINITY) {
        if (kind == HELD) totals_expand(&s->density.totals, place(s, s->hmc.q), s->density.c);
        log_ratio += log_new - log_size(s, old) - log_volume(s, kind);
        set_size(s, n);
        if (kind != HELD || hold(s, n - old))
            log_density = s->hmc.target.log_density(s, s->hmc.q, s->trial);
        log_ratio += log_density - s->hmc.log_density + log_volume(s, kind);
    }
    if (!(log_density > -INFINITY)) log_ratio = -INFINITY;
    const int accept = -log_ratio < rng_exponential(s->rng) && is_within(s);
    if (accept) {
        s->hmc.log_density = log_density;
        copy(s->hmc.gradient, s->trial, coordinates(s));
    } else {
        set_size(s, old);
        copy(s->hmc.q, s->old, coordinates(s));
    }
    if (learning && kind != FRESH) size_slope_tried(learner, log_ratio, s->size.prior->upper);
    return accept;
}

/* ---- set-up --------------------------------------------------------------------------- */

/* "clt": the noise that moves c, in "clamp_weight", and Gamma in "spread". */
static int clamp(const struct fields *fields, struct normal *s) {
    const int d = s->model.columns, count = s->density.components;
    s->density.weight = fields_vector(fields, "clamp_weight", count);
    s->directions = fields_length(fields, "spread") / count;
    s->spread = fields_vector(fields, "spread", s->directions * count);
    if (!s->density.weight || (s->directions > 0 && !s->spread)) return PLUGIN_BAD_FIELDS;
    double *lower = doubles((size_t)d), *upper = doubles((size_t)d);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.order[i];
        lower[i] = s->lower[v] - s->model.origin[v];
        upper[i] = s->upper[v] - s->model.origin[v];
    }
    totals_density_clamp(&s->density, lower, upper);
    if (s->directions == 0) return PLUGIN_OK;
    s->density.released = s->shifted = doubles((size_t)count);
    s->density.slope = doubles((size_t)count);
    return PLUGIN_OK;
}

/* Of an unknown n: the components' constants for each record, and what a column's total gains with
 * a record if a component that it alone is part of stays. */
static int prepare_size(const struct fields *fields, const struct collapse *of, struct normal *s) {
    const int d = s->model.columns, count = s->density.components;
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread || !s->model.class->marginal_size) return PLUGIN_BAD_FIELDS;
    totals_size_create(&s->size, of->size_prior, of->n, *spread, d, s->density.size);
    s->component = plugin_memory((size_t)count, sizeof *s->component);
    s->rate = doubles((size_t)count);
    s->pace = doubles((size_t)d);
    s->trial = doubles((size_t)coordinates(s));
    for (int k = 0; k < count; ++k) {
        const struct component *one = s->component + k;
        s->component[k] = s->density.component[k];
        s->rate[k] = one->constant / of->n;
        for (int i = 0; i < d; ++i) {
            if (one->at[0] != s->model.order[i] || one->coef[0] == 0 || one->coef[1] != 0 ||
                one->coef[2] != 0)
                continue;
            const double told = s->weight[k] * one->coef[0];
            s->pace[i] = -s->rate[k] / one->coef[0];
            s->size.told[i] += told * told / (k < s->density.absolute ? 2 : 1);
        }
    }
    s->density.component = s->component;
    return PLUGIN_OK;
}

static int create(const struct fields *fields, struct collapse *of) {
    if (!of->model.origin || !of->model.class->marginal) return PLUGIN_BAD_FIELDS;
    struct normal *s = plugin_memory(1, sizeof *s);
    const int d = of->model.columns;
    s->model = of->model;
    s->n = of->n;
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * of->size);
    s->lower = fields_vector(fields, "lower", d);
    s->upper = fields_vector(fields, "upper", d);
    if (!terms || !s->lower || !s->upper) return PLUGIN_BAD_FIELDS;
    s->density.components = of->size;
    s->density.absolute = of->absolute;
    s->density.released = s->released = of->released;
    s->density.weight = s->weight = of->weight;
    s->density.component = read_components(d, of->size, terms);
    totals_density_create(&s->density, &s->model, s->n, d, s->model.order, 1, NULL);
    if (totals_design(&s->density.totals, NULL) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    if (fields_length(fields, "clamp_weight") > 0 && clamp(fields, s) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    if (of->size_prior && prepare_size(fields, of, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    const size_t size = (size_t)coordinates(s), square = (size_t)d * (size_t)d;
    s->variance = doubles((size_t)s->model.complete);
    s->statistic = doubles((size_t)s->density.components);
    s->old = doubles(size);
    s->mean = doubles((size_t)d);
    s->chol = doubles(square);
    s->normal_draw = doubles((size_t)d);
    s->guess = doubles(START_DRAWS * ((size_t)d * (size_t)(d + 3) / 2 + size));
    s->work = doubles(hmc_workspace(coordinates(s), metric(s)));
    of->self = s;
    of->stored = (int)hmc_stored(coordinates(s), metric(s));
    if (of->size_prior) of->stored += (int)totals_size_stored(&s->size);
    return PLUGIN_OK;
}

static void attach(const struct collapse *of) {
    struct normal *s = of->self;
    const struct hmc_target target = {coordinates(s), s, log_density};
    hmc_attach(&s->hmc, &target, metric(s), of->store, s->work);
    if (s->size.prior) totals_size_attach(&s->size, of->store + hmc_stored(target.size, metric(s)));
    s->rng = of->rng;
    s->theta = of->theta;
    copy(s->density.theta, of->theta, s->model.parameters);
}

/* ---- starts ----------------------------------------------------------------------------- */

/* Totals from their distribution given theta: T = n mean + sqrt(n) L g, and the scatter's factor L
 * B, B lower triangular, below the diagonal standard normal, on it chi with n - 1, n - 2, ...
 * degrees (Bartlett). */
static void draw_totals(struct normal *s, const double *theta) {
    const int d = s->density.totals.d, r = s->density.totals.rank, *order = s->model.order;
    double *l = s->chol, *g = s->normal_draw, *total = s->mean;
    double *b = s->guess, *factor = b + (size_t)d * (size_t)d;
    s->model.class->distribution(s->model.self, theta, s->mean, l);
    rng_fill_normal(s->rng, d, g);
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += l[i * d + j] * g[j];
        total[i] = s->n * total[i] + sqrt(s->n) * sum;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < r; ++j)
            b[i * d + j] = j > i   ? 0
                           : j < i ? rng_normal(s->rng)
                                   : sqrt(dist_chisq(s->rng, s->n - 1 - j));
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < r; ++j) {
            double sum = 0;
            for (int m = j; m <= i; ++m) sum += l[i * d + m] * b[m * d + j];
            factor[i * d + j] = sum;
        }
    for (int i = 0; i < d; ++i) {
        s->density.c[order[i]] = total[i];
        for (int j = 0; j <= i; ++j) {
            double sum = total[i] * total[j] / s->n;
            for (int m = 0; m < r; ++m) sum += factor[i * d + m] * factor[j * d + m];
            s->density.c[moments_at(d, order[i], order[j])] = sum;
        }
    }
}

/* sorts x */
static double median(int count, double *x) {
    for (int i = 1; i < count; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            const double swap = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swap;
        }
    return x[count / 2];
}

/* c as the prior would have it: of n records with the medians, over draws of theta, of
 * the mean and of the factor of the covariance, its rows divided by their diagonal */
static void expect_totals(struct normal *s) {
    const int d = s->density.totals.d, *order = s->model.order;
    double *theta = s->density.theta, *draws = s->guess;
    for (int m = 0; m < START_DRAWS; ++m) {
        double *out = draws + m;
        s->model.class->rprior(s->model.self, s->rng, theta);
        s->model.class->distribution(s->model.self, theta, s->mean, s->chol);
        for (int i = 0; i < d; ++i) {
            const double *row = s->chol + (size_t)i * (size_t)d;
            *out = s->mean[i];
            out[START_DRAWS] = log(row[i]);
            out += 2 * START_DRAWS;
            for (int j = 0; j < i; ++j, out += START_DRAWS) *out = row[j] / row[i];
        }
    }
    for (int i = 0; i < d; ++i) {
        double *row = s->chol + (size_t)i * (size_t)d;
        s->mean[i] = median(START_DRAWS, draws);
        row[i] = exp(median(START_DRAWS, draws + START_DRAWS));
        draws += 2 * START_DRAWS;
        for (int j = 0; j < i; ++j, draws += START_DRAWS)
            row[j] = row[i] * median(START_DRAWS, draws);
    }
    for (int i = 0; i < d; ++i) {
        s->density.c[order[i]] = s->n * s->mean[i];
        for (int j = 0; j <= i; ++j) {
            double sum = s->mean[i] * s->mean[j];
            for (int m = 0; m <= j; ++m) sum += s->chol[i * d + m] * s->chol[j * d + m];
            s->density.c[moments_at(d, order[i], order[j])] = s->n * sum;
        }
    }
}

/* What the prior expects columns to vary by; expect_totals() has left its draws of each mean. */
static void start_size(struct normal *s) {
    expect_totals(s);
    const double *draws = s->guess;
    for (int i = 0; i < s->model.columns; ++i, draws += (i + 1) * START_DRAWS) {
        const double *row = s->chol + (size_t)i * (size_t)s->model.columns;
        const double range = draws[3 * START_DRAWS / 4] - draws[START_DRAWS / 4];
        s->size.between[i] = range * range / (QUARTILES * QUARTILES);
        s->size.within[i] = linalg_dot(i + 1, row, row);
    }
    for (int i = 0; i < s->model.columns; ++i)
        s->normal_draw[i] = s->pace[i] * totals_size_told(&s->size, i);
    totals_size_start(&s->size, s->normal_draw, s->rng);
    set_size(s, *s->size.n);
}

/* Corrects c by the release with fresh noise, component by component, as if entries of
 * c were independent and of the order of their root mean squares. */
static void correct_totals(struct normal *s) {
    const int d = s->density.totals.d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->variance[moments_at(d, i, j)] =
                s->density.c[moments_at(d, i, i)] * s->density.c[moments_at(d, j, j)];
    for (int i = 0; i < d; ++i) s->variance[i] = s->n * s->density.c[moments_at(d, i, i)];
    for (int k = 0; k < s->density.components; ++k) {
        const struct component *one = s->density.component + k;
        const double draw = k < s->density.absolute
                                ? rng_exponential(s->rng) - rng_exponential(s->rng)
                                : rng_normal(s->rng);
        const double noise = (k < s->density.absolute ? 2 : 1) / (s->weight[k] * s->weight[k]);
        const double away =
            s->released[k] + draw / s->weight[k] - component_value(one, s->density.c);
        double spread = noise, gain[3];
        for (int e = 0; e < 3; ++e) {
            gain[e] = one->coef[e] * s->variance[one->at[e]];
            spread += gain[e] * one->coef[e];
        }
        for (int e = 0; e < 3; ++e) {
            if (one->coef[e] == 0) continue;
            s->density.c[one->at[e]] += gain[e] * away / spread;
            s->variance[one->at[e]] *= 1 - gain[e] * one->coef[e] / spread;
        }
    }
}

/* Makes the scatter of c one that records could have; `least`: what it should be at
 * least, a column. */
static void make_possible(struct normal *s, const double *least) {
    const int d = s->density.totals.d;
    double *a = s->guess, *work = a + (size_t)d * (size_t)d, *scale = s->normal_draw;
    for (int i = 0; i < d; ++i) {
        const double own =
            s->density.c[moments_at(d, i, i)] - s->density.c[i] * s->density.c[i] / s->n;
        scale[i] = sqrt(own > least[i] ? own : least[i]);
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            a[i * d + j] = i == j ? 1
                                  : (s->density.c[moments_at(d, i, j)] -
                                     s->density.c[i] * s->density.c[j] / s->n) /
                                        (scale[i] * scale[j]);
    linalg_raise_eigenvalues(d, a, LEAST_EIGENVALUE, work);
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->density.c[moments_at(d, i, j)] =
                a[i * d + j] * scale[i] * scale[j] + s->density.c[i] * s->density.c[j] / s->n;
}

static void start_near_release(struct normal *s) {
    const int d = s->density.totals.d;
    expect_totals(s);
    for (int i = 0; i < d; ++i)
        s->mean[i] = LEAST_SCATTER *
                     (s->density.c[moments_at(d, i, i)] - s->density.c[i] * s->density.c[i] / s->n);
    correct_totals(s);
    make_possible(s, s->mean);
}

static void start(struct collapse *of) {
    struct normal *s = of->self;
    attach(of);
    if (s->size.prior) start_size(s);
    if (of->given)
        draw_totals(s, of->theta);
    else
        start_near_release(s);
    double *q = s->old, *unit = s->guess + 3 * (size_t)coordinates(s);
    if (totals_coordinates(&s->density.totals, s->density.c, q) != PLUGIN_OK) return;
    if (!of->given) {
        (void)s->model.class->rtheta(s->model.self, s->density.c, s->n, s->rng, of->theta);
        copy(s->density.theta, of->theta, s->model.parameters);
    }
    for (int j = 0; j < s->model.keeps; ++j)
        q[s->density.totals.size + j] = of->theta[s->model.kept[j]];
    for (int j = s->density.size; j < coordinates(s); ++j) {
        q[j] = 0;
        unit[j] = 1;
    }
    shift_release(s, q + s->density.size);
    totals_density_units(&s->density, q, unit, s->guess);
    if (s->size.prior) {
        copy(s->size.place, q, s->density.size);
        totals_size_free(&s->size, s->size.place, q);
        for (int j = 0; j < s->model.columns; ++j) unit[j] /= s->size.stretch[j];
    }
    hmc_start(&s->hmc, q, unit);
    (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}

/* The rounding goes with the step, so that energy errors vanish with both. */
static int refresh(struct normal *s) {
    s->density.rounded = *s->hmc.step_size;
    return hmc_refresh(&s->hmc);
}

static void load(struct collapse *of) {
    struct normal *s = of->self;
    attach(of);
    if (s->size.prior) set_size(s, *s->size.n);
    (void)refresh(s);
    measure(s);
}

static void save(struct collapse *of) { (void)of; /* all of it stands in the store */ }

/* ---- an iteration ---------------------------------------------------------------------- */

/* what a family counts, beside the iterations */
enum { ITERATIONS, ACCEPTANCE, LEAPFROGS, DIVERGENT, DEEPEST, WITHIN, SIZE_MADE, SIZE_ACCEPTED };

/* Is a theta from the uncut distribution given the new totals within? Then it is the state's. */
static int is_within(struct normal *s) {
    const struct model_class *class = s->model.class;
    if (!s->model.cut) return 1;
    copy(s->density.theta, s->theta, s->model.parameters);
    const double *kept = place(s, s->hmc.q) + s->density.totals.size;
    for (int j = 0; j < s->model.keeps; ++j) s->density.theta[s->model.kept[j]] = kept[j];
    if (class->rtheta_uncut(s->model.self, s->density.c, s->n, s->rng, s->density.theta) !=
            PLUGIN_OK ||
        !isfinite(class->dprior(s->model.self, s->density.theta)))
        return 0;
    copy(s->theta, s->density.theta, s->model.parameters);
    return 1;
}

/* Steps of an unknown n; the last thing of an iteration that moves the totals. */
static void move_sizes(struct collapse *of, int iteration, int warmup) {
    struct normal *s = of->self;
    const int learning = iteration < warmup, knows = size_slope_knows(&s->size.logarithmic);
    for (int k = 0; k < SIZE_STEPS; ++k) {
        of->counter[SIZE_MADE] += 1;
        const enum size_step kind = k > 0 && knows ? FRESH : (iteration + k) % 2 ? HELD : WALK;
        of->counter[SIZE_ACCEPTED] += move_size(s, kind, learning);
    }
    measure(s);
    if (learning) totals_size_learn(&s->size, hmc_window(iteration, warmup) == HMC_LAST, s->hmc.q);
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct normal *s = of->self;
    struct hmc_step told;
    const int nuts = iteration < warmup || iteration % NUTS_EVERY == 0;
    const double length = nuts ? 0 : SHARE * hmc_length(&s->hmc);
    if (s->density.rounded != *s->hmc.step_size) (void)refresh(s);
    copy(s->old, s->hmc.q, coordinates(s));
    if (length > 0)
        hmc_fixed(&s->hmc, length, MOST_STEPS, s->rng, &told);
    else
        hmc_nuts(&s->hmc, s->rng, &told);
    measure(s);
    const int within = is_within(s);
    if (!within) {
        copy(s->hmc.q, s->old, coordinates(s));
        (void)refresh(s);
        measure(s);
    }
    hmc_learn(&s->hmc, iteration, warmup, &told, s->rng);
    if (s->size.prior) move_sizes(of, iteration, warmup);

    double *counter = of->counter;
    counter[ITERATIONS] += 1;
    counter[ACCEPTANCE] += told.accept;
    counter[LEAPFROGS] += told.leapfrogs;
    counter[DIVERGENT] += told.divergent;
    counter[DEEPEST] += told.leapfrogs >= MOST_STEPS - 1;
    counter[WITHIN] += within;
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;

    /* theta given the totals; what is kept moves a little more */
    const double *kept = place(s, s->hmc.q) + s->density.totals.size;
    for (int j = 0; j < s->model.keeps; ++j) s->theta[s->model.kept[j]] = kept[j];
    const int status = s->model.class->rtheta(s->model.self, s->density.c, s->n, s->rng, s->theta);
    if (s->model.keeps == 0 || status != PLUGIN_OK) return status;
    for (int j = 0; j < s->model.keeps; ++j) {
        const int at = s->density.totals.size + j;
        s->hmc.q[at] = s->theta[s->model.kept[j]] - (s->size.prior ? s->size.shift[at] : 0);
    }
    return refresh(s) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void statistic(const struct collapse *of, double *out) {
    const struct normal *s = of->self;
    copy(out, s->statistic, s->density.components);
}

static void complete(const struct collapse *of, double *out) {
    const struct normal *s = of->self;
    copy(out, s->density.c, s->model.complete);
}

static void clamped_at(const struct collapse *of, const double *c, double *mean, double *left) {
    struct normal *s = of->self;
    copy(s->density.c, c, s->model.complete);
    totals_density_expect(&s->density);
    for (int k = 0; k < s->density.components; ++k)
        mean[k] = component_value(s->density.component + k, s->density.seen);
    totals_density_left(&s->density, left);
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    struct normal *s = of->self;
    s->density.rounded = 0;
    return log_density(s, q, gradient);
}

static double records(const struct collapse *of) {
    const struct normal *s = of->self;
    return s->n;
}

static double energy(const struct collapse *of) {
    const struct normal *s = of->self;
    return s->energy;
}

/* the tails of the variables' marginal distributions, summed */
static double outside(const struct collapse *of) {
    struct normal *s = of->self;
    const int d = s->density.totals.d;
    double share = 0;
    s->model.class->distribution(s->model.self, s->theta, s->mean, s->chol);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.order[i];
        const double mean = s->model.origin[v] + s->mean[i], *row = s->chol + (size_t)i * (size_t)d;
        double variance = 0;
        for (int j = 0; j <= i; ++j) variance += row[j] * row[j];
        const double sd = sqrt(variance);
        share += Rf_pnorm5(s->lower[v], mean, sd, 1, 0) + Rf_pnorm5(s->upper[v], mean, sd, 0, 0);
    }
    return s->density.clamped || share < 1 ? share : 1;
}

static double work(const struct collapse *of) {
    const struct normal *s = of->self;
    const double d = s->density.totals.d;
    return (1 + s->leapfrogs) * (2 * d * d * d + 10 * s->density.components + 10 * s->density.size +
                                 100 + 2.0 * s->directions * s->density.components);
}

const struct collapse_class collapse_normal = {
    .name = "normal",
    .counters =
        {
            [ITERATIONS] = "transitions",
            [ACCEPTANCE] = "acceptance",
            [LEAPFROGS] = "leapfrogs",
            [DIVERGENT] = "divergent",
            [DEEPEST] = "deepest",
            [WITHIN] = "within",
            [SIZE_MADE] = "size_made",
            [SIZE_ACCEPTED] = "size_accepted",
        },
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .records = records,
    .energy = energy,
    .outside = outside,
    .work = work,
    .log_density = density_at,
    .complete = complete,
    .clamped = clamped_at,
};
