/* The likelihood of a rate given a release of the total s of n records, s summed out:
 *
 *   p(z | t) = sum_s exp(log_weight(s) + s eta(t)) exp(-n A(t)),
 *
 * log_weight(s) = log eta(z | s) + log of what the distribution of s has free of t; Bernoulli:
 * C(n, s), eta = -t, A = log(1 + exp(-t)); Poisson: n^s / s!, eta = t, A = exp(t).
 *
 * Exponential: the total is continuous, s^(n-1) / (n - 1)!, eta = -exp(t), A = -t, and the sum is
 * the trapezoidal rule, its nodes s_i `at` with the weights exp(log_gap).
 *
 * Where n is a latent number, a group's size in a release that has it with noise, log_weight has
 * the noise of s, and of Poisson records 1 / s!, alone: eta = t + log n of these, and for Bernoulli
 * records C(n, s) and the noise of n - s, where that was released, are multiplied to a term when it
 * is needed. The noise of n is a factor of the whole sum.
 *
 * Where log_weight is concave in s the terms have one peak: a search finds it, and the sum goes
 * both ways from there until terms are below exp(LEAST) of the largest. Otherwise all are summed.
 * A whole total's terms are multiplied up by their ratios, which need no exponential. Cost of a
 * sum: the width of the peak, some dozens of terms for counts of hundreds, and for a continuous
 * total dozens to thousands of nodes, more if the noise is narrow relative to the total.
 *
 * Where n is known the log density is a function of t alone, and a smooth one. It is replaced by
 * polynomials of degree 7, on stretches of t, that have its values and slopes at four points each,
 * and miss it at the ends, where they miss it most, by no more than 1e-9, or rounding; where one
 * does, sums are taken as they are. A stretch's polynomial is found when t gets there and kept
 * until another stretch takes its place. It does not depend on what is kept, nor does any density.
 */
#include "pool/site_rate.h"

#include <Rmath.h>

/* log of the share of the largest term below which terms are left out */
static const double LEAST = -42;

enum { PIECES = 32 }; /* kept */

static double total_at(const struct pool_rate *rate, int i) {
    return rate->at ? rate->at[i] : rate->first + i;
}

static double log_factorial(const struct pool_rate *rate, double k) {
    return k < rate->factorials ? rate->log_factorial[(int)k] : Rf_lgammafn(k + 1);
}

static double weight_of(const struct pool_weights *weights, double k) {
    if (weights->count == 0) return 0;
    const double i = k - weights->first;
    return i < 0 || i >= weights->count ? -INFINITY : weights->log_weight[(int)i];
}

/* log_weight of a latent n: all that term i has free of t */
static double weight_at(const struct pool_rate *rate, int i) {
    if (!rate->sized || rate->kind != POOL_RATE_BERNOULLI) return rate->log_weight[i];
    const double s = total_at(rate, i), rest = rate->n - s;
    return rate->log_weight[i] - log_factorial(rate, s) - log_factorial(rate, rest) +
           weight_of(&rate->rest, rest);
}

static int bends_down(const struct pool_weights *weights) {
    const double *w = weights->log_weight;
    for (int i = 1; i + 1 < weights->count; ++i)
        if (!(w[i + 1] - w[i] - (w[i] - w[i - 1]) <= 1e-9 * (1 + fabs(w[i])))) return 0;
    return 1;
}

static int is_concave(const struct pool_rate *rate) {
    if (!bends_down(&rate->rest)) return 0;
    const double *w = rate->log_weight;
    for (int i = 1; i + 1 < rate->count; ++i) {
        const double before = total_at(rate, i) - total_at(rate, i - 1);
        const double after = total_at(rate, i + 1) - total_at(rate, i);
        const double bend = (w[i + 1] - w[i]) * before / after - (w[i] - w[i - 1]);
        if (!(bend <= 1e-9 * (1 + fabs(w[i])))) return 0;
    }
    return 1;
}

