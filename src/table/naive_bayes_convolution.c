/* Method "collapse", counts of few records: the model and release of table/naive_bayes_chain.c,
 * except margins of a feature alone. Then the rows (a feature's counts in one class) are
 * independent given the class counts n_i, and independent draws of the whole table can be made.
 *
 * With w_j(m) the weight of m records in a cell, prior and noise together, and
 * psi a row's factor (see table/naive_bayes_chain.c), sums over tables are
 * convolutions, made once:
 *
 *   F_l(N) = sum_m w_l(m) F_{l-1}(N - m)              levels 0..l of a row
 *   W_i(N) = w_i(N) prod_features psi(N) F_last(N)    class i with its rows
 *   G_i(N) = sum_m W_i(m) G_{i-1}(N - m)              classes 0..i
 *
 * A draw goes the other way: n_i from the last class down given that all sum to
 * n, then each row's counts from the last level down given n_i.
 *
 * Everything is kept as logarithms. Cost: cells n^2 / 2 once, O(n) a row and draw.
 */
#include "contract/collapse.h"
#include "contract/model_update.h"

enum { DRAWS };

struct recursion {
    int variables, classes, cells, width;      /* width: n + 1 */
    int *levels, *at;                          /* of a variable: its first cell */
    int *target;                               /* cell of each component */
    const double *log_weight;                  /* width a cell */
    const double *log_psi;                     /* width a row of features */
    const double *prefix, *whole, *classes_to; /* F, W, G: width each */
    double *count;                             /* state */
};

