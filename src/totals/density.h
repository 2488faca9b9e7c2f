#ifndef NOISEAWARE_TOTALS_DENSITY_H
#define NOISEAWARE_TOTALS_DENSITY_H

#include "contract/model.h"
#include "contract/noise.h"
#include "mcmc/hmc.h"
#include "mcmc/online_least_squares.h"
#include "totals/clamped_moments_by_cell.h"
#include "totals/normal_coordinates.h"

/* The density of a model's totals given a release; see totals/density.c. */

/* A released component as the complete-data statistic c gives it where no record lies
 * outside the bounds: constant + sum of coef times entries of c. */
struct component {
    double constant, coef[3];
    int at[3];
};

static inline double component_value(const struct component *k, const double *c) {
    return k->constant + k->coef[0] * c[k->at[0]] + k->coef[1] * c[k->at[1]] +
           k->coef[2] * c[k->at[2]];
}

struct totals_density {
    const struct model *model;
    struct totals totals;
    int size;           /* coordinates: the totals', then what marginal() keeps */
    struct noise noise; /* in two runs of kernels, of the components that are not exact */
    const struct component *component;
    /* n that changes: these components, and their constants for each record */
    struct component *sized;
    double *rate;
    struct clamped *clamped;     /* NULL: no record is taken to lie outside the bounds, */
    int unbounded;               /* nor while that is set */
    struct clamped_cells *cells; /* NULL: or all records are taken to have one mean */
    double *slope; /* NULL, or where the slope of the log density in each component goes */
    /* What is added to the components, a linear function of q less `tilt_at`; needs `slope`.
     * NULL: nothing. */
    const struct tilt *tilt;
    const double *tilt_at;
    double *tilted;
    double temper; /* exponent of the noise density */
    int smooth;    /* all kernels squared: while scales are looked for */
    /* Within so much of 0 the gradient comes from a kernel that is rounded off there
     * (Huber's), in units of the noise's scale; the density is not. 0: nowhere. */
    double rounded;

    /* Where it was evaluated last: c, the totals that the components are taken of, and the
     * energy of the noise, not tempered. */
    double *c, *seen, energy;
    double *gradient_c, *gradient_seen;
    double *theta; /* of which the kept and the tied coordinates are written */

    /* Where the model ties coefficients: what stays of them while the records keep their shape,
     * F'beta and gamma + B beta of each predictor, k of the latter; and the slopes in them, and
     * workspace: F^-1 of one, B, and R^-1 of another. */
    double *along, *constant, *gradient_tied, *pulled, *coefficient, *solved;
};

/* Rows of "terms", one column a component: columns i and j; then constant + first T_i +
 * second T_j + product P_ij, T the totals of the columns and P the totals of their products. */
enum { TERM_I, TERM_J, TERM_CONSTANT, TERM_FIRST, TERM_SECOND, TERM_PRODUCT, TERM_ROWS };
const struct component *read_components(int columns, int count, const double *terms);

/* Of n records with d free columns and k - 1 fixed ones (totals/normal_coordinates.h). The caller
 * fills in the noise and the components. */
void totals_density_create(struct totals_density *density, const struct model *model, double n,
                           int d, const int *column, int k, const int *fixed);

/* After that, where n is to change: the components' constants are in proportion to it. Then n, at
 * least k + d; coordinates are those of n records. */
void totals_density_vary(struct totals_density *density);
void totals_density_resize(struct totals_density *density, double n);

/* Columns that stay, see totals/normal_coordinates.h. */
void totals_density_carry(struct totals_density *density, int riders, const int *rider);

/* Reads what stays of riders and tied coefficients, after totals_density_coordinates() of the
 * same. */
void totals_density_read(struct totals_density *density, const double *c, const double *theta);

/* c, and the kept and the tied coordinates of theta, from q. */
void totals_density_place(struct totals_density *density, const double *q);

/* Bounds of the free columns, less their centres: the components then are those of records
 * as the bounds clamp them, approximately. */
void totals_density_clamp(struct totals_density *density, const double *lower, const double *upper);

/* After that, where the cross-table of the fixed columns is known: `cells` cells, of each the
 * dummies' values, a row of k - 1. Its counts are the caller's to set. */
void totals_density_clamp_cells(struct totals_density *density, int cells, const int *dummy);

/* `seen` from c. */
void totals_density_expect(struct totals_density *density);

/* For mcmc/hmc.h; `self` is the struct totals_density. */
double totals_log_density(void *self, const double *q, double *gradient);

/* What it is made of. The density without the noise: c from q, gradient_c and the gradient in
 * what is kept; the log, or -INFINITY. */
double totals_density_expand(struct totals_density *density, const double *q, double *gradient);
/* For each component, what is left of its variance in n records after totals_density_expect(),
 * with cells of those in them: 0 where nothing is clamped. */
void totals_density_left(const struct totals_density *density, double *left);
/* The noise of `released`: sets `energy`, and adds the gradient in `seen` of its tempered log
 * density. */
void totals_density_noise(struct totals_density *density, const double *released,
                          double *gradient_seen);

/* Coordinates of c, which totals_design() has seen, and of the kept ones of theta. */
int totals_density_coordinates(struct totals_density *density, const double *c, const double *theta,
                               double *q);

/* Scales of the coordinates about q where nothing else is known of them. */
void totals_density_natural_units(struct totals_density *density, const double *q, double *unit);

/* Scales of the coordinates about q, where the density was evaluated; `work` holds three
 * times as many. */
void totals_density_units(struct totals_density *density, const double *q, double *unit,
                          double *work);

#endif
