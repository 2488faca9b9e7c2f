/* Method "augment": steps of an unknown number of records n that draw all records again, for
 * Poisson records: given their sum s, these are multinomial with equal probabilities, whatever
 * theta is. With theta integrated out
 *
 *   p(n) p(s | n) s! / prod x_i! n^-s eta(z | sum t(x_i)).
 *
 * As in records/n_all_records_steps.c, a step begins with some steps of a chain of n and s alone,
 * for a surrogate in which t is its expectation for n Poisson records of mean r = s / n, n E t(x).
 * With a fraction u of s + u that is uniform in (0, 1), a step of that chain takes n to n', and r
 *
 * - to the value at which n' E t(x) equals n E t(x), for one released component: with bounds that
 * is not in proportion to 1 / n'; - or to the value at which it equals a draw from the release of
 * that component and the noise alone; - or leaves r as it is, which suits a very noisy total.
 *
 * The Jacobian in s + u is the slope of E t(x) in r over that at r', and n' / n for the last. In
 * other steps log r moves to a number near it, and n stays; or n + v, with v uniform like u, moves
 * to the value at which (n + v) E t(x) is unchanged, so that the chain can walk along the curve on
 * which a precise total is constant, even if a mean beyond the bounds determines n almost
 * completely.
 *
 * E t(x) is tabulated, and linear in r between the points of the table; that is part of the
 * surrogate, so a step is exactly reversible.
 *
 * Then the records are drawn given n' and s': Poisson draws of mean r', to which single counts are
 * added, or from which they are taken, at random until the sum is right. That is reversible in the
 * multinomial distributions, and so is the variant for few added or removed records: the others
 * lose each of their counts to one of the new records with the probability with which it would be
 * there, or get the counts of those that are removed. The step is accepted by the ratio of eta
 * over the ratio of the surrogate. Theta must be drawn after it.
 *
 * Available for dense totals of a statistic that does not decrease with a count and is constant
 * beyond MOST / 2, as with declared bounds. Cost: O(components) a step of the chain; a Poisson
 * draw and an evaluation of the statistic a record. No allocation except in prepare().
 */
#include "records/n_all_records.h"

#include "base/dist.h"
#include "contract/model_likelihood.h"
#include "contract/model_update.h"

enum { MOST = 4096 };

/* Where fewer records come or go, as a share of all, the others stay. */
static const double FEW = 0.03;

/* A slope, relative to the steepest, below which the release hardly tells r; a probability that
 * expectations leave out. */
static const double FLAT = 1e-4, RARE = 1e-13;

/* Expectations are tabulated at means whose roots are so many a unit, up to so many beyond the root
 * of where the statistic is constant: a count of that mean is hardly ever less. */
enum { FINE = 32, BEYOND = 5 };

/* Of steps of log r, the share, by chance so that the chain is reversible, what n follows of these,
 * and the standard deviation. */
static const double WANDERS = 0.6, FOLLOWS = 0.5, FAR = 1;

/* of the chain where it goes to where warmup saw n */
enum { STEPS = 10 };

struct counts_state {
    double n, sum, energy, log_density;
};

struct resize_counts {
    int size, held; /* the statistic is constant from `size` on; the component that is held */
    int points;     /* of the table */
    double *value;  /* of each count up to size + 1, the components */
    double *table;  /* of each mean, the components' expectations in one record */
    double steepest;
    struct dist_poisson *records;
};

static struct resize_counts *counts_of(const struct augment *a) { return OWN(a, resize_counts); }

/* ---- set-up -------------------------------------------------------------------------------- */

