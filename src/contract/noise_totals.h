#ifndef NOISEAWARE_CONTRACT_NOISE_TOTALS_H
#define NOISEAWARE_CONTRACT_NOISE_TOTALS_H

#include "contract/noise.h"

/* The energy of totals of which some may be known as intervals. */

/* The energy of component j, where it is an interval; and by how much it rises where its total
 * rises by `by`. Not inline: loops over the others are hot. */
double noise_interval_energy(const struct noise *noise, int j, double total);
double noise_interval_change(const struct noise *noise, int j, double total, double by);

/* the energy of component j, which is not exact */
static inline double noise_energy_of(const struct noise *noise, int j, double total) {
    if (noise->kernel[j] == KERNEL_PUBLISHED) return noise_interval_energy(noise, j, total);
    return kernel_energy(noise->kernel[j], noise_misfit(noise, j, total));
}

/* its rise where the total rises by `by` */
static inline double noise_change(const struct noise *noise, int j, double total, double by) {
    const enum kernel kernel = noise->kernel[j];
    if (kernel == KERNEL_PUBLISHED) return noise_interval_change(noise, j, total, by);
    const double off = noise->released[j] - total, weight = noise->weight[j];
    return kernel_energy(kernel, (off - by) * weight) - kernel_energy(kernel, off * weight);
}

/* the energy of all totals */
double noise_energy(const struct noise *noise, const double *total);

#endif
