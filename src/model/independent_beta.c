/* A covariate on its bounds: x = lower + width p, p ~ Beta(a, b), a = precision share, b =
 * precision (1 - share). share ~ Beta, precision ~ Gamma, independent.
 *
 * theta: the share as a stick, that of 1 - share; log precision.
 *
 * Values nearer to a bound than EDGE widths are moved to the bound, so that the statistic below is
 * finite: atoms of mass EDGE^a B(a, b)^-1 / a and likewise, up to a factor 1 + O(EDGE).
 *
 * Move: p is the share of one of two gamma variables, G ~ Gamma(a), H ~ Gamma(b); their sum is
 * independent of it, so that both are drawn given p. As gamma variables add up, G ~ Gamma(a)
 * becomes G + Gamma(a' - a), or G Beta(a', a - a'): a coupling that is the same in both
 * directions. Gamma variables with a small shape underflow a double, and are stored with their
 * exponent.
 *
 * Complete-data statistic: numbers of records at the lower and the upper bound, sums of log p and
 * log (1 - p) over the others. Update: slice sampling. Cost of a record: three to five gamma
 * variables in a move, two in a draw, two logarithms in the statistic.
 */
#include "base/dist.h"
#include "base/slice.h"
#include "base/sticks.h"
#include "contract/plugin.h"
#include "model/independent_covariate.h"

static const double EDGE = 1e-9;

enum { SWEEPS = 3, STATISTICS = 4 };

struct shapes {
    double a, b;
};

struct beta {
    double lower, width;
    double weight, rest; /* Beta(weight, rest) of the share */
    double shape, rate;  /* of the precision */
    double known_share, known_log_precision;
    int visits, visited[2]; /* unknown coordinates */
    struct shapes now, next;
    const double *c; /* of the current update */
    double n;
};

static int create(const double *number, int count, struct lone *lone) {
    if (count != 8) return PLUGIN_BAD_FIELDS;
    struct beta *s = plugin_memory(1, sizeof *s);
    s->lower = number[0];
    s->width = number[1];
    s->weight = number[2];
    s->rest = number[3];
    s->shape = number[4];
    s->rate = number[5];
    const int share_known = !isnan(number[6]), precision_known = !isnan(number[7]);
    s->known_share = log1p(-number[6]) - log(number[6]);
    s->known_log_precision = log(number[7]);
    if (!share_known) s->visited[s->visits++] = 0;
    if (!precision_known) s->visited[s->visits++] = 1;
    lone->self = s;
    lone->blocks = 2;
    lone->block[0] = (struct theta_block){.name = "share",
                                          .transform = TRANSFORM_STICKS,
                                          .size = 2,
                                          .rows = 1,
                                          .reports_last = 1,
                                          .known = share_known ? &s->known_share : NULL};
    lone->block[1] =
        (struct theta_block){.name = "precision",
                             .transform = TRANSFORM_LOG,
                             .size = 1,
                             .known = precision_known ? &s->known_log_precision : NULL};
    lone->statistics = STATISTICS;
    lone->cost_draw = 12;
    lone->cost_move = 20;
    lone->cost_latent = 8;
    return PLUGIN_OK;
}

static struct shapes shapes(const double *theta) {
    const double precision = exp(theta[1]);
    return (struct shapes){precision * stick_later(theta[0], 1), precision * stick_share(theta[0])};
}

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct beta *s = self;
    for (int k = 0; k < s->visits; ++k)
        theta[s->visited[k]] = s->visited[k] == 0
                                   ? dist_log_gamma(rng, s->rest) - dist_log_gamma(rng, s->weight)
                                   : dist_log_gamma(rng, s->shape) - log(s->rate);
}

static double dprior(void *self, const double *theta) {
    const struct beta *s = self;
    double log_density = 0;
    for (int k = 0; k < s->visits; ++k)
        log_density += s->visited[k] == 0
                           ? stick_log_density(s->rest, s->weight + s->rest, theta[0])
                           : s->shape * theta[1] - s->rate * exp(theta[1]);
    return log_density;
}

static void set(void *self, const double *theta) {
    struct beta *s = self;
    s->now = shapes(theta);
}

static void set_next(void *self, const double *theta) {
    struct beta *s = self;
    s->next = shapes(theta);
}

/* A gamma variable or its like: mantissa exp(exponent). */
struct scaled {
    double mantissa, exponent;
};

static struct scaled draw_gamma(struct rng *rng, double shape) {
    if (shape >= 1) return (struct scaled){dist_gamma(rng, shape), 0};
    const double exponent = fmax(log(rng_uniform(rng)) / shape, -1e300);
    return (struct scaled){dist_gamma(rng, shape + 1), exponent};
}

