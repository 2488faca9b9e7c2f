#ifndef NOISEAWARE_TOTALS_NORMAL_COORDINATES_H
#define NOISEAWARE_TOTALS_NORMAL_COORDINATES_H

#include "base/core.h"

/* Totals and products of continuous columns as coordinates without constraint, and back;
 * see totals/normal_coordinates.c. Complete-data statistics are those of base/block.h, of
 * `columns` columns. */
struct totals {
    int columns;
    double n;
    int d, k;          /* continuous columns; fixed ones, with the constant 1 as the first */
    const int *column; /* where these stand: d; k - 1 */
    const int *fixed;
    int riders;         /* columns that stay while the continuous ones move with them */
    const int *rider;   /* where these stand */
    int rank;           /* of the scatter: min(n - k, d) */
    int size;           /* coordinates */
    int inverse;        /* are the coordinates of the scatter's factor rows of its inverse? */
    const double *bend; /* BEND_ROWS a continuous column; NULL: there is none */

    int width;                    /* d, padded */
    double *design;               /* k x k: lower factor R of D'D */
    int *idle, live;              /* k: columns of D that depend on those before; how many do not */
    const double *idle_sd;        /* of M's entries in rows that are idle; NULL: there are none */
    double *mean;                 /* k rows of `width`: M = R^-1 D'W */
    double *factor;               /* d rows of `width`: F, scatter = F F' */
    double *slope, *pull;         /* d rows of `width`; k + d of them */
    double power;                 /* of each F_ii in the volume */
    int *total, *cross, *product; /* places in c of T (k x d) and of the products (d x d) */

    /* Of riders V: R^-1 D'V and U'V, a row each, and the places of V'W. */
    double *rider_mean, *rider_shape;
    int *rider_cross;
    /* NULL, or slopes in M and F that totals_pull() adds, rows as theirs */
    double *slope_mean, *slope_factor;
};

/* `column` and `fixed` must outlive it. n > k. */
void totals_create(struct totals *totals, int columns, double n, int d, const int *column, int k,
                   const int *fixed);

/* Has coordinates of the inverse factor, unless the scatter is singular. */
void totals_invert_rows(struct totals *totals);

/* Declares riders, which must outlive it. */
void totals_carry(struct totals *totals, int riders, const int *rider);

/* Reads what of the riders stays from c, after totals_coordinates() of the same. */
void totals_read_riders(struct totals *totals, const double *c);

/* Reads D'D from c, and returns its rank, k unless columns of D depend on others. */
int totals_design(struct totals *totals, const double *c);

/* R'B = M, of the current M, k rows of `width` as it is: the least-squares coefficients on D, whose
 * columns must not depend on each other. */
void totals_coefficients(const struct totals *totals, double *b);

/* M = R'B, both k x d, row by row; idle rows of R are rows of the unit matrix. */
void totals_apply_design(const struct totals *totals, const double *b, double *mean);

/* Writes what belongs to the continuous columns into c; the rest stays. */
void totals_expand(struct totals *totals, const double *coordinates, double *c);

/* After totals_expand(), of the same coordinates: the log of the volume term, and the
 * gradient of the sum of it and a function whose gradient in c is given. */
double totals_pull(struct totals *totals, const double *coordinates, const double *gradient_c,
                   double *gradient);

/* What it is made of: adds to the gradient, from where F's coordinates begin, what slopes in F,
 * rows of `width`, give. Not those in totals->slope. */
void totals_pull_factor(struct totals *totals, const double *slope, double *gradient);

/* With a bend: adds to the slopes in row i of F what that in M_1i gives. */
void totals_pull_bend(const struct totals *totals, int i, double of_mean, double *pull);

/* Inverse of a lower triangle of d rows of `width`. */
void totals_invert(int d, int width, const double *f, double *out);

/* The coordinates at which the statistic is c. Returns PLUGIN_NUMERICAL where its scatter is not
 * positive definite, or has another rank. */
int totals_coordinates(struct totals *totals, const double *c, double *coordinates);

#endif
