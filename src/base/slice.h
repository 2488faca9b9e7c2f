#ifndef NOISEAWARE_BASE_SLICE_H
#define NOISEAWARE_BASE_SLICE_H

#include "base/rng.h"

/* One visit of each of `count` coordinates of theta, listed in `which`, with
 * initial interval widths that do not depend on theta. theta must have a finite
 * log density. */
void slice_sweep(int count, const int *which, const double *width,
                 double (*log_density)(void *self, const double *theta), void *self,
                 struct rng *rng, double *theta);

#endif
