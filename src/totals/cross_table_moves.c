/* Moves of the cross-table of factors (totals/cross_table.c).
 *
 * Moves, given the rest of theta: m records go from a level of a factor to another one; or m
 * records of each of two levels exchange them, which leaves the counts of all levels as they are;
 * or m records of a cell, drawn uniformly, and m of one that has other levels of all other factors
 * go together. (With bounds that a statistic rescales to [-1, 1], half of the records that go must
 * have a dummy for the product with it to stay.) The innovations Z and F stay. For the first two
 * kinds, the cells of the records are drawn as if they were put back
 * each time; m is geometric-like, with a scale for each factor and kind that warmup learns:
 *
 *   accept with [p(N') eta(z | s') q(N' to N)] / [p(N) eta(z | s) q(N to N')],
 *
 * q the probability of these cells, the same for pairs. If a level becomes empty, or factors are
 * confounded, the rank of D changes: the standard normal innovations of a row of M stay as the
 * innovations of an idle row, and F, held, has the density of other degrees of freedom. theta, its
 * probabilities among the rest, must be drawn after the moves.
 *
 * Cost: O(k^3 + (k + d)(k d + d^2) + components) a move for k columns of D and d other columns,
 * whatever n is, and a binomial draw for each cell of a level. No allocation.
 */
#include "totals/normal_totals.h"

#include "base/block.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model_levels.h"
#include "contract/model_normal.h"

/* of each kind in an iteration, for each level of a factor but the first; at most so many in all */
enum { MOVES = 16, MOST_MOVES = 400 };

/* rounds of moves before a start */
enum { SETTLING = 100 };

/* Where bounds clamp: runs of moves in an iteration; how fast what is learned of the bounds
 * forgets.
 */
enum { RUNS = 20 };
static const double FORGET = 0.02;

static const double LOG_2 = 0.693147180559945309417;

static double level_count(const struct normal *s, int f, int level) {
    const struct model_factor *factor = s->table.factor + f;
    const double *dummy = s->density.c + factor->first;
    if (level > 0) return dummy[level - 1];
    double rest = s->n;
    for (int l = 1; l < factor->levels; ++l) rest -= dummy[l - 1];
    return rest;
}

/* `m` records of a level drawn from its cells, `out` of each; their cells and how many records the
 * level has are there. */
static void choose_records(struct rng *rng, const struct cross_table *t, const int *cell,
                           double all, double m, double *out) {
    double left[LANES] = {m}, drawn[LANES] = {0};
    for (int k = 0; k < t->contexts; ++k) {
        const double count = t->count[cell[k]];
        if (count == 0 || left[0] == 0)
            drawn[0] = 0;
        else if (count >= all)
            drawn[0] = left[0];
        else
            dist_binomial_fill(rng, count / all, 1, left, drawn);
        out[k] = drawn[0];
        left[0] -= drawn[0];
        all -= count;
    }
}

/* log of what p(N) and the choice of cells bring to the ratio, but for the counts of levels: `out`
 * records of each cell go, `in` come. -INFINITY where there are too few. `all`: of the level. */
static double log_ways(const struct cross_table *t, const int *cell, double all, double m,
                       const double *out, const double *in, double m_in) {
    double sum = 0;
    for (int k = 0; k < t->contexts; ++k) {
        if (out[k] == 0 && in[k] == 0) continue;
        const double old = t->count[cell[k]], new = old - out[k] + in[k];
        if (old < out[k]) return -INFINITY;
        sum += lgamma(old + 1) - lgamma(new + 1);
        if (out[k] > 0) sum -= out[k] * log(old / all);
        if (in[k] > 0) sum += in[k] * log(new / (all - m + m_in));
    }
    return sum;
}

static double log_cells(const struct normal *s) {
    const struct cross_table *t = &s->table;
    const double *alpha = s->model.levels->joint->alpha;
    double sum = 0;
    for (int k = 0; k < t->contexts; ++k) {
        const double by = t->in[k] - t->out[k];
        if (by == 0) continue;
        const double here = alpha[t->here[k]] + t->count[t->here[k]];
        const double there = alpha[t->there[k]] + t->count[t->there[k]];
        sum += lgamma(here + by) - lgamma(here) + lgamma(there - by) - lgamma(there);
    }
    return sum;
}

/* and the counts of levels, of which `m` change; or the counts of the cells, of which t->out and
 * t->in do, where factors depend on each other */
static double log_levels(const struct normal *s, int f, int from, int to, double m) {
    if (model_joint(&s->model)) return log_cells(s);
    const double *alpha = s->table.factor[f].alpha;
    const double out = alpha[from] + level_count(s, f, from);
    const double in = alpha[to] + level_count(s, f, to);
    return lgamma(out - m) - lgamma(out) + lgamma(in + m) - lgamma(in);
}

