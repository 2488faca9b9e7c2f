/* Statistic "objective": the contribution of one record to the gradient and the Hessian of the
 * logistic loss at given coefficients z (Kifer, Smith & Thakurta 2012; a t_i(x_i, z) of the
 * general record additivity of Ju et al. 2022, Assumption 2).
 *
 * A record's row is w = (1, x), the columns of x clamped to their bounds and mapped
 * by scale * x + shift, all of it shortened to length `radius` if it is longer. With
 * p = 1 / (1 + exp(-w'z)) the components are (p - y) w, then the lower triangle of
 * p (1 - p) w w', row by row.
 *
 * Invariant: |w| is at most `radius`, and so is |(p - y) w|. Cost per record: an
 * exponential and O(d^2) for d coefficients.
 */
#include "base/block.h"
#include "contract/stat.h"

struct objective {
    int q, d; /* columns, the response first; coefficients */
    const double *scale, *shift, *lower, *upper, *coefficients;
    double radius;
    double *row;                  /* w, d columns of MAX_BLOCK */
    double *slope, *curve, *term; /* p - y, p (1 - p), a product; MAX_BLOCK each */
};

static int create(const struct fields *fields, struct stat *stat) {
    struct objective *s = plugin_memory(1, sizeof *s);
    s->q = s->d = fields_length(fields, "scale");
    s->scale = fields_vector(fields, "scale", s->q);
    s->shift = fields_vector(fields, "shift", s->q);
    s->lower = fields_vector(fields, "lower", s->q);
    s->upper = fields_vector(fields, "upper", s->q);
    s->coefficients = fields_vector(fields, "coefficients", s->d);
    const double *radius = fields_vector(fields, "radius", 1);
    if (!s->scale || !s->shift || !s->lower || !s->upper || !s->coefficients || !radius)
        return PLUGIN_BAD_FIELDS;
    s->radius = radius[0];
    s->row = plugin_memory((size_t)s->d * MAX_BLOCK, sizeof *s->row);
    s->slope = plugin_memory(MAX_BLOCK, sizeof *s->slope);
    s->curve = plugin_memory(MAX_BLOCK, sizeof *s->curve);
    s->term = plugin_memory(MAX_BLOCK, sizeof *s->term);
    stat->self = s;
    stat->columns = s->q;
    stat->size = s->d + s->d * (s->d + 1) / 2;
    return PLUGIN_OK;
}

static INLINE void clamp(const struct objective *s, int v, int m, const double *x, double *out) {
    block_clamp(s->scale[v], s->shift[v], s->lower[v], s->upper[v], m, x, out);
}

static INLINE void add_product(int m, double factor, const double *restrict a,
                               const double *restrict b, double *restrict out) {
    FOR_RECORDS(i, m) out[i] += factor * a[i] * b[i];
}

static INLINE void multiply(int m, const double *restrict a, const double *restrict b,
                            double *restrict out) {
    FOR_RECORDS(i, m) out[i] = a[i] * b[i];
}

/* s->row */
static INLINE void fill_rows(struct objective *s, int m, const double *const *x) {
    double *length = s->term;
    FOR_RECORDS(i, m) s->row[i] = length[i] = 1;
    for (int j = 1; j < s->d; ++j) {
        double *w = s->row + (size_t)j * MAX_BLOCK;
        clamp(s, j, m, x[j], w);
        add_product(m, 1, w, w, length);
    }
    FOR_RECORDS(i, m) {
        const double shorter = s->radius / sqrt(length[i]);
        length[i] = shorter < 1 ? shorter : 1;
    }
    for (int j = 0; j < s->d; ++j) {
        double *restrict w = s->row + (size_t)j * MAX_BLOCK;
        FOR_RECORDS(i, m) w[i] *= length[i];
    }
}

/* s->slope and s->curve of the rows; neither overflows nor cancels */
static INLINE void fill_slopes(struct objective *s, int m, const double *response) {
    double *restrict eta = s->term, *restrict slope = s->slope, *restrict curve = s->curve;
    FOR_RECORDS(i, m) eta[i] = 0;
    for (int j = 0; j < s->d; ++j) {
        const double z = s->coefficients[j];
        const double *restrict w = s->row + (size_t)j * MAX_BLOCK;
        FOR_RECORDS(i, m) eta[i] += z * w[i];
    }
    clamp(s, 0, m, response, slope);
    FOR_RECORDS(i, m) {
        const double small = exp(-fabs(eta[i])), large = 1 / (1 + small);
        slope[i] = (eta[i] < 0 ? small * large : large) - slope[i];
        curve[i] = small * large * large;
    }
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    struct objective *s = self;
    fill_rows(s, m, x);
    fill_slopes(s, m, x[0]);
    for (int j = 0; j < s->d; ++j, t += stride)
        multiply(m, s->slope, s->row + (size_t)j * MAX_BLOCK, t);
    for (int j = 0; j < s->d; ++j) {
        multiply(m, s->curve, s->row + (size_t)j * MAX_BLOCK, s->term);
        for (int k = 0; k <= j; ++k, t += stride)
            multiply(m, s->term, s->row + (size_t)k * MAX_BLOCK, t);
    }
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    struct objective *s = self;
    fill_rows(s, m, x);
    fill_slopes(s, m, x[0]);
    for (int j = 0; j < s->d; ++j)
        *total++ += block_dot(m, s->slope, s->row + (size_t)j * MAX_BLOCK);
    for (int j = 0; j < s->d; ++j) {
        multiply(m, s->curve, s->row + (size_t)j * MAX_BLOCK, s->term);
        for (int k = 0; k <= j; ++k)
            *total++ += block_dot(m, s->term, s->row + (size_t)k * MAX_BLOCK);
    }
}

const struct stat_class stat_objective = {
    .name = "objective",
    .create = create,
    .eval = eval,
    .total = total,
};
