/* Noisy answers of a response y that is 0 or 1, for any noise: with the densities f_0 and f_1 of
 * the answer given either, and P(y = 1 | eta) of one of the families of model/family_classes.c,
 *
 *   p(answer | eta) = f_0 P(y = 0 | eta) + f_1 P(y = 1 | eta).
 *
 * Randomised response has f_y = P(answer | y).
 *
 * Cost: two exponential functions and two logarithms or so per record. No allocation.
 */
#include "totals/noisy_answers.h"

static int binary_create(const struct fields *fields, struct noisy_answers *a) {
    a->zero = fields_vector(fields, "zero", a->records);
    a->one = fields_vector(fields, "one", a->records);
    a->family = family_create(fields);
    return a->zero && a->one && a->family && a->family->class->logs ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

static double binary_log_density(const struct noisy_answers *a, int first, int m, const double *eta,
                                 double *slope, double *of_shape) {
    const double *zero = a->zero + first, *one = a->one + first;
    double sum = 0;
    (void)of_shape;
    for (int i = 0; i < m; ++i) {
        double log_p[2], slopes[2];
        a->family->class->logs(eta[i], log_p, slopes);
        const double p0 = zero[i] * exp(log_p[0]), p1 = one[i] * exp(log_p[1]);
        sum += log(p0 + p1);
        slope[i] = (p0 * slopes[0] + p1 * slopes[1]) / (p0 + p1);
    }
    return sum;
}

/* a product of densities, whose logarithm is taken before it is lost */
static inline double flush(double *product, double factor) {
    static const double SMALL = 1e-250, TINY = 1e-40;
    double sum = 0;
    if (factor > TINY)
        *product *= factor;
    else
        sum = log(factor);
    if (*product < SMALL) {
        sum += log(*product);
        *product = 1;
    }
    return sum;
}

/* the same for the logistic function, which needs one exponential, and a logarithm for many
 * records */
static double logit_log_density(const struct noisy_answers *a, int first, int m,
                                const double *restrict eta, double *restrict slope,
                                double *of_shape) {
    const double *restrict zero = a->zero + first, *restrict one = a->one + first;
    double sum = 0, product = 1;
    (void)of_shape;
    for (int i = 0; i < m; ++i) {
        const double small = exp(-fabs(eta[i])), large = 1 / (1 + small);
        const double p1 = eta[i] > 0 ? large : small * large;
        const double p0 = eta[i] > 0 ? small * large : large;
        const double density = zero[i] * p0 + one[i] * p1;
        slope[i] = (one[i] - zero[i]) * p0 * p1 / density;
        sum += flush(&product, density);
    }
    return sum + log(product);
}

const struct noisy_answer_class noisy_answer_binary = {.create = binary_create,
                                                       .log_density = binary_log_density},
                                noisy_answer_logit = {.create = binary_create,
                                                      .log_density = logit_log_density};
