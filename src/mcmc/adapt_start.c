/* What the sampler learns, only in warmup: proposals of the non-centred passes
 * (mcmc/adapt_proposals.c), their numbers (mcmc/adapt_schedule.c), how much of the records'
 * innovations a sweep keeps (mcmc/adapt_refresh.c). Windows double in length, as in Stan's warmup
 * (mcmc/adapt_window.c). This file has the vector that stores all of this, and its start.
 *
 * Work is counted (records/noncentred_moves.c), never timed, so that a seed determines what is
 * learned.
 *
 * Annealing: a start drawn from a vague prior can lie so far from the release
 * that no record moves. The noise density enters with an exponent that rises
 * from about 1 / energy to 1 over the first part of warmup.
 */
#include "mcmc/adapt_internal.h"

/* Before anything is known, passes of an iteration of warmup may cost so many sweeps. */
static const double FIRST_PACE = 0.75;

/* Iterations of annealing for a factor e of the energy. */
static const double COOLING_PACE = 25;

/* at most, where passes have to be paid for */
enum { COOLING_STEPS = 350 };

/* walks between two sweeps, until more is known */
enum { FIRST_PASSES = 8 };

/* the next `length` numbers of the store, if there is one */
static double *take(double *store, size_t *at, size_t length) {
    const size_t from = *at;
    *at += length;
    return store ? store + from : NULL;
}

/* Points into the store, which may be NULL; returns its length. */
static size_t lay_out(struct adapt *adapt, const struct adapt_shape *shape, double *store) {
    const size_t d = (size_t)shape->dim, c = (size_t)shape->complete, g = (size_t)shape->groups;
    size_t at = 0;
    adapt->passes = take(store, &at, PASS_KINDS);
    double **const scalar[] = {&adapt->refresh,  &adapt->share, &adapt->parts,      &adapt->temper,
                               &adapt->cooling,  &adapt->given, &adapt->has_centre, &adapt->swept,
                               &adapt->explored, &adapt->trial, &adapt->pace,       &adapt->credit};
    for (size_t i = 0; i < sizeof scalar / sizeof *scalar; ++i) *scalar[i] = take(store, &at, 1);
    adapt->price = take(store, &at, PASS_KINDS);
    adapt->turn = take(store, &at, 2);
    adapt->log_scale = take(store, &at, 1 + g);
    adapt->centre = take(store, &at, d);
    adapt->chol = take(store, &at, d * d);
    adapt->group_chol = take(store, &at, d * d);
    adapt->sums.count = take(store, &at, 1);
    adapt->sums.looks = take(store, &at, 1);
    adapt->sums.proposals = take(store, &at, PASS_KINDS);
    adapt->sums.accepts = take(store, &at, PASS_KINDS);
    adapt->sums.mean = take(store, &at, d);
    adapt->sums.scatter = take(store, &at, d * d);
    adapt->sums.jump_sweep = take(store, &at, d * d);
    adapt->sums.jump = take(store, &at, PASS_KINDS * d * d);
    adapt->sums.tries = take(store, &at, REFRESHES);
    adapt->sums.moved = take(store, &at, REFRESHES * c);
    adapt->sums.complete_mean = take(store, &at, c);
    adapt->sums.complete_scatter = take(store, &at, c);
    adapt->scratch = take(store, &at, (PASS_KINDS + 4) * d + 3 * d * d);
    return at;
}

size_t adapt_size(const struct adapt_shape *shape) {
    struct adapt unused;
    return lay_out(&unused, shape, NULL);
}

void adapt_attach(struct adapt *adapt, const struct adapt_shape *shape, double *store) {
    adapt->shape = *shape;
    adapt->store = store;
    lay_out(adapt, shape, store);
}

void adapt_open_window(struct adapt *adapt) {
    memset(adapt->sums.count, 0, (size_t)(adapt->scratch - adapt->sums.count) * sizeof(double));
}

void adapt_start(struct adapt *adapt, const double *sd, double passes) {
    const int d = adapt->shape.dim;
    memset(adapt->store, 0, adapt_size(&adapt->shape) * sizeof(double));
    *adapt->given = passes;
    adapt->passes[PASS_WALK] = d == 0 ? 0 : passes >= 0 ? passes : FIRST_PASSES;
    *adapt->temper = *adapt->parts = 1;
    *adapt->pace = FIRST_PACE;
    adapt_reset_scales(adapt);
    for (int j = 0; j < d; ++j) {
        adapt->chol[(size_t)j * d + j] = sd[j];
        adapt->group_chol[(size_t)j * d + j] = sd[j];
    }
}

void adapt_anneal(struct adapt *adapt, double energy, double values, int warmup) {
    int steps = warmup / 3;
    if (*adapt->given != 0 && steps > COOLING_STEPS) steps = COOLING_STEPS;
    if (steps < 1 || !(energy > values)) return;
    const double start = values / energy, factor = -log(start > 1e-12 ? start : 1e-12);
    if (*adapt->given != 0 && steps > COOLING_PACE * factor)
        steps = (int)ceil(COOLING_PACE * factor);
    *adapt->temper = exp(-factor);
    *adapt->cooling = factor / steps;
}

/* what was seen of another target is forgotten */
void adapt_cool(struct adapt *adapt) {
    if (*adapt->temper >= 1) return;
    *adapt->temper *= exp(*adapt->cooling);
    if (*adapt->temper < 1 - 1e-9) return;
    *adapt->temper = 1;
    adapt_open_window(adapt);
}
