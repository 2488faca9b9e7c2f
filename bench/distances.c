/* One pass over all pairs that mmd() looks at, for the sum of their squared
 * distances: what the kernel is compared with. */
#include <R.h>
#include <Rinternals.h>

static double between(int m, const double *p, int n, const double *q, int columns) {
    double sum = 0, row[256];
    for (int start = 0; start + 256 <= n; start += 256)
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < 256; ++j) row[j] = 0;
            for (int v = 0; v < columns; ++v) {
                const double at = p[(R_xlen_t)v * m + i];
                const double *other = q + (R_xlen_t)v * n + start;
                for (int j = 0; j < 256; ++j) row[j] += (at - other[j]) * (at - other[j]);
            }
            double part[4] = {0};
            for (int j = 0; j < 256; j += 4)
                for (int l = 0; l < 4; ++l) part[l] += row[j + l];
            sum += (part[0] + part[1]) + (part[2] + part[3]);
        }
    return sum;
}

/* half of each set's own pairs, and the pairs between them: m + m rows of m / 2, m of m */
SEXP distances(SEXP p, SEXP q) {
    const int m = Rf_nrows(p), columns = Rf_ncols(p);
    const double sum = between(m, REAL(p), m, REAL(q), columns) + between(m / 2, REAL(p), m, REAL(p), columns) +
                       between(m / 2, REAL(q), m, REAL(q), columns);
    return Rf_ScalarReal(sum);
}
