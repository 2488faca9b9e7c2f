/* Noisy counts: the density of the answer z given eta is
 *
 *   sum over k of p(k | eta) f(z - clamp(k)),
 *
 * with the noise density f and the clamped count clamp(k). The Poisson and the negative binomial
 * distribution have p(k + 1) / p(k) = (alpha + beta k) / (k + 1) (Panjer 1981, ASTIN Bulletin 12),
 * and the noise density's ratio from one whole number to the next is a constant (Laplace), or
 * changes by a constant factor (Gaussian). So the sum starts at the whole number k_0 next to z, at
 * p(k_0) f(z - k_0), and goes on in both directions by ratios, until what is left is below 1e-12
 * of it: no term needs a logarithm. If bounds clamp, the counts beyond have one term with the
 * distribution function, which is computed only if it matters.
 *
 * The score is d log p(k) / d eta = c (k - mean), so that the slope is c (E(k | z) - mean), and of
 * the counts from U on c U p(U) / (1 - beta).
 *
 * Cost per record: about 8 standard deviations of k given z in terms, three multiplications and a
 * division each. No allocation except in create().
 */
#include "totals/noisy_answers.h"

#include "base/dist.h"

#include <Rmath.h>
#undef digamma /* a name here */

/* What does not depend on eta. Noise's ratios: from k_0 to k_0 + 1, from there to k_0 + 2, and what
 * the latter changes by with each further step; the same downwards. */
struct noisy_count {
    double first;     /* k_0 */
    double log_noise; /* at z - k_0 */
    double log_base;  /* what log p(k_0) has that does not depend on eta or the shape */
    double up, next_up, down, next_down, bend;
    double below, above; /* log noise at the bounds; -INFINITY: no count is clamped there */
};

/* The distribution of a count at one eta. */
struct count_place {
    double alpha, beta;
    double mean, score; /* d log p(k) / d eta = score (k - mean) */
    double log_first;   /* log p(k_0), less log_base */
    double size;        /* of a negative binomial; 0 of others */
};

/* What was added up, in units of term k_0 times exp(log_unit): terms, terms times k - k_0 and, of a
 * negative binomial, terms times digamma(k + size). */
struct count_sums {
    double terms, steps, digammas, first, log_unit;
};

struct noisy_count_family {
    struct count_place (*place)(const struct noisy_answers *a, int i, double eta);
    double (*log_p)(const struct count_place *p, double k);
    double (*log_tail)(const struct count_place *p, double k, int above); /* P(. > k), P(. <= k) */
};

static const double LEFT = 1e-12, TOO_BIG = 1e200;
static const double NEGLIGIBLE = 45; /* exp(-45) is below 1e-19 */

/* ---- the distributions ------------------------------------------------------------------ */

static struct count_place poisson_place(const struct noisy_answers *a, int i, double eta) {
    const double rate = exp(eta);
    const struct count_place place = {
        .alpha = rate, .mean = rate, .score = 1, .log_first = a->counts[i].first * eta - rate};
    return place;
}

static double poisson_log_p(const struct count_place *p, double k) {
    return dist_log_poisson(k, p->mean);
}

static double poisson_log_tail(const struct count_place *p, double k, int above) {
    return Rf_ppois(k, p->mean, !above, 1);
}

static struct count_place negative_binomial_place(const struct noisy_answers *a, int i,
                                                  double eta) {
    const double rate = exp(eta), size = 1 / (a->shape * a->shape), sum = size + rate;
    const double q = rate / sum, k = a->counts[i].first;
    const struct count_place place = {.alpha = size * q,
                                      .beta = q,
                                      .mean = rate,
                                      .score = size / sum,
                                      .size = size,
                                      .log_first = Rf_lgammafn(k + size) - Rf_lgammafn(size) -
                                                   size * log1p(rate / size) + k * log(q)};
    return place;
}

static double negative_binomial_log_p(const struct count_place *p, double k) {
    return Rf_dnbinom_mu(k, p->size, p->mean, 1);
}

