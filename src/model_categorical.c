/* Model "categorical": a variable with two or more levels, called the class
 * here, and any number of further variables, the features, that are independent
 * of each other given it. With features it is the naive Bayes model (Ju et al.
 * 2022, section 4 and equations S3 to S6), without it the categorical one, with
 * two levels Bernoulli. Every vector of probabilities has a Dirichlet prior or
 * is known.
 *
 * A record has one column of codes 0, 1, ... for each variable, class first. A
 * *row* is one vector of probabilities: the class has one, a feature one for
 * each class.
 *
 * theta holds a row of L levels as L - 1 sticks (sticks.h), row after row. Innovations:
 * record i has one uniform for each variable (levels.c).
 *
 * Complete-data statistic: the counts of the class, then those of every feature
 * by class. Updates are conjugate. Cost per record: one uniform and one search
 * for each variable; per update one gamma variate for each probability.
 */
#include "dist.h"
#include "lanes.h"
#include "levels.h"
#include "plugin.h"
#include "sticks.h"

/* up to this many sticks are moved together; up to this many counts are taken by
 * comparison */
enum { MOST_GROUPED = 12, MOST_COMPARED = 32 };

struct variable {
    struct levels of; /* the variable's levels, by row */
    int levels, cuts, rows;
    int known;
    int at_stick; /* first of rows * cuts in theta */
    int at_level; /* first of rows * levels in alpha and in the statistic */
};

struct categorical {
    int variables, sticks, probabilities;
    struct variable *variable;
    const double *alpha;
    double *first_weight, *all_weight; /* a_l, and a_l + ... + a_L */
    double *theta;
    int *changed;
    /* workspace */
    struct level_work work;
    double *weight, *gamma;
    int *row, *row_to; /* MAX_BLOCK: classes of the records */
    uint8_t *index;    /* MAX_BLOCK */
};

/* ---- set-up ------------------------------------------------------------- */

/* Rows that are known are a block of theta that stays where it is. A draw of a variable
 * of two levels may report the second one alone. */
static void describe(const struct categorical *s, const double *probability, int reports_last,
                     struct model *model) {
    struct theta_block *block = plugin_memory((size_t)s->variables, sizeof *block);
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        double *stick = NULL;
        if (variable->known) {
            stick = plugin_memory((size_t)(variable->rows * variable->cuts), sizeof(double));
            for (int r = 0; r < variable->rows; ++r)
                sticks_from_probabilities(variable->levels,
                                          probability + variable->at_level + r * variable->levels,
                                          stick + r * variable->cuts);
        }
        block[v] = (struct theta_block){.name = v == 0 ? "class" : "feature",
                                        .transform = TRANSFORM_STICKS,
                                        .size = variable->levels,
                                        .rows = variable->rows,
                                        .known = stick,
                                        .reports_last = reports_last};
    }
    model_describe(model, s->variables, block);
}

/* Fields: levels, one a variable; alpha, Dirichlet weights of all rows; known, 1
 * for a variable whose rows are; probability, of all rows, looked at where they are
 * known; reports_last, 1 if a draw reports the second of two levels alone. */
