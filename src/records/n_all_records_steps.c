/* Method "augment": steps of an unknown number of records n that move all records at once, if
 * these are normal given theta and the levels of at most one factor. A step of n alone
 * (records/n_birth_death.c) adds records with random totals, which seldom fit the release if noise
 * is small. Here the totals are chosen, and the records follow.
 *
 * Given the levels, N_g records in level g, write as in records/shape_hmc.c
 *
 *   w_i = B_g + F u_i,
 *
 * B_g the mean of level g, F F' = S the scatter about these means. The shape U is uniform given n
 * and the N_g, whatever theta is, and independent of (B, F). With theta integrated out except for
 * the coordinates that the model keeps, n, the counts, T_g = N_g B_g and S have the density
 *
 *   p(n) n! / prod N_g! marginal(c, n) pi^((n - k) d / 2) / Gamma_d((n - k) / 2)
 *     prod N_g^(-d / 2) |S|^((n - k - d - 1) / 2) eta(z | s)
 *
 * for d columns and k levels (vignette "Algorithms", unknown number of records), marginal() with
 * its factors in n. A step
 *
 * - makes some steps of a chain of n, N_g, T and S alone, and of the coordinates of theta that the
 * model keeps. This chain is reversible for a surrogate of that density, with the expected totals
 * of clamped records in place of s (records/n_totals_density.c, records/n_totals_chain.c,
 * records/n_scatter.c); - takes U to U': independent standard normal records Y have the shape U if
 * their level means and
 *   their scatter are drawn from what standard normal records have. Some of them, chosen uniformly
 *   in their level, are removed, and others added; U' is then the shape of Y. The joint
 *   distribution of (U, U') is symmetric, so this step is reversible in the uniform distributions.
 *
 * It is accepted by the ratio of eta over the surrogate's (Liu 2001). Theta must be drawn
 * after it. Without bounds that is 1, and n is nearly independent of its previous value. After
 * warmup, a round with steps from the distribution that warmup learned has two of them, before and
 * after the surrogate's trajectories, each with a shorter chain, like those of warmup: where one
 * moves little, for example with few records, the other may move more. Because they draw many new
 * records, a sweep is spread over several iterations, from the middle of warmup on.
 *
 * If bounds clamp and noise is small, such steps are seldom accepted; then records may be found by
 * solving for their totals (records/n_clamped_totals.c).
 *
 * Empty levels are left out on both sides. Cost: a pass over the records as for a surrogate
 * transition, and another if the step is accepted; O(m d^2) for m births or deaths. No allocation
 * except in prepare() and make_more_room().
 */
#include "records/n_all_records.h"

#include "base/linalg.h"

/* of the surrogate's chain, where it goes to where warmup saw n; in warmup, and where a round has
 * two */
enum { STEPS = 8, FEW = 6 };

/* The shares of these steps that are RESIZE_GROW and RESIZE_SCATTER. */
static const double GROWS = 0.15, SCATTERS = 0.15;

/* Where records follow so many times less often than steps are taken that solve for their totals,
 * the latter are made, which take longer. The share of steps of warmup that try the other way. */
static const double WORSE = 0.5, OTHER = 0.125;

static void make_room(struct augment *a) {
    struct resize *r = resize_of(a);
    r->gone.all = plugin_memory((size_t)a->stride, sizeof *r->gone.all);
    r->gone.goes = plugin_memory((size_t)a->stride, sizeof *r->gone.goes);
}

static void prepare(struct augment *a) {
    if (!resize_create(a)) return;
    make_room(a);
    resize_create_clamped(a);
}

static void make_more_room(struct augment *a) {
    if (!resize_of(a)) return;
    make_room(a);
    if (resize_of(a)->clamped.redraw) resize_create_clamped(a);
}

/* ---- the records ------------------------------------------------------------------------------
 */

/* out = left right^-1, of lower triangles */
static void divide(struct resize *r, const double *left, const double *right, double *out) {
    const int d = r->d;
    for (int j = 0; j < d; ++j) {
        memset(r->row, 0, (size_t)d * sizeof(double));
        r->row[j] = 1;
        linalg_forward(d, right, r->row);
        for (int i = 0; i < d; ++i)
            out[i * d + j] = i < j ? 0 : linalg_dot(i + 1, left + i * d, r->row);
    }
}

