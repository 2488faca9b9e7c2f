/* Counts of persons by nested areas and cells, such as states, counties and blocks by sex and age,
 * given noisy margins at any level and exact ones at one.
 *
 * The target for the counts n of cells k in leaves b, with N the size of an area a, C its parts, w
 * their Dirichlet weight, m_p the cells' shares in the area above b and A the concentration of
 * leaves about it:
 *
 *   prod_{areas above leaves} Gamma(w + N_a) / Gamma(w C_a + N_a)
 *   prod_b Gamma(w + N_b) / Gamma(A + N_b) prod_k Gamma(A m_pk + n_bk) / n_bk!  eta(z | totals)
 *
 * without Gamma(w + N) of all areas together. The leaves' own shares are integrated out; those of
 * areas above are drawn by geography/shares.c.
 *
 * A transfer moves j units from a cell of a leaf to another one, of the same leaf, of a sibling or
 * of a more distant leaf; or it moves j units between two cells of a leaf and as many back in a
 * sibling, which leaves all totals above as they are. j has its conditional distribution given all
 * else, whose terms are ratios Gamma(top + n + j) / Gamma(bottom + n + j). Where few j are
 * possible, or the noise leaves few likely, an interval around 0 of a fixed length and a random
 * position is enumerated; j is drawn from the distribution inside it, mostly overrelaxed: at
 * quantile 1 - u if the present counts are at quantile u (Neal 1998). Otherwise j is drawn by
 * slice sampling. The choice of cells does not depend on the counts, so each transfer leaves the
 * target invariant.
 *
 * Exact counts are for groups of cells in the areas of one level. A transfer stays inside such an
 * area and a group, or has the same sum in each; single transfers inside them reach all tables
 * that agree with the exact counts.
 *
 * Invariant: totals and sizes are sums of the counts, in whole numbers. Memory: a few numbers for
 * each cell. Cost of an iteration: about three transfers per cell.
 */
#include "geography/geography.h"

#include "base/rng_inline.h"

/* terms of a transfer, and numbers that it touches */
enum { MOST_TERMS = 4 + 2 * GEOGRAPHY_LEVELS, MOST_TOUCHED = 4 * GEOGRAPHY_MEASURES };

/* the most values of j that are enumerated */
enum { MOST_LISTED = 64 };

/* length of the interval in standard deviations of the noise */
static const double WIDTH = 5;

/* share of draws that are overrelaxed; transfers between two cells and back, for each cell */
static const double OVERRELAXED = 0.9, CONTRASTS = 0.1;

/* log Gamma(top + n + sign j) - log Gamma(bottom + n + sign j), up to a constant */
struct term {
    double n, sign, top, bottom;
};

struct touched {
    double *total;
    double residual, weight, sign;
    int absolute;
};

struct transfer {
    int terms, numbers, absolute;
    double slope, curvature, rate, least, most;
    struct term term[MOST_TERMS];
    struct touched number[MOST_TOUCHED];
    struct dist_rising rising[2 * MOST_TERMS];
};

/* ---- totals -------------------------------------------------------------------------- */

/* The totals are 0 when the state is read. */
void geography_load(struct geography *g) {
    for (int b = 0; b < g->areas[g->levels]; ++b) {
        const double *count = g->count + (size_t)b * (size_t)g->cells;
        double size = 0;
        for (int k = 0; k < g->cells; ++k) size += count[k];
        for (int l = 0; l <= g->levels; ++l) g->size[l][g->ancestor[l][b]] += size;
        for (int m = 0; m < g->measures; ++m) {
            const struct geography_measure *of = g->measure + m;
            double *total = of->total + (size_t)g->ancestor[of->level][b] * (size_t)of->groups;
            for (int k = 0; k < g->cells; ++k) total[of->group[k]] += count[k];
        }
    }
}

/* ---- what a transfer touches --------------------------------------------------------------- */

static INLINE void add_term(struct transfer *t, double n, double sign, double top, double bottom) {
    if (sign > 0)
        t->least = fmax(t->least, -n);
    else
        t->most = fmin(t->most, n);
    if (top != bottom) t->term[t->terms++] = (struct term){n, sign, top, bottom};
}

