/* Model "smooth": y = f(x) + sigma e, f = sum_k beta_k b_k(x) a penalised cubic spline with equal
 * knots between the bounds of x (Eilers & Marx 1996; Lang & Brezger 2004), x in one of several
 * cells of equal width with unknown probabilities, uniform within it.
 *
 * beta = centre + E t: t_0 is the level in the middle of the bounds, t_1 the slope, both normal;
 * the others are the second differences of beta, normal with standard deviation tau, and E, a
 * field, has for them the columns of D'(D D')^-1.
 *
 * theta: t; log sigma; log tau; sticks of the cells. Complete-data statistic: counts of the cells,
 * totals of b_j b_k, of (y - centre) b_k and of (y - centre)^2. Update: t | sigma, tau is normal,
 * then sigma, tau and the cells. A move holds the quantile of x and the residual y - f(x), in units
 * of sigma, fixed.
 */
#include "base/block.h"
#include "base/cubic_splines.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"
#include "contract/model.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "model/scale_prior.h"

#include <Rmath.h>

enum { Y, X, COLUMNS };

/* of one theta */
struct curve {
    double *beta, *bound; /* bound[l]: P(x is in a cell before l) */
    double sigma;
};

struct smooth {
    int intervals, splines, cells;
    double lower, width, centre;    /* of x, the width of an interval; of y */
    const double *expand;           /* E, row by row */
    const double *mean, *precision; /* of t_0 and t_1 */
    const double *weight;           /* of the Dirichlet prior of the cells */
    struct scale_prior sigma, tau;
    double chol[4];
    struct curve now, next;
    double *gram, *wide, *solution, *counts;
};

enum { LINEAR = 2 }; /* coefficients that are not penalised */

static inline int at_sigma(const struct smooth *s) { return s->splines; }
static inline int at_tau(const struct smooth *s) { return s->splines + 1; }
static inline int at_sticks(const struct smooth *s) { return s->splines + 2; }

/* ---- prior -------------------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct smooth *s = self;
    dist_normal_precision(rng, LINEAR, s->mean, 1, s->chol, theta);
    theta[at_sigma(s)] = scale_prior_draw(&s->sigma, rng);
    const double log_tau = theta[at_tau(s)] = scale_prior_draw(&s->tau, rng);
    for (int k = LINEAR; k < s->splines; ++k) theta[k] = exp(log_tau) * rng_normal(rng);
    sticks_draw(rng, s->cells, s->weight, theta + at_sticks(s));
}

static double differences_square(const struct smooth *s, const double *theta) {
    return linalg_dot(s->splines - LINEAR, theta + LINEAR, theta + LINEAR);
}

static double dprior(void *self, const double *theta) {
    const struct smooth *s = self;
    const double log_tau = theta[at_tau(s)];
    return -0.5 * linalg_quadratic(LINEAR, s->precision, theta, s->mean) -
           (s->splines - LINEAR) * log_tau -
           0.5 * differences_square(s, theta) * exp(-2 * log_tau) +
           scale_prior_density(&s->sigma, theta[at_sigma(s)], NULL) +
           scale_prior_density(&s->tau, log_tau, NULL) +
           sticks_log_density(s->cells, s->weight, theta + at_sticks(s));
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    const struct smooth *s = self;
    const double log_tau = theta[at_tau(s)], precision = exp(-2 * log_tau);
    for (int i = 0; i < LINEAR; ++i)
        for (int j = 0; j < LINEAR; ++j)
            gradient[i] -= s->precision[i * LINEAR + j] * (theta[j] - s->mean[j]);
    for (int k = LINEAR; k < s->splines; ++k) gradient[k] -= precision * theta[k];
    double slope;
    scale_prior_density(&s->sigma, theta[at_sigma(s)], &slope);
    gradient[at_sigma(s)] += slope;
    scale_prior_density(&s->tau, log_tau, &slope);
    gradient[at_tau(s)] += slope + precision * differences_square(s, theta) - (s->splines - LINEAR);
    sticks_add_slopes(s->cells, s->weight, theta + at_sticks(s), gradient + at_sticks(s));
}

/* ---- records ------------------------------------------------------------------------ */