/* What makes Y of records: to `standard`, its shift for each level. */
static void set_standard(struct augment *a) {
    struct resize *r = resize_of(a);
    const double *centre = a->surrogate->centre;
    const int d = r->d;
    divide(r, r->normal, r->now->factor, r->standard.matrix);
    for (int g = 0; g < r->k; ++g)
        for (int i = 0; i < d; ++i) {
            double shift = r->mean[g * d + i];
            for (int j = 0; j <= i; ++j)
                shift -= r->standard.matrix[i * d + j] *
                         (centre[r->column[j]] + r->now->total[g * d + j] / r->now->count[g]);
            r->standard.shift[g * d + i] = shift;
        }
}

/* The columns of a block times a lower triangle, and a shift */
static void map_columns(struct augment *a, const struct resize_map *map, int g, int m,
                        double *const *x, double **out) {
    const struct resize *r = resize_of(a);
    for (int i = 0; i < r->d; ++i) {
        terms_clear(&a->block.map);
        for (int j = 0; j <= i; ++j)
            terms_add(&a->block.map, map->matrix[i * r->d + j], x[r->column[j]]);
        terms_sum(&a->block.map, map->shift[g * r->d + i], m, out[r->column[i]]);
    }
}

/* Level sums and products of Y, less or more a block of a level */
static void add_records(struct resize *r, int g, double sign, int m, double *const *y) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        r->moved[g * d + i] += sign * block_sum(m, y[r->column[i]]);
        for (int j = 0; j <= i; ++j)
            r->spread[i * d + j] += sign * block_dot(m, y[r->column[i]], y[r->column[j]]);
    }
}

/* Level means and scatter of standard normal records, as many as there are; then their sums. */
static void draw_standard(struct augment *a) {
    struct resize *r = resize_of(a);
    const int d = r->d;
    for (int g = 0; g < r->k; ++g)
        for (int i = 0; i < d; ++i) {
            r->mean[g * d + i] = rng_normal(a->rng) / sqrt(r->now->count[g]);
            r->moved[g * d + i] = r->now->count[g] * r->mean[g * d + i];
        }
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < i; ++j) r->normal[i * d + j] = rng_normal(a->rng);
        r->normal[i * d + i] = sqrt(dist_chisq(a->rng, r->now->n - r->k - i));
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = linalg_dot(j + 1, r->normal + i * d, r->normal + j * d);
            for (int g = 0; g < r->k; ++g)
                sum += r->now->count[g] * r->mean[g * d + i] * r->mean[g * d + j];
            r->spread[i * d + j] = sum;
        }
}

/* Of the records of `born` those from `start` to before `end`, as many as a block has: `to_chunk`.
 */
static int born_chunk(struct augment *a, int start, int end) {
    const int m = end - start < a->block.most_moved ? end - start : a->block.most_moved;
    for (int v = 0; v < a->model.columns; ++v) a->block.to_chunk[v] = a->size.born[v] + start;
    return m;
}

/* Y of those of level g that go, from `start` to before `end` of `born`. */
static void take_away(struct augment *a, int g, int start, int end) {
    struct resize *r = resize_of(a);
    while (start < end) {
        const int m = born_chunk(a, start, end);
        map_columns(a, &r->standard, g, m, a->block.to_chunk, a->block.x_new);
        add_records(r, g, -1, m, a->block.x_new);
        start += m;
    }
}

/* m of those of level g, chosen uniformly, to `list`. Not some that stand together: where a record
 * stands depends on it, for births go to the end. */
static void choose_level(struct augment *a, int g, int m, int *list) {
    int *all = resize_of(a)->gone.all;
    if (resize_of(a)->k > 1)
        all = augment_level_records(a, g);
    else
        for (int i = 0; i < a->n; ++i) all[i] = i;
    augment_choose_records(a->rng, all, (int)resize_of(a)->now->count[g], m, 0);
    memcpy(list, all, (size_t)m * sizeof *list);
}

