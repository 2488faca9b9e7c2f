/* Method "augment": how many rounds of sweep, moves and update an iteration makes beside a
 * surrogate, and where a response has coefficients, be its covariates all factors, a shape, which
 * walks, or products of covariates, so that draws of a default call serve.
 *
 * In the second half of warmup each coordinate of theta is looked at: with v its variance and g
 * half its mean squared change over LAG iterations, the autocorrelation is r = 1 - g / v, and were
 * it to fall geometrically, an effective draw would take 2 LAG / -log(r) iterations. Its standard
 * error is taken from it (Bartlett 1946), or else one of many coordinates would seem slow by
 * chance. So would one that makes a single excursion, to few records of an unknown number say: what
 * lies more than OUTLYING standard deviations away counts as that. After warmup an iteration makes
 * so many rounds that the slowest coordinate needs no more than ENOUGH of them, as far as they do
 * not cost more than an iteration may. That is known from counted work, so that a seed fixes it.
 * Rounds end with an iteration: a chain that is cut in two is the same chain.
 *
 * Cost: O(parameters) an iteration. No allocation.
 */
#include "augment.h"

/* the most rounds; iterations for an effective draw that are few enough */
enum { MOST_ROUNDS = 8 };
static const double ENOUGH = 5;

/* Of a model that asks for rounds, whose autocorrelations fall the slower the longer the lag. */
enum { LEAST_ROUNDS = 4 };

/* Counted work of an iteration, about nanoseconds, up to which it may have more rounds: 4,000 of
 * them take 40 seconds. */
static const double AFFORDABLE = 1e7;

enum { LAG = 5, LEAST_SEEN = 50 };

/* From so many values on what is far away is known. */
enum { KNOWN = 10 };
static const double OUTLYING = 2.5;

int augment_makes_rounds(const struct augment *a) {
    return a->surrogate || a->model.tied > 0 || a->model.shape > 0 || a->model.rounds;
}

int augment_rounds(const struct augment *a) { return a->rounds.count ? (int)*a->rounds.count : 1; }

size_t augment_rounds_stored(const struct augment *a) {
    return 3 + (3 + LAG) * (size_t)a->model.parameters;
}

void augment_rounds_attach(struct augment *a, double *store) {
    struct rounds *r = &a->rounds;
    const size_t parameters = (size_t)a->model.parameters;
    r->count = store;
    r->seen = store + 1;
    r->work = store + 2;
    r->mean = store + 3;
    r->scatter = r->mean + parameters;
    r->change = r->scatter + parameters;
    r->before = r->change + parameters;
}

void augment_rounds_start(struct augment *a) {
    memset(a->rounds.count, 0, augment_rounds_stored(a) * sizeof(double));
    *a->rounds.count = 1;
}

/* The standard error of an autocorrelation r at LAG that falls geometrically. */
static double error_of(double r, double seen) {
    const double square = r * r, step = pow(r, 2.0 / LAG);
    return sqrt(fmax(0, (1 + step) * (1 - square) / (1 - step) - 2 * LAG * square) / seen);
}

/* iterations for an effective draw of the slowest coordinate */
static double slowest(const struct augment *a) {
    const struct rounds *rounds = &a->rounds;
    double most = 1;
    for (int j = 0; j < a->model.parameters; ++j) {
        const double variance = rounds->scatter[j] / (*rounds->seen - 1);
        const double half = 0.5 * rounds->change[j] / (*rounds->seen - LAG);
        if (!(variance > 0) || !(half > 0 && half < variance)) continue;
        const double r = 1 - half / variance, least = r - error_of(r, *rounds->seen);
        if (least > 0) most = fmax(most, 2 * LAG / -log(least));
    }
    return most;
}

/* theta[j], no further away than counts */
static double within_reach(const struct augment *a, int j) {
    const struct rounds *r = &a->rounds;
    if (*r->seen < KNOWN || !(r->scatter[j] > 0)) return a->theta[j];
    const double reach = OUTLYING * sqrt(r->scatter[j] / (*r->seen - 1));
    return fmax(r->mean[j] - reach, fmin(a->theta[j], r->mean[j] + reach));
}

void augment_saw_round(struct augment *a, int iteration, int warmup, double work) {
    struct rounds *r = &a->rounds;
    if (iteration < warmup / 2) return;
    const int parameters = a->model.parameters, seen = (int)*r->seen;
    double *before = r->before + (size_t)(seen % LAG) * (size_t)parameters;
    for (int j = 0; j < parameters; ++j) {
        const double value = within_reach(a, j), away = value - r->mean[j],
                     change = value - before[j];
        r->mean[j] += away / (seen + 1);
        r->scatter[j] += away * (value - r->mean[j]);
        if (seen >= LAG) r->change[j] += change * change;
        before[j] = value;
    }
    *r->seen += 1;
    *r->work += (work - *r->work) / *r->seen;
    if (iteration + 1 < warmup || *r->seen < LEAST_SEEN) return;
    const double least = a->model.rounds ? LEAST_ROUNDS : 1;
    const double needed = fmax(ceil(slowest(a) / ENOUGH), least),
                 affordable = floor(AFFORDABLE / *r->work);
    *r->count = fmax(1, fmin(fmin(needed, affordable), MOST_ROUNDS));
}
