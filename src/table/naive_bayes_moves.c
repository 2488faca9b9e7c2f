/* Moves of the table of method "collapse", counts (the target is in table/naive_bayes_chain.c).
 *
 * The first three kinds are symmetric, so accepted by the ratio of the target:
 * 1. within a row (a feature's counts in one class): d units from cell to cell;
 * 2. between classes: d units with one cell of every feature;
 * 3. the same with d split over a row's cells in proportions that warmup learned,
 *    which makes large moves if the proportions are well known;
 * 4. two cells of a row drawn given their sum, by the noise alone: Laplace noise
 *    of one scale makes that a distribution of geometric pieces. Accepted by the ratio of
 *    phi, which hardly changes over the width of the noise where records are many.
 * Hidden cells have wide intervals, often with a known total. If there are any, half of the
 * transfers of kind 2 choose among them, and there are more of these transfers, one per hidden
 * cell. d is geometric-like, its scale learned in warmup; the sweeps of every eighth CYCLE are on
 * a finer scale, for cells near 0.
 *
 * Cost: O(1) a move of kinds 1 and 4, O(features) and O(cells of two classes) for 2
 * and 3.
 */
#include "table/naive_bayes.h"

/* The smaller scale of two cells is used and learned from: it is the other
 * cell's that a move leaves unlimited. */
static inline int smaller(const double *scale, int a, int b) { return scale[b] < scale[a] ? b : a; }

static void keep_within(struct counts *s, int v, int from, int to, double d, double phi_left,
                        double phi_entered) {
    const struct counts_variable *variable = s->variable + v;
    const int level_of = s->cells + variable->at_level - variable->at_cell;
    const int row = (from - variable->at_cell) / variable->levels * variable->levels;
    s->count[from] -= d;
    s->count[to] += d;
    s->log_phi[from] = phi_left;
    s->log_phi[to] = phi_entered;
    counts_gain(s, from, -d);
    counts_gain(s, to, d);
    counts_gain(s, level_of + from - row, -d);
    counts_gain(s, level_of + to - row, d);
}

/* d units from cell `from` to cell `to` of feature v, both of one class */
static void move_within(struct collapse *c, struct counts *s, int v, int row, int level, int fine,
                        int learning) {
    const struct counts_variable *variable = s->variable + v;
    const int start = variable->at_cell + row * variable->levels;
    const int other = counts_choose_other(c->rng, variable->levels, level);
    const int learner = smaller(s->units.scale, start + level, start + other);
    double d = units_draw(c->rng, s->units.scale[learner] * (fine ? 1.0 / 16 : 1));
    if (rng_bits(c->rng) >> 63) d = -d;
    const int from = start + level, to = start + other;
    const double left = s->count[from] - d, entered = s->count[to] + d;
    double log_ratio = -INFINITY, phi_left = 0, phi_entered = 0;
    if (left >= 0 && entered >= 0) {
        phi_left = counts_log_phi(&s->prior, from, left);
        phi_entered = counts_log_phi(&s->prior, to, entered);
        const int level_from = s->cells + variable->at_level + level;
        const int level_to = s->cells + variable->at_level + other;
        log_ratio = (phi_left - s->log_phi[from]) + (phi_entered - s->log_phi[to]) -
                    counts_gain_energy(c, s, from, -d) - counts_gain_energy(c, s, to, d) -
                    counts_gain_energy(c, s, level_from, -d) -
                    counts_gain_energy(c, s, level_to, d);
    }
    const int accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
    collapse_count(c, WITHIN, accept);
    if (learning && !fine)
        units_learn(s->units.scale + learner, s->units.tries + learner, accept, s->most);
    if (accept) keep_within(s, v, from, to, d, phi_left, phi_entered);
}

/* ---- fresh counts of two cells ---------------------------------------------------------- */

/* Where the noise of a target's components is 0, as counts of the first of two
 * cells, now `count`; `direction` is 1 if the target grows with it, else -1. Kinks
 * are kept in rising order. Returns how many there are. */
static inline int add_kinks(const struct collapse *c, const struct counts *s, int target,
                            double count, int direction, int kinks, double *kink) {
    for (int k = s->targets.first[target]; k < s->targets.first[target + 1]; ++k) {
        const int j = s->targets.component[k];
        const double at = count + direction * (c->noise.released[j] - s->total[j]);
        int i = kinks++;
        for (; i > 0 && kink[i - 1] > at; --i) kink[i] = kink[i - 1];
        kink[i] = at;
    }
    return kinks;
}

