/* Method "pool_records": sites whose parameters phi_j, some coordinates of theta_j, vary about a
 * common mean (pool/hyperprior.c). The records of each are imputed as in method "augment". Target:
 *
 *   p(shared) prod_j N(phi_j | shared) p(rest of theta_j) prod_i f(x_ij | theta_j) eta_j(z_j |
 * s_j).
 *
 * A round, of which an iteration may have several (mcmc/rounds_per_iteration.c):
 *   1. each site: passes, a sweep, and theta_j given its records, as in a fit of that site alone
 *      with the prior that phi_j has given what is shared (struct augment_layer); theta_j | records
 *      by random walks on the log likelihood, what is no parameter by the model's update.
 *      Or, of counts, the table given theta_j, which replaces the records
 *      (table/table_chain.c): at a cost free of their number, numbers that are exact kept, and
 *      an unknown number of records moved. Of a response with levels the probabilities of the
 *      covariates' levels are no parameters: they are drawn given the table (rshares()), and walk
 *      with the coefficients, the table following.
 *   2. where the model gives slopes of the records' likelihood: what is shared and the parameters
 *      of all sites, given the records (pool/parameters_nuts.c).
 *   3. what is shared, by random walks (pool/shared_walks.c).
 *
 * Invariants between steps: phi of a member follows from its theta; the spread is open at `at`.
 * Cost of an iteration: a round of method "augment" at each site, and the walks.
 */
#include "pool/pool_gibbs.h"

#include "contract/model.h"
#include "contract/model_likelihood.h"
#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "contract/model_update.h"
#include "records/augment_internal.h"

/* of a table: moves of the parameters of a site, its counts following */
enum { TABLE_STEPS = 4 };

/* of the distance of a site's start from the mean, at most */
enum { HALVINGS = 60 };

enum { STEPS = 3, MOST_STEPS = 12 };

/* ---- densities --------------------------------------------------------------------------- */

/* The prior of a site's theta given all others: struct augment_layer. Sites have no parameters
 * where the model has none. */
static double site_log_prior(void *self, const double *theta) {
    struct pool_records_site *site = self;
    struct pool_records *s = site->pool;
    if (!(pool_log_prior(s, theta) > -INFINITY)) return -INFINITY;
    double sum = 0;
    if (s->rests.count > 0) {
        doubles_copy(s->work.trial, s->reference, s->model.parameters);
        for (int k = 0; k < s->rests.count; ++k)
            s->work.trial[s->rests.at[k]] = theta[s->rests.at[k]];
        sum += pool_log_prior(s, s->work.trial);
    }
    pool_phi_from_theta(s, &site->member, theta);
    if (s->spread.walk && !site->member.before)
        sum += pool_prior_of_parameters(s, site->member.phi);
    sum += pool_member_density(&s->spread, s->at, &site->member);
    const int later = (int)(s->site + s->sites - 1 - site);
    for (int j = 1; j <= s->spread.walk && j <= later; ++j)
        sum += pool_member_density(&s->spread, s->at, &site[j].member);
    pool_phi_from_theta(s, &site->member, site->augment.theta);
    return sum;
}

/* ---- a site ------------------------------------------------------------------------------ */

static int update_rest(struct pool_records *s, struct augment *a) {
    doubles_copy(s->work.theta, a->theta, s->model.parameters);
    int status = PLUGIN_OK;
    if (a->n == 0)
        s->model.class->rprior(s->model.self, s->rng, s->work.theta);
    else
        status = s->model.update->rtheta(s->model.self, a->complete, (double)a->n, s->rng,
                                         s->work.theta);
    if (status != PLUGIN_OK) return status;
    for (int k = 0; k < s->rests.count; ++k)
        a->theta[s->rests.at[k]] = s->work.theta[s->rests.at[k]];
    return PLUGIN_OK;
}

/* After steps of theta of a site: phi is its own, and warmup learns from where it is. */
static void remember_theta(struct pool_records_site *site, int learning) {
    struct pool_records *s = site->pool;
    const double *theta = site->augment.theta;
    pool_phi_from_theta(s, &site->member, theta);
    for (int k = 0; k < s->walks.count; ++k) s->work.site_step[k] = theta[s->walks.at[k]];
    if (learning) walk_saw(&site->walk, s->work.site_step);
}

