/* Moments "lm": the distribution of one record's cross-products (xx', xy, y^2),
 * symmetric entries once, in a linear regression y = theta'x + e, x_0 = 1
 * (Bernstein & Sheldon 2019, Equations 2 and 3), for the pair of model "lm"
 * and statistic "crossprod", bounds that do not bind.
 *
 * With w = vech(xx') without its constant, Xi = Cov(w) and E = E xx':
 *   xy = A w + const + x e and y^2 = a'w + const + 2 (theta'x) e + e^2,
 *   Cov(w, xy) = Xi A', Cov(w, y^2) = Xi a,
 *   Cov(xy) = A Xi A' + sigma^2 E, Cov(xy, y^2) = A Xi a + 2 sigma^2 E theta,
 *   Var(y^2) = a'Xi a + 4 sigma^2 theta'E theta + 2 sigma^4,
 * where row i of A has theta_j at the product x_i x_j, and a = A'theta. Xi is
 * given, constant, or that of normal covariates (m, T):
 *   Cov(x_i x_j, x_k x_l) = T_ik E_jl + T_il E_jk + m_i (m_k T_jl + m_l T_jk),
 * a sum in which nothing cancels where the mean is large. A factor's dummies are
 * independent of all other covariates: T gets a block of theirs, and Cov(x_i x_j, x_k x_l)
 * the further terms
 *   m_i k_jkl + m_j k_ikl + m_k k_ijl + m_l k_ijk + k_ijkl,
 * where the cumulants k are not 0 only among dummies of one factor.
 *
 * All of it in released units: column v is scale * x + shift, the parameters are carried there
 * from the model's coordinates (see model/lm.c). Internally, the components are in the order w row
 * by row, xy, y^2; component a is number at[a] of the statistic, which leaves out products of
 * dummies of one factor: they are linear in the dummies.
 *
 * The total determines the complete-data statistic, a linear map. To make it of
 * innovations needs no factor of the covariance: w from a root of Xi, for normal x and dummies from
 * the normal sum of vech(xx') itself; then (xy, y^2) given w. So a covariance of low
 * rank needs no care.
 *
 * Cost: d^4 / 2 multiplications for the normal Xi and as many for Xi A', that is
 * of the order of its entries; with normal x Xi is never stored. A total costs
 * d^3, or w * rank.
 */
#include "clt/moments_lm.h"
#include "contract/moments.h"

/* As the model has them: regressor v is its column v, 0 the response. */
static int read_covariates(const struct fields *fields, struct lm_distribution *m) {
    m->continuous = fields_length(fields, "continuous");
    m->factors.count = fields_length(fields, "factor_levels");
    const double *continuous = fields_vector(fields, "continuous", m->continuous);
    const double *first = fields_vector(fields, "factor_first", m->factors.count);
    const double *levels = fields_vector(fields, "factor_levels", m->factors.count);
    if (!continuous || !first || !levels) return PLUGIN_BAD_FIELDS;
    m->normal_at = plugin_memory((size_t)m->continuous, sizeof *m->normal_at);
    m->factors.factor = plugin_memory((size_t)m->factors.count, sizeof *m->factors.factor);
    m->factors.of = plugin_memory((size_t)m->d, sizeof *m->factors.of);
    DOUBLES((size_t)m->d, &m->factors.share, &m->factors.later);
    for (int i = 0; i < m->continuous; ++i) m->normal_at[i] = (int)continuous[i];
    for (int v = 0; v < m->d; ++v) m->factors.of[v] = -1;
    for (int f = 0; f < m->factors.count; ++f) {
        struct categories *factor = m->factors.factor + f;
        factor->first = (int)first[f];
        factor->dummies = (int)levels[f] - 1;
        for (int l = 0; l < factor->dummies; ++l) m->factors.of[factor->first + l] = f;
    }
    return PLUGIN_OK;
}

static size_t most_levels(const struct lm_distribution *m) {
    int most = 0;
    for (int f = 0; f < m->factors.count; ++f)
        if (m->factors.factor[f].dummies >= most) most = m->factors.factor[f].dummies + 1;
    return (size_t)most;
}

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct lm_distribution *m = plugin_memory(1, sizeof *m);
    m->d = fields_length(fields, "scale");
    m->p = m->d - 1;
    m->w = m->d * (m->d + 1) / 2 - 1;
    const int components = m->w + m->d + 1;
    m->units.scale = fields_vector(fields, "scale", m->d);
    m->units.shift = fields_vector(fields, "shift", m->d);
    m->units.centre = fields_vector(fields, "centre", m->d);
    m->units.lower = fields_vector(fields, "lower", m->d);
    m->units.upper = fields_vector(fields, "upper", m->d);
    const double *at = fields_vector(fields, "at", components);
    m->coefficients = coordinates_find(coordinates, "coefficients");
    m->sigmas = coordinates_find(coordinates, "sigma");
    m->means = coordinates_find(coordinates, "mean");
    m->covs = coordinates_find(coordinates, "cov");
    m->probs = coordinates_find(coordinates, "prob"); /* the first of the factors */
    if (!m->units.scale || !m->units.shift || !m->units.centre || !m->units.lower ||
        !m->units.upper || !at || !m->coefficients || !m->sigmas || !m->means || !m->covs)
        return PLUGIN_BAD_FIELDS;
    const int status = read_covariates(fields, m);
    if (status != PLUGIN_OK) return status;
    m->fourth = fields_vector(fields, "fourth", m->w * m->w);
    if (m->fourth && m->w > 0) {
        m->rank = fields_length(fields, "root") / m->w;
        m->root = fields_vector(fields, "root", m->rank * m->w);
        if (!m->root) return PLUGIN_BAD_FIELDS;
    }
    m->at = plugin_memory((size_t)components, sizeof *m->at);
    for (int a = 0; a < components; ++a) {
        m->at[a] = (int)at[a];
        m->size += m->at[a] >= 0;
    }
    const size_t d = (size_t)m->d, square = d * d, w = (size_t)m->w;
    m->units.offset = doubles(d);
    for (int v = 0; v < m->d; ++v)
        m->units.offset[v] = m->units.scale[v] * m->units.centre[v] + m->units.shift[v];
    DOUBLES(d, &m->theta, &m->mean, &m->work.pull, &m->of.mean, &m->of.share, &m->of.theta,
            &m->work.unit);
    DOUBLES(square, &m->cov, &m->second, &m->chol, &m->work.outer, &m->work.symmetric, &m->of.chol,
            &m->of.off, &m->work.scatter);
    m->work.normal_chol = doubles((size_t)m->continuous * (size_t)m->continuous);
    m->work.level_share = doubles(most_levels(m));
    DOUBLES(w, &m->work.row, &m->work.products, &m->work.weights);
    m->work.cross = doubles(w * d);
    m->work.rest = doubles(square + 4 * d);
    moments->self = m;
    moments->released = m->size;
    moments->aside = 0;
    moments->complete = components;
    moments->innovations = (m->fourth ? m->rank : m->w) + m->d + 1;
    return PLUGIN_OK;
}

/* ---- parameters in released units --------------------------------------- */

const struct record_moments_class moments_lm = {
    .name = "lm",
    .create = create,
    .eval = lm_eval,
    .from_innovations = lm_from_innovations,
    .pull = lm_pull,
    .gradient = lm_gradient,
    .complete = lm_complete,
    .project = lm_project,
    .outside = lm_outside,
};
