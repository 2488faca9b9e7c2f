/* Model "lm": y = beta_0 + beta' x + N(0, sigma^2), covariates as in
 * model/covariates_normal.c.
 *
 * A record has the columns y, x_1..x_p. Internally the regression is centred at a fixed public
 * point (the middle of the bounds): y - c_y = alpha + sum beta_j (x_j - c_j) + e. That keeps the
 * complete-data statistic free of cancellation when bounds lie far from zero, and alpha nearly
 * uncorrelated with the slopes. R transforms the priors, and `report` transforms the draws.
 *
 * Where the covariates depend on each other (model/covariates_joint.c), y keeps its residual
 * about the linear predictor of the record as it becomes, whatever of the record changes.
 *
 * The regressors are the covariates, and possibly products and powers of them
 * (model/derived_columns.c): then y is normal given the covariates, but the records are not.
 *
 * Errors may have a Student-t distribution (model/lm_errors.c): then the records must be imputed.
 *
 * theta: alpha, slopes (k of them) | log sigma | log df of such errors | the covariates' part.
 * Known values stay fixed.
 *
 * Complete-data statistic: moments of all columns (base/block.h), then the statistics of lone
 * covariates. Updates are conjugate (normal-inverse-gamma, normal given sigma,
 * normal-inverse-Wishart), except for sigma under other priors (model/scale_prior.c), and
 * Student-t coefficients: these are a scale mixture of normals, whose weights are drawn given the
 * coefficients, then the coefficients given the weights. Both leave p(theta | c) invariant. Cost
 * O(k^2) per record, O(k^3) per update.
 */
#include "model/lm_parts.h"

#include "model/covariates_joint.h"

#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_record.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

/* a gamma variable, in random normals */
static const double GAMMA_COST = 6;

/* with Student-t errors: df has an autocorrelation that falls the slower the longer the lag */
enum { LEAST_ROUNDS = 4 };

static double natural_intercept(const struct lm *lm, const double *theta) {
    return predictor_intercept(&lm->predictor, theta);
}

/* ---- set-up ------------------------------------------------------------- */

static void prepare_derived(struct lm *lm) {
    DOUBLES(MAX_BLOCK, &lm->eta, &lm->eta_new);
    lm->move.theta = doubles((size_t)lm->k);
    lm->move.changed = plugin_memory((size_t)lm->p + 1, sizeof *lm->move.changed);
    lm->move.moved = plugin_memory((size_t)lm->p + 1, sizeof *lm->move.moved);
}

static int read_errors(const struct fields *fields, struct lm *lm) {
    if (fields_length(fields, "errors_df") <= 0 && fields_length(fields, "errors_df_gamma") <= 0)
        return PLUGIN_OK;
    lm->errors = plugin_memory(1, sizeof *lm->errors);
    return errors_read(fields, lm->errors);
}

/* ---- prior -------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    struct lm *lm = self;
    const int k = lm->k;
    if (!lm->sigma.known) theta[lm->sigma.at] = scale_prior_draw(&lm->sigma.prior, rng);
    if (lm->errors && !lm->errors->known)
        theta[lm->errors->at] = errors_draw_log_df(lm->errors, rng);
    if (lm->beta.prior == BETA_STUDENT) {
        lm_student_draw(lm, rng, theta);
    } else if (!lm->beta.known) {
        memcpy(lm->gram, lm->beta.precision, (size_t)k * (size_t)k * sizeof(double));
        (void)linalg_cholesky(k, lm->gram); /* checked in R */
        const double scale = lm->beta.prior == BETA_NIG ? exp(theta[lm->sigma.at]) : 1;
        dist_normal_precision(rng, k, lm->beta.mean, scale, lm->gram, theta);
    }
    covariates_rprior(&lm->cov, rng, theta);
}

