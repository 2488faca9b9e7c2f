/* Methods "collapse" and "clt", normal totals: records that are normal given theta, and a
 * statistic made of totals of the variables and of their products. Exact if no
 * record lies outside the bounds.
 *
 * State: the complete-data statistic c of the records in coordinates without constraint
 * (totals/normal_coordinates.c), and those coordinates of theta that do not integrate out. Target
 * (vignette "Algorithms", "collapse"):
 *
 *   volume(coordinates) marginal(c) eta(z | A c)
 *
 * of totals/density.c. Hamiltonian Monte Carlo moves all of it (mcmc/hmc.c): NUTS in warmup, or in
 * parts of it (ENOUGH); afterwards jittered trajectories of SHARE times the length of trajectories
 * of NUTS, which need fewer steps for the same distance, except for one in NUTS_EVERY: if scales
 * vary over the space, one length does not suit all regions. Absolute kernels are rounded off
 * within a step of 0, or a little farther (WIDE). Then the model's own update draws theta given c.
 *
 * A truncated prior: marginal() ignores the truncation, so the target lacks the probability w(c)
 * that theta given c is within the bounds. A transition is kept if a theta drawn from the
 * untruncated distribution given the new c is within them: a step with probability w(c'), which is
 * reversible for the target times w.
 *
 * Bounds that clamp ("clt"): c is the statistic of the records before they are clamped. Given c the
 * released totals are approximated as normal, with the mean from totals/clamped_moments.c and a
 * covariance Gamma Gamma' that R estimates beforehand (clt_spread()): they are that mean plus
 * Gamma u, with u additional standard normal coordinates. Directions in which the noise is much
 * larger than the covariance are left out of Gamma, and added to the noise for moves of c.
 *
 * The number of records n may be unknown. Then it is moved together with the totals
 * (totals/n_coordinate.c): the target has the factor
 *
 *   p(n) pi^((n - 1) d / 2) n^(-d / 2) / Gamma_d((n - 1) / 2) times what marginal() leaves out
 *
 * in addition, which is the rest of the Wishart density of the scatter and of the totals' density.
 * n is larger than d, so that the scatter keeps its rank.
 *
 * Starting values are in totals/normal_totals_start.c, steps of n in totals/n_steps.c, other
 * coordinates for small noise in totals/scatter_coordinates.c.
 *
 * Cost for d columns: O(d^3 + components) a gradient, free of n. No allocation in any
 * loop.
 */
#include "totals/normal_totals.h"

#include "totals/mean_sd_ridge.h"

#include "base/linalg.h"
#include "contract/model_levels.h"
#include "contract/model_marginal.h"
#include "contract/model_normal.h"
#include "contract/model_prior.h"
#include "contract/model_update.h"

#include <Rmath.h>

enum { MOST_STEPS = 1 << HMC_MOST_DEPTH, NUTS_EVERY = 10 };

static const double SHARE = 0.7;

/* The force of absolute kernels jumps, which leaves energy errors in a step's first order: with
 * MANY of them longer steps, refused more often, give more effective draws for as much work. */
enum { MANY = 150 };
static const double BOLD = 0.65;

/* And they may be rounded within cbrt(WIDE / how many): the log ratio of the rounded density to the
 * true one has a variance of about WIDE / 20 then, and trajectories that follow the first still end
 * where the second is as large. Narrower, they need shorter steps. */
static const double WIDE = 0.85;

/* Then warmup also has trajectories of a given length, once ENOUGH of NUTS have settled it and the
 * step since its last window. With few kernels, or factors, a scale that comes near 0 wants
 * trajectories of its own, which NUTS finds. */
enum { ENOUGH = 25 };

static int has_many(const struct normal *s) {
    return s->density.noise.absolute >= MANY && s->table.factors == 0;
}

/* The share of warmup for which the table waits at most, see has_arrived(). */
static const double TABLE_WAITS = 0.5;

/* ---- the state ----------------------------------------------------------------------- */

/* Where noise is small, totals and u are strongly correlated, and so are the totals of an unknown
 * number of records; up to so many coordinates warmup can learn how. */
enum { FEW = 60 };

