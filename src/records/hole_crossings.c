/* Method "augment": where the noise of totals has a hole, as that of random factors that are never
 * close to 1, each total may be on either side of it, and no small step leads across. Of normal
 * records, let m be the means, W the scatter about them, and L L' = W. Some components are proposed
 * to cross: each moves by the distance between two pieces of its noise, and components of other
 * moments, and W where no product is published, stay. Then
 *
 *   x' = m' + L' L^-1 (x - m)
 *
 * has the new moments, leaves L^-1 (x - m) as it is, and is undone by the opposite distances. m and
 * W move by constants, so the Jacobian of all records' values is |W' / W|^((n - d - 2) / 2), with d
 * columns. Where the residual standard deviation is not integrated out it follows the response's
 * residual scatter. Accepted by augment_try_map(), which also compares totals where records are
 * clamped.
 *
 * Invariants: as records/reflections.c. Cost: a pass over the records a proposal, and two more
 * where it is accepted.
 */
#include "base/linalg.h"
#include "contract/model_marginal.h"
#include "records/augment_internal.h"

/* proposals of an iteration, for each component that may cross */
enum { PROPOSALS = 4 };

static void prepare(struct augment *a) {
    struct hole_crossings *h = OWN(a, crossings);
    if (!h) return;
    if (!maps_of(a) || !(a->n > a->model.columns + 2)) {
        OWN(a, crossings) = NULL;
        return;
    }
    const size_t d = (size_t)a->model.columns;
    DOUBLES(d, &h->total, &h->total_after);
    DOUBLES(d * d, &h->product, &h->product_after, &h->factor, &h->factor_after, &h->inverse);
    h->by = doubles((size_t)h->components);
}

/* totals and products of the columns about their origins */
static void sum_columns(const struct augment *a, const struct hole_crossings *h) {
    const int d = a->model.columns;
    for (int j = 0; j < d; ++j) {
        const double *x = a->x + j * a->stride, g = h->origin[j];
        h->total[j] = 0;
        for (ptrdiff_t i = 0; i < a->n; ++i) h->total[j] += x[i] - g;
        for (int k = 0; k <= j; ++k) {
            const double *y = a->x + k * a->stride, o = h->origin[k];
            double sum = 0;
            for (ptrdiff_t i = 0; i < a->n; ++i) sum += (x[i] - g) * (y[i] - o);
            h->product[j * d + k] = h->product[k * d + j] = sum;
        }
    }
}

static const double *term_of(const struct hole_crossings *h, int j) { return h->terms + 6 * j; }

/* by how much component j crosses: from any of its pieces to any other one */
static double distance(struct augment *a, const struct hole_crossings *h, int j) {
    const double *centre = h->centre + h->first[j];
    const ptrdiff_t pieces = h->first[j + 1] - h->first[j];
    const ptrdiff_t from = augment_choose(a->rng, pieces),
                    to = (from + 1 + augment_choose(a->rng, pieces - 1)) % pieces;
    return centre[to] - centre[from];
}

/* One component crosses, or each may. */
static void choose_crossings(struct augment *a, struct hole_crossings *h) {
    const int alone = rng_uniform(a->rng) < 0.5;
    const ptrdiff_t chosen = augment_choose(a->rng, h->crossing);
    for (int j = 0, at = 0; j < h->components; ++j) {
        h->by[j] = 0;
        if (h->first[j + 1] - h->first[j] < 2) continue;
        const int crosses = alone ? at == chosen : rng_uniform(a->rng) < 0.5;
        if (crosses) h->by[j] = distance(a, h, j);
        ++at;
    }
}

/* The moments after the crossings. */
static void find_moments(const struct augment *a, struct hole_crossings *h) {
    const int d = a->model.columns;
    const double n = (double)a->n;
    memcpy(h->total_after, h->total, (size_t)d * sizeof(double));
    for (int j = 0; j < h->components; ++j) {
        const double *term = term_of(h, j);
        if (term[5] == 0) h->total_after[(int)term[0]] += h->by[j] / term[3];
    }
    const double *before = h->total, *after = h->total_after;
    for (int i = 0; i < d; ++i)
        for (int k = 0; k < d; ++k)
            h->product_after[i * d + k] =
                h->product[i * d + k] + (after[i] * after[k] - before[i] * before[k]) / n;
    for (int j = 0; j < h->components; ++j) {
        const double *term = term_of(h, j);
        if (term[5] == 0) continue;
        const int i = (int)term[0], k = (int)term[1];
        const double rest = term[3] * (after[i] - before[i]) + term[4] * (after[k] - before[k]);
        h->product_after[i * d + k] = h->product_after[k * d + i] =
            h->product[i * d + k] + (h->by[j] - rest) / term[5];
    }
}

/* Cholesky factor of the scatter, with the columns in reverse order. Returns 0 if the scatter is
 * not positive definite. */
static int factor_scatter(const struct augment *a, const double *total, const double *product,
                          double *factor) {
    const int d = a->model.columns;
    for (int i = 0; i < d; ++i)
        for (int k = 0; k <= i; ++k) {
            const int row = d - 1 - i, column = d - 1 - k;
            factor[i * d + k] =
                product[row * d + column] - total[row] * total[column] / (double)a->n;
        }
    return linalg_cholesky(d, factor) == 0;
}

/* the map of the columns, from both factors */
static void fill_map(struct augment *a, struct hole_crossings *h) {
    struct record_maps *map = maps_of(a);
    const int d = a->model.columns, last = d * d - 1;
    const double n = (double)a->n;
    augment_start_map(a);
    for (int k = 0; k < d; ++k) { /* columns of the inverse, as rows */
        double *column = h->inverse + k * d;
        for (int i = 0; i < d; ++i) column[i] = i == k;
        linalg_forward(d, h->factor, column);
        map->log_volume += (n - d - 2) * log(h->factor_after[k * d + k] / h->factor[k * d + k]);
    }
    for (int i = 0; i < d; ++i)
        for (int k = 0; k < d; ++k)
            map->mix[(d - 1 - i) * d + (d - 1 - k)] =
                linalg_dot(i + 1, h->factor_after + i * d, h->inverse + k * d);
    for (int i = 0; i < d; ++i) {
        map->turned[i] = 1;
        map->shift[i] = h->origin[i] + h->total_after[i] / n;
        for (int k = 0; k < d; ++k)
            map->shift[i] -= map->mix[i * d + k] * (h->origin[k] + h->total[k] / n);
    }
    if (a->model.marginal->residual > 0)
        map->log_residual = log(h->factor_after[last] / h->factor[last]);
}

static void make(struct augment *a, struct round *round) {
    struct hole_crossings *h = OWN(a, crossings);
    if (!h || round->empty) return;
    sum_columns(a, h);
    for (int t = 0; t < PROPOSALS * h->crossing; ++t) {
        choose_crossings(a, h);
        find_moments(a, h);
        if (!factor_scatter(a, h->total, h->product, h->factor) ||
            !factor_scatter(a, h->total_after, h->product_after, h->factor_after))
            continue;
        fill_map(a, h);
        if (augment_try_map(a)) sum_columns(a, h);
    }
}

const struct move move_crossings = {.phase = MOVE_AFTER, .prepare = prepare, .make = make};
