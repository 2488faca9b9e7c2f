/* Statistic "by": totals of the terms of "sums" or "crossprod" in each group of records, that is,
 * in each level of one factor, whose code is the last column. Component j G + g is term j of group
 * g, of G groups.
 *
 * Invariant: a record changes the components of one group alone.
 * Cost per record: the cost of the terms, and an addition for each; eval() alone costs
 * O(components).
 */
#include "contract/stat.h"

extern const struct stat_class stat_sums, stat_crossprod;

struct by {
    const struct stat_class *class;
    struct stat terms;
    int groups;
    double *t; /* the terms of a block */
};

/* Fields: those of "sums", which alone has degrees, or of "crossprod"; and groups. */
static int create(const struct fields *fields, struct stat *stat) {
    struct by *s = plugin_memory(1, sizeof *s);
    const double *groups = fields_vector(fields, "groups", 1);
    if (!groups || !(*groups >= 1)) return PLUGIN_BAD_FIELDS;
    s->class = fields_length(fields, "degree") ? &stat_sums : &stat_crossprod;
    const int status = s->class->create(fields, &s->terms);
    if (status != PLUGIN_OK) return status;
    s->groups = (int)*groups;
    s->t = plugin_memory((size_t)s->terms.size * MAX_BLOCK, sizeof *s->t);
    stat->self = s;
    stat->columns = s->terms.columns + 1;
    stat->size = s->terms.size * s->groups;
    return PLUGIN_OK;
}

/* Adds the terms of m records: to out[component * component_stride + record * record_stride]. */
static void add(const struct by *s, int m, const double *const *x, size_t component_stride,
                size_t record_stride, double *out) {
    const double *code = x[s->terms.columns];
    const int lanes = PAD_LANES(m);
    s->class->eval(s->terms.self, m, x, lanes, s->t);
    for (int j = 0; j < s->terms.size; ++j) {
        const double *term = s->t + (size_t)j * (size_t)lanes;
        for (int i = 0; i < m; ++i) {
            const size_t component = (size_t)j * (size_t)s->groups + (size_t)code[i];
            out[component * component_stride + (size_t)i * record_stride] += term[i];
        }
    }
}

static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct by *s = self;
    for (int j = 0; j < s->terms.size * s->groups; ++j)
        memset(t + (size_t)j * (size_t)stride, 0, (size_t)PAD_LANES(m) * sizeof(double));
    add(s, m, x, (size_t)stride, 1, t);
}

static void total(void *self, int m, const double *const *x, double *total) {
    add(self, m, x, 1, 0, total);
}

const struct stat_class stat_by = {
    .name = "by",
    .create = create,
    .eval = eval,
    .total = total,
};