/* For F given theta: what depends on the rank; s->chol is there. */
static double log_scatter(const struct normal *s) {
    const struct totals *t = &s->density.totals;
    const double freedom = s->n - t->live;
    double sum = -dist_log_multigamma(t->d, 0.5 * freedom);
    for (int i = 0; i < t->d; ++i)
        sum += freedom * (log(t->factor[i * t->width + i] / s->chol[i * t->d + i]) - 0.5 * LOG_2);
    return sum;
}

/* Records `out` of the cells of a level go to another level, `in` come from there, or with `sign`
 * -1 are sent back. */
static void apply(struct normal *s, double sign) {
    struct cross_table *t = &s->table;
    for (int k = 0; k < t->contexts; ++k) {
        const double by = sign * (t->in[k] - t->out[k]);
        if (by == 0) continue;
        t->count[t->here[k]] += by;
        t->count[t->there[k]] -= by;
        normal_add_records(s, t->here[k], by);
        normal_add_records(s, t->there[k], -by);
    }
}

/* Z from M, idle rows and all, and back, with s->mean and s->chol of theta; `live` rows are in the
 * columns' units. */
static void find_innovations(struct normal *s, const double *q) {
    const struct totals *t = &s->density.totals;
    double *z = s->table.innovation;
    totals_apply_design(t, s->mean, z);
    for (int b = 0; b < t->k; ++b)
        for (int i = 0; i < t->d; ++i, ++q, ++z) *z = t->idle[b] ? *q : *q - *z;
}

static void apply_innovations(struct normal *s, const int *old_idle, double *q) {
    const struct totals *t = &s->density.totals;
    const int d = t->d;
    const double *z = s->table.innovation;
    double *g = s->normal_draw;
    totals_apply_design(t, s->mean, q);
    for (int b = 0; b < t->k; ++b, q += d, z += d) {
        if (t->idle[b] == old_idle[b]) {
            for (int i = 0; i < d; ++i) q[i] = t->idle[b] ? z[i] : q[i] + z[i];
            continue;
        }
        if (t->idle[b]) {
            memcpy(g, z, (size_t)d * sizeof(double));
            linalg_forward(d, s->chol, g);
            for (int i = 0; i < d; ++i) q[i] = t->idle_sd[i] * g[i];
        } else {
            for (int i = 0; i < d; ++i) g[i] = z[i] / t->idle_sd[i];
            for (int i = 0; i < d; ++i)
                q[i] += linalg_dot(i + 1, s->chol + (size_t)i * (size_t)d, g);
        }
    }
}

/* Where bounds clamp, what is expected of all cells takes long. So moves are decided by the misfit
 * of totals that the bounds change by a constant; a run of them, reversible for that density, is
 * accepted or not by the ratio of the true one's to it (Liu 2001). */
static void measure_about(struct normal *s, const double *q) {
    totals_expand(&s->density.totals, q, s->density.c);
    s->misfit = 0;
    for (int k = 0; k < s->density.noise.size; ++k) {
        const double value = component_value(s->density.component + k, s->density.c);
        const double away = s->density.noise.released[k] - s->table.clamps[k] - value;
        s->misfit += kernel_energy(s->noise->kernel[k], away * s->density.noise.weight[k]);
    }
}

static int move_given_theta(struct normal *s, double log_ratio) {
    struct cross_table *t = &s->table;
    struct totals *totals = &s->density.totals;
    const size_t k = (size_t)totals->k;
    const double power = totals->power, energy = s->energy, misfit = s->misfit;
    const int live = totals->live;
    const double old_scatter = log_scatter(s);
    memcpy(t->kept_design, totals->design, k * k * sizeof(double));
    memcpy(t->kept_idle, totals->idle, k * sizeof(int));
    apply(s, 1);
    normal_read_design(s);
    doubles_copy(t->trial, s->hmc.q, normal_coordinates(s));
    apply_innovations(s, t->kept_idle, t->trial);
    if (s->density.cells)
        measure_about(s, t->trial);
    else
        normal_measure(s, t->trial);
    if (totals->live != live) log_ratio += log_scatter(s) - old_scatter;
    if (-(log_ratio + misfit - s->misfit) < rng_exponential(s->rng)) {
        doubles_copy(s->hmc.q, t->trial, normal_coordinates(s));
        if (memcmp(t->kept_idle, totals->idle, k * sizeof(int)) != 0) find_innovations(s, s->hmc.q);
        return 1;
    }
    apply(s, -1);
    memcpy(totals->design, t->kept_design, k * k * sizeof(double));
    memcpy(totals->idle, t->kept_idle, k * sizeof(int));
    totals->live = live;
    totals->power = power;
    s->energy = energy;
    s->misfit = misfit;
    return 0;
}

