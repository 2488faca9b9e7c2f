/* Mechanism "gaussian": normal noise, scale = its standard deviation. */
#include "contract/mech.h"

#include <Rmath.h>

static double log_density(double noise, double scale) { return Rf_dnorm4(noise, 0, scale, 1); }

static double quantile(double u, double scale) { return Rf_qnorm5(u, 0, scale, 1, 0); }

const struct mech_class mech_gaussian = {
    .name = "gaussian",
    .log_density = log_density,
    .quantile = quantile,
};
