/* Families of responses with a shape, for model "glm": the mean is mu = min(exp(eta), most), and
 * cv says how wide the distribution is about it; shape = 1 / cv^2.
 *
 * Negative binomial: y ~ Poisson(mu G), G ~ Gamma(shape, shape): a rate with the coefficient of
 *   variation cv, variance mu + cv^2 mu^2. y is the quantile at u, uniform.
 * Gamma: y = mu G, the same G: y itself has the coefficient of variation cv. G is the innovation
 *   while the shape stays, so that a move multiplies; where the shape changes G goes to the
 *   quantile of the same probability.
 *
 * The distribution functions and quantiles are Rmath's.
 * Cost per record: a negative binomial quantile and a distribution function; of a Gamma response
 * a draw, or an exponential function, or both of these where the shape changes.
 */
#include "family.h"

#include "dist.h"

#include <Rmath.h>

/* responses above 0 */
static const double LEAST = 1e-300;

static inline double mean_of(const struct family *f, double eta) { return fmin(exp(eta), f->most); }

/* ---- negative binomial ------------------------------------------------------------------ */

void family_negative_binomial_draw(const struct family *f, struct rng *rng, int m, const double *u,
                                   const double *eta, double *y) {
    (void)rng;
    for (int i = 0; i < m; ++i) y[i] = Rf_qnbinom_mu(u[i], f->shape, mean_of(f, eta[i]), 1, 0);
}

/* The count at the share of the way through the uniform numbers of which y is the quantile; of
 * large ones the numbers are counted from above, which keeps their digits. */
static double move_count(double share, double y, double shape, double mu, double shape_new,
                         double mu_new) {
    const int lower = y <= mu;
    const double density = Rf_dnbinom_mu(y, shape, mu, 0);
    const double beyond = lower ? (y > 0 ? Rf_pnbinom_mu(y - 1, shape, mu, 1, 0) : 0)
                                : Rf_pnbinom_mu(y, shape, mu, 0, 0);
    const double u = fmin(beyond + (lower ? share : 1 - share) * density, 1);
    return Rf_qnbinom_mu(u, shape_new, mu_new, lower, 0);
}

void family_negative_binomial_respond(const struct family *f, struct rng *rng, int m, double keep,
                                      const double *w, const double *eta, const double *y,
                                      const double *eta_new, double *y_new) {
    (void)rng;
    for (int i = 0; i < m; ++i) {
        const double mu = mean_of(f, eta[i]), mu_new = mean_of(f, eta_new[i]);
        if (w[i] >= keep)
            y_new[i] = Rf_qnbinom_mu((w[i] - keep) / (1 - keep), f->shape_new, mu_new, 1, 0);
        else if (mu == mu_new && f->shape == f->shape_new)
            y_new[i] = y[i];
        else
            y_new[i] = move_count(w[i] / keep, y[i], f->shape, mu, f->shape_new, mu_new);
    }
}

double family_negative_binomial_log_density(const struct family *f, int m, const double *eta,
                                            const double *y) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += Rf_dnbinom_mu(y[i], f->shape, mean_of(f, eta[i]), 1);
    return sum;
}

/* ---- Gamma ------------------------------------------------------------------------------ */

static double draw_gamma(struct rng *rng, double shape, double mu) {
    return fmax(mu * dist_gamma(rng, shape) / shape, LEAST);
}

void family_gamma_draw(const struct family *f, struct rng *rng, int m, const double *u,
                       const double *eta, double *y) {
    (void)u;
    for (int i = 0; i < m; ++i) y[i] = draw_gamma(rng, f->shape, mean_of(f, eta[i]));
}

static double move_shape(double g, double shape, double shape_new) {
    const int lower = g <= 1;
    const double log_p = Rf_pgamma(g * shape, shape, 1, lower, 1);
    return Rf_qgamma(log_p, shape_new, 1, lower, 1) / shape_new;
}

void family_gamma_respond(const struct family *f, struct rng *rng, int m, double keep,
                          const double *w, const double *eta, const double *y,
                          const double *eta_new, double *y_new) {
    for (int i = 0; i < m; ++i) {
        const double mu_new = mean_of(f, eta_new[i]);
        if (w[i] >= keep) {
            y_new[i] = draw_gamma(rng, f->shape_new, mu_new);
            continue;
        }
        const double g = y[i] / mean_of(f, eta[i]);
        const double moved = f->shape == f->shape_new ? g : move_shape(g, f->shape, f->shape_new);
        y_new[i] = fmax(mu_new * moved, LEAST);
    }
}

double family_gamma_log_density(const struct family *f, int m, const double *eta, const double *y) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += Rf_dgamma(y[i], f->shape, mean_of(f, eta[i]) / f->shape, 1);
    return sum;
}
