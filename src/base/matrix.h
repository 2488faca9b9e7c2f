#ifndef NOISEAWARE_BASE_MATRIX_H
#define NOISEAWARE_BASE_MATRIX_H

#include "base/linalg.h"
#include "base/memory.h"

/* Matrices of any shape, column after column as R has them; results are plugin_memory(). */
struct matrix {
    int rows, columns;
    double *x;
};

/* of zeros */
static inline struct matrix matrix_new(int rows, int columns) {
    const struct matrix a = {rows, columns, doubles((size_t)rows * (size_t)columns + 1)};
    return a;
}

static inline double *column(struct matrix a, int j) { return a.x + (size_t)j * (size_t)a.rows; }

static inline struct matrix column_of(struct matrix a, int j) {
    const struct matrix one = {a.rows, 1, column(a, j)};
    return one;
}

static inline double sum_of_squares(struct matrix a) {
    return linalg_dot(a.rows * a.columns, a.x, a.x);
}

/* a b, of which `transposed` ("N" or "T" each) may turn either */
struct matrix matrix_product(const char *transposed, struct matrix a, struct matrix b);

/* a' h a */
struct matrix matrix_sandwich(struct matrix a, struct matrix h);

/* An orthonormal basis of what is orthogonal to the columns of a, by reflections that take each to
 * an axis. */
struct matrix matrix_complement(struct matrix a);

/* Left singular vectors, at most `most`, with singular values above `least`. */
struct matrix matrix_directions(struct matrix a, int most, double least);

/* The generalised inverse. */
struct matrix matrix_pseudo_inverse(struct matrix a);

#endif
