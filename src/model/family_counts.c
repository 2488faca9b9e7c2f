/* Powers of a Poisson count that is clamped to [0, U], as functions of its log rate eta, and means
 * of their derivatives over eta ~ N(centre, sd^2).
 *
 * With f(y) = min(y, U)^m, L = exp(eta), T = ceil(U), P Poisson probabilities, S Stirling numbers
 * of the second kind, D differences,
 *   d^k / dL^k E f = E D^k f(Y),
 *   L^k E D^k f(Y) = sum_r S(m, r) r!/(r - k)! L^r P(Y <= T - 1 - r)
 *                  + L^k sum_(i <= k) P(Y = T - i) D^k f(T - i) + [k = 0] U^m P(Y >= T),
 *   d^k / deta^k E f = sum_j S(k, j) L^j E D^j f(Y):
 * terms cancel only for the few counts next to the bound, where the function bends. Far below the
 * bound it is a polynomial in L, far above a constant.
 *
 * The mean is a trapezoidal sum. The function is entire; where |Im eta| = d < pi / 2 it is larger
 * by exp(U d^2 / 2) at most, the density by exp(d^2 / (2 sd^2)), so that a step h leaves an error
 * of about exp(-2 pi^2 / (h^2 (U + 1 / sd^2))).
 *
 * Nodes are multiples of a step for any centre, and there are only a few step sizes, so the
 * function is computed once at each node and kept.
 *
 * Cost: some 25 standard deviations of eta / STEP nodes, times sqrt(1 + U sd^2), of 20
 * multiplications and an exponential each; the first visit of a node near the bound adds up
 * probabilities, a multiple of sqrt(U) or U of them.
 */
#include "model/family.h"

#include "base/dist.h"
#include "contract/plugin.h"

#include <Rmath.h>

static const double STEP = 0.65, REACH = 9;
/* log probabilities below this, and log rates, are none */
static const double NOTHING = -80, NO_RATE = -50;
/* bounds below this need no larger steps than this one does */
static const double FEW = 9;
/* from so many steps a standard deviation on the constant part is not summed but integrated */
static const double WIDE = 100;
/* further away no nodes are kept */
static const double FAR = 1000;

/* Derivatives of power m: those below ORDERS + 1 - m. */
enum { EDGE = FAMILY_MEANS - 1, ORDERS = FAMILY_MEANS };

/* of derivative k by j, of power m by factorial power j */
static const double stirling[ORDERS][ORDERS] = {{1, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0},
                                                {0, 1, 1, 0, 0, 0}, {0, 1, 3, 1, 0, 0},
                                                {0, 1, 7, 6, 1, 0}, {0, 1, 15, 25, 10, 1}};

/* ---- nodes that were visited ---------------------------------------------------------- */

/* Sizes of steps, each ROOT_HALF of the one before; nodes of all of them at most, those of rates
 * from exp(LOWEST) on; where derivatives of all powers stand, padded to whole lanes. */
enum { SIZES = 8, MOST_NODES = 20000, VALUES = FAMILY_POWERS * FAMILY_MEANS };
static const double ROOT_HALF = 0.70710678118654752440, LOWEST = -16;

/* Of one size of steps: nodes first, ..., first + count - 1, in units of the step. */
struct nodes {
    double step;
    long first, count;
    double *value; /* rows of VALUES, NaN at first until a node was visited */
};

struct family_nodes {
    int sizes;
    struct nodes of_size[SIZES];
};

/* beyond it counts are above the bound, for certain */
static double highest(double top) { return log(top + 12 * sqrt(top) - NOTHING); }

static double largest_step(double top) { return STEP / sqrt(fmax(top, FEW)); }

static struct family_nodes *create_nodes(double top) {
    struct family_nodes *all = plugin_memory(1, sizeof *all);
    double step = largest_step(top);
    long left = MOST_NODES;
    for (; all->sizes < SIZES; step *= ROOT_HALF) {
        struct nodes *nodes = all->of_size + all->sizes;
        nodes->step = step;
        nodes->first = (long)ceil(LOWEST / step);
        nodes->count = (long)floor(highest(top) / step) + 1 - nodes->first;
        if (nodes->count > left) break;
        left -= nodes->count;
        nodes->value = doubles((size_t)nodes->count * VALUES);
        for (long i = 0; i < nodes->count; ++i) nodes->value[i * VALUES] = NAN;
        ++all->sizes;
    }
    return all;
}

void family_clamp(struct family *f, double upper) {
    f->upper = upper;
    const double top = ceil(upper);
    for (int m = 1; m <= FAMILY_POWERS; ++m) {
        /* differences of order k at T - i, from those of order k - 1 at T - i + 1 and T - i */
        double(*row)[ORDERS] = f->edge[m - 1];
        for (int i = 0; i < ORDERS; ++i) row[0][i] = R_pow_di(fmin(top - i, upper), m);
        for (int k = 1; k < ORDERS; ++k)
            for (int i = 0; i < ORDERS; ++i)
                row[k][i] = (i > 0 ? row[k - 1][i - 1] : row[k - 1][0]) - row[k - 1][i];
    }
    f->nodes = create_nodes(top);
}

/* ---- a node --------------------------------------------------------------------------- */

/* Powers of L, times r!/(r - k)!, summed up with weights. */
static void combine(const double below[FAMILY_POWERS + 1], int m, double by_rate[ORDERS]) {
    for (int k = 0; k <= ORDERS - m; ++k) {
        by_rate[k] = 0;
        for (int r = k; r <= m; ++r) {
            double falling = 1;
            for (int j = 0; j < k; ++j) falling *= r - j;
            by_rate[k] += stirling[m][r] * falling * below[r];
        }
    }
}

