/* The noise of a release; see contract/noise.h. */
#include "contract/noise.h"

#include "base/block.h"

double kernel_draw(enum kernel kernel, struct rng *rng) {
    return kernel == KERNEL_ABSOLUTE ? rng_exponential(rng) - rng_exponential(rng)
                                     : rng_normal(rng);
}

static int run_end(const struct noise *noise, enum kernel kernel, int from, int sorted) {
    while (from < sorted && noise->kernel[from] == kernel) ++from;
    return from;
}

void noise_find_runs(struct noise *noise, int sorted) {
    noise->absolute = run_end(noise, KERNEL_ABSOLUTE, 0, sorted);
    noise->separable = run_end(noise, KERNEL_SQUARED, noise->absolute, sorted);
    noise->noisy = run_end(noise, KERNEL_PUBLISHED, noise->separable, sorted);
}

double noise_misfit_energy(const struct noise *noise, int from, int count, const double *misfit) {
    double energy = 0;
    for (int j = 0; j < count; ++j) energy += kernel_energy(noise->kernel[from + j], misfit[j]);
    return energy;
}

static double pull(const struct noise *noise, const double *total, double rounded, int energy_too,
                   double *slope) {
    double energy = 0;
    for (int j = 0; j < noise->size; ++j) {
        const double weight = noise->weight[j], r = noise_misfit(noise, j, total[j]);
        const int near = noise->kernel[j] == KERNEL_ABSOLUTE && fabs(r) < rounded;
        energy += near && energy_too ? 0.5 * (r * r / rounded + rounded)
                                     : kernel_energy(noise->kernel[j], r);
        slope[j] = near ? weight * r / rounded : weight * kernel_slope(noise->kernel[j], r);
    }
    return energy;
}

double noise_pull(const struct noise *noise, const double *total, double rounded, double *slope) {
    return pull(noise, total, rounded, 0, slope);
}

double noise_pull_rounded(const struct noise *noise, const double *total, double rounded,
                          double *slope) {
    return pull(noise, total, rounded, 1, slope);
}

double noise_rounding(const struct noise *noise, const double *total, double rounded) {
    double energy = 0;
    for (int j = 0; j < noise->size; ++j) {
        const double within = rounded - fabs(noise->released[j] - total[j]) / noise->scale[j];
        if (noise->kernel[j] == KERNEL_ABSOLUTE && within > 0)
            energy += 0.5 * within * within / rounded;
    }
    return energy;
}

/* Several numbers at a time: none waits for the one before it. */
VECTOR_CLONES static double bend(int count, double steep, double *restrict r) {
    double part[LANES] = {0};
    for (int k = 0; k < count; k += LANES)
        for (int l = 0; l < LANES; ++l) {
            double slope = r[k + l] * steep;
            part[l] += fabs(r[k + l]);
            slope = slope < 1 ? slope : 1;
            r[k + l] = slope > -1 ? slope : -1;
        }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

double noise_slopes(enum kernel kernel, int count, double rounded, double *r) {
    for (int k = count; k < PAD_LANES(count); ++k) r[k] = 0;
    if (kernel == KERNEL_SQUARED) return 0.5 * block_dot(count, r, r);
    return bend(count, fmin(1 / rounded, 1e200), r);
}
