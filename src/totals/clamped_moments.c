/* Expected totals and products of clamped columns, given the totals and products
 * of the columns before they are clamped: as if the records were normal, with the mean and the
 * covariance that c has. And the additional variance of the totals of clamped records.
 *
 * A column with mean mu and standard deviation s has its bounds at mu + s a and mu + s b.
 * With Phi and phi the standard normal distribution and density and He_k Hermite's polynomials,
 *
 *   J_0 = Phi(b) - Phi(a),   J_k = He_(k-1)(a) phi(a) - He_(k-1)(b) phi(b),
 *   E w = l Phi(a) + u (1 - Phi(b)) + mu J_0 + s J_1,
 *   E w^2 = l^2 Phi(a) + u^2 (1 - Phi(b)) + (mu^2 + s^2) J_0 + 2 mu s J_1 + s^2 J_2;
 *
 * s^k times the expected derivative number k of the clamped column is s J_(k-1). Two columns with
 * correlation r: Mehler's series, as long as its terms count (|He_k(x)| exp(-x^2 / 4) <= 1.09
 * sqrt(k!), Cramer),
 *
 *   cov = s_1 s_2 sum_(k >= 1) r^k / k! J_(k-1) J_(k-1)',
 *
 * J' of the other column. The product with a dummy: its records, with their own mean and the
 * column's s.
 *
 * Derivatives: dE w = J_0 dmu + J_1 ds, dE w^2 = 2 (mu J_0 + s J_1) dmu + 2 (mu J_1 + s (J_0 +
 * J_2)) ds, and since derivative number k has the slope number k + 1 in mu and s times number
 * k + 2 in s, dcov = sum r^k / k! (k / r J_(k-1) J_(k-1)' s_1 s_2 dr at fixed s_1 s_2, that is
 * k / r J_(k-1) J_(k-1)' dC with C the covariance; s_2 J_k J_(k-1)' dmu_1; s_2 J_(k+1) J_(k-1)'
 * ds_1).
 *
 * Back: of a column, (E w, E w^2) determine mean and standard deviation (with E w held, a larger s
 * spreads w about it); of two, the expected product grows with r. The slopes are those above, so
 * that the volume of what is expected over that of c is the product of J_0 (J_0 + J_2) - J_1^2 over
 * columns and of sum_(k >= 0) r^k / k! J_k J_k' over pairs.
 *
 * Additional variance: given the records' means and products, the total of a function of a record
 * has the variance of its Hermite components of degree 3 and more.
 *
 * Cost: two distribution functions a column and dummy (base/normal_tails.c), O(d^2) short series.
 * No allocation except in clamped_new().
 */
#include "totals/clamped_moments.h"

#include "base/block.h"
#include "base/normal_tails.h"
#include "contract/plugin.h"

/* of a term, in units of the standard deviations, that is left out */
static const double NEGLIGIBLE = 1e-7;

/* J_k, 0 < k < terms + 2: each recursion waits for itself, so both edges go together. */
static void fill_edges(int terms, const struct clamped_edges *at, double *j) {
    double low = at->at_a, low_before = 0, high = at->at_b, high_before = 0;
    for (int k = 1; k < terms + 2; ++k) {
        j[k] = low - high;
        const double low_next = at->a * low - (k - 1) * low_before;
        const double high_next = at->b * high - (k - 1) * high_before;
        low_before = low;
        high_before = high;
        low = low_next;
        high = high_next;
    }
}

/* where a bound is in standard deviations about the mean, an infinite one too */
static double edge_at(double bound, double mean, double sd) {
    return isfinite(bound) ? (bound - mean) / sd : bound;
}

static void read_edges(struct clamped_edges *at, double a, double b, const double *density,
                       const double *beyond) {
    at->a = isfinite(a) ? a : 0;
    at->b = isfinite(b) ? b : 0;
    at->at_a = density[0];
    at->at_b = density[1];
    at->below = beyond[0];
    at->above = beyond[1];
}

