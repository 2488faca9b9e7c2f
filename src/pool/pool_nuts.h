/* Method "pool": releases of different records, one a site, under one model (vignette "Algorithms",
 * "collapse"). */
#ifndef NOISEAWARE_POOL_POOL_NUTS_H
#define NOISEAWARE_POOL_POOL_NUTS_H

#include "contract/noise_totals.h"
#include "mcmc/hmc.h"
#include "pool/group_sizes.h"
#include "pool/hyperprior.h"
#include "pool/site_clt.h"
#include "pool/site_rate.h"
#include "totals/density.h"
#include "totals/exact_totals.h"
#include "totals/innovations.h"
#include "totals/n_steps.h"
#include "totals/response_innovations.h"

/* What is counted after warmup. */
enum {
    POOL_ITERATIONS,
    POOL_ACCEPTANCE,
    POOL_LEAPFROGS,
    POOL_DIVERGENT,
    POOL_DEEPEST,
    POOL_SIZE_MADE,
    POOL_SIZE_ACCEPTED,
    POOL_COUNTERS
};

/* Which coordinates of a site's totals are innovations. */
enum pool_innovations { INNOVATE_NONE, INNOVATE_RESPONSE, INNOVATE_ALL };

enum pool_family { POOL_RATES, POOL_TOTALS, POOL_CLT };

/* The release of one site. Its own coordinates are `size` from `at` on: where sites have parameters
 * of their own these come first, then the totals' coordinates. */
struct pool_site {
    /* What a gradient needs of a rate is in one place: many sites are far apart in memory. */
    struct pool_member member; /* parameters, in theta's coordinates */
    int at, size;
    struct pool_rate rate;
    double n;
    const struct size_prior *size_prior; /* NULL: n is known */
    int components, first;               /* its components among those of all sites */
    struct noise noise;                  /* of totals */
    struct totals_density density;
    struct pool_clt clt;
    const double *lower, *upper; /* bounds of the columns, natural units */
    enum pool_innovations innovates;
    struct totals_residual residual;
    struct totals_innovations innovations;
    struct totals_exact *exact;   /* NULL: nothing is exact, or no totals */
    struct totals_resize *resize; /* NULL: n is known, or no totals */
    const double *placed;         /* its totals in the coordinates of totals/normal_coordinates.c */
    double log_volume;            /* of its totals' coordinates, where they were placed last */
    double *statistic, energy;    /* of the state */
};

struct pool {
    struct model model; /* with the prior, which is the prior of the shared parameters */
    enum pool_family family;
    double n;       /* records of all sites */
    int unsized;    /* sites whose n is not known */
    double rounded; /* absolute kernels, for slopes: as far from their kinks */
    int shared;     /* coordinates before the sites' */
    int size;       /* coordinates */

    /* Parameters that are coordinates, or whose mean over sites is, and where they stand in theta.
     * Of POOL_CLT given; else what the model keeps. */
    int parameters;
    const int *place;

    int separate; /* has each site a rate of its own, with the model's prior? */
    struct pool_sizes sizes;

    /* Where parameters vary between sites; `likelihood` keeps all of them. */
    int partial;
    struct pool_spread spread;
    struct model likelihood; /* of a regression; log sigma is behind the coefficients in theta */
    int pooled_scatter; /* are covariates pooled (contract/model_pooled_scatter.h)? log kappa is the
                           last shared one */
    struct places heads; /* parameters whose mean over sites is reported */
    struct places shown; /* parameters of each site that are reported */
    struct places drawn; /* of its covariates: drawn given its totals, and reported last */

    int columns; /* of the release: all components */

    int sites;
    struct pool_site *site;

    struct hmc hmc;

    /* State: with these restored, a run continues bit for bit. */
    double *theta, *store, *counter;
    struct rng *rng;

    int leapfrogs; /* of the last iteration */

    struct {
        double *trial;              /* theta at a position; between positions only `place` may
                                     * change, since the prior's density is that of all of it */
        double *theta, *phi;        /* and parameters, of a site */
        double *complete, *slope_c; /* complete-data statistic of all sites, the slope in it */
        double *rest;               /* that of all sites but one */
        double *sums, *sums_rest;   /* of pooled covariates: all sites, and all but one */
        double *slope_theta;        /* gradient of the prior */
        double *slope_own;          /* slopes in a site's own coordinates */
        double *natural;            /* a draw of theta as the model reports it */
        double *mean, *chol;        /* of a record's distribution */
        double *hmc;
    } work;
};

