/* The shared parameters, and the parameters of all sites, given the records: one transition of
 * NUTS (mcmc/hmc.c) on
 *
 *   p(shared) prod_j N(phi_j | shared) prod_i f(x_ij | phi_j, rest of theta_j),
 *
 * where the model gives the likelihood of a site's records and its slopes by their complete-data
 * statistic c_j. Coordinates are those of pool/hyperprior.c, in which sites are nearly standard
 * normal and independent where their likelihood is about normal with precision P and mean
 *
 *   A(c) = where the likelihood is greatest,  P = minus its second derivatives there,
 *
 * by Newton's method from an anchor, a point near the site's parameters that is learned early in
 * warmup. A and P are functions of the anchors and the records alone, so that coordinates stay as
 * they are during a transition, and its target is invariant. If noise hides a residual standard
 * deviation, its value in the imputed records varies widely, and P with its square: coordinates
 * that were learned only once made trajectories diverge.
 *
 * Cost: of a gradient, the likelihood of each site; of a step to A, two of these likelihoods for
 * each parameter that varies; free of the number of records.
 */
#include "pool/pool_gibbs.h"

#include "base/linalg.h"
#include "contract/model.h"
#include "contract/model_prior.h"

/* Anchors are learned at iterations 0, FIRST, 3 FIRST, 7 FIRST, ... until that share of warmup. */
enum { FIRST = 5 };
static const double LEARNED_UNTIL = 0.2;

/* As in pool/nuts_chain.c: tails of standard deviations between few sites need short steps. */
enum { MANY_COORDINATES = 100 };
static const double TARGET_OF_FEW = 0.95;

/* where a prior that is cut off ends a trajectory, which then is none that diverged */
static double beyond_bounds(struct pool_records *s) {
    s->given.beyond = s->bounded;
    return -INFINITY;
}

static double density(void *self, const double *q, double *gradient) {
    struct pool_records *s = self;
    struct pool_spread *spread = &s->spread;
    pool_spread_open(spread, q);
    memcpy(s->work.trial, s->reference, (size_t)s->model.parameters * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) s->work.trial[s->place[k]] = spread->mean[k];
    double log_density = model_prior(&s->model, s->work.trial, s->work.slope_theta);
    if (!(log_density > -INFINITY)) return beyond_bounds(s);
    memset(gradient, 0, (size_t)s->shared * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) gradient[k] = s->work.slope_theta[s->place[k]];
    log_density += pool_spread_prior(spread, q, gradient);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        struct pool_member *member = &site->member;
        pool_spread_place(spread, q, member, q + site->at);
        memcpy(s->work.trial, site->augment.theta, (size_t)s->model.parameters * sizeof(double));
        for (int k = 0; k < s->parameters; ++k) s->work.trial[s->place[k]] = member->phi[k];
        if (s->bounded && !(s->model.prior->dprior(s->model.self, s->work.trial) > -INFINITY))
            return beyond_bounds(s);
        log_density += pool_records_likelihood(site, s->work.trial, member->slope);
        if (!(log_density > -INFINITY)) return -INFINITY;
    }
    for (int j = s->sites - 1; j >= 0; --j) {
        struct pool_records_site *site = s->site + j;
        log_density +=
            pool_spread_pull(spread, q, &site->member, q + site->at, gradient, gradient + site->at);
    }
    pool_spread_finish(spread, q, gradient);
    return isnan(log_density) ? -INFINITY : log_density;
}

size_t pool_records_given_stored(const struct pool_records *s) {
    return s->gradients ? hmc_stored(s->given.size, HMC_DIAGONAL) : 0;
}

void pool_records_given_create(struct pool_records *s) {
    const size_t varying = (size_t)s->spread.varying;
    s->given.size = s->shared;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        site->at = s->given.size;
        s->given.size += site->member.own;
        DOUBLES(varying, &site->told_at, &site->precision);
    }
    s->given.curvature = doubles(varying * varying);
    s->given.newton = doubles(varying);
    s->given.slope = doubles((size_t)s->parameters);
    s->given.work = doubles(hmc_workspace(s->given.size, HMC_DIAGONAL));
}

void pool_records_given_attach(struct pool_records *s, double *store) {
    const struct hmc_target target = {s->given.size, s, density, NULL};
    hmc_attach(&s->given.hmc, &target, HMC_DIAGONAL, store, s->given.work);
    if (s->given.size < MANY_COORDINATES) s->given.hmc.target_accept = TARGET_OF_FEW;
}

