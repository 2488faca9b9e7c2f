/* Moments "lm": the law of one record's cross-products (xx', xy, y^2),
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
 * All of it in released units: column v is scale * x + shift, the parameters
 * are carried there from the model's coordinates (see model_lm.c). Inside, the
 * components stand in the order w row by row, xy, y^2; component a is number
 * at[a] of the statistic, which leaves out products of dummies of one factor: they
 * are linear in the dummies.
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
#include "linalg.h"
#include "plugin.h"

#include <Rmath.h>

/* its dummies are regressors first, ..., first + dummies - 1 */
struct categories {
    int first, dummies;
};

struct lm_law {
    int d, p;                   /* regressors, the constant among them; d - 1 covariates */
    int w;                      /* distinct products of two regressors but the constant */
    int size;                   /* w + d + 1 less what the statistic leaves out */
    int *at;                    /* -1 if left out */
    int continuous, *normal_at; /* regressors with a joint normal law */
    int factors;
    struct categories *factor;
    int *factor_of;                       /* of a regressor; -1 if it is no dummy */
    const double *scale, *shift, *centre; /* of y, x_1..x_p */
    const double *lower, *upper;          /* bounds, in released units */
    double *offset;                       /* released value of a column at its centre */
    const double *fourth, *root;          /* Xi, w x w, and its root by columns, or NULL */
    int rank;

    /* of the model's coordinates */
    const struct theta_block *coefficients, *sigmas, *means, *covs, *probs;

    /* in released units */
    double *theta, sigma;
    double *mean, *cov, *second; /* E x, Cov(x), E xx' with the constant, d x d */
    double *chol;                /* of Cov(x_1..x_p) */
    double *share;               /* of the records that have a dummy's level */

    /* workspace */
    double *row, *cross, *outer, *pull, *symmetric, *products;
    double *scatter, *unit, *work;
    double *normal_chol, *level_share;
};

/* share of its scaled matrix that a projected scatter's least eigenvalue has */
static const double least_eigenvalue = 1e-6;

/* combinations of levels that y's law is mixed over */
enum { MOST_CELLS = 1000 };

static double *numbers(size_t count) { return plugin_memory(count, sizeof(double)); }

/* As the model has them: regressor v is its column v, 0 the response. */
static int read_covariates(const struct fields *fields, struct lm_law *m) {
    m->continuous = fields_length(fields, "continuous");
    m->factors = fields_length(fields, "factor_levels");
    const double *continuous = fields_vector(fields, "continuous", m->continuous);
    const double *first = fields_vector(fields, "factor_first", m->factors);
    const double *levels = fields_vector(fields, "factor_levels", m->factors);
    if (!continuous || !first || !levels) return PLUGIN_BAD_FIELDS;
    m->normal_at = plugin_memory((size_t)m->continuous, sizeof *m->normal_at);
    m->factor = plugin_memory((size_t)m->factors, sizeof *m->factor);
    m->factor_of = plugin_memory((size_t)m->d, sizeof *m->factor_of);
    m->share = numbers((size_t)m->d);
    for (int i = 0; i < m->continuous; ++i) m->normal_at[i] = (int)continuous[i];
    for (int v = 0; v < m->d; ++v) m->factor_of[v] = -1;
    for (int f = 0; f < m->factors; ++f) {
        struct categories *factor = m->factor + f;
        factor->first = (int)first[f];
        factor->dummies = (int)levels[f] - 1;
        for (int l = 0; l < factor->dummies; ++l) m->factor_of[factor->first + l] = f;
    }
    return PLUGIN_OK;
}

