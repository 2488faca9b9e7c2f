/* Refresh: a sweep may keep the share rho of each record's innovation. Warmup tries REFRESHES in
 * turn and measures how far each moves the complete-data statistic, c: tau sweeps to an
 * independent value, on average over its components. theta forgets all but a share of itself in an
 * iteration, and that share lasts as long as c: 1 + 2 share tau iterations for an effective draw.
 * A refresh is mixed with independent proposals if it shortens that.
 */
#include "mcmc/adapt_internal.h"

const double adapt_refresh[REFRESHES] = {0, 0.5, 0.8, 0.95, 0.99, 0.998};

/* A refresh has to promise so many times the effective draws: it is known by few
 * tries. */
static const double REFRESH_MARGIN = 2;

enum { ENOUGH_TRIES = 8 }; /* of a refresh, to believe it better */

int adapt_tries_refresh(const struct adapt *adapt, int at) {
    return at % LOOK == LOOK / 2 && adapt_allowance(adapt) >= 0;
}

int adapt_choose_refresh(const struct adapt *adapt, int at, int trying, struct rng *rng) {
    if (trying) return at / LOOK % REFRESHES;
    const int chosen = (int)*adapt->refresh;
    return chosen == 0 || rng_uniform(rng) >= *adapt->share ? 0 : chosen;
}

/* Welford's update of a running mean; returns the product that the running sum
 * of squares grows by. */
static double see(double value, double count, double *mean) {
    const double off = value - *mean;
    *mean += off / count;
    return off * (value - *mean);
}

void adapt_saw_refresh(struct adapt *adapt, int refresh, const double *before,
                       const double *after) {
    const int size = adapt->shape.complete;
    double *moved = adapt->sums.moved + (size_t)refresh * size;
    adapt->sums.tries[refresh] += 1;
    *adapt->sums.looks += 1;
    *adapt->explored += adapt->costs.look + (refresh > 0 ? adapt->costs.refresh : 0);
    for (int j = 0; j < size; ++j) {
        const double jump = after[j] - before[j];
        moved[j] += jump * jump;
        adapt->sums.complete_scatter[j] +=
            see(after[j], *adapt->sums.looks, adapt->sums.complete_mean + j);
    }
}

/* Squared jump of component j in a sweep with that refresh, over twice its
 * variance; `least` where it did not move. */
static double component_rate(const struct adapt *adapt, int refresh, int j, double least) {
    const double moved = adapt->sums.moved[(size_t)refresh * adapt->shape.complete + j];
    if (moved == 0) return least;
    return 0.5 * moved / adapt->sums.tries[refresh] * *adapt->sums.looks /
           adapt->sums.complete_scatter[j];
}

/* A component that did not move while others did may move in twice as many
 * tries. */
static double least_rate(const struct adapt *adapt, int refresh) {
    const double *moved = adapt->sums.moved + (size_t)refresh * adapt->shape.complete;
    for (int j = 0; j < adapt->shape.complete; ++j)
        if (moved[j] > 0) return 0.5 / adapt->sums.tries[refresh];
    return 0;
}

/* Sweeps to an independent value of the complete-data statistic, on average over
 * its components, if that share of them uses a refresh. */
static double refresh_time(const struct adapt *adapt, int refresh, double share) {
    const double least = least_rate(adapt, 0), least_kept = least_rate(adapt, refresh);
    double time = 0;
    int counted = 0;
    for (int j = 0; j < adapt->shape.complete; ++j) {
        if (!(adapt->sums.complete_scatter[j] > 0)) continue;
        ++counted;
        time += 1 / ((1 - share) * component_rate(adapt, 0, j, least) +
                     share * component_rate(adapt, refresh, j, least_kept));
    }
    return counted > 0 ? time / counted : INFINITY;
}

void adapt_settle_refresh(struct adapt *adapt, double left) {
    *adapt->refresh = *adapt->share = 0;
    if (adapt->sums.tries[0] == 0) return;
    if (left == 0) return; /* however long, even infinite */
    const double relative = adapt->costs.refresh / adapt_sweep_cost(adapt);
    double least = (1 + 2 * left * refresh_time(adapt, 0, 0)) / REFRESH_MARGIN;
    if (least < 1) return;
    if (!isfinite(least)) { /* no record moved: the smallest steps, unless others did better */
        *adapt->refresh = REFRESHES - 1;
        *adapt->share = 0.75;
    }
    for (int i = 1; i < REFRESHES; ++i) {
        if (adapt->sums.tries[i] < ENOUGH_TRIES) continue;
        for (int quarter = 1; quarter <= 3; ++quarter) {
            const double share = 0.25 * quarter;
            const double time =
                (1 + 2 * left * refresh_time(adapt, i, share)) * (1 + share * relative);
            if (time < least) {
                least = time;
                *adapt->refresh = i;
                *adapt->share = share;
            }
        }
    }
}
