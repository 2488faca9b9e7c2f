/* Work of method "augment", from which its schedules are learned. It is counted instead of time,
 * so that a seed determines what is learned. */
#include "records/augment_internal.h"

/* About the nanoseconds of one machine; only ratios matter. A random number, a component of the
 * statistic in a sweep and in a pass, a cell, a variable of a record that a pass changes; then what
 * does not grow with n, in addition to LEAST_PASS. */
static const double RANDOM = 3.5, COMPONENT = 0.4, COMPONENT_TOTAL = 0.12, CELL = 1, COLUMN = 0.6;
/* of counts with a joint density: a level of the tree above their cells, and a cell of all */
static const double LEVEL = 14, POINT = 8;
static const double LEAPFROG = 600, LEAPFROG_CUBE = 2.5; /* d columns, and d^3 */
static const double SWEEP = 250, SWEEP_PARAMETER = 80, PASS_PARAMETER = 40;

void augment_count_work(struct augment *a) {
    const struct model *model = &a->model;
    int cells = 0;
    double levels = 0;
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part_has_cells(part->kind)) cells += part->stat.touched;
        if (part->kind == PART_RANKS) levels += ceil(log2(part->stat.size));
    }
    const double n = (double)a->n, values = a->layout.dense + a->layout.locals;
    const double draws = model->costs.records > 0 ? model->costs.records : model->columns;
    const double more = model->costs.refresh > 0 ? model->costs.refresh - draws : 0;
    const double square = (double)model->columns * model->columns;
    const double complete = model->complete < square ? model->complete : square;
    struct adapt_costs *costs = &a->adapt.costs;
    costs->visit =
        n * (RANDOM * (draws + 1) + COMPONENT * 3 * values + 2 * CELL * cells + LEVEL * levels) +
        POINT * a->layout.ranks;
    costs->refresh = n * RANDOM * more;
    costs->look = n * COMPONENT * complete * (model->costs.latent > 0 ? 2 : 1);
    costs->complete = n * (RANDOM * model->costs.latent + COMPONENT * complete) + SWEEP +
                      SWEEP_PARAMETER * model->parameters;
    const double density = model->costs.density > 0 ? model->costs.density : model->columns;
    if (update_theta_is_needed(model))
        costs->complete += n * RANDOM * density * update_theta_cost(model);
    a->cost.column = n * (RANDOM * model->costs.move / model->columns + COLUMN);
    a->cost.pass = n * (COMPONENT_TOTAL * values + CELL * cells) + LEAST_PASS +
                   PASS_PARAMETER * model->parameters + POINT * a->layout.ranks;
    if (!a->surrogate) return;
    const double d = a->surrogate->density.totals.d, k = a->surrogate->density.totals.k;
    a->cost.map =
        n * (COLUMN * d * (0.5 * d + k) + COMPONENT_TOTAL * values + CELL * cells) + LEAST_PASS;
    a->cost.leapfrog = LEAPFROG * d + LEAPFROG_CUBE * d * d * d;
}

double augment_move_work(const struct augment *a) {
    double work = 0;
    for (int v = 0; v < a->model.columns; ++v) work += a->step.changed[v] ? a->cost.column : 0;
    return work;
}

double augment_copy_work(const struct augment *a) {
    return COLUMN * augment_records(a) * a->model.columns;
}
