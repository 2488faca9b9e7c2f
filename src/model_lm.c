/* Model "lm": y = beta_0 + beta' x + N(0, sigma^2), covariates N(mean, cov);
 * dummy columns of a factor carry its categorical level, independent of the
 * rest.
 *
 * A record has the columns y, x_1..x_p. Internally the regression is centred
 * at a fixed public point (the middle of the bounds): y - c_y = alpha +
 * sum beta_j (x_j - c_j) + e. That keeps the complete-data statistic free of
 * cancellation when bounds lie far from zero, and alpha nearly uncorrelated
 * with the slopes. R transforms the priors, `report` the draws.
 *
 * theta: alpha, slopes (k = p + 1) | log sigma | mean (pc) | rows of the lower
 * Cholesky factor of cov, logarithm on the diagonal | probabilities of the
 * factors' levels. What is known stays at its value.
 *
 * Complete-data statistic: sums of the q centred columns, then the upper
 * triangle of their products, row by row. Updates are conjugate (MATH: NIG,
 * normal with sigma given, NIW); cost O(q^2) per record, O(q^3) per update.
 */
#include "dist.h"
#include "linalg.h"
#include "plugin.h"

enum beta_prior { BETA_KNOWN, BETA_NORMAL, BETA_NIG };

struct lm {
    int p, q, k;      /* covariate columns; p + 1 columns; p + 1 coefficients */
    int pc;           /* continuous covariates */
    int *continuous;  /* their columns in a record */
    int factors;      /* factor covariates */
    int *first;       /* column of a factor's first dummy */
    int *levels;      /* its levels, one more than its dummies */
    int levels_total; /* sum of levels */
    const double *centre;

    enum beta_prior beta_prior;
    const double *beta, *beta_mean, *beta_precision; /* centred coordinates */
    const double *sigma, *sigma_shape, *sigma_rate;
    const double *mean, *mean_prior, *mean_kappa;
    const double *cov_chol, *cov_scale, *cov_df;
    const double *alpha; /* Dirichlet weights, factor after factor */
    double *cov_scale_chol;

    /* offsets in theta */
    int at_sigma, at_mean, at_chol, at_levels;

    /* current parameter, natural scale; L is dense row-major */
    double *theta, intercept, sigma_now, *chol;

    /* map of a non-centred move */
    double *move_matrix, *move_shift, *move_y, move_y_shift;
    int move_covariates;

    /* workspace */
    double *gram, *solution, *draw, *square, *bartlett, *chol_new;
    double *innovation; /* q columns of MAX_BLOCK */
    double *coef;
    const double **column;
    double *probability;
};

/* ---- small helpers ------------------------------------------------------ */

static int packed(int i, int j) { return i * (i + 1) / 2 + j; }

/* index in the complete-data statistic of the product of columns i <= j */
static int product_at(const struct lm *lm, int i, int j) {
    return lm->q + i * lm->q - i * (i - 1) / 2 + (j - i);
}

static double product(const struct lm *lm, const double *c, int i, int j) {
    return c[i <= j ? product_at(lm, i, j) : product_at(lm, j, i)];
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* (v - centre)' P (v - centre) */
static double quadratic(int n, const double *precision, const double *v, const double *centre) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            sum += precision[(size_t)i * n + j] * (v[i] - centre[i]) * (v[j] - centre[j]);
    return sum;
}

static void unpack_chol(const struct lm *lm, const double *theta, double *chol) {
    const double *row = theta + lm->at_chol;
    for (int i = 0; i < lm->pc; ++i) {
        for (int j = 0; j < lm->pc; ++j)
            chol[(size_t)i * lm->pc + j] = j < i ? row[packed(i, j)] : 0;
        chol[(size_t)i * lm->pc + i] = exp(row[packed(i, i)]);
    }
}

static void pack_chol(const struct lm *lm, const double *chol, double *theta) {
    double *row = theta + lm->at_chol;
    for (int i = 0; i < lm->pc; ++i) {
        for (int j = 0; j < i; ++j) row[packed(i, j)] = chol[(size_t)i * lm->pc + j];
        row[packed(i, i)] = log(chol[(size_t)i * lm->pc + i]);
    }
}

static double natural_intercept(const struct lm *lm, const double *theta) {
    return lm->centre[0] + theta[0] - dot(lm->p, theta + 1, lm->centre + 1);
}

