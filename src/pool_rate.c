/* The likelihood of a rate given a release of the total s of n records, s summed out:
 *
 *   p(z | t) = sum_s exp(log_weight(s) + s eta(t)) exp(-n A(t)),
 *
 * log_weight(s) = log eta(z | s) + log of what the distribution of s has free of t; Bernoulli:
 * C(n, s), eta = -t, A = log(1 + exp(-t)); Poisson: n^s / s!, eta = t, A = exp(t).
 *
 * Where log_weight is concave in s the terms have one peak: a search finds it, and the sum goes
 * both ways from there until terms are below exp(LEAST) of the largest. Otherwise all are summed.
 * Cost: the width of the peak, some dozens of terms for counts of hundreds.
 */
#include "pool_rate.h"

/* log of the share of the largest term below which terms are left out */
static const double LEAST = -42;

int pool_rate_read(const struct fields *fields, struct pool_rate *rate) {
    const double *kind = fields_vector(fields, "kind", 1), *n = fields_vector(fields, "n", 1);
    const double *first = fields_vector(fields, "first", 1);
    rate->count = fields_length(fields, "log_weight");
    rate->log_weight = fields_vector(fields, "log_weight", rate->count);
    if (!kind || !n || !first || rate->count < 1) return PLUGIN_BAD_FIELDS;
    rate->kind = *kind != 0 ? POOL_RATE_POISSON : POOL_RATE_BERNOULLI;
    rate->n = *n;
    rate->first = *first;
    rate->concave = 1;
    for (int i = 1; i + 1 < rate->count; ++i) {
        const double *w = rate->log_weight + i;
        const double bend = (w[1] - w[0]) - (w[0] - w[-1]);
        if (!(bend <= 1e-9 * (1 + fabs(w[0])))) rate->concave = 0;
    }
    return PLUGIN_OK;
}

static double natural(const struct pool_rate *rate, double t) {
    return rate->kind == POOL_RATE_POISSON ? t : -t;
}

/* n A(t), and its derivative */
static double normaliser(const struct pool_rate *rate, double t, double *slope) {
    if (rate->kind == POOL_RATE_POISSON) return *slope = rate->n * exp(t);
    const double small = exp(-fabs(t));
    *slope = -rate->n * (t > 0 ? small : 1) / (1 + small);
    return rate->n * (log1p(small) + (t > 0 ? 0 : -t));
}

/* Place of the largest term. */
static int peak(const struct pool_rate *rate, double eta) {
    const double *w = rate->log_weight;
    int low = 0, high = rate->count - 1;
    if (!rate->concave) {
        int best = 0;
        for (int i = 1; i <= high; ++i)
            if (w[i] + i * eta > w[best] + best * eta) best = i;
        return best;
    }
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (w[middle + 1] - w[middle] + eta > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Terms from `*begin` to before the value that is returned count; *top is the largest. */
static int terms(const struct pool_rate *rate, double eta, int *begin, int *top) {
    const double *w = rate->log_weight;
    const int at = *top = peak(rate, eta);
    *begin = 0;
    if (!rate->concave) return rate->count;
    int low = at, high = at + 1;
    while (low > 0 && w[low - 1] - w[at] + (low - 1 - at) * eta > LEAST) --low;
    while (high < rate->count && w[high] - w[at] + (high - at) * eta > LEAST) ++high;
    *begin = low;
    return high;
}

double pool_rate_log(const struct pool_rate *rate, double t, double *slope) {
    const double eta = natural(rate, t), *w = rate->log_weight;
    int begin, top;
    const int end = terms(rate, eta, &begin, &top);
    double sum = 0, moment = 0; /* about the largest term */
    for (int i = begin; i < end; ++i) {
        const double term = exp(w[i] - w[top] + (i - top) * eta);
        sum += term;
        moment += term * (i - top);
    }
    const double mean = rate->first + top + moment / sum;
    double pull;
    const double norm = normaliser(rate, t, &pull);
    *slope = (rate->kind == POOL_RATE_POISSON ? mean : -mean) - pull;
    return w[top] + (rate->first + top) * eta + log(sum) - norm;
}

double pool_rate_draw(const struct pool_rate *rate, double t, struct rng *rng) {
    const double eta = natural(rate, t), *w = rate->log_weight;
    int begin, top;
    const int end = terms(rate, eta, &begin, &top);
    double sum = 0;
    for (int i = begin; i < end; ++i) sum += exp(w[i] - w[top] + (i - top) * eta);
    double u = rng_uniform(rng) * sum;
    for (int i = begin; i < end; ++i) {
        u -= exp(w[i] - w[top] + (i - top) * eta);
        if (u < 0) return rate->first + i;
    }
    return rate->first + top; /* rounding only */
}
