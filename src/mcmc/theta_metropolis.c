/* theta given the records, for models with a density but without an update, or with an update of
 * some coordinates only. Target: p(theta) prod_i f(x_i | theta), in the coordinates of theta; both
 * factors are the model's hooks, dprior() and log_density().
 *
 * Proposals are those of mcmc/adaptive_random_walk.c. If the model has curve(), and Newton
 * proposals are accepted often enough in warmup, they are mostly those of base/newton_proposal.c,
 * with a few random walks for the regions where these fail.
 *
 * A model with shift() makes this step first; the walks then leave the coordinates that it holds
 * as they are, and do not go where it would hold others.
 *
 * Cost: in each iteration steps + 1 evaluations of the density of all records, or two
 * evaluations of curve() and FEW of the density.
 */
#include "mcmc/theta_metropolis.h"
#include "contract/model_cells.h"
#include "contract/model_density.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"

enum { STEPS = 3, MOST_STEPS = 15 };

/* random walks of an update in addition to a Newton proposal */
enum { FEW = 1 };

/* of curve(), in densities */
static const double CURVE = 2;

int update_theta_coordinates(const struct model *model) {
    return model->update ? model_walked(model) : model->moving;
}

int update_theta_coordinate(const struct model *model, int j) {
    return model->update ? model->density->walked_from + j : model->moves[j];
}

int update_theta_is_needed(const struct model *model) {
    return !model->update || model_walked(model) > 0;
}

static int has_newton(const struct model *model) {
    return model_walked(model) > 0 && model->density->curve;
}

static int has_shift(const struct model *model) { return model->cells && model->cells->shift; }

static int walk_steps(int d) { return STEPS + d < MOST_STEPS ? STEPS + d : MOST_STEPS; }

/* as if Newton's proposals were used where there are any */
double update_theta_cost(const struct model *model) {
    if (has_newton(model)) return 2 * CURVE + FEW;
    return walk_steps(update_theta_coordinates(model)) + 1;
}

/* Newton's state comes after the walk's. */
size_t update_theta_size(const struct model *model) {
    if (!update_theta_is_needed(model)) return 0;
    return walk_stored(update_theta_coordinates(model)) + (has_newton(model) ? NEWTON_STORED : 0);
}

void update_theta_attach(struct theta_update *u, const struct model *model, double *state) {
    const int d = update_theta_coordinates(model);
    u->model = model;
    walk_attach(&u->walk, d, state);
    if (has_newton(model))
        newton_attach(&u->newton, model->density->walked, state + walk_stored(d));
    u->theta_new = doubles((size_t)model->parameters);
    u->step = doubles((size_t)d);
    u->column = plugin_memory((size_t)model->columns, sizeof(double *));
    if (has_shift(model)) u->complete = doubles((size_t)model->complete);
    u->held = plugin_memory((size_t)model->parameters, 1);
    u->held_there = plugin_memory((size_t)model->parameters, 1);
}

void update_theta_start(struct theta_update *u, const double *sd) {
    walk_start(&u->walk, sd);
    if (has_newton(u->model)) newton_start(&u->newton);
}

double update_theta_accepted(const struct theta_update *u) {
    return u->newton.made ? *u->newton.accepted / *u->newton.made : NAN;
}

/* ---- steps ------------------------------------------------------------------------ */

/* Returns how many records are in the block from `start` on. */
static int point_at_block(struct theta_update *u, const struct record_columns *records,
                          ptrdiff_t start) {
    const ptrdiff_t most = u->model->whole ? records->n : MAX_BLOCK, left = records->n - start;
    for (int v = 0; v < u->model->columns; ++v)
        u->column[v] = records->x + v * records->stride + start;
    return (int)(left < most ? left : most);
}

/* The log density of a site's records; of curve(), with what that adds, where `place` is not NULL.
 */
static double site_log_density(struct theta_update *u, const struct record_columns *records,
                               struct newton_place *place) {
    const struct model *model = u->model;
    double sum = 0;
    for (ptrdiff_t start = 0; start < records->n;) {
        const int m = point_at_block(u, records, start);
        start += m;
        sum += place ? model->density->curve(model->self, m, u->column, place->mode, place->factor)
                     : model->density->log_density(model->self, m, u->column);
    }
    return sum;
}

static double log_density(struct theta_update *u, int sites, const struct record_columns *records,
                          const double *theta, struct newton_place *place) {
    double sum = 0;
    u->model->class->set(u->model->self, theta);
    for (int k = 0; k < sites; ++k) sum += site_log_density(u, records + k, place);
    return sum;
}

double update_theta_density(struct theta_update *u, int sites, const struct record_columns *records,
                            const double *theta) {
    return log_density(u, sites, records, theta, NULL);
}