/* The dense components of one record each, counts from 0 on. */
static void fill_values(struct augment *a, double *value) {
    double *const x = a->size.born[0];
    const double *const *const columns = augment_read_only(a->size.born);
    const int most = a->block.most < MAX_BLOCK ? a->block.most : MAX_BLOCK;
    for (int start = 0, m; start <= MOST; start += m) {
        m = MOST + 1 - start < most ? MOST + 1 - start : most;
        for (int i = 0; i < m; ++i) x[i] = start + i;
        for (int k = 0; k < a->layout.parts; ++k) {
            const struct part *part = a->layout.part + k;
            if (part->kind != PART_DENSE) continue;
            part->stat.class->eval(part->stat.self, m, augment_view(a, part, columns, 0),
                                   a->block.most, a->visit.before);
            for (int j = 0; j < part->stat.size; ++j)
                for (int i = 0; i < m; ++i)
                    value[(size_t)(start + i) * (size_t)a->layout.dense +
                          (size_t)(part->offset + j)] =
                        a->visit.before[(size_t)j * (size_t)a->block.most + (size_t)i];
        }
    }
}

static double value_of(const struct augment *a, int x, int j) {
    const struct resize_counts *r = counts_of(a);
    return r->value[(size_t)(x < r->size ? x : r->size) * (size_t)a->layout.dense + (size_t)j];
}

/* The component that tells most of the counts, from how it goes with them; -1: none that rises. */
static int choose_held(const struct augment *a) {
    const struct resize_counts *r = counts_of(a);
    int held = -1;
    double most = 0;
    for (int j = 0; j < a->layout.dense; ++j) {
        int rises = 1;
        for (int x = 0; x < r->size; ++x)
            rises = rises && value_of(a, x + 1, j) >= value_of(a, x, j);
        const double told = (value_of(a, r->size, j) - value_of(a, 0, j)) * a->noise.weight[j];
        if (!rises || !(told > most)) continue;
        most = told;
        held = j;
    }
    return held;
}

static double mean_at(int k) { return (double)k * k / (FINE * FINE); }

/* E t of one record of that mean, to `expected` */
static void expect(const struct augment *a, double mean, double *expected) {
    const int size = counts_of(a)->size;
    double left = 1;
    memset(expected, 0, (size_t)a->layout.dense * sizeof(double));
    const int mode = (int)fmin(floor(mean), size - 1);
    const double at_mode = mean > 0 ? exp(dist_log_poisson(mode, mean)) : 1;
    double p = at_mode;
    for (int x = mode; x >= 0 && p > RARE; p *= x-- / mean) {
        for (int j = 0; j < a->layout.dense; ++j) expected[j] += p * value_of(a, x, j);
        left -= p;
    }
    p = at_mode * mean / (mode + 1);
    for (int x = mode + 1; x < size && p > RARE; p *= mean / ++x) {
        for (int j = 0; j < a->layout.dense; ++j) expected[j] += p * value_of(a, x, j);
        left -= p;
    }
    for (int j = 0; j < a->layout.dense; ++j) expected[j] += fmax(left, 0) * value_of(a, size, j);
}

static void fill_table(struct augment *a) {
    struct resize_counts *r = counts_of(a);
    r->points = 1 + (int)ceil(FINE * (sqrt(r->size) + BEYOND));
    r->table = doubles((size_t)r->points * (size_t)a->layout.dense);
    for (int k = 0; k < r->points; ++k)
        expect(a, mean_at(k), r->table + (size_t)k * (size_t)a->layout.dense);
    for (int k = 1; k < r->points; ++k) {
        const double *const at = r->table + (size_t)k * (size_t)a->layout.dense + r->held;
        r->steepest =
            fmax(r->steepest, (at[0] - at[-a->layout.dense]) / (mean_at(k) - mean_at(k - 1)));
    }
}

