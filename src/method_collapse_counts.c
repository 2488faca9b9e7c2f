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
 * phi(n) = Gamma(a + n) / n! and psi(n) = n! / Gamma(a_1 + ... + a_L + n) for a
 * Dirichlet prior; known probabilities p have phi(n) = p^n / n!, psi(n) = n!.
 *
 * Moves, the first three symmetric, so accepted by the ratio of the target:
 * 1. within a row (a feature's counts in one class): d units from cell to cell;
 * 2. between classes: d units with one cell of every feature;
 * 3. the same with d split over a row's cells in proportions that warmup learned,
 *    which goes far where the proportions are well known;
 * 4. two cells of a row drawn given their sum, by the noise alone: Laplace noise
 *    of one scale makes that a distribution of geometric pieces. Accepted by the ratio of
 *    phi, which hardly changes over the width of the noise where records are many.
 * d is geometric-like, its scale learned in warmup; the sweeps of every eighth
 * CYCLE are on a finer scale, for cells near 0. Then theta is drawn given the table. Where most of
 * theta's spread is that of its draw given any table, one sweep is made before it,
 * else SWEEPS.
 *
 * Invariant: `total` is what the table implies, in whole numbers: nothing drifts.
 * Cost: O(1) a move of kinds 1 and 4, O(features) and O(cells of two classes) for 2
 * and 3.
 */
#include "adapt.h"
#include "dist.h"
#include "method_collapse.h"
#include "sticks.h"

/* kinds of moves that are counted */
enum { WITHIN, BETWEEN, SPLIT };

/* counts below TABLE are looked up, for the first MOST_TABLES distributions */
enum { TABLE = 1024, MOST_TABLES = 64, SWEEPS = 3 };

/* One sweep in CYCLE walks within rows, one has moves of kind 2. */
enum { CYCLE = 4, FINER = 8, MOST_KINKS = 8 };

/* acceptance rate that the scales aim at */
static const double TARGET = 0.4;

/* Variance of a count over that of theta's draw given it, in the same units: up to
 * here one sweep will do. */
static const double SMALL_SHARE = 0.2;

/* log phi of a cell. Dirichlet weight alpha, or a known probability: then
 * relative to Poisson counts of mean `mean`, which keeps the numbers small. */
struct distribution {
    double value; /* alpha or the mean */
    struct dist_rising rising;
    const double *table;
    int known;
};

struct variable {
    int levels, at_cell, at_level, at_row, known;
};

struct counts {
    int variables, classes, cells, levels, rows;
    struct variable *variable;
    struct distribution *distribution; /* one after the other; cells and rows refer to them */
    int distributions, tables;
    int *cell_distribution, *row_distribution; /* rows: of the features, class by class */
    /* components that a cell, then those that a feature's level is part of */
    int *first, *component;
    double n;
    double weight; /* of the noise of all components; 0: differs, or is not Laplace */
    double geometric[MOST_KINKS + 1]; /* 1 / (1 - exp(-k weight)) */

    /* state: the table, and scales of d; of the class cells, for kinds 2 and 3 */
    double *count, *scale, *split_scale, *tries, *split_tries;
    double *mean, *square; /* of the counts in a window: average, squares about it */
    double *share;         /* of a row, for moves of kind 3 */
    double *seen, *sweeps;

    /* follows from the state */
    double *log_phi, *log_psi, *total;

    /* workspace */
    double *part_from, *part_to, *phi_from, *phi_to; /* a level */
    double *psi_from, *psi_to;                       /* a variable */
};

/* ---- log phi ------------------------------------------------------------------ */

static double log_phi_computed(const struct distribution *distribution, double n) {
    return distribution->known ? dist_log_poisson(n, distribution->value)
                               : dist_log_rising(&distribution->rising, n);
}

static inline double log_phi(const struct distribution *distribution, double n) {
    return distribution->table && n < TABLE ? distribution->table[(int)n]
                                            : log_phi_computed(distribution, n);
}

static int find_distribution(struct counts *s, int known, double value, double n) {
    for (int k = s->distributions - 1; k >= 0 && k >= s->distributions - MOST_TABLES; --k) {
        const struct distribution *distribution = s->distribution + k;
        if (distribution->known == known && distribution->value == value) return k;
    }
    struct distribution *distribution = s->distribution + s->distributions;
    distribution->known = known;
    distribution->value = value;
    if (!known) dist_rising_set(&distribution->rising, value);
    if (s->tables++ < MOST_TABLES) {
        double *table = plugin_memory(TABLE, sizeof *table);
        for (int k = 0; k < TABLE && k <= n; ++k) table[k] = log_phi_computed(distribution, k);
        distribution->table = table;
    }
    return s->distributions++;
}

/* ---- set-up ------------------------------------------------------------------- */

static int read_variables(const struct fields *fields, struct counts *s) {
    s->variables = fields_length(fields, "levels");
    const double *levels = fields_vector(fields, "levels", s->variables);
    const double *known = fields_vector(fields, "known", s->variables);
    if (!levels || !known || s->variables < 1) return PLUGIN_BAD_FIELDS;
    s->classes = (int)levels[0];
    s->variable = plugin_memory((size_t)s->variables, sizeof *s->variable);
    for (int v = 0; v < s->variables; ++v) {
        struct variable *variable = s->variable + v;
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
static void read_distributions(struct counts *s, const double *alpha, const double *probability) {
    const double size = s->n / s->classes;
    s->distribution = plugin_memory((size_t)(s->cells + s->rows), sizeof *s->distribution);
    s->cell_distribution = plugin_memory((size_t)s->cells, sizeof *s->cell_distribution);
    s->row_distribution = plugin_memory((size_t)s->rows, sizeof *s->row_distribution);
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const int known = variable->known;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            double sum = 0;
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                const double mean = size * (v == 0 ? s->classes : 1) * probability[cell];
                s->cell_distribution[cell] =
                    find_distribution(s, known, known ? fmax(mean, 1e-300) : alpha[cell], s->n);
                sum += alpha[cell];
            }
            if (v > 0)
                s->row_distribution[variable->at_row + r] =
                    find_distribution(s, known, known ? size : sum, s->n);
        }
    }
}

