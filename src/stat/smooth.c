/* Statistic "smooth": what a regression of y on cubic B-splines b_1, ..., b_K of x needs, with
 * equal knots between the bounds of x: totals of b_j b_k (j <= k <= j + 2; b_j b_(j + 3) is at most
 * 1 / 2304, and all others are 0), of y b_k and of y^2. Both are clamped to their bounds; y is
 * scale * y + shift.
 *
 * Columns: y, x. Fields: scale and shift of y, then of x, which is counted in intervals;
 * lower and upper of y; intervals. Invariant: a record enters through clamped values alone. Cost:
 * 14 additions a record in total(), as many numbers as there are components in eval().
 */
#include "base/block.h"
#include "base/cubic_splines.h"
#include "contract/stat.h"

enum { Y, X, COLUMNS };

enum { BAND = 3 };

struct smooth {
    const double *scale, *shift, *lower, *upper;
    int intervals, splines;
    int *pair; /* of an interval, the first place of each row: intervals x SPLINES_AT_ONCE */
    double column[COLUMNS][MAX_BLOCK];
};

static int create(const struct fields *fields, struct stat *stat) {
    struct smooth *s = plugin_memory(1, sizeof *s);
    s->scale = fields_vector(fields, "scale", COLUMNS);
    s->shift = fields_vector(fields, "shift", COLUMNS);
    s->lower = fields_vector(fields, "lower", 1);
    s->upper = fields_vector(fields, "upper", 1);
    const double *intervals = fields_vector(fields, "intervals", 1);
    if (!s->scale || !s->shift || !s->lower || !s->upper || !intervals) return PLUGIN_BAD_FIELDS;
    s->intervals = (int)*intervals;
    s->splines = s->intervals + 3;
    s->pair = plugin_memory((size_t)s->intervals * SPLINES_AT_ONCE, sizeof *s->pair);
    for (int i = 0; i < s->intervals; ++i)
        for (int j = 0; j < SPLINES_AT_ONCE; ++j)
            s->pair[i * SPLINES_AT_ONCE + j] = spline_pair(s->splines, BAND, i + j, i + j);
    stat->self = s;
    stat->columns = COLUMNS;
    stat->size = spline_pairs(s->splines, BAND) + s->splines + 1;
    return PLUGIN_OK;
}

/* Adds a record's contributions to components that are `stride` apart. */
static inline void contribute(const struct smooth *s, double y, double x, ptrdiff_t stride,
                              double *t) {
    const int interval = spline_interval(s->intervals, x), pairs = spline_pairs(s->splines, BAND);
    const int *pair = s->pair + interval * SPLINES_AT_ONCE;
    double b[SPLINES_AT_ONCE];
    cubic_splines(x - interval, b);
    for (int j = 0; j < SPLINES_AT_ONCE; ++j) {
        for (int k = j; k < SPLINES_AT_ONCE && k < j + BAND; ++k)
            t[(pair[j] + k - j) * stride] += b[j] * b[k];
        t[(pairs + interval + j) * stride] += y * b[j];
    }
    t[(pairs + s->splines) * stride] += y * y;
}

static void clamp(struct smooth *s, int m, const double *const *x) {
    block_clamp(s->scale[Y], s->shift[Y], *s->lower, *s->upper, m, x[Y], s->column[Y]);
    block_clamp(s->scale[X], s->shift[X], 0, s->intervals, m, x[X], s->column[X]);
}

static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    struct smooth *s = self;
    const int size = spline_pairs(s->splines, BAND) + s->splines + 1;
    clamp(s, m, x);
    for (int j = 0; j < size; ++j)
        memset(t + (size_t)j * stride, 0, (size_t)PAD_LANES(m) * sizeof(double));
    for (int i = 0; i < m; ++i) contribute(s, s->column[Y][i], s->column[X][i], stride, t + i);
}

static void total(void *self, int m, const double *const *x, double *total) {
    struct smooth *s = self;
    clamp(s, m, x);
    for (int i = 0; i < m; ++i) contribute(s, s->column[Y][i], s->column[X][i], 1, total);
}

const struct stat_class stat_smooth = {
    .name = "smooth",
    .create = create,
    .eval = eval,
    .total = total,
};
