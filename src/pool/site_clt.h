#ifndef NOISEAWARE_POOL_SITE_CLT_H
#define NOISEAWARE_POOL_SITE_CLT_H

#include "clt/clt.h"

/* A site whose totals have a normal distribution given its parameters; see pool/site_clt.c. */
struct pool_clt {
    struct clt *alone; /* the site's release, its records and their distribution */
    int parameters;    /* phi, those that are pooled */
    int size;          /* coordinates of the site other than phi */
    int *phi_at;       /* where phi stands among the coordinates of theta that move */
    int *own_at;       /* and where the others do, innovations behind them */

    /* Where the site's own mode has phi and all else; slopes of the latter in phi, a row for each
     * of them; rows of a lower triangle, packed. */
    const double *centre, *reference, *slope, *map;

    double *point, *point_slope, *own_slope; /* workspace */

    /* Where n is not known (pool/nuts_site_clt.c): n, a part of the state, and how what is the
     * site's own goes with it, phi as far as it varies and then q. */
    double *n;
    struct size_slope size_slope;
    const int *moves;     /* 0, 1, ... */
    double *place, *next; /* workspace: all that goes with n, as it is, and as it is proposed */
};

/* With `alone`, whose workspace is there: the rest, from the fields centre, reference, slope and
 * map. `place`: of phi in theta. Returns PLUGIN_*. */
int pool_clt_create(struct pool_clt *site, const struct fields *fields, int parameters,
                    const int *place);

/* Log density of the site's release and its coordinates q given phi, and its slopes. Absolute
 * kernels have theirs rounded within `rounded` of their kinks. Total and theta of the site are then
 * pool_clt_total() and pool_clt_theta(). */
double pool_clt_log(struct pool_clt *site, const double *phi, const double *q, double rounded,
                    double *slope_phi, double *slope_q);

const double *pool_clt_total(const struct pool_clt *site);
const double *pool_clt_theta(const struct pool_clt *site);

#endif