/* Theta of a site given its records, with their complete-data statistic: struct augment_layer. */
static int update_site(void *self, int learning) {
    struct pool_records_site *site = self;
    struct pool_records *s = site->pool;
    struct augment *a = &site->augment;
    const int most = STEPS + s->walks.count, steps = most < MOST_STEPS ? most : MOST_STEPS;
    const int status = s->rests.count > 0 && s->model.update ? update_rest(s, a) : PLUGIN_OK;
    if (status != PLUGIN_OK || s->walks.count == 0) return status;
    double now = site_log_prior(site, a->theta) + pool_records_likelihood(site, a->theta, NULL);
    for (int i = 0; i < steps; ++i) {
        doubles_copy(s->work.theta, a->theta, s->model.parameters);
        walk_propose(&site->walk, s->rng, s->work.site_step);
        for (int k = 0; k < s->walks.count; ++k)
            s->work.theta[s->walks.at[k]] += s->work.site_step[k];
        const double threshold = rng_exponential(s->rng);
        double next = site_log_prior(site, s->work.theta);
        if (next > -INFINITY) next += pool_records_likelihood(site, s->work.theta, NULL);
        const int accept = now - next < threshold;
        walk_tried(&site->walk, learning, next - now, accept);
        if (!accept) continue;
        doubles_copy(a->theta, s->work.theta, s->model.parameters);
        now = next;
    }
    remember_theta(site, learning);
    return PLUGIN_OK;
}

/* a walk begins at the parameters of its first site */
static void follow_first(struct pool_records *s) {
    if (!s->spread.walk) return;
    pool_phi_from_theta(s, &s->site[0].member, s->site[0].augment.theta);
    doubles_copy(s->at, s->site[0].member.phi, s->parameters);
    pool_spread_open(&s->spread, s->at);
}

/* ---- set-up ------------------------------------------------------------------------------ */

/* which of the model's unknown coordinates are what */
static void sort_coordinates(struct pool_records *s) {
    const struct model *model = &s->model;
    const size_t most = (size_t)model->moving;
    s->moves.at = plugin_memory(most, sizeof *s->moves.at);
    s->walks.at = plugin_memory(most, sizeof *s->walks.at);
    s->rests.at = plugin_memory(most, sizeof *s->rests.at);
    for (int j = 0; j < model->moving; ++j) {
        const int at = model->moves[j];
        if (!is_listed(at, s->parameters, s->place)) {
            s->rests.at[s->rests.count++] = at;
            s->moves.at[s->moves.count++] = at;
            if (!model->update) s->walks.at[s->walks.count++] = at;
        }
        for (int v = 0; v < s->spread.varying; ++v) {
            if (s->place[s->spread.which[v]] != at) continue;
            s->moves.at[s->moves.count++] = at;
            s->walks.at[s->walks.count++] = at;
        }
    }
}

static void create_site(struct pool_records *s, struct pool_records_site *site,
                        struct pool_member *before) {
    struct augment *a = &site->augment;
    site->pool = s;
    site->member.before = before;
    pool_member_create(&s->spread, &site->member);
    site->theta_new = doubles(s->model.parameters);
    site->z = doubles(s->spread.varying);
    site->layer = (struct augment_layer){site, site_log_prior, update_site};
    a->model = s->model;
    if (site->table) {
        a->complete = doubles(s->model.complete);
        a->size.prior = site->table->size_prior;
        s->tables = 1;
        s->movable = s->movable && site->table->class->carry != NULL;
        return;
    }
    a->layer = &site->layer;
    a->model.moving = s->moves.count;
    a->model.moves = s->moves.at;
    if (s->moves.count < s->model.moving) a->model.groups.count = 0;
    augment_prepare(a);
}

int pool_records_watched(const struct pool_records *s) {
    return s->shared + s->sites * s->model.parameters;
}

