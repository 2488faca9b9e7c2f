#ifndef NOISEAWARE_CLAMPED_H
#define NOISEAWARE_CLAMPED_H

#include "totals.h"

/* Expected totals of clamped columns, as a function of those of the columns before they
 * are clamped; see clamped.c. Statistics are those of block.h. */
struct clamped {
    const struct totals *totals;
    const double *lower, *upper; /* of each free column, less its centre; may be infinite */
    /* of each free column */
    struct clamped_column {
        double mean, sd;           /* before clamping */
        double inside, e, f, g, h; /* see clamped.c */
        double first;              /* expected clamped value */
        double on_mean, on_sd;     /* slopes of what is pulled back */
        double on_first, on_inside, on_e, on_f;
    } * column;
};

struct clamped *clamped_new(const struct totals *totals, const double *lower, const double *upper);

/* `out`: c with what belongs to free columns as if the bounds had clamped them. */
void clamped_expect(struct clamped *clamped, const double *c, double *out);

/* After clamped_expect() of the same c: the gradient in `out`, in place, becomes that in c. */
void clamped_pull(struct clamped *clamped, const double *c, double *gradient);

#endif
