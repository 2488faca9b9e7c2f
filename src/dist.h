#ifndef NOISEAWARE_DIST_H
#define NOISEAWARE_DIST_H

#include "rng.h"

/* Gamma with that shape > 0 and rate 1; chi-square with df > 0. */
double dist_gamma(struct rng *rng, double shape);
double dist_chisq(struct rng *rng, double df);

/* Upper-triangular B (row-major, n x n, lower part zeroed) with
 * B B' ~ Wishart(df, I), df > n - 1. */
void dist_bartlett_upper(struct rng *rng, int n, double df, double *b);

/* Lower Cholesky factor of Sigma ~ InverseWishart(df, C C'), C lower, both
 * row-major n x n. `work` holds n * n. */
void dist_inverse_wishart(struct rng *rng, int n, double df, const double *c, double *l,
                          double *work);

/* sum_i log of a Dirichlet is never needed; the draw itself is. */
void dist_dirichlet(struct rng *rng, int n, const double *alpha, double *p);

#endif
