/* Method "pool_records": releases of different records, one a site, whose parameters differ, the
 * records of all sites imputed. */
#ifndef NOISEAWARE_POOL_POOL_GIBBS_H
#define NOISEAWARE_POOL_POOL_GIBBS_H

#include "contract/collapse.h"
#include "contract/model_prior.h"
#include "mcmc/hmc.h"
#include "pool/hyperprior.h"
#include "records/augment.h"

struct pool_records;

struct pool_records_site {
    struct pool_records *pool;
    struct augment augment; /* theta of its own, and its records */
    /* NULL, or the table that replaces the records, whose theta is held: then n, theta and the
     * complete-data statistic are all there is of these. */
    struct collapse *table;
    struct augment_layer layer;
    struct pool_member member; /* the parameters among theta */
    struct walk walk;          /* of what moves given the records */
    double energy, moved_energy;
    struct rng innovations;
    double *theta_new, *z; /* z: of what varies */

    /* With gradients: its own coordinates' place; where what its records tell is looked for from, a
     * part of the state; and what they tell. */
    int at;
    double *anchor;              /* of each parameter */
    double *told_at, *precision; /* of each that varies */
};

/* Of transitions given the records, after warmup; see pool/parameters_nuts.c. */
enum {
    POOL_GIVEN_MADE,
    POOL_GIVEN_ACCEPTANCE,
    POOL_GIVEN_LEAPFROGS,
    POOL_GIVEN_DIVERGENT,
    POOL_GIVEN_COUNTERS
};

/* Kinds of walks in what sites share; see pool/shared_walks.c. */
enum { POOL_GIVEN, POOL_HELD, POOL_CARRIED, POOL_CARRIED_SAME, POOL_WALKS };

/* Transitions of what is shared and of all sites' parameters, given the records. */
struct pool_given {
    int beyond;    /* did the last trajectory end where the prior is cut off? */
    int leapfrogs; /* of an iteration */
    int size;      /* coordinates: what is shared, and each site's own */
    struct hmc hmc;
    double *curvature, *newton, *slope; /* of a site's likelihood */
    double *work, *nothing, *phi;
    double *counter; /* of the state */
};

struct pool_records {
    struct model model;
    struct model likelihood; /* whose marginal() is for a site's records; no class: none */
    int parameters, *place;  /* of a site, and where they stand in theta */
    struct pool_spread spread;
    struct places heads, shown; /* as in pool/pool_nuts.h */
    int sites;
    struct pool_records_site *site;
    struct augment **records; /* of each site */
    const double *reference;  /* a theta, whose coordinates stand in for those of no site */

    /* Coordinates of a site's own theta that move; of these, those that walk given the records, and
     * those that are no parameters of the site. */
    struct places moves, walks, rests;

    int shared;                      /* coordinates of what sites share */
    struct places moved[POOL_WALKS]; /* of these, what each kind moves */
    struct walk walk[POOL_WALKS];

    /* Does the likelihood of a site's records have slopes? Then transitions of what is shared and
     * of all sites' parameters take the place of the walks but CARRIED. */
    int gradients;
    int tables;  /* are there tables in place of records? */
    int movable; /* can records, or counts, follow theta? */
    int bounded; /* is the prior of the sites' parameters cut off? */
    struct pool_given given;
    struct {
        int made, mean;     /* are sites mirrored? which parameter is their mean? */
        double records, at; /* the point for records, and for their mean */
    } mirror;

    /* State: with these restored, a run continues bit for bit. */
    double *at;           /* what is shared */
    struct rounds rounds; /* of imputed records */
    struct rng *rng;
    double *theta; /* of all sites */

    /* workspace */
    struct theta_update density;
    double *watched;
    struct {
        double *trial, *at, *step, *slope, *natural, *slope_c, *slope_theta;
        double *site_step, *theta;
    } work;
};

static inline int is_listed(int value, int count, const int *list) {
    for (int i = 0; i < count; ++i)
        if (list[i] == value) return 1;
    return 0;
}

/* Parameters of a site are some coordinates of its theta. */
static inline void pool_phi_from_theta(const struct pool_records *s, struct pool_member *member,
                                       const double *theta) {
    for (int k = 0; k < s->parameters; ++k) member->phi[k] = theta[s->place[k]];
}

static inline void pool_phi_to_theta(const struct pool_records *s, const struct pool_member *member,
                                     double *theta) {
    for (int k = 0; k < s->parameters; ++k) theta[s->place[k]] = member->phi[k];
}

static inline double pool_log_prior(struct pool_records *s, const double *theta) {
    return s->model.prior->dprior(s->model.self, theta);
}

/* The counts of a site are its complete-data statistic. */
static inline void pool_read_table(struct pool_records_site *site) {
    struct augment *a = &site->augment;
    site->table->class->complete->statistic(site->table, a->complete);
    a->n = (ptrdiff_t)site->table->class->records(site->table);
}

/* With model, likelihood, parameters, spread and sites with their releases. Returns PLUGIN_*. */
int pool_records_create(struct pool_records *pool);

/* How many coordinates rounds are learned from. */
int pool_records_watched(const struct pool_records *pool);

/* Points into a state. */
void pool_records_attach(struct pool_records *pool);

/* A new state where what is shared is as given. `sd`: about how far that may be off. */
void pool_records_start(struct pool_records *pool, const double *sd);

/* log likelihood of a site's records at a theta, up to what does not depend on what walks;
 * `slope`: NULL, or where its slopes in the parameters go. */
double pool_records_likelihood(struct pool_records_site *site, const double *theta, double *slope);

/* log prior of the model at these parameters, those of no site as in `reference` */
double pool_prior_of_parameters(struct pool_records *pool, const double *phi);

/* pool/shared_walks.c: room for the walks; new ones, `sd` as above; and the moves of a round. */
void pool_walks_create(struct pool_records *pool);
void pool_walks_start(struct pool_records *pool, const double *sd);
void pool_walks_move(struct pool_records *pool, int learning);

/* pool/mirrored_sites.c: room for the maps, and a move of a round */
void pool_mirror_create(struct pool_records *pool);
void pool_mirror_move(struct pool_records *pool);

/* pool/parameters_nuts.c: room for these, where there are gradients; views of the store; a new one;
 * and a transition, which needs the complete-data statistic of all sites. Returns its leapfrog
 * steps. */
size_t pool_records_given_stored(const struct pool_records *pool);
void pool_records_given_create(struct pool_records *pool);
void pool_records_given_attach(struct pool_records *pool, double *store);
void pool_records_given_start(struct pool_records *pool, const double *sd);
int pool_records_given_move(struct pool_records *pool, int iteration, int warmup);

/* What the records of each site tell, by which a transition has its coordinates, to `told_at` and
 * `precision`: a function of the records and the anchors alone. */
void pool_records_given_tell(struct pool_records *pool);

/* What follows from an old state. */
void pool_records_resume(struct pool_records *pool);

/* `work`: counted, about nanoseconds. */
int pool_records_iterate(struct pool_records *pool, int iteration, int warmup, double *accepted,
                         double *work);
/* Returns where the draw ends. */
double *pool_records_report(struct pool_records *pool, double *draw);
double pool_records_energy(struct pool_records *pool);
void pool_records_diagnostics(const struct pool_records *pool, double after,
                              struct chain_diagnostics *told);

#endif
