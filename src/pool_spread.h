#ifndef NOISEAWARE_POOL_SPREAD_H
#define NOISEAWARE_POOL_SPREAD_H

#include "scale_prior.h"

/* How parameters of sites spread about what they have in common; see pool_spread.c. */
struct pool_spread {
    int parameters;         /* of a site */
    int varying, *which;    /* those that vary between sites, in ascending order */
    struct scale_prior *sd; /* priors of their standard deviations */
    int covariates;
    const double *effect_sd; /* prior N(0, effect_sd^2): a row of covariates for each that varies */
    double lkj;              /* concentration of the correlations' prior; 0: there are none */
    int walk;                /* each site is centred at the one before */
    int size;                /* coordinates behind those of the parameters */

    /* workspace */
    double *chol, *slope_chol; /* of the correlations, rows; slope of the log density in it */
    double *slope_z;
};

/* A site: its own coordinates are `own` many, all that vary or, where a walk begins, none. */
struct pool_member {
    int own;
    const double *centred;   /* of each parameter that varies: is its coordinate the parameter? */
    const double *covariate; /* less the mean over sites */
    struct pool_member *before; /* in a walk; NULL: none */
    double *phi, *slope;        /* parameters, and the slope of a log density in them */
    double *z;                  /* what is standard normal */
};

/* With all but `size` and the workspace. */
void pool_spread_create(struct pool_spread *spread);
void pool_member_create(const struct pool_spread *spread, struct pool_member *member);

/* Log prior of the coordinates, those of the parameters' means left out, and slopes, set; `shared`
 * begins with the parameters' means. To be called before members are placed. */
double pool_spread_prior(struct pool_spread *spread, const double *shared, double *slope);

/* phi of a member at its own coordinates; those before it are placed. */
void pool_spread_place(const struct pool_spread *spread, const double *shared,
                       struct pool_member *member, const double *own);

/* Log density of a member's own coordinates; adds to the slopes in what is shared, and in a walk
 * to that of the member before, and sets those in its own coordinates. In a walk to be called from
 * the last member to the first. */
double pool_spread_pull(struct pool_spread *spread, const double *shared,
                        struct pool_member *member, const double *own, double *slope,
                        double *slope_own);

/* Adds the slopes in the coordinates of correlations, when all members are pulled. */
void pool_spread_finish(const struct pool_spread *spread, const double *shared, double *slope);

/* Coordinates of a member that has `phi`, and about how wide they are, where correlations are 0. */
void pool_spread_start(const struct pool_spread *spread, const double *shared,
                       struct pool_member *member, const double *phi, double *own, double *unit);

/* Standard deviations, effects and correlations to `draw`, as many as `size`. */
void pool_spread_report(const struct pool_spread *spread, const double *shared, double *draw);

#endif
