/* Method "augment": maps of all records that preserve products of two columns. If sums of squares
 * and of products are published without the columns' own sums, the posterior is a thin shell of
 * parameters with these second moments: means may be large and variances small, or the reverse.
 * Steps of single records, or of theta, follow it slowly. Let X be the values of these columns
 * about their origins, a row each record, e = (1, ..., 1) / sqrt(n), and, for a direction a drawn
 * at random, v the unit vector along X a - mean(X a). Two maps are proposed:
 *
 *   turn     X' = R X, R the rotation of the plane of e and v by an angle drawn at random: X'X
 * stays whole, and what means lose scatter gains. Volume: |r'/r|^(n - 2), r the length of X a about
 * its mean. stretch  x_j' = P x_j + s (x_j - P x_j), P the projection on the other columns, for a
 * column whose square is not published: its products with the others stay. Volume: s^(n - p + 1),
 *            p columns.
 *
 * Both are linear maps of each record, and undone by the opposite angle and by 1/s; angles and log
 * s are of all sizes, symmetric about 0. They are accepted by augment_try_map(), which also
 * compares totals where records are clamped.
 *
 * Invariants: as records/reflections.c. Cost: a pass over the records a map, and two
 * more where it is accepted.
 */
#include "base/linalg.h"
#include "records/augment_internal.h"

/* so that releases far from the origin mix */
enum { ROUNDS = 4 };

static void prepare(struct augment *a) {
    if (!maps_of(a) || !maps_of(a)->keeps_squares) return;
    struct record_maps *map = maps_of(a);
    const size_t columns = (size_t)a->model.columns;
    map->gram = doubles(columns * columns);
    map->solved = doubles(columns * (columns + 1));
    map->sums = doubles(columns);
}

/* map->sums and map->gram: X'1 and X'X; of columns that are left as they are, 0 */
static void sum_turned(struct augment *a) {
    struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    for (int j = 0; j < columns; ++j) {
        const double *x = a->x + j * a->stride, g = map->origin[j];
        map->sums[j] = 0;
        for (ptrdiff_t i = 0; map->unit[j] > 0 && i < a->n; ++i) map->sums[j] += x[i] - g;
        for (int k = 0; k <= j; ++k) {
            const double *y = a->x + k * a->stride, h = map->origin[k];
            double sum = 0;
            for (ptrdiff_t i = 0; map->unit[j] > 0 && map->unit[k] > 0 && i < a->n; ++i)
                sum += (x[i] - g) * (y[i] - h);
            map->gram[j * columns + k] = map->gram[k * columns + j] = sum;
        }
    }
}

/* map->mix and map->shift map values about the origins: turns them into a map of the values. */
static void about_origins(struct augment *a) {
    struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    for (int j = 0; j < columns; ++j) {
        map->turned[j] = map->unit[j] > 0;
        map->shift[j] += map->origin[j] - linalg_dot(columns, map->mix + j * columns, map->origin);
    }
}

/* +- `most` to a hundredth of it */
static double step_of_any_size(struct augment *a, double most) {
    const double size = most * exp(-rng_uniform(a->rng) * M_LN10 * 2);
    return rng_uniform(a->rng) < 0.5 ? -size : size;
}

static void turn(struct augment *a) {
    struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    const double n = (double)a->n, root = sqrt(n);
    double *direction = map->solved, *along = map->solved + columns; /* a; X'X a */
    for (int j = 0; j < columns; ++j)
        direction[j] = map->unit[j] > 0 ? rng_normal(a->rng) / map->unit[j] : 0;
    const double angle = step_of_any_size(a, M_PI);
    for (int j = 0; j < columns; ++j)
        along[j] = linalg_dot(columns, map->gram + j * columns, direction);
    const double mean = linalg_dot(columns, map->sums, direction) / n,
                 square = linalg_dot(columns, along, direction),
                 r = sqrt(fmax(0, square - n * mean * mean));
    if (!(r > 1e-7 * sqrt(square))) return;
    const double turned = sin(angle) * root * mean + cos(angle) * r;
    if (turned == 0) return;
    augment_start_map(a);
    map->log_volume = (n - 2) * log(fabs(turned) / r);
    for (int j = 0; j < columns; ++j) {
        const double on_e = map->sums[j] / root, on_v = (along[j] - map->sums[j] * mean) / r,
                     to_e = (cos(angle) - 1) * on_e - sin(angle) * on_v,
                     to_v = (sin(angle) * on_e + (cos(angle) - 1) * on_v) / r;
        for (int k = 0; k < columns; ++k) map->mix[j * columns + k] += to_v * direction[k];
        map->shift[j] = to_e / root - to_v * mean;
    }
    about_origins(a);
    if (augment_try_map(a)) sum_turned(a);
}

/* the coefficients of column j on the others, in map->solved; 0 if they do not determine them */
static int regress_column(struct augment *a, int j) {
    struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    double *coefficient = map->solved, *matrix = map->solved + columns;
    for (int k = 0; k < columns; ++k) {
        const int other = k != j && map->unit[k] > 0;
        coefficient[k] = other ? map->gram[j * columns + k] : 0;
        for (int l = 0; l < columns; ++l)
            matrix[k * columns + l] =
                other && l != j && map->unit[l] > 0 ? map->gram[k * columns + l] : k == l;
    }
    return isfinite(linalg_solve(columns, matrix, coefficient));
}

static void stretch(struct augment *a, int j) {
    struct record_maps *map = maps_of(a);
    const int columns = a->model.columns;
    int others = 0;
    for (int k = 0; k < columns; ++k) others += k != j && map->unit[k] > 0;
    const double log_by = step_of_any_size(a, 2), by = exp(log_by);
    if (a->n <= others) return;
    if (!regress_column(a, j)) return;
    augment_start_map(a);
    for (int k = 0; k < columns; ++k)
        map->mix[j * columns + k] = k == j ? by : (1 - by) * map->solved[k];
    map->log_volume = (double)(a->n - others) * log_by;
    about_origins(a);
    if (augment_try_map(a)) sum_turned(a);
}

static void make(struct augment *a, struct round *round) {
    if (!maps_of(a) || !maps_of(a)->keeps_squares || round->empty) return;
    sum_turned(a);
    for (int k = 0; k < ROUNDS; ++k) {
        turn(a);
        for (int j = 0; j < a->model.columns; ++j)
            if (maps_of(a)->stretched[j] > 0) stretch(a, j);
    }
}

const struct move move_second_moments = {.phase = MOVE_AFTER, .prepare = prepare, .make = make};