/* The misfit of components that depend on the table alone, from where a start wants them. */
static double misfit_of_counts(const struct normal *s) {
    const struct cross_table *t = &s->table;
    double energy = 0;
    for (int k = 0; k < t->counted; ++k) {
        const int at = t->of_counts[k];
        const double value = component_value(s->density.component + at, s->density.c);
        const double r = (t->wanted[k] - value) * s->noise->weight[at];
        energy += kernel_energy(s->noise->kernel[at], r);
    }
    return energy;
}

static int settle(struct normal *s, double log_ratio) {
    const double energy = s->energy;
    apply(s, 1);
    s->energy = misfit_of_counts(s);
    log_ratio += s->table.temper * (energy - s->energy);
    if (-log_ratio < rng_exponential(s->rng)) return 1;
    apply(s, -1);
    s->energy = energy;
    return 0;
}

/* the cells of a level, in the same order of the other factors' levels for each */
static void find_cells(const struct cross_table *t, int f, int level, int *cell) {
    const int stride = t->stride[f], cycle = stride * t->factor[f].levels;
    for (int block = 0; block < t->cells; block += cycle)
        for (int k = 0; k < stride; ++k) *cell++ = block + level * stride + k;
}

static int other_level(struct rng *rng, int levels, int level) {
    return (level + 1 + (int)(rng_uniform(rng) * (levels - 1))) % levels;
}

/* Among the cells of a level, the place of one that has another level of every other factor than
 * `cell`. */
static int opposite(struct rng *rng, const struct cross_table *t, int f, int cell) {
    for (int g = 0; g < t->factors; ++g) {
        if (g == f) continue;
        const int level = normal_level_of(t, g, cell);
        cell += t->stride[g] * (other_level(rng, t->factor[g].levels, level) - level);
    }
    const int stride = t->stride[f];
    return cell / (stride * t->factor[f].levels) * stride + cell % stride;
}

/* log of p(N') / p(N), but for the counts of levels: records go from some cells to others. */
static double log_paired(const struct cross_table *t, const int place[2], double m) {
    double sum = 0;
    for (int k = 0; k < 2; ++k) {
        const double here = t->count[t->here[place[k]]], there = t->count[t->there[place[k]]];
        if (here < m) return -INFINITY;
        sum += lgamma(here + 1) - lgamma(here - m + 1) + lgamma(there + 1) - lgamma(there + m + 1);
    }
    return sum;
}

/* Chooses the records of a move from level `own` to level `to`. Returns the log ratio but for
 * eta, -INFINITY where there are too few. */
static double propose(struct normal *s, int f, enum table_move kind, int own, int to, double m) {
    struct cross_table *t = &s->table;
    const double all = level_count(s, f, own), all_there = level_count(s, f, to);
    const double m_in = kind == SWAP ? m : 0;
    if (m > all || m_in > all_there) return -INFINITY;
    t->contexts = t->cells / t->factor[f].levels;
    find_cells(t, f, own, t->here);
    find_cells(t, f, to, t->there);
    memset(t->in, 0, (size_t)t->contexts * sizeof(double));
    if (kind == PAIR) {
        int place[2] = {(int)(rng_uniform(s->rng) * t->contexts)};
        place[1] = opposite(s->rng, t, f, t->here[place[0]]);
        memset(t->out, 0, (size_t)t->contexts * sizeof(double));
        t->out[place[0]] = t->out[place[1]] = m;
        const double log_ratio = log_paired(t, place, m);
        return log_ratio > -INFINITY ? log_ratio + log_levels(s, f, own, to, 2 * m) : log_ratio;
    }
    choose_records(s->rng, t, t->here, all, m, t->out);
    if (kind == SWAP) choose_records(s->rng, t, t->there, all_there, m, t->in);
    const double log_ratio = log_ways(t, t->here, all, m, t->out, t->in, m_in) +
                             log_ways(t, t->there, all_there, m_in, t->in, t->out, m);
    const int counts = kind == TRANSFER || model_joint(&s->model);
    return counts && log_ratio > -INFINITY ? log_ratio + log_levels(s, f, own, to, m) : log_ratio;
}

