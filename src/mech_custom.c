/* Mechanism "custom": the noise density is the user's R function of a matrix with
 * a candidate in each row. What it returns is checked by its R wrapper
 * (R/mech_custom.R). */
#include "custom.h"

struct custom {
    int size;
    SEXP fun;
};

static void log_density(void *self, int candidates, int stride, const double *noise, double *out) {
    const struct custom *c = self;
    SEXP matrix = PROTECT(Rf_allocMatrix(REALSXP, candidates, c->size));
    for (int j = 0; j < c->size; ++j)
        memcpy(REAL(matrix) + (size_t)j * candidates, noise + (size_t)j * stride,
               (size_t)candidates * sizeof(double));
    SEXP call = PROTECT(Rf_lang2(c->fun, matrix));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(out, REAL(value), (size_t)candidates * sizeof(double));
    UNPROTECT(3);
}

struct density mech_custom_read(SEXP fun, int size) {
    struct custom *c = plugin_memory(1, sizeof *c);
    c->size = size;
    c->fun = fun;
    const struct density density = {.self = c, .log_density = log_density};
    return density;
}
