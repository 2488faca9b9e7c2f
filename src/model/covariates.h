#ifndef NOISEAWARE_MODEL_COVARIATES_H
#define NOISEAWARE_MODEL_COVARIATES_H

#include "base/block.h"
#include "base/rng.h"
#include "contract/model.h"
#include "contract/model_levels.h"
#include "contract/model_pooled_scatter.h"
#include "model/categorical_draw.h"
#include "model/derived_columns.h"
#include "model/independent_covariate.h"

/* The distribution of covariates, a part of other models: continuous ones N(mean, cov), factors
 * categorical; these in a cross-table on which the means depend (model/covariates_joint.c), or
 * independent of the rest, as lone ones (model/independent_covariate.h) are. Stands first in the
 * struct of a model. See model/covariates_normal.c. */

struct factor {
    struct levels of;
    int levels;
    int column; /* in a record: of the level's code, or of the first dummy */
    int coded;
    int first;   /* among the moments' columns: the first dummy */
    int at;      /* first of its levels in alpha */
    int stick;   /* first of its sticks in theta */
    int changed; /* by the current move */
};

/* Normal-inverse-Wishart distribution of mean and cov, or what is left of it when one of
 * them is known. */
struct niw {
    const double *mean;
    double kappa;
    double *scale_chol;
    double df;
};

/* Dependent factors, and numbers whose means depend on them: model/covariates_joint.c. */
struct joint {
    int cells, dummies;
    int *stride; /* of a factor's levels among the cells, the first factor's is 1 */
    int *dummy;  /* columns of the moments, factor by factor */
    int effects; /* numbers whose mean has what each dummy adds: all of them or none */
    int shares;  /* are there levels' shares and a concentration? With several factors */
    double effect_kappa, log_mean, log_sd; /* prior of effects, and of the concentration */
    struct levels of;
    struct model_factor described; /* the cells as one factor; its weights are the current ones */
    struct coordinates coordinates;
    double *alpha;                              /* these */
    int at_effects, at_cells, at_concentration; /* in theta */
    int at_count;                               /* in the complete-data statistic */
    int changed;                                /* by the current move */

    /* means of the numbers in each cell: now, next, and as the current move maps them */
    double *mean, *mean_next, *mean_mapped;

    /* workspace */
    struct {
        double *cell, *cell_new, *level, *shift; /* MAX_BLOCK */
    } block;
    double *weight, *share;          /* a cell; a level of each factor */
    double *expected;                /* a cell: joint_expect() */
    struct stick_standard *standard; /* a cell: of joint_find() */
    const double *count;             /* while theta is updated */
    double *gram, *cross, *draw;     /* (1 + dummies)^2; that times the numbers, twice */
};

struct glm_cells;

/* Factors. */
struct factors {
    int count, levels; /* `levels`: of all of them */
    struct factor *factor;
    const double *alpha; /* Dirichlet weights, factor after factor */
    double *weight;      /* and given the records */
    struct level_work work;
    double *level, *level_old; /* MAX_BLOCK */
};

/* Lone covariates. */
struct lones {
    int count, blocks, statistics;
    struct lone *lone;
    int at_complete; /* where their statistic is in the model's, which says so */
    struct {
        double draw, move, latent; /* of all of them, as model_costs has it */
    } costs;
    double *keep; /* MAX_BLOCK */
};

/* The design's columns, and how they follow from a record's. */
struct design {
    const double *column, *code;
    int coded;                /* are there codes? */
    struct products products; /* the last columns */
    double *dummy;            /* a MAX_BLOCK each, if there are codes */
    const double **of;
};

/* Workspace of the integral over mean and cov, rows of `stride`, which is padded. */
struct niw_marginal {
    int stride;
    double *precision;                     /* a row each */
    double *sweep, *distance, *sum;        /* 2 `stride`; `stride` each */
    double *prior_scale, *known_precision; /* NULL where cov is known; where it is not */
};

/* What several groups of records have in common (contract/model_pooled_scatter.h): `scale` is
 * Psi + Q, `minus` minus its inverse, rows as above; `weight` is W. `common`: mean and covariance
 * of all groups as theta has them, if they are drawn. */
struct pooled_covariates {
    int used, drawn;
    double *scale, *minus, *slope, *mean, *common;
    double kappa, weight, df, others;
};

struct covariates {
    int q; /* columns of the moments, and of the design */
    const double *centre;

    int normal;  /* continuous covariates */
    int *column; /* their columns in a record */
    int *moment; /* among the moments' columns */
    struct factors factors;
    struct lones lones;
    struct design design;
    struct model_levels of_levels; /* the model adds relevel() */
    struct joint *joint;           /* NULL: factors are independent of all else */
    struct glm_cells *table;       /* model/glm_as_table.c; NULL: records are not a table */

