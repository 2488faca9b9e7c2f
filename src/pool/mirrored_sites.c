/* Reflections of sites of normal records, of which only even powers are published: the release is
 * the same for records, and their mean, mirrored at the origin g of powers. The records of one site
 * are mirrored with its mean, or those of all sites with all means and the mean over sites:
 *
 *   x' = 2 g - x,   mean_j' = 2 g - mean_j,   mean' = 2 g - mean.
 *
 * One site alone only if means vary between sites. Accepted by the ratio of p(shared) prod_j
 * N(phi_j | shared) eta(z_j | s_j): the density of the records given their mean stays, the map has
 * the volume 1 and is its own inverse. eta is compared since bounds that are not symmetric about g
 * clamp other records. R says where it may be made (mirror_of_sites() in R/engine_pool_records.R).
 *
 * Invariants: as in pool/gibbs_chain.c. Cost: two passes over the records that are mirrored.
 */
#include "contract/model_prior.h"
#include "pool/pool_gibbs.h"
#include "records/augment_internal.h"

void pool_mirror_create(struct pool_records *s) {
    for (int j = 0; j < s->sites; ++j) {
        struct augment *a = &s->site[j].augment;
        struct record_maps *map = OWN(a, reflections) = plugin_memory(1, sizeof *map);
        map->turned = plugin_memory(1, sizeof(int));
        DOUBLES(1, &map->mix, &map->shift);
    }
}

/* of all that a mean is in, but the records */
static double log_density(struct pool_records *s) {
    pool_spread_open(&s->spread, s->at);
    double sum = pool_prior_of_parameters(s, s->at);
    for (int j = 0; j < s->sites; ++j)
        sum += pool_member_density(&s->spread, s->at, &s->site[j].member);
    return sum;
}

static void mirror_means(struct pool_records *s, int first, int end) {
    const int k = s->mirror.mean;
    for (int j = first; j < end; ++j) {
        double *phi = s->site[j].member.phi;
        phi[k] = 2 * s->mirror.at - phi[k];
    }
    if (end - first == s->sites) s->at[k] = 2 * s->mirror.at - s->at[k];
}

static void mirror(struct pool_records *s, int first, int end) {
    double log_ratio = -log_density(s);
    for (int j = first; j < end; ++j) {
        struct augment *a = &s->site[j].augment;
        if (a->n == 0) continue;
        augment_start_map(a);
        maps_of(a)->turned[0] = 1;
        maps_of(a)->mix[0] = -1;
        maps_of(a)->shift[0] = 2 * s->mirror.records;
        log_ratio += augment_map_fall(a);
    }
    mirror_means(s, first, end);
    log_ratio += log_density(s);
    if (-log_ratio >= rng_exponential(s->rng) || isnan(log_ratio)) {
        mirror_means(s, first, end);
        pool_spread_open(&s->spread, s->at);
        return;
    }
    for (int j = first; j < end; ++j) {
        struct augment *a = &s->site[j].augment;
        pool_phi_to_theta(s, &s->site[j].member, a->theta);
        if (a->n == 0) continue;
        doubles_copy(a->theta_new, a->theta, s->model.parameters);
        augment_keep_map(a);
    }
}

void pool_mirror_move(struct pool_records *s) {
    const int apart = is_listed(s->mirror.mean, s->spread.varying, s->spread.which);
    /* all, none (see records/reflections.c), or one */
    const ptrdiff_t which = augment_choose(s->rng, 2 + apart);
    if (which == 0) mirror(s, 0, s->sites);
    if (which != 2) return;
    const int j = (int)augment_choose(s->rng, s->sites);
    mirror(s, j, j + 1);
}
