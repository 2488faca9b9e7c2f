/* Shared by the files of mcmc/adapt.h:
 *   mcmc/adapt_start.c            storage, start, annealing; mcmc/adapt_proposals.c  a step of a
 *   non-centred pass; mcmc/adapt_schedule.c   how many passes of which kind, and sweeps in parts;
 *   mcmc/adapt_refresh.c    how much of the records' innovations a sweep keeps;
 *   mcmc/adapt_window.c     statistics of a window of warmup, and adaptation at its end.
 */
#ifndef NOISEAWARE_MCMC_ADAPT_INTERNAL_H
#define NOISEAWARE_MCMC_ADAPT_INTERNAL_H

#include "mcmc/adapt.h"

/* every so many iterations of warmup look further */
enum { LOOK = 4 };

/* work of a sweep of all records */
static inline double adapt_sweep_cost(const struct adapt *adapt) {
    return adapt->costs.visit + adapt->costs.complete;
}

/* forgets the sums of the current window */
void adapt_open_window(struct adapt *adapt);

/* coordinates in a group */
int adapt_group_size(const struct adapt_shape *shape, int group);

/* scales of the walks before anything is known */
void adapt_reset_scales(struct adapt *adapt);

/* What may be spent on looking further now. */
double adapt_allowance(const struct adapt *adapt);

/* The passes from the window's sums; `chol` factors the covariance of theta. Returns the
 * share of theta that an iteration leaves as it is, an average over directions. */
double adapt_choose_passes(struct adapt *adapt, const double *chol, int end_of_warmup);

/* The refresh from the window's sums; `left` is that share. */
void adapt_settle_refresh(struct adapt *adapt, double left);

#endif
