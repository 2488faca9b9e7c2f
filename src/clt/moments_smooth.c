/* Moments "smooth": the distribution of one record's products b_j b_k, j <= k <= j + 2, y b_k and
 * y^2 under model "smooth", y clamped to its bounds, for statistic "smooth" with the same splines.
 *
 * Given x the four splines b that are not 0 there are known, y is normal about f = b'beta, and m_p
 * = E y^p of the clamped y and its slopes come from the moments of a truncated normal variable. So
 * means and products of components are sums over x of products of splines times m_0 to m_4: by
 * Gauss-Legendre quadrature, with NODES in each cell, within which x is uniform, the same for all.
 *
 * Cost: 120 multiplications a node, and size^2.
 */
#include "base/cubic_splines.h"
#include "base/linalg.h"
#include "base/sticks.h"
#include "contract/moments.h"

#include <Rmath.h>

/* in a cell: exact for polynomials of degree 5 over a part of an interval */
enum { NODES = 3, POWERS = 4 };
/* of an interval: pairs, y b, y^2 */
enum { BAND = 3, AT_Y = 9, AT_SQUARE = AT_Y + SPLINES_AT_ONCE, LOCAL = AT_SQUARE + 1 };

/* Of clamped y ~ N(f, sigma^2): moment[p] = E y^p, and their slopes in f and in log sigma. */
struct response {
    double moment[POWERS + 1], in_mean[POWERS + 1], in_log_sd[POWERS + 1];
};

struct smooth_moments {
    int intervals, splines, cells, size;
    double scale, shift, centre, lower, upper; /* of y */
    const double *expand;
    const struct theta_block *coefficients, *sigma, *prob;
    int *at;        /* components of an interval, LOCAL of each */
    double *spline; /* of a node: SPLINES_AT_ONCE */
    double *local;  /* of a node: the products of its splines, 1, 4 of y b and 1 */
    /* of the last theta, a copy of whose coordinates `theta` has: slopes are asked for after totals
     */
    double *theta;
    double *beta, *probability, *mass, *mean; /* mass: of a node */
    struct response *response;                /* of a node */
    double *slope, *of_mean, *of_beta;        /* workspace of slopes */
};

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    static const double NODE[NODES] = {0.1127016653792583, 0.5, 0.8872983346207417};
    struct smooth_moments *s = plugin_memory(1, sizeof *s);
    const double *units = fields_vector(fields, "units", 5);
    const double *intervals = fields_vector(fields, "intervals", 1);
    s->coefficients = coordinates_find(coordinates, "coefficients");
    s->sigma = coordinates_find(coordinates, "sigma");
    s->prob = coordinates_find(coordinates, "prob");
    if (!units || !intervals || !s->coefficients || !s->sigma || !s->prob) return PLUGIN_BAD_FIELDS;
    s->scale = units[0];
    s->shift = units[1];
    s->lower = units[2];
    s->upper = units[3];
    s->centre = units[4];
    s->intervals = (int)*intervals;
    s->splines = s->intervals + 3;
    s->cells = s->prob->size;
    s->expand = fields_vector(fields, "expand", s->splines * s->splines);
    if (!s->expand || s->coefficients->size != s->splines || s->cells % s->intervals)
        return PLUGIN_BAD_FIELDS;
    const int pairs = spline_pairs(s->splines, BAND), each = s->cells / s->intervals;
    s->size = pairs + s->splines + 1;
    s->at = plugin_memory((size_t)(s->intervals * LOCAL), sizeof *s->at);
    for (int i = 0; i < s->intervals; ++i) {
        int *at = s->at + i * LOCAL;
        for (int j = 0; j < SPLINES_AT_ONCE; ++j)
            for (int k = j; k < SPLINES_AT_ONCE && k < j + BAND; ++k)
                *at++ = spline_pair(s->splines, BAND, i + j, i + k);
        for (int j = 0; j < SPLINES_AT_ONCE; ++j) *at++ = pairs + i + j;
        *at = s->size - 1;
    }
    const size_t nodes = (size_t)(s->cells * NODES);
    s->spline = doubles(nodes * SPLINES_AT_ONCE);
    s->local = doubles(nodes * LOCAL);
    for (int q = 0; q < s->cells * NODES; ++q) {
        double *b = s->spline + q * SPLINES_AT_ONCE, *local = s->local + q * LOCAL;
        cubic_splines(((q / NODES) % each + NODE[q % NODES]) / each, b);
        for (int j = 0; j < SPLINES_AT_ONCE; ++j)
            for (int k = j; k < SPLINES_AT_ONCE && k < j + BAND; ++k) *local++ = b[j] * b[k];
        for (int j = 0; j < SPLINES_AT_ONCE; ++j) *local++ = b[j];
        *local = 1;
    }
    DOUBLES((size_t)s->splines, &s->beta, &s->of_beta);
    DOUBLES((size_t)s->cells, &s->probability, &s->slope);
    s->theta = doubles((size_t)(s->splines + s->cells));
    s->theta[0] = NAN;
    s->mass = doubles(nodes);
    s->response = plugin_memory(nodes, sizeof *s->response);
    DOUBLES((size_t)s->size, &s->mean, &s->of_mean);
    moments->self = s;
    moments->released = s->size;
    return PLUGIN_OK;
}

