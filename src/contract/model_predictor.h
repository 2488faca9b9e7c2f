/* Capability: the records' other columns depend on the continuous ones through linear predictors
 * alone, whose coefficients are tied to the totals: they can move along with them. */
#ifndef NOISEAWARE_CONTRACT_MODEL_PREDICTOR_H
#define NOISEAWARE_CONTRACT_MODEL_PREDICTOR_H

#include "contract/model.h"

/* The constant of predictor e is at tie_constant[e] in theta, and the coefficient of column v of
 * the complete-data statistic at tie_slopes[e] + v. The capability of a marginal does not integrate
 * the tied coefficients out either, and its gradient_kept is in them. */
struct model_predictor {
    int tied; /* coefficients, the first coordinates of theta */
    int ties; /* linear predictors */
    const int *tie_constant, *tie_slopes;

    /* The place in theta of what else the response's distribution depends on, which moves that
     * tied coefficients and marginal() allow leave as it is. 0: there is none, or it is known. */
    int shape;

    /* Goal: the log prior density of the tied coefficients, read from theta, up to a constant, and
     * its gradient in them, written. */
    double (*tied_prior)(void *self, const double *theta, double *gradient);

    /* Goal: mean[k]: the mean of the derivative k of E(y | linear predictor), k < 4, and square[k]
     * of E(y^2 | linear predictor), k < 3, over a normal linear predictor with that centre and
     * standard deviation, what else they depend on being as in the current theta. `mean` has room
     * for 6. Needs a response y that depends on one linear predictor, the first column of the
     * complete-data statistic; move() holds its innovations fixed. Default: tied coefficients have
     * no moves of their own. */
    void (*tied_means)(void *self, double centre, double sd, double *mean, double *square);
};

static inline int model_tied(const struct model *model) {
    return model->predictor ? model->predictor->tied : 0;
}

static inline int model_shape(const struct model *model) {
    return model->predictor ? model->predictor->shape : 0;
}

#endif
