/* Moments of totals of powers of one number, clamped to bounds or dropped
 * outside them, under the normal, exponential and Poisson models.
 *
 * Every component, released or aside, is a function of x that is a polynomial
 * between neighbouring bounds: (factor (x - shift))^power inside its own bounds,
 * outside them 0 (dropped) or its value at the bound (clamped). With
 * M_p = E (x - o)^p 1[x in the piece], means and products are sums over pieces.
 * This is Bernstein & Sheldon (2018, Proposition 1) without its restriction to
 * one region: E and Var of 1[a,b](x) t(x) are q mu and q Sigma + q (1 - q) mu mu'.
 * Components are measured from their values at E x, so that little cancels.
 *
 * M_p, standardised: for finite pieces of moderate length Gauss-Legendre
 * quadrature (short sums for Poisson), else recursions,
 *   normal       I_p = (p - 1) I_{p-2} + a^{p-1} phi(a) - b^{p-1} phi(b),
 *   exponential  G_p = p G_{p-1} - w^p exp(-w), from the lower end on,
 *   Poisson      M_p = r sum_{j < p-1} C(p-1, j) M_j
 *                      + r (f(A-1) (A-r)^{p-1} - f(B) (B+1-r)^{p-1}), x = A..B.
 *
 * theta: log rate, or mean and log sd. Complete-data statistic: what stands
 * aside. Cost: O(pieces components^2 power^2).
 */
#include "contract/moments.h"

#include <Rmath.h>

enum family { NORMAL, EXPONENTIAL, POISSON };

/* nodes of the quadrature, and the longest piece (in standard units) it takes;
 * Poisson: the most points that are summed */
enum { NODES = 32, MOST_POINTS = 64 };
static const double LONGEST = 6;

struct component {
    double lower, upper; /* ends of its own piece, among the cuts */
    double at_lower, at_upper;
    double shift, factor;
    int power;
};

struct sums {
    const struct coordinates *coordinates;
    enum family family;
    int components, released, cuts, most_power;
    struct component *component;
    double *cut;
    double node[NODES], weight[NODES];
    /* workspace */
    double *binomial;   /* rows of Pascal's triangle up to 2 most_power */
    double *moment;     /* 2 most_power + 1 */
    double *polynomial; /* components x (most_power + 1) */
    double *reference;  /* components */
};

