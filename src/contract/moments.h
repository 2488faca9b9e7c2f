/* Contract of the moments of a record: the normal distribution of the totals, for "clt". See
 * contract/plugin.h. */
#ifndef NOISEAWARE_CONTRACT_MOMENTS_H
#define NOISEAWARE_CONTRACT_MOMENTS_H

#include "contract/coordinates.h"
#include "contract/plugin.h"

struct record_moments_class;

/* Mean and covariance, under theta, of what one record adds to a vector of
 * totals: first the `released` components of the statistic, t, then `aside`
 * ones that the model's complete-data statistic needs and t does not give. A
 * pair of a model and a release has one of these; it reads theta by the model's
 * description of its coordinates, and nothing else of the model. */
struct record_moments {
    const struct record_moments_class *class;
    void *self;
    int released;    /* components of t, in the units of the release */
    int aside;       /* 0 where the total of t determines the complete-data one */
    int complete;    /* length of the model's complete-data statistic */
    int innovations; /* that from_innovations() makes a total of */
};

struct record_moments_class {
    const char *name;
    /* `coordinates`: of the model whose theta eval() reads. */
    int (*create)(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments);

    /* mean: released + aside values; cov: a square matrix of that size, row by
     * row, both triangles; it may be singular. PLUGIN_NUMERICAL where they are
     * not finite. */
    int (*eval)(void *self, const double *theta, double *mean, double *cov);

    /* gradient += the gradient in theta, all coordinates, of the sum of means and of covariances
     * with these weights; those of covariances are a lower triangle of rows of released + aside.
     * NULL: differences, where they are needed. */
    void (*slopes)(void *self, const double *theta, const double *weight_mean,
                   const double *weight_cov, double *gradient);

    /* The total over n records, released and aside, that standard normal innovations u make:
     * n mean + sqrt(n) A u, A A' = cov, with what eval() gives at theta. NULL: the
     * method factors the covariance. */
    void (*from_innovations)(void *self, const double *theta, double n, const double *u,
                             double *total);
    /* u += weight A'r, with the A of the last from_innovations(); r is 0 for what is aside and has
     * the released components alone. */
    void (*pull)(void *self, double weight, const double *r, double *u);
    /* gradient += the gradient of r'total in theta, all coordinates, after from_innovations() with
     * the same theta, n and u; pull() with the weight sqrt(n) adds the gradient in u. NULL: no
     * gradients. */
    void (*gradient)(void *self, double n, const double *u, const double *r, double *gradient);

    /* The complete-data statistic that a total implies. Returns 1 if records can have it, else 0;
     * project() then moves it to one that they can have. Both NULL: totals do not determine what
     * the model's update needs. */
    int (*complete)(void *self, double n, const double *total, double *c);
    void (*project)(void *self, double n, double *c);

    /* Expected share of records outside the bounds. NULL: the moments know what
     * bounds do to records. */
    double (*outside)(void *self, const double *theta);
};

#endif
