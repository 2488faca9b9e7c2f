/* Statistic "custom": the user's R function of all records at once, which
 * returns a records x components matrix. Its values are checked by the R
 * wrapper of the function (R/stat_custom.R). */
#include "contract/registry.h"
#include "r/custom.h"

struct custom {
    int columns, size;
    SEXP fun;
};

static SEXP components(const struct custom *c, int m, const double *const *x) {
    SEXP records = PROTECT(custom_records(m, c->columns, x));
    SEXP call = PROTECT(Rf_lang2(c->fun, records));
    SEXP value = Rf_eval(call, R_GlobalEnv);
    UNPROTECT(2);
    return value;
}

static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct custom *c = self;
    SEXP value = PROTECT(components(c, m, x));
    for (int j = 0; j < c->size; ++j)
        memcpy(t + (size_t)j * stride, REAL(value) + (size_t)j * m, (size_t)m * sizeof(double));
    UNPROTECT(1);
}

static void total(void *self, int m, const double *const *x, double *total) {
    const struct custom *c = self;
    SEXP value = PROTECT(components(c, m, x));
    for (int j = 0; j < c->size; ++j) total[j] += block_sum(m, REAL(value) + (size_t)j * m);
    UNPROTECT(1);
}

static int create(const struct fields *fields, struct stat *stat) {
    SEXP spec = spec_of(fields);
    struct custom *c = plugin_memory(1, sizeof *c);
    c->columns = Rf_asInteger(list_element(spec, "columns"));
    c->size = Rf_asInteger(list_element(spec, "size"));
    c->fun = list_element(spec, "fun");
    stat->self = c;
    stat->columns = c->columns;
    stat->size = c->size;
    stat->whole = 1;
    return PLUGIN_OK;
}

const struct stat_class stat_custom = {
    .name = "custom",
    .create = create,
    .eval = eval,
    .total = total,
};
