/* Model "logistic": y is 1 with probability 1 / (1 + exp(-eta)), eta = beta_0 +
 * beta' x, else 0; covariates as in covariates.c.
 *
 * A record has the columns y, then its covariates. Internally the regression is
 * centred at a fixed public point, as in model_lm.c: eta = alpha + sum beta_j
 * (x_j - c_j), over the columns of the design.
 *
 * theta: alpha, slopes (k of them) | the covariates' part. What is known stays
 * at its value.
 *
 * Innovations: y = 1[u < P(y = 1 | x)], u uniform.
 *
 * Update: no statistic of the records has a conjugate one. With omega ~ PG(1,
 * eta) for each record (Polson, Scott & Windle 2013, JASA 108),
 *   beta | omega ~ N(V (Z'(y - 1/2) + P b), V), V = (Z' Omega Z + P)^-1,
 * for the prior N(b, P^-1); so add_latent() draws omega and sums omega z z'.
 *
 * Complete-data statistic: moments of y and the design (block.h), then the upper
 * triangle of Z' Omega Z, row by row. Cost O(k^2), an exponential and a
 * Polya-Gamma draw per record, O(k^3) per update.
 */
#include "covariates.h"
#include "dist.h"
#include "dist_polya_gamma.h"
#include "linalg.h"

struct logistic {
    int columns; /* of a record */
    int k;       /* coefficients, and columns of the moments */
    int at_omega;
    struct covariates cov;
    struct moments moments;
    struct polya_gamma polya_gamma;
    const double *beta, *beta_mean, *beta_precision; /* centred coordinates */

    /* current parameter and the one that a move goes to, intercepts natural */
    double *theta, intercept, *theta_new, intercept_new;

    /* workspace */
    double *gram, *solution;
    double *eta, *eta_new, *u, *omega, *weighted; /* MAX_BLOCK */
    struct terms terms;
    int *changed;
    const double **moved;
};

static double natural_intercept(const struct logistic *s, const double *theta) {
    return centred_intercept(s->k, s->cov.centre, theta);
}

/* ---- set-up ------------------------------------------------------------- */

static int create(const struct fields *fields, struct model *model) {
    struct logistic *s = plugin_memory(1, sizeof *s);
    const int k = fields_length(fields, "centre");
    s->k = k;
    s->beta = fields_vector(fields, "beta", k);
    s->beta_mean = fields_vector(fields, "beta_mean", k);
    s->beta_precision = fields_vector(fields, "beta_precision", k * k);
    const double *columns = fields_vector(fields, "columns", 1);
    if (!columns || !(s->beta || (s->beta_mean && s->beta_precision))) return PLUGIN_BAD_FIELDS;
    const struct theta_block coefficients = {
        .name = "coefficients",
        .transform = TRANSFORM_CENTRE,
        .size = k,
        .centre = fields_vector(fields, "centre", k),
        .known = s->beta,
    };
    const int status = covariates_create(fields, 1, &coefficients, model, &s->cov);
    if (status != PLUGIN_OK) return status;

    polya_gamma_prepare(&s->polya_gamma);
    s->moments = moments_new(k, s->cov.centre);
    s->theta = plugin_memory((size_t)s->cov.end, sizeof(double));
    s->theta_new = plugin_memory((size_t)s->cov.end, sizeof(double));
    s->gram = plugin_memory((size_t)k * (size_t)k, sizeof(double));
    s->solution = plugin_memory((size_t)k, sizeof(double));
    double **const block[] = {&s->eta, &s->eta_new, &s->u, &s->omega, &s->weighted};
    for (int j = 0; j < 5; ++j) *block[j] = plugin_memory(MAX_BLOCK, sizeof(double));
    s->terms = terms_new(k);
    s->at_omega = moments_size(k);
    s->columns = (int)*columns;
    s->changed = plugin_memory((size_t)s->columns, sizeof(int));
    s->moved = plugin_memory((size_t)s->columns, sizeof(double *));

    model->self = s;
    model->columns = s->columns;
    model->complete = s->at_omega + (s->beta ? 0 : k * (k + 1) / 2);
    /* a Polya-Gamma variate, and an exponential function, in units of a normal */
    model->costs.latent = s->beta ? 0 : 13;
    model->costs.move = model->columns + 4;
    if (!s->beta && !covariates_is_cut(&s->cov)) model->tied = k;
    return PLUGIN_OK;
}

