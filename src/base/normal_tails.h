#ifndef NOISEAWARE_BASE_NORMAL_TAILS_H
#define NOISEAWARE_BASE_NORMAL_TAILS_H

#include "base/core.h"

/* The standard normal density and distribution function at four points, in their order. Beyond
 * +-9, and at infinite points, they are 0 or 1; of NaN 0 and 1. */
void normal_tails(double a, double b, double c, double d, double *restrict density,
                  double *restrict below);

#endif
