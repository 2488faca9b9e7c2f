/* Moments "glm": the distribution of one record's cross-products (xx', xy, y^2), symmetric
 * entries once, in a regression of a binary response or a count, E(y | x) a function of e = b_0 +
 * b'x, x normal, for the pair of model "glm" and statistic "crossprod", bounds of x that do not
 * bind. Counts are as the bounds clamp them.
 *
 * With x = m + L v, v standard normal, a = L'b, rho = a'a, e ~ N(e_0, rho) and g_k, q_k, t_k, f_k
 * the means of the derivatives k of E(y | e), E(y^2 | e), E(y^3 | e), E(y^4 | e), Stein's
 * identity gives (vignette "Algorithms", "clt")
 *   E y = g_0, E y v_i = a_i g_1, E y v_i v_j = d_ij g_0 + a_i a_j g_2,
 *   E y v_i v_j v_k = (a_i d_jk + a_j d_ik + a_k d_ij) g_1 + a_i a_j a_k g_3,
 * and the same of y^2 and q. So all moments need quadratures over one variable, and their
 * gradients two derivatives more, since d g_k / d e_0 = g_(k+1) and d g_k / d rho = g_(k+2) / 2.
 *
 * The total as a function of innovations: the sums of v and of vv' - I are h and H, standard
 * normal except for variances 2 on H's diagonal. v and vv' - I are orthogonal, so the sums of y -
 * g_0, of y v - g_1 a and of y^2 - q_0 are their projections on both,
 *   Y = g_1 a'h + g_2 a'Ha / 2 + k eta_0,
 *   V = g_0 h + g_2 (a'h) a + g_1 Ha + (a'Ha / 2) g_3 a + residual,
 *   S = q_1 a'h + q_2 a'Ha / 2 + residual,
 * with residuals of which only the part along a goes with eta_0. With
 *   K = q_0 - g_0^2 - rho g_1^2 - rho^2 g_2^2 / 2 = k^2,         the variance of Y's residual,
 *   C = q_0 - g_0^2 - rho g_1^2 = c^2,                           of V's, across a,
 *   kappa a, kappa = q_1 - 2 g_0 g_1 - 2 rho g_1 g_2 - rho^2 g_2 g_3 / 2,  their covariance,
 *   C + rho delta, delta = q_2 - 2 g_0 g_2 - rho g_2^2 - (2 g_1 + rho g_3)^2 / 2 - kappa^2 / K,
 *                                                                of V's given Y's, along a,
 * V's is (kappa / k) eta_0 a + c (eta + psi (a'eta) a), psi = (sqrt(1 + rho delta / C) - 1) /
 * rho: smooth where a is 0. With
 *   A = t_0 - q_0 g_0 - rho q_1 g_1 - rho^2 q_2 g_2 / 2,         the covariance of S's and Y's,
 *   B a, B = t_1 - q_0 g_1 - q_1 g_0 - rho (q_1 g_2 + q_2 g_1) - rho^2 q_2 g_3 / 2,  of S's and
 * V's, D = f_0 - q_0^2 - rho q_1^2 - rho^2 q_2^2 / 2,               the variance of S's, S's is
 * alpha eta_0 + beta a'eta + s eta_2, alpha = A / k, beta = (B - alpha kappa / k) / (c (1 + rho
 * psi)), s^2 = D - alpha^2 - rho beta^2.
 *
 * A binary y is 0 or 1: q_k = g_k, and y^2 in released units is linear in y, without eta_2.
 *
 * Cost: 2 p^3 multiplications a total, as many its gradients, and the means of the family.
 */
#include "base/linalg.h"
#include "contract/moments.h"
#include "model/family.h"

#include <Rmath.h>

/* less than this share of a variance is rounding error */
static const double ROUNDING = 1e-13;

/* what the residuals of the sums are made of */
struct residuals {
    double K, C, kappa, delta, psi, k, c, alpha, beta, s;
};

