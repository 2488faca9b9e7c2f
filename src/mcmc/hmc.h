#ifndef NOISEAWARE_MCMC_HMC_H
#define NOISEAWARE_MCMC_HMC_H

#include "base/rng.h"

/* Hamiltonian Monte Carlo on a plain function; see mcmc/hmc.c. */

/* What is sampled from: log density up to a constant, and its gradient, at q.
 * -INFINITY or NaN where there is no density; the gradient is then not looked at. It
 * may be that of another function nearby, a smoother one say: trajectories then follow
 * that, and are weighted by the density itself. */
struct hmc_target {
    int size;
    void *self;
    double (*log_density)(void *self, const double *q, double *gradient);

    /* Minus the second derivatives at q, or what is expected of them: rows of the lower triangle. A
     * dense metric is then their inverse, on average over positions, and is not learned from
     * draws, which have more than the target's own spread where that changes between
     * transitions. NULL: it is learned. */
    void (*information)(void *self, const double *q, double *out);
};

/* Of the momentum: one scale a coordinate, or a full matrix. */
enum hmc_metric { HMC_DIAGONAL, HMC_DENSE };

enum { HMC_MOST_DEPTH = 10 };

/* Mean acceptance probability that the step size is chosen for unless `target_accept` is set. */
#define HMC_TARGET_ACCEPT 0.8

/* What a transition reports about itself. */
struct hmc_step {
    double accept; /* mean acceptance probability along the trajectory */
    double energy; /* of the state that was drawn, with the momentum it had */
    int leapfrogs;
    int depth;     /* doublings of the trajectory */
    int divergent; /* did an energy error exceed 1,000? */
};

/* Position, momentum, gradient; the kinetic energy is half the squared momentum,
 * since the metric's factor is applied where position and momentum meet. */
struct hmc_point {
    double *q, *p, *gradient;
    double log_density, energy;
};

/* What a level of the recursion keeps while its second half is built. */
struct hmc_level {
    double *first_end, *last_begin, *first_sum, *last_sum;
    struct hmc_point last;
};

struct hmc {
    struct hmc_target target;
    enum hmc_metric metric;
    int width; /* size, padded */
    double target_accept;

    /* Where the last transition began, if the metric is learned from how far it led: of the caller,
     * who has moves that change the target. NULL: it is learned from positions. */
    const double *begun;

    /* views into the store: with it restored, a chain continues bit for bit */
    double *q;
    double *step_size;
    double *dual;   /* dual averaging, see mcmc/hmc.c */
    double *unit;   /* scale of each coordinate as it was known at the start */
    double *factor; /* F with F F' the inverse metric: a diagonal, or rows of a lower triangle */
    struct {
        double *count, *mean, *scatter;
    } window;                 /* the current one */
    double *learned, *length; /* transitions of NUTS since the last window, their mean length */

    /* follows from the store: hmc_refresh() */
    double log_density;
    double *gradient;

    /* workspace */
    struct hmc_point now, forward, backward, drawn, proposed;
    double *begin, *end, *sum; /* momenta at the ends of the subtree being added, and over it */
    double *total;             /* sum of momenta over the trajectory */
    double *scratch;
    struct hmc_level level[HMC_MOST_DEPTH];
    double start_energy, metropolis; /* of the current transition; probabilities, summed */
    struct hmc_step *told;
    struct rng *rng;
};

/* Doubles in the store, and in the workspace, which need not be kept. */
size_t hmc_stored(int size, enum hmc_metric metric);
size_t hmc_workspace(int size, enum hmc_metric metric);

/* Views of both; `work` is zero at first. */
void hmc_attach(struct hmc *hmc, const struct hmc_target *target, enum hmc_metric metric,
                double *store, double *work);

/* Lowers `unit` to each coordinate's standard deviation given the others where second differences
 * of the log density at q tell that it is less. `work` holds three times as many numbers. */
void hmc_lower_units(const struct hmc_target *target, const double *q, double *unit, double *work);

/* A new state at q. `unit`: a guess at each coordinate's standard deviation, where
 * adaptation begins; NULL: 1. Nothing is evaluated and no step size chosen yet. */
void hmc_start(struct hmc *hmc, const double *q, const double *unit);

/* Evaluates the target at the stored position: after hmc_attach(), and whenever the
 * target or q was changed from outside. Returns whether there is a density. */
int hmc_refresh(struct hmc *hmc);

/* A step size whose first step has an energy error near the log of `target_accept` (Hoffman &
 * Gelman 2014, Algorithm 4); dual averaging begins again from there. */
void hmc_find_step(struct hmc *hmc, struct rng *rng);

/* One transition of multinomial NUTS. */
void hmc_nuts(struct hmc *hmc, struct rng *rng, struct hmc_step *told);

/* One transition of Hamiltonian Monte Carlo with trajectories of about `length` in
 * units of the metric, jittered by half of that, at most `most` steps. Reversible. */
void hmc_fixed(struct hmc *hmc, double length, int most, struct rng *rng, struct hmc_step *told);

/* One such transition of about two steps of an eighth of the step size, for targets that change
 * between transitions: where one is much narrower than the metric, NUTS diverges and stays, and
 * this moves. */
void hmc_close(struct hmc *hmc, struct rng *rng, struct hmc_step *told);

/* What the counters of a method that makes such transitions hold, in this order; adds one. */
enum { HMC_TRANSITIONS, HMC_ACCEPTANCE, HMC_LEAPFROGS, HMC_DIVERGENT, HMC_DEEPEST };
#define HMC_COUNTER_NAMES(first) \
    [(first) + HMC_TRANSITIONS] = "transitions", [(first) + HMC_ACCEPTANCE] = "acceptance", \
               [(first) + HMC_LEAPFROGS] = "leapfrogs", [(first) + HMC_DIVERGENT] = "divergent", \
               [(first) + HMC_DEEPEST] = "deepest"
void hmc_count(double *counter, const struct hmc_step *told);

/* Learns from transition number `iteration` (from 0) of a warmup. After the last of
 * them nothing changes any more. `told` NULL: from where it led alone, not its step. */
void hmc_learn(struct hmc *hmc, int iteration, int warmup, const struct hmc_step *told,
               struct rng *rng);

/* How long NUTS made its trajectories, on average since the last window of warmup, in
 * units of the metric. */
double hmc_length(const struct hmc *hmc);

/* The metric's standard deviation of coordinate j. */
double hmc_deviation(const struct hmc *hmc, int j);

/* Does the window of warmup, in which positions are collected for the metric, hold
 * this iteration, and is it its last? */
enum hmc_window { HMC_OUTSIDE, HMC_INSIDE, HMC_LAST };
enum hmc_window hmc_window(int iteration, int warmup);

#endif
