#ifndef NOISEAWARE_MCMC_ADAPT_H
#define NOISEAWARE_MCMC_ADAPT_H

#include "base/rng.h"

/* Shares of old innovations that a sweep may keep (see mcmc/adapt_start.c). */
enum { REFRESHES = 6 };
extern const double adapt_refresh[REFRESHES];

/* Proposals of a non-centred pass: a step from where theta is; a fresh draw
 * from what warmup saw of the posterior; the same in one group of coordinates. */
enum pass_kind {
    PASS_WALK,
    PASS_LEAP,
    PASS_GROUP_WALK,
    PASS_GROUP_LEAP,
    PASS_KINDS,
    /* a walk that goes farther, across holes of the noise: learned from no window */
    PASS_FAR = PASS_KINDS
};

extern const char *const adapt_pass_names[PASS_KINDS];

/* What adapt() learns from: the moving coordinates of theta, their groups (one
 * number a coordinate, 0, 1, ...), the length of the complete-data statistic; and of the moving
 * coordinates the shape of a response, counted from 1; 0: there is none. */
struct adapt_shape {
    int dim, groups, complete;
    const int *group;
    int of_shape;
};

/* Work of a sweep: of visiting the records, the more of it where innovations are
 * kept; of what follows however few records were visited; and of seeing how far
 * it moved the complete-data statistic. */
struct adapt_costs {
    double visit, refresh, complete, look;
};

/* Sums of the current window. */
struct adapt_sums {
    double *count, *mean, *scatter; /* running moments of theta */
    double *jump_sweep;             /* products of a sweep's jumps, dim x dim */
    double *jump;                   /* of the passes', one kind after the other */
    double *proposals, *accepts;    /* per kind of pass */
    double *tries, *moved;          /* per refresh: sweeps, and squared jumps of the statistic */
    double *looks, *complete_mean, *complete_scatter; /* its running moments */
};

/* The learned parts of the proposals, how often to make each, and how much of
 * the records' innovations a sweep keeps. All of it lives in one vector of
 * doubles, so that a state is saved and restored by copying. */
struct adapt {
    struct adapt_shape shape;
    struct adapt_costs costs;
    int most_parts; /* that a sweep may have */
    double far;     /* log of how much farther such walks go at most; 0: there are none */
    double *store;
    /* views into store */
    double *passes;           /* of each kind between two sweeps */
    double *given;            /* how many in all, if the user said so; else -1 */
    double *refresh;          /* index into adapt_refresh, */
    double *share;            /* and the share of the sweeps that use it */
    double *parts;            /* iterations that a sweep is spread over after warmup */
    double *temper;           /* exponent of the noise density, 1 after annealing */
    double *cooling;          /* log factor of temper from one iteration to the next */
    double *pace, *credit;    /* sweeps that an iteration's passes may cost, and work earned so */
    double *log_scale;        /* of the walk, then of the groups' steps */
    double *turn;             /* the groups whose turn it is to walk, to leap */
    double *swept, *explored; /* work of the sweeps so far, and of looking further */
    double *trial;            /* iterations of warmup after annealing */
    double *price;            /* of a pass of each kind, lately */
    double *has_centre;       /* centre and chol come from a window */
    double *centre;           /* of a leap */
    double *chol;             /* shape of the proposals */
    double *group_chol;       /* the same, group by group */
    struct adapt_sums sums;
    double *scratch; /* not part of the state's meaning */
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

/* Does iteration `at` of warmup look beyond what is chosen so far, at passes and at
 * refreshes? */
int adapt_looks(const struct adapt *adapt, int at);
int adapt_tries_refresh(const struct adapt *adapt, int at);

/* How many passes of each kind to make before the next sweep, and which refresh
 * that is to use. */
void adapt_plan(struct adapt *adapt, int learning, int looking, int count[PASS_KINDS]);

/* Work of the passes of an iteration after warmup. */
double adapt_planned_work(const struct adapt *adapt);
int adapt_choose_refresh(const struct adapt *adapt, int at, int trying, struct rng *rng);

/* A step from theta, both in moving coordinates. Returns the log ratio of the
 * proposal's densities, back over forth. */
double adapt_propose(struct adapt *adapt, enum pass_kind kind, const double *theta, struct rng *rng,
                     double *step);

/* What a window observes; `work` counts what it cost. */
void adapt_saw_pass(struct adapt *adapt, enum pass_kind kind, double probability,
                    const double *step, double work);
void adapt_saw_sweep(struct adapt *adapt, const double *before, const double *after, double work);
void adapt_saw_refresh(struct adapt *adapt, int refresh, const double *before, const double *after);

/* What becomes of the window at the end of iteration `at` (from 0) of a warmup; with
 * windows that start again after annealing. */
enum window { WINDOW_GOES_ON, WINDOW_ENDS, LAST_WINDOW_ENDS, WARMUP_ENDS };
enum window adapt_window(int at, int warmup);
enum window adapt_window_after(const struct adapt *adapt, int at, int warmup);

/* New shape, numbers of passes and refresh from the window's sums. After the last
 * window shape and refresh stay; its sums go on to the end of warmup, where the
 * passes are chosen for good. */
void adapt_close_window(struct adapt *adapt, enum window window);

#endif
