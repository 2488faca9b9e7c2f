/* Totals as innovations where a model's moments have no such form of their own. */
#ifndef NOISEAWARE_FACTORED_H
#define NOISEAWARE_FACTORED_H

#include "plugin.h"

/* Moments with innovations and slopes, of moments without, under that model; see
 * moments_factored.c. */
void moments_factored(const struct record_moments *of, const struct model *model,
                      struct record_moments *moments);

#endif
