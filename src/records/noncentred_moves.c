/* Non-centred moves of method "augment": theta moves with the records' innovations held fixed, x'
 * = T(u, theta'), accepted with p(theta') eta(z | s') / (p(theta) eta(z | s)). mcmc/adapt.h
 * chooses the steps to propose.
 *
 * Invariant: log_prior and energy are the state's while passes run. Cost of a
 * pass: the model's move() and the statistic's total() of every record; a kept one
 * writes the records.
 */
#include "contract/model_move.h"
#include "records/augment_internal.h"

/* between two sweeps, where the noise has holes */
enum { FAR_PASSES = 4 };

/* Where the records of a block that starts there go when they move. */
static double *moved_column(const struct augment *a, int v, ptrdiff_t start) {
    return a->block.moved_x ? a->block.moved_x + v * a->stride + start : a->block.x_new[v];
}

/* The block's records under theta_new: columns that do not change are not
 * copied. A block is longer than what the model takes where a statistic wants all records. */
static const double *const *moved_block(struct augment *a, ptrdiff_t start, int m) {
    const struct model *model = &a->model;
    for (int at = 0, chunk; at < m; at += chunk) {
        chunk = augment_chunk(model->whole, m - at);
        for (int v = 0; v < model->columns; ++v) {
            a->block.at_chunk[v] = a->block.x_at[v] + at;
            a->block.to_chunk[v] = moved_column(a, v, start) + at;
        }
        model->move->move(model->self, a->rng, chunk, augment_read_only(a->block.at_chunk),
                          a->block.to_chunk);
    }
    for (int v = 0; v < model->columns; ++v)
        a->block.moved[v] = a->step.changed[v] ? moved_column(a, v, start) : a->block.x_at[v];
    return a->block.moved;
}

static double moved_energy_of(struct augment *a) {
    double energy = 0;
    augment_clear_total(a);
    const int most = a->layout.locals > 0 ? a->block.most : a->block.most_moved;
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = augment_block_at(a, start, most);
        energy += augment_add_totals(a, start, m, moved_block(a, start, m));
    }
    augment_residuals(a, &a->candidate);
    return energy + augment_total_energy(a, &a->candidate);
}

double augment_moved_energy(struct augment *a) {
    double energy = 0;
    for (int k = 0; k < a->sites.count; ++k) energy += moved_energy_of(a->sites.of[k]);
    return energy;
}

static void keep_moved_of(struct augment *a) {
    const int most = a->layout.locals > 0 ? a->block.most : a->block.most_moved;
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = augment_block_at(a, start, most);
        if (!a->block.moved_x) (void)moved_block(a, start, m);
        for (int v = 0; v < a->model.columns; ++v)
            if (a->step.changed[v])
                memcpy(a->block.x_at[v], moved_column(a, v, start), (size_t)m * sizeof(double));
    }
    augment_copy_residuals(a, &a->residual, &a->candidate);
}

void augment_keep_moved(struct augment *a, const struct rng *innovations) {
    if (!a->block.moved_x) *a->rng = *innovations; /* the same records once more, now to keep */
    for (int k = 0; k < a->sites.count; ++k) keep_moved_of(a->sites.of[k]);
}

/* Needs the model set at theta, and log_prior and energy of the state. */
static void pass(struct augment *a, enum pass_kind kind, int learning) {
    void *self = a->model.self;
    const int moving = a->model.moving;
    augment_gather(a, a->step.place);
    const double back_over_forth =
        adapt_propose(&a->adapt, kind, a->step.place, a->rng, a->step.by);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < moving; ++j) a->theta_new[a->model.moves[j]] += a->step.by[j];
    const double threshold = rng_exponential(a->rng);

    double log_ratio = -INFINITY, log_prior = augment_log_prior(a, a->theta_new), energy = 0;
    double work = LEAST_PASS;
    const struct rng innovations = *a->rng;
    if (isfinite(log_prior)) {
        a->model.move->set_move(self, a->theta_new, a->step.changed);
        work = a->cost.pass + augment_move_work(a);
        energy = augment_moved_energy(a);
        log_ratio = log_prior - a->step.log_prior + (a->step.energy - energy) * *a->adapt.temper +
                    back_over_forth;
    }
    const int accept = -log_ratio < threshold;
    if (accept) {
        work += a->block.moved_x ? augment_copy_work(a) : augment_move_work(a);
        augment_keep_moved(a, &innovations);
        memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        a->model.class->set(self, a->theta);
        a->step.log_prior = log_prior;
        a->step.energy = energy;
    }
    a->count.work += work;
    if (kind == PASS_FAR) return;
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        adapt_saw_pass(&a->adapt, kind, probability, a->step.by, work);
    } else {
        a->count.passes_made[kind] += 1;
        a->count.passes_accepted[kind] += accept;
    }
}

static void make(struct augment *a, struct round *round) {
    int count[PASS_KINDS], total = 0;
    if (round->empty) return;
    adapt_plan(&a->adapt, round->learning, round->looking, count);
    for (int k = 0; k < PASS_KINDS; ++k) total += count[k];
    const int far = a->adapt.far > 0 && *a->adapt.given != 0 ? FAR_PASSES : 0;
    if (total + far == 0) return;
    a->model.class->set(a->model.self, a->theta);
    a->step.log_prior = augment_log_prior(a, a->theta);
    a->step.energy = augment_energy(a);
    for (int k = 0; k < PASS_KINDS; ++k)
        for (int i = 0; i < count[k]; ++i) pass(a, (enum pass_kind)k, round->learning);
    for (int i = 0; i < far; ++i) pass(a, PASS_FAR, round->learning);
}

const struct move move_passes = {.phase = MOVE_BEFORE, .make = make};
