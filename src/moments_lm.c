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
 * a sum in which nothing cancels where the mean is large.
 *
 * All of it in released units: column v is scale * x + shift, the parameters
 * are carried there from the model's coordinates (see model_lm.c). Inside, the
 * components stand in the order w row by row, xy, y^2; component a is number
 * at[a] of the statistic.
 *
 * The total determines the complete-data statistic, a linear map. A draw of it
 * needs no factor of the covariance: w from a root of Xi, for normal x from the
 * normal sum of vech(xx') itself; then (xy, y^2) given w. So a covariance of low
 * rank needs no care.
 *
 * Cost: d^4 / 2 multiplications for the normal Xi and as many for Xi A', that is
 * of the order of its entries; with normal x Xi is never stored. A draw costs
 * d^3, or w * rank.
 */
#include "linalg.h"
#include "plugin.h"

#include <Rmath.h>

struct lm_law {
    int d, p;    /* regressors, the constant among them; d - 1 covariates */
    int w, size; /* distinct products of two regressors but the constant; w + d + 1 */
    int *at;
    const double *scale, *shift, *centre; /* of y, x_1..x_p */
    const double *lower, *upper;          /* bounds, in released units */
    double *offset;                       /* released value of a column at its centre */
    const double *fourth, *root;          /* Xi, w x w, and its root by columns, or NULL */
    int rank;

    /* in released units */
    double *theta, sigma;
    double *mean, *cov, *second; /* E x, Cov(x), E xx' with the constant, d x d */
    double *chol;                /* of Cov(x_1..x_p) */

    /* workspace */
    double *row, *cross, *outer, *pull, *normal, *symmetric, *products;
    double *scatter, *unit, *work;
};

/* share of its scaled matrix that a projected scatter's least eigenvalue has */
static const double least_eigenvalue = 1e-6;

static double *numbers(size_t count) { return plugin_memory(count, sizeof(double)); }

static int create(const struct fields *fields, struct record_moments *moments) {
    struct lm_law *m = plugin_memory(1, sizeof *m);
    m->d = fields_length(fields, "scale");
    m->p = m->d - 1;
    m->w = m->d * (m->d + 1) / 2 - 1;
    m->size = m->w + m->d + 1;
    m->scale = fields_vector(fields, "scale", m->d);
    m->shift = fields_vector(fields, "shift", m->d);
    m->centre = fields_vector(fields, "centre", m->d);
    m->lower = fields_vector(fields, "lower", m->d);
    m->upper = fields_vector(fields, "upper", m->d);
    const double *at = fields_vector(fields, "at", m->size);
    if (!m->scale || !m->shift || !m->centre || !m->lower || !m->upper || !at)
        return PLUGIN_BAD_FIELDS;
    m->fourth = fields_vector(fields, "fourth", m->w * m->w);
    if (m->fourth && m->w > 0) {
        m->rank = fields_length(fields, "root") / m->w;
        m->root = fields_vector(fields, "root", m->rank * m->w);
        if (!m->root) return PLUGIN_BAD_FIELDS;
    }
    m->at = plugin_memory((size_t)m->size, sizeof *m->at);
    for (int a = 0; a < m->size; ++a) m->at[a] = (int)at[a];
    const size_t d = (size_t)m->d, square = d * d, w = (size_t)m->w;
    m->offset = numbers(d);
    for (int v = 0; v < m->d; ++v) m->offset[v] = m->scale[v] * m->centre[v] + m->shift[v];
    m->theta = numbers(d);
    m->mean = numbers(d);
    m->cov = numbers(square);
    m->second = numbers(square);
    m->chol = numbers(square);
    m->row = numbers(w);
    m->cross = numbers(w * d);
    m->outer = numbers(square);
    m->pull = numbers(d);
    m->normal = numbers(w + 1);
    m->symmetric = numbers(square);
    m->products = numbers(w);
    m->scatter = numbers(square);
    m->unit = numbers(d);
    m->work = numbers(square + 4 * d);
    moments->self = m;
    moments->released = m->size;
    moments->aside = 0;
    moments->complete = m->size;
    return PLUGIN_OK;
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* ---- parameters in released units --------------------------------------- */

static void set(struct lm_law *m, const double *theta) {
    const int d = m->d, p = m->p;
    const double *mean = theta + d + 1, *chol = mean + p;
    m->sigma = m->scale[0] * exp(theta[d]);
    m->theta[0] = m->scale[0] * theta[0] + m->offset[0];
    m->mean[0] = 1;
    for (int i = 0; i < p; ++i) {
        const double scale = m->scale[i + 1];
        m->theta[i + 1] = m->scale[0] / scale * theta[i + 1];
        m->theta[0] -= m->theta[i + 1] * m->offset[i + 1];
        m->mean[i + 1] = scale * mean[i] + m->shift[i + 1];
        double *row = m->chol + (size_t)i * p;
        for (int j = 0; j < i; ++j) row[j] = scale * *chol++;
        row[i] = scale * exp(*chol++);
        for (int j = 0; j <= i; ++j)
            m->cov[(size_t)(i + 1) * d + j + 1] = m->cov[(size_t)(j + 1) * d + i + 1] =
                dot(j + 1, row, m->chol + (size_t)j * p);
    }
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
            mean[m->at[number]] = m->second[(size_t)i * d + j];
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

/* ---- a draw of the total ---------------------------------------------------- */

/* w ~ N(0, Xi). For normal x: the sums of u and of uu' - I over many records, u
 * standard normal, are g and a symmetric G with variances 1 and 2 on its
 * diagonal; xx' - E xx' is m (L g)' + (L g) m' + L G L'. */
static void draw_products(struct lm_law *m, struct rng *rng, double *restrict out) {
    const int p = m->p, w = m->w;
    if (m->fourth) {
        rng_fill_normal(rng, m->rank, m->normal);
        memset(out, 0, (size_t)w * sizeof(double));
        for (int r = 0; r < m->rank; ++r) {
            const double *column = m->root + (size_t)r * w;
            for (int b = 0; b < w; ++b) out[b] += m->normal[r] * column[b];
        }
        return;
    }
    double *g = m->normal, *half = m->outer, *square = m->symmetric;
    rng_fill_normal(rng, w, g);
    const double *next = g + p;
    for (int i = 0; i < p; ++i) {
        square[(size_t)i * p + i] = sqrt(2) * *next++;
        for (int j = 0; j < i; ++j) square[(size_t)i * p + j] = square[(size_t)j * p + i] = *next++;
    }
    for (int i = 0; i < p; ++i) { /* half = L G */
        double *row = half + (size_t)i * p;
        memset(row, 0, (size_t)p * sizeof(double));
        for (int l = 0; l <= i; ++l)
            for (int j = 0; j < p; ++j)
                row[j] += m->chol[(size_t)i * p + l] * square[(size_t)l * p + j];
    }
    for (int i = 0; i < p; ++i) out[i] = dot(i + 1, m->chol + (size_t)i * p, g);
    double *product = out + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j)
            *product++ = m->mean[i + 1] * out[j] + out[i] * m->mean[j + 1] +
                         dot(j + 1, half + (size_t)i * p, m->chol + (size_t)j * p);
}

static void simulate(void *self, const double *theta_model, double n, struct rng *rng,
                     double *total) {
    struct lm_law *m = self;
    set(m, theta_model);
    const int d = m->d, w = m->w;
    const double root_n = sqrt(n);
    draw_products(m, rng, m->products);
    for (int i = 0, number = 0; i < d; ++i)
        for (int j = i == 0 ? 1 : i; j < d; ++j, ++number)
            total[m->at[number]] = n * m->second[(size_t)i * d + j] + root_n * m->products[number];
    contract(d, m->products, m->theta, m->pull);

    /* with the sums of x e, N(0, sigma^2 E): that of e, then the rest given it */
    double square = dot(d, m->pull, m->theta);
    const double first = m->sigma * rng_normal(rng);
    rng_fill_normal(rng, m->p, m->normal);
    for (int i = 0; i < d; ++i) {
        double noise = first * m->mean[i];
        if (i > 0) noise += m->sigma * dot(i, m->chol + (size_t)(i - 1) * m->p, m->normal);
        square += 2 * m->theta[i] * noise;
        m->pull[i] += noise;
    }
    square += sqrt(2) * m->sigma * m->sigma * rng_normal(rng);
    double square_mean = m->sigma * m->sigma;
    for (int i = 0; i < d; ++i) {
        const double mean = dot(d, m->second + (size_t)i * d, m->theta);
        total[m->at[w + i]] = n * mean + root_n * m->pull[i];
        square_mean += m->theta[i] * mean;
    }
    total[m->at[w + d]] = n * square_mean + root_n * square;
}

/* ---- the complete-data statistic -------------------------------------------- */

/* number, inside, of the product of columns i <= j; column 0 is y */
static int product_of(const struct lm_law *m, int i, int j) {
    if (i == 0) return j == 0 ? m->w + m->d : m->w + j;
    return m->p + (i - 1) * m->p - (i - 1) * (i - 2) / 2 + (j - i);
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
            const double a = m->offset[i] / m->scale[i], b = m->offset[j] / m->scale[j];
            *product++ = total[m->at[product_of(m, i, j)]] / (m->scale[i] * m->scale[j]) -
                         a * c[j] - b * c[i] - n * a * b;
        }
    scale_scatter(m, n, c);
    return linalg_cholesky(d, m->scatter) == 0;
}

static void project(void *self, double n, double *c) {
    struct lm_law *m = self;
    const int d = m->d;
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

/* Of y, and of covariates that have a normal law. */
static double outside(void *self, const double *theta_model) {
    struct lm_law *m = self;
    set(m, theta_model);
    const int d = m->d;
    double variance = m->sigma * m->sigma, share = 0;
    for (int i = 1; i < d; ++i) {
        variance += m->theta[i] * dot(d, m->cov + (size_t)i * d, m->theta);
        if (!m->fourth) share += tails(m, i, m->mean[i], sqrt(m->cov[(size_t)i * d + i]));
    }
    share += tails(m, 0, dot(d, m->theta, m->mean), sqrt(variance));
    return share < 1 ? share : 1;
}

const struct record_moments_class moments_lm = {
    .name = "lm",
    .create = create,
    .eval = eval,
    .simulate = simulate,
    .complete = complete,
    .project = project,
    .outside = outside,
};
