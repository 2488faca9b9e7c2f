/* Moments "binary": the distribution of one record's cross-products (xx', xy, y^2), symmetric
 * entries once, in a regression of a binary response, P(y = 1 | x) = g(e), e = b_0 + b'x, x normal,
 * for the pair of model "glm" with a family of binary responses and statistic "crossprod", bounds
 * of x that do not bind.
 *
 * With x = m + L v, v standard normal, a = L'b, rho = a'a, e ~ N(e_0, rho) and g_k =
 * E g^(k)(e), Stein's identity gives (MATH part 12)
 *   E y = g_0, E y v_i = a_i g_1, E y v_i v_j = d_ij g_0 + a_i a_j g_2,
 *   E y v_i v_j v_k = (a_i d_jk + a_j d_ik + a_k d_ij) g_1 + a_i a_j a_k g_3.
 * So all moments need four quadratures over one variable, and their gradients two more,
 * since d g_k / d e_0 = g_(k+1) and d g_k / d rho = g_(k+2) / 2.
 *
 * The total as a function of innovations: the sums of v and of vv' - I are h and H,
 * standard normal but for variances 2 on H's diagonal. v and vv' - I are orthogonal, so
 * the sums of y - g_0 and of y v - g_1 a are their projections on both,
 *   Y = g_1 a'h + g_2 a'Ha / 2 + k eta_0,
 *   V = g_0 h + g_2 (a'h) a + g_1 Ha + (a'Ha / 2) g_3 a + residual,
 * with residuals of which only the part along a goes with eta_0. With
 *   K = g_0 (1 - g_0) - rho g_1^2 - rho^2 g_2^2 / 2 = k^2,       the variance of Y's residual,
 *   C = g_0 (1 - g_0) - rho g_1^2 = c^2,                         of V's, across a,
 *   kappa a, kappa = g_1 (1 - 2 g_0) - 2 rho g_1 g_2 - rho^2 g_2 g_3 / 2,  their covariance,
 *   C + rho delta, delta = g_2 (1 - 2 g_0) - rho g_2^2 - (2 g_1 + rho g_3)^2 / 2 - kappa^2 / K,
 *                                                                of V's given Y's, along a,
 * it is (kappa / k) eta_0 a + c (eta + psi (a'eta) a), psi = (sqrt(1 + rho delta / C) - 1) /
 * rho: smooth where a is 0.
 *
 * y is 0 or 1, so y^2 in released units is linear in y.
 *
 * Cost: 2 p^3 multiplications a total, as many its gradients, and the means of the family.
 */
#include "family.h"
#include "linalg.h"
#include "plugin.h"

#include <Rmath.h>

struct binary_distribution {
    const struct family *family;
    int p;    /* covariates */
    int w;    /* distinct products of two of (1, x) but the constant */
    int *at;  /* component of the statistic; -1 if left out: x products row by row, xy, y^2 */
    int size; /* of the statistic */
    const double *scale, *shift, *centre; /* of y, x_1..x_p */
    const double *lower, *upper;          /* bounds, in released units */

    /* of the model's coordinates */
    const struct theta_block *coefficients, *means, *covs;

    /* current parameter */
    const double *slope; /* natural units, as the model has them */
    double *mean, *chol; /* of x in released units; chol p x p */
    double *a;           /* chol'b */
    double rho, g[FAMILY_MEANS];
    double K, C, kappa, delta, psi, k, c;

    /* of the last total: h, H a, L h, V, and a'h, a'Ha, a'eta, Y */
    const double *h, *eta;
    double *H, *Ha, *Lh, *V;
    double ah, aHa, aeta, Y;

    /* workspace */
    double *half, *symmetric, *weighted, *along, *chol_slope, *mean_slope, *a_slope;
    double *products, *u, *r;
};

