#ifndef NOISEAWARE_CLT_CLT_NUTS_H
#define NOISEAWARE_CLT_CLT_NUTS_H

#include "contract/noise.h"
#include "mcmc/hmc.h"

/* The sampler "nuts" of method "clt", see clt/clt_nuts_moves.c. */

struct clt;

struct clt_nuts {
    /* State: with the store restored, a run continues bit for bit. */
    double *store;

    /* views into the store */
    struct hmc hmc;
    double *rotated;         /* are the coordinates rotated, or each scaled? */
    double *reference, *map; /* (theta, u) where the coordinates are 0; the rows of the map */

    /* workspace */
    double *work;                /* NUTS's own */
    double *misfit;              /* gradient in the total */
    double *point, *point_slope; /* theta and u, and the slopes there */
    double *scout, *curvature;   /* while starting */
    double round;                /* where absolute kernels are rounded, in their scales */
    /* What NUTS sees, no smaller than the ridge's; while the mode is looked for, all kernels are
     * squared, and weights are less by the factor `widen`. */
    struct noise noise;
    enum kernel *squared;
    double widen, *weight;
};

/* Doubles in the store. */
size_t clt_nuts_stored(const struct clt *a);

/* Allocates the workspace; the sizes, the scales and the ridge are known. */
void clt_nuts_prepare(struct clt *a);

/* Makes what follows from the state. */
void clt_nuts_resume(struct clt *a);

/* A new state: see clt_start(). */
void clt_nuts_start(struct clt *a, int search, const double *move_sd);

/* Log density at a point (theta's coordinates that move, u), and its slopes, those of absolute
 * kernels within a->nuts.round of their kinks rounded. The total there is a->total_new, theta
 * a->theta_new. */
double clt_nuts_density(struct clt *a, const double *point, double *slope);

/* Of a state: the mode that its coordinates come from, and a square matrix of what is known about
 * these from the release, and about innovations also from their distribution; from no prior. */
void clt_nuts_information(struct clt *a, double *point, double *out);

/* One iteration; the mean acceptance probability goes to *accepted. */
void clt_nuts_iterate(struct clt *a, int iteration, int warmup, double *accepted);

#endif
