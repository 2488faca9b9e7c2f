/* The baseline of survival by interval, and its prior: a gamma or a beta process. */
#ifndef NOISEAWARE_MODEL_HAZARD_PROCESS_H
#define NOISEAWARE_MODEL_HAZARD_PROCESS_H

#include "base/rng.h"

/* How much a cumulative hazard grows in an interval, of which exp(-growth) stay. */
struct growth {
    double size, log;
    double missed; /* 1 - exp(-size) */
    double slope;  /* of the logarithm in its coordinate */
};

/* Of the coordinate t = logit(exp(-size)). */
struct growth growth_of_stick(double t);

/* log(1 - exp(-size)) */
double growth_log_missed(double log, double size);

/* size exp(-size) / (1 - exp(-size)): the slope of that in the logarithm of the size. */
double growth_slope_missed(double size);

struct hazard_process {
    int is_beta;         /* a beta process, not a gamma process */
    int sticks;          /* coordinates are logit(exp(-growth)), not log(growth / width) */
    int learned;         /* the means are exp(level + log_mean), not exp(log_mean) */
    int intervals, rows; /* rows: strata, each with a baseline of its own */
    const double *weight, *log_mean, *log_width; /* of an interval */
};

/* Of interval j, from its coordinate. */
struct growth hazard_growth(const struct hazard_process *process, int j, double coordinate);

/* What data say of an interval's hazard h under a beta process, about: so many came to the event,
 * and so many stayed, h^events (1 - h)^exposure, to which the process is conjugate. */
struct growth_data {
    double events, exposure;
};

/* Of a beta process: the log of that at a coordinate; the log of its integral over the prior; the
 * coordinate drawn from the prior given such data; and the log prior density of a coordinate, up to
 * what no level changes. */
double hazard_log_likelihood(const struct hazard_process *process, int j, double coordinate,
                             struct growth_data data);
double hazard_log_marginal(const struct hazard_process *process, int j, double level,
                           struct growth_data data);
double hazard_draw_given(const struct hazard_process *process, struct rng *rng, int j, double level,
                         struct growth_data data);
double hazard_log_increment(const struct hazard_process *process, int j, double level,
                            double coordinate);

/* Draws the coordinates of all rows. */
void hazard_draw(const struct hazard_process *process, struct rng *rng, double level, double *base);

/* The log prior density of the coordinates of all rows; slope and *slope_level += its slopes in
 * them and in the level, unless `slope` is NULL. */
double hazard_log_prior(const struct hazard_process *process, double level, const double *base,
                        double *slope, double *slope_level);

/* Lower triangle of a matrix with rows of `size`, whose coordinate 0 is the level and whose
 * coordinates from `at` on are the rows' own: += about the information of the prior. */
void hazard_add_information(const struct hazard_process *process, double level, const double *base,
                            int at, size_t size, double *matrix);

#endif
