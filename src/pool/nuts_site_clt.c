/* Sites in pools whose totals have a normal distribution given their parameters
 * (pool/site_clt.c), as sites of pool/nuts_chain.c.
 *
 * The number of records n_j of a site may be unknown. The release then informs about n_j times the
 * means of a record, so its parameters depend on n_j. A step of n_j also moves everything that
 * belongs to the site: the varying part of phi_j, and the coordinates q of pool/site_clt.c, along
 * the slopes of their regressions on log n in a window of warmup (mcmc/n_regression_proposal.c).
 * Such a step holds what the sites share and the phi of all other sites, and so is accepted by the
 * ratio of
 *
 *   p(n_j) p(phi_j | what is shared) p(q_j, z_j | phi_j, n_j),
 *
 * with the noise of a released n_j, and in a walk the densities of the next sites' phi. The first
 * site of a walk is a part of what is shared, and does not move. Of two proposals from the
 * distribution learned in warmup, one moves only n, as in clt/clt_n_steps.c. Coordinates of
 * pool/hyperprior.c are linear in phi given what is shared, and read back from it.
 *
 * Cost of a step: the density of the site; free of the number of sites and of n. No allocation
 * except in pool_read_clt() and pool_clt_size_create().
 */
#include "pool/pool_nuts.h"

static double *own_place(const struct pool *s, const struct pool_site *site) {
    return s->hmc.q + site->at + site->member.own;
}

int pool_read_clt(const struct fields *fields, const struct pool *s, struct pool_site *site) {
    site->n = site->clt.alone->n;
    site->size_prior = site->clt.alone->unknown.prior;
    return pool_clt_create(&site->clt, fields, s->parameters, s->place);
}

/* ---- the state --------------------------------------------------------------------------- */

/* The sites' own coordinates were chosen so that they are about standard normal. */
static void draw_own(struct pool *s, double share) {
    for (int j = 0; j < s->sites; ++j) {
        double *q = own_place(s, s->site + j);
        for (int i = 0; i < s->site[j].clt.size; ++i) q[i] = share * rng_normal(s->rng);
    }
}

static void take_records(struct pool *s, struct pool_site *site, double n) {
    s->n += n - site->n;
    site->n = site->clt.alone->n = n;
}

void pool_clt_start(struct pool *s) {
    static const double SHARE = 0.5;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        if (!site->size_prior) continue;
        *site->clt.n = clt_draw_size(site->clt.alone, s->rng);
        take_records(s, site, *site->clt.n);
        size_slope_start(&site->clt.size_slope);
    }
    draw_own(s, SHARE);
    if (hmc_refresh(&s->hmc)) return;
    draw_own(s, 0);
    (void)hmc_refresh(&s->hmc);
}

void pool_clt_measure(struct pool *s) {
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        (void)pool_clt_log(&site->clt, site->member.phi, own_place(s, site), s->rounded,
                           site->member.slope, s->work.slope_own);
        doubles_copy(site->statistic, pool_clt_total(&site->clt), site->components);
        site->energy = -clt_log_noise(site->clt.alone, site->statistic);
    }
}

double pool_clt_outside(const struct pool *s) {
    double sum = 0;
    for (int j = 0; j < s->sites; ++j) {
        const struct pool_site *site = s->site + j;
        const struct record_moments *m = &site->clt.alone->moments;
        if (m->class->outside)
            sum += site->n * m->class->outside(m->self, pool_clt_theta(&site->clt));
    }
    return fmin(sum / s->n, 1);
}

/* ---- an unknown number of records -------------------------------------------------------- */

static int moving(const struct pool_site *site) { return site->member.own + site->clt.size; }

void pool_clt_size_create(struct pool *s, struct pool_site *site) {
    const int count = moving(site);
    int *moves = plugin_memory((size_t)count, sizeof *moves);
    for (int i = 0; i < count; ++i) moves[i] = i;
    site->clt.moves = moves;
    DOUBLES((size_t)count, &site->clt.place, &site->clt.next);
    s->unsized += 1;
}

static size_t stored(const struct pool_site *site) {
    return site->size_prior ? 1 + size_slope_stored(moving(site)) : 0;
}

size_t pool_clt_stored(const struct pool *s) {
    size_t sum = 0;
    for (int j = 0; j < s->sites; ++j) sum += stored(s->site + j);
    return sum;
}

void pool_clt_attach(struct pool *s, double *store) {
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        if (!site->size_prior) continue;
        site->clt.n = store;
        size_slope_attach(&site->clt.size_slope, moving(site), site->clt.moves, store + 1);
        store += stored(site);
        if (*site->clt.n > 0) take_records(s, site, *site->clt.n); /* else a new state */
    }
}

