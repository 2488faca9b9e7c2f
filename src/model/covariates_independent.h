#ifndef NOISEAWARE_MODEL_COVARIATES_INDEPENDENT_H
#define NOISEAWARE_MODEL_COVARIATES_INDEPENDENT_H

#include "model/covariates.h"

/* The part of lone covariates in what model/covariates.h names: each does for them what its
 * namesake there does for all covariates. */

int lones_create(const struct fields *fields, const double *column, struct lones *lones);
/* their blocks of theta, copied; and once these have their places */
void lones_describe(const struct lones *lones, struct theta_block *block);
void lones_place(struct lones *lones, const struct theta_block *block);
void lones_rprior(struct lones *lones, struct rng *rng, double *theta);
double lones_dprior(struct lones *lones, const double *theta);
void lones_set(struct lones *lones, const double *theta);
void lones_refresh(struct lones *lones, double rho, struct rng *rng, int m, const double *const *x,
                   double *const *x_new);
void lones_copy(const struct lones *lones, int m, const double *const *x, double *const *x_new);
void lones_set_move(struct lones *lones, const double *theta, const double *theta_new,
                    int *changed);
void lones_move(struct lones *lones, struct rng *rng, int m, const double *const *x,
                double *const *x_new);
void lones_update(struct lones *lones, const double *c, double n, struct rng *rng, double *theta);

#endif