static void prepare(struct augment *a) {
    const struct model *model = &a->model;
    if (!a->size.prior || a->plain || a->sites.count > 1 || !model->likelihood ||
        !model->likelihood->log_total || model_is_cut(model) || a->layout.open > 0 ||
        a->layout.locals > 0 || a->layout.dense == 0 || a->noise.separable < a->layout.dense ||
        !a->block.moved_x)
        return;
    struct resize_counts *r = plugin_memory(1, sizeof *r);
    r->value = doubles((size_t)(MOST + 1) * (size_t)a->layout.dense);
    fill_values(a, r->value);
    r->size = MOST;
    OWN(a, resize_counts) = r;
    for (int same = 1; same && r->size > 0; r->size -= same)
        for (int j = 0; j < a->layout.dense; ++j)
            same = same && value_of(a, r->size, j) == value_of(a, r->size - 1, j);
    r->held = r->size < MOST / 2 ? choose_held(a) : -1;
    r->records = plugin_memory(1, sizeof *r->records);
    r->records->mean = -1;
    if (r->held < 0)
        OWN(a, resize_counts) = NULL;
    else
        fill_table(a);
}

/* ---- the chain of n and s -------------------------------------------------------------------- */

/* Where a mean stands in the table: at or above which point, and how far to the next, 0 to 1. */
static int place(const struct resize_counts *r, double mean, double *share) {
    const double root = sqrt(mean) * FINE;
    if (!(root < r->points - 1)) {
        *share = 1;
        return r->points - 2;
    }
    const int k = (int)root;
    *share = (mean - mean_at(k)) / (mean_at(k + 1) - mean_at(k));
    return k;
}

/* E t of component j in one record at that place, and its slope in the mean */
static double expected_at(const struct augment *a, int j, int k, double share) {
    const double *const at = counts_of(a)->table + (size_t)k * (size_t)a->layout.dense + j;
    return at[0] + share * (at[a->layout.dense] - at[0]);
}

static double slope_at(const struct augment *a, int j, int k) {
    const double *const at = counts_of(a)->table + (size_t)k * (size_t)a->layout.dense + j;
    return (at[a->layout.dense] - at[0]) / (mean_at(k + 1) - mean_at(k));
}

/* The mean of a record for which the held component is expected to be `aim`; -1 where there is
 * none, or where it tells hardly more. *slope: there. */
static double solve(const struct augment *a, double aim, double *slope) {
    const struct resize_counts *r = counts_of(a);
    int low = 0, high = r->points - 1;
    if (!(aim > expected_at(a, r->held, low, 0)) || !(aim < expected_at(a, r->held, high - 1, 1)))
        return -1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (aim < expected_at(a, r->held, middle, 0))
            high = middle;
        else
            low = middle;
    }
    *slope = slope_at(a, r->held, low);
    return *slope > FLAT * r->steepest
               ? mean_at(low) + (aim - expected_at(a, r->held, low, 0)) / *slope
               : -1;
}

static void evaluate(struct augment *a, struct counts_state *s) {
    double share;
    const double log_prior = size_prior_log(a->size.prior, s->n);
    s->log_density = -INFINITY;
    if (!(log_prior > -INFINITY)) return;
    const int k = place(counts_of(a), s->sum / s->n, &share);
    for (int j = 0; j < a->layout.dense; ++j)
        a->candidate.dense[j] = noise_misfit(&a->noise, j, s->n * expected_at(a, j, k, share));
    s->energy =
        augment_dense_energy(a, a->candidate.dense) + augment_size_energy(a, s->n - (double)a->n);
    s->log_density = log_prior + a->model.likelihood->log_total(a->model.self, s->sum, s->n) -
                     *a->adapt.temper * s->energy;
}

/* A new value of what is held from its release and the noise; the log density of the old value less
 * the new value's. */
static double refresh(struct augment *a, double *at) {
    const int j = counts_of(a)->held;
    const enum kernel kernel = a->noise.kernel[j];
    const double weight = a->noise.weight[j] * kernel_temper(kernel, *a->adapt.temper);
    const double noise = kernel_draw(kernel, a->rng), old = (a->noise.released[j] - *at) * weight;
    *at = a->noise.released[j] - noise / weight;
    return kernel_energy(kernel, noise) - kernel_energy(kernel, old);
}

