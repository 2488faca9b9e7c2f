/* Model "custom": the user's R functions over all records at once.
 *
 * The complete-data statistic of such a model is the records themselves: `add`
 * notes where they are, and `rtheta` hands them to the user's function. The
 * package's own streams are private (rng.c), R's generator is never held open
 * here, so a function that draws random numbers cannot replay ours.
 * Values are checked by the R wrappers of the functions (R/model_custom.R).
 */
#include "custom.h"

struct custom {
    int columns, parameters;
    SEXP r_prior, log_prior, r_records, r_theta, move;
    double *theta, *theta_new;
    const double **column;
    int count;
};

SEXP custom_records(int m, int columns, const double *const *x) {
    SEXP matrix = PROTECT(Rf_allocMatrix(REALSXP, m, columns));
    for (int v = 0; v < columns; ++v)
        memcpy(REAL(matrix) + (size_t)v * m, x[v], (size_t)m * sizeof(double));
    UNPROTECT(1);
    return matrix;
}

static SEXP vector_of(int n, const double *value) {
    SEXP vector = Rf_allocVector(REALSXP, n);
    memcpy(REAL(vector), value, (size_t)n * sizeof(double));
    return vector;
}

static void store_records(const struct custom *c, int m, SEXP matrix, double *const *x) {
    for (int v = 0; v < c->columns; ++v)
        memcpy(x[v], REAL(matrix) + (size_t)v * m, (size_t)m * sizeof(double));
}

static void rprior(void *self, struct rng *rng, double *theta) {
    (void)rng;
    const struct custom *c = self;
    SEXP call = PROTECT(Rf_lang1(c->r_prior));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(theta, REAL(value), (size_t)c->parameters * sizeof(double));
    UNPROTECT(2);
}

static double dprior(void *self, const double *theta) {
    const struct custom *c = self;
    SEXP vector = PROTECT(vector_of(c->parameters, theta));
    SEXP call = PROTECT(Rf_lang2(c->log_prior, vector));
    const double value = Rf_asReal(Rf_eval(call, R_GlobalEnv));
    UNPROTECT(2);
    return value;
}

static void report(void *self, const double *theta, double *out) {
    const struct custom *c = self;
    memcpy(out, theta, (size_t)c->parameters * sizeof(double));
}

static void set(void *self, const double *theta) {
    struct custom *c = self;
    memcpy(c->theta, theta, (size_t)c->parameters * sizeof(double));
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    (void)rng;
    const struct custom *c = self;
    SEXP theta = PROTECT(vector_of(c->parameters, c->theta));
    SEXP count = PROTECT(Rf_ScalarInteger(m));
    SEXP call = PROTECT(Rf_lang3(c->r_records, theta, count));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    store_records(c, m, value, x);
    UNPROTECT(4);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct custom *c = self;
    memcpy(c->theta_new, theta_new, (size_t)c->parameters * sizeof(double));
    for (int v = 0; v < c->columns; ++v) changed[v] = 1;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng;
    const struct custom *c = self;
    SEXP theta = PROTECT(vector_of(c->parameters, c->theta));
    SEXP theta_new = PROTECT(vector_of(c->parameters, c->theta_new));
    SEXP records = PROTECT(custom_records(m, c->columns, x));
    SEXP call = PROTECT(Rf_lang4(c->move, theta, theta_new, records));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    store_records(c, m, value, x_new);
    UNPROTECT(5);
}

static void add(void *self, double sign, int m, const double *const *x, double *complete) {
    (void)sign;
    (void)complete;
    struct custom *c = self;
    for (int v = 0; v < c->columns; ++v) c->column[v] = x[v];
    c->count = m;
}

static int rtheta(void *self, const double *complete, double n, struct rng *rng, double *theta) {
    (void)complete;
    (void)n;
    (void)rng;
    const struct custom *c = self;
    SEXP records = PROTECT(custom_records(c->count, c->columns, c->column));
    SEXP current = PROTECT(vector_of(c->parameters, theta));
    SEXP call = PROTECT(Rf_lang3(c->r_theta, records, current));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(theta, REAL(value), (size_t)c->parameters * sizeof(double));
    UNPROTECT(4);
    return PLUGIN_OK;
}

static const struct model_class plain_class = {
    .name = "custom",
    .rprior = rprior,
    .report = report,
    .set = set,
    .rrecords = rrecords,
    .add = add,
    .rtheta = rtheta,
};

static const struct model_class moving_class = {
    .name = "custom",
    .rprior = rprior,
    .dprior = dprior,
    .report = report,
    .set = set,
    .rrecords = rrecords,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
};

struct model model_custom_read(SEXP spec) {
    SEXP functions = list_element(spec, "functions");
    struct custom *c = plugin_memory(1, sizeof *c);
    c->columns = Rf_asInteger(list_element(spec, "columns"));
    c->parameters = Rf_asInteger(list_element(spec, "parameters"));
    c->r_prior = list_element(functions, "r_prior");
    c->r_records = list_element(functions, "r_records");
    c->r_theta = list_element(functions, "r_theta");
    c->move = list_element(functions, "move");
    c->log_prior = list_element(functions, "log_prior");
    c->theta = plugin_memory((size_t)c->parameters, sizeof(double));
    c->theta_new = plugin_memory((size_t)c->parameters, sizeof(double));
    c->column = plugin_memory((size_t)c->columns, sizeof(double *));
    const int moving = c->move != R_NilValue;
    struct model model = {
        .class = moving ? &moving_class : &plain_class,
        .self = c,
        .columns = c->columns,
        .parameters = c->parameters,
        .moving = c->parameters,
        .moves = plugin_memory((size_t)c->parameters, sizeof(int)),
        .reported = c->parameters,
        .whole = 1,
        .move_draws = c->columns, /* a call of the user's function costs about as much */
    };
    for (int j = 0; j < c->parameters; ++j) model.moves[j] = j;
    return model;
}
