/* Model "mvnormal": records N(mean, cov), the distribution of model/covariates_normal.c by itself.
 *
 * Complete-data statistic: moments (base/block.h), centred at a fixed public point
 * (the middle of the bounds). Cost: O(q^2) per record, O(q^3) per update.
 *
 * A flat model, for sites whose parameters have another prior, keeps all of theta: marginal() is
 * the likelihood.
 */
#include "model/covariates.h"

#include "base/linalg.h"
#include "contract/model_innovations.h"
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_normal.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

struct mvnormal {
    struct covariates cov;
    struct moments moments;
    double *theta;
    struct model_innovations innovations;
    struct model_marginal marginal; /* of a flat model: it keeps the unknown coordinates */
    struct model_normal normal;
    int flat;

    /* workspace of a flat model: vectors of q, square matrices, and a gradient in theta */
    double *mean, *away, *slope_mean;
    double *chol, *precision, *scatter, *slope_chol;
    double *slope;
};

static void prepare_flat(struct mvnormal *s, struct model *model) {
    const size_t q = (size_t)s->cov.q;
    double **const vectors[] = {&s->mean, &s->away, &s->slope_mean};
    double **const matrices[] = {&s->chol, &s->precision, &s->scatter, &s->slope_chol};
    for (int k = 0; k < 3; ++k) *vectors[k] = doubles(q);
    for (int k = 0; k < 4; ++k) *matrices[k] = doubles(q * q);
    s->slope = doubles((size_t)s->cov.end);
    s->flat = 1;
    s->marginal.keeps = model->moving;
    s->marginal.kept = model->moves;
}

static void rprior(void *self, struct rng *rng, double *theta) {
    struct mvnormal *s = self;
    covariates_rprior(&s->cov, rng, theta);
}

static double dprior(void *self, const double *theta) {
    struct mvnormal *s = self;
    return covariates_dprior(&s->cov, theta);
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    struct mvnormal *s = self;
    covariates_prior_gradient(&s->cov, theta, gradient);
}

static void set(void *self, const double *theta) {
    struct mvnormal *s = self;
    memcpy(s->theta, theta, (size_t)s->cov.end * sizeof(double));
    covariates_set(&s->cov, theta);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct mvnormal *s = self;
    covariates_refresh(&s->cov, 0, rng, m, NULL, x);
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    struct mvnormal *s = self;
    covariates_form(&s->cov, 0, m, z, NULL, x);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct mvnormal *s = self;
    covariates_set_move(&s->cov, s->theta, theta_new, changed);
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct mvnormal *s = self;
    covariates_move(&s->cov, rng, m, x, x_new);
}

static void add(void *self, int m, const double *const *x, double *c) {
    const struct mvnormal *s = self;
    moments_add(&s->moments, m, x, c);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct mvnormal *s = self;
    return covariates_update(&s->cov, &s->moments, c, n, 1, rng, theta);
}

static int rtheta_uncut(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct mvnormal *s = self;
    return covariates_update(&s->cov, &s->moments, c, n, 0, rng, theta);
}

static void transpose_lower(int q, double *a) {
    for (int i = 0; i < q; ++i)
        for (int j = 0; j < i; ++j) a[i * q + j] = a[j * q + i];
}

/* Sigma^-1 = L^-T L^-1, all of it */
static void invert_cov(struct mvnormal *s) {
    const int q = s->cov.q;
    for (int j = 0; j < q; ++j) {
        double *row = s->precision + (size_t)j * (size_t)q;
        memset(row, 0, (size_t)q * sizeof(double));
        row[j] = 1;
        linalg_forward(q, s->chol, row);
        linalg_backward(q, s->chol, row);
    }
}

/* Q, the scatter about the mean, n m m' - t m' - m t' + P with totals t and products P */
static void take_scatter(struct mvnormal *s, const double *c, double n) {
    const int q = s->cov.q, *of = s->cov.moment;
    for (int i = 0; i < q; ++i)
        for (int j = i; j < q; ++j)
            s->scatter[i * q + j] = c[moments_at(q, of[i], of[j])] - c[of[i]] * s->mean[j] -
                                    c[of[j]] * s->mean[i] + n * s->mean[i] * s->mean[j];
    transpose_lower(q, s->scatter);
}

/* -n log |L| - tr(A Q) / 2, A = Sigma^-1. The slope in the mean is A (t - n m), that in L the lower
 * triangle of (A Q - n I) L^-T. */