/* ---- set-up ------------------------------------------------------------- */

static int *integers(const struct fields *fields, const char *name, int count) {
    const double *value = fields_vector(fields, name, count);
    if (!value) return NULL;
    int *out = plugin_memory((size_t)count, sizeof *out);
    for (int i = 0; i < count; ++i) out[i] = (int)value[i];
    return out;
}

static int create(const struct fields *fields, struct model *model) {
    struct lm *lm = plugin_memory(1, sizeof *lm);
    lm->q = fields_length(fields, "centre");
    lm->p = lm->q - 1;
    lm->k = lm->q;
    lm->pc = fields_length(fields, "continuous");
    lm->factors = fields_length(fields, "factor_levels");
    const int k = lm->k, pc = lm->pc, triangle = pc * (pc + 1) / 2;
    lm->centre = fields_vector(fields, "centre", lm->q);
    lm->continuous = integers(fields, "continuous", pc);
    lm->first = integers(fields, "factor_first", lm->factors);
    lm->levels = integers(fields, "factor_levels", lm->factors);
    if (!lm->centre || !lm->continuous || !lm->first || !lm->levels) return PLUGIN_BAD_FIELDS;
    for (int f = 0; f < lm->factors; ++f) lm->levels_total += lm->levels[f];

    lm->beta = fields_vector(fields, "beta", k);
    lm->beta_mean = fields_vector(fields, "beta_mean", k);
    lm->beta_precision = fields_vector(fields, "beta_precision", k * k);
    const double *nig = fields_vector(fields, "beta_nig", 1);
    lm->sigma = fields_vector(fields, "sigma", 1);
    lm->sigma_shape = fields_vector(fields, "sigma_shape", 1);
    lm->sigma_rate = fields_vector(fields, "sigma_rate", 1);
    lm->mean = fields_vector(fields, "mean", pc);
    lm->mean_prior = fields_vector(fields, "mean_prior", pc);
    lm->mean_kappa = fields_vector(fields, "mean_kappa", 1);
    lm->cov_chol = fields_vector(fields, "cov_chol", pc * pc);
    lm->cov_scale = fields_vector(fields, "cov_scale", pc * pc);
    lm->cov_df = fields_vector(fields, "cov_df", 1);
    lm->alpha = fields_vector(fields, "alpha", lm->levels_total);
    const int known = (lm->beta || (lm->beta_mean && lm->beta_precision && nig)) &&
                      (lm->sigma || (lm->sigma_shape && lm->sigma_rate)) &&
                      (lm->mean || (lm->mean_prior && lm->mean_kappa)) &&
                      (lm->cov_chol || (lm->cov_scale && lm->cov_df)) && lm->alpha;
    if (!known) return PLUGIN_BAD_FIELDS;
    lm->beta_prior = lm->beta ? BETA_KNOWN : *nig != 0 ? BETA_NIG : BETA_NORMAL;

    lm->at_sigma = k;
    lm->at_mean = k + 1;
    lm->at_chol = lm->at_mean + pc;
    lm->at_levels = lm->at_chol + triangle;

    lm->theta = plugin_memory((size_t)(lm->at_levels + lm->levels_total), sizeof(double));
    const size_t kk = (size_t)k * k, cc = (size_t)pc * pc;
    lm->chol = plugin_memory(cc, sizeof(double));
    lm->move_matrix = plugin_memory(cc, sizeof(double));
    lm->move_shift = plugin_memory((size_t)pc, sizeof(double));
    lm->move_y = plugin_memory((size_t)lm->q, sizeof(double));
    lm->gram = plugin_memory(kk, sizeof(double));
    lm->solution = plugin_memory((size_t)k, sizeof(double));
    lm->draw = plugin_memory((size_t)k, sizeof(double));
    lm->square = plugin_memory(cc, sizeof(double));
    lm->bartlett = plugin_memory(cc, sizeof(double));
    lm->chol_new = plugin_memory(cc, sizeof(double));
    lm->innovation = plugin_memory((size_t)lm->q * MAX_BLOCK, sizeof(double));
    lm->coef = plugin_memory((size_t)(3 * lm->q), sizeof(double));
    lm->column = plugin_memory((size_t)(3 * lm->q), sizeof(double *));
    lm->probability = plugin_memory((size_t)lm->levels_total, sizeof(double));
    if (lm->cov_scale) {
        lm->cov_scale_chol = plugin_memory(cc, sizeof(double));
        memcpy(lm->cov_scale_chol, lm->cov_scale, cc * sizeof(double));
        if (linalg_cholesky(pc, lm->cov_scale_chol)) return PLUGIN_BAD_FIELDS;
    }

    model->self = lm;
    model->columns = lm->q;
    model->parameters = lm->at_levels + lm->levels_total;
    model->complete = lm->q + lm->q * (lm->q + 1) / 2;
    model->moves = plugin_memory((size_t)model->parameters, sizeof *model->moves);
    model->moving = 0;
    for (int j = 0; j < lm->at_levels; ++j) {
        const int known_j = j < k             ? lm->beta != NULL
                            : j < lm->at_mean ? lm->sigma != NULL
                            : j < lm->at_chol ? lm->mean != NULL
                                              : lm->cov_chol != NULL;
        if (!known_j) model->moves[model->moving++] = j;
    }
    model->reported = model->moving + lm->levels_total;
    return PLUGIN_OK;
}

