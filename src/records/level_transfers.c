/* Method "augment": transfers of records between two levels of a factor.
 *
 * Given the probabilities of a factor's levels, how many records have one varies by sqrt(n p),
 * however wide the noise about that count is: the two hold one another fast. So the probabilities
 * are integrated out. With Dirichlet weights alpha and counts N, m records go from level a to level
 * b, chosen uniformly, the innovations of all else held fixed (relevel() in contract/plugin.h);
 * with the density of the levels' sequence, and the choice of the records there and back,
 *
 *   accept with [Gamma(alpha_a + N_a - m) / (N_a - m)!] [Gamma(alpha_b + N_b + m) / (N_b + m)!]
 *               eta(z | s') / the same before,
 *
 * whose first part is 1 under a uniform prior. theta's probabilities must be drawn after it.
 *
 * Factors that depend on each other, or other columns on them, are one factor here: their
 * cross-table, whose weights alpha are those of the current theta.
 *
 * The records are sorted by level, the levels in an order that is drawn anew each time; transfers
 * go between neighbours, where a boundary moves. m is geometric-like, its scale learned in warmup,
 * one for each factor.
 *
 * Cost: O(n) to sort for each factor; O(m components) a transfer. No allocation but in
 * prepare().
 */
#include "records/augment_internal.h"
#include "records/move.h"

/* transfers between two neighbours in an iteration; with more of them than that, one */
enum { TRANSFERS = 8, FEW_PAIRS = 60 };

/* of the cells of a cross-table, which are next to few of the others in one order */
enum { ORDERS = 4 };

/* Up to so many a pass for each is the faster way to sort records by their level. */
enum { FEW_LEVELS = 4 };

void augment_make_level_room(struct augment *a) {
    struct regroup *g = &a->regroup;
    g->code = plugin_memory((size_t)a->stride, sizeof *g->code);
    g->sorted = plugin_memory((size_t)a->stride + 1, sizeof *g->sorted);
}

static void prepare(struct augment *a) {
    const struct model *model = &a->model;
    if (!augment_has_levels(a)) return;
    struct regroup *g = &a->regroup;
    int levels = 0;
    for (int f = 0; f < augment_factors(model); ++f)
        if (augment_factor(model, f)->levels > levels) levels = augment_factor(model, f)->levels;
    augment_make_level_room(a);
    g->level = plugin_memory(MAX_BLOCK, sizeof *g->level);
    g->order = plugin_memory((size_t)levels, sizeof *g->order);
    g->place = plugin_memory((size_t)levels, sizeof *g->place);
    g->first = plugin_memory((size_t)levels + 1, sizeof *g->first);
    double ***const columns[] = {&g->before, &g->after};
    for (int k = 0; k < 2; ++k) {
        *columns[k] = plugin_memory((size_t)model->columns, sizeof **columns[k]);
        for (int v = 0; v < model->columns; ++v)
            (*columns[k])[v] = plugin_memory(MOST_REGROUPED, sizeof(double));
    }
}

/* The place of each record's level, to `code`. */
static void read_places(struct augment *a, int f) {
    struct regroup *g = &a->regroup;
    const struct model *model = &a->model;
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = augment_block_at(a, start, MAX_BLOCK);
        model->class->read_levels(model->self, f, m, augment_read_only(a->x_at), g->level);
        for (int i = 0; i < m; ++i) g->code[start + i] = g->place[(int)g->level[i]];
    }
}

/* A pass for each level, of which no record waits for the one before it. */
static void sort_few(struct augment *a, int levels) {
    struct regroup *g = &a->regroup;
    const int n = (int)a->n;
    int at = 0;
    for (int k = 0; k < levels; ++k) {
        g->first[k] = at;
        for (int i = 0; i < n; ++i) {
            g->sorted[at] = i;
            at += g->code[i] == k;
        }
    }
    g->first[levels] = n;
}

