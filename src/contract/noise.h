/* What was published of totals, and how far totals are from it. Of component j with total s_j:
 *
 *   energy_j = kernel((z_j - s_j) / scale_j)               z_j the number, with noise added
 *            = -log P(lower_j <= s_j + e_j <= upper_j)     one that was hidden, rounded or clipped
 *            = 0                                           one that is exact, which methods keep
 *
 * The kernel is |r| (Laplace noise) or r^2 / 2 (Gaussian noise). The energy is minus the log of the
 * noise density, up to a constant.
 *
 * Each method holds one struct noise for each release, which r/read_problem.c fills in, and
 * evaluates it here (slopes and misfits) and in contract/noise_totals.h (energies and their
 * changes). Three loops are elsewhere because their speed depends on it: the record pass of method
 * "augment" (records/accept_pass.c), a line through a table (table/transfers.c), and the kernels of
 * one record's values, which are not totals (records/noise_energy.c).
 *
 * Invariants: components are added up in their order. weight = 1 / scale; it is 0 for a component
 * that only pads. Misfits are in units of the noise. Cost: O(components).
 */
#ifndef NOISEAWARE_CONTRACT_NOISE_H
#define NOISEAWARE_CONTRACT_NOISE_H

#include "base/rng.h"
#include "contract/mech.h"
#include "contract/published.h"

struct noise {
    int size;
    const enum kernel *kernel; /* of each component */
    const double *released, *scale, *weight;
    struct published published; /* the components with KERNEL_PUBLISHED, from `separable` on */
    /* Where runs of kernels are sorted: the first `absolute` have KERNEL_ABSOLUTE, up to
     * `separable` they have KERNEL_SQUARED, up to `noisy` KERNEL_PUBLISHED; then exact ones. */
    int absolute, separable, noisy;
};

/* Finds the ends of these runs, from the kernels of the first `sorted` components. */
void noise_find_runs(struct noise *noise, int sorted);

/* Of its first components alone. */
static inline struct noise noise_first(const struct noise *noise, int size) {
    struct noise first = *noise;
    first.size = size;
    return first;
}

/* energy of a misfit r, and its slope */
static inline double kernel_energy(enum kernel kernel, double r) {
    return kernel == KERNEL_ABSOLUTE ? fabs(r) : 0.5 * r * r;
}

static inline double kernel_slope(enum kernel kernel, double r) {
    return kernel == KERNEL_ABSOLUTE ? copysign(1, r) : r;
}

/* The factor of the weight under which the energy is `temper` times what it was. */
static inline double kernel_temper(enum kernel kernel, double temper) {
    return kernel == KERNEL_ABSOLUTE ? temper : sqrt(temper);
}

/* noise of unit scale */
double kernel_draw(enum kernel kernel, struct rng *rng);

static inline double noise_misfit(const struct noise *noise, int j, double total) {
    return (noise->released[j] - total) * noise->weight[j];
}

/* The total with that misfit; 0 of a component that only pads. */
static inline double noise_total(const struct noise *noise, int j, double misfit) {
    return noise->weight[j] > 0 ? noise->released[j] - misfit / noise->weight[j] : 0;
}

/* the variance of the noise of component j */
static inline double noise_variance(const struct noise *noise, int j) {
    return (noise->kernel[j] == KERNEL_ABSOLUTE ? 2 : 1) / (noise->weight[j] * noise->weight[j]);
}

/* The energy of `count` components from `from` on with these misfits. */
double noise_misfit_energy(const struct noise *noise, int from, int count, const double *misfit);

/* The energy of totals that are neither intervals nor exact, and the slopes of the log density in
 * the totals. The slope of the absolute kernel jumps at 0. Within `rounded` of 0, in units of the
 * noise, the slopes belong to a kernel that is rounded off (Huber's). noise_pull() returns the
 * energy of the noise, noise_pull_rounded() the energy of the rounded kernel, and noise_rounding()
 * the second minus the first where weight is 1 / scale. */
double noise_pull(const struct noise *noise, const double *total, double rounded, double *slope);
double noise_pull_rounded(const struct noise *noise, const double *total, double rounded,
                          double *slope);
double noise_rounding(const struct noise *noise, const double *total, double rounded);

/* Of a block of misfits r of one kernel: their energy, and in their place their slopes. The array
 * has room for NOISE_BLOCK. */
enum { NOISE_BLOCK = 64 };
double noise_slopes(enum kernel kernel, int count, double rounded, double *r);

#endif
