/* Chains of any method as R sees them: a problem (what is known), a state that
 * comes back (what changes), and blocks of iterations. */
#include "ffi_run.h"

static const void *const method_list[] = {&method_augment, &method_clt, &method_collapse};
static const struct registry methods = {"method", COUNT(method_list), method_list};

static const struct method *find_method(SEXP problem) {
    return find_class(&methods, list_element(problem, "method"));
}

static void detach(const struct method *method, void *self, SEXP state, const struct rng *rng,
                   int iteration) {
    method->detach(self, state);
    memcpy(RAW(list_element(state, "rng")), rng->s, sizeof rng->s);
    REAL(list_element(state, "counters"))[0] = iteration;
}

static void fill_zero(SEXP vector) {
    const size_t length = (size_t)Rf_xlength(vector);
    if (TYPEOF(vector) == INTSXP)
        memset(INTEGER(vector), 0, length * sizeof(int));
    else
        memset(REAL(vector), 0, length * sizeof(double));
}

/* A new state: theta as given, what is imputed drawn from its law. */
SEXP ffi_start(SEXP problem, SEXP theta, SEXP rng_state) {
    const struct method *method = find_method(problem);
    void *self = method->read(problem);
    const struct state_shape shape = method->shape(self);
    const char *names[3 + MOST_STATE_PARTS] = {"theta", "rng", "counters"};
    SEXP values[3 + MOST_STATE_PARTS];
    for (int k = 0; k < 3 + shape.parts; ++k) {
        values[k] = R_NilValue;
        if (k >= 3) names[k] = shape.part[k - 3].name;
    }
    SEXP state = PROTECT(named_list(3 + shape.parts, names, values));
    SET_VECTOR_ELT(state, 0, Rf_duplicate(theta));
    SET_VECTOR_ELT(state, 1, Rf_duplicate(rng_state));
    SET_VECTOR_ELT(state, 2, Rf_allocVector(REALSXP, shape.counters));
    for (int k = 0; k < shape.parts; ++k)
        SET_VECTOR_ELT(state, 3 + k, Rf_allocVector(shape.part[k].type, shape.part[k].length));
    for (int k = 2; k < 3 + shape.parts; ++k) fill_zero(VECTOR_ELT(state, k));
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    method->attach(self, state, &rng);
    method->start(self, problem);
    detach(method, self, state, &rng, 0);
    UNPROTECT(1);
    return state;
}

/* Room for the results of `iterations` iterations, `kept` of them with a draw.
 * R holds it before a run fills it, so that an interrupt at any moment leaves
 * results and state that belong together. */
SEXP ffi_block(SEXP problem, SEXP iterations, SEXP kept_) {
    const struct model model = read_model(list_element(problem, "model"));
    const int width = (int)Rf_xlength(list_element(problem, "released"));
    const int kept = Rf_asInteger(kept_);
    const char *const names[] = {"draws",      "statistic", "log_noise",
                                 "acceptance", "made",      "outside"};
    const int count = find_method(problem)->sampler.outside ? 6 : 5;
    const SEXP values[] = {
        PROTECT(Rf_allocMatrix(REALSXP, model.reported, kept)),
        PROTECT(Rf_allocMatrix(REALSXP, width, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, Rf_asInteger(iterations))),
        PROTECT(Rf_allocVector(INTSXP, 3)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
    };
    fill_zero(values[4]);
    SEXP block = named_list(count, names, values);
    UNPROTECT(6);
    return block;
}

/* Runs the chain on, as many iterations as the block has room for; changes
 * `state` and `block` in place. block$made: iterations, draws, status. */
SEXP ffi_run(SEXP problem, SEXP state, SEXP block, SEXP schedule) {
    const struct method *method = find_method(problem);
    void *self = method->read(problem);
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    method->attach(self, state, &rng);
    if (method->resume) method->resume(self);
    const int from = (int)REAL(list_element(state, "counters"))[0];
    SEXP draws = list_element(block, "draws"), statistic = list_element(block, "statistic");
    struct results results = {
        .draws = REAL(draws),
        .statistic = REAL(statistic),
        .log_noise = REAL(list_element(block, "log_noise")),
        .outside = method->sampler.outside ? REAL(list_element(block, "outside")) : NULL,
        .acceptance = REAL(list_element(block, "acceptance")),
        .reported = Rf_nrows(draws),
        .width = Rf_nrows(statistic),
        .iterations = (int)Rf_xlength(list_element(block, "acceptance")),
    };
    const enum run_status status = run(&method->sampler, self, from, INTEGER(schedule)[0],
                                       INTEGER(schedule)[1], interrupt_pending, &results);
    detach(method, self, state, &rng, from + results.made);
    int *made = INTEGER(list_element(block, "made"));
    made[0] = results.made;
    made[1] = results.saved;
    made[2] = status;
    return R_NilValue;
}
