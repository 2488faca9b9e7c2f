/* Method "collapse", tables: transfers of units between cells.
 *
 * A transfer changes the table by j times a direction d, some cells gaining what others
 * lose; j is drawn from its conditional distribution given all else,
 *
 *   p(j) proportional to prod_nodes phi(n + j d) eta(z | s + j Q d),
 *
 * (phi of known probabilities: table/theta_nuts.c)
 *
 * by slice sampling (Neal 2003) on the whole numbers that leave no cell below 0: an interval
 * around j = 0 in proportion to the noise along the direction, no larger than what is
 * possible, is shrunk to the slice. Its length does not depend on j, so that the draw leaves
 * the distribution as it is.
 *
 * A direction comes from combinations of codes, its corners. Contrasts: all combinations of two
 * codes of some columns with alternating signs, which leave all margins as they are that lack one
 * of these columns; of one column, one cell for another. Pairs: one for another that differs in
 * any columns. Swaps: two that exchange some of their codes, which leaves margins as they are that
 * have none of both kinds. Births and deaths: of one combination, or of several at once, where n
 * is unknown. Corners and kinds are drawn with probabilities learned in warmup, whatever the
 * current table. A direction that changes an exact number is discarded; others are constructed to
 * preserve them (table/exact_sums.c).
 *
 * Cost: the components that the cells of the corners change.
 */
#include "table/table.h"

#include "base/rng_inline.h"

/* the interval's length, in standard deviations of the noise or so */
static const double WIDTH = 4;

/* the most combinations that records are born in at once is 2 to this power */
enum { MOST_DOUBLED = 5 };

/* ---- choosing combinations ------------------------------------------------------------ */

static int choose_other(struct rng *rng, int count, int one) {
    const int other = table_choose(rng, count - 1);
    return other + (other >= one);
}

static void alias_set(const struct table *s, int levels, const double *weight, double *share,
                      int *other) {
    int small = 0, large = 0;
    double sum = 0;
    for (int l = 0; l < levels; ++l) sum += weight[l];
    for (int l = 0; l < levels; ++l) {
        share[l] = weight[l] * levels / sum;
        other[l] = l;
        if (share[l] < 1)
            s->small[small++] = l;
        else
            s->large[large++] = l;
    }
    while (small > 0 && large > 0) {
        const int low = s->small[--small], high = s->large[large - 1];
        other[low] = high;
        share[high] -= 1 - share[low];
        if (share[high] >= 1) continue;
        --large;
        s->small[small++] = high;
    }
    while (small > 0) share[s->small[--small]] = 1;
}

void table_set_choices(struct table *s) {
    alias_set(s, s->kinds.count, s->learned.use, s->kind_alias.share, s->kind_alias.other);
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        for (int r = 0; r < part->of.rows; ++r) {
            const int at = part->at_cell + r * part->of.levels;
            alias_set(s, part->of.levels, s->learned.visit + at, s->alias.share + at,
                      s->alias.other + at);
        }
    }
}

/* ---- a direction -------------------------------------------------------------------------- */

/* Forgets nodes that corners of both signs share. */
static void drop_unchanged(struct direction *along) {
    int kept = 0;
    for (int k = 0; k < along->nodes; ++k) {
        const int node = along->node[k];
        if (along->by[node] != 0)
            along->node[kept++] = node;
        else
            along->listed[node] = 0;
    }
    along->nodes = kept;
}

static void find_components(struct table *s) {
    struct direction *along = &s->along;
    for (int k = 0; k < along->nodes; ++k) {
        const int node = along->node[k];
        const double by = along->by[node];
        for (int e = s->queries.first[node]; e < s->queries.first[node + 1]; ++e) {
            const int j = s->queries.component[e];
            if (!along->listed[s->nodes + j]) {
                along->listed[s->nodes + j] = 1;
                along->component[along->components++] = j;
            }
            along->change[j] += by * s->queries.coefficient[e];
        }
    }
}

static int changes_exact(const struct collapse *c, const struct direction *along) {
    for (int k = 0; k < along->components; ++k)
        if (along->component[k] >= c->noise.noisy && along->change[along->component[k]] != 0)
            return 1;
    return 0;
}

/* Sorts the components by kernel. Returns the precision of the noise along the direction. */
static double prepare(const struct collapse *c, struct table *s) {
    struct direction *along = &s->along;
    const struct noise *noise = &c->noise;
    double rate = 0;
    along->slope = along->curvature = along->log_p = 0;
    for (int k = 0; s->log_p && k < along->nodes; ++k)
        along->log_p += along->by[along->node[k]] * s->log_p[along->node[k]];
    along->kinks = along->intervals = 0;
    for (int k = 0; k < along->components; ++k) {
        const int j = along->component[k];
        const double change = along->change[j];
        if (change == 0) continue;
        const double residual = noise->released[j] - s->total[j], weight = noise->weight[j];
        if (noise->kernel[j] == KERNEL_ABSOLUTE) {
            along->kink_residual[along->kinks] = residual;
            along->kink_change[along->kinks] = change;
            along->kink_weight[along->kinks++] = weight;
            rate += weight * fabs(change);
        } else if (noise->kernel[j] == KERNEL_SQUARED) {
            const double squared = weight * weight * change;
            along->slope -= squared * residual;
            along->curvature += squared * change;
        } else {
            along->interval[along->intervals++] = j;
            rate += weight * fabs(change);
        }
    }
    return sqrt(along->curvature + rate * rate);
}

