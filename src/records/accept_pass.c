/* Decides on the proposals of a block, one record after the other: with E = -log(u)
 * exponential, u < exp(-step) reads step < E, step the change of energy.
 *
 * The pass is bound by its own latency: a record waits for the decision on the one before it. So
 * there is a variant for each type of problem that becomes faster by one; `variants` at the end
 * lists their purposes. All of them make the same decisions from the same random numbers.
 *
 * Invariants: gap[i] > 0 where record i's proposal is rejected; residuals belong to the
 * records as decided; `taken` thresholds are used up. Cost per record: O(components)
 * additions and a threshold, O(touched) where the statistic is a table of counts. No
 * allocation, no R call.
 */
#include "records/augment_internal.h"
#include "records/count_steps.h"

#include "base/lanes.h"
#include "base/rng_inline.h"
#include "contract/model_innovations.h"

/* ---- thresholds ------------------------------------------------------------------ */

/* E > step holds for every E where the step is not positive, so that such a
 * record leaves its threshold, which nobody has looked at, to the next one.
 * Moves the ones left to the front and tops them up to `count`. */
static void draw_thresholds(struct augment *a, double temper, int count) {
    double *threshold = a->visit.threshold;
    const int left = a->visit.drawn - a->visit.taken, more = count - left;
    memmove(threshold, threshold + a->visit.taken, (size_t)left * sizeof(double));
    a->visit.taken = 0;
    a->visit.drawn = left;
    if (more <= 0) return;
    rng_fill_exponential(a->rng, more, threshold + left);
    if (temper < 1)
        for (int i = left; i < count; ++i) threshold[i] /= temper;
    a->visit.drawn = count;
}

static void draw_innovations(struct augment *a, struct draws *draws, int count) {
    rng_fill(a->rng, a->model.innovations->kind, count, draws->drawn);
    draws->drawn += count;
    draws->needed -= count;
}

/* a record's threshold; `draws` may be NULL */
static double next_threshold(struct augment *a, struct draws *draws, int taken) {
    if (!draws) return a->visit.threshold[taken];
    const double threshold = rng_exponential(a->rng) * draws->slack;
    if (draws->needed >= draws->each) draw_innovations(a, draws, draws->each);
    return threshold;
}

/* ---- any totals, counts and local noise -------------------------------------------- */

