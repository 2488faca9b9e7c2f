#ifndef NOISEAWARE_CLT_CLT_H
#define NOISEAWARE_CLT_CLT_H

#include "clt/clt_nuts.h"
#include "contract/model.h"
#include "contract/moments.h"
#include "contract/n_prior.h"
#include "contract/noise_totals.h"
#include "mcmc/adapt.h"
#include "mcmc/n_regression_proposal.h"

/* The distribution of the released totals under one theta. */
struct distribution {
    double *mean, *cov; /* of one record, released + aside */
    double *factor;     /* of n cov_tt + noise */
    double *white;      /* factor^-1 (z - n mean_t) */
    double log_density, log_prior;
};

/* what an iteration has in addition to the draw of the total: nothing; moves of theta with the
 * total integrated out; moves of theta with the total's innovations fixed. Or all of it is a
 * transition of NUTS in theta and the innovations. */
enum clt_sampler { CLT_GIBBS, CLT_MARGINAL, CLT_NONCENTRED, CLT_NUTS, CLT_SAMPLERS };
extern const char *const clt_sampler_names[CLT_SAMPLERS];

/* Of the iterations after warmup: moves; iterations that drew a total which no records could have,
 * and that projected one; and of NUTS. */
enum clt_counter {
    CLT_MADE,
    CLT_ACCEPTED,
    CLT_IMPOSSIBLE,
    CLT_PROJECTED,
    CLT_KEPT,
    CLT_LEAPFROGS,
    CLT_DIVERGENT,
    CLT_DEEPEST,
    CLT_COUNTERS
};

/* What is known of an unknown n. */
struct clt_unknown {
    const struct size_prior *prior; /* NULL: n is known */
    double about, spread;           /* its starts: about n as it is given, with that sd */
    struct noise noise;             /* of released numbers that are n */
    struct size_slope slope;        /* of its steps, a part of the state */
};

struct clt {
    struct model model;
    struct record_moments moments;
    double n; /* a part of the state where it is unknown */
    struct clt_unknown unknown;
    int size, wide;      /* released; released + aside */
    struct noise noise;  /* of z; Laplace noise is a scale mixture */
    const double *ridge; /* variance added to a total, where noise and covariance both vanish */
    enum clt_sampler sampler;
    int conjugate; /* does theta | c follow? */

    /* Coordinates of theta that have their prior elsewhere, such as a site's that others share
     * something with (pool/site_clt.c); the sampler is then "nuts". */
    struct {
        int count;
        const int *at;
        double *value;
    } pooled;
    int undivided; /* rows of Cholesky factors are coordinates of NUTS as they are */

    /* State: with these restored, a run continues bit for bit. */
    double *theta;
    double *variance; /* omega^2, of the noise */
    struct rng *rng;
    struct adapt adapt;

    struct clt_nuts nuts; /* its store is part of the state */
    double *counter;      /* CLT_COUNTERS */

    /* Workspace */
    int fresh; /* now.mean and now.cov belong to theta */
    struct distribution now, next;
    struct {
        double *now;      /* the last draw, released + aside */
        double *next;     /* of a proposal */
        double *u;        /* its innovations, and */
        double *extra;    /* what the ridge adds to it */
        double log_noise; /* of the last draw */
    } total;
    struct {
        double *root; /* factor of cov, in the order of pivot */
        int *pivot, rank;
        double *normal, *work;
    } factor;
    struct {
        int passes;                    /* moves of theta in an iteration */
        double *normals, *steps;       /* of all of them */
        double *sphered, *sphered_new; /* theta less the learned centre, in units of the shape */
    } walk;
    double *complete, *pull, *theta_new, *step;
};

void clt_prepare(struct clt *a);

/* Makes what follows from the state. */
void clt_resume(struct clt *a);

/* omega^2 at the noise's own variance; theta as it is, or one of `search` draws from the
 * prior with it, chosen by the density of z. `move_sd`: spread of the prior in the moving
 * coordinates. */
void clt_start(struct clt *a, int search, const double *move_sd);

/* Moments, factor and density of the released totals under theta; 0 if there are none. */
int clt_set_distribution(const struct clt *a, const double *theta, struct distribution *totals);

/* Where an unknown n may begin. */
double clt_draw_size(const struct clt *a, struct rng *rng);

/* Steps of an unknown n, the density at theta and n being there, or the total and its innovations;
 * returns how many were accepted. And log p(n) with the noise of a released n. */
int clt_move_size(struct clt *a, int iteration, int learning);
double clt_log_size(const struct clt_unknown *unknown, double n);

/* log eta(z | s), up to a constant */
double clt_log_noise(const struct clt *a, const double *total);

/* One iteration; the share of accepted moves goes to *accepted. Returns
 * PLUGIN_*. */
int clt_iterate(struct clt *a, int iteration, int warmup, double *accepted);
int clt_set_density(const struct clt *a, struct distribution *totals);
int clt_set_moments(const struct clt *a, const double *theta, struct distribution *totals);

#endif
