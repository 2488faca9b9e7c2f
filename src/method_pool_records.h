/* Method "pool_records": releases of different records, one a site, whose parameters differ, the
 * records of all sites imputed. */
#ifndef NOISEAWARE_METHOD_POOL_RECORDS_H
#define NOISEAWARE_METHOD_POOL_RECORDS_H

#include "method_augment.h"
#include "pool_spread.h"

struct pool_records;

struct pool_records_site {
    struct pool_records *pool;
    struct augment augment; /* theta of its own, and its records */
    struct augment_layer layer;
    struct pool_member member; /* the parameters among theta */
    struct walk walk;          /* of what moves given the records */
    double energy, moved_energy;
    struct rng innovations;
    double *theta_new, *z; /* z: of what varies */
};

/* Kinds of walks in what sites share; see method_pool_records.c. */
enum { POOL_GIVEN, POOL_HELD, POOL_CARRIED, POOL_WALKS };

struct pool_records {
    struct model model;
    struct model likelihood; /* whose marginal() is that of a site's records; no class: none */
    int parameters, *place;  /* of a site, and where they stand in theta */
    struct pool_spread spread;
    int heads, *head, shown, *show; /* as in method_pool.h */
    int sites;
    struct pool_records_site *site;
    struct augment **records; /* of each site */
    const double *reference;  /* a theta, whose coordinates stand in for those of no site */

    /* Coordinates of a site's own theta that move; of these, those that walk given the records, and
     * those that are no parameters of the site. */
    int moving, *moves, walking, *walks, rest, *rests;

    int shared;      /* coordinates of what sites share */
    int free, *open; /* of these, what moves given the parameters of the sites */
    struct walk walk[POOL_WALKS];

    /* State: with these restored, a run continues bit for bit. */
    double *at; /* what is shared */
    struct rng *rng;
    double *theta; /* of all sites */

    /* workspace */
    struct theta_update density;
    double *trial, *at_new, *step, *slope, *natural, *slope_c, *slope_theta;
    double *site_step, *theta_new;
};

/* With model, likelihood, parameters, spread and sites with their releases. Returns PLUGIN_*. */
int pool_records_create(struct pool_records *pool);

/* Points into a state. */
void pool_records_attach(struct pool_records *pool);

/* A new state where what is shared is as given. `sd`: about how far that may be off. */
void pool_records_start(struct pool_records *pool, const double *sd);

int pool_records_iterate(struct pool_records *pool, int iteration, int warmup, double *accepted);
void pool_records_report(struct pool_records *pool, double *draw);
double pool_records_energy(struct pool_records *pool);
void pool_records_diagnostics(const struct pool_records *pool, double after,
                              struct chain_diagnostics *told);

#endif
