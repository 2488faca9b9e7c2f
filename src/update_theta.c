/* theta given the records by random walks, for models that know their density and no
 * update of their own, or of some coordinates only. Target: p(theta) prod_i f(x_i | theta), in the
 * coordinates of theta; both factors are the model's hooks, dprior() and log_density().
 *
 * Proposals are those of walk.c.
 *
 * Cost: in each iteration steps + 1 evaluations of the density of all records.
 */
#include "update_theta.h"

enum { STEPS = 3, MOST_STEPS = 15 };

int update_theta_coordinates(const struct model *model) {
    return model->class->rtheta ? model->walked : model->moving;
}

static int coordinate(const struct model *model, int j) {
    return model->class->rtheta ? j : model->moves[j];
}

int update_theta_steps(const struct model *model) {
    const int d = update_theta_coordinates(model), steps = STEPS + d;
    if (model->class->rtheta && d == 0) return 0;
    return steps < MOST_STEPS ? steps : MOST_STEPS;
}

size_t update_theta_size(const struct model *model) {
    if (update_theta_steps(model) == 0) return 0;
    return walk_stored(update_theta_coordinates(model));
}

void update_theta_attach(struct theta_update *u, const struct model *model, double *state) {
    const int d = update_theta_coordinates(model);
    u->model = model;
    walk_attach(&u->walk, d, state);
    u->theta_new = plugin_memory((size_t)model->parameters, sizeof(double));
    u->step = plugin_memory((size_t)d, sizeof(double));
    u->column = plugin_memory((size_t)model->columns, sizeof(double *));
}

void update_theta_start(struct theta_update *u, const double *sd) { walk_start(&u->walk, sd); }

/* ---- steps ------------------------------------------------------------------------ */

static double site_log_density(struct theta_update *u, const struct record_columns *records) {
    const struct model *model = u->model;
    const ptrdiff_t most = model->whole ? records->n : MAX_BLOCK;
    double sum = 0;
    for (ptrdiff_t start = 0; start < records->n; start += most) {
        const ptrdiff_t left = records->n - start;
        for (int v = 0; v < model->columns; ++v)
            u->column[v] = records->x + v * records->stride + start;
        sum += model->class->log_density(model->self, (int)(left < most ? left : most), u->column);
    }
    return sum;
}

double update_theta_density(struct theta_update *u, int sites, const struct record_columns *records,
                            const double *theta) {
    double sum = 0;
    u->model->class->set(u->model->self, theta);
    for (int k = 0; k < sites; ++k) sum += site_log_density(u, records + k);
    return sum;
}

static void propose(struct theta_update *u, struct rng *rng, const double *theta) {
    const struct model *model = u->model;
    memcpy(u->theta_new, theta, (size_t)model->parameters * sizeof(double));
    walk_propose(&u->walk, rng, u->step);
    for (int j = 0; j < u->walk.size; ++j) u->theta_new[coordinate(model, j)] += u->step[j];
}

int update_theta(struct theta_update *u, int sites, const struct record_columns *records,
                 struct rng *rng, int learning, double *theta) {
    const struct model *model = u->model;
    const int steps = update_theta_steps(model);
    double prior = model->class->dprior(model->self, theta);
    double density = update_theta_density(u, sites, records, theta);
    for (int k = 0; k < steps; ++k) {
        propose(u, rng, theta);
        const double threshold = rng_exponential(rng);
        const double prior_new = model->class->dprior(model->self, u->theta_new);
        double density_new = 0, log_ratio = -INFINITY;
        if (prior_new > -INFINITY) {
            density_new = update_theta_density(u, sites, records, u->theta_new);
            log_ratio = prior_new - prior + density_new - density;
        }
        if (isnan(prior_new) || isnan(density_new)) return PLUGIN_NUMERICAL;
        const int accept = -log_ratio < threshold;
        if (accept) {
            memcpy(theta, u->theta_new, (size_t)model->parameters * sizeof(double));
            prior = prior_new;
            density = density_new;
        }
        walk_tried(&u->walk, learning, log_ratio, accept);
    }
    if (!learning) return PLUGIN_OK;
    for (int j = 0; j < u->walk.size; ++j) u->step[j] = theta[coordinate(model, j)];
    walk_saw(&u->walk, u->step);
    return PLUGIN_OK;
}