/* In the coordinates of theta: d sigma^2 = 2 sigma^2 d log sigma. */
static double dprior(void *self, const double *theta) {
    struct lm *lm = self;
    const double log_sigma = theta[lm->sigma.at];
    double log_density = covariates_dprior(&lm->cov, theta);
    if (lm->beta.prior == BETA_STUDENT) {
        log_density += lm_student_density(lm, theta);
    } else if (lm->beta.prior != BETA_KNOWN) {
        const double square = linalg_quadratic(lm->k, lm->beta.precision, theta, lm->beta.mean);
        if (lm->beta.prior == BETA_NIG)
            log_density -= lm->k * log_sigma + 0.5 * exp(-2 * log_sigma) * square;
        else
            log_density -= 0.5 * square;
    }
    if (!lm->sigma.known) log_density += scale_prior_density(&lm->sigma.prior, log_sigma, NULL);
    if (lm->errors && !lm->errors->known)
        log_density += errors_dprior(lm->errors, theta[lm->errors->at]);
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    struct lm *lm = self;
    const int k = lm->k;
    covariates_prior_gradient(&lm->cov, theta, gradient);
    if (lm->beta.prior == BETA_STUDENT) {
        lm_student_gradient(lm, theta, gradient);
    } else if (lm->beta.prior != BETA_KNOWN) {
        const double scale = exp(-2 * theta[lm->sigma.at]);
        const double weight = lm->beta.prior == BETA_NIG ? scale : 1;
        double square = 0;
        for (int i = 0; i < k; ++i) {
            const double *row = lm->beta.precision + (size_t)i * k;
            double sum = 0;
            for (int j = 0; j < k; ++j) sum += row[j] * (theta[j] - lm->beta.mean[j]);
            gradient[i] -= weight * sum;
            square += (theta[i] - lm->beta.mean[i]) * sum;
        }
        if (lm->beta.prior == BETA_NIG) gradient[lm->sigma.at] += scale * square - k;
    }
    if (lm->sigma.known) return;
    double slope;
    (void)scale_prior_density(&lm->sigma.prior, theta[lm->sigma.at], &slope);
    gradient[lm->sigma.at] += slope;
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct lm *lm = self;
    memcpy(lm->theta, theta, (size_t)lm->cov.end * sizeof(double));
    lm->intercept = natural_intercept(lm, theta);
    lm->sigma.now = exp(theta[lm->sigma.at]);
    if (lm->errors) lm->errors->df = exp(theta[lm->errors->at]);
    covariates_set(&lm->cov, theta);
}

/* Without the response's residual; derived regressors. */
static void predict(struct lm *lm, const double *theta, double intercept, int m,
                    const double *const *x, double *eta) {
    predictor_eval(&lm->predictor, theta, intercept, m, covariates_design(&lm->cov, m, x), eta);
}

/* y_new = eta_new + keep (y - eta) + fresh z */
static void respond_derived(struct lm *lm, double keep, double fresh, int m, const double *z,
                            const double *y, double *y_new) {
    terms_clear(&lm->terms);
    terms_add(&lm->terms, 1, lm->eta_new);
    terms_add(&lm->terms, fresh, z);
    terms_add(&lm->terms, keep, y);
    terms_add(&lm->terms, -keep, lm->eta);
    terms_sum(&lm->terms, 0, m, y_new);
}

/* y's residual as the covariates: rho times the old one plus the fresh one z. With
 * rho = 0 the old records are not looked at. */
static void respond(struct lm *lm, double rho, int m, const double *z, const double *const *x,
                    double *const *x_new) {
    const double *slope = lm->theta;
    if (lm->follows) {
        if (rho != 0) predict(lm, lm->theta, lm->intercept, m, x, lm->eta);
        predict(lm, lm->theta, lm->intercept, m, (const double *const *)x_new, lm->eta_new);
        respond_derived(lm, rho, sqrt(1 - rho * rho) * lm->sigma.now, m, z, rho != 0 ? x[0] : NULL,
                        x_new[0]);
        return;
    }
    terms_clear(&lm->terms);
    terms_add(&lm->terms, sqrt(1 - rho * rho) * lm->sigma.now, z);
    for (int v = 1; v < lm->k; ++v) terms_add(&lm->terms, slope[v], x_new[v]);
    if (rho != 0) {
        terms_add(&lm->terms, rho, x[0]);
        for (int v = 1; v < lm->k; ++v) terms_add(&lm->terms, -rho * slope[v], x[v]);
    }
    terms_sum(&lm->terms, (1 - rho) * lm->intercept, m, x_new[0]);
}