static void read_curve(const struct smooth *s, const double *theta, struct curve *curve) {
    for (int k = 0; k < s->splines; ++k)
        curve->beta[k] =
            s->centre + linalg_dot(s->splines, s->expand + (size_t)k * s->splines, theta);
    curve->sigma = exp(theta[at_sigma(s)]);
    sticks_to_probabilities(s->cells, theta + at_sticks(s), curve->bound + 1);
    curve->bound[0] = 0;
    for (int l = 1; l < s->cells; ++l) curve->bound[l + 1] += curve->bound[l];
    curve->bound[s->cells] = 1;
}

static void set(void *self, const double *theta) {
    struct smooth *s = self;
    read_curve(s, theta, &s->now);
}

/* in intervals from the lower bound */
static inline double place(const struct smooth *s, double x) {
    return fmin(fmax((x - s->lower) / s->width, 0), s->intervals);
}

static double curve_value(const struct smooth *s, const struct curve *curve, double x) {
    const double u = place(s, x);
    const int interval = spline_interval(s->intervals, u);
    double b[SPLINES_AT_ONCE];
    cubic_splines(u - interval, b);
    return linalg_dot(SPLINES_AT_ONCE, b, curve->beta + interval);
}

static int cell_of(const struct smooth *s, double x) {
    const int cell = (int)(place(s, x) * s->cells / s->intervals);
    return cell < s->cells ? cell : s->cells - 1;
}

/* x with that distribution function */
static double quantile(const struct smooth *s, const struct curve *curve, double u) {
    int below = 0, above = s->cells;
    while (above - below > 1) {
        const int middle = (below + above) / 2;
        if (curve->bound[middle] <= u)
            below = middle;
        else
            above = middle;
    }
    const double mass = curve->bound[below + 1] - curve->bound[below];
    const double share = mass > 0 ? fmin((u - curve->bound[below]) / mass, 1) : 0.5;
    return s->lower + s->width * s->intervals * ((below + share) / s->cells);
}

static double probability_below(const struct smooth *s, const struct curve *curve, double x) {
    const int cell = cell_of(s, x);
    const double share = place(s, x) * s->cells / s->intervals - cell;
    return curve->bound[cell] + share * (curve->bound[cell + 1] - curve->bound[cell]);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct smooth *s = self;
    rng_fill_normal(rng, m, x[Y]);
    rng_fill_uniform(rng, m, x[X]);
    for (int i = 0; i < m; ++i) {
        x[X][i] = quantile(s, &s->now, x[X][i]);
        x[Y][i] = curve_value(s, &s->now, x[X][i]) + s->now.sigma * x[Y][i];
    }
}

/* in standard normal innovations */
static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    static const double LEAST = 1e-300, MOST = 1 - 1e-16;
    struct smooth *s = self;
    const double fresh = sqrt(1 - rho * rho);
    rng_fill_normal(rng, m, x_new[Y]);
    rng_fill_normal(rng, m, x_new[X]);
    for (int i = 0; i < m; ++i) {
        const double u = fmin(fmax(probability_below(s, &s->now, x[X][i]), LEAST), MOST);
        const double z = rho * Rf_qnorm5(u, 0, 1, 1, 0) + fresh * x_new[X][i];
        x_new[X][i] = quantile(s, &s->now, Rf_pnorm5(z, 0, 1, 1, 0));
        x_new[Y][i] = curve_value(s, &s->now, x_new[X][i]) +
                      rho * (x[Y][i] - curve_value(s, &s->now, x[X][i])) +
                      fresh * s->now.sigma * x_new[Y][i];
    }
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct smooth *s = self;
    read_curve(s, theta_new, &s->next);
    changed[Y] = changed[X] = 1;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng; /* innovations of continuous records are known */
    struct smooth *s = self;
    const double ratio = s->next.sigma / s->now.sigma;
    for (int i = 0; i < m; ++i) {
        x_new[X][i] = quantile(s, &s->next, probability_below(s, &s->now, x[X][i]));
        x_new[Y][i] = curve_value(s, &s->next, x_new[X][i]) +
                      ratio * (x[Y][i] - curve_value(s, &s->now, x[X][i]));
    }
}

