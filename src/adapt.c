/* What the sampler learns in warmup, and only there.
 *
 * Shape of the non-centred proposal: the covariance of theta over a window,
 * shrunk towards its diagonal, so that a short or unconverged window gives a
 * usable shape. Windows double in length, as in Stan's warmup. Scale: Robbins &
 * Monro on log(scale), towards the acceptance rate TARGET that suits a random
 * walk in a few dimensions (Roberts, Gelman & Gilks 1997; Andrieu & Thoms 2008).
 *
 * Number of passes: let S be the covariance of theta, P the mean product of a
 * pass's jump with itself, Q that of a sweep with its draw of theta. In the
 * direction where theta moves least, K passes and a sweep go the share
 * 1 - exp(-l), l = smallest eigenvalue of S^-1 (Q + K P) / 2, of the way to an
 * independent draw, at the price 1 + K PASS_COST. K maximises effective draws
 * per price. It is decided by counted work, never by the clock, so that a seed
 * fixes it.
 *
 * Refresh: a sweep may keep the share rho of each record's innovation. Of the
 * REFRESHES that warmup tries in turn, the one is kept that renews most, (1 -
 * rho) times its acceptance rate; every eighth sweep or so stays independent.
 *
 * Annealing: a start drawn from a vague prior can lie so far from the release
 * that no record moves. The noise density enters with an exponent that rises
 * from about 1 / energy to 1 over the first third of warmup.
 */
#include "adapt.h"

#include "linalg.h"

const double adapt_refresh[REFRESHES] = {0, 0.5, 0.8, 0.95, 0.99, 0.998};

static const double TARGET = 0.30;

/* Time of a pass over that of a sweep, measured by bench/record.R. */
static const double PASS_COST = 0.1;

/* Now and then in warmup at least LEAST_LEARNING passes are made: none would
 * leave nothing to learn from. */
enum { FIRST_PASSES = 8, LEAST_LEARNING = 2, MOST_PASSES = 40, FIRST_WINDOW = 25 };

enum { SCALARS = 8 };

size_t adapt_size(int dim) {
    const size_t d = (size_t)dim;
    return SCALARS + 2 * REFRESHES + 2 * d + 5 * d * d;
}

void adapt_attach(struct adapt *adapt, int dim, double *store) {
    const size_t d = (size_t)dim;
    adapt->dim = dim;
    adapt->store = store;
    double **const scalar[SCALARS] = {&adapt->passes, &adapt->given,    &adapt->refresh,
                                      &adapt->temper, &adapt->cooling,  &adapt->log_scale,
                                      &adapt->count,  &adapt->proposals};
    for (int i = 0; i < SCALARS; ++i) *scalar[i] = store++;
    adapt->tries = store;
    adapt->hits = adapt->tries + REFRESHES;
    adapt->mean = adapt->hits + REFRESHES;
    adapt->scatter = adapt->mean + d;
    adapt->jump_pass = adapt->scatter + d * d;
    adapt->jump_sweep = adapt->jump_pass + d * d;
    adapt->chol = adapt->jump_sweep + d * d;
    adapt->work = adapt->chol + d * d; /* d + d * d */
}

static void open_window(struct adapt *adapt) {
    double *first = adapt->count, *last = adapt->chol;
    memset(first, 0, (size_t)(last - first) * sizeof(double));
}

static double neutral_scale(int dim) { return log(2.38 / sqrt((double)dim)); }

void adapt_start(struct adapt *adapt, const double *sd, double passes) {
    const int d = adapt->dim;
    memset(adapt->store, 0, adapt_size(d) * sizeof(double));
    *adapt->given = passes >= 0;
    *adapt->passes = d == 0 ? 0 : passes >= 0 ? passes : FIRST_PASSES;
    *adapt->temper = 1;
    *adapt->log_scale = d > 0 ? neutral_scale(d) : 0;
    for (int j = 0; j < d; ++j) adapt->chol[(size_t)j * d + j] = sd[j];
}

void adapt_anneal(struct adapt *adapt, double energy, double values, int warmup) {
    const int steps = warmup / 3;
    if (steps < 1 || !(energy > values)) return;
    double start = values / energy;
    start = start > 1e-12 ? start : 1e-12;
    *adapt->temper = start;
    *adapt->cooling = -log(start) / steps;
}

void adapt_cool(struct adapt *adapt) {
    if (*adapt->temper >= 1) return;
    *adapt->temper *= exp(*adapt->cooling);
    if (*adapt->temper > 1 - 1e-9) *adapt->temper = 1;
}

/* Every fourth iteration of warmup looks beyond what is chosen so far: the
 * others cost no more than they will after it. */
enum { LOOK = 4 };

int adapt_passes(const struct adapt *adapt, int iteration, int learning) {
    const int passes = (int)*adapt->passes;
    const int look = learning && !*adapt->given && adapt->dim > 0 && iteration % LOOK == 0;
    return look && passes < LEAST_LEARNING ? LEAST_LEARNING : passes;
}

