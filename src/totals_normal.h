#ifndef NOISEAWARE_TOTALS_NORMAL_H
#define NOISEAWARE_TOTALS_NORMAL_H

#include "hmc.h"
#include "method_collapse.h"
#include "totals_density.h"
#include "totals_size.h"

/* What the files totals_normal*.c share; see totals_normal.c. */

/* What is exact of a column: the total's coordinate, and the total of its squares. */
struct normal_exact {
    int total, square;
    double mean;            /* T / sqrt(n) */
    double constant, slope; /* of the squares, in the mean */
};

struct normal {
    struct model model;
    struct totals_density density; /* its c is that of the state, where measure() was last */
    struct hmc hmc;
    const double *lower, *upper; /* bounds of the columns, natural units */
    double n;
    struct totals_size size;     /* size.prior NULL: n is known */
    struct component *component; /* unknown n: those of the density, their constants those of n */
    double *rate, *pace, *trial; /* these constants for each record; a column; a gradient */
    const double *released, *weight;
    int components; /* of the release: those of the density, then exact ones */
    struct rng *rng;
    double *theta;
    int leapfrogs; /* of the last iteration */

    /* With bounds that clamp: columns of Gamma, and how many; the release less Gamma u. */
    const double *spread;
    int directions;
    double *shifted;

    const struct normal_exact *exact; /* of each column; NULL: nothing is exact */
    double *exact_place;

    double *statistic, energy; /* of the state */

    /* workspace */
    double *old, *work;
    double *mean, *chol,
        *normal_draw; /* distribution of a record, in the order of the model's distribution */
    double *guess;    /* while starting */
    double *variance; /* of entries of c, while starting */
};

/* draws of theta that a start takes the median over */
enum { NORMAL_START_DRAWS = 25 };

static inline double *normal_doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static inline void normal_copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

/* what the family counts, beside the iterations */
enum { ITERATIONS, ACCEPTANCE, LEAPFROGS, DIVERGENT, DEEPEST, WITHIN, SIZE_MADE, SIZE_ACCEPTED };

int normal_coordinates(const struct normal *s);
void normal_attach(const struct collapse *of);

/* Of totals and of what is kept of theta, in the density's own coordinates. */
const double *normal_place(struct normal *s, const double *q);

/* less Gamma u, into `shifted` */
void normal_shift_release(struct normal *s, const double *u);

/* c, the released components and their misfit, of the state */
void normal_measure(struct normal *s);

/* Is a theta from the uncut distribution given the new totals within? Then it is the state's. */
int normal_is_within(struct normal *s);

/* ---- starts: totals_normal_start.c ---- */

void normal_start(struct collapse *of);

/* ---- exact totals: totals_normal_exact.c ---- */

int normal_prepare_exact(const struct collapse *of, struct normal *s);

/* the density's coordinates for those of the sampler */
const double *normal_exact_place(struct normal *s, const double *q);

/* Has the scatter where normal_exact_place() was last? */
int normal_exact_possible(const struct normal *s);

/* What the density gains, and the gradient in the sampler's coordinates from that in the density's.
 */
double normal_exact_pull(const struct normal *s, const double *q, double *gradient);

/* Makes a start of the sampler of one of the density, with scales. */
void normal_exact_start(const struct normal *s, double *q, double *unit);

/* ---- an unknown number of records: totals_normal_size.c ---- */

int normal_prepare_size(const struct fields *fields, const struct collapse *of, struct normal *s);
void normal_set_size(struct normal *s, double n);

/* Steps of n; the last thing of an iteration that moves the totals. */
void normal_move_sizes(struct collapse *of, int iteration, int warmup);

#endif