/* A step of the chain: to `next`, with its log ratio. */
static double step(struct augment *a, int fresh, enum resize_kind kind,
                   const struct counts_state *now, struct counts_state *next) {
    double log_ratio, share, slope_new;
    next->n = augment_propose_size(a, now->n, fresh, &log_ratio);
    if (next->n < 1 || (next->n == now->n && kind != RESIZE_REFRESH)) return -INFINITY;
    const double mean = (now->sum + rng_uniform(a->rng)) / now->n;
    double mean_new = mean;
    if (kind == RESIZE_STRETCH) {
        log_ratio += log(next->n / now->n);
    } else {
        const struct resize_counts *r = counts_of(a);
        const int k = place(r, mean, &share);
        const double slope = slope_at(a, r->held, k);
        if (!(slope > FLAT * r->steepest)) return -INFINITY;
        double at = now->n * expected_at(a, r->held, k, share);
        if (kind == RESIZE_REFRESH) log_ratio += refresh(a, &at);
        mean_new = solve(a, at / next->n, &slope_new);
        if (mean_new < 0) return -INFINITY;
        log_ratio += log(slope / slope_new);
    }
    next->sum = floor(mean_new * next->n);
    evaluate(a, next);
    return log_ratio + next->log_density - now->log_density;
}

/* The same, where log r moves, and n stays or goes to where n E t is what it was. */
static double wander(struct augment *a, int follows, const struct counts_state *now,
                     struct counts_state *next) {
    const struct resize_counts *r = counts_of(a);
    const double by = exp(FAR * rng_normal(a->rng));
    const double mean = (now->sum + rng_uniform(a->rng)) / now->n;
    double log_ratio = log(by), share;
    next->n = now->n;
    if (follows) {
        int k = place(r, mean, &share);
        double stretch = expected_at(a, r->held, k, share);
        k = place(r, by * mean, &share);
        stretch /= expected_at(a, r->held, k, share);
        next->n = floor(stretch * (now->n + rng_uniform(a->rng)));
        if (!(next->n >= 1) || !isfinite(next->n)) return -INFINITY;
        log_ratio += log(stretch * next->n / now->n);
    }
    next->sum = floor(by * mean * next->n);
    evaluate(a, next);
    return log_ratio + next->log_density - now->log_density;
}

/* ---- the records ------------------------------------------------------------------------------
 */

static ptrdiff_t any(struct rng *rng, ptrdiff_t first, ptrdiff_t end) {
    return first + augment_choose(rng, end - first);
}

/* Gives so many counts to records from `first` to before `end`, each to any of them. */
static void give(struct rng *rng, double counts, ptrdiff_t first, ptrdiff_t end, double *x) {
    for (double k = 0; k < counts; ++k) x[any(rng, first, end)] += 1;
}

/* Takes so many of the counts of the first n records, any of them. */
static void take(struct rng *rng, double counts, ptrdiff_t n, double *x) {
    double most = 0;
    if (!(counts > 0)) return;
    for (ptrdiff_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    for (double k = 0; k < counts;) {
        const ptrdiff_t i = any(rng, 0, n);
        if (!(rng_uniform(rng) * most < x[i])) continue;
        x[i] -= 1;
        ++k;
    }
}

static double sum_of(ptrdiff_t n, const double *x) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i) sum += x[i];
    return sum;
}

/* n records with that sum, drawn from scratch. Returns the sum that they have. */
static double draw_all(struct augment *a, const struct counts_state *to, double *x) {
    struct resize_counts *r = counts_of(a);
    const ptrdiff_t n = (ptrdiff_t)to->n;
    const double mean = to->sum / to->n;
    if (r->records->mean != mean) dist_poisson_set(r->records, mean);
    dist_poisson_fill(r->records, a->rng, (int)n, x);
    return sum_of(n, x);
}

