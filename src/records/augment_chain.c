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

/* the differences of a block should stay in the first-level cache */
enum { BLOCK_BYTES = 12288, LEAST_BLOCK = 16 };

/* iterations that a sweep may be spread over */
enum { MOST_PARTS = 8 };

/* the same at least, where steps of n draw many records anew */
enum { REDRAWN_PARTS = 4 };

/* of a search for a start, at most */
enum { SUPPORT_SWEEPS = 1000 };

/* surrogate transitions of a response's coefficients in an iteration (bench/dimension.R) */
enum { RESPONSES = 3 };

/* dense parts with that kernel from `at` on, padded; returns where they end */
static int place_dense(struct augment *a, enum kernel kernel, int at) {
    for (int k = 0; k < a->parts; ++k) {
        struct part *part = a->part + k;
        if (part->kind != PART_DENSE || part->kernel != kernel) continue;
        part->offset = at;
        at += part->stat.size;
    }
    return PAD_LANES(at);
}

/* the same of the cells of one kind of part */
static int place_cells(struct augment *a, enum part_kind kind, int at) {
    for (int k = 0; k < a->parts; ++k) {
        struct part *part = a->part + k;
        if (part->kind != kind) continue;
        part->offset = at;
        at += part->stat.size;
    }
    return at;
}

void augment_lay_out(struct augment *a) {
    a->absolute = place_dense(a, KERNEL_ABSOLUTE, 0);
    a->separable = place_dense(a, KERNEL_SQUARED, a->absolute);
    a->dense = place_dense(a, KERNEL_DENSITY, a->separable);
    a->open = place_cells(a, PART_CELLS, 0);
    a->cells = place_cells(a, PART_SIZE, a->open);
}

void augment_prepare(struct augment *a) {
    const int columns = a->model.columns, size = a->dense + a->cells;
    int whole = a->model.whole, local_size = 0;
    for (int k = 0; k < a->parts; ++k) {
        const struct stat *stat = &a->part[k].stat;
        whole = whole || stat->whole;
        a->dense_parts += a->part[k].kind == PART_DENSE;
        if (a->part[k].kind != PART_RECORDS) continue;
        a->locals += stat->size;
        local_size = stat->size > local_size ? stat->size : local_size;
    }
    int block = (int)(BLOCK_BYTES / sizeof(double)) / (a->dense > 0 ? a->dense : 1);
    block = PAD_LANES(block < LEAST_BLOCK ? LEAST_BLOCK : block);
    if (block > MAX_BLOCK) block = MAX_BLOCK;
    if (whole || (!a->size_prior && a->n < block)) block = (int)a->stride;
    a->block = block;
    for (int j = 0; j < a->dense; ++j)
        if (a->weight[j] != 0) a->used = j + 1;
    a->move_block = whole ? block : MAX_BLOCK;
    a->adapt.most_parts = whole || a->surrogate || a->size_prior ? 1 : MOST_PARTS;
    const size_t records = (size_t)block, components = (size_t)a->dense * records;
    a->complete = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->complete_before = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->complete_after = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->total = plugin_memory((size_t)size, sizeof(double));
    a->residual = plugin_memory((size_t)a->dense, sizeof(double));
    a->candidate = plugin_memory((size_t)a->dense, sizeof(double));
    a->cell_residual = plugin_memory((size_t)a->cells + 1, sizeof(double));
    a->candidate_cells = plugin_memory((size_t)a->cells, sizeof(double));
    a->before = plugin_memory(components, sizeof(double));
    a->change = plugin_memory(components, sizeof(double));
    a->diff = plugin_memory(components, sizeof(double));
    a->local = plugin_memory((size_t)local_size * records, sizeof(double));
    a->extra = plugin_memory(records, sizeof(double));
    a->path = plugin_memory((size_t)(a->dense - a->separable) * PATH, sizeof(double));
    a->path_energy = plugin_memory(PATH, sizeof(double));
    a->path_log = plugin_memory((size_t)(block > PATH ? block : PATH), sizeof(double));
    a->accepted_share = 1;
    a->threshold = plugin_memory(records, sizeof(double));
    a->draws_ahead = a->model.innovations > 0 && !whole;
    a->innovation = plugin_memory((size_t)a->model.innovations * MAX_BLOCK, sizeof(double));
    a->column_of = plugin_memory((size_t)a->model.innovations, sizeof(double *));
    a->gap = plugin_memory(records, sizeof(double));
    double ***const pointers[] = {&a->x_new, &a->x_at, &a->at_chunk, &a->to_chunk};
    for (int k = 0; k < 4; ++k) *pointers[k] = plugin_memory((size_t)columns, sizeof(double *));
    a->view = plugin_memory((size_t)columns, sizeof(double *));
    a->view_new = plugin_memory((size_t)columns, sizeof(double *));
    a->moved = plugin_memory((size_t)columns, sizeof(double *));
    if (a->model.costs.move > 0 && !a->plain)
        a->moved_x = plugin_memory((size_t)a->stride * (size_t)columns, sizeof(double));
    for (int v = 0; v < columns; ++v)
        a->x_new[v] =
            plugin_memory((size_t)(block > MAX_BLOCK ? block : MAX_BLOCK), sizeof(double));
    if (a->size_prior) augment_prepare_size(a);
    a->map = terms_new(model_moments(&a->model));
    a->changed = plugin_memory((size_t)columns, sizeof(int));
    a->theta_new = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->step = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->place = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->jump = plugin_memory((size_t)a->model.parameters, sizeof(double));
    for (int k = 0; k < a->parts; ++k) {
        struct part *part = a->part + k;
        if (part->kind != PART_CELLS) continue;
        /* an odd number of margins is made even by a cell that nobody leaves */
        const size_t own = (size_t)part->stat.touched * records, touched = own + records;
        part->cell_before = plugin_memory(touched, sizeof(int));
        part->cell_after = plugin_memory(touched, sizeof(int));
        for (size_t i = own; i < touched; ++i)
            part->cell_before[i] = part->cell_after[i] = part->stat.size;
        a->counts = a->dense == 0 && a->locals == 0 && a->open == part->stat.size ? part : NULL;
        for (int j = 0; j < a->open; ++j)
            if (a->weight[j] != a->weight[0]) a->counts = NULL;
        a->listed = plugin_memory(records, sizeof(int));
        a->by = plugin_memory(touched, sizeof(double));
    }
    augment_count_work(a);
    a->sites = 1;
    a->site = plugin_memory(1, sizeof *a->site);
    a->records = plugin_memory(1, sizeof *a->records);
    *a->site = a->lead = a;
}