static double negative_binomial_log_tail(const struct count_place *p, double k, int above) {
    return Rf_pnbinom_mu(k, p->size, p->mean, !above, 1);
}

/* ---- the sum ---------------------------------------------------------------------------- */

static void rescale(struct count_sums *s, double *term) {
    *term /= TOO_BIG;
    s->terms /= TOO_BIG;
    s->steps /= TOO_BIG;
    s->digammas /= TOO_BIG;
    s->first /= TOO_BIG;
    s->log_unit += log(TOO_BIG);
}

/* Counts above k_0, up to `last`. A ratio of p only falls, unless alpha < beta: then beta is more
 * than any. */
static void sum_up(const struct noisy_count *c, const struct count_place *p, double last,
                   double digamma, struct count_sums *s) {
    double term = s->first, noise = c->up, steps = 0;
    for (double k = c->first; k < last;) {
        const double ratio = (p->alpha + p->beta * k) / (k + 1) * noise;
        const double most = p->alpha < p->beta ? p->beta * noise : ratio;
        if (p->size > 0) digamma += 1 / (k + p->size);
        noise = steps == 0 ? c->next_up : noise * c->bend;
        term *= ratio;
        ++k, ++steps;
        s->terms += term;
        s->steps += steps * term;
        s->digammas += digamma * term;
        if (term <= LEFT * s->terms * (1 - most)) return;
        if (term > TOO_BIG) rescale(s, &term);
    }
}

/* Counts below k_0, down to `last`. */
static void sum_down(const struct noisy_count *c, const struct count_place *p, double last,
                     double digamma, struct count_sums *s) {
    double term = s->first, noise = c->down, steps = 0;
    for (double k = c->first; k > last;) {
        const double ratio = k / (p->alpha + p->beta * (k - 1)) * noise;
        const double most = p->alpha < p->beta ? noise / p->alpha : ratio;
        noise = steps == 0 ? c->next_down : noise * c->bend;
        term *= ratio;
        --k, --steps;
        if (p->size > 0) digamma -= 1 / (k + p->size);
        s->terms += term;
        s->steps += steps * term;
        s->digammas += digamma * term;
        if (term <= LEFT * s->terms * (1 - most)) return;
        if (term > TOO_BIG) rescale(s, &term);
    }
}

/* A term of its own for the counts that bounds clamp: those above k, or from k down. `log_noise` is
 * that at the bound, `*slope` and `*of_shape` become slopes of the whole logarithm. */
static double with_tail(const struct noisy_answers *a, int i, double eta,
                        const struct count_place *p, double k, int above, double log_noise,
                        double log_sum, double *slope, double *of_shape) {
    static const double STEP = 1e-4;
    const struct noisy_count_family *family = a->count_family;
    if (log_noise < log_sum - NEGLIGIBLE) return log_sum;
    const double log_mass = family->log_tail(p, k, above), log_tail = log_mass + log_noise;
    if (!(log_tail > log_sum - NEGLIGIBLE)) return log_sum;
    const double log_all = Rf_logspace_add(log_sum, log_tail), share = exp(log_tail - log_all);
    const double of_tail = (above ? 1 : -1) * p->score * (k + 1) / (1 - p->beta) *
                           exp(family->log_p(p, k + 1) - log_mass);
    *slope += share * (of_tail - *slope);
    if (a->shapes == 0) return log_all;
    struct noisy_answers near = *a;
    double ends[2];
    for (int end = 0; end < 2; ++end) {
        near.shape = a->shape * exp(end ? STEP : -STEP);
        const struct count_place there = family->place(&near, i, eta);
        ends[end] = family->log_tail(&there, k, above);
    }
    *of_shape += share * ((ends[1] - ends[0]) / (2 * STEP) - *of_shape);
    return log_all;
}

/* whole numbers that are not clamped */
static double least_count(const struct noisy_answers *a) { return fmax(ceil(a->lower), 0); }
static double most_count(const struct noisy_answers *a) { return ceil(a->upper) - 1; }

