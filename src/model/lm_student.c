/* Student-t priors of the coefficients of a linear regression; see model/lm.c. */
#include "model/lm_parts.h"

#include "base/linalg.h"

/* BETA_STUDENT: what has the t distributions, less their centres and in their scales. */
const double *lm_standardised(struct lm *lm, const double *theta) {
    double *r = lm->away_from_prior;
    for (int j = 0; j < lm->k; ++j) r[j] = theta[j] - lm->beta_mean[j];
    r[0] = linalg_dot(lm->k, lm->beta_first, r);
    for (int j = 0; j < lm->k; ++j) r[j] /= lm->beta_scale[j];
    return r;
}

double lm_student_density(struct lm *lm, const double *theta) {
    const double df = *lm->beta_df, *r = lm_standardised(lm, theta);
    double log_density = 0;
    for (int j = 0; j < lm->k; ++j) log_density -= 0.5 * (df + 1) * log1p(r[j] * r[j] / df);
    return log_density;
}

void lm_student_gradient(struct lm *lm, const double *theta, double *gradient) {
    const double df = *lm->beta_df, *r = lm_standardised(lm, theta);
    for (int j = 0; j < lm->k; ++j) {
        const double slope = (df + 1) * r[j] / (df + r[j] * r[j]) / lm->beta_scale[j];
        if (j > 0) gradient[j] -= slope;
        for (int i = 0; j == 0 && i < lm->k; ++i) gradient[i] -= slope * lm->beta_first[i];
    }
}
