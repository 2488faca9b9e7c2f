/* The discrete Laplace and Gaussian distributions: P(k) proportional to exp(-|k - m| / b)
 * and to exp(-(k - m)^2 / (2 s^2)) over the integers k (Canonne, Kamath & Steinke
 * 2020), with a real location m.
 *
 * Everything is computed from the smaller tail, on the log scale, so that neither
 * a scale of 1e-3 nor one of 1e6 loses digits. Positions are taken from an integer
 * next to the location: k = base + j, m = base + g.
 *
 * Laplace, 0 <= g < 1: the two geometric tails give
 *   sum_j exp(-|j - g| / b) = (exp(-g / b) + exp(-(1 - g) / b)) / (1 - exp(-1 / b)).
 *
 * Gaussian, |g| <= 1/2: the normaliser is a theta function. Few of its terms
 * count, or few of its dual's: by Poisson summation sum_j exp(-(j - g)^2 / (2 s^2))
 * is s sqrt(2 pi) (1 + 2 sum_i exp(-2 pi^2 s^2 i^2) cos(2 pi i g)).
 * A tail is a sum of terms that fall at least as exp(-i d / s^2), d its distance
 * from the location; where they fall slowly it is the normal tail at the midpoint
 * between two integers, corrected by Euler and Maclaurin.
 * Cost: O(1); the Gaussian tail at most about 130 exponentials.
 */
#include "base/dist_discrete.h"

#include <Rmath.h>

/* every double beyond is an integer, and neighbours may be more than 1 apart */
static const double EXACT = 4503599627370496.0; /* 2^52 */

/* log(1 - exp(a)), a <= 0 */
static double log_complement(double a) { return a > -M_LN2 ? log(-expm1(a)) : log1p(-exp(a)); }

/* the value asked for, from the log of the tail that is known */
static double from_tail(double log_tail, int is_asked, int log_p) {
    if (log_tail > 0) log_tail = 0;
    if (is_asked) return log_p ? log_tail : exp(log_tail);
    return log_p ? log_complement(log_tail) : -expm1(log_tail);
}

static double at_infinity(double x, int lower, int log_p) {
    const int one = (x > 0) == (lower != 0);
    return log_p ? (one ? 0 : -INFINITY) : one;
}

/* ---- quantiles: a good guess, then a search that ends where cumulative() says ------ */

typedef double cumulative_function(double x, double location, double scale, int lower, int log_p);

struct target {
    cumulative_function *cumulative;
    double p, location, scale;
    int lower, log_p;
};

static int is_reached(const struct target *t, double x) {
    const double value = t->cumulative(x, t->location, t->scale, t->lower, t->log_p);
    return t->lower ? value >= t->p : value <= t->p;
}

/* Doubling steps from the guess until the smallest integer reached lies between
 * two, then halving. Where neighbours cannot be distinguished the guess is as good. */
