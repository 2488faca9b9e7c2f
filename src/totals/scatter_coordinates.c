/* Coordinates of the scatter S of normal totals if noise is small relative to it
 * (totals/normal_totals_chain.c).
 *
 * A released square determines S_ii. Row i of the factor F has the coordinates log F_ii and a_ij =
 * F_ij / F_ii (totals/normal_coordinates.c), and with those
 *
 *   S_ii = F_ii^2 (1 + sum_j a_ij^2):
 *
 * the less noise there is, the more strongly they depend on each other. So log S_ii / 2 replaces
 * log F_ii:
 *
 *   log F_ii = log S_ii / 2 - log(1 + sum_j a_ij^2) / 2,
 *
 * with Jacobian 1. If noise is large, most values of S that it allows are nearly singular, and F's
 * own diagonal is the better coordinate.
 *
 * R chooses the coordinates from the release alone, so that chains agree: tells_scatter().
 *
 * Cost: O(d^2) a gradient.
 */
#include "totals/normal_totals.h"

void normal_prepare_scatter(struct normal *s) {
    s->scatter_place = doubles((size_t)normal_coordinates(s));
    s->length = doubles((size_t)s->density.totals.d);
}

/* Row i of the coordinates of F's row begins where the one before it ends. */
const double *normal_scatter_place(struct normal *s, const double *q) {
    const int d = s->density.totals.d;
    double *row = s->scatter_place + d;
    doubles_copy(s->scatter_place, q, normal_coordinates(s));
    for (int i = 0; i < d; ++i, row += i) {
        s->length[i] = 1;
        for (int j = 0; j < i; ++j) s->length[i] += row[j] * row[j];
        row[i] -= 0.5 * log(s->length[i]);
    }
    return s->scatter_place;
}

void normal_scatter_pull(const struct normal *s, double *gradient) {
    const int d = s->density.totals.d;
    const double *row = s->scatter_place + d;
    double *pull = gradient + d;
    for (int i = 0; i < d; ++i, row += i, pull += i)
        for (int j = 0; j < i; ++j) pull[j] -= pull[i] * row[j] / s->length[i];
}

void normal_scatter_read(const struct normal *s, double *q) {
    const int d = s->density.totals.d;
    double *row = q + d;
    for (int i = 0; i < d; ++i, row += i) {
        double length = 1;
        for (int j = 0; j < i; ++j) length += row[j] * row[j];
        row[i] += 0.5 * log(length);
    }
}
