/* Model "categorical": columns of codes 0, 1, ..., drawn part after part. A part has one or more
 * columns, its children, whose possible combinations are its levels. Given the columns that are
 * its parents, it is independent of all earlier parts.
 *
 *   a class, then features given it   naive Bayes (Ju et al. 2022, section 4 and equations
 *                                     S3 to S6); a class alone: categorical, Bernoulli
 *   one part of all columns           a saturated table; combinations may be left out
 *
 * A *row* is one vector of probabilities: a part has one for each combination of its
 * parents' codes. It has a Dirichlet prior or is known.
 *
 * theta holds a row of L levels as L - 1 sticks (base/sticks.h), row after row. Innovations:
 * record i has one uniform for each part (model/categorical_draw.c).
 *
 * Complete-data statistic: the counts of every part's levels, row by row. Updates are
 * conjugate. Cost per record: one uniform and one search for each part; per update one
 * gamma variate for each probability.
 */
#include "base/dist.h"
#include "base/lanes.h"
#include "base/sticks.h"
#include "contract/model.h"
#include "contract/model_cells.h"
#include "contract/model_likelihood.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "model/categorical_draw.h"
#include "model/clique_tables.h"

/* up to this many sticks are moved together; up to this many counts are taken by
 * comparison */
enum { MOST_GROUPED = 12, MOST_COMPARED = 32 };

struct part {
    struct levels of; /* the part's levels, by row */
    struct part_columns columns;
    int cuts;
    int known;
    int at_stick; /* first of rows * cuts in theta */
    int at_level; /* first of rows * levels in alpha and in the statistic */
};

struct categorical {
    int columns, parts, sticks, probabilities;
    int *size; /* codes of a column */
    struct part *part;
    const double *alpha;
    double *first_weight, *all_weight; /* a_l, and a_l + ... + a_L */
    double *theta;
    int *changed;
    /* workspace */
    struct level_work work;
    double *weight, *gamma;
    /* MAX_BLOCK */
    int *row, *row_to;
    double *level, *level_to, *parent;
    const double **mixed; /* a column */
    uint8_t *index;
};

/* ---- set-up ------------------------------------------------------------- */

/* Rows that are known are a block of theta that stays where it is. A draw of a part of
 * two levels may report the second one alone. */
static void describe(const struct categorical *s, const double *probability, int reports_last,
                     struct model *model) {
    struct theta_block *block = plugin_memory((size_t)s->parts, sizeof *block);
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        double *stick = NULL;
        if (part->known) {
            stick = doubles((size_t)(part->columns.rows * part->cuts));
            for (int r = 0; r < part->columns.rows; ++r)
                sticks_from_probabilities(part->columns.levels,
                                          probability + part->at_level + r * part->columns.levels,
                                          stick + r * part->cuts);
        }
        block[k] = (struct theta_block){.name = k == 0 ? "class" : "feature",
                                        .transform = TRANSFORM_STICKS,
                                        .size = part->columns.levels,
                                        .rows = part->columns.rows,
                                        .known = stick,
                                        .reports_last = reports_last};
    }
    model_describe(model, s->parts, block);
}

static int read_parts(const struct fields *fields, struct categorical *s) {
    struct part_columns *columns;
    const int status = table_parts_read(fields, &s->columns, &s->size, &s->parts, &columns);
    if (status != PLUGIN_OK) return status;
    const double *known = fields_vector(fields, "known", s->parts);
    if (!known) return PLUGIN_BAD_FIELDS;
    s->part = plugin_memory((size_t)s->parts, sizeof *s->part);
    for (int k = 0; k < s->parts; ++k) {
        struct part *part = s->part + k;
        part->columns = columns[k];
        if (part->columns.levels < 2) return PLUGIN_BAD_FIELDS;
        part->cuts = part->columns.levels - 1;
        part->known = known[k] != 0;
        part->at_stick = s->sticks;
        part->at_level = s->probabilities;
        part->of = levels_new(part->columns.levels, part->columns.rows);
        s->sticks += part->columns.rows * part->cuts;
        s->probabilities += part->columns.rows * part->columns.levels;
    }
    return PLUGIN_OK;
}

/* A part's sticks are moved together, up to a number. */
static void group_sticks(struct categorical *s, struct model *model) {
    model->groups.of = plugin_memory((size_t)s->sticks, sizeof(int));
    int in_group = 0, moving = 0;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        for (int r = 0; r < part->columns.rows; ++r) {
            const double *alpha = s->alpha + part->at_level + r * part->columns.levels;
            const int at = part->at_stick + r * part->cuts;
            double all = alpha[part->cuts];
            for (int l = part->cuts - 1; l >= 0; --l) {
                s->first_weight[at + l] = alpha[l];
                s->all_weight[at + l] = all += alpha[l];
            }
            for (int l = 0; l < part->cuts && !part->known; ++l) {
                const int first = r == 0 && l == 0;
                if (first || ++in_group > MOST_GROUPED) {
                    in_group = 1;
                    ++model->groups.count;
                }
                model->groups.of[moving++] = model->groups.count - 1;
            }
        }
    }
}

