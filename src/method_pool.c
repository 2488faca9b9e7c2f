/* Method "pool": the posterior given releases of different records, one a site, each with noise of
 * its own (MATH part 15). All sites have the same parameters theta.
 *
 * Rates: theta is one number, and totals are summed out (pool_rate.c). Target:
 *
 *   p(theta) prod_j p(z_j | theta).
 *
 * Normal totals: c_j is the complete-data statistic of site j in the coordinates of totals.c. The
 * records of all sites together have the statistic sum c_j, so theta integrates out as it does for
 * one site (marginal(), but for what it keeps). Target:
 *
 *   marginal(sum c_j, sum n_j) prod_j volume_j(c_j) eta_j(z_j | A_j c_j).
 *
 * Exact if no record lies outside the bounds. Totals of sites are never added up before the noise
 * is accounted for: noise of different scales would lose what the better release knows.
 *
 * NUTS moves all coordinates (hmc.c), those that are shared first. Then the model's own update
 * draws theta given sum c_j.
 *
 * Cost: that of a gradient of each site, O(d^3 + components) for d columns; free of n but for
 * rates. No allocation but in pool_create().
 */
#include "method_pool.h"

#include "block.h"

#include <Rmath.h>

static double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static void copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

/* ---- set-up ------------------------------------------------------------------------------ */

int pool_read_rate(const struct fields *fields, struct pool_site *site) {
    const int status = pool_rate_read(fields, &site->rate);
    site->n = site->rate.n;
    return status;
}

int pool_read_totals(const struct fields *fields, const struct model *model, int absolute,
                     const double *released, const double *weight, struct pool_site *site) {
    const int d = model->columns;
    const double *n = fields_vector(fields, "n", 1);
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * site->components);
    site->lower = fields_vector(fields, "lower", d);
    site->upper = fields_vector(fields, "upper", d);
    if (!n || !terms || !site->lower || !site->upper || !model->class->marginal)
        return PLUGIN_BAD_FIELDS;
    site->n = *n;
    site->density.components = site->components;
    site->density.absolute = absolute;
    site->density.released = released;
    site->density.weight = weight;
    site->density.component = read_components(d, site->components, terms);
    totals_density_create(&site->density, model, *n, d, model->order, 1, NULL);
    return totals_design(&site->density.totals, NULL);
}

int pool_create(struct pool *s) {
    const struct model *model = &s->model;
    const int rates = s->family == POOL_RATES;
    s->shared = rates ? model->moving : model->keeps;
    s->place = rates ? model->moves : model->kept;
    s->size = s->shared;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        site->at = s->size;
        site->size = rates ? 0 : site->density.totals.size;
        site->statistic = doubles((size_t)site->components);
        s->size += site->size;
    }
    const size_t d = (size_t)model->columns, parameters = (size_t)model->parameters;
    s->trial = doubles(parameters);
    s->slope_theta = doubles(parameters);
    s->complete = doubles((size_t)model->complete);
    s->slope_c = doubles((size_t)model->complete);
    s->mean = doubles(d);
    s->chol = doubles(d * d);
    s->work = doubles(hmc_workspace(s->size, HMC_DIAGONAL));
    return s->size > 0 ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

int pool_stored(const struct pool *s) { return (int)hmc_stored(s->size, HMC_DIAGONAL); }

void pool_attach(struct pool *s) {
    const struct hmc_target target = {s->size, s, pool_log_density};
    hmc_attach(&s->hmc, &target, HMC_DIAGONAL, s->store, s->work);
    copy(s->trial, s->theta, s->model.parameters);
}

/* ---- the target -------------------------------------------------------------------------- */

/* log p(theta) of `trial`, its gradient to slope_theta; by differences where the model has none. */
static double log_prior(struct pool *s) {
    static const double STEP = 1e-5;
    const struct model_class *class = s->model.class;
    const double value = class->dprior(s->model.self, s->trial);
    memset(s->slope_theta, 0, (size_t)s->model.parameters * sizeof(double));
    if (!isfinite(value)) return -INFINITY;
    if (class->prior_gradient) {
        class->prior_gradient(s->model.self, s->trial, s->slope_theta);
        return value;
    }
    for (int k = 0; k < s->shared; ++k) {
        const int at = s->place[k];
        const double here = s->trial[at], step = STEP * (1 + fabs(here));
        s->trial[at] = here + step;
        const double above = class->dprior(s->model.self, s->trial);
        s->trial[at] = here - step;
        s->slope_theta[at] = (above - class->dprior(s->model.self, s->trial)) / (2 * step);
        s->trial[at] = here;
    }
    return value;
}

