/* Expected totals and products of clamped columns where records have factors: in each cell of the
 * factors' cross-table they are approximated as normal, with the cell's mean given the totals and
 * a common covariance.
 *
 * With D'D = R R', M = R^-1 D'W and the scatter F F' about it (totals/normal_coordinates.c), a
 * cell whose records have the row x of D has the mean M'h, h = R^-1 x, and the covariance is F F'
 * / n. So if nothing is clamped, the expected totals are the totals themselves. h has 0 where a row
 * of R is idle, because such a row of M does not concern the records.
 *
 * The result is the sum over cells of the expected totals of totals/clamped_moments.c; slopes in M
 * are those in the means times h, summed, those in F follow from those in F F'.
 *
 * Cost: totals/clamped_moments.c for each cell that has records. No allocation except in
 * clamped_cells_new().
 */
#include "totals/clamped_moments_by_cell.h"

#include "contract/plugin.h"

struct clamped_cells *clamped_cells_new(struct clamped *clamped, struct totals *totals, int cells,
                                        const int *dummy) {
    struct clamped_cells *s = plugin_memory(1, sizeof *s);
    const size_t d = (size_t)totals->d, k = (size_t)totals->k, width = (size_t)totals->width;
    s->clamped = clamped;
    s->totals = totals;
    s->cells = cells;
    s->dummy = dummy;
    s->along = plugin_memory((size_t)cells * k, sizeof *s->along);
    s->edges = plugin_memory((size_t)cells * d, sizeof *s->edges);
    s->on_cov = plugin_memory(d * d, sizeof *s->on_cov);
    totals->slope_mean = plugin_memory(k * width, sizeof *totals->slope_mean);
    totals->slope_factor = plugin_memory(d * width, sizeof *totals->slope_factor);
    return s;
}

static const int *dummies_of(const struct clamped_cells *s, int cell) {
    return s->dummy + (size_t)cell * (size_t)(s->totals->k - 1);
}

void clamped_cells_design(struct clamped_cells *s) {
    const struct totals *t = s->totals;
    const int k = t->k;
    for (int cell = 0; cell < s->cells; ++cell) {
        double *h = s->along + (size_t)cell * (size_t)k;
        const int *dummy = dummies_of(s, cell);
        for (int b = 0; b < k; ++b) {
            double sum = b > 0 ? dummy[b - 1] : 1;
            for (int e = 0; e < b; ++e) sum -= t->design[b * k + e] * h[e];
            h[b] = t->idle[b] ? 0 : sum / t->design[b * k + b];
        }
    }
}

/* The covariance, which all cells share. */
static void read_covariance(struct clamped_cells *s) {
    const struct totals *t = s->totals;
    const int d = t->d;
    for (int i = 0; i < d; ++i) {
        const double *own = t->factor + (size_t)i * (size_t)t->width;
        struct clamped_column *x = s->clamped->column + i;
        double sum = 0;
        for (int l = 0; l <= i; ++l) sum += own[l] * own[l];
        x->sd = sqrt(sum / t->n);
        for (int j = 0; j < i; ++j) {
            const double *other = t->factor + (size_t)j * (size_t)t->width;
            double product = 0;
            for (int l = 0; l <= j; ++l) product += own[l] * other[l];
            const double r = product / (t->n * x->sd * s->clamped->column[j].sd);
            s->clamped->correlation[i * t->width + j] = r > 1 ? 1 : r < -1 ? -1 : r;
        }
    }
}

static void read_mean(struct clamped_cells *s, int cell) {
    const struct totals *t = s->totals;
    const double *h = s->along + (size_t)cell * (size_t)t->k;
    for (int i = 0; i < t->d; ++i) {
        double sum = 0;
        for (int b = 0; b < t->k; ++b) sum += h[b] * t->mean[b * t->width + i];
        s->clamped->column[i].mean = sum;
    }
}

static struct clamped_edges *edges_of(const struct clamped_cells *s, int cell) {
    return s->edges + (size_t)cell * (size_t)s->totals->d;
}

static void place_cell(struct clamped_cells *s, int cell) {
    struct clamped_edges *edges = edges_of(s, cell);
    read_mean(s, cell);
    clamped_place(s->clamped);
    for (int i = 0; i < s->totals->d; ++i) edges[i] = s->clamped->column[i].edges;
}

