/* Method "augment": reflections of all records. Where every published component is even in some
 * columns together, as x^2 is in x and x z in x and z, the release says the same of
 *
 *   x_j' = 2 g_j - x_j  for these columns j,
 *
 * g_j the point that powers are about, so that the posterior may have a mode on either side,
 * between which no small step leads. R finds the sets of columns (R/engine_reflections.R). One of
 * them is proposed and accepted by the ratio of
 *
 *   marginal(c) eta(z | s),
 *
 * theta integrated out; the map has the volume 1 and is its own inverse. eta is compared as well:
 * bounds that lie differently about g_j clamp different records.
 *
 * Invariants: the records' distribution, theta integrated out; residuals and complete-data
 * statistic go with the records. Cost: a pass over the records for the totals, one to keep them. No
 * allocation but in prepare().
 */
#include "records/augment_internal.h"
#include "records/move.h"

/* Those that the model cannot make are left out. */
static void prepare(struct augment *a) {
    const struct model_class *class = a->model.class;
    if (a->reflections == 0) return;
    const int serves = class->marginal && class->rtheta && class->add && !class->add_latent &&
                       a->model.tied == 0 && a->sites == 1 && !a->layer && !a->plain &&
                       !a->size_prior && a->locals == 0 && (!a->model.cut || class->rtheta_uncut);
    if (!serves) a->reflections = 0;
    a->slope_complete = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->slope_kept = plugin_memory((size_t)a->model.parameters, sizeof(double));
}

static const double *const *reflected_block(struct augment *a, const double *flip, int m) {
    for (int v = 0; v < a->model.columns; ++v) {
        a->moved[v] = a->x_at[v];
        if (flip[v] == 0) continue;
        for (int i = 0; i < m; ++i) a->x_new[v][i] = 2 * a->origin[v] - a->x_at[v][i];
        a->moved[v] = a->x_new[v];
    }
    return a->moved;
}

/* totals and a->complete_after of the reflected records */
static void sum_reflected(struct augment *a, const double *flip) {
    augment_clear_total(a);
    memset(a->complete_after, 0, (size_t)a->model.complete * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->move_block) {
        const int m = augment_block_at(a, start, a->move_block);
        const double *const *x = reflected_block(a, flip, m);
        (void)augment_add_totals(a, start, m, x);
        a->model.class->add(a->model.self, m, x, a->complete_after);
    }
    augment_residuals(a, a->candidate, a->candidate_cells);
}

static double log_marginal(struct augment *a, const double *c) {
    return a->model.class->marginal(a->model.self, c, (double)a->n, a->theta, a->slope_complete,
                                    a->slope_kept);
}

static void keep_reflected(struct augment *a, const double *flip) {
    for (int v = 0; v < a->model.columns; ++v) {
        double *x = a->x + v * a->stride;
        for (ptrdiff_t i = 0; flip[v] != 0 && i < a->n; ++i) x[i] = 2 * a->origin[v] - x[i];
    }
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
    memcpy(a->complete, a->complete_after, (size_t)a->model.complete * sizeof(double));
    if (a->model.cut) memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
}

static void make(struct augment *a, struct round *round) {
    if (a->reflections == 0 || round->empty) return;
    /* one of the sets or none: reflections that are always accepted must not cancel in an iteration
     * of several rounds, nor where every other draw is kept */
    const ptrdiff_t set = augment_choose(a->rng, a->reflections + 1);
    if (set == a->reflections) return;
    const double *flip = a->reflection + set * a->model.columns;
    sum_reflected(a, flip);
    a->count.work += a->map_work;
    const double fall = augment_total_energy(a, a->residual, a->cell_residual) -
                        augment_total_energy(a, a->candidate, a->candidate_cells);
    const double gain = log_marginal(a, a->complete_after) - log_marginal(a, a->complete);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    if (-(*a->adapt.temper * fall + gain) < rng_exponential(a->rng) &&
        (!a->model.cut || augment_draw_within(a, a->complete_after)))
        keep_reflected(a, flip);
}

const struct move move_reflections = {.phase = MOVE_AFTER, .prepare = prepare, .make = make};
