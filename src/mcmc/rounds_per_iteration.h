#ifndef NOISEAWARE_MCMC_ROUNDS_PER_ITERATION_H
#define NOISEAWARE_MCMC_ROUNDS_PER_ITERATION_H

#include "base/core.h"

/* How many rounds an iteration has after warmup; see mcmc/rounds_per_iteration.c. Views into the
 * state: their number; in the second half of warmup, iterations seen, their mean work and the mean
 * work of their passes; of each coordinate its mean and scatter, the sum of squared changes over
 * some iterations, and what it was in the last of these. No `count`: always one round. */
struct rounds {
    int size; /* coordinates */
    double *count, *seen, *work, *passes, *mean, *scatter, *change, *before;
};

size_t rounds_stored(int size);
void rounds_attach(struct rounds *rounds, int size, double *store);
void rounds_start(struct rounds *rounds);

/* Work of an iteration of warmup, of its passes, and of those planned for a round after it. */
struct round_work {
    double all, passes, planned;
};

/* What an iteration of warmup that took so much work tells, `at` being where its coordinates are;
 * there will be at least `least` rounds. */
void rounds_saw(struct rounds *rounds, const double *at, double least, int iteration, int warmup,
                struct round_work work);

static inline int rounds_made(const struct rounds *rounds) {
    return rounds->count ? (int)*rounds->count : 1;
}

#endif
