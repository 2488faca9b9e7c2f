/* Parameters of a regression in released units, for the moments "lm"; see
 * clt/moments_lm_class.c. */
#include "clt/moments_lm.h"

/* Shares of a factor's levels, and the factor of the dummies' covariance, diag(q) - q q',
 * in closed form (Tanabe & Sagae 1992). */
static void set_factor(struct lm_distribution *m, int f, const double *theta) {
    const struct categories *factor = m->factors.factor + f;
    const int first = factor->first, end = first + factor->dummies;
    block_constrain(m->probs + f, theta, m->work.level_share);
    memcpy(m->factors.share + first, m->work.level_share + 1,
           (size_t)factor->dummies * sizeof(double));
    double later =
        m->work.level_share[0]; /* of the levels after v and of the one without a dummy */
    for (int v = end - 1; v >= first; --v) {
        const double share = m->factors.share[v], all = later + share;
        m->factors.later[v] = later;
        *lm_chol_at(m, v, v) = all > 0 ? m->units.scale[v] * sqrt(share * (later / all)) : 0;
        const double pull = later > 0 ? sqrt(share / all / later) : 0;
        for (int u = v + 1; u < end; ++u)
            *lm_chol_at(m, u, v) = -m->units.scale[u] * m->factors.share[u] * pull;
        later = all;
        m->mean[v] = m->units.scale[v] * share + m->units.shift[v];
    }
}

void lm_set(struct lm_distribution *m, const double *theta) {
    const int d = m->d;
    const double *centred = theta + m->coefficients->offset, *mean = theta + m->means->offset;
    double *chol = m->work.normal_chol;
    block_constrain(m->sigmas, theta, &m->sigma);
    m->sigma *= m->units.scale[0];
    m->theta[0] = m->units.scale[0] * centred[0] + m->units.offset[0];
    for (int i = 1; i < d; ++i) {
        m->theta[i] = m->units.scale[0] / m->units.scale[i] * centred[i];
        m->theta[0] -= m->theta[i] * m->units.offset[i];
    }
    unpack_cholesky(m->continuous, theta + m->covs->offset, m->continuous, chol);
    m->mean[0] = 1;
    for (int i = 0; i < m->continuous; ++i) {
        const int v = m->normal_at[i];
        const double scale = m->units.scale[v];
        m->mean[v] = scale * mean[i] + m->units.shift[v];
        for (int j = 0; j <= i; ++j)
            *lm_chol_at(m, v, m->normal_at[j]) = scale * chol[(size_t)i * m->continuous + j];
    }
    for (int f = 0; f < m->factors.count; ++f) set_factor(m, f, theta);
    for (int i = 1; i < d; ++i)
        for (int j = 1; j <= i; ++j)
            m->cov[(size_t)i * d + j] = m->cov[(size_t)j * d + i] =
                linalg_dot(j, lm_chol_at(m, i, 1), lm_chol_at(m, j, 1));
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            m->second[(size_t)i * d + j] = m->cov[(size_t)i * d + j] + m->mean[i] * m->mean[j];
}