/* rise[i]: weight i over weight i - 1; fall[i]: over weight i + 1 */
static void take_ratios(int count, const double *log_weight, const double **rise,
                        const double **fall) {
    double *up = plugin_memory((size_t)count, sizeof *up);
    double *down = plugin_memory((size_t)count, sizeof *down);
    for (int i = 1; i < count; ++i) {
        up[i] = exp(log_weight[i] - log_weight[i - 1]);
        down[i - 1] = exp(log_weight[i - 1] - log_weight[i]);
    }
    *rise = up;
    *fall = down;
}

static struct pool_weights read_weights(const struct fields *fields, const char *first,
                                        const char *log_weight) {
    struct pool_weights weights = {0, fields_length(fields, log_weight), NULL, NULL, NULL};
    const double *from = fields_vector(fields, first, 1);
    weights.log_weight = fields_vector(fields, log_weight, weights.count);
    if (!from || !weights.log_weight) weights.count = 0;
    if (from) weights.first = *from;
    return weights;
}

/* Of a standard deviation of t given the total, about. */
static void create_pieces(const struct fields *fields, struct pool_rate *rate) {
    static const double SHARE = 0.6, NEAR = 1e-9, ROUNDING = 1e-14;
    const double *information = fields_vector(fields, "information", 1);
    if (rate->sized || !information) return;
    rate->stretch = SHARE / sqrt(fmax(*information, 1));
    rate->near = NEAR + ROUNDING * *information;
    rate->pieces = plugin_memory(PIECES, sizeof *rate->pieces);
}

int pool_rate_read(const struct fields *fields, struct pool_rate *rate) {
    const double *kind = fields_vector(fields, "kind", 1), *n = fields_vector(fields, "n", 1);
    const double *first = fields_vector(fields, "first", 1);
    rate->count = fields_length(fields, "log_weight");
    rate->log_weight = fields_vector(fields, "log_weight", rate->count);
    if (!kind || !n || !first || rate->count < 1) return PLUGIN_BAD_FIELDS;
    rate->kind = (enum pool_rate_kind) * kind;
    rate->n = *n;
    rate->first = *first;
    rate->at = fields_vector(fields, "node", rate->count);
    rate->log_gap = fields_vector(fields, "log_gap", rate->count);
    rate->lower = fields_vector(fields, "lower", 1);
    rate->upper = fields_vector(fields, "upper", 1);
    if (rate->kind == POOL_RATE_EXPONENTIAL && !(rate->at && rate->log_gap))
        return PLUGIN_BAD_FIELDS;
    const double *sized = fields_vector(fields, "sized", 1);
    rate->sized = sized && *sized != 0;
    rate->size = read_weights(fields, "size_first", "size_log");
    rate->rest = read_weights(fields, "rest_first", "rest_log");
    rate->from = 0;
    rate->to = rate->count;
    rate->concave = is_concave(rate);
    rate->rise = rate->fall = NULL;
    create_pieces(fields, rate);
    if (rate->concave && !rate->at) {
        take_ratios(rate->count, rate->log_weight, &rate->rise, &rate->fall);
        take_ratios(rate->rest.count, rate->rest.log_weight, &rate->rest.rise, &rate->rest.fall);
    } else {
        rate->term = plugin_memory((size_t)rate->count, sizeof *rate->term);
    }
    return PLUGIN_OK;
}

void pool_rate_set_size(struct pool_rate *rate, double n) {
    double least = rate->first, most = rate->first + rate->count - 1;
    rate->n = n;
    if (rate->kind == POOL_RATE_BERNOULLI || n == 0) most = fmin(most, n);
    if (rate->rest.count > 0) {
        least = fmax(least, n - (rate->rest.first + rate->rest.count - 1));
        most = fmin(most, n - rate->rest.first);
    }
    rate->from = (int)(least - rate->first);
    rate->to = (int)(fmax(most, least - 1) - rate->first) + 1;
}