/* Counting sort */
static void sort_many(struct augment *a, int levels) {
    struct regroup *g = &a->regroup;
    memset(g->first, 0, ((size_t)levels + 1) * sizeof *g->first);
    for (ptrdiff_t i = 0; i < a->n; ++i) g->first[g->code[i]] += 1;
    int end = 0; /* of each level, then its first as records are put before it */
    for (int k = 0; k <= levels; ++k) g->first[k] = end += k < levels ? g->first[k] : 0;
    for (ptrdiff_t i = a->n - 1; i >= 0; --i) g->sorted[--g->first[g->code[i]]] = (int)i;
}

/* Records of the level at place k stand from first[k] to before first[k + 1]. */
void augment_sort_levels(struct augment *a, int f) {
    struct regroup *g = &a->regroup;
    const int levels = augment_factor(&a->model, f)->levels;
    for (int l = 0; l < levels; ++l) g->order[l] = l;
    for (int l = levels - 1; l > 0; --l) {
        const int j = (int)augment_choose(a->rng, l + 1), kept = g->order[j];
        g->order[j] = g->order[l];
        g->order[l] = kept;
    }
    for (int k = 0; k < levels; ++k) g->place[g->order[k]] = k;
    read_places(a, f);
    (levels <= FEW_LEVELS ? sort_few : sort_many)(a, levels);
}

int *augment_level_records(struct augment *a, int level) {
    struct regroup *g = &a->regroup;
    return g->sorted + g->first[g->place[level]];
}

void augment_choose_records(struct rng *rng, int *list, int count, int m, int to_end) {
    for (int t = 0; t < m; ++t) {
        const int left = (int)augment_choose(rng, count - t);
        const int from = to_end ? left : t + left, to = to_end ? count - 1 - t : t;
        const int kept = list[from];
        list[from] = list[to];
        list[to] = kept;
    }
}

/* log Gamma(alpha + count) / count! */
static double log_weight(double alpha, double count) {
    return lgamma(alpha + count) - lgamma(1 + count);
}

static void gather(const struct augment *a, const int *list, int m, double *const *out) {
    for (int v = 0; v < a->model.columns; ++v) {
        const double *column = a->x + v * a->stride;
        for (int i = 0; i < m; ++i) out[v][i] = column[list[i]];
    }
}

static void relevel(struct augment *a, int f, int from, int to, int m) {
    const struct model *model = &a->model;
    struct regroup *g = &a->regroup;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = m - start < MAX_BLOCK ? m - start : MAX_BLOCK;
        for (int v = 0; v < model->columns; ++v) {
            a->at_chunk[v] = g->before[v] + start;
            a->to_chunk[v] = g->after[v] + start;
        }
        model->class->relevel(model->self, a->rng, f, from, to, chunk,
                              augment_read_only(a->at_chunk), a->to_chunk);
    }
}

/* residuals += sign * weight * the m records' totals */
static void add_residuals(struct augment *a, int m, double *const *x, double sign) {
    augment_clear_total(a);
    (void)augment_add_totals(a, 0, m, augment_read_only(x));
    for (int j = 0; j < a->dense; ++j) a->candidate[j] += sign * a->weight[j] * a->total[j];
    for (int j = 0; j < a->cells; ++j)
        a->candidate_cells[j] += sign * a->weight[a->dense + j] * a->total[a->dense + j];
}

static void add_complete(struct augment *a, int m, double *const *x, double *c) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = m - start < MAX_BLOCK ? m - start : MAX_BLOCK;
        for (int v = 0; v < model->columns; ++v) a->at_chunk[v] = x[v] + start;
        model->class->add(model->self, chunk, augment_read_only(a->at_chunk), c);
    }
}

static void keep(struct augment *a, const int *list, int m) {
    const struct model *model = &a->model;
    const struct regroup *g = &a->regroup;
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
    add_complete(a, m, g->after, a->complete);
    memset(a->complete_after, 0, (size_t)model->complete * sizeof(double));
    add_complete(a, m, g->before, a->complete_after);
    for (int i = 0; i < model->complete; ++i) a->complete[i] -= a->complete_after[i];
    for (int v = 0; v < model->columns; ++v) {
        double *column = a->x + v * a->stride;
        for (int i = 0; i < m; ++i) column[list[i]] = g->after[v][i];
    }
}