/* x in 0..most with log density -weight sum_k |x - kink_k|: geometric between two
 * kinks, `peak` its most likely value. */
static double draw_between_kinks(const struct counts *s, struct rng *rng, double most, int kinks,
                                 const double *kink) {
    double peak[MOST_KINKS + 1], length[MOST_KINKS + 1], height[MOST_KINKS + 1];
    int rises[MOST_KINKS + 1], steep[MOST_KINKS + 1], pieces = 0;
    double low = 0, highest = -INFINITY;
    for (int k = 0; k <= kinks; ++k) {
        double end = most + 1;
        if (k < kinks && kink[k] < end) end = ceil(kink[k]);
        if (end <= low) continue;
        const int slope = kinks - 2 * k;
        rises[pieces] = slope > 0;
        steep[pieces] = slope > 0 ? slope : -slope;
        peak[pieces] = slope > 0 ? end - 1 : low;
        length[pieces] = end - low;
        double far = 0;
        for (int i = 0; i < kinks; ++i) far += fabs(peak[pieces] - kink[i]);
        height[pieces] = -s->weight * far;
        if (height[pieces] > highest) highest = height[pieces];
        ++pieces;
        low = end;
    }
    if (pieces == 0) return 0; /* cannot be: a piece ends at `most`; for static analysers */
    double mass[MOST_KINKS + 1] = {0}, sum = 0;
    for (int k = 0; k < pieces; ++k) {
        const double fall = s->weight * steep[k] * length[k];
        mass[k] = length[k];
        if (steep[k] > 0) mass[k] = s->geometric[steep[k]] * (fall < 40 ? -expm1(-fall) : 1);
        if (height[k] < highest) mass[k] *= exp(height[k] - highest);
        sum += mass[k];
    }
    double u = sum * rng_uniform(rng);
    int k = 0;
    while (k < pieces - 1 && u >= mass[k]) u -= mass[k++];
    const double share = u / mass[k], each = s->weight * steep[k], fall = each * length[k];
    double by = length[k] * share;
    if (steep[k] > 0) by = -log1p(share * (fall < 40 ? expm1(-fall) : -1)) / each;
    by = floor(by);
    if (!(by < length[k])) by = length[k] - 1;
    return rises[k] ? peak[k] - by : peak[k] + by;
}

/* Two cells of one row drawn again given their sum, by the noise alone; accepted by
 * the rest. */
static void move_fresh(struct collapse *c, struct counts *s, int v, int row, int level) {
    const struct counts_variable *variable = s->variable + v;
    const int start = variable->at_cell + row * variable->levels;
    const int other = counts_choose_other(c->rng, variable->levels, level);
    const int a = start + level, b = start + other;
    const int level_of = s->cells + variable->at_level;
    const double count = s->count[a];
    double kink[MOST_KINKS];
    int kinks = add_kinks(c, s, a, count, 1, 0, kink);
    kinks = add_kinks(c, s, b, count, -1, kinks, kink);
    kinks = add_kinks(c, s, level_of + level, count, 1, kinks, kink);
    kinks = add_kinks(c, s, level_of + other, count, -1, kinks, kink);
    const double most = count + s->count[b];
    const double to = draw_between_kinks(s, c->rng, most, kinks, kink), d = count - to;
    int accept = 1;
    if (d != 0) {
        const double phi_a = counts_log_phi(&s->prior, a, to);
        const double phi_b = counts_log_phi(&s->prior, b, most - to);
        const double log_ratio = (phi_a - s->log_phi[a]) + (phi_b - s->log_phi[b]);
        accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
        if (accept) keep_within(s, v, a, b, d, phi_a, phi_b);
    }
    collapse_count(c, WITHIN, accept);
}

double counts_draw_alone(const struct collapse *c, const struct counts *s, int cell, double most) {
    double kink[MOST_KINKS];
    const int kinks = add_kinks(c, s, cell, s->count[cell], 1, 0, kink);
    return kinks > 0 ? draw_between_kinks(s, c->rng, most, kinks, kink) : s->count[cell];
}

