/* Moves of the record sampler: each is one file with one line here. The chain
 * (records/augment_chain.c) goes through the list and names none of them. */
#ifndef NOISEAWARE_RECORDS_MOVE_H
#define NOISEAWARE_RECORDS_MOVE_H

#include <stddef.h>

#include "contract/run.h"

struct augment;

/* Where in a round: of the number of records, before the sweep, after it. The complete-data
 * statistic is taken by the sweep: moves after it need it and keep it, and theta is drawn last. */
enum move_phase { MOVE_NUMBER, MOVE_BEFORE, MOVE_AFTER };

/* A round as moves see it, and what they tell the chain and those that follow. */
struct round {
    int iteration, warmup;
    int learning;     /* in a warmup that learns */
    int looking;      /* at passes that may not be worth their cost, see mcmc/adapt.h */
    int empty;        /* are there no records? Known once their number has moved. */
    int closes;       /* a window of warmup closes with this round */
    double swept;     /* share of the sweep's proposals that were accepted */
    int parts;        /* of a sweep of warmup, one iteration each */
    int follows;      /* do all records move with their shape held fixed? */
    int least_rounds; /* that the schedule may choose */
};

/* How a chain begins. `search`: the records are to be moved to where the release has density. `sd`:
 * guesses of the standard deviations of theta, NULL where there are none. */
struct move_start {
    int search;
    const double *sd;
};

/* A hook that is NULL does nothing. Each sees for itself whether the move applies: all but the
 * first and start_site() have the first of all sites. */
struct move {
    enum move_phase phase;
    const char *store; /* the name of its vector of the state; NULL: none */

    void (*prepare_site)(struct augment *site); /* of each site, before the surrogate is prepared */
    void (*prepare)(struct augment *a);         /* once all else of the problem is there */
    void (*make_room)(struct augment *a);       /* workspace of one entry a record, again */

    /* Numbers in that vector, 0 where the move does not apply; and a view of it. */
    size_t (*stored)(const struct augment *a);
    void (*attach)(struct augment *a, double *store);

    /* A chain begins: before a site has records, and when all have. */
    void (*start_site)(struct augment *site);
    void (*start)(struct augment *a, const struct move_start *start);

    void (*make)(struct augment *a, struct round *round);
    void (*learn)(struct augment *a, const struct round *round); /* at the end of it, in warmup */
    void (*end_warmup)(struct augment *a);                       /* counters are of what follows */
    void (*tell)(const struct augment *a, struct chain_diagnostics *told);
};

/* In the order of a round; move_births and so on are the descriptors. */
#define AUGMENT_MOVES(X) \
    X(births) \
    X(passes) \
    X(cells) \
    X(held_total) \
    X(levels) \
    X(resize) \
    X(resize_counts) \
    X(redraw) \
    X(guide) \
    X(reflections) \
    X(second_moments) \
    X(crossings) \
    X(shape) \
    X(response) \
    X(resize_again) \
    X(categories)

#define DECLARE_MOVE(name) extern const struct move move_##name;
AUGMENT_MOVES(DECLARE_MOVE)
#undef DECLARE_MOVE

#define INDEX_MOVE(name) OWN_##name,
enum { AUGMENT_MOVES(INDEX_MOVE) MOVES };
#undef INDEX_MOVE

/* ends with NULL */
extern const struct move *const augment_moves[];

#endif
