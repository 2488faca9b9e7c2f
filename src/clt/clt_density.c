/* Method "clt": the density of the noise, and the normal distribution at a theta; see
 * clt/clt_chain.c. */
#include "clt/clt.h"

#include "base/linalg.h"

int clt_set_moments(const struct clt *a, const double *theta, struct distribution *totals) {
    return a->moments.class->eval(a->moments.self, theta, totals->mean, totals->cov);
}

/* factor and log density from the moments; PLUGIN_NUMERICAL if not positive definite */
int clt_set_density(const struct clt *a, struct distribution *totals) {
    const int d = a->size, w = a->wide;
    for (int i = 0; i < d; ++i) {
        const double *restrict cov = totals->cov + (size_t)i * w;
        double *restrict row = totals->factor + (size_t)i * d;
        for (int j = 0; j <= i; ++j) row[j] = a->n * cov[j];
        row[i] += a->ridge[i] + a->variance[i];
        totals->white[i] = a->noise.released[i] - a->n * totals->mean[i];
    }
    if (linalg_cholesky(d, totals->factor) != 0) return PLUGIN_NUMERICAL;
    linalg_forward(d, totals->factor, totals->white);
    double square = 0, log_pivots = 0, product = 1;
    for (int i = 0; i < d; ++i) {
        square += totals->white[i] * totals->white[i];
        product *= totals->factor[(size_t)i * d + i];
        if (!(product > 1e-100 && product < 1e100)) {
            log_pivots += log(product);
            product = 1;
        }
    }
    totals->log_density = -0.5 * square - log_pivots - log(product);
    return isfinite(totals->log_density) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

int clt_set_distribution(const struct clt *a, const double *theta, struct distribution *totals) {
    return clt_set_moments(a, theta, totals) == PLUGIN_OK &&
           clt_set_density(a, totals) == PLUGIN_OK;
}

double clt_log_noise(const struct clt *a, const double *total) {
    return -noise_energy(&a->noise, total);
}