/* ---- prior and update --------------------------------------------------- */

/* Gamma variates of many shapes: Marsaglia & Tsang (2000, ACM TOMS 26(3)) with
 * the candidates of a block drawn together. Their squeeze, or else the test
 * behind it, accepts nearly all; the others start afresh. */
static void fill_gamma(struct categorical *s, struct rng *rng, int count, const double *shape,
                       double *gamma) {
    double *z = s->work.keep, *u = s->work.u;
    for (int start = 0; start < count; start += MAX_BLOCK, shape += MAX_BLOCK, gamma += MAX_BLOCK) {
        const int m = block_length(count - start);
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
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (part->known) continue;
        const int first = part->at_level, total = part->columns.rows * part->columns.levels;
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
        double *stick = theta + part->at_stick;
        const double *gamma = s->gamma;
        for (int r = 0; r < part->columns.rows;
             ++r, gamma += part->columns.levels, stick += part->cuts)
            if (plain)
                stack(part->columns.levels, gamma, stick);
            else
                stack_logs(part->columns.levels, gamma, stick);
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

/* A stick has the count of its level and the count of the later ones. */
static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    const struct categorical *s = self;
    double log_density = 0;
    (void)n;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        for (int r = 0; r < part->columns.rows; ++r) {
            const double *count = c + part->at_level + r * part->columns.levels;
            const double *stick = theta + part->at_stick + r * part->cuts;
            double all = count[part->cuts];
            for (int l = part->cuts - 1; l >= 0; --l) {
                all += count[l];
                log_density += stick_log_density(count[l], all, stick[l]);
                if (gradient) gradient[stick - theta + l] += stick_slope(count[l], all, stick[l]);
            }
        }
    }
    return log_density;
}

static void log_cells(void *self, const double *theta, double *log_p) {
    const struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        for (int r = 0; r < part->columns.rows; ++r) {
            double *row = log_p + part->at_level + r * part->columns.levels;
            sticks_to_probabilities(part->columns.levels, theta + part->at_stick + r * part->cuts,
                                    row);
            for (int l = 0; l < part->columns.levels; ++l) row[l] = log(row[l]);
        }
    }
}

static double dprior(void *self, const double *theta) {
    const struct categorical *s = self;
    double log_density = 0;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (part->known) continue;
        const int end = part->at_stick + part->columns.rows * part->cuts;
        for (int j = part->at_stick; j < end; ++j)
            log_density += stick_log_density(s->first_weight[j], s->all_weight[j], theta[j]);
    }
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    const struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (part->known) continue;
        const int end = part->at_stick + part->columns.rows * part->cuts;
        for (int j = part->at_stick; j < end; ++j)
            gradient[j] += stick_slope(s->first_weight[j], s->all_weight[j], theta[j]);
    }
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct categorical *s = self;
    memcpy(s->theta, theta, (size_t)s->sticks * sizeof(double));
    for (int k = 0; k < s->parts; ++k) levels_set(&s->part[k].of, theta + s->part[k].at_stick);
}

/* Combinations of some columns' codes, the last column's the fastest. A single column is
 * returned as it is; else they are written to `out`. */
static const double *combine(const struct categorical *s, int m, int count, const int *column,
                             const double *const *x, double *out) {
    if (count == 1) return x[column[0]];
    memset(out, 0, (size_t)m * sizeof *out);
    for (int k = 0; k < count; ++k) {
        const double size = s->size[column[k]], *restrict code = x[column[k]];
        for (int i = 0; i < m; ++i) out[i] = out[i] * size + code[i];
    }
    return out;
}

/* The row of each record, NULL if there is only one. */
static const int *find_rows(const struct categorical *s, const struct part *part, int m,
                            const double *const *x, int *row) {
    if (part->columns.parents == 0) return NULL;
    levels_codes(m, combine(s, m, part->columns.parents, part->columns.parent, x, s->parent), row);
    return row;
}

/* Levels from the children's codes, and back. An only child's code is the level. */
static const double *read_level(const struct categorical *s, const struct part *part, int m,
                                const double *const *x, double *out) {
    const double *at = combine(s, m, part->columns.children, part->columns.child, x, out);
    if (part->columns.children > 1)
        for (int i = 0; i < m; ++i) out[i] = part->columns.level_of[(int)out[i]];
    return at;
}

