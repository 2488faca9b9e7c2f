/* A response with several levels: its predictors, probabilities and prior; see model/categories.c.
 * */
#include "model/categories_response.h"

#include "base/linalg.h"

void graded_use_cuts(void *self, const double *theta) {
    struct graded *s = self;
    if (s->response.ordered) threshold_distances(s->response.tails, theta, s->next.cut);
    for (int k = 1; s->response.ordered && k < s->response.tails; ++k)
        s->constant[k] = exp(theta[k]);
}

/* After graded_use_cuts(); the cuts' coordinates are the logarithms of distances, each a part of
 * all greater cuts. */
void graded_cell_logs(void *self, const double *eta, double *log_p, double *slope) {
    struct graded *s = self;
    const int tails = s->response.tails;
    s->response.class->logs(&s->response, s->next.cut, eta, log_p, slope);
    for (int y = 0; s->response.ordered && y <= tails; ++y, slope += tails) {
        double beyond = 0;
        for (int k = tails - 1; k > 0; --k) {
            beyond += slope[k];
            slope[k] = beyond * s->constant[k];
        }
    }
}

double graded_tilted(const struct graded *s, const double *slopes) {
    return linalg_dot(s->slopes, s->prior.tilt, slopes);
}

/* log density of the own part, and its gradient, which is added, unless it is NULL */
double graded_own_prior(const struct graded *s, const double *theta, double *gradient) {
    const int ordered = s->response.ordered, tails = s->response.tails;
    double log_density = 0;
    if (ordered) threshold_distances(tails, theta, s->constant);
    for (int e = 0; e < s->response.predictors; ++e) {
        const double *slope = theta + graded_slopes(s, e),
                     at = graded_tilted(s, slope) - s->prior.constant_mean;
        double pull = 0; /* of all constants of the predictor */
        for (int k = ordered ? tails - 1 : 0; k >= 0; --k) {
            const double distance = ordered ? s->constant[k] : 0;
            const double z = (theta[graded_constant(s, e)] - distance + at) / s->prior.constant_sd;
            log_density -= 0.5 * z * z;
            pull -= z / s->prior.constant_sd;
            if (!ordered || k == 0) continue;
            log_density += theta[k];
            /* this distance is part of those that are greater */
            if (gradient) gradient[k] += 1 - pull * exp(theta[k]);
        }
        if (gradient) gradient[graded_constant(s, e)] += pull;
        for (int j = 0; j < s->slopes; ++j) {
            const double z = (slope[j] - s->prior.slope_mean[j]) / s->prior.slope_sd[j];
            log_density -= 0.5 * z * z;
            if (gradient)
                gradient[graded_slopes(s, e) + j] +=
                    pull * s->prior.tilt[j] - z / s->prior.slope_sd[j];
        }
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

double graded_tied_prior(void *self, const double *theta, double *gradient) {
    struct graded *s = self;
    memset(gradient, 0, (size_t)s->own * sizeof(double));
    return graded_own_prior(s, theta, gradient);
}

void graded_predict(struct graded *s, const double *theta, const double *intercept, int m,
                    const double *const *design) {
    for (int e = 0; e < s->response.predictors; ++e)
        predictor_eval(&s->predictor, theta + graded_slopes(s, e) - 1, intercept[e], m, design,
                       s->eta + (size_t)e * MAX_BLOCK);
}

int graded_is_coded(const struct graded *s) { return s->cov.design.code[0] != 0; }

void graded_read_response(const struct graded *s, int m, const double *const *x, double *level) {
    if (graded_is_coded(s)) {
        memcpy(level, x[(int)s->cov.design.column[0]], (size_t)m * sizeof(double));
        return;
    }
    memset(level, 0, (size_t)m * sizeof(double));
    for (int k = 0; k < s->response.tails; ++k) {
        const double *dummy = x[(int)s->cov.design.column[k]];
        for (int i = 0; i < m; ++i) level[i] += (k + 1) * dummy[i];
    }
}