void augment_join_sites(struct augment *a, int sites, struct augment **site) {
    struct adapt_costs *costs = &a->adapt.costs;
    a->sites = sites;
    a->site = site;
    a->records = plugin_memory((size_t)sites, sizeof *a->records);
    for (int k = 1; k < a->sites; ++k) {
        struct augment *other = a->site[k];
        const struct adapt_costs *more = &other->adapt.costs;
        costs->visit += more->visit;
        costs->refresh += more->refresh;
        costs->look += more->look;
        costs->complete += more->complete;
        a->column_work += other->column_work;
        a->pass_work += other->pass_work;
        other->complete = a->complete;
        other->changed = a->changed;
        other->lead = a;
        if (other->size_prior) a->adapt.most_parts = 1;
    }
}

void augment_share_theta(struct augment *a) {
    for (int k = 1; k < a->sites; ++k) {
        struct augment *site = a->site[k];
        site->theta = a->theta;
        site->rng = a->rng;
        site->adapt = a->adapt;
        site->most_energy_step = a->most_energy_step;
    }
}

double augment_records(const struct augment *a) {
    double n = 0;
    for (int k = 0; k < a->sites; ++k) n += (double)a->site[k]->n;
    return n;
}

void augment_make_room(struct augment *a, ptrdiff_t room) {
    a->stride = room;
    if (a->moved_x)
        a->moved_x = plugin_memory((size_t)room * (size_t)a->model.columns, sizeof(double));
    if (augment_has_levels(a) || a->resize) augment_make_level_room(a);
    if (a->resize) augment_make_resize_room(a);
}

/* ---- start, and an iteration -------------------------------------------------------- */

void augment_sum_up(struct augment *a) {
    augment_clear_total(a);
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = augment_block_at(a, start, a->block);
        (void)augment_add_totals(a, start, m, augment_read_only(a->x_at));
    }
    augment_residuals(a, a->residual, a->cell_residual);
}

static void start_size(struct augment *a) {
    const struct size_prior *prior = a->size_prior;
    const double n = rint((double)a->n + a->size_spread * rng_normal(a->rng));
    a->n = (ptrdiff_t)fmax(fmin(fmin(n, prior->upper), (double)a->stride), prior->lower);
    a->births.scale = a->births.followed = 1;
    for (int k = 0; k < RESIZE_KINDS; ++k) a->births.taken[k] = 0.5;
    for (int k = 0; k < RESIZE_WAYS; ++k) a->births.ways[k] = 0.5;
    size_slope_start(&a->slope);
}