/* of the last total: h, H a, L h, V, and a'h, a'Ha, a'eta, Y */
struct glm_total {
    const double *h, *eta;
    double *H, *Ha, *Lh, *V;
    double ah, aHa, aeta, Y, S;
};

struct glm_distribution {
    struct family *family;
    int counts; /* is y^2 released, and not linear in y? */
    int p;      /* covariates */
    int w;      /* distinct products of two of (1, x) but the constant */
    int *at;    /* component of the statistic; -1 if left out: x products row by row, xy, y^2 */
    int size;   /* of the statistic */
    int innovations;
    const double *scale, *shift, *centre; /* of y, x_1..x_p */
    const double *lower, *upper;          /* bounds, in released units */

    /* of the model's coordinates */
    const struct theta_block *coefficients, *means, *covs;

    /* current parameter */
    const double *slope; /* natural units, as the model has them */
    double *mean, *chol; /* of x in released units; chol p x p */
    double *a;           /* chol'b */
    double rho;
    struct {
        double mean[FAMILY_POWERS * FAMILY_MEANS];
        const double *g, *q, *t, *f; /* into `mean` */
    } powers;                        /* of y */
    struct residuals rest;

    struct glm_total last;
    struct {
        double *half, *symmetric, *weighted, *along, *chol_slope, *mean_slope, *a_slope;
        double *products, *u, *r;
    } work;
};

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct glm_distribution *m = plugin_memory(1, sizeof *m);
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
    double **const vectors[] = {&m->mean,   &m->a,          &m->last.Ha,         &m->last.Lh,
                                &m->last.V, &m->work.along, &m->work.mean_slope, &m->work.a_slope};
    double **const matrices[] = {&m->chol,           &m->last.H,        &m->work.half,
                                 &m->work.symmetric, &m->work.weighted, &m->work.chol_slope};
    for (int j = 0; j < 8; ++j) *vectors[j] = doubles((size_t)p);
    for (int j = 0; j < 6; ++j) *matrices[j] = doubles(square);
    m->work.products = doubles((size_t)components);
    moments->self = m;
    moments->released = m->size;
    moments->aside = 0;
    moments->complete = 0;
    const struct family_class *family = m->family->class;
    m->powers.g = m->powers.mean;
    m->powers.q = family->powers ? m->powers.mean + FAMILY_MEANS : m->powers.g;
    m->powers.t = m->powers.mean + 2 * FAMILY_MEANS;
    m->powers.f = m->powers.mean + 3 * FAMILY_MEANS;
    m->counts = family->powers && m->at[m->w + 1 + p] >= 0;
    if (family->powers) family_clamp(m->family, (m->upper[0] - m->shift[0]) / m->scale[0]);
    moments->innovations = m->innovations = m->w + 1 + p + m->counts;
    m->work.u = doubles((size_t)moments->innovations);
    m->work.r = doubles((size_t)m->size);
    return PLUGIN_OK;
}

/* ---- parameters ------------------------------------------------------------------------ */

/* s is 0 where y^2 follows from y, up to rounding */
static void set_square(struct glm_distribution *m) {
    struct residuals *rest = &m->rest;
    const double rho = m->rho, *g = m->powers.g, *q = m->powers.q, *t = m->powers.t;
    const double A = t[0] - q[0] * g[0] - rho * q[1] * g[1] - 0.5 * rho * rho * q[2] * g[2];
    const double B = t[1] - q[0] * g[1] - q[1] * g[0] - rho * (q[1] * g[2] + q[2] * g[1]) -
                     0.5 * rho * rho * q[2] * g[3];
    const double D =
        m->powers.f[0] - q[0] * q[0] - rho * q[1] * q[1] - 0.5 * rho * rho * q[2] * q[2];
    rest->alpha = A / rest->k;
    rest->beta = (B - rest->alpha * rest->kappa / rest->k) / (rest->c * (1 + rho * rest->psi));
    const double left = D - rest->alpha * rest->alpha - rho * rest->beta * rest->beta;
    rest->s = left > ROUNDING * D ? sqrt(left) : 0;
}

