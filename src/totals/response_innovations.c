/* Coordinates of the totals of a regression y = alpha + beta'x + sigma e
 * (totals/normal_coordinates.c) in which the totals of the response y are innovations: with M the
 * means, in units of sqrt(n), and F the factor of the scatter of (x, y), y last,
 *
 *   M_y = sqrt(n) alpha + beta'M_x + sigma u,
 *   F_yl = sum_i beta_i F_il + sigma g_l,     F_yy = sigma exp(v).
 *
 * Given theta, u and g are standard normal and exp(v) is chi with n - d degrees, free of theta. If
 * noise hides the totals, the totals themselves would be strongly correlated with theta, and rows
 * of the inverse of F are better coordinates of the covariates' scatter
 * (totals/normal_coordinates.c). With G the inverse of the covariates' part of F, the row of the
 * response then is
 *
 *   (F^-1)_yl = -exp(-v) (beta_l / sigma + sum_i g_i G_il),
 *
 * and the log Jacobian log sigma - (d - 1) v - sum_i log F_ii, i a covariate.
 *
 * Where the coefficients are integrated out, they and not sigma hold M_y and F_yl, which stay, F_yl
 * not divided by the diagonal; F_yy alone is sigma exp(v). Coordinates are rows of F then, and the
 * log Jacobian is -(d - 1) log F_yy. Cost: O(d^2).
 */
#include "totals/response_innovations.h"

#include "contract/plugin.h"

void totals_residual_create(struct totals_residual *r, const struct totals *totals, int log_sigma) {
    r->totals = totals;
    r->log_sigma = log_sigma;
    r->at = doubles((size_t)totals->size);
    r->along = doubles((size_t)totals->d);
}

/* where row i of F begins among the coordinates */
static int row_of(const struct totals *t, int i) { return t->d + i * (i + 1) / 2; }

static double slope_of(const struct totals_residual *r, const double *theta, int i) {
    return theta[r->totals->column[i]];
}

/* beta'M */
static double mean_of(const struct totals_residual *r, const double *theta, const double *q) {
    double sum = 0;
    for (int i = 0; i < r->totals->d - 1; ++i) sum += slope_of(r, theta, i) * q[i];
    return sum;
}

/* beta / sigma + G'g */
static void set_along(struct totals_residual *r, const double *theta, double sigma,
                      const double *q) {
    const struct totals *t = r->totals;
    const int p = t->d - 1;
    const double *g = q + row_of(t, p);
    for (int i = 0; i < p; ++i) {
        const double *row = q + row_of(t, i);
        for (int l = 0; l < i; ++l) r->along[l] += g[i] * row[l];
        r->along[i] = slope_of(r, theta, i) / sigma + g[i] * exp(-row[i]);
    }
}

double totals_residual_place(struct totals_residual *r, const double *theta, const double *q) {
    const struct totals *t = r->totals;
    const int p = t->d - 1, last = row_of(t, p);
    const double log_sigma = theta[r->log_sigma], sigma = exp(log_sigma), v = q[last + p];
    memcpy(r->at, q, (size_t)t->size * sizeof(double));
    if (r->alone) {
        for (int l = 0; l < p; ++l) r->at[last + l] = q[last + l] * exp(-log_sigma - v);
        r->at[last + p] = log_sigma + v;
        return -p * (log_sigma + v);
    }
    const double shrink = exp(-v);
    double log_volume = log_sigma - p * v;
    set_along(r, theta, sigma, q);
    r->at[p] = t->design[0] * theta[0] + mean_of(r, theta, q) + sigma * q[p];
    for (int l = 0; l < p; ++l) {
        r->at[last + l] = -shrink * r->along[l];
        log_volume -= q[row_of(t, l) + l];
    }
    r->at[last + p] = log_sigma + v;
    return log_volume;
}

void totals_residual_pull(const struct totals_residual *r, const double *theta, const double *q,
                          double *gradient, double *slope) {
    const struct totals *t = r->totals;
    const int p = t->d - 1, last = row_of(t, p);
    if (r->alone) {
        double of_diagonal = gradient[last + p] - p;
        for (int l = 0; l < p; ++l) {
            of_diagonal -= r->at[last + l] * gradient[last + l];
            gradient[last + l] *= exp(-r->at[last + p]);
        }
        gradient[last + p] = of_diagonal;
        slope[r->log_sigma] += of_diagonal;
        return;
    }
    const double sigma = exp(theta[r->log_sigma]), shrink = exp(-q[last + p]);
    const double of_mean = gradient[p], of_diagonal = gradient[last + p];
    double *of_row = gradient + last;
    double of_sigma = of_mean * sigma * q[p] + of_diagonal + 1, of_v = of_diagonal - p;
    slope[0] += t->design[0] * of_mean;
    for (int l = 0; l < p; ++l) {
        of_v -= r->at[last + l] * of_row[l];
        of_row[l] *= -shrink; /* that in `along` */
    }
    for (int i = p - 1; i >= 0; --i) {
        const double beta = slope_of(r, theta, i), *row = q + row_of(t, i), g = q[last + i];
        double *of = gradient + row_of(t, i);
        const double own = of_row[i], diagonal = exp(-row[i]), by = own / sigma;
        double of_g = own * diagonal;
        for (int l = 0; l < i; ++l) {
            of[l] += of_row[l] * g;
            of_g += of_row[l] * row[l];
        }
        of[i] -= own * g * diagonal + 1;
        of_sigma -= beta * by;
        slope[t->column[i]] += of_mean * q[i] + by;
        gradient[i] += beta * of_mean;
        of_row[i] = of_g; /* rows before it need those before it alone */
    }
    slope[r->log_sigma] += of_sigma;
    gradient[p] = sigma * of_mean;
    gradient[last + p] = of_v;
}

void totals_residual_read(struct totals_residual *r, const double *theta, double *q) {
    const struct totals *t = r->totals;
    const int p = t->d - 1, last = row_of(t, p);
    const double log_sigma = theta[r->log_sigma], sigma = exp(log_sigma);
    const double v = q[last + p] - log_sigma;
    if (r->alone) {
        for (int l = 0; l < p; ++l) q[last + l] *= exp(q[last + p]);
        q[last + p] = v;
        return;
    }
    double *g = q + last;
    q[p] = (q[p] - t->design[0] * theta[0] - mean_of(r, theta, q)) / sigma;
    for (int l = 0; l < p; ++l) g[l] = -exp(v) * g[l] - slope_of(r, theta, l) / sigma;
    for (int i = p - 1; i >= 0; --i) {
        const double *row = q + row_of(t, i);
        g[i] *= exp(row[i]);
        for (int l = 0; l < i; ++l) g[l] -= g[i] * row[l];
    }
    q[last + p] = v;
}
