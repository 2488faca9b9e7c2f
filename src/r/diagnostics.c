/* Summaries of draws, as R sees them. */
#include "base/diagnostics.h"
#include "r/ffi.h"

static struct diagnostics diagnostics_new(int iterations, int chains) {
    const size_t count = (size_t)iterations * (size_t)chains;
    struct diagnostics d;
    d.iterations = iterations;
    d.chains = chains;
    DOUBLES(count, &d.sorted, &d.score, &d.folded, &d.normal);
    d.rho = doubles((size_t)iterations);
    d.order = plugin_memory(count, sizeof(int));
    diagnostics_prepare(&d);
    return d;
}

/* draws is iterations x chains x variables; a column for each variable, a named row for
 * each summary */
SEXP ffi_diagnostics(SEXP draws, SEXP tail) {
    const int *size = INTEGER(Rf_getAttrib(draws, R_DimSymbol));
    struct diagnostics d = diagnostics_new(size[0], size[1]);
    const char *const names[] = {"mean", "sd", "lower", "upper", "rhat", "ess"};
    enum { SUMMARIES = COUNT(names) };
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, SUMMARIES, size[2]));
    SEXP dimnames = PROTECT(Rf_allocVector(VECSXP, 2));
    SET_VECTOR_ELT(dimnames, 0, strings(SUMMARIES, names));
    Rf_setAttrib(out, R_DimNamesSymbol, dimnames);
    for (int v = 0; v < size[2]; ++v) {
        struct summary s;
        diagnostics_summary(&d, REAL(draws) + (R_xlen_t)v * size[0] * size[1], Rf_asReal(tail), &s);
        const double values[SUMMARIES] = {s.mean, s.sd, s.lower, s.upper, s.rhat, s.ess};
        memcpy(REAL(out) + (R_xlen_t)v * SUMMARIES, values, sizeof values);
    }
    UNPROTECT(2);
    return out;
}

/* Effective draws in the tails, of each variable of draws as above. */
SEXP ffi_tail_ess(SEXP draws) {
    const int *size = INTEGER(Rf_getAttrib(draws, R_DimSymbol));
    struct diagnostics d = diagnostics_new(size[0], size[1]);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, size[2]));
    for (int v = 0; v < size[2]; ++v)
        REAL(out)[v] = diagnostics_tail(&d, REAL(draws) + (R_xlen_t)v * size[0] * size[1]);
    UNPROTECT(1);
    return out;
}