static double one_answer(const struct noisy_answers *a, int i, double eta, double *slope,
                         double *of_shape) {
    const struct noisy_count *c = a->counts + i;
    const struct count_place p = a->count_family->place(a, i, eta);
    const double least = least_count(a), most = most_count(a);
    const double digamma = p.size > 0 ? Rf_digamma(c->first + p.size) : 0;
    struct count_sums s = {.terms = 1, .first = 1, .digammas = digamma};
    sum_up(c, &p, most, digamma, &s);
    sum_down(c, &p, least, digamma, &s);
    const double k = c->first + s.steps / s.terms;
    *slope = p.score * (k - p.mean);
    double d_shape = 0;
    if (p.size > 0)
        d_shape = -2 * p.size *
                  (s.digammas / s.terms - Rf_digamma(p.size) - log1p(p.mean / p.size) + 1 -
                   (p.size + k) / (p.size + p.mean));
    double log_sum = c->log_base + p.log_first + c->log_noise + log(s.terms) + s.log_unit;
    if (c->above > -INFINITY)
        log_sum = with_tail(a, i, eta, &p, most, 1, c->above, log_sum, slope, &d_shape);
    if (c->below > -INFINITY)
        log_sum = with_tail(a, i, eta, &p, least - 1, 0, c->below, log_sum, slope, &d_shape);
    if (a->shapes > 0) *of_shape = d_shape;
    return log_sum;
}

static double log_density(const struct noisy_answers *a, int first, int m, const double *eta,
                          double *slope, double *of_shape) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += one_answer(a, first + i, eta[i], slope + i, of_shape + i);
    return sum;
}

/* ---- set-up ----------------------------------------------------------------------------- */

/* the ratio of the noise densities from k to k + by */
static double noise_ratio(const struct noisy_answers *a, int i, double k, int by) {
    return exp(noisy_answer_kernel(a, i, a->answer[i] - k - by) -
               noisy_answer_kernel(a, i, a->answer[i] - k));
}

static void prepare(const struct noisy_answers *a, int i, struct noisy_count *c) {
    const double least = least_count(a), most = most_count(a), z = a->answer[i];
    const double k = fmax(fmin(floor(z + 0.5), most), least), w = a->weight[i];
    c->first = k;
    c->log_noise = noisy_answer_kernel(a, i, z - k);
    c->log_base = -Rf_lgammafn(k + 1);
    c->up = noise_ratio(a, i, k, 1);
    c->next_up = noise_ratio(a, i, k + 1, 1);
    c->down = noise_ratio(a, i, k, -1);
    c->next_down = noise_ratio(a, i, k - 1, -1);
    c->bend = a->squared ? exp(-w * w) : 1;
    c->above = a->upper < INFINITY ? noisy_answer_kernel(a, i, z - a->upper) : -INFINITY;
    c->below = least > 0 ? noisy_answer_kernel(a, i, z - a->lower) : -INFINITY;
}

static int create(const struct noisy_count_family *family, struct noisy_answers *a) {
    a->count_family = family;
    a->counts = plugin_memory((size_t)a->records, sizeof *a->counts);
    for (int i = 0; i < a->records; ++i) prepare(a, i, a->counts + i);
    return PLUGIN_OK;
}

static const struct noisy_count_family poisson = {.place = poisson_place,
                                                  .log_p = poisson_log_p,
                                                  .log_tail = poisson_log_tail},
                                       negative_binomial = {.place = negative_binomial_place,
                                                            .log_p = negative_binomial_log_p,
                                                            .log_tail = negative_binomial_log_tail};

static int poisson_create(const struct fields *fields, struct noisy_answers *a) {
    (void)fields;
    return create(&poisson, a);
}

static int negative_binomial_create(const struct fields *fields, struct noisy_answers *a) {
    (void)fields;
    a->shapes = 1;
    return create(&negative_binomial, a);
}

const struct noisy_answer_class noisy_answer_poisson = {.create = poisson_create,
                                                        .log_density = log_density},
                                noisy_answer_negative_binomial = {.set = noisy_answer_set_shape,
                                                                  .create =
                                                                      negative_binomial_create,
                                                                  .log_density = log_density};
