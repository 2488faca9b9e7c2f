#ifndef NOISEAWARE_MODEL_INDEPENDENT_COVARIATE_H
#define NOISEAWARE_MODEL_INDEPENDENT_COVARIATE_H

#include "base/rng.h"
#include "contract/coordinates.h"

/* A lone covariate: a number with a distribution of its own, independent of the other covariates
 * given the parameters. A distribution is one file and a line in lone_classes
 * (model/covariates_independent.c). */

struct lone_class;

enum { LONE_BLOCKS = 3 };

struct lone {
    const struct lone_class *class;
    void *self;
    int column, moment; /* in a record; among the moments' columns */

    /* What create() fills in: theta's blocks, the length of the complete-data statistic, and
     * what a record costs, in random normals, drawn, moved and looked at. */
    int blocks;
    struct theta_block block[LONE_BLOCKS];
    int statistics;
    double cost_draw, cost_move, cost_latent;

    int at, end;     /* its coordinates in theta */
    int at_complete; /* its statistic in the model's */
    int changed;     /* by the current move */
};

/* The hooks, as a model has them (contract/model.h), of one column: `theta`, `c` and `x` are the
 * covariate's own. Columns have up to MAX_BLOCK records. */
struct lone_class {
    const char *name;
    /* from what R says of it (R/model_covariate.R); PLUGIN_* */
    int (*create)(const double *number, int count, struct lone *lone);
    void (*rprior)(void *self, struct rng *rng, double *theta);
    double (*dprior)(void *self, const double *theta);
    void (*set)(void *self, const double *theta);
    void (*set_next)(void *self, const double *theta);
    void (*draw)(void *self, struct rng *rng, int m, double *x);
    /* the non-centred move, from set() to set_next() */
    void (*move)(void *self, struct rng *rng, int m, const double *x, double *x_new);
    /* adds the statistic, latent variables drawn */
    void (*add)(void *self, struct rng *rng, int m, const double *x, double *c);
    /* leaves p(theta | statistic) invariant */
    void (*update)(void *self, const double *c, double n, struct rng *rng, double *theta);
};

#endif
