/* Model "lm" with theta integrated out, for the density of totals (vignette "Algorithms",
 * "collapse").
 *
 * G = (X'X X'y; y'X y'y) + tau (Lambda_0 Lambda_0 mu_0; . mu_0'Lambda_0 mu_0), tau = 1 where the
 * prior of the coefficients is in units of sigma^2, else sigma^2. Swept by the coefficients it
 * holds -Lambda^-1, w = Lambda^-1 r and 2 b. Known coefficients: w is these, b = (-w, 1) (y'X
 * y'y)(-w, 1)' / 2. With v = (-w, 1) the derivative in G is -Lambda^-1 / 2 - slope v v' / 2, slope
 * = (a_0 + n/2) / (b_0 + b) with sigma integrated out, 1 / sigma^2 with it given; the first part
 * only where the coefficients are not known. Student-t and flat coefficients are not integrated
 * out: these, together with sigma, are treated as known and have their own derivatives.
 *
 * Cost: O(k^3) for k coefficients and the covariates' part. No allocation but in
 * lm_prepare_marginal(). */
#include "model/lm_parts.h"

#include "base/linalg.h"

/* Where entry (i, j) of G, i <= j, with the intercept as 0 and the response as k,
 * stands in c; 0 for the number of records, which does not. */
static int joint_at(const struct lm *lm, int i, int j) {
    const int k = lm->k, *of = lm->predictor.column, column = j == k ? 0 : of[j];
    if (i == 0) return j == 0 ? 0 : column;
    return moments_at(lm->moments.q, i == k ? 0 : of[i], column);
}

void lm_prepare_marginal(struct lm *lm) {
    const int k = lm->k;
    lm->joint.width = PAD_LANES(k + 1);
    const size_t width = (size_t)lm->joint.width, square = (size_t)(k + 1) * width;
    lm->joint.of = doubles(square);
    lm->joint.at = plugin_memory(square, sizeof(int));
    for (int i = 0; i <= k; ++i)
        for (int j = i; j <= k; ++j)
            lm->joint.at[(size_t)i * width + (size_t)j] = joint_at(lm, i, j);
    lm->joint.prior = doubles(square);
    lm->joint.sweep = doubles(2 * width);
    lm->joint.away = doubles(width);
    if (!lm->beta.precision) return;
    double *corner = lm->joint.prior + (size_t)k * width + (size_t)k;
    for (int i = 0; i < k; ++i) {
        const double *row = lm->beta.precision + (size_t)i * (size_t)k;
        double *out = lm->joint.prior + (size_t)i * width;
        for (int j = i; j < k; ++j) out[j] = row[j];
        out[k] = linalg_dot(k, row, lm->beta.mean);
        *corner += out[k] * lm->beta.mean[i];
    }
}

/* The derivative in the coefficients of -slope v'Gv / 2, G the upper triangle of `joint`. */
static void likelihood_slopes(const struct lm *lm, double slope, double *gradient) {
    const int k = lm->k;
    const double *v = lm->joint.away;
    for (int i = 0; i < k; ++i) {
        gradient[i] = 0;
        for (int j = 0; j <= k; ++j) {
            const int row = i < j ? i : j, column = i < j ? j : i;
            gradient[i] +=
                slope * lm->joint.of[(size_t)row * (size_t)lm->joint.width + (size_t)column] * v[j];
        }
    }
}

double lm_marginal(void *self, const double *c, double n, const double *theta, double *gradient_c,
                   double *gradient_kept) {
    struct lm *lm = self;
    const int k = lm->k, normal = lm->beta.prior == BETA_NORMAL;
    const double *beta = lm_reads_coefficients(lm) ? theta : lm->beta.known; /* NULL: integrated */
    const size_t width = (size_t)lm->joint.width;
    const double log_sigma = lm->sigma.known ? log(*lm->sigma.known) : theta[lm->sigma.at];
    const double variance = exp(2 * log_sigma), tau = normal ? variance : 1;
    double *joint = lm->joint.of, *v = lm->joint.away;
    const double *prior = lm->joint.prior;
    const int *at = lm->joint.at;
    memset(gradient_c, 0, (size_t)moments_size(lm->moments.q) * sizeof(double));
    double log_density = covariates_marginal(&lm->cov, c, n, gradient_c);

    for (int i = 0; i <= k; ++i) {
        const size_t row = (size_t)i * width;
        for (int j = i; j <= k; ++j)
            joint[row + (size_t)j] = c[at[row + (size_t)j]] + tau * prior[row + (size_t)j];
    }
    joint[0] = n + tau * prior[0];
    v[k] = 1;
    double twice; /* b, that is */
    if (beta) {
        for (int i = 0; i < k; ++i) v[i] = -beta[i];
        twice = 0;
        for (int i = 0; i <= k; ++i)
            for (int j = i; j <= k; ++j)
                twice += (i == j ? 1 : 2) * v[i] * v[j] * joint[(size_t)i * width + (size_t)j];
    } else {
        log_density -= 0.5 * linalg_sweep(k + 1, k, lm->joint.width, joint, lm->joint.sweep);
        for (int i = 0; i < k; ++i) v[i] = -joint[(size_t)i * width + (size_t)k];
        twice = joint[(size_t)k * width + (size_t)k];
    }
    if (!(twice > 0)) twice = 0; /* but for rounding */
    double slope;
    const double dimensions = n - (normal ? k : 0);
    if (lm->sigma.known || lm->sigma.kept) {
        slope = 1 / variance;
        log_density -= 0.5 * twice * slope + dimensions * log_sigma;
    } else {
        const double shape = lm->sigma.prior.a + 0.5 * n, rate = lm->sigma.prior.b + 0.5 * twice;
        slope = shape / rate;
        log_density -= shape * log(rate);
    }
    double along_tau = 0;
    for (int i = 0; i <= k; ++i) {
        const size_t row = (size_t)i * width;
        const double own = slope * v[i];
        for (int j = i; j <= k; ++j) {
            double value = -own * v[j];
            if (!beta && j < k) value += joint[row + (size_t)j];
            if (i == j) value *= 0.5;
            if (i + j > 0) gradient_c[at[row + (size_t)j]] += value;
            along_tau += value * prior[row + (size_t)j];
        }
    }
    if (lm_reads_coefficients(lm)) likelihood_slopes(lm, slope, gradient_kept);
    if (lm->beta.prior == BETA_STUDENT) {
        log_density += lm_student_density(lm, theta);
        lm_student_gradient(lm, theta, gradient_kept);
    }
    if (lm_reads_coefficients(lm)) gradient_kept += k;
    if (lm->sigma.kept) {
        double along = 0;
        if (!lm->sigma.flat)
            log_density += scale_prior_density(&lm->sigma.prior, log_sigma, &along);
        *gradient_kept =
            (normal ? 2 * variance * along_tau : 0) + twice * slope - dimensions + along;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

double lm_marginal_size(const void *self, double n) {
    const struct lm *lm = self;
    const int known = lm->sigma.known || lm->sigma.kept;
    return covariates_marginal_size(&lm->cov, n) - 0.5 * n * log(2 * M_PI) +
           (known ? 0 : lgamma(lm->sigma.prior.a + 0.5 * n));
}
