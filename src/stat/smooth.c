/* Statistic "smooth": what a regression of y on cubic B-splines of covariates x and on numbers z
 * needs. The splines b_1, ..., b_K of a covariate have equal knots between its bounds. Totals, in
 * order:
 *
 *   - of each x, b_j b_k (j <= k <= j + 2; b_j b_(j + 3) is at most 1 / 2304, and all others are
 * 0);
 *   - of each pair of x, the products of their splines;
 *   - of each z and x, z b_k;
 *   - z z' of each pair of z, squares included;
 *   - of each x, y b_k; then y z of each z; and y^2;
 *   - of each level of each factor, over its records: b_k of all x, z, how many are of each level
 * of each earlier factor, and y.
 *
 * Numbers are clamped to their bounds. Columns: y, x, z, and of each factor a dummy for each level
 * but the first. Fields: scale, shift, lower and upper of y, x and z, x in intervals; intervals of
 * each x; levels of each factor. Invariant: a record enters through clamped values, and one level
 * of each factor, alone. Cost: of a record, an addition for each total that it moves in total(), as
 * many numbers as there are totals in eval().
 */
#include "base/block.h"
#include "base/cubic_splines.h"
#include "contract/stat.h"

enum { Y, COVARIATES };

enum { BAND = 3 };

/* A covariate x, and where its totals begin. */
struct splined {
    int intervals, splines;
    int own, response; /* b b' and y b */
    int *across;       /* of its splines with those of each earlier x, then of each z */
    int *pair;         /* of an interval, the first place of each row: SPLINES_AT_ONCE */
};

struct factor {
    int levels, column; /* of its first dummy */
    int first, each;    /* where its totals begin, and how many a level has */
};

struct smooth {
    const double *scale, *shift, *lower, *upper;
    int smooths, numbers, factors, columns, size;
    struct splined *x;
    struct factor *factor;
    int products, response; /* where z z' and y z begin; y^2 follows */
    double *column;         /* clamped, MAX_BLOCK apart */
    double *b;              /* of a record: SPLINES_AT_ONCE of each x */
    int *interval, *level;  /* of a record: of each x, and of each factor */
};

static void number_components(struct smooth *s) {
    int at = 0;
    for (int j = 0; j < s->smooths; ++j) {
        struct splined *x = s->x + j;
        x->own = at;
        at += spline_pairs(x->splines, BAND);
        x->across = plugin_memory((size_t)(j + s->numbers), sizeof *x->across);
        x->pair = plugin_memory((size_t)x->intervals * SPLINES_AT_ONCE, sizeof *x->pair);
        for (int i = 0; i < x->intervals; ++i)
            for (int k = 0; k < SPLINES_AT_ONCE; ++k)
                x->pair[i * SPLINES_AT_ONCE + k] =
                    x->own + spline_pair(x->splines, BAND, i + k, i + k);
    }
    /* of the earlier x, row by row */
    for (int i = 0; i < s->smooths; ++i)
        for (int j = i + 1; j < s->smooths; ++j) {
            s->x[j].across[i] = at;
            at += s->x[i].splines * s->x[j].splines;
        }
    for (int k = 0; k < s->numbers; ++k)
        for (int j = 0; j < s->smooths; ++j) {
            s->x[j].across[j + k] = at;
            at += s->x[j].splines;
        }
    s->products = at;
    at += s->numbers * (s->numbers + 1) / 2;
    for (int j = 0; j < s->smooths; ++j) {
        s->x[j].response = at;
        at += s->x[j].splines;
    }
    s->response = at;
    at += s->numbers + 1;
    int each = s->numbers + 1;
    for (int j = 0; j < s->smooths; ++j) each += s->x[j].splines;
    for (int f = 0; f < s->factors; ++f) {
        s->factor[f].first = at;
        s->factor[f].each = each;
        at += s->factor[f].levels * each;
        each += s->factor[f].levels;
    }
    s->size = at;
}

/* Factors, and so how many of the columns are numbers. */
static void read_factors(const struct fields *fields, struct smooth *s) {
    s->factors = fields_length(fields, "levels");
    const double *levels = fields_vector(fields, "levels", s->factors);
    s->factor = plugin_memory((size_t)s->factors, sizeof *s->factor);
    s->level = plugin_memory((size_t)s->factors, sizeof *s->level);
    int column = s->columns;
    for (int f = s->factors; f-- > 0;) {
        column -= (int)levels[f] - 1;
        s->factor[f] = (struct factor){.levels = (int)levels[f], .column = column};
    }
    s->numbers = column - 1 - s->smooths;
}

static int create(const struct fields *fields, struct stat *stat) {
    struct smooth *s = plugin_memory(1, sizeof *s);
    s->smooths = fields_length(fields, "intervals");
    s->columns = fields_length(fields, "scale");
    read_factors(fields, s);
    if (s->numbers < 0) return PLUGIN_BAD_FIELDS;
    s->scale = fields_vector(fields, "scale", s->columns);
    s->shift = fields_vector(fields, "shift", s->columns);
    s->lower = fields_vector(fields, "lower", s->columns);
    s->upper = fields_vector(fields, "upper", s->columns);
    const double *intervals = fields_vector(fields, "intervals", s->smooths);
    if (!s->scale || !s->shift || !s->lower || !s->upper || !intervals) return PLUGIN_BAD_FIELDS;
    s->x = plugin_memory((size_t)s->smooths, sizeof *s->x);
    for (int j = 0; j < s->smooths; ++j)
        s->x[j] =
            (struct splined){.intervals = (int)intervals[j], .splines = (int)intervals[j] + 3};
    number_components(s);
    s->column = doubles((size_t)s->columns * MAX_BLOCK);
    s->b = doubles((size_t)s->smooths * SPLINES_AT_ONCE);
    s->interval = plugin_memory((size_t)s->smooths, sizeof *s->interval);
    stat->self = s;
    stat->columns = s->columns;
    stat->size = s->size;
    return PLUGIN_OK;
}

