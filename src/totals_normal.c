/* Method "collapse", normal totals: records that are normal given theta, and a
 * statistic made of totals of the variables and of their products. Exact if no
 * record lies outside the bounds.
 *
 * State: the complete-data statistic c of the records in coordinates without constraint
 * (totals.c), and those coordinates of theta that do not integrate out. Target (MATH
 * part 10):
 *
 *   volume(coordinates) marginal(c) eta(z | A c),
 *
 * marginal() the model's, theta integrated out; A c the released components, each a
 * constant and up to three entries of c. NUTS moves all of it (hmc.c); absolute kernels
 * leave it piecewise smooth, which NUTS takes as it is. Then the model's own update
 * draws theta given c.
 *
 * A prior that is cut off: marginal() does not know of it, so the target is short of the
 * probability w(c) that theta given c lies within. A transition is kept if a theta that is
 * drawn from the uncut law given the new c lies within: a step with probability w(c'),
 * which is reversible for the target times w.
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
#include "totals.h"

#include <Rmath.h>

/* A released component: constant + sum of coef times entries of c. */
struct component {
    double constant, coef[3];
    int at[3];
};

struct normal {
    struct model model;
    struct totals totals;
    struct hmc hmc;
    int size;                 /* coordinates, kept ones last */
    int components, absolute; /* first those with the absolute kernel */
    int smooth;               /* all kernels squared: while scales are looked for */
    struct component *component;
    const double *released, *weight;
    const double *lower, *upper; /* bounds of the columns, natural units */
    double n;
    struct rng *rng;
    double *theta;
    int leapfrogs; /* of the last iteration */

    double *c, *statistic, energy; /* of the state */

    /* workspace */
    double *gradient_c, *trial, *old, *work;
    double *mean, *chol, *normal_draw; /* law of a record, in the order of the model's law */
    double *guess;                     /* while starting */
    double *variance;                  /* of entries of c, while starting */
};

enum { START_DRAWS = 25 };

/* eigenvalues of the correlations at the start, and share of the expected scatter */
static const double LEAST_EIGENVALUE = 0.05, LEAST_SCATTER = 0.05;

static double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static void copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

/* ---- the density ------------------------------------------------------------------ */

static double component_value(const struct component *k, const double *c) {
    return k->constant + k->coef[0] * c[k->at[0]] + k->coef[1] * c[k->at[1]] +
           k->coef[2] * c[k->at[2]];
}

static double log_density(void *self, const double *q, double *gradient) {
    struct normal *s = self;
    for (int j = 0; j < s->model.keeps; ++j) s->trial[s->model.kept[j]] = q[s->totals.size + j];
    totals_expand(&s->totals, q, s->c);
    double value = s->model.class->marginal(s->model.self, s->c, s->n, s->trial, s->gradient_c,
                                            gradient + s->totals.size);
    if (!(value > -INFINITY)) return -INFINITY;
    for (int k = 0; k < s->components; ++k) {
        const struct component *one = s->component + k;
        const double r = (s->released[k] - component_value(one, s->c)) * s->weight[k];
        const int bent = k < s->absolute && !s->smooth;
        const double slope = s->weight[k] * (bent ? (r > 0) - (r < 0) : r);
        value -= bent ? fabs(r) : 0.5 * r * r;
        for (int e = 0; e < 3; ++e) s->gradient_c[one->at[e]] += slope * one->coef[e];
    }
    return value + totals_pull(&s->totals, q, s->gradient_c, gradient);
}

/* c, the released components and their misfit, of the state */
static void measure(struct normal *s) {
    totals_expand(&s->totals, s->hmc.q, s->c);
    s->energy = 0;
    for (int k = 0; k < s->components; ++k) {
        s->statistic[k] = component_value(s->component + k, s->c);
        const double r = (s->released[k] - s->statistic[k]) * s->weight[k];
        s->energy += k < s->absolute ? fabs(r) : 0.5 * r * r;
    }
}

/* ---- set-up --------------------------------------------------------------------------- */

/* rows of the field "terms", one column a component: columns i and j; then constant +
 * first T_i + second T_j + product P_ij */
enum { TERM_I, TERM_J, TERM_CONSTANT, TERM_FIRST, TERM_SECOND, TERM_PRODUCT, TERM_ROWS };

