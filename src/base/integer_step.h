#ifndef NOISEAWARE_BASE_INTEGER_STEP_H
#define NOISEAWARE_BASE_INTEGER_STEP_H

#include "base/rng.h"

#include <math.h>

/* By how many units a step changes a whole number: geometric-like, at least 1. Of a scale that
 * warmup learns; symmetric where it stays. */
static inline double units_draw(struct rng *rng, double scale) {
    return 1 + floor(scale * rng_exponential(rng));
}

/* Robbins & Monro: towards an acceptance rate of 0.4 */
static inline void units_learn(double *scale, double *tries, int accepted, double most) {
    *tries += 1;
    const double learned = *scale * exp(2 / (1 + sqrt(*tries)) * (accepted - 0.4));
    *scale = learned < 0.1 ? 0.1 : learned > most ? most : learned;
}

#endif
