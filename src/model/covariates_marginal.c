/* The distribution of covariates (model/covariates_normal.c) with its parameters integrated out:
 * the log density of the complete-data statistic, up to a constant and the measure of the totals
 * (totals/density.c), and its gradient; and what groups of records have in common
 * (contract/model_pooled_scatter.h). Cost: O(normal^3).
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

/* Sums, and distances of averages from a centre */
static void find_averages(struct covariates *cov, const double *centre, const double *c, double n) {
    for (int i = 0; i < cov->normal; ++i) {
        cov->marginal.sum[i] = c[cov->moment[i]];
        cov->marginal.distance[i] =
            cov->marginal.sum[i] / n + cov->centre[cov->moment[i]] - centre[i];
    }
}

/* of a squared distance */
static double weight_of(double kappa, double n) { return kappa * n / (kappa + n); }

/* After find_averages(): the scatter about the average, plus the weighted square of the distance */
static void find_scatter(struct covariates *cov, const double *c, double n, double weight) {
    const int p = cov->normal, q = cov->q, width = cov->marginal.stride;
    double *a = cov->marginal.precision;
    for (int i = 0; i < p; ++i) {
        const int own = cov->moment[i];
        const double *product = c + moments_at(q, own, own) - own;
        double *row = a + (size_t)i * (size_t)width;
        for (int j = i; j < p; ++j) row[j] = product[cov->moment[j]];
    }
    add_outer(p, width, -1 / n, cov->marginal.sum, a);
    add_outer(p, width, weight, cov->marginal.distance, a);
}

/* `scale` holds Psi + Q, and minus its inverse afterwards. */
static double integrate_covariance(struct covariates *cov, double df, double *scale) {
    const int p = cov->normal;
    return -0.5 * df * linalg_sweep(p, p, cov->marginal.stride, scale, cov->marginal.sweep);
}

/* With Q the scatter about the average plus the weighted square of the average's
 * distance from the prior's (or the known) mean: -(df + n)/2 log |Psi + Q|, or
 * -tr(Sigma^-1 Q)/2 where Sigma is known. Either's derivative in Q is -A/2. Of what groups have in
 * common it is the derivative alone, at their mean, which is where the square is least. */
static double normal_marginal(struct covariates *cov, const double *c, double n, double *gradient) {
    const int p = cov->normal, q = cov->q, width = cov->marginal.stride, pooled = cov->pooled.used;
    const double kappa = pooled ? cov->pooled.kappa : cov->prior.kappa;
    const double weight = cov->mean ? n : weight_of(kappa, n);
    double *distance = cov->marginal.distance, *sum = cov->marginal.sum, log_density = 0, scale = 1;
    find_averages(cov, cov->mean ? cov->mean : pooled ? cov->pooled.mean : cov->prior.mean, c, n);
    const double *a = cov->marginal.known_precision; /* -A / scale, its upper triangle */
    if (pooled) {
        a = cov->pooled.minus;
        scale = cov->pooled.df;
    } else {
        find_scatter(cov, c, n, weight);
        if (cov->cov_chol) {
            log_density = 0.5 * linalg_trace_product(cov->normal, cov->marginal.stride, a,
                                                     cov->marginal.precision);
        } else {
            linalg_add_triangle(cov->normal, cov->marginal.stride, cov->marginal.prior_scale,
                                cov->marginal.precision);
            scale = cov->prior.df + n;
            log_density = integrate_covariance(cov, scale, cov->marginal.precision);
            a = cov->marginal.precision;
        }
    }
    if (isnan(log_density)) return -INFINITY;
    for (int i = 0; i < p; ++i) distance[i] = weight * distance[i] - sum[i];
    double *pull = sum;
    linalg_multiply_symmetric(p, width, a, distance, pull);
    for (int i = 0; i < p; ++i) {
        const double *row = a + (size_t)i * (size_t)width;
        const int own = cov->moment[i];
        double *product = gradient + moments_at(q, own, own) - own;
        product[own] += 0.5 * scale * row[i];
        for (int j = i + 1; j < p; ++j) product[cov->moment[j]] += scale * row[j];
        gradient[own] += scale / n * pull[i];
    }
    return log_density;
}

/* ---- what groups have in common: contract/model_pooled_scatter.h ---------------------------- */

/* prior of log kappa: the sd of the groups' means is 0.07 to 3.5 of the sd within groups */
static const double LOG_KAPPA_MEAN = 1.386294, LOG_KAPPA_SD = 2;

/* The sums: Psi + Q but for b b' / W, b, W and the log of the first factor, each followed by its
 * slope in log kappa. */
struct pooled_sums {
    double *square, *square_slope, *b, *b_slope, *rest;
};

enum { POOLED_WEIGHT, POOLED_WEIGHT_SLOPE, POOLED_LOG, POOLED_LOG_SLOPE, POOLED_REST };

static struct pooled_sums pooled_sums(const struct covariates *cov, double *sums) {
    const size_t width = (size_t)cov->marginal.stride, square = (size_t)cov->normal * width;
    double *b = sums + 2 * square;
    return (struct pooled_sums){sums, sums + square, b, b + width, b + 2 * width};
}