static size_t most_levels(const struct lm_law *m) {
    int most = 0;
    for (int f = 0; f < m->factors; ++f)
        if (m->factor[f].dummies >= most) most = m->factor[f].dummies + 1;
    return (size_t)most;
}

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct lm_law *m = plugin_memory(1, sizeof *m);
    m->d = fields_length(fields, "scale");
    m->p = m->d - 1;
    m->w = m->d * (m->d + 1) / 2 - 1;
    const int components = m->w + m->d + 1;
    m->scale = fields_vector(fields, "scale", m->d);
    m->shift = fields_vector(fields, "shift", m->d);
    m->centre = fields_vector(fields, "centre", m->d);
    m->lower = fields_vector(fields, "lower", m->d);
    m->upper = fields_vector(fields, "upper", m->d);
    const double *at = fields_vector(fields, "at", components);
    m->coefficients = coordinates_find(coordinates, "coefficients");
    m->sigmas = coordinates_find(coordinates, "sigma");
    m->means = coordinates_find(coordinates, "mean");
    m->covs = coordinates_find(coordinates, "cov");
    m->probs = coordinates_find(coordinates, "prob"); /* the first of the factors */
    if (!m->scale || !m->shift || !m->centre || !m->lower || !m->upper || !at || !m->coefficients ||
        !m->sigmas || !m->means || !m->covs)
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
    m->offset = numbers(d);
    for (int v = 0; v < m->d; ++v) m->offset[v] = m->scale[v] * m->centre[v] + m->shift[v];
    m->theta = numbers(d);
    m->mean = numbers(d);
    m->cov = numbers(square);
    m->second = numbers(square);
    m->chol = numbers(square);
    m->normal_chol = numbers((size_t)m->continuous * (size_t)m->continuous);
    m->level_share = numbers(most_levels(m));
    m->row = numbers(w);
    m->cross = numbers(w * d);
    m->outer = numbers(square);
    m->pull = numbers(d);
    m->symmetric = numbers(square);
    m->products = numbers(w);
    m->scatter = numbers(square);
    m->unit = numbers(d);
    m->work = numbers(square + 4 * d);
    moments->self = m;
    moments->released = m->size;
    moments->aside = 0;
    moments->complete = components;
    moments->innovations = (m->fourth ? m->rank : m->w) + m->d + 1;
    return PLUGIN_OK;
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* ---- parameters in released units --------------------------------------- */

static double *chol_at(const struct lm_law *m, int i, int j) {
    return m->chol + (size_t)(i - 1) * m->p + (j - 1);
}

/* Shares of a factor's levels, and the factor of the dummies' covariance, diag(q) - q q',
 * in closed form (Tanabe & Sagae 1992). */
static void set_factor(struct lm_law *m, int f, const double *theta) {
    const struct categories *factor = m->factor + f;
    const int first = factor->first, end = first + factor->dummies;
    block_constrain(m->probs + f, theta, m->level_share);
    memcpy(m->share + first, m->level_share + 1, (size_t)factor->dummies * sizeof(double));
    double later = m->level_share[0]; /* of the levels after v and of the one without a dummy */
    for (int v = end - 1; v >= first; --v) {
        const double share = m->share[v], all = later + share;
        *chol_at(m, v, v) = all > 0 ? m->scale[v] * sqrt(share * (later / all)) : 0;
        const double pull = later > 0 ? sqrt(share / all / later) : 0;
        for (int u = v + 1; u < end; ++u) *chol_at(m, u, v) = -m->scale[u] * m->share[u] * pull;
        later = all;
        m->mean[v] = m->scale[v] * share + m->shift[v];
    }
}

static void set(struct lm_law *m, const double *theta) {
    const int d = m->d;
    const double *centred = theta + m->coefficients->offset, *mean = theta + m->means->offset;
    double *chol = m->normal_chol;
    block_constrain(m->sigmas, theta, &m->sigma);
    m->sigma *= m->scale[0];
    m->theta[0] = m->scale[0] * centred[0] + m->offset[0];
    for (int i = 1; i < d; ++i) {
        m->theta[i] = m->scale[0] / m->scale[i] * centred[i];
        m->theta[0] -= m->theta[i] * m->offset[i];
    }
    unpack_cholesky(m->continuous, theta + m->covs->offset, m->continuous, chol);
    m->mean[0] = 1;
    for (int i = 0; i < m->continuous; ++i) {
        const int v = m->normal_at[i];
        const double scale = m->scale[v];
        m->mean[v] = scale * mean[i] + m->shift[v];
        for (int j = 0; j <= i; ++j)
            *chol_at(m, v, m->normal_at[j]) = scale * chol[(size_t)i * m->continuous + j];
    }
    for (int f = 0; f < m->factors; ++f) set_factor(m, f, theta);
    for (int i = 1; i < d; ++i)
        for (int j = 1; j <= i; ++j)
            m->cov[(size_t)i * d + j] = m->cov[(size_t)j * d + i] =
                dot(j, chol_at(m, i, 1), chol_at(m, j, 1));
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            m->second[(size_t)i * d + j] = m->cov[(size_t)i * d + j] + m->mean[i] * m->mean[j];
}

