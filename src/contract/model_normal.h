/* Capability: records are normal given theta and their factors, so that "collapse" can move their
 * totals in place of them. The complete-data statistic of such a model is the totals of the columns
 * less origin, then the upper triangle of the totals of their products, row by row, both in the
 * columns' own order. */
#ifndef NOISEAWARE_CONTRACT_MODEL_NORMAL_H
#define NOISEAWARE_CONTRACT_MODEL_NORMAL_H

struct model_normal {
    const double *origin; /* where each column is measured from */
    const int *order;     /* the columns that are no dummies, as the hooks have them */

    /* Goal: the joint distribution of a record's columns, dummies apart. The mean less origin, and
     * the lower Cholesky factor of the covariance (row-major, zeros above the diagonal), both in
     * that order. With factors that is the mean at the first level of each; after it comes, as
     * long, what each dummy adds, factor by factor. */
    void (*distribution)(void *self, const double *theta, double *mean, double *chol);

    /* Goal: gradient += the slopes in theta of a function whose slopes in what distribution()
     * makes of theta, `mean` and `chol`, are these; slope_chol's lower triangle, which may be
     * written. For noisy records; default: "collapse" does not support them. */
    void (*pull_distribution)(void *self, const double *theta, const double *mean,
                              const double *chol, double *slope_mean, double *slope_chol,
                              double *gradient);
};

#endif