static void read_components(struct normal *s, const double *terms) {
    s->component = plugin_memory((size_t)s->components, sizeof *s->component);
    for (int k = 0; k < s->components; ++k, terms += TERM_ROWS) {
        const int i = (int)terms[TERM_I], j = (int)terms[TERM_J];
        struct component one = {
            .constant = terms[TERM_CONSTANT],
            .coef = {terms[TERM_FIRST], terms[TERM_SECOND], terms[TERM_PRODUCT]},
            .at = {i, j, moments_at(s->model.columns, i, j)},
        };
        if (i == j) { /* one entry of c, one coefficient */
            one.coef[0] += one.coef[1];
            one.coef[1] = 0;
        }
        s->component[k] = one;
    }
}

static int create(const struct fields *fields, struct collapse *of) {
    if (!of->model.origin || !of->model.class->marginal) return PLUGIN_BAD_FIELDS;
    struct normal *s = plugin_memory(1, sizeof *s);
    const int d = of->model.columns;
    s->model = of->model;
    s->n = of->n;
    s->components = of->size;
    s->absolute = of->absolute;
    s->released = of->released;
    s->weight = of->weight;
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * s->components);
    s->lower = fields_vector(fields, "lower", d);
    s->upper = fields_vector(fields, "upper", d);
    if (!terms || !s->lower || !s->upper) return PLUGIN_BAD_FIELDS;
    read_components(s, terms);
    totals_create(&s->totals, d, s->n, d, s->model.order, 1, NULL);
    if (totals_design(&s->totals, NULL) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    s->size = s->totals.size + s->model.keeps;

    const size_t size = (size_t)s->size, square = (size_t)d * (size_t)d;
    s->c = doubles((size_t)s->model.complete);
    s->gradient_c = doubles((size_t)s->model.complete);
    s->variance = doubles((size_t)s->model.complete);
    s->statistic = doubles((size_t)s->components);
    s->trial = doubles((size_t)s->model.parameters);
    s->old = doubles(size);
    s->mean = doubles((size_t)d);
    s->chol = doubles(square);
    s->normal_draw = doubles((size_t)d);
    s->guess = doubles(START_DRAWS * ((size_t)d * (size_t)(d + 3) / 2 + size));
    s->work = doubles(hmc_workspace(s->size, HMC_DIAGONAL));
    of->self = s;
    of->stored = (int)hmc_stored(s->size, HMC_DIAGONAL);
    return PLUGIN_OK;
}

static void attach(const struct collapse *of) {
    struct normal *s = of->self;
    const struct hmc_target target = {s->size, s, log_density};
    hmc_attach(&s->hmc, &target, HMC_DIAGONAL, of->store, s->work);
    s->rng = of->rng;
    s->theta = of->theta;
    copy(s->trial, of->theta, s->model.parameters);
}

/* ---- starts ----------------------------------------------------------------------------- */

/* Totals from their law given theta: T = n mean + sqrt(n) L g, and the scatter's factor L B,
 * B lower triangular, below the diagonal standard normal, on it chi with n - 1, n - 2, ...
 * degrees (Bartlett). */
static void draw_totals(struct normal *s, const double *theta) {
    const int d = s->totals.d, r = s->totals.rank, *order = s->model.order;
    double *l = s->chol, *g = s->normal_draw, *total = s->mean;
    double *b = s->guess, *factor = b + (size_t)d * (size_t)d;
    s->model.class->law(s->model.self, theta, s->mean, l);
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
        s->c[order[i]] = total[i];
        for (int j = 0; j <= i; ++j) {
            double sum = total[i] * total[j] / s->n;
            for (int m = 0; m < r; ++m) sum += factor[i * d + m] * factor[j * d + m];
            s->c[moments_at(d, order[i], order[j])] = sum;
        }
    }
}

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
    const int d = s->totals.d, *order = s->model.order;
    double *theta = s->trial, *draws = s->guess;
    for (int m = 0; m < START_DRAWS; ++m) {
        double *out = draws + m;
        s->model.class->rprior(s->model.self, s->rng, theta);
        s->model.class->law(s->model.self, theta, s->mean, s->chol);
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
        s->c[order[i]] = s->n * s->mean[i];
        for (int j = 0; j <= i; ++j) {
            double sum = s->mean[i] * s->mean[j];
            for (int m = 0; m <= j; ++m) sum += s->chol[i * d + m] * s->chol[j * d + m];
            s->c[moments_at(d, order[i], order[j])] = s->n * sum;
        }
    }
}

