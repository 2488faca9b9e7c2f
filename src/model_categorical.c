/* Model "categorical": columns of codes 0, 1, ..., drawn part after part. A part has
 * one column or several, its children, whose possible combinations are its levels,
 * and given the columns that are its parents it is independent of all that came before.
 *
 *   a class, then features given it   naive Bayes (Ju et al. 2022, section 4 and equations
 *                                     S3 to S6); a class alone: categorical, Bernoulli
 *   one part of all columns           a saturated table; combinations may be left out
 *
 * A *row* is one vector of probabilities: a part has one for each combination of its
 * parents' codes. It has a Dirichlet prior or is known.
 *
 * theta holds a row of L levels as L - 1 sticks (sticks.h), row after row. Innovations:
 * record i has one uniform for each part (levels.c).
 *
 * Complete-data statistic: the counts of every part's levels, row by row. Updates are
 * conjugate. Cost per record: one uniform and one search for each part; per update one
 * gamma variate for each probability.
 */
#include "dist.h"
#include "lanes.h"
#include "levels.h"
#include "plugin.h"
#include "sticks.h"

/* up to this many sticks are moved together; up to this many counts are taken by
 * comparison */
enum { MOST_GROUPED = 12, MOST_COMPARED = 32 };

struct part {
    struct levels of; /* the part's levels, by row */
    int levels, cuts, rows;
    int known;
    int at_stick; /* first of rows * cuts in theta */
    int at_level; /* first of rows * levels in alpha and in the statistic */
    int children, parents;
    int *child, *parent; /* columns */
    /* with several children: their codes, one after the other, level by level; and the
     * level of each combination of codes, the last child's the fastest */
    const double *code;
    int *level_of;
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
    double *level, *level_to, *parent, *parent_to;
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
            stick = plugin_memory((size_t)(part->rows * part->cuts), sizeof(double));
            for (int r = 0; r < part->rows; ++r)
                sticks_from_probabilities(part->levels,
                                          probability + part->at_level + r * part->levels,
                                          stick + r * part->cuts);
        }
        block[k] = (struct theta_block){.name = k == 0 ? "class" : "feature",
                                        .transform = TRANSFORM_STICKS,
                                        .size = part->levels,
                                        .rows = part->rows,
                                        .known = stick,
                                        .reports_last = reports_last};
    }
    model_describe(model, s->parts, block);
}

/* Moves *at past `count` columns of a list of them. */
static int *read_columns(const double **at, int count) {
    int *column = plugin_memory((size_t)count, sizeof *column);
    for (int k = 0; k < count; ++k) column[k] = (int)*(*at)++;
    return column;
}

static int product(const struct categorical *s, int count, const int *column) {
    int size = 1;
    for (int k = 0; k < count; ++k) size *= s->size[column[k]];
    return size;
}

static void read_codes(const struct categorical *s, struct part *part, const double **at) {
    const int all = product(s, part->children, part->child);
    part->code = *at;
    part->level_of = plugin_memory((size_t)all, sizeof *part->level_of);
    for (int l = 0; l < part->levels; ++l) {
        int combination = 0;
        for (int k = 0; k < part->children; ++k)
            combination = combination * s->size[part->child[k]] + (int)*(*at)++;
        part->level_of[combination] = l;
    }
}

static int read_parts(const struct fields *fields, struct categorical *s) {
    s->columns = fields_length(fields, "columns");
    s->parts = fields_length(fields, "levels");
    const double *columns = fields_vector(fields, "columns", s->columns);
    const double *levels = fields_vector(fields, "levels", s->parts);
    const double *known = fields_vector(fields, "known", s->parts);
    const double *children = fields_vector(fields, "children", s->parts);
    const double *parents = fields_vector(fields, "parents", s->parts);
    const double *child = fields_vector(fields, "child", -1);
    const double *parent = fields_vector(fields, "parent", -1);
    const double *code = fields_vector(fields, "code", -1);
    if (!columns || !levels || !known || !children || !parents || !child || !parent || !code ||
        s->parts < 1)
        return PLUGIN_BAD_FIELDS;
    s->size = plugin_memory((size_t)s->columns, sizeof *s->size);
    for (int c = 0; c < s->columns; ++c) s->size[c] = (int)columns[c];
    s->part = plugin_memory((size_t)s->parts, sizeof *s->part);
    for (int k = 0; k < s->parts; ++k) {
        struct part *part = s->part + k;
        part->levels = (int)levels[k];
        if (part->levels < 2) return PLUGIN_BAD_FIELDS;
        part->cuts = part->levels - 1;
        part->known = known[k] != 0;
        part->children = (int)children[k];
        part->parents = (int)parents[k];
        part->child = read_columns(&child, part->children);
        part->parent = read_columns(&parent, part->parents);
        part->rows = product(s, part->parents, part->parent);
        if (part->children > 1) read_codes(s, part, &code);
        part->at_stick = s->sticks;
        part->at_level = s->probabilities;
        part->of = levels_new(part->levels, part->rows);
        s->sticks += part->rows * part->cuts;
        s->probabilities += part->rows * part->levels;
    }
    return PLUGIN_OK;
}

