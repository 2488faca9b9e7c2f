#ifndef NOISEAWARE_MCMC_AUTOCORRELATION_TUNER_H
#define NOISEAWARE_MCMC_AUTOCORRELATION_TUNER_H

#include "base/core.h"

/* Numbers that warmup watches, such as counts of a table: means, squared deviations and squared
 * steps from one iteration to the next, over a window. It tells how many moves an iteration
 * should have: so many that what is watched has forgotten most of what it was. */
struct watch {
    int count;

    /* views into the store */
    double *mean, *square, *step, *last, *seen;

    double *correlation; /* workspace */
};

/* Doubles in the store. */
static inline int watch_stored(int count) { return 4 * count + 1; }

/* Allocates. */
void watch_create(struct watch *watch, int count);

/* Views of the store; returns what follows it. */
double *watch_attach(struct watch *watch, double *store);

/* An iteration: watch_next(), then watch_add() of each number. */
static inline void watch_next(struct watch *watch) { *watch->seen += 1; }

static inline void watch_add(struct watch *watch, int k, double x) {
    const double seen = *watch->seen, off = x - watch->mean[k];
    const double step = seen > 1 ? x - watch->last[k] : 0;
    watch->mean[k] += off / seen;
    watch->square[k] += off * (x - watch->mean[k]);
    watch->step[k] += step * step;
    watch->last[k] = x;
}

/* What to multiply the number of moves by, so that the correlation of successive iterations becomes
 * 0.3 of what moves, but for the tenth that is worst; of the last number in any case if
 * `also_last`. */
double watch_factor(struct watch *watch, int also_last);

void watch_forget(struct watch *watch);

#endif
