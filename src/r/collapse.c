/* Method "collapse" as R sees it, its origin and its tables by themselves. */
#include "contract/collapse.h"
#include "contract/model.h"
#include "contract/model_normal.h"
#include "r/run.h"

static const void *const family_list[] = {
    &collapse_normal,  &collapse_counts,  &collapse_recursion, &collapse_table,
    &collapse_total,   &collapse_records, &collapse_crossing,  &collapse_row,
    &collapse_answers, &collapse_imputed, &collapse_public,    &collapse_public_totals};
static const struct registry families = {"family", COUNT(family_list), family_list};

struct collapse *read_collapse(SEXP problem) {
    struct collapse *c = plugin_memory(1, sizeof *c);
    c->model = read_model(list_element(problem, "model"));
    c->n = list_number(problem, "n");
    c->size_prior = read_size_prior(problem);
    c->noise = read_noise(problem);
    c->totals = doubles((size_t)statistic_width(problem));
    c->class = find_class(&families, list_element(problem, "family"));
    const struct fields fields = read_fields(problem);
    if (c->class->create(&fields, c) != PLUGIN_OK)
        Rf_error("internal error: family '%s' refuses its fields", c->class->name);
    return c;
}

static void *read(SEXP problem) { return read_collapse(problem); }

/* Where the model measures its columns from; NULL if its records are not normal
 * given theta. */
SEXP ffi_collapse_origin(SEXP spec) {
    const struct model model = read_model(spec);
    if (!model.normal) return R_NilValue;
    SEXP origin = Rf_allocVector(REALSXP, model.columns);
    memcpy(REAL(origin), model.normal->origin, (size_t)model.columns * sizeof(double));
    return origin;
}

/* What is worth keeping for later calls, or NULL. */
SEXP ffi_collapse_tables(SEXP problem) {
    const struct collapse *c = read(problem);
    if (!c->class->tables) return R_NilValue;
    size_t size = 0;
    const double *tables = c->class->tables(c, &size);
    SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)size);
    memcpy(REAL(out), tables, size * sizeof(double));
    return out;
}

static struct state_shape shape(const void *self) {
    const struct collapse *c = self;
    const struct state_shape shape = {
        .counters = COLLAPSE_COUNTERS,
        .parts = 1,
        .part = {{"store", REALSXP, c->stored}},
    };
    return shape;
}

static void attach(void *self, SEXP state, struct rng *rng) {
    struct collapse *c = self;
    c->theta = REAL(list_element(state, "theta"));
    c->store = REAL(list_element(state, "store"));
    c->counter = REAL(list_element(state, "counters"));
    c->rng = rng;
}

static void resume(void *self) {
    struct collapse *c = self;
    c->class->load(c);
}

static void start(void *self, SEXP problem) {
    struct collapse *c = self;
    c->given = Rf_asLogical(list_element(problem, "given"));
    c->class->start(c);
    c->class->load(c);
}

/* No random number is drawn from there. */
static struct collapse *read_state(SEXP problem, SEXP state) {
    struct collapse *c = read(problem);
    attach(c, state, NULL);
    resume(c);
    return c;
}

/* The released components at a state, before noise. */
SEXP ffi_collapse_totals(SEXP problem, SEXP state) {
    const struct collapse *c = read_state(problem, state);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, statistic_width(problem)));
    c->class->statistic(c, REAL(out));
    UNPROTECT(1);
    return out;
}

/* Of normal totals: log density of the state at other coordinates, and its gradient. */
SEXP ffi_collapse_density(SEXP problem, SEXP state, SEXP coordinates) {
    const struct collapse *c = read_state(problem, state);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, 1 + Rf_xlength(coordinates)));
    REAL(out)[0] = c->class->coordinates->log_density(c, REAL(coordinates), REAL(out) + 1);
    UNPROTECT(1);
    return out;
}

/* Of normal totals of an unknown number of records: a step of n from the state, which stays.
 * Returns where its coordinates lead, and the log ratio. */
SEXP ffi_collapse_resize(SEXP problem, SEXP state, SEXP n, SEXP hold, SEXP coordinates) {
    struct collapse *c = read_state(problem, PROTECT(Rf_duplicate(state)));
    SEXP at = PROTECT(Rf_duplicate(coordinates));
    SEXP ratio = PROTECT(Rf_ScalarReal(
        c->class->coordinates->resize(c, Rf_asReal(n), Rf_asLogical(hold), REAL(at))));
    SEXP list = named_list(2, "at", at, "log_ratio", ratio);
    UNPROTECT(3);
    return list;
}

/* Of normal totals: the complete-data statistic of a state, and the factors' cross-table. */
SEXP ffi_collapse_complete(SEXP problem, SEXP state) {
    const struct collapse *c = read_state(problem, state);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, c->described));
    c->class->complete->statistic(c, REAL(out));
    UNPROTECT(1);
    return out;
}

/* Of normal totals that bounds clamp: the components that are expected of a complete-data
 * statistic and a cross-table, and what is left of their variances. */
SEXP ffi_collapse_clamped(SEXP problem, SEXP complete) {
    const struct collapse *c = read(problem);
    SEXP mean = PROTECT(Rf_allocVector(REALSXP, c->noise.size));
    SEXP left = PROTECT(Rf_allocVector(REALSXP, c->noise.size));
    c->class->complete->clamped(c, REAL(complete), REAL(mean), REAL(left));
    SEXP list = named_list(2, "mean", mean, "left", left);
    UNPROTECT(2);
    return list;
}

static int iterate(void *self, int iteration, int warmup, struct step *step) {
    struct collapse *c = self;
    const int status = c->class->iterate(c, iteration, warmup, &step->acceptance);
    step->work = c->class->work(c);
    /* counters speak of what follows */
    if (iteration + 1 == warmup) memset(c->counter, 0, COLLAPSE_COUNTERS * sizeof(double));
    return status;
}

static void report(void *self, double *draw) {
    const struct collapse *c = self;
    model_report(&c->model, c->theta, draw);
}

static void statistic(void *self, double *out) {
    const struct collapse *c = self;
    c->class->statistic(c, out);
}

static double log_noise(void *self) {
    const struct collapse *c = self;
    return -collapse_energy(c);
}

static double outside(void *self) {
    const struct collapse *c = self;
    return c->class->outside ? c->class->outside(c) : 0;
}

static double records(void *self) {
    const struct collapse *c = self;
    return c->class->records(c);
}

static void diagnostics(const void *self, double after, struct chain_diagnostics *told) {
    const struct collapse *c = self;
    (void)after;
    for (int k = 0; k < COLLAPSE_COUNTERS && c->class->counters[k]; ++k)
        diagnostics_tell(told, c->class->counters[k], c->counter[k]);
}

const struct method method_collapse = {
    .name = "collapse",
    .sampler = {.iterate = iterate,
                .report = report,
                .statistic = statistic,
                .log_noise = log_noise,
                .outside = outside,
                .records = records},
    .read = read,
    .shape = shape,
    .attach = attach,
    .resume = resume,
    .diagnostics = diagnostics,
    .start = start,
};
