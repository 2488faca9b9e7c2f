/* Model "glm": the response y has a distribution of one of the families of model/family_classes.c
 * given the linear predictor eta = beta_0 + beta' x; covariates as in model/covariates_normal.c.
 *
 * A record has the columns y, then its covariates. Internally the regression is
 * centred at a fixed public point, as in model/lm.c: eta = alpha + sum beta_j
 * (x_j - c_j), over columns of the design, products and powers of covariates among them, and
 * offsets (model/derived_columns.c).
 *
 * theta: alpha, slopes (k of them) | log of the coefficient of variation, where the family has one
 * | the covariates' part. Known values stay fixed.
 *
 * Innovations: y is a quantile at u, uniform.
 *
 * Update: no statistic of the records has a conjugate one. Where the family has latent variables
 * that give each record a weight omega and a pseudo-response kappa,
 *   beta | omega, kappa ~ N(V (Z' kappa + P b), V), V = (Z' Omega Z + P)^-1,
 * for the prior N(b, P^-1); so add_latent() draws omega and kappa, and sums omega z z' and
 * kappa z. Otherwise the coefficients have Newton proposals, or walk (mcmc/theta_metropolis.c).
 *
 * Complete-data statistic: moments of y, clamped, and the design (base/block.h), then the upper
 * triangle of Z' Omega Z, row by row, then Z' kappa if kappa is not y - 1/2 (minus omega o with
 * offsets o), then the statistics of lone covariates. Cost O(k^2), a draw of y and one of the
 * latent variables per record, O(k^3) per update.
 */
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model_density.h"
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_predictor.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "model/covariates.h"
#include "model/covariates_joint.h"
#include "model/family.h"
#include "model/glm_as_table.h"
#include "model/scale_prior.h"

/* A parameter, its intercept natural, and the linear predictor there, MAX_BLOCK. */
struct glm_place {
    double *theta, intercept, *eta;
};

struct glm {
    struct covariates cov; /* first */
    int columns;           /* of a record */
    int k;                 /* coefficients */
    int at_omega, at_kappa;
    struct predictor predictor;
    struct moments moments;
    struct family *family;
    int latent; /* does the family give the update? */
    int pseudo; /* with sums of kappa z of its own */
    struct {
        int at;                   /* in theta; 0: there is none */
        struct scale_prior prior; /* unless it is known */
        const double *known;
        double log_known;
    } cv;
    const double *beta, *beta_mean, *beta_precision; /* centred coordinates */
    struct model_density density;
    struct model_predictor tied;

    struct glm_place now, next; /* next: that a move goes to */
    /* workspace */
    double *gram, *solution;
    double *u, *omega, *kappa, *weighted; /* MAX_BLOCK */
    int *changed;
    const double **moved, **seen; /* columns of a record, and of the design */
};

static double natural_intercept(const struct glm *s, const double *theta) {
    return predictor_intercept(&s->predictor, theta);
}

/* of an iteration where records have products, or lone covariates: autocorrelations fall the slower
 * the longer the lag */
enum { LEAST_ROUNDS = 4 };

/* ---- set-up ------------------------------------------------------------- */

/* where the only predictor's coefficients begin */
static const int first[] = {0};

static void cell_logs(void *self, const double *eta, double *log_p, double *slope) {
    const struct family *family = self;
    family->class->logs(*eta, log_p, slope);
}

/* ---- prior -------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    struct glm *s = self;
    const int k = s->k;
    if (!s->beta) {
        memcpy(s->gram, s->beta_precision, (size_t)k * (size_t)k * sizeof(double));
        (void)linalg_cholesky(k, s->gram); /* checked in R */
        dist_normal_precision(rng, k, s->beta_mean, 1, s->gram, theta);
    }
    if (s->cv.at && !s->cv.known) theta[s->cv.at] = scale_prior_draw(&s->cv.prior, rng);
    covariates_rprior(&s->cov, rng, theta);
}

static double dprior(void *self, const double *theta) {
    struct glm *s = self;
    double log_density = covariates_dprior(&s->cov, theta);
    if (!s->beta)
        log_density -= 0.5 * linalg_quadratic(s->k, s->beta_precision, theta, s->beta_mean);
    if (s->cv.at && !s->cv.known)
        log_density += scale_prior_density(&s->cv.prior, theta[s->cv.at], NULL);
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    struct glm *s = self;
    const int k = s->k;
    covariates_prior_gradient(&s->cov, theta, gradient);
    if (s->cv.at && !s->cv.known) {
        double slope;
        (void)scale_prior_density(&s->cv.prior, theta[s->cv.at], &slope);
        gradient[s->cv.at] += slope;
    }
    for (int i = 0; !s->beta && i < k; ++i)
        for (int j = 0; j < k; ++j)
            gradient[i] -= s->beta_precision[(size_t)i * k + j] * (theta[j] - s->beta_mean[j]);
}

