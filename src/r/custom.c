/* R's vectors and matrices of plain numbers, for the plug-ins whose hooks are R
 * functions. */
#include "r/custom.h"

SEXP custom_vector(int count, const double *value) {
    SEXP vector = Rf_allocVector(REALSXP, count);
    memcpy(REAL(vector), value, (size_t)count * sizeof(double));
    return vector;
}

SEXP custom_records(int m, int columns, const double *const *x) {
    SEXP matrix = PROTECT(Rf_allocMatrix(REALSXP, m, columns));
    for (int v = 0; v < columns; ++v)
        memcpy(REAL(matrix) + (size_t)v * m, x[v], (size_t)m * sizeof(double));
    UNPROTECT(1);
    return matrix;
}
