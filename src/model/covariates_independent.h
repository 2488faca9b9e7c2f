#ifndef NOISEAWARE_MODEL_COVARIATES_INDEPENDENT_H
#define NOISEAWARE_MODEL_COVARIATES_INDEPENDENT_H

#include "model/covariates.h"

/* The part of lone covariates in what model/covariates.h names: each does for them what its
 * namesake there does for all covariates. */

int lones_create(const struct fields *fields, struct covariates *cov);
/* their blocks of theta, copied; and once these have their places */
void lones_describe(const struct covariates *cov, struct theta_block *block);
void lones_place(struct covariates *cov, const struct theta_block *block);
void lones_rprior(struct covariates *cov, struct rng *rng, double *theta);
double lones_dprior(struct covariates *cov, const double *theta);
void lones_set(struct covariates *cov, const double *theta);
void lones_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                   const double *const *x, double *const *x_new);
void lones_copy(const struct covariates *cov, int m, const double *const *x, double *const *x_new);
void lones_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                    int *changed);
void lones_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                double *const *x_new);
void lones_update(struct covariates *cov, const double *c, double n, struct rng *rng,
                  double *theta);

#endif
