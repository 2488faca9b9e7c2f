#ifndef NOISEAWARE_BASE_DIAGNOSTICS_H
#define NOISEAWARE_BASE_DIAGNOSTICS_H

#include "base/core.h"

/* Room for the work on `iterations` draws of each of `chains`; all but `order` and
 * `rho` hold iterations x chains numbers. */
struct diagnostics {
    int iterations, chains;
    double *sorted, *score, *folded;
    double *normal; /* scores of the ranks, no ties */
    double *rho;    /* iterations: autocorrelations */
    int *order;
};

struct summary {
    double mean, sd, lower, upper, rhat, ess;
};

/* Fills in d->normal. */
void diagnostics_prepare(struct diagnostics *d);

/* Of one variable's draws, chain after chain: mean, sd, quantiles at `tail` and 1 - tail,
 * rank-normalised split R-hat and bulk effective sample size; the last two are NaN if all draws are
 * the same or fewer than 6 of a chain. Draws must be finite. */
void diagnostics_summary(struct diagnostics *d, const double *draws, double tail,
                         struct summary *out);

/* Effective sample size in the tails: the smaller of the draws' indicators of being at most their
 * quantiles at 0.05 and 0.95; NaN as above, and if an indicator is constant. */
double diagnostics_tail(struct diagnostics *d, const double *draws);

#endif
