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
 *   piecewise    H grows by h_j (b_{j+1} - b_j), in each stratum by its own, which has the prior of
 *                a process (model/hazard_process.c) whose mean is exp(a_0) t / L or declared,
 *   discrete     as piecewise,
 * and that of censoring by g, the same in all groups of a row of its own. Both intensities are
 * taken to be proportional to each other within an interval and a group, so that of those who enter
 * it, with s = d + g,
 *
 *   P(event) = (d / s) (1 - exp(-s)),  P(censored) = (g / s) (1 - exp(-s)),  P(stay) = exp(-s):
 *
 * exact where they are constant there. With B(s) = log((1 - exp(-s)) / s) and A = B' the log
 * likelihood of e events, c censored and l who stay is e (log d + B) + c (log g + B) - l s. In
 * discrete time they are censored at the interval's end: P(event) = 1 - exp(-d), P(censored) =
 * exp(-d) (1 - exp(-g)), to which a beta process is conjugate where beta is 0.
 *
 * theta: the coefficients, (a_0, beta), normal, without a_0 where the process has a declared mean;
 * log k, k gamma, or the log h_j, or of discrete time the logits of exp(-d_j); for each row and
 * interval the logit of exp(-g), 1 - exp(-g) beta; and the sticks of the groups' shares, Dirichlet.
 * Given the counts of the cells the shares and all else are independent.
 *
 * Hazards for which the data do not determine whether all or none have the event:
 * model/survival_shift.c.
 *
 * Cost of a density: three exponentials and three logarithms for each group and interval where
 * somebody enters, and the coefficients for each group. Records: model/records_of_cells.c.
 */
#include "model/survival_cells.h"

#include "base/dist.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"
#include "contract/model_cells.h"
#include "contract/model_prior.h"
#include "model/covariates_factors.h"

/* ---- set-up ------------------------------------------------------------------- */

/* As integers, and how many rows there are. */
static int rows_of(int groups, const double *row, int **row_of) {
    int rows = 0;
    *row_of = plugin_memory((size_t)groups, sizeof(int));
    for (int x = 0; x < groups; ++x) {
        (*row_of)[x] = (int)row[x];
        if (rows <= (*row_of)[x]) rows = (*row_of)[x] + 1;
    }
    return rows;
}

static int read_priors(const struct fields *fields, struct survival *s) {
    s->prior.mean = fields_vector(fields, "prior_mean", s->coefficients);
    s->prior.sd = fields_vector(fields, "prior_sd", s->coefficients);
    s->prior.shape = fields_vector(fields, "prior_shape", 2);
    s->prior.censoring = fields_vector(fields, "prior_censoring", 2);
    s->prior.share = fields_vector(fields, "prior_share", s->groups);
    return s->prior.mean && s->prior.sd && s->prior.censoring && s->prior.share && s->prior.shape
               ? PLUGIN_OK
               : PLUGIN_BAD_FIELDS;
}

static int read_process(const struct fields *fields, const double *breaks, struct survival *s) {
    struct hazard_process *process = &s->process;
    const double *beta = fields_vector(fields, "process_beta", 1);
    const double *rate = fields_vector(fields, "process_rate", s->intervals);
    const double *stratum = fields_vector(fields, "process_row", s->groups);
    process->weight = fields_vector(fields, "process_weight", s->intervals);
    if (!beta || !stratum || !process->weight) return PLUGIN_BAD_FIELDS;
    process->is_beta = beta[0] != 0;
    process->sticks = s->baseline == DISCRETE;
    process->learned = !rate;
    process->intervals = s->intervals;
    double *log_width = doubles((size_t)s->intervals);
    double *log_mean = doubles((size_t)s->intervals);
    for (int j = 0; j < s->intervals; ++j) {
        log_width[j] = log(breaks[j + 1] - breaks[j]);
        log_mean[j] = log_width[j] + (rate ? log(rate[j]) : -s->log_last);
    }
    process->log_width = log_width;
    process->log_mean = log_mean;
    process->rows = rows_of(s->groups, stratum, &s->stratum_of);
    return PLUGIN_OK;
}

