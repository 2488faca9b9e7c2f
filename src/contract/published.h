#ifndef NOISEAWARE_CONTRACT_PUBLISHED_H
#define NOISEAWARE_CONTRACT_PUBLISHED_H

#include "contract/tabulated.h"

struct bits;

/* What became known of noisy numbers that were hidden, rounded or clipped: that component j, before
 * that, was from lower[j] to upper[j]; the number itself where these are the same. Where only
 * numbers of at least least[j] were listed, that is known too (-INFINITY: all were). */
struct published {
    int size;
    struct bits *bits;    /* of each component, where any is a sum of bits: see published.c */
    const double *family; /* enum published_family */
    const double *scale, *lower, *upper, *least;
    const double *records; /* of sums of bits: all, of whom `total` send a 1 with probability
                              `scale` and the others with `least`; lower is (sum - records least) /
                              (scale - least) */
    /* of PUBLISHED_TABULATED, where lower[j] = upper[j]: its table starts at table + table_at[j] */
    const double *table, *table_at;
};

enum published_family {
    PUBLISHED_LAPLACE,
    PUBLISHED_GAUSSIAN,
    PUBLISHED_DISCRETE_LAPLACE,
    PUBLISHED_DISCRETE_GAUSSIAN,
    PUBLISHED_TABULATED,
    PUBLISHED_BITS
};

/* Fields: the struct's, one a component. Returns PLUGIN_*. */
int published_read(const struct fields *fields, int size, struct published *published);

/* The log probability of what became known of component j, given its exact total; the log density
 * of a number of continuous noise, that of tabulated noise in units of its scale. Never NaN; below
 * -TABULATED_IMPOSSIBLE / 2 where tabulated noise is impossible. */
double published_log(const struct published *published, int j, double total);

#endif
