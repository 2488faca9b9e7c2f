#ifndef NOISEAWARE_MODEL_COVARIATES_JOINT_H
#define NOISEAWARE_MODEL_COVARIATES_JOINT_H

#include "model/covariates.h"

/* Dependent factors and numbers in what model/covariates.h names: each does for them what its
 * namesake there does for all covariates; see model/covariates_joint.c. */

/* After the priors are read. Fields cells_log_mean, cells_log_sd and effect_kappa; without them
 * cov->joint stays NULL. */
int joint_create(const struct fields *fields, struct covariates *cov);

/* Their blocks of theta: effects, cells, then what the prior of the cells depends on. `block` NULL:
 * only how many. And where they are, once these have their places. */
int joint_describe(const struct covariates *cov, struct theta_block *block);
void joint_place(struct covariates *cov, const struct theta_block *block);

/* Last in the model's create(): the counts of the cells follow what is in the complete-data
 * statistic, and the model has values of its own: the blocks' values, but that mean[] is the mean
 * over the cells, and that the shares of each factor's levels stand before the shares of the cells.
 * What other methods than "augment" and "collapse" of a known n ask for is not there. */
void joint_complete(struct covariates *cov, struct model *model);

/* `chol`: of the numbers' covariance, under theta */
void joint_rprior(struct covariates *cov, const double *chol, struct rng *rng, double *theta);
double joint_dprior(struct covariates *cov, double *chol, const double *theta);
/* Without effects: numbers are not moved along it. */
void joint_prior_gradient(struct covariates *cov, const double *theta, double *gradient);

void joint_set(struct covariates *cov, const double *theta);

/* Cells of a block of records, and records of these cells. */
void joint_read_cells(const struct covariates *cov, int m, const double *const *x, double *cell);
void joint_write_cells(const struct covariates *cov, int m, const double *cell, double *const *x);

/* Levels; the cells before and after are kept for joint_shift(). */
void joint_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                   const double *const *x, double *const *x_new);

/* What the cells add to number i of a block: mean_to of the new cell less `share` times mean_from
 * of the old one, which is not looked at for 0. */
const double *joint_shift(const struct covariates *cov, int i, int m, const double *mean_to,
                          double share, const double *mean_from);

void joint_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                    int *changed);
void joint_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                double *const *x_new);

/* The numbers follow their mean; as the model's hook relevel(), from cell to cell. */
void joint_relevel(struct covariates *cov, int from, int to, int m, const double *const *x,
                   double *const *x_new);

/* Counts of the cells, to the complete-data statistic. */
void joint_add(const struct covariates *cov, int m, const double *const *x, double *c);

/* Hooks of contract/model_uncentred.h, whose `self` is the covariates; joint_expect() before them,
 * with the counts of the cells. All in model/covariates_joint_gradient.c. */
void joint_expect(struct covariates *cov, const double *count);
double joint_find(void *self, const double *q, double *theta);
void joint_pull(void *self, const double *q, double *gradient);
void joint_start(void *self, const double *theta, double *q);

/* A cell whose weight underflows gets this one. */
static const double JOINT_LEAST_WEIGHT = 1e-10;

/* For the gradients: Dirichlet weights of the cells under theta, and their sum; the sums of numbers
 * of the cells over all cells of each level, factor by factor. */
double joint_weights(const struct covariates *cov, const double *theta, double *weight);
void joint_margins(const struct covariates *cov, const double *cells, double *margin);

/* What of theta is of the cells alone, given their counts. */
void joint_update_cells(struct covariates *cov, const double *count, struct rng *rng,
                        double *theta);

int joint_update(struct covariates *cov, const double *c, double n, struct rng *rng, double *theta);
double joint_marginal(struct covariates *cov, const double *c, double n, double *gradient);

#endif
