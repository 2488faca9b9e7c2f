/* Method "augment": transfers of records between two levels of a factor.
 *
 * Given the probabilities of a factor's levels, the number of records at a level varies by sqrt(n
 * p), however wide the noise of that count: the two constrain each other strongly. So the
 * probabilities are integrated out. With Dirichlet weights alpha and counts N, m records go from
 * level a to level b, chosen uniformly, all other innovations held fixed (relevel() in
 * contract/model_levels.h); with the density of the levels' sequence, and the choice of the records
 * in both directions,
 *
 *   accept with [Gamma(alpha_a + N_a - m) / (N_a - m)!] [Gamma(alpha_b + N_b + m) / (N_b + m)!]
 *               eta(z | s') / the same before,
 *
 * whose first part is 1 under a uniform prior. theta's probabilities must be drawn after it.
 *
 * Dependent factors, and factors on which other columns depend, are treated as one factor: their
 * cross-table, whose weights alpha come from the current theta.
 *
 * The records are sorted by level, the levels in an order that is drawn each time; transfers are
 * between neighbours and move the boundary. m is geometric-like, its scale learned in warmup, one
 * for each factor.
 *
 * Cost: O(n) to sort for each factor; O(m components) a transfer. No allocation except in
 * prepare().
 */
#include "contract/model_statistic.h"
#include "records/augment_internal.h"

/* so many records at once, at most */
enum { MOST_REGROUPED = 1024 };

/* transfers between two neighbours in an iteration; with more of them than that, one */
enum { TRANSFERS = 8, FEW_PAIRS = 60 };

/* of the cells of a cross-table, which are next to few of the others in one order */
enum { ORDERS = 4 };

struct levels {
    double *scale, *tries; /* of each factor: of how many records, and how often it was learned */
    int *code, *sorted;    /* of each record: its level's place; records, place after place */
    double *level;
    int *order, *place, *first; /* of levels; where the records of each place begin */
    double **before, **after;   /* the records that a transfer takes */
};

/* Up to so many a pass for each is the faster way to sort records by their level. */
enum { FEW_LEVELS = 4 };

static void make_room(struct augment *a) {
    struct levels *g = OWN(a, levels);
    if (!g) return;
    g->code = plugin_memory((size_t)a->stride, sizeof *g->code);
    g->sorted = plugin_memory((size_t)a->stride + 1, sizeof *g->sorted);
}

static void prepare(struct augment *a) {
    const struct model *model = &a->model;
    if (!a->surrogate || !model->levels) return;
    struct levels *g = OWN(a, levels) = plugin_memory(1, sizeof *g);
    int levels = 0;
    for (int f = 0; f < augment_factors(model); ++f)
        if (augment_factor(model, f)->levels > levels) levels = augment_factor(model, f)->levels;
    make_room(a);
    g->level = plugin_memory(MAX_BLOCK, sizeof *g->level);
    g->order = plugin_memory((size_t)levels, sizeof *g->order);
    g->place = plugin_memory((size_t)levels, sizeof *g->place);
    g->first = plugin_memory((size_t)levels + 1, sizeof *g->first);
    double ***const columns[] = {&g->before, &g->after};
    for (int k = 0; k < 2; ++k) {
        *columns[k] = plugin_memory((size_t)model->columns, sizeof **columns[k]);
        for (int v = 0; v < model->columns; ++v) (*columns[k])[v] = doubles(MOST_REGROUPED);
    }
}

/* The place of each record's level, to `code`. */
static void read_places(struct augment *a, int f) {
    struct levels *g = OWN(a, levels);
    const struct model *model = &a->model;
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = augment_block_at(a, start, MAX_BLOCK);
        model->levels->read_levels(model->self, f, m, augment_read_only(a->block.x_at), g->level);
        for (int i = 0; i < m; ++i) g->code[start + i] = g->place[(int)g->level[i]];
    }
}

/* A pass for each level, of which no record waits for the one before it. */
static void sort_few(struct augment *a, int levels) {
    struct levels *g = OWN(a, levels);
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

void augment_counting_sort(int n, const int *code, int codes, int *first, int *sorted) {
    memset(first, 0, ((size_t)codes + 1) * sizeof *first);
    for (int i = 0; i < n; ++i) first[code[i]] += 1;
    int end = 0; /* of each code, then its first as records are put before it */
    for (int k = 0; k <= codes; ++k) first[k] = end += k < codes ? first[k] : 0;
    for (int i = n - 1; i >= 0; --i) sorted[--first[code[i]]] = i;
}

/* Records of the level at place k stand from first[k] to before first[k + 1]. */
void augment_sort_levels(struct augment *a, int f) {
    struct levels *g = OWN(a, levels);
    const int levels = augment_factor(&a->model, f)->levels;
    for (int l = 0; l < levels; ++l) g->order[l] = l;
    for (int l = levels - 1; l > 0; --l) {
        const int j = (int)augment_choose(a->rng, l + 1), kept = g->order[j];
        g->order[j] = g->order[l];
        g->order[l] = kept;
    }
    for (int k = 0; k < levels; ++k) g->place[g->order[k]] = k;
    read_places(a, f);
    if (levels <= FEW_LEVELS)
        sort_few(a, levels);
    else
        augment_counting_sort((int)a->n, g->code, levels, g->first, g->sorted);
}

int *augment_level_records(struct augment *a, int level) {
    struct levels *g = OWN(a, levels);
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

void augment_gather_records(const struct augment *a, const int *list, int m, double *const *out) {
    for (int v = 0; v < a->model.columns; ++v) {
        const double *column = a->x + v * a->stride;
        for (int i = 0; i < m; ++i) out[v][i] = column[list[i]];
    }
}

double augment_replacement_energy(struct augment *a, int m, double *const *before,
                                  double *const *after) {
    augment_add_records(a, &a->residual, m, before, -1);
    augment_add_records(a, &a->candidate, m, after, 1);
    a->count.work += 2 * a->cost.pass * m / (double)a->n;
    return augment_total_energy(a, &a->candidate) - augment_total_energy(a, &a->residual);
}

void augment_replace_records(struct augment *a, const int *list, int m, double *const *by) {
    augment_copy_residuals(a, &a->residual, &a->candidate);
    for (int v = 0; v < a->model.columns; ++v) {
        double *column = a->x + v * a->stride;
        for (int i = 0; i < m; ++i) column[list[i]] = by[v][i];
    }
}

static void relevel(struct augment *a, int f, int from, int to, int m) {
    const struct model *model = &a->model;
    struct levels *g = OWN(a, levels);
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = block_length(m - start);
        for (int v = 0; v < model->columns; ++v) {
            a->block.at_chunk[v] = g->before[v] + start;
            a->block.to_chunk[v] = g->after[v] + start;
        }
        model->levels->relevel(model->self, a->rng, f, from, to, chunk,
                               augment_read_only(a->block.at_chunk), a->block.to_chunk);
    }
}

static void add_complete(struct augment *a, int m, double *const *x, double *c) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = block_length(m - start);
        for (int v = 0; v < model->columns; ++v) a->block.at_chunk[v] = x[v] + start;
        model->statistic->add(model->self, chunk, augment_read_only(a->block.at_chunk), c);
    }
}