/* below[r] = L^r P(Y <= T - 1 - r), at[i] = P(Y = T - i); returns P(Y >= T) */
static double probabilities(double top, double rate, double below[FAMILY_POWERS + 1],
                            double at[ORDERS]) {
    double p = top >= 1 ? exp(dist_log_poisson(top - 1, rate)) : 0, k = top - 1, sum = 0;
    at[0] = 0;
    for (int i = 1; i < ORDERS; ++i) {
        at[i] = k >= 0 ? p : 0;
        p *= k-- / rate;
    }
    k = top - EDGE;
    p = at[EDGE];
    while (k >= 0 && (k > rate || p > 1e-18 * sum) && p > 0) {
        sum += p;
        p *= k-- / rate;
    }
    double power = R_pow_di(rate, FAMILY_POWERS);
    for (int r = FAMILY_POWERS; r >= 0; --r, power /= rate) {
        below[r] = power * sum;
        if (r > 0) sum += at[r];
    }
    return fmax(1 - sum, 0);
}

static void add_node(const struct family *f, double eta, double weight, double *mean) {
    const double rate = exp(eta), upper = f->upper, top = ceil(upper);
    double below[FAMILY_POWERS + 1], at[ORDERS], beyond = 0;
    const int far = top - EDGE > rate && dist_log_poisson(top - EDGE, rate) < NOTHING;
    if (far) {
        below[0] = 1;
        for (int r = 1; r <= FAMILY_POWERS; ++r) below[r] = below[r - 1] * rate;
    } else {
        beyond = probabilities(top, rate, below, at);
    }
    double limit = 1;
    for (int m = 1; m <= FAMILY_POWERS; ++m) {
        double by_rate[ORDERS], *out = mean + (m - 1) * FAMILY_MEANS;
        combine(below, m, by_rate);
        limit *= upper;
        by_rate[0] += limit * beyond;
        double power = 1;
        for (int k = 1; !far && k <= ORDERS - m; ++k) {
            power *= rate;
            for (int i = 1; i <= k; ++i) by_rate[k] += power * at[i] * f->edge[m - 1][k][i];
        }
        for (int k = 0; k <= ORDERS - m; ++k)
            for (int j = k > 0; j <= k; ++j) out[k] += weight * stirling[k][j] * by_rate[j];
    }
}

static void add_constant(const struct family *f, double weight, double *mean) {
    double limit = 1;
    for (int m = 0; m < FAMILY_POWERS; ++m) {
        limit *= f->upper;
        mean[m * FAMILY_MEANS] += weight * limit;
    }
}

/* ---- the mean ------------------------------------------------------------------------- */

/* The largest step that there are nodes of, up to `most`; NULL: none. */
static const struct nodes *find_nodes(const struct family *f, double most) {
    for (int k = 0; k < f->nodes->sizes; ++k)
        if (f->nodes->of_size[k].step <= most) return f->nodes->of_size + k;
    return NULL;
}

VECTOR_CLONES static void add_values(double weight, const double *restrict value,
                                     double *restrict mean) {
    for (int k = 0; k < VALUES; ++k) mean[k] += weight * value[k];
}

/* Of node i at eta, kept if there is room for it. */
static void add_kept(const struct family *f, const struct nodes *nodes, double i, double eta,
                     double weight, double *mean) {
    const long at = nodes ? (long)i - nodes->first : -1;
    if (at < 0 || at >= nodes->count) {
        add_node(f, eta, weight, mean);
        return;
    }
    double *value = nodes->value + at * VALUES;
    if (isnan(*value)) {
        memset(value, 0, VALUES * sizeof(double));
        add_node(f, eta, 1, value);
    }
    add_values(weight, value, mean);
}

void family_powers_poisson(const struct family *f, double centre, double sd, double *mean) {
    const double top = ceil(f->upper), limit = highest(top);
    memset(mean, 0, FAMILY_POWERS * FAMILY_MEANS * sizeof(double));
    if (!(sd > 0)) {
        if (centre < limit)
            add_node(f, centre, 1, mean);
        else
            add_constant(f, 1, mean);
        return;
    }
    const double most = STEP / sqrt(fmax(top, FEW) + 1 / (sd * sd));
    const struct nodes *nodes = fabs(centre) < FAR ? find_nodes(f, most) : NULL;
    const double step = nodes ? nodes->step : most, unit = step / sd;
    /* the node next to the centre, and how far it is beyond, without cancellation */
    const double about = nodes ? rint(centre / step) : 0;
    const double off = nodes ? fma(about, step, -centre) : 0;
    const int wide = unit * WIDE < 1;
    double from = -REACH, to = REACH;
    if (wide) from = fmax(from, (NO_RATE - centre) / sd), to = fmin(to, (limit - centre) / sd);
    const double first = ceil((sd * from - off) / step), last = floor((sd * to - off) / step);
    for (double i = first; i <= last; ++i) {
        const double v = (i * step + off) / sd;
        const double eta = nodes ? (about + i) * step : centre + i * step;
        const double weight = unit * 0.3989422804014327 * exp(-0.5 * v * v);
        if (eta < limit)
            add_kept(f, nodes, about + i, eta, weight, mean);
        else
            add_constant(f, weight, mean);
    }
    if (wide && to < REACH) {
        /* the trapezoidal rule's sum of a density's tail, from its integral */
        const double v = (fmax(first, last + 1) * step + off) / sd;
        const double density = 0.3989422804014327 * exp(-0.5 * v * v);
        add_constant(
            f, 0.5 * erfc(v * sqrt(0.5)) + 0.5 * unit * density + unit * unit / 12 * v * density,
            mean);
    }
}
