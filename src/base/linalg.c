/* Cholesky factors and triangular solves.
 *
 * The matrices of a regression have a handful of rows, where a plain loop
 * beats the overhead of a LAPACK call; from LAPACK_FROM rows on, and for
 * eigenvectors, LAPACK does the work. A row-major lower triangle is a column-major upper one, hence
 * "U".
 */
#include "base/linalg.h"

#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif

enum { LAPACK_FROM = 16 };

int linalg_cholesky(int n, double *a) {
    if (n >= LAPACK_FROM) {
        int info = 0;
        F77_CALL(dpotrf)("U", &n, a, &n, &info FCONE);
        return info;
    }
    for (int j = 0; j < n; ++j) {
        double *row = a + (size_t)j * n;
        for (int k = 0; k <= j; ++k) {
            const double *other = a + (size_t)k * n;
            double sum = row[k];
            for (int l = 0; l < k; ++l) sum -= row[l] * other[l];
            if (k < j) {
                row[k] = sum / other[k];
            } else {
                if (!(sum > 0) || !isfinite(sum)) return j + 1;
                row[j] = sqrt(sum);
            }
        }
    }
    return 0;
}

void linalg_forward(int n, const double *l, double *x) {
    if (n >= LAPACK_FROM) {
        const int one = 1;
        F77_CALL(dtrsv)("U", "T", "N", &n, l, &n, x, &one FCONE FCONE FCONE);
        return;
    }
    for (int i = 0; i < n; ++i) {
        double sum = x[i];
        for (int k = 0; k < i; ++k) sum -= l[(size_t)i * n + k] * x[k];
        x[i] = sum / l[(size_t)i * n + i];
    }
}

void linalg_backward(int n, const double *l, double *x) {
    if (n >= LAPACK_FROM) {
        const int one = 1;
        F77_CALL(dtrsv)("U", "N", "N", &n, l, &n, x, &one FCONE FCONE FCONE);
        return;
    }
    for (int i = n - 1; i >= 0; --i) {
        double sum = x[i];
        for (int k = i + 1; k < n; ++k) sum -= l[(size_t)k * n + i] * x[k];
        x[i] = sum / l[(size_t)i * n + i];
    }
}

void linalg_shape_rows(int rows, int n, const double *l, double *x) {
    const double one = 1;
    if (rows == 0 || n == 0) return;
    F77_CALL(dtrmm)
    ("R", "U", "N", "N", &rows, &n, &one, l, &n, x, &rows FCONE FCONE FCONE FCONE);
}

/* LANES rows in a row of a, from the lanes of their diagonals on: less by[i] x' + also[i] y' */
static INLINE void subtract_two(int width, int first, const double *by, const double *also,
                                const double *restrict x, const double *restrict y,
                                double *restrict row) {
    double *second = row + width, *third = second + width, *fourth = third + width;
    const double by0 = by[0], by1 = by[1], by2 = by[2], by3 = by[3];
    const double also0 = also[0], also1 = also[1], also2 = also[2], also3 = also[3];
    for (int j = first; j < width; j += LANES) {
        for (int l = 0; l < LANES; ++l) row[j + l] -= by0 * x[j + l] + also0 * y[j + l];
        for (int l = 0; l < LANES; ++l) second[j + l] -= by1 * x[j + l] + also1 * y[j + l];
        for (int l = 0; l < LANES; ++l) third[j + l] -= by2 * x[j + l] + also2 * y[j + l];
        for (int l = 0; l < LANES; ++l) fourth[j + l] -= by3 * x[j + l] + also3 * y[j + l];
    }
}

/* Rows stand in the upper triangle; what is left of the diagonal in its lanes is
 * written to and never read. Two pivots at a time, which halves the times that each entry is
 * written: the second is what the first leaves of it. Without a second one, its row is 0. */
