#ifndef NOISEAWARE_ADAPT_H
#define NOISEAWARE_ADAPT_H

#include "rng.h"

/* Shares of old innovations that a sweep may keep (see adapt.c). */
enum { REFRESHES = 6 };
extern const double adapt_refresh[REFRESHES];

/* Proposals of a non-centred pass: a step from where theta is; a fresh draw
 * from what warmup saw of the posterior; the same in one group of coordinates. */
enum pass_kind { PASS_WALK, PASS_LEAP, PASS_GROUP_WALK, PASS_GROUP_LEAP, PASS_KINDS };

/* What adapt() learns from: the moving coordinates of theta, their groups (one
 * number a coordinate, 0, 1, ...), the length of the complete-data statistic. */
struct adapt_shape {
    int dim, groups, complete;
    const int *group;
};

/* The learned parts of the proposals, how often to make each, and how much of
 * the records' innovations a sweep keeps. All of it lives in one vector of
 * doubles, so that a state is saved and restored by copying. */
struct adapt {
    struct adapt_shape shape;
    double *store;
    /* views into store */
    double *passes;           /* of each kind between two sweeps */
    double *given;            /* how many in all, if the user said so; else -1 */
    double *refresh;          /* index into adapt_refresh, */
    double *share;            /* and the share of the sweeps that use it */
    double *temper;           /* exponent of the noise density, 1 after annealing */
    double *cooling;          /* log factor of temper from one iteration to the next */
    double *learned;          /* a window has seen the target itself */
    double *log_scale;        /* of the walk, then of the groups' steps */
    double *turn;             /* the groups whose turn it is to walk, to leap */
    double *swept, *explored; /* work of the sweeps so far, and of looking further */
    double *has_centre;       /* centre and chol come from a window */
    double *centre;           /* of a leap */
    double *chol;             /* shape of the proposals */
    double *group_chol;       /* the same, group by group */
    /* sums of the current window */
    double *count, *mean, *scatter;     /* running moments of theta */
    double *jump_sweep;                 /* products of a sweep's jumps, dim x dim */
    double *jump;                       /* of the passes', one kind after the other */
    double *proposals, *accepts, *work; /* per kind of pass */
    double *sweep_work;
    double *tries, *moved; /* per refresh: sweeps, and squared jumps of the statistic */
    double *looks, *complete_mean, *complete_scatter; /* its running moments */
    double *scratch;                                  /* not part of the state's meaning */
};

size_t adapt_size(const struct adapt_shape *shape);
void adapt_attach(struct adapt *adapt, const struct adapt_shape *shape, double *store);

/* Starting shape: a diagonal of standard deviations. A negative number of
 * passes is to be learned. */
void adapt_start(struct adapt *adapt, const double *sd, double passes);

/* Annealing from a start whose energy is that large over that many released
 * values. */
void adapt_anneal(struct adapt *adapt, double energy, double values, int warmup);
void adapt_cool(struct adapt *adapt);

/* Does iteration `at` of warmup look beyond what is chosen so far? */
int adapt_looks(const struct adapt *adapt, int at);

/* How many passes of each kind to make before the next sweep, and which refresh
 * that is to use. */
void adapt_plan(struct adapt *adapt, int looking, int count[PASS_KINDS]);
int adapt_choose_refresh(const struct adapt *adapt, int at, int looking, struct rng *rng);

/* A step from theta, both in moving coordinates. Returns the log ratio of the
 * proposal's densities, back over forth. */
double adapt_propose(struct adapt *adapt, enum pass_kind kind, const double *theta, struct rng *rng,
                     double *step);

/* What a window observes; `work` counts what it cost. */
void adapt_saw_pass(struct adapt *adapt, enum pass_kind kind, double probability, int accepted,
                    const double *step, double work);
void adapt_saw_sweep(struct adapt *adapt, const double *before, const double *after, double work);
void adapt_saw_refresh(struct adapt *adapt, int refresh, const double *before, const double *after);

/* Is iteration `at` (from 0) of a warmup the last one of a window? */
int adapt_window_ends(int at, int warmup);

/* New shape, numbers of passes and refresh from the window's sums; the shape
 * stays as it is at the end of warmup. */
void adapt_close_window(struct adapt *adapt, int end_of_warmup);

#endif
