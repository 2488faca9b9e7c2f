/* Method "augment": moves of the coefficients of a response of several levels
 * (records/category_hmc.c): the records whose covariates stand for all, and their statistics with
 * each level of the response.
 *
 * Cost a move: a pass for the totals at the reference, one for those of the proposal; the statistic
 * of MAX_POINTS records for each level. No allocation but in prepare().
 */
#include "records/augment_internal.h"
#include "records/move.h"

/* Totals of single records of one site, with noise whose kernel is separable. */
static int serves(const struct augment *a) {
    if (a->sites > 1 || a->plain || a->locals > 0 || a->separable < a->dense) return 0;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].stat.whole || a->part[k].kernel == KERNEL_MATCH) return 0;
    return 1;
}

static void prepare(struct augment *a) {
    if (!serves(a)) return;
    int touched = 0;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].kind == PART_CELLS) touched += a->part[k].stat.touched;
    struct category_moves *r = plugin_memory(1, sizeof *r);
    if (!category_moves_create(r, &a->model, a->dense, a->cells, touched)) return;
    r->released = a->released;
    r->weight = a->weight;
    char *bent = plugin_memory((size_t)(a->dense + a->cells), sizeof *bent);
    memset(bent, 1, (size_t)a->absolute);
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part_is_counts(part->kind) && part->kernel == KERNEL_ABSOLUTE)
            memset(bent + a->dense + part->offset, 1, (size_t)part->stat.size);
    }
    r->bent = bent;
    a->categories = r;
}

/* Components of the points with this level of the response, and the cells that they touch. */
static void evaluate_points(struct augment *a, int level) {
    struct category_moves *r = a->categories;
    double *add = r->add + (size_t)level * (size_t)r->dense * MAX_POINTS;
    int *touch = r->touch + (size_t)level * (size_t)r->touched * MAX_POINTS;
    a->model.class->categorise(a->model.self, level, r->points, r->x);
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        const struct stat *stat = &part->stat;
        const double *const *view = augment_view(a, part, augment_read_only(r->x), 0);
        if (part->kind == PART_DENSE) {
            stat->class->eval(stat->self, r->points, view, MAX_POINTS,
                              add + (size_t)part->offset * MAX_POINTS);
        } else if (part->kind == PART_CELLS) {
            stat->class->cells(stat->self, r->points, view, MAX_POINTS, touch);
            for (int t = 0; t < stat->touched; ++t, touch += MAX_POINTS)
                for (int i = 0; i < r->points; ++i) touch[i] += part->offset;
        }
    }
}

/* Evenly spread over the records, from a place that is drawn. */
static void choose_points(struct augment *a) {
    struct category_moves *r = a->categories;
    const double u = rng_uniform(a->rng);
    r->points = a->n < MAX_POINTS ? (int)a->n : MAX_POINTS;
    r->share = (double)a->n / r->points;
    for (int i = 0; i < r->points; ++i) {
        ptrdiff_t at = (ptrdiff_t)((i + u) * r->share);
        if (at >= a->n) at = a->n - 1;
        for (int v = 0; v < a->model.columns; ++v) r->x[v][i] = a->x[v * a->stride + at];
    }
    for (int k = 0; k < a->model.categories; ++k) evaluate_points(a, k);
}

/* Chooses points, and readies the moves. Returns 0 where none is possible. Needs the model set at
 * theta, and records. */
static int begin(struct augment *a) {
    choose_points(a);
    a->categories->temper = *a->adapt.temper;
    return category_moves_begin(a->categories, a->theta, a->rng);
}

double augment_categories_density(struct augment *a, double *q, double *gradient) {
    a->model.class->set(a->model.self, a->theta);
    if (!begin(a)) return NAN;
    return category_moves_density(a->categories, q, gradient);
}

static void respond(struct augment *a, const struct round *round) {
    struct category_moves *r = a->categories;
    a->model.class->set(a->model.self, a->theta);
    if (!begin(a)) return;
    a->count.work += r->points * a->model.categories * a->pass_work / (double)a->n;
    const struct response_guide guide = {r,
                                         category_moves_refer,
                                         category_moves_correct,
                                         category_moves_propose,
                                         category_moves_learn,
                                         &r->path.told};
    augment_guide(a, &guide, round->iteration, round->warmup);
}

static void make(struct augment *a, struct round *round) {
    for (int k = 0; a->categories && !round->empty && k < RESPONSES; ++k) respond(a, round);
}

static size_t stored(const struct augment *a, int k) {
    (void)k;
    return a->categories ? category_moves_stored(a->categories) : 0;
}

static void attach(struct augment *a, int k, double *store) {
    (void)k;
    category_moves_attach(a->categories, store);
}

/* their coefficients are the first of theta, and walk */
static void start(struct augment *a, int search, const double *sd) {
    (void)search;
    if (a->categories) category_moves_start(a->categories, sd);
}

const struct move move_categories = {
    .phase = MOVE_AFTER,
    .store = {"categories"},
    .prepare = prepare,
    .stored = stored,
    .attach = attach,
    .start = start,
    .make = make,
};
