/* Capability: the density of records given theta. Random walks on theta need it, or Newton
 * proposals: of all unknown coordinates where there is no update, or of those that the update
 * leaves as they are. It needs the capability of a prior density. */
#ifndef NOISEAWARE_CONTRACT_MODEL_DENSITY_H
#define NOISEAWARE_CONTRACT_MODEL_DENSITY_H

#include "contract/model.h"

struct model_density {
    /* Coordinates of theta, `walked` of them from walked_from on, that an update leaves as they
     * are: Newton proposals by curve(), or random walks move them after it. With curve() they are
     * the first. */
    int walked, walked_from;

    /* Goal: the sum over the block of log f(x_i | theta) under the current theta, up to a
     * constant that is the same for every theta; may be -INFINITY, and is never NaN. Where `walked`
     * is not 0: of those columns that depend on these coordinates, given the others.
     * Common error: a normalising constant left out that depends on theta;
     * debug_model() sees it. */
    double (*log_density)(void *self, int m, const double *const *x);

    /* Goal: log_density(), and of it in the walked coordinates gradient += its slopes and
     * matrix += about minus its second derivatives, positive semidefinite: the lower triangle
     * of so many rows. Default: these coordinates walk alone. */
    double (*curve)(void *self, int m, const double *const *x, double *gradient, double *matrix);

    /* Goal: the same of the prior at this theta, written, not added. Together with curve(). */
    void (*prior_curve)(void *self, const double *theta, double *gradient, double *matrix);
};

static inline int model_walked(const struct model *model) {
    return model->density ? model->density->walked : 0;
}

#endif
