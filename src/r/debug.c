/* Hooks of a model called outside the sampler, for debug_model(). */
#include "contract/model.h"
#include "contract/model_density.h"
#include "contract/model_innovations.h"
#include "contract/model_move.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "mcmc/theta_metropolis.h"
#include "r/ffi.h"

static double **new_columns(const struct model *model, int size) {
    double **x = plugin_memory((size_t)model->columns, sizeof *x);
    for (int v = 0; v < model->columns; ++v) x[v] = doubles((size_t)size);
    return x;
}

/* For each replicate theta from the prior, n records from it, theta again from
 * its update: before and after have the same distribution, the prior (Geweke 2004). NULL
 * if an update fails. */
SEXP ffi_model_joint(SEXP spec, SEXP n_records, SEXP replicates, SEXP state) {
    const struct model model = read_model(spec);
    const int n = Rf_asInteger(n_records), count = Rf_asInteger(replicates);
    if (n > MAX_BLOCK && !model.whole) Rf_error("internal error: more records than a block");
    struct rng rng;
    rng_read(state, &rng);
    double **x = new_columns(&model, PAD_LANES(n));
    double *complete = plugin_memory((size_t)model.complete, sizeof *complete);
    SEXP before = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, count));
    SEXP after = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, count));
    for (int k = 0; k < count; ++k) {
        double *theta = REAL(before) + (size_t)k * model.parameters;
        double *updated = REAL(after) + (size_t)k * model.parameters;
        model_rprior(&model, &rng, theta);
        model.class->set(model.self, theta);
        model.class->rrecords(model.self, &rng, n, x);
        memset(complete, 0, (size_t)model.complete * sizeof *complete);
        const double *const *view = (const double *const *)x;
        model.statistic->add(model.self, n, view, complete);
        if (model.statistic->add_latent)
            model.statistic->add_latent(model.self, &rng, n, view, complete);
        memcpy(updated, theta, (size_t)model.parameters * sizeof(double));
        if (model.update->rtheta(model.self, complete, n, &rng, updated) != PLUGIN_OK) {
            UNPROTECT(2);
            return R_NilValue;
        }
    }
    SEXP list = named_list(2, "before", before, "after", after);
    UNPROTECT(2);
    return list;
}

static double density_at(const struct model *model, const double *theta, int n, double *const *x) {
    model->class->set(model->self, theta);
    return model->density->log_density(model->self, n, (const double *const *)x);
}

/* The same with random walks by dprior() and log_density() as the update. They move the
 * coordinates that rtheta() leaves to them, or all where it leaves none. Their steps have several
 * widths; the first is the prior's, `sd`. Also returns the records' log density before and after,
 * which has one distribution. */
SEXP ffi_model_walk_joint(SEXP spec, SEXP n_records, SEXP replicates, SEXP state, SEXP sd) {
    enum { WIDTHS = 4 };
    struct model model = read_model(spec);
    if (model_walked(&model) == 0) model.update = NULL;
    const int n = Rf_asInteger(n_records), count = Rf_asInteger(replicates);
    struct rng rng;
    rng_read(state, &rng);
    const ptrdiff_t stride = PAD_LANES(n);
    double *columns = plugin_memory((size_t)stride * (size_t)model.columns, sizeof *columns);
    double **x = plugin_memory((size_t)model.columns, sizeof *x);
    for (int v = 0; v < model.columns; ++v) x[v] = columns + v * stride;
    const struct record_columns records = {.x = columns, .n = n, .stride = stride};
    struct theta_update update;
    update_theta_attach(&update, &model, doubles(update_theta_size(&model)));
    SEXP before = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, count));
    SEXP after = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, count));
    SEXP density = PROTECT(Rf_allocMatrix(REALSXP, count, 2));
    int status = PLUGIN_OK;
    for (int k = 0; k < count && status == PLUGIN_OK; ++k) {
        double *theta = REAL(before) + (size_t)k * model.parameters;
        double *updated = REAL(after) + (size_t)k * model.parameters;
        model_rprior(&model, &rng, theta);
        model.class->set(model.self, theta);
        model.class->rrecords(model.self, &rng, n, x);
        memcpy(updated, theta, (size_t)model.parameters * sizeof(double));
        update_theta_start(&update, REAL(sd));
        for (int w = 0; w < WIDTHS && status == PLUGIN_OK; ++w, *update.walk.log_scale -= 1)
            status = update_theta(&update, 1, &records, &rng, 0, updated);
        REAL(density)[k] = density_at(&model, theta, n, x);
        REAL(density)[count + k] = density_at(&model, updated, n, x);
    }
    SEXP list = status == PLUGIN_OK
                    ? named_list(3, "before", before, "after", after, "density", density)
                    : R_NilValue;
    UNPROTECT(3);
    return list;
}

/* a column's end, and what stands behind values of theta, where nothing may be written */
enum { GUARD = 16, BEHIND = 256 };
static const double UNTOUCHED = 8.5e-301;

static void mark(int columns, int m, double *const *x) {
    for (int v = 0; v < columns; ++v)
        for (int i = 0; i < GUARD; ++i) x[v][PAD_LANES(m) + i] = UNTOUCHED;
}

static int marks_differ(int columns, int m, double *const *x) {
    for (int v = 0; v < columns; ++v)
        for (int i = 0; i < GUARD; ++i)
            if (x[v][PAD_LANES(m) + i] != UNTOUCHED) return 1;
    return 0;
}