static void set_bend(struct clamped_edges *at) {
    at->bend = 1.6 * (sqrt(at->at_a) + sqrt(at->at_b));
}

/* The edges of columns i and j, which may be the same. */
static void place_edges(struct clamped *clamped, int i, int j) {
    struct clamped_column *x = clamped->column + i, *y = clamped->column + j;
    const double a = edge_at(clamped->lower[i], x->mean, x->sd);
    const double b = edge_at(clamped->upper[i], x->mean, x->sd);
    const double other_a = edge_at(clamped->lower[j], y->mean, y->sd);
    const double other_b = edge_at(clamped->upper[j], y->mean, y->sd);
    double density[4], beyond[4];
    normal_tails(a, -b, other_a, -other_b, density, beyond);
    read_edges(&x->edges, a, b, density, beyond);
    read_edges(&y->edges, other_a, other_b, density + 2, beyond + 2);
    set_bend(&x->edges);
    set_bend(&y->edges);
}

/* E of a clamped normal variable, and what so many terms of the series and their derivatives
 * need; after place_edges() */
static void expect_column(struct clamped_column *x, double lower, double upper, int terms) {
    const struct clamped_edges *at = &x->edges;
    const double below = at->below, above = at->above;
    const double l = below > 0 ? lower : 0, u = above > 0 ? upper : 0; /* not an infinite one */
    double *j = x->j;
    j[0] = 1 - below - above;
    fill_edges(terms, at, j);
    x->first = l * below + u * above + x->mean * j[0] + x->sd * j[1];
    x->second = l * l * below + u * u * above + (x->mean * x->mean + x->sd * x->sd) * j[0] +
                2 * x->mean * x->sd * j[1] + x->sd * x->sd * j[2];
}

static void fill_moments(double lower, double upper, double mean, double sd,
                         const struct clamped_edges *at, struct clamped_moments *out) {
    const double inside = 1 - at->below - at->above, first = at->at_a - at->at_b;
    const double second = at->a * at->at_a - at->b * at->at_b; /* J_0, J_1, J_2 */
    const double l = at->below > 0 ? lower : 0, u = at->above > 0 ? upper : 0;
    out->first = l * at->below + u * at->above + mean * inside + sd * first;
    out->second = l * l * at->below + u * u * at->above + (mean * mean + sd * sd) * inside +
                  2 * mean * sd * first + sd * sd * second;
    out->first_mean = inside;
    out->first_sd = first;
    out->second_mean = 2 * (mean * inside + sd * first);
    out->second_sd = 2 * (mean * first + sd * (inside + second));
}

void clamped_normals(double lower, double upper, double sd, int count, const double *mean,
                     struct clamped_moments *out) {
    for (int g = 0; g < count; g += 2) {
        const int h = g + 1 < count ? g + 1 : g;
        const double a = edge_at(lower, mean[g], sd), b = edge_at(upper, mean[g], sd);
        const double other_a = edge_at(lower, mean[h], sd), other_b = edge_at(upper, mean[h], sd);
        double density[4], beyond[4];
        struct clamped_edges edges;
        normal_tails(a, -b, other_a, -other_b, density, beyond);
        read_edges(&edges, a, b, density, beyond);
        fill_moments(lower, upper, mean[g], sd, &edges, out + g);
        if (h == g) return;
        read_edges(&edges, other_a, other_b, density + 2, beyond + 2);
        fill_moments(lower, upper, mean[h], sd, &edges, out + h);
    }
}

struct clamped *clamped_new(const struct totals *totals, const double *lower, const double *upper) {
    struct clamped *clamped = plugin_memory(1, sizeof *clamped);
    clamped->totals = totals;
    clamped->most = CLAMPED_TERMS;
    clamped->lower = lower;
    clamped->upper = upper;
    const size_t d = (size_t)totals->d, width = (size_t)totals->width;
    clamped->width = totals->width;
    clamped->column = plugin_memory(d, sizeof *clamped->column);
    DOUBLES(d * width, &clamped->correlation, &clamped->slope, &clamped->rest);
    clamped->terms = plugin_memory(d * width, sizeof(int));
    DOUBLES(width, &clamped->row, &clamped->first, &clamped->inside, &clamped->reach,
            &clamped->mean, &clamped->per_sd, &clamped->on_first, &clamped->along);
    clamped->group = plugin_memory(d * (size_t)totals->k, sizeof *clamped->group);
    clamped->group_mean = doubles((size_t)totals->k);
    return clamped;
}