static void set(struct glm_distribution *m, const double *theta) {
    struct residuals *rest = &m->rest;
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
    const struct family_class *family = m->family->class;
    (family->powers ? family->powers : family->means)(m->family, centre, sqrt(m->rho),
                                                      m->powers.mean);
    const double rho = m->rho, *g = m->powers.g, *q = m->powers.q, bend = 2 * g[1] + rho * g[3];
    rest->C = q[0] - g[0] * g[0] - rho * g[1] * g[1];
    rest->K = rest->C - 0.5 * rho * rho * g[2] * g[2];
    rest->kappa = q[1] - 2 * g[0] * g[1] - 2 * rho * g[1] * g[2] - 0.5 * rho * rho * g[2] * g[3];
    rest->delta = q[2] - 2 * g[0] * g[2] - rho * g[2] * g[2] - 0.5 * bend * bend -
                  rest->kappa * rest->kappa / rest->K;
    rest->k = sqrt(rest->K);
    rest->c = sqrt(rest->C);
    /* not finite where rounding leaves a variance negative */
    rest->psi = rest->delta / rest->C / (1 + sqrt(1 + rho * rest->delta / rest->C));
    if (m->counts) set_square(m);
}

/* ---- the total as a function of innovations: h, H by rows of its lower triangle, eta_0, eta,
 * eta_2 ---------------------------------------------------------------------------------- */

static const double *read_symmetric(int p, const double *u, double *out) {
    for (int i = 0; i < p; ++i) {
        out[(size_t)i * p + i] = sqrt(2) * *u++;
        for (int j = 0; j < i; ++j) out[(size_t)i * p + j] = out[(size_t)j * p + i] = *u++;
    }
    return u;
}

static void make(struct glm_distribution *m, double n, const double *u, double *total) {
    struct residuals *rest = &m->rest;
    struct glm_total *last = &m->last;
    const int p = m->p, w = m->w;
    const double root_n = sqrt(n), *g = m->powers.g, *a = m->a;
    last->h = u;
    const double *error = read_symmetric(p, u + p, last->H);
    last->eta = error + 1;

    last->ah = linalg_dot(p, a, last->h);
    last->aeta = linalg_dot(p, a, last->eta);
    for (int i = 0; i < p; ++i) last->Ha[i] = linalg_dot(p, last->H + (size_t)i * p, a);
    last->aHa = linalg_dot(p, a, last->Ha);
    last->Y = g[1] * last->ah + 0.5 * g[2] * last->aHa + rest->k * error[0];
    const double along = g[2] * last->ah + 0.5 * g[3] * last->aHa +
                         rest->kappa / rest->k * error[0] + rest->c * rest->psi * last->aeta;
    for (int i = 0; i < p; ++i)
        last->V[i] = g[0] * last->h[i] + g[1] * last->Ha[i] + rest->c * last->eta[i] + along * a[i];

    /* x and xx' */
    linalg_multiply_lower(p, m->chol, last->H, m->work.half);
    for (int i = 0; i < p; ++i) last->Lh[i] = linalg_dot(i + 1, m->chol + (size_t)i * p, last->h);
    for (int i = 0; i < p; ++i) total[m->at[i]] = n * m->mean[i] + root_n * last->Lh[i];
    const int *at = m->at + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double *row = m->chol + (size_t)j * p;
            const double second =
                linalg_dot(i + 1, m->chol + (size_t)i * p, row) + m->mean[i] * m->mean[j];
            const double sum = m->mean[i] * last->Lh[j] + last->Lh[i] * m->mean[j] +
                               linalg_dot(j + 1, m->work.half + (size_t)i * p, row);
            total[*at++] = n * second + root_n * sum;
        }

    /* y and xy */
    const double scale = m->scale[0], shift = m->shift[0], y = n * g[0] + root_n * last->Y;
    total[m->at[w]] = scale * y + n * shift;
    for (int i = 0; i < p; ++i) {
        const double *row = m->chol + (size_t)i * p;
        const double xy = m->mean[i] * y + n * g[1] * linalg_dot(i + 1, row, a) +
                          root_n * linalg_dot(i + 1, row, last->V);
        total[m->at[w + 1 + i]] = scale * xy + shift * total[m->at[i]];
    }
    if (m->at[w + 1 + p] < 0) return;
    double square = y;
    if (m->counts) {
        last->S = m->powers.q[1] * last->ah + 0.5 * m->powers.q[2] * last->aHa +
                  rest->alpha * error[0] + rest->beta * last->aeta + rest->s * last->eta[p];
        square = n * m->powers.q[0] + root_n * last->S;
    }
    total[m->at[w + 1 + p]] = scale * (scale * square + 2 * shift * y) + n * shift * shift;
}

