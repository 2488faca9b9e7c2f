/* New shapes of all records (records/redraw_steps.c): clamped totals s of the records with means
 * m, factor F and shape U, with their derivatives; (m, F) from s and U by Newton's method,
 * starting from the solution without bounds; log h there.
 *
 * Cost: a pass of d^2 / 2 multiplications a record for the totals, some of them a solution. No
 * allocation except in redraw_new().
 */
#include "records/redraw_shape.h"

#include "base/lanes.h"
#include "base/linalg.h"
#include "contract/model_marginal.h"
#include "contract/model_update.h"

enum { MOST_COLUMNS = 6 };

/* Newton's method: steps, and the change, in standard deviations, that is none. How far the
 * solution may be from the records. */
enum { MOST_SOLVED = 25 };
static const double SOLVED = 1e-8, SAME = 1e-6;

/* ---- set-up ------------------------------------------------------------------------------ */

static inline int entry(const struct redraw *r, int i, int j) { return r->d + i * (i + 1) / 2 + j; }

static int place_of(const struct redraw *r, int column) {
    for (int i = 0; i < r->d; ++i)
        if (r->column[i] == column) return i;
    return -1;
}

static inline int is_untold(const struct redraw *r, int k) { return r->total[k].component < 0; }

/* Does each component depend on released totals alone, and has each other total a scale? */
static int serves_untold(struct redraw *r, int found) {
    r->untold = r->size - found;
    if (r->untold == 0) return 1;
    for (int k = 0; k < r->size; ++k) {
        const struct told *told = r->total + k;
        if (is_untold(r, k)) continue;
        for (int e = 0; e < 2; ++e)
            if (told->coef[e] != 0 && is_untold(r, told->at[e])) return 0;
    }
    for (int i = 0; i < r->d; ++i)
        if (!(isfinite(r->upper[i] - r->lower[i]) && r->upper[i] > r->lower[i])) return 0;
    return found > 0;
}

/* Does each component tell one total or product, a different one each? */
static int read_components_of(struct redraw *r, const struct augment *a) {
    int found = 0;
    for (int k = 0; k < r->size; ++k) r->total[k].component = -1;
    for (int k = 0; k < a->layout.dense; ++k) {
        if (!(a->noise.weight[k] > 0)) continue;
        const struct component *one = a->surrogate->density.component + k;
        const int i = place_of(r, one->at[0]), j = place_of(r, one->at[1]);
        if (i < 0 || j < 0) return 0;
        if (one->coef[2] == 0 && (one->coef[0] == 0 || one->coef[1] != 0)) return 0;
        const int product = i > j ? entry(r, i, j) : entry(r, j, i);
        struct told *told = r->total + (one->coef[2] == 0 ? i : product);
        if (told->component >= 0) return 0;
        *told = (struct told){
            k, {i, j, product}, one->constant, {one->coef[0], one->coef[1], one->coef[2]}};
        ++found;
    }
    return serves_untold(r, found);
}

static int serves(const struct augment *a) {
    const struct model *model = &a->model;
    if (!a->surrogate || !a->surrogate->records.sum || a->sites.count > 1 || model_is_cut(model) ||
        model->predictor || model->levels || model->marginal->regressors || a->layout.open > 0 ||
        a->layout.locals > 0 || a->noise.separable < a->layout.dense)
        return 0;
    const struct totals *t = &a->surrogate->density.totals;
    return t->riders == 0 && t->k == 1 && t->d <= MOST_COLUMNS && t->d == model->columns;
}

static double **columns_of(int d, size_t records) {
    double **column = plugin_memory((size_t)d, sizeof *column);
    for (int i = 0; i < d; ++i) column[i] = doubles(records);
    return column;
}