static void add_sums(void *self, double log_kappa, const double *c, double n, double *sums) {
    struct covariates *cov = self;
    const int p = cov->normal, width = cov->marginal.stride;
    const double *distance = cov->marginal.distance;
    const struct pooled_sums to = pooled_sums(cov, sums);
    const double kappa = exp(log_kappa), weight = weight_of(kappa, n), share = n / (kappa + n);
    find_averages(cov, cov->prior.mean, c, n);
    find_scatter(cov, c, n, weight);
    linalg_add_triangle(cov->normal, cov->marginal.stride, cov->marginal.precision, to.square);
    add_outer(p, width, weight * share, distance, to.square_slope);
    for (int i = 0; i < p; ++i) {
        to.b[i] += weight * distance[i];
        to.b_slope[i] += weight * share * distance[i];
    }
    to.rest[POOLED_WEIGHT] += weight;
    to.rest[POOLED_WEIGHT_SLOPE] += weight * share;
    to.rest[POOLED_LOG] += 0.5 * p * (log_kappa - log(kappa + n));
    to.rest[POOLED_LOG_SLOPE] += 0.5 * p * share;
}

/* The slope of Psi + Q in log kappa. Q is least at the common mean m_0 + m, so the mean stays fixed
 * and only the weights change. */
static void find_slope(const struct covariates *cov, const struct pooled_sums *of, const double *m,
                       double *slope) {
    for (int i = 0; i < cov->normal; ++i)
        for (int j = i; j < cov->normal; ++j) {
            const size_t at = (size_t)i * (size_t)cov->marginal.stride + (size_t)j;
            slope[at] = of->square_slope[at] - of->b_slope[i] * m[j] - of->b_slope[j] * m[i] +
                        of->rest[POOLED_WEIGHT_SLOPE] * m[i] * m[j];
        }
}

static double set_pooled(void *self, double log_kappa, const double *sums, double n, double others,
                         double *slope) {
    struct covariates *cov = self;
    struct pooled_covariates *pooled = &cov->pooled;
    const struct pooled_sums of = pooled_sums(cov, (double *)sums);
    const int p = cov->normal, width = cov->marginal.stride;
    const size_t square = (size_t)p * (size_t)width * sizeof(double);
    const double away = (log_kappa - LOG_KAPPA_MEAN) / LOG_KAPPA_SD;
    double *m = cov->marginal.distance;
    pooled->used = 1;
    pooled->drawn = 0;
    pooled->kappa = exp(log_kappa);
    pooled->weight = cov->prior.kappa + of.rest[POOLED_WEIGHT];
    pooled->df = cov->prior.df + n;
    pooled->others = others;
    for (int i = 0; i < p; ++i) {
        m[i] = of.b[i] / pooled->weight;
        pooled->mean[i] = cov->prior.mean[i] + m[i];
    }
    memcpy(pooled->scale, of.square, square);
    linalg_add_triangle(cov->normal, cov->marginal.stride, cov->marginal.prior_scale,
                        pooled->scale);
    add_outer(p, width, -pooled->weight, m, pooled->scale);
    memcpy(pooled->minus, pooled->scale, square);
    find_slope(cov, &of, m, pooled->slope);
    double log_density = integrate_covariance(cov, pooled->df, pooled->minus);
    log_density += of.rest[POOLED_LOG] - 0.5 * p * log(pooled->weight) - 0.5 * away * away;
    *slope =
        of.rest[POOLED_LOG_SLOPE] - away / LOG_KAPPA_SD -
        0.5 * p * of.rest[POOLED_WEIGHT_SLOPE] / pooled->weight +
        pooled->df * 0.5 *
            linalg_trace_product(cov->normal, cov->marginal.stride, pooled->minus, pooled->slope);
    return isnan(log_density) ? -INFINITY : log_density;
}

const struct model_pooled_scatter *covariates_offer_pooled(struct covariates *cov) {
    if (cov->normal == 0 || cov->mean || cov->cov_chol || cov->joint || covariates_is_cut(cov))
        return NULL;
    const int width = cov->marginal.stride, square = cov->normal * width;
    DOUBLES((size_t)square, &cov->pooled.scale, &cov->pooled.minus, &cov->pooled.slope);
    cov->pooled.mean = doubles((size_t)width);
    cov->pooled.common = doubles((size_t)(cov->at_sticks - cov->at_mean));
    cov->pooled_scatter = (struct model_pooled_scatter){.size = 2 * (square + width) + POOLED_REST,
                                                        .log_kappa = LOG_KAPPA_MEAN,
                                                        .add = add_sums,
                                                        .set = set_pooled};
    return &cov->pooled_scatter;
}

/* ---- all of them ---------------------------------------------------------------------------- */

double covariates_marginal(struct covariates *cov, const double *c, double n, double *gradient) {
    if (cov->joint && cov->joint->effects > 0) return joint_marginal(cov, c, n, gradient);
    const double factors =
        cov->joint ? 0 : factors_marginal(&cov->factors, cov->centre, c, n, gradient);
    return factors + (cov->normal > 0 ? normal_marginal(cov, c, n, gradient) : 0);
}

double covariates_marginal_size(const struct covariates *cov, double n) {
    const int p = cov->normal, pooled = cov->pooled.used;
    double log_part = cov->mean || pooled ? 0 : -0.5 * p * log(cov->prior.kappa + n);
    const double all = pooled ? cov->pooled.others + n : n;
    if (!cov->cov_chol)
        return log_part - 0.5 * n * p * log(M_PI) +
               dist_log_multigamma(p, 0.5 * (cov->prior.df + all));
    for (int i = 0; i < p; ++i) log_part -= n * log(cov->cov_chol[(size_t)i * p + i]);
    return log_part - 0.5 * n * p * log(2 * M_PI);
}
