/* Expected totals and products of clamped columns, given those of the columns before they
 * are clamped: as if the records were normal, with the mean and the covariance that c has.
 * A surrogate (surrogate.c): close, smooth and cheap, not exact.
 *
 * A column with mean mu and standard deviation s has its bounds at mu + s a and mu + s b.
 * With Phi and phi the standard normal distribution and density,
 *
 *   inside = Phi(b) - Phi(a),         e = phi(a) - phi(b),         f = a phi(a) - b phi(b),
 *   g = a^2 phi(a) - b^2 phi(b),      h = a^3 phi(a) - b^3 phi(b),
 *   E w = l Phi(a) + u (1 - Phi(b)) + mu inside + s e,
 *   E w^2 = l^2 Phi(a) + u^2 (1 - Phi(b)) + (mu^2 + s^2) inside + 2 mu s e + s^2 f.
 *
 * Two columns with covariance C: the first terms of Mehler's series, whose coefficients are
 * the expected derivatives of the clamped columns,
 *
 *   cov = C inside_1 inside_2 + C^2 e_1 e_2 / (2 s_1 s_2) + C^3 f_1 f_2 / (6 s_1^2 s_2^2).
 *
 * The product with a dummy: its records, with their own mean and the column's s.
 *
 * Derivatives: d inside = (e dmu + f ds) / s, de = (f dmu + g ds) / s, df = ((g - e) dmu +
 * (h - f) ds) / s; dE w = inside dmu + e ds, dE w^2 = 2 (mu inside + s e) dmu +
 * 2 (mu e + s (inside + f)) ds.
 *
 * Cost: two distribution functions a column and dummy, O(d^2). No allocation but in
 * clamped_new().
 */
#include "clamped.h"

#include "block.h"
#include "plugin.h"

/* standard normal density and lower tail */
static double phi(double x) { return 0.398942280401432677939946 * exp(-0.5 * x * x); }
static double tail(double x) { return 0.5 * erfc(-x * 0.707106781186547524400844); }

/* E of a clamped normal variable, and what its derivatives need */
static void expect_column(struct clamped_column *at, double lower, double upper, double *second) {
    const double a = (lower - at->mean) / at->sd, b = (upper - at->mean) / at->sd;
    const int low = isfinite(lower), high = isfinite(upper);
    const double below = low ? tail(a) : 0, above = high ? tail(-b) : 0;
    const double at_a = low ? phi(a) : 0, at_b = high ? phi(b) : 0;
    const double a1 = low ? a * at_a : 0, b1 = high ? b * at_b : 0;
    at->inside = 1 - below - above;
    at->e = at_a - at_b;
    at->f = a1 - b1;
    at->g = (low ? a * a1 : 0) - (high ? b * b1 : 0);
    at->h = (low ? a * a * a1 : 0) - (high ? b * b * b1 : 0);
    at->first = (low ? lower * below : 0) + (high ? upper * above : 0) + at->mean * at->inside +
                at->sd * at->e;
    if (!second) return;
    *second = (low ? lower * lower * below : 0) + (high ? upper * upper * above : 0) +
              (at->mean * at->mean + at->sd * at->sd) * at->inside + 2 * at->mean * at->sd * at->e +
              at->sd * at->sd * at->f;
}

struct clamped *clamped_new(const struct totals *totals, const double *lower, const double *upper) {
    struct clamped *clamped = plugin_memory(1, sizeof *clamped);
    clamped->totals = totals;
    clamped->lower = lower;
    clamped->upper = upper;
    clamped->column = plugin_memory((size_t)totals->d, sizeof *clamped->column);
    return clamped;
}

static double covariance(const struct totals *t, const struct clamped_column *x,
                         const struct clamped_column *y, double product) {
    return product / t->n - x->mean * y->mean;
}