VECTOR_CLONES static double sweep_rows(int n, int count, int width, double *restrict a,
                                       double *restrict x) {
    double *restrict y = x + width;
    double product = 1, log_det = 0;
    for (int k = 0; k < count; k += 2) {
        const int two = k + 1 < count;
        double *own = a + (size_t)k * width, *next = two ? own + width : y;
        const double pivot = own[k], share = two ? own[k + 1] / pivot : 0;
        const double second = two ? next[k + 1] - share * own[k + 1] : 1;
        if (!(pivot > 0 && second > 0) || !isfinite(pivot) || !isfinite(second)) return NAN;
        /* one logarithm for several pivots */
        const double both = product * pivot * second;
        if (both > 1e-100 && both < 1e100) {
            product = both;
        } else {
            log_det += log(product) + log(pivot) + log(second);
            product = 1;
        }
        const double scale = 1 / pivot, scale_second = 1 / second;
        for (int j = 0; j < k; ++j) {
            const double *row = a + (size_t)j * width;
            x[j] = row[k];
            y[j] = two ? row[k + 1] - share * x[j] : 0;
        }
        for (int j = k; j < n; ++j) {
            x[j] = own[j];
            y[j] = two ? next[j] - share * x[j] : 0;
        }
        x[k] = x[k + two] = y[k] = y[k + two] = 0;
        /* LANES rows together: the same lanes of each are in the upper triangle */
        int i = 0;
        for (; i + LANES <= n; i += LANES) {
            double by[LANES], also[LANES];
            for (int m = 0; m < LANES; ++m) {
                by[m] = x[i + m] * scale;
                also[m] = y[i + m] * scale_second;
            }
            subtract_two(width, i, by, also, x, y, a + (size_t)i * width);
        }
        for (; i < n; ++i) {
            double *row = a + (size_t)i * width;
            const double by = x[i] * scale, also = y[i] * scale_second;
            for (int j = i & ~(LANES - 1); j < width; j += LANES)
                for (int l = 0; l < LANES; ++l) row[j + l] -= by * x[j + l] + also * y[j + l];
        }
        for (int j = 0; j < n; ++j) {
            y[j] *= scale_second;
            x[j] = x[j] * scale - share * y[j];
        }
        for (int j = 0; j < k; ++j) {
            double *row = a + (size_t)j * width;
            row[k] = x[j];
            if (two) row[k + 1] = y[j];
        }
        for (int j = k + 1 + two; j < n; ++j) {
            own[j] = x[j];
            if (two) next[j] = y[j];
        }
        own[k] = -scale - share * share * scale_second;
        if (!two) continue;
        own[k + 1] = share * scale_second;
        next[k + 1] = -scale_second;
    }
    return log_det + log(product);
}

static inline void add_row(int n, double weight, const double *restrict a, double *restrict out) {
    for (int j = 0; j < n; ++j) out[j] += weight * a[j];
}

VECTOR_CLONES void linalg_multiply_lower(int n, const double *l, const double *a, double *out) {
    memset(out, 0, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; ++i)
        for (int k = 0; k <= i; ++k)
            add_row(n, l[(size_t)i * n + k], a + (size_t)k * n, out + (size_t)i * n);
}

VECTOR_CLONES void linalg_multiply_upper(int n, const double *l, const double *a, double *out) {
    memset(out, 0, (size_t)n * (size_t)n * sizeof(double));
    for (int k = 0; k < n; ++k)
        for (int i = 0; i <= k; ++i)
            add_row(n, l[(size_t)k * n + i], a + (size_t)k * n, out + (size_t)i * n);
}

VECTOR_CLONES void linalg_multiply_symmetric_lower(int n, const double *a, const double *l,
                                                   double *out) {
    memset(out, 0, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            add_row(k + 1, a[(size_t)i * n + k], l + (size_t)k * n, out + (size_t)i * n);
}

/* Left of the diagonal in its lanes the matrix counts as 0. */
VECTOR_CLONES void linalg_multiply_symmetric(int n, int width, const double *restrict a,
                                             const double *restrict x, double *restrict out) {
    for (int j = 0; j < width; ++j) out[j] = 0;
    for (int i = 0; i < n; ++i) {
        const double *row = a + (size_t)i * width;
        const int whole = (i + LANES) & ~(LANES - 1), first = whole < n ? whole : n;
        double part[LANES] = {0}, sum = row[i] * x[i];
        for (int j = i + 1; j < first; ++j) {
            sum += row[j] * x[j];
            out[j] += row[j] * x[i];
        }
        for (int j = whole; j < width; j += LANES)
            for (int l = 0; l < LANES; ++l) {
                part[l] += row[j + l] * x[j + l];
                out[j + l] += row[j + l] * x[i];
            }
        out[i] += sum + (part[0] + part[1]) + (part[2] + part[3]);
    }
}

void linalg_add_triangle(int n, int width, const double *x, double *out) {
    for (int i = 0; i < n; ++i, x += width, out += width)
        for (int j = i; j < n; ++j) out[j] += x[j];
}

double linalg_trace_product(int n, int width, const double *a, const double *x) {
    double sum = 0;
    for (int i = 0; i < n; ++i, a += width, x += width) {
        sum += a[i] * x[i];
        for (int j = i + 1; j < n; ++j) sum += 2 * a[j] * x[j];
    }
    return sum;
}

double linalg_sweep(int n, int count, int width, double *a, double *work) {
    memset(work, 0, 2 * (size_t)width * sizeof(double));
    return sweep_rows(n, count, width, a, work);
}

int linalg_principal(int n, double *a, double *value, double *work) {
    const int length = 3 * n;
    int info = 0;
    F77_CALL(dsyev)("V", "U", &n, a, &n, value, work, &length, &info FCONE FCONE);
    return info;
}

void linalg_raise_eigenvalues(int n, double *a, double least, double *work) {
    double *vector = work, *value = work + (size_t)n * n, *scratch = value + n;
    memcpy(vector, a, (size_t)n * n * sizeof(double));
    if (linalg_principal(n, vector, value, scratch) != 0) return;
    memset(a, 0, (size_t)n * n * sizeof(double));
    for (int k = 0; k < n; ++k) {
        const double *v = vector + (size_t)k * n;
        const double raised = value[k] > least ? value[k] : least;
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) a[(size_t)i * n + j] += raised * v[i] * v[j];
    }
}

