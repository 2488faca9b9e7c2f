/* Mechanism "custom": the noise density is the user's R function of a matrix with
 * a candidate in each row. What it returns is checked by its R wrapper
 * (R/mech_custom.R). */
#include "contract/registry.h"
#include "r/custom.h"

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

static int create(const struct fields *fields, struct density *density) {
    struct custom *c = plugin_memory(1, sizeof *c);
    c->size = density->size;
    c->fun = list_element(spec_of(fields), "fun");
    density->pieces = 1;
    density->near = REAL(list_element(spec_of(fields), "near"));
    density->range = REAL(list_element(spec_of(fields), "range"));
    density->self = c;
    density->log_density = log_density;
    return PLUGIN_OK;
}

const struct density_class mech_custom = {
    .name = "custom",
    .create = create,
};
