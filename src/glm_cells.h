#ifndef NOISEAWARE_GLM_CELLS_H
#define NOISEAWARE_GLM_CELLS_H

#include "covariates.h"
#include "family.h"
#include "predictor.h"

/* A generalised linear model of a binary response whose covariates are all factors, as a table: see
 * glm_cells.c. */
struct glm_cells;

/* `cov`, `predictor` and `family` must outlive it. */
struct glm_cells *glm_cells_create(const struct covariates *cov, const struct predictor *predictor,
                                   const struct family *family);

/* Cells of the table: combinations of the factors' levels, in their order and the last one's the
 * fastest, each with the response 0 and then 1. */
int glm_cells_count(const struct glm_cells *s);

/* Log probabilities of the cells. */
void glm_cells_log(struct glm_cells *s, const double *theta, double *log_p);

/* The counts that the next two speak of. */
void glm_cells_observe(struct glm_cells *s, const double *count);

/* Log probability of the counts, up to a constant; gradient += its gradient in theta. */
double glm_cells_log_likelihood(struct glm_cells *s, const double *theta, double *gradient);

/* matrix += about minus the second derivatives, of the coefficients as expected, of the sticks with
 * those of their prior; the lower triangle of a matrix with so many rows. */
void glm_cells_information(struct glm_cells *s, const double *theta, int rows, double *matrix);

#endif
