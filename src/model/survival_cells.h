/* Shared by the files of model "survival":
 *   model/survival.c        the cells' probabilities, the prior and their slopes;
 *   model/survival_shift.c  hazards that the data do not determine, with the intercept.
 */
#ifndef NOISEAWARE_MODEL_SURVIVAL_CELLS_H
#define NOISEAWARE_MODEL_SURVIVAL_CELLS_H

#include "model/hazard_process.h"
#include "model/records_of_cells.h"

enum baseline { EXPONENTIAL, WEIBULL, PIECEWISE, DISCRETE };

/* A hazard as survival_shift() sees it. */
struct place {
    int open; /* may it be drawn again? */
    struct growth_data data;
    double to, gap, gap_to; /* gap: log(L/l) */
};

struct survival {
    struct cell_records records; /* first: model/records_of_cells.h */
    enum baseline baseline;
    int groups, intervals, coefficients, rows; /* rows: of censoring */
    int intercept, processes;                  /* whether a_0 is there, and a process */
    struct hazard_process process;             /* of processes */
    const double *design;                      /* groups x coefficients, that of a_0 1 */
    struct {
        const double *mean, *sd; /* of the coefficients */
        const double *shape;     /* shape and rate of k's */
        const double *censoring; /* beta weights: of censored, of not */
        const double *share;     /* Dirichlet weights */
    } prior;
    int *row_of, *stratum_of;   /* of a group */
    struct place *place;        /* of strata x intervals */
    double log_last, *position; /* log L; log(b_j / L) */
    int at_base, at_censoring, at_share, parameters;

    struct {
        double *events, *censored, *stay, *size;
    } counts; /* of groups x intervals, and of groups */

    /* workspace: of intervals; of groups; of a group and interval's coordinates */
    double *log_base, *base_slope, *eta, *log_share, *value;
    int *list;
};

/* How people leave an interval, by the event, censored or not: log probabilities and their slopes
 * in log d and in the coordinate of g. */
struct leaving {
    double log_p[3], slope_d[3], slope_t[3];
};

/* Of those who enter an interval whose hazard grows by exp(log_d), with the coordinate t of
 * censoring. */
void survival_leave(const struct survival *s, double log_d, double t, struct leaving *out);

/* a_0, where there is one */
double survival_level(const struct survival *s, const double *theta);

/* Of a group: the coordinates of its censoring. */
const double *survival_censoring(const struct survival *s, const double *theta, int x);

/* The groups' linear predictors, in eta. */
void survival_predict(struct survival *s, const double *theta);

/* ---- model/survival_shift.c: of a beta process ---- */

/* Which hazards are open; after the counts are there. */
void survival_find_open(struct survival *s);

/* hooks */
void survival_shift(void *self, struct rng *rng, double *theta);
int survival_hold(void *self, const double *theta, unsigned char *held);

#endif