/* log ratio of the cells of feature v when from.part leaves class `from` and
 * to.part enters class `to`; their new log phi at from.phi and to.phi */
static double carry_feature(const struct collapse *c, const struct counts *s, int v, int from,
                            int to) {
    const struct counts_variable *variable = s->variable + v;
    const int at_from = variable->at_cell + from * variable->levels;
    const int at_to = variable->at_cell + to * variable->levels;
    const int at = variable->at_level;
    double log_ratio = 0;
    for (int l = 0; l < variable->levels; ++l) {
        const double leaves = s->from.part[at + l], enters = s->to.part[at + l];
        const int a = at_from + l, b = at_to + l;
        if (leaves != 0) {
            const double left = s->count[a] - leaves;
            if (left < 0) return -INFINITY;
            s->from.phi[at + l] = counts_log_phi(&s->prior, a, left);
            log_ratio += s->from.phi[at + l] - s->log_phi[a] - counts_gain_energy(c, s, a, -leaves);
        }
        if (enters != 0) {
            s->to.phi[at + l] = counts_log_phi(&s->prior, b, s->count[b] + enters);
            log_ratio += s->to.phi[at + l] - s->log_phi[b] - counts_gain_energy(c, s, b, enters);
        }
        if (leaves != enters)
            log_ratio -= counts_gain_energy(c, s, s->cells + at + l, enters - leaves);
    }
    return log_ratio;
}

static void keep_feature(struct counts *s, int v, int from, int to) {
    const struct counts_variable *variable = s->variable + v;
    const int at = variable->at_level;
    for (int l = 0; l < variable->levels; ++l) {
        const double leaves = s->from.part[at + l], enters = s->to.part[at + l];
        const int a = variable->at_cell + from * variable->levels + l;
        const int b = variable->at_cell + to * variable->levels + l;
        if (leaves != 0) {
            s->count[a] -= leaves;
            s->log_phi[a] = s->from.phi[at + l];
            counts_gain(s, a, -leaves);
        }
        if (enters != 0) {
            s->count[b] += enters;
            s->log_phi[b] = s->to.phi[at + l];
            counts_gain(s, b, enters);
        }
        if (leaves != enters) counts_gain(s, s->cells + at + l, enters - leaves);
    }
}

/* log psi of n records in a row of feature v; `before` is the log psi of the feature
 * before it, often of the same weight */
static double psi_of(const struct counts *s, int v, int row, double n, double before) {
    if (v > 1 && s->prior.row[row] == s->prior.row[row - s->classes]) return before;
    return counts_log_psi(&s->prior, row, n);
}

/* another class of the group; -1: there is none */
static int choose_fellow(const struct collapse *c, const struct counts *s, int one) {
    const int *first = s->groups.first + s->groups.of[one], count = first[1] - first[0];
    if (count == 1) return -1;
    return s->groups.class[first[0] + counts_choose_other(c->rng, count, s->groups.at[one])];
}

/* Another class with which records may be exchanged; of one that was hidden half the time another
 * that was. -1: none. It does not depend on the state. */
static int choose_partner(const struct collapse *c, const struct counts *s, int one) {
    const int hidden = s->loose.level ? s->loose.first[1] : 0;
    int at = 0;
    while (at < hidden && s->loose.level[at] != one) ++at;
    if (at == hidden || hidden == 1 || rng_bits(c->rng) >> 63)
        return s->groups.count > 0 ? choose_fellow(c, s, one)
                                   : counts_choose_other(c->rng, s->classes, one);
    const int other = s->loose.level[counts_choose_other(c->rng, hidden, at)];
    return s->groups.count > 0 && s->groups.of[other] != s->groups.of[one] ? -1 : other;
}

/* of the classes alone; a query may have both of them */
static double carry_energy(const struct collapse *c, struct counts *s, int from, int to, double d) {
    double change = counts_gain_energy(c, s, from, -d);
    if (s->targets.coefficient) counts_gain(s, from, -d);
    change += counts_gain_energy(c, s, to, d);
    if (s->targets.coefficient) counts_gain(s, from, d);
    return change;
}

