/* Model "categories": the response y has one of several levels, with the probabilities of
 * model/categorical_links.c given linear predictors; covariates as in model/covariates_normal.c.
 *
 * A record has the response, dummies of its levels from 1 on or a code, then its covariates.
 * Internally covariates are measured from a fixed public point c, as in model/lm.c:
 *   eta_e = alpha_e + sum beta_ej (x_j - c_j),
 * over columns of the design, products and powers of covariates among them, and offsets
 * (model/derived_columns.c), the same in every predictor. Ordered levels: one predictor, and
 * thresholds tau_k = -alpha_k, alpha_0 > alpha_1 > ..; the first is part of the predictor, and the
 * distances from it are the cuts.
 *
 * theta, its own part: for ordered levels alpha_0, logarithms of the distances between
 * neighbouring thresholds, and slopes; for others alpha_e and the slopes of each predictor. Known
 * values stay fixed.
 *
 * Prior: slopes normal; given them alpha_k + tilt' beta independent N(m, s^2), of ordered levels in
 * their order.
 *
 * Innovation: a uniform (model/categorical_links.c). Update: Newton proposals or random walks of
 * its own part (mcmc/theta_metropolis.c), thresholds and slopes together, with the latent
 * responses integrated out; covariates as in model/covariates_normal.c.
 *
 * Complete-data statistic: moments of the response's dummies and the design (base/block.h), then
 * the statistics of lone covariates. Cost O(k^2) and the response's tails per record.
 */
#include "model/categories_response.h"

#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "model/covariates_joint.h"

static void find_constants(const struct graded *s, const double *theta, struct graded_place *to) {
    const double *centre = s->predictor.centre;
    for (int e = 0; e < s->response.predictors; ++e)
        to->intercept[e] = theta[graded_constant(s, e)] + centre[0] -
                           linalg_dot(s->slopes, theta + graded_slopes(s, e), centre + 1);
    if (s->response.ordered) threshold_distances(s->response.tails, theta, to->cut);
}

/* ---- set-up ------------------------------------------------------------- */

static int read_prior(const struct fields *fields, struct graded *s) {
    s->beta = fields_vector(fields, "beta", s->own);
    if (s->beta) return 1;
    const double *mean = fields_vector(fields, "constant_mean", 1),
                 *sd = fields_vector(fields, "constant_sd", 1);
    s->prior.slope_mean = fields_vector(fields, "slope_mean", s->slopes);
    s->prior.slope_sd = fields_vector(fields, "slope_sd", s->slopes);
    s->prior.tilt = fields_vector(fields, "tilt", s->slopes);
    if (!mean || !sd || !s->prior.slope_mean || !s->prior.slope_sd || !s->prior.tilt) return 0;
    s->prior.constant_mean = *mean;
    s->prior.constant_sd = *sd;
    return 1;
}

static int describe(const struct fields *fields, struct graded *s, struct model *model) {
    const int count = s->response.ordered ? 1 : s->response.predictors;
    struct theta_block *own = plugin_memory((size_t)count, sizeof *own);
    for (int e = 0; e < count; ++e)
        own[e] = (struct theta_block){.name = "coefficients",
                                      .transform = s->response.ordered ? TRANSFORM_THRESHOLDS
                                                                       : TRANSFORM_CENTRE,
                                      .size = s->own / count,
                                      .rows = s->response.tails,
                                      .centre = s->predictor.shift,
                                      .expand = s->predictor.expand,
                                      .collect = s->predictor.collect,
                                      .known = s->beta ? s->beta + graded_constant(s, e) : NULL};
    return covariates_create(fields, count, own, model, &s->cov);
}

