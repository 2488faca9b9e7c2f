/* Contract of a mechanism: how noise was added. See contract/plugin.h. */
#ifndef NOISEAWARE_CONTRACT_MECH_H
#define NOISEAWARE_CONTRACT_MECH_H

#include "contract/plugin.h"

/* log eta(z | s) = const - sum_j kernel((z_j - s_j) * weight_j); with MATCH, of
 * single values only, sum_j log P(answer z_j | level s_j). */
enum kernel {
    KERNEL_ABSOLUTE /* |r| */,
    KERNEL_SQUARED /* r^2 / 2 */,
    KERNEL_MATCH,
    KERNEL_DENSITY,
    KERNEL_PUBLISHED, /* hidden, rounded or clipped: contract/noise.h */
    KERNEL_EXACT
};

/* With DENSITY, any log density, up to a constant, of the noise z - s of several
 * candidates at once: component j of candidate i is noise[j * stride + i]. A call
 * may be expensive. */
struct density {
    void *self;
    int size; /* components of a candidate; known before create() */
    /* noise that is possible, if any is known, and the range of each component of a record; or NULL
     */
    const double *near, *range;
    void (*log_density)(void *self, int candidates, int stride, const double *noise, double *out);
};

/* A density that is built in. */
struct density_class {
    const char *name;
    int (*create)(const struct fields *fields, struct density *density);
};

struct mech_class {
    const char *name;

    /* Log density of one noise value, normalised. */
    double (*log_density)(double noise, double scale);

    /* Noise value at lower-tail probability u in (0, 1), computed from the
     * nearer tail. */
    double (*quantile)(double u, double scale);
};

#endif
