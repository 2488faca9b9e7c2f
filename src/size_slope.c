/* Steps of an unknown number of records n that take theta along: where a total is known
 * better than n, the two trade off. The coordinates of theta move by slope * (r(n') - r(n)), the
 * slope of their regression on r(n), log n say, that a window of warmup saw. A step back takes them
 * back, so that such a step is symmetric.
 *
 * A step proposes n next to where it is, or, once a window of warmup has told where n is, from
 * there: log m of a continuous m, of which n is the whole part, has a Student distribution. The
 * fraction of m is uniform given n. Such a proposal is over-relaxed, as it need not forget n but
 * should cross the centre: given the precision that makes of the Student distribution a normal one,
 * itself drawn given log m, log m' has the correlation -ACROSS with log m. The Student distribution
 * stays, and the step is reversible in it (Adler 1981; Neal 1998). */
#include "size_slope.h"

#include "dist.h"

#include <math.h>
#include <string.h>

/* acceptance rate that the scale aims at */
static const double TARGET = 0.4;

/* degrees of freedom of proposals; a width of fewer than so many records is no width */
static const double DF = 4, LEAST_WIDTH = 0.5;

/* More would make up for more rejections, but leave the distance from the centre what it was. */
static const double ACROSS = 0.5;

enum { NUMBERS = 7 };

size_t size_slope_stored(int moving) { return 3 * (size_t)moving + NUMBERS; }

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

/* of m, up to a constant */
static double log_fresh(const struct size_slope *s, double m) {
    const double away = (log(m) - *s->centre) / *s->width;
    return -0.5 * (DF + 1) * log1p(away * away / DF) - log(m);
}

double size_slope_fresh(const struct size_slope *s, double n, struct rng *rng, double *log_back) {
    const double old = n + rng_uniform(rng), from = (log(old) - *s->centre) / *s->width;
    const double precision = dist_gamma(rng, 0.5 * (DF + 1)) / (0.5 * (DF + from * from));
    const double fresh = sqrt((1 - ACROSS * ACROSS) / precision) * rng_normal(rng);
    const double m = exp(*s->centre + *s->width * (fresh - ACROSS * from));
    *log_back = log_fresh(s, old) - log_fresh(s, m);
    return floor(m);
}

void size_slope_tried(struct size_slope *s, double log_ratio, double most) {
    const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
    *s->tries += 1;
    const double learned = *s->scale * exp(2 / (1 + sqrt(*s->tries)) * (probability - TARGET));
    *s->scale = learned < 0.1 ? 0.1 : learned > most ? most : learned;
}

void size_slope_saw(struct size_slope *s, double at, const double *theta) {
    const double off = at - *s->at_mean;
    *s->count += 1;
    *s->at_mean += off / *s->count;
    *s->at_square += off * (at - *s->at_mean);
    for (int j = 0; j < s->moving; ++j) {
        const double value = theta[s->moves[j]];
        s->mean[j] += (value - s->mean[j]) / *s->count;
        s->cross[j] += off * (value - s->mean[j]);
    }
}

void size_slope_close(struct size_slope *s) {
    const double square = *s->at_square;
    *s->centre = *s->at_mean;
    *s->width = fmax(sqrt(square / *s->count), LEAST_WIDTH * exp(-*s->at_mean));
    for (int j = 0; j < s->moving && square > 0; ++j) s->slope[j] = s->cross[j] / square;
    memset(s->mean, 0, (size_t)s->moving * sizeof(double));
    memset(s->cross, 0, (size_t)s->moving * sizeof(double));
    *s->count = *s->at_mean = *s->at_square = *s->tries = 0;
}
