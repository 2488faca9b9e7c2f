/* Method "augment": groups of records move to the next cell of a covariate, in a model whose
 * covariates are in cells given a latent class (contract/model_classes.h).
 *
 * Given the probabilities of cells, the number of records in a cell varies by sqrt(n p), and given
 * that number the probability hardly moves: with Dirichlet weights well below 1 it takes many
 * sweeps to fill an empty cell. So classes are drawn, and the probabilities integrated out. A
 * Dirichlet distribution with weights alpha is a Dirichlet process whose base measure is alpha
 * (Ferguson 1973): records of a class are in groups, and each group is in a cell, independently
 * with probability proportional to alpha. Given the cells, the groups of a cell are a Chinese
 * restaurant process of its alpha (Blackwell & MacQueen 1973; Antoniak 1974), which is drawn. So
 * groups have sizes of all orders of magnitude. A group moves from cell a to a neighbour b, of a
 * factor to any other level, its records at the same place of the cell and the innovations of the
 * other columns held fixed, and is
 *
 *   accepted with (alpha_b / alpha_a) eta(z | s') / eta(z | s).
 *
 * Then the probabilities are drawn given the counts, and classes and groups forgotten.
 *
 * Cost: for each covariate the statistic of all records, twice, and the noise density of each
 * group. No allocation except in prepare() and make_room().
 */
#include "contract/model_classes.h"
#include "contract/model_move.h"
#include "records/augment_internal.h"

/* larger groups stay */
enum { MOST_GROUPED = 1024 };

struct cells {
    const struct model_classes *of;
    int *class, *cell; /* of each record; the cell is one of those of all classes */
    int *sorted;       /* records by cell, */
    int *group;        /* and their groups */
    int *member;       /* places in `sorted`, by group */
    int *first, *first_member, *place;
    double *count;            /* of each cell */
    double **before, **after; /* the records of a group */
};

static void make_room(struct augment *a) {
    struct cells *g = OWN(a, cells);
    if (!g) return;
    int **const of[] = {&g->class,  &g->cell,         &g->sorted, &g->group,
                        &g->member, &g->first_member, &g->place};
    for (int k = 0; k < 7; ++k) *of[k] = plugin_memory((size_t)a->stride + 1, sizeof(int));
}

static void prepare(struct augment *a) {
    const struct model_classes *of = a->model.move ? a->model.move->classes : NULL;
    if (!of || a->plain || a->layer || a->sites.count > 1 || a->layout.locals > 0) return;
    struct cells *g = OWN(a, cells) = plugin_memory(1, sizeof *g);
    g->of = of;
    int most = 0;
    for (int j = 0; j < of->covariates; ++j)
        if (of->covariate[j].cells > most) most = of->covariate[j].cells;
    g->first = plugin_memory((size_t)(most * of->classes) + 1, sizeof *g->first);
    g->count = doubles((size_t)(most * of->classes));
    double ***const columns[] = {&g->before, &g->after};
    for (int k = 0; k < 2; ++k) {
        *columns[k] = plugin_memory((size_t)a->model.columns, sizeof **columns[k]);
        for (int v = 0; v < a->model.columns; ++v) (*columns[k])[v] = doubles(MOST_GROUPED);
    }
    make_room(a);
}

static void draw_classes(struct augment *a) {
    struct cells *g = OWN(a, cells);
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = augment_block_at(a, start, MAX_BLOCK);
        g->of->draw_classes(a->model.self, a->rng, m, augment_read_only(a->block.x_at),
                            g->class + start);
    }
}

static void sort_by_cell(struct augment *a, int covariate) {
    struct cells *g = OWN(a, cells);
    const int cells = g->of->covariate[covariate].cells, all = cells * g->of->classes;
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = augment_block_at(a, start, MAX_BLOCK);
        g->of->read_cells(a->model.self, covariate, m, augment_read_only(a->block.x_at),
                          g->cell + start);
    }
    for (ptrdiff_t i = 0; i < a->n; ++i) g->cell[i] += g->class[i] * cells;
    augment_counting_sort((int)a->n, g->cell, all, g->first, g->sorted);
    for (int k = 0; k < all; ++k) g->count[k] = g->first[k + 1] - g->first[k];
}

