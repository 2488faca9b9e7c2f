/* Records of codes 0, 1, ..., whose combinations, the cells, have probabilities that a model
 * computes from theta (its hook log_cells). All hooks of such a model that see records are here.
 *
 * Innovations: record i has one uniform (model/categorical_draw.c). Complete-data statistic: the
 * counts of the cells. Cost: one uniform a record and one search.
 */
#include "model/records_of_cells.h"
#include "contract/model_density.h"
#include "contract/model_move.h"
#include "contract/model_statistic.h"

static int combinations_of(const struct cell_records *s) {
    int all = 1;
    for (int v = 0; v < s->columns; ++v) all *= s->size[v];
    return all;
}

static void read_cells(struct cell_records *s) {
    const int all = combinations_of(s);
    s->cell_of = plugin_memory((size_t)all, sizeof *s->cell_of);
    for (int k = 0; k < all; ++k) s->cell_of[k] = -1;
    for (int k = 0; k < s->cells; ++k) {
        int combination = 0;
        for (int v = 0; v < s->columns; ++v)
            combination = combination * s->size[v] + (int)s->code[(size_t)k * s->columns + v];
        s->cell_of[combination] = k;
    }
}

static void find_sticks(struct cell_records *s, const double *log_p) {
    double rest = log_p[s->cells - 1];
    for (int k = s->cells - 2; k >= 0; --k) {
        const double one = log_p[k], large = one > rest ? one : rest;
        s->stick[k] = one - rest;
        rest = large + log1p(exp(-fabs(one - rest)));
    }
}

void cell_records_set(void *self, const double *theta) {
    struct cell_records *s = self;
    s->log_cells(s, theta, s->now);
    find_sticks(s, s->now);
    levels_set(&s->of, s->stick);
}

static const double *read_cells_of(const struct cell_records *s, int m, const double *const *x,
                                   double *out) {
    memset(out, 0, (size_t)m * sizeof *out);
    for (int v = 0; v < s->columns; ++v) {
        const double size = s->size[v], *restrict code = x[v];
        for (int i = 0; i < m; ++i) out[i] = out[i] * size + code[i];
    }
    for (int i = 0; i < m; ++i) out[i] = s->cell_of[(int)out[i]];
    return out;
}

static void write_codes(const struct cell_records *s, int m, const double *cell, double *const *x) {
    for (int v = 0; v < s->columns; ++v) {
        double *restrict column = x[v];
        for (int i = 0; i < m; ++i) column[i] = s->code[(size_t)cell[i] * (size_t)s->columns + v];
    }
}

void cell_records_draw(void *self, struct rng *rng, int m, double *const *x) {
    struct cell_records *s = self;
    levels_draw(&s->of, &s->work, rng, m, NULL, s->place, s->level);
    write_codes(s, m, s->level, x);
}

static void set_move(void *self, const double *theta_new, int *changed) {
    struct cell_records *s = self;
    s->log_cells(s, theta_new, s->log_p);
    find_sticks(s, s->log_p);
    levels_set_next(&s->of, s->stick);
    for (int v = 0; v < s->columns; ++v) changed[v] = 1;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    struct cell_records *s = self;
    levels_move(&s->of, &s->work, rng, m, NULL, NULL, read_cells_of(s, m, x, s->level),
                s->level_to);
    write_codes(s, m, s->level_to, x_new);
}

static void add(void *self, int m, const double *const *x, double *c) {
    struct cell_records *s = self;
    const double *cell = read_cells_of(s, m, x, s->level);
    for (int i = 0; i < m; ++i) c[(int)cell[i]] += 1;
}

static double log_density(void *self, int m, const double *const *x) {
    struct cell_records *s = self;
    const double *cell = read_cells_of(s, m, x, s->level);
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += s->now[(int)cell[i]];
    return sum;
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_density density_hooks = {.log_density = log_density};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

int cell_records_create(struct cell_records *s, const struct fields *fields,
                        void (*log_cells)(void *, const double *, double *), struct model *model) {
    s->columns = fields_length(fields, "columns");
    const double *size = fields_vector(fields, "columns", s->columns);
    const int codes = fields_length(fields, "code");
    s->code = fields_vector(fields, "code", codes);
    if (s->columns < 1 || !size || !s->code || codes % s->columns != 0) return PLUGIN_BAD_FIELDS;
    s->cells = codes / s->columns;
    if (s->cells < 2) return PLUGIN_BAD_FIELDS;
    s->size = plugin_memory((size_t)s->columns, sizeof *s->size);
    for (int v = 0; v < s->columns; ++v) s->size[v] = (int)size[v];
    read_cells(s);

    const size_t cells = (size_t)s->cells;
    s->log_cells = log_cells;
    DOUBLES(cells, &s->now, &s->log_p, &s->stick);
    s->of = levels_new(s->cells, 1);
    s->work = level_work_new();
    DOUBLES(MAX_BLOCK, &s->level, &s->level_to);
    s->place = plugin_memory(MAX_BLOCK, sizeof(int));

    model->self = s;
    model->statistic = &statistic_hooks;
    model->density = &density_hooks;
    model->move = &move_hooks;
    model->columns = s->columns;
    model->complete = s->cells;
    model->costs.records = model->costs.move = 1;
    model->costs.density = 1;
    return PLUGIN_OK;
}
