/* Method "clt" as R sees it, and the moments by themselves. */
#include "clt/clt.h"
#include "contract/model.h"
#include "r/run.h"

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
            SET_VECTOR_ELT(out, i, named_list(2, "mean", mean, "cov", cov));
        }
        UNPROTECT(2);
    }
    UNPROTECT(1);
    return out;
}

/* The total over n records that innovations make (each column), A'r for a vector r, and, for the
 * last column, the gradient of r'total in theta: a list; NULL without the hooks. */
SEXP ffi_clt_form(SEXP spec, SEXP theta, SEXP n, SEXP innovations, SEXP r) {
    const struct record_moments m = read_moments(spec);
    if (!m.class->from_innovations) return R_NilValue;
    const int wide = m.released + m.aside;
    SEXP total = PROTECT(Rf_allocMatrix(REALSXP, wide, Rf_ncols(innovations)));
    SEXP pull = PROTECT(Rf_allocVector(REALSXP, m.innovations));
    memset(REAL(pull), 0, (size_t)m.innovations * sizeof(double));
    SEXP gradient = PROTECT(Rf_allocVector(REALSXP, Rf_length(theta)));
    /* Only the last column's gradient is returned; evaluations before it must not change it. */
    for (int i = 0; i < Rf_ncols(innovations); ++i) {
        const double *u = REAL(innovations) + (size_t)i * (size_t)m.innovations;
        m.class->from_innovations(m.self, REAL(theta), Rf_asReal(n), u,
                                  REAL(total) + (size_t)i * (size_t)wide);
        memset(REAL(gradient), 0, (size_t)Rf_length(theta) * sizeof(double));
        if (m.class->gradient) m.class->gradient(m.self, Rf_asReal(n), u, REAL(r), REAL(gradient));
    }
    m.class->pull(m.self, 1, REAL(r), REAL(pull));
    SEXP list = named_list(3, "total", total, "pull", pull, "gradient", gradient);
    UNPROTECT(3);
    return list;
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
    SEXP list = named_list(3, "complete", complete, "valid", valid, "projected", projected);
    UNPROTECT(3);
    return list;
}

struct clt *read_clt(SEXP problem) {
    struct clt *a = plugin_memory(1, sizeof *a);
    a->model = read_model(list_element(problem, "model"));
    a->moments = read_moments(list_element(problem, "moments"));
    a->n = list_number(problem, "n");
    a->unknown.prior = read_size_prior(problem);
    if (a->unknown.prior) {
        a->unknown.noise = read_noise(list_element(problem, "size_noise"));
        a->unknown.about = a->n;
        a->unknown.spread = list_number(problem, "size_spread");
    }
    a->noise = read_noise(problem);
    a->ridge = REAL(list_element(problem, "ridge"));
    a->sampler = (enum clt_sampler)find_name(list_element(problem, "sampler"), CLT_SAMPLERS,
                                             clt_sampler_names);
    a->conjugate = list_number(problem, "conjugate") != 0;
    a->walk.passes = (int)list_number(problem, "passes");
    a->undivided = optional_element(problem, "undivided") != NULL;
    clt_prepare(a);
    return a;
}

static void *read(SEXP problem) { return read_clt(problem); }

/* coordinates of which a proposal is learned */
static int learned(const struct clt *a) {
    return a->sampler == CLT_GIBBS || a->sampler == CLT_NUTS ? 0 : a->model.moving;
}

static struct state_shape shape(const void *self) {
    const struct clt *a = self;
    const struct adapt_shape adapted = {.dim = learned(a)};
    const R_xlen_t size = a->unknown.prior ? 1 + (R_xlen_t)size_slope_stored(a->model.moving) : 0;
    const struct state_shape shape = {
        .counters = CLT_COUNTERS,
        .parts = 4,
        .part = {{"variance", REALSXP, a->size},
                 {"adapt", REALSXP, (R_xlen_t)adapt_size(&adapted)},
                 {"store", REALSXP, a->sampler == CLT_NUTS ? (R_xlen_t)clt_nuts_stored(a) : 0},
                 {"size", REALSXP, size}},
    };
    return shape;
}

static void attach(void *self, SEXP state, struct rng *rng) {
    struct clt *a = self;
    a->theta = REAL(list_element(state, "theta"));
    a->variance = REAL(list_element(state, "variance"));
    a->nuts.store = REAL(list_element(state, "store"));
    a->rng = rng;
    if (a->unknown.prior) {
        double *size = REAL(list_element(state, "size"));
        a->n = size[0];
        size_slope_attach(&a->unknown.slope, a->model.moving, a->model.moves, size + 1);
    }
    const struct adapt_shape shape = {.dim = learned(a)};
    adapt_attach(&a->adapt, &shape, REAL(list_element(state, "adapt")));
    a->counter = REAL(list_element(state, "counters"));
}

static void resume(void *self) { clt_resume(self); }

static void detach(void *self, SEXP state) {
    const struct clt *a = self;
    if (a->unknown.prior) REAL(list_element(state, "size"))[0] = a->n;
}

static void start(void *self, SEXP problem) {
    struct clt *a = self;
    a->n = list_number(problem, "n");
    clt_start(a, list_number(problem, "given") != 0 ? 0 : (int)list_number(problem, "search"),
              REAL(list_element(problem, "move_sd")));
}

/* Where a new state of NUTS begins: the mode, in its coordinates, and the information there. */
SEXP ffi_clt_mode(SEXP problem, SEXP state) {
    struct clt *a = read_clt(problem);
    struct rng rng;
    attach(a, state, &rng);
    clt_resume(a);
    const int size = a->model.moving + a->moments.innovations;
    SEXP point = PROTECT(Rf_allocVector(REALSXP, size));
    SEXP information = PROTECT(Rf_allocMatrix(REALSXP, size, size));
    clt_nuts_information(a, REAL(point), REAL(information));
    SEXP list = named_list(2, "point", point, "information", information);
    UNPROTECT(2);
    return list;
}

static int iterate(void *self, int iteration, int warmup, struct step *step) {
    struct clt *a = self;
    step->work = 2000 + pow(a->wide, 3);
    return clt_iterate(a, iteration, warmup, &step->acceptance);
}

static void report(void *self, double *draw) {
    const struct clt *a = self;
    model_report(&a->model, a->theta, draw);
}

static void statistic(void *self, double *out) {
    const struct clt *a = self;
    memcpy(out, a->total.now, (size_t)a->size * sizeof(double));
}

static double log_noise(void *self) {
    const struct clt *a = self;
    return clt_log_noise(a, a->total.now);
}

static double records(void *self) {
    const struct clt *a = self;
    return a->n;
}

static double outside(void *self) {
    const struct clt *a = self;
    const struct record_moments *m = &a->moments;
    return m->class->outside ? m->class->outside(m->self, a->theta) : 0;
}

static void diagnostics(const void *self, double after, struct chain_diagnostics *told) {
    static const char *const names[CLT_COUNTERS] = {"made", "accepted",  "impossible", "projected",
                                                    "kept", "leapfrogs", "divergent",  "deepest"};
    const struct clt *a = self;
    (void)after;
    for (int k = 0; k < CLT_COUNTERS; ++k) diagnostics_tell(told, names[k], a->counter[k]);
}

const struct method method_clt = {
    .name = "clt",
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
    .detach = detach,
    .diagnostics = diagnostics,
    .start = start,
};
