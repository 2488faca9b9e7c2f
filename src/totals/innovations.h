#ifndef NOISEAWARE_TOTALS_INNOVATIONS_H
#define NOISEAWARE_TOTALS_INNOVATIONS_H

#include "contract/model.h"
#include "totals/normal_coordinates.h"

/* All totals of normal records as innovations; see totals/innovations.c. */
struct totals_innovations {
    const struct totals *totals;
    const struct model *model; /* with distribution() and pull_distribution() */
    double *at;                /* coordinates of the totals that innovations replace */
    double *mean, *chol;       /* of a record, at theta */
    double *slope_mean, *slope_chol;
    double *factor; /* of the scatter, by rows of d: at innovations F, and slopes in it */
    double *core;   /* Z, by rows of d */
};

/* The scatter has full rank, and there is one fixed column. */
void totals_innovations_create(struct totals_innovations *t, const struct totals *totals,
                               const struct model *model);

/* Coordinates with innovations to t->at; returns the log Jacobian. */
double totals_innovations_place(struct totals_innovations *t, const double *theta, const double *q);

/* After totals_innovations_place() of the same: a gradient in t->at, in place, to that in q, the
 * Jacobian's included; adds that in theta to `slope`. */
void totals_innovations_pull(struct totals_innovations *t, const double *theta, const double *q,
                             double *gradient, double *slope);

/* Coordinates of totals to innovations, in place. */
void totals_innovations_read(struct totals_innovations *t, const double *theta, double *q);

#endif
