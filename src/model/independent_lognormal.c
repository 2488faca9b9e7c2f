/* A positive covariate: log x ~ N(mean, sd^2), mean ~ N(centre, spread^2), sd^2 ~
 * InverseGamma(shape, rate), independent; either may be known.
 *
 * theta: mean, log sd. Innovation: (log x - mean) / sd. Logarithms stay where their exponentials
 * are finite and positive.
 *
 * Complete-data statistic: the sums of log x less the centre, and of its squares. Updates are
 * conjugate, the mean given the standard deviation and this given the mean. Cost of a record: a
 * normal and an exponential, a logarithm.
 */
#include "base/dist.h"
#include "contract/plugin.h"
#include "model/independent_covariate.h"

static const double MOST_LOG = 700;

struct lognormal {
    double centre, spread, shape, rate;
    double known_mean, known_log_sd;
    int mean_known, sd_known;
    double mean, sd, mean_next, sd_next;
};

static int create(const double *number, int count, struct lone *lone) {
    if (count != 6) return PLUGIN_BAD_FIELDS;
    struct lognormal *s = plugin_memory(1, sizeof *s);
    s->centre = number[0];
    s->spread = number[1];
    s->shape = number[2];
    s->rate = number[3];
    s->mean_known = !isnan(number[4]);
    s->sd_known = !isnan(number[5]);
    s->known_mean = number[4];
    s->known_log_sd = log(number[5]);
    lone->self = s;
    lone->blocks = 2;
    lone->block[0] = (struct theta_block){.name = "meanlog",
                                          .transform = TRANSFORM_IDENTITY,
                                          .size = 1,
                                          .known = s->mean_known ? &s->known_mean : NULL};
    lone->block[1] = (struct theta_block){.name = "sdlog",
                                          .transform = TRANSFORM_LOG,
                                          .size = 1,
                                          .known = s->sd_known ? &s->known_log_sd : NULL};
    lone->statistics = 2;
    lone->cost_draw = 3;
    lone->cost_move = lone->cost_latent = 2;
    return PLUGIN_OK;
}

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct lognormal *s = self;
    if (!s->mean_known) theta[0] = s->centre + s->spread * rng_normal(rng);
    if (!s->sd_known) theta[1] = 0.5 * (log(s->rate) - dist_log_gamma(rng, s->shape));
}

static double dprior(void *self, const double *theta) {
    const struct lognormal *s = self;
    const double r = (theta[0] - s->centre) / s->spread;
    double log_density = s->mean_known ? 0 : -0.5 * r * r;
    if (!s->sd_known) log_density -= 2 * s->shape * theta[1] + s->rate * exp(-2 * theta[1]);
    return log_density;
}

static void set(void *self, const double *theta) {
    struct lognormal *s = self;
    s->mean = theta[0];
    s->sd = exp(theta[1]);
}

static void set_next(void *self, const double *theta) {
    struct lognormal *s = self;
    s->mean_next = theta[0];
    s->sd_next = exp(theta[1]);
}

static double place(double log_x) { return exp(fmax(-MOST_LOG, fmin(log_x, MOST_LOG))); }

static void draw(void *self, struct rng *rng, int m, double *x) {
    const struct lognormal *s = self;
    for (int i = 0; i < m; ++i) x[i] = place(s->mean + s->sd * rng_normal(rng));
}

static void move(void *self, struct rng *rng, int m, const double *x, double *x_new) {
    const struct lognormal *s = self;
    const double ratio = s->sd_next / s->sd;
    (void)rng;
    for (int i = 0; i < m; ++i) x_new[i] = place(s->mean_next + ratio * (log(x[i]) - s->mean));
}

static void add(void *self, struct rng *rng, int m, const double *x, double *c) {
    const struct lognormal *s = self;
    (void)rng;
    for (int i = 0; i < m; ++i) {
        const double away = log(x[i]) - s->centre;
        c[0] += away;
        c[1] += away * away;
    }
}

static void update(void *self, const double *c, double n, struct rng *rng, double *theta) {
    const struct lognormal *s = self;
    if (!s->mean_known) {
        const double tau = exp(-2 * theta[1]), precision = 1 / (s->spread * s->spread) + n * tau;
        theta[0] = s->centre + c[0] * tau / precision + rng_normal(rng) / sqrt(precision);
    }
    if (s->sd_known) return;
    const double away = theta[0] - s->centre, left = c[1] - 2 * away * c[0] + n * away * away;
    theta[1] = 0.5 * (log(s->rate + 0.5 * fmax(left, 0)) - dist_log_gamma(rng, s->shape + 0.5 * n));
}

const struct lone_class lone_lognormal = {
    .name = "lognormal",
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
