#ifndef NOISEAWARE_CONTRACT_N_PRIOR_H
#define NOISEAWARE_CONTRACT_N_PRIOR_H

#include "base/dist.h"

/* What is believed of an unknown number of records n; see contract/n_prior.c. */

enum size_prior_kind {
    SIZE_POISSON,           /* mean a */
    SIZE_NEGATIVE_BINOMIAL, /* mean a, size b */
    SIZE_UNIFORM,
    SIZE_LOG_UNIFORM, /* p(n) proportional to 1 / n */
    SIZE_KINDS
};

extern const char *const size_prior_names[SIZE_KINDS];

struct size_prior {
    enum size_prior_kind kind;
    double a, b, lower, upper; /* n in lower..upper */
    struct dist_rising rising;
};

/* `parameter`: a and b, 0 where there is none, then lower and upper. */
void size_prior_set(struct size_prior *prior, enum size_prior_kind kind, const double *parameter);

/* Log mass at a whole number n, up to a constant; -INFINITY beyond lower..upper. */
double size_prior_log(const struct size_prior *prior, double n);

#endif
