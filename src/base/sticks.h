/* Probabilities of L levels as L - 1 unconstrained numbers, the sticks: t_l =
 * logit(P(l | l or a later level)). Under a Dirichlet distribution the sticks
 * are independent logit-betas, before and after counts are seen, so that a rare
 * level disturbs only its own stick. Nothing here overflows. */
#ifndef NOISEAWARE_BASE_STICKS_H
#define NOISEAWARE_BASE_STICKS_H

#include "base/core.h"

/* P(l | l or a later level) */
static inline double stick_share(double t) { return 1 / (1 + exp(-t)); }

/* P(a later level), given that of this level or a later one */
static inline double stick_later(double t, double rest) { return rest / (1 + exp(t)); }

/* The probability of the level; *rest, of it and the later levels together, becomes the
 * probability of the later ones alone. Both are equally accurate. */
static inline double stick_break(double t, double *rest) {
    const double small = exp(-fabs(t)), large = *rest / (1 + small);
    *rest = t > 0 ? large * small : large;
    return t > 0 ? large : large * small;
}

/* Log density of a stick, Jacobian included, under Dirichlet weights: `first` the weight of
 * its level, `all` its sum with the weights of the later levels. */
static inline double stick_log_density(double first, double all, double t) {
    return first * t - all * ((t > 0 ? t : 0) + log1p(exp(-fabs(t))));
}

/* The slope of that in t. */
static inline double stick_slope(double first, double all, double t) {
    return first - all * stick_share(t);
}

/* gradient += the slopes of all sticks under Dirichlet weights, Jacobian included; or of a
 * multinomial likelihood, the weights being counts */
static inline void sticks_add_slopes(int levels, const double *weight, const double *stick,
                                     double *gradient) {
    double all = weight[levels - 1];
    for (int l = levels - 2; l >= 0; --l) {
        all += weight[l];
        gradient[l] += stick_slope(weight[l], all, stick[l]);
    }
}

/* Neither overflows nor underflows. */
static inline void sticks_to_log_probabilities(int levels, const double *stick, double *log_p) {
    double rest = 0;
    for (int l = 0; l < levels - 1; ++l) {
        const double later = -(stick[l] > 0 ? stick[l] : 0) - log1p(exp(-fabs(stick[l])));
        log_p[l] = rest + stick[l] + later;
        rest += later;
    }
    log_p[levels - 1] = rest;
}

static inline void sticks_to_probabilities(int levels, const double *stick, double *probability) {
    double rest = 1;
    for (int l = 0; l < levels - 1; ++l) probability[l] = stick_break(stick[l], &rest);
    probability[levels - 1] = rest;
}

/* Zero is replaced by the smallest number whose ratios are safe. */
static inline void sticks_from_probabilities(int levels, const double *probability, double *stick) {
    double rest = fmax(probability[levels - 1], 1e-300);
    for (int l = levels - 2; l >= 0; --l) {
        const double share = fmax(probability[l], 1e-300);
        stick[l] = log(share) - log(rest);
        rest += share;
    }
}

/* bound[l] = P(l or a later level), l = 0, ..., levels: from 1 down to 0 */
static inline void sticks_to_bounds(int levels, const double *stick, double *bound) {
    bound[0] = 1;
    for (int l = 1; l < levels; ++l) bound[l] = stick_later(stick[l - 1], bound[l - 1]);
    bound[levels] = 0;
}

#endif
