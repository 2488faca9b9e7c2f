/* Steps of an unknown number of records n that also move theta: if a total is known more precisely
 * than n, the two are strongly dependent. The coordinates of theta move by slope * (r(n') - r(n)),
 * with the slope of their regression on r(n), such as log n, in a window of warmup. The reverse
 * step moves them back, so such a step is symmetric. As many values of n as the window has count
 * as well, with a variance of one record and no slope: where n hardly moved, a slope is chance,
 * and one that is wrong would keep n from moving.
 *
 * A step proposes n near its current value or, once a window of warmup has located n, from a fixed
 * distribution: n is the whole part of a continuous m, and h(m) has a Student distribution. The
 * fraction of m is uniform given n. h is the logarithm, the root or m itself, whichever has the
 * least skewness in the window: usually the logarithm if only the prior determines n, and m if a
 * release does. Such a proposal is over-relaxed, because it need not forget n but should cross the
 * centre: given the precision that makes the Student distribution normal, itself drawn given h(m),
 * h(m') has the correlation -ACROSS with h(m). The step is reversible in the Student distribution
 * (Adler 1981; Neal 1998). */
#include "mcmc/n_regression_proposal.h"

#include "base/dist.h"

#include <math.h>
#include <string.h>

/* acceptance rate that the scale aims at */
static const double TARGET = 0.4;

/* degrees of freedom of proposals; a width of fewer than so many records is no width */
static const double DF = 4, LEAST_WIDTH = 0.5;

/* More would make up for more rejections, but leave the distance from the centre what it was. */
static const double ACROSS = 0.5;

/* what h(m) may be */
enum { LOG, ROOT, PLAIN };

enum { NUMBERS = 8 };

size_t size_slope_stored(int moving) {
    return 3 * (size_t)moving + NUMBERS +
           sizeof(struct size_scale[SIZE_SLOPE_SCALES]) / sizeof(double);
}

void size_slope_attach(struct size_slope *s, int moving, const int *moves, double *store) {
    s->moving = moving;
    s->moves = moves;
    s->slope = store;
    s->mean = s->slope + moving;
    s->cross = s->mean + moving;
    s->count = s->cross + moving;
    s->at_mean = s->count + 1;
    s->at_square = s->count + 2;
    s->scale = s->count + 3;
    s->tries = s->count + 4;
    s->centre = s->count + 5;
    s->width = s->count + 6;
    s->chosen = s->count + 7;
    s->in = (struct size_scale *)(s->count + NUMBERS);
}

void size_slope_start(struct size_slope *s) { *s->scale = 1; }

void size_slope_follow(const struct size_slope *s, double step, const double *theta,
                       size_t parameters, double *theta_new) {
    memcpy(theta_new, theta, parameters * sizeof(double));
    for (int j = 0; j < s->moving; ++j) theta_new[s->moves[j]] += step * s->slope[j];
}

double size_slope_walk(const struct size_slope *s, double n, struct rng *rng, double *log_back) {
    const double by = 1 + floor(*s->scale * rng_exponential(rng));
    *log_back = 0;
    return n + (rng_bits(rng) >> 63 ? by : -by);
}

int size_slope_knows(const struct size_slope *s) { return *s->width > 0; }

static double to_scale(int scale, double m) {
    return scale == LOG ? log(m) : scale == ROOT ? sqrt(m) : m;
}

/* below any m where there is none */
static double from_scale(int scale, double h) {
    if (scale == LOG) return exp(h);
    return scale == ROOT && h > 0 ? h * h : h;
}

/* of h(m) in log m */
static double slope_in_log(int scale, double m) {
    return scale == LOG ? 1 : scale == ROOT ? 0.5 * sqrt(m) : m;
}

static int chosen(const struct size_slope *s) { return (int)*s->chosen; }

/* of m, up to a constant, `away` being where h(m) is in units of the width */
static double log_fresh(const struct size_slope *s, double m, double away) {
    const double log_volume = chosen(s) == PLAIN ? 0 : (0.5 * chosen(s) - 1) * log(m);
    return log_volume - 0.5 * (DF + 1) * log1p(away * away / DF);
}

double size_slope_fresh(const struct size_slope *s, double n, struct rng *rng, double *log_back) {
    const double old = n + rng_uniform(rng);
    const double from = (to_scale(chosen(s), old) - *s->centre) / *s->width;
    const double precision = dist_gamma(rng, 0.5 * (DF + 1)) / (0.5 * (DF + from * from));
    const double fresh = sqrt((1 - ACROSS * ACROSS) / precision) * rng_normal(rng);
    const double to = fresh - ACROSS * from;
    const double m = from_scale(chosen(s), *s->centre + *s->width * to);
    *log_back = m > 0 ? log_fresh(s, old, from) - log_fresh(s, m, to) : -INFINITY;
    return floor(m);
}

void size_slope_tried(struct size_slope *s, double log_ratio, double most) {
    const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
    *s->tries += 1;
    const double learned = *s->scale * exp(2 / (1 + sqrt(*s->tries)) * (probability - TARGET));
    *s->scale = learned < 0.1 ? 0.1 : learned > most ? most : learned;
}

/* after the count has grown */
static void see_scale(struct size_scale *in, double count, double h) {
    const double off = h - in->mean, step = off / count, grown = off * step * (count - 1);
    in->mean += step;
    in->cube += grown * step * (count - 2) - 3 * step * in->square;
    in->square += grown;
}

void size_slope_saw(struct size_slope *s, double n, double at, const double *theta) {
    const double off = at - *s->at_mean;
    *s->count += 1;
    *s->at_mean += off / *s->count;
    *s->at_square += off * (at - *s->at_mean);
    for (int k = 0; k < SIZE_SLOPE_SCALES; ++k)
        see_scale(s->in + k, *s->count, to_scale(k, n + 0.5));
    for (int j = 0; j < s->moving; ++j) {
        const double value = theta[s->moves[j]];
        s->mean[j] += (value - s->mean[j]) / *s->count;
        s->cross[j] += off * (value - s->mean[j]);
    }
}

/* squared, over a constant */
static double skewness(const struct size_scale *in) {
    return in->cube * in->cube / (in->square * in->square * in->square);
}

static void choose_scale(struct size_slope *s) {
    int best = 0;
    for (int k = 1; k < SIZE_SLOPE_SCALES; ++k)
        if (skewness(s->in + k) < skewness(s->in + best)) best = k;
    const double middle = from_scale(best, s->in[best].mean);
    const double record = slope_in_log(best, middle) / middle;
    *s->chosen = best;
    *s->centre = s->in[best].mean;
    *s->width = fmax(sqrt(s->in[best].square / *s->count), LEAST_WIDTH * record);
}

double size_slope_share(const struct size_slope *s) {
    return *s->width / slope_in_log(chosen(s), from_scale(chosen(s), *s->centre));
}

double size_slope_spread(const struct size_slope *s) {
    return size_slope_share(s) * from_scale(chosen(s), *s->centre);
}

void size_slope_close(struct size_slope *s) {
    const double moved = s->in[PLAIN].square, weight = moved / (moved + *s->count);
    choose_scale(s);
    for (int j = 0; j < s->moving; ++j)
        s->slope[j] = *s->at_square > 0 ? weight * s->cross[j] / *s->at_square : 0;
    memset(s->mean, 0, (size_t)s->moving * sizeof(double));
    memset(s->cross, 0, (size_t)s->moving * sizeof(double));
    memset(s->in, 0, SIZE_SLOPE_SCALES * sizeof *s->in);
    *s->count = *s->at_mean = *s->at_square = *s->tries = 0;
}
