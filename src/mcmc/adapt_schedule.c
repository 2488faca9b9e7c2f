/* How many passes of which kind to make between two sweeps, and over how many iterations to
 * spread a sweep.
 *
 * Numbers of passes: let S be the covariance of theta, P_k the mean product of a jump of kind k
 * with itself, Q the same for a sweep with its draw of theta. In a direction v of the sphered
 * space, n_k passes and a sweep go the share 1 - exp(-l), l = v' S^-1/2 (Q + sum n_k P_k) S^-1/2 v
 * / 2, of the way to an independent draw. Taking for v the principal directions of Q, and of them
 * the slowest, the n_k are increased one by one, each time for the largest gain in effective draws
 * per unit of work, and the best numbers found are kept. Few proposals are made in a window: P_k is
 * shrunk towards the same rate in every direction, and towards none.
 *
 * Cost of learning: the allowed cost of passes in warmup grows with the expected gain, given the
 * observed rates and, as long as few proposals were made, the rates of well-tuned ones. So little
 * is spent if sweeps alone work well. After warmup, the numbers are those with the largest gain in
 * its last window, if that gain was large enough.
 *
 * Parts: where noise dominates, theta hardly depends on the records' innovations, and a sweep may
 * be spread over several iterations. Q also gives the share of the variance of theta that is due
 * to the innovations, f = v' S^-1/2 Q S^-1/2 v / 2: the sampler that draws theta given the records
 * and the one that draws it given the innovations complement each other. Renewed in p parts, that
 * share lasts for p iterations, and the time to an independent draw grows by f (p - 1).
 */
#include "mcmc/adapt_internal.h"

#include "base/linalg.h"

/* Passes of an iteration of warmup may cost so many sweeps, on average: before
 * anything is known, while annealing, and at most; in between that share of the
 * gain that may be hoped for. Looking further may cost the share EXPLORE of the work
 * of the sweeps. */
static const double ANNEALING_PACE = 0.2, MOST_PACE = 1, HOPE = 0.5, EXPLORE = 0.1;

/* A jump of well-tuned proposals of d coordinates: GOOD_RATE / d; it counts as much
 * as GOOD_PROPOSALS that were made. */
static const double GOOD_RATE = 0.3, GOOD_PROPOSALS = 50;

/* So many jumps are taken for none. */
static const double DOUBT = 2;

/* Passes, and sweeps in parts, have to promise so many times the effective draws. */
static const double PASSES_MARGIN = 1.05, PARTS_MARGIN = 1.1;

/* A shape that may be large changes little in a sweep, so that warmup may have seen little of it:
 * walks are made where the standard deviation of log cv is at least this. */
static const double WIDE_SHAPE = 0.3;
enum { SHAPE_WALKS = 6 };

enum {
    MOST_PASSES = 40,
    LONG_WINDOW = 200,   /* a shorter one is believed less */
    MOST_PRINCIPAL = 100 /* beyond it directions are not turned */
};

/* ---- the plan of an iteration -------------------------------------------------- */

double adapt_allowance(const struct adapt *adapt) {
    return EXPLORE * *adapt->swept - *adapt->explored;
}

int adapt_looks(const struct adapt *adapt, int at) {
    return at % LOOK == 0 && adapt_allowance(adapt) >= 0;
}

/* In warmup passes wait until their cost has been earned. */
static void pace_passes(struct adapt *adapt, int count[PASS_KINDS]) {
    const double most = *adapt->temper < 1 ? ANNEALING_PACE : MOST_PACE;
    double cost = 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        if (adapt->price[k] == 0 && count[k] > 1) count[k] = 1; /* not known yet */
        cost += count[k] * adapt->price[k];
    }
    *adapt->credit += (*adapt->pace < most ? *adapt->pace : most) * adapt_sweep_cost(adapt);
    if (*adapt->credit < cost) {
        memset(count, 0, PASS_KINDS * sizeof *count);
        return;
    }
    *adapt->credit = cost > 0 ? *adapt->credit - cost : 0;
}

void adapt_plan(struct adapt *adapt, int learning, int looking, int count[PASS_KINDS]) {
    for (int k = 0; k < PASS_KINDS; ++k) count[k] = (int)adapt->passes[k];
    if (learning && *adapt->given < 0) pace_passes(adapt, count);
    if (!looking || adapt->shape.dim == 0) return;
    const int groups = adapt->shape.groups > 1, leaps = *adapt->has_centre > 0;
    const int least[PASS_KINDS] = {1, leaps, groups, groups && leaps};
    for (int k = 0; k < PASS_KINDS; ++k) {
        if (count[k] >= least[k]) continue;
        *adapt->explored += (least[k] - count[k]) * adapt->price[k];
        count[k] = least[k];
    }
}

