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

/* Coefficients, centred coordinates. */
struct lm_beta {
    enum beta_prior prior;
    const double *known, *mean, *precision;
    /* BETA_STUDENT: the t distributions, of these scales about `mean`, are of the centred
     * coefficients but for the first: of `first` times all of them */
    const double *df, *scale, *first;
};

struct lm_sigma {
    const double *known;
    double log_known;
    struct scale_prior prior;
    int at;     /* in theta */
    double now; /* current, natural scale */
    int kept;   /* by marginal() */
    int flat;   /* it has no prior here */
};

/* Of a non-centred move. */
struct lm_move {
    double *y, *y_dummy, y_shift; /* its map */
    double *theta, intercept;     /* to where */
    int *changed;
    const double **moved;
};

/* Workspace of marginal(): k + 1 rows of `width`, which is k + 1, padded. */
struct lm_joint {
    int width;
    double *of, *prior;
    int *at;              /* where the entries of `of` stand in c, its rows likewise */
    double *sweep, *away; /* 2 `width`; `width` */
};

struct lm {
    struct covariates cov; /* first */
    int p, k; /* covariate columns; coefficients, and columns of a record unless derived */
    struct predictor predictor;
    struct moments moments;

    struct lm_beta beta;
    struct lm_sigma sigma;
    struct errors *errors; /* NULL: normal ones */

    struct model_density walked;
    struct model_innovations innovations;
    struct model_marginal marginal;
    struct model_normal normal;
    int follows; /* moves and refreshes evaluate the linear predictor before and after */

    /* current parameter, natural scale */
    double *theta, intercept;
    struct lm_move move;

    /* workspace */
    double *away_from_prior, *student; /* k; k x k */
    double *gram, *solution;
    double *innovation;    /* MAX_BLOCK */
    double *eta, *eta_new; /* MAX_BLOCK, where `follows` */
    struct terms terms;
    struct lm_joint joint;
};

/* Does marginal() keep the coefficients? */
static inline int lm_reads_coefficients(const struct lm *lm) {
    return lm->beta.prior == BETA_STUDENT || lm->beta.prior == BETA_FLAT;
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
