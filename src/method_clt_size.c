/* Method "clt": steps of the number of records n, where it is not known. With z ~ N(n mu_t, n V_tt
 * + Omega) given theta and omega, or with the total's innovations u fixed, s = n mu + sqrt(n) A u,
 * a step from n to n +- m, theta going along (size_slope.c), is accepted by the ratio of
 *
 *   p(n) p(theta) N(z; n mu_t, n V_tt + Omega)   or   p(n) p(theta) eta(z | s),
 *
 * each times the density of the noise of a released n. Fewer than two records have no normal
 * distribution: n is two or more.
 *
 * Cost: that of a move of theta, for each of STEPS. */
#include "dist.h"
#include "method_clt.h"

enum { STEPS = 4 };

static double size_energy(const struct clt *a, double n) {
    double energy = 0;
    for (int k = 0; k < a->sizes; ++k) {
        const double r = fabs(a->size_released[k] - n) / a->size_scale[k];
        energy += a->size_absolute[k] != 0 ? r : 0.5 * r * r;
    }
    return energy;
}

double clt_log_size(const struct clt *a, double n) {
    return n < 2 ? -INFINITY : size_prior_log(a->size_prior, n) - size_energy(a, n);
}

/* log ratio of the total's part at theta_new and n, which `next` or total_new have then */
static double total_ratio(struct clt *a, double n) {
    if (a->sampler == CLT_NONCENTRED) {
        a->moments.class->from_innovations(a->moments.self, a->theta_new, n, a->u, a->total_new);
        for (int j = 0; j < a->size; ++j) a->total_new[j] += a->extra[j];
        a->next.log_density = clt_log_noise(a, a->total_new);
        return a->next.log_density - a->log_noise;
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
        double *const old = a->total;
        a->total = a->total_new;
        a->total_new = old;
        a->log_noise = a->next.log_density;
        a->now.log_prior = a->next.log_prior;
        return;
    }
    const struct distribution old = a->now;
    a->now = a->next;
    a->next = old;
}

static int step(struct clt *a, int learning) {
    const double m = 1 + floor(*a->slope.scale * rng_exponential(a->rng));
    const double n = a->n + (rng_bits(a->rng) >> 63 ? m : -m);
    double log_ratio = clt_log_size(a, n);
    if (log_ratio > -INFINITY) {
        log_ratio -= clt_log_size(a, a->n);
        size_slope_follow(&a->slope, log(n / a->n), a->theta, (size_t)a->model.parameters,
                          a->theta_new);
        a->next.log_prior = a->model.class->dprior(a->model.self, a->theta_new);
        log_ratio += isfinite(a->next.log_prior)
                         ? a->next.log_prior - a->now.log_prior + total_ratio(a, n)
                         : -INFINITY;
    }
    const int accept = -log_ratio < rng_exponential(a->rng);
    if (accept) keep(a, n);
    if (learning) size_slope_tried(&a->slope, log_ratio, a->size_prior->upper);
    return accept;
}

int clt_move_size(struct clt *a, int learning) {
    int accepted = 0;
    a->now.log_prior = a->model.class->dprior(a->model.self, a->theta);
    if (a->sampler == CLT_NONCENTRED) a->log_noise = clt_log_noise(a, a->total);
    for (int k = 0; k < STEPS; ++k) accepted += step(a, learning);
    return accepted;
}
