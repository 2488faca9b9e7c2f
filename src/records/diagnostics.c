/* What a chain of method "augment" tells of itself: how many proposals of records were accepted,
 * and what became of its moves. Of several sites, all of them together.
 */
#include "records/augment_internal.h"

double augment_most_energy_step(const struct augment *a) {
    double most = -INFINITY;
    for (int k = 0; k < a->sites; ++k) most = fmax(most, a->site[k]->most_energy_step);
    return most;
}

struct updates {
    double accepted, visited, lowest;
};

/* Adds those of one site. */
static void count_updates(const struct augment *a, double after, struct updates *updates) {
    if (a->size_prior) { /* records come and go */
        updates->accepted += a->births.updated;
        updates->visited += a->births.visited;
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
    for (int k = 0; k < a->sites; ++k) count_updates(a->site[k], after, &updates);
    diagnostics_tell(told, "mean", updates.accepted / updates.visited);
    diagnostics_tell(told, "lowest", updates.lowest);
    diagnostics_tell(told, "least", exp(-fmax(augment_most_energy_step(a), 0)));
}

static void tell_sizes(const struct augment *a, struct chain_diagnostics *told) {
    double made = 0, accepted = 0, tilt_made = 0, tilt_accepted = 0;
    for (int k = 0; k < a->sites; ++k) {
        const struct births *b = &a->site[k]->births;
        made += b->made;
        accepted += b->accepted;
        tilt_made += b->tilt_made;
        tilt_accepted += b->tilt_accepted;
    }
    diagnostics_tell(told, "records", accepted / made);
    diagnostics_tell(told, "tilted", tilt_accepted / tilt_made);
}

void augment_diagnostics(const struct augment *a, double after, struct chain_diagnostics *told) {
    double passes = 0, made = 0, accepted = 0;
    tell_updates(a, after * rounds_made(&a->rounds), told);
    for (int k = 0; k < PASS_KINDS; ++k) {
        passes += a->adapt.passes[k];
        made += a->passes_made[k];
        accepted += a->passes_accepted[k];
    }
    diagnostics_tell(told, "passes", passes);
    diagnostics_tell(told, "moves", accepted / made);
    for (int k = 0; k < PASS_KINDS; ++k)
        diagnostics_tell(told, adapt_pass_names[k], a->passes_accepted[k] / a->passes_made[k]);
    diagnostics_tell(told, "moved", a->maps_accepted / a->maps_made);
    diagnostics_tell(told, "steps", a->leapfrogs / a->maps_made);
    diagnostics_tell(told, "responded", a->responses_accepted / a->responses_made);
    const int moved = a->maps_made + a->responses_made > 0;
    diagnostics_tell(told, "divergent", moved ? a->divergent : NAN);
    diagnostics_tell(told, "deepest", moved ? a->deepest : NAN);
    diagnostics_tell(told, "regrouped", a->regroup.accepted / a->regroup.made);
    diagnostics_tell(told, "newton", update_theta_accepted(&a->update));
    diagnostics_tell(told, "kept", adapt_refresh[(int)*a->adapt.refresh]);
    diagnostics_tell(told, "share", *a->adapt.share);
    diagnostics_tell(told, "parts", *a->adapt.parts);
    diagnostics_tell(told, "rounds", rounds_made(&a->rounds));
    if (augment_is_sized(a)) tell_sizes(a, told);
    diagnostics_tell(told, "work", a->work / fmax(after, 1));
}
