/* A stick (base/sticks.h) with Dirichlet weights a, of its level, and b, of the later ones
 * together, as a function of a number v that is about standard normal whatever these are:
 *
 *   t = l(v, a) - l(-v, b),  l(v, w) = (log w + 1 - w / s^2) / 2 + log s,  dl/dv = 1 / s,
 *   s = (x + sqrt(x^2 + 4 w)) / 2,  x = v - d,  d = 1 / (0.85 + 3 sqrt(w)).
 *
 * l has about the quantiles of the logarithm of a gamma variable of shape w: near log w + x /
 * sqrt(w) in its middle, -x^2 / (2 w) far below, where that has the density exp(w l), and log x far
 * above. d fits its median. About is enough: the density of v is that of t with dt/dv. */
#ifndef NOISEAWARE_BASE_STICK_STANDARD_H
#define NOISEAWARE_BASE_STICK_STANDARD_H

#include "base/core.h"

/* l and dl/dv, with their slopes in w and v */
struct log_gamma_standard {
    double l, l_w, slope, slope_v, slope_w;
};

static inline struct log_gamma_standard log_gamma_standard(double v, double w) {
    const double d = 1 / (0.85 + 3 * sqrt(w)), x_w = 1.5 * d * d / sqrt(w), x = v - d,
                 root = sqrt(x * x + 4 * w), s = x > 0 ? 0.5 * (x + root) : 2 * w / (root - x);
    return (struct log_gamma_standard){.l = 0.5 * (log(w) + 1 - w / (s * s)) + log(s),
                                       .l_w = 0.5 / w + 0.5 / (s * s) + x_w / s,
                                       .slope = 1 / s,
                                       .slope_v = -1 / (s * root),
                                       .slope_w = -(1 / s + x_w) / (s * root)};
}

/* t and log dt/dv, with their slopes */
struct stick_standard {
    double t, t_v, t_a, t_b;
    double log_slope, log_slope_v, log_slope_a, log_slope_b;
};

static inline struct stick_standard stick_standard(double v, double a, double b) {
    const struct log_gamma_standard first = log_gamma_standard(v, a),
                                    later = log_gamma_standard(-v, b);
    const double slope = first.slope + later.slope;
    return (struct stick_standard){.t = first.l - later.l,
                                   .t_v = slope,
                                   .t_a = first.l_w,
                                   .t_b = -later.l_w,
                                   .log_slope = log(slope),
                                   .log_slope_v = (first.slope_v - later.slope_v) / slope,
                                   .log_slope_a = first.slope_w / slope,
                                   .log_slope_b = later.slope_w / slope};
}

/* v of t, by halving an interval; the end that is nearer if it is more than two standard deviations
 * out */
static inline double stick_standard_near(double t, double a, double b) {
    double low = -2, high = 2;
    for (int k = 0; k < 50; ++k) {
        const double middle = 0.5 * (low + high);
        if (stick_standard(middle, a, b).t < t)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

#endif
