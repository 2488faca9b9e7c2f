/* Model "expfam": a family of one number given by R functions (Bernstein & Sheldon
 * 2018, section 3.3: any univariate exponential family).
 *
 * The model updates theta from the total of its statistic c, so "clt" needs no
 * records (moments of c are in r/moments_expfam.c); with a function that draws them
 * "augment" runs as well.
 */
#include "contract/model_density.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "contract/registry.h"
#include "r/custom.h"

struct expfam {
    int parameters, complete;
    SEXP r_prior, log_prior, r_records, r_theta, statistic, log_density;
    double *theta;
};

static void rprior(void *self, struct rng *rng, double *theta) {
    (void)rng;
    const struct expfam *e = self;
    SEXP call = PROTECT(Rf_lang1(e->r_prior));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(theta, REAL(value), (size_t)e->parameters * sizeof(double));
    UNPROTECT(2);
}

static double dprior(void *self, const double *theta) {
    const struct expfam *e = self;
    SEXP vector = PROTECT(custom_vector(e->parameters, theta));
    SEXP call = PROTECT(Rf_lang2(e->log_prior, vector));
    const double value = Rf_asReal(Rf_eval(call, R_GlobalEnv));
    UNPROTECT(2);
    return value;
}

static void set(void *self, const double *theta) {
    struct expfam *e = self;
    memcpy(e->theta, theta, (size_t)e->parameters * sizeof(double));
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    (void)rng;
    const struct expfam *e = self;
    SEXP theta = PROTECT(custom_vector(e->parameters, e->theta));
    SEXP count = PROTECT(Rf_ScalarInteger(m));
    SEXP call = PROTECT(Rf_lang3(e->r_records, theta, count));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(x[0], REAL(value), (size_t)m * sizeof(double));
    UNPROTECT(4);
}

static double log_density(void *self, int m, const double *const *x) {
    const struct expfam *e = self;
    SEXP theta = PROTECT(custom_vector(e->parameters, e->theta));
    SEXP records = PROTECT(custom_vector(m, x[0]));
    SEXP call = PROTECT(Rf_lang3(e->log_density, records, theta));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    const double sum = block_sum(m, REAL(value));
    UNPROTECT(4);
    return sum;
}

static void add(void *self, int m, const double *const *x, double *c) {
    const struct expfam *e = self;
    SEXP records = PROTECT(custom_vector(m, x[0]));
    SEXP call = PROTECT(Rf_lang2(e->statistic, records));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    for (int j = 0; j < e->complete; ++j) c[j] += block_sum(m, REAL(value) + (size_t)j * m);
    UNPROTECT(3);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    (void)rng;
    const struct expfam *e = self;
    SEXP total = PROTECT(custom_vector(e->complete, c));
    SEXP count = PROTECT(Rf_ScalarReal(n));
    SEXP current = PROTECT(custom_vector(e->parameters, theta));
    SEXP call = PROTECT(Rf_lang4(e->r_theta, total, count, current));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(theta, REAL(value), (size_t)e->parameters * sizeof(double));
    UNPROTECT(5);
    return PLUGIN_OK;
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_density density_hooks = {.log_density = log_density};

static int create(const struct fields *fields, struct model *model) {
    SEXP spec = spec_of(fields), functions = list_element(spec, "functions");
    struct expfam *e = plugin_memory(1, sizeof *e);
    e->parameters = Rf_asInteger(list_element(spec, "parameters"));
    e->complete = Rf_asInteger(list_element(spec, "complete"));
    e->r_prior = list_element(functions, "r_prior");
    e->log_prior = list_element(functions, "log_prior");
    e->r_records = list_element(functions, "r_records");
    e->r_theta = list_element(functions, "r_theta");
    e->log_density = list_element(functions, "log_density");
    e->statistic = list_element(functions, "statistic");
    e->theta = doubles((size_t)e->parameters);
    model->self = e;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->density = &density_hooks;
    model->columns = 1;
    model->complete = e->complete;
    model->whole = 1;
    const struct theta_block theta = {
        .name = "theta", .transform = TRANSFORM_IDENTITY, .size = e->parameters};
    model_describe(model, 1, &theta);
    return PLUGIN_OK;
}

const struct model_class model_expfam = {
    .name = "expfam",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
