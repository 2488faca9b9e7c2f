/* The score statistic of p_value() and confidence_set(), from moments of the published numbers at a
 * point and around it: R/study_score_test.R says what it is. Matrices are R's, column after column.
 * Of m numbers with a covariance of rank p, of d coordinates of which q directions are along the
 * null hypothesis, and of k tested directions. Points stand in the order of ffi_points(). */
#include "base/matrix.h"
#include "r/ffi.h"

/* Less of the derivatives' length than this is rounding. */
static const double least_told = 1e-7;

static struct matrix matrix_read(SEXP x) {
    const struct matrix a = {Rf_nrows(x), Rf_ncols(x), REAL(x)};
    return a;
}

static int all_finite(R_xlen_t count, const double *x) {
    for (R_xlen_t i = 0; i < count; ++i)
        if (!isfinite(x[i])) return 0;
    return 1;
}

static SEXP r_matrix(struct matrix a) {
    SEXP out = Rf_allocMatrix(REALSXP, a.rows, a.columns);
    doubles_copy(REAL(out), a.x, a.rows * a.columns);
    return out;
}

/* ---- moments ----------------------------------------------------------------------------------
 */

/* Mean and covariance of rows; NULL where they are not finite. */
SEXP ffi_sample_moments(SEXP rows) {
    const struct matrix x = matrix_read(rows), centred = matrix_new(x.rows, x.columns);
    SEXP mean = PROTECT(Rf_allocVector(REALSXP, x.columns)),
         cov = PROTECT(Rf_allocMatrix(REALSXP, x.columns, x.columns));
    double *spread = REAL(cov);
    for (int j = 0; j < x.columns; ++j) {
        double sum = 0;
        for (int i = 0; i < x.rows; ++i) sum += column(x, j)[i];
        REAL(mean)[j] = sum / x.rows;
        for (int i = 0; i < x.rows; ++i) column(centred, j)[i] = column(x, j)[i] - sum / x.rows;
        for (int k = 0; k <= j; ++k)
            spread[j + x.columns * k] = spread[k + x.columns * j] =
                linalg_dot(x.rows, column(centred, j), column(centred, k)) / (x.rows - 1);
    }
    const int finite = all_finite(x.columns, REAL(mean));
    SEXP out = finite ? named_list(2, "mean", mean, "cov", cov) : R_NilValue;
    UNPROTECT(2);
    return out;
}

/* Of totals of n records under each parameter: from `records`, the moments of what one record adds,
 * whose numbers come to the places `index`; of others each record adds 1. NULL where a mean is
 * outside `limits`. */
SEXP ffi_total_moments(SEXP records, SEXP n, SEXP index, SEXP limits, SEXP added) {
    const int m = Rf_nrows(limits), known = (int)Rf_xlength(index), *at = INTEGER(index);
    const R_xlen_t count = Rf_xlength(records);
    SEXP out = PROTECT(Rf_allocVector(VECSXP, count));
    for (R_xlen_t j = 0; j < count; ++j) {
        SEXP record = VECTOR_ELT(records, j);
        if (Rf_isNull(record)) continue;
        SEXP mean = PROTECT(Rf_allocVector(REALSXP, m)), cov = PROTECT(Rf_duplicate(added));
        SEXP one = list_element(record, "mean"), spread = list_element(record, "cov");
        const double size = REAL(n)[j];
        for (int i = 0; i < m; ++i) REAL(mean)[i] = 1;
        double *whole = REAL(cov);
        for (int i = 0; i < known; ++i) {
            REAL(mean)[at[i] - 1] = REAL(one)[i];
            for (int k = 0; k < known; ++k)
                whole[at[i] - 1 + (R_xlen_t)m * (at[k] - 1)] +=
                    size * REAL(spread)[i + (R_xlen_t)Rf_nrows(spread) * k];
        }
        int possible = 1;
        for (int i = 0; i < m; ++i) {
            possible = possible && REAL(mean)[i] >= REAL(limits)[i] &&
                       REAL(mean)[i] <= REAL(limits)[m + i];
            REAL(mean)[i] *= size;
        }
        if (possible) SET_VECTOR_ELT(out, j, named_list(2, "mean", mean, "cov", cov));
        UNPROTECT(2);
    }
    UNPROTECT(1);
    return out;
}

/* The point, a step up in each coordinate, a step down, and with `pairs` a step up in two: a column
 * each. */
