/* Method "augment": births and deaths of records, where their number n is not known.
 *
 * Target: p(n) p(theta) prod_i f(x_i | theta) eta(z | sum_i t(x_i)) over sequences of n records. A
 * birth draws m records from f(. | theta) and puts them at places chosen uniformly; a death
 * takes m records chosen uniformly, as often and with the same m. The densities of the records and
 * of the places cancel:
 *
 *   accept with p(n +- m) eta(z | s +- t) / (p(n) eta(z | s)), t the m records' part of s.
 *
 * Where a total is known better than n, theta and n trade off. So some moves take theta along:
 * theta's moving coordinates by slope * log(n' / n), a slope that warmup learned, and the old
 * records with their innovations held fixed, as the non-centred moves do. The slope is that of an
 * update given the statistic of the complete data, which follows n closely; theta itself varies by
 * the sampling of n records, and more of them than warmup has would be needed to see how. Those
 * that are born or die come from f(. | theta) of the side that has them, so that the ratio has the
 * prior of theta in addition.
 *
 * Beside a surrogate (augment_surrogate.c) these moves stay as they are: they leave the records'
 * joint distribution with theta invariant, and the surrogate then moves the records that there are.
 *
 * Records that are born stand last, as their order does not matter. m is geometric-like, cut off at
 * MOST_BORN; its scale is learned in warmup.
 *
 * Cost: O(m) records drawn or moved and evaluated, O(components); O(n) where theta goes along. Room
 * for all births of an iteration must be there before it: augment_is_full().
 */
#include "augment.h"

#include <stdlib.h>

/* moves in an iteration, and those that take theta along */
enum { SIZE_MOVES = 4, TILTED = 2 };

/* after warmup, one of so many iterations has a step of n to a number near it that takes theta
 * along, beside the one to where warmup saw n */
enum { WALK_EVERY = 4 };

/* pairs of updates, an odd number */
enum { UPDATES = 15 };

void augment_prepare_size(struct augment *a) {
    const int complete = a->pace.moving;
    a->born = plugin_memory((size_t)a->model.columns, sizeof(double *));
    for (int v = 0; v < a->model.columns; ++v)
        a->born[v] = plugin_memory(MOST_BORN, sizeof(double));
    a->followed = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->updates = plugin_memory((size_t)a->slope.moving * UPDATES, sizeof(double));
    int *all = plugin_memory((size_t)complete, sizeof(int));
    for (int j = 0; j < complete; ++j) all[j] = j;
    a->pace.moves = all;
}

int augment_is_full(const struct augment *a) {
    const ptrdiff_t rounds = a->surrogate ? (ptrdiff_t)*a->rounds.count : 1;
    return a->stride - a->n < rounds * (SIZE_MOVES + TILTED) * MOST_BORN;
}

static void swap_records(struct augment *a, ptrdiff_t i, ptrdiff_t j) {
    for (int v = 0; v < a->model.columns; ++v) {
        double *column = a->x + v * a->stride;
        const double kept = column[i];
        column[i] = column[j];
        column[j] = kept;
    }
}

static void choose_last(struct augment *a, int m) {
    for (ptrdiff_t last = a->n - 1; last >= a->n - m; --last)
        swap_records(a, augment_choose(a->rng, last + 1), last);
}

static void draw_born(struct augment *a, const double *theta, int m) {
    const struct model *model = &a->model;
    model->class->set(model->self, theta);
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = m - start < MAX_BLOCK ? m - start : MAX_BLOCK;
        for (int v = 0; v < model->columns; ++v) a->to_chunk[v] = a->born[v] + start;
        model->class->rrecords(model->self, a->rng, chunk, a->to_chunk);
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
        memcpy(a->born[v], a->x + v * a->stride + a->n - m, (size_t)m * sizeof(double));
}

/* Energy with those records more or less, whose residuals are in `candidate`. */
static double changed_energy(struct augment *a, int m, int sign) {
    augment_clear_total(a);
    (void)augment_add_totals(a, 0, m, augment_read_only(a->born));
    for (int j = 0; j < a->dense; ++j)
        a->candidate[j] = a->residual[j] - sign * a->total[j] * a->weight[j];
    for (int j = 0; j < a->cells; ++j)
        a->candidate_cells[j] =
            a->cell_residual[j] - sign * a->total[a->dense + j] * a->weight[a->dense + j];
    return augment_total_energy(a, a->candidate, a->candidate_cells);
}

static void append_born(struct augment *a, int m) {
    for (int v = 0; v < a->model.columns; ++v)
        memcpy(a->x + v * a->stride + a->n, a->born[v], (size_t)m * sizeof(double));
    a->n += m;
}

static void keep(struct augment *a, int m, int birth) {
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
    if (birth)
        append_born(a, m);
    else
        a->n -= m;
}

static void move_size(struct augment *a, int learning) {
    struct births *b = &a->births;
    const int m = augment_draw_count(a->rng, b->scale, MOST_BORN);
    const int birth = (int)(rng_bits(a->rng) >> 63), sign = birth ? 1 : -1;
    const double n = (double)a->n + sign * m;
    const double log_prior = n < 0 ? -INFINITY : size_prior_log(a->size_prior, n);
    int accept = 0;
    if (log_prior > -INFINITY) {
        const double energy = augment_total_energy(a, a->residual, a->cell_residual);
        find_records(a, m, birth);
        const double log_ratio = log_prior - size_prior_log(a->size_prior, (double)a->n) -
                                 *a->adapt.temper * (changed_energy(a, m, sign) - energy);
        accept = log_ratio >= 0 || -log_ratio < rng_exponential(a->rng);
        a->work += a->pass_work * m / fmax((double)a->n, m);
        if (accept) keep(a, m, birth);
    }
    b->made += 1;
    b->accepted += accept;
    if (learning) units_learn(&b->scale, &b->tries, accept, MOST_BORN);
}