static struct scaled sum(struct scaled x, struct scaled y) {
    if (x.exponent < y.exponent) return sum(y, x);
    return (struct scaled){x.mantissa + y.mantissa * exp(y.exponent - x.exponent), x.exponent};
}

static struct scaled ratio(struct scaled x, struct scaled y) {
    return (struct scaled){x.mantissa / y.mantissa, x.exponent - y.exponent};
}

/* where the odds are g : h */
static double place(const struct beta *s, struct scaled g, struct scaled h) {
    const int high = g.exponent > h.exponent;
    const struct scaled of = high ? ratio(h, g) : ratio(g, h);
    const double odds = of.mantissa * exp(of.exponent), share = odds / (1 + odds);
    if (share < EDGE) return high ? s->lower + s->width : s->lower;
    if (1 / (1 + odds) < EDGE) return high ? s->lower : s->lower + s->width;
    return s->lower + s->width * (high ? 1 - share : share);
}

static double share_of(const struct beta *s, double x) { return (x - s->lower) / s->width; }

static void draw(void *self, struct rng *rng, int m, double *x) {
    const struct beta *s = self;
    for (int i = 0; i < m; ++i) {
        const struct scaled g = draw_gamma(rng, s->now.a), h = draw_gamma(rng, s->now.b);
        x[i] = place(s, g, h);
    }
}

/* Gamma(to), given what was Gamma(from) */
static struct scaled couple(struct rng *rng, struct scaled g, double from, double to) {
    if (to == from) return g;
    if (to > from) return sum(g, draw_gamma(rng, to - from));
    const struct scaled lost = draw_gamma(rng, from - to), left = draw_gamma(rng, to);
    const struct scaled share = ratio(left, sum(left, lost));
    return (struct scaled){g.mantissa * share.mantissa, g.exponent + share.exponent};
}

static void move(void *self, struct rng *rng, int m, const double *x, double *x_new) {
    const struct beta *s = self;
    for (int i = 0; i < m; ++i) {
        const double p = share_of(s, x[i]);
        struct scaled g = {p, 0}, h = {1 - p, 0};
        if (p < EDGE) {
            g = (struct scaled){EDGE, log(rng_uniform(rng)) / s->now.a};
            h.mantissa = 1;
        } else if (1 - p < EDGE) {
            h = (struct scaled){EDGE, log(rng_uniform(rng)) / s->now.b};
            g.mantissa = 1;
        }
        const struct scaled both = draw_gamma(rng, s->now.a + s->now.b);
        g = (struct scaled){g.mantissa * both.mantissa, g.exponent + both.exponent};
        h = (struct scaled){h.mantissa * both.mantissa, h.exponent + both.exponent};
        g = couple(rng, g, s->now.a, s->next.a);
        h = couple(rng, h, s->now.b, s->next.b);
        x_new[i] = place(s, g, h);
    }
}

static void add(void *self, struct rng *rng, int m, const double *x, double *c) {
    const struct beta *s = self;
    (void)rng;
    for (int i = 0; i < m; ++i) {
        const double p = share_of(s, x[i]);
        if (p < EDGE) {
            c[0] += 1;
        } else if (1 - p < EDGE) {
            c[1] += 1;
        } else {
            c[2] += log(p);
            c[3] += log1p(-p);
        }
    }
}

static double log_density(void *self, const double *theta) {
    struct beta *s = self;
    const struct shapes at = shapes(theta);
    if (!(at.a > 0 && at.b > 0 && isfinite(at.a + at.b))) return -INFINITY;
    const double *c = s->c;
    return dprior(s, theta) + s->n * (lgamma(at.a + at.b) - lgamma(at.a) - lgamma(at.b)) +
           at.a * c[2] + at.b * c[3] + c[0] * (at.a * log(EDGE) - log(at.a)) +
           c[1] * (at.b * log(EDGE) - log(at.b));
}

static void update(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct beta *s = self;
    const double spread = 4 / sqrt(n + 4), width[] = {spread, spread};
    s->c = c;
    s->n = n;
    if (!(log_density(s, theta) > -INFINITY)) return;
    for (int k = 0; k < SWEEPS; ++k)
        slice_sweep(s->visits, s->visited, width, log_density, s, rng, theta);
}

const struct lone_class lone_beta = {
    .name = "beta",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .set = set,
    .set_next = set_next,
    .draw = draw,
    .move = move,
    .add = add,
    .update = update,
};
