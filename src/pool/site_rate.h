#ifndef NOISEAWARE_POOL_SITE_RATE_H
#define NOISEAWARE_POOL_SITE_RATE_H

#include "base/rng.h"
#include "contract/plugin.h"

/* What a release of one total says of a rate, the total summed out; see pool/site_rate.c. */

enum pool_rate_kind {
    POOL_RATE_BERNOULLI, /* t = logit of the probability of 0 */
    POOL_RATE_POISSON,   /* t = log rate */
    POOL_RATE_EXPONENTIAL
};

/* log weights of whole numbers from `first` on; count 0: all weigh the same */
struct pool_weights {
    double first;
    int count;
    const double *log_weight;
    const double *rise, *fall; /* a weight over the one before it, and over the one after it */
};

/* Of stretch number `place`: with T the fourth Chebyshev polynomial, q + T r for cubic q and r. */
struct pool_piece {
    enum { PIECE_EMPTY, PIECE_GOOD, PIECE_BAD } state;
    double place, q[4], r[4];
};

struct pool_rate {
    /* Where n is known: the log density by polynomials, each of a stretch of t so long. */
    double stretch, near;      /* and how far these may be off */
    struct pool_piece *pieces; /* of the stretches that were met last; NULL: n is latent */

    enum pool_rate_kind kind;
    double n, first; /* records; the total that the first weight is of */
    int count;
    const double *log_weight;
    const double *at, *log_gap;  /* a continuous total: nodes, and what each represents; or NULL */
    int concave;                 /* is log_weight? */
    const double *rise, *fall;   /* as above; NULL: terms are not summed by their ratios */
    const double *lower, *upper; /* bounds of a record; NULL: none is outside */

    /* Where n is a latent number: what its noise says of it, and of n - s. */
    int sized;
    struct pool_weights size, rest;
    const double *log_factorial; /* of 0, 1, ..., factorials - 1, for pool_rate_set_size() */
    int factorials;
    int from, to; /* totals from the `from`-th to before the `to`-th are possible */

    double *term; /* workspace of pool_rate_draw() */
};

/* Fields: kind, n, first, log_weight; node, log_gap; lower, upper; where n is known information,
 * at most, that a total has of t; where n is latent sized,
 * size_first, size_log, rest_first, rest_log. Returns PLUGIN_*. */
int pool_rate_read(const struct fields *fields, struct pool_rate *rate);

/* The number of records, where that is latent. */
void pool_rate_set_size(struct pool_rate *rate, double n);

/* log p(release | t), of a latent n given n, and its derivative in t. */
double pool_rate_log(const struct pool_rate *rate, double t, double *slope);

/* A draw of the total given the release and t. */
double pool_rate_draw(const struct pool_rate *rate, double t, struct rng *rng);

/* Probability that a record lies outside its bounds. */
double pool_rate_outside(const struct pool_rate *rate, double t);

#endif