static void make_workspace(struct graded *s) {
    const size_t tails = (size_t)s->response.tails, predictors = (size_t)s->response.predictors;
    DOUBLES((size_t)s->cov.end, &s->now.theta, &s->next.theta);
    DOUBLES(tails, &s->now.intercept, &s->next.intercept, &s->now.cut, &s->next.cut, &s->constant);
    s->eta = doubles(predictors * MAX_BLOCK);
    DOUBLES(tails * MAX_BLOCK, &s->now.tail, &s->next.tail);
    DOUBLES(MAX_BLOCK, &s->u, &s->now.level, &s->next.level);
    const size_t k = (size_t)s->slopes + 1;
    s->slope = doubles(tails * MAX_BLOCK);
    s->weight = doubles(tails * (tails + 1) / 2 * MAX_BLOCK);
    s->point = doubles(predictors);
    s->log_p = doubles(tails + 1);
    s->level_slope = doubles((tails + 1) * tails);
    s->sums = doubles(k * (k + 1) / 2);
    s->changed = plugin_memory((size_t)s->columns, sizeof(int));
    s->moved = plugin_memory((size_t)s->columns, sizeof(double *));
}

static void place_coefficients(struct graded *s) {
    const size_t predictors = (size_t)s->response.predictors;
    s->constants = plugin_memory(predictors, sizeof *s->constants);
    s->before_slopes = plugin_memory(predictors, sizeof *s->before_slopes);
    for (int e = 0; e < s->response.predictors; ++e) {
        s->constants[e] = graded_constant(s, e);
        s->before_slopes[e] = graded_slopes(s, e) - 1;
    }
}

/* That of the first covariate's column is its first slope. */
static void tie(struct graded *s, struct model *model) {
    int *slopes = plugin_memory((size_t)s->response.predictors, sizeof *slopes);
    for (int e = 0; e < s->response.predictors; ++e)
        slopes[e] = graded_slopes(s, e) - s->response.tails;
    s->tied = (struct model_predictor){.tied = s->own,
                                       .ties = s->response.predictors,
                                       .tie_constant = s->constants,
                                       .tie_slopes = slopes,
                                       .tied_prior = graded_tied_prior};
    model->predictor = &s->tied;
}

/* ---- prior -------------------------------------------------------------- */

/* largest first */
static void sort_down(int count, double *value) {
    for (int i = 1; i < count; ++i) {
        const double one = value[i];
        int j = i;
        for (; j > 0 && value[j - 1] < one; --j) value[j] = value[j - 1];
        value[j] = one;
    }
}

static void rprior(void *self, struct rng *rng, double *theta) {
    struct graded *s = self;
    for (int e = 0; !s->beta && e < s->response.predictors; ++e) {
        double *slope = theta + graded_slopes(s, e), *constant = theta + graded_constant(s, e);
        for (int j = 0; j < s->slopes; ++j)
            slope[j] = s->prior.slope_mean[j] + s->prior.slope_sd[j] * rng_normal(rng);
        const int count = s->response.ordered ? s->response.tails : 1;
        for (int k = 0; k < count; ++k)
            s->constant[k] = s->prior.constant_mean + s->prior.constant_sd * rng_normal(rng);
        sort_down(count, s->constant);
        constant[0] = s->constant[0] - graded_tilted(s, slope);
        for (int k = 1; k < count; ++k) constant[k] = log(s->constant[k - 1] - s->constant[k]);
    }
    covariates_rprior(&s->cov, rng, theta);
}

static double dprior(void *self, const double *theta) {
    struct graded *s = self;
    return covariates_dprior(&s->cov, theta) + (s->beta ? 0 : graded_own_prior(s, theta, NULL));
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    struct graded *s = self;
    covariates_prior_gradient(&s->cov, theta, gradient);
    if (!s->beta) (void)graded_own_prior(s, theta, gradient);
}

static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_tied) {
    struct graded *s = self;
    memset(gradient_c, 0, (size_t)s->cov.lones.at_complete * sizeof(double));
    return covariates_marginal(&s->cov, c, n, gradient_c) +
           (s->beta ? 0 : graded_tied_prior(s, theta, gradient_tied));
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct graded *s = self;
    memcpy(s->now.theta, theta, (size_t)s->cov.end * sizeof(double));
    find_constants(s, theta, &s->now);
    covariates_set(&s->cov, theta);
}