/* A part's sticks are moved together, up to a number. */
static void group_sticks(struct categorical *s, struct model *model) {
    model->group = plugin_memory((size_t)s->sticks, sizeof(int));
    int in_group = 0, moving = 0;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        for (int r = 0; r < part->rows; ++r) {
            const double *alpha = s->alpha + part->at_level + r * part->levels;
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
                    ++model->groups;
                }
                model->group[moving++] = model->groups - 1;
            }
        }
    }
}

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

    s->first_weight = plugin_memory((size_t)s->sticks, sizeof(double));
    s->all_weight = plugin_memory((size_t)s->sticks, sizeof(double));
    s->theta = plugin_memory((size_t)s->sticks, sizeof(double));
    s->changed = plugin_memory((size_t)s->columns, sizeof(int));
    s->weight = plugin_memory((size_t)s->probabilities, sizeof(double));
    s->gamma = plugin_memory((size_t)s->probabilities, sizeof(double));
    s->work = level_work_new();
    s->row = plugin_memory(MAX_BLOCK, sizeof(int));
    s->row_to = plugin_memory(MAX_BLOCK, sizeof(int));
    double **const work[] = {&s->level, &s->level_to, &s->parent, &s->parent_to};
    for (int k = 0; k < 4; ++k) *work[k] = plugin_memory(MAX_BLOCK, sizeof(double));
    s->mixed = plugin_memory((size_t)s->columns, sizeof *s->mixed);
    s->index = plugin_memory(MAX_BLOCK, 1);

    model->self = s;
    model->columns = s->columns;
    model->complete = s->probabilities;
    model->costs.move = s->parts;
    model->costs.refresh = 3 * s->parts;
    group_sticks(s, model);
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
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (part->known) continue;
        const int first = part->at_level, total = part->rows * part->levels;
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
        for (int r = 0; r < part->rows; ++r, gamma += part->levels, stick += part->cuts)
            if (plain)
                stack(part->levels, gamma, stick);
            else
                stack_logs(part->levels, gamma, stick);
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

/* A stick's counts are those of its level, and of the later ones. */
static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    const struct categorical *s = self;
    double log_density = 0;
    (void)n;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        for (int r = 0; r < part->rows; ++r) {
            const double *count = c + part->at_level + r * part->levels;
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
        for (int r = 0; r < part->rows; ++r) {
            double *row = log_p + part->at_level + r * part->levels;
            sticks_to_probabilities(part->levels, theta + part->at_stick + r * part->cuts, row);
            for (int l = 0; l < part->levels; ++l) row[l] = log(row[l]);
        }
    }
}

static double dprior(void *self, const double *theta) {
    const struct categorical *s = self;
    double log_density = 0;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (part->known) continue;
        const int end = part->at_stick + part->rows * part->cuts;
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
        const int end = part->at_stick + part->rows * part->cuts;
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

/* Combinations of some columns' codes, the last column's the fastest. A single column stands
 * for itself; else they are written to `out`. */
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
    if (part->parents == 0) return NULL;
    levels_codes(m, combine(s, m, part->parents, part->parent, x, s->parent), row);
    return row;
}

/* Levels from the children's codes, and back. An only child's code is the level. */
static const double *read_level(const struct categorical *s, const struct part *part, int m,
                                const double *const *x, double *out) {
    const double *at = combine(s, m, part->children, part->child, x, out);
    if (part->children > 1)
        for (int i = 0; i < m; ++i) out[i] = part->level_of[(int)out[i]];
    return at;
}

static double *level_column(const struct part *part, double *const *x, double *out) {
    return part->children == 1 ? x[part->child[0]] : out;
}

static void write_level(const struct part *part, int m, const double *level, double *const *x) {
    if (part->children == 1) return;
    for (int k = 0; k < part->children; ++k) {
        const double *code = part->code + k;
        double *restrict column = x[part->child[k]];
        for (int i = 0; i < m; ++i) column[i] = code[(int)level[i] * part->children];
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

/* A level is kept only if the parents stay what they were. */
static void refresh(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct categorical *s = self;
    const double *const *fresh = (const double *const *)x_new;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        const int *row = find_rows(s, part, m, fresh, s->row);
        const double *before = NULL, *after = NULL;
        if (row) {
            before = combine(s, m, part->parents, part->parent, x, s->parent);
            after = combine(s, m, part->parents, part->parent, fresh, s->parent_to);
        }
        double *level = level_column(part, x_new, s->level_to);
        levels_refresh(&part->of, &s->work, rho, rng, m, row, before, after,
                       read_level(s, part, m, x, s->level), level);
        write_level(part, m, level, x_new);
    }
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct categorical *s = self;
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        const size_t length = (size_t)part->rows * (size_t)part->cuts * sizeof(double);
        const int at = part->at_stick;
        levels_set_next(&part->of, theta_new + at);
        int differs = memcmp(s->theta + at, theta_new + at, length) != 0;
        for (int p = 0; p < part->parents; ++p) differs |= s->changed[part->parent[p]];
        for (int c = 0; c < part->children; ++c)
            changed[part->child[c]] = s->changed[part->child[c]] = differs;
    }
}

/* Parents come before their children: what they are is in x_new if they changed. */
static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct categorical *s = self;
    for (int v = 0; v < s->columns; ++v) s->mixed[v] = s->changed[v] ? x_new[v] : x[v];
    for (int k = 0; k < s->parts; ++k) {
        const struct part *part = s->part + k;
        if (!s->changed[part->child[0]]) continue;
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
        if (part->parents == 0)
            levels_codes(m, level, s->row);
        else
            index_of(m, part->levels, combine(s, m, part->parents, part->parent, x, s->parent),
                     level, s->row);
        tally(m, part->rows * part->levels, s->row, s->index, c + part->at_level);
    }
}

const struct model_class model_categorical = {
    .name = "categorical",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .prior_gradient = prior_gradient,
    .set = set,
    .rrecords = rrecords,
    .refresh = refresh,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
    .log_likelihood = log_likelihood,
    .log_cells = log_cells,
};
