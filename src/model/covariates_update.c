/* The covariates' part of theta given records. Updates are conjugate: normal-inverse-Wishart for
 * mean and covariance, Dirichlet for levels.
 *
 * The prior of mean and sd may be truncated (Kazan & Reiter 2025): the joint distribution of both,
 * times the indicator that they are within bounds. Then draws are made from the conjugate
 * distribution until one is within them; after MOST_TRIES, slice sampling makes a step from the
 * current value. The probability of this depends on the records alone, and either step leaves
 * p(mean, cov | records) invariant.
 *
 * Of groups with one covariance (contract/model_pooled_scatter.h), what they have in common is
 * drawn once, then the mean of each.
 *
 * Cost: O(normal^3).
 */
#include "model/covariates_factors.h"
#include "model/covariates_independent.h"
#include "model/covariates_joint.h"

#include "base/linalg.h"
#include "base/slice.h"

enum { MOST_TRIES = 50 };

/* Of groups (contract/model_pooled_scatter.h): the covariance and the mean of all are drawn once
 * after set(), then the mean of each group that follows, so that the draws of all groups belong
 * together. */
static int update_pooled(struct covariates *cov, const double *c, double n, struct rng *rng,
                         double *theta) {
    struct pooled_covariates *pooled = &cov->pooled;
    const int p = cov->normal, stride = cov->marginal.stride;
    const size_t size = (size_t)(cov->at_sticks - cov->at_mean) * sizeof(double);
    if (!pooled->drawn) {
        struct niw *of = &cov->posterior;
        for (int i = 0; i < p; ++i)
            for (int j = 0; j <= i; ++j)
                of->scale_chol[(size_t)i * p + j] = pooled->scale[(size_t)j * stride + (size_t)i];
        if (linalg_cholesky(p, of->scale_chol)) return PLUGIN_NUMERICAL;
        of->df = pooled->df;
        of->kappa = pooled->weight;
        of->mean = pooled->mean;
        covariates_draw_niw(cov, of, rng, theta);
        memcpy(pooled->common, theta + cov->at_mean, size);
        pooled->drawn = 1;
    }
    memcpy(theta + cov->at_mean, pooled->common, size);
    covariates_unpack(cov, theta, cov->work.chol);
    const double own = n / (pooled->kappa + n), root = sqrt(pooled->kappa + n);
    for (int i = 0; i < p; ++i) cov->work.draw[i] = rng_normal(rng) / root;
    for (int i = 0; i < p; ++i) {
        const double average = c[cov->moment[i]] / n + cov->centre[cov->moment[i]];
        theta[cov->at_mean + i] +=
            own * (average - theta[cov->at_mean + i]) +
            linalg_dot(i + 1, cov->work.chol + (size_t)i * p, cov->work.draw);
    }
    return PLUGIN_OK;
}

/* The normal-inverse-Wishart distribution given n records. Its scale is the scatter about
 * the known mean, or about the average and the prior's mean. */
static int condition_niw(struct covariates *cov, const struct moments *moments, const double *c,
                         double n, const double *theta) {
    const int p = cov->normal;
    const struct niw *prior = &cov->prior;
    struct niw *posterior = &cov->posterior;
    const double *known = theta + cov->at_mean;
    double *average = cov->work.draw, *distance = cov->work.mean;
    for (int i = 0; i < p; ++i) {
        average[i] = c[cov->moment[i]] / n; /* centred */
        distance[i] =
            average[i] + cov->centre[cov->moment[i]] - (cov->mean ? known[i] : prior->mean[i]);
    }
    if (!cov->cov_chol) {
        const double weight = cov->mean ? n : prior->kappa * n / (prior->kappa + n);
        for (int i = 0; i < p; ++i) {
            for (int j = 0; j <= i; ++j) {
                const double *row = prior->scale_chol + (size_t)i * p;
                const double scatter = moments_product(moments, c, cov->moment[i], cov->moment[j]) -
                                       n * average[i] * average[j] +
                                       weight * distance[i] * distance[j];
                posterior->scale_chol[(size_t)i * p + j] =
                    linalg_dot(j + 1, row, prior->scale_chol + (size_t)j * p) + scatter;
            }
        }
    }
    if (!cov->cov_chol && linalg_cholesky(p, posterior->scale_chol)) return PLUGIN_NUMERICAL;
    posterior->df = prior->df + n;
    posterior->kappa = prior->kappa + n;
    for (int i = 0; i < p && !cov->mean; ++i)
        cov->work.mean[i] = prior->mean[i] + n * distance[i] / posterior->kappa;
    posterior->mean = cov->work.mean;
    return PLUGIN_OK;
}