static void start_records(struct augment *a) {
    if (a->size_prior) start_size(a);
    a->redrawn = (struct redrawn){.swept = 1, .taken = {1, 1}};
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = augment_block_at(a, start, a->block);
        augment_propose(a, 0, m, a->x_at);
    }
    augment_sum_up(a);
}

void augment_start(struct augment *a, int search) {
    a->model.class->set(a->model.self, a->theta);
    for (int k = 0; k < a->sites; ++k) start_records(a->site[k]);
    if (a->surrogate) augment_search(a, search);
}

/* released values, of records too */
static double released_values(const struct augment *a) {
    double values = 0;
    for (int k = 0; k < a->sites; ++k) {
        const struct augment *site = a->site[k];
        values += site->dense + site->cells + (double)site->locals * (double)site->n;
    }
    return values;
}

/* theta given the records */
static int update_theta_given_records(struct augment *a, int learning) {
    const struct model_class *class = a->model.class;
    if (a->layer) return a->layer->update(a->layer->self, learning);
    const int status = class->rtheta ? class->rtheta(a->model.self, a->complete, augment_records(a),
                                                     a->rng, a->theta)
                                     : PLUGIN_OK;
    if (status != PLUGIN_OK || !update_theta_is_needed(&a->model)) return status;
    for (int k = 0; k < a->sites; ++k) {
        const struct augment *site = a->site[k];
        a->records[k] = (struct record_columns){site->x, site->n, site->stride};
    }
    return update_theta(&a->update, a->sites, a->records, a->rng, learning, a->theta);
}

static void set_searching(struct augment *a, int searching) {
    for (int k = 0; k < a->sites; ++k) a->site[k]->searching = searching;
}

void augment_find_support(struct augment *a) {
    for (int k = 0; k < SUPPORT_SWEEPS && augment_energy(a) == INFINITY; ++k) {
        set_searching(a, 1);
        if (!a->plain && !a->layer) augment_interweave(a, 0, 0);
        (void)augment_sweep_part(a, 1, 0, 0, 1);
        if (a->surrogate && a->model.class->add_latent) augment_take_latent(a);
        if (!a->layer && update_theta_given_records(a, 0) != PLUGIN_OK) k = SUPPORT_SWEEPS;
        set_searching(a, 0);
    }
}

/* counters speak of what follows */
static void end_warmup(struct augment *a) {
    *a->adapt.temper = 1;
    if (augment_redraws(a)) *a->adapt.parts = fmax(*a->adapt.parts, REDRAWN_PARTS);
    a->work = 0;
    a->maps_made = a->maps_accepted = a->leapfrogs = 0;
    a->responses_made = a->responses_accepted = 0;
    a->divergent = a->deepest = 0;
    a->regroup.made = a->regroup.accepted = 0;
    for (int k = 0; k < a->sites; ++k) {
        struct augment *site = a->site[k];
        struct births *b = &site->births;
        b->made = b->accepted = b->visited = b->updated = b->tilt_made = b->tilt_accepted = 0;
        memset(site->accepted, 0, (size_t)site->stride * sizeof(int));
        site->most_energy_step = -INFINITY;
    }
}

/* Births and deaths at all sites where n is not known; a->jump: by which theta went along. */
static void move_sizes(struct augment *a, int iteration, int learning) {
    augment_gather(a, a->jump);
    for (int k = 0; k < a->sites; ++k)
        if (a->site[k]->size_prior) augment_move_size(a->site[k], iteration, learning);
    augment_gather(a, a->place);
    for (int j = 0; j < a->model.moving; ++j) a->jump[j] = a->place[j] - a->jump[j];
}