/* The same from the records that there are. */
static double carry(struct augment *a, const struct counts_state *to, double *x) {
    const ptrdiff_t old = a->n, n = (ptrdiff_t)to->n;
    double moved = 0;
    if (n > old) {
        const double share = (double)(n - old) / (double)n;
        for (ptrdiff_t at = 0; at < old; at += MAX_BLOCK) {
            const int m = block_length(old - at);
            dist_thin_fill(a->rng, share, m, a->x + at, x + at);
            for (int i = 0; i < m; ++i) {
                moved += x[at + i];
                x[at + i] = a->x[at + i] - x[at + i];
            }
        }
        memset(x + old, 0, (size_t)(n - old) * sizeof(double));
        give(a->rng, moved, old, n, x);
    } else {
        for (ptrdiff_t last = old - 1; last >= n; --last) {
            augment_swap_records(a, augment_choose(a->rng, last + 1), last);
            moved += a->x[last];
        }
        memcpy(x, a->x, (size_t)n * sizeof(double));
        give(a->rng, moved, 0, n, x);
    }
    return sum_of(n, x);
}

/* The candidate records, in moved_x, with their residuals; returns their energy. */
static double follow(struct augment *a, const struct counts_state *to) {
    double *const x = a->block.moved_x;
    const ptrdiff_t n = (ptrdiff_t)to->n;
    const double come = fabs((double)(n - a->n));
    const double has =
        come < FEW * fmax((double)n, (double)a->n) ? carry(a, to, x) : draw_all(a, to, x);
    give(a->rng, to->sum - has, 0, n, x);
    take(a->rng, has - to->sum, n, x);
    augment_clear_total(a);
    for (ptrdiff_t start = 0; start < n; start += a->block.most_moved) {
        const double *const block = x + start;
        (void)augment_add_totals(
            a, start, (int)(n - start < a->block.most_moved ? n - start : a->block.most_moved),
            &block);
    }
    augment_residuals(a, &a->candidate);
    a->count.work += 2 * a->cost.pass;
    return augment_total_energy(a, &a->candidate);
}

static void keep(struct augment *a, const struct counts_state *to) {
    a->n = (ptrdiff_t)to->n;
    memcpy(a->x, a->block.moved_x, (size_t)a->n * sizeof(double));
    augment_copy_residuals(a, &a->residual, &a->candidate);
    a->complete[0] = to->sum;
}

static void move(struct augment *a, int fresh, int learning) {
    struct counts_state records = {.n = (double)a->n, .sum = a->complete[0]}, now, next;
    double log_ratio = -INFINITY;
    int accept = 0, moved = 0, proposed = 0;
    evaluate(a, &records);
    now = records;
    for (int k = 0; k < (fresh ? STEPS : 1); ++k) {
        int taken;
        const double which = rng_uniform(a->rng);
        if (which < WANDERS) {
            taken = -wander(a, which < FOLLOWS, &now, &next) < rng_exponential(a->rng);
        } else {
            const enum resize_kind kind = resize_choose_kind(a);
            proposed = 1;
            log_ratio = step(a, fresh, kind, &now, &next);
            taken = resize_takes(a, kind, log_ratio, learning);
        }
        if (taken) now = next;
        moved = moved || taken;
    }
    if (moved && fabs(now.n - records.n) <= a->size.most_born) {
        const double energy = augment_total_energy(a, &a->residual);
        log_ratio = *a->adapt.temper * (energy - follow(a, &now) - records.energy + now.energy);
        accept = -log_ratio < rng_exponential(a->rng);
    }
    if (accept) keep(a, &now);
    augment_tried_size(a, fresh, learning && proposed, log_ratio, accept);
}

static void make(struct augment *a, struct round *round) {
    if (!counts_of(a) || round->empty) return;
    const int steps = augment_size_steps(a, round->iteration, round->learning);
    if (steps & SIZE_FRESH) move(a, 1, round->learning);
    if (steps & SIZE_WALK) move(a, 0, round->learning);
}

const struct move move_resize_counts = {.phase = MOVE_AFTER, .prepare = prepare, .make = make};
