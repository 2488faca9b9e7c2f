/* Method "pool": the posterior given releases of different records, one per site, each with its
 * own noise (vignette "Algorithms", "collapse"). All sites have the same parameters theta.
 *
 * Rates: theta is one number, and totals are summed out (pool/site_rate.c). Target:
 *
 *   p(theta) prod_j p(z_j | theta).
 *
 * Normal totals (pool/nuts_site_totals.c): c_j is the complete-data statistic of site j in the
 * coordinates of totals/normal_coordinates.c. The records of all sites together have the statistic
 * sum c_j, so theta integrates out as for one site (marginal(), except for the coordinates that it
 * keeps). Target:
 *
 *   marginal(sum c_j, sum n_j) prod_j volume_j(c_j) eta_j(z_j | A_j c_j).
 *
 * Exact if no record lies outside the bounds. Totals of sites are never added up before the noise
 * is accounted for: with noise of different scales, this would lose the information of the more
 * precise release.
 *
 * Partial pooling: parameters phi_j of site j, in the coordinates of theta, vary about a mean that
 * has the model's prior, or walk from one site to the next (pool/hyperprior.c). Target: the
 * densities of these, times p(z_j | phi_j) of rates, or times
 *
 *   likelihood(c_j, n_j, phi_j) volume_j(c_j) eta_j(z_j | A_j c_j)
 *
 * of totals, in coordinates where the totals of the response, or of all columns, may be innovations
 * (totals/response_innovations.c, totals/innovations.c);
 * what phi leaves of theta, the covariates' distribution, integrated out for each site on its own,
 * or for all sites together, with kappa as one more coordinate (contract/model_pooled_scatter.h).
 * Exact totals are fixed (totals/exact_totals.c);
 * or times a normal distribution of the totals, which is approximate (pool/nuts_site_clt.c).
 *
 * Separate rates, of groups of one release: each phi_j has the model's prior. Sizes of groups that
 * the release has with noise are latent, and move given the rates (pool/group_sizes.c).
 *
 * NUTS moves all coordinates (mcmc/hmc.c), those that are shared first. Then the model's own update
 * draws theta given sum c_j.
 *
 * Cost: a gradient of each site, O(d^3 + components) for d columns; it depends on n only
 * for rates. No allocation except in pool_create().
 */
#include "pool/pool_nuts.h"

#include "base/block.h"
#include "contract/model.h"
#include "contract/model_marginal.h"
#include "contract/model_normal.h"
#include "contract/model_update.h"

#include <Rmath.h>

/* Where sites are few, tails of standard deviations are wide, and steps must be short to go there
 * and back; many coordinates are moved at less cost by longer steps. */
enum { MANY_COORDINATES = 100 };
static const double TARGET_ACCEPT = 0.9, TARGET_OF_MANY = 0.65;

/* ---- set-up ------------------------------------------------------------------------------ */

/* log k!, for all groups whose sizes are latent */
static void share_factorials(struct pool *s) {
    enum { MOST_FACTORIALS = 1 << 20 };
    double most = 0;
    for (int j = 0; j < s->sites; ++j) {
        const struct pool_rate *rate = &s->site[j].rate;
        if (!rate->sized) continue;
        most = fmax(most, rate->first + rate->count);
        if (rate->size.count > 0) most = fmax(most, rate->size.first + rate->size.count);
        if (rate->rest.count > 0) most = fmax(most, rate->rest.first + rate->rest.count);
    }
    const int count = (int)fmin(most + 1, MOST_FACTORIALS);
    double *log_factorial = doubles((size_t)count);
    for (int k = 2; k < count; ++k) log_factorial[k] = log_factorial[k - 1] + log(k);
    for (int j = 0; j < s->sites; ++j) {
        s->site[j].rate.log_factorial = log_factorial;
        s->site[j].rate.factorials = count;
        s->sizes.group[j].rate = &s->site[j].rate;
    }
}

/* of a site, apart from its parameters */
static int own_coordinates(const struct pool *s, const struct pool_site *site) {
    switch (s->family) {
    case POOL_RATES:
        return 0;
    case POOL_TOTALS:
        return site->density.totals.size;
    case POOL_CLT:
        break;
    }
    return site->clt.size;
}

