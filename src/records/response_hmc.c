/* Surrogate transitions of a response's coefficients (vignette "Algorithms", all records at once;
 * Liu 2001; Christen & Fox 2005): y_i is the quantile at u_i of a distribution that alpha +
 * beta'w_i determines, with the uniforms u_i and the covariates w_i held fixed; g is its mean, q
 * that of y^2, both as the bounds clamp y.
 *
 * With F F' about the covariance of the n records' w and wbar their mean, the coordinates are
 *
 *   a = alpha + beta'wbar,   b = F'beta.
 *
 * The released totals s(a, b) of the records, with the responses at (a, b), require a pass over
 * the records. Were the linear predictor normal over the records, N(a, |b|^2), then the total of y
 * would be about n g_0, that of y^2 n q_0 and that of y w about n (g_0 wbar + g_1 F b) (Stein),
 * g_k and q_k the means of g, q and of their derivatives over it: A c(a, b). The surrogate takes
 *
 *   A c(a, b) + delta(u),   delta(u) = s(a_0, b_0) - A c(a_0, b_0),
 *
 * for s, with a reference (a_0, b_0) that stays once warmup is over. A trajectory of Hamiltonian
 * Monte Carlo on p(alpha, beta) eta(z | A c + delta) is reversible; its end (a', b') is accepted
 * with
 *
 *   min(1, [eta(z | s') / eta(z | A c' + delta)] / [eta(z | s) / eta(z | A c + delta)]).
 *
 * mcmc/surrogate_trajectory.c learns trajectories and the reference in warmup.
 *
 * This file uses no records. Cost: O(p^2 + components) and a quadrature for each leapfrog step. No
 * allocation except in response_create().
 */
#include "records/response_hmc.h"

#include "base/block.h"
#include "base/linalg.h"
#include "contract/model_predictor.h"

/* Of variances, so that few records and levels that none of them has are no obstacle: any F that
 * depends on the covariates alone gives coordinates. */
static const double RIDGE = 1e-4;

enum { MEANS = 6, SQUARES = 3 };

/* Transitions of a search for a start at each exponent of the noise. */
enum { STAGE = 25 };

static double log_density(void *self, const double *q, double *gradient);

/* ---- set-up ---------------------------------------------------------------------- */

int response_create(struct response *r, const struct model *model, double n,
                    const struct totals_density *like) {
    const struct model_predictor *of = model->predictor;
    if (!of || !of->tied_means || of->tied < 2) return 0;
    const size_t p = (size_t)of->tied - 1, complete = (size_t)model->complete;
    r->model = model;
    r->n = n;
    r->p = (int)p;
    r->released = like->noise.released;
    r->density.noise = like->noise;
    r->density.component = like->component;
    r->density.temper = 1;
    r->density.theta = doubles((size_t)model->parameters);
    r->density.c = r->density.seen = doubles(complete);
    r->density.gradient_c = doubles(complete);
    r->density.noise.released = r->offset = doubles((size_t)like->noise.size);
    DOUBLES(p, &r->mean, &r->along, &r->pull);
    r->factor = doubles(p * p);
    DOUBLES(p + 1, &r->slope, &r->path.here, &r->path.there);
    r->gradient = doubles(PAD_LANES(p + 1));
    r->work = doubles(hmc_workspace((int)p + 1, HMC_DIAGONAL));
    return 1;
}

size_t response_stored(const struct response *r) {
    return trajectory_stored(r->p + 1, HMC_DIAGONAL);
}

void response_attach(struct response *r, double *store) {
    const struct hmc_target target = {r->p + 1, r, log_density, NULL};
    trajectory_attach(&r->path, &target, HMC_DIAGONAL, store, r->work);
}

/* ---- the density ------------------------------------------------------------------- */

/* beta = F^-T b, alpha = a - beta'wbar */
static void place(const struct response *r, const double *q, double *theta) {
    memcpy(theta + 1, q + 1, (size_t)r->p * sizeof(double));
    linalg_backward(r->p, r->factor, theta + 1);
    theta[0] = q[0] - linalg_dot(r->p, theta + 1, r->mean);
}

/* What of c the response has part in; means over the linear predictor go to g and square, F b to
 * r->along. */
static void expect(struct response *r, const double *q, double *g, double *square) {
    const int columns = r->p + 1;
    const double *b = q + 1;
    double *c = r->density.c;
    r->model->predictor->tied_means(r->model->self, q[0], sqrt(linalg_dot(r->p, b, b)), g, square);
    c[0] = r->n * g[0];
    c[moments_at(columns, 0, 0)] = r->n * square[0];
    for (int j = 0; j < r->p; ++j) {
        r->along[j] = linalg_dot(j + 1, r->factor + (size_t)j * (size_t)r->p, b);
        c[moments_at(columns, 0, j + 1)] = r->n * (g[0] * r->mean[j] + g[1] * r->along[j]);
    }
}

