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
 * theta holds a row of L levels as L - 1 sticks: see sticks.h.
 *
 * Innovations: record i has one uniform u for each variable, level = number of
 * bounds R_l = P(l or a later level), l >= 1, that lie above u. Rows of many
 * levels find their place by a guide table (Chen & Asau 1974). Where levels are
 * few, the first 16 bits of u nearly always tell the level; only where they are
 * those of a bound are the others drawn.
 *
 * Complete-data statistic: the counts of the class, then those of every feature
 * by class. Updates are conjugate. Cost per record: one uniform and one search
 * for each variable; per update one gamma variate for each probability.
 */
#include "dist.h"
#include "lanes.h"
#include "plugin.h"
#include "sticks.h"

/* up to this many levels every bound is looked at; up to this many sticks are
 * moved together */
enum { MOST_COUNTED = 16, MOST_GROUPED = 12 };

/* up to this many rows are looked up in a register; up to this many counts are
 * taken by comparison; in one draw of 64 bits there are so many of 16 */
enum { ROWS = 8, MOST_COMPARED = 32, BITS = 16, PIECES = 4 };

struct variable {
    int levels, cuts; /* cuts: levels - 1 */
    int rows;
    int known;
    int at_stick; /* first of rows * cuts in theta */
    int at_level; /* first of rows * levels in alpha and in the statistic */
    int at_bound; /* first of rows * (levels + 1) in a table */
    int buckets, at_bucket;
    int pieces;  /* whether levels are found by their first bits */
    int at_edge; /* first of cuts * ROWS in a table, if they are */
};

/* What records are drawn from, under one parameter. A row of bounds: 1, R_1,
 * ..., R_{L-1}, 0. A bucket [g, g + 1) / buckets of a guide holds the number of
 * bounds that lie above all of it. Edges: the first bits of R_l, l >= 1, by l, then
 * by row. */
struct table {
    double *bound;
    int *guide, *edge;
};

struct categorical {
    int variables, sticks, probabilities;
    struct variable *variable;
    const double *alpha;
    double *first_weight, *all_weight; /* a_l, and a_l + ... + a_L */
    double *theta;
    int *changed;
    struct table now, next;
    /* workspace */
    double *weight, *gamma;
    double *u, *keep;  /* MAX_BLOCK */
    uint16_t *piece;   /* MAX_BLOCK */
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
    int bounds = 0, buckets = 0, edges = 0;
    for (int v = 0; v < s->variables; ++v) {
        struct variable *variable = s->variable + v;
        variable->levels = (int)levels[v];
        if (variable->levels < 2) return PLUGIN_BAD_FIELDS;
        variable->cuts = variable->levels - 1;
        variable->rows = v == 0 ? 1 : s->variable[0].levels;
        variable->known = known[v] != 0;
        variable->at_stick = s->sticks;
        variable->at_level = s->probabilities;
        variable->at_bound = bounds;
        if (variable->levels > MOST_COUNTED)
            for (variable->buckets = 1; variable->buckets < variable->levels;)
                variable->buckets *= 2;
        variable->at_bucket = buckets;
        variable->pieces = variable->buckets == 0 && variable->rows <= ROWS;
        variable->at_edge = edges;
        edges += variable->pieces ? variable->cuts * ROWS : 0;
        s->sticks += variable->rows * variable->cuts;
        s->probabilities += variable->rows * variable->levels;
        bounds += variable->rows * (variable->levels + 1);
        buckets += variable->rows * variable->buckets;
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
    s->u = plugin_memory(MAX_BLOCK, sizeof(double));
    s->keep = plugin_memory(MAX_BLOCK, sizeof(double));
    s->row = plugin_memory(MAX_BLOCK, sizeof(int));
    s->row_to = plugin_memory(MAX_BLOCK, sizeof(int));
    s->index = plugin_memory(MAX_BLOCK, 1);
    s->piece = plugin_memory(MAX_BLOCK, sizeof(uint16_t));
    s->now.bound = plugin_memory((size_t)bounds, sizeof(double));
    s->next.bound = plugin_memory((size_t)bounds, sizeof(double));
    s->now.edge = plugin_memory((size_t)edges, sizeof(int));
    s->now.guide = plugin_memory((size_t)buckets, sizeof(int));
    s->next.guide = plugin_memory((size_t)buckets, sizeof(int));

    model->self = s;
    model->columns = s->variables;
    model->complete = s->probabilities;
    model->move_draws = s->variables;
    model->perturb_draws = 3 * s->variables;
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
    double *z = s->keep, *u = s->u;
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

/* ---- tables ------------------------------------------------------------- */

static void make_guide(const struct variable *variable, const double *bound, int *guide) {
    const double width = 1.0 / variable->buckets;
    for (int g = variable->buckets - 1, above = 0; g >= 0; --g) {
        while (above < variable->cuts && bound[above + 1] >= (g + 1) * width) ++above;
        guide[g] = above;
    }
}

static void make_table(const struct categorical *s, const double *theta,
                       const struct table *table) {
    double *bound = table->bound;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int r = 0; r < variable->rows; ++r) {
            sticks_to_bounds(variable->levels, theta, bound);
            if (variable->buckets > 0)
                make_guide(variable, bound,
                           table->guide + variable->at_bucket + r * variable->buckets);
            theta += variable->cuts;
            bound += variable->levels + 1;
        }
    }
}

