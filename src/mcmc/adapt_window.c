/* Statistics of a window of warmup, and what is learned from them at its end: the shape of the
 * proposals, the numbers of passes, the refresh. Windows double in length, as in Stan's warmup.
 */
#include "mcmc/adapt_internal.h"

#include "base/linalg.h"

/* acceptance of a walk */
static const double TARGET = 0.30;

enum { FIRST_WINDOW = 25 };

/* lower triangle of m += weight v v' */
static void add_product(int d, double *m, double weight, const double *v) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) m[(size_t)i * d + j] += weight * v[i] * v[j];
}

/* A jump counts by its probability, accepted or not: that is its mean, with less
 * noise. The gain of a scale falls within a window and starts afresh with the next
 * shape; it is large at first, so that a scale wrong by orders of magnitude is
 * found fast. */
void adapt_saw_pass(struct adapt *adapt, enum pass_kind kind, double probability,
                    const double *step, double work) {
    const int d = adapt->shape.dim, groups = adapt->shape.groups;
    double tries = adapt->sums.proposals[kind] += 1;
    adapt->sums.accepts[kind] += probability;
    adapt->price[kind] += (work - adapt->price[kind]) * (adapt->price[kind] > 0 ? 0.1 : 1);
    add_product(d, adapt->sums.jump + (size_t)kind * d * d, probability, step);
    if (kind == PASS_LEAP || kind == PASS_GROUP_LEAP) return;
    if (kind == PASS_GROUP_WALK) tries = ceil(tries / groups);
    const int turned = kind == PASS_WALK ? 0 : 1 + ((int)*adapt->turn + groups - 1) % groups;
    adapt->log_scale[turned] += 2 / (1 + pow(tries, 0.6)) * (probability - TARGET);
}

void adapt_saw_sweep(struct adapt *adapt, const double *before, const double *after, double work) {
    const int d = adapt->shape.dim;
    double *off = adapt->scratch;
    *adapt->sums.count += 1;
    *adapt->swept += work;
    *adapt->trial += *adapt->temper == 1;
    for (int i = 0; i < d; ++i) off[i] = after[i] - before[i];
    add_product(d, adapt->sums.jump_sweep, 1, off);
    for (int i = 0; i < d; ++i) off[i] = after[i] - adapt->sums.mean[i];
    for (int i = 0; i < d; ++i) adapt->sums.mean[i] += off[i] / *adapt->sums.count;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            adapt->sums.scatter[(size_t)i * d + j] += off[i] * (after[j] - adapt->sums.mean[j]);
}

static int last_window(int warmup) { return warmup - warmup / 5; }

enum window adapt_window(int at, int warmup) {
    const int last = last_window(warmup);
    int length = FIRST_WINDOW, end = length;
    while (end + 2 * length <= last) {
        if (at + 1 == end) return WINDOW_ENDS;
        length *= 2;
        end += length;
    }
    return at + 1 == last ? LAST_WINDOW_ENDS : WINDOW_GOES_ON;
}

enum window adapt_window_after(const struct adapt *adapt, int at, int warmup) {
    const int annealed = *adapt->temper < 1 ? 0 : at + 1 - (int)*adapt->trial;
    return adapt_window(at - annealed, warmup - annealed);
}

/* Rows of group_chol: the factor of each group's covariance by itself. */
static void factor_groups(struct adapt *adapt, const double *covariance) {
    const int d = adapt->shape.dim;
    double *m = adapt->scratch + (size_t)(PASS_KINDS + 4) * d;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            m[(size_t)i * d + j] = j <= i && adapt->shape.group[i] == adapt->shape.group[j]
                                       ? covariance[(size_t)i * d + j]
                                       : 0;
    if (linalg_cholesky(d, m) == 0) memcpy(adapt->group_chol, m, (size_t)d * d * sizeof(double));
}

static void take_shape(struct adapt *adapt, const double *chol) {
    const int d = adapt->shape.dim;
    memcpy(adapt->chol, chol, (size_t)d * d * sizeof(double));
    memcpy(adapt->centre, adapt->sums.mean, (size_t)d * sizeof(double));
    *adapt->has_centre = 1;
}

void adapt_close_window(struct adapt *adapt, enum window window) {
    const int d = adapt->shape.dim;
    const double count = *adapt->sums.count;
    if (count < 2 * d + 10) return; /* too short to learn from: goes on */
    const double shrink = count / (count + 5 + d);
    double *chol = adapt->scratch + (size_t)(PASS_KINDS + 4) * d + 2 * (size_t)d * d;
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < d; ++j)
            chol[(size_t)i * d + j] =
                j > i ? 0 : adapt->sums.scatter[(size_t)i * d + j] * (j < i ? shrink : 1) / count;
    }
    if (window != WARMUP_ENDS && adapt->shape.groups > 1) factor_groups(adapt, chol);
    double left = 1;
    if (d > 0 && linalg_cholesky(d, chol) == 0) {
        left = adapt_choose_passes(adapt, chol, window == WARMUP_ENDS);
        if (window != WARMUP_ENDS) take_shape(adapt, chol);
        if (window == WINDOW_ENDS) adapt_reset_scales(adapt);
    }
    adapt_settle_refresh(adapt, left);
    if (window != LAST_WINDOW_ENDS) adapt_open_window(adapt);
}
