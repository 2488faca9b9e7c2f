#ifndef NOISEAWARE_MODEL_COMPILED_H
#define NOISEAWARE_MODEL_COMPILED_H

#include "contract/model.h"

/* Beyond this a number of parameters is treated as a slip: theta has no description,
 * and `moves` is not followed. */
enum { MOST_PARAMETERS = 100000 };

/* Wraps a user's hooks, which must be complete. Returns what their create()
 * does; the sizes are the user's, unchecked. */
int model_compiled_create(const struct noiseaware_model_class *hooks, const struct fields *fields,
                          struct model *model);

/* Those that each model has. */
void model_compiled_rprior(void *self, struct rng *rng, double *theta);
void model_compiled_set(void *self, const double *theta);
void model_compiled_rrecords(void *self, struct rng *rng, int m, double *const *x);

#endif
