/* Capability: a response of a few levels, whose probabilities given the covariates can be had, so
 * that its coefficients move along what is expected of the totals. */
#ifndef NOISEAWARE_CONTRACT_MODEL_CATEGORIES_H
#define NOISEAWARE_CONTRACT_MODEL_CATEGORIES_H

struct model_categories {
    int levels;       /* of the response */
    int coefficients; /* on which the probabilities depend: theta's first, all of them unknown */

    /* Goal: the response's columns are those of this level; writes no others. */
    void (*categorise)(void *self, int level, int m, double *const *x);

    /* Goal: p[k * MAX_BLOCK + i]: the probability of level k given the covariates of record i,
     * under this theta. */
    void (*probabilities)(void *self, const double *theta, int m, const double *const *x,
                          double *p);

    /* Goal: gradient += the gradient of a function with the slopes `slope` in these probabilities,
     * laid out as they, in the coefficients. Called after probabilities(), of the same theta and
     * records. */
    void (*pull)(void *self, const double *theta, int m, const double *const *x,
                 const double *slope, double *gradient);

    /* Goal: the log prior density of the coefficients, read from theta, up to a constant, and its
     * gradient in them, written. */
    double (*log_prior)(void *self, const double *theta, double *gradient);
};

#endif
