#ifndef NOISEAWARE_MCMC_N_REGRESSION_PROPOSAL_H
#define NOISEAWARE_MCMC_N_REGRESSION_PROPOSAL_H

#include "base/rng.h"

/* Of h(n) in a window, see mcmc/n_regression_proposal.c: its mean, and sums of squares and cubes
 * about it. */
struct size_scale {
    double mean, square, cube;
};

enum { SIZE_SLOPE_SCALES = 3 };

/* How theta goes with an unknown number of records n, see mcmc/n_regression_proposal.c: views
 * into a chain's state.
 */
struct size_slope {
    int moving;                          /* coordinates of theta that move */
    const int *moves;                    /* where they stand in theta */
    double *slope, *mean, *cross;        /* one each */
    double *count, *at_mean, *at_square; /* of r(n) */
    double *scale, *tries;               /* of how many records a step adds or takes */
    double *centre, *width; /* of h(n) in a window, mean and sd; width 0: none has ended */
    double *chosen;         /* which h */
    struct size_scale *in;
};

size_t size_slope_stored(int moving);
void size_slope_attach(struct size_slope *s, int moving, const int *moves, double *store);
void size_slope_start(struct size_slope *s);

/* theta_new = theta, its moving coordinates moved with r(n), which grows by `step` */
void size_slope_follow(const struct size_slope *s, double step, const double *theta,
                       size_t parameters, double *theta_new);

/* Another n, next to n; or, where size_slope_knows(), from where warmup saw n. And the log density
 * of coming back over that of going there. */
double size_slope_walk(const struct size_slope *s, double n, struct rng *rng, double *log_back);
int size_slope_knows(const struct size_slope *s);
double size_slope_fresh(const struct size_slope *s, double n, struct rng *rng, double *log_back);

/* Where size_slope_knows(): the sd of log n, and of n, about. */
double size_slope_share(const struct size_slope *s);
double size_slope_spread(const struct size_slope *s);

/* A step was accepted with that probability: learns the scale, which is at most `most`. */
void size_slope_tried(struct size_slope *s, double log_ratio, double most);

/* What an iteration of warmup saw, `at` being r(n); at the end of a window the slope is renewed. */
void size_slope_saw(struct size_slope *s, double n, double at, const double *theta);
void size_slope_close(struct size_slope *s);

#endif
