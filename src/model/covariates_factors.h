#ifndef NOISEAWARE_MODEL_COVARIATES_FACTORS_H
#define NOISEAWARE_MODEL_COVARIATES_FACTORS_H

#include "model/covariates.h"

/* The part of factors in what model/covariates.h names: each does for them what its namesake there
 * does for all covariates. */

/* Levels of a factor from a record's columns, and into them. */
void factor_read_levels(const struct factor *factor, int m, const double *const *x, double *level);
void factor_write_levels(const struct factor *factor, int m, const double *level, double *const *x);

void factors_rprior(const struct factors *factors, struct rng *rng, double *theta);
double factors_dprior(const struct factors *factors, const double *theta);
void factors_prior_gradient(const struct factors *factors, const double *theta, double *gradient);
void factors_set(const struct factors *factors, const double *theta);
void factors_refresh(struct factors *factors, double rho, struct rng *rng, int m,
                     const double *const *x, double *const *x_new);
void factors_set_move(struct factors *factors, const double *theta, const double *theta_new,
                      int *changed);
void factors_relevel(struct factors *factors, int factor, int to, int m, const double *const *x,
                     double *const *x_new);
void factors_move(struct factors *factors, struct rng *rng, int m, const double *const *x,
                  double *const *x_new);
void factors_update(struct factors *factors, const double *centre, const double *c, double n,
                    struct rng *rng, double *theta);
double factors_marginal(const struct factors *factors, const double *centre, const double *c,
                        double n, double *gradient);

static inline int covariates_differ(const double *theta, const double *theta_new, int from,
                                    int to) {
    return memcmp(theta + from, theta_new + from, (size_t)(to - from) * sizeof(double)) != 0;
}

#endif