static double tied_prior(void *self, const double *theta, double *gradient) {
    struct glm *s = self;
    const int k = s->k;
    double square = 0;
    for (int i = 0; i < k; ++i) {
        double sum = 0;
        for (int j = 0; j < k; ++j)
            sum += s->beta_precision[(size_t)i * k + j] * (theta[j] - s->beta_mean[j]);
        gradient[i] = -sum;
        square += (theta[i] - s->beta_mean[i]) * sum;
    }
    return -0.5 * square;
}

static void tied_means(void *self, double centre, double sd, double *mean, double *square) {
    const struct glm *s = self;
    const struct family_class *family = s->family->class;
    family->means(s->family, centre, sd, mean);
    if (family->squares)
        family->squares(s->family, centre, sd, square);
    else
        memcpy(square, mean, 3 * sizeof(double));
}

static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_tied) {
    struct glm *s = self;
    memset(gradient_c, 0, (size_t)s->at_omega * sizeof(double));
    return covariates_marginal(&s->cov, c, n, gradient_c) +
           (s->beta ? 0 : tied_prior(s, theta, gradient_tied));
}

/* ---- records ------------------------------------------------------------ */

/* narrower distributions cannot be distinguished */
static const double MOST_SHAPE = 1e10;

static double shape_of(const struct glm *s, const double *theta) {
    return s->cv.at ? fmin(exp(-2 * theta[s->cv.at]), MOST_SHAPE) : 0;
}

static void set(void *self, const double *theta) {
    struct glm *s = self;
    s->family->shape = shape_of(s, theta);
    memcpy(s->now.theta, theta, (size_t)s->cov.end * sizeof(double));
    s->now.intercept = natural_intercept(s, theta);
    covariates_set(&s->cov, theta);
}

static void linear_predictor(struct glm *s, const struct glm_place *at, int m,
                             const double *const *design, double *eta) {
    predictor_eval(&s->predictor, at->theta, at->intercept, m, design, eta);
}

/* y at next.eta and the shape of that theta, u its innovation where it is not held fixed, see
 * model/family.h */
static void respond(struct glm *s, struct rng *rng, double keep, int m, const double *theta_new,
                    const double *y, double *y_new) {
    rng_fill_uniform(rng, m, s->u);
    s->family->shape_new = shape_of(s, theta_new);
    s->family->class->respond(s->family, rng, m, keep, s->u, s->now.eta, y, s->next.eta, y_new);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct glm *s = self;
    covariates_refresh(&s->cov, 0, rng, m, NULL, x);
    const double *const *design = covariates_design(&s->cov, m, (const double *const *)x);
    linear_predictor(s, &s->now, m, design, s->next.eta);
    rng_fill_uniform(rng, m, s->u);
    s->family->class->draw(s->family, rng, m, s->u, s->next.eta, x[0]);
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct glm *s = self;
    covariates_refresh(&s->cov, rho, rng, m, x, x_new);
    linear_predictor(s, &s->now, m, covariates_design(&s->cov, m, x), s->now.eta);
    const double *const *design = covariates_design(&s->cov, m, (const double *const *)x_new);
    linear_predictor(s, &s->now, m, design, s->next.eta);
    respond(s, rng, rho, m, s->now.theta, x[0], x_new[0]);
}

/* ---- non-centred move --------------------------------------------------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct glm *s = self;
    memcpy(s->next.theta, theta_new, (size_t)s->cov.end * sizeof(double));
    s->next.intercept = natural_intercept(s, theta_new);
    covariates_set_move(&s->cov, s->now.theta, theta_new, changed);
    changed[0] = 1;
    memcpy(s->changed, changed, (size_t)s->columns * sizeof(int));
}

/* the moved covariates lie partly in x, partly in x_new */
static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct glm *s = self;
    covariates_move(&s->cov, rng, m, x, x_new);
    linear_predictor(s, &s->now, m, covariates_design(&s->cov, m, x), s->now.eta);
    for (int v = 0; v < s->columns; ++v) s->moved[v] = s->changed[v] ? x_new[v] : x[v];
    linear_predictor(s, &s->next, m, covariates_design(&s->cov, m, s->moved), s->next.eta);
    respond(s, rng, 1, m, s->next.theta, x[0], x_new[0]);
}

