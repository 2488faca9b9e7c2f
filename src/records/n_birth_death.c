/* Method "augment": births and deaths of records, if their number n is unknown.
 *
 * Target: p(n) p(theta) prod_i f(x_i | theta) eta(z | sum_i t(x_i)) over sequences of n records. A
 * birth draws m records from f(. | theta) and puts them at places chosen uniformly; a death
 * removes m records chosen uniformly, equally often and with the same m. The densities of the
 * records and of the places cancel:
 *
 *   accept with p(n +- m) eta(z | s +- t) / (p(n) eta(z | s)), t the m records' part of s.
 *
 * If a total is known more precisely than n, theta and n are strongly dependent. So some moves
 * also move theta: its moving coordinates by slope * log(n' / n), with a slope learned in warmup,
 * and the old records with their innovations held fixed, as in non-centred moves. The slope
 * comes from updates given the complete-data statistic, which follow n closely. (theta itself also
 * varies by the sampling of n records, and its slope would require more draws than warmup has.)
 * Records that are born or die come from f(. | theta) with the theta of the larger side, so the
 * ratio also has the prior of theta.
 *
 * Whether the totals of those m records fit is random, and if they do not, a step of both has
 * moved all other records in vain. So, if the m records are few compared with the others, it draws
 * K batches of them and takes one with probability proportional to its eta: the mean of eta over
 * the batches replaces eta(z | s') in the ratio. The reverse step has its m records and K - 1
 * further batches, drawn from f(. | theta); the mean of their eta replaces eta(z | s).
 *
 * Once warmup has located n, such steps propose n from its distribution there, and less often near
 * its current value. They are seldom made if births and deaths alone move as far.
 *
 * With several sites that share theta, each site has steps of its number of records, which move
 * the records of all sites with theta.
 *
 * With a surrogate (records/shape_hmc_pass.c) these moves are the same: they leave the joint
 * distribution of records and theta invariant, and the surrogate then moves the current records.
 *
 * New records are added at the end, because their order does not matter. m is geometric-like, at
 * most most_born; its scale is learned in warmup.
 *
 * Cost: O(m) records drawn or moved and evaluated, O(components); O(n) if theta moves. Room for
 * all births of an iteration must be there before it: augment_is_full().
 */
#include "base/dist.h"
#include "contract/model_move.h"
#include "contract/model_update.h"
#include "records/augment_internal.h"

#include <stdlib.h>

/* moves in an iteration, and those that take theta along */
enum { SIZE_MOVES = 4, TILTED = 2 };

/* After warmup one of so many iterations has a step that takes theta along to a number near n,
 * in addition to the one to where warmup saw n, and in warmup these alternate. Where births alone
 * go as far, two of so many in warmup have either, and one after it the latter. Where the latter
 * are accepted less often than POOR, every iteration has both. */
enum { SELDOM = 4 };
static const double POOR = 0.4, FORGET = 0.02;

/* in units of the scale of births: theta, which waits for an update, holds them back */
static const double ALONE = 0.1;

/* Batches of records of such a step: at most, and together so many times fewer than the others. */
enum { MOST_BATCHES = 16 };
static const double SMALL = 8;

/* pairs of updates, an odd number */
enum { UPDATES = 15 };

/* A sweep has at least so many parts where steps of n draw many new records. */
enum { REDRAWN_PARTS = 4 };

static void prepare_site(struct augment *a) {
    if (!a->size.prior) return;
    const int updates = a->model.update && !update_theta_is_needed(&a->model) && !a->layer;
    const int complete = a->size.pace.moving = updates ? a->model.complete : 0;
    a->size.slope.moving = a->model.moving;
    a->size.slope.moves = a->model.moves;
    a->size.born = plugin_memory((size_t)a->model.columns, sizeof(double *));
    for (int v = 0; v < a->model.columns; ++v) a->size.born[v] = doubles((size_t)a->size.most_born);
    a->size.batch_log = doubles(MOST_BATCHES);
    a->size.batch_start = plugin_memory(MOST_BATCHES, sizeof *a->size.batch_start);
    a->size.beside.dense = doubles((size_t)a->layout.dense);
    a->size.beside.cells = doubles((size_t)augment_counts(a));
    a->size.followed = doubles((size_t)a->model.parameters);
    a->size.updates = doubles((size_t)a->size.slope.moving * UPDATES);
    int *all = plugin_memory((size_t)complete, sizeof(int));
    for (int j = 0; j < complete; ++j) all[j] = j;
    a->size.pace.moves = all;
}