static enum hmc_metric metric(const struct normal *s) {
    const int correlated = s->density.clamped || s->resize.size.prior;
    return correlated && normal_coordinates(s) <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

static void pull_residual(struct normal *s, const double *q, double *gradient) {
    for (int k = 0; k < s->model.parameters; ++k) s->response.slope_theta[k] = 0;
    totals_residual_pull(s->response.residual, s->density.theta, q, gradient,
                         s->response.slope_theta);
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        gradient[s->density.totals.size + j] += s->response.slope_theta[s->model.marginal->kept[j]];
}

/* For mcmc/hmc.h: of totals, of what is kept of theta and of u. */
static double log_density(void *self, const double *q, double *gradient) {
    struct normal *s = self;
    const int count = s->density.noise.size;
    const double *u = q + s->density.size;
    double *of_u = gradient + s->density.size, square = 0;
    normal_shift_release(s, u);
    const double *at = normal_place(s, q);
    double log_density = totals_log_density(&s->density, at, gradient);
    if (s->exact && log_density > -INFINITY)
        log_density += totals_exact_pull(s->exact, q, gradient);
    if (s->response.residual && log_density > -INFINITY) {
        log_density += s->response.log_volume;
        pull_residual(s, q, gradient);
    }
    if (s->scatter_place && log_density > -INFINITY) normal_scatter_pull(s, gradient);
    for (int j = 0; s->resize.size.prior && j < s->model.columns; ++j)
        gradient[j] *= s->resize.size.stretch[j];
    for (int j = 0; j < s->clamp.directions; ++j) {
        const double *restrict column = s->clamp.spread + (size_t)j * (size_t)count;
        double sum = 0;
        for (int k = 0; k < count; ++k) sum += column[k] * s->density.slope[k];
        of_u[j] = sum - u[j];
        square += u[j] * u[j];
    }
    return log_density - 0.5 * square;
}

/* ---- set-up --------------------------------------------------------------------------- */

/* "clt": the noise that moves c, in "clamp_weight", and Gamma in "spread". */
static int clamp(const struct fields *fields, struct normal *s) {
    const int d = s->density.totals.d, count = s->density.noise.size;
    s->density.noise.weight = fields_vector(fields, "clamp_weight", count);
    s->clamp.directions = fields_length(fields, "spread") / count;
    s->clamp.spread = fields_vector(fields, "spread", s->clamp.directions * count);
    if (!s->density.noise.weight || (s->clamp.directions > 0 && !s->clamp.spread))
        return PLUGIN_BAD_FIELDS;
    double *lower = doubles((size_t)d), *upper = doubles((size_t)d);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.normal->order[i];
        lower[i] = s->lower[v] - s->model.normal->origin[v];
        upper[i] = s->upper[v] - s->model.normal->origin[v];
    }
    totals_density_clamp(&s->density, lower, upper);
    if (s->clamp.directions == 0) return PLUGIN_OK;
    s->density.noise.released = s->clamp.shifted = doubles((size_t)count);
    s->density.slope = doubles((size_t)count);
    return PLUGIN_OK;
}

/* Columns that represent factors' levels, factor by factor; how many. */
static int list_dummies(struct normal *s) {
    int count = 0;
    s->fixed = plugin_memory((size_t)s->model.columns, sizeof *s->fixed);
    for (int f = 0; f < model_factors(&s->model); ++f)
        for (int l = 1; l < s->model.levels->factor[f].levels; ++l)
            s->fixed[count++] = s->model.levels->factor[f].first + l - 1;
    return count;
}

static void prepare_residual(struct normal *s) {
    s->response.residual = plugin_memory(1, sizeof *s->response.residual);
    totals_residual_create(s->response.residual, &s->density.totals, s->model.marginal->residual);
    s->response.residual->alone =
        s->model.marginal->keeps == 1 && !s->model.coordinates.block[0].known;
    if (!s->response.residual->alone) totals_invert_rows(&s->density.totals);
    coordinates_set_known(&s->model.coordinates, s->density.theta);
    s->response.place = doubles((size_t)normal_coordinates(s));
    s->response.slope_theta = doubles((size_t)s->model.parameters);
}

/* "bend" has the columns in their own order; empty: there is none. */
static int prepare_bend(const struct fields *fields, struct normal *s) {
    const int columns = s->model.columns;
    if (fields_length(fields, "bend") == 0) return PLUGIN_OK;
    const double *given = fields_vector(fields, "bend", BEND_ROWS * columns);
    if (!given) return PLUGIN_BAD_FIELDS;
    double *bend = doubles((size_t)BEND_ROWS * (size_t)columns);
    for (int i = 0; i < columns; ++i)
        doubles_copy(bend + i * BEND_ROWS, given + s->model.normal->order[i] * BEND_ROWS,
                     BEND_ROWS);
    s->density.totals.bend = bend;
    return PLUGIN_OK;
}