/* Terms of the series of two columns that are not negligible. */
static int count_terms(int most, const struct clamped_column *x, const struct clamped_column *y,
                       double r) {
    double size = 0.19 * x->edges.bend * y->edges.bend * (r * r);
    int k = 1;
    for (; k < most && size > NEGLIGIBLE * k * (k + 1); ++k) size *= fabs(r);
    return k;
}

/* sum of r^k / k! x_k y_k over k from 1 on; x and y begin with those */
static inline double series(int terms, double r, const double *x, const double *y) {
    double weight = r, sum = r * x[0] * y[0];
    for (int k = 2; k <= terms; ++k) {
        weight *= r / k;
        sum += weight * x[k - 1] * y[k - 1];
    }
    return sum;
}

void clamped_place(struct clamped *clamped) {
    const int d = clamped->totals->d;
    for (int i = 0; i < d; i += 2) place_edges(clamped, i, i + 1 < d ? i + 1 : i);
    clamped_place_again(clamped);
}

/* out[j] = scale first[j] + reach r[j] others' reach[j] */
VECTOR_CLONES static void expect_row(int count, double scale, const double *restrict first,
                                     double reach, const double *restrict r,
                                     const double *restrict reaches, double *restrict out) {
    FOR_RECORDS(j, count) out[j] = scale * first[j] + reach * r[j] * reaches[j];
}

void clamped_place_again(struct clamped *clamped) {
    const int d = clamped->totals->d, width = clamped->width;
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        const double *r = clamped->correlation + (size_t)i * (size_t)width;
        int *of_row = clamped->terms + (size_t)i * (size_t)width;
        x->terms = 1;
        x->longer = 0;
        for (int j = 0; j < i; ++j) {
            struct clamped_column *y = clamped->column + j;
            const int terms = of_row[j] = count_terms(clamped->most, x, y, r[j]);
            if (terms == 1) continue;
            x->longer = 1;
            if (terms > x->terms) x->terms = terms;
            if (terms > y->terms) y->terms = terms;
        }
    }
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        expect_column(x, clamped->lower[i], clamped->upper[i], x->terms);
        clamped->first[i] = x->first;
        clamped->inside[i] = x->j[0];
        clamped->reach[i] = x->sd * x->j[0];
    }
}

const double *clamped_products(const struct clamped *clamped, int i) {
    const struct clamped_column *x = clamped->column + i;
    const size_t at = (size_t)i * (size_t)clamped->width;
    const double *r = clamped->correlation + at;
    const int *terms = clamped->terms + at;
    double *out = clamped->row;
    expect_row(i, x->first, clamped->first, clamped->reach[i], r, clamped->reach, out);
    for (int j = 0; j < i && x->longer; ++j) {
        const struct clamped_column *y = clamped->column + j;
        if (terms[j] > 1)
            out[j] = x->first * y->first + x->sd * y->sd * series(terms[j], r[j], x->j, y->j);
    }
    out[i] = x->second;
    return out;
}

/* r = (share product - mean means) per_sd others' per_sd, of which rounding may make more than 1 */
VECTOR_CLONES static void correlate(int count, double share, double mean,
                                    const double *restrict means, double per_sd,
                                    const double *restrict per_sds, double *restrict r) {
    FOR_RECORDS(j, count) {
        double value = (share * r[j] - mean * means[j]) * (per_sd * per_sds[j]);
        value = value < 1 ? value : 1;
        r[j] = value > -1 ? value : -1;
    }
}