/* Those that go, chosen uniformly in their levels; returns how many. */
static int choose_deaths(struct augment *a) {
    struct resize *r = resize_of(a);
    int gone = 0;
    for (int g = 0; g < r->k; ++g) {
        const int m = r->change.count[g] < 0 ? (int)-r->change.count[g] : 0;
        if (m == 0) continue;
        if (gone == 0 && r->k > 1) augment_sort_levels(a, 0);
        int *const list = r->gone.list + gone;
        choose_level(a, g, m, list);
        for (int i = 0; i < r->d; ++i) {
            const double *const x = a->x + r->column[i] * a->stride;
            double *const out = a->size.born[r->column[i]] + gone;
            for (int t = 0; t < m; ++t) out[t] = x[list[t]];
        }
        take_away(a, g, gone, gone + m);
        gone += m;
    }
    return gone;
}

/* What fills the places that those leave, `gone` of them: from the end, in their order. */
static void find_holes(struct augment *a, int gone) {
    struct resize *r = resize_of(a);
    const int n = (int)a->n, stay = n - gone;
    int *const goes = r->gone.goes;
    int left = 0;
    r->gone.holes = 0;
    memset(goes + stay, 0, (size_t)gone * sizeof *goes);
    for (int t = 0; t < gone; ++t) {
        const int i = r->gone.list[t];
        goes[i] = 1;
        r->gone.hole[r->gone.holes] = i;
        r->gone.holes += i < stay;
    }
    for (int i = stay; i < n; ++i) {
        r->gone.filler[left] = i;
        left += !goes[i];
    }
}

/* These change places; a second time, they are back. */
static void fill_holes(struct augment *a) {
    const struct resize *r = resize_of(a);
    for (int v = 0; v < a->model.columns; ++v) {
        double *const x = a->x + v * a->stride;
        for (int t = 0; t < r->gone.holes; ++t) {
            const double kept = x[r->gone.hole[t]];
            x[r->gone.hole[t]] = x[r->gone.filler[t]];
            x[r->gone.filler[t]] = kept;
        }
    }
}

/* Those that go, to the end; returns how many stay. */
static ptrdiff_t take_deaths(struct augment *a) {
    const int gone = choose_deaths(a);
    find_holes(a, gone);
    fill_holes(a);
    return a->n - gone;
}

static int births_of(const struct resize *r, int g) {
    return r->change.count[g] > 0 ? (int)r->change.count[g] : 0;
}

/* Y of those that come, level after level, to `born`; returns how many. */
static int draw_births(struct augment *a) {
    struct resize *r = resize_of(a);
    int born = 0;
    for (int g = 0; g < r->k; ++g)
        for (const int end = born + births_of(r, g); born < end;) {
            const int m = born_chunk(a, born, end);
            for (int i = 0; i < r->d; ++i)
                rng_fill_normal(a->rng, m, a->block.to_chunk[r->column[i]]);
            for (int h = 1; h < r->k; ++h)
                for (int b = 0; b < m; ++b) a->block.to_chunk[r->fixed[h - 1]][b] = h == g;
            add_records(r, g, 1, m, a->block.to_chunk);
            born += m;
        }
    return born;
}

/* The factor of the scatter of Y about its level means, to `spread`, and these to `moved`. Returns
 * 0 where it is singular. */
static int finish_standard(struct resize *r) {
    const int d = r->d;
    for (int g = 0; g < r->k; ++g)
        for (int i = 0; i < d; ++i) r->moved[g * d + i] /= r->next->count[g];
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            for (int g = 0; g < r->k; ++g)
                r->spread[i * d + j] -=
                    r->next->count[g] * r->moved[g * d + i] * r->moved[g * d + j];
    return linalg_cholesky(d, r->spread) == 0;
}

/* What makes W' = B_g' + F' G^-1 (Y - mean of Y'), to `shape`, its shift for each level;
 * and of that and what makes Y, for the records that stay, the surrogate's map. */
