/* Families of responses: the distribution of y given the linear predictor eta, for model "glm".
 *
 * Binary ones: y = 1[u < F(eta)], u uniform, F(eta) the logistic function, the normal
 * distribution function or 1 - exp(-exp(eta)).
 *   logit: omega ~ PG(1, eta), pseudo-response y - 1/2 (Polson, Scott & Windle 2013, JASA 108).
 *   probit: y = 1[v > 0], v ~ N(eta, 1); given y, v is truncated; weight 1, pseudo-response v
 *     (Albert & Chib 1993, JASA 88).
 *   cloglog: no such variables.
 *
 * Poisson: y the quantile at u of the Poisson distribution with the rate min(exp(eta), most). R
 * sets the largest rate: so large that every record is certainly at its upper bound. The limit
 * does not affect the release, and bounds the cost of a record. Quantiles are found by adding up
 * probabilities from 0, or from below where all are negligible.
 *
 * Negative binomial and Gamma: model/family_shaped.c.
 *
 * Cost per record: an exponential or error function for each eta; of a Poisson response its rate
 * or, from WIDE_RATE on, some multiple of the square root of it.
 */
#include "model/family.h"

#include "base/block.h"
#include "base/dist.h"

#include <Rmath.h>

/* ---- binary responses ---------------------------------------------------------------- */

static inline double logit_probability(double eta) { return 1 / (1 + exp(-eta)); }
static inline double probit_probability(double eta) { return 0.5 * erfc(-eta * sqrt(0.5)); }
static inline double cloglog_probability(double eta) { return -expm1(-exp(eta)); }

/* One function for each link, so that its probability is compiled into the loops. */
#define BINARY(link) \
    static void link##_draw(const struct family *f, struct rng *rng, int m, \
                            const double *restrict u, const double *restrict eta, \
                            double *restrict y) { \
        (void)f, (void)rng; \
        for (int i = 0; i < m; ++i) y[i] = u[i] < link##_probability(eta[i]) ? 1 : 0; \
    } \
    static void link##_respond(const struct family *f, struct rng *rng, int m, double keep, \
                               const double *restrict w, const double *restrict eta, \
                               const double *restrict y, const double *restrict eta_new, \
                               double *restrict y_new) { \
        (void)f, (void)rng; \
        for (int i = 0; i < m; ++i) { \
            double u; \
            if (w[i] < keep) { \
                const double p = link##_probability(eta[i]), share = w[i] / keep; \
                u = y[i] > 0 ? p * share : p + (1 - p) * share; \
            } else { \
                u = (w[i] - keep) / (1 - keep); \
            } \
            y_new[i] = u < link##_probability(eta_new[i]) ? 1 : 0; \
        } \
    }

BINARY(logit)
BINARY(probit)
BINARY(cloglog)

static void logit_latent(const struct family *f, struct rng *rng, int m, const double *eta,
                         const double *y, double *weight, double *pseudo) {
    (void)y, (void)pseudo;
    polya_gamma_fill(&f->polya_gamma, rng, m, eta, weight);
}

static double logit_log_density(const struct family *f, int m, const double *restrict eta,
                                const double *restrict y) {
    double sum = 0;
    (void)f;
    for (int i = 0; i < m; ++i) {
        const double toward = y[i] > 0 ? eta[i] : -eta[i];
        sum -= toward > 0 ? log1p(exp(-toward)) : log1p(exp(toward)) - toward;
    }
    return sum;
}

static void logit_logs(double eta, double *log_p, double *slope) {
    const double small = exp(-fabs(eta)), log_large = -log1p(small),
                 log_small = log_large - fabs(eta);
    const double large = 1 / (1 + small), p = eta > 0 ? large : small * large;
    log_p[0] = eta > 0 ? log_small : log_large;
    log_p[1] = eta > 0 ? log_large : log_small;
    slope[0] = -p;
    slope[1] = eta > 0 ? small * large : large;
}

/* Of N(eta, 1), the side of 0 where y is. What it differs by from eta towards that side, t, is
 * above -|eta| or -eta: its mirror image lies below, with the distribution function u F(.). */
