/* Mechanism "exponential": a quantile z is point k of a grid with probability
 *
 *   exp(-slope d_k) / Z,   Z = sum_k exp(-slope d_k),   d_k = max(0, below_k - t, t - through_k),
 *
 * where below_k and through_k are the numbers of records below point k and up to it, and t is the
 * rank of the quantile, its share of the records (McSherry & Talwar 2007; Smith 2011). Several
 * quantiles are drawn independently. The statistic is the number of records at each point, so the
 * "noise" is 0 minus these counts.
 *
 * Z depends on all counts. Points at or before t are a prefix, the others a suffix. So a binary
 * tree has for the points of each node, of which the first has `first` records below it and the
 * last `last` up to it,
 *
 *   prefix = sum_k exp(-slope (last - through_k)),  suffix = sum_k exp(-slope (below_k - first)),
 *
 * and their records. Both sums are at least 1 and at most the number of points: nothing overflows.
 * A descent to the point that has t adds up Z of a quantile in O(log K). A record that moves
 * changes the nodes above two points. Nodes are functions of the counts alone, computed from those
 * below: nothing drifts.
 *
 * Cost of a record that moves: O((1 + quantiles) log K); of other counts: O(K).
 */
#include "contract/mech.h"

/* so few records have their decay in a table */
enum { FEW = 64 };

struct node {
    double prefix, suffix, decay; /* decay = exp(-slope records) */
    double records;
};

/* of a quantile */
struct rank {
    double share, whole;   /* t = share n = whole + rest */
    double low, high;      /* exp(-slope rest), exp(-slope (1 - rest)) */
    int at;                /* the point that was published */
    double below, through; /* records below it, and up to it */
};

struct exponential {
    int points, leaves, quantiles; /* leaves: a power of 2 */
    double slope, few[FEW];
    struct node *node; /* node i is above nodes 2 i and 2 i + 1; the points are the last `leaves` */
    struct rank *rank;
    double log_density; /* of the counts that are held */

    /* the last step, and the density before it */
    int from, to;
    double before;
};

static INLINE double decay(const struct exponential *m, double records) {
    return records < FEW ? m->few[(int)records] : exp(-m->slope * records);
}

static INLINE void join(struct node *node, int i) {
    const struct node *left = node + 2 * i, *right = left + 1;
    node[i].prefix = left->prefix * right->decay + right->prefix;
    node[i].suffix = left->suffix + left->decay * right->suffix;
    node[i].decay = left->decay * right->decay;
    node[i].records = left->records + right->records;
}

/* Z of a quantile. `before` and `after` add up points on both sides of node i, as seen from the
 * records before and after it. */
static INLINE double normaliser(const struct exponential *m, const struct rank *rank) {
    double first = 0, before = 0, after = 0;
    int i = 1;
    while (i < m->leaves) {
        const struct node *left = m->node + 2 * i, *right = left + 1;
        i *= 2;
        if (rank->whole < first + left->records) {
            after = right->suffix + right->decay * after;
        } else {
            before = before * left->decay + left->prefix;
            first += left->records;
            ++i;
        }
    }
    const double through = first + m->node[i].records;
    double sum = m->node[i].prefix + before * decay(m, rank->whole - first) * rank->low;
    if (through > rank->whole) sum += after * decay(m, through - rank->whole - 1) * rank->high;
    return sum;
}

/* A product of normalisers stays below the largest double. */
static const double LARGE = 1e200;

static double log_probability(const struct exponential *m) {
    const double n = m->node[1].records;
    double distance = 0, log_sum = 0, product = 1;
    for (int q = 0; q < m->quantiles; ++q) {
        const struct rank *rank = m->rank + q;
        const double t = rank->share * n;
        const double above = rank->below - t, under = t - rank->through;
        distance += above > 0 ? above : under > 0 ? under : 0;
        product *= normaliser(m, rank);
        if (product < LARGE) continue;
        log_sum += log(product);
        product = 1;
    }
    return -m->slope * distance - log_sum - log(product);
}

