/* Capability: the prior has a density. Moves of theta need it, and all that proposes theta by a
 * density. */
#ifndef NOISEAWARE_CONTRACT_MODEL_PRIOR_H
#define NOISEAWARE_CONTRACT_MODEL_PRIOR_H

struct model_prior {
    /* Goal: the log prior density of the unknown coordinates, up to a constant, -INFINITY
     * outside the prior's support.
     * Common error: the density of the natural parameters without the Jacobian, that is
     * without block_log_jacobian(); debug_model() sees it. */
    double (*dprior)(void *self, const double *theta);

    /* Goal: gradient += the gradient of dprior(), of all coordinates, at a theta where that is
     * finite. Default: by differences (model_prior()), and noisy records are not supported. */
    void (*prior_gradient)(void *self, const double *theta, double *gradient);
};

#endif
