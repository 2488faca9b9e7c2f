/* Exact totals of normal records (totals_normal.c): of columns, T_i, and of their squares, P_ii.
 *
 * Among the coordinates of totals.c, with k = 1, each of them is one, given the others of its row:
 *
 *   M_i = T_i / sqrt(n),   exp(2 log F_ii) = S_ii / (1 + sum_j a_ij^2),   S_ii = P_ii - M_i^2,
 *
 * a_ij = F_ij / F_ii. A released square is that about another point than the columns' origins, so
 * that P_ii = constant + slope M_i. Given P_ii the density of the others has the factor
 * d log F_ii / d P_ii = 1 / (2 S_ii).
 *
 * What is determined so leaves its coordinate of the sampler free: that becomes a standard normal
 * number that nothing depends on. So the sampler's dimension does not change, and what is exact
 * holds up to rounding whatever it does.
 *
 * Cost: O(d) for each exact square.
 */
#include "totals_normal.h"

#include "block.h"

/* Place of row i of F. */
static int row_at(const struct normal *s, int i) { return s->density.totals.d + i * (i + 1) / 2; }

static int column_place(const struct normal *s, int column) {
    int i = 0;
    while (s->model.order[i] != column) ++i;
    return i;
}

/* Components from `noisy` on are exact. R has seen that they are totals of columns and of squares,
 * and that n is known and larger than there are columns. */
int normal_prepare_exact(const struct collapse *of, struct normal *s) {
    const int d = s->model.columns, count = of->size - of->noisy;
    if (count == 0) return PLUGIN_OK;
    const double root = s->density.totals.design[0];
    struct normal_exact *exact = plugin_memory((size_t)d, sizeof *exact);
    for (int pass = 0; pass < 2; ++pass)
        for (int k = of->noisy; k < of->size; ++k) {
            const struct component *one = s->density.component + k;
            const double value = of->released[k] - one->constant;
            struct normal_exact *row = exact + column_place(s, one->at[0]);
            const int square = one->coef[2] != 0;
            if (square != pass || (!square && one->coef[0] == 0)) continue; /* 0: that is n */
            if (!square) {
                row->total = 1;
                row->mean = value / one->coef[0] / root;
            } else if (one->at[0] == one->at[1]) {
                row->square = 1;
                row->constant = value / one->coef[2];
                row->slope = -one->coef[0] / one->coef[2] * root;
            } else {
                return PLUGIN_BAD_FIELDS;
            }
        }
    s->exact = exact;
    s->exact_place = normal_doubles((size_t)s->density.size);
    return PLUGIN_OK;
}

static double scatter(const struct normal_exact *row, double mean) {
    return row->constant + row->slope * mean - mean * mean;
}

static double length_square(const double *a, int count) {
    double sum = 1;
    for (int j = 0; j < count; ++j) sum += a[j] * a[j];
    return sum;
}

const double *normal_exact_place(struct normal *s, const double *q) {
    double *place = s->exact_place;
    normal_copy(place, q, s->density.size);
    for (int i = 0; i < s->model.columns; ++i) {
        const struct normal_exact *row = s->exact + i;
        double *along = place + row_at(s, i);
        if (row->total) place[i] = row->mean;
        /* the log of what cannot be is not a number, which log_density() looks for */
        if (row->square) along[i] = 0.5 * log(scatter(row, place[i]) / length_square(along, i));
    }
    return place;
}

double normal_exact_pull(const struct normal *s, const double *q, double *gradient) {
    double log_density = 0;
    for (int i = 0; i < s->model.columns; ++i) {
        const struct normal_exact *row = s->exact + i;
        const double *place = s->exact_place, *along = place + row_at(s, i);
        double *pull = gradient + row_at(s, i);
        if (row->square) {
            const double own = scatter(row, place[i]), length = length_square(along, i);
            gradient[i] += (row->slope - 2 * place[i]) / own * (0.5 * pull[i] - 1);
            for (int j = 0; j < i; ++j) pull[j] -= pull[i] * along[j] / length;
            const double free = q[row_at(s, i) + i];
            log_density -= log(own) + 0.5 * free * free;
            pull[i] = -free;
        }
        if (row->total) {
            log_density -= 0.5 * q[i] * q[i];
            gradient[i] = -q[i];
        }
    }
    return log_density;
}

int normal_exact_possible(const struct normal *s) {
    for (int i = 0; i < s->model.columns; ++i)
        if (s->exact[i].square && !(scatter(s->exact + i, s->exact_place[i]) > 0)) return 0;
    return 1;
}

void normal_exact_start(const struct normal *s, double *q, double *unit) {
    for (int i = 0; i < s->model.columns; ++i) {
        const struct normal_exact *row = s->exact + i;
        if (row->square) {
            /* where the scatter is largest, if the start has none */
            const double middle = 0.5 * row->slope;
            if (!row->total && !(scatter(row, q[i]) > 0.1 * scatter(row, middle))) q[i] = middle;
            q[row_at(s, i) + i] = 0;
            unit[row_at(s, i) + i] = 1;
        }
        if (row->total) {
            q[i] = 0;
            unit[i] = 1;
        }
    }
}
