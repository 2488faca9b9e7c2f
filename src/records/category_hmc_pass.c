/* Method "augment": moves of the coefficients of a response with several levels
 * (records/category_hmc.c): the records whose covariates represent all, and their statistics for
 * each level of the response.
 *
 * Cost of a move: a pass for the totals at the reference, one for the totals of the proposal; the
 * statistic of MAX_POINTS records for each level. No allocation except in prepare().
 */
#include "records/augment_internal.h"
#include "records/category_hmc.h"

/* Totals of single records of one site, with noise whose kernel is separable. */
static int serves(const struct augment *a) {
    if (a->sites.count > 1 || a->plain || a->layout.locals > 0 ||
        a->noise.separable < a->layout.dense)
        return 0;
    for (int k = 0; k < a->layout.parts; ++k)
        if (a->layout.part[k].stat.whole || a->layout.part[k].kernel == KERNEL_MATCH) return 0;
    return 1;
}

static void prepare(struct augment *a) {
    if (!serves(a)) return;
    int touched = 0;
    for (int k = 0; k < a->layout.parts; ++k)
        if (a->layout.part[k].kind == PART_CELLS) touched += a->layout.part[k].stat.touched;
    struct category_moves *r = plugin_memory(1, sizeof *r);
    if (!category_moves_create(r, &a->model, a->layout.dense, a->layout.cells, touched)) return;
    r->noise = noise_first(&a->noise, a->layout.dense + a->layout.cells);
    r->noise.released = r->offset;
    r->released = a->noise.released;
    OWN(a, categories) = r;
}

/* Components of the points with this level of the response, and the cells that they touch. */
static void evaluate_points(struct augment *a, int level) {
    struct category_moves *r = OWN(a, categories);
    double *add = r->add + (size_t)level * (size_t)r->dense * MAX_POINTS;
    int *touch = r->touch + (size_t)level * (size_t)r->touched * MAX_POINTS;
    a->model.categories->categorise(a->model.self, level, r->points, r->x);
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
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
    struct category_moves *r = OWN(a, categories);
    const double u = rng_uniform(a->rng);
    r->points = a->n < MAX_POINTS ? (int)a->n : MAX_POINTS;
    r->share = (double)a->n / r->points;
    for (int i = 0; i < r->points; ++i) {
        ptrdiff_t at = (ptrdiff_t)((i + u) * r->share);
        if (at >= a->n) at = a->n - 1;
        for (int v = 0; v < a->model.columns; ++v) r->x[v][i] = a->x[v * a->stride + at];
    }
    for (int k = 0; k < a->model.categories->levels; ++k) evaluate_points(a, k);
}

/* Chooses points, and readies the moves. Returns 0 where none is possible. Needs the model set at
 * theta, and records. */
static int begin(struct augment *a) {
    choose_points(a);
    struct category_moves *r = OWN(a, categories);
    r->temper = *a->adapt.temper;
    return category_moves_begin(r, a->theta, a->rng);
}

double augment_categories_density(struct augment *a, double *q, double *gradient) {
    a->model.class->set(a->model.self, a->theta);
    if (!begin(a)) return NAN;
    return category_moves_density(OWN(a, categories), q, gradient);
}

static void respond(struct augment *a, const struct round *round) {
    struct category_moves *r = OWN(a, categories);
    a->model.class->set(a->model.self, a->theta);
    if (!begin(a)) return;
    const double work = r->points * a->model.categories->levels * a->cost.pass / (double)a->n;
    const struct response_guide guide = {r,
                                         category_moves_refer,
                                         category_moves_correct,
                                         category_moves_propose,
                                         category_moves_learn,
                                         &r->path,
                                         work};
    augment_guide(a, &guide, round->iteration, round->warmup);
}

static void make(struct augment *a, struct round *round) {
    const struct category_moves *r = OWN(a, categories);
    if (!r || round->empty) return;
    for (int k = trajectory_count(&r->path, round->iteration, round->warmup); k > 0; --k)
        respond(a, round);
}

static size_t stored(const struct augment *a) {
    const struct category_moves *r = OWN(a, categories);
    return r ? category_moves_stored(r) : 0;
}

static void attach(struct augment *a, double *store) {
    category_moves_attach(OWN(a, categories), store);
}

/* their coefficients are the first of theta, and walk */
static void start(struct augment *a, const struct move_start *start) {
    if (OWN(a, categories)) category_moves_start(OWN(a, categories), start->sd);
}

const struct move move_categories = {
    .phase = MOVE_AFTER,
    .store = "categories",
    .prepare = prepare,
    .stored = stored,
    .attach = attach,
    .start = start,
    .make = make,
};
