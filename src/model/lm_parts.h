#ifndef NOISEAWARE_MODEL_LM_PARTS_H
#define NOISEAWARE_MODEL_LM_PARTS_H

#include "contract/model_density.h"
#include "contract/model_innovations.h"
#include "contract/model_marginal.h"
#include "contract/model_normal.h"
#include "model/covariates.h"
#include "model/lm_errors.h"
#include "model/scale_prior.h"

/* A linear regression: what model/lm.c and model/lm_marginal.c share. */

/* BETA_FLAT: coefficients and sigma have no prior here, and marginal() keeps them: the likelihood,
 * for method "pool", which calls nothing else of it. */
enum beta_prior { BETA_KNOWN, BETA_NORMAL, BETA_NIG, BETA_STUDENT, BETA_FLAT };

struct lm {
    struct covariates cov; /* first */
    int p, k; /* covariate columns; coefficients, and columns of a record unless derived */
    struct predictor predictor;
    struct moments moments;

    enum beta_prior beta_prior;
    int flat;
    const double *beta, *beta_mean, *beta_precision; /* centred coordinates */
    /* BETA_STUDENT: the t distributions, of scales beta_scale about beta_mean, are of the
     * centred coefficients but for the first: of beta_first times all of them */
    const double *beta_df, *beta_scale, *beta_first;
    const double *sigma;
    struct scale_prior sigma_prior;
    struct errors *errors; /* NULL: normal ones */

    struct model_density walked;
    struct model_innovations innovations;
    struct model_marginal marginal;
    struct model_normal normal;
    int follows; /* moves and refreshes evaluate the linear predictor before and after */

    int at_sigma;     /* in theta */
    double log_sigma; /* if known */

    /* current parameter, natural scale */
    double *theta, intercept, sigma_now;

    /* map of a non-centred move */
    double *move_y, *move_y_dummy, move_y_shift;

    int keeps_sigma; /* by marginal() */

    /* workspace */
    double *away_from_prior, *student; /* k; k x k */
    double *gram, *solution;
    double *innovation;    /* MAX_BLOCK */
    double *eta, *eta_new; /* MAX_BLOCK, where `follows` */
    double *theta_new;     /* of a move */
    double intercept_new;
    int *changed;
    const double **moved;
    struct terms terms;
    int width;                   /* k + 1, padded */
    double *joint, *prior_joint; /* k + 1 rows of `width`, see marginal() */
    int *joint_at;               /* where the entries of `joint` stand in c, its rows likewise */
    double *sweep, *away;        /* 2 `width`; `width` */
};

/* Does marginal() keep the coefficients? */
static inline int lm_reads_coefficients(const struct lm *lm) {
    return lm->beta_prior == BETA_STUDENT || lm->beta_prior == BETA_FLAT;
}

/* ---- model/lm_student.c: the prior of Student-t coefficients: a draw; its density; += its
 * gradient; and the precision of the centred coefficients given the weights of the mixture, these
 * drawn given the coefficients ---- */

void lm_student_draw(struct lm *lm, struct rng *rng, double *theta);
double lm_student_density(struct lm *lm, const double *theta);
void lm_student_gradient(struct lm *lm, const double *theta, double *gradient);
const double *lm_student_precision(struct lm *lm, struct rng *rng, const double *theta);

/* ---- model/lm_update.c: a draw of the coefficients and sigma in theta; PLUGIN_* ---- */

int lm_update_regression(struct lm *lm, const double *c, double n, struct rng *rng, double *theta);

/* ---- model/lm_marginal.c: hooks of struct model_marginal, and their workspace ---- */

void lm_prepare_marginal(struct lm *lm);
double lm_marginal(void *self, const double *c, double n, const double *theta, double *gradient_c,
                   double *gradient_kept);
double lm_marginal_size(const void *self, double n);
const double *lm_standardised(struct lm *lm, const double *theta);

/* model/lm_distribution.c: hooks of struct model_normal. */
void lm_distribution(void *self, const double *theta, double *mean, double *chol);
void lm_pull_distribution(void *self, const double *theta, const double *mean, const double *chol,
                          double *slope_mean, double *slope_chol, double *gradient);

#endif