static void probit_latent(const struct family *f, struct rng *rng, int m, const double *eta,
                          const double *y, double *weight, double *pseudo) {
    enum { FAR = 30 };
    (void)f;
    for (int i = 0; i < m; ++i) {
        const double sign = y[i] > 0 ? 1 : -1, at = sign * eta[i], u = rng_uniform(rng);
        const double below = at > -FAR ? Rf_qnorm5(u * probit_probability(at), 0, 1, 1, 0)
                                       : Rf_qnorm5(log(u) + Rf_pnorm5(at, 0, 1, 1, 1), 0, 1, 1, 1);
        pseudo[i] = eta[i] - sign * below;
        weight[i] = 1;
    }
}

static double probit_log_density(const struct family *f, int m, const double *eta,
                                 const double *y) {
    double sum = 0;
    (void)f;
    for (int i = 0; i < m; ++i) sum += Rf_pnorm5(y[i] > 0 ? eta[i] : -eta[i], 0, 1, 1, 1);
    return sum;
}

static void probit_logs(double eta, double *log_p, double *slope) {
    const double log_density = Rf_dnorm4(eta, 0, 1, 1);
    for (int y = 0; y < 2; ++y) {
        log_p[y] = Rf_pnorm5(eta, 0, 1, y, 1);
        slope[y] = (y ? 1 : -1) * exp(log_density - log_p[y]);
    }
}

static double cloglog_log_density(const struct family *f, int m, const double *restrict eta,
                                  const double *restrict y) {
    double sum = 0;
    (void)f;
    for (int i = 0; i < m; ++i) {
        const double rate = exp(eta[i]);
        sum += y[i] > 0 ? log(-expm1(-rate)) : -rate;
    }
    return sum;
}

static void cloglog_logs(double eta, double *log_p, double *slope) {
    const double rate = fmin(exp(eta), 1e300);
    log_p[0] = -rate;
    log_p[1] = rate < 0.5 ? log(-expm1(-rate)) : log1p(-exp(-rate));
    slope[0] = -rate;
    slope[1] = rate < 1e-300 ? 1 : rate / expm1(rate);
}

static double binary_curve(const struct family *f, int m, const double *eta, const double *y,
                           double *slope, double *weight, double *of_cv) {
    double sum = 0;
    (void)of_cv;
    for (int i = 0; i < m; ++i) {
        double log_p[2], slopes[2];
        const int one = y[i] > 0;
        f->class->logs(eta[i], log_p, slopes);
        sum += log_p[one];
        slope[i] = slopes[one];
        weight[i] = -slopes[0] * slopes[1]; /* sum of P(y) slope^2, as that of P(y) slope is 0 */
    }
    return sum;
}

/* ---- Poisson responses ------------------------------------------------------------------ */

/* From this rate on, sums begin so many standard deviations below it: what is left out has a
 * probability below 1e-18. */
static const double WIDE_RATE = 100, REACH = 9;

/* where probabilities have become negligible above the mode */
static const double NEGLIGIBLE = 1e-19;

static inline double rate_of(const struct family *f, double eta) { return fmin(exp(eta), f->most); }

/* The first number to look at, and its probability. */
static inline double first_count(double rate, double *probability) {
    if (rate < WIDE_RATE) {
        *probability = exp(-rate);
        return 0;
    }
    const double k = floor(rate - REACH * sqrt(rate));
    *probability = exp(dist_log_poisson(k, rate));
    return k;
}

static double poisson_quantile(double u, double rate) {
    double p, k = first_count(rate, &p);
    for (double sum = p; u >= sum && (k < rate || p > NEGLIGIBLE); sum += p) p *= rate / ++k;
    return k;
}

/* The share u of the way through the uniform numbers of which y is the quantile. */
static double poisson_place(double u, double y, double rate) {
    double p, k = first_count(rate, &p), sum = 0;
    for (; k < y && (k < rate || p > NEGLIGIBLE); p *= rate / ++k) sum += p;
    return k < y ? 1 : sum + u * p;
}

static void poisson_draw(const struct family *f, struct rng *rng, int m, const double *u,
                         const double *eta, double *y) {
    (void)rng;
    for (int i = 0; i < m; ++i) y[i] = poisson_quantile(u[i], rate_of(f, eta[i]));
}

