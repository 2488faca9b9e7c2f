#ifndef NOISEAWARE_POOL_HYPERPRIOR_H
#define NOISEAWARE_POOL_HYPERPRIOR_H

#include "model/scale_prior.h"

/* Some of the coordinates of a theta. */
struct places {
    int count, *at;
};

/* A release, and in a walk those of later sites, as a normal log density of a number phi:
 * -precision phi^2 / 2 - cross before phi + sum phi, with `before` that number of the site before
 * (cross is 0 but in a walk of order 2); and its slopes in log sd. */
struct pool_information {
    double precision, cross, sum, slope_precision, slope_cross, slope_sum;
};

/* A site: its own coordinates are `own` many, all that vary or, where a walk begins, none. */
struct pool_member {
    int own;
    const double *at, *precision; /* of each that varies: its release as a normal observation */
    const double *covariate;      /* less the mean over sites */
    struct pool_member *before;   /* the site before; NULL: none */
    struct pool_information *information; /* of each that varies */
    double *phi, *slope;                  /* parameters, and the slope of a log density in them */
    double *z;                            /* what is standard normal */
};

/* How parameters of sites spread about what they have in common; see pool/hyperprior.c. */
struct pool_spread {
    int parameters;                         /* of a site */
    int varying, *which;                    /* those that vary between sites, in ascending order */
    struct scale_prior *sd;                 /* priors of their standard deviations */
    const double *mean_at, *mean_precision; /* of their means: the prior as a normal one */
    int covariates;
    const double *effect_sd; /* prior N(0, effect_sd^2): a row of covariates for each that varies */
    double lkj;              /* concentration of the correlations' prior; 0: there are none */
    int walk;                /* its order: each site is centred at the one before, or in line with
                                the two before; 0: sites have no order */
    const double *first_step; /* sd of the second site about the first, in a walk of order 2 */
    int size;                 /* coordinates behind the parameters' coordinates */
    struct pool_member *last;

    /* workspace, of the coordinates that pool_spread_open() was given */
    double *mean;                     /* of each parameter */
    struct scale_place *scale;        /* of each that varies: its sd */
    struct pool_information *of_mean; /* prior and releases, for each that varies */
    double *effect_sum;               /* the sum's slopes in the effects */
    double *chol, *slope_chol; /* of the correlations, rows; slope of the log density in it */
    double *slope_z;
};

/* With all but `size` and the workspace; members after the one before them. */
void pool_spread_create(struct pool_spread *spread);
void pool_member_create(const struct pool_spread *spread, struct pool_member *member);

/* The means and all that members are placed with; `shared` begins with the parameters' places. */
void pool_spread_open(struct pool_spread *spread, const double *shared);

/* Log prior of the coordinates, the prior of the means themselves left out, and slopes, added. */
double pool_spread_prior(struct pool_spread *spread, const double *shared, double *slope);

/* phi of a member at its own coordinates; those before it are placed. */
void pool_spread_place(const struct pool_spread *spread, const double *shared,
                       struct pool_member *member, const double *own);

/* Log density of a member's phi given what is shared; sets z. Those before it are
 * placed. */
double pool_member_density(const struct pool_spread *spread, const double *shared,
                           struct pool_member *member);

/* Log density of a member's own coordinates; adds to the slopes in what is shared, and in a walk
 * to the slopes of the members before, and sets those in its own coordinates. In a walk to be
 * called from the last member to the first. */
double pool_spread_pull(struct pool_spread *spread, const double *shared,
                        struct pool_member *member, const double *own, double *slope,
                        double *slope_own);

/* Slopes in the means become those in their coordinates, and those in what places them and in the
 * correlations are added, when all members are pulled. */
void pool_spread_finish(const struct pool_spread *spread, const double *shared, double *slope);

/* Of `shared`, logs of standard deviations become their coordinates. */
void pool_spread_read_sds(const struct pool_spread *spread, double *shared);

/* Means, the first of `shared`, become their coordinates, at which the spread is open afterwards;
 * and a member's coordinates that give it `phi`; those before it are placed. */
void pool_spread_start(struct pool_spread *spread, double *shared);
void pool_member_start(const struct pool_spread *spread, const double *shared,
                       struct pool_member *member, const double *phi, double *own);

/* Standard deviations, effects and correlations to `draw`, as many as `size`. */
void pool_spread_report(const struct pool_spread *spread, const double *shared, double *draw);

#endif