static void from_innovations(void *self, const double *theta, double n, const double *u,
                             double *total) {
    set(self, theta);
    make(self, n, u, total);
}

/* What the components' weights r come to: of x, of xx' as a symmetric matrix (work.symmetric),
 * of y and xy unscaled; r'total = weight_x'x + tr(W xx') + weight_y y + weight_xy'xy + const.
 * The weights of vectors lie in work.products: x, xy. Returns weight_y; that of y^2 where it is
 * not linear in y goes to `square`, else 0. */
static double weigh(const struct glm_distribution *m, const double *r, double *square) {
    const int p = m->p, w = m->w;
    const double scale = m->scale[0], shift = m->shift[0];
    double *x = m->work.products, *xy = x + p;
    for (int i = 0; i < p; ++i) {
        const double both = r[m->at[w + 1 + i]];
        x[i] = r[m->at[i]] + shift * both;
        xy[i] = scale * both;
    }
    const int *at = m->at + p;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) {
            const double value = r[*at++];
            m->work.symmetric[(size_t)i * p + j] = m->work.symmetric[(size_t)j * p + i] =
                i == j ? value : 0.5 * value;
        }
    const int at_square = m->at[w + 1 + p];
    const double own = at_square >= 0 ? r[at_square] : 0;
    *square = m->counts ? scale * scale * own : 0;
    return scale * (r[m->at[w]] + ((m->counts ? 0 : scale) + 2 * shift) * own);
}

/* x + 2 W mean, to work.along */
static void weigh_about_mean(struct glm_distribution *m) {
    for (int i = 0; i < m->p; ++i)
        m->work.along[i] = m->work.products[i] +
                           2 * linalg_dot(m->p, m->work.symmetric + (size_t)i * m->p, m->mean);
}

/* out = L'x */
static void pull_lower(int p, const double *l, const double *x, double *out) {
    memset(out, 0, (size_t)p * sizeof(double));
    for (int i = 0; i < p; ++i)
        for (int j = 0; j <= i; ++j) out[j] += l[(size_t)i * p + j] * x[i];
}

/* The transpose of what make() does, backwards. */
static void pull(void *self, double weight, const double *r, double *u) {
    struct glm_distribution *m = self;
    const int p = m->p;
    const double *g = m->powers.g, *q = m->powers.q, *a = m->a;
    double square, *b = m->work.a_slope;
    const double y = weigh(m, r, &square) + linalg_dot(p, m->work.products + p, m->mean);
    pull_lower(p, m->chol, m->work.products + p, b);
    const double ab = linalg_dot(p, a, b);
    weigh_about_mean(m);
    pull_lower(p, m->chol, m->work.along, m->work.mean_slope);
    for (int i = 0; i < p; ++i)
        u[i] += weight * (m->work.mean_slope[i] + g[0] * b[i] +
                          (y * g[1] + ab * g[2] + square * q[1]) * a[i]);

    /* the symmetric weights of H: L'WL + ... */
    linalg_multiply_upper(p, m->chol, m->work.symmetric, m->work.half);
    double *next = u + p;
    const double aa = 0.5 * (y * g[2] + ab * g[3] + square * q[2]);
    for (int i = 0; i < p; ++i) {
        const double *row = m->work.half + (size_t)i * p;
        double *sums = m->work.mean_slope; /* row i of L'WL up to the diagonal */
        memset(sums, 0, (size_t)(i + 1) * sizeof(double));
        for (int l = 0; l < p; ++l)
            for (int j = 0; j <= i && j <= l; ++j) sums[j] += row[l] * m->chol[(size_t)l * p + j];
        for (int j = 0; j <= i; ++j)
            sums[j] += aa * a[i] * a[j] + 0.5 * g[1] * (a[i] * b[j] + a[j] * b[i]);
        *next++ += weight * sqrt(2) * sums[i];
        for (int j = 0; j < i; ++j) *next++ += weight * 2 * sums[j];
    }
    *next++ += weight * (y * m->rest.k + ab * m->rest.kappa / m->rest.k + square * m->rest.alpha);
    for (int i = 0; i < p; ++i)
        *next++ +=
            weight * (m->rest.c * (b[i] + m->rest.psi * ab * a[i]) + square * m->rest.beta * a[i]);
    if (m->counts) *next += weight * square * m->rest.s;
}