/* The energy with the old records moved to it and m born or, last now, dead */
static double tilted_energy(struct augment *a, int m, int birth, struct rng *innovations) {
    const struct model *model = &a->model;
    if (birth)
        draw_born(a, a->theta_new, m);
    else
        choose_last(a, m);
    model->class->set(model->self, a->theta);
    model->class->set_move(model->self, a->theta_new, a->changed);
    *innovations = *a->rng;
    if (!birth) a->n -= m;
    const double energy = augment_moved_energy(a);
    if (!birth) {
        a->n += m;
        return energy;
    }
    (void)augment_add_totals(a, 0, m, augment_read_only(a->born));
    augment_residuals(a, a->candidate, a->candidate_cells);
    return augment_total_energy(a, a->candidate, a->candidate_cells);
}

static void move_tilted(struct augment *a, int fresh, int learning) {
    struct births *b = &a->births;
    const struct model *model = &a->model;
    double log_ratio = -INFINITY, log_back;
    const double n = fresh ? size_slope_fresh(&a->slope, (double)a->n, a->rng, &log_back)
                           : size_slope_walk(&a->slope, (double)a->n, a->rng, &log_back);
    const int birth = n > (double)a->n, m = (int)fmin(fabs(n - (double)a->n), MOST_BORN + 1);
    const int possible = n >= 1 && a->n >= 1 && m <= MOST_BORN;
    const double log_prior = possible ? size_prior_log(a->size_prior, n) : -INFINITY;
    struct rng innovations;
    if (log_prior > -INFINITY) {
        const double log_step = log(n / (double)a->n);
        size_slope_follow(&a->slope, log_step, a->theta, (size_t)model->parameters, a->theta_new);
        const double forth = model->class->dprior(model->self, a->theta_new);
        if (isfinite(forth)) {
            const double energy = augment_total_energy(a, a->residual, a->cell_residual);
            log_ratio = log_back + forth - model->class->dprior(model->self, a->theta) + log_prior -
                        size_prior_log(a->size_prior, (double)a->n);
            log_ratio -= *a->adapt.temper * (tilted_energy(a, m, birth, &innovations) - energy);
            a->work += 2 * a->pass_work;
        }
    }
    const int accept = -log_ratio < rng_exponential(a->rng);
    b->tilt_made += 1;
    b->tilt_accepted += accept;
    if (learning && !fresh) size_slope_tried(&a->slope, log_ratio, MOST_BORN);
    if (!accept) return;
    if (!birth) a->n -= m;
    const struct rng later = *a->rng;
    augment_keep_moved(a, &innovations);
    *a->rng = later;
    if (birth) append_born(a, m);
    memcpy(a->theta, a->theta_new, (size_t)model->parameters * sizeof(double));
}

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How an update's theta goes with n where the statistic goes with it as the window saw: from two
 * updates of the same random numbers. Their difference may be far off where one of them rejects a
 * number that the other takes, so the median of UPDATES is taken. */
static void follow_updates(struct augment *a) {
    const struct model_class *class = a->model.class;
    const struct size_slope *pace = &a->pace;
    const int moving = a->slope.moving, complete = a->model.complete;
    const double about = *pace->at_mean, square = *pace->at_square;
    const double width = sqrt(square / *pace->count);
    if (!(width > 0)) return;
    double *const c[] = {a->complete_before, a->complete_after};
    for (int j = 0; j < complete; ++j)
        for (int k = 0; k < 2; ++k)
            c[k][j] = pace->mean[j] + (2 * k - 1) * width * pace->cross[j] / square;
    for (int u = 0; u < UPDATES; ++u) {
        const struct rng start = *a->rng;
        double *const theta[] = {a->theta_new, a->followed};
        for (int k = 0; k < 2; ++k) {
            const double n = exp(about + (2 * k - 1) * width);
            *a->rng = start;
            memcpy(theta[k], a->theta, (size_t)a->model.parameters * sizeof(double));
            if ((a->model.cut ? class->rtheta_uncut : class->rtheta)(a->model.self, c[k], n, a->rng,
                                                                     theta[k]) != PLUGIN_OK)
                return;
        }
        for (int j = 0; j < moving; ++j) {
            const int at = a->slope.moves[j];
            a->updates[j * UPDATES + u] = (theta[1][at] - theta[0][at]) / (2 * width);
        }
    }
    for (int j = 0; j < moving; ++j) {
        double *const of = a->updates + (size_t)j * UPDATES;
        qsort(of, UPDATES, sizeof *of, compare_numbers);
        a->slope.slope[j] = of[UPDATES / 2];
    }
}

void augment_saw_size(struct augment *a, int closes) {
    size_slope_saw(&a->slope, log((double)a->n), a->theta);
    if (a->pace.moving > 0) size_slope_saw(&a->pace, log((double)a->n), a->complete);
    if (!closes) return;
    size_slope_close(&a->slope);
    if (a->pace.moving > 0) {
        follow_updates(a);
        size_slope_close(&a->pace);
    }
    a->births.tries = 0;
}

void augment_move_size(struct augment *a, int iteration, int learning) {
    for (int k = 0; k < SIZE_MOVES; ++k) move_size(a, learning);
    if (a->model.class->move == NULL || a->slope.moving == 0 || a->plain) return;
    const int knows = size_slope_knows(&a->slope);
    if (knows) move_tilted(a, 1, learning);
    if (!knows || learning || iteration % WALK_EVERY == 0) move_tilted(a, 0, learning);
}