static double *numbers(size_t count) { return plugin_memory(count, sizeof(double)); }

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct binary_distribution *m = plugin_memory(1, sizeof *m);
    const int p = m->p = fields_length(fields, "scale") - 1;
    m->w = p * (p + 3) / 2;
    const int components = m->w + p + 2;
    m->scale = fields_vector(fields, "scale", p + 1);
    m->shift = fields_vector(fields, "shift", p + 1);
    m->centre = fields_vector(fields, "centre", p + 1);
    m->lower = fields_vector(fields, "lower", p + 1);
    m->upper = fields_vector(fields, "upper", p + 1);
    const double *at = fields_vector(fields, "at", components);
    m->coefficients = coordinates_find(coordinates, "coefficients");
    m->means = coordinates_find(coordinates, "mean");
    m->covs = coordinates_find(coordinates, "cov");
    m->family = family_create(fields);
    if (!m->family || !m->scale || !m->shift || !m->centre || !m->lower || !m->upper || !at ||
        !m->coefficients || !m->means || !m->covs || m->means->size != p)
        return PLUGIN_BAD_FIELDS;
    m->at = plugin_memory((size_t)components, sizeof *m->at);
    for (int j = 0; j < components; ++j) {
        m->at[j] = (int)at[j];
        m->size += m->at[j] >= 0;
    }
    const size_t square = (size_t)p * (size_t)p;
    double **const vectors[] = {&m->mean, &m->a,     &m->Ha,         &m->Lh,
                                &m->V,    &m->along, &m->mean_slope, &m->a_slope};
    double **const matrices[] = {&m->chol,      &m->H,        &m->half,
                                 &m->symmetric, &m->weighted, &m->chol_slope};
    for (int j = 0; j < 8; ++j) *vectors[j] = numbers((size_t)p);
    for (int j = 0; j < 6; ++j) *matrices[j] = numbers(square);
    m->products = numbers((size_t)components);
    moments->self = m;
    moments->released = m->size;
    moments->aside = 0;
    moments->complete = 0;
    moments->innovations = m->w + 1 + p;
    m->u = numbers((size_t)moments->innovations);
    m->r = numbers((size_t)m->size);
    return PLUGIN_OK;
}

/* ---- parameters ------------------------------------------------------------------------ */

static void set(struct binary_distribution *m, const double *theta) {
    const int p = m->p;
    const double *mean = theta + m->means->offset, *coefficients = theta + m->coefficients->offset;
    m->slope = coefficients + 1;
    double centre = coefficients[0];
    unpack_cholesky(p, theta + m->covs->offset, p, m->chol);
    memset(m->a, 0, (size_t)p * sizeof(double));
    for (int i = 0; i < p; ++i) {
        const double scale = m->scale[i + 1];
        double *row = m->chol + (size_t)i * p;
        centre += m->slope[i] * (mean[i] - m->centre[i + 1]);
        m->mean[i] = scale * mean[i] + m->shift[i + 1];
        for (int j = 0; j <= i; ++j) {
            m->a[j] += m->slope[i] * row[j];
            row[j] *= scale;
        }
    }
    m->rho = linalg_dot(p, m->a, m->a);
    m->family->class->means(m->family, centre, sqrt(m->rho), m->g);
    const double rho = m->rho, *g = m->g, bend = 2 * g[1] + rho * g[3];
    m->C = g[0] * (1 - g[0]) - rho * g[1] * g[1];
    m->K = m->C - 0.5 * rho * rho * g[2] * g[2];
    m->kappa = g[1] * (1 - 2 * g[0]) - 2 * rho * g[1] * g[2] - 0.5 * rho * rho * g[2] * g[3];
    m->delta =
        g[2] * (1 - 2 * g[0]) - rho * g[2] * g[2] - 0.5 * bend * bend - m->kappa * m->kappa / m->K;
    m->k = sqrt(m->K);
    m->c = sqrt(m->C);
    /* not finite where rounding leaves a variance negative */
    m->psi = m->delta / m->C / (1 + sqrt(1 + rho * m->delta / m->C));
}

/* ---- the total as a function of innovations: h, H by rows of its lower triangle, eta_0, eta - */

static const double *read_symmetric(int p, const double *u, double *out) {
    for (int i = 0; i < p; ++i) {
        out[(size_t)i * p + i] = sqrt(2) * *u++;
        for (int j = 0; j < i; ++j) out[(size_t)i * p + j] = out[(size_t)j * p + i] = *u++;
    }
    return u;
}