static INLINE void add_number(struct transfer *t, const struct geography_measure *of, int area,
                              int group, double sign) {
    const size_t at = (size_t)area * (size_t)of->groups + (size_t)group;
    const double residual = of->released[at] - of->total[at], weight = of->weight[at];
    t->number[t->numbers++] = (struct touched){.total = of->total + at,
                                               .residual = residual,
                                               .weight = weight,
                                               .sign = sign,
                                               .absolute = of->absolute};
    if (of->absolute) {
        t->absolute |= weight > 0;
        t->rate += weight;
    } else {
        t->slope += weight * residual * sign;
        t->curvature += weight;
    }
}

static INLINE void add_cell(const struct geography *g, struct transfer *t, int leaf, int cell,
                            double sign) {
    const int above = g->parent[g->levels][leaf];
    const double share = g->share[g->levels - 1][(size_t)above * (size_t)g->cells + (size_t)cell];
    add_term(t, g->count[(size_t)leaf * (size_t)g->cells + (size_t)cell], sign,
             g->concentration[g->levels] * share, 1);
}

/* The areas of a level gain, if they differ, and the numbers there. */
static void add_level(const struct geography *g, struct transfer *t, int level, int from, int to) {
    if (from == to) return;
    const double w = g->size_weight;
    const int area[] = {from, to};
    for (int side = 0; side < 2; ++side) {
        const int a = area[side];
        add_term(t, g->size[level][a], side ? 1 : -1, w,
                 level == g->levels ? g->concentration[level] : w * g->children[level][a]);
    }
}

/* One unit from a cell to another: `back`, another one the other way between the same leaves. */
static void add_numbers(const struct geography *g, struct transfer *t, const int *leaf,
                        const int *cell, int back) {
    for (int m = 0; m < g->measures; ++m) {
        const struct geography_measure *of = g->measure + m;
        const int from = g->ancestor[of->level][leaf[0]], to = g->ancestor[of->level][leaf[1]];
        const int lost = of->group[cell[0]], gained = of->group[cell[1]];
        if (from == to ? back || lost == gained : back && lost == gained) continue;
        if (back) {
            add_number(t, of, from, lost, -1);
            add_number(t, of, from, gained, 1);
            add_number(t, of, to, lost, 1);
            add_number(t, of, to, gained, -1);
        } else {
            add_number(t, of, from, lost, -1);
            add_number(t, of, to, gained, 1);
        }
    }
}

/* ---- the draw of j -----------------------------------------------------------------------------
 */

/* p(j + 1) / p(j) and its inverse, without the noise, of j = low to high, and of some more */
static INLINE void find_ratios(const struct transfer *t, int low, int high, double *ratio,
                               double *inverse) {
    for (int base = low; base <= high; base += LANES, ratio += LANES, inverse += LANES) {
        double above[LANES], below[LANES];
        for (int i = 0; i < LANES; ++i) above[i] = below[i] = 1;
        for (int k = 0; k < t->terms; ++k) {
            const struct term *term = t->term + k;
            const int gains = term->sign > 0;
            const double n = term->n + (gains ? base : -base - 1);
            const double up = n + (gains ? term->top : term->bottom);
            const double down = n + (gains ? term->bottom : term->top);
            for (int i = 0; i < LANES; ++i) {
                above[i] *= up + term->sign * i;
                below[i] *= down + term->sign * i;
            }
        }
        for (int i = 0; i < LANES; ++i) {
            ratio[i] = above[i] / below[i];
            inverse[i] = below[i] / above[i];
        }
    }
}

/* The j in [low, high] at some quantile; NaN if their probabilities are too far apart. `step`:
 * exp(-curvature). */
