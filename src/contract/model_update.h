/* Capability: theta is drawn given the complete-data statistic. */
#ifndef NOISEAWARE_CONTRACT_MODEL_UPDATE_H
#define NOISEAWARE_CONTRACT_MODEL_UPDATE_H

#include "contract/model.h"

struct model_update {
    /* Goal: theta from a kernel that leaves p(theta | c, n) invariant, in place; with
     * add_latent, p(theta | records, latent variables). Known coordinates stay, and those that the
     * capability of a density moves. Returns PLUGIN_*: PLUGIN_NUMERICAL ends the chain with an
     * error.
     * Common error: parts of theta updated from the old values of other parts, where
     * the conditional needs the new ones. */
    int (*rtheta)(void *self, const double *c, double n, struct rng *rng, double *theta);

    /* Goal: the same under the prior as it is before it is cut off, which is what marginal() sees.
     * NULL: it is not cut off, or totals do not move by marginal(). */
    int (*rtheta_uncut)(void *self, const double *c, double n, struct rng *rng, double *theta);
};

static inline int model_is_cut(const struct model *model) {
    return model->update && model->update->rtheta_uncut;
}

#endif
