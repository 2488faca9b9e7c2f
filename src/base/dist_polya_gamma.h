#ifndef NOISEAWARE_BASE_DIST_POLYA_GAMMA_H
#define NOISEAWARE_BASE_DIST_POLYA_GAMMA_H

#include "base/rng.h"

enum { POLYA_GAMMA_CELLS = 512 };

/* What all draws share: at z = g / 64, the probability of the right piece. */
struct polya_gamma {
    double right[POLYA_GAMMA_CELLS + 1];
};

void polya_gamma_prepare(struct polya_gamma *distribution);

/* out[i] ~ PG(1, tilt[i]) */
void polya_gamma_fill(const struct polya_gamma *distribution, struct rng *rng, int m,
                      const double *tilt, double *out);

#endif
