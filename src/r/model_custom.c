/* Model "custom": the user's R functions over all records at once.
 *
 * The complete-data statistic of such a model is the records themselves: `add`
 * notes where they are, and `rtheta` hands them to the user's function. The
 * package's own streams are private (base/rng_draws.c), R's generator is never held open
 * here, so a function that draws random numbers cannot replay ours.
 *
 * Outside a run the functions are R wrappers that name, check and convert (R/model_custom.R). In a
 * run they are the user's own: this file adds names, inspects the result, and passes only doubtful
 * results to the R checks, which convert them or stop. `running` then names the function that is
 * running, for the error handler in R.
 */
#include "contract/model_density.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "contract/registry.h"
#include "r/custom.h"

/* what `running` holds */
enum { NOTHING, R_RECORDS, R_THETA, MOVE, LOG_PRIOR, LOG_DENSITY, FUNCTIONS };

static const char *const function_names[FUNCTIONS] = {
    [NOTHING] = "",  [R_RECORDS] = "r_records", [R_THETA] = "r_theta",
    [MOVE] = "move", [LOG_PRIOR] = "log_prior", [LOG_DENSITY] = "log_density",
};

/* The name of the function at work, "" if none is. */
SEXP ffi_running(SEXP running) { return Rf_mkString(function_names[Rf_asInteger(running)]); }

struct custom {
    int columns, parameters;
    SEXP r_prior, log_prior, r_records, r_theta, move, log_density;
    int *running; /* NULL outside a run */
    SEXP names, dimnames, check_theta, check_records, check_log;
    double *theta, *theta_new;
    const double **column;
    int count;
};

static SEXP records_of(const struct custom *c, int m, const double *const *x) {
    SEXP matrix = PROTECT(custom_records(m, c->columns, x));
    if (c->running) Rf_setAttrib(matrix, R_DimNamesSymbol, c->dimnames);
    UNPROTECT(1);
    return matrix;
}

static SEXP vector_of(const struct custom *c, const double *value) {
    SEXP vector = PROTECT(custom_vector(c->parameters, value));
    if (c->running) Rf_setAttrib(vector, R_NamesSymbol, c->names);
    UNPROTECT(1);
    return vector;
}

static SEXP call_function(const struct custom *c, int which, SEXP call) {
    if (c->running) *c->running = which;
    SEXP value = Rf_eval(call, R_GlobalEnv);
    if (c->running) *c->running = NOTHING;
    return value;
}

/* no names, or just these */
static int has_names(SEXP given, SEXP names) {
    if (given == R_NilValue || given == names) return 1;
    if (TYPEOF(given) != STRSXP || XLENGTH(given) != XLENGTH(names)) return 0;
    for (R_xlen_t i = 0; i < XLENGTH(names); ++i)
        if (STRING_ELT(given, i) != STRING_ELT(names, i)) return 0;
    return 1;
}

static int is_plain(SEXP value, R_xlen_t size) {
    return TYPEOF(value) == REALSXP && !Rf_isObject(value) && XLENGTH(value) == size;
}

/* the value as theta; protect it again */
static SEXP as_theta(const struct custom *c, SEXP value) {
    if (!c->running) return value;
    int plain =
        is_plain(value, c->parameters) && has_names(Rf_getAttrib(value, R_NamesSymbol), c->names);
    for (int j = 0; plain && j < c->parameters; ++j) plain = isfinite(REAL(value)[j]);
    if (plain) return value;
    SEXP name = PROTECT(Rf_mkString("r_theta"));
    SEXP call = PROTECT(Rf_lang3(c->check_theta, value, name));
    value = Rf_eval(call, R_GlobalEnv);
    UNPROTECT(2);
    return value;
}