double adapt_planned_work(const struct adapt *adapt) {
    double work = 0;
    for (int k = 0; k < PASS_KINDS; ++k) work += adapt->passes[k] * adapt->price[k];
    return work;
}

/* ---- the numbers that promise most ------------------------------------------------ */

/* m = L^-1 M L^-T for the symmetric M whose lower triangle is given, over 2n */
static void sphere(int d, const double *chol, const double *lower, double n, double *m) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            m[(size_t)i * d + j] = m[(size_t)j * d + i] = lower[(size_t)i * d + j] / (2 * n);
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j) {
            const double swap = m[(size_t)i * d + j];
            m[(size_t)i * d + j] = m[(size_t)j * d + i];
            m[(size_t)j * d + i] = swap;
        }
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
}

/* v_i' M v_i for the rows of v; NULL: the diagonal */
static void rates_along(int d, const double *m, const double *v, double *rate) {
    for (int i = 0; i < d; ++i, v = v ? v + d : v) {
        if (!v) {
            rate[i] = m[(size_t)i * d + i];
            continue;
        }
        double sum = 0;
        for (int k = 0; k < d; ++k)
            for (int l = 0; l < d; ++l) sum += v[k] * m[(size_t)k * d + l] * v[l];
        rate[i] = sum;
    }
}

static void shrink_rates(int d, double accepts, double *rate) {
    double mean = 0;
    for (int i = 0; i < d; ++i) mean += rate[i] / d;
    const double own = accepts / (accepts + 10), trust = accepts / (accepts + DOUBT);
    for (int i = 0; i < d; ++i) rate[i] = trust * (own * rate[i] + (1 - own) * mean);
}

/* A schedule of passes and parts, and what it promises: effective draws per work
 * where theta moves least. */
struct schedule {
    int count[PASS_KINDS], parts;
    double gain;
};

/* `more` may be NULL: rates of one more pass */
static double gain_of(int d, const double *level, const double *more, const double *sweep,
                      int parts, double work) {
    double longest = 0;
    for (int i = 0; i < d; ++i) {
        const double l = level[i] + (more ? more[i] : 0);
        const double time = 1 / tanh(0.5 * (l > 0 ? l : 0)) + sweep[i] * (parts - 1);
        longest = time > longest ? time : longest;
    }
    return 1 / (longest * work);
}

/* How far a sweep moves theta in each principal direction of its jumps, and how
 * far a pass of each kind does. `chol` factors the covariance of theta. */
static void learn_rates(struct adapt *adapt, const double *chol, double *level, double *rate) {
    const int d = adapt->shape.dim;
    double *v = rate + (size_t)(PASS_KINDS + 3) * d, *m = v + (size_t)d * d;
    sphere(d, chol, adapt->sums.jump_sweep, *adapt->sums.count, v);
    for (int i = 0; i < d; ++i) level[i] = v[(size_t)i * d + i];
    const int turned =
        d <= MOST_PRINCIPAL && linalg_principal(d, v, level, rate + (size_t)PASS_KINDS * d) == 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        double *along = rate + (size_t)k * d;
        memset(along, 0, (size_t)d * sizeof(double));
        if (adapt->sums.proposals[k] == 0) continue;
        sphere(d, chol, adapt->sums.jump + (size_t)k * d * d, adapt->sums.proposals[k], m);
        rates_along(d, m, turned ? v : NULL, along);
        shrink_rates(d, adapt->sums.accepts[k], along);
    }
}

/* The passes to make with a sweep in so many parts; `level` is destroyed. */
static struct schedule find_schedule(const struct adapt *adapt, const double *sweep,
                                     const double *rate, int parts, double *level) {
    const int d = adapt->shape.dim, given = (int)*adapt->given;
    struct schedule best = {{0}, parts, 0}, now = best;
    double work = adapt->costs.visit / parts + adapt->costs.complete;
    for (int i = 0; i < d; ++i) level[i] = sweep[i] / parts;
    best.gain = gain_of(d, level, NULL, sweep, parts, work);
    for (int total = 1; total <= (given >= 0 ? given : MOST_PASSES); ++total) {
        int next = -1;
        double highest = -1;
        for (int k = 0; k < PASS_KINDS; ++k) {
            if (adapt->sums.proposals[k] == 0) continue;
            const double gain =
                gain_of(d, level, rate + (size_t)k * d, sweep, parts, work + adapt->price[k]);
            if (gain <= highest) continue;
            highest = gain;
            next = k;
        }
        if (next < 0) break;
        /* a leap into a tail can be long in coming back: a walk goes with them */
        const int leaps = now.count[PASS_LEAP] + now.count[PASS_GROUP_LEAP],
                  walks = now.count[PASS_WALK] + now.count[PASS_GROUP_WALK];
        if (total > 1 && leaps > 0 && walks == 0)
            next = now.count[PASS_LEAP] > 0 ? PASS_WALK : PASS_GROUP_WALK;
        work += adapt->price[next];
        now.count[next] += 1;
        for (int i = 0; i < d; ++i) level[i] += rate[(size_t)next * d + i];
        now.gain = gain_of(d, level, NULL, sweep, parts, work);
        if (given >= 0 ? total == given : now.gain > best.gain) best = now;
    }
    return best;
}

