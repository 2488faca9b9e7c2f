/* Shared by records/redraw_steps.c, records/redraw_places.c and records/redraw_totals.c. */
#ifndef NOISEAWARE_RECORDS_REDRAW_SHAPE_H
#define NOISEAWARE_RECORDS_REDRAW_SHAPE_H

#include "records/augment_internal.h"

/* Most records of steps that solve for clamped totals: each takes some passes over all of them,
 * which are short where there is one column. */
enum { MOST_REDRAWN = 20000, MOST_REDRAWN_ALONE = 200000 };

/* Means and factor, the clamped totals that they solve for, or what replaces those that are not
 * released, the complete-data statistic, log h and
 * U. */
struct place {
    double *mean, *factor, *seen, *c, log_density;
    double **shape; /* columns of U */
};

/* A released component: constant + sum of coef times totals and products. `component` is negative
 * where none determines the total or product. */
struct told {
    int component, at[3];
    double constant, coef[3];
};

/* What log h is taken to be, a function of the totals: see records/redraw_totals.c. The first three
 * are views into the state; all 0 where it is not known. */
struct guide {
    double *centre, *slope, *curvature;
    /* workspace: precision of new totals and their mean; a factor L of a precision, and the axes,
     * columns of its inverse transposed, one after the other; differences along them; and a least
     * squares fit of `terms` coefficients */
    double *precision, *mean, *factor, *axis, *ahead, *behind, *matrix, *work;
    double *normal, *right, *term, origin;
    int terms;
};

/* In warmup, running means: the share of a sweep's proposals that are accepted, that of steps that
 * hold the totals and of those that draw them; and tries. Part of the state as it stands here. */
struct redrawn {
    double swept, taken[2], tries;
};

struct redraw {
    int d, size, untold; /* untold: totals and products that are not released */
    const int *column;
    const double *lower, *upper;
    struct told *total; /* of each total, then of each product of i >= j */
    double **w;         /* columns of records as they are looked at */
    int *outside, *is_outside;
    double *seen, *slopes, *step, *row, *gradient_c, *gradient_kept;
    struct place kept[2];
    double *theta, apart; /* theta at a place; how far a log sd that follows is from the factor's */
    struct guide guide;
    struct redrawn *told; /* not with steps of n */
};

static inline struct redraw *redraw_of(const struct augment *a) { return OWN(a, redraw); }

/* ---- records/redraw_places.c ------------------------------------------------------------- */

/* Workspace, for `records` of them; NULL where other things than totals and products are released,
 * or one of these twice; or not all, and what is missing has no bounds, or is part of what is. */
struct redraw *redraw_new(const struct augment *a, ptrdiff_t records);

/* For any number of records n: a uniform draw of the shape; shape, means and factor of the records,
 * and records of these. The first two return 0 where columns are dependent. */
int redraw_shape(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at);
int redraw_read(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at);
void redraw_write(struct augment *a, struct redraw *r, ptrdiff_t n, const struct place *at);

/* (m, F) from the clamped totals `seen` and the shape, and the log of |ds / d(m, F)|. Returns 0
 * where it is not found. */
int redraw_find(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at,
                double *log_slope);

/* Is that where the records are, after redraw_read()? at->seen are their totals then. */
int redraw_finds(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at,
                 struct place *spare, double *log_slope);

/* (m, F) from the clamped totals `seen` and the shape, and log h. Returns 0 where it is not found.
 */
int redraw_solve(struct augment *a, struct place *at);

/* Are the records what redraw_find() makes of their shape and totals? at->log_density is then
 * theirs. */
int redraw_is_solution(struct augment *a, struct place *at, struct place *spare);

/* theta at a place: what the model keeps follows. */
void redraw_theta(const struct augment *a, const struct place *at, double *theta);

/* ---- records/redraw_totals.c --------------------------------------------------------------- */

void redraw_prepare_guide(struct redraw *r);

/* The totals that the release would tell without noise, to `seen`; forgets the guide. Returns 0
 * where they are not found. */
int redraw_read_release(struct augment *a, double *seen);

/* Finds the guide, from the release, by differences of log h. Returns 0 where it does not. */
int redraw_find_guide(struct augment *a, struct place *spare);
void redraw_forget_guide(struct redraw *r);

/* Corrects the guide from places of a chain: begin, add each, end. */
void redraw_begin_fit(struct augment *a);
void redraw_add_to_fit(struct augment *a, const struct place *at);
void redraw_end_fit(struct redraw *r);

/* What the guide takes log h to be, up to a constant. */
double redraw_guide(const struct redraw *r, const double *seen);

/* Totals `next` from the release, the guide, and the noise with the exponent `temper`: a step that
 * is accepted by h over the exponential of the guide. Returns 0 where there are none. */
int redraw_totals(struct augment *a, double temper, const double *now, double *next);

#endif
