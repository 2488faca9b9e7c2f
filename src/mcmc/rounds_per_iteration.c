/* How many rounds of all its steps an iteration makes, so that a default call gives enough
 * effective draws: in method "augment" with a surrogate; for a response with coefficients, if its
 * covariates are all factors, if it has a shape, which walks, or if there are products of
 * covariates; and if records of sites are imputed.
 *
 * The second half of warmup measures each coordinate: with v its variance and g half its mean
 * squared change over LAG iterations, the autocorrelation is r = 1 - g / v. If it decreased
 * geometrically, an effective draw would take 2 LAG / -log(r) iterations. Its standard error
 * (Bartlett 1946) is subtracted, otherwise one of many coordinates would seem slow by chance. So
 * would a coordinate with a single excursion, for example to a small unknown number of records:
 * values more than OUTLYING standard deviations away are moved to that distance. After warmup an
 * iteration makes so many rounds that the slowest coordinate needs no more than ENOUGH of them,
 * within the allowed cost of an iteration. The cost is counted work, so that a seed determines it.
 * A round is expected to cost what it cost in warmup, plus the passes planned after it; if these
 * add much, the minimum number of rounds is lower. Rounds end with an iteration: a chain in two
 * parts is the same chain.
 *
 * Cost: O(coordinates) an iteration. No allocation.
 */
#include "mcmc/rounds_per_iteration.h"

#include <math.h>
#include <string.h>

/* the most rounds; iterations for an effective draw that are few enough */
enum { MOST_ROUNDS = 8 };
static const double ENOUGH = 5;

/* Counted work of an iteration, about nanoseconds, up to which it may have more rounds: 4,000 of
 * them take 40 seconds. */
static const double AFFORDABLE = 1e7;

enum { LAG = 5, LEAST_SEEN = 50 };

/* From so many values on what is far away is known. */
enum { KNOWN = 10 };
static const double OUTLYING = 2.5;

size_t rounds_stored(int size) { return 4 + (3 + LAG) * (size_t)size; }

void rounds_attach(struct rounds *r, int size, double *store) {
    r->size = size;
    r->count = store;
    r->seen = store + 1;
    r->work = store + 2;
    r->passes = store + 3;
    r->mean = store + 4;
    r->scatter = r->mean + size;
    r->change = r->scatter + size;
    r->before = r->change + size;
}

void rounds_start(struct rounds *r) {
    memset(r->count, 0, rounds_stored(r->size) * sizeof(double));
    *r->count = 1;
}

/* The standard error of an autocorrelation r at LAG that falls geometrically. */
static double error_of(double r, double seen) {
    const double square = r * r, step = pow(r, 2.0 / LAG);
    return sqrt(fmax(0, (1 + step) * (1 - square) / (1 - step) - 2 * LAG * square) / seen);
}

/* iterations for an effective draw of the slowest coordinate */
static double slowest(const struct rounds *rounds) {
    double most = 1;
    for (int j = 0; j < rounds->size; ++j) {
        const double variance = rounds->scatter[j] / (*rounds->seen - 1);
        const double half = 0.5 * rounds->change[j] / (*rounds->seen - LAG);
        if (!(variance > 0) || !(half > 0 && half < variance)) continue;
        const double r = 1 - half / variance, least = r - error_of(r, *rounds->seen);
        if (least > 0) most = fmax(most, 2 * LAG / -log(least));
    }
    return most;
}

/* at[j], no further away than counts */
static double within_reach(const struct rounds *r, const double *at, int j) {
    if (*r->seen < KNOWN || !(r->scatter[j] > 0)) return at[j];
    const double reach = OUTLYING * sqrt(r->scatter[j] / (*r->seen - 1));
    return fmax(r->mean[j] - reach, fmin(at[j], r->mean[j] + reach));
}

void rounds_saw(struct rounds *r, const double *at, double least, int iteration, int warmup,
                struct round_work work) {
    if (iteration < warmup / 2) return;
    const int seen = (int)*r->seen;
    double *before = r->before + (size_t)(seen % LAG) * (size_t)r->size;
    for (int j = 0; j < r->size; ++j) {
        const double value = within_reach(r, at, j), away = value - r->mean[j],
                     change = value - before[j];
        r->mean[j] += away / (seen + 1);
        r->scatter[j] += away * (value - r->mean[j]);
        if (seen >= LAG) r->change[j] += change * change;
        before[j] = value;
    }
    *r->seen += 1;
    *r->work += (work.all - *r->work) / *r->seen;
    *r->passes += (work.passes - *r->passes) / *r->seen;
    if (iteration + 1 < warmup || *r->seen < LEAST_SEEN) return;
    const double later = *r->work - *r->passes + work.planned,
                 needed = fmax(slowest(r) / ENOUGH, least * fmin(*r->work / later, 1)),
                 affordable = floor(AFFORDABLE / later);
    *r->count = fmax(1, fmin(fmin(ceil(needed), affordable), MOST_ROUNDS));
}