static void make(struct binary_distribution *m, double n, const double *u, double *total) {
    const int p = m->p, w = m->w;
    const double root_n = sqrt(n), *g = m->g, *a = m->a;
    m->h = u;
    const double *error = read_symmetric(p, u + p, m->H);
    m->eta = error + 1;

    m->ah = linalg_dot(p, a, m->h);
    m->aeta = linalg_dot(p, a, m->eta);
    for (int i = 0; i < p; ++i) m->Ha[i] = linalg_dot(p, m->H + (size_t)i * p, a);
    m->aHa = linalg_dot(p, a, m->Ha);
    m->Y = g[1] * m->ah + 0.5 * g[2] * m->aHa + m->k * error[0];
    const double along =
        g[2] * m->ah + 0.5 * g[3] * m->aHa + m->kappa / m->k * error[0] + m->c * m->psi * m->aeta;
    for (int i = 0; i < p; ++i)
        m->V[i] = g[0] * m->h[i] + g[1] * m->Ha[i] + m->c * m->eta[i] + along * a[i];

    /* x and xx' */
    linalg_multiply_lower(p, m->chol, m->H, m->half);
    for (int i = 0; i < p; ++i) m->Lh[i] = linalg_dot(i + 1, m->chol + (size_t)i * p, m->h);
    for (int i = 0; i < p; ++i) total[m->at[i]] = n * m->mean[i] + root_n * m->Lh[i];
    const int *at = m->at + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double *row = m->chol + (size_t)j * p;
            const double second =
                linalg_dot(i + 1, m->chol + (size_t)i * p, row) + m->mean[i] * m->mean[j];
            const double sum = m->mean[i] * m->Lh[j] + m->Lh[i] * m->mean[j] +
                               linalg_dot(j + 1, m->half + (size_t)i * p, row);
            total[*at++] = n * second + root_n * sum;
        }

    /* y and xy */
    const double scale = m->scale[0], shift = m->shift[0], y = n * g[0] + root_n * m->Y;
    total[m->at[w]] = scale * y + n * shift;
    for (int i = 0; i < p; ++i) {
        const double *row = m->chol + (size_t)i * p;
        const double xy = m->mean[i] * y + n * g[1] * linalg_dot(i + 1, row, a) +
                          root_n * linalg_dot(i + 1, row, m->V);
        total[m->at[w + 1 + i]] = scale * xy + shift * total[m->at[i]];
    }
    if (m->at[w + 1 + p] >= 0)
        total[m->at[w + 1 + p]] = scale * (scale + 2 * shift) * y + n * shift * shift;
}

static void from_innovations(void *self, const double *theta, double n, const double *u,
                             double *total) {
    set(self, theta);
    make(self, n, u, total);
}

/* What the components' weights r come to: of x, of xx' as a symmetric matrix (m->symmetric),
 * of y and xy unscaled; r'total = weight_x'x + tr(W xx') + weight_y y + weight_xy'xy + const.
 * The three weights of vectors lie in m->products: x, xy. Returns weight_y. */
static double weigh(const struct binary_distribution *m, const double *r) {
    const int p = m->p, w = m->w;
    const double scale = m->scale[0], shift = m->shift[0];
    double *x = m->products, *xy = x + p;
    for (int i = 0; i < p; ++i) {
        const double both = r[m->at[w + 1 + i]];
        x[i] = r[m->at[i]] + shift * both;
        xy[i] = scale * both;
    }
    const int *at = m->at + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double value = r[*at++];
            m->symmetric[(size_t)i * p + j] = m->symmetric[(size_t)j * p + i] =
                i == j ? value : 0.5 * value;
        }
    const int square = m->at[w + 1 + p];
    return scale * r[m->at[w]] + (square >= 0 ? scale * (scale + 2 * shift) * r[square] : 0);
}

/* x + 2 W mean, to m->along */
static void weigh_about_mean(struct binary_distribution *m) {
    for (int i = 0; i < m->p; ++i)
        m->along[i] =
            m->products[i] + 2 * linalg_dot(m->p, m->symmetric + (size_t)i * m->p, m->mean);
}

/* out = L'x */
static void pull_lower(int p, const double *l, const double *x, double *out) {
    memset(out, 0, (size_t)p * sizeof(double));
    for (int i = 0; i < p; ++i)
        for (int j = 0; j <= i; ++j) out[j] += l[(size_t)i * p + j] * x[i];
}