double linalg_quadratic(int n, const double *a, const double *x, const double *centre) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            sum += a[(size_t)i * n + j] * (x[i] - centre[i]) * (x[j] - centre[j]);
    return sum;
}

/* Pivots on the largest remaining diagonal of the matrix scaled to a unit one,
 * so that components of very different sizes are treated alike. */
int linalg_semi_cholesky(int n, double *a, int *pivot, double *work) {
    double tolerance = 1e-11;
    double *unit = work;
    for (int i = 0; i < n; ++i) {
        const double variance = a[(size_t)i * n + i];
        unit[i] = variance > 0 ? sqrt(variance) : 0;
        pivot[i] = i;
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) {
            const double scale = unit[i] * unit[j];
            a[(size_t)i * n + j] = scale > 0 ? a[(size_t)i * n + j] / scale : 0;
        }
    int rank = n;
    if (n >= LAPACK_FROM) {
        int info = 0;
        F77_CALL(dpstrf)("U", &n, a, &n, pivot, &rank, &tolerance, work + n, &info FCONE);
        if (info < 0) return 0;
        for (int i = 0; i < n; ++i) --pivot[i];
    } else {
        for (int k = 0; k < n; ++k) {
            int best = k;
            for (int i = k + 1; i < n; ++i)
                if (a[(size_t)i * n + i] > a[(size_t)best * n + best]) best = i;
            if (!(a[(size_t)best * n + best] > tolerance)) {
                rank = k;
                break;
            }
            if (best != k) {
                /* rows and columns k and best change places, lower triangle */
                const int swap = pivot[k];
                pivot[k] = pivot[best];
                pivot[best] = swap;
                for (int j = 0; j < k; ++j) {
                    const double value = a[(size_t)k * n + j];
                    a[(size_t)k * n + j] = a[(size_t)best * n + j];
                    a[(size_t)best * n + j] = value;
                }
                for (int j = k + 1; j < best; ++j) {
                    const double value = a[(size_t)j * n + k];
                    a[(size_t)j * n + k] = a[(size_t)best * n + j];
                    a[(size_t)best * n + j] = value;
                }
                for (int i = best + 1; i < n; ++i) {
                    const double value = a[(size_t)i * n + k];
                    a[(size_t)i * n + k] = a[(size_t)i * n + best];
                    a[(size_t)i * n + best] = value;
                }
                const double value = a[(size_t)k * n + k];
                a[(size_t)k * n + k] = a[(size_t)best * n + best];
                a[(size_t)best * n + best] = value;
            }
            const double root = sqrt(a[(size_t)k * n + k]);
            a[(size_t)k * n + k] = root;
            for (int i = k + 1; i < n; ++i) a[(size_t)i * n + k] /= root;
            for (int i = k + 1; i < n; ++i)
                for (int j = k + 1; j <= i; ++j)
                    a[(size_t)i * n + j] -= a[(size_t)i * n + k] * a[(size_t)j * n + k];
        }
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < rank && j <= i; ++j) a[(size_t)i * n + j] *= unit[pivot[i]];
    return rank;
}

void linalg_semi_multiply(int n, int rank, const double *l, const int *pivot, const double *x,
                          double *out) {
    for (int i = 0; i < n; ++i) {
        const double *row = l + (size_t)i * n;
        const int last = i < rank ? i + 1 : rank;
        double sum = 0;
        for (int j = 0; j < last; ++j) sum += row[j] * x[j];
        out[pivot[i]] = sum;
    }
}

double linalg_solve(int n, double *a, double *x) {
    double log_determinant = 0;
    for (int k = 0; k < n; ++k) {
        int at = k;
        for (int i = k + 1; i < n; ++i)
            if (fabs(a[i * n + k]) > fabs(a[at * n + k])) at = i;
        double *restrict pivot = a + k * n;
        if (at != k) {
            double *restrict row = a + at * n, swap = x[k];
            x[k] = x[at];
            x[at] = swap;
            for (int j = k; j < n; ++j) {
                swap = pivot[j];
                pivot[j] = row[j];
                row[j] = swap;
            }
        }
        if (!(fabs(pivot[k]) > 0)) return -INFINITY;
        log_determinant += log(fabs(pivot[k]));
        const double share = 1 / pivot[k];
        for (int i = k + 1; i < n; ++i) {
            double *restrict row = a + i * n;
            const double by = row[k] * share;
            if (by == 0) continue;
            for (int j = k + 1; j < n; ++j) row[j] -= by * pivot[j];
            x[i] -= by * x[k];
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        for (int j = k + 1; j < n; ++j) x[k] -= a[k * n + j] * x[j];
        x[k] /= a[k * n + k];
    }
    return log_determinant;
}
