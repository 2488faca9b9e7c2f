/* Exact totals of normal records (totals/normal_totals_chain.c, pool/nuts_chain.c): of columns,
 * T_i, and of their squares, P_ii.
 *
 * Among the coordinates of totals/normal_coordinates.c, with k = 1, each of them is one, given
 * the others of its row:
 *
 *   M_i = T_i / sqrt(n),   exp(2 log F_ii) = S_ii / (1 + sum_j a_ij^2),   S_ii = P_ii - M_i^2,
 *
 * a_ij = F_ij / F_ii. A released square is that about another point than the columns' origins, so
 * that P_ii = constant + slope M_i. Given P_ii the density of the others has the factor
 * d log F_ii / d P_ii = 1 / (2 S_ii). Where T_i is not exact, S_ii > 0 holds M_i between two ends:
 *
 *   M_i = slope / 2 + r tanh(v),   S_ii = r^2 / cosh(v)^2,   r^2 = constant + slope^2 / 4,
 *
 * and the Jacobian S_ii / r of v makes up for that factor.
 *
 * The sampler's coordinate of a value that is determined in this way becomes a standard normal
 * number on which nothing depends. So the sampler's dimension does not change, and exact values
 * hold up to rounding in every case.
 *
 * Cost: O(d) for each exact square.
 */
#include "totals/exact_totals.h"

#include "contract/plugin.h"

/* Place of row i of F. */
static int row_at(const struct totals_exact *e, int i) { return e->totals->d + i * (i + 1) / 2; }

static int column_place(const struct totals_exact *e, int column) {
    int i = 0;
    while (e->totals->column[i] != column) ++i;
    return i;
}

static void read_exact(struct totals_exact *e, const struct component *one, double released) {
    const double value = released - one->constant;
    struct exact_row *row = e->row + column_place(e, one->at[0]);
    if (one->coef[2] != 0) {
        row->square = 1;
        row->constant = value / one->coef[2];
        row->slope = -one->coef[0] / one->coef[2] * e->totals->design[0];
    } else if (one->coef[0] != 0) { /* 0: that is n */
        row->total = 1;
        row->mean = value / one->coef[0] / e->totals->design[0];
    }
}

struct totals_exact *totals_exact_new(const struct totals_density *density, int size,
                                      const struct noise *noise) {
    if (noise->noisy == noise->size) return NULL;
    struct totals_exact *e = plugin_memory(1, sizeof *e);
    e->totals = &density->totals;
    e->size = size;
    e->row = plugin_memory((size_t)density->totals.d, sizeof *e->row);
    e->place = doubles((size_t)size);
    for (int k = noise->noisy; k < noise->size; ++k)
        read_exact(e, density->component + k, noise->released[k]);
    for (int i = 0; i < density->totals.d; ++i) {
        struct exact_row *row = e->row + i;
        row->middle = 0.5 * row->slope;
        row->reach = sqrt(row->constant + row->middle * row->middle);
    }
    return e;
}

static double scatter(const struct exact_row *row, double free) {
    if (row->total) return row->constant + (row->slope - row->mean) * row->mean;
    const double side = row->reach / cosh(free);
    return side * side;
}

static double length_square(const double *a, int count) {
    double sum = 1;
    for (int j = 0; j < count; ++j) sum += a[j] * a[j];
    return sum;
}

const double *totals_exact_place(struct totals_exact *e, const double *q) {
    double *place = e->place;
    memcpy(place, q, (size_t)e->size * sizeof(double));
    for (int i = 0; i < e->totals->d; ++i) {
        const struct exact_row *row = e->row + i;
        double *along = place + row_at(e, i);
        if (row->total)
            place[i] = row->mean;
        else if (row->square)
            place[i] = row->middle + row->reach * tanh(q[i]);
        if (row->square) along[i] = 0.5 * log(scatter(row, q[i]) / length_square(along, i));
    }
    return place;
}

double totals_exact_pull(const struct totals_exact *e, const double *q, double *gradient) {
    double log_density = 0;
    for (int i = 0; i < e->totals->d; ++i) {
        const struct exact_row *row = e->row + i;
        const double *place = e->place, *along = place + row_at(e, i);
        double *pull = gradient + row_at(e, i);
        if (row->square) {
            const double length = length_square(along, i);
            for (int j = 0; j < i; ++j) pull[j] -= pull[i] * along[j] / length;
            if (!row->total)
                gradient[i] = gradient[i] * scatter(row, q[i]) / row->reach - pull[i] * tanh(q[i]);
            const double free = q[row_at(e, i) + i];
            log_density -= 0.5 * free * free;
            pull[i] = -free;
        }
        if (row->total) {
            log_density -= 0.5 * q[i] * q[i];
            gradient[i] = -q[i];
        }
    }
    return log_density;
}

/* share of the reach at which chains may start */
static const double INSIDE = 0.95;

void totals_exact_start(const struct totals_exact *e, double *q, double *unit) {
    for (int i = 0; i < e->totals->d; ++i) {
        const struct exact_row *row = e->row + i;
        if (row->square) {
            if (!row->total) {
                /* near an end, if the start is beyond it */
                const double share = (q[i] - row->middle) / row->reach;
                q[i] = atanh(fmax(fmin(share, INSIDE), -INSIDE));
                unit[i] *= row->reach / scatter(row, q[i]);
            }
            q[row_at(e, i) + i] = 0;
            unit[row_at(e, i) + i] = 1;
        }
        if (row->total) {
            q[i] = 0;
            unit[i] = 1;
        }
    }
}