/* Corrects c by the release with fresh noise, component by component, as if entries of
 * c were independent and of the order of their root mean squares. */
static void correct_totals(struct normal *s) {
    const int d = s->totals.d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->variance[moments_at(d, i, j)] =
                s->c[moments_at(d, i, i)] * s->c[moments_at(d, j, j)];
    for (int i = 0; i < d; ++i) s->variance[i] = s->n * s->c[moments_at(d, i, i)];
    for (int k = 0; k < s->components; ++k) {
        const struct component *one = s->component + k;
        const double draw = k < s->absolute ? rng_exponential(s->rng) - rng_exponential(s->rng)
                                            : rng_normal(s->rng);
        const double noise = (k < s->absolute ? 2 : 1) / (s->weight[k] * s->weight[k]);
        const double away = s->released[k] + draw / s->weight[k] - component_value(one, s->c);
        double spread = noise, gain[3];
        for (int e = 0; e < 3; ++e) {
            gain[e] = one->coef[e] * s->variance[one->at[e]];
            spread += gain[e] * one->coef[e];
        }
        for (int e = 0; e < 3; ++e) {
            if (one->coef[e] == 0) continue;
            s->c[one->at[e]] += gain[e] * away / spread;
            s->variance[one->at[e]] *= 1 - gain[e] * one->coef[e] / spread;
        }
    }
}

/* Makes the scatter of c one that records could have; `least`: what it should be at
 * least, a column. */