static int create(const struct fields *fields, struct model *model) {
    struct categorical *s = plugin_memory(1, sizeof *s);
    s->variables = fields_length(fields, "levels");
    const double *levels = fields_vector(fields, "levels", s->variables);
    const double *known = fields_vector(fields, "known", s->variables);
    const double *reports_last = fields_vector(fields, "reports_last", 1);
    if (!levels || !known || !reports_last || s->variables < 1) return PLUGIN_BAD_FIELDS;
    s->variable = plugin_memory((size_t)s->variables, sizeof *s->variable);
    for (int v = 0; v < s->variables; ++v) {
        struct variable *variable = s->variable + v;
        variable->levels = (int)levels[v];
        if (variable->levels < 2) return PLUGIN_BAD_FIELDS;
        variable->cuts = variable->levels - 1;
        variable->rows = v == 0 ? 1 : s->variable[0].levels;
        variable->known = known[v] != 0;
        variable->at_stick = s->sticks;
        variable->at_level = s->probabilities;
        variable->of = levels_new(variable->levels, variable->rows);
        s->sticks += variable->rows * variable->cuts;
        s->probabilities += variable->rows * variable->levels;
    }
    s->alpha = fields_vector(fields, "alpha", s->probabilities);
    const double *probability = fields_vector(fields, "probability", s->probabilities);
    if (!s->alpha || !probability) return PLUGIN_BAD_FIELDS;
    describe(s, probability, *reports_last != 0, model);

    s->first_weight = plugin_memory((size_t)s->sticks, sizeof(double));
    s->all_weight = plugin_memory((size_t)s->sticks, sizeof(double));
    s->theta = plugin_memory((size_t)s->sticks, sizeof(double));
    s->changed = plugin_memory((size_t)s->variables, sizeof(int));
    s->weight = plugin_memory((size_t)s->probabilities, sizeof(double));
    s->gamma = plugin_memory((size_t)s->probabilities, sizeof(double));
    s->work = level_work_new();
    s->row = plugin_memory(MAX_BLOCK, sizeof(int));
    s->row_to = plugin_memory(MAX_BLOCK, sizeof(int));
    s->index = plugin_memory(MAX_BLOCK, 1);

    model->self = s;
    model->columns = s->variables;
    model->complete = s->probabilities;
    model->costs.move = s->variables;
    model->costs.refresh = 3 * s->variables;
    model->group = plugin_memory((size_t)s->sticks, sizeof(int));
    int in_group = 0, moving = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int r = 0; r < variable->rows; ++r) {
            const double *alpha = s->alpha + variable->at_level + r * variable->levels;
            const int at = variable->at_stick + r * variable->cuts;
            double all = alpha[variable->cuts];
            for (int l = variable->cuts - 1; l >= 0; --l) {
                s->first_weight[at + l] = alpha[l];
                s->all_weight[at + l] = all += alpha[l];
            }
            for (int l = 0; l < variable->cuts && !variable->known; ++l) {
                /* a variable's sticks are moved together, up to a number */
                const int first = r == 0 && l == 0;
                if (first || ++in_group > MOST_GROUPED) {
                    in_group = 1;
                    ++model->groups;
                }
                model->group[moving++] = model->groups - 1;
            }
        }
    }
    return PLUGIN_OK;
}

/* ---- prior and update --------------------------------------------------- */

/* Gamma variates of many shapes: Marsaglia & Tsang (2000, ACM TOMS 26(3)) with
 * the candidates of a block drawn together. Their squeeze, or else the test
 * behind it, accepts nearly all; the others start afresh. */
static void fill_gamma(struct categorical *s, struct rng *rng, int count, const double *shape,
                       double *gamma) {
    double *z = s->work.keep, *u = s->work.u;
    for (int start = 0; start < count; start += MAX_BLOCK, shape += MAX_BLOCK, gamma += MAX_BLOCK) {
        const int m = count - start < MAX_BLOCK ? count - start : MAX_BLOCK;
        rng_fill_normal(rng, m, z);
        rng_fill_uniform(rng, m, u);
        for (int j = 0; j < m; ++j) {
            const double d = shape[j] - 1.0 / 3, square = z[j] * z[j];
            const double root = 1 + z[j] / sqrt(9 * d), v = root * root * root;
            const int accept = shape[j] >= 1 && root > 0 &&
                               (u[j] < 1 - 0.0331 * square * square ||
                                log(u[j]) < 0.5 * square + d * (1 - v + log(v)));
            gamma[j] = accept ? d * v : dist_gamma(rng, shape[j]);
        }
    }
}

static double log_add(double a, double b) {
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* Sticks of a row of gamma variates: each over the sum of those after it. */
static void stack(int levels, const double *gamma, double *stick) {
    double rest = gamma[levels - 1];
    for (int l = levels - 2; l >= 0; --l) {
        stick[l] = log(gamma[l] / rest);
        rest += gamma[l];
    }
}

static void stack_logs(int levels, const double *log_gamma, double *stick) {
    double rest = log_gamma[levels - 1];
    for (int l = levels - 2; l >= 0; --l) {
        stick[l] = log_gamma[l] - rest;
        rest = log_add(rest, log_gamma[l]);
    }
}

/* theta given these counts, the prior if there are none; on the log scale where
 * a gamma variate could underflow or a sum overflow */
static void draw_theta(struct categorical *s, const double *count, struct rng *rng, double *theta) {
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        if (variable->known) continue;
        const int first = variable->at_level, total = variable->rows * variable->levels;
        double least = INFINITY, most = 0;
        for (int j = 0; j < total; ++j) {
            const double weight = s->alpha[first + j] + (count ? count[first + j] : 0);
            s->weight[j] = weight;
            least = weight < least ? weight : least;
            most = weight > most ? weight : most;
        }
        const int plain = least >= 0.1 && most <= 1e100;
        if (plain)
            fill_gamma(s, rng, total, s->weight, s->gamma);
        else
            for (int j = 0; j < total; ++j)
                s->gamma[j] = fmax(dist_log_gamma(rng, s->weight[j]), -1e300);
        double *stick = theta + variable->at_stick;
        const double *gamma = s->gamma;
        for (int r = 0; r < variable->rows; ++r, gamma += variable->levels, stick += variable->cuts)
            if (plain)
                stack(variable->levels, gamma, stick);
            else
                stack_logs(variable->levels, gamma, stick);
    }
}

