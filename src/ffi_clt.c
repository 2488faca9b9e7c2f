/* Method "clt" as R sees it: moments, a problem, a state that comes back, and
 * blocks of iterations. */
#include "ffi.h"
#include "method_clt.h"

/* floating-point operations between two looks at the user's interrupt, about
 * 10 ms */
static const double WORK_PER_LOOK = 1e7;

/* Mean and covariance of one record under each theta (a column): lists of the
 * same, NULL where there are none. */
SEXP ffi_clt_moments(SEXP spec, SEXP theta) {
    const struct record_moments m = read_moments(spec);
    const int wide = m.released + m.aside, count = Rf_ncols(theta);
    SEXP out = PROTECT(Rf_allocVector(VECSXP, count));
    for (int i = 0; i < count; ++i) {
        SEXP mean = PROTECT(Rf_allocVector(REALSXP, wide));
        SEXP cov = PROTECT(Rf_allocMatrix(REALSXP, wide, wide));
        const double *at = REAL(theta) + (size_t)i * (size_t)Rf_nrows(theta);
        if (m.class->eval(m.self, at, REAL(mean), REAL(cov)) == PLUGIN_OK) {
            const char *const names[] = {"mean", "cov"};
            const SEXP values[] = {mean, cov};
            SET_VECTOR_ELT(out, i, named_list(2, names, values));
        }
        UNPROTECT(2);
    }
    UNPROTECT(1);
    return out;
}

/* Draws of the total over n records under theta, one a column; NULL without the
 * hook. */
SEXP ffi_clt_simulate(SEXP spec, SEXP theta, SEXP n, SEXP draws, SEXP state) {
    const struct record_moments m = read_moments(spec);
    const int wide = m.released + m.aside, count = Rf_asInteger(draws);
    if (!m.class->simulate) return R_NilValue;
    struct rng rng;
    rng_read(state, &rng);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, wide, count));
    for (int i = 0; i < count; ++i)
        m.class->simulate(m.self, REAL(theta), Rf_asReal(n), &rng,
                          REAL(out) + (size_t)i * (size_t)wide);
    UNPROTECT(1);
    return out;
}

/* The complete-data statistic of a total over n records, whether records could
 * have it, and the nearest one that they could. */
SEXP ffi_clt_complete(SEXP spec, SEXP n, SEXP total) {
    const struct record_moments m = read_moments(spec);
    SEXP complete = PROTECT(Rf_allocVector(REALSXP, m.complete));
    SEXP valid = PROTECT(Rf_allocVector(LGLSXP, 1));
    LOGICAL(valid)[0] = m.class->complete(m.self, Rf_asReal(n), REAL(total), REAL(complete));
    SEXP projected = PROTECT(Rf_duplicate(complete));
    m.class->project(m.self, Rf_asReal(n), REAL(projected));
    const char *const names[] = {"complete", "valid", "projected"};
    const SEXP values[] = {complete, valid, projected};
    SEXP list = named_list(3, names, values);
    UNPROTECT(3);
    return list;
}

static void read_problem(SEXP problem, struct clt *a) {
    memset(a, 0, sizeof *a);
    a->model = read_model(list_element(problem, "model"));
    a->moments = read_moments(list_element(problem, "moments"));
    a->n = list_number(problem, "n");
    a->released = REAL(list_element(problem, "released"));
    a->scale = REAL(list_element(problem, "scale"));
    a->absolute = REAL(list_element(problem, "absolute"));
    a->ridge = REAL(list_element(problem, "ridge"));
    a->marginal = list_number(problem, "marginal") != 0;
    a->conjugate = list_number(problem, "conjugate") != 0;
    a->passes = (int)list_number(problem, "passes");
    clt_prepare(a);
}

enum { ITERATION, MOVES_MADE, MOVES_ACCEPTED, INVALID, PROJECTED, COUNTERS };

/* coordinates of which a proposal is learned */
static int learned(const struct clt *a) { return a->marginal ? a->model.moving : 0; }

static void attach_state(SEXP state, struct clt *a, struct rng *rng) {
    a->theta = REAL(list_element(state, "theta"));
    a->variance = REAL(list_element(state, "variance"));
    rng_read(list_element(state, "rng"), rng);
    a->rng = rng;
    const struct adapt_shape shape = {.dim = learned(a)};
    adapt_attach(&a->adapt, &shape, REAL(list_element(state, "adapt")));
    const double *counter = REAL(list_element(state, "counters"));
    a->moves_made = counter[MOVES_MADE];
    a->moves_accepted = counter[MOVES_ACCEPTED];
    a->invalid = counter[INVALID];
    a->projected = counter[PROJECTED];
}

