/* Coordinates of the totals of records N(m, L L') (totals/normal_coordinates.c) that are
 * innovations: with M the means, in units of sqrt(n), and F the factor of the scatter of n
 * records,
 *
 *   M = sqrt(n) m + L u,   F = L Z,   Z lower triangular with exp(v_i) on the diagonal.
 *
 * Given m and L all of u and of Z left of the diagonal are standard normal, and exp(v_i) is chi
 * with n - 1 - i degrees (Bartlett), free of m and L. If noise hides the totals, the totals
 * themselves would be strongly correlated with m and L, and their range would shrink with L. In
 * the coordinates of totals/normal_coordinates.c, where rows of F are divided by their diagonal,
 * the log Jacobian is sum_i log L_ii - i v_i, i from 0. Cost: O(d^3).
 */
#include "totals/innovations.h"
#include "contract/model_normal.h"

void totals_innovations_create(struct totals_innovations *t, const struct totals *totals,
                               const struct model *model) {
    const size_t d = (size_t)totals->d;
    t->totals = totals;
    t->model = model;
    t->at = doubles((size_t)totals->size);
    DOUBLES(d, &t->mean, &t->slope_mean);
    DOUBLES(d * d, &t->chol, &t->slope_chol, &t->factor, &t->core);
}

/* where row i of F, or of Z, begins among the coordinates */
static int row_of(int d, int i) { return d + i * (i + 1) / 2; }

static void distribute(struct totals_innovations *t, const double *theta) {
    t->model->normal->distribution(t->model->self, theta, t->mean, t->chol);
}

double totals_innovations_place(struct totals_innovations *t, const double *theta,
                                const double *q) {
    const int d = t->totals->d;
    const double root = t->totals->design[0];
    double log_volume = 0;
    distribute(t, theta);
    for (int i = 0; i < d; ++i) {
        const double *l = t->chol + i * d, *own = q + row_of(d, i);
        double *z = t->core + i * d, *f = t->factor + i * d, *at = t->at + row_of(d, i);
        for (int j = 0; j < i; ++j) z[j] = own[j];
        z[i] = exp(own[i]);
        f[i] = l[i] * z[i];
        t->at[i] = root * t->mean[i];
        for (int m = 0; m <= i; ++m) t->at[i] += l[m] * q[m];
        for (int j = 0; j < i; ++j) {
            f[j] = 0;
            for (int m = j; m <= i; ++m) f[j] += l[m] * t->core[m * d + j];
            at[j] = f[j] / f[i];
        }
        at[i] = log(f[i]);
        log_volume += log(l[i]) - i * own[i];
    }
    return log_volume;
}

/* From slopes in F's coordinates to slopes in F, over F. */
static void slopes_of_factor(struct totals_innovations *t, const double *gradient) {
    const int d = t->totals->d;
    for (int i = 0; i < d; ++i) {
        const double *own = gradient + row_of(d, i), *at = t->at + row_of(d, i);
        double *f = t->factor + i * d;
        const double diagonal = f[i];
        double sum = own[i];
        for (int j = 0; j < i; ++j) {
            sum -= at[j] * own[j];
            f[j] = own[j] / diagonal;
        }
        f[i] = sum / diagonal;
    }
}

void totals_innovations_pull(struct totals_innovations *t, const double *theta, const double *q,
                             double *gradient, double *slope) {
    const int d = t->totals->d;
    const double root = t->totals->design[0];
    slopes_of_factor(t, gradient);
    for (int i = 0; i < d; ++i) {
        const double *f = t->factor + i * d;
        double *of_l = t->slope_chol + i * d;
        t->slope_mean[i] = root * gradient[i];
        for (int m = 0; m <= i; ++m) {
            of_l[m] = gradient[i] * q[m];
            for (int j = 0; j <= m; ++j) of_l[m] += f[j] * t->core[m * d + j];
        }
        of_l[i] += 1 / t->chol[i * d + i];
    }
    for (int m = 0; m < d; ++m) {
        double *own = gradient + row_of(d, m), sum = 0;
        for (int i = m; i < d; ++i) sum += t->chol[i * d + m] * gradient[i];
        gradient[m] = sum; /* rows before it have been read */
        for (int j = 0; j <= m; ++j) {
            own[j] = 0;
            for (int i = m; i < d; ++i) own[j] += t->chol[i * d + m] * t->factor[i * d + j];
        }
        own[m] = own[m] * t->core[m * d + m] - m;
    }
    t->model->normal->pull_distribution(t->model->self, theta, t->mean, t->chol, t->slope_mean,
                                        t->slope_chol, slope);
}

void totals_innovations_read(struct totals_innovations *t, const double *theta, double *q) {
    const int d = t->totals->d;
    const double root = t->totals->design[0];
    distribute(t, theta);
    for (int i = 0; i < d; ++i) {
        const double *l = t->chol + i * d;
        double *own = q + row_of(d, i), *z = t->core + i * d;
        const double diagonal = exp(own[i]);
        q[i] -= root * t->mean[i];
        for (int m = 0; m < i; ++m) q[i] -= l[m] * q[m];
        q[i] /= l[i];
        for (int j = 0; j < i; ++j) {
            z[j] = own[j] * diagonal;
            for (int m = j; m < i; ++m) z[j] -= l[m] * t->core[m * d + j];
            own[j] = z[j] /= l[i];
        }
        z[i] = diagonal / l[i];
        own[i] = log(z[i]);
    }
}