static double search(const struct target *t, double guess) {
    if (!(fabs(guess) < EXACT && t->scale < EXACT)) return guess;
    double high = guess, low = guess;
    if (is_reached(t, guess)) {
        for (double step = 1; is_reached(t, low = high - step); step *= 2) high = low;
    } else {
        for (double step = 1; !is_reached(t, high = low + step); step *= 2) low = high;
    }
    while (high - low > 1) {
        const double middle = low + floor((high - low) / 2);
        if (middle <= low || middle >= high) break; /* beyond EXACT */
        if (is_reached(t, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* p = 0 and p = 1: 1 and the limit in *out; 0 if p lies between */
static int is_extreme(double p, int lower, int log_p, double *out) {
    const double zero = log_p ? -INFINITY : 0, one = log_p ? 0 : 1;
    if (p != zero && p != one) return 0;
    *out = (p == one) == (lower != 0) ? INFINITY : -INFINITY;
    return 1;
}

/* ---- Laplace --------------------------------------------------------------------------- */

/* log(exp(-g / b) + exp(-(1 - g) / b)) + nearer / b, nearer = min(g, 1 - g) */
static double laplace_rest(double g, double b) { return log1p(exp(-fabs(1 - 2 * g) / b)); }

static double laplace_log_density(double x, double location, double scale) {
    if (!isfinite(x) || x != floor(x)) return -INFINITY;
    const double base = floor(location), g = location - base;
    const double nearer = g < 0.5 ? g : 1 - g, further = fabs(x - base - g) - nearer;
    return -further / scale + log(-expm1(-1 / scale)) - laplace_rest(g, scale);
}

static double laplace_cumulative(double x, double location, double scale, int lower, int log_p) {
    if (!isfinite(x)) return at_infinity(x, lower, log_p);
    const double base = floor(location), g = location - base, j = floor(x) - base;
    const double nearer = g < 0.5 ? g : 1 - g;
    const int below = j + 0.5 <= g;
    /* from the location to the first integer of the tail */
    const double distance = below ? g - j : j + 1 - g;
    return from_tail(-(distance - nearer) / scale - laplace_rest(g, scale), below == (lower != 0),
                     log_p);
}

static double laplace_quantile(double p, double location, double scale, int lower, int log_p) {
    double x;
    if (is_extreme(p, lower, log_p, &x)) return x;
    const double base = floor(location), g = location - base;
    const double log_given = log_p ? p : log(p), log_other = log_p ? log_complement(p) : log1p(-p);
    const double log_below = lower ? log_given : log_other;
    const double log_above = lower ? log_other : log_given;
    const double reach = laplace_rest(g, scale) * scale - (g < 0.5 ? g : 1 - g);
    const double j = log_below < log_above ? ceil(g + reach + log_below * scale)
                                           : ceil(g - 1 - reach - log_above * scale);
    const struct target target = {laplace_cumulative, p, location, scale, lower, log_p};
    return search(&target, base + j);
}

const struct discrete_distribution dist_discrete_laplace = {
    .log_density = laplace_log_density,
    .cumulative = laplace_cumulative,
    .quantile = laplace_quantile,
};

/* ---- Gaussian -------------------------------------------------------------------------- */

/* From this scale on the dual sum has at most three terms, the sum itself below it
 * at most six on each side. */
static const double FEW_DUAL_TERMS = 0.5;
/* from here on the dual sum is 1 */
static const double NO_DUAL_TERM = 8;

/* log of the mass at base + j */
static double gaussian_log_mass(double j, double g, double s) {
    if (s < FEW_DUAL_TERMS) {
        double sum = 1;
        for (int k = 1; k <= 6; ++k)
            sum += exp(-(k * (k - 2 * g)) / s / s / 2) + exp(-(k * (k + 2 * g)) / s / s / 2);
        return -(j * (j - 2 * g)) / s / s / 2 - log(sum);
    }
    const double z = (j - g) / s;
    double dual = 0;
    if (s < NO_DUAL_TERM)
        for (int i = 1; i <= 3; ++i)
            dual += 2 * exp(-2 * M_PI * M_PI * s * s * i * i) * cos(2 * M_PI * i * g);
    return -0.5 * z * z - M_LN_SQRT_2PI - log(s) - log1p(dual);
}

/* log sum of the masses at base + j and below, j + 1/2 <= g, by their ratios to the
 * first */
static double gaussian_tail_sum(double j, double g, double s) {
    double sum = 1;
    for (double i = 1;; ++i) {
        const double term = exp(-(i * (i + 2 * (g - j))) / s / s / 2);
        sum += term;
        if (term < 1e-17 * sum) break;
    }
    return gaussian_log_mass(j, g, s) + log(sum);
}

/* The same for slow terms: with h the density, sum h(k) over k <= j is its integral
 * up to j + 1/2 plus sum_i B_2i(1/2) / (2i)! times its derivative of order 2i - 1
 * there; derivatives are Hermite polynomials times the density. */
static double gaussian_tail_series(double j, double g, double s) {
    static const double coefficient[] = {-1.0 / 24,
                                         7.0 / 5760,
                                         -31.0 / 967680,
                                         127.0 / 154828800,
                                         -2555.0 / 33792 / 3628800,
                                         2047.0 / 2048 * 691 / 2730 / 479001600};
    const double z = (j + 0.5 - g) / s, log_tail = Rf_pnorm5(z, 0, 1, 1, 1);
    if (log_tail == -INFINITY) return log_tail;
    /* Hermite polynomials of z over the same power of s */
    double correction = 0, even = 1, odd = z / s;
    for (int i = 1; i <= 6; ++i) {
        correction -= coefficient[i - 1] * odd / s;
        even = z / s * odd - (2 * i - 1) / (s * s) * even;
        odd = z / s * even - 2 * i / (s * s) * odd;
    }
    return log_tail + log1p(correction * exp(Rf_dnorm4(z, 0, 1, 1) - log_tail));
}

static double gaussian_log_tail(double j, double g, double s) {
    return s >= NO_DUAL_TERM && (g - j) / s < 0.3 * s ? gaussian_tail_series(j, g, s)
                                                      : gaussian_tail_sum(j, g, s);
}

static double gaussian_log_density(double x, double location, double scale) {
    if (!isfinite(x) || x != floor(x)) return -INFINITY;
    const double base = floor(location + 0.5);
    return gaussian_log_mass(x - base, location - base, scale);
}

static double gaussian_cumulative(double x, double location, double scale, int lower, int log_p) {
    if (!isfinite(x)) return at_infinity(x, lower, log_p);
    const double base = floor(location + 0.5), g = location - base, j = floor(x) - base;
    const int below = j + 0.5 <= g;
    const double log_tail =
        below ? gaussian_log_tail(j, g, scale) : gaussian_log_tail(-(j + 1), -g, scale);
    return from_tail(log_tail, below == (lower != 0), log_p);
}

static double gaussian_quantile(double p, double location, double scale, int lower, int log_p) {
    double x;
    if (is_extreme(p, lower, log_p, &x)) return x;
    const double base = floor(location + 0.5), g = location - base;
    const double j = ceil(g + scale * Rf_qnorm5(p, 0, 1, lower, log_p) - 0.5);
    const struct target target = {gaussian_cumulative, p, location, scale, lower, log_p};
    return search(&target, base + j);
}

const struct discrete_distribution dist_discrete_gaussian = {
    .log_density = gaussian_log_density,
    .cumulative = gaussian_cumulative,
    .quantile = gaussian_quantile,
};
