/* A covariate that counts: Poisson(mean), or negative binomial, which is Poisson with a separate
 * rate for each record, rate_i = mean / size h_i, h_i ~ Gamma(size). mean and size ~ Gamma,
 * independent.
 *
 * theta: log mean, log size if there is one.
 *
 * Move: a count of a Poisson distribution becomes that plus Poisson(rate' - rate), or
 * Binomial(x, rate' / rate), and a gamma variable likewise (model/independent_beta.c); h_i is
 * drawn given the count, Gamma(size + x) / (1 + mean / size).
 *
 * Complete-data statistic: the sum of counts, of which the mean has a conjugate update; or sums of
 * the rates, drawn given the counts, and of their logarithms, given which slice sampling updates
 * both. Cost of a record: a binomial or Poisson number, and gamma variables.
 */
#include "base/dist.h"
#include "base/slice.h"
#include "contract/plugin.h"
#include "model/independent_covariate.h"

enum { SWEEPS = 3 };

struct gamma_prior {
    double shape, rate, known; /* the logarithm, if known */
    int is_known;
};

struct count {
    int sizes; /* whether there is a size */
    struct gamma_prior prior[2];
    int visits, visited[2];
    double mean, size, mean_next, size_next;
    struct dist_poisson poisson, more;
    double work[MAX_BLOCK]; /* of one mean: what is added */
    const double *c;        /* of the current update */
    double n;
};

static int create(const double *number, int count, struct lone *lone) {
    if (count != 3 && count != 6) return PLUGIN_BAD_FIELDS;
    static const char *const names[] = {"mean", "size"};
    struct count *s = plugin_memory(1, sizeof *s);
    s->sizes = count == 6;
    lone->blocks = count / 3;
    for (int k = 0; k < lone->blocks; ++k, number += 3) {
        struct gamma_prior *prior = s->prior + k;
        *prior = (struct gamma_prior){number[0], number[1], log(number[2]), !isnan(number[2])};
        if (!prior->is_known) s->visited[s->visits++] = k;
        lone->block[k] = (struct theta_block){.name = names[k],
                                              .transform = TRANSFORM_LOG,
                                              .size = 1,
                                              .known = prior->is_known ? &prior->known : NULL};
    }
    lone->self = s;
    lone->statistics = 1 + s->sizes;
    lone->cost_draw = s->sizes ? 50 : 2;
    lone->cost_move = s->sizes ? 120 : 10;
    lone->cost_latent = s->sizes ? 25 : 0.5;
    return PLUGIN_OK;
}

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct count *s = self;
    for (int k = 0; k < s->visits; ++k) {
        const struct gamma_prior *prior = s->prior + s->visited[k];
        theta[s->visited[k]] = dist_log_gamma(rng, prior->shape) - log(prior->rate);
    }
}

static double dprior(void *self, const double *theta) {
    const struct count *s = self;
    double log_density = 0;
    for (int k = 0; k < s->visits; ++k) {
        const struct gamma_prior *prior = s->prior + s->visited[k];
        const double t = theta[s->visited[k]];
        log_density += prior->shape * t - prior->rate * exp(t);
    }
    return log_density;
}

/* e^t that is no zero, and no infinity */
static double positive(double t) { return exp(fmax(fmin(t, 600), -600)); }

static void set(void *self, const double *theta) {
    struct count *s = self;
    s->mean = positive(theta[0]);
    if (s->sizes)
        s->size = positive(theta[1]);
    else
        dist_poisson_set(&s->poisson, s->mean);
}

static void set_next(void *self, const double *theta) {
    struct count *s = self;
    s->mean_next = positive(theta[0]);
    if (s->sizes)
        s->size_next = positive(theta[1]);
    else if (s->mean_next > s->mean)
        dist_poisson_set(&s->more, s->mean_next - s->mean);
}

static void draw(void *self, struct rng *rng, int m, double *x) {
    const struct count *s = self;
    if (!s->sizes) {
        dist_poisson_fill(&s->poisson, rng, m, x);
        return;
    }
    const double log_scale = log(s->mean / s->size);
    for (int i = 0; i < m; ++i)
        x[i] = dist_poisson(rng, positive(log_scale + dist_log_gamma(rng, s->size)));
}

/* h' given h, as model/independent_beta.c has it */
static double couple(struct rng *rng, double h, double from, double to) {
    if (to == from) return h;
    if (to > from) return h + dist_gamma(rng, to - from);
    return h / (1 + exp(dist_log_gamma(rng, from - to) - dist_log_gamma(rng, to)));
}

static void move_mixed(struct count *s, struct rng *rng, int m, const double *x, double *x_new) {
    const double scale = s->mean / s->size, scale_next = s->mean_next / s->size_next;
    for (int i = 0; i < m; ++i) {
        const double h = dist_gamma(rng, s->size + x[i]) / (1 + scale);
        const double rate = scale * h;
        const double next = scale_next * couple(rng, h, s->size, s->size_next);
        if (next > rate) {
            x_new[i] = x[i] + dist_poisson(rng, next - rate);
        } else {
            x_new[i] = 0;
            if (x[i] > 0) dist_binomial_fill(rng, next / rate, 1, x + i, x_new + i);
        }
    }
}

static void move(void *self, struct rng *rng, int m, const double *x, double *x_new) {
    struct count *s = self;
    if (s->sizes) {
        move_mixed(s, rng, m, x, x_new);
    } else if (s->mean_next > s->mean) {
        dist_poisson_fill(&s->more, rng, m, s->work);
        for (int i = 0; i < m; ++i) x_new[i] = x[i] + s->work[i];
    } else {
        dist_binomial_fill(rng, s->mean_next / s->mean, m, x, x_new);
    }
}

static void add(void *self, struct rng *rng, int m, const double *x, double *c) {
    const struct count *s = self;
    const double log_scale = s->sizes ? -log(s->size / s->mean + 1) : 0;
    for (int i = 0; i < m; ++i) {
        const double t = s->sizes ? log_scale + dist_log_gamma(rng, s->size + x[i]) : 0;
        c[0] += s->sizes ? exp(t) : x[i];
        if (s->sizes) c[1] += t;
    }
}

/* n rates of Gamma(size, size / mean) */
static double log_density(void *self, const double *theta) {
    struct count *s = self;
    const double size = exp(theta[1]), scale = exp(theta[1] - theta[0]);
    if (!(size > 0 && isfinite(size) && isfinite(scale))) return -INFINITY;
    return dprior(s, theta) + s->n * (size * (theta[1] - theta[0]) - lgamma(size)) +
           size * s->c[1] - scale * s->c[0];
}

static void update(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct count *s = self;
    if (!s->sizes) {
        const struct gamma_prior *prior = s->prior;
        if (s->visits > 0)
            theta[0] = dist_log_gamma(rng, prior->shape + c[0]) - log(prior->rate + n);
        return;
    }
    const double spread = 4 / sqrt(n + 4), width[] = {spread, spread};
    s->c = c;
    s->n = n;
    if (!(log_density(s, theta) > -INFINITY)) return;
    for (int k = 0; k < SWEEPS; ++k)
        slice_sweep(s->visits, s->visited, width, log_density, s, rng, theta);
}

const struct lone_class lone_count = {
    .name = "count",
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
