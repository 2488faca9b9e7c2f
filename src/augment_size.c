/* Method "augment": births and deaths of records, where their number n is not known.
 *
 * Target: p(n) p(theta) prod_i f(x_i | theta) eta(z | sum_i t(x_i)) over sequences of n records. A
 * birth draws m records from f(. | theta) and puts them at places chosen uniformly; a death
 * takes m records chosen uniformly, as often and with the same m. The densities of the records and
 * of the places cancel:
 *
 *   accept with p(n +- m) eta(z | s +- t) / (p(n) eta(z | s)), t the m records' part of s.
 *
 * Records that are born stand last, as their order does not matter. m is geometric-like, cut off at
 * a block; its scale is learned in warmup.
 *
 * Cost: O(m) records drawn or moved and evaluated, O(components). Room for all births of an
 * iteration must be there before it: augment_is_full().
 */
#include "augment.h"

/* moves in an iteration; the acceptance rate that m aims at */
enum { SIZE_MOVES = 4 };
static const double TARGET = 0.4;

int augment_is_full(const struct augment *a) {
    return a->stride - a->n < (ptrdiff_t)SIZE_MOVES * MAX_BLOCK;
}

/* one of 0..count-1, count below 2^32 */
static ptrdiff_t choose(struct rng *rng, ptrdiff_t count) {
    return (ptrdiff_t)((rng_bits(rng) >> 32) * (uint64_t)count >> 32);
}

static void swap_records(struct augment *a, ptrdiff_t i, ptrdiff_t j) {
    for (int v = 0; v < a->model.columns; ++v) {
        double *column = a->x + v * a->stride;
        const double kept = column[i];
        column[i] = column[j];
        column[j] = kept;
    }
}

/* The m records that are to be born, or chosen to die (and last then), to x_new. */
static void find_records(struct augment *a, int m, int birth) {
    const struct model *model = &a->model;
    if (birth) {
        model->class->set(model->self, a->theta);
        model->class->rrecords(model->self, a->rng, m, a->x_new);
        return;
    }
    for (ptrdiff_t last = a->n - 1; last >= a->n - m; --last)
        swap_records(a, choose(a->rng, last + 1), last);
    for (int v = 0; v < model->columns; ++v)
        memcpy(a->x_new[v], a->x + v * a->stride + a->n - m, (size_t)m * sizeof(double));
}

/* Energy with those records more or less, whose residuals are in `candidate`. */
static double changed_energy(struct augment *a, int m, int sign) {
    augment_clear_total(a);
    (void)augment_add_totals(a, 0, m, augment_read_only(a->x_new));
    for (int j = 0; j < a->dense; ++j)
        a->candidate[j] = a->residual[j] - sign * a->total[j] * a->weight[j];
    for (int j = 0; j < a->cells; ++j)
        a->candidate_cells[j] =
            a->cell_residual[j] - sign * a->total[a->dense + j] * a->weight[a->dense + j];
    return augment_total_energy(a, a->candidate, a->candidate_cells);
}

static void keep(struct augment *a, int m, int birth) {
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
    for (int v = 0; birth && v < a->model.columns; ++v)
        memcpy(a->x + v * a->stride + a->n, a->x_new[v], (size_t)m * sizeof(double));
    a->n += birth ? m : -m;
}

static void learn(struct births *b, int accept) {
    b->tries += 1;
    const double learned = b->scale * exp(2 / (1 + sqrt(b->tries)) * (accept - TARGET));
    b->scale = learned < 0.1 ? 0.1 : learned > MAX_BLOCK ? MAX_BLOCK : learned;
}

static void move_size(struct augment *a, int learning) {
    struct births *b = &a->births;
    const double units = 1 + floor(b->scale * rng_exponential(a->rng));
    const int m = units < MAX_BLOCK ? (int)units : MAX_BLOCK;
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
    if (learning) learn(b, accept);
}

void augment_move_size(struct augment *a, int learning) {
    for (int k = 0; k < SIZE_MOVES; ++k) move_size(a, learning);
}