void clamped_expect(struct clamped *clamped, const double *c, double *out) {
    const struct totals *t = clamped->totals;
    const int d = t->d;
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        const int own = t->product[i * d + i];
        double second;
        x->mean = c[t->column[i]] / t->n;
        const double variance = covariance(t, x, x, c[own]);
        x->sd = variance > 0 ? sqrt(variance) : 1e-300;
        expect_column(x, clamped->lower[i], clamped->upper[i], &second);
        out[t->column[i]] = t->n * x->first;
        out[own] = t->n * second;
        for (int j = 0; j < i; ++j) {
            const struct clamped_column *y = clamped->column + j;
            const int at = t->product[i * d + j];
            const double cov = covariance(t, x, y, c[at]), r = cov / (x->sd * y->sd);
            out[at] =
                t->n * (x->first * y->first + cov * (x->inside * y->inside + r * x->e * y->e / 2 +
                                                     r * r * x->f * y->f / 6));
        }
        for (int b = 1; b < t->k; ++b) {
            const int at = t->cross[b * d + i];
            const double count = c[t->fixed[b - 1]];
            struct clamped_column group = {.mean = count > 0 ? c[at] / count : 0, .sd = x->sd};
            expect_column(&group, clamped->lower[i], clamped->upper[i], NULL);
            out[at] = count * group.first;
        }
    }
}

void clamped_pull(struct clamped *clamped, const double *c, double *gradient) {
    const struct totals *t = clamped->totals;
    const int d = t->d;
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        const double on_second = t->n * gradient[t->product[i * d + i]];
        x->on_first = t->n * gradient[t->column[i]];
        x->on_inside = x->on_e = x->on_f = 0;
        x->on_mean = 2 * on_second * (x->mean * x->inside + x->sd * x->e);
        x->on_sd = 2 * on_second * (x->mean * x->e + x->sd * (x->inside + x->f));
        for (int b = 1; b < t->k; ++b) {
            const int at = t->cross[b * d + i];
            const double count = c[t->fixed[b - 1]];
            struct clamped_column group = {.mean = count > 0 ? c[at] / count : 0, .sd = x->sd};
            expect_column(&group, clamped->lower[i], clamped->upper[i], NULL);
            x->on_sd += gradient[at] * count * group.e;
            gradient[at] *= group.inside;
        }
    }
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        for (int j = 0; j < i; ++j) {
            struct clamped_column *y = clamped->column + j;
            const int at = t->product[i * d + j];
            const double slope = t->n * gradient[at];
            const double cov = covariance(t, x, y, c[at]), r = cov / (x->sd * y->sd);
            const double second = slope * cov * r / 2, third = slope * cov * r * r / 6;
            x->on_first += slope * y->first;
            y->on_first += slope * x->first;
            x->on_inside += slope * cov * y->inside;
            y->on_inside += slope * cov * x->inside;
            x->on_e += second * y->e;
            y->on_e += second * x->e;
            x->on_f += third * y->f;
            y->on_f += third * x->f;
            /* the standard deviations that the second and the third term are divided by */
            const double shrink = second * x->e * y->e + 2 * third * x->f * y->f;
            x->on_sd -= shrink / x->sd;
            y->on_sd -= shrink / y->sd;
            const double on_cov =
                slope * (x->inside * y->inside + r * x->e * y->e + r * r * x->f * y->f / 2);
            gradient[at] = on_cov / t->n;
            x->on_mean -= on_cov * y->mean;
            y->on_mean -= on_cov * x->mean;
        }
    }
    for (int i = 0; i < d; ++i) {
        const struct clamped_column *x = clamped->column + i;
        const double on_mean =
            x->on_mean + x->on_first * x->inside +
            (x->on_inside * x->e + x->on_e * x->f + x->on_f * (x->g - x->e)) / x->sd;
        const double on_sd =
            x->on_sd + x->on_first * x->e +
            (x->on_inside * x->f + x->on_e * x->g + x->on_f * (x->h - x->f)) / x->sd;
        const double on_variance = on_sd / (2 * x->sd);
        gradient[t->product[i * d + i]] = on_variance / t->n;
        gradient[t->column[i]] = (on_mean - 2 * x->mean * on_variance) / t->n;
    }
}
