/* Model "smooth": y = sum of f_j(x_j), j a smooth, of a slope times z, z a number, and of a
 * coefficient of each level but the first of each factor, + sigma e. f = sum_k beta_k b_k(x) is a
 * penalised cubic spline with equal knots between the bounds of x (Eilers & Marx 1996; Lang &
 * Brezger 2004). The covariates are in cells: model/class_cells.h.
 *
 * beta, of all splines, then of all numbers and of all dummies, is E t. t_0 is the level in the
 * middle of the bounds, less the centre of y; then t has a slope of each covariate or dummy, all
 * normal. The others are the second differences of a smooth's beta, normal with that smooth's
 * standard deviation tau, and E, a field, has for them the columns of D'(D D')^-1.
 *
 * theta: t; log sigma; log tau of each smooth; classes and cells. Complete-data statistic: counts
 * of classes and cells; totals of products of the rows (splines, numbers less their centres, and
 * dummies), of (y - centre) with them, and of (y - centre)^2. Update: t | sigma, tau is normal,
 * then sigma, tau and the rest. A move holds the covariates' innovations and y less its mean, in
 * units of sigma, fixed. A draw reports margins before classes, where there are several.
 */
#include "base/block.h"
#include "base/cubic_splines.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model.h"
#include "contract/model_classes.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "contract/model_values.h"
#include "model/class_cells.h"
#include "model/scale_prior.h"

enum { Y, COVARIATES };

/* of one theta */
struct curve {
    double *beta, sigma;
};

/* A covariate's rows. */
struct term {
    int intervals, first; /* intervals: 0 but of a smooth */
    double lower, width;  /* of an interval */
    double centre;        /* of a number */
    const struct cell_covariate *cells;
};

struct smooth {
    int covariates, columns, smooths, rows, coefficients, linear;
    double centre; /* of y */
    struct term *term;
    struct class_cells cells;
    int moves_covariates;           /* a move does */
    const double *expand;           /* E, row by row */
    const double *mean, *precision; /* of the `linear` first coefficients */
    struct scale_prior sigma, tau;
    double *chol;
    struct curve now, next;
    double *wide, *gram, *right, *solution;
    double *row; /* of a record, what is not 0 */
    int *at;     /* and where */
    struct coordinates coordinates;
    struct model_classes classes;
    struct model_move move; /* with these */
};

static inline int at_sigma(const struct smooth *s) { return s->coefficients; }
static inline int at_tau(const struct smooth *s) { return s->coefficients + 1; }
static inline int differences(const struct smooth *s, int smooth) {
    return s->term[smooth].intervals + 1;
}

/* ---- prior -------------------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct smooth *s = self;
    dist_normal_precision(rng, s->linear, s->mean, 1, s->chol, theta);
    theta[at_sigma(s)] = scale_prior_draw(&s->sigma, rng);
    double *t = theta + s->linear;
    for (int j = 0; j < s->smooths; ++j) {
        const double log_tau = theta[at_tau(s) + j] = scale_prior_draw(&s->tau, rng);
        for (int k = differences(s, j); k > 0; --k) *t++ = exp(log_tau) * rng_normal(rng);
    }
    class_cells_rprior(&s->cells, rng, theta);
}

static double dprior(void *self, const double *theta) {
    const struct smooth *s = self;
    double log_density = -0.5 * linalg_quadratic(s->linear, s->precision, theta, s->mean) +
                         scale_prior_density(&s->sigma, theta[at_sigma(s)], NULL) +
                         class_cells_dprior(&s->cells, theta);
    const double *t = theta + s->linear;
    for (int j = 0; j < s->smooths; t += differences(s, j++)) {
        const double log_tau = theta[at_tau(s) + j];
        log_density += scale_prior_density(&s->tau, log_tau, NULL) - differences(s, j) * log_tau -
                       0.5 * linalg_dot(differences(s, j), t, t) * exp(-2 * log_tau);
    }
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    const struct smooth *s = self;
    double slope;
    for (int i = 0; i < s->linear; ++i)
        for (int j = 0; j < s->linear; ++j)
            gradient[i] -= s->precision[i * s->linear + j] * (theta[j] - s->mean[j]);
    scale_prior_density(&s->sigma, theta[at_sigma(s)], &slope);
    gradient[at_sigma(s)] += slope;
    for (int j = 0, at = s->linear; j < s->smooths; at += differences(s, j++)) {
        const double log_tau = theta[at_tau(s) + j], precision = exp(-2 * log_tau);
        double square = 0;
        for (int k = at; k < at + differences(s, j); ++k) {
            gradient[k] -= precision * theta[k];
            square += theta[k] * theta[k];
        }
        scale_prior_density(&s->tau, log_tau, &slope);
        gradient[at_tau(s) + j] += slope + precision * square - differences(s, j);
    }
    class_cells_prior_gradient(&s->cells, theta, gradient);
}

/* ---- records ------------------------------------------------------------------------ */