/* ---- update ------------------------------------------------------------------------- */

static void add(void *self, int m, const double *const *x, double *c) {
    const struct smooth *s = self;
    double *gram = c + s->cells, *response = gram + spline_pairs(s->splines, SPLINES_AT_ONCE);
    for (int i = 0; i < m; ++i) {
        const double u = place(s, x[X][i]), y = x[Y][i] - s->centre;
        const int interval = spline_interval(s->intervals, u);
        double b[SPLINES_AT_ONCE];
        cubic_splines(u - interval, b);
        c[cell_of(s, x[X][i])] += 1;
        for (int j = 0; j < SPLINES_AT_ONCE; ++j) {
            double *row =
                gram + spline_pair(s->splines, SPLINES_AT_ONCE, interval + j, interval + j);
            for (int k = j; k < SPLINES_AT_ONCE; ++k) row[k - j] += b[j] * b[k];
            response[interval + j] += y * b[j];
        }
        response[s->splines] += y * y;
    }
}

/* E'G E to s->gram, G symmetric with its products in c */
static void expand_gram(struct smooth *s, const double *gram) {
    const int count = s->splines;
    for (int j = 0; j < count; ++j)
        for (int a = 0; a < count; ++a) {
            double sum = 0;
            for (int k = j < 3 ? 0 : j - 3; k < count && k <= j + 3; ++k)
                sum += gram[j <= k ? spline_pair(count, SPLINES_AT_ONCE, j, k)
                                   : spline_pair(count, SPLINES_AT_ONCE, k, j)] *
                       s->expand[(size_t)k * count + a];
            s->wide[(size_t)j * count + a] = sum;
        }
    for (int a = 0; a < count; ++a)
        for (int b = 0; b <= a; ++b) {
            double sum = 0;
            for (int j = 0; j < count; ++j)
                sum += s->expand[(size_t)j * count + a] * s->wide[(size_t)j * count + b];
            s->gram[(size_t)a * count + b] = s->gram[(size_t)b * count + a] = sum;
        }
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct smooth *s = self;
    const int count = s->splines;
    const double *gram = c + s->cells, *response = gram + spline_pairs(count, SPLINES_AT_ONCE);
    const double log_sigma = theta[at_sigma(s)], weight = exp(-2 * log_sigma),
                 penalty = exp(-2 * theta[at_tau(s)]);
    expand_gram(s, gram);
    double *precision = s->wide, *right = s->counts;
    for (int a = 0; a < count; ++a) {
        right[a] = 0;
        for (int k = 0; k < count; ++k) right[a] += s->expand[(size_t)k * count + a] * response[k];
        s->solution[a] = weight * right[a];
        for (int b = 0; b < count; ++b)
            precision[(size_t)a * count + b] = weight * s->gram[(size_t)a * count + b];
        if (a >= LINEAR) precision[(size_t)a * count + a] += penalty;
    }
    for (int a = 0; a < LINEAR; ++a)
        for (int b = 0; b < LINEAR; ++b) {
            precision[(size_t)a * count + b] += s->precision[a * LINEAR + b];
            s->solution[a] += s->precision[a * LINEAR + b] * s->mean[b];
        }
    if (linalg_cholesky(count, precision)) return PLUGIN_NUMERICAL;
    linalg_forward(count, precision, s->solution);
    linalg_backward(count, precision, s->solution);
    dist_normal_precision(rng, count, s->solution, 1, precision, theta);
    double residual = response[count] - 2 * linalg_dot(count, right, theta);
    for (int a = 0; a < count; ++a)
        residual += theta[a] * linalg_dot(count, s->gram + (size_t)a * count, theta);
    theta[at_sigma(s)] =
        scale_prior_update(&s->sigma, n, residual > 0 ? residual : 0, rng, log_sigma);
    theta[at_tau(s)] = scale_prior_update(&s->tau, count - LINEAR, differences_square(s, theta),
                                          rng, theta[at_tau(s)]);
    for (int l = 0; l < s->cells; ++l) s->counts[l] = s->weight[l] + c[l];
    sticks_draw(rng, s->cells, s->counts, theta + at_sticks(s));
    return PLUGIN_OK;
}