/* d units from one class to another, with their features */
static void move_between(struct collapse *c, struct counts *s, int one, int kind, int fine,
                         int learning) {
    const int split = kind == SPLIT;
    double *scale = split ? s->split.scale : s->units.scale;
    const int other = choose_partner(c, s, one);
    if (other < 0) return;
    const int learner = smaller(scale, one, other);
    /* transfers inside a query, or between cells that were hidden, go as far as the prior lets
     * them, others as the noise does: half are of a size of any magnitude */
    const int any =
        (s->targets.coefficient || (s->loose.level && s->variables > 1)) && rng_bits(c->rng) >> 63;
    const double d =
        any ? floor(pow((s->targets.coefficient ? s->n : s->loose.most) + 1, rng_uniform(c->rng)))
            : units_draw(c->rng, scale[learner] * (fine ? 1.0 / 16 : 1));
    const int forth = (int)(rng_bits(c->rng) >> 63);
    const int from = forth ? one : other, to = forth ? other : one;
    for (int v = 1; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        const int levels = variable->levels, at = variable->at_level;
        const double *share = s->share + variable->at_cell;
        if (split) {
            counts_split_units(levels, share + from * levels, d, s->from.part + at);
            counts_split_units(levels, share + to * levels, d, s->to.part + at);
        } else {
            counts_all_units(c->rng, s, v, from, d, s->from.part + at);
            counts_all_units(c->rng, s, v, to, d, s->to.part + at);
        }
    }
    const double left = s->count[from] - d, entered = s->count[to] + d;
    double log_ratio = -INFINITY, phi_left = 0, phi_entered = 0, psi_left = 0, psi_entered = 0;
    if (left >= 0) {
        phi_left = counts_log_phi(&s->prior, from, left);
        phi_entered = counts_log_phi(&s->prior, to, entered);
        log_ratio = (phi_left - s->log_phi[from]) + (phi_entered - s->log_phi[to]) -
                    carry_energy(c, s, from, to, d);
    }
    for (int v = 1; v < s->variables && log_ratio > -INFINITY; ++v) {
        const int row = s->variable[v].at_row;
        log_ratio += carry_feature(c, s, v, from, to);
        psi_left = psi_of(s, v, row + from, left, psi_left);
        psi_entered = psi_of(s, v, row + to, entered, psi_entered);
        s->from.psi[v] = psi_left;
        s->to.psi[v] = psi_entered;
        log_ratio += (psi_left - s->log_psi[row + from]) + (psi_entered - s->log_psi[row + to]);
    }
    const int accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
    collapse_count(c, kind, accept);
    if (learning && !fine && !any)
        units_learn(scale + learner, (split ? s->split.tries : s->units.tries) + learner, accept,
                    s->most);
    if (!accept) return;
    s->count[from] = left;
    s->count[to] = entered;
    s->log_phi[from] = phi_left;
    s->log_phi[to] = phi_entered;
    counts_gain(s, from, -d);
    counts_gain(s, to, d);
    for (int v = 1; v < s->variables; ++v) {
        const int row = s->variable[v].at_row;
        keep_feature(s, v, from, to);
        s->log_psi[row + from] = s->from.psi[v];
        s->log_psi[row + to] = s->to.psi[v];
    }
}

void counts_sweep(struct collapse *c, struct counts *s, int turn, int learning) {
    const int walks = s->weight == 0 || turn % CYCLE == CYCLE - 1;
    const int kind = s->variables > 1 && turn % CYCLE != 0 ? SPLIT : BETWEEN;
    const int fine = turn / CYCLE % FINER == FINER - 1;
    for (int v = 1; v < s->variables; ++v) {
        const int levels = s->variable[v].levels;
        for (int row = 0; row < s->classes; ++row) {
            for (int l = 0; walks && l < levels; ++l) move_within(c, s, v, row, l, fine, learning);
            for (int k = 0; !walks && k < levels / 2; ++k)
                move_fresh(c, s, v, row, counts_choose(c->rng, levels));
        }
    }
    for (int i = 0; i < s->classes; ++i) move_between(c, s, i, kind, fine, learning);
    /* what is hidden is wide, and class after class hardly meets it */
    for (int i = 0; s->loose.level && s->variables > 1 && i < s->classes; ++i) {
        int hidden = 0;
        for (int v = 1; v < s->variables; ++v) {
            const int *first = s->loose.first + 1 + s->variable[v].at_row + i;
            hidden += first[1] - first[0];
        }
        for (int k = 0; k < hidden; ++k) move_between(c, s, i, BETWEEN, fine, learning);
    }
}