static void read_curve(const struct smooth *s, const double *theta, struct curve *curve) {
    for (int k = 0; k < s->rows; ++k)
        curve->beta[k] =
            linalg_dot(s->coefficients, s->expand + (size_t)k * s->coefficients, theta);
    curve->sigma = exp(theta[at_sigma(s)]);
}

static void set(void *self, const double *theta) {
    struct smooth *s = self;
    read_curve(s, theta, &s->now);
    class_cells_read(&s->cells, theta, &s->cells.now);
}

/* The splines of x that are not 0, and the row of the first. */
static inline int splines_of(const struct term *of, double x, double *b) {
    const double u = fmin(fmax((x - of->lower) / of->width, 0), of->intervals);
    const int interval = spline_interval(of->intervals, u);
    cubic_splines(u - interval, b);
    return of->first + interval;
}

/* What record i adds to the one row of a number or a factor that is not 0, which is `at` after the
 * first; 0 of a factor's first level. */
static inline double value_of(const struct term *of, int i, const double *const *x, int *at) {
    *at = 0;
    if (!cells_are_levels(of->cells)) return x[COVARIATES + of->cells->column][i] - of->centre;
    const int level = class_cells_level(of->cells, i, x + COVARIATES);
    if (level == 0) return 0;
    *at = level - 1;
    return 1;
}

/* of record i */
static double mean_of(const struct smooth *s, const struct curve *curve, int i,
                      const double *const *x) {
    double mean = s->centre, b[SPLINES_AT_ONCE];
    for (int j = 0; j < s->smooths; ++j) {
        const int at = splines_of(s->term + j, x[COVARIATES + j][i], b);
        mean += linalg_dot(SPLINES_AT_ONCE, b, curve->beta + at);
    }
    for (int j = s->smooths, at; j < s->covariates; ++j) {
        const double value = value_of(s->term + j, i, x, &at);
        mean += curve->beta[s->term[j].first + at] * value;
    }
    return mean;
}

static inline const double *const *read_only(double *const *x) { return (const double *const *)x; }

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct smooth *s = self;
    rng_fill_normal(rng, m, x[Y]);
    for (int j = 0; j < s->covariates; ++j)
        rng_fill_uniform(rng, m, x[COVARIATES + s->term[j].cells->column]);
    class_cells_draw(&s->cells, rng, m, x + COVARIATES);
    for (int i = 0; i < m; ++i)
        x[Y][i] = mean_of(s, &s->now, i, read_only(x)) + s->now.sigma * x[Y][i];
}

