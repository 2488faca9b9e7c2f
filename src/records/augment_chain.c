/* Method "augment": imputes the confidential records (Ju et al. 2022,
 * Algorithm 1).
 *
 * Target: p(theta) prod_i f(x_i | theta) eta(z | sum_i t(x_i)). A sweep
 * (records/sweep.c) visits every record: x* ~ f(. | theta), accepted with
 * min(1, eta* / eta).
 *
 * Two running vectors, never mixed up:
 *   residual  (z - s) in units of the noise, s the released (clamped)
 *             statistic: drives acceptance, updated record by record;
 *   complete  the complete-data statistic of the unclamped records: drives
 *             theta, accumulated again by each sweep, so it cannot drift.
 *
 * Interweaving: between sweeps, theta also moves with the records' innovations
 * held fixed (the non-centred view): x' = T(u, theta'), accepted with
 * p(theta') eta(z | s') / (p(theta) eta(z | s)). Such a pass needs no random
 * number per record. What it learns (mcmc/adapt_start.c) it learns in warmup only.
 */
#include "records/augment_internal.h"

#include "base/lanes.h"
#include "contract/model_innovations.h"
#include "contract/model_marginal.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

/* the differences of a block should stay in the first-level cache */
enum { BLOCK_BYTES = 12288, LEAST_BLOCK = 16 };

/* iterations that a sweep may be spread over */
enum { MOST_PARTS = 8 };

/* of a search for a start, at most, and how often it begins again from wide noise */
enum { SUPPORT_SWEEPS = 1000, SEARCHES = 5 };

/* The noise under which a start is searched for: half the inverse of its variance, in ranges of a
 * record, and by what this grows with each sweep. */
static const double WIDEST = 0.1, NARROWER = 1.02;

/* each move's hook, where it has it */
#define CALL_MOVES(hook, ...) \
    for (const struct move *const *move = augment_moves; *move; ++move) \
        if ((*move)->hook) (*move)->hook(__VA_ARGS__)

/* dense parts with that kernel from `at` on, padded; returns where they end */
static int place_dense(struct augment *a, enum kernel kernel, int at) {
    for (int k = 0; k < a->layout.parts; ++k) {
        struct part *part = a->layout.part + k;
        if (part->kind != PART_DENSE || part->kernel != kernel) continue;
        part->offset = at;
        at += part->stat.size;
    }
    return PAD_LANES(at);
}

/* the same of the cells of one kind of part */
static int place_cells(struct augment *a, enum part_kind kind, int at) {
    for (int k = 0; k < a->layout.parts; ++k) {
        struct part *part = a->layout.part + k;
        if (part->kind != kind) continue;
        part->offset = at;
        at += part->stat.size;
    }
    return at;
}

void augment_lay_out(struct augment *a) {
    const int absolute = place_dense(a, KERNEL_ABSOLUTE, 0);
    const int separable = place_dense(a, KERNEL_SQUARED, absolute);
    const int dense = a->layout.dense = place_dense(a, KERNEL_DENSITY, separable);
    a->layout.open = place_cells(a, PART_CELLS, 0);
    a->layout.cells = place_cells(a, PART_SIZE, a->layout.open);
    a->layout.ranks = place_cells(a, PART_RANKS, a->layout.cells) - a->layout.cells;
    const size_t size = (size_t)(dense + a->layout.cells + a->layout.ranks);
    enum kernel *kernel = plugin_memory(size, sizeof *kernel);
    for (int j = 0; j < dense; ++j)
        kernel[j] = j < absolute    ? KERNEL_ABSOLUTE
                    : j < separable ? KERNEL_SQUARED
                                    : KERNEL_DENSITY;
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        for (int j = 0; part_is_counts(part->kind) && j < part->stat.size; ++j)
            kernel[dense + part->offset + j] = part->kernel;
    }
    a->noise.size = (int)size;
    a->noise.kernel = kernel;
}