int augment_is_full(const struct augment *a) {
    for (int k = 0; k < a->sites.count; ++k) {
        const struct augment *site = a->sites.of[k];
        const ptrdiff_t most =
            rounds_made(&a->rounds) * (SIZE_MOVES + TILTED) * site->size.most_born;
        if (site->size.prior && site->stride - site->n < most) return 1;
    }
    return 0;
}

void augment_swap_records(struct augment *a, ptrdiff_t i, ptrdiff_t j) {
    for (int v = 0; v < a->model.columns; ++v) {
        double *column = a->x + v * a->stride;
        const double kept = column[i];
        column[i] = column[j];
        column[j] = kept;
    }
}

static void choose_last(struct augment *a, int m) {
    for (ptrdiff_t last = a->n - 1; last >= a->n - m; --last)
        augment_swap_records(a, augment_choose(a->rng, last + 1), last);
}

static void draw_born(struct augment *a, const double *theta, int m) {
    const struct model *model = &a->model;
    model->class->set(model->self, theta);
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = block_length(m - start);
        for (int v = 0; v < model->columns; ++v) a->block.to_chunk[v] = a->size.born[v] + start;
        model->class->rrecords(model->self, a->rng, chunk, a->block.to_chunk);
    }
}

/* The m records that are to be born, or chosen to die (and last then), to `born`. */
static void find_records(struct augment *a, int m, int birth) {
    if (birth) {
        draw_born(a, a->theta, m);
        return;
    }
    choose_last(a, m);
    for (int v = 0; v < a->model.columns; ++v)
        memcpy(a->size.born[v], a->x + v * a->stride + a->n - m, (size_t)m * sizeof(double));
}

/* Energy with the m records of `born` more or less than `of` has, as candidate. */
static double changed_energy(struct augment *a, const struct residuals *of, int m, int sign) {
    augment_add_records(a, of, m, a->size.born, sign);
    return augment_total_energy(a, &a->candidate);
}

static void append_born(struct augment *a, int m) {
    for (int v = 0; v < a->model.columns; ++v)
        memcpy(a->x + v * a->stride + a->n, a->size.born[v], (size_t)m * sizeof(double));
    a->n += m;
}

void augment_keep_size(struct augment *a, int m, int birth) {
    augment_copy_residuals(a, &a->residual, &a->candidate);
    if (birth)
        append_born(a, m);
    else
        a->n -= m;
}

/* Has warmup seen n vary by more than births and deaths alone go? */
static int is_far(const struct augment *a) {
    return size_slope_knows(&a->size.slope) &&
           size_slope_spread(&a->size.slope) > 1 + ALONE * a->size.births.scale;
}

static void move_size(struct augment *a, int learning) {
    struct births *b = &a->size.births;
    const int m = augment_draw_count(a->rng, b->scale, a->size.most_born);
    const int birth = (int)(rng_bits(a->rng) >> 63), sign = birth ? 1 : -1;
    const double n = (double)a->n + sign * m;
    const double log_prior = n < 0 ? -INFINITY : size_prior_log(a->size.prior, n);
    int accept = 0;
    if (log_prior > -INFINITY) {
        const double energy = augment_total_energy(a, &a->residual);
        find_records(a, m, birth);
        const double log_ratio =
            log_prior - size_prior_log(a->size.prior, (double)a->n) -
            *a->adapt.temper * (changed_energy(a, &a->residual, m, sign) - energy);
        accept = log_ratio >= 0 || -log_ratio < rng_exponential(a->rng);
        a->sites.lead->count.work += a->cost.pass * m / fmax((double)a->n, m);
        if (accept) augment_keep_size(a, m, birth);
    }
    b->made += 1;
    b->accepted += accept;
    if (learning) units_learn(&b->scale, &b->tries, accept, a->size.most_born);
}

/* How many batches of m records cost little relative to so many others. */
static int count_batches(double others, int m) {
    const double most = floor(others / (SMALL * m));
    return most < 1 ? 1 : most > MOST_BATCHES ? MOST_BATCHES : (int)most;
}