SEXP ffi_points(SEXP point, SEXP step, SEXP pairs) {
    const int d = (int)Rf_xlength(point);
    const int count = 1 + 2 * d + (Rf_asLogical(pairs) ? d * (d - 1) / 2 : 0);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, d, count));
    for (int j = 0; j < count; ++j) doubles_copy(REAL(out) + (size_t)j * d, REAL(point), d);
    double *next = REAL(out) + d;
    for (int i = 0; i < d; ++i, next += d) next[i] += REAL(step)[i];
    for (int i = 0; i < d; ++i, next += d) next[i] -= REAL(step)[i];
    if (count > 1 + 2 * d)
        for (int i = 0; i < d; ++i)
            for (int k = 0; k < i; ++k, next += d) {
                next[i] += REAL(step)[i];
                next[k] += REAL(step)[k];
            }
    UNPROTECT(1);
    return out;
}

/* Moments at the points of ffi_points(): NULL where there are none. */
struct moments {
    int m, d, count;
    const double **mean, **cov, *step;
};

static struct moments moments_read(SEXP list, SEXP step) {
    struct moments a = {
        .d = (int)Rf_xlength(step), .count = (int)Rf_xlength(list), .step = REAL(step)};
    a.mean = plugin_memory((size_t)a.count, sizeof *a.mean);
    a.cov = plugin_memory((size_t)a.count, sizeof *a.cov);
    for (int i = 0; i < a.count; ++i) {
        SEXP one = VECTOR_ELT(list, i);
        if (Rf_isNull(one)) continue;
        a.mean[i] = REAL(list_element(one, "mean"));
        a.cov[i] = REAL(list_element(one, "cov"));
        a.m = (int)Rf_xlength(list_element(one, "mean"));
    }
    return a;
}

/* The derivative in coordinate j of `size` numbers, given at the points. */
static void difference(const struct moments *a, const double **at, int size, int j, double *out) {
    const double *up = at[1 + j], *down = at[1 + a->d + j];
    for (int i = 0; i < size; ++i) out[i] = (up[i] - down[i]) / (2 * a->step[j]);
}

static struct matrix cov_slope(const struct moments *a, int j) {
    const struct matrix out = matrix_new(a->m, a->m);
    difference(a, a->cov, a->m * a->m, j, out.x);
    return out;
}

/* Second derivatives of a number given at points; 0 of two coordinates where it is not (NaN). */
static struct matrix hessian(int d, int count, const double *step, const double *f) {
    const struct matrix h = matrix_new(d, d);
    for (int i = 0, pair = 1 + 2 * d; i < d; ++i) {
        column(h, i)[i] = (f[1 + i] + f[1 + d + i] - 2 * f[0]) / (step[i] * step[i]);
        for (int k = 0; k < i && pair < count; ++k, ++pair) {
            const double both = (f[pair] - f[1 + i] - f[1 + k] + f[0]) / (step[i] * step[k]);
            column(h, i)[k] = column(h, k)[i] = isfinite(both) ? both : 0;
        }
    }
    return h;
}

/* w with w V w' = 1 and as many rows as V has ranks; log |V| in these. No rows, and Inf, if that
 * fails. */
static struct matrix whiten(int m, const double *cov, double *log_det) {
    const struct matrix vector = matrix_new(m, m);
    double *unit = doubles((size_t)m), *value = doubles((size_t)m), *work = doubles(3 * (size_t)m);
    for (int i = 0; i < m; ++i) {
        const double variance = cov[i * (m + 1)];
        unit[i] = variance > 0 ? sqrt(variance) : 1;
    }
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) column(vector, j)[i] = cov[i + m * j] / (unit[i] * unit[j]);
    *log_det = INFINITY;
    if (!all_finite((R_xlen_t)m * m, cov) || linalg_principal(m, vector.x, value, work) != 0)
        return matrix_new(0, m);
    int first = 0; /* values ascend */
    while (first < m && !(value[first] > 1e-10 * value[m - 1])) ++first;
    const struct matrix w = matrix_new(m - first, m);
    *log_det = 0;
    for (int k = first; k < m; ++k) *log_det += log(value[k]);
    for (int i = 0; i < m; ++i) {
        *log_det += 2 * log(unit[i]);
        for (int k = first; k < m; ++k)
            column(w, i)[k - first] = column(vector, k)[i] / sqrt(value[k]) / unit[i];
    }
    return w;
}

