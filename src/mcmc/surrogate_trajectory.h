#ifndef NOISEAWARE_MCMC_SURROGATE_TRAJECTORY_H
#define NOISEAWARE_MCMC_SURROGATE_TRAJECTORY_H

#include "mcmc/hmc.h"

/* What warmup sees of a move. `begun`, `ended`: work of the chain before and after it. */
struct trajectory_seen {
    int iteration, warmup;
    int moved, accepted;
    double probability; /* of acceptance */
    double begun, ended;
};

/* Trajectories that propose where records are to follow; see mcmc/surrogate_trajectory.c. */
struct trajectory {
    struct hmc hmc;
    struct hmc_step told; /* of the last trajectory */
    double *here, *there; /* coordinates of the state, and of the trajectory's end */

    /* Views into the store: with it restored, a chain continues bit for bit. */
    double *referred;  /* is there a reference? */
    double *length;    /* of a trajectory, in units of the metric */
    double *reference; /* coordinates; they stay once warmup is over */
    double *count;     /* of moves in a round */
    double *tally;     /* of the current window, see mcmc/surrogate_trajectory.c */
    double *by_moves;  /* squared jumps of each coordinate, sums: of the moves, */
    double *by_rest;   /* and of all else in a round */
    double *left;      /* where the last move left them */
};

enum { TRAJECTORY_SCALARS = 2, TRAJECTORY_TALLIES = 6 };

/* here, there and what hmc_attach() takes as workspace are the caller's, as is the store, of
 * trajectory_stored() doubles. */
size_t trajectory_stored(int size, enum hmc_metric metric);
void trajectory_attach(struct trajectory *t, const struct hmc_target *target,
                       enum hmc_metric metric, double *store, double *work);

/* The first reference is `here`; step size and metric begin there, with hmc_start()'s `unit`. */
void trajectory_begin(struct trajectory *t, const double *unit, struct rng *rng);

/* Runs one from `here`. Returns 0 if it ends there; *energy is a part of the target's energy that
 * each evaluation leaves there, *gain by how much it fell. */
int trajectory_propose(struct trajectory *t, struct rng *rng, const double *energy, double *gain);

/* How many moves a round is to have; at least one in warmup. */
int trajectory_count(const struct trajectory *t, int iteration, int warmup);

void trajectory_learn(struct trajectory *t, const struct trajectory_seen *seen, struct rng *rng);

#endif
