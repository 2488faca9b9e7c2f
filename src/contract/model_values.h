/* Capability: a draw has values of its own, which are not the natural ones of the unknown blocks
 * of theta. */
#ifndef NOISEAWARE_CONTRACT_MODEL_VALUES_H
#define NOISEAWARE_CONTRACT_MODEL_VALUES_H

struct model_values {
    /* Goal: the values of one draw as the user sees them, model->reported of them. */
    void (*report)(void *self, const double *theta, double *out);
    /* Goal: the way back (PLUGIN_*). Default: `init` and `parameters` cannot be given. */
    int (*invert)(void *self, const double *value, double *theta);
};

#endif