/* Means, standard deviations and correlations of the columns, from c. */
static void read_moments(struct clamped *clamped, const double *c) {
    const struct totals *t = clamped->totals;
    const int d = t->d;
    const double share = 1 / t->n;
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        double *r = clamped->correlation + (size_t)i * (size_t)clamped->width;
        x->mean = c[t->column[i]] * share;
        const double variance = c[t->product[i * d + i]] * share - x->mean * x->mean;
        x->sd = variance > 0 ? sqrt(variance) : 1e-300;
        clamped->mean[i] = x->mean;
        clamped->per_sd[i] = 1 / x->sd;
        for (int j = 0; j < i; ++j) r[j] = c[t->product[i * d + j]];
        correlate(i, share, x->mean, clamped->mean, clamped->per_sd[i], clamped->per_sd, r);
    }
}

/* The records of dummies, with their own means and the column's standard deviation. */
static struct clamped_moments *groups_of(const struct clamped *clamped, int i) {
    return clamped->group + (size_t)i * (size_t)clamped->totals->k;
}

static void expect_groups(struct clamped *clamped, int i, const double *c, double *out) {
    const struct totals *t = clamped->totals;
    struct clamped_moments *group = groups_of(clamped, i);
    for (int b = 1; b < t->k; ++b) {
        const double count = c[t->fixed[b - 1]];
        clamped->group_mean[b - 1] = count > 0 ? c[t->cross[b * t->d + i]] / count : 0;
    }
    clamped_normals(clamped->lower[i], clamped->upper[i], clamped->column[i].sd, t->k - 1,
                    clamped->group_mean, group);
    for (int b = 1; b < t->k; ++b)
        out[t->cross[b * t->d + i]] = c[t->fixed[b - 1]] * group[b - 1].first;
}

void clamped_expect(struct clamped *clamped, const double *c, double *out) {
    const struct totals *t = clamped->totals;
    const int d = t->d;
    read_moments(clamped, c);
    clamped_place(clamped);
    for (int i = 0; i < d; ++i) {
        const struct clamped_column *x = clamped->column + i;
        const double *product = clamped_products(clamped, i);
        out[t->column[i]] = t->n * x->first;
        for (int j = 0; j <= i; ++j) out[t->product[i * d + j]] = t->n * product[j];
        expect_groups(clamped, i, c, out);
    }
}

/* What terms of the series after the first add to sums that slopes need: of derivatives k, k of
 * both columns, divided by r / k (less the first term), k + 1, k; k, k + 1; k + 2, k; k, k + 2. */
struct slopes {
    double both, first, second, twice_first, twice_second;
};

static inline struct slopes slope_series(int terms, double r, const double *x, const double *y) {
    struct slopes sum = {r * x[1] * y[1], 0, 0, 0, 0};
    double weight = r;
    for (int k = 2; k <= terms; ++k) {
        weight *= r / k;
        sum.both += k < terms ? weight * x[k] * y[k] : 0;
        sum.first += weight * x[k] * y[k - 1];
        sum.second += weight * x[k - 1] * y[k];
        sum.twice_first += weight * x[k + 1] * y[k - 1];
        sum.twice_second += weight * x[k - 1] * y[k + 1];
    }
    return sum;
}

/* The terms after the first of row i; what they add to slopes in covariances goes to `rest`. */
static void pull_longer(struct clamped *clamped, int i) {
    struct clamped_column *restrict x = clamped->column + i;
    const size_t row = (size_t)i * (size_t)clamped->width;
    for (int j = 0; j < i; ++j) {
        const size_t at = row + (size_t)j;
        struct clamped_column *restrict y = clamped->column + j;
        clamped->rest[at] = 0;
        if (clamped->terms[at] == 1) continue;
        const double slope = clamped->slope[at];
        const struct slopes sum =
            slope_series(clamped->terms[at], clamped->correlation[at], x->j, y->j);
        x->on_mean += slope * y->sd * sum.first;
        y->on_mean += slope * x->sd * sum.second;
        x->on_sd += slope * y->sd * sum.twice_first;
        y->on_sd += slope * x->sd * sum.twice_second;
        clamped->rest[at] = slope * sum.both;
    }
}