static double cut_log_density(void *self, const double *theta) {
    struct covariates *cov = self;
    return covariates_is_within(cov, theta) ? covariates_niw_density(cov, &cov->posterior, theta)
                                            : -INFINITY;
}

/* A slice sampler's step for mean and cov. Widths are of the order of the
 * conjugate distribution's spread. */
static void slice_niw(struct covariates *cov, struct rng *rng, double *theta) {
    const int p = cov->normal;
    const struct niw *niw = &cov->posterior;
    int count = 0;
    for (int i = 0; i < p; ++i) {
        const double *row = (cov->cov_chol ? cov->cov_chol : niw->scale_chol) + (size_t)i * p;
        const double sd = sqrt(linalg_dot(i + 1, row, row) / (cov->cov_chol ? 1 : niw->df));
        if (!cov->mean) {
            cov->slice.visited[count] = cov->at_mean + i;
            cov->slice.width[count++] = 2 * sd / sqrt(niw->kappa);
        }
        for (int j = 0; j <= i && !cov->cov_chol; ++j) {
            cov->slice.visited[count] = cov->at_chol + covariates_packed(i, j);
            cov->slice.width[count++] = 2 * (j < i ? sd : 1) / sqrt(niw->df);
        }
    }
    slice_sweep(count, cov->slice.visited, cov->slice.width, cut_log_density, cov, rng, theta);
}

static void update_niw(struct covariates *cov, int cut, struct rng *rng, double *theta) {
    if (!cut) {
        covariates_draw_niw(cov, &cov->posterior, rng, theta);
        return;
    }
    const size_t size = (size_t)(cov->at_sticks - cov->at_mean) * sizeof(double);
    memcpy(cov->slice.theta + cov->at_mean, theta + cov->at_mean, size);
    for (int k = 0; k < MOST_TRIES; ++k) {
        covariates_draw_niw(cov, &cov->posterior, rng, cov->slice.theta);
        if (!covariates_is_within(cov, cov->slice.theta)) continue;
        memcpy(theta + cov->at_mean, cov->slice.theta + cov->at_mean, size);
        return;
    }
    slice_niw(cov, rng, theta);
}

int covariates_update(struct covariates *cov, const struct moments *moments, const double *c,
                      double n, int cut, struct rng *rng, double *theta) {
    const int own = !cov->joint || cov->joint->effects == 0;
    if (cov->pooled.used) {
        const int status = update_pooled(cov, c, n, rng, theta);
        if (status != PLUGIN_OK) return status;
    } else if (own && cov->normal > 0 && !(cov->mean && cov->cov_chol)) {
        const int status = condition_niw(cov, moments, c, n, theta);
        if (status != PLUGIN_OK) return status;
        update_niw(cov, cut && covariates_is_cut(cov), rng, theta);
    }
    if (!cov->joint)
        factors_update(&cov->factors, cov->centre, c, n, rng, theta);
    else if (joint_update(cov, c, n, rng, theta) != PLUGIN_OK)
        return PLUGIN_NUMERICAL;
    lones_update(&cov->lones, c, n, rng, theta);
    return PLUGIN_OK;
}
