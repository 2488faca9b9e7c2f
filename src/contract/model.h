/* Shared by all models: functions that use the description of theta. */
#ifndef NOISEAWARE_CONTRACT_MODEL_H
#define NOISEAWARE_CONTRACT_MODEL_H

#include "contract/plugin.h"

/* A draw from the prior, known coordinates at their values. */
void model_rprior(const struct model *model, struct rng *rng, double *theta);

/* The log prior density, -INFINITY where it is not finite, and its gradient, of all coordinates;
 * theta comes back as it was. */
double model_prior(const struct model *model, double *theta, double *gradient);

/* The natural values that a draw reports. */
void model_report(const struct model *model, const double *theta, double *out);

/* theta of such values. Returns -1, or the block whose values are impossible; of a model
 * that inverts itself, 0 for any. */
int model_invert(const struct model *model, const double *value, double *theta);

#endif
