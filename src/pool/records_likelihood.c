/* The likelihood of the records of all sites, with its slopes; see pool/gibbs_chain.c. */
#include "contract/model_likelihood.h"
#include "contract/model_marginal.h"
#include "pool/pool_gibbs.h"

double pool_records_likelihood(struct pool_records_site *site, const double *theta, double *slope) {
    struct pool_records *s = site->pool;
    const struct augment *a = &site->augment;
    const struct record_columns records = {a->x, a->n, a->stride};
    double value;
    if (a->n == 0) {
        if (slope) memset(slope, 0, (size_t)s->parameters * sizeof(double));
        return 0;
    }
    if (s->likelihood.class) { /* keeps the parameters, in their order */
        value =
            s->likelihood.marginal->marginal(s->likelihood.self, a->complete, (double)a->n, theta,
                                             s->work.slope_c, slope ? slope : s->work.slope_theta);
    } else if (s->model.likelihood) {
        if (slope) memset(s->work.slope_theta, 0, (size_t)s->model.parameters * sizeof(double));
        value = s->model.likelihood->log_likelihood(s->model.self, theta, a->complete, (double)a->n,
                                                    slope ? s->work.slope_theta : NULL);
        for (int k = 0; slope && k < s->parameters; ++k)
            slope[k] = s->work.slope_theta[s->place[k]];
    } else {
        value = update_theta_density(&s->density, 1, &records, theta);
    }
    return isnan(value) ? -INFINITY : value;
}