/* Slopes in what the residuals are made of, and in the means of powers. */
struct slopes {
    double k, ratio, c, psi, alpha, beta, s; /* ratio: kappa / k */
    double g[4], q[3], t[2], f, rho;
};

/* From slopes in alpha, beta and s to the others, added. */
static void pull_square(const struct glm_distribution *m, struct slopes *d) {
    const struct residuals *rest = &m->rest;
    const double rho = m->rho, *g = m->powers.g, *q = m->powers.q, ratio = rest->kappa / rest->k;
    const double of_D = rest->s > 0 ? 0.5 * d->s / rest->s : 0, root = 1 + rho * rest->psi;
    const double of_B = (d->beta - 2 * rho * rest->beta * of_D) / (rest->c * root);
    const double of_alpha = d->alpha - 2 * rest->alpha * of_D - ratio * of_B;
    const double of_A = of_alpha / rest->k, of_length = -rest->beta * of_B; /* of c root */
    d->k -= rest->alpha * of_A;
    d->ratio -= rest->alpha * of_B;
    d->c += root * of_length;
    d->psi += rho * rest->c * of_length;
    d->t[0] += of_A;
    d->t[1] += of_B;
    d->f += of_D;
    d->q[0] -= g[0] * of_A + g[1] * of_B + 2 * q[0] * of_D;
    d->q[1] -= rho * g[1] * of_A + (g[0] + rho * g[2]) * of_B + 2 * rho * q[1] * of_D;
    d->q[2] -= 0.5 * rho * rho * g[2] * of_A + rho * (g[1] + 0.5 * rho * g[3]) * of_B +
               rho * rho * q[2] * of_D;
    d->g[0] -= q[0] * of_A + q[1] * of_B;
    d->g[1] -= rho * q[1] * of_A + (q[0] + rho * q[2]) * of_B;
    d->g[2] -= rho * (0.5 * rho * q[2] * of_A + q[1] * of_B);
    d->g[3] -= 0.5 * rho * rho * q[2] * of_B;
    d->rho += rest->psi * rest->c * of_length - rest->beta * rest->beta * of_D -
              (q[1] * g[1] + rho * q[2] * g[2]) * of_A -
              (q[1] * g[2] + q[2] * g[1] + rho * q[2] * g[3]) * of_B -
              (q[1] * q[1] + rho * q[2] * q[2]) * of_D;
}

