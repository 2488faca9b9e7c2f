/* Totals of normal records in coordinates without constraint (vignette "Algorithms", "collapse").
 *
 * W has the n records' d continuous columns; D, n x k, what is fixed: 1 and the dummies
 * of factors. With D'D = R R', T = D'W and S the scatter of W on D:
 *
 *   M = R^-1 T,   W'W = S + M'M,   S = F F',
 *
 * F lower triangular with its first r = min(n - k, d) columns (for fewer records the
 * scatter is singular). Coordinates: M, row by row; then of each row i of F the entries
 * left of the diagonal, divided by it where there is one (i < r), and its logarithm.
 *
 * Where noise is wide, rows of F^-1 are better coordinates: given the columns before it, column i
 * has the regression coefficients -(F^-1)_ij / (F^-1)_ii and the spread F_ii, and under a Wishart
 * distribution of S^-1 all entries of F^-1 are independent, those left of the diagonal normal
 * (Bartlett). totals_invert_rows() has the entries of F^-1 left of the diagonal, and log F_ii, in
 * place of F's; for r = d alone.
 *
 * With `bend`, the coordinates of M_1i, in the row of the constant, are the distances of the mean
 * of column i from its most likely value given the column's standard deviation
 * (totals/mean_sd_ridge.c):
 *
 *   M_1i - R_11 g_i(log(S_ii / n) / 2),
 *
 * with Jacobian 1.
 *
 * Where a column of D depends on those before it, as the dummy of a level without records does,
 * its row of R has 0 on the diagonal and that of M is idle: nothing depends on it, and its entries
 * are normal with mean 0 and the standard deviations idle_sd. So the number of coordinates is
 * always the same. Below, n - k is then n - `live`.
 *
 * Riders V are columns that stay as they are while W = D R'^-1 M + U F' moves with its shape U
 * held fixed. Their products with W follow: V'W = (R^-1 D'V)'M + (U'V)'F'.
 *
 * Volume: given theta, S is Wishart with n - k degrees of freedom, so F_ii is chi with
 * n - k - i, i from 0, times the likelihood as a function of c: F_ii^(n - k - i - 1). With
 * the Jacobian of the logarithm, and of i divisions, that is (n - k) log F_ii: all
 * there is. In coordinates of F^-1 it is (n - k + d - 1 - i) log F_ii: with F = A diag(F_ii), A's
 * inverse has the Jacobian 1, and (F^-1)_ij is (A^-1)_ij / F_jj.
 *
 * Cost: d^3 / 2 + k d^2 multiplications an expansion, about twice as many a gradient; with F^-1
 * d^3 / 6 and d^3 / 3 more. No allocation except in totals_create().
 */
#include "totals/normal_coordinates.h"

#include "base/block.h"
#include "base/linalg.h"
#include "contract/plugin.h"
#include "totals/mean_sd_ridge.h"

static const double LOG_SQRT_2PI = 0.918938533204672741780;

static double *rows(int count, int width) { return doubles((size_t)count * (size_t)width); }

void totals_create(struct totals *totals, int columns, double n, int d, const int *column, int k,
                   const int *fixed) {
    memset(totals, 0, sizeof *totals);
    totals->columns = columns;
    totals->n = n;
    totals->d = d;
    totals->k = k;
    totals->column = column;
    totals->fixed = fixed;
    totals->rank = n - k < d ? (int)(n - k) : d;
    totals->size = k * d;
    for (int i = 0; i < d; ++i) totals->size += i < totals->rank ? i + 1 : totals->rank;
    const int width = totals->width = PAD_LANES(d);
    totals->power = n - k;
    totals->design = rows(k, k);
    totals->idle = plugin_memory((size_t)k, sizeof(int));
    totals->mean = rows(k, width);
    totals->factor = rows(d, width);
    totals->slope = rows(d, width);
    totals->pull = rows(k + d, width);
    totals->total = plugin_memory((size_t)d, sizeof(int));
    totals->cross = plugin_memory((size_t)k * (size_t)d, sizeof(int));
    totals->product = plugin_memory((size_t)d * (size_t)d, sizeof(int));
    for (int j = 0; j < d; ++j) {
        totals->cross[j] = column[j];
        for (int a = 1; a < k; ++a)
            totals->cross[a * d + j] = moments_at(columns, fixed[a - 1], column[j]);
        for (int i = 0; i < d; ++i)
            totals->product[i * d + j] = moments_at(columns, column[i], column[j]);
    }
}

