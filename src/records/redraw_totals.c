/* New totals for the steps of records/redraw_steps.c.
 *
 * The release is z = A s plus noise. A Laplace variable is normal given a variance that is
 * exponential; with these variances v drawn given the totals s, s' is drawn from the normal
 * distribution
 *
 *   N(z | A s', v) exp(g's' - l s'C s' / 2),   s' less a centre.
 *
 * l is drawn given s too, gamma with shape TAIL and rate 1 + s'C s / (2 TAIL), over TAIL: with it
 * integrated out the last factor is
 *
 *   q(s) = exp(g's) (1 + s'C s / (2 TAIL))^-TAIL,
 *
 * whose tails are as long as the tails of h, which are longer than a normal density's, so that
 * a chain does not get stuck there. The noise cancels from the ratio: it is h' / h over q' / q.
 * The better log q, the guide, follows log h, the more often the step is accepted; with g = C = 0
 * totals come from the release and the noise alone.
 *
 * The guide is found before warmup. First from log h itself, at some shape: differences of it
 * along the principal axes of the normal approximation of h eta, the centre its mode, which
 * Newton's method approaches: from A^-1 z on, each time with the last approximation's axes and
 * another shape. Then by least squares from points of a chain, which reaches the tails. Where log
 * h is not concave, the guide is flat.
 *
 * Cost: of differences, some rounds of size^2 solutions; for new totals size^3 / 6
 * multiplications, for a fitted point size^4 / 8. No allocation except in redraw_prepare_guide().
 *
 * If the release does not determine everything, no noise limits the rest: the guide then has at
 * least a little curvature in each direction, starts at values given by the bounds, and approaches
 * the mode in steps along which log h hardly decreases.
 */
#include "records/redraw_shape.h"

#include "base/dist.h"
#include "base/linalg.h"

enum { ROUNDS = 4, UNTOLD_ROUNDS = 8 };
static const double TAIL = 4, SHORTEST = 0.1;

/* Where the release does not tell all: least curvature of the guide, in units of its axes; by how
 * much log h, which differs from shape to shape, may fall in a step to the mode; and the least
 * share of such a step. */
static const double FLAT = 0.05, FALL = 1, LEAST_SHARE = 1e-3;

/* Coefficients of a fit, in units of the axes, are about so far from 0, in units of what is
 * scattered about it. */
static const double RIDGE = 1;

void redraw_prepare_guide(struct redraw *r) {
    struct guide *g = &r->guide;
    const size_t size = (size_t)r->size, square = size * size;
    g->terms = (r->size + 1) * (r->size + 2) / 2;
    const size_t terms = (size_t)g->terms;
    DOUBLES(square, &g->precision, &g->factor, &g->axis, &g->matrix);
    DOUBLES(size, &g->mean, &g->ahead, &g->behind);
    g->work = doubles(square + 4 * size);
    g->normal = doubles(terms * terms);
    DOUBLES(terms, &g->right, &g->term);
}

static size_t stored(const struct augment *a) {
    const struct redraw *r = redraw_of(a);
    return r ? (size_t)r->size * ((size_t)r->size + 2) : 0;
}

static void attach(struct augment *a, double *store) {
    struct redraw *r = redraw_of(a);
    r->guide.centre = store;
    r->guide.slope = store + r->size;
    r->guide.curvature = store + 2 * r->size;
    const struct guide *g = &r->guide;
    for (int k = 0; k < r->size; ++k)
        if (r->total[k].component < 0 && g->curvature[k * r->size + k] == 0) redraw_forget_guide(r);
}

/* ---- given the noise's variances ------------------------------------------------------------ */

static double left_of(const struct augment *a, const struct told *one, const double *seen) {
    double left = a->noise.released[one->component] - one->constant;
    for (int e = 0; e < 3; ++e) left -= one->coef[e] * seen[one->at[e]];
    return left;
}

