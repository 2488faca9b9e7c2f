/* The expected share of records outside the bounds, which the moments ignore. */
#include "clt/moments_lm.h"

#include <Rmath.h>

/* combinations of levels that y's distribution is mixed over */
enum { MOST_CELLS = 1000 };

static double tails(const struct lm_distribution *m, int v, double mean, double sd) {
    return Rf_pnorm5(m->units.lower[v], mean, sd, 1, 0) +
           Rf_pnorm5(m->units.upper[v], mean, sd, 0, 0);
}

/* Share of y outside where the levels of factors f, f + 1, ... are open. */
static double response_tails(const struct lm_distribution *m, int f, double mean, double sd) {
    if (f == m->factors.count) return tails(m, 0, mean, sd);
    const struct categories *factor = m->factors.factor + f;
    double share = 0, left = 1;
    for (int v = factor->first; v < factor->first + factor->dummies; ++v) {
        share += m->factors.share[v] *
                 response_tails(m, f + 1, mean + m->theta[v] * m->units.scale[v], sd);
        left -= m->factors.share[v];
    }
    return share + (left > 0 ? left : 0) * response_tails(m, f + 1, mean, sd);
}

/* Of y, and of covariates that have a normal distribution. Given the levels of the factors y is
 * normal; with very many of those it nearly is without. */
double lm_outside(void *self, const double *theta_model) {
    struct lm_distribution *m = self;
    lm_set(m, theta_model);
    const int d = m->d;
    double cells = 1;
    for (int f = 0; f < m->factors.count; ++f) cells *= m->factors.factor[f].dummies + 1;
    const int given = cells <= MOST_CELLS;
    double mean = 0, variance = m->sigma * m->sigma, share = 0;
    for (int i = 0; i < d; ++i) {
        const int dummy = m->factors.of[i] >= 0;
        mean += m->theta[i] * (given && dummy ? m->units.shift[i] : m->mean[i]);
        if (given && dummy) continue;
        /* a dummy is independent of what is no dummy */
        variance += m->theta[i] * linalg_dot(d, m->cov + (size_t)i * d, m->theta);
        if (i > 0 && !dummy && !m->fourth)
            share += tails(m, i, m->mean[i], sqrt(m->cov[(size_t)i * d + i]));
    }
    share += response_tails(m, given ? 0 : m->factors.count, mean, sqrt(variance));
    return share < 1 ? share : 1;
}
