/* Surrogate transitions of the coefficients of a response with several levels (vignette
 * "Algorithms", all records at once; Liu 2001; Christen & Fox 2005): the response of record i is a
 * function of the coefficients, its covariates w_i and a uniform u_i, which are held fixed.
 *
 * The released totals s(theta) of the records, with the responses at theta, require a pass over
 * the records. For `points` of the records, whose covariates represent `share` records each, the
 * statistic is known for each level: t(w_m, k). So
 *
 *   A(theta) = share sum_m sum_k P(y = k | w_m, theta) t(w_m, k)
 *
 * is about the expectation of s(theta), for any statistic and covariates. The surrogate replaces s
 * by A(theta) + s(theta_0) - A(theta_0), with a reference theta_0 that is fixed after warmup. A
 * trajectory of Hamiltonian Monte Carlo on p(theta) eta(z | surrogate) is reversible; its end
 * theta' is accepted with
 *
 *   min(1, [eta(z | s') / eta(z | surrogate')] / [eta(z | s) / eta(z | surrogate)]).
 *
 * The points are chosen again for each move, independently of the responses, so that they are the
 * same for the reverse move.
 *
 * mcmc/surrogate_trajectory.c learns trajectories and the reference in warmup.
 *
 * This file uses no records but the points. Cost of a leapfrog step: two multiplications for each
 * point, level and component, and the points' probabilities. No allocation except in
 * category_moves_create().
 */
#include "records/category_hmc.h"

/* So many coordinates have a dense metric. */
enum { FEW = 20 };

static double log_density(void *self, const double *q, double *gradient);

