/* Method "collapse", counts: a class and features that are independent of each
 * other given it (naive Bayes; without features a categorical variable), and a
 * release of counts that the class counts n_i and the counts n_ij of a feature's
 * levels by class determine: the margins class, feature, class x feature.
 *
 * State: that table of whole numbers, sum_j n_ij = n_i for every feature. The
 * probabilities are integrated out, so that the target is
 *
 *   n! prod_i phi(n_i) prod_{features, i} [ psi(n_i) prod_j phi(n_ij) ] eta(z | s),
 *
 * phi(n) = Gamma(a + n) / n! and psi(n) = n! / Gamma(a_1 + ... + a_L + n) for a Dirichlet prior;
 * known probabilities p have phi(n) = p^n / n!, psi(n) = n!. If n is unknown, the target has
 * psi(n) of the classes' probabilities in place of n!, and the prior of n.
 *
 * An iteration moves the table (table/naive_bayes_moves.c), then draws theta given it. If most of
 * theta's variance comes from its draw given the table, one sweep of moves is made before it,
 * otherwise the most.
 *
 * Without features, linear queries of the classes' counts may replace margins.
 *
 * Exact numbers: R finds groups of classes whose totals they determine; classes exchange records
 * only inside their group, and only the group that is in no exact number has births and
 * deaths. So no move changes exact numbers, and they have no energy.
 *
 * Invariant: `total` is the total of the table, in whole numbers, and does not drift. For queries
 * with fractions it is computed again at the start of each iteration. Cost: a sweep is O(cells),
 * whatever n.
 */
#include "table/naive_bayes.h"

#include "base/sticks.h"
#include "contract/model_update.h"
#include "mcmc/adapt.h"

/* the most sweeps of an iteration, and of one without features, which are cheap */
enum { SWEEPS = 3, SWEEPS_ALONE = 8 };
static int most_sweeps(const struct counts *s) { return s->variables > 1 ? SWEEPS : SWEEPS_ALONE; }

/* Variance of a count over that of theta's draw given it, in the same units: up to
 * here one sweep will do. */
static const double SMALL_SHARE = 0.2;

/* ---- set-up ------------------------------------------------------------------- */

static int read_variables(const struct fields *fields, struct counts *s) {
    s->variables = fields_length(fields, "levels");
    const double *levels = fields_vector(fields, "levels", s->variables);
    const double *known = fields_vector(fields, "known", s->variables);
    if (!levels || !known || s->variables < 1) return PLUGIN_BAD_FIELDS;
    s->classes = (int)levels[0];
    s->variable = plugin_memory((size_t)s->variables, sizeof *s->variable);
    for (int v = 0; v < s->variables; ++v) {
        struct counts_variable *variable = s->variable + v;
        variable->levels = (int)levels[v];
        variable->known = known[v] != 0;
        variable->at_cell = s->cells;
        variable->at_level = s->levels;
        variable->at_row = s->rows;
        s->cells += variable->levels * (v == 0 ? 1 : s->classes);
        if (v == 0) continue;
        s->levels += variable->levels;
        s->rows += s->classes;
    }
    return PLUGIN_OK;
}

/* The scale of a known row's Poisson counts cancels: a class's share of n. */
static void read_weights(struct counts *s, const double *alpha, const double *probability) {
    const double size = s->n / s->classes;
    s->prior.weights = cell_weights_new(s->cells + s->rows + 1, s->most);
    s->prior.cell = plugin_memory((size_t)s->cells, sizeof *s->prior.cell);
    s->prior.row = plugin_memory((size_t)s->rows, sizeof *s->prior.row);
    for (int v = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        const int known = variable->known;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            double sum = 0;
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                const double mean = size * (v == 0 ? s->classes : 1) * probability[cell];
                s->prior.cell[cell] = cell_weights_find(&s->prior.weights, known,
                                                        known ? fmax(mean, 1e-300) : alpha[cell]);
                sum += alpha[cell];
            }
            if (v > 0)
                s->prior.row[variable->at_row + r] =
                    cell_weights_find(&s->prior.weights, known, known ? size : sum);
            else
                s->prior.root = cell_weights_find(&s->prior.weights, known, known ? s->n : sum);
        }
    }
}

