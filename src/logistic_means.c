/* Means of the logistic function and of its derivatives over a normal variable, by the
 * trapezoidal rule, whose error falls geometrically for functions that are analytic in a strip
 * (Trefethen & Weideman 2014); the logistic function's has the half-width pi. Cost: 30 to 300
 * exponentials.
 */
#include "logistic_means.h"

#include "core.h"

/* in standard deviations; steps in units of e */
static const double REACH = 9, STEP = 0.5, RELATIVE_STEP = 0.6;
/* beyond this, in units of e, what is left of g and of its derivatives is rounding error */
static const double FLAT = 40;
/* a standard deviation of e from which the points within FLAT are fewer than those within REACH */
static const double WIDE = 200;

/* With s = g(e) and t = s (1 - s), the derivatives of g are polynomials in t and in 1 - 2 s. */
static void add(double e, double weight, double *mean) {
    if (e < -FLAT) return;
    if (e > FLAT) {
        mean[0] += weight;
        return;
    }
    const double x = exp(-e), s = 1 / (1 + x), t = x * s * s, o = 1 - 2 * s;
    mean[0] += weight * s;
    mean[1] += weight * t;
    mean[2] += weight * t * o;
    mean[3] += weight * t * (1 - 6 * t);
    mean[4] += weight * t * o * (1 - 12 * t);
    mean[5] += weight * t * (1 - t * (30 - 120 * t));
}

/* Where e is wide: its density from -FLAT to FLAT, and its probability beyond, where g is
 * 1. The trapezoidal rule ends there where the density still has a slope: its first
 * correction. */
static void wide_means(double centre, double sd, double *mean) {
    const double density = 0.3989422804014327 / sd, end = (FLAT - centre) / sd;
    const int steps = (int)(2 * FLAT / STEP);
    for (int i = 0; i <= steps; ++i) {
        const double e = i * STEP - FLAT, v = (e - centre) / sd;
        const double share = i == 0 || i == steps ? 0.5 : 1;
        add(e, share * STEP * density * exp(-0.5 * v * v), mean);
    }
    const double slope = -end * density * exp(-0.5 * end * end) / sd;
    mean[0] += 0.5 * erfc(end * sqrt(0.5)) - STEP * STEP / 12 * slope;
}

/* Weights exp(-(i unit)^2 / 2) by their ratios, from the centre outwards. */
void logistic_means(double centre, double sd, double *mean) {
    memset(mean, 0, LOGISTIC_MEANS * sizeof(double));
    if (sd > WIDE) {
        wide_means(centre, sd, mean);
        return;
    }
    const double step = fmin(STEP, RELATIVE_STEP * sd), unit = sd > 0 ? step / sd : 0;
    const int reach = sd > 0 ? (int)ceil(REACH / unit) : 0;
    const double fall = exp(-unit * unit);
    double weight = 1, ratio = sqrt(fall), total = 1;
    add(centre, 1, mean);
    for (int i = 1; i <= reach; ++i) {
        weight *= ratio;
        ratio *= fall;
        total += 2 * weight;
        add(centre - i * step, weight, mean);
        add(centre + i * step, weight, mean);
    }
    for (int k = 0; k < LOGISTIC_MEANS; ++k) mean[k] /= total;
}
