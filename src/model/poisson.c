/* Model "poisson": x ~ Poisson(rate), rate ~ Gamma(shape, rate).
 *
 * theta: log rate. Complete-data statistic: sum of x. The update is conjugate,
 * Gamma(shape + sum x, rate + n). Records are doubles that hold integers.
 *
 * Innovations, rates below POISSON_TABLE_MEAN and moves that change the rate by more than FEW:
 * the uniform number of which a record is the quantile. Given x it lies anywhere between
 * F(x - 1) and F(x).
 *
 * Innovations, otherwise: a Poisson process of intensity 1 for each record, which counts
 * x = N(rate) arrivals by the time `rate`. Holding it fixed while the rate
 * changes means, given x alone: for a smaller rate, every arrival was before
 * the new time with probability rate' / rate, so x' ~ Binomial(x, rate' / rate);
 * for a larger one, x' = x + Poisson(rate' - rate). The pair (x, x') has the
 * same distribution either way round, f(x; rate) k(x, x') = f(x'; rate') k(x', x), which
 * is what the acceptance ratio of a non-centred move needs.
 *
 * The latter two are done for a block at a time, by the waiting times between the
 * arrivals that go or come: the cost is one exponential for each of them, not
 * one draw per record.
 */
#include "base/dist.h"
#include "contract/model.h"
#include "contract/model_innovations.h"
#include "contract/model_likelihood.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

/* Arrivals that go or come per record: beyond it a draw per record is cheaper. */
static const double MANY = 0.5;

/* Below it they are so few that they cost less than a search for each record's quantile. */
static const double FEW = 0.1;

struct poisson {
    const double *shape, *rate; /* of the prior */
    struct dist_rising rising;
    double log_rate, rate_now;                  /* current parameter */
    double keep, lose, gain;                    /* of a non-centred move */
    struct dist_poisson *records, *next, added; /* next: after a move */
    int couples;                                /* a move keeps the uniform numbers */
    double u[MAX_BLOCK];
};

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct poisson *p = self;
    *theta = dist_log_gamma(rng, *p->shape) - log(*p->rate);
}

/* d rate = rate d log rate */
static double dprior(void *self, const double *theta) {
    const struct poisson *p = self;
    return *p->shape * *theta - *p->rate * exp(*theta);
}

static void set(void *self, const double *theta) {
    struct poisson *p = self;
    p->log_rate = *theta;
    p->rate_now = exp(*theta);
    if (p->next->mean != p->rate_now) return;
    struct dist_poisson *old = p->records;
    p->records = p->next;
    p->next = old;
}

static void prepare(struct dist_poisson *distribution, double mean) {
    if (distribution->mean != mean) dist_poisson_set(distribution, mean);
}

static void draw(struct dist_poisson *distribution, double mean, struct rng *rng, int m,
                 double *x) {
    prepare(distribution, mean);
    dist_poisson_fill(distribution, rng, m, x);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct poisson *p = self;
    draw(p->records, p->rate_now, rng, m, x[0]);
}

static int innovations_serve(void *self) {
    const struct poisson *p = self;
    return p->rate_now < POISSON_TABLE_MEAN;
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    struct poisson *p = self;
    prepare(p->records, p->rate_now);
    dist_poisson_invert(p->records, m, z[0], x[0]);
}

/* Every arrival is kept with probability keep = 1 - lose. */
static void thin(struct rng *rng, int m, double keep, double lose, const double *restrict x,
                 double *restrict out) {
    if (keep < lose) {
        dist_thin_fill(rng, keep, m, x, out);
        return;
    }
    dist_thin_fill(rng, lose, m, x, out);
    for (int i = 0; i < m; ++i) out[i] = x[i] - out[i];
}

/* x[i] += Poisson(mean), each record its own. */
static void gain(struct poisson *p, struct rng *rng, int m, double mean, double *restrict x) {
    if (mean > MANY) {
        double fresh[MAX_BLOCK];
        draw(&p->added, mean, rng, m, fresh);
        for (int i = 0; i < m; ++i) x[i] += fresh[i];
        return;
    }
    const double total = dist_poisson(rng, mean * m);
    for (double k = 0; k < total; ++k) x[(int)(rng_uniform(rng) * m)] += 1;
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct poisson *p = self;
    const double step = *theta_new - p->log_rate;
    p->keep = step < 0 ? exp(step) : 1;
    p->lose = step < 0 ? -expm1(step) : 0;
    p->gain = step > 0 ? exp(*theta_new) - p->rate_now : 0;
    changed[0] = step != 0;
    const double rate_new = exp(*theta_new);
    p->couples = p->rate_now < POISSON_TABLE_MEAN && rate_new < POISSON_TABLE_MEAN &&
                 fabs(rate_new - p->rate_now) > FEW;
    if (!p->couples) return;
    prepare(p->records, p->rate_now);
    prepare(p->next, rate_new);
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct poisson *p = self;
    if (p->couples) {
        rng_fill_uniform(rng, m, p->u);
        dist_poisson_place(p->records, m, x[0], p->u, p->u);
        dist_poisson_invert(p->next, m, p->u, x_new[0]);
        return;
    }
    thin(rng, m, p->keep, p->lose, x[0], x_new[0]);
    gain(p, rng, m, p->gain, x_new[0]);
}

static void add(void *self, int m, const double *const *x, double *c) {
    (void)self;
    c[0] += block_sum(m, x[0]);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    const struct poisson *p = self;
    const double shape = *p->shape + c[0];
    if (!(shape > 0) || !isfinite(shape)) return PLUGIN_NUMERICAL;
    *theta = dist_log_gamma(rng, shape) - log(*p->rate + n);
    return PLUGIN_OK;
}

static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    (void)self;
    if (gradient) *gradient += c[0] - n * exp(*theta);
    return c[0] * *theta - n * exp(*theta);
}

/* negative binomial */
static double log_total(void *self, double sum, double n) {
    const struct poisson *p = self;
    return dist_log_rising(&p->rising, sum) - *p->shape * log(*p->rate + n) -
           (sum > 0 ? sum * log1p(*p->rate / n) : 0);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood,
                                                         .log_total = log_total};
static const struct model_innovations innovations_hooks = {.count = 1,
                                                           .kind = RNG_UNIFORM,
                                                           .from_innovations = from_innovations,
                                                           .serve = innovations_serve};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static int create(const struct fields *fields, struct model *model) {
    struct poisson *p = plugin_memory(1, sizeof *p);
    p->shape = fields_vector(fields, "shape", 1);
    p->rate = fields_vector(fields, "rate", 1);
    if (!p->shape || !p->rate) return PLUGIN_BAD_FIELDS;
    p->records = plugin_memory(1, sizeof *p->records);
    p->next = plugin_memory(1, sizeof *p->next);
    p->records->mean = p->next->mean = p->added.mean = -1; /* not prepared */
    dist_rising_set(&p->rising, *p->shape);
    model->self = p;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->likelihood = &likelihood_hooks;
    model->innovations = &innovations_hooks;
    model->move = &move_hooks;
    model->columns = model->complete = 1;
    const struct theta_block rate = {.name = "rate", .transform = TRANSFORM_LOG, .size = 1};
    model_describe(model, 1, &rate);
    model->costs.move = 1.5; /* and a search */
    return PLUGIN_OK;
}

const struct model_class model_poisson = {
    .name = "poisson",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
