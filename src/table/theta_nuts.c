/* Method "collapse", tables whose probabilities are functions of few parameters (model/loglinear.c)
 * and are not integrated out: a Gibbs sampler of the table given theta, by transfers, and of theta
 * given the table, by NUTS (mcmc/hmc.c). The target of transfers is then
 *
 *   n! prod_cells p_k^(n_k) / n_k! eta(z | s),
 *
 * with n! where n is unknown. A direction has the slope sum_k by_k log p_k; factorials enter as
 * ratios to the factorials of the counts as they are, without loss of digits however large these
 * are.
 *
 * The width of theta's density changes with the table, most if noise hides the table. A short
 * trajectory of small steps follows each transition: it can move where those of NUTS diverge.
 *
 * Cost of theta's part: a few densities of the model, that is so many times its cells.
 */
#include "base/sticks.h"
#include "contract/model_cells.h"
#include "table/table.h"

enum { FEW = 200 /* up to so many coordinates the metric is a full matrix */ };

static enum hmc_metric metric(const struct collapse *c) {
    return c->model.parameters <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

int table_theta_serves(const struct collapse *c) {
    return c->model.cells && c->model.cells->observe && c->model.moving == c->model.parameters;
}

/* ---- factorials --------------------------------------------------------------- */

/* ---- set-up ------------------------------------------------------------------- */

void table_given_create(struct table *s) {
    for (int node = 0; node < s->nodes; ++node) s->weights.sign[node] = node < s->cells ? 1 : -1;
    s->log_p = doubles((size_t)s->nodes);
    s->log_factorial = doubles(CELL_TABLE);
    for (int n = 2; n < CELL_TABLE; ++n) s->log_factorial[n] = s->log_factorial[n - 1] + log(n);
}

void table_theta_create(const struct collapse *c, struct table *s) {
    const int size = c->model.parameters;
    s->theta.unit = doubles(5 * (size_t)size);
    s->theta.from = doubles(2 * (size_t)size);
    s->theta.place = s->theta.from + size;
    s->theta.far = plugin_memory(2 * (size_t)size, sizeof *s->theta.far);
    s->theta.far_there = s->theta.far + size;
    s->theta.work = doubles(hmc_workspace(size, metric(c)));
}

int table_theta_stored(const struct collapse *c) {
    return (int)hmc_stored(c->model.parameters, metric(c));
}

/* ---- what the model holds: hold() in contract/model_cells.h
 * -------------------------------------- */

/* q with what is held where it was. */
static const double *with_held(const struct collapse *c, const struct table_theta *held,
                               const double *q) {
    if (!held->holding) return q;
    for (int j = 0; j < c->model.parameters; ++j)
        held->place[j] = held->far[j] ? held->from[j] : q[j];
    return held->place;
}

/* From theta as it is; in q, normal numbers for what is held. */
static void begin_to_hold(struct collapse *c, struct table_theta *held, double *q) {
    const size_t size = (size_t)c->model.parameters;
    held->beyond = 0;
    held->holding =
        c->model.cells->hold && c->model.cells->hold(c->model.self, c->theta, held->far);
    memcpy(held->from, c->theta, size * sizeof(double));
    memcpy(q, c->theta, size * sizeof(double));
    for (size_t j = 0; held->holding && j < size; ++j)
        if (held->far[j]) q[j] = rng_normal(c->rng);
}

static int holds_the_same(const struct collapse *c, struct table_theta *held, const double *theta) {
    if (!c->model.cells->hold) return 1;
    const int holding = c->model.cells->hold(c->model.self, theta, held->far_there);
    return holding == held->holding &&
           (!holding || memcmp(held->far, held->far_there, (size_t)c->model.parameters) == 0);
}

/* for mcmc/hmc.h: the posterior of what is not held, where nothing else would be, and standard
 * normal numbers in place of what is. */
static double log_density(void *self, const double *q, double *gradient) {
    const struct collapse *c = self;
    struct table *s = c->self;
    const double *theta = with_held(c, &s->theta, q);
    if (!holds_the_same(c, &s->theta, theta)) {
        s->theta.beyond = 1;
        memset(gradient, 0, (size_t)c->model.parameters * sizeof(double));
        return -INFINITY;
    }
    double log_density = c->model.cells->log_posterior(c->model.self, theta, gradient);
    for (int j = 0; s->theta.holding && j < c->model.parameters; ++j) {
        if (!s->theta.far[j]) continue;
        log_density -= 0.5 * q[j] * q[j];
        gradient[j] = -q[j];
    }
    return log_density;
}

static void information(void *self, const double *q, double *out) {
    const struct collapse *c = self;
    const struct table *s = c->self;
    c->model.cells->information(c->model.self, with_held(c, &s->theta, q), out);
    const int size = c->model.parameters;
    for (int i = 0; s->theta.holding && i < size; ++i)
        for (int j = 0; j <= i; ++j)
            if (s->theta.far[i] || s->theta.far[j])
                out[(size_t)i * (size_t)size + (size_t)j] = i == j;
}

void table_theta_attach(struct collapse *c, struct table *s, double *store) {
    const struct hmc_target target = {c->model.parameters, c, log_density, information};
    hmc_attach(&s->theta.hmc, &target, metric(c), store, s->theta.work);
}

void table_theta_use(const struct collapse *c, struct table *s) {
    c->model.cells->log_cells(c->model.self, c->theta, s->log_p);
}

/* Where theta is; counts of the cells from there. */
void table_theta_draw_cells(const struct collapse *c, struct table *s, double n) {
    double *probability = s->count + s->part[0].at_cell, *stick = s->watch.correlation;
    table_theta_use(c, s);
    for (int k = 0; k < s->cells; ++k) probability[k] = exp(s->log_p[k]);
    sticks_from_probabilities(s->cells, probability, stick);
    cells_draw(c->rng, s->cells, stick, n, probability);
}

static void observe(const struct collapse *c, const struct table *s) {
    c->model.cells->observe(c->model.self, s->count, s->count[s->n.at]);
}

void table_theta_start(struct collapse *c, struct table *s) {
    const int size = c->model.parameters;
    double *unit = s->theta.unit, *q = unit + size;
    table_theta_use(c, s);
    observe(c, s);
    begin_to_hold(c, &s->theta, q);
    for (int j = 0; j < size; ++j) unit[j] = 1 + fabs(q[j]);
    if (metric(c) == HMC_DIAGONAL) hmc_lower_units(&s->theta.hmc.target, q, unit, q + size);
    hmc_start(&s->theta.hmc, q, unit);
    if (hmc_refresh(&s->theta.hmc)) hmc_find_step(&s->theta.hmc, c->rng);
}

/* ---- an iteration ------------------------------------------------------------- */

int table_theta_move(struct collapse *c, struct table *s, struct hmc_step *told) {
    const size_t bytes = (size_t)c->model.parameters * sizeof(double);
    observe(c, s);
    begin_to_hold(c, &s->theta, s->theta.hmc.q);
    if (!hmc_refresh(&s->theta.hmc)) return PLUGIN_NUMERICAL;
    hmc_nuts(&s->theta.hmc, c->rng, told);
    /* What NUTS cannot enter is only out of reach if this cannot either. */
    struct hmc_step close;
    hmc_close(&s->theta.hmc, c->rng, &close);
    told->divergent = told->divergent && close.divergent;
    memcpy(c->theta, with_held(c, &s->theta, s->theta.hmc.q), bytes);
    told->divergent = told->divergent && !s->theta.beyond;
    if (c->model.cells->shift) c->model.cells->shift(c->model.self, c->rng, c->theta);
    table_theta_use(c, s);
    hmc_count(c->counter + THETA_COUNTERS, told);
    return PLUGIN_OK;
}

double table_theta_density(const struct collapse *c, const struct table *s, const double *q,
                           double *gradient) {
    observe(c, s);
    return c->model.cells->log_posterior(c->model.self, q, gradient);
}

double table_theta_work(const struct collapse *c, const struct table *s) {
    const double gradients = 8; /* about */
    return gradients * 20 * s->cells + 10.0 * c->model.parameters;
}