static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct smooth *s = self;
    const double fresh = sqrt(1 - rho * rho);
    rng_fill_normal(rng, m, x_new[Y]);
    for (int j = 0; j < s->covariates; ++j)
        rng_fill_normal(rng, m, x_new[COVARIATES + s->term[j].cells->column]);
    class_cells_refresh(&s->cells, rho, rng, m, x + COVARIATES, x_new + COVARIATES);
    for (int i = 0; i < m; ++i)
        x_new[Y][i] = mean_of(s, &s->now, i, read_only(x_new)) +
                      rho * (x[Y][i] - mean_of(s, &s->now, i, x)) +
                      fresh * s->now.sigma * x_new[Y][i];
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct smooth *s = self;
    read_curve(s, theta_new, &s->next);
    class_cells_read(&s->cells, theta_new, &s->cells.next);
    changed[Y] = 1;
    s->moves_covariates = class_cells_differ(&s->cells);
    for (int j = 0; j < s->columns; ++j) changed[COVARIATES + j] = s->moves_covariates;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct smooth *s = self;
    const double ratio = s->next.sigma / s->now.sigma;
    if (s->moves_covariates)
        class_cells_move(&s->cells, rng, m, x + COVARIATES, x_new + COVARIATES);
    const double *const *covariates = s->moves_covariates ? read_only(x_new) : x;
    for (int i = 0; i < m; ++i)
        x_new[Y][i] =
            mean_of(s, &s->next, i, covariates) + ratio * (x[Y][i] - mean_of(s, &s->now, i, x));
}

/* ---- records in other cells ------------------------------------------------------------ */

static void draw_classes(void *self, struct rng *rng, int m, const double *const *x, int *class) {
    const struct smooth *s = self;
    class_cells_classes(&s->cells, rng, m, x + COVARIATES, class);
}

static void read_cells(void *self, int covariate, int m, const double *const *x, int *cell) {
    const struct smooth *s = self;
    class_cells_find(&s->cells, covariate, m, x + COVARIATES, cell);
}

static void shift(void *self, int covariate, int by, int m, const double *const *x,
                  double *const *x_new) {
    const struct smooth *s = self;
    class_cells_shift(&s->cells, covariate, by, m, x + COVARIATES, x_new + COVARIATES);
    for (int i = 0; i < m; ++i)
        x_new[Y][i] =
            x[Y][i] + (mean_of(s, &s->now, i, read_only(x_new)) - mean_of(s, &s->now, i, x));
}

static void draw_cells(void *self, struct rng *rng, int covariate, const double *count,
                       double *theta) {
    const struct smooth *s = self;
    class_cells_update_covariate(&s->cells, covariate, count, rng, theta);
}

/* ---- update ------------------------------------------------------------------------- */

/* of a symmetric matrix, j >= k */
static inline size_t triangle(int j, int k) { return (size_t)j * ((size_t)j + 1) / 2 + (size_t)k; }

static void add(void *self, int m, const double *const *x, double *c) {
    const struct smooth *s = self;
    double *gram = c + s->cells.counts, *response = gram + triangle(s->rows, 0);
    /* one class needs no draw */
    if (s->cells.classes == 1) class_cells_add(&s->cells, NULL, m, x + COVARIATES, c);
    for (int i = 0; i < m; ++i) {
        const double y = x[Y][i] - s->centre;
        int count = 0;
        for (int j = 0; j < s->smooths; ++j) {
            const int at = splines_of(s->term + j, x[COVARIATES + j][i], s->row + count);
            for (int k = 0; k < SPLINES_AT_ONCE; ++k) s->at[count++] = at + k;
        }
        for (int j = s->smooths, at; j < s->covariates; ++j, ++count) {
            s->row[count] = value_of(s->term + j, i, x, &at);
            s->at[count] = s->term[j].first + at;
        }
        for (int j = 0; j < count; ++j) {
            double *products = gram + triangle(s->at[j], 0);
            for (int k = 0; k <= j; ++k) products[s->at[k]] += s->row[j] * s->row[k];
            response[s->at[j]] += y * s->row[j];
        }
        response[s->rows] += y * y;
    }
}

static void add_latent(void *self, struct rng *rng, int m, const double *const *x, double *c) {
    const struct smooth *s = self;
    class_cells_add(&s->cells, rng, m, x + COVARIATES, c);
}

