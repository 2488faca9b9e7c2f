/* Simulated data sets, many at a time, and the totals of many.
 *
 * ffi_simulated_totals(): the records of replicate r come from a separate stream, so that
 * replicates under two parameters use the same random numbers. No record is kept beyond its block.
 * Cost: n records and their totals, per replicate.
 *
 * ffi_record_sets(), ffi_set_totals(): data sets whose records follow each other in one matrix, as
 * a call from R for each of thousands of small sets costs more than its records. */
#include "r/ffi.h"

#include <R_ext/Utils.h>

struct summed {
    struct stat stat;
    const int *column; /* of the model, for each of the statistic's */
    const double **x;
};

static int read_summed(SEXP parts, struct summed *part) {
    int size = 0;
    for (int k = 0; k < Rf_xlength(parts); ++k) {
        SEXP spec = VECTOR_ELT(parts, k);
        part[k].stat = read_stat(spec);
        part[k].column = INTEGER(list_element(spec, "column"));
        part[k].x = plugin_memory((size_t)part[k].stat.columns + 1, sizeof *part[k].x);
        size += part[k].stat.size;
    }
    return size;
}

static void add_block(int parts, struct summed *part, int m, double *const *x, double *total) {
    for (int k = 0; k < parts; ++k) {
        for (int v = 0; v < part[k].stat.columns; ++v) part[k].x[v] = x[part[k].column[v]];
        part[k].stat.class->total(part[k].stat.self, m, part[k].x, total);
        total += part[k].stat.size;
    }
}

/* `seeds`: two numbers in [0, 2^32) for each replicate. A column a replicate, the totals of one
 * part after the other. */
SEXP ffi_simulated_totals(SEXP spec, SEXP theta, SEXP n_records, SEXP seeds, SEXP parts) {
    const struct model model = read_model(spec);
    const int n = Rf_asInteger(n_records), replicates = Rf_ncols(seeds);
    const int count = (int)Rf_xlength(parts);
    struct summed *part = plugin_memory((size_t)count, sizeof *part);
    const int size = read_summed(parts, part);
    int whole = model.whole;
    for (int k = 0; k < count; ++k) whole = whole || part[k].stat.whole;
    struct blocks b = blocks_new(model.columns, whole, n);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, size, replicates));
    memset(REAL(out), 0, (size_t)size * (size_t)replicates * sizeof(double));
    model.class->set(model.self, REAL(theta));
    for (int r = 0; r < replicates; ++r) {
        const double *word = REAL(seeds) + 2 * (size_t)r;
        struct rng rng;
        rng_seed(&rng, ((uint64_t)word[0] << 32) | (uint64_t)word[1]);
        for (int start = 0; start < n; start += b.size) {
            const int m = n - start < b.size ? n - start : b.size;
            model.class->rrecords(model.self, &rng, m, b.x);
            add_block(count, part, m, b.x, REAL(out) + (size_t)r * (size_t)size);
        }
        if (r % 16 == 15) R_CheckUserInterrupt();
    }
    UNPROTECT(1);
    return out;
}

static double largest(SEXP sizes) {
    double most = 0;
    for (int r = 0; r < Rf_length(sizes); ++r)
        if (REAL(sizes)[r] > most) most = REAL(sizes)[r];
    return most;
}

/* A column of theta, a size and two seeds, as above, for each set. */
SEXP ffi_record_sets(SEXP spec, SEXP theta, SEXP sizes, SEXP seeds) {
    const struct model model = read_model(spec);
    const int sets = Rf_length(sizes);
    struct blocks b = blocks_new(model.columns, model.whole, (R_xlen_t)largest(sizes));
    double all = 0;
    for (int r = 0; r < sets; ++r) all += REAL(sizes)[r];
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)all, model.columns));
    int at = 0;
    for (int r = 0; r < sets; ++r) {
        const double *word = REAL(seeds) + 2 * (size_t)r;
        struct rng rng;
        rng_seed(&rng, ((uint64_t)word[0] << 32) | (uint64_t)word[1]);
        model.class->set(model.self, REAL(theta) + (size_t)r * (size_t)model.parameters);
        const int end = at + (int)REAL(sizes)[r];
        while (at < end) {
            const int m = end - at < b.size ? end - at : b.size;
            model.class->rrecords(model.self, &rng, m, b.x);
            blocks_store(&b, out, at, m);
            at += m;
        }
        if (r % 16 == 15) R_CheckUserInterrupt();
    }
    UNPROTECT(1);
    return out;
}

/* A column a set. */
SEXP ffi_set_totals(SEXP spec, SEXP x, SEXP sizes) {
    const struct stat stat = read_stat(spec);
    const int sets = Rf_length(sizes);
    struct blocks b = blocks_new(stat.columns, stat.whole, (R_xlen_t)largest(sizes));
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, stat.size, sets));
    memset(REAL(out), 0, (size_t)stat.size * (size_t)sets * sizeof(double));
    R_xlen_t at = 0;
    for (int r = 0; r < sets; ++r) {
        const R_xlen_t end = at + (R_xlen_t)REAL(sizes)[r];
        while (at < end) {
            const int loaded = blocks_load(&b, x, at);
            const int m = end - at < loaded ? (int)(end - at) : loaded;
            stat.class->total(stat.self, m, read_only(&b),
                              REAL(out) + (size_t)r * (size_t)stat.size);
            at += m;
        }
    }
    UNPROTECT(1);
    return out;
}
