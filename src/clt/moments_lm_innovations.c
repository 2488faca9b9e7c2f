/* The total of cross-products as a function of standard normal innovations, without a
 * factor of its covariance: w from a root of Xi, for normal x and dummies from the normal
 * sum of vech(xx') itself; then (xy, y^2) given w (see clt/moments_lm_class.c). So a covariance of
 * low rank needs no care. Cost: d^3, or w * rank.
 */
#include "base/linalg.h"
#include "clt/moments_lm.h"

/* The sum of (x_i - E x_i)(x_j - E x_j) for dummies of one factor, given the sums of
 * x - E x; covariates count from 0. */
static double within_factor(const struct lm_distribution *m, int i, int j, const double *sum) {
    const double *scale = m->units.scale + 1, *share = m->factors.share + 1;
    const double product = -scale[i] * share[i] * sum[j] - scale[j] * share[j] * sum[i];
    return i == j ? product + scale[i] * sum[i] : product;
}

/* w = A_w u, A_w A_w' = Xi. For normal x: the sums of v and of vv' - I over many
 * records, v standard normal, are g and a symmetric G with variances 1 and 2 on its
 * diagonal; xx' - E xx' is m (L g)' + (L g) m' + L G L'. So for dummies, v = L^-1 (x - m),
 * but for products within a factor: x_i x_j is x_i for i = j, else 0. */
static void form_products(struct lm_distribution *m, const double *u, double *restrict out) {
    const int p = m->p, w = m->w;
    if (m->fourth) {
        memset(out, 0, (size_t)w * sizeof(double));
        for (int r = 0; r < m->rank; ++r) {
            const double *column = m->root + (size_t)r * w;
            for (int b = 0; b < w; ++b) out[b] += u[r] * column[b];
        }
        return;
    }
    double *half = m->work.outer, *square = m->work.symmetric;
    const double *next = u + p;
    for (int i = 0; i < p; ++i) {
        square[(size_t)i * p + i] = sqrt(2) * *next++;
        for (int j = 0; j < i; ++j) square[(size_t)i * p + j] = square[(size_t)j * p + i] = *next++;
    }
    linalg_multiply_lower(p, m->chol, square, half); /* L G */
    for (int i = 0; i < p; ++i) out[i] = linalg_dot(i + 1, m->chol + (size_t)i * p, u);
    double *product = out + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double centred =
                lm_same_factor(&m->factors, i, j)
                    ? within_factor(m, i, j, out)
                    : linalg_dot(j + 1, half + (size_t)i * p, m->chol + (size_t)j * p);
            *product++ = m->mean[i + 1] * out[j] + out[i] * m->mean[j + 1] + centred;
        }
}

/* u += weight A_w'r */
static void pull_products(struct lm_distribution *m, double weight, const double *r,
                          double *restrict u) {
    const int p = m->p;
    if (m->fourth) {
        for (int k = 0; k < m->rank; ++k)
            u[k] += weight * linalg_dot(m->w, m->root + (size_t)k * m->w, r);
        return;
    }
    /* r'w = o'(L g) + tr(R L G L'), R symmetric */
    double *o = m->work.row, *square = m->work.symmetric, *half = m->work.outer;
    memcpy(o, r, (size_t)p * sizeof(double));
    const double *product = r + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j, ++product) {
            o[i] += m->mean[j + 1] * *product;
            o[j] += m->mean[i + 1] * *product;
            const int within = lm_same_factor(&m->factors, i, j);
            if (within) lm_pull_within(m, i, j, *product, o);
            square[(size_t)i * p + j] = square[(size_t)j * p + i] =
                within ? 0 : (i == j ? 1 : 0.5) * *product;
        }
    for (int j = 0; j < p; ++j)
        for (int i = j; i < p; ++i) u[j] += weight * m->chol[(size_t)i * p + j] * o[i];
    linalg_multiply_upper(p, m->chol, square, half); /* L'R */
    double *next = u + p;
    for (int i = 0; i < p; ++i) {
        const double *row = half + (size_t)i * p;
        double *sums = m->work.pull + 1; /* row i of L'R L up to the diagonal */
        memset(sums, 0, (size_t)(i + 1) * sizeof(double));
        for (int l = 0; l < p; ++l)
            for (int j = 0; j <= i && j <= l; ++j) sums[j] += row[l] * m->chol[(size_t)l * p + j];
        *next++ += weight * sqrt(2) * sums[i];
        for (int j = 0; j < i; ++j) *next++ += weight * 2 * sums[j];
    }
}

/* Innovations: first w's; then e's, of the sums of x e: one for the constant, p; then one for
 * the sum of e^2. */
void lm_from_innovations(void *self, const double *theta_model, double n, const double *u,
                         double *total) {
    struct lm_distribution *m = self;
    lm_set(m, theta_model);
    const int d = m->d, w = m->w;
    const double root_n = sqrt(n), *error = u + lm_first_error(m);
    form_products(m, u, m->work.products);
    for (int i = 0, number = 0; i < d; ++i)
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number)
            if (m->at[number] >= 0)
                total[m->at[number]] =
                    n * m->second[(size_t)i * d + j] + root_n * m->work.products[number];
    lm_contract(d, m->work.products, m->theta, m->work.pull);

    /* with the sums of x e, N(0, sigma^2 E): that of e, then the rest given it */
    double square = linalg_dot(d, m->work.pull, m->theta);
    for (int i = 0; i < d; ++i) {
        double noise = error[0] * m->mean[i];
        if (i > 0) noise += linalg_dot(i, m->chol + (size_t)(i - 1) * m->p, error + 1);
        square += 2 * m->theta[i] * m->sigma * noise;
        m->work.pull[i] += m->sigma * noise;
    }
    square += sqrt(2) * m->sigma * m->sigma * error[d];
    double square_mean = m->sigma * m->sigma;
    for (int i = 0; i < d; ++i) {
        const double mean = linalg_dot(d, m->second + (size_t)i * d, m->theta);
        total[m->at[w + i]] = n * mean + root_n * m->work.pull[i];
        square_mean += m->theta[i] * mean;
    }
    total[m->at[w + d]] = n * square_mean + root_n * square;
}

void lm_weigh(struct lm_distribution *m, const double *r) {
    const int d = m->d, w = m->w;
    const double *theta = m->theta, square = r[m->at[w + d]];
    double *xy = m->work.pull;
    for (int i = 0; i < d; ++i) xy[i] = r[m->at[w + i]] + theta[i] * square;
    for (int i = 0, number = 0; i < d; ++i)
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number) {
            const int at = m->at[number];
            m->work.weights[number] =
                (at >= 0 ? r[at] : 0) + xy[i] * theta[j] + (i == j ? 0 : xy[j] * theta[i]);
        }
}

/* The transpose of what from_innovations() does, backwards. */
void lm_pull(void *self, double weight, const double *r, double *u) {
    struct lm_distribution *m = self;
    const int d = m->d;
    const double square = r[m->at[m->w + d]];
    double *error = u + lm_first_error(m);
    lm_weigh(m, r);
    error[d] += weight * sqrt(2) * m->sigma * m->sigma * square;
    for (int i = 0; i < d; ++i) {
        const double noise = weight * m->sigma * (m->work.pull[i] + m->theta[i] * square);
        error[0] += noise * m->mean[i];
        for (int j = 0; j < i; ++j) error[1 + j] += noise * m->chol[(size_t)(i - 1) * m->p + j];
    }
    pull_products(m, weight, m->work.weights, u);
}
