/* Method "augment": moves of the coefficients of a response of several levels
 * (records/category_hmc.c): the records whose covariates stand for all, and their statistics with
 * each level of the response.
 *
 * Cost a move: a pass for the totals at the reference, one for those of the proposal; the statistic
 * of MAX_POINTS records for each level. No allocation but in augment_prepare_categories().
 */
#include "records/augment_internal.h"

/* Totals of single records of one site, with noise whose kernel is separable. */
static int serves(const struct augment *a) {
    if (a->sites > 1 || a->plain || a->locals > 0 || a->separable < a->dense) return 0;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].stat.whole || a->part[k].kernel == KERNEL_MATCH) return 0;
    return 1;
}

void augment_prepare_categories(struct augment *a) {
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

int augment_begin_categories(struct augment *a) {
    choose_points(a);
    a->categories->temper = *a->adapt.temper;
    return category_moves_begin(a->categories, a->theta, a->rng);
}

double augment_categories_density(struct augment *a, double *q, double *gradient) {
    a->model.class->set(a->model.self, a->theta);
    if (!augment_begin_categories(a)) return NAN;
    return category_moves_density(a->categories, q, gradient);
}