/* w (z - mean) */
static struct matrix residual(struct matrix w, const double *z, const double *mean) {
    const struct matrix away = matrix_new(w.columns, 1);
    for (int i = 0; i < w.columns; ++i) away.x[i] = z[i] - mean[i];
    return matrix_product("NN", w, away);
}

/* Minus twice the log density of a normal distribution of z, of each moments; `joint`: else without
 * correlations. */
SEXP ffi_moments_loss(SEXP moments, SEXP value, SEXP joint) {
    const R_xlen_t count = Rf_xlength(moments);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, count));
    const int m = (int)Rf_xlength(value);
    const double *z = REAL(value);
    for (R_xlen_t j = 0; j < count; ++j) {
        REAL(out)[j] = INFINITY;
        if (Rf_isNull(VECTOR_ELT(moments, j))) continue;
        const double *mean = REAL(list_element(VECTOR_ELT(moments, j), "mean"));
        const double *cov = REAL(list_element(VECTOR_ELT(moments, j), "cov"));
        double loss = 0;
        if (Rf_asLogical(joint)) {
            const struct matrix w = whiten(m, cov, &loss);
            loss += sum_of_squares(residual(w, z, mean));
        } else {
            for (int i = 0; i < m; ++i) {
                const double away = z[i] - mean[i], variance = cov[i * (m + 1)];
                if (variance > 0) loss += away * away / variance + log(variance);
            }
        }
        REAL(out)[j] = loss;
    }
    UNPROTECT(1);
    return out;
}

/* Of moments at a point and around it: mean, w of whiten(), and the derivatives of the mean times
 * w. NULL where there are none at a step to a side. */
SEXP ffi_point_slopes(SEXP moments, SEXP point, SEXP step) {
    const struct moments a = moments_read(moments, step);
    for (int i = 0; i < 1 + 2 * a.d; ++i)
        if (!a.mean[i] || !all_finite(a.m, a.mean[i])) return R_NilValue;
    double log_det = 0;
    const struct matrix w = whiten(a.m, a.cov[0], &log_det), slope = matrix_new(a.m, a.d);
    if (!isfinite(log_det)) return R_NilValue;
    for (int j = 0; j < a.d; ++j) difference(&a, a.mean, a.m, j, column(slope, j));
    SEXP here = list_element(VECTOR_ELT(moments, 0), "mean");
    SEXP whitened = PROTECT(r_matrix(w)),
         slopes = PROTECT(r_matrix(matrix_product("NN", w, slope)));
    SEXP out = named_list(6, "point", point, "mean", here, "w", whitened, "slopes", slopes,
                          "moments", moments, "step", step);
    UNPROTECT(2);
    return out;
}

SEXP ffi_pseudo_inverse(SEXP a) { return r_matrix(matrix_pseudo_inverse(matrix_read(a))); }

/* ---- the null hypothesis ----------------------------------------------------------------------
 */

/* Its numbers at the points of ffi_points(), a column each: in units of `spread`, derivatives (a
 * column for each number), and a basis of the coordinates' moves along it. */
struct null {
    const double *step, *spread;
    struct matrix numbers, slopes, along;
};

static struct null null_read(SEXP numbers, SEXP step, int d, const double *spread) {
    struct null a = {.step = REAL(step), .spread = spread};
    if (Rf_isNull(numbers)) {
        a.slopes = matrix_new(d, 0);
    } else {
        a.numbers = matrix_read(numbers);
        a.slopes = matrix_new(d, a.numbers.rows);
        for (int j = 0; j < d; ++j)
            for (int i = 0; i < a.numbers.rows; ++i)
                column(a.slopes, i)[j] =
                    (column(a.numbers, 1 + j)[i] - column(a.numbers, 1 + d + j)[i]) /
                    (2 * a.step[j]) * a.spread[j];
    }
    a.along = matrix_complement(a.slopes);
    for (int j = 0; j < a.along.columns; ++j)
        for (int i = 0; i < d; ++i) column(a.along, j)[i] *= a.spread[i];
    return a;
}

/* ---- the best fit -----------------------------------------------------------------------------
 */

/* A step of Fisher scoring along the null hypothesis, from a list of ffi_point_slopes(); NULL where
 * it would gain less than `least`. */