/* `sd`: about how far off what is shared may be; means of what varies are nearly standard normal
 * as they are coordinates here. */
void pool_records_given_start(struct pool_records *s, const double *sd) {
    double *unit = plugin_memory((size_t)s->given.size, sizeof *unit);
    for (int i = 0; i < s->given.size; ++i) unit[i] = i < s->shared ? sd[i] : 1;
    for (int v = 0; v < s->spread.varying; ++v) unit[s->spread.which[v]] = 1;
    hmc_start(&s->given.hmc, unit, unit); /* a position of no account: each transition sets it */
}

/* ---- anchors ----------------------------------------------------------------------------- */

static int learns_anchors(int iteration, int warmup) {
    if (iteration > LEARNED_UNTIL * warmup) return 0;
    int at = 0;
    while (at < iteration) at = 2 * at + FIRST;
    return at == iteration;
}

static void learn_anchors(const struct pool_records *s, struct pool_records_site *site) {
    for (int k = 0; k < s->parameters; ++k) site->anchor[k] = site->augment.theta[s->place[k]];
}

/* Minus the second derivatives of the log likelihood at `trial` in what varies, a lower triangle,
 * by differences; those that tell something to `precision`. */
static void tell_curvature(struct pool_records *s, struct pool_records_site *site,
                           double *precision) {
    static const double STEP = 1e-3;
    const int V = s->spread.varying, *which = s->spread.which;
    double *slope = site->member.slope, *row = s->given.curvature;
    for (int v = 0; v < V; ++v, row += V) {
        double *at = s->work.trial + s->place[which[v]];
        const double middle = *at;
        *at = middle - STEP;
        (void)pool_records_likelihood(site, s->work.trial, slope);
        for (int w = 0; w <= v; ++w) row[w] = slope[which[w]];
        *at = middle + STEP;
        (void)pool_records_likelihood(site, s->work.trial, slope);
        for (int w = 0; w <= v; ++w) row[w] = (row[w] - slope[which[w]]) / (2 * STEP);
        *at = middle;
        precision[v] = row[v] > 0 && row[v] < 1e100 ? row[v] : 0;
    }
}

/* Newton's step from there. A coordinate in which the likelihood has no peak, given those before
 * it, stays: for example a residual standard deviation while coefficients are far off. Returns
 * whether one did. */
static int newton_step(const struct pool_records *s, const double *slope, double *step) {
    static const double LEAST = 1e-10; /* of what is left of a curvature */
    const int V = s->spread.varying, *which = s->spread.which;
    int stays = 0;
    double *row = s->given.curvature;
    for (int v = 0; v < V; ++v, row += V) {
        const double whole = row[v];
        for (int w = 0; w < v; ++w) {
            const double *other = s->given.curvature + (size_t)w * (size_t)V;
            row[w] = (row[w] - linalg_dot(w, row, other)) / other[w];
        }
        const double left = whole - linalg_dot(v, row, row);
        step[v] = slope[which[v]];
        row[v] = sqrt(left);
        if (left > LEAST * whole && left < INFINITY && isfinite(step[v])) continue;
        memset(row, 0, (size_t)v * sizeof(double));
        row[v] = INFINITY;
        step[v] = 0;
        stays = 1;
    }
    linalg_forward(V, s->given.curvature, step);
    linalg_backward(V, s->given.curvature, step);
    return stays;
}

/* `trial` goes along a step, or a part of it, if the likelihood grows; its slopes come to the
 * member. Returns by how much it grew. */
static double climb(struct pool_records *s, struct pool_records_site *site, double now,
                    const double *step) {
    enum { HALVINGS = 30 };
    const int V = s->spread.varying, *which = s->spread.which;
    for (int v = 0; v < V; ++v) site->told_at[v] = s->work.trial[s->place[which[v]]];
    double share = 1;
    for (int h = 0; h < HALVINGS; ++h, share *= 0.5) {
        for (int v = 0; v < V; ++v)
            s->work.trial[s->place[which[v]]] = site->told_at[v] + share * step[v];
        const double next = pool_records_likelihood(site, s->work.trial, site->member.slope);
        if (next > now) return next - now;
    }
    for (int v = 0; v < V; ++v) s->work.trial[s->place[which[v]]] = site->told_at[v];
    return 0;
}

