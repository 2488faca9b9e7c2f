/* The plug-ins' hooks, one by one, as R sees them: for releases, baselines,
 * simulation and the tests. Records are n x columns matrices here, or lists of columns. */
#include "contract/model.h"
#include "contract/model_cells.h"
#include "contract/model_density.h"
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_predictor.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "contract/model_values.h"
#include "mcmc/theta_metropolis.h"
#include "r/ffi.h"

#include <R_ext/Utils.h>

/* ---- mechanisms --------------------------------------------------------- */

SEXP ffi_mech_quantile(SEXP name, SEXP u, SEXP scale) {
    const struct mech_class *mechanism = read_mechanism(name);
    const R_xlen_t n = Rf_xlength(u);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t i = 0; i < n; ++i) REAL(out)[i] = mechanism->quantile(REAL(u)[i], REAL(scale)[i]);
    UNPROTECT(1);
    return out;
}

SEXP ffi_mech_log_density(SEXP name, SEXP noise, SEXP scale) {
    const struct mech_class *mechanism = read_mechanism(name);
    const R_xlen_t n = Rf_xlength(noise);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t i = 0; i < n; ++i)
        REAL(out)[i] = mechanism->log_density(REAL(noise)[i], REAL(scale)[i]);
    UNPROTECT(1);
    return out;
}

/* of a density of all components at once; a row of noise is a candidate */
SEXP ffi_density(SEXP spec, SEXP noise) {
    const struct density density = read_density(spec, Rf_ncols(noise));
    const int candidates = Rf_nrows(noise);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, candidates));
    density.log_density(density.self, candidates, candidates, REAL(noise), REAL(out));
    UNPROTECT(1);
    return out;
}

/* ---- blocks of records --------------------------------------------------- */

R_xlen_t records_count(SEXP records) {
    return TYPEOF(records) == VECSXP ? Rf_xlength(VECTOR_ELT(records, 0)) : Rf_nrows(records);
}

struct blocks blocks_new(int columns, int whole, R_xlen_t n) {
    struct blocks b;
    b.columns = columns;
    b.size = whole && n > MAX_BLOCK ? (int)n : MAX_BLOCK;
    const size_t stride = (size_t)PAD_LANES(b.size);
    double *buffer = doubles((size_t)columns * stride);
    b.x = plugin_memory((size_t)columns, sizeof(double *));
    for (int v = 0; v < columns; ++v) b.x[v] = buffer + (size_t)v * stride;
    return b;
}

int blocks_load(struct blocks *b, SEXP records, R_xlen_t start) {
    const R_xlen_t n = records_count(records);
    const int m = (int)(n - start < b->size ? n - start : b->size),
              list = TYPEOF(records) == VECSXP;
    for (int v = 0; v < b->columns; ++v) {
        const double *column = list ? REAL(VECTOR_ELT(records, v)) : REAL(records) + v * n;
        memcpy(b->x[v], column + start, (size_t)m * sizeof(double));
    }
    return m;
}

void blocks_store(const struct blocks *b, SEXP matrix, R_xlen_t start, int m) {
    const R_xlen_t n = Rf_nrows(matrix);
    for (int v = 0; v < b->columns; ++v)
        memcpy(REAL(matrix) + v * n + start, b->x[v], (size_t)m * sizeof(double));
}

const double *const *read_only(const struct blocks *b) { return (const double *const *)b->x; }

/* ---- statistics --------------------------------------------------------- */

SEXP ffi_stat_eval(SEXP spec, SEXP x) {
    const struct stat stat = read_stat(spec);
    const R_xlen_t n = records_count(x);
    struct blocks b = blocks_new(stat.columns, stat.whole, n);
    const int stride = PAD_LANES(b.size);
    double *t = doubles((size_t)stat.size * stride);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n, stat.size));
    for (R_xlen_t start = 0; start < n; start += b.size) {
        const int m = blocks_load(&b, x, start);
        stat.class->eval(stat.self, m, read_only(&b), stride, t);
        for (int j = 0; j < stat.size; ++j)
            memcpy(REAL(out) + j * n + start, t + (size_t)j * stride, (size_t)m * sizeof(double));
    }
    UNPROTECT(1);
    return out;
}

