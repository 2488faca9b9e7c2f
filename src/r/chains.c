/* Chains of any method as R sees them: a problem (what is known), a state that
 * comes back (what changes), and blocks of iterations. */
#include "r/run.h"

static const void *const method_list[] = {&method_augment, &method_clt, &method_collapse,
                                          &method_pool, &method_pool_records};
static const struct registry methods = {"method", COUNT(method_list), method_list};

/* A problem's "engine" is the method whose code runs, where that is another's. */
static const struct method *find_method(SEXP problem) {
    SEXP engine = optional_element(problem, "engine");
    return find_class(&methods, engine ? engine : list_element(problem, "method"));
}

static void detach(const struct method *method, void *self, SEXP state, const struct rng *rng,
                   int iteration) {
    if (method->detach) method->detach(self, state);
    memcpy(RAW(list_element(state, "rng")), rng->s, sizeof rng->s);
    REAL(list_element(state, "iteration"))[0] = iteration;
}

static void fill_zero(SEXP vector) {
    const size_t length = (size_t)Rf_xlength(vector);
    if (TYPEOF(vector) == INTSXP)
        memset(INTEGER(vector), 0, length * sizeof(int));
    else
        memset(REAL(vector), 0, length * sizeof(double));
}

/* A new state: theta as given, what is imputed drawn from its distribution. NULL: no state was
 * found that the release has density at. */
SEXP ffi_start(SEXP problem, SEXP theta, SEXP rng_state) {
    const struct method *method = find_method(problem);
    void *self = method->read(problem);
    const struct state_shape shape = method->shape(self);
    enum { SHARED = 4 }; /* parts that every method has */
    const char *names[SHARED + MOST_STATE_PARTS] = {"theta", "rng", "iteration", "counters"};
    SEXP values[SHARED + MOST_STATE_PARTS];
    for (int k = 0; k < SHARED + shape.parts; ++k) {
        values[k] = R_NilValue;
        if (k >= SHARED) names[k] = shape.part[k - SHARED].name;
    }
    SEXP state = PROTECT(list_of(SHARED + shape.parts, names, values));
    SET_VECTOR_ELT(state, 0, Rf_duplicate(theta));
    SET_VECTOR_ELT(state, 1, Rf_duplicate(rng_state));
    SET_VECTOR_ELT(state, 2, Rf_allocVector(REALSXP, 1));
    SET_VECTOR_ELT(state, 3, Rf_allocVector(REALSXP, shape.counters));
    for (int k = 0; k < shape.parts; ++k)
        SET_VECTOR_ELT(state, SHARED + k, Rf_allocVector(shape.part[k].type, shape.part[k].length));
    for (int k = 2; k < SHARED + shape.parts; ++k) fill_zero(VECTOR_ELT(state, k));
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    method->attach(self, state, &rng);
    method->start(self, problem);
    detach(method, self, state, &rng, 0);
    const int possible = !method->may_fail || method->sampler.log_noise(self) > R_NegInf;
    UNPROTECT(1);
    return possible ? state : R_NilValue;
}

/* Room for the results of `iterations` iterations, `kept` of them with a draw.
 * R holds it before a run fills it, so that an interrupt at any moment leaves
 * results and state that belong together. */
SEXP ffi_block(SEXP problem, SEXP iterations, SEXP kept_) {
    const struct model model = read_model(list_element(problem, "model"));
    const int width = statistic_width(problem);
    const int kept = Rf_asInteger(kept_);
    SEXP draw = optional_element(problem, "names"); /* where it is not what the model reports */
    const int reported = draw ? (int)Rf_xlength(draw) : model.reported;
    SEXP made = PROTECT(named_list(
        4, "iterations", PROTECT(Rf_ScalarInteger(0)), "draws", PROTECT(Rf_ScalarInteger(0)),
        "status", PROTECT(Rf_ScalarInteger(0)), "work", PROTECT(Rf_ScalarReal(0))));
    const char *names[] = {"draws", "statistic", "log_noise", "acceptance", "made", NULL, NULL};
    SEXP values[] = {
        PROTECT(Rf_allocMatrix(REALSXP, reported, kept)),
        PROTECT(Rf_allocMatrix(REALSXP, width, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, Rf_asInteger(iterations))),
        made,
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
    };
    int count = 5;
    if (find_method(problem)->sampler.outside) names[count++] = "outside";
    if (read_size_prior(problem)) names[count++] = "records";
    SEXP block = list_of(count, names, values);
    UNPROTECT(11);
    return block;
}

/* Runs the chain on, as many iterations as the block has room for; changes
 * `state` and `block` in place. */
SEXP ffi_run(SEXP problem, SEXP state, SEXP block, SEXP schedule) {
    const struct method *method = find_method(problem);
    void *self = method->read(problem);
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    method->attach(self, state, &rng);
    if (method->resume) method->resume(self);
    const int from = (int)list_number(state, "iteration");
    SEXP draws = list_element(block, "draws"), statistic = list_element(block, "statistic");
    struct results results = {
        .draws = REAL(draws),
        .statistic = REAL(statistic),
        .log_noise = REAL(list_element(block, "log_noise")),
        .outside = method->sampler.outside ? REAL(list_element(block, "outside")) : NULL,
        .acceptance = REAL(list_element(block, "acceptance")),
        .records = read_size_prior(problem) ? REAL(list_element(block, "records")) : NULL,
        .reported = Rf_nrows(draws),
        .width = Rf_nrows(statistic),
        .iterations = (int)Rf_xlength(list_element(block, "acceptance")),
    };
    const enum run_status status =
        run(&method->sampler, self, from, (int)list_number(schedule, "warmup"),
            (int)list_number(schedule, "thin"), interrupt_pending, &results);
    detach(method, self, state, &rng, from + results.made);
    SEXP made = list_element(block, "made");
    INTEGER(list_element(made, "iterations"))[0] = results.made;
    INTEGER(list_element(made, "draws"))[0] = results.saved;
    INTEGER(list_element(made, "status"))[0] = status;
    REAL(list_element(made, "work"))[0] = results.work;
    return R_NilValue;
}

/* What the chain in that state reports about itself: a named vector. */
SEXP ffi_chain_diagnostics(SEXP problem, SEXP state, SEXP schedule) {
    const struct method *method = find_method(problem);
    void *self = method->read(problem);
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    method->attach(self, state, &rng);
    const double after = list_number(state, "iteration") - list_number(schedule, "warmup");
    struct chain_diagnostics told = {.count = 0};
    method->diagnostics(self, fmax(after, 0), &told);
    SEXP values = PROTECT(Rf_allocVector(REALSXP, told.count));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, told.count));
    for (int k = 0; k < told.count; ++k) {
        REAL(values)[k] = told.value[k];
        SET_STRING_ELT(names, k, Rf_mkChar(told.name[k]));
    }
    Rf_setAttrib(values, R_NamesSymbol, names);
    UNPROTECT(2);
    return values;
}