static enum hmc_metric metric(const struct category_moves *r) {
    return r->size <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

/* ---- set-up ---------------------------------------------------------------------- */

int category_moves_create(struct category_moves *r, const struct model *model, int dense, int cells,
                          int touched) {
    const struct model_categories *of = model->categories;
    if (!of) return 0;
    const size_t levels = (size_t)of->levels, size = (size_t)of->coefficients;
    r->model = model;
    r->size = of->coefficients;
    r->dense = dense;
    r->cells = cells;
    r->touched = touched;
    r->x = plugin_memory((size_t)model->columns, sizeof *r->x);
    for (int v = 0; v < model->columns; ++v) r->x[v] = doubles(MAX_POINTS);
    r->add = doubles(levels * (size_t)dense * MAX_POINTS);
    r->touch = plugin_memory(levels * (size_t)touched * MAX_POINTS, sizeof *r->touch);
    r->theta = doubles((size_t)model->parameters);
    DOUBLES((size_t)(dense + cells), &r->offset, &r->expected, &r->pull);
    DOUBLES(levels * MAX_BLOCK, &r->probability, &r->slope);
    DOUBLES(size, &r->path.here, &r->path.there);
    r->work = doubles(hmc_workspace(r->size, metric(r)) + 3 * size);
    return 1;
}

size_t category_moves_stored(const struct category_moves *r) {
    return trajectory_stored(r->size, metric(r)) + (size_t)r->size;
}

void category_moves_attach(struct category_moves *r, double *store) {
    const struct hmc_target target = {r->size, r, log_density, NULL};
    r->unit = store;
    trajectory_attach(&r->path, &target, metric(r), store + r->size, r->work);
}

void category_moves_start(struct category_moves *r, const double *sd) {
    *r->path.referred = 0;
    memcpy(r->unit, sd, (size_t)r->size * sizeof(double));
}

/* ---- the density ------------------------------------------------------------------- */

static void copy(const struct category_moves *r, double *to, const double *from) {
    memcpy(to, from, (size_t)r->size * sizeof(double));
}

/* A at these coordinates, in r->expected */
static void expect(struct category_moves *r, const double *q) {
    const struct model *model = r->model;
    copy(r, r->theta, q);
    model->categories->probabilities(model->self, r->theta, r->points, (const double *const *)r->x,
                                     r->probability);
    memset(r->expected, 0, (size_t)(r->dense + r->cells) * sizeof(double));
    for (int k = 0; k < model->categories->levels; ++k) {
        const double *p = r->probability + (size_t)k * MAX_BLOCK;
        const double *add = r->add + (size_t)k * (size_t)r->dense * MAX_POINTS;
        for (int j = 0; j < r->dense; ++j)
            r->expected[j] += r->share * block_dot(r->points, p, add + (size_t)j * MAX_POINTS);
        const int *touch = r->touch + (size_t)k * (size_t)r->touched * MAX_POINTS;
        for (int t = 0; t < r->touched; ++t, touch += MAX_POINTS)
            for (int i = 0; i < r->points; ++i) r->expected[r->dense + touch[i]] += r->share * p[i];
    }
}

/* The energy of the noise; its slopes in the totals, with the sign of the log density, to
 * r->pull. */
static double weigh_noise(struct category_moves *r) {
    const double energy = noise_pull(&r->noise, r->expected, r->rounded, r->pull);
    for (int j = 0; j < r->noise.size; ++j) r->pull[j] *= r->temper * r->share;
    return energy;
}

static double log_density(void *self, const double *q, double *gradient) {
    struct category_moves *r = self;
    const struct model *model = r->model;
    expect(r, q);
    r->energy = weigh_noise(r);
    const double log_prior = model->categories->log_prior(model->self, r->theta, gradient);
    if (!isfinite(log_prior) || !isfinite(r->energy)) return -INFINITY;
    for (int k = 0; k < model->categories->levels; ++k) {
        double *slope = r->slope + (size_t)k * MAX_BLOCK;
        const double *add = r->add + (size_t)k * (size_t)r->dense * MAX_POINTS;
        memset(slope, 0, MAX_POINTS * sizeof(double));
        for (int j = 0; j < r->dense; ++j, add += MAX_POINTS) {
            const double pull = r->pull[j];
            for (int i = 0; i < r->points; ++i) slope[i] += pull * add[i];
        }
        const int *touch = r->touch + (size_t)k * (size_t)r->touched * MAX_POINTS;
        for (int t = 0; t < r->touched; ++t, touch += MAX_POINTS)
            for (int i = 0; i < r->points; ++i) slope[i] += r->pull[r->dense + touch[i]];
    }
    model->categories->pull(model->self, r->theta, r->points, (const double *const *)r->x, r->slope,
                            gradient);
    return log_prior - r->temper * r->energy;
}

double category_moves_density(struct category_moves *r, double *q, double *gradient) {
    if (isnan(q[0])) copy(r, q, r->path.here);
    memcpy(r->offset, r->released, (size_t)(r->dense + r->cells) * sizeof(double));
    r->rounded = 0;
    return log_density(r, q, gradient);
}

/* ---- a move ------------------------------------------------------------------------ */

int category_moves_begin(struct category_moves *r, const double *theta, struct rng *rng) {
    memcpy(r->theta, theta, (size_t)r->model->parameters * sizeof(double));
    copy(r, r->path.here, theta);
    if (*r->path.referred != 0) return 1;
    memcpy(r->offset, r->released, (size_t)(r->dense + r->cells) * sizeof(double));
    r->rounded = 1; /* where the kernel has a kink it has no second difference */
    hmc_lower_units(&r->path.hmc.target, r->path.here, r->unit,
                    r->work + hmc_workspace(r->size, metric(r)));
    trajectory_begin(&r->path, r->unit, rng);
    return 1;
}

void category_moves_refer(void *self, double *theta) {
    const struct category_moves *r = self;
    copy(r, theta, r->path.reference);
}

void category_moves_correct(void *self, const double *total) {
    struct category_moves *r = self;
    expect(r, r->path.reference);
    for (int j = 0; j < r->dense + r->cells; ++j)
        r->offset[j] = r->released[j] - (total[j] - r->expected[j]);
}

int category_moves_propose(void *self, struct rng *rng, double *theta, double *gain) {
    struct category_moves *r = self;
    r->rounded = *r->path.hmc.step_size;
    if (!trajectory_propose(&r->path, rng, &r->energy, gain)) return 0;
    copy(r, theta, r->path.there);
    return 1;
}

void category_moves_learn(void *self, const struct trajectory_seen *seen, struct rng *rng) {
    struct category_moves *r = self;
    trajectory_learn(&r->path, seen, rng);
}
