/* Matrices by BLAS and LAPACK. */
#include "base/matrix.h"

#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif

static int at_least_one(int n) { return n > 1 ? n : 1; }

struct matrix matrix_product(const char *transposed, struct matrix a, struct matrix b) {
    const int turned = transposed[0] == 'T', inner = turned ? a.rows : a.columns;
    const struct matrix out =
        matrix_new(turned ? a.columns : a.rows, transposed[1] == 'T' ? b.rows : b.columns);
    const int lda = at_least_one(a.rows), ldb = at_least_one(b.rows), ldc = at_least_one(out.rows);
    const double one = 1, zero = 0;
    F77_CALL(dgemm)
    (transposed, transposed + 1, &out.rows, &out.columns, &inner, &one, a.x, &lda, b.x, &ldb, &zero,
     out.x, &ldc FCONE FCONE);
    return out;
}

struct matrix matrix_sandwich(struct matrix a, struct matrix h) {
    return matrix_product("TN", a, matrix_product("NN", h, a));
}

/* x = h x, h the reflection 1 - v v' / (v'v / 2) */
static void reflect(struct matrix v, double *x) {
    const double length = sum_of_squares(v);
    if (length == 0) return;
    const double weight = 2 * linalg_dot(v.rows, v.x, x) / length;
    for (int i = 0; i < v.rows; ++i) x[i] -= weight * v.x[i];
}

struct matrix matrix_complement(struct matrix a) {
    const int d = a.rows;
    const struct matrix mirror = matrix_new(d, a.columns);
    int rank = 0;
    for (int j = 0; j < a.columns && rank < d; ++j) {
        double *v = column(mirror, rank);
        doubles_copy(v, column(a, j), d);
        const double before = sqrt(linalg_dot(d, v, v));
        for (int k = 0; k < rank; ++k) reflect(column_of(mirror, k), v);
        for (int i = 0; i < rank; ++i) v[i] = 0;
        const double length = sqrt(linalg_dot(d, v, v));
        if (length > 1e-7 * before) {
            v[rank] += v[rank] < 0 ? -length : length;
            ++rank;
        }
    }
    const struct matrix out = matrix_new(d, d - rank);
    for (int j = 0; j < d - rank; ++j) {
        double *x = column(out, j);
        x[rank + j] = 1;
        for (int k = rank - 1; k >= 0; --k) reflect(column_of(mirror, k), x);
    }
    return out;
}

struct svd {
    struct matrix u, vt;
    double *value;
    int rank; /* with values that are not small */
};

static struct svd decompose(struct matrix a) {
    const int few = a.rows < a.columns ? a.rows : a.columns, rows = at_least_one(a.rows),
              least = at_least_one(few);
    struct svd s = {matrix_new(a.rows, few), matrix_new(few, a.columns), doubles((size_t)few + 1),
                    0};
    if (few == 0) return s;
    struct matrix copy = matrix_new(a.rows, a.columns);
    doubles_copy(copy.x, a.x, a.rows * a.columns);
    int info = 0, length = -1;
    double wanted = 0;
    int *work = plugin_memory(8 * (size_t)few, sizeof *work);
    F77_CALL(dgesdd)
    ("S", &a.rows, &a.columns, copy.x, &rows, s.value, s.u.x, &rows, s.vt.x, &least, &wanted,
     &length, work, &info FCONE);
    length = (int)wanted;
    F77_CALL(dgesdd)
    ("S", &a.rows, &a.columns, copy.x, &rows, s.value, s.u.x, &rows, s.vt.x, &least,
     doubles((size_t)length), &length, work, &info FCONE);
    if (info == 0)
        while (s.rank < few && s.value[s.rank] > 1e-9 * s.value[0] && s.value[s.rank] > 1e-300)
            ++s.rank;
    return s;
}

struct matrix matrix_directions(struct matrix a, int most, double least) {
    const struct svd s = decompose(a);
    struct matrix out = s.u;
    out.columns = s.rank < most ? s.rank : most;
    while (out.columns > 0 && !(s.value[out.columns - 1] > least)) --out.columns;
    return out;
}

struct matrix matrix_pseudo_inverse(struct matrix a) {
    const struct svd s = decompose(a);
    struct matrix v = matrix_new(a.columns, s.rank), u = s.u;
    u.columns = s.rank;
    for (int k = 0; k < s.rank; ++k)
        for (int i = 0; i < a.columns; ++i) column(v, k)[i] = column(s.vt, i)[k] / s.value[k];
    return matrix_product("NT", v, u);
}
