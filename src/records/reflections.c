/* Method "augment": reflections of all records. If every published component is even in some
 * columns together, as x^2 is in x and x z in x and z, the release is the same for
 *
 *   x_j' = 2 g_j - x_j  for these columns j,
 *
 * g_j the origin of powers, so the posterior may have a mode on either side, and small steps
 * cannot move between them. R finds the sets of columns (R/engine_reflections.R). One of them is
 * proposed and accepted by the ratio of
 *
 *   marginal(c) eta(z | s),
 *
 * theta integrated out; the map has the volume 1 and is its own inverse. eta is compared as well:
 * bounds that are not symmetric about g_j clamp different records.
 *
 * Invariants: the records' distribution, theta integrated out; residuals and complete-data
 * statistic agree with the records. Cost: a pass over the records for the totals, one to keep
 * them. No allocation except in prepare().
 */
#include "contract/model_statistic.h"
#include "records/augment_internal.h"

/* Those that the model cannot make are left out. */
static void prepare(struct augment *a) {
    if (!maps_of(a)) return;
    const int serves = a->model.marginal && a->model.update && a->model.statistic &&
                       !model_has_latent(&a->model) && !a->model.predictor && a->sites.count == 1 &&
                       !a->layer && !a->plain && !a->size.prior && a->layout.locals == 0;
    if (!serves) {
        OWN(a, reflections) = NULL;
        return;
    }
    const size_t columns = (size_t)a->model.columns;
    struct record_maps *maps = maps_of(a);
    maps->turned = plugin_memory(columns, sizeof(int));
    maps->mix = doubles(columns * columns);
    maps->shift = doubles(columns);
    maps->slope_complete = doubles((size_t)a->model.complete);
    maps->slope_kept = doubles((size_t)a->model.parameters);
}

static void make(struct augment *a, struct round *round) {
    struct record_maps *map = maps_of(a);
    if (!map || round->empty) return;
    /* one of the sets or none: reflections that are always accepted must not cancel in an iteration
     * of several rounds, nor where every other draw is kept */
    const ptrdiff_t set = augment_choose(a->rng, map->sets + 1);
    if (set == map->sets) return;
    const int columns = a->model.columns;
    augment_start_map(a);
    for (int v = 0; v < columns; ++v) {
        if (map->set[set * columns + v] == 0) continue;
        map->turned[v] = 1;
        map->mix[v * (columns + 1)] = -1;
        map->shift[v] = 2 * map->origin[v];
    }
    (void)augment_try_map(a);
}

const struct move move_reflections = {.phase = MOVE_AFTER, .prepare = prepare, .make = make};