static void place_again(struct clamped_cells *s, int cell) {
    const struct clamped_edges *edges = edges_of(s, cell);
    read_mean(s, cell);
    for (int i = 0; i < s->totals->d; ++i) s->clamped->column[i].edges = edges[i];
    clamped_place_again(s->clamped);
}

void clamped_cells_expect(struct clamped_cells *s, double *out) {
    const struct totals *t = s->totals;
    const int d = t->d;
    read_covariance(s);
    for (int i = 0; i < d; ++i) {
        for (int b = 0; b < t->k; ++b) out[t->cross[b * d + i]] = 0;
        for (int j = 0; j <= i; ++j) out[t->product[i * d + j]] = 0;
    }
    for (int cell = 0; cell < s->cells; ++cell) {
        const double count = s->count[cell];
        const int *dummy = dummies_of(s, cell);
        if (count == 0) continue;
        place_cell(s, cell);
        for (int i = 0; i < d; ++i) {
            const double total = count * s->clamped->column[i].first;
            out[t->cross[i]] += total;
            for (int b = 1; b < t->k; ++b)
                if (dummy[b - 1]) out[t->cross[b * d + i]] += total;
            const double *product = clamped_products(s->clamped, i);
            for (int j = 0; j <= i; ++j) out[t->product[i * d + j]] += count * product[j];
        }
    }
}

/* Slopes in what is expected of the records of a cell, from those in the totals. */
static void gather_slopes(struct clamped_cells *s, int cell, const double *gradient) {
    const struct totals *t = s->totals;
    const int d = t->d, *dummy = dummies_of(s, cell);
    const double count = s->count[cell];
    for (int i = 0; i < d; ++i) {
        double sum = gradient[t->cross[i]];
        for (int b = 1; b < t->k; ++b)
            if (dummy[b - 1]) sum += gradient[t->cross[b * d + i]];
        double *slope = clamped_slopes(s->clamped, i);
        s->clamped->column[i].on_first = count * sum;
        s->clamped->column[i].on_second = count * gradient[t->product[i * d + i]];
        for (int j = 0; j < i; ++j) slope[j] = count * gradient[t->product[i * d + j]];
    }
}

void clamped_cells_pull(struct clamped_cells *s, const double *gradient) {
    const struct totals *t = s->totals;
    const int d = t->d, k = t->k;
    const size_t width = (size_t)t->width;
    double *on_sd = t->slope; /* which totals_pull() writes before it reads */
    memset(t->slope_mean, 0, (size_t)k * width * sizeof(double));
    memset(on_sd, 0, width * sizeof(double));
    memset(s->on_cov, 0, (size_t)d * (size_t)d * sizeof(double));
    for (int cell = 0; cell < s->cells; ++cell) {
        const double *h = s->along + (size_t)cell * (size_t)k;
        if (s->count[cell] == 0) continue;
        place_again(s, cell);
        gather_slopes(s, cell, gradient);
        clamped_pull_slopes(s->clamped);
        for (int i = 0; i < d; ++i) {
            const struct clamped_column *x = s->clamped->column + i;
            on_sd[i] += x->on_sd;
            for (int b = 0; b < k; ++b)
                t->slope_mean[(size_t)b * width + (size_t)i] += h[b] * x->on_mean;
            for (int j = 0; j < i; ++j) s->on_cov[i * d + j] += s->clamped->slope[i * t->width + j];
        }
    }
    for (int i = 0; i < d; ++i) {
        double *row = t->slope_factor + (size_t)i * width;
        memset(row, 0, width * sizeof(double));
        for (int j = 0; j < d; ++j) {
            const double slope = i == j  ? on_sd[i] / s->clamped->column[i].sd
                                 : i > j ? s->on_cov[i * d + j]
                                         : s->on_cov[j * d + i];
            const double *factor = t->factor + (size_t)j * width;
            for (int l = 0; l <= i && l <= j; ++l) row[l] += slope * factor[l] / t->n;
        }
    }
}

void clamped_cells_expand(struct clamped_cells *s, int cell) {
    read_covariance(s);
    place_cell(s, cell);
    clamped_expand(s->clamped);
}