void totals_carry(struct totals *totals, int riders, const int *rider) {
    const int d = totals->d;
    totals->riders = riders;
    totals->rider = rider;
    totals->rider_mean = rows(riders, totals->k);
    totals->rider_shape = rows(riders, totals->width);
    totals->rider_cross = plugin_memory((size_t)riders * (size_t)d, sizeof(int));
    for (int v = 0; v < riders; ++v)
        for (int j = 0; j < d; ++j)
            totals->rider_cross[v * d + j] =
                moments_at(totals->columns, rider[v], totals->column[j]);
}

int totals_design(struct totals *totals, const double *c) {
    static const double DEPENDENT = 1e-10; /* share of a column's square that is left */
    const int k = totals->k;
    double *r = totals->design;
    totals->live = 0;
    for (int a = 0; a < k; ++a)
        for (int b = 0; b <= a; ++b) {
            const int first = a > 0 ? totals->fixed[a - 1] : -1;
            const int second = b > 0 ? totals->fixed[b - 1] : -1;
            const double entry = second < 0 ? (first < 0 ? totals->n : c[first])
                                            : c[moments_at(totals->columns, first, second)];
            const double left = entry - linalg_dot(b, r + (size_t)a * k, r + (size_t)b * k);
            if (b < a) {
                r[a * k + b] = totals->idle[b] ? 0 : left / r[b * k + b];
                continue;
            }
            totals->idle[a] = !(left > DEPENDENT * entry);
            totals->live += !totals->idle[a];
            r[a * k + a] = totals->idle[a] ? 0 : sqrt(left);
        }
    return totals->live;
}

void totals_coefficients(const struct totals *totals, double *coefficient) {
    const int k = totals->k, width = totals->width;
    for (int b = k - 1; b >= 0; --b)
        for (int i = 0; i < totals->d; ++i) {
            double sum = totals->mean[b * width + i];
            for (int e = b + 1; e < k; ++e)
                sum -= totals->design[e * k + b] * coefficient[e * width + i];
            coefficient[b * width + i] = sum / totals->design[b * k + b];
        }
}

void totals_apply_design(const struct totals *totals, const double *b, double *mean) {
    const int d = totals->d, k = totals->k;
    for (int a = 0; a < k; ++a)
        for (int i = 0; i < d; ++i) {
            double sum = (totals->idle[a] ? 1 : totals->design[a * k + a]) * b[a * d + i];
            for (int e = a + 1; e < k; ++e) sum += totals->design[e * k + a] * b[e * d + i];
            mean[a * d + i] = sum;
        }
}

void totals_invert_rows(struct totals *totals) { totals->inverse = totals->rank == totals->d; }

/* ---- coordinates to totals --------------------------------------------------- */

/* x += scale times y, both of `count` numbers and padded */
static INLINE void add_row(int count, double scale, const double *restrict y, double *restrict x) {
    FOR_RECORDS(j, count) x[j] += scale * y[j];
}

/* Row i of the inverse of the lower triangle whose row i, with `diagonal` on the diagonal, is
 * `row`; rows of the inverse before it are there. */
static INLINE void invert_row(int i, int width, const double *row, double diagonal, double *out) {
    double *own = out + (size_t)i * width;
    FOR_RECORDS(j, i + 1) own[j] = 0;
    for (int m = 0; m < i; ++m) add_row(m + 1, -row[m] * diagonal, out + (size_t)m * width, own);
    own[i] = diagonal;
}

VECTOR_CLONES void totals_invert(int d, int width, const double *f, double *out) {
    for (int i = 0; i < d; ++i) {
        const double *row = f + (size_t)i * width;
        invert_row(i, width, row, 1 / row[i], out);
    }
}

VECTOR_CLONES static void factor_of_inverse(int d, int width, const double *coordinates,
                                            double *out) {
    for (int i = 0; i < d; ++i, coordinates += i)
        invert_row(i, width, coordinates, exp(coordinates[i]), out);
}

static void place_factor(struct totals *totals, const double *coordinates) {
    const int d = totals->d, r = totals->rank;
    if (totals->inverse) {
        factor_of_inverse(d, totals->width, coordinates, totals->factor);
        return;
    }
    for (int i = 0; i < d; ++i) {
        double *row = totals->factor + (size_t)i * (size_t)totals->width;
        const int left = i < r ? i : r;
        const double diagonal = i < r ? exp(coordinates[i]) : 1;
        for (int j = 0; j < left; ++j) row[j] = diagonal * coordinates[j];
        if (i < r) row[i] = diagonal;
        coordinates += i < r ? i + 1 : r;
    }
}

