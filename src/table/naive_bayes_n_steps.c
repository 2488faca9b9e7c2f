/* Births and deaths in the table of method "collapse", counts, if the number of records n is
 * unknown (the target is in table/naive_bayes_chain.c): d units more or less
 *
 * 1. in one class, with one cell of every feature; 2. in one class, split over a row's cells in
 * proportions that warmup learned; 3. in all classes, also split in such proportions.
 *
 * Classes whose number of records is determined by exact numbers are left out.
 *
 * All are symmetric, and accepted by the ratio of the target, which includes the prior of n,
 * psi(n) of the classes' probabilities, and the noise of a released n. A move changes the cells
 * one by one, and is undone if it is rejected.
 *
 * Once warmup has located n, it is also proposed from its distribution there
 * (mcmc/n_regression_proposal.c), as 3.
 *
 * Unpublished counts may have a tail like 1 / n^2, which steps of one length hardly leave. So in
 * each turn the number in one class, or in all, k, is also multiplied: y = k + u, u uniform in (0,
 * 1), goes to y exp(z), z normal, and k to the whole part of that. The log ratio gains z, the
 * Jacobian.
 *
 * Without features, and if n is less certain than a class's count, n is renewed only in every
 * other turn, and counts are drawn again one by one, from their noise alone if that is Laplace
 * noise of one scale: they are accepted by the remaining factors, which hardly change over the
 * width of the noise.
 *
 * Cost: O(features), O(cells of a class), O(cells).
 */
#include "table/naive_bayes.h"

/* The sd of z: a tail like 1 / k^2 is an exponential one of mean 1 in log k. */
static const double STRETCH = 1.5;

/* the sd of log n below which n has no such tail */
static const double NARROW = 0.1;

enum { RENEWALS = 2 };

/* The log ratio for `by` more records in a cell; they are there then, and in the journal. -INFINITY
 * if there are too few to leave. `level`: the target of the feature's level, or -1. */
static double change_cell(const struct collapse *c, struct counts *s, int cell, int level,
                          double by) {
    if (by == 0) return 0;
    const double count = s->count[cell] + by;
    if (count < 0) return -INFINITY;
    const double phi = counts_log_phi(&s->prior, cell, count);
    double log_ratio = phi - s->log_phi[cell] - counts_gain_energy(c, s, cell, by);
    s->count[cell] = count;
    s->log_phi[cell] = phi;
    counts_gain(s, cell, by);
    if (level >= 0) {
        log_ratio -= counts_gain_energy(c, s, level, by);
        counts_gain(s, level, by);
    }
    s->changes.cell[s->changes.count] = cell;
    s->changes.level[s->changes.count] = level;
    s->changes.by[s->changes.count++] = by;
    return log_ratio;
}

/* The same for a class, with a row of each feature. */
static double change_class(const struct collapse *c, struct counts *s, int class, int whole,
                           double units, int sign) {
    double log_ratio = change_cell(c, s, class, -1, sign * units);
    for (int v = 1; v < s->variables && log_ratio > -INFINITY && units > 0; ++v) {
        const struct counts_variable *variable = s->variable + v;
        const int levels = variable->levels, first = variable->at_cell + class * levels;
        const int row = variable->at_row + class;
        if (whole)
            counts_all_units(c->rng, s, v, class, units, s->from.part);
        else
            counts_split_units(levels, s->share + first, units, s->from.part);
        for (int l = 0; l < levels && log_ratio > -INFINITY; ++l)
            log_ratio += change_cell(c, s, first + l, s->cells + variable->at_level + l,
                                     sign * s->from.part[l]);
        const double psi = counts_log_psi(&s->prior, row, s->count[class]);
        log_ratio += psi - s->log_psi[row];
        s->log_psi[row] = psi;
    }
    return log_ratio;
}

static void undo(struct counts *s) {
    for (int k = s->changes.count - 1; k >= 0; --k) {
        const int cell = s->changes.cell[k], level = s->changes.level[k];
        s->count[cell] -= s->changes.by[k];
        s->log_phi[cell] = counts_log_phi(&s->prior, cell, s->count[cell]);
        counts_gain(s, cell, -s->changes.by[k]);
        if (level >= 0) counts_gain(s, level, -s->changes.by[k]);
        if (cell >= s->classes) continue;
        for (int v = 1; v < s->variables; ++v)
            s->log_psi[s->variable[v].at_row + cell] =
                counts_log_psi(&s->prior, s->variable[v].at_row + cell, s->count[cell]);
    }
}

enum size_move { ONE_CELL, ONE_CLASS, ALL_CLASSES };

/* d units more (sign 1) or less (-1); log_ratio is the proposals'. Returns whether it was
 * accepted. `class` is of no account with ALL_CLASSES. */
static int try_size(struct collapse *c, struct counts *s, int class, enum size_move kind, double d,
                    int sign, double log_ratio) {
    const double n = s->n + sign * d;
    const double log_prior = size_prior_log(c->size_prior, n);
    s->changes.count = 0;
    if (log_prior > -INFINITY) {
        log_ratio += log_prior - size_prior_log(c->size_prior, s->n) +
                     counts_log_root(&s->prior, n) - counts_log_root(&s->prior, s->n) -
                     counts_gain_energy(c, s, s->targets.size, sign * d);
        if (kind == ALL_CLASSES) {
            counts_split_units(s->classes, s->sizes.share, d, s->sizes.part);
            for (int i = 0; i < s->classes && log_ratio > -INFINITY; ++i)
                log_ratio += change_class(c, s, i, 0, s->sizes.part[i], sign);
        } else {
            log_ratio += change_class(c, s, class, kind == ONE_CELL, d, sign);
        }
    } else {
        log_ratio = -INFINITY;
    }
    const int accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
    if (!accept) {
        undo(s);
        return 0;
    }
    s->n = n;
    counts_gain(s, s->targets.size, sign * d);
    return 1;
}

