/* Model "survival": how people leave a study, by the event or censored, in which interval or not
 * at all, given their group; proportional hazards. Records are codes of the groups' factors and of
 * the exit, the last column: 0, 2, ... events, 1, 3, ... censored in intervals j = 0, ..., J - 1,
 * 2 J after the last.
 *
 * In interval j from b_j to b_{j+1} the cumulative hazard of the event in group x grows by
 *
 *   d = exp(beta'x) (H(b_{j+1}) - H(b_j)),
 *
 * with L the last break and a_0 = log(L) + the reported intercept,
 *   exponential  H(t) = exp(a_0) t / L,
 *   Weibull      H(t) = exp(a_0) (t / L)^k,
 *   piecewise    H grows by h_j (b_{j+1} - b_j), the hazards h_j with the prior of a gamma process
 *                (Kalbfleisch 1978) whose mean is exp(a_0) t / L,
 * and that of censoring by g, the same in all groups of a row of its own. Both intensities are
 * taken to be proportional to each other within an interval and a group, so that of those who enter
 * it, with s = d + g,
 *
 *   P(event) = (d / s) (1 - exp(-s)),  P(censored) = (g / s) (1 - exp(-s)),  P(stay) = exp(-s):
 *
 * exact where they are constant there. With B(s) = log((1 - exp(-s)) / s) and A = B' the log
 * likelihood of e events, c censored and l who stay is e (log d + B) + c (log g + B) - l s.
 *
 * theta: the coefficients, (a_0, beta), normal; log k, k gamma, or the log h_j; for each row and
 * interval the logit of exp(-g), 1 - exp(-g) beta; and the sticks of the groups' shares, Dirichlet.
 * Given the counts of the cells the shares and all else are independent.
 *
 * Cost of a density: three exponentials and three logarithms for each group and interval where
 * somebody enters, and the coefficients for each group. Records: cell_records.c.
 */
#include "cell_records.h"
#include "covariates_factors.h"
#include "dist.h"
#include "sticks.h"

enum baseline { EXPONENTIAL, WEIBULL, PIECEWISE };

struct survival {
    struct cell_records records; /* first: cell_records.h */
    enum baseline baseline;
    int groups, intervals, coefficients, rows; /* rows: of censoring */
    const double *design;                      /* groups x coefficients, the first column 1 */
    const double *mean, *sd;                   /* of the coefficients */
    const double *shape;                       /* shape and rate of the prior of k */
    const double *weight;                      /* shapes of the increments of the process */
    const double *censoring;                   /* beta weights: of censored, of not */
    const double *share_alpha;
    int *row_of;                            /* of a group */
    double log_last, *position, *log_width; /* log L; log(b_j / L); log of an interval's length */
    int at_base, at_censoring, at_share, parameters;

    /* counts: of groups x intervals, and of groups */
    double *events, *censored, *stay, *size;

    /* workspace: of intervals; of groups; of a group and interval's coordinates */
    double *log_base, *base_slope, *eta, *log_share, *value;
    int *list;
};

/* How people leave an interval. */
struct leaving {
    double d, g, s;
    double log_d, log_g;
    double b, a;    /* B(s) and its derivative */
    double g_slope; /* of log g in its coordinate */
    double missed;  /* 1 - exp(-g): minus the derivative of g in its coordinate */
};

static struct leaving leave(double log_d, double t) {
    struct leaving p = {.log_d = log_d, .d = exp(log_d)};
    p.missed = stick_share(-t);
    if (t > 30) {
        p.g = exp(-t);
        p.log_g = -t;
        p.g_slope = -1;
    } else {
        p.g = t > 0 ? log1p(exp(-t)) : log1p(exp(t)) - t;
        p.log_g = log(p.g);
        p.g_slope = -p.missed / p.g;
    }
    p.s = p.d + p.g;
    if (p.s < 0.01) {
        const double square = p.s * p.s;
        p.b = -p.s / 2 + square / 24 * (1 - square / 120);
        p.a = -0.5 + p.s / 12 * (1 - square / 60);
    } else {
        p.b = log(-expm1(-p.s) / p.s);
        p.a = 1 / expm1(p.s) - 1 / p.s;
    }
    return p;
}

/* ---- set-up ------------------------------------------------------------------- */

