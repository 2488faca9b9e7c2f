/* Model "compiled": a user's hooks behind the public interface noiseaware.h.
 *
 * The two contracts differ only in the random numbers: the public one sees a table of functions
 * instead of `struct rng`, so that a user's library does not link to ours. Each hook is called
 * through a wrapper; its cost is paid once a block. Hooks that a user leaves out are also left out
 * here.
 */
#include "model/compiled.h"

#include "base/dist.h"
#include "contract/model_density.h"
#include "contract/model_innovations.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "contract/model_values.h"

/* first member of what a hook gets: the functions below find the rest */
struct stream {
    struct noiseaware_random random;
    struct rng *rng;
};

struct compiled {
    const struct noiseaware_model_class *hooks;
    void *self;
    int parameters;
    struct model_innovations innovations;
    struct stream stream;
};

static struct rng *rng_of(struct noiseaware_random *random) {
    return ((struct stream *)random)->rng;
}

static double uniform(struct noiseaware_random *random) { return rng_uniform(rng_of(random)); }

static double normal(struct noiseaware_random *random) { return rng_normal(rng_of(random)); }

static double exponential(struct noiseaware_random *random) {
    return rng_exponential(rng_of(random));
}

static double gamma_draw(struct noiseaware_random *random, double shape) {
    return dist_gamma(rng_of(random), shape);
}

static double log_gamma_draw(struct noiseaware_random *random, double shape) {
    return dist_log_gamma(rng_of(random), shape);
}

static double poisson(struct noiseaware_random *random, double mean) {
    return dist_poisson(rng_of(random), mean);
}

static void fill_uniform(struct noiseaware_random *random, int m, double *out) {
    rng_fill_uniform(rng_of(random), m, out);
}

static void fill_normal(struct noiseaware_random *random, int m, double *out) {
    rng_fill_normal(rng_of(random), m, out);
}

static void fill_exponential(struct noiseaware_random *random, int m, double *out) {
    rng_fill_exponential(rng_of(random), m, out);
}

static const struct noiseaware_random random_functions = {
    .uniform = uniform,
    .normal = normal,
    .exponential = exponential,
    .gamma = gamma_draw,
    .log_gamma = log_gamma_draw,
    .poisson = poisson,
    .fill_uniform = fill_uniform,
    .fill_normal = fill_normal,
    .fill_exponential = fill_exponential,
};

static struct noiseaware_random *lend(struct compiled *c, struct rng *rng) {
    c->stream.rng = rng;
    return &c->stream.random;
}

/* ---- what create() may ask for ---------------------------------------------- */

struct host {
    struct noiseaware_host host;
    const struct fields *fields;
};

static const double *host_field(const struct noiseaware_host *host, const char *name, int length) {
    return fields_vector(((const struct host *)host)->fields, name, length);
}

static int host_field_length(const struct noiseaware_host *host, const char *name) {
    return fields_length(((const struct host *)host)->fields, name);
}

static void *host_memory(const struct noiseaware_host *host, size_t count, size_t size) {
    (void)host;
    return plugin_memory(count, size);
}

/* ---- shells ------------------------------------------------------------------ */

void model_compiled_rprior(void *self, struct rng *rng, double *theta) {
    struct compiled *c = self;
    c->hooks->rprior(c->self, lend(c, rng), theta);
}

static double dprior(void *self, const double *theta) {
    struct compiled *c = self;
    return c->hooks->dprior(c->self, theta);
}

static void report(void *self, const double *theta, double *out) {
    struct compiled *c = self;
    c->hooks->report(c->self, theta, out);
}

static int invert(void *self, const double *value, double *theta) {
    struct compiled *c = self;
    return c->hooks->invert(c->self, value, theta);
}

void model_compiled_set(void *self, const double *theta) {
    struct compiled *c = self;
    c->hooks->set(c->self, theta);
}

void model_compiled_rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct compiled *c = self;
    c->hooks->rrecords(c->self, lend(c, rng), m, x);
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    struct compiled *c = self;
    c->hooks->from_innovations(c->self, m, z, x);
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct compiled *c = self;
    c->hooks->refresh(c->self, rho, lend(c, rng), m, x, x_new);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct compiled *c = self;
    c->hooks->set_move(c->self, theta_new, changed);
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct compiled *c = self;
    c->hooks->move(c->self, lend(c, rng), m, x, x_new);
}

static void add(void *self, int m, const double *const *x, double *complete) {
    struct compiled *c = self;
    c->hooks->add(c->self, m, x, complete);
}

static int rtheta(void *self, const double *complete, double n, struct rng *rng, double *theta) {
    struct compiled *c = self;
    return c->hooks->rtheta(c->self, complete, n, lend(c, rng), theta);
}

static double log_density(void *self, int m, const double *const *x) {
    struct compiled *c = self;
    return c->hooks->log_density(c->self, m, x);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_values one_way = {.report = report};
static const struct model_values both_ways = {.report = report, .invert = invert};
static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_density density_hooks = {.log_density = log_density};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

int model_compiled_create(const struct noiseaware_model_class *hooks, const struct fields *fields,
                          struct model *model) {
    struct compiled *c = plugin_memory(1, sizeof *c);
    const struct host host = {
        .host = {.field = host_field, .field_length = host_field_length, .memory = host_memory},
        .fields = fields,
    };
    struct noiseaware_model made = {0};
    const int status = hooks->create(&host.host, &made);
    c->hooks = hooks;
    c->self = made.self;
    c->parameters = made.parameters;
    c->stream.random = random_functions;
    model->self = c;
    model->columns = made.columns;
    model->complete = made.complete;
    const struct theta_block theta = {
        .name = "theta", .transform = TRANSFORM_IDENTITY, .size = made.parameters};
    if (made.parameters > 0 && made.parameters <= MOST_PARAMETERS) model_describe(model, 1, &theta);
    model->parameters = made.parameters;
    if (hooks->report) {
        model->reported = made.reported;
        model->values = hooks->invert ? &both_ways : &one_way;
    }
    if (hooks->move) {
        model->moving = made.moving;
        model->moves = made.moves;
        model->move = &move_hooks;
    }
    c->innovations =
        (struct model_innovations){.count = made.innovations,
                                   .kind = (enum rng_kind)made.innovation, /* the same order */
                                   .from_innovations = from_innovations};
    if (hooks->dprior) model->prior = &prior_hooks;
    if (hooks->add) model->statistic = &statistic_hooks;
    if (hooks->rtheta) model->update = &update_hooks;
    if (hooks->log_density) model->density = &density_hooks;
    if (hooks->from_innovations) model->innovations = &c->innovations;
    if (hooks->refresh) model->refresh = &refresh_hooks;
    return status;
}