struct redraw *redraw_new(const struct augment *a, ptrdiff_t most) {
    if (!serves(a)) return NULL;
    const struct surrogate *s = a->surrogate;
    struct redraw *r = plugin_memory(1, sizeof *r);
    const int d = r->d = s->density.totals.d, size = r->size = d * (d + 3) / 2;
    const size_t records = (size_t)PAD_LANES(most), square = (size_t)d * (size_t)d;
    r->column = s->density.totals.column;
    r->lower = s->lower;
    r->upper = s->upper;
    r->total = plugin_memory((size_t)size, sizeof *r->total);
    if (!read_components_of(r, a)) return NULL;
    r->w = columns_of(d, records);
    r->outside = plugin_memory(records, sizeof(int));
    r->is_outside = plugin_memory(records, sizeof(int));
    DOUBLES((size_t)size, &r->seen, &r->step);
    r->slopes = doubles((size_t)size * (size_t)size);
    r->row = doubles(4 * (size_t)d + 1);
    r->gradient_c = doubles((size_t)a->model.complete);
    r->gradient_kept = doubles((size_t)(s->density.size + a->model.marginal->keeps));
    r->theta = doubles((size_t)a->model.parameters);
    for (int k = 0; k < 2; ++k)
        r->kept[k] = (struct place){doubles((size_t)d),
                                    doubles(square),
                                    doubles((size_t)size),
                                    doubles((size_t)a->model.complete),
                                    0,
                                    columns_of(d, records)};
    return r;
}

/* ---- clamped totals, and their slopes ------------------------------------------------------ */

/* Lists the records that some bound clamps; their columns are in r->w. */
static int list_outside(struct redraw *r, int n) {
    int count = 0;
    memset(r->is_outside, 0, (size_t)n * sizeof(int));
    for (int i = 0; i < r->d; ++i) {
        const double *w = r->w[i], low = r->lower[i], high = r->upper[i];
        for (int k = 0; k < n; ++k) r->is_outside[k] |= (w[k] < low) | (w[k] > high);
    }
    for (int k = 0; k < n; ++k) {
        r->outside[count] = k;
        count += r->is_outside[k];
    }
    return count;
}

/* What would be without bounds. */
static void measure_all(struct redraw *r, double n, const struct place *at) {
    const int d = r->d, size = r->size;
    memset(r->slopes, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < d; ++i) {
        r->seen[i] = n * at->mean[i];
        r->slopes[i * size + i] = n;
        for (int j = 0; j <= i; ++j) {
            double *slope = r->slopes + entry(r, i, j) * size;
            r->seen[entry(r, i, j)] =
                n * (at->mean[i] * at->mean[j] +
                     linalg_dot(j + 1, at->factor + i * d, at->factor + j * d));
            slope[i] += n * at->mean[j];
            slope[j] += n * at->mean[i];
            for (int l = 0; l <= j; ++l) {
                slope[entry(r, i, l)] += n * at->factor[j * d + l];
                slope[entry(r, j, l)] += n * at->factor[i * d + l];
            }
        }
    }
}

/* Of one column: sums of clamped values and of their squares; of those inside the number, the sum,
 * and the sums of u and of values times u. */
enum { FIRST, SECOND, INSIDE, INSIDE_FIRST, INSIDE_U, INSIDE_FIRST_U, COLUMN_SUMS };

/* Adds those of LANES records, of each lane on its own. */
static INLINE void add_lanes(double lower, double upper, const double *restrict w,
                             const double *restrict u, double (*restrict part)[LANES]) {
#if HAS_LANES
    const lanes x = LANES_LOAD(w), low = LANES_OF(lower), high = LANES_OF(upper), none = {0};
    lanes v = LANES_SELECT((lanes_bits)(x > low), x, low);
    v = LANES_SELECT((lanes_bits)(v < high), v, high);
    const lanes_bits in = (lanes_bits)(v == x);
    const lanes kept = LANES_SELECT(in, LANES_LOAD(u), none);
    const lanes by[COLUMN_SUMS] = {
        v, v * v, LANES_SELECT(in, LANES_OF(1.0), none), LANES_SELECT(in, v, none), kept, kept * v};
    UNROLL for (int e = 0; e < COLUMN_SUMS; ++e) LANES_STORE(part[e], LANES_LOAD(part[e]) + by[e]);
#else
    for (int l = 0; l < LANES; ++l) {
        const double v = fmin(fmax(w[l], lower), upper), inside = v == w[l];
        const double kept = inside * u[l];
        part[FIRST][l] += v;
        part[SECOND][l] += v * v;
        part[INSIDE][l] += inside;
        part[INSIDE_FIRST][l] += inside * v;
        part[INSIDE_U][l] += kept;
        part[INSIDE_FIRST_U][l] += kept * v;
    }
#endif
}