static int read_priors(const struct fields *fields, struct survival *s) {
    s->mean = fields_vector(fields, "prior_mean", s->coefficients);
    s->sd = fields_vector(fields, "prior_sd", s->coefficients);
    s->shape = fields_vector(fields, "prior_shape", 2);
    s->weight = fields_vector(fields, "prior_increments", s->intervals);
    s->censoring = fields_vector(fields, "prior_censoring", 2);
    s->share_alpha = fields_vector(fields, "prior_share", s->groups);
    const int base = s->baseline == EXPONENTIAL || (s->baseline == WEIBULL ? s->shape : s->weight);
    return s->mean && s->sd && s->censoring && s->share_alpha && base ? PLUGIN_OK
                                                                      : PLUGIN_BAD_FIELDS;
}

static void describe(struct survival *s, struct model *model) {
    double *centre = plugin_memory((size_t)s->coefficients, sizeof(double));
    centre[0] = -s->log_last;
    struct theta_block block[4] = {
        {.name = "coefficients",
         .transform = TRANSFORM_CENTRE,
         .size = s->coefficients,
         .centre = centre},
    };
    int blocks = 1, at = s->coefficients;
    s->at_base = at;
    if (s->baseline != EXPONENTIAL) {
        const int size = s->baseline == WEIBULL ? 1 : s->intervals;
        block[blocks++] = (struct theta_block){
            .name = s->baseline == WEIBULL ? "shape" : "hazard",
            .transform = TRANSFORM_LOG,
            .size = size,
        };
        at += size;
    }
    s->at_censoring = at;
    block[blocks++] = (struct theta_block){
        .name = "censoring",
        .transform = TRANSFORM_STICKS,
        .size = 2,
        .rows = s->rows * s->intervals,
        .reports_last = 1,
    };
    at += s->rows * s->intervals;
    s->at_share = at;
    if (s->groups > 1)
        block[blocks++] = (struct theta_block){
            .name = "share", .transform = TRANSFORM_STICKS, .size = s->groups, .rows = 1};
    model_describe(model, blocks, block);
    s->parameters = model->parameters;
}

static void log_cells(void *self, const double *theta, double *log_p);

/* Fields: those of cell_records.h; baseline, 0 exponential, 1 Weibull, 2 piecewise; breaks; design,
 * a row for each group; censoring_row, that of each group, from 0; and the priors: prior_mean and
 * prior_sd, of the coefficients (of a_0, not of the intercept); prior_shape, shape and rate;
 * prior_increments, the shapes of the gamma process's relative increments; prior_censoring, two
 * beta weights; prior_share, Dirichlet weights. */
