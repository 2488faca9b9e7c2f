#ifndef NOISEAWARE_RECORDS_CATEGORY_HMC_H
#define NOISEAWARE_RECORDS_CATEGORY_HMC_H

#include "contract/model.h"
#include "contract/model_categories.h"
#include "contract/noise.h"
#include "mcmc/surrogate_trajectory.h"

/* Moves of the coefficients of a response of several levels for method "augment", the innovations
 * of the responses held fixed; see records/category_hmc.c. */
struct category_moves {
    const struct model *model;
    int size;           /* coordinates */
    int dense;          /* of the released components these come first, */
    int cells;          /* then counts of which a record touches a few */
    struct noise noise; /* its released numbers are `offset` */
    const double *released;
    double temper, rounded;

    struct trajectory path;
    double *unit; /* of each coordinate, where the metric begins; part of the store */

    /* The points, filled in by the caller: records whose covariates represent all, `share` records
     * each; component j of point i with level k at add[(k * dense + j) * MAX_POINTS + i], the cells
     * that it touches at touch[(k * touched + t) * MAX_POINTS + i]. */
    int points, touched;
    double share;
    double **x;
    double *add;
    int *touch;

    /* workspace */
    double energy;
    double *theta, *offset, *expected, *probability, *slope, *pull, *work;
};

enum { MAX_POINTS = 128 };

/* Returns 0 where there are no such moves. The caller fills in released, and noise but for that. */
int category_moves_create(struct category_moves *r, const struct model *model, int dense, int cells,
                          int touched);
size_t category_moves_stored(const struct category_moves *r);
void category_moves_attach(struct category_moves *r, double *store);

/* A chain begins; `sd` is a guess at the standard deviation of each coordinate. */
void category_moves_start(struct category_moves *r, const double *sd);

/* Reads where theta is. Returns 0 where no move is possible. */
int category_moves_begin(struct category_moves *r, const double *theta, struct rng *rng);

/* As the functions of records/response_hmc.h with these names. */
void category_moves_refer(void *self, double *theta);
void category_moves_correct(void *self, const double *total);
int category_moves_propose(void *self, struct rng *rng, double *theta, double *gain);
void category_moves_learn(void *self, const struct trajectory_seen *seen, struct rng *rng);

/* Log density and gradient at coordinates q; at the state's where q[0] is NaN. For tests. */
double category_moves_density(struct category_moves *r, double *q, double *gradient);

#endif