/* Precision, and slope at the centre, of the guide. */
static void begin(struct redraw *r, double curvature) {
    struct guide *g = &r->guide;
    for (int k = 0; k < r->size * r->size; ++k) g->precision[k] = curvature * g->curvature[k];
    memcpy(g->mean, g->slope, (size_t)r->size * sizeof(double));
}

/* Those of a component's noise are added. */
static void add_noise(struct augment *a, const struct told *one, double variance) {
    const int size = redraw_of(a)->size;
    struct guide *g = &redraw_of(a)->guide;
    const double slope = left_of(a, one, g->centre) / variance;
    for (int e = 0; e < 3; ++e) {
        g->mean[one->at[e]] += one->coef[e] * slope;
        double *row = g->precision + one->at[e] * size;
        for (int f = 0; f < 3; ++f) row[one->at[f]] += one->coef[e] * one->coef[f] / variance;
    }
}

/* The precision becomes its factor, the slope the mean. */
static int find_mean(struct redraw *r) {
    struct guide *g = &r->guide;
    if (linalg_cholesky(r->size, g->precision) != 0) return 0;
    linalg_forward(r->size, g->precision, g->mean);
    linalg_backward(r->size, g->precision, g->mean);
    for (int k = 0; k < r->size; ++k) g->mean[k] += g->centre[k];
    return 1;
}

/* How far out totals are by the guide's curvature, as its tails see it: 1 at the centre. */
static double distance(const struct redraw *r, const double *seen) {
    const struct guide *g = &r->guide;
    return 1 + linalg_quadratic(r->size, g->curvature, seen, g->centre) / (2 * TAIL);
}

double redraw_guide(const struct redraw *r, const double *seen) {
    double sum = -TAIL * log(distance(r, seen));
    for (int k = 0; k < r->size; ++k) sum += r->guide.slope[k] * (seen[k] - r->guide.centre[k]);
    return sum;
}

int redraw_totals(struct augment *a, double temper, const double *now, double *next) {
    struct redraw *r = redraw_of(a);
    begin(r, dist_gamma(a->rng, TAIL) / (TAIL * distance(r, now)));
    for (int k = 0; k < r->size; ++k) {
        const struct told *one = r->total + k;
        if (one->component < 0) continue;
        const double weight = a->noise.weight[one->component];
        if (a->noise.kernel[one->component] == KERNEL_ABSOLUTE) {
            const double scale = 1 / (temper * weight);
            const double away = fabs(left_of(a, one, now)) / scale;
            add_noise(a, one, scale * scale * dist_laplace_variance(a->rng, away));
        } else {
            add_noise(a, one, 1 / (temper * weight * weight));
        }
    }
    if (!find_mean(r)) return 0;
    dist_normal_precision(a->rng, r->size, r->guide.mean, 1, r->guide.precision, next);
    return 1;
}

/* ---- the guide by differences --------------------------------------------------------------- */

/* The mean, with noise as wide as its variance, and the axes about it. */
static int find_axes(struct augment *a) {
    struct redraw *r = redraw_of(a);
    struct guide *g = &r->guide;
    const int size = r->size;
    begin(r, 1);
    for (int k = 0; k < size; ++k) {
        const int j = r->total[k].component;
        if (j < 0) continue;
        add_noise(a, r->total + k, noise_variance(&a->noise, j));
    }
    if (!find_mean(r)) return 0;
    memcpy(g->factor, g->precision, (size_t)size * (size_t)size * sizeof(double));
    memset(g->axis, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < size; ++i) {
        g->axis[i * size + i] = 1;
        linalg_backward(size, g->factor, g->axis + i * size);
    }
    return 1;
}

/* In units of the axes, a slope, and a curvature that is g->matrix: added to the guide's; and the
 * guide's curvature. */
static void add_slope(struct redraw *r, const double *slope) {
    struct guide *g = &r->guide;
    for (int i = 0; i < r->size; ++i)
        g->slope[i] += linalg_dot(i + 1, g->factor + i * r->size, slope);
}