/* the value as records; protect it again */
static SEXP as_records(const struct custom *c, int m, SEXP value, const char *function) {
    if (!c->running) return value;
    const R_xlen_t size = (R_xlen_t)m * c->columns;
    int plain = is_plain(value, size);
    if (plain) {
        SEXP dim = Rf_getAttrib(value, R_DimSymbol), names = Rf_getAttrib(value, R_DimNamesSymbol);
        plain = dim == R_NilValue
                    ? c->columns == 1
                    : LENGTH(dim) == 2 && INTEGER(dim)[0] == m && INTEGER(dim)[1] == c->columns;
        if (names != R_NilValue && LENGTH(names) == 2)
            plain = plain && has_names(VECTOR_ELT(names, 1), VECTOR_ELT(c->dimnames, 1));
    }
    const double *record = plain ? REAL(value) : NULL;
    int missing = 0;
    for (R_xlen_t i = 0; plain && i < size; ++i) missing |= isnan(record[i]);
    if (plain && !missing) return value;
    SEXP count = PROTECT(Rf_ScalarInteger(m)), name = PROTECT(Rf_mkString(function));
    SEXP call = PROTECT(Rf_lang4(c->check_records, value, count, name));
    value = Rf_eval(call, R_GlobalEnv);
    UNPROTECT(3);
    return value;
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

/* a log density, in a run checked; the call is protected here */
static double log_of(const struct custom *c, int which, const char *function, SEXP call) {
    PROTECT(call);
    SEXP value = PROTECT(call_function(c, which, call));
    const int plain = is_plain(value, 1) && !isnan(*REAL(value)) && *REAL(value) < INFINITY;
    if (c->running && !plain) {
        SEXP name = PROTECT(Rf_mkString(function));
        SEXP check = PROTECT(Rf_lang3(c->check_log, value, name));
        value = Rf_eval(check, R_GlobalEnv);
        UNPROTECT(2);
    }
    UNPROTECT(2);
    return Rf_asReal(value);
}

static double dprior(void *self, const double *theta) {
    const struct custom *c = self;
    SEXP vector = PROTECT(vector_of(c, theta));
    const double value = log_of(c, LOG_PRIOR, "log_prior", Rf_lang2(c->log_prior, vector));
    UNPROTECT(1);
    return value;
}

static double log_density(void *self, int m, const double *const *x) {
    const struct custom *c = self;
    SEXP theta = PROTECT(vector_of(c, c->theta));
    SEXP records = PROTECT(records_of(c, m, x));
    const double value =
        log_of(c, LOG_DENSITY, "log_density", Rf_lang3(c->log_density, theta, records));
    UNPROTECT(2);
    return value;
}

static void set(void *self, const double *theta) {
    struct custom *c = self;
    memcpy(c->theta, theta, (size_t)c->parameters * sizeof(double));
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    (void)rng;
    const struct custom *c = self;
    SEXP theta = PROTECT(vector_of(c, c->theta));
    SEXP count = PROTECT(Rf_ScalarInteger(m));
    SEXP call = PROTECT(Rf_lang3(c->r_records, theta, count));
    SEXP value = PROTECT(call_function(c, R_RECORDS, call));
    SEXP records = PROTECT(as_records(c, m, value, "r_records"));
    store_records(c, m, records, x);
    UNPROTECT(5);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct custom *c = self;
    memcpy(c->theta_new, theta_new, (size_t)c->parameters * sizeof(double));
    for (int v = 0; v < c->columns; ++v) changed[v] = 1;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng;
    const struct custom *c = self;
    SEXP theta = PROTECT(vector_of(c, c->theta));
    SEXP theta_new = PROTECT(vector_of(c, c->theta_new));
    SEXP records = PROTECT(records_of(c, m, x));
    SEXP call = PROTECT(Rf_lang4(c->move, theta, theta_new, records));
    SEXP value = PROTECT(call_function(c, MOVE, call));
    SEXP moved = PROTECT(as_records(c, m, value, "move"));
    store_records(c, m, moved, x_new);
    UNPROTECT(6);
}

static void add(void *self, int m, const double *const *x, double *complete) {
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
    SEXP records = PROTECT(records_of(c, c->count, c->column));
    SEXP current = PROTECT(vector_of(c, theta));
    SEXP call = PROTECT(Rf_lang3(c->r_theta, records, current));
    SEXP value = PROTECT(call_function(c, R_THETA, call));
    SEXP drawn = PROTECT(as_theta(c, value));
    memcpy(theta, REAL(drawn), (size_t)c->parameters * sizeof(double));
    UNPROTECT(5);
    return PLUGIN_OK;
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_density density_hooks = {.log_density = log_density};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static int create(const struct fields *fields, struct model *model) {
    SEXP spec = spec_of(fields);
    SEXP running = list_element(spec, "running"), checks = list_element(spec, "checks");
    SEXP functions = list_element(spec, running == R_NilValue ? "functions" : "user");
    struct custom *c = plugin_memory(1, sizeof *c);
    c->columns = Rf_asInteger(list_element(spec, "columns"));
    c->parameters = Rf_asInteger(list_element(spec, "parameters"));
    if (running != R_NilValue) {
        c->running = INTEGER(running);
        *c->running = NOTHING;
    }
    c->names = list_element(spec, "names");
    c->dimnames = list_element(spec, "dimnames");
    c->check_theta = list_element(checks, "theta");
    c->check_records = list_element(checks, "records");
    c->check_log = list_element(checks, "log");
    c->r_prior = list_element(list_element(spec, "functions"), "r_prior");
    c->r_records = list_element(functions, "r_records");
    c->r_theta = list_element(functions, "r_theta");
    c->move = list_element(functions, "move");
    c->log_prior = list_element(functions, "log_prior");
    c->log_density = list_element(functions, "log_density");
    DOUBLES((size_t)c->parameters, &c->theta, &c->theta_new);
    c->column = plugin_memory((size_t)c->columns, sizeof(double *));
    model->self = c;
    if (c->log_prior != R_NilValue) model->prior = &prior_hooks;
    if (c->r_theta != R_NilValue) {
        model->statistic = &statistic_hooks;
        model->update = &update_hooks;
    }
    if (c->log_density != R_NilValue) model->density = &density_hooks;
    if (c->move != R_NilValue) model->move = &move_hooks;
    model->columns = c->columns;
    model->whole = 1;
    model->costs.move = c->columns; /* a call of the user's function costs about as much */
    const struct theta_block theta = {
        .name = "theta", .transform = TRANSFORM_IDENTITY, .size = c->parameters};
    model_describe(model, 1, &theta);
    return PLUGIN_OK;
}

const struct model_class model_custom = {
    .name = "custom",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
