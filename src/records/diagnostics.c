/* Diagnostics of a chain of method "augment": how many proposals of records were accepted, and the
 * results of its moves. For several sites, the sum over all.
 */
#include "records/augment_internal.h"

double augment_most_energy_step(const struct augment *a) {
    double most = -INFINITY;
    for (int k = 0; k < a->sites.count; ++k)
        most = fmax(most, a->sites.of[k]->count.most_energy_step);
    return most;
}

struct updates {
    double accepted, visited, lowest;
};

/* Adds those of one site. */
static void count_updates(const struct augment *a, double after, struct updates *updates) {
    if (a->size.prior) { /* records come and go */
        updates->accepted += a->size.births.updated;
        updates->visited += a->size.births.visited;
        updates->lowest = NAN;
        return;
    }
    const ptrdiff_t length = augment_part_length(a, (int)*a->adapt.parts);
    const double turns = (double)((a->n + length - 1) / length);
    for (ptrdiff_t i = 0; i < a->n; ++i) {
        const double visits = floor((after - 1 - (double)(i / length)) / turns) + 1;
        if (visits <= 0) continue;
        updates->accepted += a->accepted[i];
        updates->visited += visits;
        const double share = a->accepted[i] / visits;
        if (share < updates->lowest) updates->lowest = share; /* NaN stays */
    }
}

/* Share of proposals that were accepted, of all records and of the one with the least. */
static void tell_updates(const struct augment *a, double after, struct chain_diagnostics *told) {
    struct updates updates = {0, 0, INFINITY};
    for (int k = 0; k < a->sites.count; ++k) count_updates(a->sites.of[k], after, &updates);
    diagnostics_tell(told, "mean", updates.accepted / updates.visited);
    diagnostics_tell(told, "lowest", updates.lowest);
    diagnostics_tell(told, "least", exp(-fmax(augment_most_energy_step(a), 0)));
}

void augment_diagnostics(const struct augment *a, double after, struct chain_diagnostics *told) {
    double passes = 0, made = 0, accepted = 0;
    tell_updates(a, after * rounds_made(&a->rounds), told);
    for (int k = 0; k < PASS_KINDS; ++k) {
        passes += a->adapt.passes[k];
        made += a->count.passes_made[k];
        accepted += a->count.passes_accepted[k];
    }
    diagnostics_tell(told, "passes", passes);
    diagnostics_tell(told, "moves", accepted / made);
    for (int k = 0; k < PASS_KINDS; ++k)
        diagnostics_tell(told, adapt_pass_names[k],
                         a->count.passes_accepted[k] / a->count.passes_made[k]);
    diagnostics_tell(told, "moved", a->count.maps_accepted / a->count.maps_made);
    diagnostics_tell(told, "steps", a->count.leapfrogs / a->count.maps_made);
    diagnostics_tell(told, "responded", a->count.responses_accepted / a->count.responses_made);
    const int moved = a->count.maps_made + a->count.responses_made > 0;
    diagnostics_tell(told, "divergent", moved ? a->count.divergent : NAN);
    diagnostics_tell(told, "deepest", moved ? a->count.deepest : NAN);
    diagnostics_tell(told, "regrouped", a->count.regrouped_accepted / a->count.regrouped_made);
    diagnostics_tell(told, "newton", update_theta_accepted(&a->update));
    diagnostics_tell(told, "kept", adapt_refresh[(int)*a->adapt.refresh]);
    diagnostics_tell(told, "share", *a->adapt.share);
    diagnostics_tell(told, "parts", *a->adapt.parts);
    diagnostics_tell(told, "rounds", rounds_made(&a->rounds));
    for (const struct move *const *move = augment_moves; *move; ++move)
        if ((*move)->tell) (*move)->tell(a, told);
}
