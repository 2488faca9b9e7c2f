/* The gradient of a weighted total r'total of cross-products in the parameters, innovations
 * held fixed: lm_form() backwards, from the components to the mean, the factor and the shares of
 * the covariates, the coefficients and sigma, and from there to the model's coordinates.
 * Cost: d^3, or d^2 where the covariates' moments are known.
 */
#include "base/linalg.h"
#include "clt/moments_lm.h"

/* set_factor() backwards, from the slopes in its shares, means and factor to its sticks. */
static void pull_factor(struct lm_distribution *m, int f, double *gradient) {
    const struct categories *factor = m->factors.factor + f;
    const int first = factor->first, end = first + factor->dummies;
    double *of_share = m->of.share;
    for (int v = first; v < end; ++v) of_share[v] += m->units.scale[v] * m->of.mean[v - 1];
    double of_later = 0; /* of the levels after v - 1 and of the one without a dummy */
    for (int v = first; v < end; ++v) {
        const double share = m->factors.share[v], later = m->factors.later[v], all = later + share;
        const double pull = later > 0 ? sqrt(share / all / later) : 0;
        double of_pull = 0;
        for (int u = v + 1; u < end; ++u) {
            const double slope = m->of.chol[(size_t)(u - 1) * m->p + (v - 1)];
            of_pull -= slope * m->units.scale[u] * m->factors.share[u] * pull;
            of_share[u] -= slope * m->units.scale[u] * pull;
        }
        const double own = m->of.chol[(size_t)(v - 1) * m->p + (v - 1)] * *lm_chol_at(m, v, v);
        if (all > 0) of_later -= 0.5 * (own + of_pull) / all;
        of_share[v] += of_later;
        if (share > 0) of_share[v] += 0.5 * (own + of_pull) / share;
        if (later > 0) of_later += 0.5 * (own - of_pull) / later;
    }
    /* levels from the last to the first, which has no dummy and the share `later` */
    double *stick = gradient + m->probs[f].offset;
    double later = 0, of_all = 0;
    for (int v = end - 1; v >= first - 1; --v) {
        const double share = v < first ? m->factors.later[end - 1] : m->factors.share[v];
        const double of_log = share * (v < first ? of_later : of_share[v]), all = later + share;
        if (v < end - 1 && all > 0) stick[v - first + 1] += (of_log * later - of_all * share) / all;
        later = all;
        of_all += of_log;
    }
}

/* Weights of the products as a symmetric matrix, those within a factor apart. */
static void split_weights(struct lm_distribution *m) {
    const int p = m->p;
    const double *product = m->work.weights + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double value = (i == j ? 1 : 0.5) * *product++;
            const int within = lm_same_factor(&m->factors, i, j);
            const size_t at = (size_t)i * p + j, back = (size_t)j * p + i;
            m->work.symmetric[at] = m->work.symmetric[back] = within ? 0 : value;
            m->of.off[at] = m->of.off[back] = within ? value : 0;
        }
}

/* Slopes in mean, factor and shares of the covariates, in released units, from the weights
 * of the products and from v, the weights of the sums of x e. */
