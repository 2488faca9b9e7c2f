#ifndef NOISEAWARE_MODEL_CATEGORIES_RESPONSE_H
#define NOISEAWARE_MODEL_CATEGORIES_RESPONSE_H

#include "contract/model_categories.h"
#include "contract/model_density.h"
#include "contract/model_predictor.h"
#include "model/categorical_links.h"
#include "model/covariates.h"
#include "model/glm_as_table.h"

/* A response of several levels; see model/categories.c. */
/* A parameter with natural intercepts and cuts, and what records have there, rows of MAX_BLOCK. */
struct graded_place {
    double *theta, *intercept, *cut, *tail, *level;
};

struct graded {
    struct covariates cov; /* first */
    int columns;           /* of a record */
    int slopes;            /* of a predictor */
    int own;               /* coordinates of the own part */
    struct categories response;
    struct predictor predictor;
    struct moments moments;
    struct model_categories categories;
    struct model_density density;
    struct model_predictor tied;
    /* of each predictor: the constant's place in theta, and the first slope's place less 1 */
    int *constants, *before_slopes;
    const double *beta; /* if they are known */
    struct {
        const double *slope_mean, *slope_sd, *tilt;
        double constant_mean, constant_sd;
    } prior;
    struct graded_place now, next; /* next: that a move goes to */

    /* workspace; rows of MAX_BLOCK */
    double *eta, *u;
    double *constant;       /* one for each tail */
    double *slope, *weight; /* see find_slopes() */
    double *point, *log_p, *level_slope, *sums;
    int *changed;
    const double **moved;
};

/* Where the constant of a predictor, and its slopes, stand in theta. */
static inline int graded_constant(const struct graded *s, int e) { return e * (1 + s->slopes); }
static inline int graded_slopes(const struct graded *s, int e) {
    return s->response.ordered ? s->response.tails : graded_constant(s, e) + 1;
}

/* Predictors of m records at theta, into rows of s->eta; and their responses' levels, from 0. */
void graded_predict(struct graded *s, const double *theta, const double *intercept, int m,
                    const double *const *design);
void graded_read_response(const struct graded *s, int m, const double *const *x, double *level);

/* For graded_cell_logs(): the log probabilities of all levels given their predictors, and their
 * slopes in these and in the cuts' coordinates. */
void graded_use_cuts(void *self, const double *theta);
void graded_cell_logs(void *self, const double *eta, double *log_p, double *slope);

/* hooks */
double graded_tied_prior(void *self, const double *theta, double *gradient);
double graded_curve(void *self, int m, const double *const *x, double *gradient, double *matrix);
void graded_prior_curve(void *self, const double *theta, double *gradient, double *matrix);
void graded_prior_information(void *self, const double *theta, int rows, double *matrix);
int graded_is_coded(const struct graded *s);
double graded_own_prior(const struct graded *s, const double *theta, double *gradient);
double graded_tilted(const struct graded *s, const double *slopes);

#endif
