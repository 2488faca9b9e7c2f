#ifndef NOISEAWARE_TOTALS_CLAMPED_MOMENTS_BY_CELL_H
#define NOISEAWARE_TOTALS_CLAMPED_MOMENTS_BY_CELL_H

#include "totals/clamped_moments.h"

/* Expected totals of clamped columns where records have a mean of their own in each cell of a
 * cross-table of factors; see totals/clamped_moments_by_cell.c. */
struct clamped_cells {
    struct clamped *clamped;
    struct totals *totals;
    int cells;
    const double *count; /* of records, a cell; the owner's */
    const int *dummy;    /* 0 or 1: cells rows of k - 1, of the fixed columns; the owner's */

    double *along; /* cells rows of k: of the rows of M, what the mean of a cell takes */
    struct clamped_edges *edges; /* cells rows of d, as they were placed last */
    double *on_cov;
};

/* `totals` are those of `clamped`, and get slopes in M and F. */
struct clamped_cells *clamped_cells_new(struct clamped *clamped, struct totals *totals, int cells,
                                        const int *dummy);

/* After totals_design(), which the counts give. */
void clamped_cells_design(struct clamped_cells *s);

/* After totals_expand(): `out` gets what belongs to free columns as if the bounds had clamped
 * them. */
void clamped_cells_expect(struct clamped_cells *s, double *out);

/* After that: a gradient in `out` becomes slopes in M and F, which totals_pull() adds. */
void clamped_cells_pull(struct clamped_cells *s, const double *gradient);

/* After totals_expand(): readies clamped_left() and clamped_product_left() for records of a cell.
 */
void clamped_cells_expand(struct clamped_cells *s, int cell);

#endif
