/* Method "clt": steps of the number of records n, if it is unknown. With z ~ N(n mu_t, n V_tt +
 * Omega) given theta and omega, or with the total's innovations u fixed, s = n mu + sqrt(n) A u, a
 * step from n to n +- m, which also moves theta (mcmc/n_regression_proposal.c), is accepted by the
 * ratio of
 *
 *   p(n) p(theta) N(z; n mu_t, n V_tt + Omega)   or   p(n) p(theta) eta(z | s),
 *
 * each times the density of the noise of a released n, and the proposal's. Steps are walks, which
 * theta follows, and one to the region where warmup located n, which theta follows in every other
 * iteration: slopes that were learned from few moves may be so wrong that no step with theta is
 * accepted. Fewer than two records have no normal distribution, so n is at least two.
 *
 * Cost: as much as a move of theta, for each of them. */
#include "base/dist.h"
#include "clt/clt.h"
#include "contract/model_prior.h"

enum { WALKS = 3 };

double clt_log_size(const struct clt_unknown *unknown, double n) {
    double energy = 0;
    for (int k = 0; k < unknown->noise.size; ++k) energy += noise_energy_of(&unknown->noise, k, n);
    return n < 2 ? -INFINITY : size_prior_log(unknown->prior, n) - energy;
}

/* log ratio of the total's part at theta_new and n, which `next` or total.next have then */
static double total_ratio(struct clt *a, double n) {
    if (a->sampler == CLT_NONCENTRED) {
        a->moments.class->from_innovations(a->moments.self, a->theta_new, n, a->total.u,
                                           a->total.next);
        for (int j = 0; j < a->size; ++j) a->total.next[j] += a->total.extra[j];
        a->next.log_density = clt_log_noise(a, a->total.next);
        return a->next.log_density - a->total.log_noise;
    }
    const double old = a->n;
    a->n = n;
    const int ok = clt_set_distribution(a, a->theta_new, &a->next);
    a->n = old;
    return ok ? a->next.log_density - a->now.log_density : -INFINITY;
}

static void keep(struct clt *a, double n) {
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
    a->n = n;
    if (a->sampler == CLT_NONCENTRED) {
        double *const old = a->total.now;
        a->total.now = a->total.next;
        a->total.next = old;
        a->total.log_noise = a->next.log_density;
        a->now.log_prior = a->next.log_prior;
        return;
    }
    const struct distribution old = a->now;
    a->now = a->next;
    a->next = old;
}

/* A step of n; theta follows it, or stays. */
static int step(struct clt *a, int fresh, int follows, int learning) {
    double log_ratio;
    const double n = fresh ? size_slope_fresh(&a->unknown.slope, a->n, a->rng, &log_ratio)
                           : size_slope_walk(&a->unknown.slope, a->n, a->rng, &log_ratio);
    const double log_size = clt_log_size(&a->unknown, n);
    if (log_size > -INFINITY) {
        size_slope_follow(&a->unknown.slope, follows ? log(n / a->n) : 0, a->theta,
                          (size_t)a->model.parameters, a->theta_new);
        a->next.log_prior = a->model.prior->dprior(a->model.self, a->theta_new);
        log_ratio += log_size - clt_log_size(&a->unknown, a->n);
        log_ratio += isfinite(a->next.log_prior)
                         ? a->next.log_prior - a->now.log_prior + total_ratio(a, n)
                         : -INFINITY;
    } else {
        log_ratio = -INFINITY;
    }
    const int accept = -log_ratio < rng_exponential(a->rng);
    if (accept) keep(a, n);
    if (learning && !fresh) size_slope_tried(&a->unknown.slope, log_ratio, a->unknown.prior->upper);
    return accept;
}

int clt_move_size(struct clt *a, int iteration, int learning) {
    int accepted = 0;
    const int knows = size_slope_knows(&a->unknown.slope);
    a->now.log_prior = a->model.prior->dprior(a->model.self, a->theta);
    if (a->sampler == CLT_NONCENTRED) a->total.log_noise = clt_log_noise(a, a->total.now);
    for (int k = 0; k < (a->sampler == CLT_NONCENTRED ? WALKS : 1); ++k)
        accepted += step(a, 0, 1, learning);
    if (knows) accepted += step(a, 1, iteration % 2, learning);
    return accepted;
}
