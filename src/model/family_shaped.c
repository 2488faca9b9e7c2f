/* Families of responses with a shape, for model "glm": the mean is mu = min(exp(eta), most), and
 * cv says how wide the distribution is about it; shape = 1 / cv^2.
 *
 * Negative binomial: y ~ Poisson(mu G), G ~ Gamma(shape, shape): a rate with the coefficient of
 *   variation cv, variance mu + cv^2 mu^2. y is the quantile at u, uniform.
 * Gamma: y = mu G, the same G: y itself has the coefficient of variation cv. G is the innovation
 *   while the shape stays, so that a move multiplies. Where the shape changes, model/gamma_shape.c
 *   carries it over.
 *
 * Negative binomial probabilities are added up from 0 where that is short; elsewhere distribution
 * functions and quantiles are Rmath's. Cost per record: two exponential functions and logarithms,
 * and a multiplication and a division for each count up to the old and the new one; with Rmath,
 * about 20 times that. For a Gamma response, a draw or an exponential function; if the shape
 * changes, three more logarithms or exponential functions, and at most one draw in expectation.
 */
#include "model/family.h"
#include "model/gamma_shape.h"

#include "base/dist.h"

#include <Rmath.h>

static inline double mean_of(const struct family *f, double eta) { return fmin(exp(eta), f->most); }

/* ---- negative binomial ------------------------------------------------------------------ */

/* Probabilities of the counts from 0 on are added up as far as this count, to this sum, where the
 * mean is not above a quarter of it: beyond, Rmath has quantiles and tails. */
static const double MOST_ADDED = 400, NEARLY_ALL = 1 - 1e-6;

static inline int adds_up(double mu) { return 4 * mu <= MOST_ADDED; }

/* Of 0; that of k + 1 is `odds` (k + shape) / (k + 1) times that of k. */
static inline double probability_of_none(double shape, double mu, double *odds) {
    *odds = mu / (shape + mu);
    return exp(-shape * log1p(mu / shape));
}

static double count_quantile(double u, double shape, double mu) {
    if (adds_up(mu) && u < NEARLY_ALL) {
        double odds, k = 0, p = probability_of_none(shape, mu, &odds), sum = p;
        for (; sum < u && k < MOST_ADDED; ++k, sum += p) p *= odds * (k + shape) / (k + 1);
        if (sum >= u) return k;
    }
    return Rf_qnbinom_mu(u, shape, mu, 1, 0);
}

/* The count at the share of the way through the uniform numbers of which y is the quantile; of
 * large ones the numbers are counted from above, which keeps their digits. */
static double move_count(double share, double y, double shape, double mu, double shape_new,
                         double mu_new) {
    if (adds_up(mu) && adds_up(mu_new) && y <= MOST_ADDED) {
        double odds, p = probability_of_none(shape, mu, &odds), below = 0;
        for (double k = 0; k < y; ++k) below += p, p *= odds * (k + shape) / (k + 1);
        const double u = below + share * p;
        if (below + p < NEARLY_ALL) return count_quantile(u, shape_new, mu_new);
    }
    const int lower = y <= mu;
    const double density = Rf_dnbinom_mu(y, shape, mu, 0);
    const double beyond = lower ? (y > 0 ? Rf_pnbinom_mu(y - 1, shape, mu, 1, 0) : 0)
                                : Rf_pnbinom_mu(y, shape, mu, 0, 0);
    const double u = fmin(beyond + (lower ? share : 1 - share) * density, 1);
    return Rf_qnbinom_mu(u, shape_new, mu_new, lower, 0);
}

void family_negative_binomial_draw(const struct family *f, struct rng *rng, int m, const double *u,
                                   const double *eta, double *y) {
    (void)rng;
    for (int i = 0; i < m; ++i) y[i] = count_quantile(u[i], f->shape, mean_of(f, eta[i]));
}

void family_negative_binomial_respond(const struct family *f, struct rng *rng, int m, double keep,
                                      const double *w, const double *eta, const double *y,
                                      const double *eta_new, double *y_new) {
    (void)rng;
    for (int i = 0; i < m; ++i) {
        const double mu = mean_of(f, eta[i]), mu_new = mean_of(f, eta_new[i]);
        if (w[i] >= keep)
            y_new[i] = count_quantile((w[i] - keep) / (1 - keep), f->shape_new, mu_new);
        else if (mu == mu_new && f->shape == f->shape_new)
            y_new[i] = y[i];
        else
            y_new[i] = move_count(w[i] / keep, y[i], f->shape, mu, f->shape_new, mu_new);
    }
}

/* Counts up to which records are counted by their response in log densities; beyond, Stirling's
 * series. */
enum { MOST_LISTED = 64 };

/* The sum of log(1 + k / shape) over k from MOST_LISTED to y - 1. */
static double log_rising(double y, double shape) {
    const double from = MOST_LISTED + shape, more = y - MOST_LISTED;
    return (y + shape - 0.5) * log1p(more / from) + more * (log1p(MOST_LISTED / shape) - 1) +
           stirling_rest(y + shape) - stirling_rest(from);
}

/* log f(y) = y log mu - (y + shape) log(1 + mu / shape) + sum_{k < y} log(1 + k / shape) - log y!:
 * no term is large where the shape is. */
double family_negative_binomial_log_density(const struct family *f, int m,
                                            const double *restrict eta, const double *restrict y) {
    const double shape = f->shape, inverse = 1 / shape, log_most = log(f->most);
    int listed[MOST_LISTED + 1] = {0}, above = 0;
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        const double at = fmin(eta[i], log_most);
        if (!(y[i] >= 0)) return -INFINITY;
        sum += (y[i] > 0 ? y[i] * at : 0) - (y[i] + shape) * log1p(exp(at) * inverse);
        if (y[i] > MOST_LISTED) sum += log_rising(y[i], shape);
        ++listed[y[i] < MOST_LISTED ? (int)y[i] : MOST_LISTED];
    }
    for (int k = MOST_LISTED - 1; k > 0; --k) {
        above += listed[k + 1];
        if (above > 0) sum += above * log1p(k * inverse);
    }
    return sum;
}

