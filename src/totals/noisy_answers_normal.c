/* Noisy answers of normal responses, y ~ N(eta, sigma^2) clamped to [a, b]: the density of the
 * answer z is
 *
 *   Phi((a - eta) / sigma) f(z - a) + Phi((eta - b) / sigma) f(z - b)
 *     + integral from a to b of phi(y; eta, sigma) f(z - y) dy,
 *
 * f the noise density. With g(y) = f(z - clamp(y)), constant beyond the bounds, it is E g(y), so
 * that its slope in eta is E g'(y), and in sigma E (y - eta) g'(y) / sigma: of the integral alone.
 *
 * Gaussian noise of sd s: the integral is phi(z; eta, v) times the probability that a normal
 * variable of mean (eta s^2 + z sigma^2) / v^2 and sd sigma s / v lies in [a, b], v^2 = sigma^2 +
 * s^2, and g' = g (z - y) / s^2.
 *
 * Laplace noise of scale c: on either side of z the product is a normal density moved by sigma^2 /
 * c, times exp(-|z - eta| / c + sigma^2 / (2 c^2)) / (2 c), and g' = +-g / c.
 *
 * Terms are added on the log scale, so that nothing underflows if sigma is far from the noise's
 * scale. Cost per record: some distribution functions. No allocation.
 */
#include "totals/noisy_answers.h"

#include <Rmath.h>

/* Of a standard normal u in [from, to]: the log probability, and with it the mean and the mean
 * square of u. */
struct piece {
    double log_mass, mean, square;
};

static double edge(double u, double log_mass) {
    return fabs(u) < INFINITY ? exp(Rf_dnorm4(u, 0, 1, 1) - log_mass) : 0;
}

static struct piece normal_piece(double from, double to) {
    struct piece piece = {-INFINITY, 0, 0};
    if (!(from < to)) return piece;
    const int flip = from + to > 0; /* the lower tail has the digits */
    const double low = flip ? -to : from, high = flip ? -from : to;
    const double log_high = high < INFINITY ? Rf_pnorm5(high, 0, 1, 1, 1) : 0;
    piece.log_mass =
        low > -INFINITY ? Rf_logspace_sub(log_high, Rf_pnorm5(low, 0, 1, 1, 1)) : log_high;
    if (!(piece.log_mass > -INFINITY)) return piece;
    const double at_from = edge(from, piece.log_mass), at_to = edge(to, piece.log_mass);
    piece.mean = at_from - at_to;
    piece.square = 1 + (at_from > 0 ? from * at_from : 0) - (at_to > 0 ? to * at_to : 0);
    return piece;
}

/* a part of the density: its logarithm, and its slopes over it, in eta and in log sigma */
struct part {
    double log, eta, log_sigma;
};

static struct part gaussian_part(const struct noisy_answers *a, int i, double eta) {
    const double z = a->answer[i], s = 1 / a->weight[i], sigma = a->shape;
    const double v = hypot(sigma, s), share = sigma / v * (sigma / v);
    const double mean = eta + share * (z - eta), sd = sigma * (s / v);
    const struct piece p = normal_piece((a->lower - mean) / sd, (a->upper - mean) / sd);
    const double r = (z - eta) / v;
    /* (z - y) and (y - eta), y = mean + sd u */
    const double left = (1 - share) * (z - eta), moved = share * (z - eta);
    const struct part part = {
        .log = p.log_mass - 0.5 * r * r - log(v / s),
        .eta = (left - sd * p.mean) / (s * s),
        .log_sigma = (left * moved + sd * p.mean * (left - moved) - sd * sd * p.square) / (s * s)};
    return part;
}

/* y on the side of z where `side` (z - y) is positive */
static struct part laplace_part(const struct noisy_answers *a, int i, double eta, int side) {
    const double z = a->answer[i], w = a->weight[i], sigma = a->shape, tilt = side * sigma * w;
    const double at = fmin(fmax(z, a->lower), a->upper);
    const double from = side > 0 ? a->lower : at, to = side > 0 ? at : a->upper;
    const struct piece p = normal_piece((from - eta) / sigma - tilt, (to - eta) / sigma - tilt);
    const struct part part = {.log = p.log_mass - side * (z - eta) * w + 0.5 * tilt * tilt,
                              .eta = side * w,
                              .log_sigma = side * w * sigma * (p.mean + tilt)};
    return part;
}

/* beyond a bound */
static struct part clamped_part(const struct noisy_answers *a, int i, double eta, int above) {
    const double bound = above ? a->upper : a->lower;
    struct part part = {-INFINITY, 0, 0};
    if (fabs(bound) < INFINITY)
        part.log = Rf_pnorm5(bound, eta, a->shape, !above, 1) +
                   noisy_answer_kernel(a, i, a->answer[i] - bound);
    return part;
}

static double log_density(const struct noisy_answers *a, int first, int m, const double *eta,
                          double *slope, double *of_shape) {
    double sum = 0;
    for (int j = 0; j < m; ++j) {
        const int i = first + j;
        const struct part parts[4] = {
            a->squared ? gaussian_part(a, i, eta[j]) : laplace_part(a, i, eta[j], 1),
            a->squared ? (struct part){-INFINITY, 0, 0} : laplace_part(a, i, eta[j], -1),
            clamped_part(a, i, eta[j], 0), clamped_part(a, i, eta[j], 1)};
        double most = -INFINITY, all = 0, of_eta = 0, of_sigma = 0;
        for (int k = 0; k < 4; ++k) most = fmax(most, parts[k].log);
        for (int k = 0; k < 4; ++k) {
            const double term = exp(parts[k].log - most);
            all += term;
            of_eta += term * parts[k].eta;
            of_sigma += term * parts[k].log_sigma;
        }
        sum += most + log(all);
        slope[j] = of_eta / all;
        of_shape[j] = of_sigma / all;
    }
    return sum;
}

static int create(const struct fields *fields, struct noisy_answers *a) {
    (void)fields;
    a->shapes = 1;
    return PLUGIN_OK;
}

const struct noisy_answer_class noisy_answer_normal = {
    .set = noisy_answer_set_shape, .create = create, .log_density = log_density};
