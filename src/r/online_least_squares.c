/* Slopes by least squares by themselves, for tests. */
#include "mcmc/online_least_squares.h"
#include "r/ffi.h"

/* Slopes, values x coordinates, from pairs: a column each of `changes` and `responses`. NULL where
 * they are too few. */
SEXP ffi_tilt_slopes(SEXP changes, SEXP responses) {
    const int size = Rf_nrows(changes), values = Rf_nrows(responses), pairs = Rf_ncols(changes);
    struct tilt tilt;
    tilt_attach(&tilt, size, values, doubles(tilt_stored(size, values)),
                doubles(tilt_workspace(size)));
    tilt_start(&tilt);
    for (int p = 0; p < pairs; ++p)
        tilt_add(&tilt, REAL(changes) + (ptrdiff_t)p * size,
                 REAL(responses) + (ptrdiff_t)p * values);
    tilt_solve(&tilt);
    if (*tilt.learned == 0) return R_NilValue;
    SEXP slope = PROTECT(Rf_allocMatrix(REALSXP, values, size));
    for (int k = 0; k < values; ++k)
        for (int j = 0; j < size; ++j) REAL(slope)[j * values + k] = tilt.slope[k * size + j];
    UNPROTECT(1);
    return slope;
}