/* weight times the four splines b, to components of an interval */
static inline void add_splines(double weight, const double *b, ptrdiff_t stride, double *t) {
    for (int k = 0; k < SPLINES_AT_ONCE; ++k) t[k * stride] += weight * b[k];
}

/* What levels of the block's record i contribute, whose splines are known. */
static void contribute_levels(const struct smooth *s, int i, ptrdiff_t stride, double *t) {
    const double *value = s->column + i;
    const double *z = value + (ptrdiff_t)(COVARIATES + s->smooths) * MAX_BLOCK;
    for (int f = 0; f < s->factors; ++f) {
        const struct factor *of = s->factor + f;
        int level = of->levels - 1; /* the first has no dummy */
        while (level > 0 && value[(ptrdiff_t)(of->column + level - 1) * MAX_BLOCK] < 0.5) --level;
        s->level[f] = level;
        double *to = t + (of->first + level * of->each) * stride;
        for (int j = 0; j < s->smooths; to += s->x[j++].splines * stride)
            add_splines(1, s->b + j * SPLINES_AT_ONCE, stride, to + s->interval[j] * stride);
        for (int k = 0; k < s->numbers; ++k, to += stride) *to += z[(ptrdiff_t)k * MAX_BLOCK];
        for (int e = 0; e < f; to += s->factor[e++].levels * stride) to[s->level[e] * stride] += 1;
        *to += value[Y];
    }
}

/* Adds contributions of the block's record i to components that are `stride` apart. */
static void contribute(const struct smooth *s, int i, ptrdiff_t stride, double *t) {
    const double *value = s->column + i, y = value[Y];
    const double *z = value + (ptrdiff_t)(COVARIATES + s->smooths) * MAX_BLOCK;
    for (int j = 0; j < s->smooths; ++j) {
        const struct splined *x = s->x + j;
        const double u = value[(ptrdiff_t)(COVARIATES + j) * MAX_BLOCK];
        const int interval = s->interval[j] = spline_interval(x->intervals, u);
        const int *pair = x->pair + interval * SPLINES_AT_ONCE;
        double *b = s->b + j * SPLINES_AT_ONCE;
        cubic_splines(u - interval, b);
        for (int k = 0; k < SPLINES_AT_ONCE; ++k)
            for (int l = k; l < SPLINES_AT_ONCE && l < k + BAND; ++l)
                t[(pair[k] + l - k) * stride] += b[k] * b[l];
        add_splines(y, b, stride, t + (x->response + interval) * stride);
        for (int e = 0; e < j; ++e)
            for (int k = 0; k < SPLINES_AT_ONCE; ++k)
                add_splines(s->b[e * SPLINES_AT_ONCE + k], b, stride,
                            t + (x->across[e] + (s->interval[e] + k) * x->splines + interval) *
                                    stride);
        for (int k = 0; k < s->numbers; ++k)
            add_splines(z[(ptrdiff_t)k * MAX_BLOCK], b, stride,
                        t + (x->across[j + k] + interval) * stride);
    }
    int at = s->products;
    for (int k = 0; k < s->numbers; ++k) {
        const double own = z[(ptrdiff_t)k * MAX_BLOCK];
        for (int l = k; l < s->numbers; ++l, ++at)
            t[at * stride] += own * z[(ptrdiff_t)l * MAX_BLOCK];
        t[(s->response + k) * stride] += y * own;
    }
    t[(s->response + s->numbers) * stride] += y * y;
    contribute_levels(s, i, stride, t);
}

/* x stays where the splines are, whatever its limits. */
static void clamp(struct smooth *s, int m, const double *const *x) {
    for (int v = 0; v < s->columns; ++v) {
        const int splined = v > Y && v - COVARIATES < s->smooths;
        const double lower = splined ? 0 : s->lower[v];
        const double upper = splined ? s->x[v - COVARIATES].intervals : s->upper[v];
        block_clamp(s->scale[v], s->shift[v], lower, upper, m, x[v],
                    s->column + (ptrdiff_t)v * MAX_BLOCK);
    }
}

static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    struct smooth *s = self;
    clamp(s, m, x);
    for (int j = 0; j < s->size; ++j)
        memset(t + (size_t)j * stride, 0, (size_t)PAD_LANES(m) * sizeof(double));
    for (int i = 0; i < m; ++i) contribute(s, i, stride, t + i);
}

static void total(void *self, int m, const double *const *x, double *total) {
    struct smooth *s = self;
    clamp(s, m, x);
    for (int i = 0; i < m; ++i) contribute(s, i, 1, total);
}

const struct stat_class stat_smooth = {
    .name = "smooth",
    .create = create,
    .eval = eval,
    .total = total,
};
