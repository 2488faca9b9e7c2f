/* The energy of totals of which some may be known as intervals (contract/published.c, which needs
 * Rmath: programs without it link contract/noise.c alone). */
#include "contract/noise_totals.h"

double noise_interval_energy(const struct noise *noise, int j, double total) {
    return -published_log(&noise->published, j - noise->separable, total);
}

double noise_interval_change(const struct noise *noise, int j, double total, double by) {
    return noise_interval_energy(noise, j, total + by) - noise_interval_energy(noise, j, total);
}

double noise_energy(const struct noise *noise, const double *total) {
    double energy = 0;
    for (int j = 0; j < noise->size; ++j)
        if (noise->kernel[j] != KERNEL_EXACT) energy += noise_energy_of(noise, j, total[j]);
    return energy;
}
