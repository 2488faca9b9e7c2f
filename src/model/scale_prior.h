#ifndef NOISEAWARE_MODEL_SCALE_PRIOR_H
#define NOISEAWARE_MODEL_SCALE_PRIOR_H

#include "base/rng.h"
#include "contract/plugin.h"

/* The prior of a standard deviation, in the coordinate u = log sigma; see model/scale_prior.c. */

enum scale_prior_kind {
    SCALE_INVERSE_GAMMA, /* of sigma^2: shape a, rate b */
    SCALE_HALF_NORMAL,   /* scale b */
    SCALE_HALF_T,        /* a degrees of freedom, scale b */
    SCALE_EXPONENTIAL,   /* rate b */
    SCALE_LOGNORMAL      /* mean a and standard deviation b of log sigma */
};

struct scale_prior {
    enum scale_prior_kind kind;
    double a, b;
};

/* Reads the field of one of the kinds: "sigma_inverse_gamma" (shape, rate), "sigma_half_normal"
 * (scale), "sigma_half_t" (degrees of freedom, scale), "sigma_exponential" (rate),
 * "sigma_lognormal" (mean, standard deviation). Returns PLUGIN_BAD_FIELDS unless there is one. */
int scale_prior_read(const struct fields *fields, struct scale_prior *prior);

/* A draw of u. */
double scale_prior_draw(const struct scale_prior *prior, struct rng *rng);

/* Log density of u, Jacobian included, up to a constant; `derivative`, in u, may be NULL. */
double scale_prior_density(const struct scale_prior *prior, double u, double *derivative);

/* sigma at a coordinate x in which a half-normal, half-t or exponential prior is nearly standard
 * normal: log
 * sigma, sigma, the derivative of log sigma in x, and the derivative of the derivative's log. */
struct scale_place {
    double log_sd, sd, slope, bend;
};
struct scale_place scale_prior_place(const struct scale_prior *prior, double x);

/* x of u. */
double scale_prior_coordinate(const struct scale_prior *prior, double u);

/* One draw of u that leaves p(u | the residuals of n records, of which the squares sum to
 * `square`) invariant: exact where the prior is conjugate, else slice sampling from u. */
double scale_prior_update(const struct scale_prior *prior, double n, double square, struct rng *rng,
                          double u);

#endif
