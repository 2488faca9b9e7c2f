/* Model "lm": coefficients and sigma given the complete-data statistic; see model/lm.c. Cost
 * O(k^3). */
#include "model/lm_parts.h"

#include "base/dist.h"
#include "base/linalg.h"

/* X'X, X'y, y'y of the centred regression, weighted where errors have weights, read from c */
static double gram_entry(const struct lm *lm, const double *c, double n, int a, int b) {
    if (lm->errors) return errors_gram(lm->errors, c, lm->k, a, b);
    const int i = lm->predictor.column[a], j = lm->predictor.column[b];
    if (i == 0) return j == 0 ? n : c[j];
    return j == 0 ? c[i] : moments_product(&lm->moments, c, i, j);
}

static double gram_response(const struct lm *lm, const double *c, int a) {
    if (lm->errors) return errors_response(lm->errors, c, lm->k, a);
    const int i = lm->predictor.column[a];
    return i == 0 ? c[0] : moments_product(&lm->moments, c, 0, i);
}

static double gram_square(const struct lm *lm, const double *c) {
    return lm->errors ? errors_square(lm->errors, c, lm->k)
                      : moments_product(&lm->moments, c, 0, 0);
}

int lm_update_regression(struct lm *lm, const double *c, double n, struct rng *rng, double *theta) {
    const int k = lm->k;
    double log_sigma = theta[lm->sigma.at];
    if (!lm->beta.known) {
        /* NIG works in units of sigma^2, the independent normal does not */
        const int nig = lm->beta.prior == BETA_NIG;
        const double weight = nig ? 1 : exp(-2 * log_sigma);
        const double *all = lm->beta.prior == BETA_STUDENT ? lm_student_precision(lm, rng, theta)
                                                           : lm->beta.precision;
        double prior_square = 0;
        for (int i = 0; i < k; ++i) {
            double pull = 0;
            for (int j = 0; j < k; ++j) {
                const double precision = all[(size_t)i * k + j];
                lm->gram[(size_t)i * k + j] = weight * gram_entry(lm, c, n, i, j) + precision;
                pull += precision * lm->beta.mean[j];
            }
            prior_square += pull * lm->beta.mean[i];
            lm->solution[i] = weight * gram_response(lm, c, i) + pull;
        }
        if (linalg_cholesky(k, lm->gram)) return PLUGIN_NUMERICAL;
        linalg_forward(k, lm->gram, lm->solution);
        if (nig && !lm->sigma.known) {
            /* mu_n' Lambda_n mu_n is the squared length of L^-1 of the right side */
            const double excess =
                gram_square(lm, c) + prior_square - linalg_dot(k, lm->solution, lm->solution);
            /* never below b_0 but for rounding */
            log_sigma =
                scale_prior_update(&lm->sigma.prior, n, excess > 0 ? excess : 0, rng, log_sigma);
            theta[lm->sigma.at] = log_sigma;
        }
        linalg_backward(k, lm->gram, lm->solution);
        dist_normal_precision(rng, k, lm->solution, nig ? exp(log_sigma) : 1, lm->gram, theta);
    }
    if (!lm->sigma.known && lm->beta.prior != BETA_NIG) {
        double residual = gram_square(lm, c);
        for (int i = 0; i < k; ++i) {
            residual -= 2 * theta[i] * gram_response(lm, c, i);
            for (int j = 0; j < k; ++j)
                residual += theta[i] * theta[j] * gram_entry(lm, c, n, i, j);
        }
        theta[lm->sigma.at] =
            scale_prior_update(&lm->sigma.prior, n, residual > 0 ? residual : 0, rng, log_sigma);
    }
    return PLUGIN_OK;
}
