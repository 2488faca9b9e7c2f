#ifndef NOISEAWARE_POOL_RATE_H
#define NOISEAWARE_POOL_RATE_H

#include "plugin.h"
#include "rng.h"

/* What a release of one total says of a rate, the total summed out; see pool_rate.c. */

enum pool_rate_kind {
    POOL_RATE_BERNOULLI, /* t = logit of the probability of 0 */
    POOL_RATE_POISSON,   /* t = log rate */
    POOL_RATE_EXPONENTIAL
};

struct pool_rate {
    enum pool_rate_kind kind;
    double n, first; /* records; the total that the first weight is of */
    int count;
    const double *log_weight;
    const double *at, *log_gap;  /* a continuous total: nodes, and what each stands for; or NULL */
    int concave;                 /* is log_weight? */
    const double *lower, *upper; /* bounds of a record; NULL: none is outside */
};

/* Fields: kind, n, first, log_weight; node, log_gap; lower, upper. Returns PLUGIN_*. */
int pool_rate_read(const struct fields *fields, struct pool_rate *rate);

/* log p(release | t), and its derivative in t. */
double pool_rate_log(const struct pool_rate *rate, double t, double *slope);

/* A draw of the total given the release and t. */
double pool_rate_draw(const struct pool_rate *rate, double t, struct rng *rng);

/* Probability that a record lies outside its bounds. */
double pool_rate_outside(const struct pool_rate *rate, double t);

#endif