    const double *mean, *cov_chol; /* if known */
    struct niw prior, posterior;
    struct {
        const double *lower, *upper, *sd; /* of the mean, and the most that sd may be; NULL: none */
    } within;

    /* offsets in theta */
    int at_mean, at_chol, at_sticks, end;

    /* current parameter; matrices are dense row-major */
    double *mean_now, *chol;
    /* The current move's map of continuous covariates. */
    struct {
        int moves;
        double *matrix, *shift;
    } map;

    /* workspace */
    struct terms terms;
    struct niw_marginal marginal;
    struct model_pooled_scatter pooled_scatter;
    struct pooled_covariates pooled;
    struct {
        double *theta; /* on trial */
        int *visited;  /* its coordinates */
        double *width;
    } slice;
    struct {
        double *mean, *chol, *bartlett, *draw;
    } work;
    double **innovation; /* normal columns of MAX_BLOCK */
};

/* Reads the fields and describes theta: `blocks` blocks of the model's `own`, then
 * mean, cov, the probabilities of each factor, and the blocks of the lone ones. The own coordinates
 * and the covariates' are groups apart. */
int covariates_create(const struct fields *fields, int blocks, const struct theta_block *own,
                      struct model *model, struct covariates *cov);

void covariates_rprior(struct covariates *cov, struct rng *rng, double *theta);
double covariates_dprior(struct covariates *cov, const double *theta);
/* adds the gradient of covariates_dprior() */
void covariates_prior_gradient(struct covariates *cov, const double *theta, double *gradient);

/* Mean and lower Cholesky factor, rows of `width`, zeros above the diagonal, of
 * the continuous ones under theta. */
void covariates_distribution(const struct covariates *cov, const double *theta, int width,
                             double *mean, double *chol);

/* The gradient in theta, added, from slopes in these, `chol` among them. */
void covariates_pull_distribution(const struct covariates *cov, int width, const double *chol,
                                  const double *slope_mean, const double *slope_chol,
                                  double *gradient);

/* As the model's hooks of these names, covariates' columns only. */
void covariates_set(struct covariates *cov, const double *theta);
void covariates_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                        const double *const *x, double *const *x_new);
/* rho times the old continuous ones, the rest fresh from normal innovations z;
 * with rho = 0 the old records are not looked at. */
void covariates_form(struct covariates *cov, double rho, int m, const double *const *z,
                     const double *const *x, double *const *x_new);
/* As the model's hook relevel(), covariates' columns only; of cells where factors depend on each
 * other. */
void covariates_relevel(struct covariates *cov, int factor, int from, int to, int m,
                        const double *const *x, double *const *x_new);

/* By how much a linear predictor with these coefficients of the moments' columns changes. */
double covariates_effect(const struct covariates *cov, int factor, int from, int to,
                         const double *coefficient);
void covariates_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                         int *changed);
void covariates_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                     double *const *x_new);

/* out[i] += the log density of the continuous ones of record i, up to a constant. */
void covariates_add_density(struct covariates *cov, int m, const double *const *x, double *out);

/* The moments' columns of a block: codes of a factor become dummies, and products are made. They
 * last until the next call. */
const double *const *covariates_design(struct covariates *cov, int m, const double *const *x);

/* Adds the statistic of the lone ones, where at_complete says. */
void covariates_add_latent(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                           double *c);

/* The covariates' part of theta given the records' moments, and that statistic; `cut`: under the
 * prior as it is cut off, if it is. */
int covariates_update(struct covariates *cov, const struct moments *moments, const double *c,
                      double n, int cut, struct rng *rng, double *theta);
int covariates_is_cut(const struct covariates *cov);

/* Mean and covariance from that distribution; its log density in theta's coordinates; do they lie
 * where the prior lets them? And the covariance's factor, dense. */
void covariates_draw_niw(struct covariates *cov, const struct niw *niw, struct rng *rng,
                         double *theta);
double covariates_niw_density(struct covariates *cov, const struct niw *niw, const double *theta);
int covariates_is_within(struct covariates *cov, const double *theta);
void covariates_unpack(const struct covariates *cov, const double *theta, double *chol);

/* places among a block's coordinates, see contract/coordinates.h */
static inline int covariates_packed(int i, int j) { return i * (i + 1) / 2 + j; }

/* Log of the integral over their part of theta, as the model's hook; adds to the
 * gradient. Where there are no lone ones. */
double covariates_marginal(struct covariates *cov, const double *c, double n, double *gradient);
/* What that leaves out and depends on n alone, of the continuous ones. */
double covariates_marginal_size(const struct covariates *cov, double n);

/* The capability, for models whose struct the covariates stand first in; NULL where mean or
 * covariance are known, their prior is truncated, or means depend on factors. */
const struct model_pooled_scatter *covariates_offer_pooled(struct covariates *cov);

#endif
