#ifndef NOISEAWARE_BASE_BLOCK_H
#define NOISEAWARE_BASE_BLOCK_H

#include "base/core.h"

/* A linear combination of a block's columns. */
struct terms {
    int count;
    double *coef;
    const double **column;
};

struct terms terms_new(int most);
void terms_clear(struct terms *terms);

/* One more term; a coefficient 0 costs nothing. */
void terms_add(struct terms *terms, double coef, const double *column);

/* out = shift + sum of the terms; `out` is none of their columns. */
void terms_sum(const struct terms *terms, double shift, int m, double *out);

/* out[j] += block_dot() of a and column j of `count`, `stride` apart */
void block_add_dots(int m, const double *a, int count, const double *x, ptrdiff_t stride,
                    double *out);

/* out = scale x + shift, clamped to [lower, upper]: in the loops of kernels that are
 * compiled for several machines, so it lives here. */
static INLINE void block_clamp(double scale, double shift, double lower, double upper, int m,
                               const double *restrict x, double *restrict out) {
    FOR_RECORDS(i, m) {
        double value = scale * x[i] + shift;
        value = value > lower ? value : lower;
        out[i] = value < upper ? value : upper;
    }
}

/* Sums of q centred columns and the upper triangle of their products, row by
 * row: a complete-data statistic free of cancellation when the centre, a fixed
 * public point, lies near the records. */
struct moments {
    int q;
    const double *centre;
    double *centred; /* workspace, q columns of MAX_BLOCK */
};

struct moments moments_new(int q, const double *centre);
static inline int moments_size(int q) { return q + q * (q + 1) / 2; }

/* Where the product of columns i and j of q stands, in either order. */
static inline int moments_at(int q, int i, int j) {
    const int a = i <= j ? i : j, b = i <= j ? j : i;
    return q + a * q - a * (a - 1) / 2 + (b - a);
}

/* Writes the centred columns. */
void moments_centre(const struct moments *moments, int m, const double *const *x);
void moments_add(const struct moments *moments, int m, const double *const *x, double *c);

/* Sum of the products of columns i and j. */
double moments_product(const struct moments *moments, const double *c, int i, int j);

#endif
