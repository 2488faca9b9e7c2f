/* Rank-normalised split R-hat and bulk effective sample size of Vehtari, Gelman, Simpson,
 * Carpenter & Buerkner (2021), sections 3 and 4, as in the posterior package, with moments and
 * quantiles from the same sorted draws. A calibration summarises thousands of fits: here that
 * costs about as much as two sorts.
 *
 * Chains are split by looking at their halves (the middle draw of an odd number is
 * left out). Autocovariances are computed lag by lag, and only as far as Geyer's
 * (1992) initial positive sequence goes: O(iterations) a lag. */
#include "base/diagnostics.h"

#include <R_ext/Utils.h>
#include <Rmath.h>

/* score of a rank among `count`, averages of ties included (Blom 1958) */
static double normal_score(double rank, int count) {
    return Rf_qnorm5((rank - 0.375) / (count + 0.25), 0, 1, 1, 0);
}

/* length of a half chain */
static int half_of(const struct diagnostics *d) { return d->iterations / 2; }

/* start of half chain k, 0 <= k < 2 chains */
static int start_of(const struct diagnostics *d, int k) {
    return (k / 2) * d->iterations + (k % 2) * (d->iterations - half_of(d));
}

void diagnostics_prepare(struct diagnostics *d) {
    const int count = 2 * half_of(d) * d->chains;
    for (int i = 0; i < count; ++i) d->normal[i] = normal_score(i + 1, count);
}

/* Sorts the draws of the half chains and puts their scores into d->score, half
 * chain after half chain. */
static void rank_scores(struct diagnostics *d, const double *draws) {
    const int half = half_of(d), count = 2 * half * d->chains;
    for (int k = 0; k < 2 * d->chains; ++k)
        memcpy(d->sorted + k * half, draws + start_of(d, k), (size_t)half * sizeof(double));
    for (int i = 0; i < count; ++i) d->order[i] = i;
    R_qsort_I(d->sorted, d->order, 1, count);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && d->sorted[end] == d->sorted[i];) ++end;
        const double score = end == i + 1 ? d->normal[i] : normal_score(0.5 * (i + 1 + end), count);
        for (int j = i; j < end; ++j) d->score[d->order[j]] = score;
    }
}

static double mean_of(int n, const double *x) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    return sum / n;
}

/* of the half chains in d->score, which are centred: mean variance within (n - 1 in
 * the denominator) and the variance of their means */
static void variances(struct diagnostics *d, double *within, double *between) {
    const int half = half_of(d), parts = 2 * d->chains;
    double sum = 0, squares = 0, inside = 0;
    for (int k = 0; k < parts; ++k) {
        double *x = d->score + k * half;
        const double mean = mean_of(half, x);
        sum += mean;
        squares += mean * mean;
        for (int i = 0; i < half; ++i) x[i] -= mean;
        inside += block_dot(half, x, x);
    }
    *within = inside / parts / (half - 1);
    *between = (squares - sum * sum / parts) / (parts - 1);
}

static double r_hat(int half, double within, double between) {
    return sqrt((half * between / within + half - 1) / half);
}

/* mean over the half chains of the autocovariance, n in the denominator */
static double autocovariance(const struct diagnostics *d, int lag) {
    const int half = half_of(d), parts = 2 * d->chains;
    double sum = 0;
    for (int k = 0; k < parts; ++k) {
        const double *x = d->score + k * half;
        sum += block_dot(half - lag, x, x + lag);
    }
    return sum / parts / half;
}

/* Geyer's initial monotone sequence of paired autocorrelations */
static double effective_size(struct diagnostics *d, double within, double between) {
    const int half = half_of(d);
    const double total = within * (half - 1) / half + between;
    double *rho = d->rho, even = 1, odd = 1 - (within - autocovariance(d, 1)) / total;
    int t = 0;
    memset(rho, 0, (size_t)d->iterations * sizeof(double));
    rho[0] = even;
    rho[1] = odd;
    while (t < half - 5 && even + odd > 0) {
        t += 2;
        even = 1 - (within - autocovariance(d, t)) / total;
        odd = 1 - (within - autocovariance(d, t + 1)) / total;
        if (even + odd >= 0) {
            rho[t] = even;
            rho[t + 1] = odd;
        }
    }
    if (even > 0) rho[t] = even;
    for (int k = 2; k <= t - 2; k += 2)
        if (rho[k] + rho[k + 1] > rho[k - 2] + rho[k - 1])
            rho[k] = rho[k + 1] = (rho[k - 2] + rho[k - 1]) / 2;
    double tau = -1 + rho[t];
    for (int k = 0; k < t; ++k) tau += 2 * rho[k];
    const double count = 2.0 * half * d->chains;
    const double least = 1 / log10(count);
    return count / (tau > least ? tau : least);
}

/* Quantile of sorted values, by linear interpolation between them (R's type 6): independent
 * draws have p of their distribution below it, on average. */
static double quantile(int n, const double *sorted, double p) {
    const double at = p * (n + 1) - 1;
    if (at <= 0) return sorted[0];
    const int below = (int)floor(at);
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

void diagnostics_summary(struct diagnostics *d, const double *draws, double tail,
                         struct summary *out) {
    const int count = d->iterations * d->chains, half = half_of(d);
    memcpy(d->sorted, draws, (size_t)count * sizeof(double));
    R_qsort(d->sorted, 1, (size_t)count);
    out->mean = mean_of(count, draws);
    double squares = 0;
    for (int i = 0; i < count; ++i) squares += (draws[i] - out->mean) * (draws[i] - out->mean);
    out->sd = sqrt(squares / (count - 1));
    out->lower = quantile(count, d->sorted, tail);
    out->upper = quantile(count, d->sorted, 1 - tail);
    out->rhat = out->ess = NAN;
    if (half < 3 || d->sorted[0] == d->sorted[count - 1]) return;
    const double median = quantile(count, d->sorted, 0.5);
    double within, between;
    rank_scores(d, draws);
    variances(d, &within, &between);
    out->ess = effective_size(d, within, between);
    out->rhat = r_hat(half, within, between);
    /* the same of the distances from the median: do the chains differ in spread? */
    for (int i = 0; i < count; ++i) d->folded[i] = fabs(draws[i] - median);
    rank_scores(d, d->folded);
    variances(d, &within, &between);
    const double spread = r_hat(half, within, between);
    if (spread > out->rhat) out->rhat = spread;
}

double diagnostics_tail(struct diagnostics *d, const double *draws) {
    const int count = d->iterations * d->chains, half = half_of(d);
    double least = INFINITY;
    memcpy(d->sorted, draws, (size_t)count * sizeof(double));
    R_qsort(d->sorted, 1, (size_t)count);
    if (half < 3) return NAN;
    for (int upper = 0; upper < 2; ++upper) {
        /* the quantile (R's type 7) lies between this draw and the next */
        const double cut = d->sorted[(int)floor((upper ? 0.95 : 0.05) * (count - 1) + 1e-9)];
        for (int k = 0; k < 2 * d->chains; ++k)
            for (int i = 0; i < half; ++i)
                d->score[k * half + i] = draws[start_of(d, k) + i] <= cut;
        double within, between;
        variances(d, &within, &between);
        if (within + between == 0) return NAN;
        least = fmin(least, effective_size(d, within, between));
    }
    return least;
}
