/* Shared by models that work on columns of a block: linear combinations, and sums of products.
 * Cost: one pass for every four terms, and one for each remaining term; q (q + 1) / 2 dot
 * products. */
#include "base/block.h"

#include "base/lanes.h"
#include "base/memory.h"

struct terms terms_new(int most) {
    struct terms terms = {.coef = doubles((size_t)most),
                          .column = plugin_memory((size_t)most, sizeof(double *))};
    return terms;
}

void terms_clear(struct terms *terms) { terms->count = 0; }

void terms_add(struct terms *terms, double coef, const double *column) {
    if (coef == 0) return;
    terms->coef[terms->count] = coef;
    terms->column[terms->count++] = column;
}

VECTOR_CLONES static void combine(int m, double shift, int terms, const double *coef,
                                  const double *const *column, double *restrict out) {
    const double *restrict a = terms > 0 ? column[0] : NULL;
    const double *restrict b = terms > 1 ? column[1] : NULL;
    const double *restrict c = terms > 2 ? column[2] : NULL;
    const double *restrict d = terms > 3 ? column[3] : NULL;
    const double ca = terms > 0 ? coef[0] : 0, cb = terms > 1 ? coef[1] : 0;
    const double cc = terms > 2 ? coef[2] : 0, cd = terms > 3 ? coef[3] : 0;
    switch (terms) {
    case 0:
        FOR_RECORDS(i, m) out[i] = shift;
        return;
    case 1:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i];
        return;
    case 2:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i];
        return;
    case 3:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i] + cc * c[i];
        return;
    default:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i] + cc * c[i] + cd * d[i];
    }
    int k = 4;
    for (; k + 4 <= terms; k += 4) { /* in the same order as one by one */
        const double *restrict e = column[k], *restrict f = column[k + 1];
        const double *restrict g = column[k + 2], *restrict h = column[k + 3];
        const double ce = coef[k], cf = coef[k + 1], cg = coef[k + 2], ch = coef[k + 3];
        FOR_RECORDS(i, m) out[i] = out[i] + ce * e[i] + cf * f[i] + cg * g[i] + ch * h[i];
    }
    for (; k < terms; ++k) {
        const double *restrict e = column[k];
        const double ce = coef[k];
        FOR_RECORDS(i, m) out[i] += ce * e[i];
    }
}

void terms_sum(const struct terms *terms, double shift, int m, double *out) {
    combine(m, shift, terms->count, terms->coef, terms->column, out);
}

/* Four at a time: one alone waits for its own additions. */
static INLINE void add_dots(int m, const double *a, int count, const double *x, ptrdiff_t stride,
                            double *out) {
    int j = 0;
#if HAS_LANES
    const int whole = m & ~(LANES - 1);
    for (; j + 4 <= count; j += 4, x += 4 * stride) {
        lanes part[4] = {{0}};
        for (int i = 0; i < whole; i += LANES) {
            const lanes value = LANES_LOAD(a + i);
            UNROLL for (int v = 0; v < 4; ++v) part[v] += value * LANES_LOAD(x + v * stride + i);
        }
        UNROLL for (int v = 0; v < 4; ++v) {
            for (int i = whole; i < m; ++i) part[v][i - whole] += a[i] * x[v * stride + i];
            out[j + v] += lanes_sum(part + v);
        }
    }
#endif
    for (; j < count; ++j, x += stride) out[j] += block_dot(m, a, x);
}

VECTOR_CLONES void block_add_dots(int m, const double *a, int count, const double *x,
                                  ptrdiff_t stride, double *out) {
    add_dots(m, a, count, x, stride, out);
}

struct moments moments_new(int q, const double *centre) {
    struct moments moments = {
        .q = q,
        .centre = centre,
        .centred = doubles((size_t)q * MAX_BLOCK),
    };
    return moments;
}

double moments_product(const struct moments *moments, const double *c, int i, int j) {
    return c[moments_at(moments->q, i, j)];
}

/* Clones of a function that other files call would be visible symbols: they are static,
 * and a plain function calls each. */
VECTOR_CLONES static void centre_clones(const struct moments *moments, int m,
                                        const double *const *x) {
    for (int v = 0; v < moments->q; ++v) {
        const double centre = moments->centre[v], *restrict in = x[v];
        double *restrict out = moments->centred + (size_t)v * MAX_BLOCK;
        FOR_RECORDS(i, m) out[i] = in[i] - centre;
    }
}

void moments_centre(const struct moments *moments, int m, const double *const *x) {
    centre_clones(moments, m, x);
}

static INLINE void add_all(const struct moments *moments, int m, const double *const *x,
                           double *c) {
    const int q = moments->q;
    moments_centre(moments, m, x);
    double *product = c + q;
    for (int i = 0; i < q; ++i) {
        const double *one = moments->centred + (size_t)i * MAX_BLOCK;
        c[i] += block_sum(m, one);
        add_dots(m, one, q - i, one, MAX_BLOCK, product);
        product += q - i;
    }
}

#if HAS_LANES
/* The same for few columns, everything in registers. */
static INLINE void add_few(const struct moments *moments, int q, int m, const double *const *x,
                           double *c) {
    enum { MOST = 4, SUMS = MOST * (MOST + 3) / 2 };
    lanes sum[SUMS] = {{0}};
    for (int i = 0; i < m; i += LANES) {
        lanes value[MOST];
        const int left = m - i;
        UNROLL for (int v = 0; v < q; ++v) {
            const double centre = moments->centre[v];
            value[v] = LANES_LOAD(x[v] + i) - (lanes){centre, centre, centre, centre};
            if (left < LANES) /* the padding counts for nothing */
                for (int l = left; l < LANES; ++l) value[v][l] = 0;
        }
        int at = q;
        UNROLL for (int a = 0; a < q; ++a) {
            sum[a] += value[a];
            UNROLL for (int b = a; b < q; ++b) sum[at++] += value[a] * value[b];
        }
    }
    UNROLL for (int j = 0; j < q * (q + 3) / 2; ++j) c[j] += lanes_sum(sum + j);
}
#endif

VECTOR_CLONES static void add_clones(const struct moments *moments, int m, const double *const *x,
                                     double *c) {
#if HAS_LANES
    switch (moments->q) {
    case 1:
        add_few(moments, 1, m, x, c);
        return;
    case 2:
        add_few(moments, 2, m, x, c);
        return;
    case 3:
        add_few(moments, 3, m, x, c);
        return;
    case 4:
        add_few(moments, 4, m, x, c);
        return;
    }
#endif
    add_all(moments, m, x, c);
}

void moments_add(const struct moments *moments, int m, const double *const *x, double *c) {
    add_clones(moments, m, x, c);
}