int pool_records_create(struct pool_records *s) {
    const struct model *model = &s->model;
    const int V = s->spread.varying;
    const int known =
        s->likelihood.class ? s->likelihood.marginal != NULL : model->likelihood || model->density;
    if (!known) return PLUGIN_BAD_FIELDS;
    double *nothing = s->given.nothing = doubles(V), *one = doubles(V);
    for (int v = 0; v < V; ++v) one[v] = 1;
    s->spread.mean_at = nothing; /* so the coordinates of means are the means, */
    s->spread.mean_precision = one;
    s->spread.parameters = s->parameters;
    s->spread.last = &s->site[s->sites - 1].member;
    pool_spread_create(&s->spread);
    sort_coordinates(s);
    s->movable = model->move != NULL;
    s->records = plugin_memory((size_t)s->sites, sizeof *s->records);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        site->member.at = site->member.precision = nothing; /* and those of sites z */
        create_site(s, site, j > 0 ? &site[-1].member : NULL);
        s->records[j] = &site->augment;
    }
    s->shared = s->parameters + s->spread.size;
    s->bounded = model_is_cut(model) && s->rests.count == 0;
    s->gradients = s->likelihood.class || model->likelihood;
    if (s->gradients) pool_records_given_create(s);
    pool_walks_create(s);
    if (s->mirror.made) pool_mirror_create(s);
    s->density.model = model;
    s->density.column = plugin_memory((size_t)model->columns, sizeof(double *));
    DOUBLES(model->parameters, &s->work.trial, &s->work.theta, &s->work.site_step,
            &s->work.slope_theta);
    s->work.slope_c = doubles(model->complete);
    s->work.natural = doubles(model->reported);
    s->given.phi = doubles(s->parameters);
    if (!s->tables) s->watched = doubles(pool_records_watched(s));
    DOUBLES(s->shared, &s->work.at, &s->work.step, &s->work.slope);
    return PLUGIN_OK;
}

void pool_records_attach(struct pool_records *s) {
    for (int j = 0; j < s->sites; ++j) {
        struct augment *a = &s->site[j].augment;
        a->rng = s->rng;
        a->theta = s->theta + (size_t)j * (size_t)s->model.parameters;
        if (s->tables) {
            s->site[j].table->theta = a->theta;
            s->site[j].table->rng = s->rng;
        }
        pool_phi_from_theta(s, &s->site[j].member, a->theta);
    }
    pool_spread_open(&s->spread, s->at);
}

/* ---- tables ------------------------------------------------------------------------------ */

static void start_table(struct pool_records_site *site) {
    site->table->class->start(site->table);
    site->table->class->load(site->table);
    pool_read_table(site);
}

void pool_records_resume(struct pool_records *s) {
    for (int j = 0; s->tables && j < s->sites; ++j) {
        s->site[j].table->class->load(s->site[j].table);
        pool_read_table(s->site + j);
    }
}

/* theta of a site, its counts following. */
static void carry_table(struct pool_records_site *site, int learning) {
    struct pool_records *s = site->pool;
    struct collapse *table = site->table;
    double *theta = site->augment.theta;
    double now = site_log_prior(site, theta);
    for (int i = 0; i < TABLE_STEPS; ++i) {
        doubles_copy(site->theta_new, theta, s->model.parameters);
        walk_propose(&site->walk, s->rng, s->work.site_step);
        for (int k = 0; k < s->walks.count; ++k)
            site->theta_new[s->walks.at[k]] += s->work.site_step[k];
        const double threshold = rng_exponential(s->rng);
        const double next = site_log_prior(site, site->theta_new);
        const double log_ratio =
            next > -INFINITY ? next - now + table->class->carry->move(table, site->theta_new)
                             : -INFINITY;
        const int accept = -log_ratio < threshold;
        walk_tried(&site->walk, learning, log_ratio, accept);
        if (!accept) continue;
        table->class->carry->keep(table);
        doubles_copy(theta, site->theta_new, s->model.parameters);
        now = next;
    }
    remember_theta(site, learning);
}

static int iterate_table(struct pool_records_site *site, int iteration, int warmup, double *share) {
    struct collapse *table = site->table;
    const int status = table->class->iterate(table, iteration, warmup, share);
    if (iteration + 1 == warmup) memset(table->counter, 0, COLLAPSE_COUNTERS * sizeof(double));
    if (status == PLUGIN_OK) carry_table(site, iteration < warmup);
    pool_read_table(site);
    const struct pool_records *s = site->pool;
    struct augment *a = &site->augment;
    if (s->rests.count > 0 && s->model.likelihood && s->model.likelihood->rshares)
        s->model.likelihood->rshares(s->model.self, a->complete, (double)a->n, s->rng, a->theta);
    return status;
}

