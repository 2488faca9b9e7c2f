#ifndef NOISEAWARE_POOL_GROUP_SIZES_H
#define NOISEAWARE_POOL_GROUP_SIZES_H

#include "contract/n_prior.h"
#include "pool/site_rate.h"

/* The sizes of groups of records, where they are latent; see pool/group_sizes.c. */

struct pool_group {
    struct pool_rate *rate;
    double t;           /* the group's rate, as in pool/site_rate.h */
    double log_density; /* of its release given its size and t */
};

struct pool_sizes {
    int groups;                     /* 0: sizes are known */
    const struct size_prior *prior; /* of their sum; NULL: that is known */
    double *n, *log_scale;          /* state: sizes, and how far proposals go */
    double *counter;                /* state: proposals made and accepted */
    struct pool_group *group;
    int *order; /* workspace */
};

/* With groups and prior: the workspace. */
void pool_sizes_create(struct pool_sizes *sizes);

double pool_sizes_sum(const struct pool_sizes *sizes);

/* Moves the sizes given the rates, `t` of each group. */
void pool_sizes_move(struct pool_sizes *sizes, int iteration, int warmup, struct rng *rng);

#endif
