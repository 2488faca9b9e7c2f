/* A covariate with a mixture of normal distributions. Weights ~ Dirichlet(alpha, ..., alpha); means
 * ~ N(centre, spread^2) and variances ~ InverseGamma(shape, rate), all independent, components in
 * the order of their means.
 *
 * theta: sticks of the weights (base/sticks.h), means, log standard deviations.
 *
 * A record's component is a latent variable, drawn given its value. Move: the component is a
 * quantile of a uniform, drawn where it gives the old one; the standardised value stays.
 *
 * Complete-data statistic: the number of records of each component, the sums of their values
 * less the centre, and of the squares. Updates are conjugate: weights; means given standard
 * deviations, these given means. They ignore the order, and components are sorted afterwards: prior
 * and likelihood are the same for all orders. Cost: an exponential and a uniform for each component
 * and record.
 */
#include "base/dist.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"
#include "contract/plugin.h"
#include "model/independent_covariate.h"

enum { MOST = 8 };

struct parts {
    double bound[MOST + 1]; /* P(a component before this one) */
    double weight[MOST], mean[MOST], sd[MOST];
};

struct mixture {
    int parts;
    double centre, spread, shape, rate;
    double alpha[MOST];
    struct parts now, next;
};

static int create(const double *number, int count, struct lone *lone) {
    if (count != 6 || !(number[0] >= 2 && number[0] <= MOST)) return PLUGIN_BAD_FIELDS;
    struct mixture *s = plugin_memory(1, sizeof *s);
    s->parts = (int)number[0];
    s->centre = number[1];
    s->spread = number[2];
    s->shape = number[3];
    s->rate = number[4];
    for (int k = 0; k < s->parts; ++k) s->alpha[k] = number[5];
    lone->self = s;
    lone->blocks = 3;
    lone->block[0] = (struct theta_block){
        .name = "weight", .transform = TRANSFORM_STICKS, .size = s->parts, .rows = 1};
    lone->block[1] =
        (struct theta_block){.name = "mean", .transform = TRANSFORM_IDENTITY, .size = s->parts};
    lone->block[2] =
        (struct theta_block){.name = "sd", .transform = TRANSFORM_LOG, .size = s->parts};
    lone->statistics = 3 * s->parts;
    lone->cost_draw = 3;
    lone->cost_move = lone->cost_latent = 3 + 3 * s->parts;
    return PLUGIN_OK;
}

static double *means(const struct mixture *s, double *theta) { return theta + s->parts - 1; }
static double *log_sds(const struct mixture *s, double *theta) { return theta + 2 * s->parts - 1; }

/* Components in the order of their means: insertion, there are few. */
static void sort(const struct mixture *s, double *theta) {
    double weight[MOST], *mean = means(s, theta), *log_sd = log_sds(s, theta);
    sticks_to_probabilities(s->parts, theta, weight);
    int moved = 0;
    for (int k = 1; k < s->parts; ++k)
        for (int j = k; j > 0 && mean[j] < mean[j - 1]; --j, moved = 1) {
            double *const swapped[] = {mean + j, log_sd + j, weight + j};
            for (int v = 0; v < 3; ++v) {
                const double kept = *swapped[v];
                *swapped[v] = swapped[v][-1];
                swapped[v][-1] = kept;
            }
        }
    if (moved) sticks_from_probabilities(s->parts, weight, theta);
}

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct mixture *s = self;
    sticks_draw(rng, s->parts, s->alpha, theta);
    for (int k = 0; k < s->parts; ++k) {
        means(s, theta)[k] = s->centre + s->spread * rng_normal(rng);
        log_sds(s, theta)[k] = 0.5 * (log(s->rate) - dist_log_gamma(rng, s->shape));
    }
    sort(s, theta);
}