/* ---- mean and covariance -------------------------------------------------- */

/* out_l = a * x_l + b * y_l + c * z_l + e * u_l */
VECTOR_CLONES static void combine(int n, double a, const double *restrict x, double b,
                                  const double *restrict y, double c, const double *restrict z,
                                  double e, const double *restrict u, double *restrict out) {
    for (int l = 0; l < n; ++l) out[l] = a * x[l] + b * y[l] + c * z[l] + e * u[l];
}

/* number of x_i x_j in w, i <= j */
static int number_of(const struct lm_law *m, int i, int j) {
    return i == 0 ? j - 1 : m->p + (i - 1) * m->p - (i - 1) * (i - 2) / 2 + (j - i);
}

/* E prod (x - E x) of dummies of one factor, as 0 and 1 */
static double central(const struct lm_law *m, int order, const int *v) {
    double sum = 0, rest = 1, all = 1;
    for (int k = 0; k < order; ++k) {
        const double share = m->share[v[k]];
        double product = share;
        int seen = 0;
        for (int l = 0; l < order; ++l) {
            product *= (v[l] == v[k]) - m->share[v[l]];
            seen = seen || (l < k && v[l] == v[k]);
        }
        all *= -share;
        if (seen) continue;
        sum += product;
        rest -= share;
    }
    return sum + rest * all;
}

static double third_cumulant(const struct lm_law *m, int i, int j, int k) {
    const int v[] = {i, j, k};
    return m->scale[i] * m->scale[j] * m->scale[k] * central(m, 3, v);
}

static double fourth_cumulant(const struct lm_law *m, int i, int j, int k, int l) {
    const int v[] = {i, j, k, l}, d = m->d;
    const double *cov_i = m->cov + (size_t)i * d, *cov_j = m->cov + (size_t)j * d;
    return m->scale[i] * m->scale[j] * m->scale[k] * m->scale[l] * central(m, 4, v) -
           cov_i[j] * m->cov[(size_t)k * d + l] - cov_i[k] * cov_j[l] - cov_i[l] * cov_j[k];
}

/* What the row of x_i x_j has beyond a normal law's. */
static void add_cumulants(const struct lm_law *m, int i, int j, double *row) {
    const int side[] = {i, j};
    for (int s = 0; s < 2; ++s) {
        const int one = side[s], f = m->factor_of[one];
        if (f < 0) continue;
        const double mean = m->mean[side[1 - s]];
        const int first = m->factor[f].first, end = first + m->factor[f].dummies;
        for (int k = first; k < end; ++k)
            for (int l = k; l < end; ++l)
                row[number_of(m, k, l)] += mean * third_cumulant(m, one, k, l);
    }
    const int f = m->factor_of[i];
    if (f < 0 || f != m->factor_of[j]) return;
    const int first = m->factor[f].first, end = first + m->factor[f].dummies;
    for (int k = first; k < end; ++k) {
        const double third = third_cumulant(m, i, j, k);
        for (int l = 0; l < m->d; ++l)
            row[k < l ? number_of(m, k, l) : number_of(m, l, k)] +=
                (k == l ? 2 : 1) * m->mean[l] * third;
        for (int l = k; l < end; ++l) row[number_of(m, k, l)] += fourth_cumulant(m, i, j, k, l);
    }
}