/* All nodes and ranks, from the counts. */
static void settle(struct exponential *m) {
    const struct node *leaf = m->node + m->leaves;
    for (int i = m->leaves - 1; i > 0; --i) join(m->node, i);
    for (int q = 0; q < m->quantiles; ++q) {
        struct rank *rank = m->rank + q;
        const double t = rank->share * m->node[1].records;
        rank->whole = floor(t);
        rank->low = exp(-m->slope * (t - rank->whole));
        rank->high = exp(-m->slope * (1 - (t - rank->whole)));
        rank->below = 0;
        for (int k = 0; k < rank->at; ++k) rank->below += leaf[k].records;
        rank->through = rank->below + leaf[rank->at].records;
    }
    m->log_density = log_probability(m);
}

/* The counts, 0 minus `noise`, are held from now on; mostly they are already. */
static void hold(struct exponential *m, int stride, const double *noise) {
    struct node *leaf = m->node + m->leaves;
    int same = 1;
    for (int k = 0; k < m->points; ++k) {
        const double count = -noise[(size_t)k * (size_t)stride];
        if (leaf[k].records == count) continue;
        leaf[k].records = count;
        leaf[k].decay = decay(m, count);
        same = 0;
    }
    if (!same) settle(m);
}

static void log_density(void *self, int candidates, int stride, const double *noise, double *out) {
    struct exponential *m = self;
    for (int i = 0; i < candidates; ++i) {
        hold(m, stride, noise + i);
        out[i] = m->log_density;
    }
}

static INLINE void add_to_point(struct exponential *m, int i, double records) {
    m->node[i].records += records;
    m->node[i].decay = decay(m, m->node[i].records);
}

static void move(struct exponential *m, int from, int to) {
    int i = m->leaves + from, j = m->leaves + to;
    add_to_point(m, i, -1);
    add_to_point(m, j, 1);
    for (i /= 2, j /= 2; i != j; i /= 2, j /= 2) {
        join(m->node, i);
        join(m->node, j);
    }
    for (; i > 0; i /= 2) join(m->node, i);
    for (int q = 0; q < m->quantiles; ++q) {
        struct rank *rank = m->rank + q;
        rank->below += (to < rank->at) - (from < rank->at);
        rank->through += (to <= rank->at) - (from <= rank->at);
    }
}

static double step(void *self, int from, int to) {
    struct exponential *m = self;
    m->from = from;
    m->to = to;
    m->before = m->log_density;
    move(m, from, to);
    m->log_density = log_probability(m);
    return m->log_density - m->before;
}

static void back(void *self) {
    struct exponential *m = self;
    move(m, m->to, m->from);
    m->log_density = m->before;
}

/* Fields: slope; of each quantile its share of the records, and `at`. */
static int create(const struct fields *fields, struct density *density) {
    struct exponential *m = plugin_memory(1, sizeof *m);
    m->points = density->size;
    m->quantiles = fields_length(fields, "share");
    const double *slope = fields_vector(fields, "slope", 1);
    const double *share = fields_vector(fields, "share", m->quantiles);
    const double *at = fields_vector(fields, "at", m->quantiles);
    if (!slope || !share || !at) return PLUGIN_BAD_FIELDS;
    m->slope = *slope;
    for (int k = 0; k < FEW; ++k) m->few[k] = exp(-m->slope * k);
    for (m->leaves = 1; m->leaves < m->points;) m->leaves *= 2;
    m->node = plugin_memory(2 * (size_t)m->leaves, sizeof *m->node);
    for (int k = 0; k < m->leaves; ++k)
        m->node[m->leaves + k] = (struct node){k < m->points, k < m->points, 1, 0};
    m->rank = plugin_memory((size_t)m->quantiles, sizeof *m->rank);
    for (int q = 0; q < m->quantiles; ++q) {
        m->rank[q] = (struct rank){.share = share[q], .at = (int)at[q]};
        if (m->rank[q].at < 0 || m->rank[q].at >= m->points) return PLUGIN_BAD_FIELDS;
    }
    settle(m);
    density->self = m;
    density->log_density = log_density;
    density->step = step;
    density->back = back;
    return PLUGIN_OK;
}

const struct density_class mech_exponential = {
    .name = "exponential",
    .create = create,
};
