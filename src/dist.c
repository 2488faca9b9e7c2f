/* Distributions drawn from a private stream, a few per iteration.
 *
 * Gamma: Marsaglia & Tsang (2000, ACM TOMS 26(3)), with the power-of-uniform
 * boost below shape 1. Wishart: Bartlett's decomposition, here in its
 * upper-triangular form (the usual one under the reversal of coordinates),
 * because the inverse of its transpose is lower triangular and so gives the
 * Cholesky factor of an inverse-Wishart draw without a second factorisation.
 */
#include "dist.h"

double dist_gamma(struct rng *rng, double shape) {
    if (shape < 1) {
        const double boost = log(rng_uniform(rng)) / shape;
        return dist_gamma(rng, shape + 1) * exp(boost);
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = rng_normal(rng), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root;
        if (log(rng_uniform(rng)) < 0.5 * x * x + d * (1 - v + log(v))) return d * v;
    }
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

void dist_dirichlet(struct rng *rng, int n, const double *alpha, double *p) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += p[i] = dist_gamma(rng, alpha[i]);
    for (int i = 0; i < n; ++i) p[i] /= sum;
}