static double log_mean(int count, const double *log_x) {
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < count; ++k) most = fmax(most, log_x[k]);
    if (most == -INFINITY) return most;
    for (int k = 0; k < count; ++k) sum += exp(log_x[k] - most);
    return most + log(sum / count);
}

/* Draws batches of m records under theta in addition to those that a->size.beside is of, from
 * `first` on, and the log of the mean of eta over all `count`. */
static double draw_batches(struct augment *a, const double *theta, int m, int first, int count) {
    double *const log_eta = a->size.batch_log;
    for (int k = first; k < count; ++k) {
        a->size.batch_start[k] = *a->rng;
        draw_born(a, theta, m);
        log_eta[k] = -*a->adapt.temper * changed_energy(a, &a->size.beside, m, 1);
    }
    return log_mean(count, log_eta);
}

/* One batch of those, as likely as its eta is high, to `born`, and candidates with it. */
static void choose_batch(struct augment *a, int m, int count) {
    const int chosen = dist_choose(a->rng, count, a->size.batch_log);
    const struct rng later = *a->rng;
    *a->rng = a->size.batch_start[chosen];
    draw_born(a, a->theta_new, m);
    *a->rng = later;
    (void)changed_energy(a, &a->size.beside, m, 1);
}

static void set_move(struct augment *a) {
    const struct model *model = &a->model;
    model->class->set(model->self, a->theta);
    model->move->set_move(model->self, a->theta_new, a->step.changed);
}

/* Energy of the first n records moved, whose residuals are the candidates then; those of other
 * sites move as well, and `others` gets by how much their energy grows. */
static double moved_energy(struct augment *a, ptrdiff_t n, struct rng *innovations,
                           double *others) {
    struct augment *const lead = a->sites.lead;
    const ptrdiff_t old = a->n;
    set_move(a);
    *innovations = *a->rng;
    a->n = n;
    const double all = augment_moved_energy(lead);
    a->n = old;
    *others = 0;
    if (lead->sites.count == 1) return all;
    const double own = augment_total_energy(a, &a->candidate);
    const double before = augment_total_energy(a, &a->residual);
    *others = all - own - (augment_energy(lead) - before);
    return own;
}

/* What the ratio of a step to m records more, with theta_new, has of eta */
static double tilted_birth(struct augment *a, int m, struct rng *innovations) {
    const int count = count_batches((double)a->n, m);
    const double energy = augment_total_energy(a, &a->residual);
    double others;
    (void)moved_energy(a, a->n, innovations, &others);
    augment_copy_residuals(a, &a->size.beside, &a->candidate);
    return draw_batches(a, a->theta_new, m, 0, count) + *a->adapt.temper * (energy - others);
}

/* The same for m less: those that stand last then. */
static double tilted_death(struct augment *a, int m, struct rng *innovations) {
    const int count = count_batches((double)(a->n - m), m);
    const double energy = augment_total_energy(a, &a->residual);
    find_records(a, m, 0);
    (void)changed_energy(a, &a->residual, m, -1);
    augment_copy_residuals(a, &a->size.beside, &a->candidate);
    a->size.batch_log[0] = -*a->adapt.temper * energy;
    const double back = draw_batches(a, a->theta, m, 1, count);
    double others;
    const double moved = moved_energy(a, a->n - m, innovations, &others);
    return -*a->adapt.temper * (moved + others) - back;
}

static void keep_tilted(struct augment *a, int m, int birth, const struct rng *innovations) {
    if (birth)
        choose_batch(a, m, count_batches((double)a->n, m));
    else
        a->n -= m;
    const struct rng later = *a->rng;
    set_move(a);
    augment_keep_moved(a->sites.lead, innovations);
    *a->rng = later;
    if (birth) append_born(a, m);
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
}

double augment_propose_size(struct augment *a, double n, int fresh, double *log_back) {
    return (fresh ? size_slope_fresh : size_slope_walk)(&a->size.slope, n, a->rng, log_back);
}

void augment_tried_size(struct augment *a, int fresh, int learning, double log_ratio, int accept) {
    struct births *b = &a->size.births;
    b->tilt_made += 1;
    b->tilt_accepted += accept;
    if (learning && !fresh) size_slope_tried(&a->size.slope, log_ratio, a->size.most_born);
    if (learning && fresh) b->followed += FORGET * (accept - b->followed);
}

