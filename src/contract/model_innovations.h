/* Capability: a record is a known function of random numbers, its innovations. They can be drawn
 * while the sampler waits for something else. */
#ifndef NOISEAWARE_CONTRACT_MODEL_INNOVATIONS_H
#define NOISEAWARE_CONTRACT_MODEL_INNOVATIONS_H

#include "base/rng.h"

struct model_innovations {
    int count; /* how many numbers a record is made of */
    enum rng_kind kind;

    /* Goal: the m records that rrecords makes of these innovations: z[k][i] is number k of
     * record i, which rrecords draws column after column.
     * Common error: rrecords draws something else besides, or in another order. */
    void (*from_innovations)(void *self, int m, const double *const *z, double *const *x);

    /* Goal: whether that is so under the current theta. Default: always. */
    int (*serve)(void *self);
};

#endif