/* lower triangle of a += F F', F's rows zero right of its diagonal */
VECTOR_CLONES static void add_square(int d, int width, const double *f, double *a) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            const double *restrict one = f + (size_t)i * width, *restrict two =
                                                                    f + (size_t)j * width;
            double part[LANES] = {0};
            for (int l = 0; l <= j; l += LANES)
                for (int m = 0; m < LANES; ++m) part[m] += one[l + m] * two[l + m];
            a[(size_t)i * width + j] += (part[0] + part[1]) + (part[2] + part[3]);
        }
}

/* row i of the lower triangle of a += scale x_i x' */
VECTOR_CLONES static void add_outer(int d, int width, const double *restrict x,
                                    double *restrict a) {
    for (int i = 0; i < d; ++i) {
        double *row = a + (size_t)i * width;
        const double scale = x[i];
        FOR_RECORDS(j, i + 1) row[j] += scale * x[j];
    }
}

/* entry (v, j) of V'W */
static double rider_product(const struct totals *totals, int v, int j) {
    const int width = totals->width;
    const double *mean = totals->rider_mean + (size_t)v * (size_t)totals->k;
    const double *shape = totals->rider_shape + (size_t)v * (size_t)width;
    const double *row = totals->factor + (size_t)j * (size_t)width;
    double sum = 0;
    for (int b = 0; b < totals->k; ++b) sum += mean[b] * totals->mean[b * width + j];
    for (int l = 0; l <= j; ++l) sum += row[l] * shape[l];
    return sum;
}

/* What the bend adds to M_1i, and the slope of that in entries of row i of F, as a multiple of
 * them. */
static double bend(const struct totals *totals, int i, double *slope) {
    const double *row = totals->factor + (size_t)i * (size_t)totals->width;
    const double scatter = linalg_dot(i + 1, row, row), root = totals->design[0];
    const double x = 0.5 * log(scatter / totals->n);
    const double mean = totals_bend(totals->bend + (size_t)i * BEND_ROWS, x, slope);
    *slope *= root / scatter;
    return root * mean;
}

static void place_mean(struct totals *totals, const double *coordinates) {
    const int d = totals->d;
    double slope;
    for (int b = 0; b < totals->k; ++b)
        doubles_copy(totals->mean + (size_t)b * (size_t)totals->width, coordinates + b * d, d);
    for (int i = 0; totals->bend && i < d; ++i) totals->mean[i] += bend(totals, i, &slope);
}

void totals_expand(struct totals *totals, const double *coordinates, double *c) {
    const int d = totals->d, k = totals->k;
    const size_t width = (size_t)totals->width;
    double *a = totals->slope; /* W'W, before it holds slopes */
    memset(a, 0, (size_t)d * width * sizeof(double));
    place_factor(totals, coordinates + k * d);
    place_mean(totals, coordinates);
    for (int b = 0; b < k; ++b)
        if (!totals->idle[b]) add_outer(d, (int)width, totals->mean + (size_t)b * width, a);
    add_square(d, (int)width, totals->factor, a);
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            c[totals->product[i * d + j]] = a[(size_t)i * width + (size_t)j];
    for (int b = 0; b < k; ++b)
        for (int j = 0; j < d; ++j) {
            double sum = 0;
            for (int e = 0; e <= b; ++e)
                sum += totals->design[b * k + e] * totals->mean[(size_t)e * width + (size_t)j];
            c[totals->cross[b * d + j]] = sum;
        }
    for (int v = 0; v < totals->riders; ++v)
        for (int j = 0; j < d; ++j) c[totals->rider_cross[v * d + j]] = rider_product(totals, v, j);
}

/* ---- the gradient's way back ----------------------------------------------------- */

/* Row i of out is row i of h times f, both d rows, f a lower triangle; only its first i + 1 entries
 * count. */
VECTOR_CLONES static void multiply(int d, int width, const double *restrict h,
                                   const double *restrict f, double *restrict out) {
    for (int i = 0; i < d; ++i) {
        const double *along = h + (size_t)i * width;
        double *row = out + (size_t)i * width;
        FOR_RECORDS(j, i + 1) row[j] = 0;
        int l = 0;
        for (; l + 4 <= d; l += 4) {
            const double *f0 = f + (size_t)l * width, *f1 = f0 + width, *f2 = f1 + width,
                         *f3 = f2 + width;
            const double h0 = along[l], h1 = along[l + 1], h2 = along[l + 2], h3 = along[l + 3];
            const int count = l < i ? l + 4 : i + 1;
            FOR_RECORDS(j, count) row[j] += (h0 * f0[j] + h1 * f1[j]) + (h2 * f2[j] + h3 * f3[j]);
        }
        for (; l < d; ++l) {
            const double *f0 = f + (size_t)l * width;
            const double h0 = along[l];
            FOR_RECORDS(j, i + 1) row[j] += h0 * f0[j];
        }
    }
}

