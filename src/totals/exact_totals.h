#ifndef NOISEAWARE_TOTALS_EXACT_TOTALS_H
#define NOISEAWARE_TOTALS_EXACT_TOTALS_H

#include "totals/density.h"

/* Totals of normal records that are exact; see totals/exact_totals.c. */

/* What is exact of a column: the total's coordinate, and the total of its squares. */
struct exact_row {
    int total, square;
    double mean;            /* T / sqrt(n) */
    double constant, slope; /* of the squares, in the mean */
    double middle, reach;   /* where squares are and the total is not: the mean is within that */
};

struct totals_exact {
    const struct totals *totals;
    struct exact_row *row; /* of each column, in the order of totals->column */
    int size;              /* coordinates; those behind the totals' stay as they are */
    double *place;
};

/* Of the exact components of a release; R has seen that they are
 * totals of columns and of squares, and that n is known and larger than there are columns. NULL
 * where there are none. `size`: coordinates of the sampler, the totals' first. */
struct totals_exact *totals_exact_new(const struct totals_density *density, int size,
                                      const struct noise *noise);

/* the density's coordinates for the sampler's */
const double *totals_exact_place(struct totals_exact *e, const double *q);

/* What the density gains there, and the gradient in the sampler's coordinates from that in the
 * density's. */
double totals_exact_pull(const struct totals_exact *e, const double *q, double *gradient);

/* Makes a start of the sampler of one of the density, with scales. */
void totals_exact_start(const struct totals_exact *e, double *q, double *unit);

#endif