/* ---- prior -------------------------------------------------------------- */

/* beta ~ N(mean, scale^2 precision^-1), through the Cholesky factor in gram */
static void draw_beta(struct lm *lm, struct rng *rng, const double *mean, double scale,
                      double *beta) {
    for (int j = 0; j < lm->k; ++j) lm->draw[j] = rng_normal(rng);
    linalg_backward(lm->k, lm->gram, lm->draw);
    for (int j = 0; j < lm->k; ++j) beta[j] = mean[j] + scale * lm->draw[j];
}

static double draw_log_sigma(struct rng *rng, double shape, double rate) {
    return 0.5 * log(rate / dist_gamma(rng, shape));
}

static void draw_mean(struct lm *lm, struct rng *rng, const double *centre, double kappa,
                      const double *chol, double *mean) {
    const int pc = lm->pc;
    for (int j = 0; j < pc; ++j) lm->draw[j] = rng_normal(rng);
    for (int i = 0; i < pc; ++i)
        mean[i] = centre[i] + dot(i + 1, chol + (size_t)i * pc, lm->draw) / sqrt(kappa);
}

static void rprior(void *self, struct rng *rng, double *theta) {
    struct lm *lm = self;
    const int k = lm->k, pc = lm->pc;
    theta[lm->at_sigma] =
        lm->sigma ? log(*lm->sigma) : draw_log_sigma(rng, *lm->sigma_shape, *lm->sigma_rate);
    if (lm->beta) {
        memcpy(theta, lm->beta, (size_t)k * sizeof(double));
    } else {
        memcpy(lm->gram, lm->beta_precision, (size_t)k * k * sizeof(double));
        (void)linalg_cholesky(k, lm->gram); /* checked in R */
        const double scale = lm->beta_prior == BETA_NIG ? exp(theta[lm->at_sigma]) : 1;
        draw_beta(lm, rng, lm->beta_mean, scale, theta);
    }
    if (lm->cov_chol)
        memcpy(lm->chol_new, lm->cov_chol, (size_t)pc * pc * sizeof(double));
    else
        dist_inverse_wishart(rng, pc, *lm->cov_df, lm->cov_scale_chol, lm->chol_new, lm->bartlett);
    pack_chol(lm, lm->chol_new, theta);
    if (lm->mean)
        memcpy(theta + lm->at_mean, lm->mean, (size_t)pc * sizeof(double));
    else
        draw_mean(lm, rng, lm->mean_prior, *lm->mean_kappa, lm->chol_new, theta + lm->at_mean);
    for (int f = 0, at = 0; f < lm->factors; at += lm->levels[f++])
        dist_dirichlet(rng, lm->levels[f], lm->alpha + at, theta + lm->at_levels + at);
}

/* In the coordinates of theta: d sigma^2 = 2 sigma^2 d log sigma, and
 * d cov = prod_i 2 L_ii^(pc - i) L_ii d theta (i from 0). Level probabilities
 * do not move, so their density is left out. */