SEXP ffi_stat_total(SEXP spec, SEXP x) {
    const struct stat stat = read_stat(spec);
    const R_xlen_t n = records_count(x);
    struct blocks b = blocks_new(stat.columns, stat.whole, n);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, stat.size));
    memset(REAL(out), 0, (size_t)stat.size * sizeof(double));
    for (R_xlen_t start = 0; start < n; start += b.size) {
        const int m = blocks_load(&b, x, start);
        stat.class->total(stat.self, m, read_only(&b), REAL(out));
    }
    UNPROTECT(1);
    return out;
}

/* ---- models ------------------------------------------------------------- */

/* theta's blocks, one a row: where they are, what they hold, and whether it is known */
static SEXP coordinates_frame(const struct coordinates *coordinates) {
    const int count = coordinates->count;
    SEXP block = PROTECT(Rf_allocVector(STRSXP, count));
    SEXP transform = PROTECT(Rf_allocVector(STRSXP, count));
    SEXP offset = PROTECT(Rf_allocVector(INTSXP, count));
    SEXP length = PROTECT(Rf_allocVector(INTSXP, count));
    SEXP known = PROTECT(Rf_allocVector(LGLSXP, count));
    for (int k = 0; k < count; ++k) {
        const struct theta_block *b = coordinates->block + k;
        SET_STRING_ELT(block, k, Rf_mkChar(b->name));
        SET_STRING_ELT(transform, k, Rf_mkChar(transform_names[b->transform]));
        INTEGER(offset)[k] = b->offset;
        INTEGER(length)[k] = b->length;
        LOGICAL(known)[k] = b->known != NULL;
    }
    SEXP list = named_list(5, "block", block, "transform", transform, "offset", offset, "length",
                           length, "known", known);
    UNPROTECT(5);
    return list;
}

SEXP ffi_model_shape(SEXP spec) {
    const struct model model = read_model(spec);
    SEXP sizes = PROTECT(Rf_allocVector(INTSXP, 4));
    INTEGER(sizes)[0] = model.columns;
    INTEGER(sizes)[1] = model.parameters;
    INTEGER(sizes)[2] = model.reported;
    INTEGER(sizes)[3] = model.complete;
    SEXP moves = PROTECT(Rf_allocVector(INTSXP, model.moving));
    for (int j = 0; j < model.moving; ++j) INTEGER(moves)[j] = model.moves[j];
    SEXP can_move = PROTECT(Rf_ScalarLogical(model.move != NULL));
    SEXP can_refresh = PROTECT(Rf_ScalarLogical(model.refresh != NULL));
    SEXP updates = PROTECT(Rf_ScalarLogical(model.update != NULL));
    SEXP walks = PROTECT(Rf_allocVector(INTSXP, update_theta_coordinates(&model)));
    for (int j = 0; j < Rf_length(walks); ++j)
        INTEGER(walks)[j] = update_theta_coordinate(&model, j);
    SEXP has_prior = PROTECT(Rf_ScalarLogical(model.prior != NULL));
    SEXP has_density = PROTECT(Rf_ScalarLogical(model.density != NULL));
    SEXP has_likelihood = PROTECT(Rf_ScalarLogical(model.likelihood || model.density));
    SEXP integrates = PROTECT(Rf_ScalarLogical(model.marginal != NULL));
    SEXP by_records = PROTECT(Rf_ScalarLogical(!model.update || model_has_latent(&model) ||
                                               model_walked(&model) > 0 || model.complete == 0));
    SEXP can_invert = PROTECT(Rf_ScalarLogical(!model.values || model.values->invert));
    SEXP coordinates = PROTECT(coordinates_frame(&model.coordinates));
    SEXP pools_scatter = PROTECT(Rf_ScalarLogical(model.marginal && model.marginal->pooled));
    const char *const names[] = {"sizes",      "moves",        "can_move",    "can_refresh",
                                 "updates",    "walks",        "has_prior",   "has_density",
                                 "by_records", "can_invert",   "coordinates", "has_likelihood",
                                 "integrates", "pools_scatter"};
    const SEXP values[] = {sizes,       moves,          can_move,    can_refresh,  updates,
                           walks,       has_prior,      has_density, by_records,   can_invert,
                           coordinates, has_likelihood, integrates,  pools_scatter};
    SEXP list = list_of(14, names, values);
    UNPROTECT(14);
    return list;
}

