/* Method "collapse", tables: counts of combinations of factors under a model of parts
 * (model/categorical.c), one part of all columns for a saturated table, and a release of any
 * sums of the counts with public weights.
 *
 * State: a table for each part, the counts of its levels by row, that agree with one another:
 * a row of a part has as many records as its parents' combination has in the parts before.
 * The probabilities are integrated out, so that the target is
 *
 *   prod_parts prod_rows [ psi(n_row) prod_levels phi(n) ] eta(z | s),
 *
 * phi(n) = Gamma(a + n) / n! and psi(n) = n! / Gamma(a_1 + ... + n) under a Dirichlet prior
 * (contract/cell_weights.h): the number of sequences of records with such tables times the
 * probability of one of them. Cells and rows are *nodes*, with a weight each and the released
 * components that they are part of.
 *
 * An iteration makes transfers (table/transfers.c), as many as warmup found necessary to forget
 * the table, and then draws theta given it.
 *
 * If the probabilities of a model do not integrate out, theta is moved given the table, see
 * table/theta_nuts.c; the model has one part. The same holds if theta is held fixed, as for one of
 * several sites (pool/gibbs_chain.c): rows then have only their factorials.
 *
 * Where n is unknown the target has the prior of n and psi(n) of the parts that have no parents,
 * and births and deaths are also transfers: n is one more node.
 *
 * Invariant: `total` is the total of the table, in whole numbers, and does not drift. For queries
 * with fractions it is computed again at the start of each iteration. Cost: the transfers,
 * whatever n.
 */
#include "table/table.h"

#include "contract/model_update.h"
#include "mcmc/adapt.h"

/* transfers of an iteration: at first, for each cell; and at most, or for each cell if that is
 * more */
enum { FIRST_MOVES = 4, MOST_MOVES = 10000, MOST_PER_CELL = 20 };

/* transfers for each cell between two moves of theta given the table */
enum { ROUND_MOVES = 2 };

/* the most columns that all sets of them have together */
enum { MOST_LISTED = 4000 };

/* beyond that not all whole numbers are doubles */
static const double MOST_RECORDS = 9007199254740992.0;

/* the share of transfers whose kind does not depend on what they were good for */
static const double ANY_KIND = 0.1;

/* ---- set-up ------------------------------------------------------------------- */

static int read_parts(const struct fields *fields, struct table *s) {
    struct part_columns *columns;
    const int status = table_parts_read(fields, &s->columns, &s->size, &s->parts, &columns);
    if (status != PLUGIN_OK) return status;
    const double *host = fields_vector(fields, "host", s->parts);
    if (!host) return PLUGIN_BAD_FIELDS;
    s->part = plugin_memory((size_t)s->parts, sizeof *s->part);
    for (int k = 0; k < s->parts; ++k) {
        struct table_part *part = s->part + k;
        part->of = columns[k];
        part->host = (int)host[k];
        part->at_cell = s->cells;
        s->cells += part->of.rows * part->of.levels;
    }
    return PLUGIN_OK;
}

/* n is the row of the first part, which has no parents. Where it is known, no transfer touches it.
 */
static void place_rows(struct table *s, int unknown) {
    s->n.at = s->cells;
    s->nodes = s->cells + 1;
    s->part[0].at_row = unknown ? s->n.at : -1;
    for (int k = 1; k < s->parts; ++k) {
        struct table_part *part = s->part + k;
        part->at_row = part->of.parents > 0 || unknown ? s->nodes : -1;
        if (part->at_row >= 0) s->nodes += part->of.rows;
    }
}

static void read_weights(struct table *s, const double *alpha) {
    s->weights.of = cell_weights_new(s->nodes, s->n.most);
    for (int cell = 0; cell < s->cells; ++cell) {
        s->weights.at[cell] = cell_weights_find(&s->weights.of, 0, alpha[cell]);
        s->weights.sign[cell] = 1;
    }
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        if (part->at_row < 0) continue;
        for (int r = 0; r < part->of.rows; ++r) {
            double sum = 0;
            for (int l = 0; l < part->of.levels; ++l)
                sum += alpha[part->at_cell + r * part->of.levels + l];
            s->weights.at[part->at_row + r] = cell_weights_find(&s->weights.of, 0, sum);
            s->weights.sign[part->at_row + r] = -1;
        }
    }
}

