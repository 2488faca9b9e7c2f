/* What sites share, moved by random walks of these kinds, which differ in what they hold fixed;
 * where transitions of NUTS move it given the records (pool/parameters_nuts.c), the last two alone:
 *
 *   GIVEN         the parameters of all sites (the centred view);
 *   HELD          how many standard deviations phi_j is from its centre, and the records;
 *   CARRIED       the same, and the records' innovations: records follow their parameters;
 *   CARRIED_SAME  the same; moves only the parameters that all sites have in common, since the
 *                 records of all sites hardly let the mean move with them.
 *
 * GIVEN works well if sites determine their parameters well, CARRIED if noise leaves much
 * uncertain, HELD if sites differ little and their records are well determined. Parameters that
 * are the same in all sites are moved only by the last three. In a walk the first site's parameters
 * are the mean, so that GIVEN leaves it as it is.
 *
 * Invariants between steps: as in pool/gibbs_chain.c. Cost: CARRIED_STEPS passes, and HELD_STEPS
 * likelihoods: O(length of the complete-data statistic), or a pass where that does not give it. */
#include "pool/pool_gibbs.h"

#include "contract/model_move.h"
#include "contract/model_prior.h"
#include "records/augment_internal.h"

enum { GIVEN_STEPS = 20, HELD_STEPS = 6, CARRIED_STEPS = 6 };

/* steps of POOL_CARRIED in sites that have tables instead of records */
enum { TABLE_STEPS = 4 };

/* ---- set-up ------------------------------------------------------------------------------ */

/* which of what is shared each kind of walk moves */
void pool_walks_create(struct pool_records *s) {
    const int V = s->spread.varying;
    struct places *moved = s->moved;
    for (int kind = 0; kind < POOL_WALKS; ++kind)
        moved[kind].at = plugin_memory((size_t)s->shared, sizeof *moved[kind].at);
    for (int k = 0; k < s->shared; ++k) {
        const int of_site = k < s->parameters, varies = of_site && is_listed(k, V, s->spread.which);
        const int moves[POOL_WALKS] = {[POOL_GIVEN] = !of_site || (varies && !s->spread.walk),
                                       [POOL_HELD] = 1,
                                       [POOL_CARRIED] = 1,
                                       [POOL_CARRIED_SAME] = V > 0 && of_site && !varies};
        for (int kind = 0; kind < POOL_WALKS; ++kind)
            if (moves[kind]) moved[kind].at[moved[kind].count++] = k;
    }
}

void pool_walks_start(struct pool_records *s, const double *sd) {
    for (int kind = 0; kind < POOL_WALKS; ++kind) {
        const struct places *moved = s->moved + kind;
        if (moved->count == 0) continue;
        for (int k = 0; k < moved->count; ++k) s->work.step[k] = sd[moved->at[k]];
        walk_start(s->walk + kind, s->work.step);
    }
}

/* ---- densities --------------------------------------------------------------------------- */

double pool_prior_of_parameters(struct pool_records *s, const double *phi) {
    doubles_copy(s->work.trial, s->reference, s->model.parameters);
    for (int k = 0; k < s->parameters; ++k) s->work.trial[s->place[k]] = phi[k];
    return pool_log_prior(s, s->work.trial);
}

/* of what is shared, at which the spread is open */
static double shared_log_prior(struct pool_records *s, const double *at) {
    memset(s->work.slope, 0, (size_t)s->shared * sizeof(double));
    return pool_prior_of_parameters(s, s->spread.mean) +
           pool_spread_prior(&s->spread, at, s->work.slope);
}

/* ---- moves ------------------------------------------------------------------------------- */

static void propose(struct pool_records *s, int kind) {
    doubles_copy(s->work.at, s->at, s->shared);
    walk_propose(s->walk + kind, s->rng, s->work.step);
    for (int k = 0; k < s->moved[kind].count; ++k)
        s->work.at[s->moved[kind].at[k]] += s->work.step[k];
    pool_spread_open(&s->spread, s->work.at);
}

/* After steps of a kind: the spread is open where they ended, and phi of all sites theirs. */
static void settle(struct pool_records *s, int kind, int learning) {
    pool_spread_open(&s->spread, s->at);
    for (int j = 0; j < s->sites; ++j)
        pool_phi_from_theta(s, &s->site[j].member, s->site[j].augment.theta);
    if (!learning) return;
    for (int k = 0; k < s->moved[kind].count; ++k) s->work.step[k] = s->at[s->moved[kind].at[k]];
    walk_saw(s->walk + kind, s->work.step);
}

static double members_density(struct pool_records *s, const double *at) {
    double log_density = 0;
    for (int j = 0; j < s->sites; ++j)
        log_density += pool_member_density(&s->spread, at, &s->site[j].member);
    return log_density;
}