/* row of Xi that belongs to x_i x_j */
static const double *fourth_row(struct lm_law *m, int i, int j, int number) {
    if (m->fourth) return m->fourth + (size_t)number * m->w;
    const int d = m->d;
    const double *cov_i = m->cov + (size_t)i * d, *cov_j = m->cov + (size_t)j * d;
    const double *second_j = m->second + (size_t)j * d;
    double *out = m->row;
    for (int k = 0; k < d; ++k) {
        const int from = k == 0 ? 1 : k;
        combine(d - from, cov_i[k], second_j + from, second_j[k], cov_i + from,
                m->mean[i] * m->mean[k], cov_j + from, m->mean[i] * cov_j[k], m->mean + from, out);
        out += d - from;
    }
    add_cumulants(m, i, j, m->row);
    return m->row;
}

/* out_k = sum_l row(k, l) theta_l: x_k y as a function of w */
static void contract(int d, const double *restrict row, const double *restrict theta,
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

static inline void put(const struct lm_law *m, double *cov, int a, int b, double value) {
    const int i = m->at[a], j = m->at[b];
    if (i < 0 || j < 0) return;
    cov[(size_t)i * m->size + j] = cov[(size_t)j * m->size + i] = value;
}

static int eval(void *self, const double *theta_model, double *mean, double *cov) {
    struct lm_law *m = self;
    set(m, theta_model);
    const int d = m->d, w = m->w, square = w + d;
    const double *theta = m->theta;
    const double variance = m->sigma * m->sigma;

    for (int i = 0; i < d; ++i)
        mean[m->at[w + i]] = m->pull[i] = dot(d, m->second + (size_t)i * d, theta);
    const double square_mean = dot(d, theta, m->pull); /* E (theta'x)^2 */
    mean[m->at[square]] = square_mean + variance;

    /* w with itself, with xy and with y^2; A Xi A', whose row i is the sum of
     * theta_j times the row of x_i x_j in Xi A' */
    memset(m->outer, 0, (size_t)d * d * sizeof(double));
    for (int i = 0, number = 0; i < d; ++i) {
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number) {
            const double *row = fourth_row(m, i, j, number);
            double *cross = m->cross;
            contract(d, row, theta, cross);
            if (m->at[number] >= 0) mean[m->at[number]] = m->second[(size_t)i * d + j];
            for (int b = 0; b <= number; ++b) put(m, cov, number, b, row[b]);
            for (int k = 0; k < d; ++k) put(m, cov, w + k, number, cross[k]);
            put(m, cov, square, number, dot(d, cross, theta));
            for (int k = 0; k < d; ++k) m->outer[(size_t)i * d + k] += theta[j] * cross[k];
            if (i == j) continue;
            for (int k = 0; k < d; ++k) m->outer[(size_t)j * d + k] += theta[i] * cross[k];
        }
    }
    double total = 2 * variance * variance + 4 * variance * square_mean;
    for (int i = 0; i < d; ++i) {
        const double *outer = m->outer + (size_t)i * d;
        for (int k = 0; k <= i; ++k)
            put(m, cov, w + i, w + k, outer[k] + variance * m->second[(size_t)i * d + k]);
        const double with_square = dot(d, outer, theta);
        put(m, cov, square, w + i, with_square + 2 * variance * m->pull[i]);
        total += theta[i] * with_square;
    }
    put(m, cov, square, square, total);
    return isfinite(total) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

/* ---- the total as a function of innovations ----------------------------------------------------
 */

static inline void add_row(int n, double weight, const double *restrict a, double *restrict out) {
    for (int j = 0; j < n; ++j) out[j] += weight * a[j];
}

/* The sum of (x_i - E x_i)(x_j - E x_j) for dummies of one factor, given the sums of
 * x - E x; covariates count from 0. */
static double within_factor(const struct lm_law *m, int i, int j, const double *sum) {
    const double *scale = m->scale + 1, *share = m->share + 1;
    const double product = -scale[i] * share[i] * sum[j] - scale[j] * share[j] * sum[i];
    return i == j ? product + scale[i] * sum[i] : product;
}

/* its transpose: out += r times that function's coefficients */
static void pull_within(const struct lm_law *m, int i, int j, double r, double *out) {
    const double *scale = m->scale + 1, *share = m->share + 1;
    out[j] -= r * scale[i] * share[i];
    out[i] -= r * scale[j] * share[j];
    if (i == j) out[i] += r * scale[i];
}

static int same_factor(const struct lm_law *m, int i, int j) {
    const int f = m->factor_of[i + 1];
    return f >= 0 && f == m->factor_of[j + 1];
}

/* out = L a and out = L'a, all p x p */
static void multiply_lower(int p, const double *l, const double *restrict a, double *restrict out) {
    memset(out, 0, (size_t)p * (size_t)p * sizeof(double));
    for (int i = 0; i < p; ++i)
        for (int k = 0; k <= i; ++k)
            add_row(p, l[(size_t)i * p + k], a + (size_t)k * p, out + (size_t)i * p);
}

static void multiply_upper(int p, const double *l, const double *restrict a, double *restrict out) {
    memset(out, 0, (size_t)p * (size_t)p * sizeof(double));
    for (int k = 0; k < p; ++k)
        for (int i = 0; i <= k; ++i)
            add_row(p, l[(size_t)k * p + i], a + (size_t)k * p, out + (size_t)i * p);
}

/* w = A_w u, A_w A_w' = Xi. For normal x: the sums of v and of vv' - I over many
 * records, v standard normal, are g and a symmetric G with variances 1 and 2 on its
 * diagonal; xx' - E xx' is m (L g)' + (L g) m' + L G L'. So for dummies, v = L^-1 (x - m),
 * but for products within a factor: x_i x_j is x_i for i = j, else 0. */
static void form_products(struct lm_law *m, const double *u, double *restrict out) {
    const int p = m->p, w = m->w;
    if (m->fourth) {
        memset(out, 0, (size_t)w * sizeof(double));
        for (int r = 0; r < m->rank; ++r) {
            const double *column = m->root + (size_t)r * w;
            for (int b = 0; b < w; ++b) out[b] += u[r] * column[b];
        }
        return;
    }
    double *half = m->outer, *square = m->symmetric;
    const double *next = u + p;
    for (int i = 0; i < p; ++i) {
        square[(size_t)i * p + i] = sqrt(2) * *next++;
        for (int j = 0; j < i; ++j) square[(size_t)i * p + j] = square[(size_t)j * p + i] = *next++;
    }
    multiply_lower(p, m->chol, square, half); /* L G */
    for (int i = 0; i < p; ++i) out[i] = dot(i + 1, m->chol + (size_t)i * p, u);
    double *product = out + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double centred = same_factor(m, i, j)
                                       ? within_factor(m, i, j, out)
                                       : dot(j + 1, half + (size_t)i * p, m->chol + (size_t)j * p);
            *product++ = m->mean[i + 1] * out[j] + out[i] * m->mean[j + 1] + centred;
        }
}