/* Factorials, where probabilities are known. */
static double log_given(const struct table *s, double j) {
    const struct direction *along = &s->along;
    double log_p = 0;
    for (int k = 0; k < along->nodes; ++k) {
        const int node = along->node[k];
        const double count = s->count[node];
        log_p -= s->weights.sign[node] *
                 table_log_factorial_ratio(s, count, count + j * along->by[node]);
    }
    return log_p;
}

static double log_at(const struct collapse *c, const struct table *s, double j) {
    const struct direction *along = &s->along;
    double log_p = -j * (along->slope + 0.5 * along->curvature * j);
    if (s->log_p) {
        log_p += j * along->log_p + log_given(s, j);
    } else {
        for (int k = 0; k < along->nodes; ++k) {
            const int node = along->node[k];
            log_p += table_log(s, node, s->count[node] + j * along->by[node]);
        }
    }
    for (int k = 0; k < along->kinks; ++k)
        log_p -= along->kink_weight[k] * fabs(along->kink_residual[k] - j * along->kink_change[k]);
    for (int k = 0; k < along->intervals; ++k) {
        const int at = along->interval[k];
        log_p -= table_energy(c, s, at, s->total[at] + j * along->change[at]);
    }
    const double born = along->by[s->n.at];
    if (born != 0) log_p += size_prior_log(c->size_prior, s->count[s->n.at] + j * born);
    return log_p;
}

/* The units that can go along the direction, from *least to *most. */
static void find_range(const struct collapse *c, const struct table *s, double *least,
                       double *most) {
    const struct direction *along = &s->along;
    double low = -INFINITY, high = INFINITY;
    for (int k = 0; k < along->nodes; ++k) {
        const double by = along->by[along->node[k]], count = s->count[along->node[k]];
        const double units = fabs(by) == 1 ? count : floor(count / fabs(by)); /* nearly always */
        if (by > 0) {
            if (low < -units) low = -units;
        } else if (high > units) {
            high = units;
        }
    }
    const double born = along->by[s->n.at], n = s->count[s->n.at];
    if (born != 0) {
        const double down = (c->size_prior->lower - n) / born, up = (s->n.most - n) / born;
        low = fmax(low, ceil(fmin(down, up)));
        high = fmin(high, floor(fmax(down, up)));
    }
    if (low > 0 || high < 0) low = high = 0; /* n is where the prior does not allow it */
    *least = low;
    *most = high;
}

/* The draw of j. A whole number k is the interval from k to k + 1. */
static double draw_units(const struct collapse *c, const struct table *s, double least, double most,
                         double precision) {
    const double possible = most - least + 1, width = 1 + WIDTH / precision;
    const double level = log_at(c, s, 0) - rng_exponential_inline(c->rng);
    double low = least, high = most + 1;
    if (width < possible) {
        const double start = rng_uniform_inline(c->rng) - width * rng_uniform_inline(c->rng);
        if (low < start) low = start;
        if (high > start + width) high = start + width;
    }
    for (;;) {
        double j = floor(low + (high - low) * rng_uniform_inline(c->rng));
        if (j > most) j = most;
        if (j == 0 || log_at(c, s, j) >= level) return j;
        if (j < 0)
            low = j + 1;
        else
            high = j;
    }
}

/* Draws units along the direction, and moves them. Returns how many. */
static double move_along(struct collapse *c, struct table *s, int wide) {
    struct direction *along = &s->along;
    drop_unchanged(along);
    double least, most;
    if (along->nodes == 0) return 0;
    find_range(c, s, &least, &most);
    if (least == most) return 0;
    find_components(s);
    if (c->noise.noisy < c->noise.size && changes_exact(c, along)) return 0;
    const double precision = prepare(c, s);
    const double j = draw_units(c, s, least, most, wide ? 0 : precision);
    if (j == 0) return 0;
    for (int k = 0; k < along->nodes; ++k)
        s->count[along->node[k]] += j * along->by[along->node[k]];
    for (int k = 0; k < along->components; ++k)
        s->total[along->component[k]] += j * along->change[along->component[k]];
    table_holes_follow(c, s);
    return j;
}

