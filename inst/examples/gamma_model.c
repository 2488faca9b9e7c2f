/* Gamma records with a known shape: x ~ Gamma(shape, rate), prior rate ~ Gamma(a, b).
 *
 * A complete model for noiseaware, to copy from; gamma_model.R compiles and runs
 * it. Fields: `shape`, one number; `prior`, the numbers a and b.
 *
 * theta: log rate. Complete-data statistic: sum of x. Update, conjugate:
 * Gamma(a + n shape, b + sum x). A record is x = g / rate with the innovation
 * g ~ Gamma(shape, 1), so a move multiplies by rate / rate'.
 */
#include <math.h>
#include <noiseaware.h>

struct gamma_model {
    double shape, a, b;
    double log_rate, scale; /* current parameter; scale = 1 / rate */
    double ratio;           /* of a move: rate / rate' */
};

static int create(const struct noiseaware_host *host, struct noiseaware_model *model) {
    const double *shape = host->field(host, "shape", 1), *prior = host->field(host, "prior", 2);
    if (!shape || !prior || !(*shape > 0) || !(prior[0] > 0) || !(prior[1] > 0))
        return NOISEAWARE_BAD_FIELDS;
    struct gamma_model *g = host->memory(host, 1, sizeof *g);
    g->shape = *shape;
    g->a = prior[0];
    g->b = prior[1];
    model->self = g;
    model->columns = model->parameters = model->complete = model->reported = 1;
    model->moving = 1;
    model->moves = host->memory(host, 1, sizeof *model->moves); /* zeroed: coordinate 0 */
    return NOISEAWARE_OK;
}

static void rprior(void *self, struct noiseaware_random *random, double *theta) {
    const struct gamma_model *g = self;
    theta[0] = random->log_gamma(random, g->a) - log(g->b);
}

/* the density of the rate times d rate / d log rate = rate */
static double dprior(void *self, const double *theta) {
    const struct gamma_model *g = self;
    return g->a * theta[0] - g->b * exp(theta[0]);
}

/* the user sees the rate */
static void report(void *self, const double *theta, double *out) {
    (void)self;
    out[0] = exp(theta[0]);
}

static int invert(void *self, const double *values, double *theta) {
    (void)self;
    if (!(values[0] > 0)) return NOISEAWARE_BAD_FIELDS;
    theta[0] = log(values[0]);
    return NOISEAWARE_OK;
}

static void set(void *self, const double *theta) {
    struct gamma_model *g = self;
    g->log_rate = theta[0];
    g->scale = exp(-theta[0]);
}

static void rrecords(void *self, struct noiseaware_random *random, int m, double *const *x) {
    const struct gamma_model *g = self;
    for (int i = 0; i < m; ++i) x[0][i] = random->gamma(random, g->shape) * g->scale;
}

/* A gamma variable is the sum of two with the same rate whose shapes add up, and
 * its first part is a beta share of it: keep the part of shape rho * shape, draw
 * the other anew. The correlation of x and x_new is rho. */
static void refresh(void *self, double rho, struct noiseaware_random *random, int m,
                    const double *const *x, double *const *x_new) {
    const struct gamma_model *g = self;
    const double keep = rho * g->shape, renew = (1 - rho) * g->shape;
    for (int i = 0; i < m; ++i) {
        double kept = 0, dropped = 0, fresh = 0;
        if (keep > 0) kept = random->gamma(random, keep);
        if (renew > 0) {
            dropped = random->gamma(random, renew);
            fresh = random->gamma(random, renew);
        }
        const double share = kept > 0 ? kept / (kept + dropped) : 0;
        x_new[0][i] = x[0][i] * share + fresh * g->scale;
    }
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct gamma_model *g = self;
    g->ratio = exp(g->log_rate - theta_new[0]);
    changed[0] = theta_new[0] != g->log_rate;
}

static void move(void *self, struct noiseaware_random *random, int m, const double *const *x,
                 double *const *x_new) {
    (void)random; /* the innovation of a continuous record is known */
    const struct gamma_model *g = self;
    const double ratio = g->ratio, *in = x[0];
    double *out = x_new[0];
    NOISEAWARE_RECORDS(i, m) out[i] = ratio * in[i];
}

static void add(void *self, int m, const double *const *x, double *c) {
    (void)self;
    c[0] += noiseaware_sum(m, x[0]);
}

static int rtheta(void *self, const double *c, double n, struct noiseaware_random *random,
                  double *theta) {
    const struct gamma_model *g = self;
    const double rate = g->b + c[0];
    if (!(rate > 0) || !isfinite(rate)) return NOISEAWARE_NUMERICAL;
    theta[0] = random->log_gamma(random, g->a + n * g->shape) - log(rate);
    return NOISEAWARE_OK;
}

static const struct noiseaware_model_class gamma_class = {
    .abi = NOISEAWARE_ABI,
    .size = sizeof gamma_class,
    .name = "gamma",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
    .add = add,
    .rtheta = rtheta,
    .report = report,
    .invert = invert,
    .dprior = dprior,
    .set_move = set_move,
    .move = move,
    .refresh = refresh,
};

/* the one symbol that is seen from outside */
const struct noiseaware_model_class *gamma_model(void);
const struct noiseaware_model_class *gamma_model(void) { return &gamma_class; }
