#ifndef NOISEAWARE_TOTALS_N_COORDINATE_H
#define NOISEAWARE_TOTALS_N_COORDINATE_H

#include "contract/n_prior.h"
#include "mcmc/n_regression_proposal.h"

/* An unknown number of records n with totals as coordinates; see totals/n_coordinate.c. */
struct totals_size {
    const struct size_prior *prior;
    double about, spread; /* n_0; sd of the starts of n about it */
    double least;         /* of n: one more than there are columns */
    int columns, size;    /* coordinates: the first `columns` are of totals */

    /* State: with these restored, a run continues bit for bit. */
    double *n, *centre, *width; /* log n as a window of warmup saw it; width 0: none has ended */
    double *between, *within; /* variances of a column before the release: of its mean, about it */
    struct size_slope linear, logarithmic;

    double *told; /* precision of the noise of a column's total; 0: it is not released */

    /* of n: coordinates are stretch (free + shift) where they are of totals, else free + shift */
    double log_volume, *stretch, *shift;
    double *place;     /* workspace: coordinates */
    const int *moving; /* 0, 1, ... */
};

void totals_size_create(struct totals_size *t, const struct size_prior *prior, double about,
                        double spread, int columns, int size);
size_t totals_size_stored(const struct totals_size *t);
void totals_size_attach(struct totals_size *t, double *store);

/* A new state: n, nothing learned. `pace`, for each column: what its total gains with a record at
 * first. t->told, t->between and t->within are there. */
void totals_size_start(struct totals_size *t, const double *pace, struct rng *rng);

/* How much of what is known of column j's total comes from its own release: from 0 to 1. */
double totals_size_told(const struct totals_size *t, int j);

/* What follows from n. */
void totals_size_set(struct totals_size *t, double n);

/* Free coordinates to the totals' coordinates, in t->place, and back. */
void totals_size_place(struct totals_size *t, const double *free);
void totals_size_free(const struct totals_size *t, const double *place, double *free);

/* log p(n) for n that is possible here; else -INFINITY */
double totals_size_log_prior(const struct totals_size *t, double n);

/* After an iteration of warmup that ended at such free coordinates: learns from it, and with
 * `closes` from the whole window; they are other ones then. */
void totals_size_learn(struct totals_size *t, int closes, double *free);

#endif