/* First terms of all pairs. Rows of `slope` are 0 from their diagonals on. */
VECTOR_CLONES static void pull_pairs(int d, int width, const double *restrict correlation,
                                     const double *restrict first, const double *restrict reach,
                                     const double *restrict inside, double *restrict slope,
                                     double *restrict on_first, double *restrict along) {
    for (int i = 0; i < d; ++i) {
        const double *r = correlation + (size_t)i * width;
        double *row = slope + (size_t)i * width;
        const double own_first = first[i], own_reach = reach[i], own_inside = inside[i];
        double of_first[LANES] = {0}, of_reach[LANES] = {0};
        for (int j = 0; j < i; j += LANES)
            for (int l = 0; l < LANES; ++l) {
                const double value = row[j + l], weighed = value * r[j + l];
                of_first[l] += value * first[j + l];
                on_first[j + l] += value * own_first;
                of_reach[l] += weighed * reach[j + l];
                along[j + l] += weighed * own_reach;
                row[j + l] = value * (own_inside * inside[j + l]);
            }
        on_first[i] += (of_first[0] + of_first[1]) + (of_first[2] + of_first[3]);
        along[i] += (of_reach[0] + of_reach[1]) + (of_reach[2] + of_reach[3]);
    }
}

void clamped_pull_slopes(struct clamped *clamped) {
    const int d = clamped->totals->d, width = clamped->width;
    double *on_first = clamped->on_first, *along = clamped->along;
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        x->on_mean = 2 * x->on_second * (x->mean * x->j[0] + x->sd * x->j[1]);
        x->on_sd = 2 * x->on_second * (x->mean * x->j[1] + x->sd * (x->j[0] + x->j[2]));
        on_first[i] = x->on_first;
        along[i] = 0;
    }
    for (int i = 0; i < d; ++i)
        if (clamped->column[i].longer) pull_longer(clamped, i);
    pull_pairs(d, width, clamped->correlation, clamped->first, clamped->reach, clamped->inside,
               clamped->slope, on_first, along);
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        const size_t row = (size_t)i * (size_t)width;
        x->on_mean += on_first[i] * x->j[0] + along[i] * x->j[1];
        x->on_sd += on_first[i] * x->j[1] + along[i] * x->j[2];
        for (int j = 0; j < i && x->longer; ++j)
            clamped->slope[row + (size_t)j] += clamped->rest[row + (size_t)j];
    }
}

/* out = a x, a symmetric, of which rows left of the diagonal are given, 0 from there on */
VECTOR_CLONES static void multiply(int d, int width, const double *restrict a,
                                   const double *restrict x, double *restrict out) {
    for (int j = 0; j < width; ++j) out[j] = 0;
    for (int i = 0; i < d; ++i) {
        const double *row = a + (size_t)i * width;
        const double own = x[i];
        double part[LANES] = {0};
        for (int j = 0; j < i; j += LANES)
            for (int l = 0; l < LANES; ++l) {
                part[l] += row[j + l] * x[j + l];
                out[j + l] += row[j + l] * own;
            }
        out[i] += (part[0] + part[1]) + (part[2] + part[3]);
    }
}

void clamped_pull(struct clamped *clamped, const double *c, double *gradient) {
    const struct totals *t = clamped->totals;
    const int d = t->d, width = clamped->width;
    const double share = 1 / t->n;
    for (int i = 0; i < d; ++i) {
        double *slope = clamped_slopes(clamped, i);
        clamped->column[i].on_first = t->n * gradient[t->column[i]];
        clamped->column[i].on_second = t->n * gradient[t->product[i * d + i]];
        for (int j = 0; j < i; ++j) slope[j] = t->n * gradient[t->product[i * d + j]];
    }
    clamped_pull_slopes(clamped);
    double *of_means = clamped->along; /* slopes in the means that products of means have */
    multiply(d, width, clamped->slope, clamped->mean, of_means);
    for (int i = 0; i < d; ++i) {
        struct clamped_column *x = clamped->column + i;
        const double *slope = clamped->slope + (size_t)i * (size_t)width;
        const struct clamped_moments *group = groups_of(clamped, i);
        for (int b = 1; b < t->k; ++b) {
            const int at = t->cross[b * d + i];
            x->on_sd += gradient[at] * c[t->fixed[b - 1]] * group[b - 1].first_sd;
            gradient[at] *= group[b - 1].first_mean;
        }
        for (int j = 0; j < i; ++j) gradient[t->product[i * d + j]] = slope[j] * share;
        const double on_variance = x->on_sd / (2 * x->sd);
        gradient[t->product[i * d + i]] = on_variance * share;
        gradient[t->column[i]] = (x->on_mean - of_means[i] - 2 * x->mean * on_variance) * share;
    }
}

