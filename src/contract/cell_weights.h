#ifndef NOISEAWARE_CONTRACT_CELL_WEIGHTS_H
#define NOISEAWARE_CONTRACT_CELL_WEIGHTS_H

#include "base/dist.h"

/* What a cell of a table of counts has to do with its probability, that being integrated out:
 *
 *   log phi(n), phi(n) = Gamma(a + n) / n!    Dirichlet weight a
 *   phi(n) = p^n / n!                         a known probability, relative to Poisson counts of
 *                                             the mean that it gives, which keeps numbers small
 *
 * Cells of the same weight share one. */

/* counts below CELL_TABLE are looked up */
enum { CELL_TABLE = 1024 };

struct cell_weight {
    double value; /* a, or the mean */
    struct dist_rising rising;
    const double *table;
    int known;
};

struct cell_weights {
    struct cell_weight *weight;
    int count, tables;
    double most; /* the largest count there can be */
};

static inline double cell_log_compute(const struct cell_weight *weight, double n) {
    if (weight->known) return dist_log_poisson(n, weight->value);
    return weight->value == 1 ? 0 : dist_log_rising(&weight->rising, n);
}

static inline double cell_log(const struct cell_weight *weight, double n) {
    return weight->table && n < CELL_TABLE ? weight->table[(int)n] : cell_log_compute(weight, n);
}

/* Room for `room` different ones. */
struct cell_weights cell_weights_new(int room, double most);

/* Multinomial counts of `total` in a row of sticks (base/sticks.h): each level against those
 * after it.
 */
void cells_draw(struct rng *rng, int levels, const double *stick, double total, double *count);

/* The index of that one, which is added if it is not there. */
int cell_weights_find(struct cell_weights *weights, int known, double value);

#endif