static int prepare_size(const struct fields *fields, const struct collapse *of, struct normal *s) {
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread) return PLUGIN_BAD_FIELDS;
    s->resize.model = &s->model;
    s->resize.density = &s->density;
    s->trial = doubles((size_t)normal_coordinates(s));
    if (totals_resize_create(&s->resize, of->size_prior, of->n, *spread, s->density.size) !=
        PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    if (!s->density.clamped) return PLUGIN_OK;
    totals_resize_clamp(&s->resize, s->noise->weight, s->clamp.spread, s->clamp.directions);
    if (s->clamp.directions > 0) s->clamp.spread = s->resize.spread;
    return PLUGIN_OK;
}

static int create(const struct fields *fields, struct collapse *of) {
    if (!of->model.normal || !of->model.marginal) return PLUGIN_BAD_FIELDS;
    struct normal *s = plugin_memory(1, sizeof *s);
    s->model = of->model;
    s->n = of->n;
    const int columns = s->model.columns, k = 1 + list_dummies(s), d = columns - (k - 1);
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * of->noise.size);
    s->lower = fields_vector(fields, "lower", columns);
    s->upper = fields_vector(fields, "upper", columns);
    if (!terms || !s->lower || !s->upper) return PLUGIN_BAD_FIELDS;
    if (k > 1 && (of->size_prior || s->n < k + d)) return PLUGIN_BAD_FIELDS; /* checked in R */
    s->noise = &of->noise;
    s->density.noise = noise_first(&of->noise, of->noise.noisy);
    s->density.component = read_components(columns, of->noise.size, terms);
    totals_density_create(&s->density, &s->model, s->n, d, s->model.normal->order, k, s->fixed);
    if (k == 1) (void)totals_design(&s->density.totals, NULL);
    if (fields_length(fields, "clamp_weight") > 0 && clamp(fields, s) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->exact = totals_exact_new(&s->density, s->density.size, &of->noise);
    if (of->size_prior && prepare_size(fields, of, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    if (k > 1 && normal_prepare_table(s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    if (s->model.marginal->residual > 0 && k == 1 && fields_length(fields, "innovates") > 0)
        prepare_residual(s);
    else if (s->density.totals.rank == d && k == 1 && fields_length(fields, "scatter") > 0)
        normal_prepare_scatter(s);
    if (prepare_bend(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    const size_t size = (size_t)normal_coordinates(s), square = (size_t)d * (size_t)d;
    s->variance = doubles((size_t)s->model.complete);
    s->statistic = doubles((size_t)of->noise.size);
    doubles_copy(s->statistic, of->noise.released, of->noise.size); /* exact ones stay */
    s->old = doubles(size);
    s->mean = doubles((size_t)k * (size_t)d);
    s->chol = doubles(square);
    s->normal_draw = doubles((size_t)d);
    s->guess = doubles(NORMAL_START_DRAWS * ((size_t)d * (size_t)(d + 3) / 2 + size));
    s->work = doubles(hmc_workspace(normal_coordinates(s), metric(s)));
    of->self = s;
    of->described =
        s->model.complete + s->table.cells + (of->size_prior ? 1 + 2 * s->model.columns : 0);
    of->stored = (int)hmc_stored(normal_coordinates(s), metric(s));
    if (of->size_prior) of->stored += (int)totals_size_stored(&s->resize.size);
    if (k > 1) of->stored += (int)normal_stored_table(s);
    return PLUGIN_OK;
}

static void attach(const struct collapse *of) {
    struct normal *s = of->self;
    const struct hmc_target target = {normal_coordinates(s), s, log_density, NULL};
    hmc_attach(&s->hmc, &target, metric(s), of->store, s->work);
    if (s->density.noise.absolute >= MANY) s->hmc.target_accept = BOLD;
    if (s->resize.size.prior) s->hmc.begun = s->old;
    double *rest = of->store + hmc_stored(target.size, metric(s));
    if (s->resize.size.prior) totals_size_attach(&s->resize.size, rest);
    if (s->table.factors > 0) normal_attach_table(s, rest);
    s->rng = s->resize.rng = of->rng;
    s->theta = of->theta;
    doubles_copy(s->density.theta, of->theta, s->model.parameters);
}

/* At least within a step, so that energy errors vanish with both. */
static double rounding(const struct normal *s) {
    const double step = *s->hmc.step_size;
    return has_many(s) ? fmax(step, cbrt(WIDE / s->density.noise.absolute)) : step;
}

static int refresh(struct normal *s) {
    s->density.rounded = rounding(s);
    return hmc_refresh(&s->hmc);
}

static void load(struct collapse *of) {
    struct normal *s = of->self;
    attach(of);
    if (s->resize.size.prior) {
        totals_resize_set(&s->resize, *s->resize.size.n);
        s->n = *s->resize.size.n;
    }
    if (s->table.factors > 0) normal_load_table(s);
    (void)refresh(s);
    normal_measure(s, s->hmc.q);
}

static void start(struct collapse *of) {
    attach(of);
    normal_start(of);
}

/* ---- an iteration ---------------------------------------------------------------------- */

int normal_is_within(struct normal *s) {
    if (!model_is_cut(&s->model)) return 1;
    doubles_copy(s->density.theta, s->theta, s->model.parameters);
    const double *kept = normal_place(s, s->hmc.q) + s->density.totals.size;
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        s->density.theta[s->model.marginal->kept[j]] = kept[j];
    if (s->model.update->rtheta_uncut(s->model.self, s->density.c, s->n, s->rng,
                                      s->density.theta) != PLUGIN_OK ||
        !isfinite(s->model.prior->dprior(s->model.self, s->density.theta)))
        return 0;
    doubles_copy(s->theta, s->density.theta, s->model.parameters);
    return 1;
}

/* theta given the totals; what is kept moves a little more. */
static int draw_theta(struct normal *s) {
    double *kept = s->hmc.q + s->density.totals.size;
    const double *shift =
        s->resize.size.prior ? s->resize.size.shift + s->density.totals.size : NULL;
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        s->theta[s->model.marginal->kept[j]] = kept[j] + (shift ? shift[j] : 0);
    const int status = s->model.update->rtheta(s->model.self, s->density.c, s->n, s->rng, s->theta);
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        kept[j] = s->theta[s->model.marginal->kept[j]] - (shift ? shift[j] : 0);
    if (s->response.residual) normal_read_residual(s, s->theta, s->hmc.q);
    return status;
}

/* A step of n, to which the density belongs where it is taken; c is then not the state's. */
static int move_size(struct normal *s, enum totals_step kind, int learning) {
    double log_ratio, log_density = -INFINITY;
    if (totals_resize_propose(&s->resize, kind, s->hmc.q, &log_ratio)) {
        s->n = *s->resize.size.n;
        log_density = s->hmc.target.log_density(s, s->hmc.q, s->trial);
        log_ratio += log_density - s->hmc.log_density;
    }
    if (!(log_density > -INFINITY)) log_ratio = -INFINITY;
    const int accept = -log_ratio < rng_exponential(s->rng) && normal_is_within(s);
    if (accept) {
        s->hmc.log_density = log_density;
        doubles_copy(s->hmc.gradient, s->trial, normal_coordinates(s));
    } else {
        totals_resize_undo(&s->resize, s->hmc.q);
        s->n = *s->resize.size.n;
    }
    if (learning) totals_resize_learn(&s->resize, kind, log_ratio);
    return accept;
}

/* Steps of an unknown n; the last thing of an iteration that moves the totals. */
static void move_sizes(struct collapse *of, int iteration, int warmup) {
    struct normal *s = of->self;
    const int learning = iteration < warmup;
    const int steps = totals_resize_steps(&s->resize);
    for (int k = 0; k < steps; ++k)
        of->counter[SIZE_ACCEPTED] += move_size(s, totals_resize_kind(&s->resize, k), learning);
    of->counter[SIZE_MADE] += steps;
    normal_measure(s, s->hmc.q);
    if (learning)
        totals_size_learn(&s->resize.size, hmc_window(iteration, warmup) == HMC_LAST, s->hmc.q);
}

/* A start has a table that fits the release. Totals that do not yet would drive it away. */
static int has_arrived(const struct normal *s) { return s->energy < 2 * s->density.noise.size; }

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct normal *s = of->self;
    struct hmc_step told;
    const int learning = iteration < warmup && (*s->hmc.learned < ENOUGH || !has_many(s));
    const int nuts = learning || iteration % NUTS_EVERY == 0;
    const double length = nuts ? 0 : SHARE * hmc_length(&s->hmc);
    if (s->density.rounded != rounding(s)) (void)refresh(s);
    doubles_copy(s->old, s->hmc.q, normal_coordinates(s));
    if (length > 0)
        hmc_fixed(&s->hmc, length, MOST_STEPS, s->rng, &told);
    else
        hmc_nuts(&s->hmc, s->rng, &told);
    normal_measure(s, s->hmc.q);
    const int within = normal_is_within(s);
    if (!within) {
        doubles_copy(s->hmc.q, s->old, normal_coordinates(s));
        (void)refresh(s);
        normal_measure(s, s->hmc.q);
    }
    hmc_learn(&s->hmc, iteration, warmup, nuts ? &told : NULL, s->rng);
    if (s->resize.size.prior) move_sizes(of, iteration, warmup);

    double *counter = of->counter;
    counter[ITERATIONS] += 1;
    counter[ACCEPTANCE] += told.accept;
    counter[LEAPFROGS] += told.leapfrogs;
    counter[DIVERGENT] += told.divergent;
    counter[DEEPEST] += told.leapfrogs >= MOST_STEPS - 1;
    counter[WITHIN] += within;
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;

    const int status = draw_theta(s);
    if (status != PLUGIN_OK || (s->model.marginal->keeps == 0 && s->table.factors == 0))
        return status;
    if (s->table.factors > 0 && (iteration >= warmup * TABLE_WAITS || has_arrived(s))) {
        normal_move_table(of, iteration < warmup);
        if (draw_theta(s) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    }
    return refresh(s) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void complete(const struct collapse *of, double *out) {
    const struct normal *s = of->self;
    doubles_copy(out, s->density.c, s->model.complete);
    if (s->resize.size.prior) {
        const int d = s->model.columns;
        double *size = out + s->model.complete;
        *size++ = s->n;
        doubles_copy(size, s->resize.size.between, d);
        doubles_copy(size + d, s->resize.size.within, d);
    }
    if (s->table.cells > 0) doubles_copy(out + s->model.complete, s->table.count, s->table.cells);
}

static void clamped_at(const struct collapse *of, const double *c, double *mean, double *left) {
    struct normal *s = of->self;
    doubles_copy(s->density.c, c, s->model.complete);
    if (s->table.cells > 0) normal_read_cells(s, c + s->model.complete);
    totals_density_expect(&s->density);
    for (int k = 0; k < s->density.noise.size; ++k)
        mean[k] = component_value(s->density.component + k, s->density.seen);
    totals_density_left(&s->density, left);
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    struct normal *s = of->self;
    s->density.rounded = 0;
    return log_density(s, q, gradient);
}

static double resize_to(struct collapse *of, double n, int hold, double *q) {
    struct normal *s = of->self;
    double log_ratio = 0;
    const enum totals_step kind = hold ? TOTALS_HELD : TOTALS_WALK;
    return totals_resize_go(&s->resize, kind, n, q, &log_ratio) ? log_ratio : -INFINITY;
}

static double records(const struct collapse *of) {
    const struct normal *s = of->self;
    return s->n;
}

/* the tails of the variables' marginal distributions, summed */
static double outside(const struct collapse *of) {
    struct normal *s = of->self;
    const int d = s->density.totals.d;
    double share = 0;
    s->model.normal->distribution(s->model.self, s->theta, s->mean, s->chol);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.normal->order[i];
        const double *row = s->chol + (size_t)i * (size_t)d;
        const double sd = sqrt(linalg_dot(i + 1, row, row));
        const double lower = s->lower[v] - s->model.normal->origin[v];
        const double upper = s->upper[v] - s->model.normal->origin[v];
        const int parts = normal_depends(s, i) ? s->table.cells : 1;
        for (int cell = 0; cell < parts; ++cell) {
            const double part = parts > 1 ? s->table.count[cell] / s->n : 1;
            if (part == 0) continue;
            const double mean = parts > 1 ? normal_mean_at(s, i, cell) : s->mean[i];
            share += part * (Rf_pnorm5(lower, mean, sd, 1, 0) + Rf_pnorm5(upper, mean, sd, 0, 0));
        }
    }
    return s->density.clamped || share < 1 ? share : 1;
}

static double work(const struct collapse *of) {
    const struct normal *s = of->self;
    const double d = s->density.totals.d, k = s->density.totals.k;
    const double evaluations = 1 + s->leapfrogs + (k > 1 ? normal_moves(s) : 0);
    return evaluations *
           (2 * d * d * d + k * d * (d + k) + 10 * s->density.noise.size + 10 * s->density.size +
            100 + 2.0 * s->clamp.directions * s->density.noise.size);
}

static const struct collapse_coordinates coordinates = {.log_density = density_at,
                                                        .resize = resize_to};
static const struct collapse_complete complete_data = {.statistic = complete,
                                                       .clamped = clamped_at};

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
            [TABLE_MADE] = "table_made",
            [TABLE_ACCEPTED] = "table_accepted",
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = normal_statistic,
    .records = records,
    .energy = normal_energy,
    .outside = outside,
    .work = work,
    .coordinates = &coordinates,
    .complete = &complete_data,
};