static void count_visits(struct augment *a, double accepted) {
    for (int k = 0; k < a->sites; ++k) {
        a->site[k]->births.visited += (double)a->site[k]->n;
        a->site[k]->births.updated += (double)a->site[k]->n * accepted;
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

/* Of a model that asks for rounds, or of a response on factors alone: their autocorrelations
 * fall the slower the longer the lag. */
enum { LEAST_ROUNDS = 4 };

int augment_makes_rounds(const struct augment *a) {
    return a->surrogate || a->sites > 1 || a->model.tied > 0 || a->model.shape > 0 ||
           a->model.rounds;
}

/* Warmup makes whole sweeps, except in its second half where steps of n draw many records anew. */
static int parts_of_sweep(const struct augment *a, int iteration, int warmup) {
    if (iteration >= warmup) return (int)*a->adapt.parts;
    return iteration > warmup / 2 && a->resize && augment_redraws(a) ? REDRAWN_PARTS : 1;
}

int augment_make_round(struct augment *a, int iteration, int warmup, int round, double *accepted) {
    const struct model_class *class = a->model.class;
    struct adapt *adapt = &a->adapt;
    const int learning = iteration < warmup && !a->plain;
    const double work_before = a->work;
    const int looking = learning && adapt_looks(adapt, iteration);
    const int can_refresh = !a->plain && class->refresh && a->model.complete > 0;
    if (iteration == 0) adapt_anneal(adapt, augment_energy(a), released_values(a), warmup);
    const int sized = augment_is_sized(a);
    if (sized) move_sizes(a, iteration, learning);
    const int empty = augment_records(a) == 0; /* only where n is unknown */
    const double before_passes = a->work;
    if (!empty) augment_interweave(a, learning, looking);
    augment_move_with_total(a);
    const double passes_work = a->work - before_passes;

    const int trying = learning && can_refresh && adapt_tries_refresh(adapt, iteration) && !empty;
    const int refresh = can_refresh ? adapt_choose_refresh(adapt, iteration, trying, a->rng) : 0;
    if (trying) augment_take_complete(a, 0, a->complete_before);
    const int parts = parts_of_sweep(a, iteration, warmup);
    const int at =
        iteration < warmup ? iteration : (iteration - warmup) * rounds_made(&a->rounds) + round;
    const double visit_work = adapt->costs.visit + (refresh > 0 ? adapt->costs.refresh : 0);
    const double work = visit_work / parts + adapt->costs.complete;
    if (empty)
        *accepted = 1;
    else
        *accepted = augment_sweep_part(a, parts, at, adapt_refresh[refresh], *adapt->temper);
    if (sized) count_visits(a, *accepted);
    a->work += work;
    if (trying) {
        if (class->add_latent) augment_take_complete(a, 0, a->complete_after);
        adapt_saw_refresh(adapt, refresh, a->complete_before,
                          class->add_latent ? a->complete_after : a->complete);
    }

    double *before = a->step, *after = a->place;
    if (learning) augment_gather(a, before);
    const double followed = a->work;
    /* steps of n that draw records anew draw their levels, too */
    const int rests = augment_redraws(a) && iteration % 2 == 1;
    if (augment_has_levels(a) && !empty && !rests) augment_move_levels(a, learning);
    if (augment_resizes(a) && !empty) augment_resize(a, iteration, learning);
    if (a->redraw) augment_redraw(a, iteration, learning, *accepted);
    if (!empty) augment_reflect(a);
    const int follows = a->surrogate && augment_set_size(a) && !augment_redraws_totals(a);
    if (follows) augment_follow(a, iteration, warmup);
    for (int k = 0; a->response && (follows || !a->surrogate) && k < RESPONSES; ++k)
        augment_respond(a, iteration, warmup);
    if (iteration >= warmup && !empty) augment_resize_again(a);
    for (int k = 0; a->categories && !empty && k < RESPONSES; ++k)
        augment_respond_categories(a, iteration, warmup);
    if (a->surrogate && class->add_latent && !empty) augment_take_latent(a);
    const int status = empty ? update_theta_of_none(a, iteration < warmup)
                             : update_theta_given_records(a, iteration < warmup);
    if (status != PLUGIN_OK || iteration >= warmup) return status;
    const int closes = adapt_window(iteration, warmup) != WINDOW_GOES_ON || iteration + 1 == warmup;
    for (int k = 0; sized && learning && k < a->sites; ++k)
        if (a->site[k]->size_prior && a->site[k]->n > 0) augment_saw_size(a->site[k], closes);
    if (learning) {
        augment_gather(a, after);
        for (int j = 0; sized && j < a->model.moving; ++j) before[j] -= a->jump[j];
        adapt_saw_sweep(adapt, before, after, work + a->work - followed);
    }
    adapt_cool(adapt);
    const enum window window =
        learning ? adapt_window_after(adapt, iteration, warmup) : WINDOW_GOES_ON;
    if (window != WINDOW_GOES_ON) adapt_close_window(adapt, window);
    if (learning && iteration + 1 == warmup) adapt_close_window(adapt, WARMUP_ENDS);
    if (learning && augment_makes_rounds(a) && !a->layer) {
        const struct round_work seen = {a->work - work_before, passes_work,
                                        adapt_planned_work(adapt)};
        const int slow = a->model.rounds || (a->response && !a->surrogate);
        rounds_saw(&a->rounds, a->theta, slow ? LEAST_ROUNDS : 1, iteration, warmup, seen);
    }
    if (iteration + 1 == warmup) end_warmup(a);
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