int pool_create(struct pool *s) {
    const struct model *model = &s->model;
    const struct model *keeper = s->partial ? &s->likelihood : model;
    const int rates = s->family == POOL_RATES;
    if (s->family != POOL_CLT) {
        s->parameters = rates ? model->moving : keeper->marginal->keeps;
        s->place = rates ? model->moves : keeper->marginal->kept;
    }
    s->spread.parameters = s->parameters;
    s->spread.last = &s->site[s->sites - 1].member;
    pool_spread_create(&s->spread);
    s->shared = s->separate ? 0 : s->parameters + s->spread.size + s->pooled_scatter;
    s->size = s->shared;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        site->member.before = j > 0 ? &site[-1].member : NULL;
        pool_member_create(&s->spread, &site->member);
        if (s->separate) site->member.own = 1;
        site->at = s->size;
        site->size = site->member.own + own_coordinates(s, site);
        if (s->family == POOL_TOTALS) pool_totals_create(s, site);
        if (s->family == POOL_CLT && site->size_prior) pool_clt_size_create(s, site);
        site->statistic = doubles((size_t)site->components);
        s->size += site->size;
    }
    if (s->sizes.groups > 0) {
        pool_sizes_create(&s->sizes);
        share_factorials(s);
    }
    const size_t d = (size_t)model->columns, parameters = (size_t)model->parameters;
    DOUBLES(parameters, &s->work.trial, &s->work.theta, &s->work.slope_theta);
    s->work.phi = doubles((size_t)s->parameters);
    s->work.natural = doubles((size_t)model->reported);
    DOUBLES((size_t)model->complete, &s->work.complete, &s->work.rest, &s->work.slope_c);
    if (s->pooled_scatter) {
        const struct model_pooled_scatter *of = model->marginal->pooled;
        if (!of || !keeper->marginal->pooled) return PLUGIN_BAD_FIELDS;
        DOUBLES((size_t)of->size, &s->work.sums, &s->work.sums_rest);
    }
    s->work.mean = doubles(d);
    s->work.chol = doubles(d * d);
    s->work.slope_own = doubles((size_t)s->size);
    s->work.hmc = doubles(hmc_workspace(s->size, HMC_DIAGONAL));
    return s->size > 0 ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

int pool_stored(const struct pool *s) {
    return (int)(hmc_stored(s->size, HMC_DIAGONAL) +
                 (s->family == POOL_CLT ? pool_clt_stored(s) : pool_totals_stored(s)));
}

void pool_attach(struct pool *s) {
    const struct hmc_target target = {s->size, s, pool_log_density, NULL};
    hmc_attach(&s->hmc, &target, HMC_DIAGONAL, s->store, s->work.hmc);
    double *sizes = s->store + hmc_stored(s->size, HMC_DIAGONAL);
    if (s->family == POOL_CLT)
        pool_clt_attach(s, sizes);
    else
        pool_totals_attach(s, sizes);
    if (s->partial)
        s->hmc.target_accept = s->size < MANY_COORDINATES ? TARGET_ACCEPT : TARGET_OF_MANY;
    doubles_copy(s->work.trial, s->theta, s->model.parameters);
    s->sizes.counter = s->counter + POOL_SIZE_MADE;
    for (int j = 0; j < s->sizes.groups; ++j) pool_rate_set_size(&s->site[j].rate, s->sizes.n[j]);
}

/* ---- the target -------------------------------------------------------------------------- */

/* log p(theta) of `trial`, its gradient to slope_theta */
static double log_prior(struct pool *s) {
    return model_prior(&s->model, s->work.trial, s->work.slope_theta);
}

static double density_of_separate(struct pool *s, const double *q, double *gradient) {
    const int at = s->place[0];
    double log_density = 0;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_member *member = &s->site[j].member;
        s->work.trial[at] = q[s->site[j].at];
        log_density +=
            log_prior(s) + pool_rate_log(&s->site[j].rate, s->work.trial[at], member->slope);
        if (!(log_density > -INFINITY)) return -INFINITY;
        gradient[s->site[j].at] = s->work.slope_theta[at] + member->slope[0];
    }
    return log_density;
}

