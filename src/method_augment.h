#ifndef NOISEAWARE_METHOD_AUGMENT_H
#define NOISEAWARE_METHOD_AUGMENT_H

#include "adapt.h"
#include "plugin.h"

/* One released statistic: where its components stand among all of them, and
 * the model's columns that hold its variables. */
struct part {
    struct stat stat;
    int offset;
    const int *column;
};

struct augment {
    struct model model;
    int parts;
    struct part *part;
    /* Components of all parts: `absolute` with the absolute kernel, the rest
     * with the squared one. Both are multiples of LANES; a component that only pads
     * has released = weight = 0. */
    int width, absolute;
    const double *released, *weight;
    ptrdiff_t n, stride; /* records, and PAD_LANES(n) */
    int plain;           /* no partial refresh: the sweep of Ju et al. alone */

    /* State: with these restored, a run continues bit for bit. */
    double *theta;
    double *x; /* columns of `stride` */
    struct rng *rng;
    struct adapt adapt;

    /* Counters of the iterations after warmup, part of the state too */
    int *accepted;           /* per record */
    double most_energy_step; /* minus the smallest log acceptance probability seen */
    double passes_made, passes_accepted;

    double *residual; /* (released - total) * weight; part of the state, but its
                       * two copies swap places: allocated by augment_prepare */

    /* Workspace, see augment_prepare */
    int block;
    double *complete, *total;
    double *before, *after; /* components of a block, one after the other */
    double *diff;           /* their differences, record after record */
    double *candidate, *threshold, *hit;
    double **x_new, **x_at;
    const double **view, **moved;
    double *theta_new, *step;
    int *changed;
    double log_prior, energy;
};

void augment_prepare(struct augment *a);
void augment_start(struct augment *a);
void augment_residual(struct augment *a, double *residual);
double augment_energy(const struct augment *a, const double *residual);
ptrdiff_t augment_sweep(struct augment *a, double rho, double temper);

/* One iteration: non-centred passes, a sweep, a draw of theta. Warmup ends
 * after `warmup` iterations. Returns PLUGIN_*; *accepted gets the sweep's
 * number of accepted proposals. */
int augment_iterate(struct augment *a, int iteration, int warmup, ptrdiff_t *accepted);

#endif
