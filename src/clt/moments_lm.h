/* Shared by the files of the moments "lm" (see clt/moments_lm_class.c):
 *   clt/moments_lm_class.c              fields, the parameters in released units;
 *   clt/moments_lm_covariance.c   mean and covariance;
 *   clt/moments_lm_innovations.c  the total as a function of innovations;
 *   clt/moments_lm_gradient.c     the gradient of a weighted total in the parameters;
 *   clt/moments_lm_complete.c     the complete-data statistic of a total;
 *   clt/moments_lm_outside.c      records outside the bounds.
 */
#ifndef NOISEAWARE_CLT_MOMENTS_LM_H
#define NOISEAWARE_CLT_MOMENTS_LM_H

#include "base/linalg.h"
#include "contract/coordinates.h"
#include "contract/plugin.h"

/* its dummies are regressors first, ..., first + dummies - 1 */
struct categories {
    int first, dummies;
};

struct lm_factors {
    int count;
    struct categories *factor;
    int *of;       /* of a regressor; -1 if it is no dummy */
    double *share; /* of the records that have a dummy's level */
    double *later; /* of those with a later level of the factor, or the one without */
};

struct lm_distribution {
    int d, p;                   /* regressors, the constant among them; d - 1 covariates */
    int w;                      /* distinct products of two regressors but the constant */
    int size;                   /* w + d + 1 less what the statistic leaves out */
    int *at;                    /* -1 if left out */
    int continuous, *normal_at; /* regressors with a joint normal distribution */
    struct lm_factors factors;
    struct {
        const double *scale, *shift, *centre; /* of y, x_1..x_p */
        const double *lower, *upper;          /* bounds, in released units */
        double *offset;                       /* released value of a column at its centre */
    } units;
    const double *fourth, *root; /* Xi, w x w, and its root by columns, or NULL */
    int rank;

    /* of the model's coordinates */
    const struct theta_block *coefficients, *sigmas, *means, *covs, *probs;

    /* in released units */
    double *theta, sigma;
    double *mean, *cov, *second; /* E x, Cov(x), E xx' with the constant, d x d */
    double *chol;                /* of Cov(x_1..x_p) */

    /* of the weights of a total */
    struct {
        double *mean, *chol, *share, *theta;
        double *off; /* weights left out of `symmetric` */
    } of;
    struct {
        double *row, *cross, *outer, *pull, *symmetric, *products;
        double *weights; /* of products */
        double *scatter, *unit, *normal_chol, *level_share, *rest;
    } work;
};

/* entry of the covariates' Cholesky factor, i and j regressors */
static inline double *lm_chol_at(const struct lm_distribution *m, int i, int j) {
    return m->chol + (size_t)(i - 1) * m->p + (j - 1);
}

/* number of x_i x_j in w, i <= j */
static inline int lm_number_of(const struct lm_distribution *m, int i, int j) {
    return i == 0 ? j - 1 : m->p + (i - 1) * m->p - (i - 1) * (i - 2) / 2 + (j - i);
}

/* Carries the parameters to released units. */
void lm_set(struct lm_distribution *m, const double *theta);

/* out_k = sum_l row(k, l) theta_l: x_k y as a function of w */
void lm_contract(int d, const double *restrict row, const double *restrict theta,
                 double *restrict out);

/* the number of the first innovation of the errors: those of w come before it */
static inline int lm_first_error(const struct lm_distribution *m) {
    return m->fourth ? m->rank : m->w;
}

/* Are two covariates, counted from 0, dummies of one factor? */
static inline int lm_same_factor(const struct lm_factors *factors, int i, int j) {
    const int f = factors->of[i + 1];
    return f >= 0 && f == factors->of[j + 1];
}

/* out += r times the coefficients of the sum of (x_i - E x_i)(x_j - E x_j), for dummies of one
 * factor, in the sums of x - E x; covariates count from 0. */
static inline void lm_pull_within(const struct lm_distribution *m, int i, int j, double r,
                                  double *out) {
    const double *scale = m->units.scale + 1, *share = m->factors.share + 1;
    out[j] -= r * scale[i] * share[i];
    out[i] -= r * scale[j] * share[j];
    if (i == j) out[i] += r * scale[i];
}

/* What weights r of the components come to: of xy given all else, to work.pull, and of the
 * products w, to work.weights. */
void lm_weigh(struct lm_distribution *m, const double *r);

/* the hooks of these names */
int lm_eval(void *self, const double *theta_model, double *mean, double *cov);
void lm_from_innovations(void *self, const double *theta_model, double n, const double *u,
                         double *total);
void lm_pull(void *self, double weight, const double *r, double *u);
void lm_gradient(void *self, double n, const double *u, const double *r, double *out);
int lm_complete(void *self, double n, const double *total, double *c);
void lm_project(void *self, double n, double *c);
double lm_outside(void *self, const double *theta_model);

#endif
