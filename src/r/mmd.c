/* The maximum mean discrepancy, as R sees it. */
#include "base/mmd.h"
#include "r/ffi.h"

#include <R_ext/Utils.h>

static struct mmd_points read_points(SEXP x, double scale) {
    struct mmd_points points;
    points.count = Rf_nrows(x);
    points.columns = Rf_ncols(x);
    points.stride = mmd_stride(points.count);
    points.column = doubles((size_t)points.stride * (size_t)points.columns);
    mmd_fill(&points, REAL(x), scale);
    return points;
}

/* Sums of kernels: over the pairs of p, over the pairs of q, of every point of p
 * with every one of q, and of p_i with q_i if there are as many. */
SEXP ffi_mmd(SEXP p_matrix, SEXP q_matrix, SEXP scale) {
    const struct mmd_points p = read_points(p_matrix, Rf_asReal(scale));
    const struct mmd_points q = read_points(q_matrix, Rf_asReal(scale));
    SEXP out = PROTECT(Rf_allocVector(REALSXP, 4));
    double *sum = REAL(out);
    memset(sum, 0, 4 * sizeof(double));
    for (ptrdiff_t row = 0; row < p.stride / MMD_TILE; ++row) {
        sum[0] += mmd_within(&p, row);
        sum[2] += mmd_between(&p, &q, row);
        R_CheckUserInterrupt();
    }
    for (ptrdiff_t row = 0; row < q.stride / MMD_TILE; ++row) {
        sum[1] += mmd_within(&q, row);
        R_CheckUserInterrupt();
    }
    if (p.count == q.count) sum[3] = mmd_matched(&p, &q);
    UNPROTECT(1);
    return out;
}
