#ifndef NOISEAWARE_ADAPT_H
#define NOISEAWARE_ADAPT_H

#include "rng.h"

/* Shares of old innovations that a sweep may keep (see adapt.c). */
enum { REFRESHES = 6 };
extern const double adapt_refresh[REFRESHES];

/* The learned parts of a random-walk proposal in `dim` coordinates, how often
 * to make it, and how much of the records' innovations a sweep keeps. All of it
 * lives in one vector of doubles, so that a state is saved and restored by
 * copying. */
struct adapt {
    int dim;
    double *store;
    /* views into store */
    double *passes;    /* non-centred passes between two sweeps */
    double *given;     /* the user said how many */
    double *refresh;   /* index into adapt_refresh */
    double *temper;    /* exponent of the noise density, 1 after annealing */
    double *cooling;   /* log factor of temper from one iteration to the next */
    double *log_scale; /* of the proposal */
    /* sums of the current window */
    double *count, *proposals, *tries, *hits; /* tries, hits: per refresh */
    double *mean, *scatter;                   /* running moments of theta */
    double *jump_pass, *jump_sweep;           /* products of jumps, dim x dim */
    double *chol;                             /* shape of the proposal */
    double *work;                             /* not part of the state's meaning */
};

size_t adapt_size(int dim);
void adapt_attach(struct adapt *adapt, int dim, double *store);

/* Starting shape: a diagonal of standard deviations. A negative number of
 * passes is to be learned. */
void adapt_start(struct adapt *adapt, const double *sd, double passes);

/* Annealing from a start whose energy is that large over that many released
 * values. */
void adapt_anneal(struct adapt *adapt, double energy, double values, int warmup);
void adapt_cool(struct adapt *adapt);

/* How many passes to make before the next sweep, and which refresh to use. */
int adapt_passes(const struct adapt *adapt, int iteration, int learning);
int adapt_choose_refresh(const struct adapt *adapt, int iteration, int learning, struct rng *rng);

/* step = scale * chol * normal */
void adapt_propose(struct adapt *adapt, struct rng *rng, double *step);

/* What a window observes. */
void adapt_saw_pass(struct adapt *adapt, double probability, int accepted, const double *step);
void adapt_saw_sweep(struct adapt *adapt, int refresh, double accepted, const double *before,
                     const double *after);

/* Is iteration `at` (from 0) of a warmup the last one of a window? */
int adapt_window_ends(int at, int warmup);

/* New shape, number of passes and refresh from the window's sums. */
void adapt_close_window(struct adapt *adapt);

#endif
