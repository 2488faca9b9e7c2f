#ifndef NOISEAWARE_MODEL_FAMILY_H
#define NOISEAWARE_MODEL_FAMILY_H

#include "base/dist_polya_gamma.h"
#include "contract/plugin.h"

/* Families of responses of a generalised linear model: the distribution of y given the linear
 * predictor eta. See model/family_classes.c. */

enum { FAMILY_MEANS = 6, FAMILY_POWERS = 4 };

struct family_class;
struct family_nodes;

struct family {
    const struct family_class *class;
    double most;         /* a rate is never larger */
    double lower, upper; /* between which y is clamped, unless it is 0 or 1 */
    /* of those that have one: 1 / cv^2, and that to which a move goes (model/family_shaped.c) */
    double shape, shape_new;
    struct polya_gamma polya_gamma;

    /* of powers of clamped counts: model/family_counts.c */
    double edge[FAMILY_POWERS][FAMILY_MEANS][FAMILY_MEANS];
    struct family_nodes *nodes; /* what was computed already */
};

struct family_class {
    const char *name;         /* of R's field that asks for it */
    double cost, cost_latent; /* more than a logit's, and of latent(), in random normals */
    double cost_move;         /* of a move from one shape to another */
    int pseudo;               /* latent() draws pseudo-responses; else they are y - 1/2 */
    int shaped;               /* there is a coefficient of variation */
    int counts;               /* y is one */

    /* Goal: y of uniform numbers u, or drawn where quantiles would take long. */
    void (*draw)(const struct family *f, struct rng *rng, int m, const double *u, const double *eta,
                 double *y);

    /* Goal: y at eta_new. Where w is below `keep`, with the innovation of (eta, y), drawn
     * uniformly among those that it may have, else with a fresh one; w is used for either. */
    void (*respond)(const struct family *f, struct rng *rng, int m, double keep, const double *w,
                    const double *eta, const double *y, const double *eta_new, double *y_new);

    /* Goal: weights and pseudo-responses with which, given these, the coefficients have a normal
     * likelihood: sum over the records of pseudo eta - weight eta^2 / 2. NULL: there are none; the
     * coefficients walk by log_density. */
    void (*latent)(const struct family *f, struct rng *rng, int m, const double *eta,
                   const double *y, double *weight, double *pseudo);

    /* Goal: the sum of log f(y | eta), up to what neither eta nor the shape has a part in. */
    double (*log_density)(const struct family *f, int m, const double *eta, const double *y);

    /* Goal: log_density(), slope[i] that of term i in eta and weight[i] the information about eta,
     * as expected. Where there is a shape, of_cv[0]: the slope in log cv, of_cv[1]: about the
     * information about that. Where latent is NULL. */
    double (*curve)(const struct family *f, int m, const double *eta, const double *y,
                    double *slope, double *weight, double *of_cv);

    /* Goal: the logarithms of P(y = 0 | eta) and P(y = 1 | eta), and their slopes in eta. NULL: y
     * is not 0 or 1. */
    void (*logs)(double eta, double *log_p, double *slope);

    /* Goal: mean[k], k < FAMILY_MEANS: the mean of the derivative k of E(y | eta), over
     * eta ~ N(centre, sd^2). Of a clamped y about that, and k < 4. */
    void (*means)(const struct family *f, double centre, double sd, double *mean);

    /* Goal: about the same of E(y^2 | eta), k < 3, for the shape there is. NULL: y is 0 or 1. */
    void (*squares)(const struct family *f, double centre, double sd, double *mean);

    /* Goal: mean[(m - 1) * FAMILY_MEANS + k], k < FAMILY_MEANS + 1 - m: the mean of the derivative
     * k of E(y^m | eta), y clamped as family_clamp() was asked to. NULL: y is 0 or 1, or method
     * "clt" does not support the family. */
    void (*powers)(const struct family *f, double centre, double sd, double *mean);
};

/* The family of which there is a field: its largest rate and y's bounds, or 0 where y is 0 or 1.
 * NULL if there is none. */
struct family *family_create(const struct fields *fields);

/* With a shape: model/family_shaped.c. */
void family_negative_binomial_draw(const struct family *f, struct rng *rng, int m, const double *u,
                                   const double *eta, double *y);
void family_negative_binomial_respond(const struct family *f, struct rng *rng, int m, double keep,
                                      const double *w, const double *eta, const double *y,
                                      const double *eta_new, double *y_new);
double family_negative_binomial_log_density(const struct family *f, int m, const double *eta,
                                            const double *y);
void family_gamma_draw(const struct family *f, struct rng *rng, int m, const double *u,
                       const double *eta, double *y);
void family_gamma_respond(const struct family *f, struct rng *rng, int m, double keep,
                          const double *w, const double *eta, const double *y,
                          const double *eta_new, double *y_new);
double family_negative_binomial_curve(const struct family *f, int m, const double *eta,
                                      const double *y, double *slope, double *weight,
                                      double *of_cv);
double family_gamma_curve(const struct family *f, int m, const double *eta, const double *y,
                          double *slope, double *weight, double *of_cv);
double family_gamma_log_density(const struct family *f, int m, const double *eta, const double *y);

/* means() and squares(): model/family_means.c. */
void family_means_logit(const struct family *f, double centre, double sd, double *mean);
void family_means_probit(const struct family *f, double centre, double sd, double *mean);
void family_means_cloglog(const struct family *f, double centre, double sd, double *mean);
void family_means_log(const struct family *f, double centre, double sd, double *mean);
void family_squares_log(const struct family *f, double centre, double sd, double *mean);

/* Counts are clamped to [0, upper]: model/family_counts.c. */
void family_clamp(struct family *f, double upper);
void family_powers_poisson(const struct family *f, double centre, double sd, double *mean);

#endif
