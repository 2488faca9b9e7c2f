/* Student-t priors of the coefficients of a linear regression; see model/lm.c. */
#include "model/lm_parts.h"

#include "base/dist.h"
#include "base/linalg.h"

/* BETA_STUDENT: what has the t distributions, less their centres and in their scales. */
const double *lm_standardised(struct lm *lm, const double *theta) {
    double *r = lm->away_from_prior;
    for (int j = 0; j < lm->k; ++j) r[j] = theta[j] - lm->beta.mean[j];
    r[0] = linalg_dot(lm->k, lm->beta.first, r);
    for (int j = 0; j < lm->k; ++j) r[j] /= lm->beta.scale[j];
    return r;
}

double lm_student_density(struct lm *lm, const double *theta) {
    const double df = *lm->beta.df, *r = lm_standardised(lm, theta);
    double log_density = 0;
    for (int j = 0; j < lm->k; ++j) log_density -= 0.5 * (df + 1) * log1p(r[j] * r[j] / df);
    return log_density;
}

void lm_student_gradient(struct lm *lm, const double *theta, double *gradient) {
    const double df = *lm->beta.df, *r = lm_standardised(lm, theta);
    for (int j = 0; j < lm->k; ++j) {
        const double slope = (df + 1) * r[j] / (df + r[j] * r[j]) / lm->beta.scale[j];
        if (j > 0) gradient[j] -= slope;
        for (int i = 0; j == 0 && i < lm->k; ++i) gradient[i] -= slope * lm->beta.first[i];
    }
}

void lm_student_draw(struct lm *lm, struct rng *rng, double *theta) {
    const double df = *lm->beta.df;
    double first = 0;
    for (int j = lm->k - 1; j >= 0; --j) {
        const double log_weight = log(2 / df) + dist_log_gamma(rng, 0.5 * df);
        const double away = lm->beta.scale[j] * rng_normal(rng) * exp(-0.5 * log_weight);
        theta[j] = lm->beta.mean[j] + (j > 0 ? away : away - first);
        first += lm->beta.first[j] * away;
    }
}

const double *lm_student_precision(struct lm *lm, struct rng *rng, const double *theta) {
    const int k = lm->k;
    const double df = *lm->beta.df, *r = lm_standardised(lm, theta);
    double first = 0;
    memset(lm->student, 0, (size_t)k * (size_t)k * sizeof(double));
    for (int j = 0; j < k; ++j) {
        const double weight = dist_gamma(rng, 0.5 * (df + 1)) / (0.5 * (df + r[j] * r[j]));
        const double precision = weight / (lm->beta.scale[j] * lm->beta.scale[j]);
        if (j == 0)
            first = precision;
        else
            lm->student[(size_t)j * (size_t)k + (size_t)j] = precision;
    }
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j)
            lm->student[(size_t)i * (size_t)k + (size_t)j] +=
                first * lm->beta.first[i] * lm->beta.first[j];
    return lm->student;
}
