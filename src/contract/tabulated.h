#ifndef NOISEAWARE_CONTRACT_TABULATED_H
#define NOISEAWARE_CONTRACT_TABULATED_H

#include "contract/plugin.h"

/* The log density of noise of unit scale, given at points. A table is an array: the number of
 * points K, the slopes of the log density below and above them (negative: the noise is not there),
 * K points in increasing order, which may be repeated, and K log densities (-TABULATED_IMPOSSIBLE
 * where the density is 0). See contract/tabulated.c. */
#define TABULATED_IMPOSSIBLE 1e9

/* Never -INFINITY: where the noise is impossible, -TABULATED_IMPOSSIBLE or less. */
double tabulated_log(const double *table, double noise);

#endif