static double dprior(void *self, const double *theta) {
    struct lm *lm = self;
    const int pc = lm->pc;
    const double log_sigma = theta[lm->at_sigma];
    double log_density = 0;
    if (lm->beta_prior == BETA_NORMAL)
        log_density -= 0.5 * quadratic(lm->k, lm->beta_precision, theta, lm->beta_mean);
    if (lm->beta_prior == BETA_NIG)
        log_density -=
            lm->k * log_sigma +
            0.5 * exp(-2 * log_sigma) * quadratic(lm->k, lm->beta_precision, theta, lm->beta_mean);
    if (!lm->sigma)
        log_density -= 2 * *lm->sigma_shape * log_sigma + *lm->sigma_rate * exp(-2 * log_sigma);
    if (!lm->mean || !lm->cov_chol) unpack_chol(lm, theta, lm->chol_new);
    if (!lm->cov_chol) {
        /* tr(Psi Sigma^-1) = |L^-1 C|^2, column by column */
        for (int j = 0; j < pc; ++j) {
            for (int i = 0; i < pc; ++i)
                lm->draw[i] = i >= j ? lm->cov_scale_chol[(size_t)i * pc + j] : 0;
            linalg_forward(pc, lm->chol_new, lm->draw);
            log_density -= 0.5 * dot(pc, lm->draw, lm->draw);
            log_density -= (*lm->cov_df + j) * theta[lm->at_chol + packed(j, j)];
        }
    }
    if (!lm->mean) {
        for (int i = 0; i < pc; ++i) {
            lm->draw[i] = theta[lm->at_mean + i] - lm->mean_prior[i];
            log_density -= theta[lm->at_chol + packed(i, i)];
        }
        linalg_forward(pc, lm->chol_new, lm->draw);
        log_density -= 0.5 * *lm->mean_kappa * dot(pc, lm->draw, lm->draw);
    }
    return log_density;
}

static void report(void *self, const double *theta, double *out) {
    struct lm *lm = self;
    const int pc = lm->pc;
    if (!lm->beta) {
        *out++ = natural_intercept(lm, theta);
        for (int j = 1; j < lm->k; ++j) *out++ = theta[j];
    }
    if (!lm->sigma) *out++ = exp(theta[lm->at_sigma]);
    if (!lm->mean)
        for (int i = 0; i < pc; ++i) *out++ = theta[lm->at_mean + i];
    if (!lm->cov_chol) {
        unpack_chol(lm, theta, lm->chol_new);
        for (int i = 0; i < pc; ++i)
            for (int j = 0; j <= i; ++j)
                *out++ = dot(j + 1, lm->chol_new + (size_t)i * pc, lm->chol_new + (size_t)j * pc);
    }
    for (int l = 0; l < lm->levels_total; ++l) *out++ = theta[lm->at_levels + l];
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct lm *lm = self;
    memcpy(lm->theta, theta, (size_t)(lm->at_levels + lm->levels_total) * sizeof(double));
    lm->intercept = natural_intercept(lm, theta);
    lm->sigma_now = exp(theta[lm->at_sigma]);
    unpack_chol(lm, theta, lm->chol);
}

/* out = shift + sum of coef * column: up to four terms in one pass */
VECTOR_CLONES static void combine(int m, double shift, int terms, const double *coef,
                                  const double *const *column, double *restrict out) {
    const double *restrict a = terms > 0 ? column[0] : NULL;
    const double *restrict b = terms > 1 ? column[1] : NULL;
    const double *restrict c = terms > 2 ? column[2] : NULL;
    const double *restrict d = terms > 3 ? column[3] : NULL;
    const double ca = terms > 0 ? coef[0] : 0, cb = terms > 1 ? coef[1] : 0;
    const double cc = terms > 2 ? coef[2] : 0, cd = terms > 3 ? coef[3] : 0;
    switch (terms) {
    case 0:
        FOR_RECORDS(i, m) out[i] = shift;
        return;
    case 1:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i];
        return;
    case 2:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i];
        return;
    case 3:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i] + cc * c[i];
        return;
    default:
        FOR_RECORDS(i, m) out[i] = shift + ca * a[i] + cb * b[i] + cc * c[i] + cd * d[i];
    }
    for (int k = 4; k < terms; ++k) {
        const double *restrict e = column[k];
        const double ce = coef[k];
        FOR_RECORDS(i, m) out[i] += ce * e[i];
    }
}

/* a term with coefficient 0 costs nothing */
static int add_term(struct lm *lm, int terms, double coef, const double *column) {
    if (coef == 0) return terms;
    lm->coef[terms] = coef;
    lm->column[terms] = column;
    return terms + 1;
}

