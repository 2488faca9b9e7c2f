/* Normal densities and tails by themselves, for tests. */
#include "base/normal_tails.h"
#include "r/ffi.h"

/* Densities and distribution functions, in two columns; the number of points must be a multiple of
 * four. */
SEXP ffi_normal_tails(SEXP points) {
    const int count = Rf_length(points);
    const double *x = REAL(points);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, count, 2));
    for (int i = 0; i + 3 < count; i += 4)
        normal_tails(x[i], x[i + 1], x[i + 2], x[i + 3], REAL(out) + i, REAL(out) + count + i);
    UNPROTECT(1);
    return out;
}