static void legendre_nodes(double *node, double *weight) {
    for (int i = 0; i < NODES; ++i) {
        double x = cos(M_PI * (i + 0.75) / (NODES + 0.5)), slope = 1;
        for (int step = 0; step < 100; ++step) {
            double before = 1, value = x;
            for (int k = 2; k <= NODES; ++k) {
                const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
                before = value;
                value = next;
            }
            slope = NODES * (x * value - before) / (x * x - 1);
            const double change = value / slope;
            x -= change;
            if (fabs(change) < 1e-16) break;
        }
        node[i] = x;
        weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

static double power_of(double x, int power) {
    double value = 1;
    for (int k = 0; k < power; ++k) value *= x;
    return value;
}

static void add_cut(struct sums *s, double at) {
    if (!isfinite(at)) return;
    int k = s->cuts;
    for (int i = 0; i < s->cuts; ++i)
        if (s->cut[i] == at) return;
    for (; k > 0 && s->cut[k - 1] > at; --k) s->cut[k] = s->cut[k - 1];
    s->cut[k] = at;
    ++s->cuts;
}

/* Fields: family; released, number of released components; of each component
 * lower and upper (infinite where nothing is bounded), drop, shift, factor,
 * power. */
static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct sums *s = plugin_memory(1, sizeof *s);
    s->coordinates = coordinates;
    const int w = s->components = fields_length(fields, "power");
    const double *family = fields_vector(fields, "family", 1);
    const double *released = fields_vector(fields, "released", 1);
    const double *lower = fields_vector(fields, "lower", w),
                 *upper = fields_vector(fields, "upper", w);
    const double *drop = fields_vector(fields, "drop", w),
                 *shift = fields_vector(fields, "shift", w);
    const double *factor = fields_vector(fields, "factor", w),
                 *power = fields_vector(fields, "power", w);
    if (!family || !released || !lower || !upper || !drop || !shift || !factor || !power)
        return PLUGIN_BAD_FIELDS;
    s->family = (enum family) * family;
    s->released = (int)*released;
    s->component = plugin_memory((size_t)w, sizeof *s->component);
    s->cut = doubles(2 * (size_t)w);
    for (int j = 0; j < w; ++j) {
        struct component *c = s->component + j;
        c->shift = shift[j];
        c->factor = factor[j];
        c->power = (int)power[j];
        if (c->power > s->most_power) s->most_power = c->power;
        const int clamp = drop[j] == 0;
        c->at_lower =
            clamp && isfinite(lower[j]) ? power_of(factor[j] * (lower[j] - shift[j]), c->power) : 0;
        c->at_upper =
            clamp && isfinite(upper[j]) ? power_of(factor[j] * (upper[j] - shift[j]), c->power) : 0;
        /* the last whole number below the bounds, and inside them */
        c->lower = s->family == POISSON ? ceil(lower[j]) - 1 : lower[j];
        c->upper = s->family == POISSON ? floor(upper[j]) : upper[j];
        add_cut(s, c->lower);
        add_cut(s, c->upper);
    }
    legendre_nodes(s->node, s->weight);
    const int degree = 2 * s->most_power;
    s->binomial = doubles((size_t)(degree + 1) * (degree + 1));
    for (int p = 0; p <= degree; ++p)
        for (int k = 0; k <= p; ++k) {
            const double *above = s->binomial + (size_t)(p > 0 ? p - 1 : 0) * (degree + 1);
            s->binomial[(size_t)p * (degree + 1) + k] =
                k == 0 || k == p ? 1 : above[k - 1] + above[k];
        }
    s->moment = doubles((size_t)degree + 1);
    s->polynomial = doubles((size_t)w * (size_t)(s->most_power + 1));
    s->reference = doubles((size_t)w);
    moments->self = s;
    moments->released = s->released;
    moments->aside = moments->complete = w - s->released;
    return PLUGIN_OK;
}

static const double *binomials(const struct sums *s, int p) {
    return s->binomial + (size_t)p * (2 * s->most_power + 1);
}

/* ---- moments of a piece, about an origin that is returned --------------------- */

/* standardised density over [a, b], about the origin there; `e` scales back */
static void quadrature(const struct sums *s, double a, double b, double origin, double e,
                       double *moment) {
    const int degree = 2 * s->most_power;
    memset(moment, 0, (size_t)(degree + 1) * sizeof(double));
    const double half = 0.5 * (b - a), middle = a + half;
    for (int i = 0; i < NODES; ++i) {
        const double z = middle + half * s->node[i], step = e * (z - origin);
        const double density = s->family == NORMAL ? M_1_SQRT_2PI * exp(-0.5 * z * z) : exp(-z);
        double term = half * s->weight[i] * density;
        for (int p = 0; p <= degree; ++p, term *= step) moment[p] += term;
    }
}

static double between(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

static double normal_piece(const struct sums *s, double mean, double sd, double low, double high,
                           double *moment) {
    const int degree = 2 * s->most_power;
    const double a = (low - mean) / sd, b = (high - mean) / sd;
    if (b - a <= LONGEST) {
        const double origin = between(0, a, b);
        quadrature(s, a, b, origin, sd, moment);
        return mean + sd * origin;
    }
    const double density_a = isfinite(a) ? M_1_SQRT_2PI * exp(-0.5 * a * a) : 0;
    const double density_b = isfinite(b) ? M_1_SQRT_2PI * exp(-0.5 * b * b) : 0;
    double edge_a = density_a, edge_b = density_b;
    moment[0] = a > 0 ? Rf_pnorm5(a, 0, 1, 0, 0) - Rf_pnorm5(b, 0, 1, 0, 0)
                      : Rf_pnorm5(b, 0, 1, 1, 0) - Rf_pnorm5(a, 0, 1, 1, 0);
    for (int p = 1; p <= degree; ++p) {
        moment[p] = (p > 1 ? (p - 1) * moment[p - 2] : 0) + edge_a - edge_b;
        if (density_a > 0) edge_a *= a;
        if (density_b > 0) edge_b *= b;
    }
    double scale = 1;
    for (int p = 1; p <= degree; ++p) moment[p] *= scale *= sd;
    return mean;
}

static double exponential_piece(const struct sums *s, double rate, double low, double high,
                                double *moment) {
    const int degree = 2 * s->most_power;
    const double a = low > 0 ? low * rate : 0, b = high > 0 ? high * rate : 0, w = b - a;
    if (w <= LONGEST) {
        quadrature(s, a, b, a, 1 / rate, moment);
        return a / rate;
    }
    double edge = exp(-w), scale = exp(-a);
    moment[0] = -expm1(-w);
    for (int p = 1; p <= degree; ++p) {
        if (edge > 0) edge *= w;
        moment[p] = p * moment[p - 1] - edge;
    }
    for (int p = 0; p <= degree; ++p, scale /= rate) moment[p] *= scale;
    return a / rate;
}

/* x = low + 1, ..., high; the terms from the largest outwards */
static double poisson_sum(const struct sums *s, double rate, double low, double high,
                          double *moment) {
    const int degree = 2 * s->most_power;
    const double first = low + 1, start = between(floor(rate), first, high);
    const double top = Rf_dpois(start, rate, 0);
    memset(moment, 0, (size_t)(degree + 1) * sizeof(double));
    for (int down = 0; down <= 1; ++down) {
        double mass = down ? top * start / rate : top;
        for (double x = start - down; x >= first && x <= high; x += down ? -1 : 1) {
            double term = mass;
            for (int p = 0; p <= degree; ++p, term *= x - start) moment[p] += term;
            mass *= down ? x / rate : rate / (x + 1);
        }
    }
    return start;
}

static double poisson_piece(const struct sums *s, double rate, double low, double high,
                            double *moment) {
    const int degree = 2 * s->most_power;
    if (low < -1) low = -1;
    if (high <= low) {
        memset(moment, 0, (size_t)(degree + 1) * sizeof(double));
        return 0;
    }
    if (high - low <= MOST_POINTS) return poisson_sum(s, rate, low, high, moment);
    moment[0] = low >= rate
                    ? Rf_ppois(low, rate, 0, 0) - (isfinite(high) ? Rf_ppois(high, rate, 0, 0) : 0)
                    : (isfinite(high) ? Rf_ppois(high, rate, 1, 0) : 1) -
                          (low >= 0 ? Rf_ppois(low, rate, 1, 0) : 0);
    double edge_low = low >= 0 ? Rf_dpois(low, rate, 0) : 0;
    double edge_high = isfinite(high) ? Rf_dpois(high, rate, 0) : 0;
    for (int p = 1; p <= degree; ++p) {
        const double *choose = binomials(s, p - 1);
        double sum = edge_low - edge_high;
        for (int j = 0; j < p - 1; ++j) sum += choose[j] * moment[j];
        moment[p] = rate * sum;
        if (edge_low != 0) edge_low *= low + 1 - rate;
        if (edge_high != 0) edge_high *= high + 1 - rate;
    }
    return rate;
}

/* ---- components ------------------------------------------------------------------ */

static double component_at(const struct component *c, double x) {
    if (x <= c->lower) return c->at_lower;
    if (x > c->upper) return c->at_upper;
    return power_of(c->factor * (x - c->shift), c->power);
}

/* the component less its reference on the piece (low, high], about the origin;
 * returns its degree */
static int expand(const struct sums *s, const struct component *c, double reference, double low,
                  double high, double origin, double *out) {
    if (high <= c->lower || low >= c->upper) {
        out[0] = (high <= c->lower ? c->at_lower : c->at_upper) - reference;
        return 0;
    }
    const double *choose = binomials(s, c->power);
    const double at = c->factor * (origin - c->shift);
    double factor = 1;
    for (int k = 0; k <= c->power; ++k, factor *= c->factor)
        out[k] = choose[k] * factor * power_of(at, c->power - k);
    out[0] -= reference;
    return c->power;
}

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct sums *s = self;
    const int w = s->components, terms = s->most_power + 1;
    double first, sd = 1; /* mean and sd, or a rate */
    block_constrain(s->coordinates->block, theta, &first);
    if (s->family == NORMAL) block_constrain(s->coordinates->block + 1, theta, &sd);
    const double centre = s->family == EXPONENTIAL ? 1 / first : first;
    if (!isfinite(first) || !isfinite(sd) || !(sd > 0) || (s->family != NORMAL && !(first > 0)))
        return PLUGIN_NUMERICAL;
    for (int j = 0; j < w; ++j) {
        s->reference[j] = component_at(s->component + j, centre);
        mean[j] = 0;
        for (int i = 0; i <= j; ++i) cov[(size_t)j * w + i] = 0;
    }
    for (int k = 0; k <= s->cuts; ++k) {
        const double low = k == 0 ? -INFINITY : s->cut[k - 1],
                     high = k == s->cuts ? INFINITY : s->cut[k];
        if (s->family != NORMAL && high < 0) continue;
        double *moment = s->moment;
        const double origin = s->family == NORMAL ? normal_piece(s, first, sd, low, high, moment)
                              : s->family == EXPONENTIAL
                                  ? exponential_piece(s, first, low, high, moment)
                                  : poisson_piece(s, first, low, high, moment);
        for (int j = 0; j < w; ++j) {
            double *poly = s->polynomial + (size_t)j * terms;
            const int degree =
                expand(s, s->component + j, s->reference[j], low, high, origin, poly);
            for (int p = degree + 1; p < terms; ++p) poly[p] = 0;
            for (int p = 0; p <= degree; ++p) mean[j] += poly[p] * moment[p];
            for (int i = 0; i <= j; ++i) {
                const double *other = s->polynomial + (size_t)i * terms;
                double sum = 0;
                for (int p = 0; p <= degree; ++p) {
                    if (poly[p] == 0) continue;
                    for (int q = 0; q <= s->component[i].power; ++q)
                        sum += poly[p] * other[q] * moment[p + q];
                }
                cov[(size_t)j * w + i] += sum;
            }
        }
    }
    double check = 0;
    for (int j = 0; j < w; ++j)
        for (int i = 0; i <= j; ++i) {
            const size_t at = (size_t)j * w + i;
            cov[at] -= mean[i] * mean[j];
            if (i == j && !(cov[at] > 0)) cov[at] = 0; /* rounding */
            cov[(size_t)i * w + j] = cov[at];
            check += cov[at];
        }
    for (int j = 0; j < w; ++j) check += mean[j] += s->reference[j];
    return isfinite(check) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

/* ---- the complete-data statistic -------------------------------------------------- */

/* Totals of x that are not negative; of the normal model a scatter that is not. */
static void project(void *self, double n, double *c) {
    const struct sums *s = self;
    const double least = s->family == NORMAL ? c[0] * c[0] / n : 0;
    double *bounded = s->family == NORMAL ? c + 1 : c;
    if (*bounded < least) *bounded = least;
}

static int complete(void *self, double n, const double *total, double *c) {
    const struct sums *s = self;
    memcpy(c, total + s->released, (size_t)(s->components - s->released) * sizeof(double));
    return s->family == NORMAL ? c[1] >= c[0] * c[0] / n : c[0] >= 0;
}

const struct record_moments_class moments_sums = {
    .name = "sums",
    .create = create,
    .eval = eval,
    .complete = complete,
    .project = project,
};