/* the tails under the current parameter */
static void find_tails(struct graded *s, int m, const double *const *x, double *tail) {
    graded_predict(s, s->now.theta, s->now.intercept, m, covariates_design(&s->cov, m, x));
    s->response.class->tail(&s->response, s->now.cut, m, s->eta, tail);
}

static void write_response(const struct graded *s, int m, const double *level, double *const *x) {
    if (graded_is_coded(s)) {
        memcpy(x[(int)s->cov.design.column[0]], level, (size_t)m * sizeof(double));
        return;
    }
    for (int k = 0; k < s->response.tails; ++k) {
        double *dummy = x[(int)s->cov.design.column[k]];
        for (int i = 0; i < m; ++i) dummy[i] = level[i] == k + 1 ? 1 : 0;
    }
}

/* From now.tail to next.tail, u a share of an innovation where it is kept. */
static void respond(struct graded *s, struct rng *rng, double keep, int m, const double *const *x,
                    double *const *x_new) {
    rng_fill_uniform(rng, m, s->u);
    graded_read_response(s, m, x, s->now.level);
    categories_respond(&s->response, m, keep, s->u, s->now.tail, s->now.level, s->next.tail,
                       s->next.level);
    write_response(s, m, s->next.level, x_new);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct graded *s = self;
    /* so that the padding is finite: the design is made of all columns */
    for (int k = 0; k < s->response.tails; ++k)
        memset(x[(int)s->cov.design.column[k]], 0, (size_t)PAD_LANES(m) * sizeof(double));
    covariates_refresh(&s->cov, 0, rng, m, NULL, x);
    find_tails(s, m, (const double *const *)x, s->now.tail);
    rng_fill_uniform(rng, m, s->u);
    categories_level(&s->response, m, s->u, s->now.tail, s->now.level);
    write_response(s, m, s->now.level, x);
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct graded *s = self;
    for (int k = 0; k < s->response.tails; ++k)
        memset(x_new[(int)s->cov.design.column[k]], 0, (size_t)PAD_LANES(m) * sizeof(double));
    covariates_refresh(&s->cov, rho, rng, m, x, x_new);
    find_tails(s, m, x, s->now.tail);
    find_tails(s, m, (const double *const *)x_new, s->next.tail);
    respond(s, rng, rho, m, x, x_new);
}

/* ---- non-centred move --------------------------------------------------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct graded *s = self;
    memcpy(s->next.theta, theta_new, (size_t)s->cov.end * sizeof(double));
    find_constants(s, theta_new, &s->next);
    covariates_set_move(&s->cov, s->now.theta, theta_new, changed);
    for (int k = 0; k < s->response.tails; ++k) changed[(int)s->cov.design.column[k]] = 1;
    memcpy(s->changed, changed, (size_t)s->columns * sizeof(int));
}

/* the moved covariates lie partly in x, partly in x_new; the response's columns still in x */
static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct graded *s = self;
    covariates_move(&s->cov, rng, m, x, x_new);
    find_tails(s, m, x, s->now.tail);
    for (int v = 0; v < s->columns; ++v) s->moved[v] = s->changed[v] ? x_new[v] : x[v];
    for (int k = 0; k < s->response.tails; ++k)
        s->moved[(int)s->cov.design.column[k]] = x[(int)s->cov.design.column[k]];
    graded_predict(s, s->next.theta, s->next.intercept, m, covariates_design(&s->cov, m, s->moved));
    s->response.class->tail(&s->response, s->next.cut, m, s->eta, s->next.tail);
    respond(s, rng, 1, m, x, x_new);
}

static void relevel(void *self, struct rng *rng, int factor, int from, int to, int m,
                    const double *const *x, double *const *x_new) {
    struct graded *s = self;
    find_tails(s, m, x, s->now.tail);
    for (int k = 0; k < s->response.tails; ++k) {
        const int v = (int)s->cov.design.column[k];
        memcpy(x_new[v], x[v], (size_t)PAD_LANES(m) * sizeof(double));
    }
    covariates_relevel(&s->cov, factor, from, to, m, x, x_new);
    find_tails(s, m, (const double *const *)x_new, s->next.tail);
    respond(s, rng, 1, m, x, x_new);
}