/* ---- back from what is expected --------------------------------------------------------- */

/* slope of the covariance of two clamped columns in the columns' own covariance */
static double slope_in_cov(const struct clamped_column *x, const struct clamped_column *y,
                           int terms, double r) {
    return x->j[0] * y->j[0] + (terms > 1 ? series(terms - 1, r, x->j + 1, y->j + 1) : 0);
}

double clamped_log_volume(const struct clamped *clamped) {
    const int d = clamped->totals->d;
    double sum = 0;
    for (int i = 0; i < d; ++i) {
        const struct clamped_column *x = clamped->column + i;
        sum += log(x->j[0] * (x->j[0] + x->j[2]) - x->j[1] * x->j[1]);
        for (int j = 0; j < i; ++j)
            sum += log(slope_in_cov(x, clamped->column + j, clamped->terms[i * clamped->width + j],
                                    clamped->correlation[i * clamped->width + j]));
    }
    return sum;
}

/* of Newton's iterations; and how near is near enough, in units of what is expected of a record */
enum { MOST_ROUNDS = 40 };
static const double NEAR = 1e-11;

/* Newton in the mean and log sd, shortened where a step would go far. */
static int match_column(struct clamped *clamped, int i, double first, double second) {
    struct clamped_column *x = clamped->column + i;
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        place_edges(clamped, i, i);
        expect_column(x, clamped->lower[i], clamped->upper[i], 1);
        const double *j = x->j, unit = x->sd;
        const double off = (first - x->first) / unit;
        /* of the square about the mean before clamping, whose slopes are 2 s J_1 and 2 s (J_0 +
         * J_2) */
        const double off_square =
            0.5 * (second - x->second - 2 * x->mean * (first - x->first)) / (unit * unit);
        const double volume = j[0] * (j[0] + j[2]) - j[1] * j[1];
        if (!(volume > 0)) return 0;
        const double by = ((j[0] + j[2]) * off - j[1] * off_square) / volume;
        const double by_log = (j[0] * off_square - j[1] * off) / volume;
        const double size = fmax(fabs(by), fabs(by_log)), share = size > 1 ? 1 / size : 1;
        x->mean += share * by * unit;
        x->sd *= exp(share * by_log);
        if (size < NEAR) return 1;
    }
    return 0;
}

static int match_pair(struct clamped *clamped, int i, int j, double product) {
    const struct clamped_column *x = clamped->column + i, *y = clamped->column + j;
    const int most = CLAMPED_TERMS;
    const double cov = (product - x->first * y->first) / (x->sd * y->sd);
    double r = clamped->correlation[i * clamped->width + j];
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const double by = (cov - series(most, r, x->j, y->j)) / slope_in_cov(x, y, most, r);
        const double to = r + by;
        if (!(fabs(to) < 2)) return 0;
        r = to >= 1 ? 0.5 * (1 + r) : to <= -1 ? 0.5 * (r - 1) : to;
        if (fabs(by) > NEAR) continue;
        clamped->correlation[i * clamped->width + j] = r;
        return 1;
    }
    return 0;
}

