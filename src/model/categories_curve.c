/* Slopes and expected information of the own part of model "categories" (model/categories.c), for
 * Newton proposals given records (base/newton_proposal.c) and for tables (model/glm_as_table.c).
 *
 * With a and b predictors, or cuts' coordinates, of a record whose level l has the probability p_l,
 * the expected information of the pair is sum_l p_l (d log p_l / da) (d log p_l / db); coefficients
 * enter the predictors linearly.
 *
 * Cost: O(tails^2 (levels + slopes^2)) per record.
 */
#include "model/categories_response.h"

#include "base/linalg.h"

/* where slope j of a predictor is, 0 its constant */
static int at_coefficient(const struct graded *s, int e, int j) {
    return j == 0 ? graded_constant(s, e) : graded_slopes(s, e) + j - 1;
}

/* Rows of s->slope: slopes of each record in the predictors, then in the cuts' coordinates; of
 * s->weight: what is expected of their products, pair by pair. */
static double find_slopes(struct graded *s, int m) {
    const int tails = s->response.tails;
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        for (int e = 0; e < s->response.predictors; ++e)
            s->point[e] = s->eta[(size_t)e * MAX_BLOCK + i];
        graded_cell_logs(s, s->point, s->log_p, s->level_slope);
        const int y = (int)s->now.level[i];
        const double *own = s->level_slope + (size_t)y * tails;
        double *weight = s->weight + i;
        sum += s->log_p[y];
        for (int a = 0; a < tails; ++a) s->slope[(size_t)a * MAX_BLOCK + i] = own[a];
        for (int l = 0; l <= tails; ++l) s->log_p[l] = exp(s->log_p[l]);
        for (int a = 0; a < tails; ++a)
            for (int b = 0; b <= a; ++b, weight += MAX_BLOCK) {
                const double *slope = s->level_slope;
                *weight = 0;
                for (int l = 0; l <= tails; ++l, slope += tails)
                    *weight += s->log_p[l] * slope[a] * slope[b];
            }
    }
    return sum;
}

/* Of a pair of coordinates of the response, and all coefficients that these are made of. */
static void add_pair(struct graded *s, int a, int b, int m, const double *weight, double *matrix) {
    const int predictors = s->response.predictors, k = 1 + s->slopes;
    const size_t size = (size_t)s->own;
    double *sum = s->sums;
    memset(sum, 0, (size_t)k * (size_t)(k + 1) / 2 * sizeof(double));
    if (a >= predictors && b >= predictors) {
        matrix[(size_t)a * size + (size_t)b] += block_sum(m, weight);
    } else if (a >= predictors) {
        predictor_add_sums(&s->predictor, &s->moments, m, weight, sum);
        for (int j = 0; j < k; ++j)
            linalg_add_below(matrix, size, a, at_coefficient(s, b, j), sum[j]);
    } else {
        predictor_add_weighted(&s->predictor, &s->moments, m, weight, s->u, sum);
        for (int i = 0; i < k; ++i)
            for (int j = i; j < k; ++j, ++sum) {
                linalg_add_below(matrix, size, at_coefficient(s, a, i), at_coefficient(s, b, j),
                                 *sum);
                if (a != b && i != j)
                    linalg_add_below(matrix, size, at_coefficient(s, a, j), at_coefficient(s, b, i),
                                     *sum);
            }
    }
}

double graded_curve(void *self, int m, const double *const *x, double *gradient, double *matrix) {
    struct graded *s = self;
    const int tails = s->response.tails, predictors = s->response.predictors;
    const double *const *design = covariates_design(&s->cov, m, x);
    graded_read_response(s, m, x, s->now.level);
    graded_predict(s, s->now.theta, s->now.intercept, m, design);
    graded_use_cuts(s, s->now.theta);
    const double sum = find_slopes(s, m);
    moments_centre(&s->moments, m, design);
    const double *weight = s->weight;
    for (int a = 0; a < tails; ++a) {
        const double *slope = s->slope + (size_t)a * MAX_BLOCK;
        memset(s->sums, 0, (size_t)(1 + s->slopes) * sizeof(double));
        if (a < predictors)
            predictor_add_sums(&s->predictor, &s->moments, m, slope, s->sums);
        else
            gradient[a] += block_sum(m, slope);
        for (int j = 0; a < predictors && j <= s->slopes; ++j)
            gradient[at_coefficient(s, a, j)] += s->sums[j];
        for (int b = 0; b <= a; ++b, weight += MAX_BLOCK) add_pair(s, a, b, m, weight, matrix);
    }
    return isnan(sum) ? -INFINITY : sum;
}

/* Adds the information of the own prior to a matrix with so many rows: each constant less
 * its mean is linear in the coordinates but for the distances' exponential functions. */
void graded_prior_information(void *self, const double *theta, int rows, double *matrix) {
    const struct graded *s = self;
    double *slope = s->next.theta; /* own coordinates */
    const size_t size = (size_t)rows;
    const int constants = s->response.ordered ? s->response.tails : 1;
    const double precision = 1 / (s->prior.constant_sd * s->prior.constant_sd);
    for (int e = 0; e < s->response.predictors; ++e) {
        memset(slope, 0, (size_t)s->own * sizeof(double));
        slope[graded_constant(s, e)] = 1;
        memcpy(slope + graded_slopes(s, e), s->prior.tilt, (size_t)s->slopes * sizeof(double));
        for (int k = 0; k < constants; ++k) {
            if (k > 0) slope[k] = -exp(theta[k]);
            for (int i = 0; i < s->own; ++i)
                for (int j = 0; j <= i; ++j)
                    matrix[(size_t)i * size + (size_t)j] += precision * slope[i] * slope[j];
        }
        for (int j = 0; j < s->slopes; ++j)
            matrix[(size_t)(graded_slopes(s, e) + j) * (size + 1)] +=
                1 / (s->prior.slope_sd[j] * s->prior.slope_sd[j]);
    }
}

void graded_prior_curve(void *self, const double *theta, double *gradient, double *matrix) {
    struct graded *s = self;
    (void)graded_tied_prior(s, theta, gradient);
    memset(matrix, 0, (size_t)s->own * (size_t)s->own * sizeof(double));
    graded_prior_information(s, theta, s->own, matrix);
}