/* ---- what it can do ----------------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

/* Fields: lower and width (of an interval) of x; centre of y and x; expand; linear_mean and
 * linear_precision; weight; tau_half_t; one of a sigma (model/scale_prior.h). */
static int create(const struct fields *fields, struct model *model) {
    struct smooth *s = plugin_memory(1, sizeof *s);
    const double *lower = fields_vector(fields, "lower", 1);
    const double *width = fields_vector(fields, "width", 1);
    const double *intervals = fields_vector(fields, "intervals", 1);
    const double *tau = fields_vector(fields, "tau_half_t", 2);
    const double *centre = fields_vector(fields, "centre", LINEAR);
    if (!lower || !width || !intervals || !tau || !centre) return PLUGIN_BAD_FIELDS;
    s->lower = *lower;
    s->width = *width;
    s->centre = *centre;
    s->intervals = (int)*intervals;
    s->splines = s->intervals + 3;
    s->cells = fields_length(fields, "weight");
    s->expand = fields_vector(fields, "expand", s->splines * s->splines);
    s->mean = fields_vector(fields, "linear_mean", LINEAR);
    s->precision = fields_vector(fields, "linear_precision", LINEAR * LINEAR);
    s->weight = fields_vector(fields, "weight", s->cells);
    s->tau = (struct scale_prior){.kind = SCALE_HALF_T, .a = tau[0], .b = tau[1]};
    if (!s->expand || !s->mean || !s->precision || !s->weight ||
        scale_prior_read(fields, &s->sigma) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    doubles_copy(s->chol, s->precision, LINEAR * LINEAR);
    if (linalg_cholesky(LINEAR, s->chol)) return PLUGIN_BAD_FIELDS;
    const size_t count = (size_t)s->splines, cells = (size_t)s->cells;
    DOUBLES(count, &s->now.beta, &s->next.beta, &s->solution);
    DOUBLES(cells + 1, &s->now.bound, &s->next.bound);
    DOUBLES(count * count, &s->gram, &s->wide);
    s->counts = doubles(count > cells ? count : cells);
    model->self = s;
    model->columns = COLUMNS;
    model->complete = s->cells + spline_pairs(s->splines, SPLINES_AT_ONCE) + s->splines + 1;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->refresh = &refresh_hooks;
    model->move = &move_hooks;
    model->costs.refresh = 8; /* normal quantiles */
    double *centres = doubles(count);
    doubles_copy(centres, centre, LINEAR);
    const struct theta_block blocks[] = {
        {.name = "coefficients",
         .transform = TRANSFORM_CENTRE,
         .size = s->splines,
         .centre = centres},
        {.name = "sigma", .transform = TRANSFORM_LOG, .size = 1},
        {.name = "tau", .transform = TRANSFORM_LOG, .size = 1},
        {.name = "prob", .transform = TRANSFORM_STICKS, .size = s->cells, .rows = 1}};
    model_describe(model, 4, blocks);
    return PLUGIN_OK;
}

const struct model_class model_smooth = {
    .name = "smooth",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