static void make_edges(const struct categorical *s, const struct table *table) {
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        if (!variable->pieces) continue;
        const double *bound = table->bound + variable->at_bound + 1;
        for (int r = 0; r < variable->rows; ++r, bound += variable->levels + 1) {
            int *edge = table->edge + variable->at_edge + r;
            for (int l = 0; l < variable->cuts; ++l) edge[l * ROWS] = (int)(bound[l] * (1 << BITS));
        }
    }
}

static void set(void *self, const double *theta) {
    struct categorical *s = self;
    memcpy(s->theta, theta, (size_t)s->sticks * sizeof(double));
    make_table(s, theta, &s->now);
    make_edges(s, &s->now);
}

/* ---- levels from uniforms ----------------------------------------------- */

/* one row for all records */
static inline void count_bounds(int m, int cuts, const double *restrict bound,
                                const double *restrict u, double *restrict level) {
    FOR_RECORDS(i, m) level[i] = u[i] < bound[1] ? 1 : 0;
    for (int l = 2; l <= cuts; ++l) {
        const double b = bound[l];
        FOR_RECORDS(i, m) level[i] += u[i] < b ? 1 : 0;
    }
}

/* a row for each record */
static INLINE void count_row_bounds(int m, int cuts, const double *restrict bound,
                                    const int *restrict row, const double *restrict u,
                                    double *restrict level) {
    for (int i = 0; i < m; ++i) {
        const double *b = bound + row[i] * (cuts + 2);
        double above = u[i] < b[1] ? 1 : 0;
        for (int l = 2; l <= cuts; ++l) above += u[i] < b[l] ? 1 : 0;
        level[i] = above;
    }
}

static void search_bounds(const struct variable *variable, const struct table *table, int m,
                          const int *row, const double *u, double *level) {
    const double *bound = table->bound + variable->at_bound;
    const int *guide = table->guide + variable->at_bucket;
    for (int i = 0; i < m; ++i) {
        const int r = row ? row[i] : 0;
        const double *b = bound + (size_t)r * (variable->levels + 1);
        int l = guide[(size_t)r * variable->buckets + (int)(u[i] * variable->buckets)];
        while (u[i] < b[l + 1]) ++l;
        level[i] = l;
    }
}

/* Levels of variable v at the records' uniforms; `row` is NULL for the class. */
VECTOR_CLONES static void find_levels(const struct categorical *s, const struct table *table, int v,
                                      int m, const int *row, const double *u, double *level) {
    const struct variable *variable = s->variable + v;
    const double *bound = table->bound + variable->at_bound;
    if (variable->buckets > 0) {
        search_bounds(variable, table, m, row, u, level);
    } else if (!row) {
        count_bounds(m, variable->cuts, bound, u, level);
    } else {
        switch (variable->cuts) {
        case 1:
            count_row_bounds(m, 1, bound, row, u, level);
            break;
        case 2:
            count_row_bounds(m, 2, bound, row, u, level);
            break;
        case 3:
            count_row_bounds(m, 3, bound, row, u, level);
            break;
        default:
            count_row_bounds(m, variable->cuts, bound, row, u, level);
        }
    }
}

/* ---- levels from the first bits of uniforms ------------------------------------- */