static double draw_listed(struct rng *rng, const struct transfer *t, double step, int low,
                          int high) {
    double weight[MOST_LISTED + 1], ratios[MOST_LISTED + LANES], inverses[MOST_LISTED + LANES];
    double *const p = weight - low, *const ratio = ratios - low, *const inverse = inverses - low;
    double sum = 1, before = 0;
    find_ratios(t, low, high - 1, ratios, inverses);
    p[0] = 1;
    const double up = exp(t->slope - 0.5 * t->curvature);
    double noise = up;
    for (int j = 0; j < high; ++j, noise *= step) sum += p[j + 1] = p[j] * (ratio[j] * noise);
    noise = step / up;
    for (int j = 0; j > low; --j, noise *= step) {
        p[j - 1] = p[j] * (inverse[j - 1] * noise);
        before += p[j - 1];
    }
    sum += before;
    if (!(sum < 1e250)) return NAN;
    double u = rng_uniform_inline(rng);
    if (rng_uniform_inline(rng) < OVERRELAXED) u = 1 - (before + u) / sum;
    u *= sum;
    int j = low;
    while (j < high && u >= p[j]) u -= p[j++];
    while (p[j] == 0) --j; /* rounding */
    return j;
}

static double log_at(const struct transfer *t, double j) {
    double log_p = j * (t->slope - 0.5 * t->curvature * j);
    for (int k = 0; k < t->terms; ++k) {
        const double n = t->term[k].n + t->term[k].sign * j;
        log_p += dist_log_rising(t->rising + 2 * k, n) - dist_log_rising(t->rising + 2 * k + 1, n);
    }
    if (!t->absolute) return log_p;
    for (int k = 0; k < t->numbers; ++k) {
        const struct touched *number = t->number + k;
        if (number->absolute) log_p -= number->weight * fabs(number->residual - number->sign * j);
    }
    return log_p;
}

/* A whole number k is the interval from k to k + 1. */
static double draw_slice(struct rng *rng, struct transfer *t, double width) {
    for (int k = 0; k < t->terms; ++k) {
        dist_rising_set(t->rising + 2 * k, t->term[k].top);
        dist_rising_set(t->rising + 2 * k + 1, t->term[k].bottom);
    }
    const double level = log_at(t, 0) - rng_exponential_inline(rng);
    const double start = rng_uniform_inline(rng) - width * rng_uniform_inline(rng);
    double low = t->least, high = t->most + 1;
    if (width < high - low) {
        low = fmax(low, start);
        high = fmin(high, start + width);
    }
    for (;;) {
        const double j = fmin(floor(low + (high - low) * rng_uniform_inline(rng)), t->most);
        if (j == 0 || log_at(t, j) >= level) return j;
        if (j < 0)
            low = j + 1;
        else
            high = j;
    }
}

/* Of this transfer, from the last one of its kind where that had the same. */
static const struct geography_noise *find_noise(struct geography_noise *noise,
                                                const struct transfer *t) {
    if (noise->width > 0 && noise->curvature == t->curvature && noise->rate == t->rate)
        return noise;
    const double precision = sqrt(t->curvature + t->rate * t->rate);
    noise->curvature = t->curvature;
    noise->rate = t->rate;
    noise->step = exp(-t->curvature);
    noise->width = precision > 0 ? 2 + floor(WIDTH / precision) : INFINITY;
    return noise;
}