/* ---- the response's levels given covariates: records/category_hmc_pass.c ---------------- */

static void categorise(void *self, int level, int m, double *const *x) {
    struct graded *s = self;
    for (int i = 0; i < m; ++i) s->now.level[i] = level;
    write_response(s, m, s->now.level, x);
}

/* s->constant holds the cuts */
static void category_probabilities(void *self, const double *theta, int m, const double *const *x,
                                   double *p) {
    struct graded *s = self;
    const int tails = s->response.tails;
    find_constants(s, theta, &s->next);
    graded_predict(s, theta, s->next.intercept, m, covariates_design(&s->cov, m, x));
    s->response.class->tail(&s->response, s->next.cut, m, s->eta, s->next.tail);
    for (int k = 0; k <= tails; ++k, p += MAX_BLOCK) {
        const double *above = k > 0 ? s->next.tail + (size_t)(k - 1) * MAX_BLOCK : NULL;
        const double *below = k < tails ? s->next.tail + (size_t)k * MAX_BLOCK : NULL;
        for (int i = 0; i < m; ++i) p[i] = (above ? above[i] : 1) - (below ? below[i] : 0);
    }
}

/* of the last category_probabilities() */
static void pull_categories(void *self, const double *theta, int m, const double *const *x,
                            const double *slope, double *gradient) {
    struct graded *s = self;
    const int tails = s->response.tails;
    const double *centre = s->predictor.centre + 1;
    const int *column = s->predictor.column + 1;
    const double *const *design = covariates_design(&s->cov, m, x);
    double *of_eta = s->now.tail; /* a row for each predictor */
    s->response.class->pull(&s->response, s->next.cut, m, s->eta, s->next.tail, slope, of_eta,
                            s->constant);
    for (int e = 0; e < s->response.predictors; ++e, of_eta += MAX_BLOCK) {
        const double sum = block_sum(m, of_eta);
        gradient[graded_constant(s, e)] += sum;
        for (int j = 0; j < s->slopes; ++j)
            gradient[graded_slopes(s, e) + j] +=
                block_dot(m, of_eta, design[column[j]]) - sum * centre[j];
    }
    double beyond = 0; /* a distance is part of all greater cuts */
    for (int k = tails - 1; s->response.ordered && k > 0; --k) {
        beyond += s->constant[k];
        gradient[k] += beyond * exp(theta[k]);
    }
}

/* ---- complete-data statistic and its update ----------------------------- */

static void add(void *self, int m, const double *const *x, double *c) {
    struct graded *s = self;
    moments_add(&s->moments, m, covariates_design(&s->cov, m, x), c);
    if (s->cov.joint) joint_add(&s->cov, m, x, c);
}

static void add_latent(void *self, struct rng *rng, int m, const double *const *x, double *c) {
    struct graded *s = self;
    covariates_add_latent(&s->cov, rng, m, x, c);
}