/* `innovation` as errors have it, with the weights of the old records where these matter */
static void refresh_errors(struct lm *lm, double rho, struct rng *rng, int m,
                           const double *const *x) {
    if (rho == 0) {
        errors_fresh(lm->errors, rng, m, lm->innovation);
        return;
    }
    predict(lm, lm->theta, lm->intercept, m, x, lm->eta);
    errors_refresh(lm->errors, rng, lm->sigma.now, m, lm->eta, x[0], lm->innovation);
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct lm *lm = self;
    covariates_refresh(&lm->cov, rho, rng, m, x, x_new);
    rng_fill_normal(rng, m, lm->innovation);
    if (lm->errors) refresh_errors(lm, rho, rng, m, x);
    respond(lm, rho, m, lm->innovation, x, x_new);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    refresh(self, 0, rng, m, NULL, x);
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    struct lm *lm = self;
    covariates_form(&lm->cov, 0, m, z, NULL, x);
    respond(lm, 0, m, z[lm->p], NULL, x);
}

/* of y given the covariates, and of these */
static void record_density(void *self, int m, const double *const *x, double *out) {
    struct lm *lm = self;
    const double precision = 1 / (lm->sigma.now * lm->sigma.now);
    double *eta = lm->innovation;
    if (lm->predictor.derived) {
        predict(lm, lm->theta, lm->intercept, m, x, eta);
    } else {
        terms_clear(&lm->terms);
        for (int v = 1; v < lm->k; ++v) terms_add(&lm->terms, lm->theta[v], x[v]);
        terms_sum(&lm->terms, lm->intercept, m, eta);
    }
    const double *y = x[0];
    FOR_RECORDS(i, m) out[i] = -0.5 * precision * (y[i] - eta[i]) * (y[i] - eta[i]);
    covariates_add_density(&lm->cov, m, x, out);
}