static void set_map(struct augment *a) {
    struct resize *r = resize_of(a);
    const double *centre = a->surrogate->centre;
    const int d = r->d, stride = a->model.columns + 1;
    double *const map = a->surrogate->map;
    divide(r, r->next->factor, r->spread, r->shape.matrix);
    memset(map, 0, (size_t)d * (size_t)stride * sizeof(double));
    for (int i = 0; i < d; ++i) {
        double *const row = map + i * stride;
        const double *const shape = r->shape.matrix + i * d;
        for (int j = 0; j <= i; ++j)
            for (int h = j; h <= i; ++h)
                row[1 + r->column[j]] += shape[h] * r->standard.matrix[h * d + j];
        for (int g = 0; g < r->k; ++g) {
            double shift = r->next->total[g * d + i] / r->next->count[g] + centre[r->column[i]];
            for (int j = 0; j <= i; ++j) shift -= shape[j] * r->moved[g * d + j];
            r->shape.shift[g * d + i] = shift;
            for (int j = 0; j <= i; ++j) shift += shape[j] * r->standard.shift[g * d + j];
            if (g == 0)
                row[0] = shift;
            else
                row[1 + r->fixed[g - 1]] = shift - row[0];
        }
    }
}

static void shape_births(struct augment *a) {
    const struct resize *r = resize_of(a);
    int start = 0;
    for (int g = 0; g < r->k; ++g)
        for (const int end = start + births_of(r, g); start < end;) {
            const int m = born_chunk(a, start, end);
            map_columns(a, &r->shape, g, m, a->block.to_chunk, a->block.x_new);
            for (int i = 0; i < r->d; ++i)
                doubles_copy(a->block.to_chunk[r->column[i]], a->block.x_new[r->column[i]], m);
            start += m;
        }
}

/* The log ratio of the densities of records, `stay` of which are old ones and `born` new. */
static double follow(struct augment *a, ptrdiff_t *stay, int *born) {
    struct resize *r = resize_of(a);
    draw_standard(a);
    set_standard(a);
    *stay = take_deaths(a);
    *born = draw_births(a);
    if (!finish_standard(r)) return -INFINITY;
    set_map(a);
    shape_births(a);
    const ptrdiff_t n = a->n;
    a->n = *stay;
    augment_mapped_totals(a);
    a->n = n;
    if (*born > 0) (void)augment_add_totals(a, 0, *born, augment_read_only(a->size.born));
    augment_residuals(a, &a->candidate);
    return augment_total_energy(a, &a->residual) - augment_total_energy(a, &a->candidate);
}

/* Records that came stand at the end, level after level. But a sweep visits records in their order,
 * which must not depend on their levels: these go to any place. */
static void scatter(struct augment *a, int born) {
    struct resize *r = resize_of(a);
    const ptrdiff_t first = a->n - born;
    for (int t = 0; t < born; ++t) r->gone.list[t] = (int)augment_choose(a->rng, first + t + 1);
    for (int v = 0; v < a->model.columns; ++v) {
        double *const x = a->x + v * a->stride;
        for (int t = 0; t < born; ++t) {
            const double kept = x[first + t];
            x[first + t] = x[r->gone.list[t]];
            x[r->gone.list[t]] = kept;
        }
    }
}

static void keep(struct augment *a, ptrdiff_t stay, int born) {
    a->n = stay;
    augment_keep_mapped(a);
    augment_keep_size(a, born, 1);
    memcpy(a->theta, resize_of(a)->next->theta, (size_t)a->model.parameters * sizeof(double));
    augment_take_complete(a, 0, a->complete);
    if (resize_of(a)->k > 1) scatter(a, born);
}

/* Is there a way from the records to `next`? */
static int find_change(struct resize *r, double most) {
    double births = 0, deaths = 0;
    for (int g = 0; g < r->k; ++g) {
        r->change.count[g] = r->next->count[g] - r->now->count[g];
        births += fmax(r->change.count[g], 0);
        deaths += fmax(-r->change.count[g], 0);
    }
    return births <= most && deaths <= most;
}

/* Those whose share is fixed are for where warmup has seen n, and records follow. */
static enum resize_kind choose_any_kind(struct augment *a, int fresh, enum resize_way way) {
    const double u = fresh && way == RESIZE_FOLLOW ? rng_uniform(a->rng) : 1;
    return u < GROWS ? RESIZE_GROW : u < GROWS + SCATTERS ? RESIZE_SCATTER : resize_choose_kind(a);
}