static void describe(struct survival *s, struct model *model) {
    struct theta_block block[4];
    int blocks = 0, at = s->coefficients;
    if (s->coefficients > 0) {
        double *centre = doubles((size_t)s->coefficients);
        if (s->intercept) centre[0] = -s->log_last;
        block[blocks++] = (struct theta_block){
            .name = "coefficients",
            .transform = s->intercept ? TRANSFORM_CENTRE : TRANSFORM_IDENTITY,
            .size = s->coefficients,
            .centre = s->intercept ? centre : NULL,
        };
    }
    s->at_base = at;
    const int hazards = s->process.rows * s->intervals;
    if (s->baseline == DISCRETE)
        block[blocks++] = (struct theta_block){
            .name = "hazard",
            .transform = TRANSFORM_STICKS,
            .size = 2,
            .rows = hazards,
            .reports_last = 1,
        };
    else if (s->baseline != EXPONENTIAL)
        block[blocks++] = (struct theta_block){
            .name = s->processes ? "hazard" : "shape",
            .transform = TRANSFORM_LOG,
            .size = s->processes ? hazards : 1,
        };
    at += s->processes ? hazards : s->baseline == WEIBULL;
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

/* ---- prior -------------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct survival *s = self;
    for (int j = 0; j < s->coefficients; ++j)
        theta[j] = s->prior.mean[j] + s->prior.sd[j] * rng_normal(rng);
    double *base = theta + s->at_base;
    if (s->baseline == WEIBULL)
        base[0] = dist_log_gamma(rng, s->prior.shape[0]) - log(s->prior.shape[1]);
    if (s->processes) hazard_draw(&s->process, rng, survival_level(s, theta), base);
    const double weight[2] = {s->prior.censoring[1], s->prior.censoring[0]};
    for (int r = 0; r < s->rows * s->intervals; ++r)
        sticks_draw(rng, 2, weight, theta + s->at_censoring + r);
    if (s->groups > 1) sticks_draw(rng, s->groups, s->prior.share, theta + s->at_share);
}

/* A log density of which `gradient`, where it is not NULL, gets the slopes. */
static double add_prior(const struct survival *s, const double *theta, double *gradient) {
    double log_density = 0;
    for (int j = 0; j < s->coefficients; ++j) {
        const double z = (theta[j] - s->prior.mean[j]) / s->prior.sd[j];
        log_density -= 0.5 * z * z;
        if (gradient) gradient[j] -= z / s->prior.sd[j];
    }
    const double *base = theta + s->at_base;
    if (s->baseline == WEIBULL) {
        const double taken = s->prior.shape[1] * exp(base[0]);
        log_density += s->prior.shape[0] * base[0] - taken;
        if (gradient) gradient[s->at_base] += s->prior.shape[0] - taken;
    }
    if (s->processes)
        log_density += hazard_log_prior(&s->process, survival_level(s, theta), base,
                                        gradient ? gradient + s->at_base : NULL, gradient);
    const double all = s->prior.censoring[0] + s->prior.censoring[1];
    for (int r = s->at_censoring; r < s->at_share; ++r) {
        log_density += stick_log_density(s->prior.censoring[1], all, theta[r]);
        if (gradient) gradient[r] += s->prior.censoring[1] - all * stick_share(theta[r]);
    }
    double rest = s->prior.share[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const int at = s->at_share + x;
        rest += s->prior.share[x];
        log_density += stick_log_density(s->prior.share[x], rest, theta[at]);
        if (gradient) gradient[at] += s->prior.share[x] - rest * stick_share(theta[at]);
    }
    return log_density;
}

static double dprior(void *self, const double *theta) { return add_prior(self, theta, NULL); }

static void prior_gradient(void *self, const double *theta, double *gradient) {
    (void)add_prior(self, theta, gradient);
}

/* ---- cells -------------------------------------------------------------------- */

/* The groups' linear predictors, and but for processes log of the baseline's growth in each
 * interval and its derivative in log k. */
static void predict(struct survival *s, const double *theta) {
    const double k = s->baseline == WEIBULL ? exp(theta[s->at_base]) : 1;
    for (int j = 0; !s->processes && j < s->intervals; ++j) {
        const double end = s->position[j + 1], length = end - s->position[j];
        s->log_base[j] = k * end + log(-expm1(-k * length));
        s->base_slope[j] = k * (end + (isfinite(length) ? length / expm1(k * length) : 0));
    }
    survival_predict(s, theta);
}

/* The same of one group's intervals under a process, in its coordinates; returns the first of
 * these. */
static int predict_base(struct survival *s, const double *theta, int x) {
    if (!s->processes) return s->at_base;
    const int at = s->at_base + s->stratum_of[x] * s->intervals;
    for (int j = 0; j < s->intervals; ++j) {
        const struct growth d = hazard_growth(&s->process, j, theta[at + j]);
        s->log_base[j] = d.log;
        s->base_slope[j] = d.slope;
    }
    return at;
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

static void log_cells(void *self, const double *theta, double *log_p) {
    struct survival *s = self;
    predict(s, theta);
    find_shares(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = survival_censoring(s, theta, x);
        double entered = s->log_share[x];
        (void)predict_base(s, theta, x);
        for (int j = 0; j < s->intervals; ++j) {
            struct leaving p;
            survival_leave(s, s->eta[x] + s->log_base[j], t[j], &p);
            *log_p++ = entered + p.log_p[0];
            *log_p++ = entered + p.log_p[1];
            entered += p.log_p[2];
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
            s->counts.events[at] = c[2 * j];
            s->counts.censored[at] = c[2 * j + 1];
            s->counts.stay[at] = stay;
            stay += c[2 * j] + c[2 * j + 1];
        }
        s->counts.size[x] = stay;
    }
    if (s->process.is_beta) survival_find_open(s);
}

/* of the groups' shares */
static double add_shares(const struct survival *s, const double *theta, double *gradient) {
    double log_density = 0, rest = s->counts.size[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const int at = s->at_share + x;
        rest += s->counts.size[x];
        log_density += stick_log_density(s->counts.size[x], rest, theta[at]);
        gradient[at] += s->counts.size[x] - rest * stick_share(theta[at]);
    }
    return log_density;
}

static double log_posterior(void *self, const double *theta, double *gradient) {
    struct survival *s = self;
    memset(gradient, 0, (size_t)s->parameters * sizeof(double));
    double log_density = add_prior(s, theta, gradient) + add_shares(s, theta, gradient);
    predict(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = survival_censoring(s, theta, x);
        double *slope_t = gradient + (t - theta), slope_x = 0;
        const int at_base = predict_base(s, theta, x);
        for (int j = 0; j < s->intervals; ++j) {
            const int at = x * s->intervals + j;
            const double count[3] = {s->counts.events[at], s->counts.censored[at],
                                     s->counts.stay[at]};
            struct leaving p;
            survival_leave(s, s->eta[x] + s->log_base[j], t[j], &p);
            double slope = 0;
            for (int w = 0; w < 3; ++w) {
                if (count[w] == 0) continue; /* the logarithm may be infinite */
                log_density += count[w] * p.log_p[w];
                slope += count[w] * p.slope_d[w];
                slope_t[j] += count[w] * p.slope_t[w];
            }
            slope_x += slope;
            if (s->baseline == WEIBULL) gradient[at_base] += slope * s->base_slope[j];
            if (s->processes) gradient[at_base + j] += slope * s->base_slope[j];
        }
        const double *row = s->design + (size_t)x * (size_t)s->coefficients;
        if (!s->processes) gradient[0] += slope_x;
        for (int m = s->intercept; m < s->coefficients; ++m) gradient[m] += row[m] * slope_x;
    }
    return isfinite(log_density) ? log_density : -INFINITY;
}

/* Of the prior, or about that: with what is expected of a gamma variable, and sticks where they
 * are. */
static void add_prior_information(const struct survival *s, const double *theta, double *matrix) {
    const size_t size = (size_t)s->parameters;
    for (int j = 0; j < s->coefficients; ++j)
        matrix[(size_t)j * (size + 1)] += 1 / (s->prior.sd[j] * s->prior.sd[j]);
    if (s->baseline == WEIBULL)
        matrix[(size_t)s->at_base * (size + 1)] += s->prior.shape[1] * exp(theta[s->at_base]);
    if (s->processes)
        hazard_add_information(&s->process, survival_level(s, theta), theta + s->at_base,
                               s->at_base, size, matrix);
    const double all = s->prior.censoring[0] + s->prior.censoring[1];
    for (int r = s->at_censoring; r < s->at_share; ++r) {
        const double share = stick_share(theta[r]);
        matrix[(size_t)r * (size + 1)] += all * share * (1 - share);
    }
    double rest = s->prior.share[s->groups - 1] + s->counts.size[s->groups - 1];
    for (int x = s->groups - 2; x >= 0; --x) {
        const double share = stick_share(theta[s->at_share + x]);
        rest += s->prior.share[x] + s->counts.size[x];
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

/* Of those who enter an interval the three ways of leaving it have log probabilities with slopes v:
 * expected information, the sum of P v v'. */
static void information(void *self, const double *theta, double *matrix) {
    struct survival *s = self;
    const size_t size = (size_t)s->parameters;
    memset(matrix, 0, size * size * sizeof(double));
    add_prior_information(s, theta, matrix);
    predict(s, theta);
    for (int x = 0; x < s->groups; ++x) {
        const double *t = survival_censoring(s, theta, x);
        const double *row = s->design + (size_t)x * (size_t)s->coefficients;
        const int at_base = predict_base(s, theta, x);
        int first = 0;
        if (!s->processes) s->list[first++] = 0;
        for (int m = s->intercept; m < s->coefficients; ++m)
            if (row[m] != 0) s->list[first++] = m;
        for (int j = 0; j < s->intervals; ++j) {
            const int at = x * s->intervals + j;
            const double enter = s->counts.events[at] + s->counts.censored[at] + s->counts.stay[at];
            if (enter == 0) continue;
            struct leaving p;
            survival_leave(s, s->eta[x] + s->log_base[j], t[j], &p);
            int count = first;
            if (s->baseline == WEIBULL) s->list[count++] = at_base;
            if (s->processes) s->list[count++] = at_base + j;
            s->list[count] = (int)(t - theta) + j;
            for (int w = 0; w < 3; ++w) {
                for (int a = 0; a < first; ++a) s->value[a] = p.slope_d[w] * row[s->list[a]];
                if (count > first) s->value[first] = p.slope_d[w] * s->base_slope[j];
                s->value[count] = p.slope_t[w];
                const double chance = exp(p.log_p[w]);
                if (chance > 0) add_product(s, count + 1, enter * chance, matrix);
            }
        }
    }
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_cells cells_hooks = {.log_cells = log_cells,
                                               .observe = observe,
                                               .log_posterior = log_posterior,
                                               .information = information,
                                               .shift = survival_shift,
                                               .hold = survival_hold};

/* Fields: those of model/records_of_cells.h; baseline, 0 exponential, 1 Weibull, 2 piecewise, 3
 * discrete; breaks; design, a row for each group; censoring_row, that of each group, from 0; and
 * the priors: prior_mean and prior_sd, of the coefficients (of a_0, not of the intercept);
 * prior_shape, shape and rate; prior_censoring, two beta weights; prior_share, Dirichlet weights.
 * Of piecewise and discrete: process_beta, whether it is a beta process; process_weight, of each
 * interval; process_row, the stratum of each group, from 0; process_rate, where the process has a
 * declared mean, its hazard in each interval: then there is no a_0. */
static int create(const struct fields *fields, struct model *model) {
    struct survival *s = plugin_memory(1, sizeof *s);
    if (cell_records_create(&s->records, fields, log_cells, model) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->intervals = fields_length(fields, "breaks") - 1;
    if (s->intervals < 1) return PLUGIN_BAD_FIELDS;
    s->groups = s->records.cells / (2 * s->intervals + 1);
    s->coefficients = fields_length(fields, "prior_mean");
    if (s->coefficients < 0) s->coefficients = 0;
    const double *baseline = fields_vector(fields, "baseline", 1);
    const double *breaks = fields_vector(fields, "breaks", s->intervals + 1);
    const double *row = fields_vector(fields, "censoring_row", s->groups);
    s->design = fields_vector(fields, "design", s->groups * s->coefficients);
    if (!baseline || !breaks || !row || !s->design) return PLUGIN_BAD_FIELDS;
    s->baseline = (enum baseline)baseline[0];
    s->processes = s->baseline == PIECEWISE || s->baseline == DISCRETE;
    s->rows = rows_of(s->groups, row, &s->row_of);
    s->log_last = log(breaks[s->intervals]);
    if (read_priors(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    if (s->processes && read_process(fields, breaks, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    s->intercept = !s->processes || s->process.learned;
    if (s->coefficients < s->intercept) return PLUGIN_BAD_FIELDS;

    const size_t groups = (size_t)s->groups, intervals = (size_t)s->intervals;
    s->position = doubles(intervals + 1);
    for (int j = 0; j <= s->intervals; ++j) s->position[j] = log(breaks[j]) - s->log_last;
    DOUBLES(groups * intervals, &s->counts.events, &s->counts.censored, &s->counts.stay);
    DOUBLES(groups, &s->counts.size, &s->eta, &s->log_share);
    DOUBLES(intervals, &s->log_base, &s->base_slope);
    s->place = plugin_memory((size_t)s->process.rows * intervals, sizeof *s->place);
    describe(s, model);
    model->prior = &prior_hooks;
    model->cells = &cells_hooks;
    s->value = doubles((size_t)s->parameters);
    s->list = plugin_memory((size_t)s->parameters, sizeof(int));
    return PLUGIN_OK;
}

const struct model_class model_survival = {
    .name = "survival",
    .create = create,
    .rprior = rprior,
    .set = cell_records_set,
    .rrecords = cell_records_draw,
};