/* E'G E to the lower triangle of s->gram; most of G and E is 0 */
static void expand_gram(struct smooth *s, const double *gram) {
    const int count = s->coefficients;
    memset(s->wide, 0, (size_t)s->rows * (size_t)count * sizeof(double));
    memset(s->gram, 0, (size_t)count * (size_t)count * sizeof(double));
    for (int j = 0; j < s->rows; ++j) {
        double *wide = s->wide + (size_t)j * count;
        for (int k = 0; k < s->rows; ++k) {
            const double product = gram[j >= k ? triangle(j, k) : triangle(k, j)];
            const double *row = s->expand + (size_t)k * count;
            if (product != 0)
                for (int a = 0; a < count; ++a) wide[a] += product * row[a];
        }
        for (int a = 0; a < count; ++a) {
            const double each = s->expand[(size_t)j * count + a];
            if (each != 0)
                for (int b = 0; b <= a; ++b) s->gram[(size_t)a * count + b] += each * wide[b];
        }
    }
}

static void draw_coefficients(struct smooth *s, struct rng *rng, double *theta) {
    const int count = s->coefficients;
    const double weight = exp(-2 * theta[at_sigma(s)]);
    double *precision = s->wide; /* count <= rows */
    for (int a = 0; a < count; ++a) {
        s->solution[a] = weight * s->right[a];
        for (int b = 0; b <= a; ++b)
            precision[(size_t)a * count + b] = weight * s->gram[(size_t)a * count + b];
    }
    for (int a = 0; a < s->linear; ++a)
        for (int b = 0; b < s->linear; ++b) {
            if (b <= a) precision[(size_t)a * count + b] += s->precision[a * s->linear + b];
            s->solution[a] += s->precision[a * s->linear + b] * s->mean[b];
        }
    for (int j = 0, at = s->linear; j < s->smooths; at += differences(s, j++))
        for (int k = at; k < at + differences(s, j); ++k)
            precision[(size_t)k * count + k] += exp(-2 * theta[at_tau(s) + j]);
    if (linalg_cholesky(count, precision)) {
        theta[0] = NAN;
        return;
    }
    linalg_forward(count, precision, s->solution);
    linalg_backward(count, precision, s->solution);
    dist_normal_precision(rng, count, s->solution, 1, precision, theta);
}

static double residual_square(const struct smooth *s, double square, const double *theta) {
    const int count = s->coefficients;
    square -= 2 * linalg_dot(count, s->right, theta);
    for (int a = 0; a < count; ++a) {
        const double *row = s->gram + (size_t)a * count;
        square += theta[a] * (2 * linalg_dot(a, row, theta) + row[a] * theta[a]);
    }
    return fmax(square, 0);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct smooth *s = self;
    const int count = s->coefficients;
    const double *gram = c + s->cells.counts, *response = gram + triangle(s->rows, 0);
    expand_gram(s, gram);
    for (int a = 0; a < count; ++a) {
        s->right[a] = 0;
        for (int k = 0; k < s->rows; ++k)
            s->right[a] += s->expand[(size_t)k * count + a] * response[k];
    }
    draw_coefficients(s, rng, theta);
    if (isnan(theta[0])) return PLUGIN_NUMERICAL;
    double *log_sigma = theta + at_sigma(s), *t = theta + s->linear;
    *log_sigma = scale_prior_update(&s->sigma, n, residual_square(s, response[s->rows], theta), rng,
                                    *log_sigma);
    for (int j = 0; j < s->smooths; t += differences(s, j++)) {
        double *log_tau = theta + at_tau(s) + j;
        *log_tau = scale_prior_update(&s->tau, differences(s, j),
                                      linalg_dot(differences(s, j), t, t), rng, *log_tau);
    }
    class_cells_update(&s->cells, c, rng, theta);
    return PLUGIN_OK;
}

/* ---- values of a draw, with several classes ------------------------------------------- */