static double log_density(void *self, int m, const double *const *x) {
    struct graded *s = self;
    double sum = 0;
    graded_read_response(s, m, x, s->now.level);
    graded_predict(s, s->now.theta, s->now.intercept, m, covariates_design(&s->cov, m, x));
    for (int i = 0; i < m; ++i)
        sum += s->response.class->log(&s->response, s->now.cut, s->eta + i, MAX_BLOCK,
                                      (int)s->now.level[i], NULL, NULL);
    return isnan(sum) ? -INFINITY : sum;
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct graded *s = self;
    return covariates_update(&s->cov, &s->moments, c, n, 1, rng, theta);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_prior smooth_prior_hooks = {.dprior = dprior,
                                                      .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_statistic latent_statistic_hooks = {.add = add, .add_latent = add_latent};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_marginal marginal_hooks = {.marginal = marginal};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static void offer_records(struct graded *s, int by_records, struct model *model) {
    model->prior = by_records || s->cov.joint ? &prior_hooks : &smooth_prior_hooks;
    model->statistic = by_records ? &latent_statistic_hooks : &statistic_hooks;
    model->update = &update_hooks;
    model->refresh = &refresh_hooks;
    model->move = &move_hooks;
    s->density.curve = graded_curve;
    s->density.prior_curve = graded_prior_curve;
    if (!by_records) model->marginal = &marginal_hooks;
    s->categories = (struct model_categories){.levels = s->response.levels,
                                              .coefficients = s->own,
                                              .categorise = categorise,
                                              .probabilities = category_probabilities,
                                              .pull = pull_categories,
                                              .log_prior = graded_tied_prior};
    if (!s->beta) model->categories = &s->categories;
    if (!s->beta && !covariates_is_cut(&s->cov) && !by_records) tie(s, model);
}

/* Factors alone, the coefficients unknown; complete-data statistic: the counts of the cells. */
static int offer_cells(struct graded *s, double cells, struct model *model) {
    const struct cell_response response = {.self = s,
                                           .levels = s->response.levels,
                                           .columns = s->response.tails,
                                           .predictors = s->response.predictors,
                                           .cuts = s->response.ordered ? s->response.tails - 1 : 0,
                                           .cut_at = 1,
                                           .constant = s->constants,
                                           .slopes = s->before_slopes,
                                           .use = graded_use_cuts,
                                           .logs = graded_cell_logs,
                                           .prior = &smooth_prior_hooks,
                                           .prior_information = graded_prior_information};
    return glm_cells_create(&s->cov, &s->predictor, &response, cells, model);
}

static int create(const struct fields *fields, struct model *model) {
    struct graded *s = plugin_memory(1, sizeof *s);
    const double *columns = fields_vector(fields, "columns", 1);
    if (!columns || !categories_create(fields, &s->response)) return PLUGIN_BAD_FIELDS;
    const int tails = s->response.tails, predictors = s->response.predictors;
    const int q = fields_length(fields, "centre");
    if (q < tails) return PLUGIN_BAD_FIELDS;
    int status =
        predictor_read(fields, q, tails, fields_vector(fields, "centre", q), &s->predictor);
    if (status != PLUGIN_OK) return status;
    s->columns = (int)*columns;
    s->slopes = s->predictor.k - 1;
    s->own = s->response.ordered ? tails + s->slopes : predictors * (1 + s->slopes);
    place_coefficients(s);
    if (!read_prior(fields, s)) return PLUGIN_BAD_FIELDS;
    status = describe(fields, s, model);
    if (status != PLUGIN_OK) return status;
    s->cov.of_levels.relevel = relevel;
    s->moments = moments_new(q, s->cov.centre);
    make_workspace(s);

    model->self = s;
    s->density.log_density = log_density;
    model->density = &s->density;
    model->columns = s->columns;
    s->cov.lones.at_complete = moments_size(q);
    model->complete = s->cov.lones.at_complete + s->cov.lones.statistics;
    const double cost = 1 + s->response.class->cost * tails;
    model->costs.latent = s->cov.lones.costs.latent;
    model->costs.records = model->columns + cost + s->cov.lones.costs.draw;
    model->costs.move = model->columns + 2 * cost + s->cov.lones.costs.move;
    if (!s->beta) {
        s->density.walked = s->own;
        model->costs.density = 1 + 0.2 * s->slopes * predictors + 2 * s->response.class->cost;
    }
    const int by_records = s->cov.lones.count > 0 || s->predictor.derived;
    if (s->cov.joint) joint_complete(&s->cov, model);
    const double *cells = fields_vector(fields, "cells", 1);
    if (cells) return offer_cells(s, *cells, model);
    offer_records(s, by_records, model);
    return PLUGIN_OK;
}

const struct model_class model_categories = {
    .name = "categories",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
