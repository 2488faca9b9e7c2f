/* What a matrix of the size of a regression's statistic costs to factor, copying
 * it included: the reference of bench/clt_regression.R. */
#include <R.h>
#include <R_ext/Lapack.h>
#include <string.h>
#ifndef FCONE
#define FCONE
#endif

void factor_times(const double *a, double *work, const int *n, const int *times, int *info) {
    const size_t bytes = (size_t)*n * (size_t)*n * sizeof(double);
    for (int i = 0; i < *times; ++i) {
        memcpy(work, a, bytes);
        F77_CALL(dpotrf)("U", n, work, n, info FCONE);
    }
}