/* u += weight A_w'r */
static void pull_products(struct lm_law *m, double weight, const double *r, double *restrict u) {
    const int p = m->p;
    if (m->fourth) {
        for (int k = 0; k < m->rank; ++k) u[k] += weight * dot(m->w, m->root + (size_t)k * m->w, r);
        return;
    }
    /* r'w = o'(L g) + tr(R L G L'), R symmetric */
    double *o = m->row, *square = m->symmetric, *half = m->outer;
    memcpy(o, r, (size_t)p * sizeof(double));
    const double *product = r + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j, ++product) {
            o[i] += m->mean[j + 1] * *product;
            o[j] += m->mean[i + 1] * *product;
            const int within = same_factor(m, i, j);
            if (within) pull_within(m, i, j, *product, o);
            square[(size_t)i * p + j] = square[(size_t)j * p + i] =
                within ? 0 : (i == j ? 1 : 0.5) * *product;
        }
    for (int j = 0; j < p; ++j)
        for (int i = j; i < p; ++i) u[j] += weight * m->chol[(size_t)i * p + j] * o[i];
    multiply_upper(p, m->chol, square, half); /* L'R */
    double *next = u + p;
    for (int i = 0; i < p; ++i) {
        const double *row = half + (size_t)i * p;
        double *sums = m->pull + 1; /* row i of L'R L up to the diagonal */
        memset(sums, 0, (size_t)(i + 1) * sizeof(double));
        for (int l = 0; l < p; ++l)
            for (int j = 0; j <= i && j <= l; ++j) sums[j] += row[l] * m->chol[(size_t)l * p + j];
        *next++ += weight * sqrt(2) * sums[i];
        for (int j = 0; j < i; ++j) *next++ += weight * 2 * sums[j];
    }
}

