/* theta given the records, for a model that has no rtheta(), or the coordinates that this leaves
 * to it: Metropolis steps with its dprior() and log_density(). See update_theta.c. */
#ifndef NOISEAWARE_UPDATE_THETA_H
#define NOISEAWARE_UPDATE_THETA_H

#include "plugin.h"

/* Column v of the records begins at x + v * stride; all columns are padded. */
struct record_columns {
    const double *x;
    ptrdiff_t n, stride;
};

struct theta_update {
    const struct model *model;

    /* What goes on from one call to the next, a vector of update_theta_size(): log of the
     * factor that steps are made longer by; iterations in the current window, and its
     * length; the steps made and accepted after learning; mean and scatter of the window's
     * theta; the Cholesky factor of the steps' covariance. */
    double *log_scale, *seen, *window, *made, *accepted, *mean, *scatter, *factor;

    /* workspace */
    double *theta_new, *z;
    const double **column;
};

/* How many coordinates walk: all that are unknown, or the first of theta. */
int update_theta_coordinates(const struct model *model);

/* Steps of one update: 0 if the model's rtheta() does all. */
int update_theta_steps(const struct model *model);
size_t update_theta_size(const struct model *model);

/* Points into a state of that size; allocates the workspace. */
void update_theta_attach(struct theta_update *update, const struct model *model, double *state);

/* A new state: steps as wide as `sd`, one for each of these coordinates. */
void update_theta_start(struct theta_update *update, const double *sd);

/* Moves theta by some steps; `learning`: and learns from them. Returns PLUGIN_*. */
int update_theta(struct theta_update *update, const struct record_columns *records, struct rng *rng,
                 int learning, double *theta);

#endif
