/* What sites share, and the parameters of all sites, given the records: one transition of NUTS
 * (hmc.c) on
 *
 *   p(shared) prod_j N(phi_j | shared) prod_i f(x_ij | phi_j, rest of theta_j),
 *
 * where the model gives the likelihood of a site's records and its slopes by their complete-data
 * statistic c_j. Coordinates are those of pool_spread.c, in which sites are nearly standard normal
 * and independent where their likelihood is about normal with precision P and mean
 *
 *   A(c) = anchor + slope of the log likelihood at the anchor / P.
 *
 * The anchors, points near the sites' parameters, and P, minus the second derivatives there, by
 * differences, are learned early in warmup. A(c) is a function of these and the records alone, so
 * that coordinates stay as they are during a transition, and its target is invariant.
 *
 * Cost: of a gradient, that of the likelihood of each site; free of the number of records.
 */
#include "method_pool_records.h"

#include "model.h"

/* Anchors are learned at iterations 0, FIRST, 3 FIRST, 7 FIRST, ... until that share of warmup. */
enum { FIRST = 5 };
static const double LEARNED_UNTIL = 0.2;

/* As in method_pool.c: tails of standard deviations between few sites need short steps. */
enum { MANY_COORDINATES = 100 };
static const double TARGET_OF_FEW = 0.9;

/* A(c) is so many standard errors from the anchor, at most: further off curvature is not told. */
static const double FURTHEST = 4;

/* where a prior that is cut off ends a trajectory, which then is none that diverged */
static double beyond_bounds(struct pool_records *s) {
    s->beyond = s->bounded;
    return -INFINITY;
}

static double density(void *self, const double *q, double *gradient) {
    struct pool_records *s = self;
    struct pool_spread *spread = &s->spread;
    pool_spread_open(spread, q);
    memcpy(s->trial, s->reference, (size_t)s->model.parameters * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) s->trial[s->place[k]] = spread->mean[k];
    double log_density = model_prior(&s->model, s->trial, s->slope_theta);
    if (!(log_density > -INFINITY)) return beyond_bounds(s);
    memset(gradient, 0, (size_t)s->shared * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) gradient[k] = s->slope_theta[s->place[k]];
    log_density += pool_spread_prior(spread, q, gradient);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        struct pool_member *member = &site->member;
        pool_spread_place(spread, q, member, q + site->at);
        memcpy(s->trial, site->augment.theta, (size_t)s->model.parameters * sizeof(double));
        for (int k = 0; k < s->parameters; ++k) s->trial[s->place[k]] = member->phi[k];
        if (s->bounded && !(s->model.class->dprior(s->model.self, s->trial) > -INFINITY))
            return beyond_bounds(s);
        log_density += pool_records_likelihood(site, s->trial, member->slope);
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
    return s->gradients ? hmc_stored(s->size, HMC_DIAGONAL) : 0;
}

void pool_records_given_create(struct pool_records *s) {
    s->size = s->shared;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        site->at = s->size;
        s->size += site->member.own;
        site->told_at = plugin_memory((size_t)s->spread.varying, sizeof(double));
    }
    s->hmc_work = plugin_memory(hmc_workspace(s->size, HMC_DIAGONAL), sizeof(double));
}

void pool_records_given_attach(struct pool_records *s, double *store) {
    const struct hmc_target target = {s->size, s, density, NULL};
    hmc_attach(&s->hmc, &target, HMC_DIAGONAL, store, s->hmc_work);
    if (s->size < MANY_COORDINATES) s->hmc.target_accept = TARGET_OF_FEW;
}

/* `sd`: about how far off what is shared may be; means of what varies are nearly standard normal
 * as they are coordinates here. */
void pool_records_given_start(struct pool_records *s, const double *sd) {
    double *unit = plugin_memory((size_t)s->size, sizeof *unit);
    for (int i = 0; i < s->size; ++i) unit[i] = i < s->shared ? sd[i] : 1;
    for (int v = 0; v < s->spread.varying; ++v) unit[s->spread.which[v]] = 1;
    hmc_start(&s->hmc, unit, unit); /* a position of no account: each transition sets it */
}

