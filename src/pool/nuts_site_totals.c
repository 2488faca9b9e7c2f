/* Sites with normal totals in pools: see pool/nuts_chain.c.
 *
 * The number of records n_j of a site may be unknown. Then it has its own steps
 * (totals/n_steps.c), given everything else, and the target has the factor in
 * totals/normal_totals_chain.c. Of this factor, the part that marginal() leaves out is for the
 * records of all sites or, if sites have their own parameters, for the records of the site.
 *
 * Cost of a step: the density of the site, and with complete pooling marginal(); free of the
 * number of sites. No allocation except in pool_read_totals(), pool_totals_create() and
 * pool_totals_start().
 */
#include "contract/model_marginal.h"
#include "contract/model_normal.h"
#include "pool/pool_nuts.h"

static int read_size(const struct fields *fields, const struct model *model,
                     struct pool_site *site) {
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread) return PLUGIN_BAD_FIELDS;
    site->resize = plugin_memory(1, sizeof *site->resize);
    site->resize->model = model;
    site->resize->density = &site->density;
    return totals_resize_create(site->resize, site->size_prior, site->n, *spread,
                                site->density.totals.size);
}

int pool_read_totals(const struct fields *fields, const struct model *model,
                     struct pool_site *site) {
    const int d = model->columns;
    const double *n = fields_vector(fields, "n", 1);
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * site->components);
    site->lower = fields_vector(fields, "lower", d);
    site->upper = fields_vector(fields, "upper", d);
    if (!n || !terms || !site->lower || !site->upper || !model->normal || !model->marginal)
        return PLUGIN_BAD_FIELDS;
    site->n = *n;
    site->density.noise = noise_first(&site->noise, site->noise.noisy);
    site->density.component = read_components(d, site->components, terms);
    totals_density_create(&site->density, model, *n, d, model->normal->order, 1, NULL);
    (void)totals_design(&site->density.totals, NULL);
    site->exact = totals_exact_new(&site->density, site->density.totals.size, &site->noise);
    return site->size_prior ? read_size(fields, model, site) : PLUGIN_OK;
}

void pool_totals_create(struct pool *s, struct pool_site *site) {
    if (s->partial) coordinates_set_known(&s->likelihood.coordinates, site->density.theta);
    if (site->resize) s->unsized += 1;
    if (site->innovates == INNOVATE_RESPONSE) {
        totals_invert_rows(&site->density.totals);
        totals_residual_create(&site->residual, &site->density.totals, s->model.columns);
    } else if (site->innovates == INNOVATE_ALL)
        totals_innovations_create(&site->innovations, &site->density.totals, &s->likelihood);
}

size_t pool_totals_stored(const struct pool *s) {
    size_t sum = 0;
    for (int j = 0; j < s->sites; ++j)
        if (s->site[j].resize) sum += totals_size_stored(&s->site[j].resize->size);
    return sum;
}

/* n of the state, for all that depends on it */
static void take_records(struct pool *s, struct pool_site *site) {
    const double n = *site->resize->size.n;
    s->n += n - site->n;
    site->n = n;
}

void pool_totals_attach(struct pool *s, double *store) {
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        if (!site->resize) continue;
        totals_size_attach(&site->resize->size, store);
        store += totals_size_stored(&site->resize->size);
        site->resize->rng = s->rng;
        if (!(*site->resize->size.n > 0)) continue; /* a new state */
        totals_resize_set(site->resize, *site->resize->size.n);
        take_records(s, site);
    }
}

/* The totals of coordinates in which some may be innovations, or exact, or go with n; density.theta
 * is the site's. site->placed is then where they are in coordinates of
 * totals/normal_coordinates.c. Returns the log Jacobian. */
