/* A record that leaves one cell and enters another, where its counts are published with noise of
 * their own (CELLS) or have a joint density (RANKS: mech/exponential.c). step_counts() is the
 * change of energy; change_counts() follows it for each record, and keeps the step or takes it
 * back.
 *
 * Cost: free of the number of cells for CELLS, O(log cells) for RANKS.
 */
#ifndef NOISEAWARE_RECORDS_COUNT_STEPS_H
#define NOISEAWARE_RECORDS_COUNT_STEPS_H

#include "records/augment_internal.h"

#include <math.h>

/* Change of energy when a record leaves one cell and enters another. */
static INLINE double step_cells(const struct augment *a, const struct part *part, int i) {
    const double *residual = a->residual.cells + part->offset;
    const double *weight = a->noise.weight + a->layout.dense + part->offset;
    double step = 0;
    for (int k = 0; k < part->stat.touched; ++k) {
        const int from = part->cell_before[k * a->block.most + i];
        const int to = part->cell_after[k * a->block.most + i];
        if (from == to) continue; /* changes by 0, not by +1 and -1 */
        const double leave = residual[from], enter = residual[to];
        const double left = leave + weight[from], entered = enter - weight[to];
        if (part->kernel == KERNEL_ABSOLUTE)
            step += (fabs(left) - fabs(leave)) + (fabs(entered) - fabs(enter));
        else
            step += 0.5 * ((left * left - leave * leave) + (entered * entered - enter * enter));
    }
    return step;
}

static INLINE void change_cells(struct augment *a, const struct part *part, int i) {
    double *residual = a->residual.cells + part->offset;
    const double *weight = a->noise.weight + a->layout.dense + part->offset;
    for (int k = 0; k < part->stat.touched; ++k) {
        const int from = part->cell_before[k * a->block.most + i];
        const int to = part->cell_after[k * a->block.most + i];
        if (from == to) continue;
        residual[from] += weight[from];
        residual[to] -= weight[to];
    }
}

static inline double step_ranks(const struct part *part, int i) {
    const struct density *density = &part->density;
    const int from = part->cell_before[i], to = part->cell_after[i];
    return from == to ? 0 : -density->step(density->self, from, to);
}

static inline void change_ranks(struct augment *a, const struct part *part, int i, int accepted) {
    const struct density *density = &part->density;
    const int from = part->cell_before[i], to = part->cell_after[i];
    if (from == to) return;
    if (!accepted) {
        density->back(density->self);
        return;
    }
    a->residual.cells[part->offset + from] += 1;
    a->residual.cells[part->offset + to] -= 1;
}

static INLINE double step_counts(const struct augment *a, int i) {
    double step = 0;
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind == PART_CELLS) step += step_cells(a, part, i);
        if (part->kind == PART_RANKS) step += step_ranks(part, i);
    }
    return step;
}

static INLINE void change_counts(struct augment *a, int i, int accepted) {
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind == PART_CELLS && accepted) change_cells(a, part, i);
        if (part->kind == PART_RANKS) change_ranks(a, part, i, accepted);
    }
}

#endif
