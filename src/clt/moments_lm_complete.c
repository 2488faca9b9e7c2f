/* The complete-data statistic of a regression from the total of its cross-products: a linear map,
 * and a projection if no records could have that total. Cost: d^3.
 */
#include "clt/moments_lm.h"

#include "base/linalg.h"

/* share of its scaled matrix that a projected scatter's least eigenvalue has */
static const double least_eigenvalue = 1e-6;

/* number, inside, of the product of columns i <= j; column 0 is y */
static int product_of(const struct lm_distribution *m, int i, int j) {
    if (i == 0) return j == 0 ? m->w + m->d : m->w + j;
    return lm_number_of(m, i, j);
}

static int sum_of(const struct lm_distribution *m, int i) { return i == 0 ? m->w : i - 1; }

/* Scatter of the columns about their averages, scaled to a unit diagonal. */
static void scale_scatter(struct lm_distribution *m, double n, const double *c) {
    const int d = m->d;
    const double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            m->work.scatter[(size_t)i * d + j] = m->work.scatter[(size_t)j * d + i] =
                *product++ - c[i] * c[j] / n;
    for (int i = 0; i < d; ++i) {
        const double diagonal = fabs(m->work.scatter[(size_t)i * d + i]);
        m->work.unit[i] = diagonal > 0 ? sqrt(diagonal) : 1;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            m->work.scatter[(size_t)i * d + j] /= m->work.unit[i] * m->work.unit[j];
}

int lm_complete(void *self, double n, const double *total, double *c) {
    struct lm_distribution *m = self;
    const int d = m->d;
    const double *scale = m->units.scale, *offset = m->units.offset;
    for (int i = 0; i < d; ++i) c[i] = (total[m->at[sum_of(m, i)]] - n * offset[i]) / scale[i];
    double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j) {
            const int at = m->at[product_of(m, i, j)];
            if (at < 0) { /* dummies of one factor, which are not centred */
                *product++ = i == j ? c[i] : 0;
                continue;
            }
            const double a = offset[i] / scale[i], b = offset[j] / scale[j];
            *product++ = total[at] / (scale[i] * scale[j]) - a * c[j] - b * c[i] - n * a * b;
        }
    scale_scatter(m, n, c);
    return linalg_cholesky(d, m->work.scatter) == 0;
}

/* Counts of levels that n records could have; the scatter is seen to later. */
static void project_counts(const struct lm_distribution *m, double n, double *c) {
    for (int f = 0; f < m->factors.count; ++f) {
        double *count = c + m->factors.factor[f].first, sum = 0;
        for (int l = 0; l < m->factors.factor[f].dummies; ++l) {
            if (!(count[l] > 0)) count[l] = 0;
            sum += count[l];
        }
        for (int l = 0; sum > n && l < m->factors.factor[f].dummies; ++l) count[l] *= n / sum;
    }
}

void lm_project(void *self, double n, double *c) {
    struct lm_distribution *m = self;
    const int d = m->d;
    project_counts(m, n, c);
    scale_scatter(m, n, c);
    linalg_raise_eigenvalues(d, m->work.scatter, least_eigenvalue, m->work.rest);
    double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            *product++ = m->work.scatter[(size_t)i * d + j] * m->work.unit[i] * m->work.unit[j] +
                         c[i] * c[j] / n;
}
