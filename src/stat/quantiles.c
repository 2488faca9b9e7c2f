/* Statistic "quantiles": how many records are nearest to each point of a grid. The points are
 * lower, lower + step, ..., upper; a record beyond the bounds is nearest to one of these. Quantiles
 * depend on the records through these counts alone (mech/exponential.c).
 *
 * Invariant: a record adds 1 to exactly one cell. Cost per record: a multiplication; `eval` alone
 * costs O(points), for callers that need dense values.
 */
#include "contract/stat.h"

struct quantiles {
    double lower, per_unit, last; /* points in one unit of the variable; the last point's index */
    int *index;                   /* MAX_BLOCK */
};

static int create(const struct fields *fields, struct stat *stat) {
    struct quantiles *s = plugin_memory(1, sizeof *s);
    const double *lower = fields_vector(fields, "lower", 1);
    const double *upper = fields_vector(fields, "upper", 1);
    const double *steps = fields_vector(fields, "steps", 1);
    if (!lower || !upper || !steps || !(*steps >= 1)) return PLUGIN_BAD_FIELDS;
    s->lower = *lower;
    s->last = *steps;
    s->per_unit = *steps / (*upper - *lower);
    s->index = plugin_memory(MAX_BLOCK, sizeof *s->index);
    stat->self = s;
    stat->columns = 1;
    stat->size = (int)*steps + 1;
    stat->touched = 1;
    return PLUGIN_OK;
}

/* what is no number counts as the lower bound */
static INLINE void find_points(const struct quantiles *s, int m, const double *restrict x,
                               int *restrict index) {
    const double lower = s->lower, per_unit = s->per_unit, last = s->last;
    FOR_RECORDS(i, m) {
        double place = (x[i] - lower) * per_unit;
        place = place > 0 ? place : 0;
        place = place < last ? place : last;
        index[i] = (int)(place + 0.5);
    }
}

VECTOR_CLONES static void cells(void *self, int m, const double *const *x, int stride, int *index) {
    (void)stride;
    find_points(self, m, x[0], index);
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    const struct quantiles *s = self;
    find_points(s, m, x[0], s->index);
    for (int i = 0; i < m; ++i) total[s->index[i]] += 1;
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct quantiles *s = self;
    find_points(s, m, x[0], s->index);
    for (int j = 0; j <= (int)s->last; ++j) {
        double *restrict out = t + (size_t)j * stride;
        FOR_RECORDS(i, m) out[i] = s->index[i] == j ? 1 : 0;
    }
}

const struct stat_class stat_quantiles = {
    .name = "quantiles",
    .create = create,
    .eval = eval,
    .total = total,
    .cells = cells,
};
