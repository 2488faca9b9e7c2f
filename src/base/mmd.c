/* Sums of Gaussian kernels k(p, q) = exp(-|p - q|^2 / 2) over all pairs of two
 * sets of points, for the maximum mean discrepancy (Gretton et al. 2012,
 * equation 3).
 *
 * Pairs are visited tile by tile, so that both tiles stay in the first cache, and
 * a row of a tile is one vectorised loop. Time is O(m^2) with every pair of one
 * set visited once, memory O(m): nothing is kept of a distance. About 3 ns a pair
 * with few columns, two to three times a pass that only computes distances. */
#include "base/mmd.h"

static const double FAR_AWAY = 1e150;

ptrdiff_t mmd_stride(ptrdiff_t count) { return (count + MMD_TILE - 1) / MMD_TILE * MMD_TILE; }

void mmd_fill(struct mmd_points *points, const double *from, double scale) {
    for (int v = 0; v < points->columns; ++v) {
        double *to = points->column + v * points->stride;
        for (ptrdiff_t i = 0; i < points->count; ++i) to[i] = from[v * points->count + i] / scale;
        for (ptrdiff_t i = points->count; i < points->stride; ++i) to[i] = FAR_AWAY;
    }
}

/* a becomes exp(-a / 2), a >= 0, to 1e-14; what is below 1e-299 is 1e-299. exp(x) =
 * 2^k exp(r) with |r| <= log(2) / 2: Taylor's series of r, and k put into the
 * exponent. The limit is set by comparing bits: compilers vectorise that. */
static INLINE void kernel_block(double *restrict a) {
    const double magic = 0x1.8p52; /* adding it rounds to a whole number in the low bits */
    const int64_t limit = INT64_C(0x4095900000000000); /* 1380 */
    double r[MMD_TILE], shifted[MMD_TILE];
    int64_t bits[MMD_TILE];
    memcpy(bits, a, sizeof bits);
    for (int j = 0; j < MMD_TILE; ++j) bits[j] = bits[j] < limit ? bits[j] : limit;
    memcpy(a, bits, sizeof bits);
    for (int j = 0; j < MMD_TILE; ++j) {
        const double x = -0.5 * a[j];
        shifted[j] = x * 0x1.71547652b82fep0 + magic;
        const double k = shifted[j] - magic;
        r[j] = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    }
    for (int j = 0; j < MMD_TILE; ++j) {
        double e = 1.0 / 39916800;
        e = e * r[j] + 1.0 / 3628800;
        e = e * r[j] + 1.0 / 362880;
        e = e * r[j] + 1.0 / 40320;
        e = e * r[j] + 1.0 / 5040;
        e = e * r[j] + 1.0 / 720;
        e = e * r[j] + 1.0 / 120;
        e = e * r[j] + 1.0 / 24;
        e = e * r[j] + 1.0 / 6;
        e = e * r[j] + 0.5;
        e = e * r[j] + 1;
        r[j] = e * r[j] + 1;
    }
    memcpy(bits, shifted, sizeof bits);
    for (int j = 0; j < MMD_TILE; ++j)
        bits[j] = (int64_t)(((uint64_t)bits[j] + 1023) << 52); /* 2^k */
    memcpy(shifted, bits, sizeof bits);
    for (int j = 0; j < MMD_TILE; ++j) a[j] = r[j] * shifted[j];
}

/* all pairs of `rows` points of p with a tile of q */
static VECTOR_CLONES double tile_sum(int rows, int columns, const double *p, ptrdiff_t p_stride,
                                     const double *q, ptrdiff_t q_stride) {
    double row[MMD_TILE], part[LANES] = {0};
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < MMD_TILE; ++j) row[j] = 0;
        for (int v = 0; v < columns; ++v) {
            const double at = p[v * p_stride + i];
            const double *restrict other = q + v * q_stride;
            for (int j = 0; j < MMD_TILE; ++j) {
                const double gap = at - other[j];
                row[j] += gap * gap;
            }
        }
        kernel_block(row);
        for (int j = 0; j < MMD_TILE; j += LANES)
            for (int l = 0; l < LANES; ++l) part[l] += row[j + l];
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static int tile_rows(const struct mmd_points *p, ptrdiff_t row) {
    const ptrdiff_t left = p->count - row * MMD_TILE;
    return (int)(left < MMD_TILE ? left : MMD_TILE);
}

static double tile_pairs(const struct mmd_points *p, ptrdiff_t row, const struct mmd_points *q,
                         ptrdiff_t column) {
    return tile_sum(tile_rows(p, row), p->columns, p->column + row * MMD_TILE, p->stride,
                    q->column + column * MMD_TILE, q->stride);
}

double mmd_between(const struct mmd_points *p, const struct mmd_points *q, ptrdiff_t row) {
    double sum = 0;
    for (ptrdiff_t column = 0; column < q->stride / MMD_TILE; ++column)
        sum += tile_pairs(p, row, q, column);
    return sum;
}

double mmd_within(const struct mmd_points *p, ptrdiff_t row) {
    /* a point's kernel with itself is 1 */
    double sum = (tile_pairs(p, row, p, row) - tile_rows(p, row)) / 2;
    for (ptrdiff_t column = row + 1; column < p->stride / MMD_TILE; ++column)
        sum += tile_pairs(p, row, p, column);
    return sum;
}

double mmd_matched(const struct mmd_points *p, const struct mmd_points *q) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < p->count; ++i) {
        double distance = 0;
        for (int v = 0; v < p->columns; ++v) {
            const double gap = p->column[v * p->stride + i] - q->column[v * q->stride + i];
            distance += gap * gap;
        }
        sum += exp(-0.5 * distance);
    }
    return sum;
}