static double density_of_rates(struct pool *s, double *gradient) {
    double log_density = log_prior(s);
    if (!(log_density > -INFINITY)) return -INFINITY;
    const int at = s->place[0];
    gradient[0] = s->slope_theta[at];
    for (int j = 0; j < s->sites; ++j) {
        double slope;
        log_density += pool_rate_log(&s->site[j].rate, s->trial[at], &slope);
        gradient[0] += slope;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

/* the sites' totals, and `complete`, their sum */
static void expand(struct pool *s, const double *q) {
    memset(s->complete, 0, (size_t)s->model.complete * sizeof(double));
    for (int j = 0; j < s->sites; ++j) {
        struct totals_density *density = &s->site[j].density;
        totals_expand(&density->totals, q + s->site[j].at, density->c);
        for (int i = 0; i < s->model.complete; ++i) s->complete[i] += density->c[i];
    }
}

static double density_of_totals(struct pool *s, const double *q, double *gradient) {
    expand(s, q);
    double log_density =
        s->model.class->marginal(s->model.self, s->complete, s->n, s->trial, s->slope_c, gradient);
    if (!(log_density > -INFINITY)) return -INFINITY;
    for (int j = 0; j < s->sites; ++j) {
        const struct pool_site *site = s->site + j;
        struct totals_density *density = &s->site[j].density;
        copy(density->gradient_c, s->slope_c, s->model.complete);
        totals_density_noise(density, density->released, density->gradient_c);
        log_density +=
            totals_pull(&density->totals, q + site->at, density->gradient_c, gradient + site->at) -
            density->energy;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

double pool_log_density(void *self, const double *q, double *gradient) {
    struct pool *s = self;
    for (int k = 0; k < s->shared; ++k) s->trial[s->place[k]] = q[k];
    return s->family == POOL_RATES ? density_of_rates(s, gradient)
                                   : density_of_totals(s, q, gradient);
}

/* ---- the state --------------------------------------------------------------------------- */

/* Kernels are rounded off within a step of 0, where the force of an absolute one jumps. */
static int refresh(struct pool *s) {
    for (int j = 0; j < s->sites; ++j) s->site[j].density.rounded = *s->hmc.step_size;
    return hmc_refresh(&s->hmc);
}

/* The components of each site and their misfit; `complete` is then that of the state. */
static void measure(struct pool *s) {
    expand(s, s->hmc.q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        struct totals_density *density = &site->density;
        site->energy = 0;
        for (int k = 0; k < site->components; ++k) {
            site->statistic[k] = component_value(density->component + k, density->c);
            const double r = (density->released[k] - site->statistic[k]) * density->weight[k];
            site->energy += k < density->absolute ? fabs(r) : 0.5 * r * r;
        }
    }
}

/* theta of the state, and for rates a total of each site */
static int update(struct pool *s) {
    for (int k = 0; k < s->shared; ++k) s->theta[s->place[k]] = s->hmc.q[k];
    if (s->family == POOL_RATES) {
        for (int j = 0; j < s->sites; ++j)
            s->site[j].statistic[0] =
                pool_rate_draw(&s->site[j].rate, s->theta[s->place[0]], s->rng);
        return PLUGIN_OK;
    }
    measure(s);
    const int status = s->model.class->rtheta(s->model.self, s->complete, s->n, s->rng, s->theta);
    if (status != PLUGIN_OK || s->shared == 0) return status;
    /* what is kept moves a little more */
    for (int k = 0; k < s->shared; ++k) s->hmc.q[k] = s->theta[s->place[k]];
    return refresh(s) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void start_totals(struct pool *s, const double *complete, double *q, double *unit) {
    double *scratch = doubles(5 * (size_t)s->size), *own = scratch + 3 * (size_t)s->size;
    for (int j = 0; j < s->sites; ++j, complete += s->model.complete) {
        struct pool_site *site = s->site + j;
        copy(site->density.theta, s->theta, s->model.parameters);
        /* not refused: the site began at it */
        (void)totals_density_coordinates(&site->density, complete, s->theta, own);
        copy(q + site->at, own, site->size);
        totals_density_units(&site->density, own, own + site->density.size, scratch);
        copy(unit + site->at, own + site->density.size, site->size);
        for (int k = 0; k < s->shared; ++k) unit[k] = own[site->density.size + site->size + k];
    }
}

void pool_start(struct pool *s, const double *complete) {
    double *q = doubles((size_t)s->size), *unit = doubles((size_t)s->size);
    for (int k = 0; k < s->shared; ++k) {
        q[k] = s->theta[s->place[k]];
        unit[k] = 1;
    }
    if (s->family == POOL_TOTALS) start_totals(s, complete, q, unit);
    hmc_start(&s->hmc, q, unit);
    (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}

void pool_load(struct pool *s) { (void)refresh(s); }

int pool_iterate(struct pool *s, int iteration, int warmup, double *accepted) {
    struct hmc_step told;
    if (s->family == POOL_TOTALS && s->site[0].density.rounded != *s->hmc.step_size)
        (void)refresh(s);
    hmc_nuts(&s->hmc, s->rng, &told);
    hmc_learn(&s->hmc, iteration, warmup, &told, s->rng);
    double *counter = s->counter;
    counter[POOL_ITERATIONS] += 1;
    counter[POOL_ACCEPTANCE] += told.accept;
    counter[POOL_LEAPFROGS] += told.leapfrogs;
    counter[POOL_DIVERGENT] += told.divergent;
    counter[POOL_DEEPEST] += told.leapfrogs >= (1 << HMC_MOST_DEPTH) - 1;
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;
    return update(s);
}

/* Expected share of all records outside their site's bounds: the tails of the variables' marginal
 * distributions, summed. */
double pool_outside(struct pool *s) {
    if (s->family == POOL_RATES) return 0;
    const int d = s->model.columns;
    double sum = 0;
    s->model.class->distribution(s->model.self, s->theta, s->mean, s->chol);
    for (int i = 0; i < d; ++i) {
        const int v = s->model.order[i];
        const double *row = s->chol + (size_t)i * (size_t)d;
        const double mean = s->model.origin[v] + s->mean[i];
        double variance = 0;
        for (int j = 0; j <= i; ++j) variance += row[j] * row[j];
        const double sd = sqrt(variance);
        for (int j = 0; j < s->sites; ++j) {
            const struct pool_site *site = s->site + j;
            sum += site->n * (Rf_pnorm5(site->lower[v], mean, sd, 1, 0) +
                              Rf_pnorm5(site->upper[v], mean, sd, 0, 0));
        }
    }
    return fmin(sum / s->n, 1);
}