/* level[i] = how many edges of its row lie above piece[i]; returns whether some
 * piece is an edge, which decides nothing. `row` is NULL for the class. */
static INLINE int count_edges(int m, int cuts, const int *edge, const int *row,
                              const uint16_t *piece, int *level) {
    int ties = 0;
#if HAS_LOOKUP
    ints tie = {0};
    for (int i = 0; i < m; i += INTS) {
        const ints first = INTS_OF(piece + i);
        ints above = {0};
        const ints r = row ? INTS_LOAD(row + i) : above;
        for (int l = 0; l < cuts; ++l) {
            const ints bound = INTS_LOOKUP(INTS_LOAD(edge + l * ROWS), r);
            above -= first < bound;
            tie |= first == bound;
        }
        INTS_STORE(level + i, above);
    }
    for (int l = 0; l < INTS; ++l) ties |= tie[l];
#else
    for (int i = 0; i < m; ++i) {
        const int *bound = edge + (row ? row[i] : 0);
        int above = 0;
        for (int l = 0; l < cuts; ++l) {
            above += piece[i] < bound[l * ROWS];
            ties |= piece[i] == bound[l * ROWS];
        }
        level[i] = above;
    }
#endif
    return ties;
}

VECTOR_CLONES static int find_edges(const struct variable *variable, const int *edge, int m,
                                    const int *row, const uint16_t *piece, int *level) {
    if (!row) return count_edges(m, variable->cuts, edge, NULL, piece, level);
    if (variable->cuts == 1) return count_edges(m, 1, edge, row, piece, level);
    if (variable->cuts == 2) return count_edges(m, 2, edge, row, piece, level);
    return count_edges(m, variable->cuts, edge, row, piece, level);
}

/* draws the rest of the uniforms whose first bits are an edge */
NOINLINE static void break_ties(const struct categorical *s, const struct variable *variable,
                                struct rng *rng, int m, const int *row, const uint16_t *piece,
                                int *level) {
    for (int i = 0; i < m; ++i) {
        const int r = row ? row[i] : 0;
        const int *edge = s->now.edge + variable->at_edge + r;
        const double *bound = s->now.bound + variable->at_bound + r * (variable->levels + 1);
        int tie = 0, above = 0;
        for (int l = 0; l < variable->cuts; ++l) tie |= piece[i] == edge[l * ROWS];
        if (!tie) continue;
        const double u = (piece[i] + rng_uniform(rng)) / (1 << BITS);
        for (int l = 1; l <= variable->cuts; ++l) above += u < bound[l];
        level[i] = above;
    }
}

static void draw_levels(struct categorical *s, const struct variable *variable, struct rng *rng,
                        int m, const int *row, int *level) {
    rng_fill_quarters(rng, (m + PIECES - 1) / PIECES, s->piece);
    const int *edge = s->now.edge + variable->at_edge;
    if (find_edges(variable, edge, m, row, s->piece, level))
        break_ties(s, variable, rng, m, row, s->piece, level);
}

static void read_rows(int m, const double *restrict class, int *restrict row) {
    FOR_RECORDS(i, m) row[i] = (int)class[i];
}

/* ---- records ------------------------------------------------------------ */

VECTOR_CLONES static void write_levels(int m, const int *restrict level, double *restrict x) {
    FOR_RECORDS(i, m) x[i] = level[i];
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    struct categorical *s = self;
    for (int v = 0; v < s->variables; ++v) {
        const int *row = v == 0 ? NULL : s->row;
        if (s->variable[v].pieces) {
            int *level = v == 0 ? s->row : s->row_to;
            draw_levels(s, s->variable + v, rng, m, row, level);
            write_levels(m, level, x[v]);
            continue;
        }
        rng_fill_uniform(rng, m, s->u);
        find_levels(s, &s->now, v, m, row, s->u, x[v]);
        if (v == 0 && s->variables > 1) read_rows(m, x[0], s->row);
    }
}

/* Splits uniforms in two: keep[i] says whether u[i] < rho, and u[i] becomes a
 * uniform again. */
VECTOR_CLONES static void split_uniforms(int m, double rho, double *restrict u,
                                         double *restrict keep) {
    const double below_one = 1 - 0x1p-53, up = 1 / rho, down = 1 / (1 - rho);
    FOR_RECORDS(i, m) {
        const double old = u[i] * up, fresh = (u[i] - rho) * down;
        const double value = u[i] < rho ? old : fresh;
        keep[i] = u[i] < rho ? 1 : 0;
        u[i] = value < below_one ? value : below_one;
    }
}