void augment_prepare(struct augment *a) {
    const int columns = a->model.columns, size = a->noise.size;
    int whole = a->model.whole, local_size = 0;
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct stat *stat = &a->layout.part[k].stat;
        whole = whole || stat->whole;
        a->layout.dense_parts += a->layout.part[k].kind == PART_DENSE;
        if (a->layout.part[k].kind != PART_RECORDS) continue;
        a->layout.locals += stat->size;
        local_size = stat->size > local_size ? stat->size : local_size;
    }
    int block = (int)(BLOCK_BYTES / sizeof(double)) / (a->layout.dense > 0 ? a->layout.dense : 1);
    block = PAD_LANES(block < LEAST_BLOCK ? LEAST_BLOCK : block);
    if (block > MAX_BLOCK) block = MAX_BLOCK;
    if (whole || (!a->size.prior && a->n < block)) block = (int)a->stride;
    a->block.most = block;
    for (int j = 0; j < a->layout.dense; ++j)
        if (a->noise.weight[j] != 0) a->layout.used = j + 1;
    a->block.most_moved = whole ? block : MAX_BLOCK;
    a->adapt.most_parts = whole || a->surrogate || a->size.prior ? 1 : MOST_PARTS;
    const size_t records = (size_t)block, components = (size_t)a->layout.dense * records;
    DOUBLES((size_t)a->model.complete, &a->complete, &a->visit.complete_before, &a->complete_after);
    a->total = doubles((size_t)size);
    DOUBLES((size_t)a->layout.dense, &a->residual.dense, &a->candidate.dense);
    a->residual.cells = doubles((size_t)augment_counts(a) + 1);
    a->candidate.cells = doubles((size_t)augment_counts(a));
    DOUBLES(components, &a->visit.before, &a->visit.change, &a->visit.diff);
    DOUBLES(records, &a->visit.extra, &a->visit.threshold, &a->visit.gap);
    a->visit.local = doubles((size_t)local_size * records);
    a->visit.path = doubles((size_t)(a->layout.dense - a->noise.separable) * PATH);
    a->visit.path_energy = doubles(PATH);
    a->visit.path_log = doubles((size_t)(block > PATH ? block : PATH));
    a->visit.accepted_share = 1;
    const size_t innovations = a->model.innovations ? (size_t)a->model.innovations->count : 0;
    a->visit.draws_ahead = innovations > 0 && !whole;
    a->visit.innovation = doubles(innovations * MAX_BLOCK);
    a->visit.column_of = plugin_memory(innovations, sizeof(double *));
    struct block *b = &a->block;
    double ***const pointers[] = {&b->x_new, &b->x_at, &b->at_chunk, &b->to_chunk};
    for (int k = 0; k < 4; ++k) *pointers[k] = plugin_memory((size_t)columns, sizeof(double *));
    const double ***const views[] = {&b->view, &b->view_new, &b->moved};
    for (int k = 0; k < 3; ++k) *views[k] = plugin_memory((size_t)columns, sizeof(double *));
    if (a->model.costs.move > 0 && !a->plain)
        a->block.moved_x = doubles((size_t)a->stride * (size_t)columns);
    for (int v = 0; v < columns; ++v)
        a->block.x_new[v] = doubles((size_t)(block > MAX_BLOCK ? block : MAX_BLOCK));
    a->block.map = terms_new(model_moments(&a->model));
    a->step.changed = plugin_memory((size_t)columns, sizeof(int));
    DOUBLES((size_t)a->model.parameters, &a->theta_new, &a->step.by, &a->step.place, &a->size.jump);
    for (int k = 0; k < a->layout.parts; ++k) {
        struct part *part = a->layout.part + k;
        if (!part_has_cells(part->kind)) continue;
        /* an odd number of margins is made even by a cell that nobody leaves */
        const size_t own = (size_t)part->stat.touched * records, touched = own + records;
        part->cell_before = plugin_memory(touched, sizeof(int));
        part->cell_after = plugin_memory(touched, sizeof(int));
        for (size_t i = own; i < touched; ++i)
            part->cell_before[i] = part->cell_after[i] = part->stat.size;
        const int alone = a->layout.dense + a->layout.locals + a->layout.ranks == 0;
        a->layout.counts = alone && a->layout.open == part->stat.size ? part : NULL;
        for (int j = 0; j < a->layout.open; ++j)
            if (a->noise.weight[j] != a->noise.weight[0]) a->layout.counts = NULL;
        a->visit.listed = plugin_memory(records, sizeof(int));
        a->visit.by = doubles(touched);
    }
    augment_count_work(a);
    a->sites.count = 1;
    a->sites.of = plugin_memory(1, sizeof *a->sites.of);
    a->block.records = plugin_memory(1, sizeof *a->block.records);
    *a->sites.of = a->sites.lead = a;
    CALL_MOVES(prepare_site, a);
}