static int create(const struct fields *fields, struct model *model) {
    struct survival *s = plugin_memory(1, sizeof *s);
    if (cell_records_create(&s->records, fields, log_cells, model) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->intervals = fields_length(fields, "breaks") - 1;
    if (s->intervals < 1) return PLUGIN_BAD_FIELDS;
    s->groups = s->records.cells / (2 * s->intervals + 1);
    s->coefficients = fields_length(fields, "prior_mean");
    const double *baseline = fields_vector(fields, "baseline", 1);
    const double *breaks = fields_vector(fields, "breaks", s->intervals + 1);
    const double *row = fields_vector(fields, "censoring_row", s->groups);
    s->design = fields_vector(fields, "design", s->groups * s->coefficients);
    if (s->coefficients < 1 || !baseline || !breaks || !row || !s->design) return PLUGIN_BAD_FIELDS;
    s->baseline = (enum baseline)baseline[0];
    if (read_priors(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    const size_t groups = (size_t)s->groups, intervals = (size_t)s->intervals;
    s->row_of = plugin_memory(groups, sizeof(int));
    for (int x = 0; x < s->groups; ++x) {
        s->row_of[x] = (int)row[x];
        if (s->rows <= s->row_of[x]) s->rows = s->row_of[x] + 1;
    }
    s->log_last = log(breaks[s->intervals]);
    s->position = plugin_memory(intervals + 1, sizeof(double));
    s->log_width = plugin_memory(intervals, sizeof(double));
    for (int j = 0; j <= s->intervals; ++j) s->position[j] = log(breaks[j]) - s->log_last;
    for (int j = 0; j < s->intervals; ++j) s->log_width[j] = log(breaks[j + 1] - breaks[j]);
    s->events = plugin_memory(groups * intervals, sizeof(double));
    s->censored = plugin_memory(groups * intervals, sizeof(double));
    s->stay = plugin_memory(groups * intervals, sizeof(double));
    s->size = plugin_memory(groups, sizeof(double));
    s->log_base = plugin_memory(intervals, sizeof(double));
    s->base_slope = plugin_memory(intervals, sizeof(double));
    s->eta = plugin_memory(groups, sizeof(double));
    s->log_share = plugin_memory(groups, sizeof(double));
    describe(s, model);
    s->value = plugin_memory((size_t)s->parameters, sizeof(double));
    s->list = plugin_memory((size_t)s->parameters, sizeof(int));
    return PLUGIN_OK;
}

/* ---- prior -------------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct survival *s = self;
    for (int j = 0; j < s->coefficients; ++j) theta[j] = s->mean[j] + s->sd[j] * rng_normal(rng);
    double *base = theta + s->at_base;
    if (s->baseline == WEIBULL) base[0] = dist_log_gamma(rng, s->shape[0]) - log(s->shape[1]);
    if (s->baseline == PIECEWISE)
        for (int j = 0; j < s->intervals; ++j)
            base[j] =
                theta[0] - s->log_last + dist_log_gamma(rng, s->weight[j]) - log(s->weight[j]);
    const double weight[2] = {s->censoring[1], s->censoring[0]};
    for (int r = 0; r < s->rows * s->intervals; ++r)
        sticks_draw(rng, 2, weight, theta + s->at_censoring + r);
    if (s->groups > 1) sticks_draw(rng, s->groups, s->share_alpha, theta + s->at_share);
}

/* A log density of which `gradient`, where it is not NULL, gets the slopes. */
static double add_prior(const struct survival *s, const double *theta, double *gradient) {
    double log_density = 0;
    for (int j = 0; j < s->coefficients; ++j) {
        const double z = (theta[j] - s->mean[j]) / s->sd[j];
        log_density -= 0.5 * z * z;
        if (gradient) gradient[j] -= z / s->sd[j];
    }
    const double *base = theta + s->at_base;
    if (s->baseline == WEIBULL) {
        const double taken = s->shape[1] * exp(base[0]);
        log_density += s->shape[0] * base[0] - taken;
        if (gradient) gradient[s->at_base] += s->shape[0] - taken;
    }
    for (int j = 0; s->baseline == PIECEWISE && j < s->intervals; ++j) {
        const double relative = base[j] + s->log_last - theta[0];
        const double slope = s->weight[j] * (1 - exp(relative));
        log_density += s->weight[j] * (relative - exp(relative));
        if (gradient) {
            gradient[s->at_base + j] += slope;
            gradient[0] -= slope;
        }
    }
    const double all = s->censoring[0] + s->censoring[1];
    for (int r = s->at_censoring; r < s->at_share; ++r) {
        log_density += stick_log_density(s->censoring[1], all, theta[r]);
        if (gradient) gradient[r] += s->censoring[1] - all * stick_share(theta[r]);
    }
    double rest = s->share_alpha[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const int at = s->at_share + x;
        rest += s->share_alpha[x];
        log_density += stick_log_density(s->share_alpha[x], rest, theta[at]);
        if (gradient) gradient[at] += s->share_alpha[x] - rest * stick_share(theta[at]);
    }
    return log_density;
}

static double dprior(void *self, const double *theta) { return add_prior(self, theta, NULL); }

static void prior_gradient(void *self, const double *theta, double *gradient) {
    (void)add_prior(self, theta, gradient);
}

/* ---- cells -------------------------------------------------------------------- */

/* log of the baseline's growth in each interval, and its derivative in its coordinate, which is the
 * logarithm of k or of h_j; the groups' linear predictors. */
static void predict(struct survival *s, const double *theta) {
    const double *base = theta + s->at_base;
    const double k = s->baseline == WEIBULL ? exp(base[0]) : 1;
    for (int j = 0; j < s->intervals; ++j) {
        if (s->baseline == PIECEWISE) {
            s->log_base[j] = base[j] + s->log_width[j];
            s->base_slope[j] = 1;
            continue;
        }
        const double end = s->position[j + 1], length = end - s->position[j];
        s->log_base[j] = k * end + log(-expm1(-k * length));
        s->base_slope[j] = k * (end + (isfinite(length) ? length / expm1(k * length) : 0));
    }
    const double *row = s->design;
    for (int x = 0; x < s->groups; ++x, row += s->coefficients) {
        double eta = s->baseline == PIECEWISE ? 0 : theta[0];
        for (int m = 1; m < s->coefficients; ++m) eta += row[m] * theta[m];
        s->eta[x] = eta;
    }
}

/* in log_share */
static void find_shares(struct survival *s, const double *theta) {
    const double *stick = theta + s->at_share;
    double rest = 0;
    for (int x = 0; x < s->groups - 1; ++x) {
        const double later = -(stick[x] > 0 ? stick[x] : 0) - log1p(exp(-fabs(stick[x])));
        s->log_share[x] = rest + stick[x] + later;
        rest += later;
    }
    s->log_share[s->groups - 1] = rest;
}

static const double *censoring_of(const struct survival *s, const double *theta, int x) {
    return theta + s->at_censoring + s->row_of[x] * s->intervals;
}

static void log_cells(void *self, const double *theta, double *log_p) {
    struct survival *s = self;
    predict(s, theta);
    find_shares(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = censoring_of(s, theta, x);
        double entered = s->log_share[x];
        for (int j = 0; j < s->intervals; ++j) {
            const struct leaving p = leave(s->eta[x] + s->log_base[j], t[j]);
            *log_p++ = entered + p.log_d + p.b;
            *log_p++ = entered + p.log_g + p.b;
            entered -= p.s;
        }
        *log_p++ = entered;
    }
}

static void observe(void *self, const double *c, double n) {
    struct survival *s = self;
    (void)n; /* the counts add up to it */
    const int exits = 2 * s->intervals + 1;
    for (int x = 0; x < s->groups; ++x, c += exits) {
        double stay = c[exits - 1];
        for (int j = s->intervals - 1; j >= 0; --j) {
            const int at = x * s->intervals + j;
            s->events[at] = c[2 * j];
            s->censored[at] = c[2 * j + 1];
            s->stay[at] = stay;
            stay += c[2 * j] + c[2 * j + 1];
        }
        s->size[x] = stay;
    }
}

/* of the groups' shares */
static double add_shares(const struct survival *s, const double *theta, double *gradient) {
    double log_density = 0, rest = s->size[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const int at = s->at_share + x;
        rest += s->size[x];
        log_density += stick_log_density(s->size[x], rest, theta[at]);
        gradient[at] += s->size[x] - rest * stick_share(theta[at]);
    }
    return log_density;
}

static double log_posterior(void *self, const double *theta, double *gradient) {
    struct survival *s = self;
    memset(gradient, 0, (size_t)s->parameters * sizeof(double));
    double log_density = add_prior(s, theta, gradient) + add_shares(s, theta, gradient);
    predict(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = censoring_of(s, theta, x);
        double *slope_t = gradient + (t - theta), slope_x = 0;
        for (int j = 0; j < s->intervals; ++j) {
            const int at = x * s->intervals + j;
            const double e = s->events[at], c = s->censored[at], l = s->stay[at];
            if (e + c + l == 0) continue;
            const struct leaving p = leave(s->eta[x] + s->log_base[j], t[j]);
            if (e > 0) log_density += e * (p.log_d + p.b);
            if (c > 0) log_density += c * (p.log_g + p.b);
            if (l > 0) log_density -= l * p.s;
            const double both = (e + c) * p.a - l, slope = e + both * p.d;
            slope_x += slope;
            slope_t[j] += c * p.g_slope - both * p.missed;
            if (s->baseline == WEIBULL) gradient[s->at_base] += slope * s->base_slope[j];
            if (s->baseline == PIECEWISE) gradient[s->at_base + j] += slope;
        }
        const double *row = s->design + (size_t)x * (size_t)s->coefficients;
        if (s->baseline != PIECEWISE) gradient[0] += slope_x;
        for (int m = 1; m < s->coefficients; ++m) gradient[m] += row[m] * slope_x;
    }
    return isfinite(log_density) ? log_density : -INFINITY;
}

/* Of the prior, or about that: with what is expected of a gamma variable, and sticks where they
 * are. */
static void add_prior_information(const struct survival *s, const double *theta, double *matrix) {
    const size_t size = (size_t)s->parameters;
    for (int j = 0; j < s->coefficients; ++j)
        matrix[(size_t)j * (size + 1)] += 1 / (s->sd[j] * s->sd[j]);
    if (s->baseline == WEIBULL)
        matrix[(size_t)s->at_base * (size + 1)] += s->shape[1] * exp(theta[s->at_base]);
    for (int j = 0; s->baseline == PIECEWISE && j < s->intervals; ++j) {
        const size_t at = (size_t)(s->at_base + j);
        matrix[0] += s->weight[j];
        matrix[at * size] -= s->weight[j];
        matrix[at * (size + 1)] += s->weight[j];
    }
    const double all = s->censoring[0] + s->censoring[1];
    for (int r = s->at_censoring; r < s->at_share; ++r) {
        const double share = stick_share(theta[r]);
        matrix[(size_t)r * (size + 1)] += all * share * (1 - share);
    }
    double rest = s->share_alpha[s->groups - 1] + s->size[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const double share = stick_share(theta[s->at_share + x]);
        rest += s->share_alpha[x] + s->size[x];
        matrix[(size_t)(s->at_share + x) * (size + 1)] += rest * share * (1 - share);
    }
}

/* += weight v v', with v listed by coordinates in ascending order */
static void add_product(const struct survival *s, int count, double weight, double *matrix) {
    for (int a = 0; a < count; ++a) {
        double *row = matrix + (size_t)s->list[a] * (size_t)s->parameters;
        for (int b = 0; b <= a; ++b) row[s->list[b]] += weight * s->value[a] * s->value[b];
    }
}

/* Of those who enter an interval the three ways of leaving it have log probabilities whose slopes
 * in (log d, coordinate of g) are v = (1 + d A, -missed A), (d A, g_slope - missed A) and (-d,
 * missed): expected information, the sum of P v v'. */
static void information(void *self, const double *theta, double *matrix) {
    struct survival *s = self;
    const size_t size = (size_t)s->parameters;
    memset(matrix, 0, size * size * sizeof(double));
    add_prior_information(s, theta, matrix);
    predict(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = censoring_of(s, theta, x);
        const double *row = s->design + (size_t)x * (size_t)s->coefficients;
        int first = 0;
        if (s->baseline != PIECEWISE) s->list[first++] = 0;
        for (int m = 1; m < s->coefficients; ++m)
            if (row[m] != 0) s->list[first++] = m;
        for (int j = 0; j < s->intervals; ++j) {
            const int at = x * s->intervals + j;
            const double enter = s->events[at] + s->censored[at] + s->stay[at];
            if (enter == 0) continue;
            const struct leaving p = leave(s->eta[x] + s->log_base[j], t[j]);
            const double way[3][3] = {
                {exp(p.log_d + p.b), 1 + p.d * p.a, -p.missed * p.a},
                {exp(p.log_g + p.b), p.d * p.a, p.g_slope - p.missed * p.a},
                {exp(-p.s), -p.d, p.missed},
            };
            int count = first;
            if (s->baseline == WEIBULL) s->list[count++] = s->at_base;
            if (s->baseline == PIECEWISE) s->list[count++] = s->at_base + j;
            s->list[count] = (int)(t - theta) + j;
            for (int w = 0; w < 3; ++w) {
                for (int a = 0; a < first; ++a)
                    s->value[a] = way[w][1] * (s->list[a] == 0 ? 1 : row[s->list[a]]);
                if (count > first) s->value[first] = way[w][1] * s->base_slope[j];
                s->value[count] = way[w][2];
                if (way[w][0] > 0) add_product(s, count + 1, enter * way[w][0], matrix);
            }
        }
    }
}

const struct model_class model_survival = {
    .name = "survival",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .prior_gradient = prior_gradient,
    .set = cell_records_set,
    .rrecords = cell_records_draw,
    .refresh = cell_records_refresh,
    .set_move = cell_records_set_move,
    .move = cell_records_move,
    .add = cell_records_add,
    .log_density = cell_records_log_density,
    .log_cells = log_cells,
    .observe = observe,
    .log_posterior = log_posterior,
    .information = information,
};
