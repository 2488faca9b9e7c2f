/* Method "collapse", the total of one variable: Poisson or exponential records
 * with a gamma prior of the rate, and a release of their total alone. Exact if no
 * record lies outside the bounds.
 *
 * The rate is integrated out. Poisson, s | rate ~ Poisson(n rate): s has a
 * negative binomial distribution, p(s) proportional to Gamma(a + s) / s! (n / (b + n))^s.
 * Exponential, s | rate ~ Gamma(n, rate): p(s) proportional to s^(n - 1) /
 * (b + s)^(a + n). Target: p(s) eta(z | s).
 *
 * An iteration makes WALKS steps of a random walk, its scale learned in warmup
 * (it suits noise that is narrow relative to p), and INDEPENDENT proposals from p
 * itself (which suit wide noise). Where the noise has holes, FAR_WALKS steps may go farther, by a
 * factor whose logarithm is uniform. Then the rate is drawn given s.
 *
 * The number of records n may be unknown: then p(s) has the remaining factors that depend on n,
 *
 *   Poisson (b + n)^-a (1 + b / n)^-s,   exponential Gamma(a + n) / Gamma(n) s^(n - 1) / (b + s)^(a
 * + n),
 *
 * and p(n) and the noise of a released n are factors. n takes steps near its current value and,
 * once warmup has located n, from its distribution there (mcmc/n_regression_proposal.c), with s
 * held fixed, which suits a precise total, or with s / n held fixed, which suits a rate that the
 * prior determines. A whole s has a fraction u for that, uniform in (0, 1): s + u is multiplied by
 * n'
 * / n, the Jacobian.
 */
#include "base/dist.h"
#include "contract/collapse.h"
#include "contract/model_update.h"
#include "mcmc/adapt.h"
#include "mcmc/n_regression_proposal.h"

#include <Rmath.h>

/* kinds of moves that are counted */
enum { WALK, FRESH, SIZE };

/* of an unknown n: s stays, or s / n */
enum { STAYS, ALONG, SIZE_KINDS_OF_STEP };

enum { WALKS = 8, INDEPENDENT = 2, FAR_WALKS = 32 };

static const double TARGET = 0.44;

struct total {
    int whole; /* Poisson: the total is a whole number */
    struct dist_rising rising;
    double n;
    const double *far;             /* log of that factor, at most; 0: the noise has no hole */
    const double *is_size;         /* of each component: it is n, not the total */
    const double *shape, *rate;    /* of the prior */
    const double *lower, *upper;   /* of the variable */
    double *value, *scale, *tries; /* state: s, and the walk's */
    /* unknown n: n, a part of the state, sd of its start, and steps of both kinds */
    double *records, size_spread;
    struct size_slope step[SIZE_KINDS_OF_STEP];
};

/* Fields: whole; shape and rate of the prior; lower and upper; far; is_size, one a component; where
 * n is unknown size_spread, the sd of its start about the n that is given. */
static int create(const struct fields *fields, struct collapse *c) {
    struct total *s = plugin_memory(1, sizeof *s);
    const double *whole = fields_vector(fields, "whole", 1);
    s->shape = fields_vector(fields, "shape", 1);
    s->rate = fields_vector(fields, "rate", 1);
    s->lower = fields_vector(fields, "lower", 1);
    s->upper = fields_vector(fields, "upper", 1);
    s->far = fields_vector(fields, "far", 1);
    s->is_size = fields_vector(fields, "is_size", c->noise.size);
    if (!s->far || !whole || !s->shape || !s->rate || !s->lower || !s->upper || !s->is_size)
        return PLUGIN_BAD_FIELDS;
    s->whole = *whole != 0;
    dist_rising_set(&s->rising, *s->shape);
    s->n = c->n;
    c->self = s;
    c->stored = 3;
    if (!c->size_prior) return PLUGIN_OK;
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread) return PLUGIN_BAD_FIELDS;
    s->size_spread = *spread;
    c->stored += 1 + SIZE_KINDS_OF_STEP * (int)size_slope_stored(0);
    return PLUGIN_OK;
}

static void load(struct collapse *c) {
    struct total *s = c->self;
    s->value = c->store;
    s->scale = c->store + 1;
    s->tries = c->store + 2;
    if (!c->size_prior) return;
    s->records = c->store + 3;
    for (int k = 0; k < SIZE_KINDS_OF_STEP; ++k)
        size_slope_attach(s->step + k, 0, NULL, c->store + 4 + (size_t)k * size_slope_stored(0));
    s->n = *s->records;
}

