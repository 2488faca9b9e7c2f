/* Normal totals of records with factors: their cross-table (vignette "Algorithms", "collapse").
 *
 * Given the cross-table N of the factors, latent, the totals of the continuous columns W on the
 * dummies D are normal and their scatter is Wishart with n - rank D degrees of freedom. In the
 * coordinates of totals/normal_coordinates.c, with theta: M = R'beta + Z, the rows of Z normal
 * with the columns' covariance, and F. The factors are independent of each other and of Z and F.
 * Their probabilities are integrated out, so that
 *
 *   p(N) = prod_f,l Gamma(alpha_fl + N_fl) / prod_cell N_cell!   up to a constant,
 *
 * or, if they depend on each other (model_joint()), prod_cell Gamma(alpha_cell + N_cell) / N_cell!,
 * with weights given by theta.
 *
 * Its moves are in totals/cross_table_moves.c. No allocation except in normal_prepare_table().
 */
#include "totals/normal_totals.h"

#include "base/block.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model_levels.h"

enum { MOST_CELLS = 10000 };

void normal_add_records(const struct normal *s, int cell, double amount) {
    const struct cross_table *t = &s->table;
    const int columns = s->model.columns;
    double *c = s->density.c;
    const struct model_factor *joint = model_joint(&s->model);
    if (joint) c[joint->first + cell] += amount;
    for (int f = 0; f < t->factors; ++f) {
        const int l = normal_level_of(t, f, cell);
        t->dummy[f] = l > 0 ? t->factor[f].first + l - 1 : -1;
    }
    for (int f = 0; f < t->factors; ++f) {
        const int v = t->dummy[f];
        if (v < 0) continue;
        c[v] += amount;
        for (int g = f; g < t->factors; ++g)
            if (t->dummy[g] >= 0) c[moments_at(columns, v, t->dummy[g])] += amount;
    }
}

void normal_read_design(struct normal *s) {
    struct totals *totals = &s->density.totals;
    totals->power = s->n - totals_design(totals, s->density.c);
}

void normal_read_cells(struct normal *s, const double *count) {
    s->density.cells->count = count;
    normal_read_design(s);
    clamped_cells_design(s->density.cells);
    (void)totals_coordinates(&s->density.totals, s->density.c, s->old);
}

void normal_load_table(struct normal *s) {
    const struct cross_table *t = &s->table;
    const int columns = s->model.columns;
    for (int a = 1; a < s->density.totals.k; ++a) {
        s->density.c[s->fixed[a - 1]] = 0;
        for (int b = a; b < s->density.totals.k; ++b)
            s->density.c[moments_at(columns, s->fixed[a - 1], s->fixed[b - 1])] = 0;
    }
    const struct model_factor *joint = model_joint(&s->model);
    for (int cell = 0; joint && cell < t->cells; ++cell) s->density.c[joint->first + cell] = 0;
    for (int cell = 0; cell < t->cells; ++cell)
        if (t->count[cell] > 0) normal_add_records(s, cell, t->count[cell]);
    normal_read_design(s);
    if (s->density.cells) clamped_cells_design(s->density.cells);
}

int normal_depends(const struct normal *s, int i) {
    const int d = s->density.totals.d;
    for (int b = 1; b < s->density.totals.k; ++b)
        if (s->mean[b * d + i] != 0) return 1;
    return 0;
}

double normal_mean_at(const struct normal *s, int i, int cell) {
    const struct cross_table *t = &s->table;
    const int d = s->density.totals.d;
    double mean = s->mean[i];
    for (int f = 0, b = 1; f < t->factors; b += t->factor[f++].levels - 1) {
        const int l = normal_level_of(t, f, cell);
        if (l > 0) mean += s->mean[(b + l - 1) * d + i];
    }
    return mean;
}

static int is_dummy(const struct normal *s, int column) {
    int b = 1;
    while (b < s->density.totals.k && s->fixed[b - 1] != column) ++b;
    return b < s->density.totals.k;
}

static int is_of_counts(const struct normal *s, const struct component *one) {
    const int alone = one->coef[1] == 0 && one->coef[2] == 0;
    return is_dummy(s, one->at[0]) && (alone || is_dummy(s, one->at[1]));
}