/* The transpose of what make() does, backwards. */
static void pull(void *self, double weight, const double *r, double *u) {
    struct binary_distribution *m = self;
    const int p = m->p;
    const double *g = m->g, *a = m->a, y = weigh(m, r) + linalg_dot(p, m->products + p, m->mean);
    double *b = m->a_slope;
    pull_lower(p, m->chol, m->products + p, b);
    const double ab = linalg_dot(p, a, b);
    weigh_about_mean(m);
    pull_lower(p, m->chol, m->along, m->mean_slope);
    for (int i = 0; i < p; ++i)
        u[i] += weight * (m->mean_slope[i] + g[0] * b[i] + (y * g[1] + ab * g[2]) * a[i]);

    /* the symmetric weights of H: L'WL + ... */
    linalg_multiply_upper(p, m->chol, m->symmetric, m->half);
    double *next = u + p;
    const double aa = 0.5 * (y * g[2] + ab * g[3]);
    for (int i = 0; i < p; ++i) {
        const double *row = m->half + (size_t)i * p;
        double *sums = m->mean_slope; /* row i of L'WL up to the diagonal */
        memset(sums, 0, (size_t)(i + 1) * sizeof(double));
        for (int l = 0; l < p; ++l)
            for (int j = 0; j <= i && j <= l; ++j) sums[j] += row[l] * m->chol[(size_t)l * p + j];
        for (int j = 0; j <= i; ++j)
            sums[j] += aa * a[i] * a[j] + 0.5 * g[1] * (a[i] * b[j] + a[j] * b[i]);
        *next++ += weight * sqrt(2) * sums[i];
        for (int j = 0; j < i; ++j) *next++ += weight * 2 * sums[j];
    }
    *next++ += weight * (y * m->k + ab * m->kappa / m->k);
    for (int i = 0; i < p; ++i) *next++ += weight * m->c * (b[i] + m->psi * ab * a[i]);
}

/* From slopes in k, kappa / k, c and psi to slopes in g_0..g_3, added; returns that in rho. */
static double pull_residuals(const struct binary_distribution *m, double k, double ratio, double c,
                             double psi, double *slope) {
    const double rho = m->rho, *g = m->g, K = m->K, C = m->C;
    const double root = 1 + rho * m->psi,
                 share = psi / (2 * root); /* rho psi^2 + 2 psi = delta / C */
    const double bend = 2 * g[1] + rho * g[3];
    const double of_delta = share / C;
    const double of_kappa = ratio / m->k - 2 * of_delta * m->kappa / K;
    const double of_K =
        0.5 * (k - ratio * m->kappa / K) / m->k + of_delta * m->kappa * m->kappa / (K * K);
    const double of_C = 0.5 * c / m->c - share * m->delta / (C * C) + of_K; /* K has C in it */
    const double odd = 1 - 2 * g[0];
    slope[0] += -2 * g[2] * of_delta + odd * of_C - 2 * g[1] * of_kappa;
    slope[1] += -2 * bend * of_delta - 2 * rho * g[1] * of_C + (odd - 2 * rho * g[2]) * of_kappa;
    slope[2] += (odd - 2 * rho * g[2]) * of_delta - rho * (2 * g[1] + 0.5 * rho * g[3]) * of_kappa -
                rho * rho * g[2] * of_K;
    slope[3] += -rho * bend * of_delta - 0.5 * rho * rho * g[2] * of_kappa;
    return -share * m->psi * m->psi - (g[2] * g[2] + bend * g[3]) * of_delta - g[1] * g[1] * of_C -
           g[2] * (2 * g[1] + rho * g[3]) * of_kappa - rho * g[2] * g[2] * of_K;
}