/* Can two cells be drawn anew by the noise alone? Not if it is of several scales. */
static void read_kinks(const struct collapse *c, struct counts *s) {
    for (int k = 0; k < c->size; ++k)
        if (k >= c->absolute || c->weight[k] != c->weight[0]) return;
    int most = 0, most_level = 0;
    for (int t = 0; t < s->cells + s->levels; ++t) {
        const int count = s->first[t + 1] - s->first[t];
        int *most_of = t < s->cells ? &most : &most_level;
        if (count > *most_of) *most_of = count;
    }
    if (2 * (most + most_level) > MOST_KINKS) return;
    s->weight = c->weight[0];
    for (int k = 1; k <= MOST_KINKS; ++k) s->geometric[k] = -1 / expm1(-k * s->weight);
}

/* Fields: levels and known, one a variable; alpha and probability, one a cell;
 * target, of every component the cell, or cells + the feature's level. */
static int create(const struct fields *fields, struct collapse *c) {
    struct counts *s = plugin_memory(1, sizeof *s);
    s->n = c->n;
    if (read_variables(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const double *alpha = fields_vector(fields, "alpha", s->cells);
    const double *probability = fields_vector(fields, "probability", s->cells);
    const double *target = fields_vector(fields, "target", c->size);
    if (!alpha || !probability || !target) return PLUGIN_BAD_FIELDS;
    if (c->model.complete != s->cells) return PLUGIN_BAD_FIELDS;
    read_distributions(s, alpha, probability);
    const int targets = s->cells + s->levels;
    s->first = plugin_memory((size_t)targets + 1, sizeof *s->first);
    s->component = plugin_memory((size_t)c->size, sizeof *s->component);
    for (int k = 0; k < c->size; ++k) ++s->first[(int)target[k] + 1];
    for (int t = 0; t < targets; ++t) s->first[t + 1] += s->first[t];
    for (int k = c->size - 1; k >= 0; --k) { /* fills each target from its end */
        int at = s->first[(int)target[k] + 1] - 1;
        while (s->component[at] != 0) --at;
        s->component[at] = k + 1;
    }
    for (int k = 0; k < c->size; ++k) --s->component[k];
    read_kinks(c, s);
    const size_t cells = (size_t)s->cells, levels = (size_t)s->levels + 1;
    s->log_phi = plugin_memory(cells, sizeof(double));
    s->log_psi = plugin_memory((size_t)s->rows, sizeof(double));
    s->total = plugin_memory((size_t)c->size, sizeof(double));
    double **const work[] = {&s->part_from, &s->part_to, &s->phi_from, &s->phi_to};
    for (int k = 0; k < 4; ++k) *work[k] = plugin_memory(levels, sizeof(double));
    s->psi_from = plugin_memory((size_t)s->variables, sizeof(double));
    s->psi_to = plugin_memory((size_t)s->variables, sizeof(double));
    c->self = s;
    c->stored = 6 * s->cells + 2 * s->classes + 2;
    return PLUGIN_OK;
}

/* ---- state ------------------------------------------------------------------------ */

static void attach(const struct collapse *c) {
    struct counts *s = c->self;
    double *at = c->store;
    s->count = at, at += s->cells;
    s->scale = at, at += s->cells;
    s->tries = at, at += s->cells;
    s->mean = at, at += s->cells;
    s->square = at, at += s->cells;
    s->share = at, at += s->cells;
    s->split_scale = at, at += s->classes;
    s->split_tries = at, at += s->classes;
    s->seen = at, at += 1;
    s->sweeps = at;
}

static void load(struct collapse *c) {
    struct counts *s = c->self;
    attach(c);
    memset(s->total, 0, (size_t)c->size * sizeof(double));
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            if (v > 0)
                s->log_psi[variable->at_row + r] = -log_phi(
                    s->distribution + s->row_distribution[variable->at_row + r], s->count[r]);
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                s->log_phi[cell] =
                    log_phi(s->distribution + s->cell_distribution[cell], s->count[cell]);
                for (int k = s->first[cell]; k < s->first[cell + 1]; ++k)
                    s->total[s->component[k]] += s->count[cell];
                if (v == 0) continue;
                const int level = s->cells + variable->at_level + l;
                for (int k = s->first[level]; k < s->first[level + 1]; ++k)
                    s->total[s->component[k]] += s->count[cell];
            }
        }
    }
}

