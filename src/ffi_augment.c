/* Method "augment" as R sees it: a problem (what is known), a state that comes
 * back (what changes), and blocks of iterations. */
#include "ffi.h"
#include "method_augment.h"

/* work between two looks at the user's interrupt, about 10 ms */
static const double WORK_PER_LOOK = 1e7;

static void read_part(SEXP spec, struct part *part) {
    part->stat = read_stat(spec);
    part->kind = (enum part_kind)Rf_asInteger(list_element(spec, "kind"));
    part->kernel = (enum kernel)Rf_asInteger(list_element(spec, "kernel"));
    part->offset = Rf_asInteger(list_element(spec, "offset"));
    part->column = INTEGER(list_element(spec, "column"));
    if (part->kernel == KERNEL_DENSITY)
        part->density = read_density(list_element(spec, "density"), part->stat.size);
    if (part->kind != PART_RECORDS) return;
    part->local_released = REAL(list_element(spec, "released"));
    part->local_weight = REAL(list_element(spec, "weight"));
}

static void read_problem(SEXP problem, struct augment *a) {
    memset(a, 0, sizeof *a);
    a->model = read_model(list_element(problem, "model"));
    SEXP parts = list_element(problem, "parts");
    a->parts = (int)Rf_xlength(parts);
    a->part = plugin_memory((size_t)a->parts, sizeof *a->part);
    for (int k = 0; k < a->parts; ++k) read_part(VECTOR_ELT(parts, k), a->part + k);
    a->released = REAL(list_element(problem, "released"));
    a->weight = REAL(list_element(problem, "weight"));
    a->dense = Rf_asInteger(list_element(problem, "dense"));
    a->cells = (int)Rf_xlength(list_element(problem, "weight")) - a->dense;
    a->absolute = Rf_asInteger(list_element(problem, "absolute"));
    a->separable = Rf_asInteger(list_element(problem, "separable"));
    a->n = (ptrdiff_t)list_number(problem, "n");
    a->stride = PAD_LANES(a->n);
    a->plain = list_number(problem, "passes") == 0;
    augment_prepare(a);
}

/* counters of the state, in this order */
enum {
    ITERATION,
    MOST_STEP,
    WORK,
    PASSES_MADE,
    PASSES_ACCEPTED = PASSES_MADE + PASS_KINDS,
    COUNTERS = PASSES_ACCEPTED + PASS_KINDS
};

static struct adapt_shape learned_shape(const struct model *model) {
    const struct adapt_shape shape = {
        .dim = model->class->move ? model->moving : 0,
        .groups = model->class->move && model->groups > 1 ? model->groups : 0,
        .complete = model->class->perturb ? model->complete : 0,
        .group = model->group,
    };
    return shape;
}

static void attach_state(SEXP state, struct augment *a, struct rng *rng) {
    a->theta = REAL(list_element(state, "theta"));
    a->x = REAL(list_element(state, "x"));
    const double *residual = REAL(list_element(state, "residual"));
    memcpy(a->residual, residual, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, residual + a->dense, (size_t)a->cells * sizeof(double));
    rng_read(list_element(state, "rng"), rng);
    a->rng = rng;
    a->accepted = INTEGER(list_element(state, "accepted"));
    const struct adapt_shape shape = learned_shape(&a->model);
    adapt_attach(&a->adapt, &shape, REAL(list_element(state, "adapt")));
    const double *counter = REAL(list_element(state, "counters"));
    a->most_energy_step = counter[MOST_STEP];
    a->work = counter[WORK];
    memcpy(a->passes_made, counter + PASSES_MADE, sizeof a->passes_made);
    memcpy(a->passes_accepted, counter + PASSES_ACCEPTED, sizeof a->passes_accepted);
}

static void detach_state(SEXP state, const struct augment *a, int iteration) {
    double *residual = REAL(list_element(state, "residual"));
    memcpy(residual, a->residual, (size_t)a->dense * sizeof(double));
    memcpy(residual + a->dense, a->cell_residual, (size_t)a->cells * sizeof(double));
    memcpy(RAW(list_element(state, "rng")), a->rng->s, sizeof a->rng->s);
    double *counter = REAL(list_element(state, "counters"));
    counter[ITERATION] = iteration;
    counter[MOST_STEP] = a->most_energy_step;
    counter[WORK] = a->work;
    memcpy(counter + PASSES_MADE, a->passes_made, sizeof a->passes_made);
    memcpy(counter + PASSES_ACCEPTED, a->passes_accepted, sizeof a->passes_accepted);
}