static void pull_covariates(struct lm_distribution *m, double n, const double *u, const double *v) {
    const int p = m->p;
    const double root_n = sqrt(n), *sum = m->work.products, *mean = m->mean + 1;
    const double *error = u + lm_first_error(m);
    double *o = m->work.row, *half = m->work.outer;
    memset(m->of.share, 0, (size_t)m->d * sizeof(double));
    split_weights(m);
    memcpy(o, m->work.weights, (size_t)p * sizeof(double));
    for (int i = 0; i < p; ++i) {
        const double *row = m->work.symmetric + (size_t)i * p, *off = m->of.off + (size_t)i * p;
        o[i] += 2 * (linalg_dot(p, row, mean) + linalg_dot(p, off, mean));
        m->of.mean[i] = n * o[i] +
                        2 * root_n * (linalg_dot(p, row, sum) + linalg_dot(p, off, sum)) +
                        root_n * m->sigma * error[0] * v[i + 1];
    }
    for (int f = 0; f < m->factors.count; ++f) {
        const int first = m->factors.factor[f].first - 1,
                  end = first + m->factors.factor[f].dummies;
        const double *scale = m->units.scale + 1;
        for (int i = first; i < end; ++i)
            for (int j = i; j < end; ++j) {
                const double weight = (i == j ? 1 : 2) * m->of.off[(size_t)i * p + j];
                lm_pull_within(m, i, j, weight, o);
                m->of.share[i + 1] -= root_n * weight * scale[i] * sum[j];
                m->of.share[j + 1] -= root_n * weight * scale[j] * sum[i];
            }
    }
    /* 2 W L (n I + sqrt(n) G) and, of products within a factor, 2 n W L */
    linalg_multiply_symmetric_lower(p, m->work.symmetric, m->chol, half);
    double *square = m->work.symmetric;
    const double *next = u + p;
    for (int i = 0; i < p; ++i) {
        square[(size_t)i * p + i] = n + sqrt(2 * n) * *next++;
        for (int j = 0; j < i; ++j)
            square[(size_t)i * p + j] = square[(size_t)j * p + i] = root_n * *next++;
    }
    for (int i = 0; i < p; ++i)
        for (int j = 0; j <= i; ++j)
            m->of.chol[(size_t)i * p + j] =
                2 * linalg_dot(p, half + (size_t)i * p, square + (size_t)j * p) +
                root_n * (o[i] * u[j] + m->sigma * error[1 + j] * v[i + 1]);
    if (m->factors.count == 0) return;
    linalg_multiply_symmetric_lower(p, m->of.off, m->chol, half);
    for (int i = 0; i < p; ++i)
        for (int j = 0; j <= i; ++j)
            m->of.chol[(size_t)i * p + j] += 2 * n * half[(size_t)i * p + j];
}

void lm_gradient(void *self, double n, const double *u, const double *r, double *out) {
    struct lm_distribution *m = self;
    const int d = m->d;
    const double root_n = sqrt(n), *error = u + lm_first_error(m), square = r[m->at[m->w + d]];
    double *v = m->work.unit; /* slopes in the sums of x e, and those of xy but for S theta */
    lm_weigh(m, r);
    memset(m->of.theta, 0, (size_t)d * sizeof(double));
    for (int i = 0; i < d; ++i) v[i] = m->work.pull[i] + m->theta[i] * square;

    /* xy = S theta + noise, y^2 = theta'S theta + 2 theta'noise + ..., S the total of xx' */
    double of_sigma = square * (2 * n + 2 * sqrt(2 * n) * error[d]) * m->sigma;
    for (int i = 0, number = 0; i < d; ++i) {
        double noise = error[0] * m->mean[i];
        if (i > 0) noise += linalg_dot(i, m->chol + (size_t)(i - 1) * m->p, error + 1);
        of_sigma += root_n * v[i] * noise;
        m->of.theta[i] += 2 * square * root_n * m->sigma * noise;
        for (int j = i; j < d; ++j) {
            double sum = n * m->second[(size_t)i * d + j];
            if (j > 0) sum += root_n * m->work.products[number++];
            m->of.theta[i] += sum * v[j];
            if (j > i) m->of.theta[j] += sum * v[i];
        }
    }

    double *coefficients = out + m->coefficients->offset;
    coefficients[0] += m->units.scale[0] * m->of.theta[0];
    for (int i = 1; i < d; ++i)
        coefficients[i] += m->units.scale[0] / m->units.scale[i] *
                           (m->of.theta[i] - m->units.offset[i] * m->of.theta[0]);
    out[m->sigmas->offset] += m->sigma * of_sigma;
    if (m->fourth) return; /* their moments are known */

    pull_covariates(m, n, u, v);
    double *packed = out + m->covs->offset;
    for (int i = 0; i < m->continuous; ++i) {
        const int at = m->normal_at[i];
        out[m->means->offset + i] += m->units.scale[at] * m->of.mean[at - 1];
        for (int j = 0; j <= i; ++j) {
            const int to = m->normal_at[j];
            *packed++ += m->of.chol[(size_t)(at - 1) * m->p + (to - 1)] *
                         (i == j ? *lm_chol_at(m, at, at) : m->units.scale[at]);
        }
    }
    for (int f = 0; f < m->factors.count; ++f) pull_factor(m, f, out);
}