static void make_possible(struct normal *s, const double *least) {
    const int d = s->totals.d;
    double *a = s->guess, *work = a + (size_t)d * (size_t)d, *scale = s->normal_draw;
    for (int i = 0; i < d; ++i) {
        const double own = s->c[moments_at(d, i, i)] - s->c[i] * s->c[i] / s->n;
        scale[i] = sqrt(own > least[i] ? own : least[i]);
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            a[i * d + j] = i == j ? 1
                                  : (s->c[moments_at(d, i, j)] - s->c[i] * s->c[j] / s->n) /
                                        (scale[i] * scale[j]);
    linalg_raise_eigenvalues(d, a, LEAST_EIGENVALUE, work);
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->c[moments_at(d, i, j)] =
                a[i * d + j] * scale[i] * scale[j] + s->c[i] * s->c[j] / s->n;
}

static void start_near_release(struct normal *s) {
    const int d = s->totals.d;
    expect_totals(s);
    for (int i = 0; i < d; ++i)
        s->mean[i] = LEAST_SCATTER * (s->c[moments_at(d, i, i)] - s->c[i] * s->c[i] / s->n);
    correct_totals(s);
    make_possible(s, s->mean);
}

/* Scales of the coordinates: second differences of the log density with squared kernels,
 * where it is concave. */
static void find_units(struct normal *s, const double *q, double *unit) {
    static const double SHARE = 1e-3;
    const int d = s->totals.d;
    double *at = s->guess, *up = at + s->size, *down = up + s->size;
    s->smooth = 1;
    copy(at, q, s->size);
    for (int i = 0; i < d; ++i)
        unit[i] = sqrt(s->c[moments_at(d, s->model.order[i], s->model.order[i])]);
    for (int j = d; j < s->size; ++j) unit[j] = s->totals.rank == d ? 1 : 1 + fabs(q[j]);
    for (int j = 0; j < s->size; ++j) {
        const double step = SHARE * unit[j];
        at[j] = q[j] + step;
        const double above = log_density(s, at, up);
        at[j] = q[j] - step;
        const double below = log_density(s, at, down);
        at[j] = q[j];
        const double curvature = (down[j] - up[j]) / (2 * step);
        if (isfinite(above) && isfinite(below) && curvature * unit[j] * unit[j] > 1)
            unit[j] = 1 / sqrt(curvature);
    }
    s->smooth = 0;
}

static void start(struct collapse *of) {
    struct normal *s = of->self;
    attach(of);
    if (of->given)
        draw_totals(s, of->theta);
    else
        start_near_release(s);
    double *q = s->old, *unit = s->guess + 3 * (size_t)s->size;
    if (totals_coordinates(&s->totals, s->c, q) != PLUGIN_OK) return;
    if (!of->given) {
        (void)s->model.class->rtheta(s->model.self, s->c, s->n, s->rng, of->theta);
        copy(s->trial, of->theta, s->model.parameters);
    }
    for (int j = 0; j < s->model.keeps; ++j) q[s->totals.size + j] = of->theta[s->model.kept[j]];
    find_units(s, q, unit);
    hmc_start(&s->hmc, q, unit);
    (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}

static void load(struct collapse *of) {
    struct normal *s = of->self;
    attach(of);
    (void)hmc_refresh(&s->hmc);
    measure(s);
}

static void save(struct collapse *of) { (void)of; /* all of it stands in the store */ }

/* ---- an iteration ---------------------------------------------------------------------- */

/* what a family counts, beside the iterations */
enum { ITERATIONS, ACCEPTANCE, LEAPFROGS, DIVERGENT, DEEPEST, WITHIN };

/* Is a theta from the uncut law given the new totals within? Then it is the state's. */
static int is_within(struct normal *s) {
    const struct model_class *class = s->model.class;
    if (!s->model.cut) return 1;
    copy(s->trial, s->theta, s->model.parameters);
    for (int j = 0; j < s->model.keeps; ++j)
        s->trial[s->model.kept[j]] = s->hmc.q[s->totals.size + j];
    if (class->rtheta_uncut(s->model.self, s->c, s->n, s->rng, s->trial) != PLUGIN_OK ||
        !isfinite(class->dprior(s->model.self, s->trial)))
        return 0;
    copy(s->theta, s->trial, s->model.parameters);
    return 1;
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct normal *s = of->self;
    struct hmc_step told;
    copy(s->old, s->hmc.q, s->size);
    hmc_nuts(&s->hmc, s->rng, &told);
    measure(s);
    const int within = is_within(s);
    if (!within) {
        copy(s->hmc.q, s->old, s->size);
        (void)hmc_refresh(&s->hmc);
        measure(s);
    }
    hmc_learn(&s->hmc, iteration, warmup, &told, s->rng);

    double *counter = of->counter;
    counter[ITERATIONS] += 1;
    counter[ACCEPTANCE] += told.accept;
    counter[LEAPFROGS] += told.leapfrogs;
    counter[DIVERGENT] += told.divergent;
    counter[DEEPEST] += told.depth == HMC_MOST_DEPTH;
    counter[WITHIN] += within;
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;

    /* theta given the totals; what is kept moves a little more */
    double *kept = s->hmc.q + s->totals.size;
    for (int j = 0; j < s->model.keeps; ++j) s->theta[s->model.kept[j]] = kept[j];
    const int status = s->model.class->rtheta(s->model.self, s->c, s->n, s->rng, s->theta);
    if (s->model.keeps == 0 || status != PLUGIN_OK) return status;
    for (int j = 0; j < s->model.keeps; ++j) kept[j] = s->theta[s->model.kept[j]];
    return hmc_refresh(&s->hmc) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void statistic(const struct collapse *of, double *out) {
    const struct normal *s = of->self;
    copy(out, s->statistic, s->components);
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    return log_density(of->self, q, gradient);
}

static double energy(const struct collapse *of) {
    const struct normal *s = of->self;
    return s->energy;
}

/* the tails of the variables' marginal laws, summed */
static double outside(const struct collapse *of) {
    struct normal *s = of->self;
    const int d = s->totals.d;
    double share = 0;
    s->model.class->law(s->model.self, s->theta, s->mean, s->chol);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.order[i];
        const double mean = s->model.origin[v] + s->mean[i], *row = s->chol + (size_t)i * (size_t)d;
        double variance = 0;
        for (int j = 0; j <= i; ++j) variance += row[j] * row[j];
        const double sd = sqrt(variance);
        share += Rf_pnorm5(s->lower[v], mean, sd, 1, 0) + Rf_pnorm5(s->upper[v], mean, sd, 0, 0);
    }
    return share < 1 ? share : 1;
}

static double work(const struct collapse *of) {
    const struct normal *s = of->self;
    const double d = s->totals.d;
    return (1 + s->leapfrogs) * (2 * d * d * d + 10 * s->components + 10 * s->size + 100);
}

const struct collapse_class collapse_normal = {
    .name = "normal",
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .outside = outside,
    .work = work,
    .log_density = density_at,
};