/* Level of a factor, kept with probability rho, else drawn afresh. */
static void refresh_levels(struct lm *lm, double rho, struct rng *rng, int m,
                           const double *const *x, double *const *x_new) {
    for (int f = 0, at = lm->at_levels; f < lm->factors; at += lm->levels[f++]) {
        const double *probability = lm->theta + at;
        const int dummies = lm->levels[f] - 1, first = lm->first[f];
        double *u = lm->innovation;
        rng_fill_uniform(rng, m, u);
        for (int i = 0; i < m; ++i) {
            if (u[i] < rho) {
                for (int l = 0; l < dummies; ++l) x_new[first + l][i] = x[first + l][i];
                continue;
            }
            double left = (u[i] - rho) / (1 - rho);
            int level = 0;
            while (level < dummies && left >= probability[level]) left -= probability[level++];
            for (int l = 0; l < dummies; ++l) x_new[first + l][i] = level == l + 1;
        }
    }
}

/* x* = mean + rho (x - mean) + sqrt(1 - rho^2) L xi, and likewise for y's
 * residual. With rho = 0 the old records are not looked at. */
static void perturb(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new) {
    struct lm *lm = self;
    const int pc = lm->pc;
    const double fresh = sqrt(1 - rho * rho);
    refresh_levels(lm, rho, rng, m, x, x_new);
    for (int j = 0; j <= pc; ++j) rng_fill_normal(rng, m, lm->innovation + (size_t)j * MAX_BLOCK);
    for (int i = 0; i < pc; ++i) {
        const int v = lm->continuous[i];
        int terms = 0;
        for (int j = 0; j <= i; ++j)
            terms = add_term(lm, terms, fresh * lm->chol[(size_t)i * pc + j],
                             lm->innovation + (size_t)j * MAX_BLOCK);
        if (rho != 0) terms = add_term(lm, terms, rho, x[v]);
        combine(m, (1 - rho) * lm->theta[lm->at_mean + i], terms, lm->coef, lm->column, x_new[v]);
    }
    int terms = add_term(lm, 0, fresh * lm->sigma_now, lm->innovation + (size_t)pc * MAX_BLOCK);
    for (int v = 1; v < lm->q; ++v) terms = add_term(lm, terms, lm->theta[v], x_new[v]);
    if (rho != 0) {
        terms = add_term(lm, terms, rho, x[0]);
        for (int v = 1; v < lm->q; ++v) terms = add_term(lm, terms, -rho * lm->theta[v], x[v]);
    }
    combine(m, (1 - rho) * lm->intercept, terms, lm->coef, lm->column, x_new[0]);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    perturb(self, 0, rng, m, NULL, x);
}

/* ---- non-centred move: x' = mean' + L' L^-1 (x - mean),
 *      y' = mu'(x') + (sigma' / sigma)(y - mu(x)), one affine map ---------- */