/* The coordinates before the classes', and those of classes and cells. */
static void split_coordinates(const struct smooth *s, struct coordinates *first,
                              struct coordinates *last) {
    const int own = 2 + s->smooths;
    *first = (struct coordinates){.count = own, .block = s->coordinates.block};
    *last = (struct coordinates){.count = s->coordinates.count - own,
                                 .block = s->coordinates.block + own};
}

static void report(void *self, const double *theta, double *out) {
    const struct smooth *s = self;
    struct coordinates first, last;
    split_coordinates(s, &first, &last);
    out = coordinates_report(&first, theta, out);
    class_cells_margins(&s->cells, theta, out);
    (void)coordinates_report(&last, theta, out + s->cells.margins);
}

static int invert(void *self, const double *value, double *theta) {
    const struct smooth *s = self;
    struct coordinates first, last;
    split_coordinates(s, &first, &last);
    if (coordinates_invert(&first, value, theta) >= 0) return PLUGIN_NUMERICAL;
    value += s->coefficients + 1 + s->smooths + s->cells.margins; /* margins follow */
    return coordinates_invert(&last, value, theta) >= 0 ? PLUGIN_NUMERICAL : PLUGIN_OK;
}

/* ---- what it can do ----------------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_statistic latent_hooks = {.add = add, .add_latent = add_latent};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_refresh refresh_hooks = {.refresh = refresh};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};
static const struct model_values values_hooks = {.report = report, .invert = invert};

/* With several classes: the covariates' cells. */
static void describe_classes(struct smooth *s) {
    struct model_cells_of *of = plugin_memory((size_t)s->covariates, sizeof *of);
    for (int j = 0; j < s->covariates; ++j) {
        const struct cell_covariate *from = s->cells.covariate + j;
        of[j] = (struct model_cells_of){
            .cells = from->cells, .levels = cells_are_levels(from), .weight = from->weight};
    }
    s->classes = (struct model_classes){.classes = s->cells.classes,
                                        .covariates = s->covariates,
                                        .covariate = of,
                                        .draw_classes = draw_classes,
                                        .read_cells = read_cells,
                                        .shift = shift,
                                        .draw_cells = draw_cells};
    s->move = move_hooks;
    s->move.classes = &s->classes;
}

/* The terms, from fields of one number for each smooth: intervals, lower and width (of an
 * interval); the fields of the cells; and centre, of y and of all columns of covariates. */