/* From slopes in k, kappa / k, c and psi to those in the means of powers and in rho, added. */
static void pull_residuals(const struct glm_distribution *m, struct slopes *d) {
    const struct residuals *rest = &m->rest;
    const double rho = m->rho, *g = m->powers.g, K = rest->K, C = rest->C;
    const double root = 1 + rho * rest->psi,
                 share = d->psi / (2 * root); /* rho psi^2 + 2 psi = delta / C */
    const double bend = 2 * g[1] + rho * g[3];
    const double of_delta = share / C;
    const double of_kappa = d->ratio / rest->k - 2 * of_delta * rest->kappa / K;
    const double of_K = 0.5 * (d->k - d->ratio * rest->kappa / K) / rest->k +
                        of_delta * rest->kappa * rest->kappa / (K * K);
    const double of_C =
        0.5 * d->c / rest->c - share * rest->delta / (C * C) + of_K; /* K has C in it */
    d->q[0] += of_C;
    d->q[1] += of_kappa;
    d->q[2] += of_delta;
    d->g[0] -= 2 * (g[2] * of_delta + g[0] * of_C + g[1] * of_kappa);
    d->g[1] -= 2 * (bend * of_delta + rho * g[1] * of_C + (g[0] + rho * g[2]) * of_kappa);
    d->g[2] -= 2 * (g[0] + rho * g[2]) * of_delta + rho * (2 * g[1] + 0.5 * rho * g[3]) * of_kappa +
               rho * rho * g[2] * of_K;
    d->g[3] -= rho * bend * of_delta + 0.5 * rho * rho * g[2] * of_kappa;
    d->rho -= share * rest->psi * rest->psi + (g[2] * g[2] + bend * g[3]) * of_delta +
              g[1] * g[1] * of_C + g[2] * (2 * g[1] + rho * g[3]) * of_kappa +
              rho * g[2] * g[2] * of_K;
}

/* From slopes in means of derivatives to those in the centre and in rho. */
static void add_slopes(int count, const double *slope, const double *mean, double *of_centre,
                       double *of_rho) {
    for (int k = 0; k < count; ++k) {
        *of_centre += slope[k] * mean[k + 1];
        *of_rho += 0.5 * slope[k] * mean[k + 2];
    }
}