/* ---- non-centred move: y' = mu'(x') + (sigma' / sigma)(y - mu(x)) where x'
 *      are the moved covariates: affine in the old columns, but for dummies
 *      that change --------------------------------------------------------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct lm *lm = self;
    struct covariates *cov = &lm->cov;
    covariates_set_move(cov, lm->theta, theta_new, changed);
    changed[0] = 1;

    const double ratio = exp(theta_new[lm->sigma.at] - lm->theta[lm->sigma.at]);
    if (lm->errors) errors_set_next(lm->errors, theta_new[lm->errors->at]);
    if (lm->follows) {
        lm->move.y[0] = ratio;
        memcpy(lm->move.theta, theta_new, (size_t)lm->k * sizeof(double));
        lm->move.intercept = natural_intercept(lm, theta_new);
        memcpy(lm->move.changed, changed, ((size_t)lm->p + 1) * sizeof(int));
        return;
    }
    const double *slope_new = theta_new, *slope = lm->theta;
    lm->move.y[0] = ratio;
    lm->move.y_shift = natural_intercept(lm, theta_new) - ratio * lm->intercept;
    for (int v = 1; v < lm->k; ++v) {
        lm->move.y[v] = (changed[v] ? 0 : slope_new[v]) - ratio * slope[v];
        lm->move.y_dummy[v] = changed[v] ? slope_new[v] : 0;
    }
    if (!cov->map.moves) return;
    for (int i = 0; i < cov->normal; ++i) {
        const double b = slope_new[cov->column[i]];
        lm->move.y_dummy[cov->column[i]] = 0;
        lm->move.y_shift += b * cov->map.shift[i];
        for (int j = 0; j <= i; ++j)
            lm->move.y[cov->column[j]] += b * cov->map.matrix[(size_t)i * cov->normal + j];
    }
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct lm *lm = self;
    covariates_move(&lm->cov, rng, m, x, x_new);
    if (lm->follows) {
        predict(lm, lm->theta, lm->intercept, m, x, lm->eta);
        for (int v = 1; v <= lm->p; ++v) lm->move.moved[v] = lm->move.changed[v] ? x_new[v] : x[v];
        lm->move.moved[0] = x[0];
        predict(lm, lm->move.theta, lm->move.intercept, m, lm->move.moved, lm->eta_new);
        if (lm->errors) {
            errors_move(lm->errors, rng, lm->sigma.now, lm->move.y[0], m, lm->eta, lm->eta_new,
                        x[0], x_new[0]);
            return;
        }
        respond_derived(lm, lm->move.y[0], 0, m, NULL, x[0], x_new[0]);
        return;
    }
    terms_clear(&lm->terms);
    for (int v = 0; v < lm->k; ++v) terms_add(&lm->terms, lm->move.y[v], x[v]);
    for (int v = 1; v < lm->k; ++v) terms_add(&lm->terms, lm->move.y_dummy[v], x_new[v]);
    terms_sum(&lm->terms, lm->move.y_shift, m, x_new[0]);
}

/* y keeps its residual */
static void relevel(void *self, struct rng *rng, int factor, int from, int to, int m,
                    const double *const *x, double *const *x_new) {
    struct lm *lm = self;
    (void)rng;
    covariates_relevel(&lm->cov, factor, from, to, m, x, x_new);
    if (lm->follows) {
        predict(lm, lm->theta, lm->intercept, m, x, lm->eta);
        predict(lm, lm->theta, lm->intercept, m, (const double *const *)x_new, lm->eta_new);
        respond_derived(lm, 1, 0, m, NULL, x[0], x_new[0]);
        return;
    }
    const double by = covariates_effect(&lm->cov, factor, from, to, lm->theta);
    FOR_RECORDS(i, m) x_new[0][i] = x[0][i] + by;
}

/* ---- complete-data statistic and its update ----------------------------- */

static void add(void *self, int m, const double *const *x, double *c) {
    struct lm *lm = self;
    moments_add(&lm->moments, m, covariates_design(&lm->cov, m, x), c);
    if (lm->cov.joint) joint_add(&lm->cov, m, x, c);
}

static const double *const *regressors(void *self, int m, const double *const *x) {
    struct lm *lm = self;
    return covariates_design(&lm->cov, m, x);
}

static void add_latent(void *self, struct rng *rng, int m, const double *const *x, double *c) {
    struct lm *lm = self;
    covariates_add_latent(&lm->cov, rng, m, x, c);
    if (!lm->errors) return;
    const double *const *design = covariates_design(&lm->cov, m, x);
    predictor_eval(&lm->predictor, lm->theta, lm->intercept, m, design, lm->eta);
    moments_centre(&lm->moments, m, design);
    errors_add(lm->errors, rng, &lm->predictor, &lm->moments, lm->sigma.now, m, lm->eta, x[0], c);
}

/* of Student-t errors, for their df */
static double log_density(void *self, int m, const double *const *x) {
    struct lm *lm = self;
    predict(lm, lm->theta, lm->intercept, m, x, lm->eta);
    return errors_log_density(lm->errors, lm->sigma.now, m, lm->eta, x[0]);
}

static int update(struct lm *lm, const double *c, double n, int cut, struct rng *rng,
                  double *theta) {
    const int status = lm_update_regression(lm, c, n, rng, theta);
    if (status != PLUGIN_OK) return status;
    return covariates_update(&lm->cov, &lm->moments, c, n, cut, rng, theta);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    return update(self, c, n, 1, rng, theta);
}