/* log x less the digamma function, of x that are not small */
static double digamma_rest(double x) {
    const double r = 1 / (x * x);
    return 0.5 / x + (1.0 / 12 - (1.0 / 120 - r / 252) * r) * r;
}

/* Of the shape: the sum over k < y of 1 / (shape + k), less log(1 + mu / shape) and (y - mu) /
 * (mu + shape). Its expected square is an infinite sum: the squares themselves are used. */
double family_negative_binomial_curve(const struct family *f, int m, const double *eta,
                                      const double *y, double *slope, double *weight,
                                      double *of_cv) {
    const double shape = f->shape, log_most = log(f->most), from = MOST_LISTED + shape;
    double rising[MOST_LISTED + 1];
    rising[0] = 0;
    for (int k = 0; k < MOST_LISTED; ++k) rising[k + 1] = rising[k] + 1 / (shape + k);
    const double rest = log(from) - digamma_rest(from);
    for (int i = 0; i < m; ++i) {
        const double mu = exp(fmin(eta[i], log_most)), share = shape / (shape + mu);
        const double total = y[i] > MOST_LISTED ? rising[MOST_LISTED] + log(y[i] + shape) -
                                                      digamma_rest(y[i] + shape) - rest
                                                : rising[y[i] > 0 ? (int)y[i] : 0];
        const double one = 2 * shape * (log1p(mu / shape) + (y[i] - mu) / (mu + shape) - total);
        of_cv[0] += one;
        of_cv[1] += one * one;
        slope[i] = eta[i] > log_most ? 0 : (y[i] - mu) * share;
        weight[i] = eta[i] > log_most ? 0 : mu * share;
    }
    return family_negative_binomial_log_density(f, m, eta, y);
}

/* ---- Gamma ------------------------------------------------------------------------------ */

static double draw_gamma(struct rng *rng, double shape, double mu) {
    return fmax(mu * dist_gamma(rng, shape) / shape, GAMMA_LEAST);
}

void family_gamma_draw(const struct family *f, struct rng *rng, int m, const double *u,
                       const double *eta, double *y) {
    (void)u;
    for (int i = 0; i < m; ++i) y[i] = draw_gamma(rng, f->shape, mean_of(f, eta[i]));
}

void family_gamma_respond(const struct family *f, struct rng *rng, int m, double keep,
                          const double *w, const double *eta, const double *y,
                          const double *eta_new, double *y_new) {
    const int stays = f->shape == f->shape_new;
    struct gamma_shape_move move = {0};
    if (!stays) move = gamma_shape_move(f->shape, f->shape_new);
    for (int i = 0; i < m; ++i) {
        const double mu_new = mean_of(f, eta_new[i]);
        if (w[i] >= keep) {
            y_new[i] = draw_gamma(rng, f->shape_new, mu_new);
            continue;
        }
        const double g = y[i] / mean_of(f, eta[i]);
        y_new[i] = fmax(mu_new * (stays ? g : gamma_shape_carry(&move, rng, g)), GAMMA_LEAST);
    }
}

/* Of x: log x less the digamma function, and the trigamma function less 1 / x. */
static void gamma_constant_slopes(double x, double *first, double *second) {
    enum { LARGE = 16 };
    const double r = 1 / (x * x);
    *first = x < LARGE ? log(x) - Rf_digamma(x) : digamma_rest(x);
    *second =
        x < LARGE ? Rf_trigamma(x) - 1 / x : (0.5 + (1.0 / 6 - (1.0 / 30 - r / 42) * r) / x) * r;
}

/* The sum of log g + 1 - g; NaN where a response cannot be. `ratio` may be NULL. */
static double gamma_deviations(const struct family *f, int m, const double *restrict eta,
                               const double *restrict y, double *restrict ratio) {
    const double log_most = log(f->most);
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        const double g = y[i] * exp(-fmin(eta[i], log_most)), from_one = g - 1;
        if (!(g > 0 && g < INFINITY)) return NAN;
        if (ratio) ratio[i] = g;
        sum += (from_one < -0.5 ? log(g) : log1p(from_one)) - from_one;
    }
    return sum;
}

/* log f(y) = shape (log g + 1 - g) + gamma_shape_constant(shape) - log y, g = y / mu: no term is
 * large where the shape is. */
double family_gamma_log_density(const struct family *f, int m, const double *eta, const double *y) {
    const double sum = gamma_deviations(f, m, eta, y, NULL);
    return isnan(sum) ? -INFINITY : f->shape * sum + m * gamma_shape_constant(f->shape);
}

double family_gamma_curve(const struct family *f, int m, const double *eta, const double *y,
                          double *slope, double *weight, double *of_cv) {
    const double shape = f->shape, log_most = log(f->most);
    const double sum = gamma_deviations(f, m, eta, y, slope);
    if (isnan(sum)) return -INFINITY;
    double first, second;
    gamma_constant_slopes(shape, &first, &second);
    of_cv[0] = -2 * shape * (sum + m * first);
    of_cv[1] = 4 * shape * shape * second * m;
    for (int i = 0; i < m; ++i) {
        weight[i] = eta[i] > log_most ? 0 : shape;
        slope[i] = weight[i] * (slope[i] - 1);
    }
    return shape * sum + m * gamma_shape_constant(shape);
}