/* ---- a node ------------------------------------------------------------------------- */

static double density(double z) { return isfinite(z) ? M_1_SQRT_2PI * exp(-0.5 * z * z) : 0; }

static void clamped_moments(const struct smooth_moments *s, double f, double sigma,
                            struct response *r) {
    static const double CHOOSE[POWERS + 1][POWERS + 1] = {
        {1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}};
    const double a = (s->lower - f) / sigma, b = (s->upper - f) / sigma;
    const double below = Rf_pnorm5(a, 0, 1, 1, 0), above = Rf_pnorm5(b, 0, 1, 0, 0);
    /* of z within the bounds, then of y */
    double part[POWERS + 1], inside[POWERS + 1];
    double at_a = density(a), at_b = density(b);
    part[0] = a < b ? 1 - below - above : 0;
    part[1] = at_a - at_b;
    for (int p = 2; p <= POWERS; ++p) {
        at_a *= isfinite(a) ? a : 0;
        at_b *= isfinite(b) ? b : 0;
        part[p] = (p - 1) * part[p - 2] + at_a - at_b;
    }
    double lower = 1, upper = 1;
    for (int p = 0; p <= POWERS; ++p) {
        double power = 1;
        inside[p] = 0;
        for (int k = p; k >= 0; --k, power *= f) {
            double scaled = CHOOSE[p][k] * power * part[k];
            for (int i = 0; i < k; ++i) scaled *= sigma;
            inside[p] += scaled;
        }
        r->moment[p] =
            inside[p] + (below > 0 ? lower * below : 0) + (above > 0 ? upper * above : 0);
        r->in_mean[p] = p > 0 ? p * inside[p - 1] : 0;
        r->in_log_sd[p] = p > 0 ? p * (inside[p] - f * inside[p - 1]) : 0;
        lower *= isfinite(s->lower) ? s->lower : 0;
        upper *= isfinite(s->upper) ? s->upper : 0;
    }
}

/* the power of y in a component of an interval */
static inline int power_of(int a) { return a < AT_Y ? 0 : a < AT_SQUARE ? 1 : 2; }

static const double WEIGHT[NODES] = {5.0 / 18, 8.0 / 18, 5.0 / 18};

/* Returns whether the copy was another theta. */
static int copy_theta(struct smooth_moments *s, const double *theta) {
    double *to = s->theta;
    int differs = 0;
    const struct theta_block *const blocks[] = {s->coefficients, s->sigma, s->prob};
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < blocks[k]->length; ++j, ++to) {
            const double value = theta[blocks[k]->offset + j];
            differs |= !(*to == value);
            *to = value;
        }
    return differs;
}