/* candidate = residual - diff; returns the kernel's sum over it */
static INLINE double step_absolute(int size, const double *restrict residual,
                                   const double *restrict diff, double *restrict candidate) {
    double part[LANES] = {0};
    for (int j = 0; j < size; j += LANES) {
        for (int l = 0; l < LANES; ++l) {
            const double value = residual[j + l] - diff[j + l];
            candidate[j + l] = value;
            part[l] += fabs(value);
        }
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static INLINE double step_squared(int size, const double *restrict residual,
                                  const double *restrict diff, double *restrict candidate) {
    double part[LANES] = {0};
    for (int j = 0; j < size; j += LANES) {
        for (int l = 0; l < LANES; ++l) {
            const double value = residual[j + l] - diff[j + l];
            candidate[j + l] = value;
            part[l] += value * value;
        }
    }
    return 0.5 * ((part[0] + part[1]) + (part[2] + part[3]));
}

/* Thresholds and the next block's innovations are drawn here where `draws` is not NULL. */
VECTOR_CLONES static void accept_records(struct augment *a, struct draws *draws, int m) {
    const int width = a->layout.dense, absolute = a->noise.absolute;
    const int sparse = a->layout.open + a->layout.locals + a->layout.ranks > 0;
    const double *diff = a->visit.diff;
    double *residual = a->residual.dense, *candidate = a->candidate.dense;
    double energy = augment_dense_energy(a, residual), most = a->count.most_energy_step;
    int taken = 0;
    for (int i = 0; i < m; ++i, diff += width) {
        const double limit = next_threshold(a, draws, taken);
        double proposed = 0;
        if (absolute > 0) proposed += step_absolute(absolute, residual, diff, candidate);
        if (absolute < width)
            proposed += step_squared(width - absolute, residual + absolute, diff + absolute,
                                     candidate + absolute);
        double step = proposed - energy;
        if (sparse) step += a->visit.extra[i] + step_counts(a, i);
        most = step > most ? step : most;
        taken += step > 0;
        const int accepted = draws && !sparse ? proposed <= energy + limit : step <= limit;
        a->visit.gap[i] = accepted ? 0 : 1;
        if (sparse && (accepted || a->layout.ranks > 0)) change_counts(a, i, accepted);
        if (!accepted) continue;
        double *swap = residual;
        residual = candidate;
        candidate = swap;
        energy = proposed;
    }
    a->residual.dense = residual;
    a->candidate.dense = candidate;
    a->count.most_energy_step = most;
    a->visit.taken = taken;
    if (draws) draw_innovations(a, draws, draws->needed);
}

#if HAS_LANES
/* ---- a few totals --------------------------------------------------------------- */

static INLINE void kernel_value(enum kernel kernel, const lanes *residual, lanes *value) {
    if (kernel == KERNEL_ABSOLUTE)
        *value = LANES_ABS(*residual);
    else
        *value = *residual * *residual;
}

static INLINE void add_kernel(enum kernel kernel, const lanes *residual, lanes *sum) {
    lanes value;
    kernel_value(kernel, residual, &value);
    *sum += value;
}

/* the sum where lanes from `summed` on are 0 */
static INLINE double sum_of_few(int summed, const lanes *sum) {
    if (summed == 1) return (*sum)[0];
    return summed == 2 ? (*sum)[0] + (*sum)[1] : lanes_sum(sum);
}

/* Up to four `vectors` of LANES totals with one kernel; the residual stays in registers.
 * A record waits for the one before it, and for a rejection that was not foreseen even
 * longer; here no branch depends on a decision. What would be drawn later is drawn
 * while the pass waits, if `ahead`: the record's own threshold, and the innovations of the
 * next block, one a vector. */
static INLINE void decide_few(struct augment *a, const struct draws *draws, int ahead, int m,
                              int vectors, int summed, enum rng_kind kind) {
    enum { MOST = 4 };
    const enum kernel kernel = a->noise.absolute > 0 ? KERNEL_ABSOLUTE : KERNEL_SQUARED;
    const double *restrict diff = a->visit.diff, *restrict threshold = a->visit.threshold;
    const double slack = ahead ? draws->slack : 1;
    double *restrict residual = a->residual.dense, *restrict gap = a->visit.gap;
    double *restrict drawn = a->visit.innovation;
    double most = a->count.most_energy_step;
    int needed = ahead ? draws->needed : 0, taken = 0;
    struct rng rng = *a->rng; /* its address goes nowhere: it stays in registers */
    lanes r[MOST], c[MOST], energy = LANES_OF(augment_dense_energy(a, residual));
    const lanes zero = {0}, one = {1, 1, 1, 1};
    UNROLL for (int v = 0; v < vectors; ++v) r[v] = LANES_LOAD(residual + v * LANES);
    for (int i = 0; i < m; ++i, diff += vectors * LANES) {
        const double limit = ahead ? rng_exponential_inline(&rng) * slack : threshold[taken];
        const lanes highest = energy + LANES_OF(limit);
        if (ahead && LIKELY(needed >= vectors)) {
            UNROLL for (int v = 0; v < vectors; ++v) drawn[v] = rng_inline(&rng, kind);
            drawn += vectors;
            needed -= vectors;
        }
        lanes sum;
        UNROLL for (int v = 0; v < vectors; ++v) {
            c[v] = r[v] - LANES_LOAD(diff + v * LANES);
            if (v == 0)
                kernel_value(kernel, c + v, &sum);
            else
                add_kernel(kernel, c + v, &sum);
        }
        const double total = sum_of_few(summed, &sum);
        const double proposed = kernel == KERNEL_ABSOLUTE ? total : 0.5 * total;
        const double step = proposed - energy[0];
        const lanes_bits accepted =
            ahead ? LANES_OF(proposed) <= highest : LANES_OF(step) <= LANES_OF(limit);
        most = step > most ? step : most;
        taken += step > 0;
        gap[i] = LANES_SELECT(accepted, zero, one)[0];
        energy = LANES_SELECT(accepted, LANES_OF(proposed), energy);
        UNROLL for (int v = 0; v < vectors; ++v) r[v] = LANES_SELECT(accepted, c[v], r[v]);
    }
    UNROLL for (int v = 0; v < vectors; ++v) LANES_STORE(residual + v * LANES, r[v]);
    a->count.most_energy_step = most;
    if (ahead) {
        *a->rng = rng;
        rng_fill(a->rng, kind, needed, drawn);
    } else {
        a->visit.taken = taken;
    }
}

static int few_totals_alone(const struct augment *a) {
    const int one_kernel = a->noise.absolute == a->layout.dense || a->noise.absolute == 0;
    const int alone =
        a->layout.open + a->layout.locals + a->layout.ranks == 0 && a->layout.dense > 0;
    return one_kernel && alone && a->layout.dense <= 4 * LANES;
}

static int few_totals_waiting(const struct augment *a, int ahead) {
    return !ahead && few_totals_alone(a);
}

static int few_totals_ahead(const struct augment *a, int ahead) {
    return ahead && few_totals_alone(a) &&
           (a->layout.used <= 2 || a->model.innovations->kind == RNG_NORMAL);
}

/* In both, constants choose the copy that the compiler makes: registers have no index. */
VECTOR_CLONES static void accept_waiting(struct augment *a, int m) {
    switch (a->layout.dense / LANES) {
    case 1:
        decide_few(a, NULL, 0, m, 1, LANES, RNG_NORMAL);
        break;
    case 2:
        decide_few(a, NULL, 0, m, 2, LANES, RNG_NORMAL);
        break;
    case 3:
        decide_few(a, NULL, 0, m, 3, LANES, RNG_NORMAL);
        break;
    default:
        decide_few(a, NULL, 0, m, 4, LANES, RNG_NORMAL);
    }
}

VECTOR_CLONES static void accept_ahead(struct augment *a, const struct draws *draws, int m) {
    const enum rng_kind kind = a->model.innovations->kind;
    if (a->layout.used == 1 && kind == RNG_UNIFORM)
        decide_few(a, draws, 1, m, 1, 1, RNG_UNIFORM);
    else if (a->layout.used == 1 && kind == RNG_NORMAL)
        decide_few(a, draws, 1, m, 1, 1, RNG_NORMAL);
    else if (a->layout.used == 1)
        decide_few(a, draws, 1, m, 1, 1, RNG_EXPONENTIAL);
    else if (a->layout.used == 2 && kind == RNG_UNIFORM)
        decide_few(a, draws, 1, m, 1, 2, RNG_UNIFORM);
    else if (a->layout.used == 2 && kind == RNG_NORMAL)
        decide_few(a, draws, 1, m, 1, 2, RNG_NORMAL);
    else if (a->layout.used == 2)
        decide_few(a, draws, 1, m, 1, 2, RNG_EXPONENTIAL);
    else if (draws->each == 1)
        decide_few(a, draws, 1, m, 1, LANES, RNG_NORMAL);
    else if (draws->each == 2)
        decide_few(a, draws, 1, m, 2, LANES, RNG_NORMAL);
    else if (draws->each == 3)
        decide_few(a, draws, 1, m, 3, LANES, RNG_NORMAL);
    else
        decide_few(a, draws, 1, m, 4, LANES, RNG_NORMAL);
}
#endif

/* ---- totals whose noise has a density of its own --------------------------------- */

/* One record, whose densities change the energy by `change`. */
static int accept_one(struct augment *a, struct draws *draws, int i, double change) {
    const double *diff = a->visit.diff + (size_t)i * a->layout.dense;
    double *residual = a->residual.dense, *candidate = a->candidate.dense;
    const int absolute = a->noise.absolute, separable = a->noise.separable;
    double step = change + a->visit.extra[i] - augment_dense_energy(a, residual);
    step += step_absolute(absolute, residual, diff, candidate);
    step += step_squared(separable - absolute, residual + absolute, diff + absolute,
                         candidate + absolute);
    for (int j = separable; j < a->layout.dense; ++j) candidate[j] = residual[j] - diff[j];
    step += step_counts(a, i);
    if (step > a->count.most_energy_step) a->count.most_energy_step = step;
    const int accepted = !(step > next_threshold(a, draws, a->visit.taken));
    a->visit.gap[i] = accepted ? 0 : 1;
    a->visit.taken += step > 0;
    change_counts(a, i, accepted);
    if (!accepted) return 0;
    a->residual.dense = candidate;
    a->candidate.dense = residual;
    return 1;
}

/* path_energy[k] of the state (k = 0) and of what it would be after record
 * `first` + k - 1, if until there all are accepted, or none is. */
static void speculate(struct augment *a, int first, int count, int accepting) {
    const int separable = a->noise.separable;
    for (int j = separable; j < a->layout.dense; ++j) {
        double *path = a->visit.path + (size_t)(j - separable) * PATH;
        path[0] = a->residual.dense[j];
        for (int k = 0; k < count; ++k)
            path[k + 1] =
                path[accepting ? k : 0] - a->visit.diff[(size_t)(first + k) * a->layout.dense + j];
    }
    memset(a->visit.path_energy, 0, PATH * sizeof(double));
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind != PART_DENSE || part->kernel != KERNEL_DENSITY) continue;
        augment_log_density(a, part, count + 1, PATH,
                            a->visit.path + (size_t)(part->offset - separable) * PATH,
                            a->visit.path_log);
        for (int i = 0; i <= count; ++i) a->visit.path_energy[i] -= a->visit.path_log[i];
    }
}

