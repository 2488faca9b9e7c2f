#ifndef NOISEAWARE_GEOGRAPHY_GEOGRAPHY_H
#define NOISEAWARE_GEOGRAPHY_GEOGRAPHY_H

#include "base/dist.h"

/* Counts of nested areas: see geography/transfers.c. Level 0 is all areas together, level
 * `levels` the leaves. The children of an area follow one another, and so do its leaves. */
enum { GEOGRAPHY_LEVELS = 8, GEOGRAPHY_MEASURES = 32 };

/* What the noise of a transfer's numbers says of how far it goes: of the squared kernel
 * `curvature`, of the absolute one `rate`; `step`: exp(-curvature); `width`, of the interval. */
struct geography_noise {
    double curvature, rate, step, width;
};

/* Kinds of transfers, whose noise is mostly the same everywhere: of one cell between leaves, of
 * two cells in a leaf, of both, and between leaves of areas of a level, from 0. */
enum { BETWEEN_LEAVES, WITHIN_LEAF, THERE_AND_BACK, BETWEEN_AREAS };

/* A margin that was released at a level: its groups of cells in each area. */
struct geography_measure {
    int level, groups, absolute;
    const int *group; /* of each cell */
    /* area by area; a weight of 0 is a number that was not released. The weight is 1 / sd^2, of
     * the absolute kernel 1 / scale. */
    const double *released, *weight;
    double *total; /* before noise */
};

struct geography {
    int levels, cells, measures;
    int areas[GEOGRAPHY_LEVELS + 1];
    const int *parent[GEOGRAPHY_LEVELS + 1];
    int *children[GEOGRAPHY_LEVELS + 1];   /* how many */
    int *first_leaf[GEOGRAPHY_LEVELS + 1]; /* one more than areas */
    int *ancestor[GEOGRAPHY_LEVELS + 1];   /* of each leaf */
    struct geography_measure measure[GEOGRAPHY_MEASURES];
    int exact_level;        /* its areas have exact counts of groups of cells */
    const int *exact_group; /* of each cell */
    double size_weight;     /* Dirichlet weight of the shares of an area that its parts have */
    const double *alpha;    /* of the cells' shares in all areas together */
    double shape, rate;     /* gamma prior of the concentrations; rate 0: they are known */

    /* state */
    double *count;                       /* of cells, leaf by leaf */
    double *share[GEOGRAPHY_LEVELS + 1]; /* of cells, area by area; leaves have none */
    double *concentration;               /* of a level about the one above it, from 1 */
    struct rng rng;

    /* follows from the state */
    double *size[GEOGRAPHY_LEVELS + 1]; /* of areas */

    /* workspace */
    struct geography_noise noise[BETWEEN_AREAS + GEOGRAPHY_LEVELS]; /* the last one of a kind */
    double *customer[GEOGRAPHY_LEVELS + 1];
};

/* Sizes and totals, from the counts. */
void geography_load(struct geography *g);

/* One iteration: transfers, then shares and concentrations. */
void geography_sweep(struct geography *g);

/* Draws shares and concentrations given the counts. */
void geography_draw_shares(struct geography *g);

#endif