/* a level stays if it is to be kept and the class, if there is one, is the old */
VECTOR_CLONES static void keep_levels(int m, const double *restrict keep,
                                      const double *restrict class,
                                      const double *restrict class_new, const double *restrict x,
                                      double *restrict x_new) {
    FOR_RECORDS(i, m) {
        const double same = class[i] == class_new[i] ? keep[i] : 0, fresh = x_new[i], old = x[i];
        x_new[i] = same > 0 ? old : fresh;
    }
}

/* A level is kept with probability rho, else drawn afresh; a feature only if the
 * class stays what it was. One uniform decides and draws. */
static void perturb(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct categorical *s = self;
    for (int v = 0; v < s->variables; ++v) {
        rng_fill_uniform(rng, m, s->u);
        split_uniforms(m, rho, s->u, s->keep);
        find_levels(s, &s->now, v, m, v == 0 ? NULL : s->row, s->u, x_new[v]);
        keep_levels(m, s->keep, x[0], v == 0 ? x[0] : x_new[0], x[v], x_new[v]);
        if (v == 0) read_rows(m, x_new[0], s->row);
    }
}

/* ---- non-centred move: u uniform where it gives the old level --------------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct categorical *s = self;
    make_table(s, theta_new, &s->next);
    int class_changed = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const size_t length = (size_t)variable->rows * (size_t)variable->cuts * sizeof(double);
        const int at = variable->at_stick;
        changed[v] = class_changed || memcmp(s->theta + at, theta_new + at, length) != 0;
        s->changed[v] = changed[v];
        if (v == 0) class_changed = changed[0];
    }
}

/* Rounding may put u on the upper bound, which belongs to another level. */
static void place_uniforms(const struct categorical *s, int v, int m, const int *row,
                           const double *restrict x, double *restrict u) {
    const struct variable *variable = s->variable + v;
    const double *bound = s->now.bound + variable->at_bound;
    const int width = variable->levels + 1;
    for (int i = 0; i < m; ++i) {
        const double *b = bound + (int)x[i] + (row ? row[i] * width : 0);
        const double high = b[0], low = b[1], inside = low + u[i] * (high - low);
        u[i] = inside < high ? inside : low;
    }
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct categorical *s = self;
    read_rows(m, x[0], s->row);
    const int *row_to = s->row;
    for (int v = 0; v < s->variables; ++v) {
        if (!s->changed[v]) continue;
        rng_fill_uniform(rng, m, s->u);
        place_uniforms(s, v, m, v == 0 ? NULL : s->row, x[v], s->u);
        find_levels(s, &s->next, v, m, v == 0 ? NULL : row_to, s->u, x_new[v]);
        if (v == 0) {
            read_rows(m, x_new[0], s->row_to);
            row_to = s->row_to;
        }
    }
}

/* ---- complete-data statistic ------------------------------------------------ */

/* count[k] += sign for the index k of every record. Where counts are few, each is
 * compared with all records, in bytes: faster than steps that wait for one another.
 * wide, narrow: MAX_BLOCK. */
static INLINE void tally(int m, double sign, int counts, int *restrict wide,
                         uint8_t *restrict narrow, double *restrict count) {
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
            count[k] += sign * bytes_sum(&hits);
        }
        return;
    }
#else
    (void)counts, (void)narrow;
#endif
    for (int i = 0; i < m; ++i) count[wide[i]] += sign;
}

VECTOR_CLONES static void add(void *self, double sign, int m, const double *const *x, double *c) {
    struct categorical *s = self;
    int *restrict index = s->row;
    const double *restrict class = x[0];
    FOR_RECORDS(i, m) index[i] = (int)class[i];
    tally(m, sign, s->variable[0].levels, index, s->index, c);
    for (int v = 1; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const double levels = variable->levels, *restrict level = x[v];
        FOR_RECORDS(i, m) index[i] = (int)(class[i] * levels + level[i]);
        tally(m, sign, variable->rows * variable->levels, index, s->index, c + variable->at_level);
    }
}

const struct model_class model_categorical = {
    .name = "categorical",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .set = set,
    .rrecords = rrecords,
    .perturb = perturb,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
};
