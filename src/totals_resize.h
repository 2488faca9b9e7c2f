#ifndef NOISEAWARE_TOTALS_RESIZE_H
#define NOISEAWARE_TOTALS_RESIZE_H

#include "totals_density.h"
#include "totals_size.h"

/* Steps of an unknown number of records n beside normal totals; see totals_resize.c. */

/* What a step of n holds, n being next to where it is or from where warmup saw it: the coordinates;
 * or c, measured from where the release measures columns. With a mean that is far from there in
 * units of the standard deviation the scatter of a known c shrinks fast as n falls, and coordinates
 * bend. */
enum resize_kind { RESIZE_WALK, RESIZE_FRESH, RESIZE_HELD, RESIZE_HELD_FRESH };

struct totals_resize {
    const struct model *model; /* whose marginal_size() counts: of all records it knows of */
    struct totals_density *density;
    struct totals_size size;
    double others; /* records that are not among the n, but that the model's totals are of, too */
    double *pace;  /* what a column's total gains with a record if what it alone is part of stays */
    double *old;   /* workspace: coordinates before a step */
    double old_n;
    struct rng *rng;
};

/* With r->density, its components' weights among them, and r->model: `size` coordinates, those of
 * the totals first. Returns PLUGIN_*. */
int totals_resize_create(struct totals_resize *r, const struct size_prior *prior, double about,
                         double spread, int size);

/* A new state: n, nothing learned. size.between and size.within are there. `pace`: workspace of a
 * number a column. */
void totals_resize_start(struct totals_resize *r, double *pace);

void totals_resize_set(struct totals_resize *r, double n);

/* How many steps an iteration makes from `first` on, and the kind of the k-th. */
int totals_resize_steps(const struct totals_resize *r, int iteration, int learning, int *first);
enum resize_kind totals_resize_kind(const struct totals_resize *r, int iteration, int k);

/* Proposes: n and q are new ones. *log_ratio is the log of the acceptance ratio but for the
 * densities there over those before, in coordinates as they are given n. Returns 0 if it is not
 * possible. */
int totals_resize_propose(struct totals_resize *r, enum resize_kind kind, double *q,
                          double *log_ratio);

/* After a proposal that was not accepted. */
void totals_resize_undo(struct totals_resize *r, double *q);

/* After a proposal: learns how far to go. */
void totals_resize_learn(struct totals_resize *r, enum resize_kind kind, double log_ratio);

#endif
