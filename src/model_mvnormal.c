/* Model "mvnormal": records N(mean, cov), the distribution of covariates.c with nothing
 * beside it.
 *
 * Complete-data statistic: moments (block.h), centred at a fixed public point
 * (the middle of the bounds). Cost: O(q^2) per record, O(q^3) per update.
 */
#include "covariates.h"

struct mvnormal {
    struct covariates cov;
    struct moments moments;
    double *theta;
};

static int create(const struct fields *fields, struct model *model) {
    struct mvnormal *s = plugin_memory(1, sizeof *s);
    const int status = covariates_create(fields, 0, NULL, model, &s->cov);
    if (status != PLUGIN_OK) return status;
    if (s->cov.normal != s->cov.q || s->cov.factors > 0) return PLUGIN_BAD_FIELDS;
    s->moments = moments_new(s->cov.q, s->cov.centre);
    s->theta = plugin_memory((size_t)s->cov.end, sizeof(double));
    model->self = s;
    model->origin = s->cov.centre;
    model->order = s->cov.column;
    model->columns = s->cov.q;
    model->complete = moments_size(s->cov.q);
    model->cut = covariates_is_cut(&s->cov);
    model->innovations = s->cov.normal;
    model->innovation = RNG_NORMAL;
    return PLUGIN_OK;
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

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct mvnormal *s = self;
    covariates_refresh(&s->cov, rho, rng, m, x, x_new);
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

static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_kept) {
    struct mvnormal *s = self;
    (void)theta, (void)gradient_kept; /* all of it integrates out */
    memset(gradient_c, 0, (size_t)moments_size(s->cov.q) * sizeof(double));
    return covariates_marginal(&s->cov, c, n, gradient_c);
}

static double marginal_size(const void *self, double n) {
    const struct mvnormal *s = self;
    return covariates_marginal_size(&s->cov, n);
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

const struct model_class model_mvnormal = {
    .name = "mvnormal",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .prior_gradient = prior_gradient,
    .set = set,
    .rrecords = rrecords,
    .from_innovations = from_innovations,
    .refresh = refresh,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
    .rtheta_uncut = rtheta_uncut,
    .marginal = marginal,
    .marginal_size = marginal_size,
    .distribution = distribution,
    .pull_distribution = pull_distribution,
};