static void set(struct smooth_moments *s, const double *theta) {
    if (!copy_theta(s, theta)) return;
    const double *t = theta + s->coefficients->offset;
    for (int k = 0; k < s->splines; ++k)
        s->beta[k] = s->centre + linalg_dot(s->splines, s->expand + (size_t)k * s->splines, t);
    sticks_to_probabilities(s->cells, theta + s->prob->offset, s->probability);
    const double sigma = s->scale * exp(theta[s->sigma->offset]);
    memset(s->mean, 0, (size_t)s->size * sizeof(double));
    for (int q = 0; q < s->cells * NODES; ++q) {
        const int cell = q / NODES, interval = cell * s->intervals / s->cells;
        const int *at = s->at + interval * LOCAL;
        const double *b = s->spline + q * SPLINES_AT_ONCE, *local = s->local + q * LOCAL;
        const double f = linalg_dot(SPLINES_AT_ONCE, b, s->beta + interval);
        struct response *r = s->response + q;
        clamped_moments(s, s->scale * f + s->shift, sigma, r);
        const double mass = s->mass[q] = WEIGHT[q % NODES] * s->probability[cell];
        for (int a = 0; a < LOCAL; ++a) s->mean[at[a]] += mass * local[a] * r->moment[power_of(a)];
    }
}

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct smooth_moments *s = self;
    const int size = s->size, of_interval = s->cells / s->intervals * NODES;
    set(s, theta);
    memcpy(mean, s->mean, (size_t)size * sizeof(double));
    memset(cov, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < s->intervals; ++i) {
        double products[LOCAL][LOCAL] = {{0}};
        for (int q = i * of_interval; q < (i + 1) * of_interval; ++q) {
            const double *local = s->local + q * LOCAL;
            for (int a = 0; a < LOCAL; ++a) {
                const double each = s->mass[q] * local[a];
                const double *moment = s->response[q].moment + power_of(a);
                for (int b = 0; b <= a; ++b)
                    products[a][b] += each * local[b] * moment[power_of(b)];
            }
        }
        const int *at = s->at + i * LOCAL;
        for (int a = 0; a < LOCAL; ++a)
            for (int b = 0; b <= a; ++b) cov[(size_t)at[a] * size + at[b]] += products[a][b];
    }
    if (!isfinite(mean[size - 1])) return PLUGIN_NUMERICAL;
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b) {
            cov[(size_t)a * size + b] -= mean[a] * mean[b];
            cov[(size_t)b * size + a] = cov[(size_t)a * size + b];
        }
    return PLUGIN_OK;
}

/* ---- slopes ------------------------------------------------------------------------- */

/* A covariance is the mean of a product less a product of means: the weights of the means, with
 * what the covariances' weights come to there, go to s->of_mean. */
static void weigh_means(struct smooth_moments *s, const double *weight_mean,
                        const double *weight_cov) {
    const int size = s->size;
    memcpy(s->of_mean, weight_mean, (size_t)size * sizeof(double));
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b) {
            const double weight = weight_cov[(size_t)a * size + b];
            s->of_mean[a] -= weight * s->mean[b];
            s->of_mean[b] -= weight * s->mean[a];
        }
}

static void slopes(void *self, const double *theta, const double *weight_mean,
                   const double *weight_cov, double *gradient) {
    struct smooth_moments *s = self;
    const int size = s->size, of_interval = s->cells / s->intervals * NODES;
    set(s, theta);
    weigh_means(s, weight_mean, weight_cov);
    memset(s->of_beta, 0, (size_t)s->splines * sizeof(double));
    memset(s->slope, 0, (size_t)s->cells * sizeof(double));
    double of_log_sd = 0;
    for (int i = 0; i < s->intervals; ++i) {
        const int *at = s->at + i * LOCAL;
        for (int q = i * of_interval; q < (i + 1) * of_interval; ++q) {
            const struct response *r = s->response + q;
            const double *local = s->local + q * LOCAL;
            double by_power[POWERS + 1] = {0};
            for (int a = 0; a < LOCAL; ++a) {
                by_power[power_of(a)] += s->of_mean[at[a]] * local[a];
                for (int b = 0; b <= a; ++b)
                    by_power[power_of(a) + power_of(b)] +=
                        weight_cov[(size_t)at[a] * size + at[b]] * local[a] * local[b];
            }
            const double mass = s->mass[q];
            s->slope[q / NODES] += WEIGHT[q % NODES] * linalg_dot(POWERS + 1, by_power, r->moment);
            of_log_sd += mass * linalg_dot(POWERS + 1, by_power, r->in_log_sd);
            const double of_f = mass * s->scale * linalg_dot(POWERS + 1, by_power, r->in_mean);
            for (int j = 0; j < SPLINES_AT_ONCE; ++j)
                s->of_beta[i + j] += of_f * s->spline[q * SPLINES_AT_ONCE + j];
        }
    }
    gradient[s->sigma->offset] += of_log_sd;
    double *t = gradient + s->coefficients->offset;
    for (int k = 0; k < s->splines; ++k)
        for (int j = 0; j < s->splines; ++j)
            t[j] += s->of_beta[k] * s->expand[(size_t)k * s->splines + j];
    /* a stick raises its cell and lowers all later ones */
    const double *stick = theta + s->prob->offset;
    double later = s->probability[s->cells - 1] * s->slope[s->cells - 1];
    for (int l = s->cells - 2; l >= 0; --l) {
        const double own = s->probability[l] * s->slope[l], share = stick_share(stick[l]);
        gradient[s->prob->offset + l] += (1 - share) * own - share * later;
        later += own;
    }
}

const struct record_moments_class moments_smooth = {
    .name = "smooth",
    .create = create,
    .eval = eval,
    .slopes = slopes,
};