static void move_tilted(struct augment *a, int fresh, int learning) {
    const struct model *model = &a->model;
    double log_ratio = -INFINITY, log_back;
    const double n = augment_propose_size(a, (double)a->n, fresh, &log_back);
    const int birth = n > (double)a->n,
              m = (int)fmin(fabs(n - (double)a->n), a->size.most_born + 1);
    const int possible = n >= 1 && a->n >= 1 && m > 0 && m <= a->size.most_born;
    const double log_prior = possible ? size_prior_log(a->size.prior, n) : -INFINITY;
    struct rng innovations;
    if (log_prior > -INFINITY) {
        const double log_step = log(n / (double)a->n);
        size_slope_follow(&a->size.slope, log_step, a->theta, (size_t)model->parameters,
                          a->theta_new);
        const double forth = augment_log_prior(a->sites.lead, a->theta_new);
        if (isfinite(forth)) {
            log_ratio = log_back + forth - augment_log_prior(a->sites.lead, a->theta) + log_prior -
                        size_prior_log(a->size.prior, (double)a->n);
            log_ratio +=
                birth ? tilted_birth(a, m, &innovations) : tilted_death(a, m, &innovations);
            a->sites.lead->count.work += 2 * a->sites.lead->cost.pass;
        }
    }
    const int accept = -log_ratio < rng_exponential(a->rng);
    augment_tried_size(a, fresh, learning, log_ratio, accept);
    if (accept) keep_tilted(a, m, birth, &innovations);
}

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How an update's theta goes with n where the statistic goes with it as the window saw: from two
 * updates of the same random numbers. Their difference may be far off where one of them rejects a
 * number that the other takes, so the median of UPDATES is taken. */
static void follow_updates(struct augment *a) {
    const struct model_update *update = a->model.update;
    int (*const draw)(void *, const double *, double, struct rng *, double *) =
        update->rtheta_uncut ? update->rtheta_uncut : update->rtheta;
    const struct size_slope *pace = &a->size.pace;
    const int moving = a->size.slope.moving, complete = a->model.complete;
    const double about = *pace->at_mean, square = *pace->at_square;
    const double width = sqrt(square / *pace->count);
    const double others = augment_records(a->sites.lead) - (double)a->n;
    if (!(width > 0)) return;
    double *const c[] = {a->visit.complete_before, a->complete_after};
    for (int j = 0; j < complete; ++j)
        for (int k = 0; k < 2; ++k)
            c[k][j] = pace->mean[j] + (2 * k - 1) * width * pace->cross[j] / square;
    for (int u = 0; u < UPDATES; ++u) {
        const struct rng start = *a->rng;
        double *const theta[] = {a->theta_new, a->size.followed};
        for (int k = 0; k < 2; ++k) {
            const double n = others + exp(about + (2 * k - 1) * width);
            *a->rng = start;
            memcpy(theta[k], a->theta, (size_t)a->model.parameters * sizeof(double));
            if (draw(a->model.self, c[k], n, a->rng, theta[k]) != PLUGIN_OK) return;
        }
        for (int j = 0; j < moving; ++j) {
            const int at = a->size.slope.moves[j];
            a->size.updates[j * UPDATES + u] = (theta[1][at] - theta[0][at]) / (2 * width);
        }
    }
    for (int j = 0; j < moving; ++j) {
        double *const of = a->size.updates + (size_t)j * UPDATES;
        qsort(of, UPDATES, sizeof *of, compare_numbers);
        a->size.slope.slope[j] = of[UPDATES / 2];
    }
}

static void saw_size(struct augment *a, int closes) {
    size_slope_saw(&a->size.slope, (double)a->n, log((double)a->n), a->theta);
    if (a->size.pace.moving > 0)
        size_slope_saw(&a->size.pace, (double)a->n, log((double)a->n), a->complete);
    if (!closes) return;
    size_slope_close(&a->size.slope);
    if (a->size.pace.moving > 0) {
        follow_updates(a);
        size_slope_close(&a->size.pace);
    }
    a->size.births.tries = 0;
}

