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
    /* Noise that is possible, if any is known: `pieces` values of each component, one after the
     * other. And the range of each component of a record. Or NULL. */
    int pieces;
    const double *near, *range;
    void (*log_density)(void *self, int candidates, int stride, const double *noise, double *out);

    /* Of the counts of cells that each record is in one of; NULL for other statistics. After
     * log_density() the last candidate's counts are held. step() moves a record from one cell to
     * another one and returns by how much the log density rises; back() takes the last step back.
     */
    double (*step)(void *self, int from, int to);
    void (*back)(void *self);
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