/* ---- prior -------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    struct logistic *s = self;
    const int k = s->k;
    if (!s->beta) {
        memcpy(s->gram, s->beta_precision, (size_t)k * (size_t)k * sizeof(double));
        (void)linalg_cholesky(k, s->gram); /* checked in R */
        dist_normal_precision(rng, k, s->beta_mean, 1, s->gram, theta);
    }
    covariates_rprior(&s->cov, rng, theta);
}

static double dprior(void *self, const double *theta) {
    struct logistic *s = self;
    double log_density = covariates_dprior(&s->cov, theta);
    if (!s->beta)
        log_density -= 0.5 * linalg_quadratic(s->k, s->beta_precision, theta, s->beta_mean);
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    struct logistic *s = self;
    const int k = s->k;
    covariates_prior_gradient(&s->cov, theta, gradient);
    for (int i = 0; !s->beta && i < k; ++i)
        for (int j = 0; j < k; ++j)
            gradient[i] -= s->beta_precision[(size_t)i * k + j] * (theta[j] - s->beta_mean[j]);
}

static double tied_prior(void *self, const double *theta, double *gradient) {
    struct logistic *s = self;
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

static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_tied) {
    struct logistic *s = self;
    memset(gradient_c, 0, (size_t)s->at_omega * sizeof(double));
    return covariates_marginal(&s->cov, c, n, gradient_c) +
           (s->beta ? 0 : tied_prior(s, theta, gradient_tied));
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct logistic *s = self;
    memcpy(s->theta, theta, (size_t)s->cov.end * sizeof(double));
    s->intercept = natural_intercept(s, theta);
    covariates_set(&s->cov, theta);
}

static void linear_predictor(struct logistic *s, const double *theta, double intercept, int m,
                             const double *const *design, double *eta) {
    terms_clear(&s->terms);
    for (int j = 1; j < s->k; ++j) terms_add(&s->terms, theta[j], design[j]);
    terms_sum(&s->terms, intercept, m, eta);
}

static inline double probability(double eta) { return 1 / (1 + exp(-eta)); }

/* y at eta_new. Where w is below `keep`, with the innovation of (eta, y), drawn
 * uniformly on its side, else with a fresh one; w serves for either. */
static void respond(int m, double keep, const double *restrict w, const double *restrict eta,
                    const double *restrict y, const double *restrict eta_new,
                    double *restrict y_new) {
    for (int i = 0; i < m; ++i) {
        double u;
        if (w[i] < keep) {
            const double p = probability(eta[i]), share = w[i] / keep;
            u = y[i] > 0 ? p * share : p + (1 - p) * share;
        } else {
            u = (w[i] - keep) / (1 - keep);
        }
        y_new[i] = u < probability(eta_new[i]) ? 1 : 0;
    }
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct logistic *s = self;
    covariates_refresh(&s->cov, 0, rng, m, NULL, x);
    const double *const *design = covariates_design(&s->cov, m, (const double *const *)x);
    linear_predictor(s, s->theta, s->intercept, m, design, s->eta_new);
    rng_fill_uniform(rng, m, s->u);
    for (int i = 0; i < m; ++i) x[0][i] = s->u[i] < probability(s->eta_new[i]) ? 1 : 0;
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct logistic *s = self;
    covariates_refresh(&s->cov, rho, rng, m, x, x_new);
    linear_predictor(s, s->theta, s->intercept, m, covariates_design(&s->cov, m, x), s->eta);
    const double *const *design = covariates_design(&s->cov, m, (const double *const *)x_new);
    linear_predictor(s, s->theta, s->intercept, m, design, s->eta_new);
    rng_fill_uniform(rng, m, s->u);
    respond(m, rho, s->u, s->eta, x[0], s->eta_new, x_new[0]);
}