static void move_given(struct pool_records *s, int learning) {
    double now = shared_log_prior(s, s->at) + members_density(s, s->at);
    for (int i = 0; i < GIVEN_STEPS; ++i) {
        propose(s, POOL_GIVEN);
        const double threshold = rng_exponential(s->rng);
        double next = shared_log_prior(s, s->work.at);
        if (next > -INFINITY) next += members_density(s, s->work.at);
        const int accept = now - next < threshold;
        walk_tried(s->walk + POOL_GIVEN, learning, next - now, accept);
        if (!accept) continue;
        doubles_copy(s->at, s->work.at, s->shared);
        now = next;
    }
    settle(s, POOL_GIVEN, learning);
}

/* z of all sites, to be held fixed */
static void hold(struct pool_records *s) {
    (void)members_density(s, s->at);
    for (int j = 0; j < s->sites; ++j)
        doubles_copy(s->site[j].z, s->site[j].member.z, s->spread.varying);
}

/* theta_new of all sites at work.at, with z held; returns whether the model has such parameters */
static int place_sites(struct pool_records *s) {
    int all = 1;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        pool_spread_place(&s->spread, s->work.at, &site->member, site->z);
        doubles_copy(site->theta_new, site->augment.theta, s->model.parameters);
        pool_phi_to_theta(s, &site->member, site->theta_new);
        all = all && pool_log_prior(s, site->theta_new) > -INFINITY;
    }
    return all;
}

static void take_new(struct pool_records *s) {
    doubles_copy(s->at, s->work.at, s->shared);
    for (int j = 0; j < s->sites; ++j)
        doubles_copy(s->site[j].augment.theta, s->site[j].theta_new, s->model.parameters);
}

static void move_held(struct pool_records *s, int learning) {
    double now = shared_log_prior(s, s->at);
    for (int j = 0; j < s->sites; ++j)
        now += pool_records_likelihood(s->site + j, s->site[j].augment.theta, NULL);
    hold(s);
    for (int i = 0; i < HELD_STEPS; ++i) {
        propose(s, POOL_HELD);
        const double threshold = rng_exponential(s->rng);
        double next = place_sites(s) ? shared_log_prior(s, s->work.at) : -INFINITY;
        for (int j = 0; j < s->sites && next > -INFINITY; ++j)
            next += pool_records_likelihood(s->site + j, s->site[j].theta_new, NULL);
        const int accept = now - next < threshold;
        walk_tried(s->walk + POOL_HELD, learning, next - now, accept);
        if (!accept) continue;
        take_new(s);
        now = next;
    }
    settle(s, POOL_HELD, learning);
}

/* what the records' move to theta_new does to the log of the noise density */
static double carry(struct pool_records *s) {
    double gain = 0;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        struct augment *a = &site->augment;
        if (site->table) {
            gain += site->table->class->carry->move(site->table, site->theta_new);
            continue;
        }
        a->model.class->set(a->model.self, a->theta);
        site->innovations = *s->rng;
        a->model.move->set_move(a->model.self, site->theta_new, a->step.changed);
        site->moved_energy = augment_moved_energy(a);
        gain += (site->energy - site->moved_energy) * *a->adapt.temper;
    }
    return gain;
}

static void keep_carried(struct pool_records *s) {
    for (int j = 0; j < s->sites; ++j) {
        struct pool_records_site *site = s->site + j;
        struct augment *a = &site->augment;
        if (site->table) {
            site->table->class->carry->keep(site->table);
            pool_read_table(site);
            continue;
        }
        if (!a->block.moved_x) {
            a->model.class->set(a->model.self, a->theta);
            a->model.move->set_move(a->model.self, site->theta_new, a->step.changed);
        }
        augment_keep_moved(a, &site->innovations);
        site->energy = site->moved_energy;
    }
}

static void move_carried(struct pool_records *s, int kind, int learning) {
    double prior = shared_log_prior(s, s->at);
    hold(s);
    for (int j = 0; j < s->sites && !s->tables; ++j)
        s->site[j].energy = augment_energy(&s->site[j].augment);
    const int kinds = s->moved[POOL_CARRIED_SAME].count > 0 ? 2 : 1;
    const int steps = (s->tables ? TABLE_STEPS : CARRIED_STEPS) / kinds;
    for (int i = 0; i < steps; ++i) {
        propose(s, kind);
        const double threshold = rng_exponential(s->rng);
        const double prior_new = place_sites(s) ? shared_log_prior(s, s->work.at) : -INFINITY;
        const double log_ratio = prior_new > -INFINITY ? prior_new - prior + carry(s) : -INFINITY;
        const int accept = -log_ratio < threshold;
        walk_tried(s->walk + kind, learning, log_ratio, accept);
        if (!accept) continue;
        keep_carried(s);
        take_new(s);
        prior = prior_new;
    }
    settle(s, kind, learning);
}

void pool_walks_move(struct pool_records *s, int learning) {
    if (!s->gradients) {
        if (s->moved[POOL_GIVEN].count > 0) move_given(s, learning);
        move_held(s, learning);
    }
    for (int kind = POOL_CARRIED; s->movable && kind < POOL_WALKS; ++kind)
        if (s->moved[kind].count > 0) move_carried(s, kind, learning);
}