static double dprior(void *self, const double *theta) {
    const struct mixture *s = self;
    const double *mean = theta + s->parts - 1, *log_sd = mean + s->parts;
    double log_density = sticks_log_density(s->parts, s->alpha, theta);
    for (int k = 0; k < s->parts; ++k) {
        if (k > 0 && !(mean[k] >= mean[k - 1])) return -INFINITY;
        const double r = (mean[k] - s->centre) / s->spread;
        log_density -= 0.5 * r * r + 2 * s->shape * log_sd[k] + s->rate * exp(-2 * log_sd[k]);
    }
    return log_density;
}

static void read(const struct mixture *s, const double *theta, struct parts *out) {
    const double *mean = theta + s->parts - 1, *log_sd = mean + s->parts;
    sticks_to_probabilities(s->parts, theta, out->weight);
    out->bound[0] = 0;
    for (int k = 0; k < s->parts; ++k) {
        out->bound[k + 1] = out->bound[k] + out->weight[k];
        out->mean[k] = mean[k];
        out->sd[k] = exp(log_sd[k]);
    }
}

static void set(void *self, const double *theta) {
    struct mixture *s = self;
    read(s, theta, &s->now);
}

static void set_next(void *self, const double *theta) {
    struct mixture *s = self;
    read(s, theta, &s->next);
}

static int find(const struct mixture *s, const struct parts *of, double u) {
    int k = 0;
    while (k < s->parts - 1 && u >= of->bound[k + 1]) ++k;
    return k;
}

static void draw(void *self, struct rng *rng, int m, double *x) {
    const struct mixture *s = self;
    for (int i = 0; i < m; ++i) {
        const int k = find(s, &s->now, rng_uniform(rng));
        x[i] = s->now.mean[k] + s->now.sd[k] * rng_normal(rng);
    }
}

/* a record's component given its value */
static int component(const struct mixture *s, struct rng *rng, double x) {
    double density[MOST];
    for (int k = 0; k < s->parts; ++k) {
        const double z = (x - s->now.mean[k]) / s->now.sd[k];
        density[k] = log(s->now.weight[k] / s->now.sd[k]) - 0.5 * z * z;
    }
    return dist_choose(rng, s->parts, density);
}

static void move(void *self, struct rng *rng, int m, const double *x, double *x_new) {
    const struct mixture *s = self;
    for (int i = 0; i < m; ++i) {
        const int from = component(s, rng, x[i]);
        const double u = s->now.bound[from] + s->now.weight[from] * rng_uniform(rng);
        const int to = find(s, &s->next, u);
        x_new[i] =
            s->next.mean[to] + s->next.sd[to] * ((x[i] - s->now.mean[from]) / s->now.sd[from]);
    }
}

static void add(void *self, struct rng *rng, int m, const double *x, double *c) {
    const struct mixture *s = self;
    for (int i = 0; i < m; ++i) {
        const int k = component(s, rng, x[i]);
        const double away = x[i] - s->centre;
        c[k] += 1;
        c[s->parts + k] += away;
        c[2 * s->parts + k] += away * away;
    }
}

static void update(void *self, const double *c, double n, struct rng *rng, double *theta) {
    const struct mixture *s = self;
    const double *sum = c + s->parts, *square = sum + s->parts;
    double weight[MOST];
    (void)n;
    for (int k = 0; k < s->parts; ++k) weight[k] = s->alpha[k] + c[k];
    sticks_draw(rng, s->parts, weight, theta);
    for (int k = 0; k < s->parts; ++k) {
        double *mean = means(s, theta) + k, *log_sd = log_sds(s, theta) + k;
        const double tau = exp(-2 * *log_sd), precision = 1 / (s->spread * s->spread) + c[k] * tau;
        const double away = sum[k] * tau / precision + rng_normal(rng) / sqrt(precision);
        const double left = square[k] - 2 * away * sum[k] + c[k] * away * away;
        *mean = s->centre + away;
        *log_sd =
            0.5 * (log(s->rate + 0.5 * fmax(left, 0)) - dist_log_gamma(rng, s->shape + 0.5 * c[k]));
    }
    sort(s, theta);
}

const struct lone_class lone_mixture = {
    .name = "mixture",
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
