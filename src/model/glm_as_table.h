#ifndef NOISEAWARE_MODEL_GLM_AS_TABLE_H
#define NOISEAWARE_MODEL_GLM_AS_TABLE_H

#include "contract/model_prior.h"
#include "model/covariates.h"
#include "model/derived_columns.h"

/* A generalised linear model of a response with levels whose covariates are all factors, as a
 * table: see model/glm_as_table.c. */

/* How the response depends on theta. */
struct cell_response {
    void *self;
    int levels;
    int columns;    /* the response's among the columns of the moments */
    int predictors; /* linear ones */
    int cuts;       /* other coordinates, that all combinations share: cut_at, cut_at + 1, .. */
    int cut_at;
    /* of each predictor: the places in theta of its constant, and of its first slope less 1 */
    const int *constant, *slopes;

    /* Goal: what logs() needs of theta alone. NULL: nothing. */
    void (*use)(void *self, const double *theta);

    /* Goal: log P(y = l) at these predictors; slope: for each level a row of its slopes in the
     * predictors, then in the cuts. Every number finite where the predictors are. */
    void (*logs)(void *self, const double *eta, double *log_p, double *slope);

    const struct model_prior *prior; /* the model's, with a gradient */
    /* Goal: matrix += minus the second derivatives, about, of the log prior of the response's
     * coordinates; the lower triangle of so many rows. `self` is the model's. */
    void (*prior_information)(void *self, const double *theta, int rows, double *matrix);
};

/* Offers what a table of so many cells can do: combinations of the factors' levels, in their order
 * and the last one's the fastest, each with the response's levels. The complete-data statistic is
 * their counts. `cov`, which stands first in the model, and `predictor` must last. Returns
 * PLUGIN_*. */
int glm_cells_create(struct covariates *cov, const struct predictor *predictor,
                     const struct cell_response *response, double cells, struct model *model);

#endif