/* What the records of a site say about what varies, roughly: where their likelihood is greatest,
 * from the anchors, and its precision. With no more records than parameters it may have its peak
 * far from where they are with the prior, or nowhere: one step then, which is short. */
static void tell(struct pool_records *s, struct pool_records_site *site) {
    enum { MOST_STEPS = 12 };
    static const double ENOUGH = 0.01, FURTHEST = 4;
    const int V = s->spread.varying, *which = s->spread.which;
    const int few = site->augment.n <= s->parameters, most = few ? 1 : MOST_STEPS;
    memcpy(s->work.trial, site->augment.theta, (size_t)s->model.parameters * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) s->work.trial[s->place[k]] = site->anchor[k];
    double now = pool_records_likelihood(site, s->work.trial, site->member.slope), gain = INFINITY;
    int stays = 0;
    for (int k = 0; k < most && gain > (stays ? 0 : ENOUGH); ++k) {
        memcpy(s->given.slope, site->member.slope, (size_t)s->parameters * sizeof(double));
        tell_curvature(s, site, site->precision);
        stays = newton_step(s, s->given.slope, s->given.newton);
        for (int v = 0; few && v < V; ++v) {
            const double longest = site->precision[v] > 0 ? FURTHEST / sqrt(site->precision[v]) : 0;
            s->given.newton[v] = fmax(fmin(s->given.newton[v], longest), -longest);
        }
        gain = climb(s, site, now, s->given.newton);
        now = isfinite(now) ? now + gain
                            : pool_records_likelihood(site, s->work.trial, site->member.slope);
    }
    for (int v = 0; v < V; ++v) site->told_at[v] = s->work.trial[s->place[which[v]]];
    site->member.at = site->told_at;
    site->member.precision = site->precision;
}

void pool_records_given_tell(struct pool_records *s) {
    for (int j = 0; j < s->sites; ++j) tell(s, s->site + j);
}

/* ---- a transition ------------------------------------------------------------------------ */

/* the state in the coordinates that sites are given in */
static void read_position(struct pool_records *s, double *q) {
    memcpy(q, s->at, (size_t)s->shared * sizeof(double));
    pool_spread_start(&s->spread, q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        for (int k = 0; k < s->parameters; ++k) s->given.phi[k] = site->augment.theta[s->place[k]];
        pool_member_start(&s->spread, q, &site->member, s->given.phi, q + site->at);
    }
}

/* and back, in coordinates in which nothing is given */
static void write_position(struct pool_records *s, const double *q) {
    memcpy(s->at, q, (size_t)s->shared * sizeof(double));
    pool_spread_open(&s->spread, q);
    memcpy(s->at, s->spread.mean, (size_t)s->parameters * sizeof(double));
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        pool_spread_place(&s->spread, q, &site->member, q + site->at);
        for (int k = 0; k < s->parameters; ++k)
            site->augment.theta[s->place[k]] = site->member.phi[k];
    }
    for (int j = 0; j < s->sites; ++j) {
        struct pool_member *member = &s->site[j].member;
        member->at = member->precision = s->given.nothing;
    }
    pool_spread_open(&s->spread, s->at);
}

int pool_records_given_move(struct pool_records *s, int iteration, int warmup) {
    struct hmc_step told = {0};
    const int learns = learns_anchors(iteration, warmup);
    for (int j = 0; learns && j < s->sites; ++j) learn_anchors(s, s->site + j);
    pool_records_given_tell(s);
    read_position(s, s->given.hmc.q);
    if (hmc_refresh(&s->given.hmc)) {
        if (learns) hmc_find_step(&s->given.hmc, s->rng);
        s->given.beyond = 0;
        hmc_nuts(&s->given.hmc, s->rng, &told);
        hmc_learn(&s->given.hmc, iteration, warmup, &told, s->rng);
        double *counter = s->given.counter;
        counter[POOL_GIVEN_MADE] += 1;
        counter[POOL_GIVEN_ACCEPTANCE] += told.accept;
        counter[POOL_GIVEN_LEAPFROGS] += told.leapfrogs;
        counter[POOL_GIVEN_DIVERGENT] += told.divergent && !s->given.beyond;
    }
    if (iteration + 1 == warmup) memset(s->given.counter, 0, POOL_GIVEN_COUNTERS * sizeof(double));
    write_position(s, s->given.hmc.q);
    return told.leapfrogs;
}