VECTOR_CLONES static void sum_column(int n, double lower, double upper, const double *w,
                                     const double *u, double *sum) {
    double part[COLUMN_SUMS][LANES] = {{0}}, last[2][LANES] = {{0}};
    const int left = n % LANES, whole = n - left;
    for (int k = 0; k < whole; k += LANES) add_lanes(lower, upper, w + k, u + k, part);
    memcpy(last[0], w + whole, (size_t)left * sizeof(double));
    memcpy(last[1], u + whole, (size_t)left * sizeof(double));
    if (left > 0) add_lanes(lower, upper, last[0], last[1], part);
    for (int e = 0; e < COLUMN_SUMS; ++e)
        sum[e] = (part[e][0] + part[e][1]) + (part[e][2] + part[e][3]);
    const double added = left > 0 ? LANES - left : 0, nothing = fmin(fmax(0, lower), upper);
    sum[FIRST] -= added * nothing;
    sum[SECOND] -= added * nothing * nothing;
    sum[INSIDE] -= nothing == 0 ? added : 0;
}

static void measure_column(struct redraw *r, int n, const struct place *at) {
    double sum[COLUMN_SUMS];
    sum_column(n, *r->lower, *r->upper, r->w[0], at->shape[0], sum);
    r->seen[0] = sum[FIRST];
    r->seen[1] = sum[SECOND];
    r->slopes[0] = sum[INSIDE];
    r->slopes[1] = sum[INSIDE_U];
    r->slopes[2] = 2 * sum[INSIDE_FIRST];
    r->slopes[3] = 2 * sum[INSIDE_FIRST_U];
}

/* less what the bounds take of record k */
static void clamp_record(struct redraw *r, const struct place *at, int k) {
    const int d = r->d, size = r->size;
    double *const u = r->row, *const w = u + d + 1, *const v = w + d, *const inside = v + d;
    u[0] = 1;
    for (int i = 0; i < d; ++i) {
        u[1 + i] = at->shape[i][k];
        w[i] = r->w[i][k];
        v[i] = fmin(fmax(w[i], r->lower[i]), r->upper[i]);
        inside[i] = v[i] == w[i];
    }
    for (int i = 0; i < d; ++i) {
        r->seen[i] -= w[i] - v[i];
        for (int l = 0; l <= i + 1 && !inside[i]; ++l)
            r->slopes[i * size + (l == 0 ? i : entry(r, i, l - 1))] -= u[l];
        for (int j = 0; j <= i; ++j) {
            double *slope = r->slopes + entry(r, i, j) * size;
            r->seen[entry(r, i, j)] -= w[i] * w[j] - v[i] * v[j];
            const double by_i = w[j] - inside[i] * v[j], by_j = w[i] - inside[j] * v[i];
            for (int l = 0; l <= i + 1; ++l) slope[l == 0 ? i : entry(r, i, l - 1)] -= by_i * u[l];
            for (int l = 0; l <= j + 1; ++l) slope[l == 0 ? j : entry(r, j, l - 1)] -= by_j * u[l];
        }
    }
}

/* The coordinates in place of what is not known. */
static void measure_untold(struct redraw *r, const struct place *at) {
    const int d = r->d, size = r->size;
    for (int k = 0; k < size; ++k)
        if (is_untold(r, k)) memset(r->slopes + k * size, 0, (size_t)size * sizeof(double));
    for (int i = 0; i < d; ++i) {
        if (is_untold(r, i)) {
            r->seen[i] = at->mean[i];
            r->slopes[i * size + i] = 1;
        }
        for (int j = 0; j <= i; ++j) {
            const int k = entry(r, i, j), own = entry(r, j, j);
            const double sd = at->factor[j * d + j], along = at->factor[i * d + j] / sd;
            if (!is_untold(r, k)) continue;
            r->seen[k] = i == j ? log(sd) : along;
            r->slopes[k * size + k] = 1 / sd;
            if (i != j) r->slopes[k * size + own] = -along / sd;
        }
    }
}

