/* Sticks under a Dirichlet distribution: see base/sticks.h. */
#include "base/sticks_draw.h"

#include "base/dist.h"
#include "base/sticks.h"

void sticks_draw(struct rng *rng, int levels, const double *weight, double *stick) {
    double rest = weight[levels - 1];
    for (int l = levels - 2; l >= 0; --l) {
        const double odds = dist_log_gamma(rng, weight[l]) - dist_log_gamma(rng, rest);
        stick[l] = fmax(-1e300, fmin(odds, 1e300));
        rest += weight[l];
    }
}

double sticks_log_density(int levels, const double *weight, const double *stick) {
    double rest = weight[levels - 1], log_density = 0;
    for (int l = levels - 2; l >= 0; --l) {
        rest += weight[l];
        log_density += stick_log_density(weight[l], rest, stick[l]);
    }
    return log_density;
}
