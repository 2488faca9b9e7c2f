/* Model "lm": the joint distribution of a record's numbers at the factors' first levels, x = mean +
 * C u, y = alpha + beta' x + sigma e, so that the last row of the factor is (beta' C, sigma); a
 * dummy adds its coefficient to the mean of y, and the effects of its level to those of x. Cost:
 * O(k^2).
 */
#include "model/lm_parts.h"

#include "model/covariates_joint.h"

#include "base/linalg.h"

void lm_distribution(void *self, const double *theta, double *mean, double *chol) {
    const struct lm *lm = self;
    const struct covariates *cov = &lm->cov;
    const int p = cov->normal, d = p + 1;
    double *last = chol + (size_t)p * d;
    mean[p] = theta[0];
    memset(last, 0, (size_t)p * sizeof(double));
    last[p] = exp(theta[lm->sigma.at]);
    covariates_distribution(cov, theta, d, mean, chol);
    const double *effect =
        cov->joint && cov->joint->effects > 0 ? theta + cov->joint->at_effects : NULL;
    for (int i = 0; i < p; ++i) {
        const double slope = theta[cov->column[i]];
        mean[i] -= cov->centre[cov->moment[i]];
        mean[p] += slope * mean[i];
        for (int j = 0; j <= i; ++j) last[j] += slope * chol[(size_t)i * d + j];
    }
    for (int f = 0; f < cov->factors.count; ++f)
        for (int l = 1; l < cov->factors.factor[f].levels; ++l) {
            mean += d;
            memset(mean, 0, (size_t)p * sizeof(double));
            mean[p] = theta[cov->factors.factor[f].first + l - 1];
            for (int i = 0; effect && i < p; ++i) {
                mean[i] = *effect++;
                mean[p] += theta[cov->column[i]] * mean[i];
            }
        }
}

/* y's row of the mean and of the factor is a combination of the others */
void lm_pull_distribution(void *self, const double *theta, const double *mean, const double *chol,
                          double *slope_mean, double *slope_chol, double *gradient) {
    const struct lm *lm = self;
    const struct covariates *cov = &lm->cov;
    const int p = cov->normal, d = p + 1;
    const double of_mean = slope_mean[p], *last = slope_chol + (size_t)p * d;
    gradient[0] += of_mean;
    gradient[lm->sigma.at] += last[p] * chol[(size_t)p * d + p];
    for (int i = 0; i < p; ++i) {
        const double *row = chol + (size_t)i * d, slope = theta[cov->column[i]];
        gradient[cov->column[i]] += of_mean * mean[i] + linalg_dot(i + 1, last, row);
        slope_mean[i] += slope * of_mean;
        for (int j = 0; j <= i; ++j) slope_chol[(size_t)i * d + j] += slope * last[j];
    }
    covariates_pull_distribution(cov, d, chol, slope_mean, slope_chol, gradient);
    for (int f = 0; f < cov->factors.count; ++f)
        for (int l = 1; l < cov->factors.factor[f].levels; ++l) {
            slope_mean += d;
            gradient[cov->factors.factor[f].first + l - 1] += slope_mean[p];
        }
}
