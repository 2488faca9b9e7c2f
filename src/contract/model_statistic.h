/* Capability: a complete-data statistic, a sum over the records of what the update of theta needs
 * of them. model->complete is its length. */
#ifndef NOISEAWARE_CONTRACT_MODEL_STATISTIC_H
#define NOISEAWARE_CONTRACT_MODEL_STATISTIC_H

#include "contract/model.h"

struct model_statistic {
    /* Goal: c += the sum over the block of c(x_i), the complete-data statistic.
     * Common error: c is overwritten; it holds what earlier blocks brought. Sums of values
     * far from zero lose digits: measure from a fixed public point (base/block.h). */
    void (*add)(void *self, int m, const double *const *x, double *c);

    /* Goal: draws the latent variables of a block given its records and the current
     * theta, and adds to c what the update needs of them. Called after add, on the same
     * records; the update is called once for such a c. Default: there are none. */
    void (*add_latent)(void *self, struct rng *rng, int m, const double *const *x, double *c);
};

static inline int model_has_latent(const struct model *model) {
    return model->statistic && model->statistic->add_latent;
}

#endif