/* Returns whether it was accepted, by `accepts`. */
static int try_move(struct normal *s, int f, enum table_move kind, int learning,
                    int (*accepts)(struct normal *s, double log_ratio)) {
    struct cross_table *t = &s->table;
    const int at = TABLE_MOVES * f + (int)kind, levels = t->factor[f].levels;
    const int own = (int)(rng_uniform(s->rng) * levels);
    const int to = other_level(s->rng, levels, own);
    const double m = units_draw(s->rng, t->scale[at]);
    const double log_ratio = propose(s, f, kind, own, to, m);
    const int accepted = log_ratio > -INFINITY && accepts(s, log_ratio);
    if (learning) units_learn(t->scale + at, t->tries + at, accepted, s->n);
    return accepted;
}

static int kinds(const struct normal *s) { return s->table.factors > 1 ? TABLE_MOVES : 1; }

int normal_moves(const struct normal *s) {
    const int moves = MOVES * kinds(s) * (s->density.totals.k - 1);
    return moves < MOST_MOVES ? moves : MOST_MOVES;
}

static int choose_factor(const struct normal *s) {
    const struct cross_table *t = &s->table;
    int dummy = (int)(rng_uniform(s->rng) * (s->density.totals.k - 1)), f = 0;
    for (; dummy >= t->factor[f].levels - 1; ++f) dummy -= t->factor[f].levels - 1;
    return f;
}

static enum table_move choose_kind(const struct normal *s) {
    return (enum table_move)(rng_uniform(s->rng) * kinds(s));
}

/* Returns how many were accepted. */
static int make_moves(struct normal *s, int moves, int learning) {
    int accepted = 0;
    for (int k = 0; k < moves; ++k)
        accepted += try_move(s, choose_factor(s), choose_kind(s), learning, move_given_theta);
    return accepted;
}

/* What the bounds do, after normal_measure(): a mean that forgets. */
static void learn_clamps(struct normal *s) {
    struct cross_table *t = &s->table;
    *t->seen += 1;
    const double pace = fmax(FORGET, 1 / *t->seen);
    for (int k = 0; k < s->density.noise.size; ++k) {
        const struct component *one = s->density.component + k;
        const double clamps =
            component_value(one, s->density.seen) - component_value(one, s->density.c);
        t->clamps[k] += pace * (clamps - t->clamps[k]);
    }
}

/* A run of moves, the misfit being the true one before and after. Returns how many were accepted.
 */
static int run_moves(struct normal *s, int moves, int learning) {
    struct cross_table *t = &s->table;
    const double before = s->misfit;
    doubles_copy(t->old_count, t->count, t->cells);
    doubles_copy(t->old_q, s->hmc.q, normal_coordinates(s));
    measure_about(s, s->hmc.q);
    const double about_before = s->misfit;
    const int accepted = make_moves(s, moves, learning);
    const double about = s->misfit;
    if (accepted > 0) clamped_cells_design(s->density.cells);
    normal_measure(s, s->hmc.q);
    if (accepted == 0 || s->misfit - before - (about - about_before) < rng_exponential(s->rng))
        return accepted;
    doubles_copy(t->count, t->old_count, t->cells);
    doubles_copy(s->hmc.q, t->old_q, normal_coordinates(s));
    normal_load_table(s);
    find_innovations(s, s->hmc.q);
    normal_measure(s, s->hmc.q);
    return 0;
}

void normal_move_table(struct collapse *of, int learning) {
    struct normal *s = of->self;
    const int moves = normal_moves(s);
    if (model_joint(&s->model)) s->model.class->set(s->model.self, s->theta); /* its weights */
    s->model.normal->distribution(s->model.self, s->theta, s->mean, s->chol);
    normal_measure(s, s->hmc.q);
    find_innovations(s, s->hmc.q);
    of->counter[TABLE_MADE] += moves;
    if (!s->density.cells) {
        of->counter[TABLE_ACCEPTED] += make_moves(s, moves, learning);
        normal_measure(s, s->hmc.q);
        return;
    }
    if (learning) learn_clamps(s);
    for (int k = 0; k < RUNS; ++k)
        of->counter[TABLE_ACCEPTED] += run_moves(s, moves / RUNS + (k < moves % RUNS), learning);
}

void normal_settle_table(struct normal *s) {
    struct cross_table *t = &s->table;
    for (int k = 0; k < t->counted; ++k) t->wanted[k] = normal_renew(s, t->of_counts[k]);
    s->energy = misfit_of_counts(s);
    const double least = fmin(1, (t->counted + 1) / (s->energy + 1)), moves = normal_moves(s);
    for (int k = 0; k < SETTLING; ++k) {
        t->temper = pow(least, fmax(0, 1 - k / (0.8 * SETTLING)));
        for (int j = 0; j < moves; ++j)
            (void)try_move(s, choose_factor(s), choose_kind(s), 1, settle);
    }
    for (int k = 0; k < TABLE_MOVES * t->factors; ++k) t->tries[k] = 0;
    normal_read_design(s);
}