/* eta, and its derivative */
static double natural(const struct pool_rate *rate, double t, double *slope) {
    switch (rate->kind) {
    case POOL_RATE_POISSON:
        *slope = 1;
        return t + (rate->sized && rate->n > 0 ? log(rate->n) : 0);
    case POOL_RATE_EXPONENTIAL:
        return *slope = -exp(t);
    case POOL_RATE_BERNOULLI:
        break;
    }
    *slope = -1;
    return -t;
}

/* n A(t), and its derivative */
static double normaliser(const struct pool_rate *rate, double t, double *slope) {
    if (rate->kind == POOL_RATE_POISSON) return *slope = rate->n * exp(t);
    if (rate->kind == POOL_RATE_EXPONENTIAL) {
        *slope = -rate->n;
        return -rate->n * t;
    }
    const double small = exp(-fabs(t));
    *slope = -rate->n * (t > 0 ? small : 1) / (1 + small);
    return rate->n * (log1p(small) + (t > 0 ? 0 : -t));
}

/* log of term i over term k, but for what the nodes represent */
static double above(const struct pool_rate *rate, double eta, int i, int k) {
    const double apart = rate->at ? rate->at[i] - rate->at[k] : i - k;
    return weight_at(rate, i) - weight_at(rate, k) + apart * eta;
}