/* A call of a density costs far more than a record. So the decisions of several
 * records are speculated on, all accepted or none, and their densities asked for in one
 * call; they are then decided one by one until one turns out otherwise. Exact:
 * the speculation decides about the number of calls, not about the records. */
static void accept_speculatively(struct augment *a, struct draws *draws, int m) {
    for (int i = 0; i < m;) {
        const int accepting = a->visit.accepted_share > 0.5;
        const double miss = accepting ? 1 - a->visit.accepted_share : a->visit.accepted_share;
        const double run = 2 / (miss + 2.0 / MOST_SPECULATED); /* twice the expected one */
        const int ahead = run < 1 ? 1 : (int)run, count = ahead < m - i ? ahead : m - i;
        speculate(a, i, count, accepting);
        for (int k = 0, right = 1; k < count && right; ++k, ++i) {
            const double change =
                a->visit.path_energy[k + 1] - a->visit.path_energy[accepting ? k : 0];
            const int accepted = accept_one(a, draws, i, change);
            a->visit.accepted_share += 0.05 * (accepted - a->visit.accepted_share);
            right = accepted == accepting;
        }
    }
    if (draws) draw_innovations(a, draws, draws->needed);
}

/* ---- counts of one statistic, with one scale, alone ----------------------------------- */

/* by[i] = how far the residuals of a record's cells move: not at all where it
 * would stay in its cell. So the pass needs no branch that cannot be predicted. */
