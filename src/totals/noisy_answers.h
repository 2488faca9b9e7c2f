#ifndef NOISEAWARE_TOTALS_NOISY_ANSWERS_H
#define NOISEAWARE_TOTALS_NOISY_ANSWERS_H

#include "model/family.h"

/* Records each of whose responses is published with noise of its own, their covariates being
 * public: the density of what was published given the linear predictor eta, the confidential
 * response summed or integrated out. Each class has a file of its own. */

struct noisy_answers;

struct noisy_answer_class {
    /* Goal: what is needed of the records in addition to the fields, once; `shapes`, and
     * `predictors` where there are several. Returns PLUGIN_*. */
    int (*create)(const struct fields *fields, struct noisy_answers *a);

    /* Goal: these are the coordinates of the shape from now on. NULL: there are none. */
    void (*set)(struct noisy_answers *a, const double *coordinates);

    /* Goal: the sum of the log densities of the answers of records first, first + 1, ..., up to a
     * constant; slope[i] that of term i in eta, and of_shape[i] that in the shape's coordinate:
     * rows of MAX_BLOCK, one a predictor or a coordinate. */
    double (*log_density)(const struct noisy_answers *a, int first, int m, const double *eta,
                          double *slope, double *of_shape);
};

struct noisy_answers {
    const struct noisy_answer_class *class;
    const struct family *family; /* of a response that is 0 or 1; else NULL */
    int records, predictors;
    int shapes;  /* coordinates of what the response depends on apart from its predictors */
    int squared; /* the noise is Gaussian, weight one over its sd; else Laplace, over its scale */
    const double *answer, *weight;
    double lower, upper; /* the response is clamped to these */
    double shape;        /* a standard deviation or a coefficient of variation */

    const double *zero, *one;   /* of a binary response: the density of each answer given either */
    struct noisy_count *counts; /* totals/noisy_answers_counts.c */
    const struct noisy_count_family *count_family;
    struct noisy_levels *levels; /* totals/noisy_answers_levels.c */
    struct noisy_table *table;   /* totals/noisy_answers_tabulated.c */
};

/* Fields: response, the number of a class (totals/noisy_answers_classes.c); answer and
 * answer_weight, one a record; squared; response_bounds; and the class's own. Returns PLUGIN_*. */
int noisy_answers_create(const struct fields *fields, struct noisy_answers *a);

/* Where there are the fields group, one a record, and groups, how many, puts tables in place of the
 * class. Returns PLUGIN_*. */
int noisy_answers_tabulate(const struct fields *fields, struct noisy_answers *a);

/* log noise density at that distance, up to a constant */
static inline double noisy_answer_kernel(const struct noisy_answers *a, int i, double distance) {
    const double r = distance * a->weight[i];
    return a->squared ? -0.5 * r * r : -fabs(r);
}

/* of one shape, whose coordinate is its logarithm */
static inline void noisy_answer_set_shape(struct noisy_answers *a, const double *coordinates) {
    a->shape = exp(*coordinates);
}

extern const struct noisy_answer_class noisy_answer_logit, noisy_answer_binary,
    noisy_answer_poisson, noisy_answer_negative_binomial, noisy_answer_normal, noisy_answer_levels,
    noisy_answer_tabulated;

#endif