/* ---- Newton proposals: of the first coordinates of theta ------------------------------ */

static void look(struct theta_update *u, int sites, const struct record_columns *records,
                 const double *theta, struct newton_place *place) {
    const struct model *model = u->model;
    place->log_density = model->prior->dprior(model->self, theta);
    place->proper = 0;
    if (!(place->log_density > -INFINITY)) return;
    model->density->prior_curve(model->self, theta, place->mode, place->factor);
    place->log_density += log_density(u, sites, records, theta, place);
    newton_aim(place, u->newton.size, theta);
}

/* Returns the log density of where theta is now. */
static double newton_step(struct theta_update *u, int sites, const struct record_columns *records,
                          struct rng *rng, int learning, double *theta) {
    struct newton *newton = &u->newton;
    look(u, sites, records, theta, &newton->here);
    if (!newton->here.proper) return newton->here.log_density;
    memcpy(u->theta_new, theta, (size_t)u->model->parameters * sizeof(double));
    newton_propose(newton, rng, u->theta_new);
    const double threshold = rng_exponential(rng);
    look(u, sites, records, u->theta_new, &newton->there);
    const double log_ratio = newton_log_ratio(newton, theta, u->theta_new);
    const int accept = -log_ratio < threshold;
    if (accept) memcpy(theta, u->theta_new, (size_t)newton->size * sizeof(double));
    newton_tried(newton, learning, log_ratio, accept);
    return newton->here.log_density;
}

/* ---- random walks ---------------------------------------------------------------------- */

static void propose(struct theta_update *u, struct rng *rng, const double *theta) {
    const struct model *model = u->model;
    memcpy(u->theta_new, theta, (size_t)model->parameters * sizeof(double));
    walk_propose(&u->walk, rng, u->step);
    for (int j = 0; j < u->walk.size; ++j)
        if (!u->held[update_theta_coordinate(model, j)])
            u->theta_new[update_theta_coordinate(model, j)] += u->step[j];
}

/* ---- the model's own step ---------------------------------------------------------------- */

/* Returns whether the model holds anything of theta now. */
static int shift(struct theta_update *u, int sites, const struct record_columns *records,
                 struct rng *rng, double *theta) {
    const struct model *model = u->model;
    if (!has_shift(model)) return 0;
    double n = 0;
    memset(u->complete, 0, (size_t)model->complete * sizeof(double));
    for (int k = 0; k < sites; ++k) {
        for (ptrdiff_t start = 0; start < records[k].n;) {
            const int m = point_at_block(u, records + k, start);
            model->statistic->add(model->self, m, u->column, u->complete);
            start += m;
        }
        n += (double)records[k].n;
    }
    model->cells->observe(model->self, u->complete, n);
    model->cells->shift(model->self, rng, theta);
    return model->cells->hold && model->cells->hold(model->self, theta, u->held);
}

static int holds_the_same(struct theta_update *u) {
    const struct model *model = u->model;
    if (!model->cells || !model->cells->hold) return 1;
    (void)model->cells->hold(model->self, u->theta_new, u->held_there);
    return memcmp(u->held, u->held_there, (size_t)model->parameters) == 0;
}

int update_theta(struct theta_update *u, int sites, const struct record_columns *records,
                 struct rng *rng, int learning, double *theta) {
    const struct model *model = u->model;
    const int holding = shift(u, sites, records, rng, theta);
    const int serves = has_newton(model) && newton_serves(&u->newton);
    const int steers = has_newton(model) && (learning || serves);
    const int steps = serves ? FEW : walk_steps(u->walk.size);
    double density = steers ? newton_step(u, sites, records, rng, learning, theta)
                            : model->prior->dprior(model->self, theta) +
                                  update_theta_density(u, sites, records, theta);
    for (int k = 0; k < steps; ++k) {
        propose(u, rng, theta);
        const double threshold = rng_exponential(rng);
        double density_new =
            holds_the_same(u) ? model->prior->dprior(model->self, u->theta_new) : -INFINITY;
        if (density_new > -INFINITY)
            density_new += update_theta_density(u, sites, records, u->theta_new);
        if (isnan(density_new)) return PLUGIN_NUMERICAL;
        const double log_ratio = density_new - density;
        const int accept = -log_ratio < threshold;
        if (accept) {
            memcpy(theta, u->theta_new, (size_t)model->parameters * sizeof(double));
            density = density_new;
        }
        walk_tried(&u->walk, learning, log_ratio, accept);
    }
    if (!learning || holding) return PLUGIN_OK;
    for (int j = 0; j < u->walk.size; ++j) u->step[j] = theta[update_theta_coordinate(model, j)];
    walk_saw(&u->walk, u->step);
    return PLUGIN_OK;
}