static INLINE void compare_cells(int m, double weight, const int *restrict from,
                                 const int *restrict to, double *restrict by) {
    FOR_RECORDS(i, m) by[i] = from[i] == to[i] ? 0 : weight;
}

/* With one margin many proposals change nothing at all: lists the others. */
static INLINE int list_changes(int m, const int *restrict from, const int *restrict to,
                               int *restrict listed) {
    int count = 0;
    for (int i = 0; i < m; ++i) {
        listed[count] = i;
        count += from[i] != to[i];
    }
    return count;
}

static INLINE double kernel_change(enum kernel kernel, double old, double change) {
    const double fresh = old + change;
    return kernel == KERNEL_ABSOLUTE ? fabs(fresh) - fabs(old) : 0.5 * change * (fresh + old);
}

/* A record's change of energy, in lanes: leaving the cell of an even margin,
 * entering its other one, leaving the cell of an odd margin, entering. */
static INLINE void accept_changes(struct augment *a, enum kernel kernel, int one, int count) {
    const struct part *part = a->layout.counts;
    const int touched = one ? 1 : part->stat.touched, stride = a->block.most;
    const int *from = part->cell_before, *to = part->cell_after;
    const double weight = a->noise.weight[0], *by = a->visit.by, *threshold = a->visit.threshold;
    double *restrict residual = a->residual.cells, *restrict gap = a->visit.gap;
    double most = a->count.most_energy_step;
    int taken = 0;
    for (int j = 0; j < count; ++j) {
        const int i = one ? a->visit.listed[j] : j;
        double sum[4] = {0};
        for (int k = 0, at = i; k < touched; ++k, at += stride) {
            const double change = one ? weight : by[at];
            sum[2 * (k & 1)] += kernel_change(kernel, residual[from[at]], change);
            sum[2 * (k & 1) + 1] += kernel_change(kernel, residual[to[at]], -change);
        }
        const double step = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        most = step > most ? step : most;
        const double excess = step - threshold[taken];
        taken += step > 0;
        gap[i] = excess;
        if (excess > 0) continue;
        for (int k = 0, at = i; k < touched; ++k, at += stride) {
            const double change = one ? weight : by[at];
            residual[from[at]] += change;
            residual[to[at]] -= change;
        }
    }
    a->count.most_energy_step = most;
    a->visit.taken = taken;
}

