/* A model's description of its coordinates theta: consecutive blocks, and for each of them the
 * transform from natural to unconstrained values. All code that needs places in theta gets them
 * here. */
#ifndef NOISEAWARE_CONTRACT_COORDINATES_H
#define NOISEAWARE_CONTRACT_COORDINATES_H

#include "base/core.h"

/* Natural values v of a block, and its coordinates t. */
enum transform {
    TRANSFORM_IDENTITY,
    TRANSFORM_LOG, /* t = log v */
    /* Coefficients of a regression, the intercept first: t_0 = v_0 - c_0 + sum_j c_j
     * v_j, with the `centre` c of the response and of the regressors j. Or, where there are
     * products of regressors, v = (c_0, 0, ...) + E t and t = E^-1 (v - (c_0, 0, ...)). */
    TRANSFORM_CENTRE,
    /* `rows` thresholds v_0 < v_1 < .., then coefficients of regressors: t_k = log(v_k - v_(k -
     * 1)), and t_0 and the coefficients' coordinates as above, -v_0 the intercept. */
    TRANSFORM_THRESHOLDS,
    TRANSFORM_STICKS, /* rows of probabilities of `size` levels: base/sticks.h */
    /* The lower triangle, row by row, of a covariance matrix of `size` rows; t is the lower
     * triangle of its Cholesky factor, with the logarithm of the diagonal. */
    TRANSFORM_LOG_CHOLESKY,
    TRANSFORMS
};
extern const char *const transform_names[TRANSFORMS];

struct theta_block {
    const char *name;
    enum transform transform;
    int offset, length; /* in theta; coordinates_finish() fills in both */
    int size;           /* of IDENTITY, LOG, CENTRE and THRESHOLDS: how many values */
    int rows;           /* of STICKS and THRESHOLDS */
    const double *centre;
    /* of CENTRE and THRESHOLDS: NULL, or E and its inverse, row by row */
    const double *expand, *collect;
    const double *known; /* NULL, or the coordinates' values: not drawn, not reported */
    int reports_last;    /* of STICKS, rows of two levels: a draw reports the second alone */
};

struct coordinates {
    int count, length; /* blocks; coordinates */
    struct theta_block *block;
};

/* Fills in the blocks' places, one after the other. */
void coordinates_finish(struct coordinates *coordinates);

/* The block of that name; NULL if there is none. */
const struct theta_block *coordinates_find(const struct coordinates *coordinates, const char *name);

/* The n-th block of probabilities; NULL if there is none. */
const struct theta_block *coordinates_probabilities(const struct coordinates *coordinates, int n);

/* How many natural values a block has, and how many of them a draw reports. */
int block_values(const struct theta_block *block);
int block_reported(const struct theta_block *block);

/* The natural values of a block of theta, written to `value`. */
void block_constrain(const struct theta_block *block, const double *theta, double *value);

/* The way back. Returns 0, or 1 where there is none: values not positive, rows that
 * are no probabilities, a matrix that is not positive definite. */
int block_unconstrain(const struct theta_block *block, const double *value, double *theta);

/* log |d v / d t|, of rows of probabilities without the last of each. */
double block_log_jacobian(const struct theta_block *block, const double *theta);

/* Puts what is known where it belongs in theta. */
void coordinates_set_known(const struct coordinates *coordinates, double *theta);

/* What a draw reports: the natural values of the unknown blocks. Returns the end. */
double *coordinates_report(const struct coordinates *coordinates, const double *theta, double *out);

/* theta of such values. Returns -1, or the block whose values are impossible. */
int coordinates_invert(const struct coordinates *coordinates, const double *value, double *theta);

/* ---- for those who need a transform itself ---------------------------------------- */

/* The natural intercept of coefficients measured from `centre`. */
double centred_intercept(int size, const double *centre, const double *theta);

/* How far each of so many thresholds lies above the first: distance[0] = 0. */
void threshold_distances(int thresholds, const double *theta, double *distance);

/* A Cholesky factor, dense with rows of `width`, zeros above the diagonal, and back
 * from one with rows of `size`. */
void unpack_cholesky(int size, const double *theta, int width, double *chol);
void pack_cholesky(int size, const double *chol, double *theta);

#endif
