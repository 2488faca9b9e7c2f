/* Statistic "sums": totals of monomials in the variables of a record.
 *
 * A variable enters as scale * x + shift, clamped to [lower, upper]. With `drop` the whole record
 * is left out instead: if any of its variables lies outside, it adds 0 to every
 * total (Bernstein & Sheldon 2018, section 3.3). No monomial is constant, so
 * that is the same as setting the record's variables to 0. In the variables' own units the scale
 * is 1 and the shift 0.
 *
 * Invariant: every component depends on a record only through bounded values,
 * so it stays inside the range that the sensitivity was computed from.
 * Cost per record: q vectorised operations for the bounds (3 q with `drop`) and
 * degree - 1 multiplications a component.
 */
#include "base/block.h"
#include "contract/stat.h"

struct sums {
    int q, size, drop;
    const double *scale, *shift, *lower, *upper;
    int *degree;  /* of each component */
    int *factor;  /* its variables, each as often as its power, one component after the other */
    int *plain;   /* the component that is the variable itself, or -1 */
    double *work; /* columns of MAX_BLOCK: the variables, then one to multiply in */
    double **bounded;
};

static int read_factors(const struct fields *fields, struct sums *s) {
    const int factors = fields_length(fields, "factor");
    const double *degree = fields_vector(fields, "degree", s->size);
    const double *factor = fields_vector(fields, "factor", factors);
    if (!degree || !factor) return PLUGIN_BAD_FIELDS;
    s->degree = plugin_memory((size_t)s->size, sizeof *s->degree);
    s->factor = plugin_memory((size_t)factors, sizeof *s->factor);
    s->plain = plugin_memory((size_t)s->q, sizeof *s->plain);
    int at = 0;
    for (int v = 0; v < s->q; ++v) s->plain[v] = -1;
    for (int j = 0; j < s->size; ++j) {
        s->degree[j] = (int)degree[j];
        if (s->degree[j] < 1 || s->degree[j] > factors - at) return PLUGIN_BAD_FIELDS;
        if (s->degree[j] == 1) s->plain[(int)factor[at]] = j;
        for (int k = 0; k < s->degree[j]; ++k, ++at) s->factor[at] = (int)factor[at];
    }
    return PLUGIN_OK;
}

static int create(const struct fields *fields, struct stat *stat) {
    struct sums *s = plugin_memory(1, sizeof *s);
    s->q = fields_length(fields, "lower");
    s->size = fields_length(fields, "degree");
    s->scale = fields_vector(fields, "scale", s->q);
    s->shift = fields_vector(fields, "shift", s->q);
    s->lower = fields_vector(fields, "lower", s->q);
    s->upper = fields_vector(fields, "upper", s->q);
    const double *drop = fields_vector(fields, "drop", 1);
    if (!s->scale || !s->shift || !s->lower || !s->upper || !drop) return PLUGIN_BAD_FIELDS;
    s->drop = *drop != 0;
    const int status = read_factors(fields, s);
    if (status != PLUGIN_OK) return status;
    s->work = plugin_memory((size_t)(s->q + 1) * MAX_BLOCK, sizeof *s->work);
    s->bounded = plugin_memory((size_t)s->q, sizeof *s->bounded);
    stat->self = s;
    stat->columns = s->q;
    stat->size = s->size;
    return PLUGIN_OK;
}

/* the variable in its units, and which records are inside its bounds */
static inline void inside(const struct sums *s, int v, int m, const double *restrict x,
                          double *restrict out, double *restrict is_inside) {
    const double scale = s->scale[v], shift = s->shift[v];
    const double lower = s->lower[v], upper = s->upper[v];
    FOR_RECORDS(i, m) {
        const double value = scale * x[i] + shift;
        out[i] = value;
        double flag = value >= lower ? is_inside[i] : 0;
        flag = value <= upper ? flag : 0;
        is_inside[i] = flag;
    }
}

static inline void keep_inside(int m, const double *restrict is_inside, double *restrict out) {
    FOR_RECORDS(i, m) {
        const double value = out[i];
        out[i] = is_inside[i] > 0 ? value : 0;
    }
}

/* the variables as the totals see them, in s->bounded */
static inline void bound_records(const struct sums *s, int m, const double *const *x) {
    if (!s->drop) {
        for (int v = 0; v < s->q; ++v)
            block_clamp(s->scale[v], s->shift[v], s->lower[v], s->upper[v], m, x[v], s->bounded[v]);
        return;
    }
    double *is_inside = s->work + (size_t)s->q * MAX_BLOCK;
    FOR_RECORDS(i, m) is_inside[i] = 1;
    for (int v = 0; v < s->q; ++v) inside(s, v, m, x[v], s->bounded[v], is_inside);
    for (int v = 0; v < s->q; ++v) keep_inside(m, is_inside, s->bounded[v]);
}

static inline void multiply(int m, const double *restrict a, const double *restrict b,
                            double *restrict out) {
    FOR_RECORDS(i, m) out[i] = a[i] * b[i];
}

static inline void multiply_by(int m, const double *restrict a, double *restrict out) {
    FOR_RECORDS(i, m) out[i] *= a[i];
}

/* a monomial of degree 2 or more */
static inline void monomial(const struct sums *s, int m, int degree, const int *factor,
                            double *out) {
    multiply(m, s->bounded[factor[0]], s->bounded[factor[1]], out);
    for (int k = 2; k < degree; ++k) multiply_by(m, s->bounded[factor[k]], out);
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct sums *s = self;
    for (int v = 0; v < s->q; ++v)
        s->bounded[v] =
            s->plain[v] < 0 ? s->work + (size_t)v * MAX_BLOCK : t + (size_t)s->plain[v] * stride;
    bound_records(s, m, x);
    const int *factor = s->factor;
    for (int j = 0; j < s->size; factor += s->degree[j++])
        if (s->degree[j] > 1) monomial(s, m, s->degree[j], factor, t + (size_t)j * stride);
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    const struct sums *s = self;
    double *product = s->work + (size_t)s->q * MAX_BLOCK;
    for (int v = 0; v < s->q; ++v) s->bounded[v] = s->work + (size_t)v * MAX_BLOCK;
    bound_records(s, m, x);
    const int *factor = s->factor;
    for (int j = 0; j < s->size; factor += s->degree[j++]) {
        if (s->degree[j] == 1) {
            total[j] += block_sum(m, s->bounded[factor[0]]);
        } else if (s->degree[j] == 2) {
            total[j] += block_dot(m, s->bounded[factor[0]], s->bounded[factor[1]]);
        } else {
            monomial(s, m, s->degree[j], factor, product);
            total[j] += block_sum(m, product);
        }
    }
}

const struct stat_class stat_sums = {
    .name = "sums",
    .create = create,
    .eval = eval,
    .total = total,
};