SEXP ffi_scoring_step(SEXP at, SEXP value, SEXP prior, SEXP numbers, SEXP null_step, SEXP least) {
    const struct matrix slopes = matrix_read(list_element(at, "slopes"));
    const int d = slopes.columns;
    const double *middle = REAL(prior), *spread = middle + d;
    const double *point = REAL(list_element(at, "point"));
    const struct matrix r =
        residual(matrix_read(list_element(at, "w")), REAL(value), REAL(list_element(at, "mean")));
    const struct matrix gradient = matrix_product("TN", slopes, r),
                        information = matrix_product("TN", slopes, slopes);
    for (int j = 0; j < d; ++j) {
        const double weight = 1 / (spread[j] * spread[j]);
        gradient.x[j] -= (point[j] - middle[j]) * weight;
        column(information, j)[j] += weight;
    }
    const struct matrix along = null_read(numbers, null_step, d, spread).along;
    const int q = along.columns;
    if (q == 0) return R_NilValue;
    const struct matrix downhill = matrix_product("TN", along, gradient), change = matrix_new(q, 1),
                        root = matrix_sandwich(along, information);
    doubles_copy(change.x, downhill.x, q);
    if (linalg_cholesky(q, root.x) != 0) return R_NilValue;
    linalg_forward(q, root.x, change.x);
    linalg_backward(q, root.x, change.x);
    if (!(linalg_dot(q, downhill.x, change.x) >= Rf_asReal(least))) return R_NilValue;
    const struct matrix move = matrix_product("NN", along, change);
    SEXP out = Rf_allocVector(REALSXP, d);
    doubles_copy(REAL(out), move.x, d);
    return out;
}

/* ---- the statistic ----------------------------------------------------------------------------
 */

/* Second derivatives of a tested direction's mean along the tangent of the null hypothesis, halved.
 */
static struct matrix bend(const struct moments *a, struct matrix w, struct matrix direction,
                          struct matrix along) {
    const struct matrix weight = matrix_product("TN", w, direction);
    double *f = doubles((size_t)a->count);
    for (int i = 0; i < a->count; ++i)
        f[i] = a->mean[i] ? linalg_dot(a->m, weight.x, a->mean[i]) : NAN;
    const struct matrix out = matrix_sandwich(along, hessian(a->d, a->count, a->step, f));
    for (int i = 0; i < out.rows * out.columns; ++i) out.x[i] /= 2;
    return out;
}

/* The same of the null hypothesis's number i: it bends away from its tangent, and the way back goes
 * along its normal. */
static struct matrix null_bend(const struct null *null, int i) {
    const int d = null->slopes.rows, count = null->numbers.columns;
    double *f = doubles((size_t)count);
    for (int j = 0; j < count; ++j) f[j] = column(null->numbers, j)[i];
    const struct matrix out = matrix_sandwich(null->along, hessian(d, count, null->step, f));
    for (int k = 0; k < out.rows * out.columns; ++k) out.x[k] /= 2;
    return out;
}

/* a += weight b, number by number */
static void add(struct matrix a, double weight, struct matrix b) {
    for (int i = 0; i < b.rows * b.columns; ++i) a.x[i] += weight * b.x[i];
}

/* Derivatives along the null hypothesis of the covariance of r in pairs of directions (all pairs,
 * or each with itself), in units of that at the point: a row for each nuisance parameter. */
static struct matrix variance_slopes(const struct moments *a, struct matrix w,
                                     struct matrix direction, struct matrix along, int pairs) {
    const int k = direction.columns;
    const struct matrix weight = matrix_product("TN", w, direction);
    const struct matrix each = matrix_new(pairs ? k * k : k, a->d);
    for (int j = 0; j < a->d; ++j) {
        const struct matrix moved = matrix_product("NN", cov_slope(a, j), weight);
        for (int i = 0; i < k; ++i)
            for (int l = pairs ? 0 : i; l < (pairs ? k : i + 1); ++l)
                column(each, j)[pairs ? i + k * l : i] =
                    linalg_dot(a->m, column(weight, i), column(moved, l));
    }
    return matrix_product("TT", along, each);
}

/* Second derivatives of the covariance in two tested directions, halved, where z suggests that the
 * nuisance parameters are: the variance of a normal mean is taken about the records' mean, not
 * about theta's. */
static struct matrix variance_bend(const struct moments *a, struct matrix w, struct matrix one,
                                   struct matrix other, struct matrix along) {
    const struct matrix left = matrix_product("TN", w, one), right = matrix_product("TN", w, other);
    double *f = doubles((size_t)a->count);
    for (int i = 0; i < a->count; ++i) {
        f[i] = a->cov[i] ? 0 : NAN;
        for (int j = 0; a->cov[i] && j < a->m; ++j)
            f[i] += right.x[j] * linalg_dot(a->m, left.x, a->cov[i] + (size_t)j * a->m);
    }
    const struct matrix out = matrix_sandwich(along, hessian(a->d, a->count, a->step, f));
    for (int i = 0; i < out.rows * out.columns; ++i) out.x[i] /= 2;
    return out;
}

