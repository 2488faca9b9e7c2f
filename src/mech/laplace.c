/* Mechanism "laplace": density exp(-|noise| / b) / (2 b), scale b. */
#include "contract/mech.h"

static double log_density(double noise, double scale) {
    return -fabs(noise) / scale - log(2 * scale);
}

static double quantile(double u, double scale) {
    return u < 0.5 ? scale * log(2 * u) : -scale * log(2 * (1 - u));
}

const struct mech_class mech_laplace = {
    .name = "laplace",
    .log_density = log_density,
    .quantile = quantile,
};
