/* Cubic B-splines with equal knots between public bounds. `intervals` intervals have intervals + 3
 * splines; in interval i those from i on to i + 3 are not 0. They are not negative and sum to 1. */
#ifndef NOISEAWARE_BASE_CUBIC_SPLINES_H
#define NOISEAWARE_BASE_CUBIC_SPLINES_H

#include "base/core.h"

enum { SPLINES_AT_ONCE = 4 };

/* The four of an interval, 0 <= t <= 1 of the way through it. */
static inline void cubic_splines(double t, double *b) {
    const double s = 1 - t, t2 = t * t, s2 = s * s;
    b[0] = s * s2 / 6;
    b[1] = 2.0 / 3 - t2 * (1 - t / 2);
    b[2] = 2.0 / 3 - s2 * (1 - s / 2);
    b[3] = t * t2 / 6;
}

/* The interval of u, which counts them from the lower bound and is in [0, intervals]. */
static inline int spline_interval(int intervals, double u) {
    const int at = (int)u;
    return at < intervals ? at : intervals - 1;
}

/* Products b_j b_k, j <= k < j + `band`, of so many splines, row by row: where that of j and k is,
 * and how many there are. */
static inline int spline_pair(int splines, int band, int j, int k) {
    int at = band * j + (k - j);
    /* the last rows are shorter */
    for (int row = splines - band + 1; row < j; ++row) at -= row + band - splines;
    return at;
}

static inline int spline_pairs(int splines, int band) {
    return band * splines - band * (band - 1) / 2;
}

#endif