/* draws of theta from the prior, one a column, and the stream after them */
SEXP ffi_model_prior(SEXP spec, SEXP state, SEXP draws) {
    const struct model model = read_model(spec);
    const int count = Rf_asInteger(draws);
    struct rng rng;
    rng_read(state, &rng);
    SEXP theta = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, count));
    for (int i = 0; i < count; ++i)
        model_rprior(&model, &rng, REAL(theta) + (size_t)i * model.parameters);
    SEXP after = PROTECT(rng_write(&rng));
    SEXP list = named_list(2, "theta", theta, "state", after);
    UNPROTECT(2);
    return list;
}

SEXP ffi_model_log_prior(SEXP spec, SEXP theta) {
    const struct model model = read_model(spec);
    const int count = Rf_ncols(theta);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, count));
    for (int i = 0; i < count; ++i)
        REAL(out)[i] = model.prior->dprior(model.self, REAL(theta) + (size_t)i * model.parameters);
    UNPROTECT(1);
    return out;
}

/* probabilities of the cells, a column for each theta; where log_cells is there */
SEXP ffi_model_cells(SEXP spec, SEXP theta) {
    const struct model model = read_model(spec);
    const int count = Rf_ncols(theta);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, model.complete, count));
    for (int i = 0; i < count; ++i) {
        double *p = REAL(out) + (size_t)i * (size_t)model.complete;
        model.cells->log_cells(model.self, REAL(theta) + (size_t)i * (size_t)model.parameters, p);
        for (int k = 0; k < model.complete; ++k) p[k] = exp(p[k]);
    }
    UNPROTECT(1);
    return out;
}

/* of one theta; NULL without the hook */
SEXP ffi_model_prior_gradient(SEXP spec, SEXP theta) {
    const struct model model = read_model(spec);
    if (!model.prior || !model.prior->prior_gradient) return R_NilValue;
    SEXP out = PROTECT(Rf_allocVector(REALSXP, model.parameters));
    memset(REAL(out), 0, (size_t)model.parameters * sizeof(double));
    model.prior->prior_gradient(model.self, REAL(theta), REAL(out));
    UNPROTECT(1);
    return out;
}

SEXP ffi_model_report(SEXP spec, SEXP theta) {
    const struct model model = read_model(spec);
    const int count = Rf_ncols(theta);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, model.reported, count));
    for (int i = 0; i < count; ++i)
        model_report(&model, REAL(theta) + (size_t)i * model.parameters,
                     REAL(out) + (size_t)i * model.reported);
    UNPROTECT(1);
    return out;
}

static SEXP refusal(const char *block, const char *reason) {
    SEXP out = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(out, 0, Rf_mkChar(block));
    SET_STRING_ELT(out, 1, Rf_mkChar(reason));
    UNPROTECT(1);
    return out;
}

/* theta of reported values, or of a matrix with one draw's values in each column; or, as strings,
 * the block that refuses the first that is refused, and why: its transform, "model" (its own
 * invert()), "absent" (it has none), "prior" (density 0) */
