/* Mechanism "objective": the published coefficients z minimise
 *   sum of losses + ridge |z|^2 / 2 + b'z
 * with noise b (Kifer, Smith & Thakurta 2012, Algorithm 1). So
 *   b = -(gradient + ridge z),  |db / dz| = det(Hessian + ridge I),
 * and the log density of z is log det(Hessian + ridge I) plus that of b: -|b| / scale
 * or -|b|^2 / (2 scale^2), up to a constant; |b| is the Euclidean length, or for the first
 * the largest absolute component (Awan & Slavkovic 2021).
 *
 * The statistic is the gradient and the Hessian's lower triangle, summed over the records at z;
 * nothing is published of them, so the noise argument is minus them. Cost of a candidate: a
 * Cholesky factorisation of d x d.
 */
#include "base/linalg.h"
#include "contract/mech.h"

struct objective {
    int d, squared, largest;
    double ridge, scale;
    const double *coefficients;
    double *hessian; /* d x d */
};

static void log_density(void *self, int candidates, int stride, const double *noise, double *out) {
    const struct objective *m = self;
    const int d = m->d;
    for (int i = 0; i < candidates; ++i) {
        const double *at = noise + i;
        double sum = 0, largest = 0, determinant = 0;
        for (int j = 0; j < d; ++j, at += stride) {
            const double b = *at - m->ridge * m->coefficients[j];
            sum += b * b;
            largest = fmax(largest, fabs(b));
        }
        for (int j = 0; j < d; ++j)
            for (int k = 0; k <= j; ++k, at += stride)
                m->hessian[j * d + k] = (j == k ? m->ridge : 0) - *at;
        if (linalg_cholesky(d, m->hessian) != 0) {
            out[i] = -INFINITY; /* rounding, if the ridge is next to nothing */
            continue;
        }
        for (int j = 0; j < d; ++j) determinant += 2 * log(m->hessian[j * d + j]);
        const double length = (m->largest ? largest : sqrt(sum)) / m->scale;
        out[i] = determinant - (m->squared ? 0.5 * length * length : length);
    }
}

static int create(const struct fields *fields, struct density *density) {
    struct objective *m = plugin_memory(1, sizeof *m);
    m->d = fields_length(fields, "coefficients");
    m->coefficients = fields_vector(fields, "coefficients", m->d);
    const double *ridge = fields_vector(fields, "ridge", 1);
    const double *scale = fields_vector(fields, "scale", 1);
    const double *squared = fields_vector(fields, "squared", 1);
    const double *largest = fields_vector(fields, "largest", 1);
    if (!m->coefficients || !ridge || !scale || !squared || !largest) return PLUGIN_BAD_FIELDS;
    m->ridge = *ridge;
    m->scale = *scale;
    m->squared = *squared != 0;
    m->largest = *largest != 0;
    m->hessian = plugin_memory((size_t)m->d * (size_t)m->d, sizeof *m->hessian);
    density->self = m;
    density->log_density = log_density;
    return PLUGIN_OK;
}

const struct density_class mech_objective = {
    .name = "objective",
    .create = create,
};
