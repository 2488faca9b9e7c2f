/* Totals of simulated records, many times over: the records of replicate r come from a separate
 * stream, so that replicates under two parameters use the same random numbers. No record is kept
 * beyond its block. Cost: n records and their totals, per replicate. */
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