SEXP ffi_model_invert(SEXP spec, SEXP values) {
    const struct model model = read_model(spec);
    if (model.values && !model.values->invert) return refusal("", "absent");
    const int count = Rf_isMatrix(values) ? Rf_ncols(values) : 1;
    const int size = count > 1 ? Rf_nrows(values) : 0;
    SEXP out = PROTECT(Rf_isMatrix(values) ? Rf_allocMatrix(REALSXP, model.parameters, count)
                                           : Rf_allocVector(REALSXP, model.parameters));
    SEXP refused = R_NilValue;
    for (int i = 0; i < count && refused == R_NilValue; ++i) {
        double *theta = REAL(out) + (size_t)i * model.parameters;
        const int fault = model_invert(&model, REAL(values) + (size_t)i * size, theta);
        if (fault >= 0) {
            const struct theta_block *block = model.coordinates.block + fault;
            refused = model.values ? refusal("", "model")
                                   : refusal(block->name, transform_names[block->transform]);
        } else if (model.prior && model.prior->dprior(model.self, theta) == R_NegInf) {
            refused = refusal("", "prior");
        }
    }
    UNPROTECT(1);
    return refused == R_NilValue ? out : refused;
}

/* log |d values / d theta| of the unknown blocks, one theta a column */
SEXP ffi_model_log_jacobian(SEXP spec, SEXP theta) {
    const struct model model = read_model(spec);
    const int count = Rf_ncols(theta);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, count));
    for (int i = 0; i < count; ++i) {
        REAL(out)[i] = 0;
        for (int k = 0; k < model.coordinates.count; ++k)
            if (!model.coordinates.block[k].known) REAL(out)
        [i] += block_log_jacobian(model.coordinates.block + k,
                                  REAL(theta) + (size_t)i * model.parameters);
    }
    UNPROTECT(1);
    return out;
}

static SEXP records_and_state(SEXP x, const struct rng *rng) {
    SEXP after = PROTECT(rng_write(rng));
    SEXP list = named_list(2, "records", x, "state", after);
    UNPROTECT(1);
    return list;
}

SEXP ffi_model_records(SEXP spec, SEXP theta, SEXP n_records, SEXP state) {
    const struct model model = read_model(spec);
    const int n = Rf_asInteger(n_records);
    struct blocks b = blocks_new(model.columns, model.whole, n);
    struct rng rng;
    rng_read(state, &rng);
    SEXP x = PROTECT(Rf_allocMatrix(REALSXP, n, model.columns));
    model.class->set(model.self, REAL(theta));
    for (int start = 0; start < n; start += b.size) {
        const int m = n - start < b.size ? n - start : b.size;
        model.class->rrecords(model.self, &rng, m, b.x);
        blocks_store(&b, x, start, m);
    }
    SEXP list = records_and_state(x, &rng);
    UNPROTECT(1);
    return list;
}

SEXP ffi_model_refresh(SEXP spec, SEXP theta, SEXP rho, SEXP x, SEXP state) {
    const struct model model = read_model(spec);
    const R_xlen_t n = Rf_nrows(x);
    struct blocks old = blocks_new(model.columns, model.whole, n),
                  fresh = blocks_new(model.columns, model.whole, n);
    struct rng rng;
    rng_read(state, &rng);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n, model.columns));
    model.class->set(model.self, REAL(theta));
    for (R_xlen_t start = 0; start < n; start += old.size) {
        const int m = blocks_load(&old, x, start);
        model.refresh->refresh(model.self, Rf_asReal(rho), &rng, m, read_only(&old), fresh.x);
        blocks_store(&fresh, out, start, m);
    }
    SEXP list = records_and_state(out, &rng);
    UNPROTECT(1);
    return list;
}