static int iterate_site(struct pool_records_site *site, int iteration, int warmup, int round,
                        double *share) {
    return site->table ? iterate_table(site, iteration, warmup, share)
                       : augment_make_round(&site->augment, iteration, warmup, round, share);
}

/* theta of a site with z, nearer to the mean where a prior that is cut off rules that out: the mean
 * itself is within the bounds. */
static void start_parameters(struct pool_records *s, struct pool_records_site *site) {
    double *theta = site->augment.theta;
    for (int k = 0; k < HALVINGS; ++k) {
        pool_spread_place(&s->spread, s->at, &site->member, site->z);
        pool_phi_to_theta(s, &site->member, theta);
        if (!s->bounded || pool_log_prior(s, theta) > -INFINITY) return;
        for (int v = 0; v < s->spread.varying; ++v) site->z[v] *= 0.5;
    }
}

void pool_records_start(struct pool_records *s, const double *sd) {
    if (s->gradients) pool_records_given_start(s, sd);
    if (!s->tables) rounds_start(&s->rounds);
    pool_walks_start(s, sd);
    pool_spread_read_sds(&s->spread, s->at);
    pool_spread_open(&s->spread, s->at);
    /* the last site of a walk is as far off as a site without order */
    const double apart = 0.5 * (s->spread.walk ? pow(s->sites, 0.5 - s->spread.walk) : 1);
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        for (int v = 0; v < s->spread.varying; ++v) site->z[v] = apart * rng_normal(s->rng);
        start_parameters(s, site);
        if (site->table) {
            start_table(site);
            continue;
        }
        augment_start(&site->augment, 0, NULL);
        augment_find_support(&site->augment);
    }
}

/* Counted work: of records since warmup began or ended, of tables in an iteration. */
static double work_of_sites(const struct pool_records *s) {
    double work = 0;
    for (int j = 0; j < s->sites; ++j) {
        const struct collapse *table = s->site[j].table;
        work += table ? table->class->work(table) : s->site[j].augment.count.work;
    }
    return work;
}

static void learn_rounds(struct pool_records *s, int iteration, int warmup, double work) {
    doubles_copy(s->watched, s->at, s->shared);
    doubles_copy(s->watched + s->shared, s->theta, s->sites * s->model.parameters);
    rounds_saw(&s->rounds, s->watched, 1, iteration, warmup, (struct round_work){.all = work});
}

static int make_round(struct pool_records *s, int iteration, int warmup, int round,
                      double *accepted) {
    const int learning = iteration < warmup;
    double sum = 0, n = 0;
    for (int j = 0; j < s->sites; ++j) {
        double share;
        const int status = iterate_site(s->site + j, iteration, warmup, round, &share);
        if (status != PLUGIN_OK) return status;
        if (j == 0) follow_first(s);
        sum += share * (double)s->site[j].augment.n;
        n += (double)s->site[j].augment.n;
    }
    *accepted = n > 0 ? sum / n : 1;
    if (s->gradients) s->given.leapfrogs += pool_records_given_move(s, iteration, warmup);
    pool_walks_move(s, learning);
    if (s->mirror.made) pool_mirror_move(s);
    return PLUGIN_OK;
}

int pool_records_iterate(struct pool_records *s, int iteration, int warmup, double *accepted,
                         double *work) {
    const int rounds = iteration < warmup ? 1 : rounds_made(&s->rounds);
    double sum = 0;
    s->given.leapfrogs = 0;
    *work = 0;
    const double before = s->tables ? 0 : work_of_sites(s);
    for (int k = 0; k < rounds; ++k) {
        const int status = make_round(s, iteration, warmup, k, accepted);
        if (status != PLUGIN_OK) return status;
        sum += *accepted;
    }
    *accepted = sum / rounds;
    *work = 2 * fmax(work_of_sites(s) - before, 0) + 1e4 + 500.0 * s->given.leapfrogs * s->sites;
    if (s->tables || iteration >= warmup) return PLUGIN_OK;
    /* the records' work ends warmup at 0 */
    learn_rounds(s, iteration, warmup, iteration + 1 < warmup ? *work : *s->rounds.work);
    return PLUGIN_OK;
}
