/* Means of a family's E(y | eta) and of its derivatives over a normal eta.
 *
 * logit and cloglog: by the trapezoidal rule, whose error falls geometrically for functions that
 * are analytic in a strip (Trefethen & Weideman 2014); the logistic function's has the half-width
 * pi, in that of 1 - exp(-exp(eta)) the function is bounded up to pi / 2. Cost: 30 to 500
 * exponentials.
 * probit: E Phi(eta) = Phi(t), t = centre / s, s^2 = 1 + sd^2; the derivatives in the centre are
 * those of that.
 * poisson, negative_binomial, gamma, for proposals alone: y is clamped to [0, U], a lower bound
 * above 0 left out, and about log-normal given eta. Its log has the variance log(1 + cv^2), and a
 * count one of log(1 + 1 / U) more, which is right at the bound. Far below it mean and variance are
 * the family's own.
 */
#include "model/family.h"

#include <Rmath.h>

/* in standard deviations, and of these a step */
static const double REACH = 9, RELATIVE_STEP = 0.6;
/* beyond this, in units of eta, what is left of the functions is rounding error */
static const double FLAT = 40, FLAT_CLOGLOG = 6.5;
/* So many steps are a standard deviation of eta from which the density is taken as it is: weights
 * by their ratios lose a digit in the eleventh place there. */
static const double WIDE = 400;

typedef void function_of_eta(double eta, double weight, double *mean);

/* With s = F(e) and t = s (1 - s), the derivatives of F are polynomials in t and in 1 - 2 s. */
static inline void add_logit(double e, double weight, double *mean) {
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

/* With w = exp(e), they are polynomials in w, times exp(-w). */
static inline void add_cloglog(double e, double weight, double *mean) {
    if (e < -FLAT) return;
    if (e > FLAT_CLOGLOG) {
        mean[0] += weight;
        return;
    }
    const double w = exp(e), tail = w * exp(-w);
    mean[0] += weight * -expm1(-w);
    mean[1] += weight * tail;
    mean[2] += weight * tail * (1 - w);
    mean[3] += weight * tail * (1 + w * (-3 + w));
    mean[4] += weight * tail * (1 + w * (-7 + w * (6 - w)));
    mean[5] += weight * tail * (1 + w * (-15 + w * (25 + w * (-10 + w))));
}

/* Where eta is wide: its density from -FLAT to FLAT, and its probability beyond, where F is
 * 1. The trapezoidal rule ends there where the density still has a slope: its first
 * correction. */
static inline void wide_means(function_of_eta *add, double most_step, double centre, double sd,
                              double *mean) {
    const double density = 0.3989422804014327 / sd, end = (FLAT - centre) / sd;
    const int steps = (int)(2 * FLAT / most_step);
    for (int i = 0; i <= steps; ++i) {
        const double e = i * most_step - FLAT, v = (e - centre) / sd;
        const double share = i == 0 || i == steps ? 0.5 : 1;
        add(e, share * most_step * density * exp(-0.5 * v * v), mean);
    }
    const double slope = -end * density * exp(-0.5 * end * end) / sd;
    mean[0] += 0.5 * erfc(end * sqrt(0.5)) - most_step * most_step / 12 * slope;
}

/* Weights exp(-(i unit)^2 / 2) by their ratios, from the centre outwards. */
static inline void trapezoid(function_of_eta *add, double most_step, double centre, double sd,
                             double *mean) {
    memset(mean, 0, FAMILY_MEANS * sizeof(double));
    if (sd > WIDE * most_step) {
        wide_means(add, most_step, centre, sd, mean);
        return;
    }
    const double step = fmin(most_step, RELATIVE_STEP * sd), unit = sd > 0 ? step / sd : 0;
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
    for (int k = 0; k < FAMILY_MEANS; ++k) mean[k] /= total;
}

void family_means_logit(const struct family *f, double centre, double sd, double *mean) {
    (void)f;
    trapezoid(add_logit, 0.5, centre, sd, mean);
}

void family_means_cloglog(const struct family *f, double centre, double sd, double *mean) {
    (void)f;
    trapezoid(add_cloglog, 0.25, centre, sd, mean);
}

void family_means_probit(const struct family *f, double centre, double sd, double *mean) {
    const double s = sqrt(1 + sd * sd), t = centre / s, square = t * t;
    const double density = 0.3989422804014327 * exp(-0.5 * square) / s;
    (void)f;
    mean[0] = 0.5 * erfc(-t * sqrt(0.5));
    mean[1] = density;
    mean[2] = -t * density / s;
    mean[3] = (square - 1) * density / (s * s);
    mean[4] = t * (3 - square) * density / (s * s * s);
    mean[5] = (square * (square - 6) + 3) * density / (s * s * s * s);
}

/* ---- a log link --------------------------------------------------------------------------- */

/* Of y clamped to [0, U]: the means over eta of P_k = E(X^k; X < U), where log X ~ N(m, s^2). */
struct below {
    double one, two; /* P_1, P_2 */
    double top;      /* U phi(z) / s, z = (log U - m) / s */
    double slope;    /* z / s */
    double beyond;   /* P(X > U) */
};

static double normal_below(double z) { return 0.5 * erfc(-z * sqrt(0.5)); }

/* of large m and s the product of what overflows and of what vanishes */
static double partial_moment(int k, double m, double s, double z) {
    const double log_moment = k * m + 0.5 * k * k * s * s, at = z - k * s;
    return log_moment < 700 ? exp(log_moment) * normal_below(at)
                            : exp(log_moment + Rf_pnorm5(at, 0, 1, 1, 1));
}

static struct below log_normal(double upper, double spread, double centre, double sd) {
    const double s = sqrt(sd * sd + spread), m = centre - 0.5 * spread, z = (log(upper) - m) / s;
    return (struct below){.one = partial_moment(1, m, s, z),
                          .two = partial_moment(2, m, s, z),
                          .top = upper * 0.3989422804014327 * exp(-0.5 * z * z) / s,
                          .slope = z / s,
                          .beyond = normal_below(-z)};
}

/* Of a count near the bound given its rate, as a square of the coefficient of variation. */
static double count_spread(const struct family *f) { return f->class->counts ? 1 / f->upper : 0; }

static struct below clamped(const struct family *f, double centre, double sd) {
    const double shape_spread = f->class->shaped ? log1p(1 / f->shape) : 0;
    return log_normal(f->upper, shape_spread + log1p(count_spread(f)), centre, sd);
}

/* The bound's share of the slope in m cancels. */
void family_means_log(const struct family *f, double centre, double sd, double *mean) {
    const struct below x = clamped(f, centre, sd);
    memset(mean, 0, FAMILY_MEANS * sizeof(double));
    mean[0] = x.one + f->upper * x.beyond;
    mean[1] = x.one;
    mean[2] = x.one - x.top;
    mean[3] = x.one - x.top * (1 + x.slope);
}

/* A count's variance is its rate, not a share of its square. */
void family_squares_log(const struct family *f, double centre, double sd, double *mean) {
    const double upper = f->upper, spread = count_spread(f), share = spread / (1 + spread);
    const struct below x = clamped(f, centre, sd);
    const double two = 2 * x.two - upper * x.top; /* slope of P_2 in m */
    mean[0] = x.two + upper * upper * x.beyond;
    mean[1] = 2 * x.two;
    mean[2] = 2 * two;
    if (!f->class->counts) return;
    mean[0] += x.one - share * x.two;
    mean[1] += x.one - x.top - share * two;
    mean[2] += x.one - x.top * (1 + x.slope) - share * (2 * two - upper * x.top * x.slope);
}