static int read_terms(const struct fields *fields, struct smooth *s) {
    s->smooths = fields_length(fields, "intervals");
    s->linear = fields_length(fields, "centre");
    s->columns = s->linear - 1;
    const double *intervals = fields_vector(fields, "intervals", s->smooths);
    const double *lower = fields_vector(fields, "lower", s->smooths);
    const double *width = fields_vector(fields, "width", s->smooths);
    const double *centre = fields_vector(fields, "centre", s->linear);
    if (!intervals || !lower || !width || !centre) return PLUGIN_BAD_FIELDS;
    s->centre = centre[0];
    s->coefficients = s->linear;
    for (int j = 0; j < s->smooths; ++j) s->coefficients += (int)intervals[j] + 1;
    if (class_cells_create(fields, s->coefficients + 1 + s->smooths, &s->cells) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->covariates = s->cells.covariates;
    if (s->covariates < s->smooths || s->cells.columns != s->columns) return PLUGIN_BAD_FIELDS;
    s->term = plugin_memory((size_t)s->covariates, sizeof *s->term);
    for (int j = 0; j < s->covariates; ++j) {
        struct term *of = s->term + j;
        const struct cell_covariate *cells = s->cells.covariate + j;
        *of = (struct term){.first = s->rows, .centre = centre[1 + cells->column], .cells = cells};
        if (j < s->smooths) {
            of->intervals = (int)intervals[j];
            of->lower = lower[j];
            of->width = width[j];
        }
        s->rows += j < s->smooths            ? of->intervals + 3
                   : cells_are_levels(cells) ? cells->cells - 1
                                             : 1;
    }
    return PLUGIN_OK;
}

/* With several classes: coefficients, sigma, all tau. */
static void group(const struct smooth *s, struct model *model) {
    model->groups.count = 3;
    model->groups.of = plugin_memory((size_t)model->moving, sizeof *model->groups.of);
    for (int j = at_sigma(s); j < model->moving; ++j) model->groups.of[j] = j > at_sigma(s) ? 2 : 1;
}

static void describe(struct smooth *s, struct model *model, const double *centre) {
    double *centres = doubles((size_t)s->coefficients);
    doubles_copy(centres, centre, s->linear);
    struct theta_block *blocks =
        plugin_memory((size_t)(3 + s->smooths + s->covariates), sizeof *blocks);
    struct theta_block *block = blocks;
    *block++ = (struct theta_block){.name = "coefficients",
                                    .transform = TRANSFORM_CENTRE,
                                    .size = s->coefficients,
                                    .centre = centres};
    *block++ = (struct theta_block){.name = "sigma", .transform = TRANSFORM_LOG, .size = 1};
    for (int j = 0; j < s->smooths; ++j)
        *block++ = (struct theta_block){.name = "tau", .transform = TRANSFORM_LOG, .size = 1};
    block = class_cells_describe(&s->cells, block);
    model_describe(model, (int)(block - blocks), blocks);
    s->coordinates = model->coordinates;
}

/* Fields: for the terms and for the cells (model/class_cells.h); expand; linear_mean and
 * linear_precision; tau_half_t; one of a sigma (model/scale_prior.h). */
static int create(const struct fields *fields, struct model *model) {
    struct smooth *s = plugin_memory(1, sizeof *s);
    const double *tau = fields_vector(fields, "tau_half_t", 2);
    if (!tau || read_terms(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    s->expand = fields_vector(fields, "expand", s->rows * s->coefficients);
    s->mean = fields_vector(fields, "linear_mean", s->linear);
    s->precision = fields_vector(fields, "linear_precision", s->linear * s->linear);
    s->tau = (struct scale_prior){.kind = SCALE_HALF_T, .a = tau[0], .b = tau[1]};
    if (!s->expand || !s->mean || !s->precision || scale_prior_read(fields, &s->sigma) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    const size_t rows = (size_t)s->rows, count = (size_t)s->coefficients;
    s->chol = doubles((size_t)(s->linear * s->linear));
    doubles_copy(s->chol, s->precision, s->linear * s->linear);
    if (linalg_cholesky(s->linear, s->chol)) return PLUGIN_BAD_FIELDS;
    DOUBLES(rows, &s->now.beta, &s->next.beta, &s->row);
    DOUBLES(count, &s->right, &s->solution);
    s->wide = doubles(rows * count);
    s->gram = doubles(count * count);
    s->at = plugin_memory(rows, sizeof *s->at);
    const int several = s->cells.classes > 1;
    model->self = s;
    model->columns = COVARIATES + s->columns;
    model->complete = s->cells.counts + (int)triangle(s->rows, 0) + s->rows + 1;
    model->prior = &prior_hooks;
    model->statistic = several ? &latent_hooks : &statistic_hooks;
    model->update = &update_hooks;
    model->refresh = &refresh_hooks;
    model->move = &move_hooks;
    /* normal quantiles, and exponentials for classes */
    model->costs.refresh = 8 * s->covariates + (several ? 10 + 2 * s->cells.classes : 0);
    if (several) model->costs.move = model->costs.latent = 4 + 2 * s->cells.classes;
    describe(s, model, fields_vector(fields, "centre", s->linear));
    if (several) {
        describe_classes(s);
        model->move = &s->move;
        model->moving = s->cells.offset;
        group(s, model);
        model->values = &values_hooks;
        model->reported += s->cells.margins;
    }
    return PLUGIN_OK;
}

const struct model_class model_smooth = {
    .name = "smooth",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