static double place(struct pool_site *site, const double *q) {
    double log_volume = 0;
    site->placed = q;
    if (site->exact) {
        site->placed = totals_exact_place(site->exact, q);
    } else if (site->resize) {
        totals_size_place(&site->resize->size, q);
        site->placed = site->resize->size.place;
    } else if (site->innovates == INNOVATE_RESPONSE) {
        log_volume = totals_residual_place(&site->residual, site->density.theta, q);
        site->placed = site->residual.at;
    } else if (site->innovates == INNOVATE_ALL) {
        log_volume = totals_innovations_place(&site->innovations, site->density.theta, q);
        site->placed = site->innovations.at;
    }
    totals_expand(&site->density.totals, site->placed, site->density.c);
    return log_volume;
}

/* a gradient in the coordinates of site->placed to that in q; that in theta to slope_theta */
static void pull_innovations(struct pool *s, struct pool_site *site, const double *q,
                             double *gradient) {
    double *slope = s->work.slope_theta;
    memset(slope, 0, (size_t)s->model.parameters * sizeof(double));
    if (site->innovates == INNOVATE_RESPONSE)
        totals_residual_pull(&site->residual, site->density.theta, q, gradient, slope);
    else
        totals_innovations_pull(&site->innovations, site->density.theta, q, gradient, slope);
}

/* Coordinates of a site's totals to innovations, in place. */
static void read_innovations(struct pool_site *site, double *q) {
    if (site->innovates == INNOVATE_RESPONSE)
        totals_residual_read(&site->residual, site->density.theta, q);
    else
        totals_innovations_read(&site->innovations, site->density.theta, q);
}

/* The parameters of a site to the theta that its totals are given. */
static void give_totals(struct pool *s, struct pool_site *site) {
    for (int k = 0; k < s->parameters; ++k) site->density.theta[s->place[k]] = site->member.phi[k];
}

void pool_totals_place(struct pool *s, struct pool_site *site, const double *q) {
    if (s->partial) give_totals(s, site);
    site->log_volume = place(site, q);
}

/* of all sites but one; NULL: of all */
static void add_sums(struct pool *s, const struct model *model, double log_kappa,
                     const struct pool_site *but, double *sums) {
    const struct model_pooled_scatter *of = model->marginal->pooled;
    memset(sums, 0, (size_t)of->size * sizeof(double));
    for (int j = 0; j < s->sites; ++j)
        if (s->site + j != but)
            of->add(model->self, log_kappa, s->site[j].density.c, s->site[j].n, sums);
}

double pool_totals_pool(struct pool *s, const struct model *model, double log_kappa,
                        double *slope) {
    add_sums(s, model, log_kappa, NULL, s->work.sums);
    return model->marginal->pooled->set(model->self, log_kappa, s->work.sums, s->n, 0, slope);
}

void pool_totals_expand(struct pool *s, const double *q) {
    memset(s->work.complete, 0, (size_t)s->model.complete * sizeof(double));
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        pool_totals_place(s, site, q + site->at + site->member.own);
        for (int i = 0; i < s->model.complete; ++i) s->work.complete[i] += site->density.c[i];
    }
}

/* The log of the volume after place(), exact totals accounted for, and the noise's energy; the
 * gradient at q, that in c of all else being there. */
static double pull(struct pool_site *site, const double *q, double *gradient) {
    struct totals_density *density = &site->density;
    totals_density_noise(density, density->noise.released, density->gradient_c);
    double log_density = totals_pull(&density->totals, site->placed, density->gradient_c, gradient);
    if (site->exact) log_density += totals_exact_pull(site->exact, q, gradient);
    for (int j = 0; site->resize && j < density->totals.d; ++j)
        gradient[j] *= site->resize->size.stretch[j];
    return log_density;
}

/* Of the records of all sites, `complete`; the slope in it, and that in what is kept. */
static double log_marginal(struct pool *s, double *gradient) {
    return s->model.marginal->marginal(s->model.self, s->work.complete, s->n, s->work.trial,
                                       s->work.slope_c, gradient);
}

