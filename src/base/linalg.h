#ifndef NOISEAWARE_BASE_LINALG_H
#define NOISEAWARE_BASE_LINALG_H

#include "base/core.h"

/* Square matrices are n x n, row-major, lower triangle used. */

/* a = L L', L over a's lower triangle. Returns 0, or 1 + the index of the
 * first pivot that is not positive. */
int linalg_cholesky(int n, double *a);

/* x = L^-1 x and x = L^-T x. */
void linalg_forward(int n, const double *l, double *x);
void linalg_backward(int n, const double *l, double *x);

/* x = x L', where x is rows x n and stored column after column. */
void linalg_shape_rows(int rows, int n, const double *l, double *x);

/* out = L a, out = L'a, and out = a L for symmetric a, both triangles given; all n x n. */
void linalg_multiply_lower(int n, const double *l, const double *a, double *out);
void linalg_multiply_upper(int n, const double *l, const double *a, double *out);
void linalg_multiply_symmetric_lower(int n, const double *a, const double *l, double *out);

/* out = a x for symmetric a, n rows of `width`, a multiple of LANES, upper triangle used; x and out
 * are as wide. */
void linalg_multiply_symmetric(int n, int width, const double *a, const double *x, double *out);

/* Of symmetric n x n matrices whose upper triangles are in rows of `width`: out += x, and the trace
 * of a x. */
void linalg_add_triangle(int n, int width, const double *x, double *out);
double linalg_trace_product(int n, int width, const double *a, const double *x);

/* Sweeps the first `count` rows of the symmetric matrix a, of n rows of `width`, a
 * multiple of LANES, upper triangle used: with a = (A B; B' C), A to -A^-1, B to
 * A^-1 B, C to C - B' A^-1 B. Returns log |A|; NaN if A is not positive definite.
 * `work` holds 2 `width`. n count n / 2 multiplications. */
double linalg_sweep(int n, int count, int width, double *a, double *work);

/* x = a^-1 x for any square a, rows of n, which is spent; row by row, with pivots. Returns log |det
 * a|; -INFINITY where a is singular. */
double linalg_solve(int n, double *a, double *x);

static inline double linalg_dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* (x - centre)' a (x - centre), a full. */
double linalg_quadratic(int n, const double *a, const double *x, const double *centre);

/* Of a singular matrix: P' a P = L L' with L over a's lower triangle, its first
 * `rank` columns, and pivot[i] the row of a that became row i. Returns the rank.
 * `work` holds 3 n. Multiplying: out = P L x, x of length rank. */
int linalg_semi_cholesky(int n, double *a, int *pivot, double *work);
void linalg_semi_multiply(int n, int rank, const double *l, const int *pivot, const double *x,
                          double *out);

/* Raises eigenvalues of a full symmetric matrix to `least`. `work` holds
 * n * n + 4 n. Leaves the matrix as it is if LAPACK fails. */
void linalg_raise_eigenvalues(int n, double *a, double least, double *work);

/* Eigenvalues of the symmetric matrix a; the vectors come to its rows. `work` has
 * 3 n doubles. Returns 0 unless it fails. */
int linalg_principal(int n, double *a, double *value, double *work);

/* Of the lower triangle of `size` rows: += weight at that element, or at its mirror image above the
 * diagonal. */
static inline void linalg_add_below(double *matrix, size_t size, int row, int column,
                                    double weight) {
    const size_t i = (size_t)(row > column ? row : column),
                 j = (size_t)(row > column ? column : row);
    matrix[i * size + j] += weight;
}

#endif