static void save(struct collapse *c) { (void)c; /* the table is the state's own */ }

/* Multinomial counts of `total` in a row of theta's sticks (sticks.h): each level
 * against those after it. */
static void draw_row(struct rng *rng, int levels, const double *stick, double total,
                     double *count) {
    double left = total;
    for (int l = 0; l < levels - 1; ++l) {
        dist_binomial_fill(rng, stick_share(stick[l]), 1, &left, count + l);
        left -= count[l];
    }
    count[levels - 1] = left;
}

static void equal_shares(struct counts *s) {
    for (int v = 1; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int k = 0; k < s->classes * variable->levels; ++k)
            s->share[variable->at_cell + k] = 1.0 / variable->levels;
    }
}

static void start(struct collapse *c) {
    struct counts *s = c->self;
    attach(c);
    const double *stick = c->theta;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            draw_row(c->rng, variable->levels, stick, v == 0 ? s->n : s->count[r],
                     s->count + variable->at_cell + r * variable->levels);
            stick += variable->levels - 1;
        }
    }
    for (int k = 0; k < s->cells; ++k) s->scale[k] = 1;
    for (int k = 0; k < s->classes; ++k) s->split_scale[k] = 1;
    equal_shares(s);
    *s->sweeps = SWEEPS;
}

/* ---- moves --------------------------------------------------------------------------- */