void augment_prepare_moves(struct augment *a) { CALL_MOVES(prepare, a); }

void augment_join_sites(struct augment *a, int sites, struct augment **site) {
    struct adapt_costs *costs = &a->adapt.costs;
    a->sites.count = sites;
    a->sites.of = site;
    a->block.records = plugin_memory((size_t)sites, sizeof *a->block.records);
    for (int k = 1; k < a->sites.count; ++k) {
        struct augment *other = a->sites.of[k];
        const struct adapt_costs *more = &other->adapt.costs;
        costs->visit += more->visit;
        costs->refresh += more->refresh;
        costs->look += more->look;
        costs->complete += more->complete;
        a->cost.column += other->cost.column;
        a->cost.pass += other->cost.pass;
        a->adapt.far = fmax(a->adapt.far, other->adapt.far);
        other->complete = a->complete;
        other->step.changed = a->step.changed;
        other->sites.lead = a;
        if (other->size.prior) a->adapt.most_parts = 1;
    }
}

void augment_share_theta(struct augment *a) {
    for (int k = 1; k < a->sites.count; ++k) {
        struct augment *site = a->sites.of[k];
        site->theta = a->theta;
        site->rng = a->rng;
        site->adapt = a->adapt;
        site->count.most_energy_step = a->count.most_energy_step;
    }
}

void augment_make_room(struct augment *a, ptrdiff_t room) {
    a->stride = room;
    if (a->block.moved_x) a->block.moved_x = doubles((size_t)room * (size_t)a->model.columns);
    CALL_MOVES(make_room, a);
}

/* ---- start, and an iteration -------------------------------------------------------- */

static void start_records(struct augment *a) {
    CALL_MOVES(start_site, a);
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most) {
        const int m = augment_block_at(a, start, a->block.most);
        augment_propose(a, 0, m, a->block.x_at);
    }
    augment_sum_up(a);
}

void augment_start(struct augment *a, int search, const double *sd) {
    a->model.class->set(a->model.self, a->theta);
    for (int k = 0; k < a->sites.count; ++k) start_records(a->sites.of[k]);
    CALL_MOVES(start, a, &(struct move_start){search, sd});
}

/* released values, of records too */
static double released_values(const struct augment *a) {
    double values = 0;
    for (int k = 0; k < a->sites.count; ++k) {
        const struct augment *site = a->sites.of[k];
        values +=
            site->noise.size - site->layout.ranks + (double)site->layout.locals * (double)site->n;
    }
    return values;
}

