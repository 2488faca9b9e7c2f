/* Method "collapse" as R sees it: a problem (what is known), a state that comes
 * back (what changes), and blocks of iterations. */
#include "ffi.h"
#include "method_collapse.h"

/* work between two looks at the user's interrupt, about 10 ms */
static const double WORK_PER_LOOK = 1e7;

static const struct collapse_class *const families[] = {&collapse_normal, &collapse_counts,
                                                        &collapse_recursion, &collapse_total};
enum { FAMILIES = sizeof families / sizeof families[0] };

static void read_problem(SEXP problem, struct collapse *c) {
    memset(c, 0, sizeof *c);
    c->model = read_model(list_element(problem, "model"));
    c->n = list_number(problem, "n");
    c->size = (int)Rf_xlength(list_element(problem, "released"));
    c->absolute = Rf_asInteger(list_element(problem, "absolute"));
    c->released = REAL(list_element(problem, "released"));
    c->weight = REAL(list_element(problem, "weight"));
    const char *family = CHAR(STRING_ELT(list_element(problem, "family"), 0));
    for (int k = 0; k < FAMILIES && !c->class; ++k)
        if (strcmp(families[k]->name, family) == 0) c->class = families[k];
    if (!c->class) Rf_error("internal error: no family '%s'", family);
    const struct fields fields = read_fields(list_element(problem, "fields"));
    if (c->class->create(&fields, c) != PLUGIN_OK)
        Rf_error("internal error: family '%s' refuses its fields", family);
}

/* Where the model measures its columns from; NULL if its records are not normal
 * given theta. */
SEXP ffi_collapse_origin(SEXP spec) {
    const struct model model = read_model(spec);
    if (!model.origin) return R_NilValue;
    SEXP origin = Rf_allocVector(REALSXP, model.columns);
    memcpy(REAL(origin), model.origin, (size_t)model.columns * sizeof(double));
    return origin;
}

/* What is worth keeping for later calls, or NULL. */
SEXP ffi_collapse_tables(SEXP problem) {
    struct collapse c;
    read_problem(problem, &c);
    if (!c.class->tables) return R_NilValue;
    size_t size = 0;
    const double *tables = c.class->tables(&c, &size);
    SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)size);
    memcpy(REAL(out), tables, size * sizeof(double));
    return out;
}

static void attach_state(SEXP state, struct collapse *c, struct rng *rng) {
    c->theta = REAL(list_element(state, "theta"));
    c->store = REAL(list_element(state, "store"));
    c->counter = REAL(list_element(state, "counters")) + 1; /* the first is the iteration */
    rng_read(list_element(state, "rng"), rng);
    c->rng = rng;
}

static void detach_state(SEXP state, struct collapse *c, int iteration) {
    c->class->save(c);
    memcpy(RAW(list_element(state, "rng")), c->rng->s, sizeof c->rng->s);
    REAL(list_element(state, "counters"))[0] = iteration;
}

/* A new state: theta as given, totals from their law given theta. */
SEXP ffi_collapse_start(SEXP problem, SEXP theta, SEXP rng_state) {
    struct collapse c;
    read_problem(problem, &c);
    const char *const names[] = {"theta", "store", "rng", "counters"};
    const SEXP values[] = {
        PROTECT(Rf_duplicate(theta)),
        PROTECT(Rf_allocVector(REALSXP, c.stored)),
        PROTECT(Rf_duplicate(rng_state)),
        PROTECT(Rf_allocVector(REALSXP, 1 + COLLAPSE_COUNTERS)),
    };
    SEXP state = PROTECT(named_list(4, names, values));
    memset(REAL(values[1]), 0, (size_t)c.stored * sizeof(double));
    memset(REAL(values[3]), 0, (1 + COLLAPSE_COUNTERS) * sizeof(double));
    struct rng rng;
    attach_state(state, &c, &rng);
    c.class->start(&c);
    c.class->load(&c);
    detach_state(state, &c, 0);
    UNPROTECT(5);
    return state;
}