/* Do rrecords, refresh and move write beyond a block of m records? NA for a hook
 * that is not there. */
SEXP ffi_model_overrun(SEXP spec, SEXP theta, SEXP theta_new, SEXP m_records, SEXP state) {
    const struct model model = read_model(spec);
    const int m = Rf_asInteger(m_records), size = PAD_LANES(m) + GUARD;
    struct rng rng;
    rng_read(state, &rng);
    double **x = new_columns(&model, size), **fresh = new_columns(&model, size);
    const double *const *view = (const double *const *)x;
    int *changed = plugin_memory((size_t)model.columns, sizeof *changed);
    SEXP out = PROTECT(Rf_allocVector(LGLSXP, 3));
    for (int k = 0; k < 3; ++k) LOGICAL(out)[k] = NA_LOGICAL;
    model.class->set(model.self, REAL(theta));
    mark(model.columns, m, x);
    model.class->rrecords(model.self, &rng, m, x);
    LOGICAL(out)[0] = marks_differ(model.columns, m, x);
    if (model.refresh) {
        mark(model.columns, m, fresh);
        model.refresh->refresh(model.self, 0.5, &rng, m, view, fresh);
        LOGICAL(out)[1] = marks_differ(model.columns, m, fresh);
    }
    if (model.move) {
        mark(model.columns, m, fresh);
        model.move->set_move(model.self, REAL(theta_new), changed);
        model.move->move(model.self, &rng, m, view, fresh);
        LOGICAL(out)[2] = marks_differ(model.columns, m, fresh);
    }
    UNPROTECT(1);
    return out;
}

/* Of values of theta, or reported ones, with room behind them. */
enum written { WRITTEN_ALL, WRITTEN_BEYOND, WRITTEN_TOO_FEW };

static void mark_values(double *values, int size) {
    for (int j = 0; j < size + BEHIND; ++j) values[j] = UNTOUCHED;
}

static enum written seen_written(const double *values, int size) {
    for (int j = size; j < size + BEHIND; ++j)
        if (values[j] != UNTOUCHED) return WRITTEN_BEYOND;
    for (int j = 0; j < size; ++j)
        if (values[j] == UNTOUCHED) return WRITTEN_TOO_FEW;
    return WRITTEN_ALL;
}

/* What rprior and report write, of type enum written. */
SEXP ffi_model_written(SEXP spec, SEXP state) {
    const struct model model = read_model(spec);
    struct rng rng;
    rng_read(state, &rng);
    double *theta = plugin_memory((size_t)model.parameters + BEHIND, sizeof *theta);
    double *values = plugin_memory((size_t)model.reported + BEHIND, sizeof *values);
    mark_values(theta, model.parameters);
    mark_values(values, model.reported);
    SEXP out = PROTECT(Rf_allocVector(INTSXP, 2));
    model_rprior(&model, &rng, theta);
    INTEGER(out)[0] = seen_written(theta, model.parameters);
    model_report(&model, theta, values);
    INTEGER(out)[1] = seen_written(values, model.reported);
    UNPROTECT(1);
    return out;
}

/* A matrix of records' log density at each column of theta. */
SEXP ffi_model_log_density(SEXP spec, SEXP theta, SEXP x) {
    const struct model model = read_model(spec);
    const int count = Rf_ncols(theta);
    struct blocks b = blocks_new(model.columns, model.whole, Rf_nrows(x));
    SEXP out = PROTECT(Rf_allocVector(REALSXP, count));
    for (int i = 0; i < count; ++i) {
        model.class->set(model.self, REAL(theta) + (size_t)i * (size_t)model.parameters);
        double sum = 0;
        for (R_xlen_t start = 0; start < Rf_nrows(x); start += b.size) {
            const int m = blocks_load(&b, x, start);
            sum += model.density->log_density(model.self, m, read_only(&b));
        }
        REAL(out)[i] = sum;
    }
    UNPROTECT(1);
    return out;
}

/* The records of a block that from_innovations() makes; NULL if it is not there or cannot. */
SEXP ffi_model_formed(SEXP spec, SEXP theta, SEXP m_records, SEXP state) {
    const struct model model = read_model(spec);
    const int m = Rf_asInteger(m_records);
    if (m > MAX_BLOCK) Rf_error("internal error: more records than a block");
    const struct model_innovations *of = model.innovations;
    if (!of) return R_NilValue;
    model.class->set(model.self, REAL(theta));
    if (of->serve && !of->serve(model.self)) return R_NilValue;
    struct rng rng;
    rng_read(state, &rng);
    double **x = new_columns(&model, PAD_LANES(m));
    const double **z = plugin_memory((size_t)of->count, sizeof *z);
    for (int k = 0; k < of->count; ++k) {
        double *column = plugin_memory((size_t)PAD_LANES(m), sizeof *column);
        rng_fill(&rng, of->kind, m, column);
        z[k] = column;
    }
    of->from_innovations(model.self, m, z, x);
    SEXP records = PROTECT(Rf_allocMatrix(REALSXP, m, model.columns));
    for (int v = 0; v < model.columns; ++v)
        memcpy(REAL(records) + (size_t)v * m, x[v], (size_t)m * sizeof(double));
    UNPROTECT(1);
    return records;
}