/* All that goes with n, from where it stands and back. */
static void read_place(const struct pool *s, const struct pool_site *site, double *place) {
    const struct pool_member *member = &site->member;
    for (int v = 0; v < member->own; ++v) place[v] = member->phi[s->spread.which[v]];
    doubles_copy(place + member->own, own_place(s, site), site->clt.size);
}

static void put_place(const struct pool *s, struct pool_site *site, const double *place) {
    struct pool_member *member = &site->member;
    for (int v = 0; v < member->own; ++v) member->phi[s->spread.which[v]] = place[v];
    doubles_copy(own_place(s, site), place + member->own, site->clt.size);
}

/* how many sites are centred at this one, by the order of a walk */
static int sites_after(const struct pool *s, const struct pool_site *site) {
    const int later = (int)(s->site + s->sites - 1 - site);
    return later < s->spread.walk ? later : s->spread.walk;
}

/* What depends on n and on all that goes with it. */
static double log_of_site(struct pool *s, struct pool_site *site) {
    double log_density = clt_log_size(&site->clt.alone->unknown, site->n);
    log_density += pool_clt_log(&site->clt, site->member.phi, own_place(s, site), s->rounded,
                                site->member.slope, s->work.slope_own);
    log_density += pool_member_density(&s->spread, s->hmc.q, &site->member);
    for (int j = 1; j <= sites_after(s, site); ++j)
        log_density += pool_member_density(&s->spread, s->hmc.q, &site[j].member);
    return isnan(log_density) ? -INFINITY : log_density;
}

static int step(struct pool *s, struct pool_site *site, int fresh, int follows, int learning,
                double *log_density) {
    struct pool_clt *clt = &site->clt;
    struct size_slope *slope = &clt->size_slope;
    const double old = site->n;
    double log_ratio, log_new = -INFINITY;
    const double n = fresh ? size_slope_fresh(slope, old, s->rng, &log_ratio)
                           : size_slope_walk(slope, old, s->rng, &log_ratio);
    const int possible = clt_log_size(&clt->alone->unknown, n) > -INFINITY;
    if (possible) {
        read_place(s, site, clt->place);
        size_slope_follow(slope, follows ? log(n / old) : 0, clt->place, (size_t)moving(site),
                          clt->next);
        put_place(s, site, clt->next);
        take_records(s, site, n);
        log_new = log_of_site(s, site);
    }
    log_ratio = log_new > -INFINITY ? log_ratio + log_new - *log_density : -INFINITY;
    const int accept = -log_ratio < rng_exponential(s->rng);
    if (accept) {
        *log_density = log_new;
    } else if (possible) {
        put_place(s, site, clt->place);
        take_records(s, site, old);
    }
    if (learning && !fresh) size_slope_tried(slope, log_ratio, site->size_prior->upper);
    return accept;
}

/* A member's phi, which has moved, to its coordinates. */
static void read_member(struct pool *s, struct pool_site *site) {
    doubles_copy(s->work.phi, site->member.phi, s->parameters);
    pool_member_start(&s->spread, s->hmc.q, &site->member, s->work.phi, s->hmc.q + site->at);
}

static void move_size(struct pool *s, struct pool_site *site, int learning) {
    struct pool_clt *clt = &site->clt;
    const int steps = size_slope_knows(&clt->size_slope) ? 3 : 1;
    double log_density = log_of_site(s, site);
    int moved = 0;
    for (int k = 0; k < steps; ++k) {
        const int follows = k < 2;
        const int accepted = step(s, site, k > 0, follows, learning, &log_density);
        moved |= accepted && follows;
        s->counter[POOL_SIZE_MADE] += 1;
        s->counter[POOL_SIZE_ACCEPTED] += accepted;
    }
    *clt->n = site->n;
    if (!moved || site->member.own == 0) return;
    for (int j = 0; j <= sites_after(s, site); ++j) read_member(s, site + j);
}

void pool_clt_move_sizes(struct pool *s, int iteration, int warmup) {
    const int learning = iteration < warmup, closes = hmc_window(iteration, warmup) == HMC_LAST;
    for (int j = 0; j < s->sites; ++j) {
        struct pool_site *site = s->site + j;
        struct pool_clt *clt = &site->clt;
        if (!site->size_prior) continue;
        move_size(s, site, learning);
        if (!learning) continue;
        read_place(s, site, clt->place);
        size_slope_saw(&clt->size_slope, site->n, log(site->n), clt->place);
        if (closes) size_slope_close(&clt->size_slope);
    }
}