static int one_margin_alone(const struct augment *a, int ahead) {
    (void)ahead;
    return a->layout.counts && a->layout.counts->stat.touched == 1;
}

/* A record that is known to change nothing is accepted without a random number. */
VECTOR_CLONES static void accept_one_margin(struct augment *a, double temper, int m) {
    const struct part *part = a->layout.counts;
    double *restrict gap = a->visit.gap;
    FOR_RECORDS(i, m) gap[i] = 0;
    const int count = list_changes(m, part->cell_before, part->cell_after, a->visit.listed);
    draw_thresholds(a, temper, count);
    accept_changes(a, part->kernel, 1, count);
}

VECTOR_CLONES static void compare_margins(struct augment *a, int m) {
    const struct part *part = a->layout.counts;
    for (int at = 0; at < part->stat.touched * a->block.most; at += a->block.most)
        compare_cells(m, a->noise.weight[0], part->cell_before + at, part->cell_after + at,
                      a->visit.by + at);
}

static int margins_alone(const struct augment *a, int ahead) {
    (void)ahead;
    return a->layout.counts != NULL;
}

VECTOR_CLONES static void accept_margins(struct augment *a, int m) {
    accept_changes(a, a->layout.counts->kernel, 0, m);
}

#if HAS_LANES
enum { MOST_PAIRS = 4 };

/* The same for a few pairs of margins; what the residuals would be stays in
 * registers until it is known whether they will. */
static INLINE void accept_pairs(struct augment *a, enum kernel kernel, int pairs, int m) {
    const int *before = a->layout.counts->cell_before, *after = a->layout.counts->cell_after,
              stride = a->block.most;
    const double *threshold = a->visit.threshold;
    double *restrict residual = a->residual.cells, *restrict gap = a->visit.gap;
    double most = a->count.most_energy_step;
    int taken = 0;
    for (int i = 0; i < m; ++i) {
        const int *from = before + i, *to = after + i;
        const double *by = a->visit.by + i;
        lanes old[MOST_PAIRS], fresh[MOST_PAIRS], sum;
        UNROLL for (int p = 0; p < pairs; ++p) {
            const int even = 2 * p * stride, odd = even + stride;
            old[p] = (lanes){residual[from[even]], residual[to[even]], residual[from[odd]],
                             residual[to[odd]]};
            const lanes change = {by[even], -by[even], by[odd], -by[odd]};
            fresh[p] = old[p] + change;
            const lanes more = kernel == KERNEL_ABSOLUTE
                                   ? LANES_ABS(fresh[p]) - LANES_ABS(old[p])
                                   : LANES_OF(0.5) * change * (fresh[p] + old[p]);
            if (p == 0)
                sum = more;
            else
                sum += more;
        }
        const double step = lanes_sum(&sum), limit = threshold[taken];
        gap[i] = step - limit;
        most = step > most ? step : most;
        taken += step > 0;
        if (step > limit) continue;
        UNROLL for (int p = 0; p < pairs; ++p) {
            const int even = 2 * p * stride, odd = even + stride;
            residual[from[even]] = fresh[p][0];
            residual[to[even]] = fresh[p][1];
            residual[from[odd]] = fresh[p][2];
            residual[to[odd]] = fresh[p][3];
        }
    }
    a->count.most_energy_step = most;
    a->visit.taken = taken;
}