/* beyond it a double is no whole number */
static const double MOST = 1e15;

/* the total given the logarithm of the rate */
static double draw_value(const struct total *s, struct rng *rng, double log_rate) {
    if (!s->whole) return dist_gamma(rng, s->n) * exp(-log_rate);
    const double mean = s->n * exp(log_rate);
    return dist_poisson(rng, mean < MOST ? mean : MOST);
}

static int is_value(const struct total *s, double value) {
    return s->whole ? value >= 0 && value < MOST : value > 0 && value < 1e300;
}

/* exponential records have a total only if there are any */
static double least_size(const struct total *s) { return s->whole ? 0 : 1; }

static void start_size(struct collapse *c) {
    struct total *s = c->self;
    const double n = rint(c->n + s->size_spread * rng_normal(c->rng));
    const double least = fmax(c->size_prior->lower, least_size(s));
    s->n = *s->records = fmin(fmax(n, least), c->size_prior->upper);
    for (int k = 0; k < SIZE_KINDS_OF_STEP; ++k) size_slope_start(s->step + k);
}

static void start(struct collapse *c) {
    struct total *s = c->self;
    load(c);
    if (c->size_prior) start_size(c);
    *s->value = draw_value(s, c->rng, *c->theta);
    int first = 0;
    while (first < c->noise.size - 1 && s->is_size[first] != 0) ++first;
    *s->scale = 1 / c->noise.weight[first]; /* the noise's */
    *s->tries = 0;
}

/* of the components that are the total, or of those that are n */
static double energy_of(const struct collapse *c, int sizes, double value) {
    const struct total *s = c->self;
    double sum = 0;
    for (int k = 0; k < c->noise.size; ++k)
        if ((s->is_size[k] != 0) == sizes) sum += noise_energy_of(&c->noise, k, value);
    return sum;
}

static double energy_at(const struct collapse *c, double value) { return energy_of(c, 0, value); }

/* log p(to) - log p(from) without a difference of large numbers where s moves
 * by a small share of itself */
static double log_distribution_ratio(const struct total *s, double from, double to) {
    const double by = to - from, a = *s->shape, b = *s->rate;
    if (s->whole && !(s->n > 0)) return to > 0 ? -INFINITY : 0;
    if (!s->whole)
        return (s->n - 1) * (log1p(by / from) - log1p(by / (b + from))) -
               (a + 1) * log1p(by / (b + from));
    return (dist_log_rising(&s->rising, to) - dist_log_rising(&s->rising, from)) -
           by * log1p(b / s->n);
}

static double probability(double log_ratio) {
    return log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
}

static int walk(struct collapse *c, double farther, int learning) {
    struct total *s = c->self;
    double by = farther * *s->scale * rng_normal(c->rng);
    if (s->whole) by = by > 0 ? ceil(by) : floor(by);
    const double to = *s->value + by;
    double log_ratio = -INFINITY;
    if (is_value(s, to))
        log_ratio =
            log_distribution_ratio(s, *s->value, to) + energy_at(c, *s->value) - energy_at(c, to);
    const int accept = -log_ratio < rng_exponential(c->rng);
    if (accept) *s->value = to;
    if (learning) {
        *s->tries += 1;
        *s->scale *= exp(2 / (1 + pow(*s->tries, 0.6)) * (probability(log_ratio) - TARGET));
    }
    return accept;
}

static int propose_fresh(struct collapse *c) {
    struct total *s = c->self;
    const double log_rate = dist_log_gamma(c->rng, *s->shape) - log(*s->rate);
    const double to = draw_value(s, c->rng, log_rate);
    const double log_ratio = energy_at(c, *s->value) - energy_at(c, to);
    const int accept = is_value(s, to) && -log_ratio < rng_exponential(c->rng);
    if (accept) *s->value = to;
    return accept;
}

/* ---- the number of records ------------------------------------------------------------------ */

/* log p(n) p(s | n), up to a constant */
static double log_size(const struct collapse *c, double n, double value) {
    const struct total *s = c->self;
    const double a = *s->shape, b = *s->rate;
    if (n < least_size(s) || (s->whole && n == 0 && value > 0)) return -INFINITY;
    const double log_prior = size_prior_log(c->size_prior, n);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    if (s->whole)
        return log_prior + dist_log_rising(&s->rising, value) - a * log(b + n) -
               (value > 0 ? value * log1p(b / n) : 0);
    return log_prior + dist_log_rising(&s->rising, n) + log(n) - (n - 1) * log1p(b / value) -
           (a + 1) * log(b + value);
}

