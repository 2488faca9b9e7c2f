/* Model "exponential": x ~ Exponential(rate), rate ~ Gamma(shape, rate).
 *
 * theta: log rate. Complete-data statistic: sum of x. The update is conjugate,
 * Gamma(shape + n, rate + sum x). A record is x = e / rate with the innovation
 * e ~ Exponential(1), so a non-centred move multiplies by rate / rate'.
 */
#include "base/dist.h"
#include "contract/model.h"
#include "contract/model_innovations.h"
#include "contract/model_likelihood.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

struct exponential {
    const double *shape, *rate; /* of the prior */
    double log_rate;            /* current parameter */
    double scale;               /* 1 / rate */
    double ratio;               /* of a non-centred move */
};

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct exponential *e = self;
    *theta = dist_log_gamma(rng, *e->shape) - log(*e->rate);
}

/* d rate = rate d log rate */
static double dprior(void *self, const double *theta) {
    const struct exponential *e = self;
    return *e->shape * *theta - *e->rate * exp(*theta);
}

static void set(void *self, const double *theta) {
    struct exponential *e = self;
    e->log_rate = *theta;
    e->scale = exp(-*theta);
}

VECTOR_CLONES static void multiply(int m, double factor, const double *restrict x,
                                   double *restrict out) {
    FOR_RECORDS(i, m) out[i] = factor * x[i];
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    const struct exponential *e = self;
    multiply(m, e->scale, z[0], x[0]);
}

VECTOR_CLONES static void stretch(int m, double factor, double *restrict x) {
    FOR_RECORDS(i, m) x[i] *= factor;
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    const struct exponential *e = self;
    rng_fill_exponential(rng, m, x[0]);
    stretch(m, e->scale, x[0]);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct exponential *e = self;
    e->ratio = exp(e->log_rate - *theta_new);
    changed[0] = *theta_new != e->log_rate;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng; /* the innovation of a continuous record is known */
    const struct exponential *e = self;
    multiply(m, e->ratio, x[0], x_new[0]);
}

static void add(void *self, int m, const double *const *x, double *c) {
    (void)self;
    c[0] += block_sum(m, x[0]);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    const struct exponential *e = self;
    const double shape = *e->shape + n, rate = *e->rate + c[0];
    if (!(rate > 0) || !isfinite(rate)) return PLUGIN_NUMERICAL;
    *theta = dist_log_gamma(rng, shape) - log(rate);
    return PLUGIN_OK;
}

static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    (void)self;
    if (gradient) *gradient += n - c[0] * exp(*theta);
    return n * *theta - c[0] * exp(*theta);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood};
static const struct model_innovations innovations_hooks = {
    .count = 1, .kind = RNG_EXPONENTIAL, .from_innovations = from_innovations};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static int create(const struct fields *fields, struct model *model) {
    struct exponential *e = plugin_memory(1, sizeof *e);
    e->shape = fields_vector(fields, "shape", 1);
    e->rate = fields_vector(fields, "rate", 1);
    if (!e->shape || !e->rate) return PLUGIN_BAD_FIELDS;
    model->self = e;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->likelihood = &likelihood_hooks;
    model->innovations = &innovations_hooks;
    model->move = &move_hooks;
    model->columns = model->complete = 1;
    const struct theta_block rate = {.name = "rate", .transform = TRANSFORM_LOG, .size = 1};
    model_describe(model, 1, &rate);
    return PLUGIN_OK;
}

const struct model_class model_exponential = {
    .name = "exponential",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
