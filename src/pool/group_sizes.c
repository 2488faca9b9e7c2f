/* The sizes N_g of G groups, given their rates, if a release has them with noise or not at all:
 *
 *   p(N) prod_g p(z_g | N_g, t_g),
 *
 * with the totals of the groups summed out (pool/site_rate.c). The shares of the groups are
 * uniform on the simplex and integrated out, so that all N with the same sum n have the same
 * probability:
 *
 *   p(N) = p(n) / C(n + G - 1, G - 1).
 *
 * If n is known, two groups exchange records at a time, in random pairs; otherwise the size of one
 * group changes at a time. The moves are random walks on whole numbers, whose step sizes are
 * learned in warmup.
 *
 * Invariant: n, if it is known, and the range of each size. Cost of a call: PASSES + 1 densities
 * of each group. */
#include "pool/group_sizes.h"

#include <Rmath.h>

enum { PASSES = 4 };
static const double TARGET = 0.44, SHORTEST = -2, LONGEST = 30;

void pool_sizes_create(struct pool_sizes *s) {
    s->group = plugin_memory((size_t)s->groups, sizeof *s->group);
    s->order = plugin_memory((size_t)s->groups, sizeof *s->order);
}

double pool_sizes_sum(const struct pool_sizes *s) {
    double sum = 0;
    for (int g = 0; g < s->groups; ++g) sum += s->n[g];
    return sum;
}

/* log p(N) of a sum n, up to a constant */
static double log_prior(const struct pool_sizes *s, double n) {
    return size_prior_log(s->prior, n) + Rf_lgammafn(n + 1) - Rf_lgammafn(n + s->groups);
}

static double density_at(struct pool_group *group, double n) {
    double slope;
    if (n < 0) return -INFINITY;
    pool_rate_set_size(group->rate, n);
    return pool_rate_log(group->rate, group->t, &slope);
}

/* a step away from 0, as likely as its opposite */
static double draw_step(double log_scale, struct rng *rng) {
    const double z = rng_normal(rng);
    return copysign(1 + floor(fabs(z) * exp(log_scale)), z);
}

/* Of group a, and where n is known of group b, which gives what a takes. Returns the probability of
 * acceptance; *sum is n. */
static double step(struct pool_sizes *s, int a, int b, double *sum, struct rng *rng) {
    struct pool_group *of_a = s->group + a, *of_b = s->group + b;
    const int pair = b != a;
    const double scale = pair ? fmin(s->log_scale[a], s->log_scale[b]) : s->log_scale[a];
    const double k = draw_step(scale, rng);
    const double log_a = density_at(of_a, s->n[a] + k);
    const double log_b = pair ? density_at(of_b, s->n[b] - k) : 0;
    double log_ratio = log_a - of_a->log_density + (pair ? log_b - of_b->log_density : 0);
    if (!pair && *sum + k >= 0) log_ratio += log_prior(s, *sum + k) - log_prior(s, *sum);
    const double accept = isnan(log_ratio) ? 0 : exp(fmin(log_ratio, 0));
    s->counter[0] += 1;
    if (rng_uniform(rng) < accept) {
        s->counter[1] += 1;
        s->n[a] += k;
        of_a->log_density = log_a;
        if (pair) {
            s->n[b] -= k;
            of_b->log_density = log_b;
        } else {
            *sum += k;
        }
        return accept;
    }
    pool_rate_set_size(of_a->rate, s->n[a]);
    if (pair) pool_rate_set_size(of_b->rate, s->n[b]);
    return accept;
}

static void learn(struct pool_sizes *s, int group, double accept, double gain) {
    const double next = s->log_scale[group] + gain * (accept - TARGET);
    s->log_scale[group] = fmin(fmax(next, SHORTEST), LONGEST);
}

static void shuffle(struct pool_sizes *s, struct rng *rng) {
    for (int i = s->groups - 1; i > 0; --i) {
        const int j = (int)(rng_uniform(rng) * (i + 1)), kept = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = kept;
    }
}

void pool_sizes_move(struct pool_sizes *s, int iteration, int warmup, struct rng *rng) {
    const double gain = iteration < warmup ? 1 / sqrt(1 + iteration / 10.0) : 0;
    const int apart = s->prior ? 1 : 2; /* groups of a step */
    double sum = pool_sizes_sum(s);
    for (int g = 0; g < s->groups; ++g) {
        s->order[g] = g;
        s->group[g].log_density = density_at(s->group + g, s->n[g]);
    }
    for (int pass = 0; pass < PASSES; ++pass) {
        if (apart == 2) shuffle(s, rng);
        for (int i = 0; i + apart <= s->groups; i += apart) {
            const int a = s->order[i], b = s->order[i + apart - 1];
            const double accept = step(s, a, b, &sum, rng);
            if (gain == 0) continue;
            learn(s, a, accept, gain);
            if (b != a) learn(s, b, accept, gain);
        }
    }
}