/* ---- non-centred move --------------------------------------------------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct logistic *s = self;
    memcpy(s->theta_new, theta_new, (size_t)s->cov.end * sizeof(double));
    s->intercept_new = natural_intercept(s, theta_new);
    covariates_set_move(&s->cov, s->theta, theta_new, changed);
    changed[0] = 1;
    memcpy(s->changed, changed, (size_t)s->columns * sizeof(int));
}

/* the moved covariates lie partly in x, partly in x_new */
static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct logistic *s = self;
    covariates_move(&s->cov, rng, m, x, x_new);
    linear_predictor(s, s->theta, s->intercept, m, covariates_design(&s->cov, m, x), s->eta);
    for (int v = 0; v < s->columns; ++v) s->moved[v] = s->changed[v] ? x_new[v] : x[v];
    linear_predictor(s, s->theta_new, s->intercept_new, m, covariates_design(&s->cov, m, s->moved),
                     s->eta_new);
    rng_fill_uniform(rng, m, s->u);
    respond(m, 1, s->u, s->eta, x[0], s->eta_new, x_new[0]);
}

static void read_levels(void *self, int factor, int m, const double *const *x, double *level) {
    const struct logistic *s = self;
    covariates_read_levels(&s->cov, factor, m, x, level);
}

static void relevel(void *self, struct rng *rng, int factor, int from, int to, int m,
                    const double *const *x, double *const *x_new) {
    struct logistic *s = self;
    const double by = covariates_effect(&s->cov, factor, from, to, s->theta);
    covariates_relevel(&s->cov, factor, to, m, x, x_new);
    linear_predictor(s, s->theta, s->intercept, m, covariates_design(&s->cov, m, x), s->eta);
    FOR_RECORDS(i, m) s->eta_new[i] = s->eta[i] + by;
    rng_fill_uniform(rng, m, s->u);
    respond(m, 1, s->u, s->eta, x[0], s->eta_new, x_new[0]);
}

/* ---- complete-data statistic and its update ----------------------------- */

static void add(void *self, int m, const double *const *x, double *c) {
    struct logistic *s = self;
    moments_add(&s->moments, m, covariates_design(&s->cov, m, x), c);
}

static void weight_column(int m, const double *restrict omega, const double *restrict z,
                          double *restrict out) {
    FOR_RECORDS(i, m) out[i] = omega[i] * z[i];
}

VECTOR_CLONES static void add_weighted(struct logistic *s, int m, double *c) {
    const double *z = s->moments.centred;
    *c++ += block_sum(m, s->omega);
    for (int j = 1; j < s->k; ++j) *c++ += block_dot(m, s->omega, z + (size_t)j * MAX_BLOCK);
    for (int i = 1; i < s->k; ++i) {
        weight_column(m, s->omega, z + (size_t)i * MAX_BLOCK, s->weighted);
        for (int j = i; j < s->k; ++j) *c++ += block_dot(m, s->weighted, z + (size_t)j * MAX_BLOCK);
    }
}

static void add_latent(void *self, struct rng *rng, int m, const double *const *x, double *c) {
    struct logistic *s = self;
    if (s->beta) return;
    const double *const *design = covariates_design(&s->cov, m, x);
    linear_predictor(s, s->theta, s->intercept, m, design, s->eta);
    polya_gamma_fill(&s->polya_gamma, rng, m, s->eta, s->omega);
    moments_centre(&s->moments, m, design);
    add_weighted(s, m, c + s->at_omega);
}

static int update_coefficients(struct logistic *s, const double *c, double n, struct rng *rng,
                               double *theta) {
    const int k = s->k;
    const double *weighted = c + s->at_omega;
    for (int i = 0; i < k; ++i) {
        /* Z'(y - 1/2); column 0 of the moments is y, of Z the constant */
        s->solution[i] =
            i == 0 ? c[0] - 0.5 * n : moments_product(&s->moments, c, 0, i) - 0.5 * c[i];
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
    struct logistic *s = self;
    const int status = s->beta ? PLUGIN_OK : update_coefficients(s, c, n, rng, theta);
    if (status != PLUGIN_OK) return status;
    return covariates_update(&s->cov, &s->moments, c, n, 1, rng, theta);
}

const struct model_class model_logistic = {
    .name = "logistic",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .prior_gradient = prior_gradient,
    .set = set,
    .rrecords = rrecords,
    .refresh = refresh,
    .set_move = set_move,
    .move = move,
    .read_levels = read_levels,
    .relevel = relevel,
    .add = add,
    .add_latent = add_latent,
    .rtheta = rtheta,
    .marginal = marginal,
    .tied_prior = tied_prior,
};