/* The schedule of what follows warmup. */
static struct schedule final_schedule(const struct adapt *adapt, const double *sweep,
                                      const double *rate, double *level) {
    struct schedule best = find_schedule(adapt, sweep, rate, 1, level);
    for (int parts = 2; parts <= adapt->most_parts; parts *= 2) {
        const struct schedule other = find_schedule(adapt, sweep, rate, parts, level);
        if (other.gain > (best.parts == 1 ? PARTS_MARGIN : 1) * best.gain) best = other;
    }
    return best;
}

/* The gain over the sampler without passes. The slowest direction of Q looks slower
 * than it is: the least of d eigenvalues of a sample covariance is too small by about
 * (1 - sqrt(d / count))^2. */
static double gain_over_plain(const struct adapt *adapt, const double *sweep,
                              const struct schedule *schedule) {
    const int d = adapt->shape.dim;
    const double plain = gain_of(d, sweep, NULL, sweep, 1, adapt_sweep_cost(adapt));
    const double root = 1 - sqrt(d / *adapt->sums.count);
    return root * root * schedule->gain / plain;
}

/* Rates that may be hoped for once the proposals have learned more. */
static void hope_for(const struct adapt *adapt, double *rate) {
    const int d = adapt->shape.dim;
    for (int k = 0; k < PASS_KINDS; ++k) {
        const double made = adapt->sums.proposals[k], own = made / (made + GOOD_PROPOSALS);
        for (int i = 0; i < d; ++i, ++rate) *rate = own * *rate + (1 - own) * GOOD_RATE / d;
    }
}

/* At least so many walks where the logarithm of a response's shape is that uncertain. */
static void walk_shape(const struct adapt *adapt, const double *chol, int count[PASS_KINDS]) {
    const int at = adapt->shape.of_shape;
    if (at == 0) return;
    const double *row = chol + (size_t)(at - 1) * (size_t)adapt->shape.dim;
    if (linalg_dot(at, row, row) < WIDE_SHAPE * WIDE_SHAPE) return;
    const int kind = adapt->shape.groups > 1 ? PASS_GROUP_WALK : PASS_WALK;
    const int walks = count[PASS_WALK] + count[PASS_GROUP_WALK];
    if (walks < SHAPE_WALKS) count[kind] += SHAPE_WALKS - walks;
}

double adapt_choose_passes(struct adapt *adapt, const double *chol, int end_of_warmup) {
    const int d = adapt->shape.dim, given = *adapt->given >= 0;
    double *sweep = adapt->scratch, *rate = sweep + d, *level = rate + PASS_KINDS * d, left = 0;
    learn_rates(adapt, chol, sweep, rate);
    for (int i = 0; i < d; ++i) left += (1 - sweep[i]) / d;
    left -= sqrt(3 / (*adapt->sums.count * d)); /* about its standard error */
    left = left > 0 ? left : 0;
    struct schedule best = {{0}, 1, 0};
    if (given) {
        best = find_schedule(adapt, sweep, rate, 1, level);
    } else if (end_of_warmup) {
        const struct schedule last = final_schedule(adapt, sweep, rate, level);
        if (gain_over_plain(adapt, sweep, &last) > PASSES_MARGIN) best = last;
    } else {
        hope_for(adapt, rate);
        best = find_schedule(adapt, sweep, rate, 1, level);
        const double pace = HOPE * (gain_over_plain(adapt, sweep, &best) - 1);
        const double most = MOST_PACE * fmin(*adapt->sums.count / LONG_WINDOW, 1);
        *adapt->pace = fmin(fmax(pace, 0), most);
    }
    if (end_of_warmup && !given) walk_shape(adapt, chol, best.count);
    *adapt->parts = best.parts;
    double moved = 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        const int count = best.count[k];
        adapt->passes[k] = count;
        for (int i = 0; i < d && count > 0; ++i) moved += count * rate[(size_t)k * d + i] / d;
    }
    return left * exp(-moved);
}