static void move_size(struct collapse *c, struct counts *s, int class, enum size_move kind,
                      int fine, int learning) {
    const int learner = kind == ALL_CLASSES ? 2 * s->classes : (int)kind * s->classes + class;
    const double d = units_draw(c->rng, s->sizes.scale[learner] * (fine ? 1.0 / 16 : 1));
    const int accepted = try_size(c, s, class, kind, d, rng_bits(c->rng) >> 63 ? 1 : -1, 0);
    collapse_count(c, SIZE, accepted);
    if (learning && !fine)
        units_learn(s->sizes.scale + learner, s->sizes.tries + learner, accepted, s->most);
}

/* `class` may be s->classes: all of them */
static void multiply_size(struct collapse *c, struct counts *s, int class) {
    const int all = class == s->classes;
    const double from = all ? s->n : s->count[class], z = STRETCH * rng_normal(c->rng);
    const double to = floor((from + rng_uniform(c->rng)) * exp(z));
    const enum size_move kind = all ? ALL_CLASSES : ONE_CLASS;
    const int sign = to > from ? 1 : -1;
    if (to != from) try_size(c, s, class, kind, fabs(to - from), sign, z);
}

/* n from where warmup saw it, split over the classes as their counts go with it */
static void renew_size(struct collapse *c, struct counts *s) {
    double log_back;
    const double to = size_slope_fresh(&s->sizes.slope, s->n, c->rng, &log_back);
    int accepted = 1;
    if (to != s->n)
        accepted = try_size(c, s, 0, ALL_CLASSES, fabs(to - s->n), to > s->n ? 1 : -1, log_back);
    collapse_count(c, SIZE, accepted);
}

/* What a factor of the target depends on n alone. */
static double log_size(const struct collapse *c, const struct counts *s, double n) {
    const double log_prior = size_prior_log(c->size_prior, n);
    return log_prior > -INFINITY ? log_prior + counts_log_root(&s->prior, n) : log_prior;
}

/* `now`: log_size() of n as it is */
static void redraw_class(struct collapse *c, struct counts *s, int class, double *now) {
    const double most = c->size_prior->upper - (s->n - s->count[class]);
    const double to = counts_draw_alone(c, s, class, most), by = to - s->count[class];
    int accept = 1;
    if (by != 0) {
        const double phi = counts_log_phi(&s->prior, class, to);
        const double then = log_size(c, s, s->n + by);
        const double log_ratio =
            phi - s->log_phi[class] + then - *now - counts_gain_energy(c, s, s->targets.size, by);
        accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
        if (accept) {
            s->count[class] = to;
            s->log_phi[class] = phi;
            s->n += by;
            *now = then;
            counts_gain(s, class, by);
            counts_gain(s, s->targets.size, by);
        }
    }
    collapse_count(c, SIZE, accept);
}

/* Is the sd of n, as warmup saw it, above the noise that every class has? */
int counts_redraws(const struct counts *s) {
    if (s->variables > 1 || s->targets.coefficient || !size_slope_knows(&s->sizes.slope)) return 0;
    if (!(size_slope_spread(&s->sizes.slope) * s->weight > 1)) return 0;
    for (int i = 0; i < s->classes; ++i)
        if (s->targets.first[i] == s->targets.first[i + 1]) return 0;
    return 1;
}

/* Where warmup has seen that n is known well, one of the other moves goes with that. */
void counts_move_size(struct collapse *c, struct counts *s, int turn, int learning) {
    const int fine = turn / CYCLE % FINER == FINER - 1, knows = size_slope_knows(&s->sizes.slope);
    const enum size_move kind = s->variables > 1 && turn % CYCLE != 0 ? ONE_CLASS : ONE_CELL;
    if (counts_redraws(s)) {
        double now = log_size(c, s, s->n);
        for (int i = 0; i < s->classes; ++i)
            if (counts_is_open(&s->groups, i)) redraw_class(c, s, i, &now);
        if (turn % 2 != 0) renew_size(c, s);
        if (turn % CYCLE != 0) return;
    } else {
        for (int k = 0; k < RENEWALS && knows; ++k) renew_size(c, s);
    }
    if (knows && size_slope_share(&s->sizes.slope) < NARROW) {
        const int which = counts_choose(c->rng, s->classes + 1);
        if (which == s->classes)
            move_size(c, s, 0, ALL_CLASSES, fine, learning);
        else if (counts_is_open(&s->groups, which))
            move_size(c, s, which, kind, fine, learning);
        return;
    }
    for (int i = 0; i < s->classes; ++i)
        if (counts_is_open(&s->groups, i)) move_size(c, s, i, kind, fine, learning);
    move_size(c, s, 0, ALL_CLASSES, fine, learning);
    const int which = turn % (s->classes + 1);
    if (which == s->classes || counts_is_open(&s->groups, which)) multiply_size(c, s, which);
}