static int move_size(struct collapse *c, int kind, int fresh, int learning) {
    struct total *s = c->self;
    struct size_slope *step = s->step + kind;
    double log_ratio, to = *s->value;
    const double n = fresh ? size_slope_fresh(step, s->n, c->rng, &log_ratio)
                           : size_slope_walk(step, s->n, c->rng, &log_ratio);
    if (kind == ALONG) {
        const double by = n / s->n;
        to = by * (*s->value + (s->whole ? rng_uniform(c->rng) : 0));
        if (s->whole) to = floor(to);
        log_ratio += log(by); /* not finite where there were, or are, no records */
    }
    const double log_new = n >= 0 && is_value(s, to) ? log_size(c, n, to) : -INFINITY;
    if (log_new > -INFINITY && isfinite(log_ratio))
        log_ratio += log_new - log_size(c, s->n, *s->value) + energy_at(c, *s->value) -
                     energy_at(c, to) + energy_of(c, 1, s->n) - energy_of(c, 1, n);
    else
        log_ratio = -INFINITY;
    const int accept = -log_ratio < rng_exponential(c->rng);
    if (accept) {
        s->n = *s->records = n;
        *s->value = to;
    }
    if (learning && !fresh) size_slope_tried(step, log_ratio, c->size_prior->upper);
    collapse_count(c, SIZE, accept);
    return accept;
}

static void move_sizes(struct collapse *c, int turn, int learning, int closes) {
    struct total *s = c->self;
    for (int k = 0; k < SIZE_KINDS_OF_STEP; ++k) {
        const int knows = size_slope_knows(s->step + k);
        if (!knows || learning || k == turn % SIZE_KINDS_OF_STEP) move_size(c, k, 0, learning);
        move_size(c, k, knows, learning);
    }
    for (int kind = 0; learning && kind < SIZE_KINDS_OF_STEP; ++kind) {
        size_slope_saw(s->step + kind, s->n, log(s->n + 0.5), NULL);
        if (closes) size_slope_close(s->step + kind);
    }
}

/* ---- an iteration --------------------------------------------------------------------------- */

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct total *s = c->self;
    const int learning = iteration < warmup;
    int kept = 0;
    for (int k = 0; k < WALKS; ++k) {
        const int accept = walk(c, 1, learning);
        collapse_count(c, WALK, accept);
        kept += accept;
    }
    for (int k = 0; *s->far > 0 && k < FAR_WALKS; ++k)
        (void)walk(c, exp(*s->far * rng_uniform(c->rng)), 0);
    for (int k = 0; k < INDEPENDENT; ++k) collapse_count(c, FRESH, propose_fresh(c));
    *accepted = (double)kept / WALKS;
    const int closes = learning && adapt_window(iteration, warmup);
    if (c->size_prior) move_sizes(c, iteration, learning, closes);
    if (closes) *s->tries = 0;
    return c->model.update->rtheta(c->model.self, s->value, s->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct total *s = c->self;
    for (int k = 0; k < c->noise.size; ++k) out[k] = s->is_size[k] != 0 ? s->n : *s->value;
}

static double records(const struct collapse *c) {
    const struct total *s = c->self;
    return s->n;
}

/* a record is never below 0 */
static double outside(const struct collapse *c) {
    const struct total *s = c->self;
    const double rate = exp(*c->theta);
    if (s->whole)
        return (*s->lower > 0 ? Rf_ppois(ceil(*s->lower) - 1, rate, 1, 0) : 0) +
               Rf_ppois(*s->upper, rate, 0, 0);
    return (*s->lower > 0 ? -expm1(-rate * *s->lower) : 0) + exp(-rate * *s->upper);
}

static double work(const struct collapse *c) {
    (void)c;
    return 3000;
}

const struct collapse_class collapse_total = {
    .name = "total",
    .counters =
        {
            [2 * WALK + MADE] = "walk_made",
            [2 * WALK + ACCEPTED] = "walk_accepted",
            [2 * FRESH + MADE] = "fresh_made",
            [2 * FRESH + ACCEPTED] = "fresh_accepted",
            [2 * SIZE + MADE] = "size_made",
            [2 * SIZE + ACCEPTED] = "size_accepted",
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .records = records,
    .outside = outside,
    .work = work,
};
