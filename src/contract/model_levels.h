/* Capability: factors whose levels depend on their probabilities alone. Many records can then
 * change their level together. */
#ifndef NOISEAWARE_CONTRACT_MODEL_LEVELS_H
#define NOISEAWARE_CONTRACT_MODEL_LEVELS_H

#include "contract/model.h"

struct model_factor {
    int levels;
    const double *alpha; /* Dirichlet weights of the levels */
    int first;           /* column of the complete-data statistic: the dummy of its second level */
};

struct model_levels {
    int factors; /* how many */
    const struct model_factor *factor;

    /* Where factors depend on each other, or other columns on them: their cross-table as one
     * factor, the first factor's levels the fastest, which the hooks then know in place of the
     * factors. `alpha` are its weights under the theta of the last set(), and `first` is the count
     * of its first level in the complete-data statistic. NULL: they do not. */
    const struct model_factor *joint;

    /* Goal: the levels 0, 1, ... of a factor. */
    void (*read_levels)(void *self, int factor, int m, const double *const *x, double *level);

    /* Goal: the records with the level `to` for their level `from` of a factor, and the same
     * innovations of all else under the current theta: the other columns follow as move() has it.
     * Must be reversible but for the probabilities of the levels. Writes all columns. */
    void (*relevel)(void *self, struct rng *rng, int factor, int from, int to, int m,
                    const double *const *x, double *const *x_new);
};

static inline int model_factors(const struct model *model) {
    return model->levels ? model->levels->factors : 0;
}

/* Their cross-table, where they depend on each other. */
static inline const struct model_factor *model_joint(const struct model *model) {
    return model->levels ? model->levels->joint : NULL;
}

#endif