static void detach_state(SEXP state, const struct clt *a, int iteration) {
    memcpy(RAW(list_element(state, "rng")), a->rng->s, sizeof a->rng->s);
    double *counter = REAL(list_element(state, "counters"));
    counter[ITERATION] = iteration;
    counter[MOVES_MADE] = a->moves_made;
    counter[MOVES_ACCEPTED] = a->moves_accepted;
    counter[INVALID] = a->invalid;
    counter[PROJECTED] = a->projected;
}

SEXP ffi_clt_start(SEXP problem, SEXP theta, SEXP rng_state) {
    struct clt a;
    read_problem(problem, &a);
    const struct adapt_shape shape = {.dim = learned(&a)};
    const char *const names[] = {"theta", "variance", "rng", "adapt", "counters"};
    const SEXP values[] = {
        PROTECT(Rf_duplicate(theta)),
        PROTECT(Rf_allocVector(REALSXP, a.size)),
        PROTECT(Rf_duplicate(rng_state)),
        PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)adapt_size(&shape))),
        PROTECT(Rf_allocVector(REALSXP, COUNTERS)),
    };
    SEXP state = PROTECT(named_list(5, names, values));
    memset(REAL(values[4]), 0, COUNTERS * sizeof(double));
    struct rng rng;
    attach_state(state, &a, &rng);
    clt_start(&a);
    adapt_start(&a.adapt, REAL(list_element(problem, "move_sd")), a.passes);
    detach_state(state, &a, 0);
    UNPROTECT(6);
    return state;
}

/* Room for the results of `iterations` iterations, `kept` of them with a draw. */
SEXP ffi_clt_block(SEXP problem, SEXP iterations, SEXP kept_) {
    const struct model model = read_model(list_element(problem, "model"));
    const int size = (int)Rf_xlength(list_element(problem, "released"));
    const int kept = Rf_asInteger(kept_);
    const char *const names[] = {"draws", "statistic", "log_noise", "acceptance", "made"};
    const SEXP values[] = {
        PROTECT(Rf_allocMatrix(REALSXP, model.reported, kept)),
        PROTECT(Rf_allocMatrix(REALSXP, size, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, Rf_asInteger(iterations))),
        PROTECT(Rf_allocVector(INTSXP, 3)),
    };
    memset(INTEGER(values[4]), 0, 3 * sizeof(int));
    SEXP block = named_list(5, names, values);
    UNPROTECT(5);
    return block;
}

enum { DONE, INTERRUPTED, FAILED };

/* As ffi_augment_run(). */
SEXP ffi_clt_run(SEXP problem, SEXP state, SEXP block, SEXP schedule) {
    const int warmup = INTEGER(schedule)[0], thin = INTEGER(schedule)[1];
    struct clt a;
    struct rng rng;
    read_problem(problem, &a);
    attach_state(state, &a, &rng);
    int iteration = (int)REAL(list_element(state, "counters"))[ITERATION];
    double *draws = REAL(list_element(block, "draws"));
    double *statistic = REAL(list_element(block, "statistic"));
    double *log_noise = REAL(list_element(block, "log_noise"));
    double *acceptance = REAL(list_element(block, "acceptance"));
    const int iterations = (int)Rf_xlength(list_element(block, "acceptance"));
    int *made = INTEGER(list_element(block, "made"));
    const double work = 2000 + pow(a.wide, 3);
    int status = DONE, done = 0, saved = 0;
    double since_look = 0;
    while (done < iterations && status == DONE) {
        if (clt_iterate(&a, iteration, warmup, acceptance + done) != PLUGIN_OK) {
            status = FAILED;
            break;
        }
        ++done;
        if (iteration >= warmup && (iteration - warmup + 1) % thin == 0) {
            a.model.class->report(a.model.self, a.theta, draws + (size_t)saved * a.model.reported);
            memcpy(statistic + (size_t)saved * a.size, a.total, (size_t)a.size * sizeof(double));
            log_noise[saved++] = clt_log_noise(&a);
        }
        ++iteration;
        since_look += work;
        if (since_look > WORK_PER_LOOK) {
            since_look = 0;
            if (interrupt_pending()) status = INTERRUPTED;
        }
    }
    detach_state(state, &a, iteration);
    made[0] = done;
    made[1] = saved;
    made[2] = status;
    return R_NilValue;
}
