/* An unknown number of records n together with totals of normal records
 * (totals/normal_coordinates.c).
 *
 * n and the totals depend on each other: an uncertain total grows with n; if the total is precise,
 * the mean decreases instead. A step of n that holds coordinates f fixed is best where f and n are
 * uncorrelated. So of the coordinates of totals/normal_coordinates.c, the total of column j over
 * sqrt(n), or how far it is from a bend, and others,
 *
 *   T_j / sqrt(n_0) = w_j (f_j + slope_j (n / n_0 - 1)),
 *   other q_j = f_j + slope_j log(n / n_0),
 *
 * with slopes that warmup learns by regression. w_j, 1 at n_0, is about proportional to the width
 * of T_j given n: which is limited by noise, or otherwise by the prior variance of means, n^2
 * between + n within. The metric of f then also uses the moments of f.
 */
#include "totals/n_coordinate.h"

#include "contract/plugin.h"

void totals_size_create(struct totals_size *t, const struct size_prior *prior, double about,
                        double spread, int columns, int size) {
    t->prior = prior;
    t->about = about;
    t->spread = spread;
    t->least = columns + 1;
    t->columns = columns;
    t->size = size;
    DOUBLES((size_t)size, &t->shift, &t->place);
    DOUBLES((size_t)columns, &t->stretch, &t->told);
    int *moving = plugin_memory((size_t)size, sizeof(int));
    for (int j = 0; j < size; ++j) moving[j] = j;
    t->moving = moving;
}

size_t totals_size_stored(const struct totals_size *t) {
    return 1 + 2 * (size_t)t->columns + size_slope_stored(t->columns) +
           size_slope_stored(t->size - t->columns);
}

void totals_size_attach(struct totals_size *t, double *store) {
    t->n = store;
    t->between = store + 1;
    t->within = t->between + t->columns;
    store = t->within + t->columns;
    size_slope_attach(&t->linear, t->columns, t->moving, store);
    store += size_slope_stored(t->columns);
    size_slope_attach(&t->logarithmic, t->size - t->columns, t->moving + t->columns, store);
}

void totals_size_start(struct totals_size *t, const double *pace, struct rng *rng) {
    const double n = rint(t->about + t->spread * rng_normal(rng));
    size_slope_start(&t->linear);
    size_slope_start(&t->logarithmic);
    for (int j = 0; j < t->columns; ++j) t->linear.slope[j] = pace[j] * sqrt(t->about);
    totals_size_set(t, fmax(fmin(n, t->prior->upper), fmax(t->prior->lower, t->least)));
}

/* width of a column's total given n, squared */
static double width_square(const struct totals_size *t, int j, double n) {
    const double expected = n * (n * t->between[j] + t->within[j]);
    return expected / (1 + expected * t->told[j]);
}

double totals_size_told(const struct totals_size *t, int j) {
    const double expected = t->about * (t->about * t->between[j] + t->within[j]) * t->told[j];
    return expected / (1 + expected);
}

void totals_size_set(struct totals_size *t, double n) {
    const double share = n / t->about, log_share = log(share);
    *t->n = n;
    t->log_volume = 0;
    for (int j = 0; j < t->columns; ++j) {
        const double square = width_square(t, j, n) / width_square(t, j, t->about);
        const double width = sqrt(square);
        t->stretch[j] = width / sqrt(share);
        t->shift[j] = t->linear.slope[j] * (share - 1);
        t->log_volume += log(width);
    }
    for (int j = t->columns; j < t->size; ++j)
        t->shift[j] = t->logarithmic.slope[j - t->columns] * log_share;
}

void totals_size_place(struct totals_size *t, const double *free) {
    for (int j = 0; j < t->columns; ++j) t->place[j] = t->stretch[j] * (free[j] + t->shift[j]);
    for (int j = t->columns; j < t->size; ++j) t->place[j] = free[j] + t->shift[j];
}

void totals_size_free(const struct totals_size *t, const double *place, double *free) {
    for (int j = 0; j < t->columns; ++j) free[j] = place[j] / t->stretch[j] - t->shift[j];
    for (int j = t->columns; j < t->size; ++j) free[j] = place[j] - t->shift[j];
}

double totals_size_log_prior(const struct totals_size *t, double n) {
    return n < t->least ? -INFINITY : size_prior_log(t->prior, n);
}

void totals_size_learn(struct totals_size *t, int closes, double *free) {
    const double n = *t->n, share = n / t->about, log_n = log(n);
    totals_size_place(t, free);
    for (int j = 0; j < t->columns; ++j) t->place[j] /= t->stretch[j];
    size_slope_saw(&t->linear, n, share, t->place);
    size_slope_saw(&t->logarithmic, n, log_n, t->place);
    if (!closes) return;
    size_slope_close(&t->linear);
    size_slope_close(&t->logarithmic);
    totals_size_place(t, free);
    totals_size_set(t, n);
    totals_size_free(t, t->place, free);
}