static double density_of_rates(struct pool *s, double *gradient) {
    double log_density = log_prior(s);
    if (!(log_density > -INFINITY)) return -INFINITY;
    const int at = s->place[0];
    gradient[0] = s->work.slope_theta[at];
    for (int j = 0; j < s->sites; ++j) {
        double slope;
        log_density += pool_rate_log(&s->site[j].rate, s->work.trial[at], &slope);
        gradient[0] += slope;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

/* log p(z_j | phi_j), or with its totals where these are coordinates; the slope in phi to
 * the member, and that in the coordinates of totals to `gradient`. */
static double density_of_site(struct pool *s, struct pool_site *site, const double *q,
                              double *gradient) {
    struct pool_member *member = &site->member;
    switch (s->family) {
    case POOL_RATES:
        return pool_rate_log(&site->rate, member->phi[0], member->slope);
    case POOL_CLT:
        return pool_clt_log(&site->clt, member->phi, q, s->rounded, member->slope, gradient);
    case POOL_TOTALS:
        break;
    }
    if (!s->pooled_scatter) pool_totals_place(s, site, q);
    return pool_totals_log(s, site, q, gradient);
}

static double density_of_partial(struct pool *s, const double *q, double *gradient) {
    double log_density = log_prior(s);
    if (!(log_density > -INFINITY)) return -INFINITY;
    memset(gradient, 0, (size_t)s->shared * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) gradient[k] = s->work.slope_theta[s->place[k]];
    log_density += pool_spread_prior(&s->spread, q, gradient);
    /* in loops of their own: memory that a site needs is then fetched while others are computed */
    for (int j = 0; j < s->sites; ++j)
        pool_spread_place(&s->spread, q, &s->site[j].member, q + s->site[j].at);
    for (int j = 0; s->pooled_scatter && j < s->sites; ++j)
        pool_totals_place(s, s->site + j, q + s->site[j].at + s->site[j].member.own);
    if (s->pooled_scatter)
        log_density +=
            pool_totals_pool(s, &s->likelihood, q[s->shared - 1], gradient + s->shared - 1);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        const int at = site->at + site->member.own;
        log_density += density_of_site(s, site, q + at, gradient + at);
        if (!(log_density > -INFINITY)) return -INFINITY;
    }
    for (int j = s->sites - 1; j >= 0; --j) {
        struct pool_site *site = s->site + j;
        log_density += pool_spread_pull(&s->spread, q, &site->member, q + site->at, gradient,
                                        gradient + site->at);
    }
    pool_spread_finish(&s->spread, q, gradient);
    return isnan(log_density) ? -INFINITY : log_density;
}

/* The parameters, or their means over sites, to theta. */
static void place_parameters(struct pool *s, const double *q, double *theta) {
    pool_spread_open(&s->spread, q);
    for (int k = 0; k < s->parameters; ++k) theta[s->place[k]] = s->spread.mean[k];
}

/* The parameters of a site to its member. */
static void place_site(struct pool *s, struct pool_site *site, const double *q) {
    if (s->separate)
        site->member.phi[0] = q[site->at];
    else
        pool_spread_place(&s->spread, q, &site->member, q + site->at);
}

double pool_log_density(void *self, const double *q, double *gradient) {
    struct pool *s = self;
    if (s->separate) return density_of_separate(s, q, gradient);
    place_parameters(s, q, s->work.trial);
    if (s->partial) return density_of_partial(s, q, gradient);
    return s->family == POOL_RATES ? density_of_rates(s, gradient)
                                   : pool_totals_log_complete(s, q, gradient);
}

/* ---- the state --------------------------------------------------------------------------- */

/* Kernels are rounded off near 0, where the force of an absolute one jumps: within a step, or of
 * totals, whose trajectories are weighted by the density itself, a little more. */
static const double ROUNDED_STEPS = 1.5;

static int refresh(struct pool *s) {
    s->rounded = fmin(*s->hmc.step_size, 1);
    for (int j = 0; j < s->sites; ++j) s->site[j].density.rounded = ROUNDED_STEPS * s->rounded;
    return hmc_refresh(&s->hmc);
}

/* The components of each site and their misfit; `complete` is then the state's. */
static void measure(struct pool *s) {
    if (s->family == POOL_CLT) {
        pool_clt_measure(s);
        return;
    }
    pool_totals_expand(s, s->hmc.q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        struct totals_density *density = &site->density;
        doubles_copy(site->statistic, site->noise.released, site->noise.size); /* exact ones stay */
        for (int k = 0; k < site->noise.noisy; ++k)
            site->statistic[k] = component_value(density->component + k, density->c);
        site->energy = noise_energy(&site->noise, site->statistic);
    }
}

static int move_sizes(struct pool *s, int iteration, int warmup) {
    for (int j = 0; j < s->sites; ++j) s->sizes.group[j].t = s->site[j].member.phi[0];
    pool_sizes_move(&s->sizes, iteration, warmup, s->rng);
    return refresh(s) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

void pool_draw_totals(struct pool *s) {
    for (int j = 0; s->family == POOL_RATES && j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        site->statistic[0] = pool_rate_draw(&site->rate, site->member.phi[0], s->rng);
        if (s->sizes.groups > 0) site->statistic[1] = s->sizes.n[j];
    }
}

/* theta of the state, and sizes that are latent */
static int update(struct pool *s, int iteration, int warmup) {
    if (!s->separate) place_parameters(s, s->hmc.q, s->theta);
    for (int j = 0; j < s->sites; ++j) place_site(s, s->site + j, s->hmc.q);
    if (s->sizes.groups > 0 && move_sizes(s, iteration, warmup) != PLUGIN_OK)
        return PLUGIN_NUMERICAL;
    if (s->family == POOL_RATES) return PLUGIN_OK;
    measure(s);
    if (s->partial) return PLUGIN_OK;
    const int status =
        s->model.update->rtheta(s->model.self, s->work.complete, s->n, s->rng, s->theta);
    if (status != PLUGIN_OK || s->shared == 0) return status;
    /* what is kept moves a little more */
    for (int k = 0; k < s->shared; ++k) s->hmc.q[k] = s->theta[s->place[k]];
    return refresh(s) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void start_separate(struct pool *s, const struct pool_begin *begin, double *q,
                           double *unit) {
    for (int j = 0; j < s->sites; ++j) {
        q[s->site[j].at] = begin->phi[j];
        unit[s->site[j].at] = begin->error[j];
    }
}

static void start_sizes(struct pool *s, const struct pool_begin *begin) {
    for (int j = 0; j < s->sizes.groups; ++j) {
        s->sizes.n[j] = begin->sizes[j];
        s->sizes.log_scale[j] = log(fmax(2 * begin->size_error[j], 0.5));
        pool_rate_set_size(&s->site[j].rate, s->sizes.n[j]);
    }
}

static void start_spread(struct pool *s, const struct pool_begin *begin, double *q, double *unit) {
    for (int i = 0; i < s->spread.size; ++i) q[s->parameters + i] = begin->spread[i];
    doubles_copy(unit, begin->error, s->parameters + s->spread.size);
    if (s->pooled_scatter) q[s->shared - 1] = s->model.marginal->pooled->log_kappa;
    pool_spread_read_sds(&s->spread, q);
    pool_spread_start(&s->spread, q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        pool_member_start(&s->spread, q, &site->member, begin->phi + j * s->parameters,
                          q + site->at);
    }
}

/* What sites share alone, for hmc_lower_units() */
struct shared_alone {
    struct pool *pool;
    double *q, *gradient;
};

static double log_density_of_shared(void *self, const double *q, double *gradient) {
    const struct shared_alone *of = self;
    doubles_copy(of->q, q, of->pool->shared);
    const double log_density = pool_log_density(of->pool, of->q, of->gradient);
    doubles_copy(gradient, of->gradient, of->pool->shared);
    return log_density;
}

/* Many sites know their mean and spread well: from units too wide for these, trajectories of early
 * warmup would need steps as many as the root of their number. */
static void lower_shared_units(struct pool *s, double *q, double *unit) {
    struct shared_alone of = {s, q, s->work.slope_own};
    const struct hmc_target target = {s->shared, &of, log_density_of_shared, NULL};
    double *at = doubles(4 * (size_t)s->shared);
    doubles_copy(at, q, s->shared);
    hmc_lower_units(&target, at, unit, at + s->shared);
    doubles_copy(q, at, s->shared);
}

void pool_start(struct pool *s, const struct pool_begin *begin) {
    double *q = doubles((size_t)s->size), *unit = doubles((size_t)s->size);
    for (int i = 0; i < s->size; ++i) unit[i] = 1;
    start_sizes(s, begin);
    if (s->separate) {
        start_separate(s, begin, q, unit);
    } else {
        for (int k = 0; k < s->parameters; ++k) q[k] = s->theta[s->place[k]];
        if (s->partial) start_spread(s, begin, q, unit);
    }
    if (s->family == POOL_TOTALS) pool_totals_start(s, begin, q, unit);
    if (s->partial && s->family != POOL_CLT && s->size >= MANY_COORDINATES)
        lower_shared_units(s, q, unit);
    hmc_start(&s->hmc, q, unit);
    if (s->family == POOL_CLT)
        pool_clt_start(s);
    else
        (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}

void pool_load(struct pool *s) { (void)refresh(s); }

int pool_iterate(struct pool *s, int iteration, int warmup, double *accepted) {
    struct hmc_step told;
    if (s->family != POOL_RATES && s->rounded != fmin(*s->hmc.step_size, 1)) (void)refresh(s);
    hmc_nuts(&s->hmc, s->rng, &told);
    hmc_learn(&s->hmc, iteration, warmup, &told, s->rng);
    if (s->unsized > 0) {
        place_parameters(s, s->hmc.q, s->work.trial);
        for (int j = 0; s->partial && j < s->sites; ++j) place_site(s, s->site + j, s->hmc.q);
        if (s->family == POOL_CLT)
            pool_clt_move_sizes(s, iteration, warmup);
        else
            pool_totals_move_sizes(s, iteration, warmup);
        (void)refresh(s);
    }
    double *counter = s->counter;
    counter[POOL_ITERATIONS] += 1;
    counter[POOL_ACCEPTANCE] += told.accept;
    counter[POOL_LEAPFROGS] += told.leapfrogs;
    counter[POOL_DIVERGENT] += told.divergent;
    counter[POOL_DEEPEST] += told.leapfrogs >= (1 << HMC_MOST_DEPTH) - 1;
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;
    return update(s, iteration, warmup);
}

/* Expected number of records of a site outside its bounds, of parameters theta: the tails of the
 * variables' marginal distributions, summed. */
static double outside_of_site(struct pool *s, const struct pool_site *site, const double *theta) {
    const int d = s->model.columns;
    double sum = 0;
    s->model.normal->distribution(s->model.self, theta, s->work.mean, s->work.chol);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.normal->order[i];
        const double *row = s->work.chol + (size_t)i * (size_t)d;
        const double mean = s->model.normal->origin[v] + s->work.mean[i];
        double variance = 0;
        for (int j = 0; j <= i; ++j) variance += row[j] * row[j];
        const double sd = sqrt(variance);
        sum += site->n * (Rf_pnorm5(site->lower[v], mean, sd, 1, 0) +
                          Rf_pnorm5(site->upper[v], mean, sd, 0, 0));
    }
    return sum;
}

/* What the model has of all sites, before draw_site() */
static double *start_draws(struct pool *s) {
    double slope;
    if (s->pooled_scatter) (void)pool_totals_pool(s, &s->model, s->hmc.q[s->shared - 1], &slope);
    doubles_copy(s->work.theta, s->theta, s->model.parameters);
    return s->work.theta;
}

/* A site's parameters, its covariates' drawn given its totals */
static void draw_site(struct pool *s, const struct pool_site *site, double *theta) {
    (void)s->model.update->rtheta(s->model.self, site->density.c, site->n, s->rng, theta);
    for (int k = 0; k < s->parameters; ++k) theta[s->place[k]] = site->member.phi[k];
}

double pool_outside(struct pool *s) {
    double sum = 0, n = 0;
    if (s->family == POOL_CLT) return pool_clt_outside(s);
    for (int j = 0; s->family == POOL_RATES && j < s->sites; ++j) {
        const struct pool_rate *rate = &s->site[j].rate;
        sum += rate->n * pool_rate_outside(rate, s->site[j].member.phi[0]);
        n += rate->n;
    }
    if (s->family == POOL_RATES) return fmin(sum / fmax(n, 1), 1);
    double *theta = start_draws(s);
    for (int j = 0; j < s->sites; ++j) {
        if (s->partial) draw_site(s, s->site + j, theta);
        sum += outside_of_site(s, s->site + j, theta);
    }
    return fmin(sum / s->n, 1);
}

/* Returns where the next number goes. */
static double *report_partial(struct pool *s, double *draw) {
    doubles_copy(s->work.trial, s->theta, s->model.parameters);
    model_report(&s->model, s->work.trial, s->work.natural);
    for (int k = 0; k < s->heads.count; ++k) *draw++ = s->work.natural[s->heads.at[k]];
    pool_spread_report(&s->spread, s->hmc.q, draw);
    draw += s->spread.size;
    for (int j = 0; j < s->sites; ++j) {
        for (int k = 0; k < s->parameters; ++k)
            s->work.trial[s->place[k]] = s->site[j].member.phi[k];
        model_report(&s->model, s->work.trial, s->work.natural);
        for (int k = 0; k < s->shown.count; ++k) *draw++ = s->work.natural[s->shown.at[k]];
    }
    return draw;
}

void pool_report(struct pool *s, double *draw) {
    if (s->partial) {
        draw = report_partial(s, draw);
    } else {
        model_report(&s->model, s->theta, draw);
        draw += s->model.reported;
    }
    for (int j = 0; j < s->sites; ++j)
        if (s->site[j].size_prior) *draw++ = s->site[j].n;
    double *theta = s->drawn.count > 0 ? start_draws(s) : NULL;
    for (int j = 0; theta && j < s->sites; ++j) {
        draw_site(s, s->site + j, theta);
        model_report(&s->model, theta, s->work.natural);
        for (int k = 0; k < s->drawn.count; ++k) *draw++ = s->work.natural[s->drawn.at[k]];
    }
}