static void relevel(void *self, struct rng *rng, int factor, int from, int to, int m,
                    const double *const *x, double *const *x_new) {
    struct glm *s = self;
    covariates_relevel(&s->cov, factor, from, to, m, x, x_new);
    linear_predictor(s, &s->now, m, covariates_design(&s->cov, m, x), s->now.eta);
    if (s->predictor.derived || s->cov.joint) {
        const double *const *design = covariates_design(&s->cov, m, (const double *const *)x_new);
        linear_predictor(s, &s->now, m, design, s->next.eta);
    } else {
        const double by = covariates_effect(&s->cov, factor, from, to, s->now.theta);
        FOR_RECORDS(i, m) s->next.eta[i] = s->now.eta[i] + by;
    }
    respond(s, rng, 1, m, s->now.theta, x[0], x_new[0]);
}

/* ---- complete-data statistic and its update ----------------------------- */

/* y as the bounds clamp it, where they do: moves of all records keep its values, and see its
 * products with what moves. */
static void add(void *self, int m, const double *const *x, double *c) {
    struct glm *s = self;
    const double *const *design = covariates_design(&s->cov, m, x);
    if (s->family->class->squares) {
        memcpy(s->seen, design, (size_t)s->moments.q * sizeof *s->seen);
        block_clamp(1, 0, s->family->lower, s->family->upper, m, x[0], s->kappa);
        s->seen[0] = s->kappa;
        design = s->seen;
    }
    moments_add(&s->moments, m, design, c);
    if (s->cov.joint) joint_add(&s->cov, m, x, c);
}

static void add_latent(void *self, struct rng *rng, int m, const double *const *x, double *c) {
    struct glm *s = self;
    covariates_add_latent(&s->cov, rng, m, x, c);
    if (!s->latent) return;
    const struct family_class *family = s->family->class;
    const double *const *design = covariates_design(&s->cov, m, x);
    linear_predictor(s, &s->now, m, design, s->now.eta);
    family->latent(s->family, rng, m, s->now.eta, x[0], s->omega, s->kappa);
    moments_centre(&s->moments, m, design);
    predictor_add_weighted(&s->predictor, &s->moments, m, s->omega, s->weighted, c + s->at_omega);
    if (!s->pseudo) return;
    if (!family->pseudo) FOR_RECORDS(i, m) s->kappa[i] = x[0][i] - 0.5;
    if (s->predictor.offsets > 0) {
        predictor_offsets(&s->predictor, m, design, s->next.eta);
        FOR_RECORDS(i, m) s->kappa[i] -= s->omega[i] * s->next.eta[i];
    }
    predictor_add_sums(&s->predictor, &s->moments, m, s->kappa, c + s->at_kappa);
}

static double log_density(void *self, int m, const double *const *x) {
    struct glm *s = self;
    linear_predictor(s, &s->now, m, covariates_design(&s->cov, m, x), s->now.eta);
    return s->family->class->log_density(s->family, m, s->now.eta, x[0]);
}

/* kappa and omega: slopes in eta, and the information about it */
static double curve(void *self, int m, const double *const *x, double *gradient, double *matrix) {
    struct glm *s = self;
    const int k = s->k, shaped = s->cv.at && !s->cv.known, size = k + shaped;
    const double *const *design = covariates_design(&s->cov, m, x), *sum = s->gram;
    double of_cv[2] = {0};
    linear_predictor(s, &s->now, m, design, s->now.eta);
    const double log_density =
        s->family->class->curve(s->family, m, s->now.eta, x[0], s->kappa, s->omega, of_cv);
    moments_centre(&s->moments, m, design);
    predictor_add_sums(&s->predictor, &s->moments, m, s->kappa, gradient);
    memset(s->gram, 0, (size_t)k * (size_t)k * sizeof(double));
    predictor_add_weighted(&s->predictor, &s->moments, m, s->omega, s->weighted, s->gram);
    for (int i = 0; i < k; ++i)
        for (int j = i; j < k; ++j) matrix[(size_t)j * size + i] += *sum++;
    if (shaped) {
        gradient[k] += of_cv[0];
        matrix[(size_t)size * size - 1] += of_cv[1];
    }
    return log_density;
}

