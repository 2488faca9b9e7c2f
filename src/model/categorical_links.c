/* Responses of several levels, for model "categories": P(y = k), k < K, given linear predictors.
 *
 * Cumulative: one predictor eta and cuts 0 = c_0 < c_1 < ..,
 *   P(y > k) = F(eta - c_k),
 * F the logistic or the normal distribution function: eta + e is between the cuts that belong to
 * y, with a logistic or normal error e (McCullagh 1980, JRSS B 42). Softmax: a predictor eta_k for
 * each level but the first,
 *   P(y = k) = exp(eta_k) / sum exp(eta_l), eta_0 = 0.
 *
 * Innovation: u uniform, y = number of k with u < P(y > k). In cumulative models, e is a
 * decreasing function of it, so keeping the innovation keeps the error.
 *
 * Cost per record: an exponential or error function for each level.
 */
#include "model/categorical_links.h"

#include <Rmath.h>

/* Below this probability differences of distribution functions are taken by logarithms; and those
 * of all levels at once. */
static const double SMALL = 1e-9, ROUGH = 1e-6;

static double largest(double a, double b) { return a > b ? a : b; }

/* log(1 - exp(-x)), x > 0 */
static double log_rest(double x) { return x < M_LN2 ? log(-expm1(-x)) : log1p(-exp(-x)); }

/* ---- cumulative ------------------------------------------------------------------------ */

static inline double logit_share(double eta) { return 1 / (1 + exp(-eta)); }
static inline double probit_share(double eta) { return 0.5 * erfc(-eta * M_SQRT1_2); }

/* log F(eta); that of 1 - F(eta) is it at -eta */
static double logit_log(double eta) { return eta > 0 ? -log1p(exp(-eta)) : eta - log1p(exp(eta)); }
static double probit_log(double eta) { return Rf_pnorm5(eta, 0, 1, 1, 1); }

/* log(F(a) - F(b)), a > b */
static double logit_log_between(double a, double b) {
    return logit_log(a) + logit_log(-b) + log_rest(a - b);
}

static double probit_log_between(double a, double b) {
    /* on the side where both are small */
    const double high = b > 0 ? -b : a, low = b > 0 ? -a : b;
    const double p = probit_share(high) - probit_share(low);
    if (p > SMALL) return log(p);
    if (!(a > b)) return -INFINITY;
    const double log_high = probit_log(high), log_low = probit_log(low);
    return log_high > log_low ? log_high + log_rest(log_high - log_low) : -INFINITY;
}

static double logit_log_density(double eta) { return logit_log(eta) + logit_log(-eta); }
static double probit_log_density(double eta) { return Rf_dnorm4(eta, 0, 1, 1); }

/* of F, where it is `share` */
static inline double logit_density(double eta, double share) {
    (void)eta;
    return share * (1 - share);
}
static inline double probit_density(double eta, double share) {
    (void)share;
    return M_1_SQRT_2PI * exp(-0.5 * eta * eta);
}

