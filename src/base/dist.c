/* Distributions drawn from a private stream, a few per iteration.
 *
 * Gamma: Marsaglia & Tsang (2000, ACM TOMS 26(3)), with the power-of-uniform
 * boost below shape 1. Wishart: Bartlett's decomposition, here in its
 * upper-triangular form (the usual one under the reversal of coordinates),
 * because the inverse of its transpose is lower triangular and so gives the
 * Cholesky factor of an inverse-Wishart draw without a second factorisation.
 *
 * Poisson and binomial: transformed rejection with squeeze (Hormann 1993, Insurance: Mathematics
 * and Economics 12, PTRS; J. Statist. Comput. Simul. 46, BTRS); where the mean is small, inversion
 * or waiting times. Densities are computed from deviances (Loader 2000), which avoids cancellation
 * for large means.
 */
#include "base/dist.h"

#include "base/linalg.h"

double dist_gamma(struct rng *rng, double shape) {
    if (shape < 1) {
        const double boost = log(rng_uniform(rng)) / shape;
        return dist_gamma(rng, shape + 1) * exp(boost);
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = rng_normal(rng), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root, square = x * x, u = rng_uniform(rng);
        if (u < 1 - 0.0331 * square * square) return d * v; /* their squeeze: no logarithm */
        if (log(u) < 0.5 * square + d * (1 - v + log(v))) return d * v;
    }
}

double dist_log_gamma(struct rng *rng, double shape) {
    if (shape >= 1) return log(dist_gamma(rng, shape));
    const double boost = log(rng_uniform(rng)) / shape;
    return log(dist_gamma(rng, shape + 1)) + boost;
}

double dist_chisq(struct rng *rng, double df) { return 2 * dist_gamma(rng, 0.5 * df); }

void dist_bartlett_upper(struct rng *rng, int n, double df, double *b) {
    for (int i = 0; i < n; ++i) {
        double *row = b + (size_t)i * n;
        for (int j = 0; j < i; ++j) row[j] = 0;
        row[i] = sqrt(dist_chisq(rng, df - (n - 1 - i)));
        for (int j = i + 1; j < n; ++j) row[j] = rng_normal(rng);
    }
}

/* Sigma^-1 = C^-T B B' C^-1, so Sigma = (C B^-T)(C B^-T)': L B' = C. */
void dist_inverse_wishart(struct rng *rng, int n, double df, const double *c, double *l,
                          double *work) {
    dist_bartlett_upper(rng, n, df, work);
    for (int i = 0; i < n; ++i) {
        for (int j = n - 1; j >= 0; --j) {
            /* (L B')_ij = sum_{k >= j} L_ik B_jk */
            double sum = j <= i ? c[(size_t)i * n + j] : 0;
            for (int k = j + 1; k < n; ++k) sum -= l[(size_t)i * n + k] * work[(size_t)j * n + k];
            l[(size_t)i * n + j] = j <= i ? sum / work[(size_t)j * n + j] : 0;
        }
    }
}

void dist_normal_precision(struct rng *rng, int n, const double *mean, double scale,
                           const double *l, double *x) {
    for (int j = 0; j < n; ++j) x[j] = rng_normal(rng);
    linalg_backward(n, l, x);
    for (int j = 0; j < n; ++j) x[j] = mean[j] + scale * x[j];
}

/* ---- Poisson and binomial ------------------------------------------------ */

static const double TWO_PI = 6.283185307179586476925286766559;

/* from this mean on the rejections are used */
static const double REJECTION_MEAN = 10;

/* log k! - (k + 1/2) log k + k - log(2 pi) / 2, k >= 1 */
static double stirling_rest(double k) {
    static const double first[9] = {
        0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
        0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
        0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
    };
    if (k < 10) return first[(int)k - 1];
    const double r = 1 / (k * k);
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - r / 1680) * r) * r) / k;
}

/* k log(k / mean) + mean - k, k >= 1 */
static double deviance(double k, double mean) {
    const double d = (mean - k) / k;
    return k * (d - log1p(d));
}

static double poisson_density(double k, double mean) {
    if (k < 1) return exp(-mean);
    return exp(-deviance(k, mean) - stirling_rest(k)) / sqrt(TWO_PI * k);
}

double dist_log_poisson(double k, double mean) {
    if (k < 1) return -mean;
    return -deviance(k, mean) - stirling_rest(k) - 0.5 * log(TWO_PI * k);
}

/* (a - 1) log w - B_3(t) / (3 w^2) - B_5(t) / (10 w^4) - ..., w = k + t, t = a / 2,
 * B the Bernoulli polynomials: the even powers of 1 / w cancel. */
void dist_rising_set(struct dist_rising *rising, double a) {
    const double t = 0.5 * a, third = t * (t - 0.5) * (t - 1);
    rising->a = a;
    rising->from = 64 + 30 * a;
    rising->third = third / 3;
    rising->fifth = third * (t * t - t - 1.0 / 3) / 10;
}