/* change of energy when a target (a cell or a level) gains `by` */
static inline double gain_energy(const struct collapse *c, const struct counts *s, int target,
                                 double by) {
    double change = 0;
    for (int k = s->first[target]; k < s->first[target + 1]; ++k) {
        const int j = s->component[k];
        const double residual = c->released[j] - s->total[j];
        change += collapse_kernel(c, j, residual - by) - collapse_kernel(c, j, residual);
    }
    return change;
}

static inline void gain(struct counts *s, int target, double by) {
    for (int k = s->first[target]; k < s->first[target + 1]; ++k) s->total[s->component[k]] += by;
}

/* one of 0..count-1 */
static inline int choose(struct rng *rng, int count) {
    return (int)((rng_bits(rng) >> 32) * (uint64_t)count >> 32);
}

static inline int choose_other(struct rng *rng, int count, int one) {
    const int other = choose(rng, count - 1);
    return other + (other >= one);
}

static inline double draw_units(struct rng *rng, double scale) {
    return 1 + floor(scale * rng_exponential(rng));
}

/* Robbins & Monro */
static void learn_scale(double *scale, double *tries, int accept, double most) {
    *tries += 1;
    const double learned = *scale * exp(2 / (1 + sqrt(*tries)) * (accept - TARGET));
    *scale = learned < 0.1 ? 0.1 : learned > most ? most : learned;
}

/* The smaller scale of two cells is used and learned from: it is the other
 * cell's that a move leaves unlimited. */
static inline int smaller(const double *scale, int a, int b) { return scale[b] < scale[a] ? b : a; }

static void keep_within(struct counts *s, int v, int from, int to, double d, double phi_left,
                        double phi_entered) {
    const struct variable *variable = s->variable + v;
    const int level_of = s->cells + variable->at_level - variable->at_cell;
    const int row = (from - variable->at_cell) / variable->levels * variable->levels;
    s->count[from] -= d;
    s->count[to] += d;
    s->log_phi[from] = phi_left;
    s->log_phi[to] = phi_entered;
    gain(s, from, -d);
    gain(s, to, d);
    gain(s, level_of + from - row, -d);
    gain(s, level_of + to - row, d);
}

/* d units from cell `from` to cell `to` of feature v, both of one class */
static void move_within(struct collapse *c, struct counts *s, int v, int row, int level, int fine,
                        int learning) {
    const struct variable *variable = s->variable + v;
    const int start = variable->at_cell + row * variable->levels;
    const int other = choose_other(c->rng, variable->levels, level);
    const int learner = smaller(s->scale, start + level, start + other);
    double d = draw_units(c->rng, s->scale[learner] * (fine ? 1.0 / 16 : 1));
    if (rng_bits(c->rng) >> 63) d = -d;
    const int from = start + level, to = start + other;
    const double left = s->count[from] - d, entered = s->count[to] + d;
    double log_ratio = -INFINITY, phi_left = 0, phi_entered = 0;
    if (left >= 0 && entered >= 0) {
        phi_left = log_phi(s->distribution + s->cell_distribution[from], left);
        phi_entered = log_phi(s->distribution + s->cell_distribution[to], entered);
        const int level_from = s->cells + variable->at_level + level;
        const int level_to = s->cells + variable->at_level + other;
        log_ratio = (phi_left - s->log_phi[from]) + (phi_entered - s->log_phi[to]) -
                    gain_energy(c, s, from, -d) - gain_energy(c, s, to, d) -
                    gain_energy(c, s, level_from, -d) - gain_energy(c, s, level_to, d);
    }
    const int accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
    collapse_count(c, WITHIN, accept);
    if (learning && !fine) learn_scale(s->scale + learner, s->tries + learner, accept, s->n);
    if (accept) keep_within(s, v, from, to, d, phi_left, phi_entered);
}