static double *level_column(const struct part *part, double *const *x, double *out) {
    return part->columns.children == 1 ? x[part->columns.child[0]] : out;
}

static void write_level(const struct part *part, int m, const double *level, double *const *x) {
    if (part->columns.children == 1) return;
    for (int k = 0; k < part->columns.children; ++k) {
        const double *code = part->columns.code + k;
        double *restrict column = x[part->columns.child[k]];
        for (int i = 0; i < m; ++i) column[i] = code[(int)level[i] * part->columns.children];
    }
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        const int *row = find_rows(s, part, m, (const double *const *)x, s->row);
        double *level = level_column(part, x, s->level);
        levels_draw(&part->of, &s->work, rng, m, row, s->row_to, level);
        write_level(part, m, level, x);
    }
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        const size_t length = (size_t)part->columns.rows * (size_t)part->cuts * sizeof(double);
        const int at = part->at_stick;
        levels_set_next(&part->of, theta_new + at);
        int differs = memcmp(s->theta + at, theta_new + at, length) != 0;
        for (int p = 0; p < part->columns.parents; ++p)
            differs |= s->changed[part->columns.parent[p]];
        for (int c = 0; c < part->columns.children; ++c)
            changed[part->columns.child[c]] = s->changed[part->columns.child[c]] = differs;
    }
}

/* Parents come before their children: what they are is in x_new if they changed. */
static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct categorical *s = self;
    for (int v = 0; v < s->columns; ++v) s->mixed[v] = s->changed[v] ? x_new[v] : x[v];
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (!s->changed[part->columns.child[0]]) continue;
        const int *row = find_rows(s, part, m, x, s->row);
        const int *row_to = find_rows(s, part, m, s->mixed, s->row_to);
        double *level = level_column(part, x_new, s->level_to);
        levels_move(&part->of, &s->work, rng, m, row, row_to, read_level(s, part, m, x, s->level),
                    level);
        write_level(part, m, level, x_new);
    }
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

VECTOR_CLONES static void index_of(int m, double levels, const double *restrict row,
                                   const double *restrict level, int *restrict index) {
    FOR_RECORDS(i, m) index[i] = (int)(row[i] * levels + level[i]);
}

static void add(void *self, int m, const double *const *x, double *c) {
    struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        const double *level = read_level(s, part, m, x, s->level);
        if (part->columns.parents == 0)
            levels_codes(m, level, s->row);
        else
            index_of(m, part->columns.levels,
                     combine(s, m, part->columns.parents, part->columns.parent, x, s->parent),
                     level, s->row);
        tally(m, part->columns.rows * part->columns.levels, s->row, s->index, c + part->at_level);
    }
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood};
static const struct model_cells cells_hooks = {.log_cells = log_cells};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

/* Fields: columns, the codes of each; levels, children and parents, how many a part has;
 * known, 1 for a part whose rows are; child and parent, the columns, part after part;
 * code, of the levels of each part with several children, level by level; alpha, Dirichlet
 * weights of all rows; probability, of all rows, looked at where they are known;
 * reports_last, 1 if a draw reports the second of two levels alone. */
static int create(const struct fields *fields, struct model *model) {
    struct categorical *s = plugin_memory(1, sizeof *s);
    if (read_parts(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const double *reports_last = fields_vector(fields, "reports_last", 1);
    s->alpha = fields_vector(fields, "alpha", s->probabilities);
    const double *probability = fields_vector(fields, "probability", s->probabilities);
    if (!reports_last || !s->alpha || !probability) return PLUGIN_BAD_FIELDS;
    describe(s, probability, *reports_last != 0, model);

    DOUBLES((size_t)s->sticks, &s->first_weight, &s->all_weight, &s->theta);
    s->changed = plugin_memory((size_t)s->columns, sizeof(int));
    DOUBLES((size_t)s->probabilities, &s->weight, &s->gamma);
    s->work = level_work_new();
    s->row = plugin_memory(MAX_BLOCK, sizeof(int));
    s->row_to = plugin_memory(MAX_BLOCK, sizeof(int));
    DOUBLES(MAX_BLOCK, &s->level, &s->level_to, &s->parent);
    s->mixed = plugin_memory((size_t)s->columns, sizeof *s->mixed);
    s->index = plugin_memory(MAX_BLOCK, 1);

    model->self = s;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->update = &update_hooks;
    model->likelihood = &likelihood_hooks;
    model->cells = &cells_hooks;
    model->move = &move_hooks;
    model->columns = s->columns;
    model->complete = s->probabilities;
    model->costs.move = s->parts;
    group_sticks(s, model);
    return PLUGIN_OK;
}

const struct model_class model_categorical = {
    .name = "categorical",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
