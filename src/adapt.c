/* What the non-centred moves learn in warmup, and only there.
 *
 * Shape: the covariance of theta over a window, shrunk towards its diagonal
 * (so that a short or unconverged window gives a usable shape). Windows double
 * in length, as in Stan's warmup. Scale: Robbins & Monro on log(scale), towards
 * the acceptance rate TARGET that suits a random walk in a few dimensions
 * (Roberts, Gelman & Gilks 1997; Andrieu & Thoms 2008).
 *
 * Number of passes: a pass moves coordinate j by the squared jump P_j, a sweep
 * with its draw of theta by S_j; in units of twice the variance these are the
 * shares a_j, b_j of the distance to independence. K passes and a sweep leave
 * the autocorrelation r_j(K) = (1 - b_j)(1 - a_j)^K at the price 1 + K PASS_COST,
 * and K maximises the worst coordinate's (1 - r) / (1 + r) per price. It is
 * decided by counted work, never by the clock, so a seed fixes it.
 */
#include "adapt.h"

#include "linalg.h"

static const double TARGET = 0.30;

/* Records per second of a sweep over those of a pass, measured in bench/. */
static const double PASS_COST = 0.15;

/* While learning, at least LEAST_LEARNING passes are made: none would leave
 * nothing to learn from. */
enum { FIRST_PASSES = 8, LEAST_LEARNING = 2, MOST_PASSES = 40, FIRST_WINDOW = 25 };

size_t adapt_size(int dim) { return 7 + 4 * (size_t)dim + 2 * (size_t)dim * dim; }

void adapt_attach(struct adapt *adapt, int dim, double *store) {
    const size_t d = (size_t)dim;
    adapt->dim = dim;
    adapt->store = store;
    adapt->log_scale = store;
    adapt->passes = store + 1;
    adapt->given = store + 2;
    adapt->rho = store + 3;
    adapt->count = store + 4;
    adapt->proposals = store + 5;
    adapt->sweeps = store + 6;
    adapt->mean = store + 7;
    adapt->jump_pass = adapt->mean + d;
    adapt->jump_sweep = adapt->jump_pass + d;
    adapt->work = adapt->jump_sweep + d;
    adapt->scatter = adapt->work + d;
    adapt->chol = adapt->scatter + d * d;
}

static void open_window(struct adapt *adapt) {
    const size_t d = (size_t)adapt->dim;
    *adapt->count = *adapt->proposals = *adapt->sweeps = 0;
    memset(adapt->mean, 0, 4 * d * sizeof(double));
    memset(adapt->scatter, 0, d * d * sizeof(double));
}

static double neutral_scale(int dim) { return log(2.38 / sqrt((double)dim)); }

void adapt_start(struct adapt *adapt, const double *sd, double passes) {
    const int d = adapt->dim;
    memset(adapt->store, 0, adapt_size(d) * sizeof(double));
    *adapt->given = passes >= 0;
    *adapt->passes = d == 0 ? 0 : passes >= 0 ? passes : FIRST_PASSES;
    *adapt->log_scale = d > 0 ? neutral_scale(d) : 0;
    for (int j = 0; j < d; ++j) adapt->chol[(size_t)j * d + j] = sd[j];
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

/* The gain falls within a window and starts afresh with the next shape; it is
 * large at first, so that a scale wrong by orders of magnitude is found fast. */
void adapt_scale(struct adapt *adapt, double acceptance_probability) {
    *adapt->proposals += 1;
    const double gain = 2 / (1 + pow(*adapt->proposals, 0.6));
    *adapt->log_scale += gain * (acceptance_probability - TARGET);
}

/* Welford's running moments */
void adapt_observe(struct adapt *adapt, const double *theta) {
    const int d = adapt->dim;
    *adapt->count += 1;
    for (int i = 0; i < d; ++i) {
        adapt->work[i] = theta[i] - adapt->mean[i];
        adapt->mean[i] += adapt->work[i] / *adapt->count;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            adapt->scatter[(size_t)i * d + j] += adapt->work[i] * (theta[j] - adapt->mean[j]);
}

int adapt_passes(const struct adapt *adapt, int learning) {
    const int passes = (int)*adapt->passes;
    return learning && !*adapt->given && adapt->dim > 0 && passes < LEAST_LEARNING ? LEAST_LEARNING : passes;
}

static double worst_gain(const struct adapt *adapt, int passes) {
    const int d = adapt->dim;
    double worst = INFINITY;
    for (int j = 0; j < d; ++j) {
        const double twice = 2 * adapt->scatter[(size_t)j * d + j] / *adapt->count;
        double share = adapt->jump_pass[j] / *adapt->proposals / twice;
        double sweep = adapt->jump_sweep[j] / *adapt->sweeps / twice;
        share = share < 0.99 ? share : 0.99;
        sweep = sweep < 0.99 ? sweep : 0.99;
        const double left = (1 - sweep) * pow(1 - share, passes);
        const double gain = (1 - left) / (1 + left) / (1 + passes * PASS_COST);
        if (gain < worst) worst = gain;
    }
    return worst;
}

static int best_passes(const struct adapt *adapt) {
    int best = 0;
    double most = -1;
    for (int passes = 0; passes <= MOST_PASSES; ++passes) {
        const double gain = worst_gain(adapt, passes);
        if (gain > most) {
            most = gain;
            best = passes;
        }
    }
    return best;
}

void adapt_close_window(struct adapt *adapt) {
    const int d = adapt->dim;
    const double count = *adapt->count;
    if (d == 0 || count < 2 * d + 10) return; /* too short to learn from: goes on */
    int usable = 1;
    for (int j = 0; j < d; ++j) {
        const double variance = adapt->scatter[(size_t)j * d + j];
        usable = usable && variance > 0 && isfinite(variance);
    }
    if (!usable) {
        open_window(adapt);
        return;
    }
    if (*adapt->proposals > 0 && !*adapt->given) *adapt->passes = best_passes(adapt);

    const double shrink = count / (count + 5 + d);
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < i; ++j)
            adapt->scatter[(size_t)i * d + j] *= shrink / count;
        adapt->scatter[(size_t)i * d + i] /= count;
    }
    if (linalg_cholesky(d, adapt->scatter) == 0) {
        memcpy(adapt->chol, adapt->scatter, (size_t)d * d * sizeof(double));
        *adapt->log_scale = neutral_scale(d);
    }
    open_window(adapt);
}

/* Windows of 25, 50, 100, ... iterations. The last one takes in what would be
 * too short for another and ends at four fifths of warmup; after it only the
 * scale is tuned. */
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