/* One function for each link, so that its functions are compiled into the loops. */
#define CUMULATIVE(link) \
    static void link##_tail(const struct categories *c, const double *cut, int m, \
                            const double *restrict eta, double *restrict tail) { \
        for (int k = 0; k < c->tails; ++k, tail += MAX_BLOCK) \
            for (int i = 0; i < m; ++i) tail[i] = link##_share(eta[i] - cut[k]); \
    } \
    static double link##_log_level(const struct categories *c, const double *cut, \
                                   const double *eta, int stride, int y, double *of_eta, \
                                   double *of_cut) { \
        const int last = c->tails; \
        (void)stride; \
        const double a = y > 0 ? *eta - cut[y - 1] : 0, b = y < last ? *eta - cut[y] : 0; \
        const double log_p = y == 0      ? link##_log(-b) \
                             : y == last ? link##_log(a) \
                                         : link##_log_between(a, b); \
        if (!of_eta) return log_p; \
        memset(of_cut, 0, (size_t)last * sizeof(double)); \
        if (y > 0) of_cut[y - 1] = -exp(link##_log_density(a) - log_p); \
        if (y < last) of_cut[y] = exp(link##_log_density(b) - log_p); \
        *of_eta = -(y > 0 ? of_cut[y - 1] : 0) - (y < last ? of_cut[y] : 0); \
        return log_p; \
    } \
    static void link##_logs(const struct categories *c, const double *cut, const double *eta, \
                            double *log_p, double *slope) { \
        const int last = c->tails; \
        for (int k = 0; k < last; ++k) c->work[k] = link##_share(*eta - cut[k]); \
        for (int y = 0; y <= last; ++y, slope += last) { \
            const double p = (y > 0 ? c->work[y - 1] : 1) - (y < last ? c->work[y] : 0); \
            double of_eta = 0; \
            if (p > ROUGH) { \
                log_p[y] = log(p); \
                memset(slope, 0, (size_t)last * sizeof(double)); \
                for (int k = y > 0 ? y - 1 : 0; k <= y && k < last; ++k) { \
                    const double density = link##_density(*eta - cut[k], c->work[k]) / p; \
                    slope[k] = k < y ? -density : density; \
                    of_eta -= slope[k]; \
                } \
            } else { \
                log_p[y] = link##_log_level(c, cut, eta, 1, y, &of_eta, slope); \
            } \
            slope[0] = of_eta; /* cut 0 stays at 0 */ \
        } \
    } \
    static void link##_pull(const struct categories *c, const double *cut, int m, \
                            const double *eta, const double *tail, const double *slope, \
                            double *of_eta, double *of_cut) { \
        memset(of_eta, 0, (size_t)m * sizeof(double)); \
        for (int k = 0; k < c->tails; ++k, tail += MAX_BLOCK, slope += MAX_BLOCK) { \
            double sum = 0; \
            for (int i = 0; i < m; ++i) { \
                const double one = \
                    (slope[MAX_BLOCK + i] - slope[i]) * link##_density(eta[i] - cut[k], tail[i]); \
                of_eta[i] += one; \
                sum += one; \
            } \
            of_cut[k] = -sum; \
        } \
    }

CUMULATIVE(logit)
CUMULATIVE(probit)

/* ---- softmax ------------------------------------------------------------------------------ */

/* exp(eta_k - largest) of all levels to `weight`; returns the largest, *sum gets their sum */
static double weigh(const struct categories *c, const double *eta, int stride, double *weight,
                    double *sum) {
    double most = 0;
    for (int e = 0; e < c->predictors; ++e) most = largest(most, eta[(ptrdiff_t)e * stride]);
    *sum = weight[0] = exp(-most);
    for (int e = 0; e < c->predictors; ++e)
        *sum += weight[e + 1] = exp(eta[(ptrdiff_t)e * stride] - most);
    return most;
}

static void softmax_tail(const struct categories *c, const double *cut, int m, const double *eta,
                         double *tail) {
    (void)cut;
    for (int i = 0; i < m; ++i) {
        double sum, above = 0;
        (void)weigh(c, eta + i, MAX_BLOCK, c->work, &sum);
        for (int k = c->tails - 1; k >= 0; --k) {
            above += c->work[k + 1];
            tail[(ptrdiff_t)k * MAX_BLOCK + i] = above / sum;
        }
    }
}

static double softmax_log(const struct categories *c, const double *cut, const double *eta,
                          int stride, int y, double *of_eta, double *of_cut) {
    double sum;
    const double most = weigh(c, eta, stride, c->work, &sum);
    (void)cut, (void)of_cut;
    for (int e = 0; of_eta && e < c->predictors; ++e)
        of_eta[e] = (e + 1 == y ? 1 : 0) - c->work[e + 1] / sum;
    return (y > 0 ? eta[(ptrdiff_t)(y - 1) * stride] : 0) - most - log(sum);
}

