/* Capability: parameters integrate out, given the complete-data statistic. Totals then move with
 * theta out of the way: "collapse" of normal totals, and the surrogate of "augment". */
#ifndef NOISEAWARE_CONTRACT_MODEL_MARGINAL_H
#define NOISEAWARE_CONTRACT_MODEL_MARGINAL_H

#include "contract/model.h"
#include "contract/model_pooled_scatter.h"

struct model_marginal {
    /* Coordinates of theta, `keeps` of them, that marginal() does not integrate out. */
    int keeps;
    const int *kept;

    /* For a normal response, which is the last column of the capability of normal records: the
     * place in theta of the logarithm of its residual standard deviation, if marginal() does not
     * integrate it out. The coefficients of the response stand first in theta: the constant, then
     * one for each column of the complete-data statistic from 1 on. 0: there is none. */
    int residual;

    /* Goal: the log of the integral of p(theta) prod_i f(x_i | theta) over theta, up
     * to a constant, as a function of the complete-data statistic c of n records,
     * and its gradient in c. What `kept` lists is not integrated out: it is read from theta, and
     * the gradient in it goes to gradient_kept. -INFINITY where no records have that c. Prior: as
     * it is before it is cut off. */
    double (*marginal)(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_kept);

    /* Goal: what marginal() leaves out of that log and depends on n alone, for continuous
     * columns, the density of a record with its power of 2 pi. For normal totals where n is
     * unknown; default: n must be known there. */
    double (*marginal_size)(const void *self, double n);

    /* Goal: the columns of the moments in the complete-data statistic, `moments` of them, of a
     * block; they last until the next call of a hook. Where they are more than a record's, or
     * replace others. Then the response, column 0 of both, is normal given the others, and alone
     * moves along the density of the totals. Default: they are the record's. */
    const double *const *(*regressors)(void *self, int m, const double *const *x);
    int moments;

    /* Covariates of several groups can be pooled; NULL: they cannot. */
    const struct model_pooled_scatter *pooled;
};

/* Columns of the moments in the complete-data statistic. */
static inline int model_moments(const struct model *model) {
    return model->marginal && model->marginal->regressors ? model->marginal->moments
                                                          : model->columns;
}

#endif
