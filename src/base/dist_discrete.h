#ifndef NOISEAWARE_BASE_DIST_DISCRETE_H
#define NOISEAWARE_BASE_DIST_DISCRETE_H

#include "base/core.h"

/* A distribution on the integers with a real location: P(k) proportional to the density of its
 * continuous twin at k. All take scale > 0 and a finite location. */
struct discrete_distribution {
    /* log P(X = x); -infinity unless x is an integer */
    double (*log_density)(double x, double location, double scale);

    /* P(X <= x) if `lower`, else P(X > x); its log if `log_p` */
    double (*cumulative)(double x, double location, double scale, int lower, int log_p);

    /* The smallest integer whose cumulative() is at least p (`lower`), or at
     * most p: with the same flags, cumulative() and this are inverse. */
    double (*quantile)(double p, double location, double scale, int lower, int log_p);
};

extern const struct discrete_distribution dist_discrete_laplace, dist_discrete_gaussian;

#endif
