/* Mechanism "discrete_gaussian": integer noise, P(k) proportional to
 * exp(-k^2 / (2 s^2)), scale s (Canonne, Kamath & Steinke 2020). In inference it
 * shares the kernel of its continuous twin. */
#include "base/dist_discrete.h"
#include "contract/mech.h"

static double log_density(double noise, double scale) {
    return dist_discrete_gaussian.log_density(noise, 0, scale);
}

static double quantile(double u, double scale) {
    return u < 0.5 ? dist_discrete_gaussian.quantile(u, 0, scale, 1, 0)
                   : dist_discrete_gaussian.quantile(1 - u, 0, scale, 0, 0);
}

const struct mech_class mech_discrete_gaussian = {
    .name = "discrete_gaussian",
    .log_density = log_density,
    .quantile = quantile,
};