static void set_move(void *self, const double *theta_new, int *changed) {
    struct lm *lm = self;
    const int pc = lm->pc, p = lm->p;
    const double *mean = lm->theta + lm->at_mean, *mean_new = theta_new + lm->at_mean;
    const size_t covariate_bytes = (size_t)(lm->at_levels - lm->at_mean) * sizeof(double);
    lm->move_covariates = memcmp(mean, mean_new, covariate_bytes) != 0;

    const double ratio = exp(theta_new[lm->at_sigma] - lm->theta[lm->at_sigma]);
    const double *slope_new = theta_new + 1, *slope = lm->theta + 1;
    lm->move_y[0] = ratio;
    lm->move_y_shift = natural_intercept(lm, theta_new) - ratio * lm->intercept;
    for (int j = 0; j < p; ++j) lm->move_y[j + 1] = slope_new[j] - ratio * slope[j];
    for (int v = 0; v < lm->q; ++v) changed[v] = 0;
    changed[0] = 1;
    if (!lm->move_covariates) return;

    /* M L = L': row i of M from the last column back */
    unpack_chol(lm, theta_new, lm->chol_new);
    for (int i = 0; i < pc; ++i) {
        double *row = lm->move_matrix + (size_t)i * pc;
        for (int j = i; j >= 0; --j) {
            double sum = lm->chol_new[(size_t)i * pc + j];
            for (int l = j + 1; l <= i; ++l) sum -= row[l] * lm->chol[(size_t)l * pc + j];
            row[j] = sum / lm->chol[(size_t)j * pc + j];
        }
        lm->move_shift[i] = mean_new[i] - dot(i + 1, row, mean);
        changed[lm->continuous[i]] = 1;
    }
    /* y' in terms of the old columns */
    for (int j = 0; j < pc; ++j)
        lm->move_y[lm->continuous[j]] = -ratio * slope[lm->continuous[j] - 1];
    for (int i = 0; i < pc; ++i) {
        const double b = slope_new[lm->continuous[i] - 1];
        lm->move_y_shift += b * lm->move_shift[i];
        for (int j = 0; j <= i; ++j)
            lm->move_y[lm->continuous[j]] += b * lm->move_matrix[(size_t)i * pc + j];
    }
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng; /* innovations of continuous records are known */
    struct lm *lm = self;
    const int pc = lm->pc;
    if (lm->move_covariates) {
        for (int i = 0; i < pc; ++i) {
            int terms = 0;
            for (int j = 0; j <= i; ++j)
                terms =
                    add_term(lm, terms, lm->move_matrix[(size_t)i * pc + j], x[lm->continuous[j]]);
            combine(m, lm->move_shift[i], terms, lm->coef, lm->column, x_new[lm->continuous[i]]);
        }
    }
    int terms = 0;
    for (int v = 0; v < lm->q; ++v) terms = add_term(lm, terms, lm->move_y[v], x[v]);
    combine(m, lm->move_y_shift, terms, lm->coef, lm->column, x_new[0]);
}

/* ---- complete-data statistic and its update ----------------------------- */

VECTOR_CLONES static void add(void *self, double sign, int m, const double *const *x, double *c) {
    struct lm *lm = self;
    for (int v = 0; v < lm->q; ++v) {
        double *centred = lm->innovation + (size_t)v * MAX_BLOCK;
        const double one = 1;
        combine(m, -lm->centre[v], 1, &one, &x[v], centred);
        c[v] += sign * block_sum(m, centred);
    }
    for (int i = 0; i < lm->q; ++i)
        for (int j = i; j < lm->q; ++j)
            c[product_at(lm, i, j)] += sign * block_dot(m, lm->innovation + (size_t)i * MAX_BLOCK,
                                                        lm->innovation + (size_t)j * MAX_BLOCK);
}

/* X'X, X'y, y'y of the centred regression, read from c */
static double gram_entry(const struct lm *lm, const double *c, double n, int i, int j) {
    if (i == 0) return j == 0 ? n : c[j];
    return j == 0 ? c[i] : product(lm, c, i, j);
}

static double gram_response(const struct lm *lm, const double *c, int i) {
    return i == 0 ? c[0] : product(lm, c, 0, i);
}

static int update_regression(struct lm *lm, const double *c, double n, struct rng *rng,
                             double *theta) {
    const int k = lm->k;
    double log_sigma = theta[lm->at_sigma];
    if (!lm->beta) {
        /* NIG works in units of sigma^2, the independent normal does not */
        const int nig = lm->beta_prior == BETA_NIG;
        const double weight = nig ? 1 : exp(-2 * log_sigma);
        double prior_square = 0;
        for (int i = 0; i < k; ++i) {
            double pull = 0;
            for (int j = 0; j < k; ++j) {
                const double precision = lm->beta_precision[(size_t)i * k + j];
                lm->gram[(size_t)i * k + j] = weight * gram_entry(lm, c, n, i, j) + precision;
                pull += precision * lm->beta_mean[j];
            }
            prior_square += pull * lm->beta_mean[i];
            lm->solution[i] = weight * gram_response(lm, c, i) + pull;
        }
        if (linalg_cholesky(k, lm->gram)) return PLUGIN_NUMERICAL;
        linalg_forward(k, lm->gram, lm->solution);
        if (nig && !lm->sigma) {
            /* mu_n' Lambda_n mu_n is the squared length of L^-1 of the right side */
            const double excess =
                product(lm, c, 0, 0) + prior_square - dot(k, lm->solution, lm->solution);
            /* never below b_0 but for rounding */
            const double rate = *lm->sigma_rate + 0.5 * (excess > 0 ? excess : 0);
            log_sigma = draw_log_sigma(rng, *lm->sigma_shape + 0.5 * n, rate);
            theta[lm->at_sigma] = log_sigma;
        }
        linalg_backward(k, lm->gram, lm->solution);
        draw_beta(lm, rng, lm->solution, nig ? exp(log_sigma) : 1, theta);
    }
    if (!lm->sigma && lm->beta_prior != BETA_NIG) {
        double residual = product(lm, c, 0, 0);
        for (int i = 0; i < k; ++i) {
            residual -= 2 * theta[i] * gram_response(lm, c, i);
            for (int j = 0; j < k; ++j)
                residual += theta[i] * theta[j] * gram_entry(lm, c, n, i, j);
        }
        const double rate = *lm->sigma_rate + 0.5 * (residual > 0 ? residual : 0);
        theta[lm->at_sigma] = draw_log_sigma(rng, *lm->sigma_shape + 0.5 * n, rate);
    }
    return PLUGIN_OK;
}