/* Steps of the chain of totals from `now` on, to `next`; returns whether they moved. */
static int walk(struct augment *a, int fresh, enum resize_way way, int learning, int steps,
                double *log_ratio) {
    struct resize *r = resize_of(a);
    struct resize_totals *const records = r->kept, *const spare = r->kept + 2;
    for (int k = 0; k < steps; ++k) {
        const enum resize_kind kind = choose_any_kind(a, fresh, way);
        *log_ratio = resize_step(a, fresh, kind);
        if (!resize_takes(a, kind, *log_ratio, learning)) continue;
        struct resize_totals *const left = r->now;
        r->now = r->next;
        r->next = left == records ? spare : left;
    }
    r->next = r->now;
    r->now = records;
    return r->next != records;
}

/* One way, for as long as a run goes on; in warmup now and then the other, which may become better.
 */
static enum resize_way choose_way(struct augment *a, int learning) {
    const double *taken = a->size.births.ways;
    if (!resize_of(a)->clamped.redraw) return RESIZE_FOLLOW;
    const enum resize_way best =
        taken[RESIZE_FOLLOW] < WORSE * taken[RESIZE_SOLVE] ? RESIZE_SOLVE : RESIZE_FOLLOW;
    return learning && rng_uniform(a->rng) < OTHER ? RESIZE_WAYS - 1 - best : best;
}

/* The log ratio of a step from the records to totals that `now` holds, the chain being at `next`.
 */
static double follow_to(struct augment *a, ptrdiff_t *stay, int *born) {
    const struct resize *r = resize_of(a);
    if (!find_change(resize_of(a), a->size.most_born)) return -INFINITY;
    return *a->adapt.temper * (follow(a, stay, born) - r->now->energy + r->next->energy);
}

static void move(struct augment *a, int fresh, int learning, int steps) {
    struct resize *r = resize_of(a);
    double log_ratio = -INFINITY;
    ptrdiff_t stay = a->n;
    int born = 0, accept = 0, learns = learning;
    r->gone.holes = 0;
    const enum resize_way way = choose_way(a, learning);
    const int solves = way == RESIZE_SOLVE;
    if (!(solves ? resize_begin_clamped(a) : resize_read(a))) {
        if (learning) a->size.births.ways[way] -= RESIZE_FORGET * a->size.births.ways[way];
        return;
    }
    if (walk(a, fresh, way, learning, steps, &log_ratio)) {
        log_ratio = solves ? resize_follow_clamped(a) : follow_to(a, &stay, &born);
        accept = -log_ratio < rng_exponential(a->rng);
        learns = learning && r->next->n != r->now->n; /* at the same n records follow easily */
        if (learns) a->size.births.ways[way] += RESIZE_FORGET * (accept - a->size.births.ways[way]);
    }
    if (!accept)
        fill_holes(a);
    else if (solves)
        resize_keep_clamped(a);
    else
        keep(a, stay, born);
    augment_tried_size(a, fresh, learns, log_ratio, accept);
}

static void make(struct augment *a, struct round *round) {
    const int learning = round->learning;
    if (!resize_of(a) || round->empty) return;
    const int steps = augment_size_steps(a, round->iteration, learning);
    for (int fresh = 1; fresh >= 0; --fresh) {
        if (!(steps & (fresh ? SIZE_FRESH : SIZE_WALK))) continue;
        move(a, fresh, learning, !fresh ? 1 : learning || augment_redraws(a) ? FEW : STEPS);
    }
}

/* A second step in a round, after warmup, where steps draw a new n. */
static void make_again(struct augment *a, struct round *round) {
    const int made = round->iteration >= round->warmup && !round->empty;
    if (made && resize_of(a) && augment_redraws(a)) move(a, 1, 0, FEW);
}

const struct move move_resize = {
    .phase = MOVE_AFTER, .prepare = prepare, .make_room = make_more_room, .make = make};
const struct move move_resize_again = {.phase = MOVE_AFTER, .make = make_again};
