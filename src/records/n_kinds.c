/* The kind of steps of n to try, which warmup learns; see records/n_all_records_steps.c. */
#include "records/n_all_records.h"

/* what is added to each share */
static const double LEAST = 0.02;

static double worth(const struct augment *a, int kind) {
    return LEAST + a->size.births.taken[kind] * a->size.births.taken[kind];
}

/* More often where warmup saw it taken more often, but each now and then. */
enum resize_kind resize_choose_kind(struct augment *a) {
    double sum = 0;
    for (int k = 0; k < RESIZE_KINDS; ++k) sum += worth(a, k);
    double left = rng_uniform(a->rng) * sum;
    int kind = 0;
    while (kind < RESIZE_KINDS - 1 && (left -= worth(a, kind)) >= 0) ++kind;
    return (enum resize_kind)kind;
}

int resize_takes(struct augment *a, enum resize_kind kind, double log_ratio, int learning) {
    const int taken = -log_ratio < rng_exponential(a->rng);
    if (learning && kind < RESIZE_KINDS)
        a->size.births.taken[kind] += RESIZE_FORGET * (taken - a->size.births.taken[kind]);
    return taken;
}
