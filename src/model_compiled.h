#ifndef NOISEAWARE_MODEL_COMPILED_H
#define NOISEAWARE_MODEL_COMPILED_H

#include "plugin.h"

/* Wraps a user's hooks, which must be complete. Returns what their create()
 * does; the sizes are the user's, unchecked. */
int model_compiled_create(const struct noiseaware_model_class *hooks, const struct fields *fields,
                          struct model *model);

/* theta of natural-scale values. Returns PLUGIN_*. */
int model_compiled_invert(const struct model *model, const double *values, double *theta);

#endif
