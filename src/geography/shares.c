/* Shares of cells in nested areas, given the counts of the leaves (geography/transfers.c).
 *
 * An area's shares have a Dirichlet distribution about the shares of the area above, with the
 * concentration of its level: weights A_l m_parent. That is a hierarchical Dirichlet process on
 * finitely many cells (Teh, Jordan, Beal & Blei 2006, sections 5.3 and 5.6). Counts of a cell n
 * with weight a have t "tables", the sum over i < n of Bernoulli(a / (a + i)); from the leaves up
 * the tables are the counts of the area above, all shares between integrated out. Given tables,
 * shares are Dirichlet, from the top down, and concentrations gamma, with auxiliary beta and
 * Bernoulli variables (Escobar & West 1995).
 *
 * Cost: one random number for each cell of each area; for a large count in proportion to its
 * logarithm.
 */
#include "geography/geography.h"

#include <string.h>

#include "base/rng_inline.h"

/* from there on tables are found by bisection */
static const double MOST_TRIED = 32;

/* Shares do not fall below it, so that no weight is 0. */
static const double LEAST_SHARE = 1e-60;

/* log of the probability that no table is opened among the first n, up to a constant */
static double log_closed(const struct dist_rising *rising, double n) {
    return -dist_log_rising(rising, n) - log(n);
}

static double draw_tables(struct rng *rng, double n, double a) {
    double tables = n > 0;
    const double tried = fmin(n, MOST_TRIED);
    for (double i = 1; i < tried; ++i) tables += rng_uniform_inline(rng) * (a + i) < a;
    if (n <= MOST_TRIED) return tables;
    struct dist_rising rising;
    dist_rising_set(&rising, a);
    for (double i = tried; i < n; ++tables) {
        /* the next one is opened at the last j that is reached with probability u or more */
        const double level = log_closed(&rising, i) - rng_exponential_inline(rng);
        if (log_closed(&rising, n) >= level) break;
        double low = i, high = n;
        while (high - low > 1) {
            const double middle = floor(0.5 * (low + high));
            if (log_closed(&rising, middle) >= level)
                low = middle;
            else
                high = middle;
        }
        i = low + 1;
    }
    return tables;
}

/* Tables of a level, which are the customers of the one above. Returns how many there are. */
static double seat(struct geography *g, int level) {
    const size_t cells = (size_t)g->cells;
    const double a = g->concentration[level];
    const double *customer = level == g->levels ? g->count : g->customer[level];
    double *above = g->customer[level - 1], sum = 0;
    memset(above, 0, (size_t)g->areas[level - 1] * cells * sizeof(double));
    for (int area = 0; area < g->areas[level]; ++area) {
        const size_t at = (size_t)g->parent[level][area] * cells;
        for (size_t k = 0; k < cells; ++k) {
            const double n = customer[(size_t)area * cells + k];
            if (n == 0) continue;
            const double t = draw_tables(&g->rng, n, a * g->share[level - 1][at + k]);
            above[at + k] += t;
            sum += t;
        }
    }
    return sum;
}

static double draw_concentration(struct geography *g, int level, double tables) {
    const size_t cells = (size_t)g->cells;
    const double *customer = level == g->levels ? g->count : g->customer[level];
    const double a = g->concentration[level];
    double shape = g->shape + tables, rate = g->rate;
    for (int area = 0; area < g->areas[level]; ++area) {
        double n = 0;
        for (size_t k = 0; k < cells; ++k) n += customer[(size_t)area * cells + k];
        if (n == 0) continue;
        const double one = dist_gamma(&g->rng, a + 1), other = dist_gamma(&g->rng, n);
        rate -= log(one / (one + other));
        shape -= rng_uniform_inline(&g->rng) * (n + a) < n;
    }
    return dist_gamma(&g->rng, shape) / rate;
}

/* Dirichlet shares with weights scale * center + count. */
static void draw_dirichlet(struct rng *rng, int cells, double scale, const double *center,
                           const double *count, double *share) {
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < cells; ++k) {
        share[k] = dist_log_gamma(rng, scale * center[k] + count[k]);
        most = fmax(most, share[k]);
    }
    for (int k = 0; k < cells; ++k) sum += share[k] = exp(share[k] - most);
    for (int k = 0; k < cells; ++k) share[k] = fmax(share[k] / sum, LEAST_SHARE);
}

void geography_draw_shares(struct geography *g) {
    if (g->cells < 2) return;
    for (int level = g->levels; level > 0; --level) {
        const double tables = seat(g, level);
        if (g->rate > 0) g->concentration[level] = draw_concentration(g, level, tables);
    }
    draw_dirichlet(&g->rng, g->cells, 1, g->alpha, g->customer[0], g->share[0]);
    const size_t cells = (size_t)g->cells;
    for (int level = 1; level < g->levels; ++level)
        for (int area = 0; area < g->areas[level]; ++area) {
            const size_t at = (size_t)area * cells, above = (size_t)g->parent[level][area] * cells;
            draw_dirichlet(&g->rng, g->cells, g->concentration[level], g->share[level - 1] + above,
                           g->customer[level] + at, g->share[level] + at);
        }
}