static void softmax_logs(const struct categories *c, const double *cut, const double *eta,
                         double *log_p, double *slope) {
    double sum;
    const double most = weigh(c, eta, 1, c->work, &sum), log_sum = most + log(sum);
    (void)cut;
    for (int e = 0; e < c->predictors; ++e) c->work[e + 1] /= sum;
    for (int y = 0; y < c->levels; ++y, slope += c->predictors) {
        log_p[y] = (y > 0 ? eta[y - 1] : 0) - log_sum;
        for (int e = 0; e < c->predictors; ++e) slope[e] = (e + 1 == y ? 1 : 0) - c->work[e + 1];
    }
}

static void softmax_pull(const struct categories *c, const double *cut, int m, const double *eta,
                         const double *tail, const double *slope, double *of_eta, double *of_cut) {
    (void)cut, (void)eta, (void)of_cut;
    for (int i = 0; i < m; ++i) {
        double mean = slope[i], above = 0;
        for (int k = c->tails; k > 0; --k) {
            const double p = tail[(ptrdiff_t)(k - 1) * MAX_BLOCK + i] - above;
            above += p;
            c->work[k] = p;
            mean += p * (slope[(ptrdiff_t)k * MAX_BLOCK + i] - slope[i]);
        }
        for (int k = 1; k <= c->tails; ++k)
            of_eta[(ptrdiff_t)(k - 1) * MAX_BLOCK + i] =
                c->work[k] * (slope[(ptrdiff_t)k * MAX_BLOCK + i] - mean);
    }
}

/* ---- all of them --------------------------------------------------------------------------- */

static const struct categories_class classes[] = {
    {.name = "cumulative_logit",
     .cost = 3,
     .ordered = 1,
     .tail = logit_tail,
     .log = logit_log_level,
     .logs = logit_logs,
     .pull = logit_pull},
    {.name = "cumulative_probit",
     .cost = 5,
     .ordered = 1,
     .tail = probit_tail,
     .log = probit_log_level,
     .logs = probit_logs,
     .pull = probit_pull},
    {.name = "softmax",
     .cost = 3,
     .tail = softmax_tail,
     .log = softmax_log,
     .logs = softmax_logs,
     .pull = softmax_pull},
};

int categories_create(const struct fields *fields, struct categories *c) {
    for (size_t k = 0; k < sizeof classes / sizeof *classes; ++k) {
        const double *levels = fields_vector(fields, classes[k].name, 1);
        if (!levels) continue;
        c->class = classes + k;
        c->levels = (int)*levels;
        c->tails = c->levels - 1;
        c->ordered = classes[k].ordered;
        c->predictors = c->ordered ? 1 : c->tails;
        c->work = doubles((size_t)c->levels);
        return 1;
    }
    return 0;
}

void categories_level(const struct categories *c, int m, const double *restrict u,
                      const double *restrict tail, double *restrict y) {
    memset(y, 0, (size_t)m * sizeof(double));
    for (int k = 0; k < c->tails; ++k, tail += MAX_BLOCK)
        for (int i = 0; i < m; ++i) y[i] += u[i] < tail[i] ? 1 : 0;
}

void categories_respond(const struct categories *c, int m, double keep, const double *w,
                        const double *tail, const double *y, const double *tail_new,
                        double *y_new) {
    for (int i = 0; i < m; ++i) {
        double u;
        if (w[i] < keep) {
            const int k = (int)y[i];
            const double high = k > 0 ? tail[(ptrdiff_t)(k - 1) * MAX_BLOCK + i] : 1;
            const double low = k < c->tails ? tail[(ptrdiff_t)k * MAX_BLOCK + i] : 0;
            u = low + w[i] / keep * (high - low);
            /* rounding may put it on the bound of another level */
            if (u >= high) u = low;
        } else {
            u = (w[i] - keep) / (1 - keep);
        }
        int level = 0;
        while (level < c->tails && u < tail_new[(ptrdiff_t)level * MAX_BLOCK + i]) ++level;
        y_new[i] = level;
    }
}
