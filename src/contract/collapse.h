/* Method "collapse": draws from the posterior without the records (vignette "Algorithms",
 * "collapse").
 *
 * If the distribution of the released statistic, or of totals that determine it, is known given
 * theta, the totals themselves are moved, at a cost that does not depend on n. Each family of
 * distributions is one file of totals/ or table/ with one descriptor.
 */
#ifndef NOISEAWARE_CONTRACT_COLLAPSE_H
#define NOISEAWARE_CONTRACT_COLLAPSE_H

#include "contract/model.h"
#include "contract/n_prior.h"
#include "contract/noise_totals.h"

struct collapse_class;

/* Moves made after warmup, of kinds that each family names, and next to
 * each how many were accepted. */
enum { MADE, ACCEPTED, MOVE_KINDS = 8, COLLAPSE_COUNTERS = 2 * MOVE_KINDS };

struct collapse {
    const struct collapse_class *class;
    void *self;
    struct model model;
    double n;                            /* where it is unknown, about what the release says */
    const struct size_prior *size_prior; /* NULL: n is known */
    struct noise noise;                  /* in runs of kernels */
    int stored;                          /* length of store */
    int described;                       /* length of complete->statistic() */
    int given;                           /* theta is the user's: start from there */

    double *totals; /* workspace of collapse_energy() */

    /* State: with these restored, a run continues bit for bit. */
    double *theta, *store, *counter;
    struct rng *rng;
};

/* Capability, for tests: the target at coordinates of what the store holds. */
struct collapse_coordinates {
    /* Log density and its gradient. */
    double (*log_density)(const struct collapse *c, const double *q, double *gradient);

    /* Where n is unknown, a step to that n, of coordinates q as they are or of what such steps
     * `hold`: q there, and the log of the acceptance ratio but for the log densities, -INFINITY
     * where there is no such step. NULL where there is none. */
    double (*resize)(struct collapse *c, double n, int hold, double *q);
};

/* Capability: complete-data statistics. */
struct collapse_complete {
    /* The state's statistic, and after it the factors' cross-table, or where n is unknown n, and
     * the variances assumed for a column before the release, of its mean and about it. */
    void (*statistic)(const struct collapse *c, double *out);

    /* The released components that are expected of such a statistic where bounds clamp, and what
     * is left of their variances. NULL where there is none. */
    void (*clamped)(const struct collapse *c, const double *statistic, double *mean, double *left);
};

/* Capability, where theta is another's (the field "held"): totals that follow it. */
struct collapse_carry {
    /* The totals that follow theta to theta_to, all else being fixed that they are made of.
     * Returns the log of the ratio of the densities of all but theta. */
    double (*move)(struct collapse *c, const double *theta_to);

    /* Takes these totals. */
    void (*keep)(struct collapse *c);
};

struct collapse_class {
    const char *name;

    /* what each counter counts, as far as they are used */
    const char *counters[COLLAPSE_COUNTERS];

    /* Reads the family's fields, allocates, sets `self` and `stored`; all else
     * but the state is there. Returns PLUGIN_*. */
    int (*create)(const struct fields *fields, struct collapse *c);

    /* A new state: totals from their distribution given theta, nothing learned yet. */
    void (*start)(struct collapse *c);

    /* From the state to what is handier while running. */
    void (*load)(struct collapse *c);

    /* One iteration. Warmup ends after `warmup` of them. Returns PLUGIN_*;
     * *accepted gets the share of accepted moves of the totals. */
    int (*iterate)(struct collapse *c, int iteration, int warmup, double *accepted);

    /* The released components before noise, and after them what else the family keeps of the
     * state (of tables the cells). */
    void (*statistic)(const struct collapse *c, double *out);

    /* The number of records, where it is unknown; NULL where it must be known. */
    double (*records)(const struct collapse *c);

    /* Minus the log of the noise density, up to a constant; NULL where that is a function of the
     * released components alone. */
    double (*energy)(const struct collapse *c);

    /* Expected share of records outside the bounds, given theta; NULL where
     * there is no such record. */
    double (*outside)(const struct collapse *c);

    /* Work of an iteration, in multiplications or so. */
    double (*work)(const struct collapse *c);

    /* Capabilities; NULL where the family lacks them. */
    const struct collapse_coordinates *coordinates;
    const struct collapse_complete *complete;
    const struct collapse_carry *carry;

    /* What create() had to compute at some length, to be given to it as the field
     * "tables" from then on; NULL where there is nothing. */
    const double *(*tables)(const struct collapse *c, size_t *size);
};

static inline void collapse_count(struct collapse *c, int kind, int accepted) {
    c->counter[2 * kind + MADE] += 1;
    c->counter[2 * kind + ACCEPTED] += accepted;
}

static inline double collapse_energy(const struct collapse *c) {
    if (c->class->energy) return c->class->energy(c);
    c->class->statistic(c, c->totals);
    return noise_energy(&c->noise, c->totals);
}

extern const struct collapse_class collapse_normal, collapse_counts, collapse_recursion,
    collapse_records, collapse_table, collapse_total, collapse_crossing, collapse_row,
    collapse_answers, collapse_imputed, collapse_public, collapse_public_totals;

#endif