/* What a transfer of j units was good for, for each node that it touched. */
static void note(const struct collapse *c, struct table *s, int kind, double j) {
    const struct direction *along = &s->along;
    const int watched = s->cells + (c->size_prior != NULL);
    double released = 0, cells = 0;
    for (int k = 0; k < along->components; ++k) {
        const int at = along->component[k];
        released += along->change[at] * along->change[at] * s->learned.inverse[at];
    }
    for (int k = 0; k < along->nodes; ++k) {
        const int node = along->node[k];
        if (node < watched) cells += s->learned.inverse[c->noise.size + node];
    }
    s->learned.gain_released[kind] += j * j * released / along->nodes;
    s->learned.gain_cells[kind] += j * j * cells / along->nodes;
}

/* ---- the kinds ------------------------------------------------------------------------------ */

/* Another code of a column, half the time next to it. */
static int other_code(struct rng *rng, int size, int code) {
    if (size > 2 && rng_bits_inline(rng) >> 63) {
        const int up = rng_bits_inline(rng) >> 63 ? 1 : -1, next = code + up;
        return next < 0 ? 1 : next >= size ? size - 2 : next;
    }
    return choose_other(rng, size, code);
}

static int add_pair(struct rng *rng, struct table *s) {
    table_draw_codes(rng, s, s->codes);
    table_draw_codes(rng, s, s->codes_to);
    return table_add_corner(s, s->codes, -1) && table_add_corner(s, s->codes_to, 1);
}

static int add_swap(struct rng *rng, struct table *s) {
    table_draw_codes(rng, s, s->codes);
    table_draw_codes(rng, s, s->codes_to);
    if (!table_add_corner(s, s->codes, -1) || !table_add_corner(s, s->codes_to, -1)) return 0;
    for (int v = 0; v < s->columns; ++v) {
        if (rng_bits_inline(rng) >> 63) continue;
        const int code = s->codes[v];
        s->codes[v] = s->codes_to[v];
        s->codes_to[v] = code;
    }
    return table_add_corner(s, s->codes, 1) && table_add_corner(s, s->codes_to, 1);
}

static int add_contrast(struct rng *rng, struct table *s, int count, const int *column) {
    table_draw_codes(rng, s, s->codes);
    for (int k = 0; k < count; ++k)
        s->codes_to[k] = other_code(rng, s->size[column[k]], s->codes[column[k]]);
    /* from one corner to the next one column changes (a Gray code), and with it the sign */
    double sign = -1;
    int possible = table_add_corner(s, s->codes, sign);
    for (int corner = 1; corner < 1 << count && possible; ++corner) {
        int k = 0;
        while (!(corner >> k & 1)) ++k;
        const int code = s->codes[column[k]];
        s->codes[column[k]] = s->codes_to[k];
        s->codes_to[k] = code;
        sign = -sign;
        possible = table_add_corner(s, s->codes, sign);
    }
    return possible;
}

/* One combination half the time. */
static int add_births(struct rng *rng, struct table *s) {
    int doubled = 0;
    if (rng_bits_inline(rng) >> 63) doubled = 1 + table_choose(rng, MOST_DOUBLED);
    for (int k = 0; k < 1 << doubled; ++k) {
        table_draw_codes(rng, s, s->codes);
        if (!table_add_corner(s, s->codes, 1)) return 0;
    }
    return 1;
}

static void transfer(struct collapse *c, struct table *s, int wide, int learning) {
    const int kind =
        table_draw_alias(c->rng, s->kinds.count, s->kind_alias.share, s->kind_alias.other);
    int possible, counted = PAIR;
    if (kind < s->kinds.sets) {
        const int first = s->kinds.first[kind], count = s->kinds.first[kind + 1] - first;
        possible = add_contrast(c->rng, s, count, s->kinds.column + first);
        if (count > 1) counted = CONTRAST;
    } else if (kind == s->kinds.sets) {
        possible = add_pair(c->rng, s);
    } else if (kind == s->kinds.sets + 1) {
        possible = add_swap(c->rng, s);
        counted = SWAP;
    } else if (kind == s->kinds.births) {
        possible = add_births(c->rng, s);
        counted = SIZE;
    } else {
        possible = table_exact_direction(c->rng, s);
        counted = KEPT;
    }
    const double j = possible ? move_along(c, s, wide) : 0;
    collapse_count(c, counted, j != 0);
    if (learning) {
        s->learned.tried[kind] += 1;
        if (j != 0) note(c, s, kind, j);
    }
    table_clear(s);
}

void table_transfers(struct collapse *c, struct table *s, int count, int wide, int learning) {
    const int alone = !s->log_p;
    double left = table_holes_tries(s, count, learning);
    for (int k = 0; k < count; ++k) {
        do {
            transfer(c, s, wide, learning);
            s->holes.tries += 1;
            left -= 1;
        } while (alone && s->holes.in > 0 && left > 0);
        s->holes.outside += s->holes.in == 0;
    }
}