static void gradient(void *self, double n, const double *u, const double *r, double *out) {
    struct binary_distribution *m = self;
    const int p = m->p;
    const double root_n = sqrt(n), *g = m->g, *a = m->a, *h = m->h, *eta = m->eta;
    const double eta_0 = u[m->w], y = weigh(m, r) + linalg_dot(p, m->products + p, m->mean);
    const double *xy = m->products + p;
    double *b = m->V; /* V is read first */
    const double ratio = m->kappa / m->k;

    /* mean and factor of x: through x and xx', and xy given the sums that y makes */
    double *chol = m->chol_slope, *mean = m->mean_slope;
    weigh_about_mean(m);
    linalg_multiply_symmetric_lower(p, m->symmetric, m->chol, m->weighted); /* W L */
    for (int i = 0; i < p; ++i) {
        const double *row = m->weighted + (size_t)i * p;
        mean[i] = n * m->along[i] + (n * g[0] + root_n * m->Y) * xy[i] +
                  2 * root_n * linalg_dot(p, m->symmetric + (size_t)i * p, m->Lh);
        for (int j = 0; j <= i; ++j)
            chol[(size_t)i * p + j] =
                root_n * m->along[i] * h[j] + xy[i] * (n * g[1] * a[j] + root_n * m->V[j]) +
                2 * (n * row[j] + root_n * linalg_dot(p, row, m->H + (size_t)j * p));
    }

    /* the sums that y makes, functions of a, rho and g */
    pull_lower(p, m->chol, xy, b);
    const double ab = linalg_dot(p, a, b);
    double slope[4] = {
        n * y + root_n * linalg_dot(p, b, h),
        n * ab + root_n * (y * m->ah + linalg_dot(p, b, m->Ha)),
        root_n * (0.5 * y * m->aHa + ab * m->ah),
        root_n * 0.5 * ab * m->aHa,
    };
    double of_rho = pull_residuals(m, root_n * y * eta_0, root_n * ab * eta_0,
                                   root_n * (linalg_dot(p, b, eta) + m->psi * m->aeta * ab),
                                   root_n * m->c * m->aeta * ab, slope);
    double of_centre = 0;
    for (int k = 0; k < 4; ++k) {
        of_centre += slope[k] * g[k + 1];
        of_rho += 0.5 * slope[k] * g[k + 2];
    }
    const double along =
        g[2] * m->ah + 0.5 * g[3] * m->aHa + ratio * eta_0 + m->c * m->psi * m->aeta;
    const double of_ah = root_n * (y * g[1] + ab * g[2]), of_aHa = root_n * (y * g[2] + ab * g[3]),
                 of_aeta = root_n * m->c * m->psi * ab;
    for (int j = 0; j < p; ++j)
        m->a_slope[j] = (n * g[1] + root_n * along) * b[j] +
                        root_n * g[1] * linalg_dot(p, m->H + (size_t)j * p, b) + of_ah * h[j] +
                        of_aHa * m->Ha[j] + of_aeta * eta[j] + 2 * of_rho * a[j];

    /* to the model's coordinates; `chol` has the scales in it, a has not */
    double *coefficients = out + m->coefficients->offset, *packed = out + m->covs->offset;
    coefficients[0] += of_centre;
    for (int i = 0; i < p; ++i) {
        const double scale = m->scale[i + 1], *row = m->chol + (size_t)i * p;
        const double natural = (m->mean[i] - m->shift[i + 1]) / scale;
        coefficients[1 + i] +=
            of_centre * (natural - m->centre[i + 1]) + linalg_dot(i + 1, row, m->a_slope) / scale;
        out[m->means->offset + i] += scale * mean[i] + of_centre * m->slope[i];
        for (int j = 0; j <= i; ++j) {
            const double value = scale * chol[(size_t)i * p + j] + m->slope[i] * m->a_slope[j];
            *packed++ += i == j ? value * row[i] / scale : value;
        }
    }
}

/* ---- mean and covariance -------------------------------------------------------------- */

/* A A' with the A of from_innovations(), row by row */
static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct binary_distribution *m = self;
    const int size = m->size, innovations = m->w + 1 + m->p;
    double check = 0;
    set(m, theta);
    memset(m->u, 0, (size_t)innovations * sizeof(double));
    make(m, 1, m->u, mean);
    for (int j = 0; j < size; ++j) {
        double *row = cov + (size_t)j * size;
        memset(m->u, 0, (size_t)innovations * sizeof(double));
        memset(m->r, 0, (size_t)size * sizeof(double));
        m->r[j] = 1;
        pull(m, 1, m->r, m->u);
        make(m, 1, m->u, row);
        for (int i = 0; i < size; ++i) row[i] -= mean[i];
        check += mean[j] + row[j];
    }
    /* rounding */
    for (int j = 0; j < size; ++j)
        for (int i = 0; i < j; ++i) cov[(size_t)i * size + j] = cov[(size_t)j * size + i];
    return isfinite(check) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

/* the tails of the covariates' marginal distributions, summed */
static double outside(void *self, const double *theta) {
    struct binary_distribution *m = self;
    double share = 0;
    set(m, theta);
    for (int i = 0; i < m->p; ++i) {
        const double *row = m->chol + (size_t)i * m->p, sd = sqrt(linalg_dot(i + 1, row, row));
        share += Rf_pnorm5(m->lower[i + 1], m->mean[i], sd, 1, 0) +
                 Rf_pnorm5(m->upper[i + 1], m->mean[i], sd, 0, 0);
    }
    return share < 1 ? share : 1;
}

const struct record_moments_class moments_binary = {
    .name = "binary",
    .create = create,
    .eval = eval,
    .from_innovations = from_innovations,
    .pull = pull,
    .gradient = gradient,
    .outside = outside,
};
