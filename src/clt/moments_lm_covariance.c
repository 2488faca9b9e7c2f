/* Mean and covariance of a record's cross-products: the formulas are in clt/moments_lm_class.c.
 * Cost: d^4 / 2 multiplications for the normal Xi and as many for Xi A'. */
#include "clt/moments_lm.h"

/* out_l = a * x_l + b * y_l + c * z_l + e * u_l */
VECTOR_CLONES static void combine(int n, double a, const double *restrict x, double b,
                                  const double *restrict y, double c, const double *restrict z,
                                  double e, const double *restrict u, double *restrict out) {
    for (int l = 0; l < n; ++l) out[l] = a * x[l] + b * y[l] + c * z[l] + e * u[l];
}

/* E prod (x - E x) of dummies of one factor, as 0 and 1 */
static double central(const struct lm_distribution *m, int order, const int *v) {
    double sum = 0, rest = 1, all = 1;
    for (int k = 0; k < order; ++k) {
        const double share = m->factors.share[v[k]];
        double product = share;
        int seen = 0;
        for (int l = 0; l < order; ++l) {
            product *= (v[l] == v[k]) - m->factors.share[v[l]];
            seen = seen || (l < k && v[l] == v[k]);
        }
        all *= -share;
        if (seen) continue;
        sum += product;
        rest -= share;
    }
    return sum + rest * all;
}

static double third_cumulant(const struct lm_distribution *m, int i, int j, int k) {
    const int v[] = {i, j, k};
    return m->units.scale[i] * m->units.scale[j] * m->units.scale[k] * central(m, 3, v);
}

static double fourth_cumulant(const struct lm_distribution *m, int i, int j, int k, int l) {
    const int v[] = {i, j, k, l}, d = m->d;
    const double *cov_i = m->cov + (size_t)i * d, *cov_j = m->cov + (size_t)j * d;
    return m->units.scale[i] * m->units.scale[j] * m->units.scale[k] * m->units.scale[l] *
               central(m, 4, v) -
           cov_i[j] * m->cov[(size_t)k * d + l] - cov_i[k] * cov_j[l] - cov_i[l] * cov_j[k];
}

/* What the row of x_i x_j has beyond a normal distribution's. */
static void add_cumulants(const struct lm_distribution *m, int i, int j, double *row) {
    const int side[] = {i, j};
    for (int s = 0; s < 2; ++s) {
        const int one = side[s], f = m->factors.of[one];
        if (f < 0) continue;
        const double mean = m->mean[side[1 - s]];
        const int first = m->factors.factor[f].first, end = first + m->factors.factor[f].dummies;
        for (int k = first; k < end; ++k)
            for (int l = k; l < end; ++l)
                row[lm_number_of(m, k, l)] += mean * third_cumulant(m, one, k, l);
    }
    const int f = m->factors.of[i];
    if (f < 0 || f != m->factors.of[j]) return;
    const int first = m->factors.factor[f].first, end = first + m->factors.factor[f].dummies;
    for (int k = first; k < end; ++k) {
        const double third = third_cumulant(m, i, j, k);
        for (int l = 0; l < m->d; ++l)
            row[k < l ? lm_number_of(m, k, l) : lm_number_of(m, l, k)] +=
                (k == l ? 2 : 1) * m->mean[l] * third;
        for (int l = k; l < end; ++l) row[lm_number_of(m, k, l)] += fourth_cumulant(m, i, j, k, l);
    }
}

/* row of Xi that belongs to x_i x_j */
static const double *fourth_row(struct lm_distribution *m, int i, int j, int number) {
    if (m->fourth) return m->fourth + (size_t)number * m->w;
    const int d = m->d;
    const double *cov_i = m->cov + (size_t)i * d, *cov_j = m->cov + (size_t)j * d;
    const double *second_j = m->second + (size_t)j * d;
    double *out = m->work.row;
    for (int k = 0; k < d; ++k) {
        const int from = k == 0 ? 1 : k;
        combine(d - from, cov_i[k], second_j + from, second_j[k], cov_i + from,
                m->mean[i] * m->mean[k], cov_j + from, m->mean[i] * cov_j[k], m->mean + from, out);
        out += d - from;
    }
    add_cumulants(m, i, j, m->work.row);
    return m->work.row;
}

void lm_contract(int d, const double *restrict row, const double *restrict theta,
                 double *restrict out) {
    for (int k = 0; k < d; ++k) out[k] = 0;
    for (int k = 0; k < d; ++k) {
        const int from = k == 0 ? 1 : k;
        double sum = k > 0 ? row[0] * theta[k] : 0; /* the pair (k, k) counts once */
        for (int l = k + 1; l < d; ++l) {
            const double value = row[l - from];
            sum += value * theta[l];
            out[l] += value * theta[k];
        }
        out[k] += sum;
        row += d - from;
    }
}

static inline void put(const struct lm_distribution *m, double *cov, int a, int b, double value) {
    const int i = m->at[a], j = m->at[b];
    if (i < 0 || j < 0) return;
    cov[(size_t)i * m->size + j] = cov[(size_t)j * m->size + i] = value;
}

int lm_eval(void *self, const double *theta_model, double *mean, double *cov) {
    struct lm_distribution *m = self;
    lm_set(m, theta_model);
    const int d = m->d, w = m->w, square = w + d;
    const double *theta = m->theta;
    const double variance = m->sigma * m->sigma;

    for (int i = 0; i < d; ++i)
        mean[m->at[w + i]] = m->work.pull[i] = linalg_dot(d, m->second + (size_t)i * d, theta);
    const double square_mean = linalg_dot(d, theta, m->work.pull); /* E (theta'x)^2 */
    mean[m->at[square]] = square_mean + variance;

    /* w with itself, with xy and with y^2; A Xi A', whose row i is the sum of
     * theta_j times the row of x_i x_j in Xi A' */
    memset(m->work.outer, 0, (size_t)d * d * sizeof(double));
    for (int i = 0, number = 0; i < d; ++i) {
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number) {
            const double *row = fourth_row(m, i, j, number);
            double *cross = m->work.cross;
            lm_contract(d, row, theta, cross);
            if (m->at[number] >= 0) mean[m->at[number]] = m->second[(size_t)i * d + j];
            for (int b = 0; b <= number; ++b) put(m, cov, number, b, row[b]);
            for (int k = 0; k < d; ++k) put(m, cov, w + k, number, cross[k]);
            put(m, cov, square, number, linalg_dot(d, cross, theta));
            for (int k = 0; k < d; ++k) m->work.outer[(size_t)i * d + k] += theta[j] * cross[k];
            if (i == j) continue;
            for (int k = 0; k < d; ++k) m->work.outer[(size_t)j * d + k] += theta[i] * cross[k];
        }
    }
    double total = 2 * variance * variance + 4 * variance * square_mean;
    for (int i = 0; i < d; ++i) {
        const double *outer = m->work.outer + (size_t)i * d;
        for (int k = 0; k <= i; ++k)
            put(m, cov, w + i, w + k, outer[k] + variance * m->second[(size_t)i * d + k]);
        const double with_square = linalg_dot(d, outer, theta);
        put(m, cov, square, w + i, with_square + 2 * variance * m->work.pull[i]);
        total += theta[i] * with_square;
    }
    put(m, cov, square, square, total);
    return isfinite(total) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}
