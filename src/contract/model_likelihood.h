/* Capability: the complete-data statistic is sufficient, and what it says of theta can be
 * computed. Pools of sites then need no pass over their records. */
#ifndef NOISEAWARE_CONTRACT_MODEL_LIKELIHOOD_H
#define NOISEAWARE_CONTRACT_MODEL_LIKELIHOOD_H

struct rng;

struct model_likelihood {
    /* Goal: the log density of n records with the complete-data statistic c, as a function of
     * theta, up to a constant, and gradient += its slopes in theta; NULL: these are not wanted. */
    double (*log_likelihood)(void *self, const double *theta, const double *c, double n,
                             double *gradient);

    /* Goal: draws what of theta is of the covariates alone given c of n records, in place, where
     * there is no update. For sites that have covariates of their own; default: random walks. */
    void (*rshares)(void *self, const double *c, double n, struct rng *rng, double *theta);

    /* Goal: the log probability of the sum of n records, theta integrated out, the prior as it is
     * before it is cut off; no part of it that depends on the sum or on n is left out. Only where
     * records are counts which given their sum, the complete-data statistic, are multinomial with
     * equal probabilities, whatever theta is. For "augment" where n is unknown; default: births and
     * deaths alone. */
    double (*log_total)(void *self, double sum, double n);
};

#endif