/* the same innovations under another parameter */
SEXP ffi_model_move(SEXP spec, SEXP theta, SEXP theta_new, SEXP x, SEXP state) {
    const struct model model = read_model(spec);
    const R_xlen_t n = Rf_nrows(x);
    struct blocks old = blocks_new(model.columns, model.whole, n),
                  fresh = blocks_new(model.columns, model.whole, n);
    int *changed = plugin_memory((size_t)model.columns, sizeof *changed);
    struct rng rng;
    rng_read(state, &rng);
    SEXP out = PROTECT(Rf_duplicate(x));
    model.class->set(model.self, REAL(theta));
    model.move->set_move(model.self, REAL(theta_new), changed);
    for (R_xlen_t start = 0; start < n; start += old.size) {
        const int m = blocks_load(&old, x, start);
        blocks_load(&fresh, x, start);
        model.move->move(model.self, &rng, m, read_only(&old), fresh.x);
        blocks_store(&fresh, out, start, m);
    }
    UNPROTECT(1);
    return out;
}

/* complete-data statistic of the records */
SEXP ffi_model_complete(SEXP spec, SEXP x) {
    const struct model model = read_model(spec);
    const R_xlen_t n = Rf_nrows(x);
    struct blocks b = blocks_new(model.columns, model.whole, n);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, model.complete));
    memset(REAL(out), 0, (size_t)model.complete * sizeof(double));
    for (R_xlen_t start = 0; start < n && model.statistic; start += b.size) {
        const int m = blocks_load(&b, x, start);
        model.statistic->add(model.self, m, read_only(&b), REAL(out));
    }
    UNPROTECT(1);
    return out;
}

/* Of a matrix of records and each column of theta: log_density(), and what curve() and
 * prior_curve() say. NULL without them. */
SEXP ffi_model_curve(SEXP spec, SEXP theta, SEXP x) {
    const struct model model = read_model(spec);
    const int d = model_walked(&model), count = Rf_ncols(theta);
    if (d == 0 || !model.density->curve) return R_NilValue;
    struct blocks b = blocks_new(model.columns, model.whole, Rf_nrows(x));
    const char *const names[] = {"log_density", "curve",          "gradient",
                                 "matrix",      "prior_gradient", "prior_matrix"};
    enum { PARTS = sizeof names / sizeof *names };
    const int length[PARTS] = {1, 1, d, d * d, d, d * d};
    double *part[PARTS];
    const SEXP list = PROTECT(Rf_allocVector(VECSXP, PARTS));
    const SEXP named = PROTECT(Rf_allocVector(STRSXP, PARTS));
    for (int k = 0; k < PARTS; ++k) {
        SET_STRING_ELT(named, k, Rf_mkChar(names[k]));
        SET_VECTOR_ELT(list, k, Rf_allocMatrix(REALSXP, length[k], count));
        part[k] = REAL(VECTOR_ELT(list, k));
        memset(part[k], 0, (size_t)length[k] * (size_t)count * sizeof(double));
    }
    Rf_setAttrib(list, R_NamesSymbol, named);
    for (int i = 0; i < count; ++i) {
        const double *at = REAL(theta) + (size_t)i * (size_t)model.parameters;
        model.class->set(model.self, at);
        for (R_xlen_t start = 0; start < Rf_nrows(x); start += b.size) {
            const int m = blocks_load(&b, x, start);
            *part[0] += model.density->log_density(model.self, m, read_only(&b));
            *part[1] += model.density->curve(model.self, m, read_only(&b), part[2], part[3]);
        }
        model.density->prior_curve(model.self, at, part[4], part[5]);
        for (int k = 0; k < PARTS; ++k) part[k] += length[k];
    }
    UNPROTECT(2);
    return list;
}

/* complete-data statistic of a matrix of records, latent variables included */
static void complete_records(const struct model *model, struct blocks *b, SEXP x, struct rng *rng,
                             const double *theta, double *c) {
    memset(c, 0, (size_t)model->complete * sizeof(double));
    model->class->set(model->self, theta);
    for (R_xlen_t start = 0; start < Rf_nrows(x); start += b->size) {
        const int m = blocks_load(b, x, start);
        model->statistic->add(model->self, m, read_only(b), c);
        if (model->statistic->add_latent)
            model->statistic->add_latent(model->self, rng, m, read_only(b), c);
    }
}