/* theta given the records */
static int update_theta_given_records(struct augment *a, int learning) {
    if (a->layer) return a->layer->update(a->layer->self, learning);
    const struct model_update *update = a->model.update;
    const int status =
        update ? update->rtheta(a->model.self, a->complete, augment_records(a), a->rng, a->theta)
               : PLUGIN_OK;
    if (status != PLUGIN_OK || !update_theta_is_needed(&a->model)) return status;
    for (int k = 0; k < a->sites.count; ++k) {
        const struct augment *site = a->sites.of[k];
        a->block.records[k] = (struct record_columns){site->x, site->n, site->stride};
    }
    return update_theta(&a->update, a->sites.count, a->block.records, a->rng, learning, a->theta);
}

static void set_searching(struct augment *a, double searching) {
    for (int k = 0; k < a->sites.count; ++k) a->sites.of[k]->layout.searching = searching;
}

static void make_moves(struct augment *a, enum move_phase phase, struct round *round) {
    for (const struct move *const *move = augment_moves; *move; ++move)
        if ((*move)->phase == phase && (*move)->make) (*move)->make(a, round);
}

void augment_find_support(struct augment *a) {
    for (int k = 0; k < SEARCHES * SUPPORT_SWEEPS && augment_energy(a) == INFINITY; ++k) {
        set_searching(a, WIDEST * pow(NARROWER, k % SUPPORT_SWEEPS));
        if (!a->plain && !a->layer) make_moves(a, MOVE_BEFORE, &(struct round){0});
        (void)augment_sweep_part(a, 1, 0, 0, 1);
        if (a->surrogate && model_has_latent(&a->model)) augment_take_latent(a);
        if (update_theta_given_records(a, 0) != PLUGIN_OK) k = SEARCHES * SUPPORT_SWEEPS;
        set_searching(a, 0);
    }
}

/* counters speak of what follows */
static void end_warmup(struct augment *a) {
    *a->adapt.temper = 1;
    memset(&a->count, 0, sizeof a->count);
    for (int k = 0; k < a->sites.count; ++k) {
        struct augment *site = a->sites.of[k];
        memset(site->accepted, 0, (size_t)site->stride * sizeof(int));
        site->count.most_energy_step = -INFINITY;
    }
    CALL_MOVES(end_warmup, a);
}

static void count_visits(struct augment *a, double accepted) {
    for (int k = 0; k < a->sites.count; ++k) {
        a->sites.of[k]->size.births.visited += (double)a->sites.of[k]->n;
        a->sites.of[k]->size.births.updated += (double)a->sites.of[k]->n * accepted;
    }
}

/* Theta without records: its prior. */
static int update_theta_of_none(struct augment *a, int learning) {
    if (a->layer) {
        memset(a->complete, 0, (size_t)a->model.complete * sizeof(double));
        return a->layer->update(a->layer->self, learning);
    }
    a->model.class->rprior(a->model.self, a->rng, a->theta);
    return PLUGIN_OK;
}

int augment_makes_rounds(const struct augment *a) {
    return a->surrogate || a->sites.count > 1 || a->model.predictor || a->model.rounds > 0;
}

static struct round begin_round(struct augment *a, int iteration, int warmup) {
    const int learning = iteration < warmup && !a->plain;
    const int ends = adapt_window(iteration, warmup) != WINDOW_GOES_ON || iteration + 1 == warmup;
    return (struct round){
        .iteration = iteration,
        .warmup = warmup,
        .learning = learning,
        .looking = learning && adapt_looks(&a->adapt, iteration),
        .closes = iteration < warmup && ends,
        .parts = 1,
        .least_rounds = a->model.rounds > 1 ? a->model.rounds : 1,
    };
}

