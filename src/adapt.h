#ifndef NOISEAWARE_ADAPT_H
#define NOISEAWARE_ADAPT_H

#include "rng.h"

/* The learned parts of a random-walk proposal in `dim` coordinates, and how
 * often to make it. All of it lives in one vector of doubles, so that a state
 * can be saved and restored by copying. */
struct adapt {
    int dim;
    double *store;
    /* views into store */
    double *log_scale, *passes, *rho;
    double *given; /* the user said how many passes */
    double *count, *proposals, *sweeps; /* of the current window */
    double *mean, *scatter;             /* running moments of theta */
    double *chol;                       /* proposal's shape */
    double *jump_pass, *jump_sweep;     /* squared jumps of the current window */
    double *work;                       /* not part of the state's meaning */
};

size_t adapt_size(int dim);
void adapt_attach(struct adapt *adapt, int dim, double *store);

/* Starting shape: a diagonal of standard deviations. A negative number of
 * passes is to be learned. */
void adapt_start(struct adapt *adapt, const double *sd, double passes);

/* How many passes to make before the next sweep. */
int adapt_passes(const struct adapt *adapt, int learning);

/* step = scale * chol * normal */
void adapt_propose(struct adapt *adapt, struct rng *rng, double *step);

void adapt_scale(struct adapt *adapt, double acceptance_probability);
void adapt_observe(struct adapt *adapt, const double *theta);

/* Ends a window: new shape from the window's draws, new number of passes. */
void adapt_close_window(struct adapt *adapt);

/* Is iteration `at` (from 0) of a warmup the last one of a window? */
int adapt_window_ends(int at, int warmup);

#endif