/* Innovations: those of w; then e's, of the sums of x e: one for the constant, p; that of
 * the sum of e^2. */
static int first_error(const struct lm_law *m) { return m->fourth ? m->rank : m->w; }

static void form(void *self, const double *theta_model, double n, const double *u, double *total) {
    struct lm_law *m = self;
    set(m, theta_model);
    const int d = m->d, w = m->w;
    const double root_n = sqrt(n), *error = u + first_error(m);
    form_products(m, u, m->products);
    for (int i = 0, number = 0; i < d; ++i)
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number)
            if (m->at[number] >= 0)
                total[m->at[number]] =
                    n * m->second[(size_t)i * d + j] + root_n * m->products[number];
    contract(d, m->products, m->theta, m->pull);

    /* with the sums of x e, N(0, sigma^2 E): that of e, then the rest given it */
    double square = dot(d, m->pull, m->theta);
    for (int i = 0; i < d; ++i) {
        double noise = error[0] * m->mean[i];
        if (i > 0) noise += dot(i, m->chol + (size_t)(i - 1) * m->p, error + 1);
        square += 2 * m->theta[i] * m->sigma * noise;
        m->pull[i] += m->sigma * noise;
    }
    square += sqrt(2) * m->sigma * m->sigma * error[d];
    double square_mean = m->sigma * m->sigma;
    for (int i = 0; i < d; ++i) {
        const double mean = dot(d, m->second + (size_t)i * d, m->theta);
        total[m->at[w + i]] = n * mean + root_n * m->pull[i];
        square_mean += m->theta[i] * mean;
    }
    total[m->at[w + d]] = n * square_mean + root_n * square;
}

/* The transpose of what form() does, backwards. */
static void pull(void *self, double weight, const double *r, double *u) {
    struct lm_law *m = self;
    const int d = m->d, w = m->w;
    const double *theta = m->theta, square = r[m->at[w + d]];
    double *error = u + first_error(m), *xy = m->pull, *products = m->products;
    error[d] += weight * sqrt(2) * m->sigma * m->sigma * square;
    for (int i = 0; i < d; ++i) {
        xy[i] = r[m->at[w + i]] + theta[i] * square;
        const double noise = weight * m->sigma * (xy[i] + theta[i] * square);
        error[0] += noise * m->mean[i];
        for (int j = 0; j < i; ++j) error[1 + j] += noise * m->chol[(size_t)(i - 1) * m->p + j];
    }
    for (int i = 0, number = 0; i < d; ++i)
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number) {
            const int at = m->at[number];
            products[number] =
                (at >= 0 ? r[at] : 0) + xy[i] * theta[j] + (i == j ? 0 : xy[j] * theta[i]);
        }
    pull_products(m, weight, products, u);
}

/* ---- the complete-data statistic -------------------------------------------- */

/* number, inside, of the product of columns i <= j; column 0 is y */
static int product_of(const struct lm_law *m, int i, int j) {
    if (i == 0) return j == 0 ? m->w + m->d : m->w + j;
    return number_of(m, i, j);
}

static int sum_of(const struct lm_law *m, int i) { return i == 0 ? m->w : i - 1; }

/* Scatter of the columns about their averages, scaled to a unit diagonal. */
static void scale_scatter(struct lm_law *m, double n, const double *c) {
    const int d = m->d;
    const double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            m->scatter[(size_t)i * d + j] = m->scatter[(size_t)j * d + i] =
                *product++ - c[i] * c[j] / n;
    for (int i = 0; i < d; ++i) {
        const double diagonal = fabs(m->scatter[(size_t)i * d + i]);
        m->unit[i] = diagonal > 0 ? sqrt(diagonal) : 1;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j) m->scatter[(size_t)i * d + j] /= m->unit[i] * m->unit[j];
}

