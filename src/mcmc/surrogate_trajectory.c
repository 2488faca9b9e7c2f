/* Trajectories of Hamiltonian Monte Carlo on a surrogate's density; the records then follow their
 * ends. Shared by surrogate transitions of a response's coefficients (records/response_hmc.c,
 * records/category_hmc.c).
 *
 * Learned in warmup: step size and metric (mcmc/hmc.c); the reference, where the chain is when a
 * window of the metric ends; the length of trajectories, shorter if long ones are rejected.
 *
 * No allocation. Cost: that of the density for each leapfrog step.
 */
#include "mcmc/surrogate_trajectory.h"

#include "base/core.h"

static const double LONGEST = 1.5, SHORTEST = 0.05;

/* Acceptance probability that the length aims at. The responses that differ from the reference's
 * make an error that shorter trajectories hardly lower. */
static const double TARGET = 0.3;

enum { MOST_STEPS = 100 };

static void copy(const struct trajectory *t, double *to, const double *from) {
    memcpy(to, from, (size_t)t->hmc.target.size * sizeof(double));
}

size_t trajectory_stored(int size, enum hmc_metric metric) {
    return TRAJECTORY_SCALARS + (size_t)size + hmc_stored(size, metric);
}

void trajectory_attach(struct trajectory *t, const struct hmc_target *target,
                       enum hmc_metric metric, double *store, double *work) {
    t->referred = store;
    t->length = store + 1;
    t->reference = store + TRAJECTORY_SCALARS;
    hmc_attach(&t->hmc, target, metric, t->reference + target->size, work);
}

void trajectory_begin(struct trajectory *t, const double *unit, struct rng *rng) {
    *t->referred = 1;
    *t->length = LONGEST;
    copy(t, t->reference, t->here);
    hmc_start(&t->hmc, t->here, unit);
    if (hmc_refresh(&t->hmc)) hmc_find_step(&t->hmc, rng);
}

int trajectory_propose(struct trajectory *t, struct rng *rng, const double *energy, double *gain) {
    copy(t, t->hmc.q, t->here);
    t->told = (struct hmc_step){0};
    if (!hmc_refresh(&t->hmc)) return 0;
    const double before = *energy;
    hmc_fixed(&t->hmc, *t->length, MOST_STEPS, rng, &t->told);
    copy(t, t->there, t->hmc.q);
    if (memcmp(t->here, t->there, (size_t)t->hmc.target.size * sizeof(double)) == 0) return 0;
    (void)hmc_refresh(&t->hmc);
    *gain = before - *energy;
    return 1;
}

void trajectory_learn(struct trajectory *t, int iteration, int warmup, int moved,
                      double probability, int accepted, struct rng *rng) {
    copy(t, t->hmc.q, accepted ? t->there : t->here);
    if (!hmc_refresh(&t->hmc)) return;
    hmc_learn(&t->hmc, iteration, warmup, &t->told, rng);
    if (moved) {
        const double pace = 2 / (10 + sqrt(1.0 + iteration));
        const double length = *t->length * exp(pace * (probability - TARGET));
        *t->length = length > LONGEST ? LONGEST : length < SHORTEST ? SHORTEST : length;
    }
    if (hmc_window(iteration, warmup) == HMC_LAST) copy(t, t->reference, t->hmc.q);
}