static void poisson_respond(const struct family *f, struct rng *rng, int m, double keep,
                            const double *w, const double *eta, const double *y,
                            const double *eta_new, double *y_new) {
    (void)rng;
    for (int i = 0; i < m; ++i) {
        const double rate_new = rate_of(f, eta_new[i]);
        if (w[i] < keep) {
            const double rate = rate_of(f, eta[i]);
            y_new[i] = rate == rate_new
                           ? y[i]
                           : poisson_quantile(poisson_place(w[i] / keep, y[i], rate), rate_new);
        } else {
            y_new[i] = poisson_quantile((w[i] - keep) / (1 - keep), rate_new);
        }
    }
}

static double poisson_log_density(const struct family *f, int m, const double *restrict eta,
                                  const double *restrict y) {
    const double log_most = log(f->most);
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        const double at = fmin(eta[i], log_most);
        sum += (y[i] > 0 ? y[i] * at : 0) - exp(at);
    }
    return sum;
}

static double poisson_curve(const struct family *f, int m, const double *restrict eta,
                            const double *restrict y, double *restrict slope,
                            double *restrict weight, double *of_cv) {
    const double log_most = log(f->most);
    double sum = 0;
    (void)of_cv;
    for (int i = 0; i < m; ++i) {
        const double at = fmin(eta[i], log_most), rate = exp(at);
        sum += (y[i] > 0 ? y[i] * at : 0) - rate;
        slope[i] = eta[i] > log_most ? 0 : y[i] - rate;
        weight[i] = eta[i] > log_most ? 0 : rate;
    }
    return sum;
}

/* ---- all of them ------------------------------------------------------------------------ */

static const struct family_class families[] = {
    {.name = "logit",
     .cost_latent = 13,
     .draw = logit_draw,
     .respond = logit_respond,
     .latent = logit_latent,
     .log_density = logit_log_density,
     .logs = logit_logs,
     .means = family_means_logit},
    {.name = "probit",
     .cost = 4,
     .cost_latent = 20,
     .pseudo = 1,
     .draw = probit_draw,
     .respond = probit_respond,
     .latent = probit_latent,
     .log_density = probit_log_density,
     .logs = probit_logs,
     .means = family_means_probit},
    {.name = "cloglog",
     .cost = 4,
     .draw = cloglog_draw,
     .respond = cloglog_respond,
     .log_density = cloglog_log_density,
     .curve = binary_curve,
     .logs = cloglog_logs,
     .means = family_means_cloglog},
    {.name = "poisson",
     .cost = 10,
     .counts = 1,
     .draw = poisson_draw,
     .respond = poisson_respond,
     .log_density = poisson_log_density,
     .curve = poisson_curve,
     .means = family_means_log,
     .squares = family_squares_log,
     .powers = family_powers_poisson},
    {.name = "negative_binomial",
     .cost = 15,
     .cost_move = 15,
     .shaped = 1,
     .counts = 1,
     .draw = family_negative_binomial_draw,
     .respond = family_negative_binomial_respond,
     .log_density = family_negative_binomial_log_density,
     .curve = family_negative_binomial_curve,
     .means = family_means_log,
     .squares = family_squares_log},
    {.name = "gamma",
     .cost = 15,
     .cost_move = 25,
     .shaped = 1,
     .draw = family_gamma_draw,
     .respond = family_gamma_respond,
     .log_density = family_gamma_log_density,
     .curve = family_gamma_curve,
     .means = family_means_log,
     .squares = family_squares_log},
};

struct family *family_create(const struct fields *fields) {
    for (size_t k = 0; k < sizeof families / sizeof *families; ++k) {
        const double *most = fields_vector(fields, families[k].name, families[k].squares ? 3 : 1);
        if (!most) continue;
        struct family *f = plugin_memory(1, sizeof *f);
        f->class = families + k;
        f->most = *most;
        if (f->class->squares) f->lower = most[1], f->upper = most[2];
        if (families[k].latent == logit_latent) polya_gamma_prepare(&f->polya_gamma);
        return f;
    }
    return NULL;
}
