#ifndef NOISEAWARE_TOTALS_RESPONSE_INNOVATIONS_H
#define NOISEAWARE_TOTALS_RESPONSE_INNOVATIONS_H

#include "totals/normal_coordinates.h"

/* Totals of a regression's response as innovations; see totals/response_innovations.c. `theta`
 * has the coefficients first, the constant's, then one for each column from 1 on;
 * `log_sigma` is its place. */
struct totals_residual {
    const struct totals *totals;
    int log_sigma;
    int alone;     /* the coefficients are integrated out: only what sigma holds tightly is one */
    double *at;    /* coordinates of the totals that innovations replace */
    double *along; /* of the response's row, see totals_residual_place() */
};

/* The response is the last of the totals' columns, and the scatter has full rank. */
void totals_residual_create(struct totals_residual *r, const struct totals *totals, int log_sigma);

/* Coordinates with innovations to r->at; returns the log Jacobian. */
double totals_residual_place(struct totals_residual *r, const double *theta, const double *q);

/* After totals_residual_place() of the same: a gradient in r->at, in place, to that in q, the
 * Jacobian's included; adds that in theta to `slope`. */
void totals_residual_pull(const struct totals_residual *r, const double *theta, const double *q,
                          double *gradient, double *slope);

/* Coordinates of totals to those with innovations, in place. */
void totals_residual_read(struct totals_residual *r, const double *theta, double *q);

#endif
