/* Noisy numbers that were hidden below a threshold, rounded or clipped after the noise. With r = s
 * + e the noisy number of the exact total s, a published number implies that r is in an interval,
 * so its likelihood is
 *
 *   P(lower <= s + e <= upper),
 *
 * or the density or mass of e if both ends are the same. If only numbers of at least `least` were
 * listed, the number is known to be one of them, and the likelihood is divided by P(s + e >=
 * least).
 *
 * Invariants: the smaller tail is used, on the log scale, so that no probability underflows;
 * differences of tails are computed by expm1(), and in a normal interval that is narrow relative to
 * its sd, by the density at its middle, so that rounding to a tiny unit is the density times the
 * unit. Discrete noise: an interval's ends are whole numbers; a few masses are added up, many are
 * computed from tails. A sum of bits that are 1 with a probability p in `total` records and q in
 * the others is the sum of two binomial numbers; cost: the root of the number of records, once for
 * each of some totals, between which the log probability is interpolated. Otherwise cost: one or
 * two logarithms a component; with discrete Gaussian noise up to FEW of them.
 */
#include "contract/published.h"

#include "base/dist_discrete.h"

#include <Rmath.h>

/* whole numbers in an interval whose masses are added up */
enum { FEW = 16 };

/* widths relative to the sd whose fourth power is below a double's precision */
static const double NARROW = 1e-4;

/* log(exp(a) - exp(b)), a >= b */
static double log_difference(double a, double b) {
    const double fall = b - a;
    if (!(fall < 0)) return -INFINITY;
    return a + (fall > -M_LN2 ? log(-expm1(fall)) : log1p(-exp(fall)));
}

/* ---- continuous noise, in units of its scale ------------------------------------------- */

/* For `lower` >= 0, or straddling 0: see interval(). */
static double laplace_interval(double lower, double upper) {
    if (lower > 0) return -lower - M_LN2 + log(-expm1(lower - upper));
    return log(-0.5 * expm1(lower) - 0.5 * expm1(-upper));
}

static double gaussian_interval(double lower, double upper) {
    const double width = upper - lower;
    if (width < NARROW) {
        const double middle = 0.5 * (lower + upper);
        return Rf_dnorm4(middle, 0, 1, 1) + log(width) +
               log1p(width * width * (middle * middle - 1) / 24);
    }
    const double above = Rf_pnorm5(upper, 0, 1, 0, 1);
    if (lower > 0) return log_difference(Rf_pnorm5(lower, 0, 1, 0, 1), above);
    return log1p(-(Rf_pnorm5(lower, 0, 1, 1, 0) + exp(above)));
}

/* ---- discrete noise --------------------------------------------------------------------- */

static double discrete_interval(const struct discrete_distribution *noise, double lower,
                                double upper, double scale) {
    if (upper - lower < FEW) {
        double most = -INFINITY, sum = 0, mass[FEW];
        int count = 0;
        for (double k = lower; k <= upper; ++k) {
            mass[count] = noise->log_density(k, 0, scale);
            most = fmax(most, mass[count++]);
        }
        if (!(most > -INFINITY)) return -INFINITY;
        for (int k = 0; k < count; ++k) sum += exp(mass[k] - most);
        return most + log(sum);
    }
    const double above = noise->cumulative(upper, 0, scale, 0, 1);
    if (lower > 0) return log_difference(noise->cumulative(lower - 1, 0, scale, 0, 1), above);
    return log1p(-(noise->cumulative(lower - 1, 0, scale, 1, 0) + exp(above)));
}

/* ---- an interval of the noise -------------------------------------------------------------- */

/* All families are symmetric about 0: the interval is reflected where it lies below. */
static double interval(enum published_family family, double scale, double lower, double upper) {
    if (lower > upper) return -INFINITY;
    if (-lower > upper) {
        const double end = lower;
        lower = -upper;
        upper = -end;
    }
    switch (family) {
    case PUBLISHED_LAPLACE:
        if (lower == upper) return -fabs(lower) / scale - M_LN2 - log(scale);
        return laplace_interval(lower / scale, upper / scale);
    case PUBLISHED_GAUSSIAN:
        if (lower == upper) return Rf_dnorm4(lower, 0, scale, 1);
        return gaussian_interval(lower / scale, upper / scale);
    case PUBLISHED_DISCRETE_LAPLACE:
        return discrete_interval(&dist_discrete_laplace, lower, upper, scale);
    case PUBLISHED_DISCRETE_GAUSSIAN:
        return discrete_interval(&dist_discrete_gaussian, lower, upper, scale);
    case PUBLISHED_TABULATED:
    case PUBLISHED_BITS:
        break; /* have no intervals */
    }
    return -INFINITY;
}

/* ---- sums of bits --------------------------------------------------------------------------- */

/* The sum over t >= from, or downwards, of P(t ones from `own` records, the others from the rest)
 * over that at `from`; `odds`: of p against q. */