/* One transfer between the levels at places k and k + 1, one way or the other. */
static int transfer(struct augment *a, int f, int k, int m) {
    struct regroup *g = &a->regroup;
    const double *alpha = augment_factor(&a->model, f)->alpha;
    const int up = (int)(rng_bits(a->rng) >> 63);
    const int from = g->order[up ? k : k + 1], to = g->order[up ? k + 1 : k];
    const int own = g->first[k + 1] - g->first[k], next = g->first[k + 2] - g->first[k + 1];
    const int out = up ? own : next, in = up ? next : own;
    if (m > out) return 0;
    augment_choose_records(a->rng, g->sorted + g->first[up ? k : k + 1], out, m, up);
    const int *list = g->sorted + g->first[k + 1] - (up ? m : 0);
    gather(a, list, m, g->before);
    relevel(a, f, from, to, m);
    memcpy(a->candidate, a->residual, (size_t)a->dense * sizeof(double));
    memcpy(a->candidate_cells, a->cell_residual, (size_t)a->cells * sizeof(double));
    add_residuals(a, m, g->before, 1);
    add_residuals(a, m, g->after, -1);
    const double rise = augment_total_energy(a, a->candidate, a->candidate_cells) -
                        augment_total_energy(a, a->residual, a->cell_residual);
    const double log_ratio = log_weight(alpha[from], out - m) - log_weight(alpha[from], out) +
                             log_weight(alpha[to], in + m) - log_weight(alpha[to], in) -
                             *a->adapt.temper * rise;
    a->count.work += 2 * a->pass_work * m / (double)a->n;
    if (!(-log_ratio < rng_exponential(a->rng))) return 0;
    keep(a, list, m);
    g->first[k + 1] += up ? -m : m;
    return 1;
}

/* `each` transfers between neighbours in an order that is drawn. */
static void pass_levels(struct augment *a, int f, int each, int learning) {
    struct regroup *g = &a->regroup;
    augment_sort_levels(a, f);
    a->count.work += a->column_work;
    for (int k = 0; k + 1 < augment_factor(&a->model, f)->levels; ++k)
        for (int t = 0; t < each; ++t) {
            const int m = augment_draw_count(a->rng, g->scale[f], MOST_REGROUPED);
            const int accepted = transfer(a, f, k, m);
            if (learning) units_learn(g->scale + f, g->tries + f, accepted, MOST_REGROUPED);
            a->count.regrouped_made += 1;
            a->count.regrouped_accepted += accepted;
        }
}

/* Steps of n that draw records anew draw their levels, too: then these rest now and then. */
static void make(struct augment *a, struct round *round) {
    const struct model *model = &a->model;
    const int rests = augment_redraws(a) && round->iteration % 2 == 1;
    if (!augment_has_levels(a) || round->empty || rests) return;
    for (int f = 0; f < augment_factors(model); ++f) {
        const int many = augment_factor(model, f)->levels > FEW_PAIRS;
        for (int k = 0; k < (model->joint && !many ? ORDERS : 1); ++k)
            pass_levels(a, f,
                        many           ? 1
                        : model->joint ? TRANSFERS / ORDERS
                                       : TRANSFERS,
                        round->learning);
    }
}

/* scales, and how often each was learned */
static size_t stored(const struct augment *a, int k) {
    (void)k;
    return augment_has_levels(a) ? 2 * (size_t)augment_factors(&a->model) : 0;
}

static void attach(struct augment *a, int k, double *store) {
    (void)k;
    a->regroup.scale = store;
    a->regroup.tries = store + augment_factors(&a->model);
}

static void start(struct augment *a, int search, const double *sd) {
    (void)search;
    (void)sd;
    for (int f = 0; augment_has_levels(a) && f < augment_factors(&a->model); ++f)
        a->regroup.scale[f] = 1;
}

static void make_room(struct augment *a) {
    if (augment_has_levels(a) || a->resize) augment_make_level_room(a);
}

const struct move move_levels = {
    .phase = MOVE_AFTER,
    .store = {"levels"},
    .prepare = prepare,
    .make_room = make_room,
    .stored = stored,
    .attach = attach,
    .start = start,
    .make = make,
};