/* a matrix as padded columns */
static struct record_columns columns_of(SEXP x) {
    const ptrdiff_t n = Rf_nrows(x), stride = PAD_LANES(n);
    double *copy = plugin_memory((size_t)stride * (size_t)Rf_ncols(x), sizeof *copy);
    for (int v = 0; v < Rf_ncols(x); ++v)
        memcpy(copy + v * stride, REAL(x) + v * n, (size_t)n * sizeof *copy);
    const struct record_columns columns = {.x = copy, .n = n, .stride = stride};
    return columns;
}

/* `draws` draws of theta given a complete-data statistic, or a matrix of records where
 * the update needs those; the kernel is applied `steps` times between two of them. Of a
 * model without an update `walk` is the state of its random walks, or in its place what
 * they begin with and learn from: widths of the prior. NULL if the update fails. */
SEXP ffi_model_gibbs(SEXP spec, SEXP complete, SEXP n_records, SEXP theta, SEXP state,
                     SEXP draws_steps, SEXP walk) {
    const struct model model = read_model(spec);
    const int draws = INTEGER(draws_steps)[0], steps = INTEGER(draws_steps)[1];
    const double n = Rf_asReal(n_records);
    struct rng rng;
    rng_read(state, &rng);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, model.parameters, draws));
    double *current = doubles((size_t)model.parameters);
    memcpy(current, REAL(theta), (size_t)model.parameters * sizeof(double));
    const int own = model.update != NULL, by_records = Rf_isMatrix(complete);
    const int walks = update_theta_is_needed(&model);
    const int learning = walks && Rf_xlength(walk) == update_theta_coordinates(&model);
    SEXP walked = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)update_theta_size(&model)));
    struct theta_update update;
    struct record_columns records = {0};
    if (walks) {
        records = columns_of(complete);
        update_theta_attach(&update, &model, REAL(walked));
        if (learning)
            update_theta_start(&update, REAL(walk));
        else if (Rf_xlength(walk) != Rf_xlength(walked))
            Rf_error("`walk` must be that of the model");
        else
            memcpy(REAL(walked), REAL(walk), (size_t)Rf_xlength(walk) * sizeof(double));
    }
    struct blocks b = blocks_new(model.columns, model.whole, (R_xlen_t)n);
    double *c = doubles((size_t)model.complete);
    if (!by_records) memcpy(c, REAL(complete), (size_t)model.complete * sizeof(double));
    for (int i = 0; i < draws; ++i) {
        for (int k = 0; k < steps; ++k) {
            if (own && by_records) complete_records(&model, &b, complete, &rng, current, c);
            int status = own ? model.update->rtheta(model.self, c, n, &rng, current) : PLUGIN_OK;
            if (walks && status == PLUGIN_OK)
                status = update_theta(&update, 1, &records, &rng, learning, current);
            if (status != PLUGIN_OK) {
                UNPROTECT(2);
                return R_NilValue;
            }
        }
        memcpy(REAL(out) + (size_t)i * model.parameters, current,
               (size_t)model.parameters * sizeof(double));
        if (i % 10000 == 9999) R_CheckUserInterrupt();
    }
    SEXP after = PROTECT(rng_write(&rng));
    SEXP list = named_list(3, "theta", out, "state", after, "walk", walked);
    UNPROTECT(3);
    return list;
}

/* Of a complete-data statistic: log density with theta integrated out, its gradient in
 * the statistic, and that in the coordinates of theta that are kept. */
SEXP ffi_model_marginal(SEXP spec, SEXP complete, SEXP n, SEXP theta) {
    const struct model model = read_model(spec);
    if (!model.marginal) return R_NilValue;
    SEXP out = PROTECT(
        Rf_allocVector(REALSXP, 1 + model.complete + model.marginal->keeps + model_tied(&model)));
    double *value = REAL(out);
    value[0] = model.marginal->marginal(model.self, REAL(complete), Rf_asReal(n), REAL(theta),
                                        value + 1, value + 1 + model.complete);
    UNPROTECT(1);
    return out;
}
