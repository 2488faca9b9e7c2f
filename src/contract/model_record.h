/* Capability: the density of each record has a form of its own. "collapse" then keeps noisy
 * records, whose values are imputed. */
#ifndef NOISEAWARE_CONTRACT_MODEL_RECORD_H
#define NOISEAWARE_CONTRACT_MODEL_RECORD_H

struct model_record {
    /* Goal: out[i] = the log density of the numbers of each record of the block, given the levels
     * of its factors, under the current theta, up to a constant. */
    void (*record_density)(void *self, int m, const double *const *x, double *out);
};

#endif