static void set_curvature(struct redraw *r) {
    struct guide *g = &r->guide;
    const int size = r->size;
    linalg_raise_eigenvalues(size, g->matrix, r->untold > 0 ? FLAT : 0, g->work);
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j)
            g->work[i * size + j] = linalg_dot(i + 1, g->factor + i * size, g->matrix + j * size);
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j)
            g->curvature[i * size + j] =
                linalg_dot(j + 1, g->work + i * size, g->factor + j * size);
}

/* log h so far from the centre along two axes */
static double log_density_at(struct augment *a, struct place *at, double along_i, int i,
                             double along_j, int j) {
    const struct redraw *r = redraw_of(a);
    const double *axis = r->guide.axis;
    for (int k = 0; k < r->size; ++k)
        at->seen[k] =
            r->guide.centre[k] + along_i * axis[i * r->size + k] + along_j * axis[j * r->size + k];
    return redraw_solve(a, at) ? at->log_density : NAN;
}

/* Slope and curvature from differences of that length. Returns log h at the centre; NAN, with the
 * guide as it was, where some are not found. */
static double look(struct augment *a, double length, struct place *at) {
    struct redraw *r = redraw_of(a);
    struct guide *g = &r->guide;
    const int size = r->size;
    const double square = length * length, here = log_density_at(a, at, 0, 0, 0, 0);
    double sum = here;
    for (int i = 0; i < size && isfinite(sum); ++i) {
        g->ahead[i] = log_density_at(a, at, length, i, 0, i) - here;
        g->behind[i] = log_density_at(a, at, -length, i, 0, i) - here;
        g->matrix[i * size + i] = -(g->ahead[i] + g->behind[i]) / square;
        sum += g->matrix[i * size + i];
        for (int j = 0; j < i && isfinite(sum); ++j) {
            const double both = log_density_at(a, at, length, i, length, j) +
                                log_density_at(a, at, -length, i, -length, j) - 2 * here;
            const double each = g->ahead[i] + g->behind[i] + g->ahead[j] + g->behind[j];
            g->matrix[i * size + j] = g->matrix[j * size + i] = (each - both) / (2 * square);
            sum += both;
        }
    }
    if (!isfinite(sum)) return NAN;
    for (int i = 0; i < size; ++i) g->ahead[i] = (g->ahead[i] - g->behind[i]) / (2 * length);
    memset(g->slope, 0, (size_t)size * sizeof(double));
    add_slope(r, g->ahead);
    set_curvature(r);
    return here;
}

/* What is not known is taken to be about where the bounds have it. */
static void expect_untold(struct redraw *r, int k, double centre, double sd) {
    if (r->total[k].component >= 0) return;
    r->guide.centre[k] = centre;
    r->guide.curvature[k * r->size + k] = 1 / (sd * sd);
}

void redraw_forget_guide(struct redraw *r) {
    const size_t size = (size_t)r->size * sizeof(double);
    memset(r->guide.centre, 0, size);
    memset(r->guide.slope, 0, size);
    memset(r->guide.curvature, 0, size * (size_t)r->size);
    if (r->untold == 0) return;
    for (int i = 0, k = r->d; i < r->d; ++i) {
        const double width = r->upper[i] - r->lower[i];
        expect_untold(r, i, (r->lower[i] + r->upper[i]) / 2, width / 4);
        for (int j = 0; j < i; ++j) expect_untold(r, k++, 0, width / (r->upper[j] - r->lower[j]));
        expect_untold(r, k++, log(width / 4), 1);
    }
}

int redraw_read_release(struct augment *a, double *seen) {
    redraw_forget_guide(redraw_of(a));
    if (!find_axes(a)) return 0;
    memcpy(seen, redraw_of(a)->guide.mean, (size_t)redraw_of(a)->size * sizeof(double));
    return 1;
}

