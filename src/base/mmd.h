#ifndef NOISEAWARE_BASE_MMD_H
#define NOISEAWARE_BASE_MMD_H

#include "base/core.h"

/* points of a tile */
enum { MMD_TILE = 256 };

/* Points in columns, `stride` apart, padded to whole tiles with points so far
 * away that their kernel is 0. */
struct mmd_points {
    ptrdiff_t count, stride;
    int columns;
    double *column;
};

ptrdiff_t mmd_stride(ptrdiff_t count);

/* `from` is count x columns without padding; values are divided by `scale`. */
void mmd_fill(struct mmd_points *points, const double *from, double scale);

/* Kernels between the points of tile `row` of p and all of q. */
double mmd_between(const struct mmd_points *p, const struct mmd_points *q, ptrdiff_t row);

/* Kernels between the points of tile `row` and all later points, the tile's own
 * pairs included, each pair once. */
double mmd_within(const struct mmd_points *p, ptrdiff_t row);

/* Kernels between p_i and q_i. */
double mmd_matched(const struct mmd_points *p, const struct mmd_points *q);

#endif