static void gradient(void *self, double n, const double *u, const double *r, double *out) {
    struct glm_distribution *m = self;
    const struct glm_total *last = &m->last;
    const int p = m->p;
    const double root_n = sqrt(n), *g = m->powers.g, *q = m->powers.q, *a = m->a, *h = last->h,
                 *eta = last->eta;
    double square;
    const double eta_0 = u[m->w];
    const double y = weigh(m, r, &square) + linalg_dot(p, m->work.products + p, m->mean);
    const double *xy = m->work.products + p;
    double *b = last->V; /* V is read first */
    const double ratio = m->rest.kappa / m->rest.k;

    /* mean and factor of x: through x and xx', and xy given the sums that y makes */
    double *chol = m->work.chol_slope, *mean = m->work.mean_slope;
    weigh_about_mean(m);
    linalg_multiply_symmetric_lower(p, m->work.symmetric, m->chol, m->work.weighted); /* W L */
    for (int i = 0; i < p; ++i) {
        const double *row = m->work.weighted + (size_t)i * p;
        mean[i] = n * m->work.along[i] + (n * g[0] + root_n * last->Y) * xy[i] +
                  2 * root_n * linalg_dot(p, m->work.symmetric + (size_t)i * p, last->Lh);
        for (int j = 0; j <= i; ++j)
            chol[(size_t)i * p + j] =
                root_n * m->work.along[i] * h[j] + xy[i] * (n * g[1] * a[j] + root_n * last->V[j]) +
                2 * (n * row[j] + root_n * linalg_dot(p, row, last->H + (size_t)j * p));
    }

    /* the sums that y makes, functions of a, rho and g */
    pull_lower(p, m->chol, xy, b);
    const double ab = linalg_dot(p, a, b);
    struct slopes d = {
        .k = root_n * y * eta_0,
        .ratio = root_n * ab * eta_0,
        .c = root_n * (linalg_dot(p, b, eta) + m->rest.psi * last->aeta * ab),
        .psi = root_n * m->rest.c * last->aeta * ab,
        .g = {n * y + root_n * linalg_dot(p, b, h),
              n * ab + root_n * (y * last->ah + linalg_dot(p, b, last->Ha)),
              root_n * (0.5 * y * last->aHa + ab * last->ah), root_n * 0.5 * ab * last->aHa},
    };
    if (m->counts) {
        d.alpha = root_n * square * eta_0;
        d.beta = root_n * square * last->aeta;
        d.s = root_n * square * eta[p];
        d.q[0] = n * square;
        d.q[1] = root_n * square * last->ah;
        d.q[2] = root_n * square * 0.5 * last->aHa;
        pull_square(m, &d);
    }
    pull_residuals(m, &d);
    double of_centre = 0, of_rho = d.rho;
    add_slopes(4, d.g, g, &of_centre, &of_rho);
    add_slopes(3, d.q, q, &of_centre, &of_rho);
    if (m->counts) {
        add_slopes(2, d.t, m->powers.t, &of_centre, &of_rho);
        add_slopes(1, &d.f, m->powers.f, &of_centre, &of_rho);
    }
    const double along = g[2] * last->ah + 0.5 * g[3] * last->aHa + ratio * eta_0 +
                         m->rest.c * m->rest.psi * last->aeta;
    const double of_ah = root_n * (y * g[1] + ab * g[2] + square * q[1]),
                 of_aHa = root_n * (y * g[2] + ab * g[3] + square * q[2]),
                 of_aeta = root_n * (m->rest.c * m->rest.psi * ab + square * m->rest.beta);
    for (int j = 0; j < p; ++j)
        m->work.a_slope[j] = (n * g[1] + root_n * along) * b[j] +
                             root_n * g[1] * linalg_dot(p, last->H + (size_t)j * p, b) +
                             of_ah * h[j] + of_aHa * last->Ha[j] + of_aeta * eta[j] +
                             2 * of_rho * a[j];

    /* to the model's coordinates; `chol` has the scales in it, a has not */
    double *coefficients = out + m->coefficients->offset, *packed = out + m->covs->offset;
    coefficients[0] += of_centre;
    for (int i = 0; i < p; ++i) {
        const double scale = m->scale[i + 1], *row = m->chol + (size_t)i * p;
        const double natural = (m->mean[i] - m->shift[i + 1]) / scale;
        coefficients[1 + i] += of_centre * (natural - m->centre[i + 1]) +
                               linalg_dot(i + 1, row, m->work.a_slope) / scale;
        out[m->means->offset + i] += scale * mean[i] + of_centre * m->slope[i];
        for (int j = 0; j <= i; ++j) {
            const double value = scale * chol[(size_t)i * p + j] + m->slope[i] * m->work.a_slope[j];
            *packed++ += i == j ? value * row[i] / scale : value;
        }
    }
}

/* ---- mean and covariance -------------------------------------------------------------- */

/* A A' with the A of from_innovations(), row by row */
static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct glm_distribution *m = self;
    const int size = m->size, innovations = m->innovations;
    double check = 0;
    set(m, theta);
    memset(m->work.u, 0, (size_t)innovations * sizeof(double));
    make(m, 1, m->work.u, mean);
    for (int j = 0; j < size; ++j) {
        double *row = cov + (size_t)j * size;
        memset(m->work.u, 0, (size_t)innovations * sizeof(double));
        memset(m->work.r, 0, (size_t)size * sizeof(double));
        m->work.r[j] = 1;
        pull(m, 1, m->work.r, m->work.u);
        make(m, 1, m->work.u, row);
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
    struct glm_distribution *m = self;
    double share = 0;
    set(m, theta);
    for (int i = 0; i < m->p; ++i) {
        const double *row = m->chol + (size_t)i * m->p, sd = sqrt(linalg_dot(i + 1, row, row));
        share += Rf_pnorm5(m->lower[i + 1], m->mean[i], sd, 1, 0) +
                 Rf_pnorm5(m->upper[i + 1], m->mean[i], sd, 0, 0);
    }
    return share < 1 ? share : 1;
}

const struct record_moments_class moments_glm = {
    .name = "glm",
    .create = create,
    .eval = eval,
    .from_innovations = from_innovations,
    .pull = pull,
    .gradient = gradient,
    .outside = outside,
};