double dist_log_rising(const struct dist_rising *rising, double k) {
    if (k < rising->from) return lgamma(k + rising->a) - lgamma(k + 1);
    const double w = k + 0.5 * rising->a, inverse = 1 / (w * w);
    return (rising->a - 1) * log(w) - (rising->third + rising->fifth * inverse) * inverse;
}

int dist_choose(struct rng *rng, int count, double *log_weight) {
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < count; ++k) most = fmax(most, log_weight[k]);
    for (int k = 0; k < count; ++k) sum += log_weight[k] = exp(log_weight[k] - most);
    double left = sum * rng_uniform(rng);
    int chosen = 0;
    while (chosen < count - 1 && (left -= log_weight[chosen]) >= 0) ++chosen;
    return chosen;
}

double dist_log_multigamma(int p, double x) {
    double sum = 0.25 * p * (p - 1) * log(M_PI);
    for (int i = 0; i < p; ++i) sum += lgamma(x - 0.5 * i);
    return sum;
}

static double binomial_density(double k, double n, double p) {
    if (k < 1) return exp(n * log1p(-p));
    if (k > n - 1) return exp(n * log(p));
    const double log_density = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k) -
                               deviance(k, n * p) - deviance(n - k, n * (1 - p));
    return exp(log_density) / sqrt(TWO_PI * (k / n) * (n - k));
}

/* As published, the acceptance ratio exceeds 1 by up to 0.005 and the squeeze
 * its region by 0.003 (means of 10 to 40, computed over all u). Slightly larger
 * constants make both hold for every mean, at the price of 0.5 per cent more
 * candidates. */
static void poisson_constants(struct dist_poisson *poisson, double mean) {
    poisson->mean = mean;
    poisson->b = 0.931 + 2.53 * sqrt(mean);
    poisson->a = -0.059 + 0.02483 * poisson->b;
    poisson->quick = 0.918 - 3.6224 / (poisson->b - 2);
    poisson->scale = 1.13 + 1.1454 / (poisson->b - 3.4);
}

/* from candidate (u, v) on; out of line, so that the fast path stays short */
NOINLINE static double poisson_slow(const struct dist_poisson *poisson, struct rng *rng, double u,
                                    double v) {
    for (;; u = rng_uniform(rng) - 0.5, v = rng_uniform(rng)) {
        const double rest = 0.5 - fabs(u);
        const double k = floor((2 * poisson->a / rest + poisson->b) * u + poisson->mean + 0.43);
        if (rest >= 0.07 && v <= poisson->quick) return k;
        if (k < 0 || (rest < 0.013 && v > rest)) continue;
        if (v * poisson->scale <=
            poisson_density(k, poisson->mean) * (poisson->a / (rest * rest) + poisson->b))
            return k;
    }
}

/* in: u in out, v */
static void poisson_rejection(const struct dist_poisson *poisson, struct rng *rng, int m,
                              const double *v, double *out) {
    const double quick = poisson->mean < 1e15 ? poisson->quick : 0; /* a larger one is no int64_t */
    for (int i = 0; i < m; ++i) {
        const double u = out[i] - 0.5, rest = 0.5 - fabs(u);
        if (rest >= 0.07 && v[i] <= quick) /* not negative there */
            out[i] =
                (double)(int64_t)((2 * poisson->a / rest + poisson->b) * u + poisson->mean + 0.43);
        else
            out[i] = poisson_slow(poisson, rng, u, v[i]);
    }
}

void dist_poisson_set(struct dist_poisson *poisson, double mean) {
    if (mean >= POISSON_TABLE_MEAN) {
        poisson_constants(poisson, mean);
        return;
    }
    poisson->mean = mean;
    double p = exp(-mean), below = p;
    int k = 0;
    for (; k < POISSON_TABLE - 1 && (k < mean || p > 1e-17 * below); ++k) {
        poisson->below[k] = below;
        p *= mean / (k + 1);
        below += p;
    }
    poisson->below[k] = 1;
    poisson->last = k;
    for (int i = 0, at = 0; i < POISSON_GUIDE; ++i) {
        while (poisson->below[at] * POISSON_GUIDE <= i) ++at;
        poisson->guide[i] = at;
    }
}

/* Two steps from where the guide points are nearly always enough: they are made
 * without a branch that could be foreseen wrongly. */
void dist_poisson_place(const struct dist_poisson *poisson, int m, const double *k, const double *u,
                        double *out) {
    const double *below = poisson->below, last = poisson->last, most = 1 - 0x1p-53;
    for (int i = 0; i < m; ++i) {
        const int at = (int)(k[i] < last ? k[i] : last);
        const double low = at > 0 ? below[at - 1] : 0, high = below[at];
        const double inside = low + u[i] * (high - low), place = inside < high ? inside : low;
        out[i] = place < most ? place : most;
    }
}