/* Can two cells be drawn again by the noise alone? Not if it is of several scales. */
static void read_kinks(const struct collapse *c, struct counts *s) {
    const int used = s->targets.first[s->targets.size]; /* n is the same for both */
    for (int k = 0; k < used; ++k) {
        const int j = s->targets.component[k];
        if (j >= c->noise.absolute ||
            c->noise.weight[j] != c->noise.weight[s->targets.component[0]])
            return;
    }
    int most = 0, most_level = 0;
    for (int t = 0; t < s->cells + s->levels; ++t) {
        const int count = s->targets.first[t + 1] - s->targets.first[t];
        int *most_of = t < s->cells ? &most : &most_level;
        if (count > *most_of) *most_of = count;
    }
    if (2 * (most + most_level) > MOST_KINKS) return;
    s->weight = used > 0 ? c->noise.weight[s->targets.component[0]] : 0;
    if (s->weight == 0) return;
    for (int k = 1; k <= MOST_KINKS; ++k) s->geometric[k] = -1 / expm1(-k * s->weight);
}

static int is_loose(const struct collapse *c, const struct counts *s, int cell) {
    int hidden = 0;
    for (int k = s->targets.first[cell]; k < s->targets.first[cell + 1]; ++k) {
        const int j = s->targets.component[k] - c->noise.separable;
        if (j < 0) return 0;
        if (isfinite(c->noise.published.lower[j]) || !isfinite(c->noise.published.upper[j]))
            return 0;
        ++hidden;
    }
    return hidden;
}

static void read_loose(const struct collapse *c, struct counts *s) {
    int count = 0;
    s->loose.level = plugin_memory((size_t)s->cells, sizeof *s->loose.level);
    s->loose.first = plugin_memory((size_t)s->rows + 2, sizeof *s->loose.first);
    for (int v = 0, row = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            for (int l = 0; l < variable->levels; ++l)
                if (is_loose(c, s, variable->at_cell + r * variable->levels + l))
                    s->loose.level[count++] = l;
            s->loose.first[++row] = count;
        }
    }
    if (count == 0) s->loose.level = NULL;
    for (int j = 0; j < c->noise.noisy - c->noise.separable; ++j)
        if (isfinite(c->noise.published.upper[j]) && !isfinite(c->noise.published.lower[j]))
            s->loose.most =
                fmax(s->loose.most, c->noise.published.upper[j] + c->noise.published.scale[j]);
}

/* of births and deaths: of a cell and of all a class has, and of all classes */
static int size_scales(const struct counts *s) { return 2 * s->classes + 1; }

static int prepare_size(const struct fields *fields, struct counts *s) {
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread) return PLUGIN_BAD_FIELDS;
    s->sizes.spread = *spread;
    s->sizes.part = doubles((size_t)s->classes);
    s->sizes.class = plugin_memory((size_t)s->classes, sizeof *s->sizes.class);
    for (int i = 0; i < s->classes; ++i) s->sizes.class[i] = i;
    s->changes.cell = plugin_memory((size_t)s->cells, sizeof *s->changes.cell);
    s->changes.level = plugin_memory((size_t)s->cells, sizeof *s->changes.level);
    s->changes.by = plugin_memory((size_t)s->cells, sizeof *s->changes.by);
    return PLUGIN_OK;
}

