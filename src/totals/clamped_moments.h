#ifndef NOISEAWARE_TOTALS_CLAMPED_MOMENTS_H
#define NOISEAWARE_TOTALS_CLAMPED_MOMENTS_H

#include "totals/normal_coordinates.h"

/* of Mehler's series */
enum { CLAMPED_TERMS = 40 };

/* The bounds of a column in its standard deviations about its mean, the densities there, and what
 * lies beyond; infinite bounds have 0. `bend` bounds the terms of series. See
 * totals/clamped_moments.c. */
struct clamped_edges {
    double a, b, at_a, at_b, below, above, bend;
};

/* Of a clamped normal column: its expected value and square, and the slopes of these in the mean
 * and the standard deviation before clamping. */
struct clamped_moments {
    double first, second, first_mean, first_sd, second_mean, second_sd;
};

/* Expected totals of clamped columns, as a function of the columns' totals before they
 * are clamped; see totals/clamped_moments.c. Statistics are as in base/block.h. */
struct clamped {
    const struct totals *totals;
    const double *lower, *upper; /* of each free column, less its centre; may be infinite */
    int most;                    /* terms of a series: CLAMPED_TERMS, or fewer for speed */
    /* Of columns i > j, in rows of `width`, a multiple of LANES: correlations, terms of their
     * series that count, and slopes, see clamped_pull_slopes(), which are 0 from the diagonal on.
     */
    int width;
    double *correlation;
    int *terms;
    double *slope, *rest;
    double *row; /* workspace: `width`, as what follows */
    /* of each free column: the expected clamped value; the share inside, and times the standard
     * deviation; what read the totals */
    double *first, *inside, *reach, *mean, *per_sd;
    double *on_first, *along;
    /* records of dummies, of each free column, with the column's sd; their means */
    struct clamped_moments *group;
    double *group_mean;
    /* of each free column */
    struct clamped_column {
        double mean, sd; /* before clamping */
        struct clamped_edges edges;
        int terms, longer; /* of its series that count; has one with a column before it several? */
        double j[CLAMPED_TERMS + 2];
        double first, second;                       /* expected clamped value, and its square */
        double on_mean, on_sd, on_first, on_second; /* slopes of what is pulled back */
    } * column;
};

/* Of normal columns with these bounds, this standard deviation and each of the means. */
void clamped_normals(double lower, double upper, double sd, int count, const double *mean,
                     struct clamped_moments *out);

struct clamped *clamped_new(const struct totals *totals, const double *lower, const double *upper);

/* `out`: c with what belongs to free columns as if the bounds had clamped them. */
void clamped_expect(struct clamped *clamped, const double *c, double *out);

/* After clamped_expect() of the same c: the gradient in `out`, in place, becomes that in c. */
void clamped_pull(struct clamped *clamped, const double *c, double *gradient);

/* After clamped_expect(): log of the volume of what it expects over that of c, where no column is
 * fixed. NaN or -INFINITY where next to no value lies inside the bounds. */
double clamped_log_volume(const struct clamped *clamped);

/* The inverse, where no column is fixed: c of which `seen` is expected, looked for from where
 * clamped_expect() was last; 0 if it was not found. */
int clamped_match(struct clamped *clamped, const double *seen, double *c);

/* What the two are made of, for records of one distribution. Given the means, the standard
 * deviations and the correlations of the columns: what is expected of each clamped column. */
void clamped_place(struct clamped *clamped);

/* The same where the columns' edges are known as well. */
void clamped_place_again(struct clamped *clamped);

/* After that: the expected products of column i with columns 0 to i; until the next call. */
const double *clamped_products(const struct clamped *clamped, int i);

/* Row i of `slope`, up to whole lanes: 0 from its diagonal on. */
static inline double *clamped_slopes(const struct clamped *clamped, int i) {
    double *row = clamped->slope + (size_t)i * (size_t)clamped->width;
    for (int j = i; j < PAD_LANES(i); ++j) row[j] = 0;
    return row;
}

/* After clamped_place(): on_first, on_second and `slope` hold the slopes in these, and come to be
 * those in the means and standard deviations, and `slope` those in covariances. */
void clamped_pull_slopes(struct clamped *clamped);

/* What follows needs all terms: after clamped_expect(). */
void clamped_expand(struct clamped *clamped);

/* After clamped_expand(): the variance in a record that is left of a clamped column, or of the
 * product of two (i and j may be the same), each plus a shift, once the means and products of all
 * columns before they were clamped are known. */
double clamped_left(const struct clamped *clamped, int i);
double clamped_product_left(const struct clamped *clamped, int i, double shift_i, int j,
                            double shift_j);

#endif