static int read_table(const struct fields *fields, struct recursion *s, double n) {
    s->variables = fields_length(fields, "levels");
    s->width = (int)n + 1;
    const double *levels = fields_vector(fields, "levels", s->variables);
    if (!levels || s->variables < 1) return PLUGIN_BAD_FIELDS;
    s->levels = plugin_memory((size_t)s->variables, sizeof *s->levels);
    s->at = plugin_memory((size_t)s->variables, sizeof *s->at);
    s->classes = (int)levels[0];
    for (int v = 0; v < s->variables; ++v) {
        s->levels[v] = (int)levels[v];
        s->at[v] = s->cells;
        s->cells += s->levels[v] * (v == 0 ? 1 : s->classes);
    }
    s->log_weight = fields_vector(fields, "log_weight", s->cells * s->width);
    s->log_psi = fields_vector(fields, "log_psi", (s->variables - 1) * s->classes * s->width);
    return s->log_weight && s->log_psi ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

/* log sum_m exp(a(m) + b(N - m)) for every N */
static void convolve(int width, const double *a, const double *b, double *out) {
    for (int n = 0; n < width; ++n) {
        double most = -INFINITY, sum = 0;
        for (int m = 0; m <= n; ++m) {
            const double term = a[m] + b[n - m];
            most = term > most ? term : most;
        }
        if (most == -INFINITY) {
            out[n] = most;
            continue;
        }
        for (int m = 0; m <= n; ++m) {
            const double term = a[m] + b[n - m] - most;
            if (term > -50) sum += exp(term);
        }
        out[n] = most + log(sum);
    }
}

static size_t tables_size(const struct recursion *s) {
    return (size_t)(s->cells + s->classes) * (size_t)s->width;
}

static void attach_tables(struct recursion *s, const double *tables) {
    const size_t block = (size_t)s->classes * (size_t)s->width;
    s->whole = tables;
    s->classes_to = tables + block;
    s->prefix = tables + block; /* the first cell of a feature is cell `classes` */
}

static void fill_tables(const struct recursion *s, double *tables) {
    const int width = s->width;
    const size_t w = (size_t)width;
    double *whole = tables, *classes_to = tables + (size_t)s->classes * w, *prefix = classes_to;
    memcpy(whole, s->log_weight, (size_t)s->classes * w * sizeof(double));
    for (int v = 1; v < s->variables; ++v) {
        for (int i = 0; i < s->classes; ++i) {
            const size_t first = (size_t)(s->at[v] + i * s->levels[v]) * w;
            const double *psi = s->log_psi + (size_t)((v - 1) * s->classes + i) * w;
            memcpy(prefix + first, s->log_weight + first, w * sizeof(double));
            for (int l = 1; l < s->levels[v]; ++l)
                convolve(width, s->log_weight + first + (size_t)l * w,
                         prefix + first + (size_t)(l - 1) * w, prefix + first + (size_t)l * w);
            const double *last = prefix + first + (size_t)(s->levels[v] - 1) * w;
            for (int n = 0; n < width; ++n) whole[(size_t)i * w + (size_t)n] += psi[n] + last[n];
        }
    }
    memcpy(classes_to, whole, w * sizeof(double));
    for (int i = 1; i < s->classes; ++i)
        convolve(width, whole + (size_t)i * w, classes_to + (size_t)(i - 1) * w,
                 classes_to + (size_t)i * w);
}

/* Fields: levels, one a variable; log_weight, n + 1 a cell; log_psi, n + 1 a row
 * of the features; target, the cell of each component; tables, from an earlier
 * call, to spare the convolutions. */
static int create(const struct fields *fields, struct collapse *c) {
    struct recursion *s = plugin_memory(1, sizeof *s);
    if (read_table(fields, s, c->n) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const double *target = fields_vector(fields, "target", c->noise.size);
    if (!target || c->model.complete != s->cells) return PLUGIN_BAD_FIELDS;
    s->target = plugin_memory((size_t)c->noise.size, sizeof *s->target);
    for (int k = 0; k < c->noise.size; ++k) s->target[k] = (int)target[k];
    const double *tables = fields_vector(fields, "tables", (int)tables_size(s));
    if (!tables) {
        double *filled = doubles(tables_size(s));
        fill_tables(s, filled);
        tables = filled;
    }
    attach_tables(s, tables);
    c->self = s;
    c->stored = s->cells;
    return PLUGIN_OK;
}

static void load(struct collapse *c) {
    struct recursion *s = c->self;
    s->count = c->store;
}

/* m with probability proportional to exp(a(m) + b(n - m)), the log of whose sum
 * is all(n) */
static int draw_part(struct rng *rng, int n, const double *a, const double *b, double all) {
    double u = rng_uniform(rng);
    int best = 0;
    double most = -INFINITY;
    for (int m = 0; m <= n; ++m) {
        const double term = a[m] + b[n - m] - all;
        if (term < -50) continue;
        u -= exp(term);
        if (u < 0) return m;
        if (term > most) {
            most = term;
            best = m;
        }
    }
    return best; /* rounding only */
}

/* counts of `levels` levels that sum to n; w and to: width each */
static void draw_row(struct rng *rng, int levels, int width, int n, const double *w,
                     const double *to, double *count) {
    for (int l = levels - 1; l > 0 && n > 0; --l) {
        const size_t at = (size_t)l * (size_t)width;
        const int m = draw_part(rng, n, w + at, to + at - width, to[at + (size_t)n]);
        count[l] = m;
        n -= m;
    }
    count[0] = n;
}

static void draw_table(struct collapse *c) {
    struct recursion *s = c->self;
    const size_t w = (size_t)s->width;
    memset(s->count, 0, (size_t)s->cells * sizeof(double));
    draw_row(c->rng, s->classes, s->width, s->width - 1, s->whole, s->classes_to, s->count);
    for (int v = 1; v < s->variables; ++v)
        for (int i = 0; i < s->classes; ++i) {
            const int cell = s->at[v] + i * s->levels[v];
            draw_row(c->rng, s->levels[v], s->width, (int)s->count[i],
                     s->log_weight + (size_t)cell * w, s->prefix + (size_t)cell * w,
                     s->count + cell);
        }
}

static void start(struct collapse *c) {
    load(c);
    draw_table(c);
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    (void)iteration;
    (void)warmup;
    const struct recursion *s = c->self;
    draw_table(c);
    collapse_count(c, DRAWS, 1);
    *accepted = 1;
    return c->model.update->rtheta(c->model.self, s->count, c->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct recursion *s = c->self;
    for (int k = 0; k < c->noise.size; ++k) out[k] = s->count[s->target[k]];
}

static double work(const struct collapse *c) {
    const struct recursion *s = c->self;
    return 5.0 * s->width * s->variables + 50.0 * s->cells;
}

static const double *tables_of(const struct collapse *c, size_t *size) {
    const struct recursion *s = c->self;
    *size = tables_size(s);
    return s->whole;
}

const struct collapse_class collapse_recursion = {
    .name = "recursion",
    .counters = {[MADE] = "made", [ACCEPTED] = "accepted"},
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .work = work,
    .tables = tables_of,
};
