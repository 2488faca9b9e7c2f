/* Statistic "crossprod": totals of monomials in the variables of a record, each
 * clamped to its bounds: those of degree 1 and 2 of a regression (Ju et al.
 * 2022, section 5), those up to degree 4 of its covariates (Bernstein & Sheldon
 * 2019, section 3.4.4).
 *
 * With rescaling, v = clamp(scale * x + shift, -1, 1); without, scale = 1,
 * shift = 0 and the limits are the bounds. Components: the q variables, then
 * the products listed in (first, second) of components before them.
 *
 * Invariant: every component depends on a record only through clamped values,
 * so it stays inside the range that the sensitivity was computed from.
 * Cost: 4 q + |pairs| vectorised operations per record, in total() one more for
 * each product that is a factor of another.
 */
#include "plugin.h"

struct crossprod {
    int q, pairs;
    const double *scale, *shift, *lower, *upper;
    int *first, *second;
    int kept;       /* components that are a factor of another, and those before them */
    double *column; /* the kept ones, MAX_BLOCK each */
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
    s->kept = s->q;
    for (int k = 0; k < s->pairs; ++k) {
        s->first[k] = (int)first[k];
        s->second[k] = (int)second[k];
        if (s->first[k] >= s->kept) s->kept = s->first[k] + 1;
        if (s->second[k] >= s->kept) s->kept = s->second[k] + 1;
    }
    s->column = plugin_memory((size_t)s->kept * MAX_BLOCK, sizeof *s->column);
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
        double *clamped = s->column + (size_t)v * MAX_BLOCK;
        clamp(s, v, m, x[v], clamped);
        total[v] += block_sum(m, clamped);
    }
    for (int k = 0; k < s->pairs; ++k) {
        const double *first = s->column + (size_t)s->first[k] * MAX_BLOCK;
        const double *second = s->column + (size_t)s->second[k] * MAX_BLOCK;
        if (s->q + k < s->kept)
            multiply(m, first, second, s->column + (size_t)(s->q + k) * MAX_BLOCK);
        total[s->q + k] += block_dot(m, first, second);
    }
}

const struct stat_class stat_crossprod = {
    .name = "crossprod",
    .create = create,
    .eval = eval,
    .total = total,
};
