/* Priors of the number of records n, if it is unknown:
 *
 *   Poisson            n log a - log n!
 *   negative binomial  log Gamma(n + b) - log n! + n log(a / (a + b))
 *   uniform            0
 *   log-uniform        -log n
 *
 * up to constants, on the whole numbers from `lower` to `upper`. */
#include "contract/n_prior.h"

const char *const size_prior_names[SIZE_KINDS] = {"poisson", "negative_binomial", "uniform",
                                                  "log_uniform"};

void size_prior_set(struct size_prior *prior, enum size_prior_kind kind, const double *parameter) {
    *prior = (struct size_prior){.kind = kind,
                                 .a = parameter[0],
                                 .b = parameter[1],
                                 .lower = parameter[2],
                                 .upper = parameter[3]};
    if (kind == SIZE_NEGATIVE_BINOMIAL) dist_rising_set(&prior->rising, prior->b);
}

double size_prior_log(const struct size_prior *prior, double n) {
    if (!(n >= prior->lower && n <= prior->upper)) return -INFINITY;
    switch (prior->kind) {
    case SIZE_POISSON:
        return dist_log_poisson(n, prior->a);
    case SIZE_NEGATIVE_BINOMIAL:
        return dist_log_rising(&prior->rising, n) - n * log1p(prior->b / prior->a);
    case SIZE_LOG_UNIFORM:
        return -log(n);
    case SIZE_UNIFORM:
    case SIZE_KINDS:
        break;
    }
    return 0;
}