/* The components of each node: entries come sorted by node. */
static int read_components(const struct fields *fields, struct table *s) {
    const int entries = fields_length(fields, "target");
    const double *target = fields_vector(fields, "target", entries);
    const double *component = fields_vector(fields, "component", entries);
    s->queries.coefficient = fields_vector(fields, "coefficient", entries);
    if (!target || !component || !s->queries.coefficient) return PLUGIN_BAD_FIELDS;
    s->queries.first = plugin_memory((size_t)s->nodes + 1, sizeof *s->queries.first);
    s->queries.component = plugin_memory((size_t)entries, sizeof *s->queries.component);
    for (int e = 0; e < entries; ++e) {
        ++s->queries.first[(int)target[e] + 1];
        s->queries.component[e] = (int)component[e];
        s->queries.fractions |= s->queries.coefficient[e] != floor(s->queries.coefficient[e]);
    }
    for (int k = 0; k < s->nodes; ++k) s->queries.first[k + 1] += s->queries.first[k];
    return PLUGIN_OK;
}

/* The next of the sets of so many numbers below `of`, in lexical order; 0: there is none. */
static int next_set(int count, int of, int *set) {
    int k = count - 1;
    while (k >= 0 && set[k] == of - count + k) --k;
    if (k < 0) return 0;
    ++set[k];
    for (int l = k + 1; l < count; ++l) set[l] = set[l - 1] + 1;
    return 1;
}

/* Sets of up to `order` of the columns of each part. Without a place for them they are only
 * counted. Returns how many columns they have. */
static int list_sets(struct table *s, int order, int *kinds) {
    int at = 0;
    *kinds = 0;
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        const int columns = part->of.children + part->of.parents;
        for (int count = 1; count <= order && count <= columns; ++count) {
            int set[MOST_CONTRASTED];
            for (int l = 0; l < count; ++l) set[l] = l;
            do {
                if (s->kinds.first) s->kinds.first[*kinds] = at;
                for (int l = 0; l < count; ++l, ++at)
                    if (s->kinds.column)
                        s->kinds.column[at] = set[l] < part->of.children
                                                  ? part->of.child[set[l]]
                                                  : part->of.parent[set[l] - part->of.children];
                ++*kinds;
            } while (next_set(count, columns, set));
        }
    }
    if (s->kinds.first) s->kinds.first[*kinds] = at;
    return at;
}

static void choose_kinds(struct table *s, int unknown) {
    int order = MOST_CONTRASTED, kinds;
    while (list_sets(s, order, &kinds) > MOST_LISTED && order > 1) --order;
    const int listed = list_sets(s, order, &kinds);
    s->kinds.sets = kinds;
    s->kinds.count = kinds + 2;
    s->kinds.births = unknown ? s->kinds.count++ : -1;
    s->kinds.kept = s->exact.groups > 0 ? s->kinds.count++ : -1;
    s->kinds.first = plugin_memory((size_t)kinds + 1, sizeof *s->kinds.first);
    s->kinds.column = plugin_memory((size_t)listed, sizeof *s->kinds.column);
    list_sets(s, order, &kinds);
}

static int watched(const struct collapse *c, const struct table *s) {
    return c->noise.size + s->cells + (c->size_prior != NULL);
}

static void prepare_work(const struct collapse *c, struct table *s) {
    struct direction *along = &s->along;
    const size_t nodes = (size_t)s->nodes, size = (size_t)c->noise.size, cells = (size_t)s->cells;
    along->node = plugin_memory(nodes, sizeof *along->node);
    along->by = plugin_memory(nodes, sizeof *along->by);
    along->component = plugin_memory(size, sizeof *along->component);
    along->change = plugin_memory(size, sizeof *along->change);
    along->listed = plugin_memory(nodes + size, 1);
    along->interval = plugin_memory(size, sizeof *along->interval);
    DOUBLES(size, &along->kink_residual, &along->kink_change, &along->kink_weight);
    s->codes = plugin_memory((size_t)s->columns, sizeof *s->codes);
    s->codes_to = plugin_memory((size_t)s->columns, sizeof *s->codes_to);
    s->alias.share = doubles(cells);
    s->kind_alias.share = doubles((size_t)s->kinds.count);
    s->alias.other = plugin_memory(cells, sizeof(int));
    s->kind_alias.other = plugin_memory((size_t)s->kinds.count, sizeof(int));
    const size_t most = cells > (size_t)s->kinds.count ? cells : (size_t)s->kinds.count;
    s->small = plugin_memory(most, sizeof *s->small);
    s->large = plugin_memory(most, sizeof *s->large);
    s->total = doubles(size);
    watch_create(&s->watch, watched(c, s));
}