void dist_poisson_invert(const struct dist_poisson *poisson, int m, const double *u, double *out) {
    const double *below = poisson->below;
    for (int i = 0; i < m; ++i) {
        const double place = u[i];
        int k = poisson->guide[(int)(place * POISSON_GUIDE)];
        k += place >= below[k];
        k += place >= below[k];
        while (place >= below[k]) ++k;
        out[i] = k;
    }
}

void dist_poisson_fill(const struct dist_poisson *poisson, struct rng *rng, int m, double *out) {
    for (int start = 0; start < m; start += MAX_BLOCK) {
        const int chunk = block_length(m - start);
        double v[MAX_BLOCK];
        rng_fill_uniform(rng, chunk, out + start);
        if (poisson->mean < POISSON_TABLE_MEAN) {
            dist_poisson_invert(poisson, chunk, out + start, out + start);
        } else {
            rng_fill_uniform(rng, chunk, v);
            poisson_rejection(poisson, rng, chunk, v, out + start);
        }
    }
}

double dist_poisson(struct rng *rng, double mean) {
    if (mean >= REJECTION_MEAN) {
        struct dist_poisson poisson;
        poisson_constants(&poisson, mean);
        const double u = rng_uniform(rng) - 0.5, v = rng_uniform(rng);
        return poisson_slow(&poisson, rng, u, v);
    }
    /* arrivals of a Poisson process before the time `mean` */
    double k = 0;
    for (double time = rng_exponential(rng); time < mean; time += rng_exponential(rng)) ++k;
    return k;
}

/* p <= 1/2 from here on */
static double binomial_rejection(struct rng *rng, double n, double p) {
    const double sd = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * sd;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p, quick = 0.92 - 4.2 / b;
    const double alpha = (2.83 + 5.1 / b) * sd;
    for (;;) {
        const double u = rng_uniform(rng) - 0.5, v = rng_uniform(rng), rest = 0.5 - fabs(u);
        const double k = floor((2 * a / rest + b) * u + n * p + 0.5);
        if (rest >= 0.07 && v <= quick) return k;
        if (k < 0 || k > n) continue;
        const double mode = binomial_density(floor((n + 1) * p), n, p);
        if (v * alpha * mode <= binomial_density(k, n, p) * (a / (rest * rest) + b)) return k;
    }
}

/* Inversion; f is P(0). */
static double binomial_search(double u, double n, double odds, double f) {
    double k = 0;
    while (u >= f && k < n) {
        u -= f;
        f *= odds * (n - k) / (k + 1);
        ++k;
    }
    return k;
}

static void binomial_draws(struct rng *rng, double p, int m, const double *restrict count,
                           double *restrict out) {
    enum { POWERS = 64 };
    const double log_rest = log1p(-p), odds = p / (1 - p);
    double power[POWERS]; /* of 1 - p */
    power[0] = 1;
    for (int k = 1; k < POWERS; ++k) power[k] = power[k - 1] * (1 - p);
    rng_fill_uniform(rng, m, out);
    for (int i = 0; i < m; ++i) {
        const double n = count[i];
        if (n * p >= REJECTION_MEAN)
            out[i] = binomial_rejection(rng, n, p);
        else
            out[i] =
                binomial_search(out[i], n, odds, n < POWERS ? power[(int)n] : exp(n * log_rest));
    }
}

/* Successes for each count: beyond it a draw for each is cheaper. */
static const double MANY = 0.5;

void dist_binomial_fill(struct rng *rng, double probability, int m, const double *restrict count,
                        double *restrict out) {
    if (probability <= 0.5) {
        binomial_draws(rng, probability, m, count, out);
        return;
    }
    binomial_draws(rng, 1 - probability, m, count, out);
    for (int i = 0; i < m; ++i) out[i] = count[i] - out[i];
}

void dist_thin_fill(struct rng *rng, double probability, int m, const double *restrict count,
                    double *restrict out) {
    if (probability * block_sum(m, count) > MANY * m) {
        dist_binomial_fill(rng, probability, m, count, out);
        return;
    }
    memset(out, 0, (size_t)m * sizeof *out);
    if (probability <= 0) return;
    /* from one success to the next the number of trials is geometric */
    const double gap = -1 / log1p(-probability);
    double before = floor(rng_exponential(rng) * gap);
    for (int i = 0; i < m; ++i) {
        double left = count[i];
        while (before < left) {
            left -= before + 1;
            out[i] += 1;
            before = floor(rng_exponential(rng) * gap);
        }
        before -= left;
    }
}

/* Michael, Schucany & Haas (1976), written for v itself: of the two roots the
 * larger is free of cancellation, the smaller is value^2 over it. At 0 it is the
 * square of a standard normal, as it should be. */
double dist_laplace_variance(struct rng *rng, double value) {
    const double g = rng_normal(rng), y = 0.5 * g * g;
    const double v = value + y + sqrt(y) * sqrt(2 * value + y);
    if (!(v > 0)) return 0; /* both are 0 */
    return rng_uniform(rng) * (v + value) <= v ? v : value * (value / v);
}