/* ---- fresh counts of two cells ---------------------------------------------------------- */

/* Where the noise of a target's components is 0, as counts of the first of two
 * cells, now `count`; `direction` is 1 if the target grows with it, else -1. Kinks
 * are kept in rising order. Returns how many there are. */
static inline int add_kinks(const struct collapse *c, const struct counts *s, int target,
                            double count, int direction, int kinks, double *kink) {
    for (int k = s->first[target]; k < s->first[target + 1]; ++k) {
        const int j = s->component[k];
        const double at = count + direction * (c->released[j] - s->total[j]);
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
    if (pieces == 0) return 0; /* never: one ends at `most`; said for analysers */
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

/* Two cells of one row drawn anew given their sum, by the noise alone; accepted by
 * the rest. */
static void move_fresh(struct collapse *c, struct counts *s, int v, int row, int level) {
    const struct variable *variable = s->variable + v;
    const int start = variable->at_cell + row * variable->levels;
    const int other = choose_other(c->rng, variable->levels, level);
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
        const double phi_a = log_phi(s->distribution + s->cell_distribution[a], to);
        const double phi_b = log_phi(s->distribution + s->cell_distribution[b], most - to);
        const double log_ratio = (phi_a - s->log_phi[a]) + (phi_b - s->log_phi[b]);
        accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
        if (accept) keep_within(s, v, a, b, d, phi_a, phi_b);
    }
    collapse_count(c, WITHIN, accept);
}

/* d units in the proportions of a row's shares; the parts sum to d */
static void split_units(int levels, const double *share, double d, double *part) {
    double sum = 0, before = 0;
    for (int l = 0; l < levels - 1; ++l) {
        sum += share[l];
        const double upto = fmin(floor(d * sum + 0.5), d);
        part[l] = upto - before;
        before = upto;
    }
    part[levels - 1] = d - before;
}

static void all_units(struct rng *rng, int levels, double d, double *part) {
    memset(part, 0, (size_t)levels * sizeof(double));
    part[choose(rng, levels)] = d;
}

/* log ratio of the cells of feature v when `part_from` leaves class `from` and
 * `part_to` enters class `to`; their new log phi at phi_from and phi_to */
static double carry_feature(const struct collapse *c, const struct counts *s, int v, int from,
                            int to) {
    const struct variable *variable = s->variable + v;
    const int at_from = variable->at_cell + from * variable->levels;
    const int at_to = variable->at_cell + to * variable->levels;
    const int at = variable->at_level;
    double log_ratio = 0;
    for (int l = 0; l < variable->levels; ++l) {
        const double leaves = s->part_from[at + l], enters = s->part_to[at + l];
        const int a = at_from + l, b = at_to + l;
        if (leaves != 0) {
            const double left = s->count[a] - leaves;
            if (left < 0) return -INFINITY;
            s->phi_from[at + l] = log_phi(s->distribution + s->cell_distribution[a], left);
            log_ratio += s->phi_from[at + l] - s->log_phi[a] - gain_energy(c, s, a, -leaves);
        }
        if (enters != 0) {
            s->phi_to[at + l] =
                log_phi(s->distribution + s->cell_distribution[b], s->count[b] + enters);
            log_ratio += s->phi_to[at + l] - s->log_phi[b] - gain_energy(c, s, b, enters);
        }
        if (leaves != enters) log_ratio -= gain_energy(c, s, s->cells + at + l, enters - leaves);
    }
    return log_ratio;
}

static void keep_feature(struct counts *s, int v, int from, int to) {
    const struct variable *variable = s->variable + v;
    const int at = variable->at_level;
    for (int l = 0; l < variable->levels; ++l) {
        const double leaves = s->part_from[at + l], enters = s->part_to[at + l];
        const int a = variable->at_cell + from * variable->levels + l;
        const int b = variable->at_cell + to * variable->levels + l;
        if (leaves != 0) {
            s->count[a] -= leaves;
            s->log_phi[a] = s->phi_from[at + l];
            gain(s, a, -leaves);
        }
        if (enters != 0) {
            s->count[b] += enters;
            s->log_phi[b] = s->phi_to[at + l];
            gain(s, b, enters);
        }
        if (leaves != enters) gain(s, s->cells + at + l, enters - leaves);
    }
}

/* log psi of n records in a row of feature v; `before` is that of the feature
 * before it, often of the same distribution */
static double psi_of(const struct counts *s, int v, int row, double n, double before) {
    if (v > 1 && s->row_distribution[row] == s->row_distribution[row - s->classes]) return before;
    return -log_phi(s->distribution + s->row_distribution[row], n);
}

/* d units from one class to another, with their features */
static void move_between(struct collapse *c, struct counts *s, int one, int kind, int fine,
                         int learning) {
    const int split = kind == SPLIT;
    double *scale = split ? s->split_scale : s->scale;
    const int other = choose_other(c->rng, s->classes, one);
    const int learner = smaller(scale, one, other);
    const double d = draw_units(c->rng, scale[learner] * (fine ? 1.0 / 16 : 1));
    const int forth = (int)(rng_bits(c->rng) >> 63);
    const int from = forth ? one : other, to = forth ? other : one;
    for (int v = 1; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        const int levels = variable->levels, at = variable->at_level;
        const double *share = s->share + variable->at_cell;
        if (split) {
            split_units(levels, share + from * levels, d, s->part_from + at);
            split_units(levels, share + to * levels, d, s->part_to + at);
        } else {
            all_units(c->rng, levels, d, s->part_from + at);
            all_units(c->rng, levels, d, s->part_to + at);
        }
    }
    const double left = s->count[from] - d, entered = s->count[to] + d;
    double log_ratio = -INFINITY, phi_left = 0, phi_entered = 0, psi_left = 0, psi_entered = 0;
    if (left >= 0) {
        phi_left = log_phi(s->distribution + s->cell_distribution[from], left);
        phi_entered = log_phi(s->distribution + s->cell_distribution[to], entered);
        log_ratio = (phi_left - s->log_phi[from]) + (phi_entered - s->log_phi[to]) -
                    gain_energy(c, s, from, -d) - gain_energy(c, s, to, d);
    }
    for (int v = 1; v < s->variables && log_ratio > -INFINITY; ++v) {
        const int row = s->variable[v].at_row;
        log_ratio += carry_feature(c, s, v, from, to);
        psi_left = psi_of(s, v, row + from, left, psi_left);
        psi_entered = psi_of(s, v, row + to, entered, psi_entered);
        s->psi_from[v] = psi_left;
        s->psi_to[v] = psi_entered;
        log_ratio += (psi_left - s->log_psi[row + from]) + (psi_entered - s->log_psi[row + to]);
    }
    const int accept = log_ratio >= 0 || -log_ratio < rng_exponential(c->rng);
    collapse_count(c, kind, accept);
    if (learning && !fine)
        learn_scale(scale + learner, (split ? s->split_tries : s->tries) + learner, accept, s->n);
    if (!accept) return;
    s->count[from] = left;
    s->count[to] = entered;
    s->log_phi[from] = phi_left;
    s->log_phi[to] = phi_entered;
    gain(s, from, -d);
    gain(s, to, d);
    for (int v = 1; v < s->variables; ++v) {
        const int row = s->variable[v].at_row;
        keep_feature(s, v, from, to);
        s->log_psi[row + from] = s->psi_from[v];
        s->log_psi[row + to] = s->psi_to[v];
    }
}

static void sweep(struct collapse *c, struct counts *s, int turn, int learning) {
    const int walks = s->weight == 0 || turn % CYCLE == CYCLE - 1;
    const int kind = s->variables > 1 && turn % CYCLE != 0 ? SPLIT : BETWEEN;
    const int fine = turn / CYCLE % FINER == FINER - 1;
    for (int v = 1; v < s->variables; ++v) {
        const int levels = s->variable[v].levels;
        for (int row = 0; row < s->classes; ++row) {
            for (int l = 0; walks && l < levels; ++l) move_within(c, s, v, row, l, fine, learning);
            for (int k = 0; !walks && k < levels / 2; ++k)
                move_fresh(c, s, v, row, choose(c->rng, levels));
        }
    }
    for (int i = 0; i < s->classes; ++i) move_between(c, s, i, kind, fine, learning);
}

/* ---- learning, an iteration -------------------------------------------------------------- */

/* of a count's variance in that of theta's draw given it, n p (1 - p) */
static double largest_share(const struct counts *s) {
    double largest = 0;
    for (int v = 0; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        if (variable->known) continue;
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r)
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                const double all = v == 0 ? s->n : s->mean[r];
                const double own = s->mean[cell] * (1 - s->mean[cell] / all);
                const double share = s->square[cell] / (*s->seen * (own + 1));
                if (all > 0 && share > largest) largest = share;
            }
    }
    return largest;
}

