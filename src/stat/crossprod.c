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
#include "base/block.h"
#include "base/lanes.h"
#include "contract/stat.h"

/* up to this many variables, change_rows() is compiled for their number */
enum { MOST_UNROLLED = 4 };

struct crossprod {
    int q, pairs;
    const double *scale, *shift, *lower, *upper;
    int *first, *second;
    int kept;       /* components that are a factor of another, and those before them */
    double *column; /* the kept ones, MAX_BLOCK each */
    int unrolled;   /* q, if change_rows() knows these pairs; else 0 */
    double *both;   /* then: the variables before and after, MAX_BLOCK each */
};

/* all pairs of variables, row by row */
static int all_pairs(const struct crossprod *s) {
    int k = 0;
    for (int i = 0; i < s->q; ++i)
        for (int j = i; j < s->q; ++j, ++k)
            if (k >= s->pairs || s->first[k] != i || s->second[k] != j) return 0;
    return k == s->pairs;
}

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
    if (HAS_LANES && s->q <= MOST_UNROLLED && all_pairs(s)) {
        s->unrolled = s->q;
        s->both = plugin_memory((size_t)(2 * s->q) * MAX_BLOCK, sizeof *s->both);
    }
    stat->self = s;
    stat->columns = s->q;
    stat->size = s->q + s->pairs;
    return PLUGIN_OK;
}

static INLINE void clamp(const struct crossprod *s, int v, int m, const double *x, double *out) {
    block_clamp(s->scale[v], s->shift[v], s->lower[v], s->upper[v], m, x, out);
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

#if HAS_LANES
/* two components of LANES records, record by record */
static INLINE void transpose_pairs(const lanes *component, int width, double *row) {
    const pair a = LANES_HALF(component[0], 0, 1), a_next = LANES_HALF(component[0], 2, 3);
    const pair b = LANES_HALF(component[1], 0, 1), b_next = LANES_HALF(component[1], 2, 3);
    PAIR_STORE(row, PAIR_OF(a, 0, b, 0));
    PAIR_STORE(row + width, PAIR_OF(a, 1, b, 1));
    PAIR_STORE(row + 2 * width, PAIR_OF(a_next, 0, b_next, 0));
    PAIR_STORE(row + 3 * width, PAIR_OF(a_next, 1, b_next, 1));
}

/* All that is between the clamped variables and the rows stays in registers. */
static INLINE void fill_rows(const struct crossprod *s, int q, int m, const double *const *x,
                             const double *const *x_new, const double *weight, int width,
                             double *restrict row) {
    enum { MOST = MOST_UNROLLED * (MOST_UNROLLED + 3) / 2 };
    for (int v = 0; v < q; ++v) {
        clamp(s, v, m, x[v], s->both + (size_t)(2 * v) * MAX_BLOCK);
        clamp(s, v, m, x_new[v], s->both + (size_t)(2 * v + 1) * MAX_BLOCK);
    }
    lanes by[MOST];
    UNROLL for (int j = 0; j < q * (q + 3) / 2; ++j) {
        const double w = weight[j];
        by[j] = (lanes){w, w, w, w};
    }
    const double *both = s->both;
    for (int i = 0; i < m; i += LANES, row += LANES * width) {
        lanes old[MOST_UNROLLED], fresh[MOST_UNROLLED], change[MOST + 1];
        int at = q;
        UNROLL for (int v = 0; v < q; ++v) {
            old[v] = LANES_LOAD(both + (size_t)(2 * v) * MAX_BLOCK + i);
            fresh[v] = LANES_LOAD(both + (size_t)(2 * v + 1) * MAX_BLOCK + i);
            change[v] = (fresh[v] - old[v]) * by[v];
        }
        UNROLL for (int a = 0; a < q; ++a) {
            UNROLL for (int b = a; b < q; ++b, ++at) change[at] =
                (fresh[a] * fresh[b] - old[a] * old[b]) * by[at];
        }
        change[at] = (lanes){0};
        UNROLL for (int j = 0; j < at; j += 2) transpose_pairs(change + j, width, row + j);
    }
}

VECTOR_CLONES static int change_rows(void *self, int m, const double *const *x,
                                     const double *const *x_new, const double *weight, int width,
                                     double *row) {
    const struct crossprod *s = self;
    switch (s->unrolled) {
    case 1:
        fill_rows(s, 1, m, x, x_new, weight, width, row);
        return 1;
    case 2:
        fill_rows(s, 2, m, x, x_new, weight, width, row);
        return 1;
    case 3:
        fill_rows(s, 3, m, x, x_new, weight, width, row);
        return 1;
    case 4:
        fill_rows(s, 4, m, x, x_new, weight, width, row);
        return 1;
    default:
        return 0;
    }
}
#else
#define change_rows NULL
#endif

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
    .changes = change_rows,
    .total = total,
};