/* What T is made of: see score_at() in R. `at`: of ffi_point_slopes(), its moments with pairs if
 * the mean's second derivatives count; `numbers`: the numbers of the null hypothesis; `most`:
 * coordinates for which, and numbers of which, the second derivatives of the covariance also count.
 */
SEXP ffi_score_at(SEXP at, SEXP numbers, SEXP null_step, SEXP spread, SEXP side, SEXP curved,
                  SEXP most) {
    const struct matrix w = matrix_read(list_element(at, "w")),
                        slopes = matrix_read(list_element(at, "slopes"));
    const struct moments a = moments_read(list_element(at, "moments"), list_element(at, "step"));
    const struct null null = null_read(numbers, null_step, slopes.columns, REAL(spread));
    const struct matrix along = null.along, all = matrix_new(slopes.rows, a.d),
                        nuisance = matrix_product("NN", slopes, along);
    const int q = along.columns, curves = q > 0 && Rf_asLogical(curved);
    const int most_d = INTEGER(most)[0], most_m = INTEGER(most)[1];
    for (int j = 0; j < a.d; ++j)
        for (int i = 0; i < slopes.rows; ++i)
            column(all, j)[i] = column(slopes, j)[i] * null.spread[j];
    const struct matrix aside = matrix_directions(nuisance, q, 0), left = matrix_new(all.rows, a.d);
    doubles_copy(left.x, all.x, all.rows * a.d);
    add(left, -1, matrix_product("NN", aside, matrix_product("TN", aside, all)));
    const struct matrix tested =
        matrix_directions(left, a.d - q, least_told * sqrt(sum_of_squares(all)));
    const int k = tested.columns;
    if (Rf_asReal(side) != 0 && k > 0) {
        const struct matrix towards = matrix_product("NN", left, null.slopes);
        const double with = linalg_dot(tested.rows, tested.x, towards.x) * Rf_asReal(side);
        for (int i = 0; i < tested.rows; ++i) tested.x[i] *= with < 0 ? -1 : 1;
    }
    const struct matrix information = matrix_product("TN", nuisance, nuisance),
                        root = matrix_new(q, q), estimate = matrix_new(nuisance.rows, q);
    for (int j = 0; j < q; ++j) column(information, j)[j] += 1; /* the prior's */
    doubles_copy(root.x, information.x, q * q);
    linalg_cholesky(q, root.x);
    double *row = doubles((size_t)q + 1);
    for (int i = 0; i < nuisance.rows; ++i) {
        for (int j = 0; j < q; ++j) row[j] = column(nuisance, j)[i];
        linalg_forward(q, root.x, row);
        linalg_backward(q, root.x, row);
        for (int j = 0; j < q; ++j) column(estimate, j)[i] = row[j];
    }
    const struct matrix tested_slopes = variance_slopes(&a, w, tested, along, 1),
                        bends = matrix_new(q * q, curves ? k : 0),
                        covs =
                            matrix_new(q * q, curves && a.d <= most_d && a.m <= most_m ? k * k : 0);
    if (curves) {
        const struct matrix back = matrix_product("NT", matrix_product("TN", tested, all),
                                                  matrix_pseudo_inverse(null.slopes));
        for (int i = 0; i < null.slopes.columns; ++i) {
            const struct matrix bent = null_bend(&null, i);
            for (int t = 0; t < k; ++t) add(column_of(bends, t), -column(back, i)[t], bent);
        }
        for (int t = 0; t < k; ++t)
            add(column_of(bends, t), 1, bend(&a, w, column_of(tested, t), along));
    }
    for (int t = 0; t < covs.columns; ++t)
        add(column_of(covs, t), 1,
            variance_bend(&a, w, column_of(tested, t % k), column_of(tested, t / k), along));
    for (int j = 0; j < q && covs.columns > 0; ++j) {
        const struct matrix back = bend(&a, w, column_of(estimate, j), along);
        for (int t = 0; t < covs.columns; ++t)
            add(column_of(covs, t), -column(tested_slopes, t)[j], back);
    }
    const struct matrix parts[] = {
        along,         information, tested,
        aside,         estimate,    bends,
        tested_slopes, covs,        variance_slopes(&a, w, aside, along, 0)};
    static const char *const names[] = {"along",         "information",   "tested",
                                        "nuisance",      "estimate",      "bend",
                                        "tested_slopes", "variance_bend", "nuisance_slopes"};
    SEXP values = PROTECT(Rf_allocVector(VECSXP, COUNT(parts)));
    for (int i = 0; i < COUNT(parts); ++i) SET_VECTOR_ELT(values, i, r_matrix(parts[i]));
    Rf_setAttrib(values, R_NamesSymbol, strings(COUNT(parts), names));
    UNPROTECT(1);
    return values;
}