/* A step in log cv that is small relative to the spread of its priors, and the least precision of a
 * proposal in it: where cv is near 0, neither records nor prior tell. */
static const double CV_STEP = 1e-3, LEAST_PRECISION = 0.25;

static void prior_curve(void *self, const double *theta, double *gradient, double *matrix) {
    struct glm *s = self;
    const int k = s->k, shaped = s->cv.at && !s->cv.known, size = k + shaped;
    (void)tied_prior(s, theta, gradient);
    memset(matrix, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < k; ++i)
        for (int j = 0; j <= i; ++j)
            matrix[(size_t)i * size + j] = s->beta_precision[(size_t)i * k + j];
    if (!shaped) return;
    double before, after;
    (void)scale_prior_density(&s->cv.prior, theta[k] - CV_STEP, &before);
    (void)scale_prior_density(&s->cv.prior, theta[k] + CV_STEP, &after);
    (void)scale_prior_density(&s->cv.prior, theta[k], gradient + k);
    matrix[(size_t)size * size - 1] = fmax((before - after) / (2 * CV_STEP), LEAST_PRECISION);
}

static int update_coefficients(struct glm *s, const double *c, double n, struct rng *rng,
                               double *theta) {
    const int k = s->k;
    const double *weighted = c + s->at_omega;
    for (int i = 0; i < k; ++i) {
        /* Z'(y - 1/2); column 0 of the moments is y, of Z the constant */
        if (s->pseudo)
            s->solution[i] = c[s->at_kappa + i];
        else if (i == 0)
            s->solution[i] = c[0] - 0.5 * n;
        else {
            const int v = s->predictor.column[i];
            s->solution[i] = moments_product(&s->moments, c, 0, v) - 0.5 * c[v];
        }
        for (int j = 0; j < k; ++j)
            s->solution[i] += s->beta_precision[(size_t)i * k + j] * s->beta_mean[j];
        for (int j = i; j < k; ++j)
            s->gram[(size_t)j * k + i] = s->beta_precision[(size_t)j * k + i] + *weighted++;
    }
    if (linalg_cholesky(k, s->gram)) return PLUGIN_NUMERICAL;
    linalg_forward(k, s->gram, s->solution);
    linalg_backward(k, s->gram, s->solution);
    dist_normal_precision(rng, k, s->solution, 1, s->gram, theta);
    return PLUGIN_OK;
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct glm *s = self;
    const int status = s->latent ? update_coefficients(s, c, n, rng, theta) : PLUGIN_OK;
    if (status != PLUGIN_OK) return status;
    return covariates_update(&s->cov, &s->moments, c, n, 1, rng, theta);
}

/* ---- as a table: model/glm_as_table.c ------------------------------------------------- */