/* Clamped totals of the records that (m, F, U) makes, to r->seen, and their slopes. */
static void measure(struct augment *a, struct redraw *r, int n, const struct place *at) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        terms_clear(&a->block.map);
        for (int l = 0; l <= i; ++l) terms_add(&a->block.map, at->factor[i * d + l], at->shape[l]);
        terms_sum(&a->block.map, at->mean[i], n, r->w[i]);
    }
    if (d == 1) {
        measure_column(r, n, at);
    } else {
        measure_all(r, (double)n, at);
        const int count = list_outside(r, n);
        for (int k = 0; k < count; ++k) clamp_record(r, at, r->outside[k]);
    }
    if (r->untold > 0) measure_untold(r, at);
}

/* ---- means and factor from totals ----------------------------------------------------------- */

/* Means and factor if there were no bounds: from the released totals, as Cholesky's method goes,
 * row by row. Returns 0 where no records have such totals. */
static int guess(const struct redraw *r, double n, struct place *at) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        double *const row = at->factor + i * d;
        at->mean[i] = is_untold(r, i) ? at->seen[i] : at->seen[i] / n;
        for (int j = 0; j <= i; ++j) {
            const int k = entry(r, i, j);
            const double *other = at->factor + j * d, seen = at->seen[k];
            const double left = seen / n - at->mean[i] * at->mean[j] - linalg_dot(j, row, other);
            if (is_untold(r, k))
                row[j] = i == j ? exp(seen) : seen * other[j];
            else
                row[j] = i == j ? sqrt(left) : left / other[j];
        }
        if (!(row[i] > 0)) return 0;
    }
    return 1;
}

/* A step, no longer than the standard deviations; returns how long, in these. */
static double go(const struct redraw *r, struct place *at) {
    const int d = r->d;
    double longest = 0;
    for (int i = 0; i < d; ++i) {
        const double sd = at->factor[i * d + i];
        longest = fmax(longest, fabs(r->step[i]) / sd);
        for (int l = 0; l <= i; ++l) longest = fmax(longest, fabs(r->step[entry(r, i, l)]) / sd);
    }
    const double share = longest > 0.5 ? 0.5 / longest : 1;
    for (int i = 0; i < d; ++i) {
        at->mean[i] += share * r->step[i];
        for (int l = 0; l <= i; ++l) at->factor[i * d + l] += share * r->step[entry(r, i, l)];
    }
    return longest;
}

/* ---- a standard deviation that is kept ------------------------------------------------------- */

static double last_log_sd(const struct redraw *r, const struct place *at) {
    return log(at->factor[r->d * r->d - 1]);
}

static void measure_apart(const struct augment *a, const struct place *at) {
    if (a->model.marginal->residual > 0)
        redraw_of(a)->apart = a->theta[a->model.marginal->residual] - last_log_sd(redraw_of(a), at);
}

void redraw_theta(const struct augment *a, const struct place *at, double *theta) {
    if (a->model.marginal->residual > 0)
        theta[a->model.marginal->residual] = redraw_of(a)->apart + last_log_sd(redraw_of(a), at);
}

/* The log density of what (m, F) is of, without eta. */
static double log_place(struct augment *a, struct place *at) {
    struct redraw *r = redraw_of(a);
    const struct model *model = &a->model;
    const double n = (double)a->n;
    double sum = 0;
    memcpy(at->c, a->complete, (size_t)model->complete * sizeof(double));
    for (int i = 0; i < r->d; ++i) {
        at->c[r->column[i]] = n * at->mean[i];
        sum += (n - 2 - i) * log(at->factor[i * r->d + i]);
        for (int j = 0; j <= i; ++j)
            at->c[moments_at(model->columns, r->column[i], r->column[j])] =
                n * (at->mean[i] * at->mean[j] +
                     linalg_dot(j + 1, at->factor + i * r->d, at->factor + j * r->d));
    }
    memcpy(r->theta, a->theta, (size_t)model->parameters * sizeof(double));
    redraw_theta(a, at, r->theta);
    return sum + model->marginal->marginal(model->self, at->c, n, r->theta, r->gradient_c,
                                           r->gradient_kept);
}

