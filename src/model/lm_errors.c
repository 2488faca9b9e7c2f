/* Model "lm" with Student-t errors: y = eta + sigma e / sqrt(w), e normal, w ~ Gamma(df / 2, df /
 * 2), a scale mixture of normals (Geweke 1993, Journal of Applied Econometrics 8). A record has no
 * column for w: its y has the t distribution, and w is drawn given the residual, Gamma((df + 1) /
 * 2, (df + r^2) / 2), wherever it is needed.
 *
 * Partial refresh: w given the residual, then e is refreshed with w held. Reversible, as that is so
 * for each w. Move: e and the innovation of w are held (model/gamma_shape.c), so that the residual
 * is multiplied by sqrt(w / w'); where df stays w need not be drawn.
 *
 * Complete-data statistic, from `at_complete` on: with Z the centred columns of the coefficients,
 * the upper triangle of Z'WZ, Z'Wy and y'Wy. Given these the coefficients and sigma have the
 * updates of normal errors. df then walks under the density of the records without their weights,
 * which would slow it down. Cost of a record: a gamma variable and O(k^2).
 *
 * df has a Gamma prior, truncated below 1: smaller values are of no use, and their records would
 * be too large for any total.
 */
#include "model/lm_errors.h"

#include "base/dist.h"
#include "base/memory.h"

#include <Rmath.h>
#undef df /* the name of a field here */

/* log of the least df */
static const double LEAST = 0;

int errors_read(const struct fields *fields, struct errors *errors) {
    const double *prior = fields_vector(fields, "errors_df_gamma", 2);
    errors->known = fields_vector(fields, "errors_df", 1);
    if (!errors->known && !prior) return PLUGIN_BAD_FIELDS;
    if (errors->known) {
        errors->log_known = log(*errors->known);
    } else {
        errors->shape = prior[0];
        errors->rate = prior[1];
        errors->above = Rf_pgamma(exp(LEAST), errors->shape, 1 / errors->rate, 0, 0);
    }
    DOUBLES(MAX_BLOCK, &errors->weight, &errors->residual, &errors->weighted);
    return PLUGIN_OK;
}

struct theta_block errors_block(const struct errors *errors) {
    return (struct theta_block){.name = "df",
                                .transform = TRANSFORM_LOG,
                                .size = 1,
                                .known = errors->known ? &errors->log_known : NULL};
}

double errors_draw_log_df(const struct errors *errors, struct rng *rng) {
    const double beyond = errors->above * rng_uniform(rng);
    return fmax(log(Rf_qgamma(beyond, errors->shape, 1 / errors->rate, 0, 0)), LEAST);
}

double errors_dprior(const struct errors *errors, double log_df) {
    if (log_df < LEAST) return -INFINITY;
    return errors->shape * log_df - errors->rate * exp(log_df);
}

void errors_fresh(const struct errors *errors, struct rng *rng, int m, double *innovation) {
    for (int i = 0; i < m; ++i) innovation[i] /= sqrt(gamma_shape_draw(rng, 0.5 * errors->df));
}

/* residual: y - eta */
static const double *draw_weights(struct errors *errors, struct rng *rng, double sigma, int m,
                                  const double *residual) {
    const double df = errors->df, precision = 1 / (sigma * sigma);
    for (int i = 0; i < m; ++i)
        errors->weight[i] = fmax(dist_gamma(rng, 0.5 * (df + 1)), GAMMA_LEAST) /
                            (0.5 * (df + residual[i] * residual[i] * precision));
    return errors->weight;
}

static const double *residuals(struct errors *errors, int m, const double *eta, const double *y) {
    double *restrict residual = errors->residual;
    FOR_RECORDS(i, m) residual[i] = y[i] - eta[i];
    return residual;
}

void errors_refresh(struct errors *errors, struct rng *rng, double sigma, int m, const double *eta,
                    const double *y, double *innovation) {
    const double *weight = draw_weights(errors, rng, sigma, m, residuals(errors, m, eta, y));
    for (int i = 0; i < m; ++i) innovation[i] /= sqrt(weight[i]);
}

void errors_set_next(struct errors *errors, double log_df) {
    errors->df_next = exp(log_df);
    if (errors->df_next != errors->df)
        errors->move = gamma_shape_move(0.5 * errors->df, 0.5 * errors->df_next);
}

void errors_move(struct errors *errors, struct rng *rng, double sigma, double ratio, int m,
                 const double *eta, const double *eta_new, const double *y, double *y_new) {
    const double *residual = residuals(errors, m, eta, y);
    if (errors->df_next == errors->df) {
        FOR_RECORDS(i, m) y_new[i] = eta_new[i] + ratio * residual[i];
        return;
    }
    const double *weight = draw_weights(errors, rng, sigma, m, residual);
    for (int i = 0; i < m; ++i) {
        const double next = gamma_shape_carry(&errors->move, rng, weight[i]);
        y_new[i] = eta_new[i] + ratio * sqrt(weight[i] / next) * residual[i];
    }
}

void errors_add(struct errors *errors, struct rng *rng, const struct predictor *predictor,
                const struct moments *moments, double sigma, int m, const double *eta,
                const double *y, double *c) {
    const int k = predictor->k;
    const double *weight = draw_weights(errors, rng, sigma, m, residuals(errors, m, eta, y));
    const double *centred = moments->centred; /* y's column is the first */
    double *weighted = errors->weighted;
    c += errors->at_complete;
    predictor_add_weighted(predictor, moments, m, weight, weighted, c);
    c += k * (k + 1) / 2;
    FOR_RECORDS(i, m) weighted[i] = weight[i] * centred[i];
    predictor_add_sums(predictor, moments, m, weighted, c);
    c[k] += block_dot(m, weighted, centred);
}

/* log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(df) / 2 but for a constant; no digit is lost
 * where df is large */
static double log_constant(double df) {
    const double a = 0.5 * df, b = a + 0.5;
    return b * log1p(0.5 / a) + gamma_shape_constant(a) - gamma_shape_constant(b);
}

double errors_log_density(struct errors *errors, double sigma, int m, const double *eta,
                          const double *y) {
    const double df = errors->df, scale = 1 / (df * sigma * sigma);
    const double *residual = residuals(errors, m, eta, y);
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += log1p(residual[i] * residual[i] * scale);
    return m * (log_constant(df) - log(sigma)) - 0.5 * (df + 1) * sum;
}

double errors_gram(const struct errors *errors, const double *c, int k, int i, int j) {
    const int a = i <= j ? i : j, b = i <= j ? j : i;
    return c[errors->at_complete + a * k - a * (a - 1) / 2 + (b - a)];
}

double errors_response(const struct errors *errors, const double *c, int k, int i) {
    return c[errors->at_complete + k * (k + 1) / 2 + i];
}

double errors_square(const struct errors *errors, const double *c, int k) {
    return errors_response(errors, c, k, k);
}
