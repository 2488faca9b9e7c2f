#ifndef NOISEAWARE_MODEL_GLM_AS_TABLE_H
#define NOISEAWARE_MODEL_GLM_AS_TABLE_H

#include "model/covariates.h"
#include "model/derived_columns.h"

/* A generalised linear model of a response with levels whose covariates are all factors, as a
 * table: see model/glm_as_table.c. */
struct glm_cells;

/* How the response depends on theta. */
struct cell_response {
    void *self;
    int levels;
    int columns;    /* the response's among the columns of the moments */
    int predictors; /* linear ones */
    int cuts;       /* other coordinates, that all combinations share: cut_at, cut_at + 1, .. */
    int cut_at;
    /* of each predictor: its constant's place in theta, and that of its first slope less 1 */
    const int *constant, *slopes;

    /* Goal: what logs() needs of theta alone. NULL: nothing. */
    void (*use)(void *self, const double *theta);

    /* Goal: log P(y = l) at these predictors; slope: for each level a row of its slopes in the
     * predictors, then in the cuts. Every number finite where the predictors are. */
    void (*logs)(void *self, const double *eta, double *log_p, double *slope);
};

/* `cov` and `predictor` must outlive it. */
struct glm_cells *glm_cells_create(const struct covariates *cov, const struct predictor *predictor,
                                   const struct cell_response *response);

/* Cells of the table: combinations of the factors' levels, in their order and the last one's the
 * fastest, each with the response's levels. */
int glm_cells_count(const struct glm_cells *s);

/* Log probabilities of the cells. */
void glm_cells_log(struct glm_cells *s, const double *theta, double *log_p);

/* The counts that the next two speak of. */
void glm_cells_observe(struct glm_cells *s, const double *count);

/* Log probability of the counts, up to a constant; gradient += its gradient in theta. */
double glm_cells_log_likelihood(struct glm_cells *s, const double *theta, double *gradient);

/* Draws the sticks of the factors' probabilities in theta, given those counts. */
void glm_cells_draw_shares(struct glm_cells *s, struct rng *rng, double *theta);

/* matrix += about minus the second derivatives, of the coefficients as expected, of the sticks with
 * those of their prior; the lower triangle of a matrix with so many rows. */
void glm_cells_information(struct glm_cells *s, const double *theta, int rows, double *matrix);

#endif