static double log_density(void *self, const double *q, double *gradient) {
    struct response *r = self;
    const int p = r->p, columns = p + 1;
    const double *b = q + 1;
    double g[MEANS], square[SQUARES], *slope = r->slope, *of_c = r->density.gradient_c;
    expect(r, q, g, square);
    place(r, q, r->density.theta);
    const double log_prior =
        r->model->predictor->tied_prior(r->model->self, r->density.theta, slope);
    memset(of_c, 0, (size_t)r->model->complete * sizeof(double));
    totals_density_noise(&r->density, r->density.noise.released, of_c);

    const double of_square = of_c[moments_at(columns, 0, 0)];
    double level = of_c[0], tilt = 0;
    memset(r->pull, 0, (size_t)p * sizeof(double));
    for (int j = 0; j < p; ++j) {
        const double weight = of_c[moments_at(columns, 0, j + 1)];
        level += weight * r->mean[j];
        tilt += weight * r->along[j];
        for (int l = 0; l <= j; ++l)
            r->pull[l] += weight * r->factor[(size_t)j * (size_t)p + (size_t)l];
        slope[1 + j] -= slope[0] * r->mean[j];
    }
    linalg_forward(p, r->factor, slope + 1);
    gradient[0] = slope[0] + r->n * (level * g[1] + of_square * square[1] + tilt * g[2]);
    const double of_spread = level * g[2] + of_square * square[2] + tilt * g[3];
    for (int l = 0; l < p; ++l)
        gradient[1 + l] = slope[1 + l] + r->n * (g[1] * r->pull[l] + of_spread * b[l]);
    return log_prior - r->density.temper * r->density.energy;
}

double response_density(struct response *r, double *q, double *gradient) {
    if (isnan(q[0])) memcpy(q, r->path.here, ((size_t)r->p + 1) * sizeof(double));
    memcpy(r->offset, r->released, (size_t)r->density.noise.size * sizeof(double));
    r->density.rounded = 0;
    return log_density(r, q, gradient);
}

/* ---- a move ------------------------------------------------------------------------ */

int response_begin(struct response *r, const double *c, const double *theta, struct rng *rng) {
    const int p = r->p, columns = p + 1;
    memcpy(r->density.c, c, (size_t)r->model->complete * sizeof(double));
    for (int i = 0; i < p; ++i) {
        r->mean[i] = c[i + 1] / r->n;
        for (int j = 0; j <= i; ++j)
            r->factor[(size_t)i * (size_t)p + (size_t)j] =
                c[moments_at(columns, i + 1, j + 1)] / r->n - r->mean[i] * r->mean[j];
    }
    for (int i = 0; i < p; ++i) {
        double *variance = r->factor + (size_t)i * (size_t)p + (size_t)i;
        *variance = *variance > 0 ? *variance * (1 + RIDGE) : 0.5 / r->n;
    }
    if (linalg_cholesky(p, r->factor)) return 0;
    double *const here = r->path.here;
    memset(here, 0, ((size_t)p + 1) * sizeof(double));
    here[0] = theta[0] + linalg_dot(p, theta + 1, r->mean);
    for (int i = 0; i < p; ++i)
        for (int l = 0; l <= i; ++l)
            here[1 + l] += theta[1 + i] * r->factor[(size_t)i * (size_t)p + (size_t)l];
    if (*r->path.referred != 0) return 1;
    memcpy(r->offset, r->released, (size_t)r->density.noise.size * sizeof(double));
    trajectory_begin(&r->path, NULL, rng);
    return 1;
}

/* At a draw of the prior the noise's energy may be a hundred thousand: the exponent doubles from
 * where the chain is at home. */
void response_search(struct response *r, double temper, struct rng *rng, double *theta) {
    struct hmc *hmc = &r->path.hmc;
    struct hmc_step told;
    const double start = r->density.noise.size / r->density.energy;
    *r->path.referred = 0;
    if (!(start > 0)) return;
    r->density.temper = fmin(start, temper);
    for (int last = 0; !last; r->density.temper = fmin(2 * r->density.temper, temper)) {
        last = !(r->density.temper < temper);
        memcpy(r->path.there, hmc->q, ((size_t)r->p + 1) * sizeof(double));
        hmc_start(hmc, r->path.there, NULL);
        r->density.rounded = 0;
        if (!hmc_refresh(hmc)) break;
        hmc_find_step(hmc, rng);
        for (int k = 0; k < STAGE; ++k) {
            r->density.rounded = *hmc->step_size;
            (void)hmc_refresh(hmc); /* where it looked last may be elsewhere */
            hmc_nuts(hmc, rng, &told);
            hmc_learn(hmc, k, STAGE, &told, rng);
        }
    }
    r->density.temper = 1; /* as moves have it */
    place(r, hmc->q, theta);
}

void response_refer(void *self, double *theta) {
    const struct response *r = self;
    place(r, r->path.reference, theta);
}

void response_correct(void *self, const double *total) {
    struct response *r = self;
    double g[MEANS], square[SQUARES];
    expect(r, r->path.reference, g, square);
    for (int k = 0; k < r->density.noise.size; ++k)
        r->offset[k] =
            r->released[k] - (total[k] - component_value(r->density.component + k, r->density.c));
}

int response_propose(void *self, struct rng *rng, double *theta, double *gain) {
    struct response *r = self;
    r->density.rounded = *r->path.hmc.step_size;
    if (!trajectory_propose(&r->path, rng, &r->density.energy, gain)) return 0;
    place(r, r->path.there, theta);
    return 1;
}

void response_learn(void *self, const struct trajectory_seen *seen, struct rng *rng) {
    struct response *r = self;
    trajectory_learn(&r->path, seen, rng);
}
