/* Steps of an unknown number of records n that take theta along: where a total is known
 * better than n, the two trade off. The coordinates of theta move by slope * log(n' / n), the
 * slope of their regression on log n that a window of warmup saw. A step back takes them back, so
 * that such a step is symmetric. */
#include "size_slope.h"

#include <math.h>
#include <string.h>

/* acceptance rate that the scale aims at */
static const double TARGET = 0.4;

enum { NUMBERS = 5 };

size_t size_slope_stored(int moving) { return 3 * (size_t)moving + NUMBERS; }

void size_slope_attach(struct size_slope *s, int moving, const int *moves, double *store) {
    s->moving = moving;
    s->moves = moves;
    s->slope = store;
    s->mean = s->slope + moving;
    s->cross = s->mean + moving;
    s->count = s->cross + moving;
    s->log_mean = s->count + 1;
    s->log_square = s->count + 2;
    s->scale = s->count + 3;
    s->tries = s->count + 4;
}

void size_slope_start(struct size_slope *s) { *s->scale = 1; }

void size_slope_follow(const struct size_slope *s, double log_step, const double *theta,
                       size_t parameters, double *theta_new) {
    memcpy(theta_new, theta, parameters * sizeof(double));
    for (int j = 0; j < s->moving; ++j) theta_new[s->moves[j]] += log_step * s->slope[j];
}

void size_slope_tried(struct size_slope *s, double log_ratio, double most) {
    const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
    *s->tries += 1;
    const double learned = *s->scale * exp(2 / (1 + sqrt(*s->tries)) * (probability - TARGET));
    *s->scale = learned < 0.1 ? 0.1 : learned > most ? most : learned;
}

void size_slope_saw(struct size_slope *s, double n, const double *theta) {
    const double off = log(n) - *s->log_mean;
    *s->count += 1;
    *s->log_mean += off / *s->count;
    *s->log_square += off * (log(n) - *s->log_mean);
    for (int j = 0; j < s->moving; ++j) {
        const double value = theta[s->moves[j]];
        s->mean[j] += (value - s->mean[j]) / *s->count;
        s->cross[j] += off * (value - s->mean[j]);
    }
}

void size_slope_close(struct size_slope *s) {
    for (int j = 0; j<s->moving && * s->log_square> 0; ++j)
        s->slope[j] = s->cross[j] / *s->log_square;
    memset(s->mean, 0, (size_t)s->moving * sizeof(double));
    memset(s->cross, 0, (size_t)s->moving * sizeof(double));
    *s->count = *s->log_mean = *s->log_square = *s->tries = 0;
}