/* Where bounds clamp: the dummies of each cell. */
static void prepare_cells(struct normal *s) {
    struct cross_table *t = &s->table;
    const int dummies = s->density.totals.k - 1;
    int *dummy = plugin_memory((size_t)t->cells * (size_t)dummies, sizeof *dummy), *at = dummy;
    for (int cell = 0; cell < t->cells; ++cell)
        for (int f = 0; f < t->factors; ++f)
            for (int l = 1; l < t->factor[f].levels; ++l) *at++ = l == normal_level_of(t, f, cell);
    totals_density_clamp_cells(&s->density, t->cells, dummy);
    t->old_count = doubles((size_t)t->cells);
    t->old_q = doubles((size_t)normal_coordinates(s));
}

int normal_prepare_table(struct normal *s) {
    struct cross_table *t = &s->table;
    t->factors = model_factors(&s->model);
    if (t->factors > 0) t->factor = s->model.levels->factor;
    t->stride = plugin_memory((size_t)t->factors, sizeof *t->stride);
    t->dummy = plugin_memory((size_t)t->factors, sizeof *t->dummy);
    t->cells = 1;
    for (int f = 0; f < t->factors; ++f) {
        if (t->cells > MOST_CELLS / t->factor[f].levels)
            return PLUGIN_BAD_FIELDS; /* checked in R */
        t->stride[f] = t->cells;
        t->cells *= t->factor[f].levels;
    }
    const struct totals *totals = &s->density.totals;
    const size_t k = (size_t)totals->k;
    t->of_counts = plugin_memory((size_t)s->density.noise.size, sizeof(int));
    t->wanted = doubles((size_t)s->density.noise.size);
    for (int j = 0; j < s->density.noise.size; ++j)
        if (is_of_counts(s, s->density.component + j)) t->of_counts[t->counted++] = j;
    t->here = plugin_memory((size_t)t->cells, sizeof(int));
    t->there = plugin_memory((size_t)t->cells, sizeof(int));
    DOUBLES((size_t)t->cells, &t->out, &t->in);
    t->innovation = doubles(k * (size_t)totals->d);
    t->kept_design = doubles(k * k);
    t->kept_idle = plugin_memory(k, sizeof(int));
    t->trial = doubles((size_t)normal_coordinates(s));
    if (s->density.clamped) prepare_cells(s);
    return PLUGIN_OK;
}

size_t normal_stored_table(const struct normal *s) {
    return (size_t)s->table.cells + 2 * TABLE_MOVES * (size_t)s->table.factors +
           (size_t)s->density.totals.d + (s->density.cells ? (size_t)s->density.noise.size + 1 : 0);
}

void normal_attach_table(struct normal *s, double *store) {
    struct cross_table *t = &s->table;
    t->count = store;
    t->scale = t->count + t->cells;
    t->tries = t->scale + TABLE_MOVES * t->factors;
    t->idle_sd = t->tries + TABLE_MOVES * t->factors;
    s->density.totals.idle_sd = t->idle_sd;
    if (!s->density.cells) return;
    t->clamps = t->idle_sd + s->density.totals.d;
    t->seen = t->clamps + s->density.noise.size;
    s->density.cells->count = t->count;
}

/* ---- starts ------------------------------------------------------------------------------ */

void normal_draw_cells(struct normal *s, const double *probability) {
    struct cross_table *t = &s->table;
    double left[LANES] = {s->n}, drawn[LANES] = {0}, rest = 1;
    for (int cell = 0; cell < t->cells; ++cell) {
        const double p = probability[cell];
        if (cell == t->cells - 1)
            drawn[0] = left[0];
        else
            dist_binomial_fill(s->rng, rest > p ? p / rest : 1, 1, left, drawn);
        t->count[cell] = drawn[0];
        left[0] -= drawn[0];
        rest -= p;
    }
    for (int k = 0; k < TABLE_MOVES * t->factors; ++k) {
        t->scale[k] = fmax(1, 0.1 * sqrt(s->n));
        t->tries[k] = 0;
    }
    if (s->density.cells) *t->seen = 0;
    normal_load_table(s);
}

void normal_draw_table(struct normal *s, const double *share) {
    struct cross_table *t = &s->table;
    for (int cell = 0; cell < t->cells; ++cell) {
        const double *of_factor = share;
        t->out[cell] = 1;
        for (int f = 0; f < t->factors; of_factor += t->factor[f++].levels)
            t->out[cell] *= of_factor[normal_level_of(t, f, cell)];
    }
    normal_draw_cells(s, t->out);
}

void normal_set_idle(struct normal *s) {
    const int d = s->density.totals.d;
    for (int i = 0; i < d; ++i) {
        const double *row = s->chol + (size_t)i * (size_t)d;
        s->table.idle_sd[i] = sqrt(linalg_dot(i + 1, row, row));
    }
}