static void prior_information(void *self, const double *theta, int rows, double *matrix) {
    const struct glm *s = self;
    const size_t size = (size_t)rows, k = (size_t)s->k;
    (void)theta;
    for (size_t i = 0; i < k; ++i)
        for (size_t j = 0; j <= i; ++j) matrix[i * size + j] = s->beta_precision[i * k + j];
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_prior smooth_prior_hooks = {.dprior = dprior,
                                                      .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add, .add_latent = add_latent};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_marginal marginal_hooks = {.marginal = marginal};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static void offer_records(struct glm *s, int by_records, struct model *model) {
    model->prior = by_records || s->cov.joint ? &prior_hooks : &smooth_prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->refresh = &refresh_hooks;
    model->move = &move_hooks;
    s->density.curve = curve;
    s->density.prior_curve = prior_curve;
    if (!by_records) model->marginal = &marginal_hooks;
    s->tied = (struct model_predictor){.tied = s->k,
                                       .ties = 1,
                                       .tie_constant = first,
                                       .tie_slopes = first,
                                       .shape = s->cv.known ? 0 : s->cv.at,
                                       .tied_prior = tied_prior,
                                       .tied_means = tied_means};
    if (!s->beta && !covariates_is_cut(&s->cov) && !by_records) model->predictor = &s->tied;
}

/* A binary response and factors alone, their coefficients unknown; complete-data statistic: the
 * counts of the cells. */
static int offer_cells(struct glm *s, double cells, struct model *model) {
    const struct cell_response response = {.self = s->family,
                                           .levels = 2,
                                           .columns = 1,
                                           .predictors = 1,
                                           .constant = first,
                                           .slopes = first,
                                           .logs = cell_logs,
                                           .prior = &smooth_prior_hooks,
                                           .prior_information = prior_information};
    return glm_cells_create(&s->cov, &s->predictor, &response, cells, model);
}

static int create(const struct fields *fields, struct model *model) {
    struct glm *s = plugin_memory(1, sizeof *s);
    const int q = fields_length(fields, "centre");
    int status = predictor_read(fields, q, 1, fields_vector(fields, "centre", q), &s->predictor);
    if (status != PLUGIN_OK) return status;
    const int k = s->predictor.k;
    s->k = k;
    s->beta = fields_vector(fields, "beta", k);
    s->beta_mean = fields_vector(fields, "beta_mean", k);
    s->beta_precision = fields_vector(fields, "beta_precision", k * k);
    const double *columns = fields_vector(fields, "columns", 1);
    s->family = family_create(fields);
    if (!columns || !s->family || !(s->beta || (s->beta_mean && s->beta_precision)))
        return PLUGIN_BAD_FIELDS;
    const int shaped = s->family->class->shaped;
    s->cv.known = fields_vector(fields, "cv", 1);
    if (s->cv.known) s->cv.log_known = log(*s->cv.known);
    if (shaped && !s->cv.known && scale_prior_read(fields, &s->cv.prior) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    const struct theta_block own[] = {
        {.name = "coefficients",
         .transform = TRANSFORM_CENTRE,
         .size = k,
         .centre = s->predictor.shift,
         .expand = s->predictor.expand,
         .collect = s->predictor.collect,
         .known = s->beta},
        {.name = "cv",
         .transform = TRANSFORM_LOG,
         .size = 1,
         .known = s->cv.known ? &s->cv.log_known : NULL},
    };
    status = covariates_create(fields, 1 + shaped, own, model, &s->cov);
    if (status != PLUGIN_OK) return status;
    s->cov.of_levels.relevel = relevel;
    s->cv.at = shaped ? k : 0;

    s->moments = moments_new(q, s->cov.centre);
    DOUBLES((size_t)s->cov.end, &s->now.theta, &s->next.theta);
    s->gram = doubles((size_t)k * (size_t)k);
    s->solution = doubles((size_t)k);
    DOUBLES(MAX_BLOCK, &s->now.eta, &s->next.eta, &s->u, &s->omega, &s->kappa, &s->weighted);
    s->at_omega = moments_size(q);
    s->columns = (int)*columns;
    s->changed = plugin_memory((size_t)s->columns, sizeof(int));
    s->moved = plugin_memory((size_t)s->columns, sizeof(double *));
    s->seen = plugin_memory((size_t)q, sizeof(double *));

    model->self = s;
    s->density.log_density = log_density;
    model->density = &s->density;
    model->columns = s->columns;
    const struct family_class *family = s->family->class;
    s->latent = !s->beta && family->latent;
    s->at_kappa = s->at_omega + (s->latent ? k * (k + 1) / 2 : 0);
    s->pseudo = family->pseudo || s->predictor.offsets > 0;
    s->cov.lones.at_complete = s->at_kappa + (s->latent && s->pseudo ? k : 0);
    model->complete = s->cov.lones.at_complete + s->cov.lones.statistics;
    /* in units of a normal, an exponential function among them */
    model->costs.latent = (s->latent ? family->cost_latent : 0) + s->cov.lones.costs.latent;
    model->costs.move =
        model->columns + 4 + 2 * family->cost + family->cost_move + s->cov.lones.costs.move;
    if (family->cost + s->cov.lones.costs.draw > 0)
        model->costs.records = model->columns + family->cost + s->cov.lones.costs.draw;
    if (!s->beta && !family->latent) {
        s->density.walked = k + (shaped && !s->cv.known);
        model->costs.density = 1 + 0.2 * k + (shaped ? 3 : 0);
    }
    const int by_records = s->cov.lones.count > 0 || s->predictor.derived;
    model->rounds = by_records && !s->beta ? LEAST_ROUNDS : 0;
    if (s->cov.joint) joint_complete(&s->cov, model);
    const double *cells = fields_vector(fields, "cells", 1);
    if (cells) return offer_cells(s, *cells, model);
    offer_records(s, by_records, model);
    return PLUGIN_OK;
}

const struct model_class model_glm = {
    .name = "glm",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