double pool_totals_log_complete(struct pool *s, const double *q, double *gradient) {
    pool_totals_expand(s, q);
    double log_density = log_marginal(s, gradient);
    if (!(log_density > -INFINITY)) return -INFINITY;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        doubles_copy(site->density.gradient_c, s->work.slope_c, s->model.complete);
        log_density += pull(site, q + site->at, gradient + site->at) - site->density.energy;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

double pool_totals_log(struct pool *s, struct pool_site *site, const double *q, double *gradient) {
    struct totals_density *density = &site->density;
    struct pool_member *member = &site->member;
    double log_density = site->log_volume;
    log_density +=
        s->likelihood.marginal->marginal(s->likelihood.self, density->c, site->n, density->theta,
                                         density->gradient_c, member->slope);
    log_density += pull(site, q, gradient);
    if (site->innovates) {
        pull_innovations(s, site, q, gradient);
        for (int k = 0; k < s->parameters; ++k)
            member->slope[k] += s->work.slope_theta[s->place[k]];
    }
    return log_density - density->energy;
}

/* ---- an unknown number of records -------------------------------------------------------- */

/* The factor of what sites have in common, all sums but this site's being `sums_rest`. */
static double log_common(struct pool *s, const struct pool_site *site) {
    const struct model *model = &s->likelihood;
    const double log_kappa = s->hmc.q[s->shared - 1];
    double slope;
    doubles_copy(s->work.sums, s->work.sums_rest, model->marginal->pooled->size);
    model->marginal->pooled->add(model->self, log_kappa, site->density.c, site->n, s->work.sums);
    return model->marginal->pooled->set(model->self, log_kappa, s->work.sums, s->n, s->n - site->n,
                                        &slope);
}

/* What depends on a site's n and totals, all other sites' being `rest`. */
static double log_of_resized(struct pool *s, struct pool_site *site, const double *q) {
    double *gradient = s->work.slope_own, log_density;
    if (s->partial) {
        pool_totals_place(s, site, q);
        const double common = s->pooled_scatter ? log_common(s, site) : 0;
        log_density = common + pool_totals_log(s, site, q, gradient);
    } else {
        (void)place(site, q);
        for (int i = 0; i < s->model.complete; ++i)
            s->work.complete[i] = s->work.rest[i] + site->density.c[i];
        log_density = log_marginal(s, gradient);
        doubles_copy(site->density.gradient_c, s->work.slope_c, s->model.complete);
        log_density += pull(site, q, gradient + s->shared) - site->density.energy;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

static int resize(struct pool *s, struct pool_site *site, enum totals_step kind, int learning,
                  double *log_density) {
    struct totals_resize *r = site->resize;
    double *q = s->hmc.q + site->at + site->member.own, log_ratio, log_new = -INFINITY;
    r->others = s->partial ? 0 : s->n - site->n;
    if (totals_resize_propose(r, kind, q, &log_ratio)) {
        take_records(s, site);
        log_new = log_of_resized(s, site, q);
        log_ratio += log_new - *log_density;
    }
    if (!(log_new > -INFINITY)) log_ratio = -INFINITY;
    const int accept = -log_ratio < rng_exponential(s->rng);
    if (accept)
        *log_density = log_new;
    else
        totals_resize_undo(r, q);
    take_records(s, site);
    if (learning) totals_resize_learn(r, kind, log_ratio);
    return accept;
}

void pool_totals_move_sizes(struct pool *s, int iteration, int warmup) {
    const int learning = iteration < warmup, closes = hmc_window(iteration, warmup) == HMC_LAST;
    pool_totals_expand(s, s->hmc.q);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        double *q = s->hmc.q + site->at + site->member.own;
        if (!site->resize) continue;
        for (int i = 0; i < s->model.complete; ++i)
            s->work.rest[i] = s->work.complete[i] - site->density.c[i];
        if (s->pooled_scatter)
            add_sums(s, &s->likelihood, s->hmc.q[s->shared - 1], site, s->work.sums_rest);
        double log_density = log_of_resized(s, site, q);
        const int steps = totals_resize_steps(site->resize);
        for (int k = 0; k < steps; ++k)
            s->counter[POOL_SIZE_ACCEPTED] +=
                resize(s, site, totals_resize_kind(site->resize, k), learning, &log_density);
        s->counter[POOL_SIZE_MADE] += steps;
        (void)place(site, q);
        for (int i = 0; i < s->model.complete; ++i)
            s->work.complete[i] = s->work.rest[i] + site->density.c[i];
        if (learning) totals_size_learn(&site->resize->size, closes, q);
    }
}

/* ---- starts ------------------------------------------------------------------------------ */

/* A site's totals alone, for hmc_lower_units() */
struct totals_of_site {
    struct pool *pool;
    struct pool_site *site;
};

static double log_density_of_site(void *self, const double *q, double *gradient) {
    const struct totals_of_site *of = self;
    pool_totals_place(of->pool, of->site, q);
    return pool_totals_log(of->pool, of->site, q, gradient);
}

/* About how wide a site's totals are, innovations among them, given phi. */
static void start_innovations(struct pool *s, struct pool_site *site, const double *q, double *unit,
                              double *scratch) {
    const int d = site->density.totals.d, size = site->density.totals.size;
    struct totals_of_site of = {s, site};
    const struct hmc_target target = {size, &of, log_density_of_site, NULL};
    for (int i = site->innovates == INNOVATE_ALL ? 0 : d - 1; i < d; ++i) unit[i] = 1;
    for (int i = size - d; site->innovates == INNOVATE_RESPONSE && i < size; ++i) unit[i] = 1;
    site->density.smooth = 1;
    hmc_lower_units(&target, q, unit, scratch);
    site->density.smooth = 0;
}

/* n, and what a site's own chain assumes for variances before the release; returns where the
 * numbers of the next begin. */
static const double *start_size(struct pool *s, struct pool_site *site, const double *begin) {
    const int d = s->model.columns;
    struct totals_size *size = &site->resize->size;
    doubles_copy(size->between, begin + 1, d);
    doubles_copy(size->within, begin + 1 + d, d);
    totals_resize_start(site->resize, s->work.mean);
    totals_resize_set(site->resize, begin[0]);
    take_records(s, site);
    return begin + 1 + 2 * d;
}

/* Coordinates that go with n for those of totals/normal_coordinates.c. */
static void free_coordinates(const struct totals_resize *r, const double *place, double *q,
                             double *unit) {
    totals_size_free(&r->size, place, q);
    for (int j = 0; j < r->density->totals.d; ++j) unit[j] /= r->size.stretch[j];
}

void pool_totals_start(struct pool *s, const struct pool_begin *begin, double *q, double *unit) {
    const double *complete = begin->complete, *sizes = begin->unsized;
    double *scratch = doubles(5 * (size_t)s->size), *own = scratch + 3 * (size_t)s->size;
    for (int j = 0; j < s->sites; ++j, complete += s->model.complete) {
        struct pool_site *site = s->site + j;
        struct totals_density *density = &site->density;
        const int size = density->totals.size, at = site->at + site->member.own;
        if (site->resize) sizes = start_size(s, site, sizes);
        doubles_copy(density->theta, s->theta, s->model.parameters);
        if (s->partial) give_totals(s, site);
        /* not refused: the site began at it */
        (void)totals_density_coordinates(density, complete, density->theta, own);
        doubles_copy(q + at, own, size);
        if (site->innovates) {
            totals_density_natural_units(density, own, own + density->size);
            doubles_copy(unit + at, own + density->size, size);
            read_innovations(site, q + at);
            start_innovations(s, site, q + at, unit + at, scratch);
            continue;
        }
        totals_density_units(density, own, own + density->size, scratch);
        doubles_copy(unit + at, own + density->size, size);
        if (site->exact) totals_exact_start(site->exact, q + at, unit + at);
        if (site->resize) free_coordinates(site->resize, own, q + at, unit + at);
        for (int k = 0; !s->partial && k < s->shared; ++k) unit[k] = own[density->size + size + k];
    }
}