/* The sweep of a round, or the part of it whose turn it is; returns its work. */
static double sweep(struct augment *a, struct round *round, int number) {
    struct adapt *adapt = &a->adapt;
    const int iteration = round->iteration, after = iteration - round->warmup;
    const int can_refresh = !a->plain && a->model.refresh && a->model.complete > 0;
    const int trying =
        round->learning && can_refresh && adapt_tries_refresh(adapt, iteration) && !round->empty;
    const int refresh = can_refresh ? adapt_choose_refresh(adapt, iteration, trying, a->rng) : 0;
    if (trying) augment_take_complete(a, 0, a->visit.complete_before);
    const int parts = after < 0 ? round->parts : (int)*adapt->parts;
    const int at = after < 0 ? iteration : after * rounds_made(&a->rounds) + number;
    const double visit_work = adapt->costs.visit + (refresh > 0 ? adapt->costs.refresh : 0);
    const double work = visit_work / parts + adapt->costs.complete;
    round->swept =
        round->empty ? 1 : augment_sweep_part(a, parts, at, adapt_refresh[refresh], *adapt->temper);
    count_visits(a, round->swept);
    a->count.work += work;
    if (trying) {
        const int latent = model_has_latent(&a->model);
        if (latent) augment_take_complete(a, 0, a->complete_after);
        adapt_saw_refresh(adapt, refresh, a->visit.complete_before,
                          latent ? a->complete_after : a->complete);
    }
    return work;
}

/* A round of warmup ends, which a window may close with. `seen`: its work. */
static void learn(struct augment *a, const struct round *round, struct round_work seen) {
    struct adapt *adapt = &a->adapt;
    const int iteration = round->iteration, warmup = round->warmup;
    adapt_cool(adapt);
    const enum window window =
        round->learning ? adapt_window_after(adapt, iteration, warmup) : WINDOW_GOES_ON;
    if (window != WINDOW_GOES_ON) adapt_close_window(adapt, window);
    if (round->learning && iteration + 1 == warmup) adapt_close_window(adapt, WARMUP_ENDS);
    if (round->learning && augment_makes_rounds(a) && !a->layer) {
        seen.planned = adapt_planned_work(adapt);
        rounds_saw(&a->rounds, a->theta, round->least_rounds, iteration, warmup, seen);
    }
    if (iteration + 1 == warmup) end_warmup(a);
}

int augment_make_round(struct augment *a, int iteration, int warmup, int number, double *accepted) {
    struct round round = begin_round(a, iteration, warmup);
    const double work_before = a->count.work;
    if (iteration == 0) adapt_anneal(&a->adapt, augment_energy(a), released_values(a), warmup);
    make_moves(a, MOVE_NUMBER, &round);
    round.empty = augment_records(a) == 0; /* only where n is unknown */
    const double before_passes = a->count.work;
    make_moves(a, MOVE_BEFORE, &round);
    const double passes_work = a->count.work - before_passes;
    const double work = sweep(a, &round, number);
    *accepted = round.swept;

    double *before = a->step.by, *after = a->step.place;
    if (round.learning) augment_gather(a, before);
    const double followed = a->count.work;
    make_moves(a, MOVE_AFTER, &round);
    if (a->surrogate && model_has_latent(&a->model) && !round.empty) augment_take_latent(a);
    const int status = round.empty ? update_theta_of_none(a, iteration < warmup)
                                   : update_theta_given_records(a, iteration < warmup);
    if (status != PLUGIN_OK || iteration >= warmup) return status;
    CALL_MOVES(learn, a, &round);
    if (round.learning) {
        augment_gather(a, after);
        for (int j = 0; j < a->model.moving; ++j) before[j] -= a->size.jump[j];
        adapt_saw_sweep(&a->adapt, before, after, work + a->count.work - followed);
    }
    learn(a, &round,
          (struct round_work){.all = a->count.work - work_before, .passes = passes_work});
    return PLUGIN_OK;
}

int augment_iterate(struct augment *a, int iteration, int warmup, double *accepted) {
    const int rounds = iteration < warmup ? 1 : rounds_made(&a->rounds);
    double sum = 0;
    int status = PLUGIN_OK;
    for (int k = 0; k < rounds && status == PLUGIN_OK; ++k) {
        status = augment_make_round(a, iteration, warmup, k, accepted);
        sum += *accepted;
    }
    *accepted = sum / rounds;
    return status;
}