/* out = h x, h d rows of `width`, symmetric: its rows are as good as its columns */
VECTOR_CLONES static void multiply_vector(int d, int width, const double *restrict h,
                                          const double *restrict x, double *restrict out) {
    for (int j = 0; j < width; ++j) out[j] = 0;
    for (int i = 0; i < d; ++i) add_row(width, x[i], h + (size_t)i * width, out);
}

/* Lower triangle of F'GF', G lower triangular, from rows of both. */
VECTOR_CLONES static void multiply_around(int d, int width, const double *restrict f,
                                          const double *restrict g, double *restrict out) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            const double *one = g + (size_t)i * width, *two = f + (size_t)j * width;
            double part[LANES] = {0};
            for (int l = 0; l <= j; l += LANES)
                for (int m = 0; m < LANES; ++m) part[m] += one[l + m] * two[l + m];
            out[(size_t)i * width + j] = (part[0] + part[1]) + (part[2] + part[3]);
        }
    /* row i needs none before it */
    for (int i = 0; i < d; ++i) {
        double *row = out + (size_t)i * width;
        const double own = f[(size_t)i * width + i];
        FOR_RECORDS(j, i + 1) row[j] *= own;
        for (int l = i + 1; l < d; ++l)
            add_row(i + 1, f[(size_t)l * width + i], out + (size_t)l * width, row);
    }
}

void totals_pull_factor(struct totals *totals, const double *slope, double *gradient) {
    const int d = totals->d, r = totals->rank, width = totals->width;
    double *around = totals->slope;
    if (totals->inverse) multiply_around(d, width, totals->factor, slope, around);
    for (int i = 0; i < d; ++i, slope += width, around += width) {
        const double *row = totals->factor + (size_t)i * (size_t)width;
        if (totals->inverse) {
            for (int j = 0; j < i; ++j) gradient[j] -= around[j];
            gradient[i] += around[i] / row[i];
            gradient += i + 1;
            continue;
        }
        const int left = i < r ? i : r;
        const double diagonal = i < r ? row[i] : 1;
        double sum = 0;
        for (int j = 0; j < left; ++j) {
            gradient[j] += diagonal * slope[j];
            sum += row[j] * slope[j];
        }
        if (i < r) gradient[i] += sum + diagonal * slope[i];
        gradient += i < r ? i + 1 : r;
    }
}

/* The log of the volume term of F, and its gradient. */
static double volume_of_factor(const struct totals *totals, const double *coordinates,
                               double *gradient) {
    const int d = totals->d, r = totals->rank;
    double log_volume = 0;
    for (int i = 0; i < d; ++i) {
        const int count = i < r ? i + 1 : r;
        memset(gradient, 0, (size_t)count * sizeof(double));
        if (i < r) {
            gradient[i] = totals->power + (totals->inverse ? d - 1 - i : 0);
            log_volume += gradient[i] * coordinates[i];
        }
        gradient += count;
        coordinates += count;
    }
    return log_volume;
}

void totals_pull_bend(const struct totals *totals, int i, double of_mean, double *pull) {
    double slope;
    (void)bend(totals, i, &slope);
    add_row(i + 1, slope * of_mean, totals->factor + (size_t)i * (size_t)totals->width, pull);
}