static void keep(struct augment *a, const int *list, int m) {
    const struct model *model = &a->model;
    const struct levels *g = OWN(a, levels);
    augment_replace_records(a, list, m, g->after);
    add_complete(a, m, g->after, a->complete);
    memset(a->complete_after, 0, (size_t)model->complete * sizeof(double));
    add_complete(a, m, g->before, a->complete_after);
    for (int i = 0; i < model->complete; ++i) a->complete[i] -= a->complete_after[i];
}

/* One transfer between the levels at places k and k + 1, one way or the other. */
static int transfer(struct augment *a, int f, int k, int m) {
    struct levels *g = OWN(a, levels);
    const double *alpha = augment_factor(&a->model, f)->alpha;
    const int up = (int)(rng_bits(a->rng) >> 63);
    const int from = g->order[up ? k : k + 1], to = g->order[up ? k + 1 : k];
    const int own = g->first[k + 1] - g->first[k], next = g->first[k + 2] - g->first[k + 1];
    const int out = up ? own : next, in = up ? next : own;
    if (m > out) return 0;
    augment_choose_records(a->rng, g->sorted + g->first[up ? k : k + 1], out, m, up);
    const int *list = g->sorted + g->first[k + 1] - (up ? m : 0);
    augment_gather_records(a, list, m, g->before);
    relevel(a, f, from, to, m);
    const double rise = augment_replacement_energy(a, m, g->before, g->after);
    const double log_ratio = log_weight(alpha[from], out - m) - log_weight(alpha[from], out) +
                             log_weight(alpha[to], in + m) - log_weight(alpha[to], in) -
                             *a->adapt.temper * rise;
    if (!(-log_ratio < rng_exponential(a->rng))) return 0;
    keep(a, list, m);
    g->first[k + 1] += up ? -m : m;
    return 1;
}

/* `each` transfers between neighbours in an order that is drawn. */
static void pass_levels(struct augment *a, int f, int each, int learning) {
    struct levels *g = OWN(a, levels);
    augment_sort_levels(a, f);
    a->count.work += a->cost.column;
    for (int k = 0; k + 1 < augment_factor(&a->model, f)->levels; ++k)
        for (int t = 0; t < each; ++t) {
            const int m = augment_draw_count(a->rng, g->scale[f], MOST_REGROUPED);
            const int accepted = transfer(a, f, k, m);
            if (learning) units_learn(g->scale + f, g->tries + f, accepted, MOST_REGROUPED);
            a->count.regrouped_made += 1;
            a->count.regrouped_accepted += accepted;
        }
}

/* Where steps of n draw new records, these have new levels: every other round then suffices. */
static void make(struct augment *a, struct round *round) {
    const struct model *model = &a->model;
    const int rests = augment_redraws(a) && round->iteration % 2 == 1;
    if (!OWN(a, levels) || round->empty || rests) return;
    for (int f = 0; f < augment_factors(model); ++f) {
        const int many = augment_factor(model, f)->levels > FEW_PAIRS;
        for (int k = 0; k < (model->levels->joint && !many ? ORDERS : 1); ++k)
            pass_levels(a, f,
                        many                   ? 1
                        : model->levels->joint ? TRANSFERS / ORDERS
                                               : TRANSFERS,
                        round->learning);
    }
}

/* scales, and how often each was learned */
static size_t stored(const struct augment *a) {
    return OWN(a, levels) ? 2 * (size_t)augment_factors(&a->model) : 0;
}

static void attach(struct augment *a, double *store) {
    struct levels *g = OWN(a, levels);
    g->scale = store;
    g->tries = store + augment_factors(&a->model);
}

static void start_site(struct augment *a) {
    struct levels *g = OWN(a, levels);
    for (int f = 0; g && f < augment_factors(&a->model); ++f) g->scale[f] = 1;
}

const struct move move_levels = {
    .phase = MOVE_AFTER,
    .store = "levels",
    .prepare = prepare,
    .make_room = make_room,
    .stored = stored,
    .attach = attach,
    .start_site = start_site,
    .make = make,
};