/* A new state: theta as given, records drawn from it. */
SEXP ffi_augment_start(SEXP problem, SEXP theta, SEXP rng_state) {
    struct augment a;
    read_problem(problem, &a);
    const struct adapt_shape shape = learned_shape(&a.model);
    const R_xlen_t cells = (R_xlen_t)a.stride * a.model.columns;
    const char *const names[] = {"theta", "x", "residual", "rng", "accepted", "adapt", "counters"};
    const SEXP values[] = {
        PROTECT(Rf_duplicate(theta)),
        PROTECT(Rf_allocVector(REALSXP, cells)),
        PROTECT(Rf_allocVector(REALSXP, (a.dense + a.cells))),
        PROTECT(Rf_duplicate(rng_state)),
        PROTECT(Rf_allocVector(INTSXP, (R_xlen_t)a.n)),
        PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)adapt_size(&shape))),
        PROTECT(Rf_allocVector(REALSXP, COUNTERS)),
    };
    SEXP state = PROTECT(named_list(7, names, values));
    memset(REAL(values[1]), 0, (size_t)cells * sizeof(double));
    memset(REAL(values[2]), 0, (size_t)(a.dense + a.cells) * sizeof(double));
    memset(INTEGER(values[4]), 0, (size_t)a.n * sizeof(int));
    memset(REAL(values[6]), 0, COUNTERS * sizeof(double));
    REAL(values[6])[MOST_STEP] = R_NegInf;

    struct rng rng;
    attach_state(state, &a, &rng);
    augment_start(&a);
    adapt_start(&a.adapt, REAL(list_element(problem, "move_sd")), list_number(problem, "passes"));
    detach_state(state, &a, 0);
    UNPROTECT(8);
    return state;
}

/* The confidential statistic that the state's records have. */
static void current_statistic(const struct augment *a, double *out) {
    const int dense = a->dense;
    for (int j = 0; j < dense + a->cells; ++j) {
        const double residual = j < dense ? a->residual[j] : a->cell_residual[j - dense];
        out[j] = a->weight[j] > 0 ? a->released[j] - residual / a->weight[j] : 0;
    }
}

/* Room for the results of `iterations` iterations, `kept` of them with a draw.
 * R holds it before a run fills it, so that an interrupt at any moment leaves
 * results and state that belong together. */
SEXP ffi_augment_block(SEXP problem, SEXP iterations, SEXP kept_) {
    const struct model model = read_model(list_element(problem, "model"));
    const int width = (int)Rf_xlength(list_element(problem, "weight"));
    const int kept = Rf_asInteger(kept_);
    const char *const names[] = {"draws", "statistic", "log_noise", "acceptance", "made"};
    const SEXP values[] = {
        PROTECT(Rf_allocMatrix(REALSXP, model.reported, kept)),
        PROTECT(Rf_allocMatrix(REALSXP, width, kept)),
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

/* Runs the chain on, as many iterations as the block has room for; changes
 * `state` and `block` in place. block$made: iterations, draws, status. Draws of
 * every `thin`-th iteration after warmup, one a column. Stops early, at the end
 * of an iteration, when the user interrupts or an update fails. */
SEXP ffi_augment_run(SEXP problem, SEXP state, SEXP block, SEXP schedule) {
    const int warmup = INTEGER(schedule)[0], thin = INTEGER(schedule)[1];
    struct augment a;
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
    int status = DONE, done = 0, saved = 0;
    double looked = a.work;
    while (done < iterations && status == DONE) {
        ptrdiff_t accepted = 0;
        if (augment_iterate(&a, iteration, warmup, &accepted) != PLUGIN_OK) {
            status = FAILED;
            break;
        }
        acceptance[done++] = (double)accepted / (double)a.n;
        if (iteration >= warmup && (iteration - warmup + 1) % thin == 0) {
            a.model.class->report(a.model.self, a.theta, draws + (size_t)saved * a.model.reported);
            current_statistic(&a, statistic + (size_t)saved * (a.dense + a.cells));
            log_noise[saved++] = -augment_energy(&a);
        }
        ++iteration;
        if (a.work < looked || a.work - looked > WORK_PER_LOOK) {
            looked = a.work;
            if (interrupt_pending()) status = INTERRUPTED;
        }
    }
    detach_state(state, &a, iteration);
    made[0] = done;
    made[1] = saved;
    made[2] = status;
    return R_NilValue;
}