double totals_pull(struct totals *totals, const double *coordinates, const double *gradient_c,
                   double *gradient) {
    const int d = totals->d, k = totals->k;
    const size_t width = (size_t)totals->width;
    double *h = totals->slope, *pull = totals->pull;
    const double *of_mean = gradient;
    /* twice the derivative in W'W as a symmetric matrix */
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            const double slope = gradient_c[totals->product[i * d + j]];
            h[(size_t)i * width + (size_t)j] = h[(size_t)j * width + (size_t)i] =
                i == j ? 2 * slope : slope;
        }
    double log_volume = 0;
    for (int b = 0; b < k; ++b, gradient += d, coordinates += d) {
        multiply_vector(d, (int)width, h, totals->mean + (size_t)b * width, pull);
        for (int j = 0; j < d; ++j) {
            if (totals->idle[b]) {
                const double r = coordinates[j] / totals->idle_sd[j];
                gradient[j] = -r / totals->idle_sd[j];
                log_volume -= 0.5 * r * r + log(totals->idle_sd[j]) + LOG_SQRT_2PI;
                continue;
            }
            double sum = pull[j];
            for (int e = b; e < k; ++e)
                sum += totals->design[e * k + b] * gradient_c[totals->cross[e * d + j]];
            for (int v = 0; v < totals->riders; ++v)
                sum += totals->rider_mean[v * k + b] * gradient_c[totals->rider_cross[v * d + j]];
            if (totals->slope_mean) sum += totals->slope_mean[(size_t)b * width + (size_t)j];
            gradient[j] = sum;
        }
    }
    multiply(d, (int)width, h, totals->factor, pull);
    for (int v = 0; v < totals->riders; ++v)
        for (int j = 0; j < d; ++j)
            for (int l = 0; l <= j; ++l)
                pull[(size_t)j * width + (size_t)l] +=
                    gradient_c[totals->rider_cross[v * d + j]] *
                    totals->rider_shape[(size_t)v * width + (size_t)l];
    for (size_t i = 0; totals->slope_factor && i < (size_t)d * width; ++i)
        pull[i] += totals->slope_factor[i];
    for (int i = 0; totals->bend && i < d; ++i)
        totals_pull_bend(totals, i, of_mean[i], pull + (size_t)i * width);
    log_volume += volume_of_factor(totals, coordinates, gradient);
    totals_pull_factor(totals, pull, gradient);
    return log_volume;
}

/* ---- totals to coordinates ---------------------------------------------------------- */

int totals_coordinates(struct totals *totals, const double *c, double *coordinates) {
    const int d = totals->d, k = totals->k, r = totals->rank;
    const size_t width = (size_t)totals->width;
    double *of_mean = coordinates;
    for (int j = 0; j < d; ++j)
        for (int b = 0; b < k; ++b) {
            double sum = c[totals->cross[b * d + j]];
            for (int e = 0; e < b; ++e)
                sum -= totals->design[b * k + e] * totals->mean[(size_t)e * width + (size_t)j];
            coordinates[b * d + j] = totals->mean[(size_t)b * width + (size_t)j] =
                totals->idle[b] ? 0 : sum / totals->design[b * k + b];
        }
    coordinates += k * d;
    for (int i = 0; i < d; ++i) {
        double *row = totals->factor + (size_t)i * width;
        for (int j = 0; j <= i && j < r; ++j) {
            const double *other = totals->factor + (size_t)j * width;
            double sum = c[totals->product[i * d + j]];
            for (int b = 0; b < k; ++b) {
                const double *mean = totals->mean + (size_t)b * width;
                sum -= mean[i] * mean[j];
            }
            for (int l = 0; l < j; ++l) sum -= row[l] * other[l];
            if (j < i)
                row[j] = sum / other[j];
            else if (sum > 0 && isfinite(sum))
                row[j] = sqrt(sum);
            else
                return PLUGIN_NUMERICAL;
        }
        const int left = i < r ? i : r;
        const double *of = row;
        double scale = i < r ? 1 / row[i] : 1;
        if (totals->inverse) {
            invert_row(i, (int)width, row, 1 / row[i], totals->pull);
            of = totals->pull + (size_t)i * width;
            scale = 1;
        }
        for (int j = 0; j < left; ++j) coordinates[j] = scale * of[j];
        if (i < r) coordinates[i] = log(row[i]);
        coordinates += i < r ? i + 1 : r;
    }
    for (int i = 0; totals->bend && i < d; ++i) {
        double slope;
        of_mean[i] -= bend(totals, i, &slope);
    }
    return PLUGIN_OK;
}

void totals_read_riders(struct totals *totals, const double *c) {
    const int d = totals->d, k = totals->k, width = totals->width;
    for (int v = 0; v < totals->riders; ++v) {
        const int own = totals->rider[v];
        double *mean = totals->rider_mean + (size_t)v * (size_t)k;
        double *shape = totals->rider_shape + (size_t)v * (size_t)width;
        for (int b = 0; b < k; ++b) {
            double sum = b > 0 ? c[moments_at(totals->columns, totals->fixed[b - 1], own)] : c[own];
            for (int e = 0; e < b; ++e) sum -= totals->design[b * k + e] * mean[e];
            mean[b] = sum / totals->design[b * k + b];
        }
        /* V'W less its share of M, then F^-1 of it */
        for (int j = 0; j < d; ++j) {
            const double *row = totals->factor + (size_t)j * (size_t)width;
            shape[j] = 0;
            const double rest = c[totals->rider_cross[v * d + j]] - rider_product(totals, v, j);
            shape[j] = rest / row[j];
        }
    }
}
