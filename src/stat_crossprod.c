/* Statistic "crossprod": totals of all distinct monomials of degree 1 and 2 in
 * the variables of a record, each clamped to its bounds (Ju et al. 2022,
 * section 5).
 *
 * With rescaling, v = clamp(scale * x + shift, -1, 1); without, scale = 1,
 * shift = 0 and the limits are the bounds. Components: the q variables, then
 * the products listed in (first, second).
 *
 * Invariant: every component depends on a record only through clamped values,
 * so it stays inside the range that the sensitivity was computed from.
 * Cost: 4 q + |pairs| vectorised operations per record.
 */
#include "plugin.h"

struct crossprod {
    int q, pairs;
    const double *scale, *shift, *lower, *upper;
    int *first, *second;
    double *clamped; /* q columns of MAX_BLOCK */
};

static int create(const struct fields *fields, struct stat *stat) {
    struct crossprod *s = plugin_memory(1, sizeof *s);
    s->q = fields_length(fields, "scale");
    s->pairs = fields_length(fields, "first");
    s->scale = fields_vector(fields, "scale", s->q);
    s->shift = fields_vector(fields, "shift", s->q);
    s->lower = fields_vector(fields, "lower", s->q);
    s->upper = fields_vector(fields, "upper", s->q);
    const double *first = fields_vector(fields, "first", s->pairs);
    const double *second = fields_vector(fields, "second", s->pairs);
    if (!s->scale || !s->shift || !s->lower || !s->upper || !first || !second)
        return PLUGIN_BAD_FIELDS;
    s->first = plugin_memory((size_t)s->pairs, sizeof *s->first);
    s->second = plugin_memory((size_t)s->pairs, sizeof *s->second);
    for (int k = 0; k < s->pairs; ++k) {
        s->first[k] = (int)first[k];
        s->second[k] = (int)second[k];
    }
    s->clamped = plugin_memory((size_t)s->q * MAX_BLOCK, sizeof *s->clamped);
    stat->self = s;
    stat->columns = s->q;
    stat->size = s->q + s->pairs;
    return PLUGIN_OK;
}

static inline void clamp(const struct crossprod *s, int v, int m, const double *restrict x,
                         double *restrict out) {
    const double scale = s->scale[v], shift = s->shift[v];
    const double lower = s->lower[v], upper = s->upper[v];
    FOR_RECORDS(i, m) {
        double value = scale * x[i] + shift;
        value = value > lower ? value : lower;
        out[i] = value < upper ? value : upper;
    }
}

static inline void multiply(int m, const double *restrict a, const double *restrict b,
                            double *restrict out) {
    FOR_RECORDS(i, m) out[i] = a[i] * b[i];
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct crossprod *s = self;
    for (int v = 0; v < s->q; ++v) clamp(s, v, m, x[v], t + (size_t)v * stride);
    for (int k = 0; k < s->pairs; ++k)
        multiply(m, t + (size_t)s->first[k] * stride, t + (size_t)s->second[k] * stride,
                 t + (size_t)(s->q + k) * stride);
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    struct crossprod *s = self;
    for (int v = 0; v < s->q; ++v) {
        double *clamped = s->clamped + (size_t)v * MAX_BLOCK;
        clamp(s, v, m, x[v], clamped);
        total[v] += block_sum(m, clamped);
    }
    for (int k = 0; k < s->pairs; ++k)
        total[s->q + k] += block_dot(m, s->clamped + (size_t)s->first[k] * MAX_BLOCK,
                                     s->clamped + (size_t)s->second[k] * MAX_BLOCK);
}

const struct stat_class stat_crossprod = {
    .name = "crossprod",
    .create = create,
    .eval = eval,
    .total = total,
};