static int rtheta_uncut(void *self, const double *c, double n, struct rng *rng, double *theta) {
    return update(self, c, n, 0, rng, theta);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_prior smooth_prior_hooks = {.dprior = dprior,
                                                      .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_statistic latent_statistic_hooks = {.add = add, .add_latent = add_latent};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_update cut_update_hooks = {.rtheta = rtheta,
                                                     .rtheta_uncut = rtheta_uncut};
static const struct model_record record_hooks = {.record_density = record_density};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static void describe_errors(struct lm *lm, struct model *model) {
    model->rounds = LEAST_ROUNDS;
    model->costs.latent += GAMMA_COST + 0.1 * lm->k * lm->k;
    model->costs.records += GAMMA_COST;
    if (lm->errors->known) return;
    lm->walked = (struct model_density){
        .walked = 1, .walked_from = lm->errors->at, .log_density = log_density};
    model->density = &lm->walked;
    model->costs.density = 2;
    model->costs.move = lm->k + lm->cov.lones.costs.move + 3 * GAMMA_COST;
}

/* What is known of the totals of normal records. */
static void offer_normal(struct lm *lm, struct model *model) {
    const int normal = lm->cov.normal;
    int *order = plugin_memory((size_t)normal + 1, sizeof *order);
    memcpy(order, lm->cov.column, (size_t)normal * sizeof *order);
    lm->normal = (struct model_normal){.origin = lm->cov.centre,
                                       .order = order, /* y, column 0, is last */
                                       .distribution = lm_distribution};
    if (!lm->cov.joint) lm->normal.pull_distribution = lm_pull_distribution;
    if (lm->sigma.kept) lm->marginal.residual = lm->sigma.at;
    model->normal = &lm->normal;
}

/* With lone covariates or Student-t errors nothing integrates out, and records are not normal; with
 * derived regressors they are not, but given the covariates, y's parameters integrate out. */
static void offer(struct lm *lm, struct model *model) {
    const int k = lm->k, alone = lm->cov.lones.count == 0 && !lm->errors,
              joint = lm->cov.joint != NULL;
    const int normal = alone && !lm->predictor.derived;
    model->prior = normal && !joint ? &smooth_prior_hooks : &prior_hooks;
    model->statistic = alone ? &statistic_hooks : &latent_statistic_hooks;
    model->update = covariates_is_cut(&lm->cov) ? &cut_update_hooks : &update_hooks;
    model->refresh = &refresh_hooks;
    model->move = &move_hooks;
    if (normal && !lm->cov.design.coded) offer_normal(lm, model);
    if (normal && lm->cov.factors.count == 0) {
        lm->innovations = (struct model_innovations){
            .count = k, .kind = RNG_NORMAL, .from_innovations = from_innovations};
        model->innovations = &lm->innovations;
    }
    if (!alone) return;
    if (!joint) model->record = &record_hooks;
    struct model_marginal *of = &lm->marginal;
    int *kept = plugin_memory((size_t)k + 1, sizeof *kept);
    for (int j = 0; lm_reads_coefficients(lm) && j < k; ++j) kept[of->keeps++] = j;
    if (lm->sigma.kept) kept[of->keeps++] = lm->sigma.at;
    of->kept = kept;
    of->marginal = lm_marginal;
    if (normal && !joint) of->marginal_size = lm_marginal_size;
    if (normal) of->pooled = covariates_offer_pooled(&lm->cov);
    if (!normal) {
        of->regressors = regressors;
        of->moments = lm->moments.q;
    }
    model->marginal = of;
}

static int create(const struct fields *fields, struct model *model) {
    struct lm *lm = plugin_memory(1, sizeof *lm);
    const int q = fields_length(fields, "centre");
    int status = predictor_read(fields, q, 1, fields_vector(fields, "centre", q), &lm->predictor);
    if (status != PLUGIN_OK) return status;
    const int k = lm->predictor.k, derived = lm->predictor.derived;
    lm->k = k;
    lm->beta.known = fields_vector(fields, "beta", k);
    lm->beta.mean = fields_vector(fields, "beta_mean", k);
    lm->beta.precision = fields_vector(fields, "beta_precision", k * k);
    const double *nig = fields_vector(fields, "beta_nig", 1);
    lm->sigma.known = fields_vector(fields, "sigma", 1);
    lm->beta.df = fields_vector(fields, "beta_df", 1);
    lm->beta.scale = fields_vector(fields, "beta_scale", k);
    lm->beta.first = fields_vector(fields, "beta_first", k);
    const int student = lm->beta.mean && lm->beta.df && lm->beta.scale && lm->beta.first;
    const int normal = lm->beta.mean && lm->beta.precision && nig;
    const int flat = fields_length(fields, "flat") > 0;
    if (!lm->beta.known && !student && !normal && !flat) return PLUGIN_BAD_FIELDS;
    if (!lm->sigma.known && !flat && scale_prior_read(fields, &lm->sigma.prior) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    lm->sigma.flat = flat;
    lm->beta.prior = lm->beta.known ? BETA_KNOWN
                     : flat         ? BETA_FLAT
                     : student      ? BETA_STUDENT
                     : *nig != 0    ? BETA_NIG
                                    : BETA_NORMAL;
    /* sigma^2 integrates out only where its prior is conjugate */
    if (lm->beta.prior == BETA_NIG && !lm->sigma.known &&
        lm->sigma.prior.kind != SCALE_INVERSE_GAMMA)
        return PLUGIN_BAD_FIELDS;
    if (lm->sigma.known) lm->sigma.log_known = log(*lm->sigma.known);
    status = read_errors(fields, lm);
    if (status != PLUGIN_OK) return status;

    const struct theta_block own[] = {
        {.name = "coefficients",
         .transform = TRANSFORM_CENTRE,
         .size = k,
         .centre = lm->predictor.shift,
         .expand = lm->predictor.expand,
         .collect = lm->predictor.collect,
         .known = lm->beta.known},
        {.name = "sigma",
         .transform = TRANSFORM_LOG,
         .size = 1,
         .known = lm->sigma.known ? &lm->sigma.log_known : NULL},
        lm->errors ? errors_block(lm->errors) : (struct theta_block){0},
    };
    status = covariates_create(fields, lm->errors ? 3 : 2, own, model, &lm->cov);
    if (status != PLUGIN_OK) return status;
    lm->cov.of_levels.relevel = relevel;
    lm->sigma.at = model->coordinates.block[1].offset;
    if (lm->errors) lm->errors->at = lm->sigma.at + 1;
    lm->p = lm->cov.design.products.first - 1;
    lm->moments = moments_new(q, lm->cov.centre);
    lm->theta = doubles((size_t)lm->cov.end);
    DOUBLES((size_t)k, &lm->move.y, &lm->move.y_dummy, &lm->solution, &lm->away_from_prior);
    DOUBLES((size_t)k * (size_t)k, &lm->gram, &lm->student);
    lm->innovation = doubles(MAX_BLOCK);
    lm->terms = terms_new(2 * q);

    model->self = lm;
    model->columns = lm->p + 1;
    lm->cov.lones.at_complete = moments_size(q);
    model->complete = lm->cov.lones.at_complete + lm->cov.lones.statistics;
    if (lm->errors) {
        lm->errors->at_complete = model->complete;
        model->complete += errors_statistics(k);
    }
    lm->sigma.kept = !lm->sigma.known && (lm->beta.prior == BETA_NORMAL || student || flat ||
                                          lm->sigma.prior.kind != SCALE_INVERSE_GAMMA);
    if (lm->cov.lones.count > 0 || derived || lm->errors) {
        model->costs.latent = lm->cov.lones.costs.latent;
        model->costs.move = lm->cov.lones.count > 0 ? k + lm->cov.lones.costs.move : 0;
        model->costs.records = model->columns + lm->cov.lones.costs.draw;
    }
    lm_prepare_marginal(lm);
    lm->follows = derived || lm->cov.joint || lm->errors;
    if (lm->follows) prepare_derived(lm);
    offer(lm, model);
    if (lm->errors) describe_errors(lm, model);
    if (lm->cov.joint) joint_complete(&lm->cov, model);
    return PLUGIN_OK;
}

const struct model_class model_lm = {
    .name = "lm",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
