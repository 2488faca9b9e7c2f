/* theta given the records by random walks, for models that know their density and no
 * update of their own, or of some coordinates only. Target: p(theta) prod_i f(x_i | theta), in the
 * coordinates of theta; both factors are the model's hooks, dprior() and log_density().
 *
 * A proposal is theta + exp(log_scale) F z, z standard normal over the walking
 * coordinates. In warmup F follows the covariance of theta (Haario, Saksman & Tamminen
 * 2001), taken over windows of doubling length, and log_scale goes up where too many
 * proposals are accepted, down where too few are (Andrieu & Thoms 2008). Afterwards
 * both stay as they are, so that the target is invariant.
 *
 * Cost: in each iteration steps + 1 evaluations of the density of all records.
 */
#include "update_theta.h"

enum { STEPS = 3, MOST_STEPS = 15, FIRST_WINDOW = 25 };

/* shares of accepted proposals at which random walks mix best (Gelman, Roberts & Gilks 1996) */
static const double ONE_DIMENSION = 0.44, MANY_DIMENSIONS = 0.25;

/* A window's correlations are shrunk as if so many further draws had none. */
static const double DIAGONAL = 5;

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
    const size_t d = (size_t)update_theta_coordinates(model);
    return update_theta_steps(model) == 0 ? 0 : 5 + d + 2 * d * d;
}

void update_theta_attach(struct theta_update *u, const struct model *model, double *state) {
    const size_t d = (size_t)update_theta_coordinates(model);
    u->model = model;
    u->log_scale = state;
    u->seen = state + 1;
    u->window = state + 2;
    u->made = state + 3;
    u->accepted = state + 4;
    u->mean = state + 5;
    u->scatter = u->mean + d;
    u->factor = u->scatter + d * d;
    u->theta_new = plugin_memory((size_t)model->parameters, sizeof(double));
    u->z = plugin_memory(d, sizeof(double));
    u->column = plugin_memory((size_t)model->columns, sizeof(double *));
}

static void open_window(struct theta_update *u, double length) {
    const size_t d = (size_t)update_theta_coordinates(u->model);
    *u->seen = 0;
    *u->window = length;
    memset(u->mean, 0, d * sizeof(double));
    memset(u->scatter, 0, d * d * sizeof(double));
}

static double best_log_scale(int d) { return log(2.4 / sqrt(d > 0 ? d : 1)); }

void update_theta_start(struct theta_update *u, const double *sd) {
    const int d = update_theta_coordinates(u->model);
    *u->log_scale = best_log_scale(d);
    *u->made = *u->accepted = 0;
    memset(u->factor, 0, (size_t)d * (size_t)d * sizeof(double));
    for (int j = 0; j < d; ++j) u->factor[(size_t)j * d + j] = sd[j];
    open_window(u, FIRST_WINDOW);
}

/* ---- learning -------------------------------------------------------------------- */

static void see(struct theta_update *u, const double *theta) {
    const int d = update_theta_coordinates(u->model);
    const double count = *u->seen += 1;
    double *away = u->z;
    for (int j = 0; j < d; ++j) {
        away[j] = theta[coordinate(u->model, j)] - u->mean[j];
        u->mean[j] += away[j] / count;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            u->scatter[(size_t)i * d + j] += away[i] * away[j] * (count - 1) / count;
}

/* Cholesky factor in place, row by row: the matrices are small. Returns 0, or 1 if the
 * matrix is not positive definite. */
static int factorise(int d, double *a) {
    for (int i = 0; i < d; ++i) {
        double *row = a + (size_t)i * d;
        for (int j = 0; j <= i; ++j) {
            const double *other = a + (size_t)j * d;
            double sum = row[j];
            for (int k = 0; k < j; ++k) sum -= row[k] * other[k];
            if (j < i)
                row[j] = sum / other[j];
            else if (!(sum > 0) || !isfinite(sum))
                return 1;
            else
                row[j] = sqrt(sum);
        }
    }
    return 0;
}

/* The window's covariance, correlations shrunk a little, if it has one. */
static void close_window(struct theta_update *u) {
    const int d = update_theta_coordinates(u->model);
    const size_t square = (size_t)d * (size_t)d;
    const double count = *u->seen, variances = count - 1;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            u->scatter[(size_t)i * d + j] *= (i == j ? 1 : count / (count + DIAGONAL)) / variances;
    if (factorise(d, u->scatter) == 0) {
        memcpy(u->factor, u->scatter, square * sizeof(double));
        *u->log_scale = best_log_scale(d);
    }
    open_window(u, 2 * *u->window);
}

static void adjust(struct theta_update *u, double log_ratio) {
    const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
    const double target = update_theta_coordinates(u->model) == 1 ? ONE_DIMENSION : MANY_DIMENSIONS;
    *u->log_scale += (probability - target) / sqrt(1 + *u->seen);
}

/* ---- steps ------------------------------------------------------------------------ */

static double records_log_density(struct theta_update *u, const struct record_columns *records,
                                  const double *theta) {
    const struct model *model = u->model;
    const ptrdiff_t most = model->whole ? records->n : MAX_BLOCK;
    double sum = 0;
    model->class->set(model->self, theta);
    for (ptrdiff_t start = 0; start < records->n; start += most) {
        const ptrdiff_t left = records->n - start;
        for (int v = 0; v < model->columns; ++v)
            u->column[v] = records->x + v * records->stride + start;
        sum += model->class->log_density(model->self, (int)(left < most ? left : most), u->column);
    }
    return sum;
}

static void propose(struct theta_update *u, struct rng *rng, const double *theta) {
    const struct model *model = u->model;
    const int d = update_theta_coordinates(model);
    const double scale = exp(*u->log_scale);
    memcpy(u->theta_new, theta, (size_t)model->parameters * sizeof(double));
    for (int j = 0; j < d; ++j) u->z[j] = rng_normal(rng);
    for (int i = 0; i < d; ++i) {
        double step = 0;
        for (int j = 0; j <= i; ++j) step += u->factor[(size_t)i * d + j] * u->z[j];
        u->theta_new[coordinate(model, i)] += scale * step;
    }
}

int update_theta(struct theta_update *u, const struct record_columns *records, struct rng *rng,
                 int learning, double *theta) {
    const struct model *model = u->model;
    const int steps = update_theta_steps(model);
    double prior = model->class->dprior(model->self, theta);
    double density = records_log_density(u, records, theta);
    for (int k = 0; k < steps; ++k) {
        propose(u, rng, theta);
        const double threshold = rng_exponential(rng);
        const double prior_new = model->class->dprior(model->self, u->theta_new);
        double density_new = 0, log_ratio = -INFINITY;
        if (prior_new > -INFINITY) {
            density_new = records_log_density(u, records, u->theta_new);
            log_ratio = prior_new - prior + density_new - density;
        }
        if (isnan(prior_new) || isnan(density_new)) return PLUGIN_NUMERICAL;
        const int accept = -log_ratio < threshold;
        if (accept) {
            memcpy(theta, u->theta_new, (size_t)model->parameters * sizeof(double));
            prior = prior_new;
            density = density_new;
        }
        if (learning) {
            adjust(u, log_ratio);
        } else {
            *u->made += 1;
            *u->accepted += accept;
        }
    }
    if (!learning) return PLUGIN_OK;
    see(u, theta);
    if (*u->seen >= *u->window) close_window(u);
    return PLUGIN_OK;
}