/* Place of the largest term. */
static int peak(const struct pool_rate *rate, double eta) {
    int low = rate->from, high = rate->to - 1;
    if (!rate->concave) {
        int best = low;
        for (int i = low + 1; i <= high; ++i)
            if (above(rate, eta, i, best) > 0) best = i;
        return best;
    }
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (above(rate, eta, middle + 1, middle) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Terms from `*begin` to before the value that is returned count; *top is the largest. */
static int terms(const struct pool_rate *rate, double eta, int *begin, int *top) {
    const int at = *top = peak(rate, eta);
    *begin = rate->from;
    if (!rate->concave) return rate->to;
    int low = at, high = at + 1;
    while (low > rate->from && above(rate, eta, low - 1, at) > LEAST) --low;
    while (high < rate->to && above(rate, eta, high, at) > LEAST) ++high;
    *begin = low;
    return high;
}

/* term i over the largest, and over exp(log_gap) of its node */
static double term(const struct pool_rate *rate, double eta, int i, int top) {
    const double gap = rate->log_gap ? rate->log_gap[i] - rate->log_gap[top] : 0;
    return exp(above(rate, eta, i, top) + gap);
}

/* Term i + 1 over term i, and term i - 1 over it; `root` is exp(eta). */
static inline double ratio_up(const struct pool_rate *rate, double root, int i) {
    const double ratio = rate->rise[i + 1] * root;
    if (!rate->sized || rate->kind != POOL_RATE_BERNOULLI) return ratio;
    const double s = rate->first + i, rest = rate->n - s;
    const double noise =
        rate->rest.count > 0 ? rate->rest.fall[(int)(rest - 1 - rate->rest.first)] : 1;
    return ratio * noise * rest / (s + 1);
}

static inline double ratio_down(const struct pool_rate *rate, double root, int i) {
    const double ratio = rate->fall[i - 1] / root;
    if (!rate->sized || rate->kind != POOL_RATE_BERNOULLI) return ratio;
    const double s = rate->first + i, rest = rate->n - s;
    const double noise =
        rate->rest.count > 0 ? rate->rest.rise[(int)(rest + 1 - rate->rest.first)] : 1;
    return ratio * noise * s / (rest + 1);
}

/* The largest term: from where the total would be without noise, with steps that double, and then
 * by halves. */
static int peak_near(const struct pool_rate *rate, double root, double t) {
    const double mean = rate->kind == POOL_RATE_POISSON ? rate->n * exp(t) : rate->n / (1 + exp(t));
    const double start = fmin(fmax(mean - rate->first, rate->from), rate->to - 1);
    int low = (int)start, high = low, step = 1;
    if (low + 1 < rate->to && ratio_up(rate, root, low) > 1) {
        do {
            low = high;
            high = high + step < rate->to - 1 ? high + step : rate->to - 1;
            step *= 2;
        } while (high < rate->to - 1 && ratio_up(rate, root, high) > 1);
    } else {
        while (low > rate->from && !(ratio_up(rate, root, low - 1) > 1)) {
            high = low - 1;
            low = low - step > rate->from ? low - step : rate->from;
            step *= 2;
        }
    }
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (ratio_up(rate, root, middle) > 1)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The terms over the largest, `top`: *sum of them, and of what they are times how far they are from
 * it. Or with `stop` below the sum, the term where running sums pass it. */
static int sum_by_ratios(const struct pool_rate *rate, double eta, int top, double stop,
                         double *sum, double *moment) {
    const double root = exp(eta), least = exp(LEAST);
    double s = 1, m = 0, term = 1;
    if (s > stop) return top;
    for (int i = top; i + 1 < rate->to; ++i) {
        term *= ratio_up(rate, root, i);
        if (!(term > least)) break;
        s += term;
        m += term * (i + 1 - top);
        if (s > stop) return i + 1;
    }
    term = 1;
    for (int i = top; i > rate->from; --i) {
        term *= ratio_down(rate, root, i);
        if (!(term > least)) break;
        s += term;
        m -= term * (top - i + 1);
        if (s > stop) return i - 1;
    }
    *sum = s;
    *moment = m;
    return top;
}

static int sum_one_by_one(const struct pool_rate *rate, double eta, double *sum, double *moment) {
    int begin, top;
    const int end = terms(rate, eta, &begin, &top);
    const double most = total_at(rate, top);
    *sum = *moment = 0;
    for (int i = begin; i < end; ++i) {
        const double share = term(rate, eta, i, top);
        *sum += share;
        *moment += share * (total_at(rate, i) - most);
    }
    return top;
}

static double log_by_sum(const struct pool_rate *rate, double t, double *slope) {
    double slope_eta, pull, sum, moment; /* about the largest term */
    *slope = 0;
    if (rate->from >= rate->to) return -INFINITY;
    const double eta = natural(rate, t, &slope_eta);
    const int top =
        rate->rise ? sum_by_ratios(rate, eta, peak_near(rate, exp(eta), t), INFINITY, &sum, &moment)
                   : sum_one_by_one(rate, eta, &sum, &moment);
    const double most = total_at(rate, top);
    const double norm = normaliser(rate, t, &pull);
    *slope = slope_eta * (most + moment / sum) - pull;
    const double gap = rate->log_gap ? rate->log_gap[top] : 0;
    const double log_density = weight_at(rate, top) + gap + most * eta + log(sum) - norm;
    if (!rate->sized) return log_density;
    return log_density + weight_of(&rate->size, rate->n) +
           (rate->kind == POOL_RATE_BERNOULLI ? log_factorial(rate, rate->n) : 0);
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* at x from -1 to 1 */
static double value_of(const struct pool_piece *piece, double x, double *slope) {
    const double *q = piece->q, *r = piece->r;
    const double T = (8 * x * x - 8) * x * x + 1, along = (32 * x * x - 16) * x;
    const double by = ((r[3] * x + r[2]) * x + r[1]) * x + r[0];
    *slope = (3 * q[3] * x + 2 * q[2]) * x + q[1] + along * by +
             T * ((3 * r[3] * x + 2 * r[2]) * x + r[1]);
    return ((q[3] * x + q[2]) * x + q[1]) * x + q[0] + T * by;
}

/* the cubic with these values where T is 0 */
static void fit_cubic(const double *value, double *cubic) {
    double c[4]; /* of Chebyshev polynomials */
    for (int j = 0; j < 4; ++j) {
        c[j] = 0;
        for (int k = 0; k < 4; ++k) c[j] += 0.5 * value[k] * cos(j * (k + 0.5) * M_PI_4);
    }
    cubic[0] = 0.5 * c[0] - c[2];
    cubic[1] = c[1] - 3 * c[3];
    cubic[2] = 2 * c[2];
    cubic[3] = 4 * c[3];
}

static void fit_piece(const struct pool_rate *rate, struct pool_piece *piece) {
    const double half = 0.5 * rate->stretch, middle = (piece->place + 0.5) * rate->stretch;
    double value[4], slope[4], along;
    for (int k = 0; k < 4; ++k) {
        const double x = cos((k + 0.5) * M_PI_4);
        value[k] = log_by_sum(rate, middle + half * x, slope + k);
    }
    fit_cubic(value, piece->q);
    memset(piece->r, 0, sizeof piece->r);
    for (int k = 0; k < 4; ++k) {
        const double x = cos((k + 0.5) * M_PI_4);
        (void)value_of(piece, x, &along);
        slope[k] = (half * slope[k] - along) / ((32 * x * x - 16) * x);
    }
    fit_cubic(slope, piece->r);
    piece->state = PIECE_GOOD;
    for (int x = -1; x <= 1; x += 2) {
        const double exact = log_by_sum(rate, middle + half * x, slope);
        if (!(fabs(value_of(piece, x, &along) - exact) <= rate->near)) piece->state = PIECE_BAD;
    }
}

double pool_rate_log(const struct pool_rate *rate, double t, double *slope) {
    if (!rate->pieces) return log_by_sum(rate, t, slope);
    const double place = floor(t / rate->stretch), turns = floor(place / PIECES);
    if (!(fabs(place) < 1e9)) return log_by_sum(rate, t, slope);
    struct pool_piece *piece = rate->pieces + (int)(place - turns * PIECES);
    if (piece->state == PIECE_EMPTY || piece->place != place) {
        piece->place = place;
        fit_piece(rate, piece);
    }
    if (piece->state == PIECE_BAD) return log_by_sum(rate, t, slope);
    const double half = 0.5 * rate->stretch;
    const double value = value_of(piece, t / half - 2 * place - 1, slope);
    *slope /= half;
    return value;
}

/* ---- draws -------------------------------------------------------------------------------- */

/* A continuous total is somewhere in what its node represents. */
static double draw_at(const struct pool_rate *rate, int i, struct rng *rng) {
    if (!rate->at) return total_at(rate, i);
    return rate->at[i] + (rng_uniform(rng) - 0.5) * exp(rate->log_gap[i]);
}

double pool_rate_draw(const struct pool_rate *rate, double t, struct rng *rng) {
    double slope, sum = 0;
    const double eta = natural(rate, t, &slope);
    int begin, top;
    if (rate->rise) {
        double moment;
        top = sum_by_ratios(rate, eta, peak_near(rate, exp(eta), t), INFINITY, &sum, &moment);
        return total_at(rate, sum_by_ratios(rate, eta, top, rng_uniform(rng) * sum, &sum, &moment));
    }
    const int end = terms(rate, eta, &begin, &top);
    for (int i = begin; i < end; ++i) sum += rate->term[i] = term(rate, eta, i, top);
    double u = rng_uniform(rng) * sum;
    for (int i = begin; i < end; ++i) {
        u -= rate->term[i];
        if (u < 0) return draw_at(rate, i, rng);
    }
    return draw_at(rate, top, rng); /* rounding only */
}

/* Records are never below 0. */
double pool_rate_outside(const struct pool_rate *rate, double t) {
    if (!rate->lower || !rate->upper) return 0;
    const double lower = *rate->lower, upper = *rate->upper, mean = exp(t);
    if (rate->kind == POOL_RATE_POISSON)
        return (lower > 0 ? Rf_ppois(ceil(lower) - 1, mean, 1, 0) : 0) +
               Rf_ppois(upper, mean, 0, 0);
    return (lower > 0 ? -expm1(-mean * lower) : 0) + exp(-mean * upper);
}
