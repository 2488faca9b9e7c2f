/* Totals as functions of innovations, for models whose moments have no such form. */
#ifndef NOISEAWARE_CLT_CHOLESKY_INNOVATIONS_H
#define NOISEAWARE_CLT_CHOLESKY_INNOVATIONS_H

#include "contract/model.h"
#include "contract/moments.h"

/* Moments with innovations and slopes, of moments without, under that model; see
 * clt/cholesky_innovations.c. */
void moments_factored(const struct record_moments *of, const struct model *model,
                      struct record_moments *moments);

#endif
