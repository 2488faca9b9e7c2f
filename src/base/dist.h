#ifndef NOISEAWARE_BASE_DIST_H
#define NOISEAWARE_BASE_DIST_H

#include "base/rng.h"

/* Gamma with that shape > 0 and rate 1, its logarithm (never -inf, however
 * small the shape); chi-square with df > 0. */
double dist_gamma(struct rng *rng, double shape);
double dist_log_gamma(struct rng *rng, double shape);
double dist_chisq(struct rng *rng, double df);

/* Upper-triangular B (row-major, n x n, lower part zeroed) with
 * B B' ~ Wishart(df, I), df > n - 1. */
void dist_bartlett_upper(struct rng *rng, int n, double df, double *b);

/* Lower Cholesky factor of Sigma ~ InverseWishart(df, C C'), C lower, both
 * row-major n x n. `work` holds n * n. */
void dist_inverse_wishart(struct rng *rng, int n, double df, const double *c, double *l,
                          double *work);

/* x ~ N(mean, scale^2 (L L')^-1), L lower triangular, row-major. `x` is not `mean`. */
void dist_normal_precision(struct rng *rng, int n, const double *mean, double scale,
                           const double *l, double *x);

/* The variance v of a Laplace variate of scale 1 seen as a normal one, given its
 * absolute value: 1 / v ~ InverseGaussian(mean 1 / value, shape 1). */
double dist_laplace_variance(struct rng *rng, double value);

/* Poisson draws of one mean, prepared once. Below POISSON_TABLE_MEAN a table is
 * looked up, from there on the constants of a rejection are used. */
enum { POISSON_TABLE_MEAN = 300, POISSON_TABLE = 512, POISSON_GUIDE = 256 };

struct dist_poisson {
    double mean;
    double a, b, quick, scale;
    double below[POISSON_TABLE]; /* P(X <= k), the last entry 1 */
    int guide[POISSON_GUIDE];    /* where to begin for u in [i, i + 1) / POISSON_GUIDE */
    int last;                    /* entry of the table */
};

void dist_poisson_set(struct dist_poisson *poisson, double mean);
/* Means below POISSON_TABLE_MEAN: the draws that these uniforms represent. `u` may be `out`. */
void dist_poisson_invert(const struct dist_poisson *poisson, int m, const double *u, double *out);
/* Where uniforms lie that represent the draws k: the share u of the way. `u` may be `out`. */
void dist_poisson_place(const struct dist_poisson *poisson, int m, const double *k, const double *u,
                        double *out);
void dist_poisson_fill(const struct dist_poisson *poisson, struct rng *rng, int m, double *out);

/* log P(k) of a Poisson distribution, k a whole number; -inf where it cannot be. */
double dist_log_poisson(double k, double mean);

/* log Gamma(k + a) / Gamma(k + 1) for one a > 0, prepared once; k >= 0, and no
 * digit is lost for large k. */
struct dist_rising {
    double a, from, third, fifth;
};

void dist_rising_set(struct dist_rising *rising, double a);
double dist_log_rising(const struct dist_rising *rising, double k);

/* log of the multivariate gamma function of dimension p, x > (p - 1) / 2. */
double dist_log_multigamma(int p, double x);

/* One of 0, ..., count - 1, each as probable as exp() of its logarithm, up to a constant. These
 * are overwritten. */
int dist_choose(struct rng *rng, int count, double *log_weight);

/* One draw, mean >= 0. */
double dist_poisson(struct rng *rng, double mean);

/* out[i] ~ Binomial(count[i], probability), whole numbers in doubles. */
void dist_binomial_fill(struct rng *rng, double probability, int m, const double *restrict count,
                        double *restrict out);

/* The same; where few successes are expected, by the waiting times from one to the next. */
void dist_thin_fill(struct rng *rng, double probability, int m, const double *restrict count,
                    double *restrict out);

#endif
