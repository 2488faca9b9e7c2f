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
 * (it suits noise that is narrow beside p), and INDEPENDENT proposals from p
 * itself (which suit wide noise). Then the rate is drawn given s.
 */
#include "adapt.h"
#include "dist.h"
#include "method_collapse.h"

#include <Rmath.h>

/* kinds of moves that are counted */
enum { WALK, FRESH };

enum { WALKS = 8, INDEPENDENT = 2 };

static const double TARGET = 0.44;

struct total {
    int whole; /* Poisson: the total is a whole number */
    struct dist_rising rising;
    double n;
    const double *shape, *rate;    /* of the prior */
    const double *lower, *upper;   /* of the variable */
    double *value, *scale, *tries; /* state: s, and the walk's */
};

/* Fields: whole; shape and rate of the prior; lower and upper. Every component
 * is the total. */
static int create(const struct fields *fields, struct collapse *c) {
    struct total *s = plugin_memory(1, sizeof *s);
    const double *whole = fields_vector(fields, "whole", 1);
    s->shape = fields_vector(fields, "shape", 1);
    s->rate = fields_vector(fields, "rate", 1);
    s->lower = fields_vector(fields, "lower", 1);
    s->upper = fields_vector(fields, "upper", 1);
    if (!whole || !s->shape || !s->rate || !s->lower || !s->upper) return PLUGIN_BAD_FIELDS;
    s->whole = *whole != 0;
    dist_rising_set(&s->rising, *s->shape);
    s->n = c->n;
    c->self = s;
    c->stored = 3;
    return PLUGIN_OK;
}

static void load(struct collapse *c) {
    struct total *s = c->self;
    s->value = c->store;
    s->scale = c->store + 1;
    s->tries = c->store + 2;
}

static void save(struct collapse *c) { (void)c; /* the value is the state's own */ }

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

static void start(struct collapse *c) {
    struct total *s = c->self;
    load(c);
    *s->value = draw_value(s, c->rng, *c->theta);
    *s->scale = 1 / c->weight[0]; /* that of the noise */
    *s->tries = 0;
}

static double energy_at(const struct collapse *c, double value) {
    double sum = 0;
    for (int k = 0; k < c->size; ++k) sum += collapse_energy(c, k, value);
    return sum;
}

/* log p(to) - log p(from) without a difference of large numbers where s moves
 * by a small share of itself */
static double log_distribution_ratio(const struct total *s, double from, double to) {
    const double by = to - from, a = *s->shape, b = *s->rate;
    if (!s->whole)
        return (s->n - 1) * (log1p(by / from) - log1p(by / (b + from))) -
               (a + 1) * log1p(by / (b + from));
    return (dist_log_rising(&s->rising, to) - dist_log_rising(&s->rising, from)) -
           by * log1p(b / s->n);
}

static double probability(double log_ratio) {
    return log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
}

static int walk(struct collapse *c, int learning) {
    struct total *s = c->self;
    double by = *s->scale * rng_normal(c->rng);
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

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct total *s = c->self;
    const int learning = iteration < warmup;
    int kept = 0;
    for (int k = 0; k < WALKS; ++k) {
        const int accept = walk(c, learning);
        collapse_count(c, WALK, accept);
        kept += accept;
    }
    for (int k = 0; k < INDEPENDENT; ++k) collapse_count(c, FRESH, propose_fresh(c));
    *accepted = (double)kept / WALKS;
    if (learning && adapt_window(iteration, warmup)) *s->tries = 0;
    return c->model.class->rtheta(c->model.self, s->value, s->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct total *s = c->self;
    for (int k = 0; k < c->size; ++k) out[k] = *s->value;
}

static double energy(const struct collapse *c) {
    const struct total *s = c->self;
    return energy_at(c, *s->value);
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
        },
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .outside = outside,
    .work = work,
};