static double likelihood(struct mvnormal *s, const double *c, double n, const double *theta,
                         double *gradient_c) {
    const int q = s->cov.q, *of = s->cov.moment;
    const double *A = s->precision;
    double log_density = 0;
    covariates_distribution(&s->cov, theta, q, s->mean, s->chol);
    for (int i = 0; i < q; ++i) s->mean[i] -= s->cov.centre[of[i]];
    invert_cov(s);
    take_scatter(s, c, n);
    for (int i = 0; i < q; ++i) s->away[i] = c[of[i]] - n * s->mean[i];
    for (int i = 0; i < q; ++i) {
        const double *row = A + (size_t)i * (size_t)q;
        double *slope = s->slope_chol + (size_t)i * (size_t)q;
        log_density -= n * log(s->chol[i * q + i]);
        log_density -= 0.5 * linalg_dot(q, row, s->scatter + (size_t)i * (size_t)q);
        s->slope_mean[i] = linalg_dot(q, row, s->away);
        gradient_c[of[i]] += linalg_dot(q, row, s->mean);
        for (int j = i; j < q; ++j)
            gradient_c[moments_at(q, of[i], of[j])] -= (i == j ? 0.5 : 1) * row[j];
        for (int j = 0; j < q; ++j)
            slope[j] = linalg_dot(q, row, s->scatter + (size_t)j * (size_t)q) - (i == j ? n : 0);
        linalg_forward(q, s->chol, slope); /* a row times L^-T */
    }
    return log_density;
}

static double flat_marginal(struct mvnormal *s, const double *c, double n, const double *theta,
                            double *gradient_c, double *gradient_kept) {
    const double log_density = likelihood(s, c, n, theta, gradient_c);
    memset(s->slope, 0, (size_t)s->cov.end * sizeof(double));
    covariates_pull_distribution(&s->cov, s->cov.q, s->chol, s->slope_mean, s->slope_chol,
                                 s->slope);
    for (int k = 0; k < s->marginal.keeps; ++k) gradient_kept[k] = s->slope[s->marginal.kept[k]];
    return isnan(log_density) ? -INFINITY : log_density;
}

/* all of theta integrates out, or none */
static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_kept) {
    struct mvnormal *s = self;
    memset(gradient_c, 0, (size_t)moments_size(s->cov.q) * sizeof(double));
    if (s->flat) return flat_marginal(s, c, n, theta, gradient_c, gradient_kept);
    return covariates_marginal(&s->cov, c, n, gradient_c);
}

static double marginal_size(const void *self, double n) {
    const struct mvnormal *s = self;
    return s->flat ? -0.5 * n * s->cov.q * log(2 * M_PI) : covariates_marginal_size(&s->cov, n);
}

static void distribution(void *self, const double *theta, double *mean, double *chol) {
    const struct mvnormal *s = self;
    covariates_distribution(&s->cov, theta, s->cov.q, mean, chol);
    for (int i = 0; i < s->cov.q; ++i) mean[i] -= s->cov.centre[s->cov.moment[i]];
}

static void pull_distribution(void *self, const double *theta, const double *mean,
                              const double *chol, double *slope_mean, double *slope_chol,
                              double *gradient) {
    const struct mvnormal *s = self;
    (void)theta;
    (void)mean;
    covariates_pull_distribution(&s->cov, s->cov.q, chol, slope_mean, slope_chol, gradient);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_update cut_update_hooks = {.rtheta = rtheta,
                                                     .rtheta_uncut = rtheta_uncut};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static int create(const struct fields *fields, struct model *model) {
    struct mvnormal *s = plugin_memory(1, sizeof *s);
    const int status = covariates_create(fields, 0, NULL, model, &s->cov);
    if (status != PLUGIN_OK) return status;
    if (s->cov.normal != s->cov.q || s->cov.factors.count > 0) return PLUGIN_BAD_FIELDS;
    s->moments = moments_new(s->cov.q, s->cov.centre);
    s->theta = doubles((size_t)s->cov.end);
    model->self = s;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->move = &move_hooks;
    s->normal = (struct model_normal){.origin = s->cov.centre,
                                      .order = s->cov.column,
                                      .distribution = distribution,
                                      .pull_distribution = pull_distribution};
    model->normal = &s->normal;
    s->marginal.marginal = marginal;
    s->marginal.marginal_size = marginal_size;
    model->marginal = &s->marginal;
    model->columns = s->cov.q;
    model->complete = moments_size(s->cov.q);
    model->update = covariates_is_cut(&s->cov) ? &cut_update_hooks : &update_hooks;
    s->innovations = (struct model_innovations){
        .count = s->cov.normal, .kind = RNG_NORMAL, .from_innovations = from_innovations};
    model->innovations = &s->innovations;
    if (fields_length(fields, "flat") > 0) prepare_flat(s, model);
    return PLUGIN_OK;
}

const struct model_class model_mvnormal = {
    .name = "mvnormal",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
