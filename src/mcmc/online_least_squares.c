/* The slopes of values y in coordinates q, from successive pairs of changes: least squares through
 * the origin,
 *
 *   slope = C (S + R)^-1,   S = sum of dq dq',   C = sum of dy dq',
 *
 * with R a ridge of RIDGE times the diagonal of S, for directions with little data.
 *
 * records/shape_hmc.c corrects a surrogate's expected totals by it: a pair is the beginning and
 * the end of a trajectory in warmup. Such moves are exact with any slopes; good slopes increase
 * the acceptance rate.
 *
 * Cost: size (size + values) a pair, size^2 (size / 3 + values) to solve, 2 size values a use.
 * No allocation.
 */
#include "mcmc/online_least_squares.h"

#include "base/linalg.h"

static const double RIDGE = 1e-4;

/* Pairs for each coordinate that slopes take: with fewer, they are worse than none. */
enum { FEWEST = 2 };

size_t tilt_stored(int size, int values) {
    const size_t n = (size_t)size, m = (size_t)values;
    return 2 * m * n + n * n + 2;
}

size_t tilt_workspace(int size) { return (size_t)size * (size_t)size; }

void tilt_attach(struct tilt *tilt, int size, int values, double *store, double *work) {
    const size_t n = (size_t)size, m = (size_t)values;
    tilt->size = size;
    tilt->values = values;
    tilt->slope = store;
    tilt->cross = tilt->slope + m * n;
    tilt->scatter = tilt->cross + m * n;
    tilt->learned = tilt->scatter + n * n;
    tilt->seen = tilt->learned + 1;
    tilt->work = work;
}

void tilt_forget(struct tilt *tilt) {
    const size_t n = (size_t)tilt->size, m = (size_t)tilt->values;
    memset(tilt->cross, 0, (m * n + n * n) * sizeof(double));
    *tilt->seen = 0;
}

void tilt_start(struct tilt *tilt) {
    memset(tilt->slope, 0, (size_t)tilt->values * (size_t)tilt->size * sizeof(double));
    *tilt->learned = 0;
    tilt_forget(tilt);
}

void tilt_add(struct tilt *tilt, const double *change, const double *response) {
    const int n = tilt->size;
    *tilt->seen += 1;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) tilt->scatter[i * n + j] += change[i] * change[j];
    for (int k = 0; k < tilt->values; ++k)
        for (int j = 0; j < n; ++j) tilt->cross[k * n + j] += response[k] * change[j];
}

void tilt_solve(struct tilt *tilt) {
    const int n = tilt->size;
    double *a = tilt->work;
    memcpy(a, tilt->scatter, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; ++i) a[i * n + i] *= 1 + RIDGE;
    if (*tilt->seen < FEWEST * n) return;
    if (linalg_cholesky(n, a) == 0) {
        memcpy(tilt->slope, tilt->cross, (size_t)tilt->values * (size_t)n * sizeof(double));
        for (int k = 0; k < tilt->values; ++k) {
            linalg_forward(n, a, tilt->slope + k * n);
            linalg_backward(n, a, tilt->slope + k * n);
        }
        *tilt->learned = 1;
    }
    tilt_forget(tilt);
}

void tilt_correct(const struct tilt *tilt, const double *q, const double *at, const double *value,
                  double *out) {
    const int n = tilt->size;
    for (int k = 0; k < tilt->values; ++k) {
        const double *slope = tilt->slope + (size_t)k * (size_t)n;
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += slope[j] * (q[j] - at[j]);
        out[k] = value[k] - sum;
    }
}

void tilt_pull(const struct tilt *tilt, const double *force, double *gradient) {
    const int n = tilt->size;
    for (int k = 0; k < tilt->values; ++k) {
        const double *slope = tilt->slope + (size_t)k * (size_t)n;
        for (int j = 0; j < n; ++j) gradient[j] += force[k] * slope[j];
    }
}