static int rounds(const struct redraw *r) { return r->untold > 0 ? UNTOLD_ROUNDS : ROUNDS; }

/* From a centre with log h about `before` to the mean, or so much of the way that log h falls by no
 * more than FALL: far from the mode it is not about quadratic in what is not known. */
static void go_to_mean(struct augment *a, struct place *at, double before) {
    struct guide *g = &redraw_of(a)->guide;
    const int size = redraw_of(a)->size;
    for (double share = 1; share > LEAST_SHARE; share /= 2) {
        for (int k = 0; k < size; ++k)
            at->seen[k] = g->centre[k] + share * (g->mean[k] - g->centre[k]);
        if (isnan(before) || (redraw_solve(a, at) && at->log_density > before - FALL)) {
            memcpy(g->centre, at->seen, (size_t)size * sizeof(double));
            return;
        }
    }
}

int redraw_find_guide(struct augment *a, struct place *spare) {
    struct redraw *r = redraw_of(a);
    double here = NAN;
    redraw_forget_guide(r);
    for (int round = 0; round < rounds(r); ++round) {
        if (!find_axes(a) || !redraw_shape(a, r, a->n, spare)) return 0;
        go_to_mean(a, spare, r->untold > 0 ? here : NAN);
        double length = 1; /* shorter where no records have such totals */
        while (isnan(here = look(a, length, spare)))
            if ((length /= 2) < SHORTEST) return 0;
    }
    return 1;
}

/* ---- the guide by least squares ------------------------------------------------------------- */

void redraw_begin_fit(struct augment *a) {
    struct guide *g = &redraw_of(a)->guide;
    const int terms = g->terms;
    (void)find_axes(a);
    memset(g->normal, 0, (size_t)terms * (size_t)terms * sizeof(double));
    memset(g->right, 0, (size_t)terms * sizeof(double));
    for (int i = 1; i < terms; ++i) g->normal[i * terms + i] = RIDGE;
    g->origin = NAN;
}

/* A quadratic function in units of the axes is fitted to what log h is beyond the guide. */
void redraw_add_to_fit(struct augment *a, const struct place *at) {
    const struct redraw *r = redraw_of(a);
    struct guide *g = &redraw_of(a)->guide;
    const int size = r->size, terms = g->terms;
    const double off = at->log_density - redraw_guide(r, at->seen);
    if (isnan(g->origin)) g->origin = off;
    double *term = g->term;
    *term++ = 1;
    for (int i = 0; i < size; ++i) {
        double sum = 0;
        for (int k = i; k < size; ++k)
            sum += g->factor[k * size + i] * (at->seen[k] - g->centre[k]);
        *term++ = g->ahead[i] = sum;
    }
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j) *term++ = g->ahead[i] * g->ahead[j];
    for (int i = 0; i < terms; ++i) {
        g->right[i] += g->term[i] * (off - g->origin);
        for (int j = 0; j <= i; ++j) g->normal[i * terms + j] += g->term[i] * g->term[j];
    }
}

void redraw_end_fit(struct redraw *r) {
    struct guide *g = &r->guide;
    const int size = r->size;
    if (linalg_cholesky(g->terms, g->normal) != 0) return;
    linalg_forward(g->terms, g->normal, g->right);
    linalg_backward(g->terms, g->normal, g->right);
    add_slope(r, g->right + 1);
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j)
            g->work[i * size + j] = linalg_dot(size, g->curvature + i * size, g->axis + j * size);
    const double *by = g->right + 1 + size;
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j, ++by) {
            double sum = i == j ? -2 * *by : -*by;
            for (int k = 0; k < size; ++k) sum += g->axis[i * size + k] * g->work[k * size + j];
            g->matrix[i * size + j] = g->matrix[j * size + i] = sum;
        }
    set_curvature(r);
}

/* No move: what the moves of records/redraw_steps.c know of log h is a vector of its own. */
const struct move move_guide = {.store = "guide", .stored = stored, .attach = attach};