/* Fields: columns, levels, children, parents, child, parent, code and alpha as
 * model/categorical.c has them; host, an earlier part with all parents of a part, or -1; target, a
 * node, with component and coefficient, an entry each; tracked, 1 if cells are reported with the
 * statistic; hole_lower, hole_upper and hole_energy, one a component, as table/filled_holes.c has
 * them; held, if theta is; size_spread, looked at where n is unknown; and those of
 * table/exact_sums.c. Nodes are the cells, then n, then rows. */
static int create(const struct fields *fields, struct collapse *c) {
    struct table *s = plugin_memory(1, sizeof *s);
    const int unknown = c->size_prior != NULL;
    const double *tracked = fields_vector(fields, "tracked", 1);
    const int held = s->theta.held = fields_length(fields, "held") > 0;
    const double *spread = fields_vector(fields, "size_spread", unknown ? 1 : -1);
    s->n.most = unknown ? fmin(c->size_prior->upper, MOST_RECORDS) : c->n;
    if (!tracked || (unknown && !spread) || read_parts(fields, s) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    if (unknown) s->n.spread = *spread;
    place_rows(s, unknown);
    if (c->model.complete != s->cells) return PLUGIN_BAD_FIELDS;
    s->tracked = *tracked != 0;
    s->weights.at = plugin_memory((size_t)s->nodes, sizeof *s->weights.at);
    s->weights.sign = plugin_memory((size_t)s->nodes, sizeof *s->weights.sign);
    const int integrates = c->model.update != NULL && !held;
    if (held && !c->model.cells) return PLUGIN_BAD_FIELDS;
    if (integrates) {
        const double *alpha = fields_vector(fields, "alpha", s->cells);
        if (!alpha) return PLUGIN_BAD_FIELDS;
        read_weights(s, alpha);
    } else {
        if (!held && (!table_theta_serves(c) || s->parts > 1)) return PLUGIN_BAD_FIELDS;
        table_given_create(s);
        if (held) table_carry_create(c, s);
    }
    if (read_components(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    if (table_exact_read(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    if (!held && table_holes_read(fields, c, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    choose_kinds(s, unknown);
    prepare_work(c, s);
    c->self = s;
    c->stored = s->nodes + watch_stored(s->watch.count) + s->watch.count + s->cells +
                4 * s->kinds.count + 2;
    c->described = s->cells;
    if (!integrates && !held) {
        table_theta_create(c, s);
        c->stored += table_theta_stored(c);
    }
    return PLUGIN_OK;
}

/* ---- state ------------------------------------------------------------------------ */

static void attach(struct collapse *c) {
    struct table *s = c->self;
    double *at = c->store;
    s->count = at, at += s->nodes;
    at = watch_attach(&s->watch, at);
    s->learned.inverse = at, at += s->watch.count;
    s->learned.visit = at, at += s->cells;
    s->learned.use = at, at += s->kinds.count;
    s->learned.tried = at, at += s->kinds.count;
    s->learned.gain_released = at, at += s->kinds.count;
    s->learned.gain_cells = at, at += s->kinds.count;
    s->moves = at, at += 1;
    s->holes.fill = at, at += 1;
    if (s->log_p && !s->theta.held) table_theta_attach(c, s, at);
}

static void sum_up(const struct collapse *c) {
    struct table *s = c->self;
    memset(s->total, 0, (size_t)c->noise.size * sizeof(double));
    for (int k = 0; k < s->nodes; ++k) table_gain(s, k, s->count[k]);
    table_holes_find(c, s);
}

static void load(struct collapse *c) {
    attach(c);
    sum_up(c);
    table_set_choices(c->self);
    if (((struct table *)c->self)->log_p) table_theta_use(c, c->self);
}

static double start_size(const struct collapse *c, const struct table *s) {
    const double n = rint(c->n + s->n.spread * rng_normal(c->rng));
    return fmin(fmax(n, c->size_prior->lower), c->size_prior->upper);
}

static void start_cells(const struct collapse *c, struct table *s) {
    const double *stick = c->theta;
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        if (part->at_row >= 0) table_count_rows(s, part, s->count);
        for (int r = 0; r < part->of.rows; ++r, stick += part->of.levels - 1)
            cells_draw(c->rng, part->of.levels, stick,
                       s->count[part->at_row < 0 ? s->n.at : part->at_row + r],
                       s->count + part->at_cell + r * part->of.levels);
    }
}

static void start(struct collapse *c) {
    struct table *s = c->self;
    attach(c);
    for (int k = 0; k < s->cells; ++k) s->learned.visit[k] = 1;
    for (int k = 0; k < s->kinds.count; ++k) s->learned.use[k] = 1;
    const double n = c->size_prior ? start_size(c, s) : c->n;
    if (s->exact.groups > 0) {
        s->learned.use[s->kinds.kept] = s->kinds.sets;
        table_set_choices(s);
        s->count[s->n.at] = c->size_prior ? 0 : n;
        table_exact_start(c->rng, s, n);
    } else {
        s->count[s->n.at] = n;
        if (c->model.update)
            start_cells(c, s);
        else
            table_theta_draw_cells(c, s, n);
    }
    if (s->log_p && !s->theta.held) table_theta_start(c, s);
    *s->moves = FIRST_MOVES * s->cells;
    *s->holes.fill = 0;
}

/* ---- learning, an iteration -------------------------------------------------------------- */

static void choose_moves(const struct collapse *c, struct table *s) {
    const double factor = watch_factor(&s->watch, c->size_prior != NULL);
    const double of_cells = MOST_PER_CELL * s->cells;
    const double most = s->theta.held ? of_cells : fmax(MOST_MOVES, of_cells);
    *s->moves = fmin(fmax(rint(*s->moves * factor), fmax(10, s->cells)), most);
}

/* Kinds go by what they were good for, half of them by the released components, half by the cells.
 */
static void learn_kinds(struct table *s) {
    double released = 0, cells = 0;
    for (int k = 0; k < s->kinds.count; ++k) {
        if (s->learned.tried[k] == 0) continue;
        released += s->learned.gain_released[k] /= s->learned.tried[k];
        cells += s->learned.gain_cells[k] /= s->learned.tried[k];
    }
    for (int k = 0; k < s->kinds.count; ++k) {
        s->learned.use[k] = ANY_KIND / s->kinds.count;
        if (released > 0)
            s->learned.use[k] += 0.5 * (1 - ANY_KIND) * s->learned.gain_released[k] / released;
        if (cells > 0) s->learned.use[k] += 0.5 * (1 - ANY_KIND) * s->learned.gain_cells[k] / cells;
    }
    const size_t bytes = (size_t)s->kinds.count * sizeof(double);
    memset(s->learned.tried, 0, bytes);
    memset(s->learned.gain_released, 0, bytes);
    memset(s->learned.gain_cells, 0, bytes);
}

/* Cells with more records are visited more often. */
static void learn_choices(const struct collapse *c, struct table *s) {
    const double *mean = s->watch.mean + c->noise.size;
    for (int k = 0; k < s->cells; ++k) s->learned.visit[k] = sqrt(mean[k] + 0.5);
    learn_kinds(s);
    table_set_choices(s);
}

static void learn(struct collapse *c, int iteration, int warmup) {
    struct table *s = c->self;
    watch_next(&s->watch);
    for (int k = 0; k < s->watch.count; ++k)
        watch_add(&s->watch, k, k < c->noise.size ? s->total[k] : s->count[k - c->noise.size]);
    if (adapt_window(iteration, warmup) == WINDOW_GOES_ON) return;
    choose_moves(c, s);
    learn_choices(c, s);
    for (int k = 0; k < s->watch.count; ++k)
        s->learned.inverse[k] = s->watch.square[k] > 0 ? *s->watch.seen / s->watch.square[k] : 0;
    watch_forget(&s->watch);
}

/* Transfers, the last of which ends outside all holes of the noise. Given theta there may be none
 * outside, so theta is moved as well until then. Returns PLUGIN_*. */
static int transfer_out(struct collapse *c, struct table *s, int count, int wide, int learning) {
    double left = table_holes_tries(s, count, learning);
    for (;;) {
        table_transfers(c, s, count, wide, learning);
        left -= count;
        if (s->holes.in == 0 || left <= 0 || !s->log_p) break;
        struct hmc_step told;
        const int status = table_theta_move(c, s, &told);
        if (status != PLUGIN_OK) return status;
    }
    s->holes.lost |= !learning && s->holes.in > 0;
    return PLUGIN_OK;
}

/* Transfers; where theta is moved given the table, in rounds, for each of them leaves the other
 * where it is. Returns PLUGIN_*. */
static int make_moves(struct collapse *c, struct table *s, int iteration, int warmup) {
    const int wide = 2 * iteration < warmup, learning = iteration < warmup;
    int left = (int)*s->moves, status = PLUGIN_OK;
    s->holes.tries = s->holes.outside = 0;
    if (s->log_p && !s->theta.held) {
        const int round = ROUND_MOVES * s->cells;
        for (; left > round && status == PLUGIN_OK; left -= round) {
            struct hmc_step told;
            status = transfer_out(c, s, round, wide, learning);
            if (status == PLUGIN_OK) status = table_theta_move(c, s, &told);
        }
    }
    if (status == PLUGIN_OK) status = transfer_out(c, s, left, wide, learning);
    if (learning) table_holes_learn(s, c->noise.size);
    return status;
}

static int draw_theta(struct collapse *c, struct table *s, int iteration, int warmup) {
    if (!s->log_p)
        return c->model.update->rtheta(c->model.self, s->count, s->count[s->n.at], c->rng,
                                       c->theta);
    if (s->theta.held) return PLUGIN_OK;
    struct hmc_step told;
    const int status = table_theta_move(c, s, &told);
    if (status == PLUGIN_OK) hmc_learn(&s->theta.hmc, iteration, warmup, &told, c->rng);
    return status;
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct table *s = c->self;
    double before[COLLAPSE_COUNTERS], made = 0, kept = 0;
    memcpy(before, c->counter, sizeof before);
    if (s->queries.fractions) sum_up(c); /* sums of fractions drift */
    if (s->theta.held) table_theta_use(c, s);
    const int status = make_moves(c, s, iteration, warmup);
    if (status != PLUGIN_OK) return status;
    for (int k = 0; k < THETA_COUNTERS; k += 2) {
        made += c->counter[k + MADE] - before[k + MADE];
        kept += c->counter[k + ACCEPTED] - before[k + ACCEPTED];
    }
    *accepted = kept / made;
    if (iteration < warmup) learn(c, iteration, warmup);
    return draw_theta(c, s, iteration, warmup);
}

static void statistic(const struct collapse *c, double *out) {
    const struct table *s = c->self;
    memcpy(out, s->total, (size_t)c->noise.size * sizeof(double));
    if (s->tracked) memcpy(out + c->noise.size, s->count, (size_t)s->cells * sizeof(double));
}

static double records(const struct collapse *c) {
    const struct table *s = c->self;
    return s->count[s->n.at];
}

static void complete(const struct collapse *c, double *out) {
    const struct table *s = c->self;
    memcpy(out, s->count, (size_t)s->cells * sizeof(double));
}

static double density_at(const struct collapse *c, const double *q, double *gradient) {
    const struct table *s = c->self;
    return s->log_p ? table_theta_density(c, s, q, gradient) : NAN;
}

static double work(const struct collapse *c) {
    const struct table *s = c->self;
    return 100.0 * fmax(*s->moves, s->holes.tries) +
           (s->log_p && !s->theta.held ? table_theta_work(c, s) : 0);
}

static const struct collapse_coordinates coordinates = {.log_density = density_at};
static const struct collapse_complete complete_data = {.statistic = complete};
static const struct collapse_carry carry = {.move = table_carry, .keep = table_keep_carried};

const struct collapse_class collapse_table = {
    .name = "table",
    .counters =
        {
            [2 * PAIR + MADE] = "pair_made",
            [2 * PAIR + ACCEPTED] = "pair_accepted",
            [2 * SWAP + MADE] = "swap_made",
            [2 * SWAP + ACCEPTED] = "swap_accepted",
            [2 * CONTRAST + MADE] = "contrast_made",
            [2 * CONTRAST + ACCEPTED] = "contrast_accepted",
            [2 * SIZE + MADE] = "size_made",
            [2 * SIZE + ACCEPTED] = "size_accepted",
            [2 * KEPT + MADE] = "kept_made",
            [2 * KEPT + ACCEPTED] = "kept_accepted",
            HMC_COUNTER_NAMES(THETA_COUNTERS),
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .records = records,
    .work = work,
    .coordinates = &coordinates,
    .complete = &complete_data,
    .carry = &carry,
};