static double draw_units(struct geography *g, struct transfer *t, int kind) {
    struct rng *rng = &g->rng;
    const struct geography_noise *noise = find_noise(g->noise + kind, t);
    const double width = noise->width;
    const double possible = t->most - t->least + 1;
    if (!t->absolute && fmin(width, possible) <= MOST_LISTED) {
        double low = t->least, high = t->most;
        if (width < possible) {
            const double start = -floor(width * rng_uniform_inline(rng));
            low = fmax(low, start);
            high = fmin(high, start + width - 1);
        }
        const double j = draw_listed(rng, t, noise->step, (int)low, (int)high);
        if (!isnan(j)) return j;
    }
    return draw_slice(rng, t, width);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void move(struct geography *g, const int *leaf, const int *cell, int kind) {
    const int back = kind == THERE_AND_BACK;
    struct transfer t;
    t.terms = t.numbers = t.absolute = 0;
    t.slope = t.curvature = t.rate = 0;
    t.least = -INFINITY;
    t.most = INFINITY;
    add_cell(g, &t, leaf[0], cell[0], -1);
    add_cell(g, &t, leaf[1], back ? cell[0] : cell[1], 1);
    if (back) {
        add_cell(g, &t, leaf[0], cell[1], 1);
        add_cell(g, &t, leaf[1], cell[1], -1);
    } else if (leaf[0] != leaf[1]) {
        for (int l = g->levels; l > 0; --l)
            add_level(g, &t, l, g->ancestor[l][leaf[0]], g->ancestor[l][leaf[1]]);
    }
    if (t.least == t.most) return;
    add_numbers(g, &t, leaf, cell, back);
    const double j = draw_units(g, &t, kind);
    if (j == 0) return;
    const size_t cells = (size_t)g->cells;
    g->count[(size_t)leaf[0] * cells + (size_t)cell[0]] -= j;
    g->count[(size_t)leaf[1] * cells + (size_t)cell[back ? 0 : 1]] += j;
    if (back) {
        g->count[(size_t)leaf[0] * cells + (size_t)cell[1]] += j;
        g->count[(size_t)leaf[1] * cells + (size_t)cell[1]] -= j;
    } else {
        for (int l = g->levels; l > 0; --l) {
            g->size[l][g->ancestor[l][leaf[0]]] -= j;
            g->size[l][g->ancestor[l][leaf[1]]] += j;
        }
    }
    for (int k = 0; k < t.numbers; ++k) *t.number[k].total += t.number[k].sign * j;
}

static int choose(struct rng *rng, int count) {
    return (int)((rng_bits_inline(rng) >> 32) * (uint64_t)count >> 32);
}

static int choose_other(struct rng *rng, int count, int one) {
    const int other = choose(rng, count - 1);
    return other + (other >= one);
}

/* A leaf of the same area of a level, another one; -1 if there is none. */
static INLINE int choose_leaf(struct geography *g, int level, int leaf) {
    const int area = g->ancestor[level][leaf], first = g->first_leaf[level][area];
    const int leaves = g->first_leaf[level][area + 1] - first;
    return leaves > 1 ? first + choose_other(&g->rng, leaves, leaf - first) : -1;
}

/* May units move between these cells? */
static INLINE int together(const struct geography *g, const int *leaf, const int *cell) {
    return g->exact_group[cell[0]] == g->exact_group[cell[1]] &&
           g->ancestor[g->exact_level][leaf[0]] == g->ancestor[g->exact_level][leaf[1]];
}

/* The transfers that begin at a cell: to a sibling, to another cell of the leaf, both at once. */
static void move_cell(struct geography *g, int leaf, int cell) {
    const int sibling = choose_leaf(g, g->levels - 1, leaf);
    const int both[] = {leaf, sibling}, alone[] = {leaf, leaf}, same[] = {cell, cell};
    if (sibling >= 0 && together(g, both, same)) move(g, both, same, BETWEEN_LEAVES);
    if (g->cells < 2) return;
    const int cells[] = {cell, choose_other(&g->rng, g->cells, cell)};
    if (together(g, alone, cells)) move(g, alone, cells, WITHIN_LEAF);
    if (sibling < 0 || rng_uniform_inline(&g->rng) >= CONTRASTS) return;
    if (g->exact_level < g->levels || together(g, alone, cells))
        move(g, both, cells, THERE_AND_BACK);
}

void geography_sweep(struct geography *g) {
    for (int leaf = 0; leaf < g->areas[g->levels]; ++leaf) {
        for (int cell = 0; cell < g->cells; ++cell) move_cell(g, leaf, cell);
        for (int level = g->exact_level; level < g->levels; ++level) {
            const int both[] = {leaf, choose_leaf(g, level, leaf)};
            int cells[] = {choose(&g->rng, g->cells), choose(&g->rng, g->cells)};
            if (rng_bits_inline(&g->rng) >> 63) cells[1] = cells[0];
            if (both[1] >= 0 && together(g, both, cells))
                move(g, both, cells, BETWEEN_AREAS + level);
        }
    }
    geography_draw_shares(g);
}
