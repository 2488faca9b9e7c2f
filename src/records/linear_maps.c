/* Method "augment": linear maps of all records, x' = mix x + shift, that preserve the totals,
 * exactly or nearly, or move them across a hole of the noise. records/reflections.c,
 * records/second_moments.c and records/hole_crossings.c propose them. They are
 * accepted by the ratio of
 *
 *   marginal(c) eta(z | s) times the volume of the map,
 *
 * theta integrated out. eta is compared as well: bounds clamp other records after a map.
 *
 * Invariants: the records' distribution, theta integrated out; residuals and complete-data
 * statistic agree with the records. Cost: a pass over the records for the totals, one to keep
 * them.
 */
#include "contract/model_marginal.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "records/augment_internal.h"

void augment_start_map(struct augment *a) {
    const size_t columns = (size_t)a->model.columns;
    struct record_maps *map = maps_of(a);
    memset(map->turned, 0, columns * sizeof(int));
    memset(map->mix, 0, columns * columns * sizeof(double));
    memset(map->shift, 0, columns * sizeof(double));
    for (size_t j = 0; j < columns; ++j) map->mix[j * (columns + 1)] = 1;
    map->log_volume = map->log_residual = 0;
}

static const double *const *mapped_block(struct augment *a, int m) {
    const struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    for (int v = 0; v < columns; ++v) {
        a->block.moved[v] = a->block.x_at[v];
        if (!map->turned[v]) continue;
        double *to = a->block.x_new[v];
        for (int i = 0; i < m; ++i) to[i] = map->shift[v];
        for (int k = 0; k < columns; ++k) {
            const double by = map->mix[v * columns + k], *from = a->block.x_at[k];
            for (int i = 0; by != 0 && i < m; ++i) to[i] += by * from[i];
        }
        a->block.moved[v] = to;
    }
    return a->block.moved;
}

/* totals and a->complete_after of the mapped records */
static void sum_mapped(struct augment *a) {
    augment_clear_total(a);
    memset(a->complete_after, 0, (size_t)a->model.complete * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        const double *const *x = mapped_block(a, m);
        (void)augment_add_totals(a, start, m, x);
        a->model.statistic->add(a->model.self, m, x, a->complete_after);
    }
    augment_residuals(a, &a->candidate);
}

static double log_marginal(struct augment *a, const double *c, const double *theta) {
    return a->model.marginal->marginal(a->model.self, c, (double)a->n, theta,
                                       maps_of(a)->slope_complete, maps_of(a)->slope_kept);
}

void augment_keep_map(struct augment *a) {
    const int *turned = maps_of(a)->turned;
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        const double *const *x = mapped_block(a, m);
        for (int v = 0; v < a->model.columns; ++v)
            if (turned[v]) memcpy(a->x + v * a->stride + start, x[v], (size_t)m * sizeof(double));
    }
    augment_copy_residuals(a, &a->residual, &a->candidate);
    memcpy(a->complete, a->complete_after, (size_t)a->model.complete * sizeof(double));
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
}

double augment_map_fall(struct augment *a) {
    sum_mapped(a);
    a->count.work += a->cost.map;
    return *a->adapt.temper *
           (augment_total_energy(a, &a->residual) - augment_total_energy(a, &a->candidate));
}

int augment_try_map(struct augment *a) {
    const double fall = augment_map_fall(a);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    a->theta_new[a->model.marginal->residual] += maps_of(a)->log_residual;
    const double gain = log_marginal(a, a->complete_after, a->theta_new) -
                        log_marginal(a, a->complete, a->theta) + maps_of(a)->log_volume;
    const int accepted = -(fall + gain) < rng_exponential(a->rng) &&
                         (!model_is_cut(&a->model) || augment_draw_within(a, a->complete_after));
    if (accepted) augment_keep_map(a);
    return accepted;
}
