/* theta given the records, for a model that has no rtheta(), or the coordinates that this leaves
 * to it: Metropolis steps with its dprior() and log_density(). See mcmc/theta_metropolis.c. */
#ifndef NOISEAWARE_MCMC_THETA_METROPOLIS_H
#define NOISEAWARE_MCMC_THETA_METROPOLIS_H

#include "base/newton_proposal.h"
#include "contract/model.h"
#include "mcmc/adaptive_random_walk.h"

/* Column v of the records begins at x + v * stride; all columns are padded. */
struct record_columns {
    const double *x;
    ptrdiff_t n, stride;
};

struct theta_update {
    const struct model *model;

    struct walk walk;
    struct newton newton; /* where the model has curve() */

    /* workspace */
    double *theta_new, *step, *complete;
    unsigned char *held, *held_there; /* by the model */
    const double **column;
};

/* How many coordinates walk: all that are unknown, or those that rtheta() leaves; and which these
 * are. */
int update_theta_coordinates(const struct model *model);
int update_theta_coordinate(const struct model *model, int j);

/* Whether the model's rtheta() leaves something to an update, and what that costs, in densities of
 * all records. */
int update_theta_is_needed(const struct model *model);
double update_theta_cost(const struct model *model);
size_t update_theta_size(const struct model *model);

/* Points into a state of that size; allocates the workspace. */
void update_theta_attach(struct theta_update *update, const struct model *model, double *state);

/* A new state: steps as wide as `sd`, one for each of these coordinates. */
void update_theta_start(struct theta_update *update, const double *sd);

/* The share of Newton proposals that was accepted after warmup; NaN where none was made. */
double update_theta_accepted(const struct theta_update *update);

/* The log density of all records of `sites`; needs model and column alone. */
double update_theta_density(struct theta_update *update, int sites,
                            const struct record_columns *records, const double *theta);

/* Moves theta, of all records of `sites`, by some steps; `learning`: and learns from them.
 * Returns PLUGIN_*. */
int update_theta(struct theta_update *update, int sites, const struct record_columns *records,
                 struct rng *rng, int learning, double *theta);

#endif