/* The groups of all cells, in the order of cells, with their cells to `place`. A record joins the
 * group of an earlier one of its cell, or begins one. Returns how many there are. */
static int draw_groups(struct augment *a, int covariate) {
    struct cells *g = OWN(a, cells);
    const struct model_cells_of *of = g->of->covariate + covariate;
    int groups = 0;
    for (int k = 0; k < of->cells * g->of->classes; ++k)
        for (int at = g->first[k]; at < g->first[k + 1]; ++at) {
            const int earlier = at - g->first[k];
            const double u = rng_uniform(a->rng) * (earlier + of->weight[k % of->cells]);
            g->group[at] = u < earlier ? g->group[g->first[k] + (int)u] : groups;
            if (g->group[at] == groups) g->place[groups++] = k;
        }
    augment_counting_sort((int)a->n, g->group, groups, g->first_member, g->member);
    return groups;
}

static void shift(struct augment *a, int covariate, int by, int m) {
    const struct model *model = &a->model;
    const struct cells *g = OWN(a, cells);
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = block_length(m - start);
        for (int v = 0; v < model->columns; ++v) {
            a->block.at_chunk[v] = g->before[v] + start;
            a->block.to_chunk[v] = g->after[v] + start;
        }
        g->of->shift(model->self, covariate, by, chunk, augment_read_only(a->block.at_chunk),
                     a->block.to_chunk);
    }
}

/* as likely as the way back */
static int step_from(const struct model_cells_of *of, int from, struct rng *rng) {
    if (!of->levels) return rng_bits(rng) >> 63 ? 1 : -1;
    const int to = (int)(rng_uniform(rng) * (of->cells - 1));
    return (to < from ? to : to + 1) - from;
}

static int move_group(struct augment *a, int covariate, int group) {
    struct cells *g = OWN(a, cells);
    const struct model_cells_of *of = g->of->covariate + covariate;
    const int from = g->place[group] % of->cells, by = step_from(of, from, a->rng);
    const int m = g->first_member[group + 1] - g->first_member[group];
    if (from + by < 0 || from + by >= of->cells || m > MOST_GROUPED) return 0;
    int *list = g->member + g->first_member[group]; /* of places, then of records */
    for (int i = 0; i < m; ++i) list[i] = g->sorted[list[i]];
    augment_gather_records(a, list, m, g->before);
    shift(a, covariate, by, m);
    const double rise = augment_replacement_energy(a, m, g->before, g->after);
    const double log_ratio =
        log(of->weight[from + by] / of->weight[from]) - *a->adapt.temper * rise;
    if (!(-log_ratio < rng_exponential(a->rng))) return 0;
    augment_replace_records(a, list, m, g->after);
    g->count[g->place[group]] -= m;
    g->count[g->place[group] + by] += m;
    return 1;
}

static void move_groups(struct augment *a, int covariate) {
    const struct cells *g = OWN(a, cells);
    sort_by_cell(a, covariate);
    const int groups = draw_groups(a, covariate);
    for (int k = 0; k < groups; ++k) {
        a->count.regrouped_made += 1;
        a->count.regrouped_accepted += move_group(a, covariate, k);
    }
    a->count.work += 2 * a->cost.column;
    g->of->draw_cells(a->model.self, a->rng, covariate, g->count, a->theta);
}

static void make(struct augment *a, struct round *round) {
    const struct cells *g = OWN(a, cells);
    if (!g || round->empty) return;
    a->model.class->set(a->model.self, a->theta);
    draw_classes(a);
    a->count.work += a->cost.column * a->model.columns;
    for (int j = 0; j < g->of->covariates; ++j) move_groups(a, j);
}

const struct move move_cells = {
    .phase = MOVE_BEFORE,
    .prepare = prepare,
    .make_room = make_room,
    .make = make,
};
