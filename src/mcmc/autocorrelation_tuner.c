/* Statistics of warmup from which the number of moves in an iteration is chosen; see
 * mcmc/autocorrelation_tuner.h.
 *
 * The correlation of successive iterations of a window is 1 - E(step^2) / (2 variance). If m moves
 * leave a correlation of r, then m log(0.3) / log(r) of them leave 0.3.
 */
#include "mcmc/autocorrelation_tuner.h"

#include <stdlib.h>

#include "contract/plugin.h"

/* Correlation that is aimed at, for the number whose correlation so large a share of them do not
 * exceed. */
static const double AIM = 0.3, QUANTILE = 0.9;

void watch_create(struct watch *watch, int count) {
    watch->count = count;
    watch->correlation = doubles((size_t)count);
}

double *watch_attach(struct watch *watch, double *store) {
    double **const part[] = {&watch->mean, &watch->square, &watch->step, &watch->last};
    for (int k = 0; k < 4; ++k, store += watch->count) *part[k] = store;
    watch->seen = store;
    return store + 1;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double correlation(struct watch *watch, int also_last) {
    int moving = 0;
    for (int k = 0; k < watch->count; ++k) {
        if (watch->square[k] == 0) continue;
        watch->correlation[moving++] = 1 - 0.5 * watch->step[k] / watch->square[k];
    }
    if (moving == 0) return 0;
    const double of_last =
        also_last && watch->square[watch->count - 1] > 0 ? watch->correlation[moving - 1] : 0;
    qsort(watch->correlation, (size_t)moving, sizeof(double), compare);
    return fmax(watch->correlation[(int)(QUANTILE * (moving - 1))], of_last);
}

double watch_factor(struct watch *watch, int also_last) {
    const double found = fmin(fmax(correlation(watch, also_last), 0.01), 0.99);
    return fmin(fmax(log(AIM) / log(found), 0.5), 4);
}

void watch_forget(struct watch *watch) {
    const size_t bytes = (size_t)watch->count * sizeof(double);
    memset(watch->mean, 0, bytes);
    memset(watch->square, 0, bytes);
    memset(watch->step, 0, bytes);
    *watch->seen = 0;
}