static int few_margins_alone(const struct augment *a, int ahead) {
    (void)ahead;
    return a->layout.counts && a->layout.counts->stat.touched <= 2 * MOST_PAIRS;
}

static INLINE void accept_constant_pairs(struct augment *a, enum kernel kernel, int m) {
    const int pairs = (a->layout.counts->stat.touched + 1) / 2;
    if (pairs == 1) accept_pairs(a, kernel, 1, m);
    if (pairs == 2) accept_pairs(a, kernel, 2, m);
    if (pairs == 3) accept_pairs(a, kernel, 3, m);
    if (pairs == 4) accept_pairs(a, kernel, 4, m);
}

VECTOR_CLONES static void accept_few_margins(struct augment *a, int m) {
    if (a->layout.counts->kernel == KERNEL_ABSOLUTE)
        accept_constant_pairs(a, KERNEL_ABSOLUTE, m);
    else
        accept_constant_pairs(a, KERNEL_SQUARED, m);
}
#endif

/* ---- which pass is for what ---------------------------------------------------------- */

static void run_one_margin(struct augment *a, struct draws *draws, double temper, int m) {
    (void)draws;
    accept_one_margin(a, temper, m);
}

static void run_margins(struct augment *a, struct draws *draws, double temper, int m) {
    (void)draws;
    compare_margins(a, m);
    draw_thresholds(a, temper, m);
    accept_margins(a, m);
}

static void run_speculatively(struct augment *a, struct draws *draws, double temper, int m) {
    if (!draws) draw_thresholds(a, temper, m);
    accept_speculatively(a, draws, m);
}

static void run_records(struct augment *a, struct draws *draws, double temper, int m) {
    if (!draws) draw_thresholds(a, temper, m);
    accept_records(a, draws, m);
}

#if HAS_LANES
static void run_few_margins(struct augment *a, struct draws *draws, double temper, int m) {
    (void)draws;
    compare_margins(a, m);
    draw_thresholds(a, temper, m);
    accept_few_margins(a, m);
}

static void run_waiting(struct augment *a, struct draws *draws, double temper, int m) {
    (void)draws;
    draw_thresholds(a, temper, m);
    accept_waiting(a, m);
}

static void run_ahead(struct augment *a, struct draws *draws, double temper, int m) {
    (void)temper;
    accept_ahead(a, draws, m);
}
#endif

static int has_density(const struct augment *a, int ahead) {
    (void)ahead;
    return a->noise.separable < a->layout.dense;
}

static int always(const struct augment *a, int ahead) {
    (void)a, (void)ahead;
    return 1;
}

/* The first that fits is used. `ahead`: thresholds and innovations are drawn by the pass.
 * Times are from bench/results.md: a record update without the variant over one with it. A
 * variant that does not save 15 per cent where users meet it does not stand here. */
static const struct variant {
    int (*serves)(const struct augment *a, int ahead);
    void (*run)(struct augment *a, struct draws *draws, double temper, int m);
} variants[] = {
    /* most proposals stay in their cell, and need no decision: 1.3 to 4.3 */
    {one_margin_alone, run_one_margin},
#if HAS_LANES
    /* residuals wait in registers for the decision: 1.1 to 1.24 */
    {few_margins_alone, run_few_margins},
#endif
    /* no branch on whether a record changes its cell; any number of margins: 1.1 to 1.5 */
    {margins_alone, run_margins},
    /* no choice: only this pass asks a density of all totals, once for several decisions */
    {has_density, run_speculatively},
#if HAS_LANES
    /* no branch on a decision, residuals in registers: up to 1.3 */
    {few_totals_waiting, run_waiting},
    /* the same, and draws fill the wait: 1.6 to 2.9 */
    {few_totals_ahead, run_ahead},
#endif
    /* all else */
    {always, run_records},
};

void augment_accept(struct augment *a, struct draws *draws, double temper, int m) {
    const struct variant *variant = variants;
    while (!variant->serves(a, draws != NULL)) ++variant;
    variant->run(a, draws, temper, m);
}