static int complete(void *self, double n, const double *total, double *c) {
    struct lm_law *m = self;
    const int d = m->d;
    for (int i = 0; i < d; ++i)
        c[i] = (total[m->at[sum_of(m, i)]] - n * m->offset[i]) / m->scale[i];
    double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j) {
            const int at = m->at[product_of(m, i, j)];
            if (at < 0) { /* dummies of one factor, which are not centred */
                *product++ = i == j ? c[i] : 0;
                continue;
            }
            const double a = m->offset[i] / m->scale[i], b = m->offset[j] / m->scale[j];
            *product++ = total[at] / (m->scale[i] * m->scale[j]) - a * c[j] - b * c[i] - n * a * b;
        }
    scale_scatter(m, n, c);
    return linalg_cholesky(d, m->scatter) == 0;
}

/* Counts of levels that n records could have; the scatter is seen to later. */
static void project_counts(const struct lm_law *m, double n, double *c) {
    for (int f = 0; f < m->factors; ++f) {
        double *count = c + m->factor[f].first, sum = 0;
        for (int l = 0; l < m->factor[f].dummies; ++l) {
            if (!(count[l] > 0)) count[l] = 0;
            sum += count[l];
        }
        for (int l = 0; sum > n && l < m->factor[f].dummies; ++l) count[l] *= n / sum;
    }
}

static void project(void *self, double n, double *c) {
    struct lm_law *m = self;
    const int d = m->d;
    project_counts(m, n, c);
    scale_scatter(m, n, c);
    linalg_raise_eigenvalues(d, m->scatter, least_eigenvalue, m->work);
    double *product = c + d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            *product++ = m->scatter[(size_t)i * d + j] * m->unit[i] * m->unit[j] + c[i] * c[j] / n;
}

/* ---- records outside the bounds ------------------------------------------------ */

static double tails(const struct lm_law *m, int v, double mean, double sd) {
    return Rf_pnorm5(m->lower[v], mean, sd, 1, 0) + Rf_pnorm5(m->upper[v], mean, sd, 0, 0);
}

/* Share of y outside where the levels of factors f, f + 1, ... are open. */
static double response_tails(const struct lm_law *m, int f, double mean, double sd) {
    if (f == m->factors) return tails(m, 0, mean, sd);
    const struct categories *factor = m->factor + f;
    double share = 0, left = 1;
    for (int v = factor->first; v < factor->first + factor->dummies; ++v) {
        share += m->share[v] * response_tails(m, f + 1, mean + m->theta[v] * m->scale[v], sd);
        left -= m->share[v];
    }
    return share + (left > 0 ? left : 0) * response_tails(m, f + 1, mean, sd);
}

/* Of y, and of covariates that have a normal law. Given the levels of the factors y is
 * normal; with very many of those it nearly is without. */
static double outside(void *self, const double *theta_model) {
    struct lm_law *m = self;
    set(m, theta_model);
    const int d = m->d;
    double cells = 1;
    for (int f = 0; f < m->factors; ++f) cells *= m->factor[f].dummies + 1;
    const int given = cells <= MOST_CELLS;
    double mean = 0, variance = m->sigma * m->sigma, share = 0;
    for (int i = 0; i < d; ++i) {
        const int dummy = m->factor_of[i] >= 0;
        mean += m->theta[i] * (given && dummy ? m->shift[i] : m->mean[i]);
        if (given && dummy) continue;
        /* a dummy is independent of what is no dummy */
        variance += m->theta[i] * dot(d, m->cov + (size_t)i * d, m->theta);
        if (i > 0 && !dummy && !m->fourth)
            share += tails(m, i, m->mean[i], sqrt(m->cov[(size_t)i * d + i]));
    }
    share += response_tails(m, given ? 0 : m->factors, mean, sqrt(variance));
    return share < 1 ? share : 1;
}

const struct record_moments_class moments_lm = {
    .name = "lm",
    .create = create,
    .eval = eval,
    .form = form,
    .pull = pull,
    .complete = complete,
    .project = project,
    .outside = outside,
};