static void learn(struct collapse *c, int iteration, int warmup) {
    struct counts *s = c->self;
    *s->seen += 1;
    for (int k = 0; k < s->cells; ++k) {
        const double off = s->count[k] - s->mean[k];
        s->mean[k] += off / *s->seen;
        s->square[k] += off * (s->count[k] - s->mean[k]);
    }
    if (!adapt_window(iteration, warmup)) return;
    *s->sweeps = largest_share(s) > SMALL_SHARE ? SWEEPS : 1;
    for (int v = 1; v < s->variables; ++v) {
        const struct variable *variable = s->variable + v;
        for (int r = 0; r < s->classes; ++r)
            for (int l = 0; l < variable->levels; ++l) {
                const int cell = variable->at_cell + r * variable->levels + l;
                if (s->mean[r] > 0) s->share[cell] = s->mean[cell] / s->mean[r];
            }
    }
    memset(s->tries, 0, (size_t)s->cells * sizeof(double));
    memset(s->split_tries, 0, (size_t)s->classes * sizeof(double));
    memset(s->mean, 0, (size_t)s->cells * sizeof(double));
    memset(s->square, 0, (size_t)s->cells * sizeof(double));
    *s->seen = 0;
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct counts *s = c->self;
    const int learning = iteration < warmup;
    double before[COLLAPSE_COUNTERS], made = 0, kept = 0;
    memcpy(before, c->counter, sizeof before);
    const int sweeps = (int)*s->sweeps, first = iteration % (CYCLE * FINER) * sweeps;
    for (int k = 0; k < sweeps; ++k) sweep(c, s, first + k, learning);
    for (int k = 0; k < COLLAPSE_COUNTERS; k += 2) {
        made += c->counter[k + MADE] - before[k + MADE];
        kept += c->counter[k + ACCEPTED] - before[k + ACCEPTED];
    }
    *accepted = kept / made;
    if (learning) learn(c, iteration, warmup);
    return c->model.class->rtheta(c->model.self, s->count, s->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct counts *s = c->self;
    memcpy(out, s->total, (size_t)c->size * sizeof(double));
}

static double energy(const struct collapse *c) {
    const struct counts *s = c->self;
    double sum = 0;
    for (int k = 0; k < c->size; ++k) sum += collapse_kernel(c, k, c->released[k] - s->total[k]);
    return sum;
}

static double work(const struct collapse *c) {
    const struct counts *s = c->self;
    return 50.0 * SWEEPS * (3.0 * s->cells + 10);
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
        },
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .work = work,
};