int clamped_match(struct clamped *clamped, const double *seen, double *c) {
    const struct totals *t = clamped->totals;
    const int d = t->d;
    const double share = 1 / t->n;
    for (int i = 0; i < d; ++i)
        if (!match_column(clamped, i, share * seen[t->column[i]],
                          share * seen[t->product[i * d + i]]))
            return 0;
    clamped_expand(clamped);
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j)
            if (!match_pair(clamped, i, j, share * seen[t->product[i * d + j]])) return 0;
    for (int i = 0; i < d; ++i) {
        const struct clamped_column *x = clamped->column + i;
        c[t->column[i]] = t->n * x->mean;
        for (int j = 0; j <= i; ++j) {
            const struct clamped_column *y = clamped->column + j;
            const double r = i == j ? 1 : clamped->correlation[i * clamped->width + j];
            c[t->product[i * d + j]] = t->n * (r * x->sd * y->sd + x->mean * y->mean);
        }
    }
    return 1;
}

/* ---- beyond the expectation ---------------------------------------------------------- */

/* s^k times the expected derivatives, k from 0 on, of the column plus `shift`, to `own`, and of
 * its square, to `square`. */
static void expand_column(const struct clamped_column *x, double shift, double *own,
                          double *square) {
    const double *j = x->j, s = x->sd, mean = x->mean + shift;
    own[0] = x->first + shift;
    square[0] = x->second + shift * (2 * x->first + shift);
    for (int k = 1; k < CLAMPED_TERMS + 2; ++k) {
        own[k] = s * j[k - 1];
        square[k] = 2 * s * (mean * j[k - 1] + s * (j[k] + (k > 1 ? (k - 1) * j[k - 2] : 0)));
    }
}

/* sum over degrees of 3 and more of a column's function with these derivatives */
static double high_degrees(const double *derivative) {
    double factorial = 2, sum = 0;
    for (int k = 3; k < CLAMPED_TERMS + 2; ++k) {
        factorial *= k;
        sum += derivative[k] * derivative[k] / factorial;
    }
    return sum;
}

void clamped_expand(struct clamped *clamped) {
    for (int i = 0; i < clamped->totals->d; ++i)
        expect_column(clamped->column + i, clamped->lower[i], clamped->upper[i], CLAMPED_TERMS);
}

double clamped_left(const struct clamped *clamped, int i) {
    double own[CLAMPED_TERMS + 2], square[CLAMPED_TERMS + 2];
    expand_column(clamped->column + i, 0, own, square);
    return high_degrees(own);
}

double clamped_product_left(const struct clamped *clamped, int i, double shift_i, int j,
                            double shift_j) {
    const int width = clamped->width;
    const struct clamped_column *x = clamped->column + i, *y = clamped->column + j;
    double f[CLAMPED_TERMS + 2], ff[CLAMPED_TERMS + 2], g[CLAMPED_TERMS + 2], gg[CLAMPED_TERMS + 2];
    expand_column(x, shift_i, f, ff);
    if (i == j) return high_degrees(ff);
    expand_column(y, shift_j, g, gg);
    const double r = clamped->correlation[i > j ? i * width + j : j * width + i];
    const int most = CLAMPED_TERMS - 1;
    const double mean = f[0] * g[0] + series(most, r, f + 1, g + 1);
    const double variance = ff[0] * gg[0] + series(most, r, ff + 1, gg + 1) - mean * mean;
    /* expected gradient and Hessian */
    const double of_x = f[1] * g[0] + series(most, r, f + 2, g + 1);
    const double of_y = f[0] * g[1] + series(most, r, f + 1, g + 2);
    const double xx = f[2] * g[0] + series(most, r, f + 3, g + 1);
    const double xy = f[1] * g[1] + series(most, r, f + 2, g + 2);
    const double yy = f[0] * g[2] + series(most, r, f + 1, g + 3);
    const double first = of_x * of_x + 2 * r * of_x * of_y + of_y * of_y;
    const double a = xx + r * xy, b = r * xx + xy, e = xy + r * yy, h = r * xy + yy;
    const double left = variance - first - 0.5 * (a * a + 2 * b * e + h * h);
    return left > 0 ? left : 0;
}