int adapt_choose_refresh(const struct adapt *adapt, int iteration, int learning, struct rng *rng) {
    if (learning && iteration % LOOK == 0) return iteration / LOOK % REFRESHES;
    const int chosen = (int)*adapt->refresh;
    return chosen == 0 || rng_uniform(rng) < 0.125 ? 0 : chosen;
}

void adapt_propose(struct adapt *adapt, struct rng *rng, double *step) {
    const int d = adapt->dim;
    const double scale = exp(*adapt->log_scale);
    rng_fill_normal(rng, d, adapt->work);
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += adapt->chol[(size_t)i * d + j] * adapt->work[j];
        step[i] = scale * sum;
    }
}

/* lower triangle of m += v v' */
static void add_product(int d, double *m, const double *v) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) m[(size_t)i * d + j] += v[i] * v[j];
}

/* The gain of the scale falls within a window and starts afresh with the next
 * shape; it is large at first, so that a scale wrong by orders of magnitude is
 * found fast. */
void adapt_saw_pass(struct adapt *adapt, double probability, int accepted, const double *step) {
    *adapt->proposals += 1;
    const double gain = 2 / (1 + pow(*adapt->proposals, 0.6));
    *adapt->log_scale += gain * (probability - TARGET);
    if (accepted) add_product(adapt->dim, adapt->jump_pass, step);
}

/* Running moments by Welford's update. */
void adapt_saw_sweep(struct adapt *adapt, int refresh, double accepted, const double *before,
                     const double *after) {
    const int d = adapt->dim;
    adapt->tries[refresh] += 1;
    adapt->hits[refresh] += accepted;
    *adapt->count += 1;
    for (int i = 0; i < d; ++i) adapt->work[i] = after[i] - before[i];
    add_product(d, adapt->jump_sweep, adapt->work);
    for (int i = 0; i < d; ++i) {
        adapt->work[i] = after[i] - adapt->mean[i];
        adapt->mean[i] += adapt->work[i] / *adapt->count;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            adapt->scatter[(size_t)i * d + j] += adapt->work[i] * (after[j] - adapt->mean[j]);
}

int adapt_window_ends(int at, int warmup) {
    const int last = warmup - warmup / 5;
    int length = FIRST_WINDOW, end = length;
    while (end + 2 * length <= last) {
        if (at + 1 == end) return 1;
        length *= 2;
        end += length;
    }
    return at + 1 == last;
}

/* Effective draws per price with that many passes; `chol` factors the
 * covariance of theta. */
static double gain_of(const struct adapt *adapt, const double *chol, int passes) {
    const int d = adapt->dim;
    double *m = adapt->work + d;
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j <= i; ++j) {
            const size_t at = (size_t)i * d + j;
            const double jump = adapt->jump_sweep[at] / *adapt->count +
                                passes * adapt->jump_pass[at] / *adapt->proposals;
            m[at] = m[(size_t)j * d + i] = jump / 2;
        }
    }
    /* L^-1 M L^-T, rows then columns */
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j) {
            const double swap = m[(size_t)i * d + j];
            m[(size_t)i * d + j] = m[(size_t)j * d + i];
            m[(size_t)j * d + i] = swap;
        }
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
    const double least = linalg_least_eigenvalue(d, m);
    const double left = exp(-(least > 0 ? least : 0));
    return (1 - left) / (1 + left) / (1 + passes * PASS_COST);
}

static int best_passes(const struct adapt *adapt, const double *chol) {
    int best = 0;
    double most = -1;
    for (int passes = 0; passes <= MOST_PASSES; passes += 1 + passes / 5) {
        const double gain = gain_of(adapt, chol, passes);
        if (gain > most) {
            most = gain;
            best = passes;
        }
    }
    return best;
}

static int best_refresh(const struct adapt *adapt) {
    int best = 0;
    double most = -1;
    for (int i = 0; i < REFRESHES; ++i) {
        if (adapt->tries[i] == 0) continue;
        const double renewed = (1 - adapt_refresh[i]) * adapt->hits[i] / adapt->tries[i];
        if (renewed > most) {
            most = renewed;
            best = i;
        }
    }
    return best;
}

void adapt_close_window(struct adapt *adapt) {
    const int d = adapt->dim;
    const double count = *adapt->count;
    if (count < 2 * d + 10) return; /* too short to learn from: goes on */
    *adapt->refresh = best_refresh(adapt);
    const double shrink = count / (count + 5 + d);
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < i; ++j) adapt->scatter[(size_t)i * d + j] *= shrink / count;
        adapt->scatter[(size_t)i * d + i] /= count;
    }
    if (d > 0 && linalg_cholesky(d, adapt->scatter) == 0) {
        if (*adapt->proposals > 0 && !*adapt->given)
            *adapt->passes = best_passes(adapt, adapt->scatter);
        memcpy(adapt->chol, adapt->scatter, (size_t)d * d * sizeof(double));
        *adapt->log_scale = neutral_scale(d);
    }
    open_window(adapt);
}
