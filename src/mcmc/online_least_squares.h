#ifndef NOISEAWARE_MCMC_ONLINE_LEAST_SQUARES_H
#define NOISEAWARE_MCMC_ONLINE_LEAST_SQUARES_H

#include "base/core.h"

/* A linear function of coordinates, learned by least squares; see mcmc/online_least_squares.c. */

/* More coordinates than these have none: the state would outgrow the records. */
enum { TILT_MOST = 128 };

struct tilt {
    int size, values;
    /* Views into the store. */
    double *slope;           /* values x size */
    double *learned;         /* are there slopes? */
    double *seen;            /* pairs */
    double *scatter, *cross; /* size x size, lower triangle; values x size */
    double *work;
};

size_t tilt_stored(int size, int values);
size_t tilt_workspace(int size);
void tilt_attach(struct tilt *tilt, int size, int values, double *store, double *work);

void tilt_start(struct tilt *tilt);

/* A pair: a change of the coordinates, and what it did to the values. */
void tilt_add(struct tilt *tilt, const double *change, const double *response);

/* The slopes from the pairs so far, which are forgotten then. Too few of them leave all as it
 * is. */
void tilt_solve(struct tilt *tilt);
void tilt_forget(struct tilt *tilt);

/* out = value - slope (q - at), and gradient += slope' force. */
void tilt_correct(const struct tilt *tilt, const double *q, const double *at, const double *value,
                  double *out);
void tilt_pull(const struct tilt *tilt, const double *force, double *gradient);

#endif