/* Groups of classes, a list of each. */
static int read_groups(const struct fields *fields, struct counts *s) {
    s->groups.count = fields_length(fields, "group_total");
    if (s->groups.count <= 0) {
        s->groups.count = 0;
        return PLUGIN_OK;
    }
    const double *group = fields_vector(fields, "group", s->classes);
    s->groups.total = fields_vector(fields, "group_total", s->groups.count);
    if (!group) return PLUGIN_BAD_FIELDS;
    s->groups.of = plugin_memory((size_t)s->classes, sizeof *s->groups.of);
    s->groups.at = plugin_memory((size_t)s->classes, sizeof *s->groups.at);
    s->groups.first = plugin_memory((size_t)s->groups.count + 1, sizeof *s->groups.first);
    s->groups.class = plugin_memory((size_t)s->classes, sizeof *s->groups.class);
    int count = 0;
    for (int g = 0; g < s->groups.count; ++g) {
        for (int i = 0; i < s->classes; ++i)
            if ((int)group[i] == g) {
                s->groups.of[i] = g;
                s->groups.at[i] = count - s->groups.first[g];
                s->groups.class[count++] = i;
            }
        s->groups.first[g + 1] = count;
    }
    return count == s->classes ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

/* The components of each target but the exact ones, which no move changes, and of queries their
 * coefficients. */
static int read_targets(const struct fields *fields, const struct collapse *c, struct counts *s) {
    const int given = fields_length(fields, "target"), targets = s->targets.size + 1;
    const double *target = fields_vector(fields, "target", given);
    const double *component = fields_vector(fields, "component", given);
    const double *coefficient = fields_vector(fields, "coefficient", given);
    const int entries = component ? given : c->noise.noisy;
    if (!target || (component && !coefficient) || (!component && given != c->noise.size))
        return PLUGIN_BAD_FIELDS;
    s->targets.first = plugin_memory((size_t)targets + 1, sizeof *s->targets.first);
    s->targets.component = plugin_memory((size_t)entries, sizeof *s->targets.component);
    double *sorted = component ? plugin_memory((size_t)entries, sizeof *sorted) : NULL;
    for (int e = 0; e < entries; ++e) ++s->targets.first[(int)target[e] + 1];
    for (int t = 0; t < targets; ++t) s->targets.first[t + 1] += s->targets.first[t];
    for (int e = entries - 1; e >= 0; --e) { /* fills each target from its end */
        int at = s->targets.first[(int)target[e] + 1] - 1;
        while (s->targets.component[at] != 0) --at;
        s->targets.component[at] = 1 + (component ? (int)component[e] : e);
        if (sorted) sorted[at] = coefficient[e];
    }
    for (int e = 0; e < entries; ++e) --s->targets.component[e];
    s->targets.coefficient = sorted;
    return PLUGIN_OK;
}

/* Fields: levels and known, one a variable; alpha and probability, one a cell;
 * target, of every component the cell, cells + the feature's level, or after all levels n, or,
 * with linear queries of the classes, of every entry, and then its component and its coefficient;
 * with exact numbers group, of every class, and group_total, below 0 for what is not settled;
 * where n is unknown size_spread, the sd of its start about the n that is given. */
static int create(const struct fields *fields, struct collapse *c) {
    struct counts *s = plugin_memory(1, sizeof *s);
    s->n = c->n;
    s->most = c->size_prior ? c->size_prior->upper : c->n;
    if (read_variables(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const double *alpha = fields_vector(fields, "alpha", s->cells);
    const double *probability = fields_vector(fields, "probability", s->cells);
    if (!alpha || !probability) return PLUGIN_BAD_FIELDS;
    if (c->model.complete != s->cells) return PLUGIN_BAD_FIELDS;
    read_weights(s, alpha, probability);
    s->targets.size = s->cells + s->levels;
    if (read_targets(fields, c, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    read_kinks(c, s);
    if (c->noise.separable < c->noise.noisy) read_loose(c, s);
    if (read_groups(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const size_t cells = (size_t)s->cells, levels = (size_t)s->levels + 1;
    s->log_phi = doubles(cells);
    s->log_psi = doubles((size_t)s->rows);
    s->total = doubles((size_t)c->noise.size);
    DOUBLES(levels, &s->from.part, &s->to.part, &s->from.phi, &s->to.phi);
    DOUBLES((size_t)s->variables, &s->from.psi, &s->to.psi);
    if (c->size_prior && prepare_size(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    c->self = s;
    c->stored =
        6 * s->cells + 2 * s->classes + 2 +
        (c->size_prior ? 2 * size_scales(s) + s->classes + (int)size_slope_stored(s->classes) : 0);
    return PLUGIN_OK;
}

/* ---- state ------------------------------------------------------------------------ */

static void attach(const struct collapse *c) {
    struct counts *s = c->self;
    double *at = c->store;
    s->count = at, at += s->cells;
    s->units.scale = at, at += s->cells;
    s->units.tries = at, at += s->cells;
    s->window.mean = at, at += s->cells;
    s->window.square = at, at += s->cells;
    s->share = at, at += s->cells;
    s->split.scale = at, at += s->classes;
    s->split.tries = at, at += s->classes;
    s->window.seen = at, at += 1;
    s->sweeps = at, at += 1;
    if (!c->size_prior) return;
    s->sizes.scale = at, at += size_scales(s);
    s->sizes.tries = at, at += size_scales(s);
    s->sizes.share = at, at += s->classes;
    size_slope_attach(&s->sizes.slope, s->classes, s->sizes.class, at);
}

static double class_sum(const struct counts *s, const double *of) {
    double sum = 0;
    for (int i = 0; i < s->classes; ++i) sum += of[i];
    return sum;
}

static void sum_up(const struct collapse *c) {
    struct counts *s = c->self;
    memset(s->total, 0, (size_t)c->noise.noisy * sizeof(double));
    for (int k = c->noise.noisy; k < c->noise.size; ++k) s->total[k] = c->noise.released[k];
    counts_gain(s, s->targets.size, s->n);
    for (int v = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int k = 0; k < variable->levels * (v == 0 ? 1 : s->classes); ++k) {
            const int cell = variable->at_cell + k;
            counts_gain(s, cell, s->count[cell]);
            if (v > 0)
                counts_gain(s, s->cells + variable->at_level + k % variable->levels,
                            s->count[cell]);
        }
    }
}

static void load(struct collapse *c) {
    struct counts *s = c->self;
    attach(c);
    if (c->size_prior) s->n = class_sum(s, s->count);
    sum_up(c);
    for (int v = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            if (v > 0)
                s->log_psi[variable->at_row + r] =
                    counts_log_psi(&s->prior, variable->at_row + r, s->count[r]);
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                s->log_phi[cell] = counts_log_phi(&s->prior, cell, s->count[cell]);
            }
        }
    }
}

static void equal_shares(struct counts *s) {
    for (int v = 1; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int k = 0; k < s->classes * variable->levels; ++k)
            s->share[variable->at_cell + k] = 1.0 / variable->levels;
    }
}

/* records in classes whose number does not change */
static double settled_records(const struct class_groups *groups) {
    double sum = 0;
    for (int g = 0; g < groups->count; ++g) sum += fmax(groups->total[g], 0);
    return sum;
}

/* Class counts of the groups, with the probabilities that the sticks have inside each. */
static void start_groups(struct rng *rng, struct counts *s, const double *stick) {
    double left = 1;
    for (int i = 0; i < s->classes; ++i) {
        const double share = i < s->classes - 1 ? stick_share(stick[i]) : 1;
        s->count[i] = left * share;
        left *= 1 - share;
    }
    for (int g = 0; g < s->groups.count; ++g) {
        const int first = s->groups.first[g], end = s->groups.first[g + 1];
        const int *member = s->groups.class;
        double records = s->groups.total[g], sum = 0;
        if (records < 0) records = s->n - settled_records(&s->groups);
        for (int k = first; k < end; ++k) sum += s->count[member[k]];
        for (int k = first; k < end; ++k) {
            const double own = s->count[member[k]];
            const double share = k == end - 1 ? 1 : sum > 0 ? fmin(own / sum, 1) : 0.5;
            dist_binomial_fill(rng, share, 1, &records, s->count + member[k]);
            records -= s->count[member[k]];
            sum -= own;
        }
    }
}

static void start_size(const struct collapse *c, struct counts *s) {
    const double n = rint(c->n + s->sizes.spread * rng_normal(c->rng));
    const double least = fmax(c->size_prior->lower, settled_records(&s->groups));
    int open = 0;
    s->n = fmin(fmax(n, least), c->size_prior->upper);
    for (int k = 0; k < size_scales(s); ++k) s->sizes.scale[k] = 1;
    for (int i = 0; i < s->classes; ++i) open += counts_is_open(&s->groups, i);
    for (int i = 0; i < s->classes; ++i)
        s->sizes.share[i] = counts_is_open(&s->groups, i) ? 1.0 / open : 0;
}

static void start(struct collapse *c) {
    struct counts *s = c->self;
    attach(c);
    const double *stick = c->theta;
    if (c->size_prior) start_size(c, s);
    if (s->groups.count > 0) start_groups(c->rng, s, stick);
    for (int v = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            if (v > 0 || s->groups.count == 0)
                cells_draw(c->rng, variable->levels, stick, v == 0 ? s->n : s->count[r],
                           s->count + variable->at_cell + r * variable->levels);
            stick += variable->levels - 1;
        }
    }
    for (int k = 0; k < s->cells; ++k) s->units.scale[k] = 1;
    for (int k = 0; k < s->classes; ++k) s->split.scale[k] = 1;
    equal_shares(s);
    *s->sweeps = most_sweeps(s);
}

/* ---- learning, an iteration -------------------------------------------------------------- */

/* of a count's variance in that of theta's draw given it, n p (1 - p) */
static double largest_share(const struct counts *s) {
    double largest = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        if (variable->known) continue;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r)
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                const double all = v == 0 ? s->n : s->window.mean[r];
                const double own = s->window.mean[cell] * (1 - s->window.mean[cell] / all);
                const double share = s->window.square[cell] / (*s->window.seen * (own + 1));
                if (all > 0 && share > largest) largest = share;
            }
    }
    return largest;
}

/* Shares of the classes in what n grows by: as their counts go with n, where that tells. */
static void learn_size(struct counts *s) {
    double all = 0, sum = 0;
    for (int i = 0; i < s->classes; ++i)
        all += counts_is_open(&s->groups, i) ? s->window.mean[i] : 0;
    for (int i = 0; i < s->classes && all > 0; ++i)
        s->sizes.share[i] = counts_is_open(&s->groups, i) ? s->window.mean[i] / all : 0;
    size_slope_close(&s->sizes.slope);
    for (int i = 0; i < s->classes; ++i)
        sum += counts_is_open(&s->groups, i) ? fmax(s->sizes.slope.slope[i], 0) : 0;
    for (int i = 0; i < s->classes && sum > 0; ++i)
        s->sizes.share[i] =
            counts_is_open(&s->groups, i) ? fmax(s->sizes.slope.slope[i], 0) / sum : 0;
    memset(s->sizes.tries, 0, (size_t)size_scales(s) * sizeof(double));
}

static void learn(struct collapse *c, int iteration, int warmup) {
    struct counts *s = c->self;
    *s->window.seen += 1;
    for (int k = 0; k < s->cells; ++k) {
        const double off = s->count[k] - s->window.mean[k];
        s->window.mean[k] += off / *s->window.seen;
        s->window.square[k] += off * (s->count[k] - s->window.mean[k]);
    }
    if (c->size_prior) size_slope_saw(&s->sizes.slope, s->n, log(s->n + 0.5), s->count);
    if (!adapt_window(iteration, warmup)) return;
    *s->sweeps = largest_share(s) > SMALL_SHARE ? most_sweeps(s) : 1;
    if (c->size_prior) learn_size(s);
    for (int v = 1; v < s->variables; ++v) {
        const struct counts_variable *variable = s->variable + v;
        for (int r = 0; r < s->classes; ++r)
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                if (s->window.mean[r] > 0)
                    s->share[cell] = s->window.mean[cell] / s->window.mean[r];
            }
    }
    memset(s->units.tries, 0, (size_t)s->cells * sizeof(double));
    memset(s->split.tries, 0, (size_t)s->classes * sizeof(double));
    memset(s->window.mean, 0, (size_t)s->cells * sizeof(double));
    memset(s->window.square, 0, (size_t)s->cells * sizeof(double));
    *s->window.seen = 0;
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct counts *s = c->self;
    const int learning = iteration < warmup;
    double before[COLLAPSE_COUNTERS], made = 0, kept = 0;
    memcpy(before, c->counter, sizeof before);
    if (s->targets.coefficient) sum_up(c); /* sums of fractions drift */
    const int sweeps = (int)*s->sweeps, first = iteration % (CYCLE * FINER) * sweeps;
    for (int k = 0; k < sweeps; ++k) {
        if (!c->size_prior || (first + k) % 2 == 0 || !counts_redraws(s))
            counts_sweep(c, s, first + k, learning);
        if (c->size_prior) counts_move_size(c, s, first + k, learning);
    }
    for (int k = 0; k < COLLAPSE_COUNTERS; k += 2) {
        made += c->counter[k + MADE] - before[k + MADE];
        kept += c->counter[k + ACCEPTED] - before[k + ACCEPTED];
    }
    *accepted = made > 0 ? kept / made : 1;
    if (learning) learn(c, iteration, warmup);
    return c->model.update->rtheta(c->model.self, s->count, s->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct counts *s = c->self;
    memcpy(out, s->total, (size_t)c->noise.size * sizeof(double));
}

static double records(const struct collapse *c) {
    const struct counts *s = c->self;
    return s->n;
}

static double work(const struct collapse *c) {
    const struct counts *s = c->self;
    return 50.0 * most_sweeps(s) * (3.0 * s->cells + 10);
}

const struct collapse_class collapse_counts = {
    .name = "counts",
    .counters =
        {
            [2 * WITHIN + MADE] = "within_made",
            [2 * WITHIN + ACCEPTED] = "within_accepted",
            [2 * BETWEEN + MADE] = "between_made",
            [2 * BETWEEN + ACCEPTED] = "between_accepted",
            [2 * SPLIT + MADE] = "split_made",
            [2 * SPLIT + ACCEPTED] = "split_accepted",
            [2 * SIZE + MADE] = "size_made",
            [2 * SIZE + ACCEPTED] = "size_accepted",
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .records = records,
    .work = work,
};