int augment_redraws(const struct augment *a) {
    return augment_resizes(a) && is_far(a) && a->size.births.followed > POOR;
}

int augment_size_steps(const struct augment *a, int iteration, int learning) {
    const int knows = size_slope_knows(&a->size.slope), turn = iteration % SELDOM, far = is_far(a);
    if (learning) {
        if (knows && !far && turn >= 2) return 0;
        return knows && iteration % 2 == 0 ? SIZE_FRESH : SIZE_WALK;
    }
    if (!knows) return SIZE_WALK;
    const int fresh = far || turn == 0, walk = far && (turn == 0 || a->size.births.followed < POOR);
    return (fresh ? SIZE_FRESH : 0) | (walk ? SIZE_WALK : 0);
}

static void move_site(struct augment *a, int iteration, int learning) {
    for (int k = 0; k < (augment_redraws(a) ? 1 : SIZE_MOVES); ++k) move_size(a, learning);
    if (augment_resizes(a) || a->model.move == NULL || a->size.slope.moving == 0 || a->plain)
        return;
    const int steps = augment_size_steps(a, iteration, learning);
    if (steps & SIZE_FRESH) move_tilted(a, 1, learning);
    if (steps & SIZE_WALK) move_tilted(a, 0, learning);
}

/* At all sites where n is not known; a->size.jump: by which theta went along. Warmup makes whole
 * sweeps; its second half does not where steps of n draw many new records. */
static void make(struct augment *a, struct round *round) {
    const int iteration = round->iteration, warmup = round->warmup;
    if (!augment_is_sized(a)) return;
    augment_gather(a, a->size.jump);
    for (int k = 0; k < a->sites.count; ++k)
        if (a->sites.of[k]->size.prior) move_site(a->sites.of[k], iteration, round->learning);
    augment_gather(a, a->step.place);
    for (int j = 0; j < a->model.moving; ++j) a->size.jump[j] = a->step.place[j] - a->size.jump[j];
    if (iteration > warmup / 2 && OWN(a, resize) && augment_redraws(a))
        round->parts = REDRAWN_PARTS;
}

static void learn(struct augment *a, const struct round *round) {
    for (int k = 0; k < a->sites.count && round->learning; ++k)
        if (a->sites.of[k]->size.prior && a->sites.of[k]->n > 0)
            saw_size(a->sites.of[k], round->closes);
}

static void start_site(struct augment *a) {
    const struct size_prior *prior = a->size.prior;
    if (!prior) return;
    const double n = rint((double)a->n + a->size.spread * rng_normal(a->rng));
    a->n = (ptrdiff_t)fmax(fmin(fmin(n, prior->upper), (double)a->stride), prior->lower);
    a->size.births.scale = a->size.births.followed = 1;
    for (int k = 0; k < RESIZE_KINDS; ++k) a->size.births.taken[k] = 0.5;
    for (int k = 0; k < RESIZE_WAYS; ++k) a->size.births.ways[k] = 0.5;
    size_slope_start(&a->size.slope);
}

static void end_warmup(struct augment *a) {
    if (augment_redraws(a)) *a->adapt.parts = fmax(*a->adapt.parts, REDRAWN_PARTS);
    for (int k = 0; k < a->sites.count; ++k) {
        struct births *b = &a->sites.of[k]->size.births;
        b->made = b->accepted = b->visited = b->updated = b->tilt_made = b->tilt_accepted = 0;
    }
}

static void tell(const struct augment *a, struct chain_diagnostics *told) {
    double made = 0, accepted = 0, tilt_made = 0, tilt_accepted = 0;
    if (!augment_is_sized(a)) return;
    for (int k = 0; k < a->sites.count; ++k) {
        const struct births *b = &a->sites.of[k]->size.births;
        made += b->made;
        accepted += b->accepted;
        tilt_made += b->tilt_made;
        tilt_accepted += b->tilt_accepted;
    }
    diagnostics_tell(told, "records", accepted / made);
    diagnostics_tell(told, "tilted", tilt_accepted / tilt_made);
}

const struct move move_births = {
    .phase = MOVE_NUMBER,
    .prepare_site = prepare_site,
    .start_site = start_site,
    .make = make,
    .learn = learn,
    .end_warmup = end_warmup,
    .tell = tell,
};
