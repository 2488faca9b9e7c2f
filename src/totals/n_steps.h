#ifndef NOISEAWARE_TOTALS_N_STEPS_H
#define NOISEAWARE_TOTALS_N_STEPS_H

#include "totals/density.h"
#include "totals/n_coordinate.h"

/* Steps of an unknown number of records n with normal totals; see totals/n_steps.c. */

/* What a step of n holds, n being next to where it is or from where warmup saw it: the coordinates;
 * or c, measured from where the release measures columns; where bounds clamp, what is expected of
 * the clamped totals in place of c, and Gamma u. With a mean that is far from there in units of the
 * standard deviation the scatter of a known c shrinks fast as n falls, and coordinates bend. */
enum totals_step { TOTALS_WALK, TOTALS_FRESH, TOTALS_HELD, TOTALS_HELD_FRESH, TOTALS_STEPS };

struct totals_resize {
    const struct model *model; /* whose marginal_size() counts: of all records it knows of */
    struct totals_density *density;
    struct totals_size size;
    double others; /* records that are not among the n, but that the model's totals are of, too */
    double *pace;  /* what a column's total gains with a record if what it alone is part of stays */
    double *old;   /* workspace: coordinates before a step */
    double old_n, old_shift;
    int sigma; /* the coordinate of log sigma, which follows the residuals; -1: there is none */

    /* Where bounds clamp: columns of Gamma, whose u are the last coordinates, the weights of the
     * noise that moves c, and the variance that widens it in units of its own. `spread` and
     * `weight` are those for n as it is now, the others those for n as given. `widened` NULL:
     * nothing clamps. */
    int directions;
    const double *spread_given, *weight_given;
    double *spread, *weight, *widened;
    struct rng *rng;
};

/* With r->density, its components' weights among them, and r->model: `size` coordinates, with
 * the totals' first. Returns PLUGIN_*. */
int totals_resize_create(struct totals_resize *r, const struct size_prior *prior, double about,
                         double spread, int size);

/* After that, where bounds clamp, as the density knows: the weights of the noise that it widens,
 * and the `directions` columns of Gamma for n as given. From here on the density's weights are
 * r->weight. */
void totals_resize_clamp(struct totals_resize *r, const double *weight, const double *spread,
                         int directions);

/* A new state: n, nothing learned. size.between and size.within are there. `pace`: workspace of a
 * number a column. */
void totals_resize_start(struct totals_resize *r, double *pace);

void totals_resize_set(struct totals_resize *r, double n);

/* How many steps an iteration makes, and the kind of the k-th. */
int totals_resize_steps(const struct totals_resize *r);
enum totals_step totals_resize_kind(const struct totals_resize *r, int k);

/* Proposes: n and q are new ones. *log_ratio is the log of the acceptance ratio but for the
 * densities there over those before, in coordinates as they are given n. Returns 0 if it is not
 * possible. */
int totals_resize_propose(struct totals_resize *r, enum totals_step kind, double *q,
                          double *log_ratio);

/* The same for that n, however it was drawn: adds to *log_ratio. */
int totals_resize_go(struct totals_resize *r, enum totals_step kind, double n, double *q,
                     double *log_ratio);

/* After a proposal that was not accepted. */
void totals_resize_undo(struct totals_resize *r, double *q);

/* After a proposal: learns how far to go. */
void totals_resize_learn(struct totals_resize *r, enum totals_step kind, double log_ratio);

#endif