/* 1 + x, the variance where it is linear in what the numbers estimate, as the variance of a normal
 * mean is; a positive number for every x */
static double variance_ratio(double x) {
    return x > -0.8 ? 1 + fmin(x, 100) : 0.2 * exp(5 * (fmax(x, -2) + 0.8));
}

/* x' (1 + change)^-1 x */
static double own_units(int k, const double *x, double *change, double *work) {
    if (k == 1) return x[0] * x[0] / variance_ratio(change[0]);
    double sum = 0, *value = work + 3 * k;
    if (linalg_principal(k, change, value, work) != 0) return NAN;
    for (int i = 0; i < k; ++i) {
        const double part = linalg_dot(k, change + (size_t)i * k, x);
        sum += part * part / variance_ratio(value[i]);
    }
    return sum;
}

/* T, and the squared length in the nuisance directions, for rows of z: see score_values() in R. */
SEXP ffi_score_values(SEXP at, SEXP numbers, SEXP one_sided) {
    numbers = PROTECT(Rf_coerceVector(numbers, REALSXP));
    const struct matrix z = matrix_read(numbers), w = matrix_read(list_element(at, "w"));
    const struct matrix tested = matrix_read(list_element(at, "tested")),
                        aside = matrix_read(list_element(at, "nuisance")),
                        bends = matrix_read(list_element(at, "bend")),
                        covs = matrix_read(list_element(at, "variance_bend"));
    const double *mean = REAL(list_element(at, "mean"));
    const int rows = z.rows, k = tested.columns;
    const struct matrix centred = matrix_new(rows, z.columns);
    for (int j = 0; j < z.columns; ++j)
        for (int i = 0; i < rows; ++i) column(centred, j)[i] = column(z, j)[i] - mean[j];
    const struct matrix r = matrix_product("NT", centred, w),
                        away = matrix_product("NN", r, matrix_read(list_element(at, "estimate")));
    const int q = away.columns;
    const struct matrix own = matrix_product("NN", away,
                                             matrix_read(list_element(at, "nuisance_slopes"))),
                        beside = matrix_product("NN", r, aside),
                        score = matrix_product("NN", r, tested),
                        change = matrix_product("NN", away,
                                                matrix_read(list_element(at, "tested_slopes")));
    SEXP length = PROTECT(Rf_allocVector(REALSXP, rows)),
         region = PROTECT(Rf_allocVector(REALSXP, rows));
    double *squares = doubles((size_t)(q * q) + 1), *x = doubles((size_t)k + 1),
           *changed = doubles((size_t)(k * k) + 1), *work = doubles(4 * (size_t)k + 1);
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < q; ++j)
            for (int l = 0; l < q; ++l)
                squares[j + q * l] = column(away, j)[i] * column(away, l)[i];
        for (int t = 0; t < k; ++t) {
            x[t] = column(score, t)[i];
            if (bends.columns) x[t] -= linalg_dot(q * q, column(bends, t), squares);
        }
        for (int t = 0; t < k * k; ++t) {
            changed[t] = column(change, t)[i];
            if (covs.columns) changed[t] += linalg_dot(q * q, column(covs, t), squares);
        }
        REAL(length)[i] = k > 0 ? own_units(k, x, changed, work) : 0;
        if (Rf_asLogical(one_sided) && x[0] < 0) REAL(length)[i] *= -1;
        REAL(region)[i] = 0;
        for (int t = 0; t < aside.columns; ++t) {
            const double part = column(beside, t)[i];
            REAL(region)[i] += part * part / pow(variance_ratio(column(own, t)[i] / 2), 2.0 / 3);
        }
    }
    SEXP list = named_list(2, "tested", length, "nuisance", region);
    UNPROTECT(3);
    return list;
}