/* The released components that a state stands for, before noise. */
SEXP ffi_collapse_totals(SEXP problem, SEXP state) {
    struct collapse c;
    struct rng rng;
    read_problem(problem, &c);
    attach_state(state, &c, &rng);
    c.class->load(&c);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, c.size));
    c.class->statistic(&c, REAL(out));
    UNPROTECT(1);
    return out;
}

/* Room for the results of `iterations` iterations, `kept` of them with a draw.
 * R holds it before a run fills it, so that an interrupt at any moment leaves
 * results and state that belong together. */
SEXP ffi_collapse_block(SEXP problem, SEXP iterations, SEXP kept_) {
    const struct model model = read_model(list_element(problem, "model"));
    const int kept = Rf_asInteger(kept_);
    const int size = (int)Rf_xlength(list_element(problem, "released"));
    const char *const names[] = {"draws",   "statistic",  "log_noise",
                                 "outside", "acceptance", "made"};
    const SEXP values[] = {
        PROTECT(Rf_allocMatrix(REALSXP, model.reported, kept)),
        PROTECT(Rf_allocMatrix(REALSXP, size, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, kept)),
        PROTECT(Rf_allocVector(REALSXP, Rf_asInteger(iterations))),
        PROTECT(Rf_allocVector(INTSXP, 3)),
    };
    memset(INTEGER(values[5]), 0, 3 * sizeof(int));
    SEXP block = named_list(6, names, values);
    UNPROTECT(6);
    return block;
}

enum { DONE, INTERRUPTED, FAILED };

/* Runs the chain on, as many iterations as the block has room for; changes
 * `state` and `block` in place. block$made: iterations, draws, status. Draws of
 * every `thin`-th iteration after warmup, one a column. Stops early, at the end
 * of an iteration, when the user interrupts or an update fails. */
SEXP ffi_collapse_run(SEXP problem, SEXP state, SEXP block, SEXP schedule) {
    const int warmup = INTEGER(schedule)[0], thin = INTEGER(schedule)[1];
    struct collapse c;
    struct rng rng;
    read_problem(problem, &c);
    attach_state(state, &c, &rng);
    const struct collapse_class *class = c.class;
    int iteration = (int)REAL(list_element(state, "counters"))[0];
    double *draws = REAL(list_element(block, "draws"));
    double *statistic = REAL(list_element(block, "statistic"));
    double *log_noise = REAL(list_element(block, "log_noise"));
    double *outside = REAL(list_element(block, "outside"));
    double *acceptance = REAL(list_element(block, "acceptance"));
    const int iterations = (int)Rf_xlength(list_element(block, "acceptance"));
    int *made = INTEGER(list_element(block, "made"));
    int status = DONE, done = 0, saved = 0;
    double since_look = WORK_PER_LOOK; /* a block of short iterations has one look, its first */
    class->load(&c);
    while (done < iterations && status == DONE) {
        if (class->iterate(&c, iteration, warmup, acceptance + done) != PLUGIN_OK) {
            status = FAILED;
            break;
        }
        ++done;
        ++iteration;
        if (iteration == warmup) memset(c.counter, 0, COLLAPSE_COUNTERS * sizeof(double));
        if (iteration > warmup && (iteration - warmup) % thin == 0) {
            class->save(&c);
            c.model.class->report(c.model.self, c.theta, draws + (size_t)saved * c.model.reported);
            class->statistic(&c, statistic + (size_t)saved * c.size);
            outside[saved] = class->outside ? class->outside(&c) : 0;
            log_noise[saved++] = -class->energy(&c);
        }
        since_look += class->work(&c);
        if (since_look > WORK_PER_LOOK) {
            since_look = 0;
            if (interrupt_pending()) status = INTERRUPTED;
        }
    }
    detach_state(state, &c, iteration);
    made[0] = done;
    made[1] = saved;
    made[2] = status;
    return R_NilValue;
}
