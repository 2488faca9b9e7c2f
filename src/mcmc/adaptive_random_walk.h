#ifndef NOISEAWARE_MCMC_ADAPTIVE_RANDOM_WALK_H
#define NOISEAWARE_MCMC_ADAPTIVE_RANDOM_WALK_H

#include "base/rng.h"

/* Steps of a random walk, whose shape and length are learned in warmup; see
 * mcmc/adaptive_random_walk.c. */
struct walk {
    int size;

    /* What goes on from one step to the next, a vector of walk_stored(): log of the factor that
     * steps are made longer by; positions in the current window, and its length; the steps made and
     * accepted after learning; mean and scatter of the window's positions; the Cholesky factor of
     * the steps' covariance. */
    double *log_scale, *seen, *window, *made, *accepted, *mean, *scatter, *factor;

    double *z; /* workspace */
};

size_t walk_stored(int size);

/* Points into a state of that size; allocates the workspace. */
void walk_attach(struct walk *walk, int size, double *state);

/* A new state: steps as wide as `sd`, one for each coordinate. */
void walk_start(struct walk *walk, const double *sd);

void walk_propose(struct walk *walk, struct rng *rng, double *step);

/* What became of a proposal, from which warmup learns; and, there only, where the walk is. */
void walk_tried(struct walk *walk, int learning, double log_ratio, int accepted);
void walk_saw(struct walk *walk, const double *at);

#endif