/* ---- anchors ----------------------------------------------------------------------------- */

static int learns_anchors(int iteration, int warmup) {
    if (iteration > LEARNED_UNTIL * warmup) return 0;
    int at = 0;
    while (at < iteration) at = 2 * at + FIRST;
    return at == iteration;
}

/* theta of a site at its anchors */
static void place_anchors(struct pool_records *s, const struct pool_records_site *site) {
    memcpy(s->trial, site->augment.theta, (size_t)s->model.parameters * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) s->trial[s->place[k]] = site->anchor[k];
}

static void learn_anchors(struct pool_records *s, struct pool_records_site *site) {
    static const double STEP = 1e-3;
    double *slope = site->member.slope;
    for (int k = 0; k < s->parameters; ++k) site->anchor[k] = site->augment.theta[s->place[k]];
    place_anchors(s, site);
    for (int v = 0; v < s->spread.varying; ++v) {
        const int k = s->spread.which[v];
        double *at = s->trial + s->place[k];
        *at = site->anchor[k] + STEP;
        (void)pool_records_likelihood(site, s->trial, slope);
        const double above = slope[k];
        *at = site->anchor[k] - STEP;
        (void)pool_records_likelihood(site, s->trial, slope);
        const double precision = (slope[k] - above) / (2 * STEP);
        site->precision[v] = precision > 0 && precision < 1e100 ? precision : 0;
        *at = site->anchor[k];
    }
}

/* What the records of a site tell of what varies, about. */
static void tell(struct pool_records *s, struct pool_records_site *site) {
    double *slope = site->member.slope;
    place_anchors(s, site);
    (void)pool_records_likelihood(site, s->trial, slope);
    for (int v = 0; v < s->spread.varying; ++v) {
        const int k = s->spread.which[v];
        const double precision = site->precision[v];
        const double step = precision > 0 && isfinite(slope[k]) ? slope[k] / precision : 0;
        const double most = precision > 0 ? FURTHEST / sqrt(precision) : 0;
        site->told_at[v] = site->anchor[k] + fmax(fmin(step, most), -most);
    }
    site->member.at = site->told_at;
    site->member.precision = site->precision;
}

/* ---- a transition ------------------------------------------------------------------------ */

/* the state in the coordinates that the sites are told in */
static void read_position(struct pool_records *s, double *q) {
    memcpy(q, s->at, (size_t)s->shared * sizeof(double));
    pool_spread_start(&s->spread, q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        for (int k = 0; k < s->parameters; ++k) s->phi[k] = site->augment.theta[s->place[k]];
        pool_member_start(&s->spread, q, &site->member, s->phi, q + site->at);
    }
}

/* and back, in coordinates in which nothing is told */
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
        member->at = member->precision = s->nothing;
    }
    pool_spread_open(&s->spread, s->at);
}

int pool_records_given_move(struct pool_records *s, int iteration, int warmup) {
    struct hmc_step told = {0};
    const int learns = learns_anchors(iteration, warmup);
    for (int j = 0; j < s->sites; ++j) {
        if (learns) learn_anchors(s, s->site + j);
        tell(s, s->site + j);
    }
    read_position(s, s->hmc.q);
    if (hmc_refresh(&s->hmc)) {
        if (learns) hmc_find_step(&s->hmc, s->rng);
        s->beyond = 0;
        hmc_nuts(&s->hmc, s->rng, &told);
        hmc_learn(&s->hmc, iteration, warmup, &told, s->rng);
        double *counter = s->counter;
        counter[POOL_GIVEN_MADE] += 1;
        counter[POOL_GIVEN_ACCEPTANCE] += told.accept;
        counter[POOL_GIVEN_LEAPFROGS] += told.leapfrogs;
        counter[POOL_GIVEN_DIVERGENT] += told.divergent && !s->beyond;
    }
    if (iteration + 1 == warmup) memset(s->counter, 0, POOL_GIVEN_COUNTERS * sizeof(double));
    write_position(s, s->hmc.q);
    return told.leapfrogs;
}