/* With model, family, n, columns and the sites' releases: the coordinates, and room for all else.
 * Returns PLUGIN_*. */
int pool_create(struct pool *pool);
int pool_stored(const struct pool *pool);

/* A site's release, of normal totals with site->noise, and of totals with a normal distribution
 * with site->clt.alone (of rates: pool_rate_read()). Return PLUGIN_*. */
int pool_read_totals(const struct fields *fields, const struct model *model,
                     struct pool_site *site);
int pool_read_clt(const struct fields *fields, const struct pool *pool, struct pool_site *site);

/* Points into the state. */
void pool_attach(struct pool *pool);

/* Where a chain begins: `complete`, complete-data statistics of the sites, one after the other,
 * NULL for rates; with partial pooling and for separate rates, else NULL, `phi`, the parameters of
 * one site after the other, `spread`, the coordinates of pool/hyperprior.c, and `error`, about how
 * uncertain the parameters' means over sites and these are. */
struct pool_begin {
    const double *complete, *phi, *spread, *error;
    const double *sizes, *size_error; /* of groups whose sizes are latent: about what they are */
    /* One after the other, of each site whose n is not known: n, and variances of each column, as
     * totals/n_coordinate.h has them. */
    const double *unsized;
};

/* A new state: theta as given. */
void pool_start(struct pool *pool, const struct pool_begin *begin);
void pool_load(struct pool *pool);

int pool_iterate(struct pool *pool, int iteration, int warmup, double *accepted);
double pool_outside(struct pool *pool);

/* Of rates: a total of each site, and its size where that is latent, to the sites' `statistic`. */
void pool_draw_totals(struct pool *pool);

/* A draw: what the model reports of theta; or, with partial pooling, the natural values of the
 * mean, what pool_spread_report() gives, and the parameters of each site that are shown. Sizes
 * follow, then what is drawn given a site's totals. */
void pool_report(struct pool *pool, double *draw);

/* ---- sites of normal totals: pool/nuts_site_totals.c ---- */

void pool_totals_create(struct pool *pool, struct pool_site *site);

/* Of the unknown n of sites. */
size_t pool_totals_stored(const struct pool *pool);
void pool_totals_attach(struct pool *pool, double *store);

/* the sites' totals, and `complete`, their sum */
void pool_totals_expand(struct pool *pool, const double *q);

/* Computes the totals of a site from its coordinates q and the parameters of its member. */
void pool_totals_place(struct pool *pool, struct pool_site *site, const double *q);

/* Sets what sites have in common in `model` (the pool's own, or its likelihood), once the totals of
 * all sites are placed. Returns the log of the common factor, and its slope in log kappa. */
double pool_totals_pool(struct pool *pool, const struct model *model, double log_kappa,
                        double *slope);

/* The log density: of all sites with the same parameters, or of one site after
 * pool_totals_place(), where q and the gradient refer to its totals. */
double pool_totals_log_complete(struct pool *pool, const double *q, double *gradient);
double pool_totals_log(struct pool *pool, struct pool_site *site, const double *q,
                       double *gradient);

/* Coordinates of the sites' totals, and about how wide these are given phi. */
void pool_totals_start(struct pool *pool, const struct pool_begin *begin, double *q, double *unit);

/* Steps of the unknown n of sites, whose parameters are the state's; what mcmc/hmc.h knows
 * of the place must be drawn again then. */
void pool_totals_move_sizes(struct pool *pool, int iteration, int warmup);

/* ---- sites of totals with a normal distribution: pool/nuts_site_clt.c ---- */

/* Of a site whose n is not known. */
void pool_clt_size_create(struct pool *pool, struct pool_site *site);
size_t pool_clt_stored(const struct pool *pool);
void pool_clt_attach(struct pool *pool, double *store);

/* A new state of the sites' own coordinates, where the parameters have begun; the target is
 * evaluated there. */
void pool_clt_start(struct pool *pool);

/* As of totals. */
void pool_clt_move_sizes(struct pool *pool, int iteration, int warmup);

/* Of the state, whose sites are placed: their totals and misfits; the expected share of records
 * outside their bounds. */
void pool_clt_measure(struct pool *pool);
double pool_clt_outside(const struct pool *pool);

/* For mcmc/hmc.h; `self` is the struct pool. */
double pool_log_density(void *self, const double *q, double *gradient);

#endif
