/* The likelihood of a rate given a release of the total s of n records, s summed out:
 *
 *   p(z | t) = sum_s exp(log_weight(s) + s eta(t)) exp(-n A(t)),
 *
 * log_weight(s) = log eta(z | s) + log of what the distribution of s has free of t; Bernoulli:
 * C(n, s), eta = -t, A = log(1 + exp(-t)); Poisson: n^s / s!, eta = t, A = exp(t).
 *
 * Exponential: the total is continuous, s^(n-1) / (n - 1)!, eta = -exp(t), A = -t, and the sum is
 * the trapezoidal rule, its nodes s_i `at` with the weights exp(log_gap).
 *
 * Where log_weight is concave in s the terms have one peak: a search finds it, and the sum goes
 * both ways from there until terms are below exp(LEAST) of the largest. Otherwise all are summed.
 * Cost: the width of the peak, some dozens of terms for counts of hundreds, and for a continuous
 * total some dozens to some thousands of nodes, the more the narrower the noise is beside it.
 */
#include "pool_rate.h"

#include <Rmath.h>

/* log of the share of the largest term below which terms are left out */
static const double LEAST = -42;

static double total_at(const struct pool_rate *rate, int i) {
    return rate->at ? rate->at[i] : rate->first + i;
}

static int is_concave(const struct pool_rate *rate) {
    const double *w = rate->log_weight;
    for (int i = 1; i + 1 < rate->count; ++i) {
        const double before = total_at(rate, i) - total_at(rate, i - 1);
        const double after = total_at(rate, i + 1) - total_at(rate, i);
        const double bend = (w[i + 1] - w[i]) * before / after - (w[i] - w[i - 1]);
        if (!(bend <= 1e-9 * (1 + fabs(w[i])))) return 0;
    }
    return 1;
}

int pool_rate_read(const struct fields *fields, struct pool_rate *rate) {
    const double *kind = fields_vector(fields, "kind", 1), *n = fields_vector(fields, "n", 1);
    const double *first = fields_vector(fields, "first", 1);
    rate->count = fields_length(fields, "log_weight");
    rate->log_weight = fields_vector(fields, "log_weight", rate->count);
    if (!kind || !n || !first || rate->count < 1) return PLUGIN_BAD_FIELDS;
    rate->kind = (enum pool_rate_kind) * kind;
    rate->n = *n;
    rate->first = *first;
    rate->at = fields_vector(fields, "node", rate->count);
    rate->log_gap = fields_vector(fields, "log_gap", rate->count);
    rate->lower = fields_vector(fields, "lower", 1);
    rate->upper = fields_vector(fields, "upper", 1);
    if (rate->kind == POOL_RATE_EXPONENTIAL && !(rate->at && rate->log_gap))
        return PLUGIN_BAD_FIELDS;
    rate->concave = is_concave(rate);
    return PLUGIN_OK;
}

/* eta, and its derivative */
static double natural(const struct pool_rate *rate, double t, double *slope) {
    switch (rate->kind) {
    case POOL_RATE_POISSON:
        *slope = 1;
        return t;
    case POOL_RATE_EXPONENTIAL:
        return *slope = -exp(t);
    case POOL_RATE_BERNOULLI:
        break;
    }
    *slope = -1;
    return -t;
}

/* n A(t), and its derivative */
static double normaliser(const struct pool_rate *rate, double t, double *slope) {
    if (rate->kind == POOL_RATE_POISSON) return *slope = rate->n * exp(t);
    if (rate->kind == POOL_RATE_EXPONENTIAL) {
        *slope = -rate->n;
        return -rate->n * t;
    }
    const double small = exp(-fabs(t));
    *slope = -rate->n * (t > 0 ? small : 1) / (1 + small);
    return rate->n * (log1p(small) + (t > 0 ? 0 : -t));
}

/* log of term i over term k, but for what the nodes stand for */
static double above(const struct pool_rate *rate, double eta, int i, int k) {
    const double *w = rate->log_weight;
    const double apart = rate->at ? rate->at[i] - rate->at[k] : i - k;
    return w[i] - w[k] + apart * eta;
}

/* Place of the largest term. */
static int peak(const struct pool_rate *rate, double eta) {
    int low = 0, high = rate->count - 1;
    if (!rate->concave) {
        int best = 0;
        for (int i = 1; i <= high; ++i)
            if (above(rate, eta, i, best) > 0) best = i;
        return best;
    }
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (above(rate, eta, middle + 1, middle) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Terms from `*begin` to before the value that is returned count; *top is the largest. */
static int terms(const struct pool_rate *rate, double eta, int *begin, int *top) {
    const int at = *top = peak(rate, eta);
    *begin = 0;
    if (!rate->concave) return rate->count;
    int low = at, high = at + 1;
    while (low > 0 && above(rate, eta, low - 1, at) > LEAST) --low;
    while (high < rate->count && above(rate, eta, high, at) > LEAST) ++high;
    *begin = low;
    return high;
}

/* term i over the largest, and over exp(log_gap) of its node */
static double term(const struct pool_rate *rate, double eta, int i, int top) {
    const double gap = rate->log_gap ? rate->log_gap[i] - rate->log_gap[top] : 0;
    return exp(above(rate, eta, i, top) + gap);
}

double pool_rate_log(const struct pool_rate *rate, double t, double *slope) {
    double slope_eta, pull, sum = 0, moment = 0; /* about the largest term */
    const double eta = natural(rate, t, &slope_eta);
    int begin, top;
    const int end = terms(rate, eta, &begin, &top);
    const double most = total_at(rate, top);
    for (int i = begin; i < end; ++i) {
        const double share = term(rate, eta, i, top);
        sum += share;
        moment += share * (total_at(rate, i) - most);
    }
    const double norm = normaliser(rate, t, &pull);
    *slope = slope_eta * (most + moment / sum) - pull;
    const double gap = rate->log_gap ? rate->log_gap[top] : 0;
    return rate->log_weight[top] + gap + most * eta + log(sum) - norm;
}

/* A continuous total is somewhere in what its node stands for. */
static double draw_at(const struct pool_rate *rate, int i, struct rng *rng) {
    if (!rate->at) return total_at(rate, i);
    return rate->at[i] + (rng_uniform(rng) - 0.5) * exp(rate->log_gap[i]);
}

double pool_rate_draw(const struct pool_rate *rate, double t, struct rng *rng) {
    double slope, sum = 0;
    const double eta = natural(rate, t, &slope);
    int begin, top;
    const int end = terms(rate, eta, &begin, &top);
    for (int i = begin; i < end; ++i) sum += term(rate, eta, i, top);
    double u = rng_uniform(rng) * sum;
    for (int i = begin; i < end; ++i) {
        u -= term(rate, eta, i, top);
        if (u < 0) return draw_at(rate, i, rng);
    }
    return draw_at(rate, top, rng); /* rounding only */
}

/* Records are never below 0. */
double pool_rate_outside(const struct pool_rate *rate, double t) {
    if (!rate->lower || !rate->upper) return 0;
    const double lower = *rate->lower, upper = *rate->upper, mean = exp(t);
    if (rate->kind == POOL_RATE_POISSON)
        return (lower > 0 ? Rf_ppois(ceil(lower) - 1, mean, 1, 0) : 0) +
               Rf_ppois(upper, mean, 0, 0);
    return (lower > 0 ? -expm1(-mean * lower) : 0) + exp(-mean * upper);
}
