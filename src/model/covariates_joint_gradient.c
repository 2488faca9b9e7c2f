/* Gradients of the prior of the cells' probabilities p, and coordinates for them, for methods that
 * move along gradients (contract/model_uncentred.h). What p, a, q are: model/covariates_joint.c.
 *
 * Coordinates: the sticks of p are functions of numbers that are about standard normal
 * (base/stick_standard.h) with the weights of the prior and the counts that the data suggest. They
 * follow (a, q) where the data say little, and do not where they say much.
 *
 * Cost: O(cells * factors) a call. No allocation.
 */
#include "base/stick_standard.h"
#include "base/sticks.h"
#include "model/covariates_factors.h"
#include "model/covariates_joint.h"

#include <Rmath.h>
#undef df /* the name of a field here */

/* After joint_weights(): gradient += slopes in w = a q as those in log a, where all weights grow as
 * they are, and in the sticks of q, where the weights of a level do. Spoils `slope`. */
static void add_weight_slopes(const struct covariates *cov, const double *theta, double *slope,
                              double *gradient) {
    const struct joint *joint = cov->joint;
    double *margin = joint->share + joint->cells;
    for (int c = 0; c < joint->cells; ++c) {
        slope[c] *= joint->weight[c] > JOINT_LEAST_WEIGHT ? joint->weight[c] : 0;
        gradient[joint->at_concentration] += slope[c];
    }
    joint_margins(cov, slope, margin);
    for (int f = 0; f < cov->factors.count; ++f) {
        const struct factor *factor = cov->factors.factor + f;
        sticks_add_slopes(factor->levels, margin + factor->at, theta + factor->stick,
                          gradient + factor->stick);
    }
}

/* d log p(p) / d w_c = psi(a) - psi(w_c) + log p_c. */
void joint_prior_gradient(struct covariates *cov, const double *theta, double *gradient) {
    const struct joint *joint = cov->joint;
    double *weight = joint->weight, *slope = joint->share;
    const double all = Rf_digamma(joint_weights(cov, theta, weight)),
                 *cells = theta + joint->at_cells;
    sticks_add_slopes(joint->cells, weight, cells, gradient + joint->at_cells);
    if (!joint->shares) return;
    factors_prior_gradient(&cov->factors, theta, gradient);
    gradient[joint->at_concentration] -=
        (theta[joint->at_concentration] - joint->log_mean) / (joint->log_sd * joint->log_sd);
    sticks_to_log_probabilities(joint->cells, cells, slope);
    for (int c = 0; c < joint->cells; ++c) slope[c] += all - Rf_digamma(weight[c]);
    add_weight_slopes(cov, theta, slope, gradient);
}

void joint_expect(struct covariates *cov, const double *count) {
    memcpy(cov->joint->expected, count, (size_t)cov->joint->cells * sizeof(double));
}

double joint_find(void *self, const double *q, double *theta) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    const double *expected = joint->expected;
    double *weight = joint->weight, log_determinant = 0;
    memcpy(theta, q, (size_t)cov->end * sizeof(double));
    (void)joint_weights(cov, theta, weight);
    double later = weight[joint->cells - 1] + expected[joint->cells - 1];
    for (int l = joint->cells - 2; l >= 0; --l) {
        const double own = weight[l] + expected[l];
        joint->standard[l] = stick_standard(q[joint->at_cells + l], own, later);
        theta[joint->at_cells + l] = joint->standard[l].t;
        log_determinant += joint->standard[l].log_slope;
        later += own;
    }
    return log_determinant;
}

void joint_pull(void *self, const double *q, double *gradient) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    double *slope = joint->share, later = 0;
    for (int l = 0; l < joint->cells - 1; ++l) {
        const struct stick_standard *of = joint->standard + l;
        double *in_stick = gradient + joint->at_cells + l;
        slope[l] = later + *in_stick * of->t_a + of->log_slope_a;
        later += *in_stick * of->t_b + of->log_slope_b;
        *in_stick = *in_stick * of->t_v + of->log_slope_v;
    }
    slope[joint->cells - 1] = later;
    (void)joint_weights(cov, q, joint->weight);
    add_weight_slopes(cov, q, slope, gradient);
}

void joint_start(void *self, const double *theta, double *q) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    double *weight = joint->weight;
    memcpy(q, theta, (size_t)cov->end * sizeof(double));
    (void)joint_weights(cov, theta, weight);
    double later = weight[joint->cells - 1] + joint->expected[joint->cells - 1];
    for (int l = joint->cells - 2; l >= 0; --l) {
        const double own = weight[l] + joint->expected[l];
        q[joint->at_cells + l] = stick_standard_near(theta[joint->at_cells + l], own, later);
        later += own;
    }
}