int redraw_find(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at,
                double *log_slope) {
    if (!guess(r, (double)n, at)) return 0;
    for (int made = 0; made < MOST_SOLVED; ++made) {
        measure(a, r, (int)n, at);
        for (int k = 0; k < r->size; ++k) r->step[k] = at->seen[k] - r->seen[k];
        *log_slope = linalg_solve(r->size, r->slopes, r->step);
        if (!isfinite(*log_slope)) return 0;
        const double longest = go(r, at);
        if (!isfinite(longest)) return 0;
        if (longest <= SOLVED) return 1;
    }
    return 0;
}

int redraw_solve(struct augment *a, struct place *at) {
    double log_slope;
    if (!redraw_find(a, redraw_of(a), a->n, at, &log_slope)) return 0;
    at->log_density = log_place(a, at) - log_slope;
    return isfinite(at->log_density);
}

/* ---- shapes ------------------------------------------------------------------------------- */

/* Columns to (m, F, U) by Gram and Schmidt's method. Returns 0 where they are dependent. */
static int shape_columns(struct redraw *r, int n, struct place *at) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        double *restrict u = at->shape[i];
        const double mean = at->mean[i] = block_sum(n, u) / n;
        FOR_RECORDS(k, n) u[k] -= mean;
        for (int l = 0; l < i; ++l) {
            const double *restrict other = at->shape[l];
            const double along = at->factor[i * d + l] = block_dot(n, u, other) / n;
            FOR_RECORDS(k, n) u[k] -= along * other[k];
        }
        const double sd = at->factor[i * d + i] = sqrt(block_dot(n, u, u) / n);
        if (!(sd > 0)) return 0;
        const double scale = 1 / sd;
        FOR_RECORDS(k, n) u[k] *= scale;
    }
    return 1;
}

int redraw_shape(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at) {
    for (int i = 0; i < r->d; ++i) rng_fill_normal(a->rng, (int)n, at->shape[i]);
    return shape_columns(r, (int)n, at);
}

int redraw_read(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at) {
    const double *centre = a->surrogate->centre;
    for (int i = 0; i < r->d; ++i) {
        const double *x = a->x + r->column[i] * a->stride, by = centre[r->column[i]];
        for (ptrdiff_t k = 0; k < n; ++k) at->shape[i][k] = x[k] - by;
    }
    return shape_columns(r, (int)n, at);
}

void redraw_write(struct augment *a, struct redraw *r, ptrdiff_t n, const struct place *at) {
    const double *centre = a->surrogate->centre;
    measure(a, r, (int)n, at);
    for (int i = 0; i < r->d; ++i) {
        double *x = a->x + r->column[i] * a->stride;
        const double by = centre[r->column[i]];
        for (ptrdiff_t k = 0; k < n; ++k) x[k] = r->w[i][k] + by;
    }
}

int redraw_finds(struct augment *a, struct redraw *r, ptrdiff_t n, struct place *at,
                 struct place *spare, double *log_slope) {
    const int d = r->d;
    measure(a, r, (int)n, at);
    memcpy(at->seen, r->seen, (size_t)r->size * sizeof(double));
    memcpy(spare->seen, r->seen, (size_t)r->size * sizeof(double));
    double **const own = spare->shape;
    spare->shape = at->shape;
    int same = redraw_find(a, r, n, spare, log_slope);
    spare->shape = own;
    for (int i = 0; i < d && same; ++i) {
        const double sd = at->factor[i * d + i];
        same = fabs(spare->mean[i] - at->mean[i]) < SAME * sd;
        for (int l = 0; l <= i; ++l)
            same = same && fabs(spare->factor[i * d + l] - at->factor[i * d + l]) < SAME * sd;
    }
    return same;
}

int redraw_is_solution(struct augment *a, struct place *at, struct place *spare) {
    double log_slope;
    if (!redraw_finds(a, redraw_of(a), a->n, at, spare, &log_slope)) return 0;
    measure_apart(a, at);
    at->log_density = log_place(a, spare) - log_slope;
    return isfinite(at->log_density);
}