static double bits_tail(double from, double end, double own, double others, double ones,
                        double odds) {
    const double step = end > from ? 1 : -1;
    double sum = 0, term = 1;
    for (double t = from; t != end && term > 1e-18 * (1 + sum); t += step) {
        const double up = step > 0 ? t : t - 1;
        const double ratio =
            odds * (own - up) * (ones - up) / ((up + 1) * (others - ones + up + 1));
        sum += term *= step > 0 ? ratio : 1 / ratio;
    }
    return sum;
}

/* log P(Bin(own, p) + Bin(n - own, q) = ones): terms in both directions from the largest one, the
 * mode of a noncentral hypergeometric distribution. */
static double bits_log(double p, double q, double n, double ones, double own) {
    const double others = n - own;
    if (own < 0 || others < 0) return -INFINITY;
    const double odds = p * (1 - q) / ((1 - p) * q), low = fmax(0, ones - others),
                 high = fmin(ones, own);
    const double a = odds - 1, b = (own + ones + 2) * odds + others - ones,
                 c = (own + 1) * (ones + 1) * odds;
    const double mode = fmin(high, fmax(low, floor(2 * c / (b + sqrt(b * b - 4 * a * c)))));
    const double sum = 1 + bits_tail(mode, high, own, others, ones, odds) +
                       bits_tail(mode, low, own, others, ones, odds);
    return Rf_dbinom(mode, own, p, 1) + Rf_dbinom(ones - mode, others, q, 1) + log(sum);
}

/* A sum of bits, and its log probability at totals about the likely ones, `step` apart: NaN before
 * it was needed. The step is small relative to the least standard deviation that the sum may have,
 * in totals, so that cubics err by less than 1e-8. */
struct bits {
    double p, q, n, ones, first, step;
    double *known;
};

enum { KNOTS = 1024, STEPS_PER_SD = 8, NO_STEPS = 64 };

static void bits_set(const struct published *published, int j, struct bits *b) {
    const double p = published->scale[j], q = published->least[j], n = published->records[j];
    const double sd = sqrt(n * fmin(p * (1 - p), q * (1 - q))) / (p - q),
                 likely = published->lower[j];
    *b = (struct bits){.p = p, .q = q, .n = n, .ones = rint(likely * (p - q) + n * q)};
    b->step = sd < NO_STEPS ? 1 : floor(sd / STEPS_PER_SD);
    b->first = fmax(0, rint(fmin(likely, n) - KNOTS / 2 * b->step));
    b->known = doubles(KNOTS);
    for (int k = 0; k < KNOTS; ++k) b->known[k] = NAN;
}

static double bits_at(const struct bits *b, int k) {
    double *known = b->known + k;
    if (isnan(*known)) *known = bits_log(b->p, b->q, b->n, b->ones, b->first + k * b->step);
    return *known;
}

static double bits_of(const struct bits *b, double total) {
    const double place = (total - b->first) / b->step, left = floor(place), t = place - left;
    if (t == 0 && place >= 0 && place < KNOTS) return bits_at(b, (int)place);
    if (place < 1 || place >= KNOTS - 2 || b->first + (left + 2) * b->step > b->n)
        return bits_log(b->p, b->q, b->n, b->ones, total);
    const int k = (int)left;
    return bits_at(b, k - 1) * t * (t - 1) * (t - 2) / -6 +
           bits_at(b, k) * (t + 1) * (t - 1) * (t - 2) / 2 +
           bits_at(b, k + 1) * (t + 1) * t * (t - 2) / -2 +
           bits_at(b, k + 2) * (t + 1) * t * (t - 1) / 6;
}

double published_log(const struct published *p, int j, double total) {
    const enum published_family family = (enum published_family)p->family[j];
    if (family == PUBLISHED_BITS) return bits_of(p->bits + j, rint(total));
    const double lower = p->lower[j], upper = p->upper[j], scale = p->scale[j];
    if (lower == -INFINITY && upper == INFINITY) return 0;
    if (family == PUBLISHED_TABULATED)
        return tabulated_log(p->table + (size_t)p->table_at[j], (lower - total) / scale);
    const double log_p = interval(family, scale, lower - total, upper - total);
    if (p->least[j] == -INFINITY || log_p == -INFINITY) return log_p;
    return log_p - interval(family, scale, p->least[j] - total, INFINITY);
}

int published_read(const struct fields *fields, int size, struct published *published) {
    published->size = size;
    published->family = fields_vector(fields, "family", size);
    published->scale = fields_vector(fields, "scale", size);
    published->lower = fields_vector(fields, "lower", size);
    published->upper = fields_vector(fields, "upper", size);
    published->least = fields_vector(fields, "least", size);
    published->records = fields_vector(fields, "records", size);
    published->table = fields_vector(fields, "table", -1);
    published->table_at = fields_vector(fields, "table_at", size);
    if (!published->family || !published->scale || !published->lower || !published->upper ||
        !published->least || !published->records || !published->table || !published->table_at)
        return PLUGIN_BAD_FIELDS;
    for (int j = 0; j < size; ++j) {
        if ((enum published_family)published->family[j] != PUBLISHED_BITS) continue;
        if (!published->bits)
            published->bits = plugin_memory((size_t)size, sizeof *published->bits);
        bits_set(published, j, published->bits + j);
    }
    return PLUGIN_OK;
}
