#ifndef NOISEAWARE_SIZE_SLOPE_H
#define NOISEAWARE_SIZE_SLOPE_H

#include <stddef.h>

/* How theta goes with an unknown number of records n, see size_slope.c: views into a chain's state.
 */
struct size_slope {
    int moving;                            /* coordinates of theta that move */
    const int *moves;                      /* where they stand in theta */
    double *slope, *mean, *cross;          /* one each */
    double *count, *log_mean, *log_square; /* of log n */
    double *scale, *tries;                 /* of how many records a step adds or takes */
};

size_t size_slope_stored(int moving);
void size_slope_attach(struct size_slope *s, int moving, const int *moves, double *store);
void size_slope_start(struct size_slope *s);

/* theta_new = theta, its moving coordinates moved with log n by log_step */
void size_slope_follow(const struct size_slope *s, double log_step, const double *theta,
                       size_t parameters, double *theta_new);

/* A step was accepted with that probability: learns the scale, which is at most `most`. */
void size_slope_tried(struct size_slope *s, double log_ratio, double most);

/* What an iteration of warmup saw; at the end of a window the slope is renewed. */
void size_slope_saw(struct size_slope *s, double n, const double *theta);
void size_slope_close(struct size_slope *s);

#endif
