#ifndef NOISEAWARE_BASE_STICKS_DRAW_H
#define NOISEAWARE_BASE_STICKS_DRAW_H

#include "base/rng.h"

/* Sticks of a Dirichlet distribution with these weights, never infinite; the log density of theirs.
 */
void sticks_draw(struct rng *rng, int levels, const double *weight, double *stick);
double sticks_log_density(int levels, const double *weight, const double *stick);

#endif
