/* The discrete distributions as R sees them. */
#include "base/dist_discrete.h"
#include "r/ffi.h"

#include <R_ext/Utils.h>

/* function: 0 log density, 1 cumulative, 2 quantile. x, location and scale are of
 * one length; flags: is it the Gaussian, lower tail, log scale. NA stays NA. */
SEXP ffi_discrete_distribution(SEXP function, SEXP x, SEXP location, SEXP scale, SEXP flags) {
    const struct discrete_distribution *distribution =
        INTEGER(flags)[0] ? &dist_discrete_gaussian : &dist_discrete_laplace;
    const int which = Rf_asInteger(function), lower = INTEGER(flags)[1], log_p = INTEGER(flags)[2];
    const R_xlen_t n = Rf_xlength(x);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t i = 0; i < n; ++i) {
        const double a = REAL(x)[i], m = REAL(location)[i], b = REAL(scale)[i];
        if (ISNAN(a))
            REAL(out)[i] = a;
        else if (which == 0)
            REAL(out)[i] = distribution->log_density(a, m, b);
        else if (which == 1)
            REAL(out)[i] = distribution->cumulative(a, m, b, lower, log_p);
        else
            REAL(out)[i] = distribution->quantile(a, m, b, lower, log_p);
        if (i % 10000 == 9999) R_CheckUserInterrupt();
    }
    UNPROTECT(1);
    return out;
}