static int update_covariates(struct lm *lm, const double *c, double n, struct rng *rng,
                             double *theta) {
    const int pc = lm->pc;
    double *mean = theta + lm->at_mean;
    double *average = lm->solution;
    for (int i = 0; i < pc; ++i) average[i] = c[lm->continuous[i]] / n; /* centred */
    if (!lm->cov_chol) {
        /* scatter about the known mean, or about the average and the prior's mean */
        const double kappa = lm->mean ? 0 : *lm->mean_kappa * n / (*lm->mean_kappa + n);
        for (int i = 0; i < pc; ++i) {
            const int vi = lm->continuous[i];
            for (int j = 0; j <= i; ++j) {
                const int vj = lm->continuous[j];
                double scatter = product(lm, c, vi, vj) - n * average[i] * average[j];
                if (lm->mean)
                    scatter += n * (average[i] + lm->centre[vi] - mean[i]) *
                               (average[j] + lm->centre[vj] - mean[j]);
                else
                    scatter += kappa * (average[i] + lm->centre[vi] - lm->mean_prior[i]) *
                               (average[j] + lm->centre[vj] - lm->mean_prior[j]);
                lm->square[(size_t)i * pc + j] = lm->cov_scale[(size_t)i * pc + j] + scatter;
            }
        }
        if (linalg_cholesky(pc, lm->square)) return PLUGIN_NUMERICAL;
        dist_inverse_wishart(rng, pc, *lm->cov_df + n, lm->square, lm->chol_new, lm->bartlett);
        pack_chol(lm, lm->chol_new, theta);
    }
    if (!lm->mean) {
        const double kappa = *lm->mean_kappa + n;
        if (lm->cov_chol) memcpy(lm->chol_new, lm->cov_chol, (size_t)pc * pc * sizeof(double));
        for (int i = 0; i < pc; ++i)
            average[i] = (*lm->mean_kappa * lm->mean_prior[i] +
                          n * (average[i] + lm->centre[lm->continuous[i]])) /
                         kappa;
        draw_mean(lm, rng, average, kappa, lm->chol_new, mean);
    }
    return PLUGIN_OK;
}

static void update_levels(struct lm *lm, const double *c, double n, struct rng *rng,
                          double *theta) {
    for (int f = 0, at = 0; f < lm->factors; at += lm->levels[f++]) {
        double *weight = lm->probability + at, rest = n;
        for (int l = 1; l < lm->levels[f]; ++l) {
            const int v = lm->first[f] + l - 1;
            const double count = c[v] + n * lm->centre[v];
            weight[l] = lm->alpha[at + l] + count;
            rest -= count;
        }
        weight[0] = lm->alpha[at] + (rest > 0 ? rest : 0);
        dist_dirichlet(rng, lm->levels[f], weight, theta + lm->at_levels + at);
    }
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct lm *lm = self;
    int status = update_regression(lm, c, n, rng, theta);
    if (status == PLUGIN_OK) status = update_covariates(lm, c, n, rng, theta);
    if (status == PLUGIN_OK) update_levels(lm, c, n, rng, theta);
    return status;
}

const struct model_class model_lm = {
    .name = "lm",
    .create = create,
    .rprior = rprior,
    .dprior = dprior,
    .report = report,
    .set = set,
    .rrecords = rrecords,
    .perturb = perturb,
    .set_move = set_move,
    .move = move,
    .add = add,
    .rtheta = rtheta,
};
