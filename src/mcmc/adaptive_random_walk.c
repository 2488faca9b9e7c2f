/* Adaptive random walks. A step is exp(log_scale) F z, z standard normal. In warmup F follows the
 * covariance of the positions (Haario, Saksman & Tamminen 2001), taken over windows of doubling
 * length, and log_scale increases if too many proposals are accepted and decreases if too few are
 * (Andrieu & Thoms 2008). Afterwards both stay as they are, so that the target is invariant.
 *
 * Cost of a step: O(size^2).
 */
#include "mcmc/adaptive_random_walk.h"

#include "contract/plugin.h"

enum { FIRST_WINDOW = 25 };

/* shares of accepted proposals at which random walks mix best (Gelman, Roberts & Gilks 1996) */
static const double ONE_DIMENSION = 0.44, MANY_DIMENSIONS = 0.25;

/* A window's correlations are shrunk as if so many further draws had none. */
static const double DIAGONAL = 5;

size_t walk_stored(int size) {
    const size_t d = (size_t)size;
    return 5 + d + 2 * d * d;
}

void walk_attach(struct walk *w, int size, double *state) {
    const size_t d = (size_t)size;
    w->size = size;
    w->log_scale = state;
    w->seen = state + 1;
    w->window = state + 2;
    w->made = state + 3;
    w->accepted = state + 4;
    w->mean = state + 5;
    w->scatter = w->mean + d;
    w->factor = w->scatter + d * d;
    w->z = doubles(d);
}

static void open_window(struct walk *w, double length) {
    const size_t d = (size_t)w->size;
    *w->seen = 0;
    *w->window = length;
    memset(w->mean, 0, d * sizeof(double));
    memset(w->scatter, 0, d * d * sizeof(double));
}

static double best_log_scale(int d) { return log(2.4 / sqrt(d > 0 ? d : 1)); }

void walk_start(struct walk *w, const double *sd) {
    const int d = w->size;
    *w->log_scale = best_log_scale(d);
    *w->made = *w->accepted = 0;
    memset(w->factor, 0, (size_t)d * (size_t)d * sizeof(double));
    for (int j = 0; j < d; ++j) w->factor[(size_t)j * d + j] = sd[j];
    open_window(w, FIRST_WINDOW);
}

void walk_propose(struct walk *w, struct rng *rng, double *step) {
    const int d = w->size;
    const double scale = exp(*w->log_scale);
    for (int j = 0; j < d; ++j) w->z[j] = rng_normal(rng);
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += w->factor[(size_t)i * d + j] * w->z[j];
        step[i] = scale * sum;
    }
}

/* ---- learning -------------------------------------------------------------------- */

/* Cholesky factor in place, row by row: the matrices are small. Returns 0, or 1 if the
 * matrix is not positive definite. */
static int factorise(int d, double *a) {
    for (int i = 0; i < d; ++i) {
        double *row = a + (size_t)i * d;
        for (int j = 0; j <= i; ++j) {
            const double *other = a + (size_t)j * d;
            double sum = row[j];
            for (int k = 0; k < j; ++k) sum -= row[k] * other[k];
            if (j < i)
                row[j] = sum / other[j];
            else if (!(sum > 0) || !isfinite(sum))
                return 1;
            else
                row[j] = sqrt(sum);
        }
    }
    return 0;
}

/* The window's covariance, correlations shrunk a little, if it has one. */
static void close_window(struct walk *w) {
    const int d = w->size;
    const size_t square = (size_t)d * (size_t)d;
    const double count = *w->seen, variances = count - 1;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            w->scatter[(size_t)i * d + j] *= (i == j ? 1 : count / (count + DIAGONAL)) / variances;
    if (factorise(d, w->scatter) == 0) {
        memcpy(w->factor, w->scatter, square * sizeof(double));
        *w->log_scale = best_log_scale(d);
    }
    open_window(w, 2 * *w->window);
}

void walk_tried(struct walk *w, int learning, double log_ratio, int accepted) {
    if (!learning) {
        *w->made += 1;
        *w->accepted += accepted;
        return;
    }
    const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
    const double target = w->size == 1 ? ONE_DIMENSION : MANY_DIMENSIONS;
    *w->log_scale += (probability - target) / sqrt(1 + *w->seen);
}

void walk_saw(struct walk *w, const double *at) {
    const int d = w->size;
    const double count = *w->seen += 1;
    double *away = w->z;
    for (int j = 0; j < d; ++j) {
        away[j] = at[j] - w->mean[j];
        w->mean[j] += away[j] / count;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            w->scatter[(size_t)i * d + j] += away[i] * away[j] * (count - 1) / count;
    if (*w->seen >= *w->window) close_window(w);
}
