/* Statistic "records": one value of every record, nothing is summed. A component
 * is a column clamped to its bounds; the codes of a factor lie inside theirs.
 *
 * Invariant: every component stays inside the range that the sensitivity was
 * computed from. Cost: two comparisons per value.
 */
#include "contract/stat.h"

struct records {
    int q;
    const double *lower, *upper;
    double *clamped; /* MAX_BLOCK */
};

static int create(const struct fields *fields, struct stat *stat) {
    struct records *s = plugin_memory(1, sizeof *s);
    s->q = fields_length(fields, "lower");
    s->lower = fields_vector(fields, "lower", s->q);
    s->upper = fields_vector(fields, "upper", s->q);
    if (!s->lower || !s->upper) return PLUGIN_BAD_FIELDS;
    s->clamped = plugin_memory(MAX_BLOCK, sizeof *s->clamped);
    stat->self = s;
    stat->columns = s->q;
    stat->size = s->q;
    return PLUGIN_OK;
}

static inline void clamp(const struct records *s, int v, int m, const double *restrict x,
                         double *restrict out) {
    const double lower = s->lower[v], upper = s->upper[v];
    FOR_RECORDS(i, m) {
        const double value = x[i] > lower ? x[i] : lower;
        out[i] = value < upper ? value : upper;
    }
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct records *s = self;
    for (int v = 0; v < s->q; ++v) clamp(s, v, m, x[v], t + (size_t)v * stride);
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    const struct records *s = self;
    for (int v = 0; v < s->q; ++v) {
        clamp(s, v, m, x[v], s->clamped);
        total[v] += block_sum(m, s->clamped);
    }
}

const struct stat_class stat_records = {
    .name = "records",
    .create = create,
    .eval = eval,
    .total = total,
};