static void rprior(void *self, struct rng *rng, double *theta) {
    draw_theta(self, NULL, rng, theta);
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    (void)n; /* the counts add up to it */
    draw_theta(self, c, rng, theta);
    return PLUGIN_OK;
}

static double dprior(void *self, const double *theta) {
    const struct categorical *s = self;
    double log_density = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        if (variable->known) continue;
        const int end = variable->at_stick + variable->rows * variable->cuts;
        for (int j = variable->at_stick; j < end; ++j)
            log_density += stick_log_density(s->first_weight[j], s->all_weight[j], theta[j]);
    }
    return log_density;
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct categorical *s = self;
    memcpy(s->theta, theta, (size_t)s->sticks * sizeof(double));
    for (int v = 0; v < s->variables; ++v)
        levels_set(&s->variable[v].of, theta + s->variable[v].at_stick);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct categorical *s = self;
    levels_draw(&s->variable[0].of, &s->work, rng, m, NULL, s->row, x[0]);
    for (int v = 1; v < s->variables; ++v)
        levels_draw(&s->variable[v].of, &s->work, rng, m, s->row, s->row_to, x[v]);
}

/* A feature's level is kept only if the class stays what it was. */
static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct categorical *s = self;
    levels_refresh(&s->variable[0].of, &s->work, rho, rng, m, NULL, NULL, NULL, x[0], x_new[0]);
    levels_codes(m, x_new[0], s->row);
    for (int v = 1; v < s->variables; ++v)
        levels_refresh(&s->variable[v].of, &s->work, rho, rng, m, s->row, x[0], x_new[0], x[v],
                       x_new[v]);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct categorical *s = self;
    int class_changed = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const size_t length = (size_t)variable->rows * (size_t)variable->cuts * sizeof(double);
        const int at = variable->at_stick;
        levels_set_next(&variable->of, theta_new + at);
        changed[v] = class_changed || memcmp(s->theta + at, theta_new + at, length) != 0;
        s->changed[v] = changed[v];
        if (v == 0) class_changed = changed[0];
    }
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct categorical *s = self;
    const int *row_to = s->row;
    levels_codes(m, x[0], s->row);
    if (s->changed[0]) {
        levels_move(&s->variable[0].of, &s->work, rng, m, NULL, NULL, x[0], x_new[0]);
        levels_codes(m, x_new[0], s->row_to);
        row_to = s->row_to;
    }
    for (int v = 1; v < s->variables; ++v)
        if (s->changed[v])
            levels_move(&s->variable[v].of, &s->work, rng, m, s->row, row_to, x[v], x_new[v]);
}

/* ---- complete-data statistic ------------------------------------------------ */

/* count[k] += 1 for the index k of every record. Where counts are few, each is
 * compared with all records, in bytes: faster than steps that wait for one another.
 * wide, narrow: MAX_BLOCK. */
static INLINE void tally(int m, int counts, int *restrict wide, uint8_t *restrict narrow,
                         double *restrict count) {
#if HAS_LANES
    if (counts <= MOST_COMPARED) {
        const int end = (m + (BYTES - 1)) & ~(BYTES - 1);
        for (int i = m; i < end; ++i) wide[i] = UINT8_MAX;
        for (int i = 0; i < end; i += BYTES)
            for (int l = 0; l < BYTES; ++l) narrow[i + l] = (uint8_t)wide[i + l];
        for (int k = 0; k < counts; ++k) {
            bytes hits = {0};
            for (int i = 0; i < end; i += BYTES)
                hits -= (bytes)(BYTES_LOAD(narrow + i) == (uint8_t)k);
            count[k] += bytes_sum(&hits);
        }
        return;
    }
#else
    (void)counts, (void)narrow;
#endif
    for (int i = 0; i < m; ++i) count[wide[i]] += 1;
}

VECTOR_CLONES static void add(void *self, int m, const double *const *x, double *c) {
    struct categorical *s = self;
    int *restrict index = s->row;
    const double *restrict class = x[0];
    FOR_RECORDS(i, m) index[i] = (int)class[i];
    tally(m, s->variable[0].levels, index, s->index, c);
    for (int v = 1; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const double levels = variable->levels, *restrict level = x[v];
        FOR_RECORDS(i, m) index[i] = (int)(class[i] * levels + level[i]);
        tally(m, variable->rows * variable->levels, index, s->index, c + variable->at_level);
    }
}

const struct model_class model_categorical = {
    .name = "categorical",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .set = set,
    .rrecords = rrecords,
    .refresh = refresh,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
};
