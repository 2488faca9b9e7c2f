/* The distribution of covariates (model/covariates_normal.c) with its parameters integrated out:
 * the log density of the complete-data statistic, up to a constant and the measure of the totals
 * (totals/density.c), and its gradient. Cost: O(normal^3).
 */
#include "model/covariates_factors.h"
#include "model/covariates_joint.h"

#include "base/dist.h"
#include "base/linalg.h"

#include <Rmath.h>
#undef df /* the name of a field here */

/* upper triangle of a += weight x x', p rows of `width`; what is left of it in its lanes changes
 * too
 */
VECTOR_CLONES static void add_outer(int p, int width, double weight, const double *restrict x,
                                    double *restrict a) {
    for (int i = 0; i < p; ++i) {
        double *row = a + (size_t)i * width;
        const double by = weight * x[i];
        for (int j = i & ~(LANES - 1); j < width; j += LANES)
            for (int l = 0; l < LANES; ++l) row[j + l] += by * x[j + l];
    }
}

/* With Q the scatter about the average plus the weighted square of the average's
 * distance from the prior's (or the known) mean: -(df + n)/2 log |Psi + Q|, or
 * -tr(Sigma^-1 Q)/2 where Sigma is known. Either's derivative in Q is -A/2. */
static double normal_marginal(struct covariates *cov, const double *c, double n, double *gradient) {
    const int p = cov->normal, q = cov->q;
    const size_t width = (size_t)cov->marginal.stride;
    const double *centre = cov->mean ? cov->mean : cov->prior.mean;
    const double weight = cov->mean ? n : cov->prior.kappa * n / (cov->prior.kappa + n);
    double *distance = cov->marginal.distance, *sum = cov->marginal.sum, log_density = 0, scale = 1;
    for (int i = 0; i < p; ++i) {
        sum[i] = c[cov->moment[i]];
        distance[i] = sum[i] / n + cov->centre[cov->moment[i]] - centre[i];
    }
    double *a = cov->marginal.precision;
    for (int i = 0; i < p; ++i) {
        const int own = cov->moment[i];
        const double *product = c + moments_at(q, own, own) - own;
        double *row = a + (size_t)i * width;
        for (int j = i; j < p; ++j) row[j] = product[cov->moment[j]];
    }
    add_outer(p, (int)width, -1 / n, sum, a);
    add_outer(p, (int)width, weight, distance, a);
    if (cov->cov_chol) {
        const double *known = cov->marginal.known_precision; /* minus the inverse */
        for (int i = 0; i < p; ++i)
            for (int j = i; j < p; ++j) {
                const size_t at = (size_t)i * width + (size_t)j;
                log_density += (i == j ? 0.5 : 1) * known[at] * a[at];
            }
        a = cov->marginal.known_precision;
    } else {
        for (int i = 0; i < p; ++i)
            for (int j = i; j < p; ++j)
                a[(size_t)i * width + (size_t)j] +=
                    cov->marginal.prior_scale[(size_t)i * width + (size_t)j];
        scale = cov->prior.df + n;
        log_density = -0.5 * scale * linalg_sweep(p, p, (int)width, a, cov->marginal.sweep);
        if (isnan(log_density)) return -INFINITY;
    }
    /* a holds -A / scale, its upper triangle */
    for (int i = 0; i < p; ++i) distance[i] = weight * distance[i] - sum[i];
    double *pull = sum;
    linalg_multiply_symmetric(p, (int)width, a, distance, pull);
    for (int i = 0; i < p; ++i) {
        const double *row = a + (size_t)i * width;
        const int own = cov->moment[i];
        double *product = gradient + moments_at(q, own, own) - own;
        product[own] += 0.5 * scale * row[i];
        for (int j = i + 1; j < p; ++j) product[cov->moment[j]] += scale * row[j];
        gradient[own] += scale / n * pull[i];
    }
    return log_density;
}

double covariates_marginal(struct covariates *cov, const double *c, double n, double *gradient) {
    if (cov->joint && cov->joint->effects > 0) return joint_marginal(cov, c, n, gradient);
    const double factors =
        cov->joint ? 0 : factors_marginal(&cov->factors, cov->centre, c, n, gradient);
    return factors + (cov->normal > 0 ? normal_marginal(cov, c, n, gradient) : 0);
}

double covariates_marginal_size(const struct covariates *cov, double n) {
    const int p = cov->normal;
    double log_part = cov->mean ? 0 : -0.5 * p * log(cov->prior.kappa + n);
    if (!cov->cov_chol)
        return log_part - 0.5 * n * p * log(M_PI) +
               dist_log_multigamma(p, 0.5 * (cov->prior.df + n));
    for (int i = 0; i < p; ++i) log_part -= n * log(cov->cov_chol[(size_t)i * p + i]);
    return log_part - 0.5 * n * p * log(2 * M_PI);
}
