/* Where chains of normal totals start (totals/normal_totals_chain.c).
 *
 * With the user's theta: totals from their distribution given it. Otherwise the release with new
 * noise added, so that chains start at different points, corrected towards values that are likely
 * under the prior and made possible. Initial scales for the metric are from second differences
 * there.
 *
 * Cost: some hundred evaluations of the density, for scales. No allocation.
 */
#include "totals/normal_totals.h"

#include "base/block.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "base/sticks.h"
#include "contract/model_levels.h"
#include "contract/model_marginal.h"
#include "contract/model_normal.h"
#include "contract/model_update.h"

/* eigenvalues of the correlations at the start, and share of the expected scatter */
static const double LEAST_EIGENVALUE = 0.05, LEAST_SCATTER = 0.05;

/* how far apart a normal distribution's quartiles are, in standard deviations */
static const double QUARTILES = 1.349;

/* ---- given theta ------------------------------------------------------------------------ */

static void draw_table(struct normal *s, const double *theta) {
    const struct coordinates *all = &s->model.coordinates;
    double *share = s->guess;
    if (model_joint(&s->model)) {
        double *cell = s->table.out;
        sticks_to_probabilities(s->table.cells, theta + coordinates_find(all, "prob")->offset,
                                cell);
        normal_draw_cells(s, cell);
        return;
    }
    for (int f = 0; f < s->table.factors; ++f) {
        const struct theta_block *block = coordinates_probabilities(all, f);
        sticks_to_probabilities(block->size, theta + block->offset, share);
        share += block->size;
    }
    normal_draw_table(s, s->guess);
}

/* Totals from their distribution given theta: M = R'B + g L', the rows of B the mean and what the
 * dummies add, and the scatter's factor L Z, Z lower triangular, below the diagonal standard
 * normal, on it chi with n - rank D, n - rank D - 1, ... degrees (Bartlett). */
static void draw_totals(struct normal *s, const double *theta, double *q) {
    const struct totals *t = &s->density.totals;
    const int d = t->d, r = t->rank;
    double *l = s->chol, *g = s->normal_draw, *z = s->guess;
    s->model.normal->distribution(s->model.self, theta, s->mean, l);
    if (s->table.factors > 0) {
        normal_set_idle(s);
        draw_table(s, theta);
    }
    totals_apply_design(t, s->mean, q);
    for (int b = 0; b < t->k; ++b) {
        rng_fill_normal(s->rng, d, g);
        for (int i = 0; i < d; ++i, ++q) {
            if (t->idle[b])
                *q = t->idle_sd[i] * g[i];
            else
                *q += linalg_dot(i + 1, l + (size_t)i * (size_t)d, g);
        }
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < r; ++j)
            z[i * d + j] = j > i   ? 0
                           : j < i ? rng_normal(s->rng)
                                   : sqrt(dist_chisq(s->rng, s->n - t->live - j));
    for (int i = 0; i < d; ++i) {
        const int left = i < r ? i : r;
        double diagonal = 1;
        for (int j = i < r ? i : r - 1; j >= 0; --j) {
            double sum = 0;
            for (int m = j; m <= i; ++m) sum += l[i * d + m] * z[m * d + j];
            if (j == i) diagonal = sum;
            q[j] = j < left ? sum / diagonal : log(sum);
        }
        q += i < r ? i + 1 : r;
    }
}

static void draw_given(struct normal *s, const double *theta, double *q) {
    struct totals *t = &s->density.totals;
    const int inverse = t->inverse;
    draw_totals(s, theta, q); /* rows of F itself */
    if (!inverse) return;
    t->inverse = 0;
    totals_expand(t, q, s->density.c);
    t->inverse = inverse;
    (void)totals_coordinates(t, s->density.c, q);
}

/* ---- near the release --------------------------------------------------------------------- */

/* Shares of the levels: the prior's, corrected by the release with fresh noise. */
static void expect_table(struct normal *s) {
    const struct cross_table *t = &s->table;
    double *share = s->guess;
    for (int f = 0; f < t->factors; ++f) {
        const struct model_factor *factor = t->factor + f;
        double sum = 0, total = 0;
        for (int l = 0; l < factor->levels; ++l) sum += factor->alpha[l];
        for (int l = 0; l < factor->levels; ++l) {
            share[l] = factor->alpha[l] / sum;
            const int v = factor->first + l - 1;
            for (int k = 0; l > 0 && k < s->density.noise.size; ++k) {
                const struct component *one = s->density.component + k;
                if (one->at[0] != v || one->coef[0] == 0 || one->coef[1] != 0 || one->coef[2] != 0)
                    continue;
                const double seen = normal_renew(s, k) - one->constant;
                const double noise = 1 / fabs(s->noise->weight[k] * one->coef[0]);
                const double weight = s->n * s->n / (s->n * s->n + noise * noise);
                share[l] += weight * (seen / one->coef[0] / s->n - share[l]);
            }
        }
        share[0] = 1;
        for (int l = 1; l < factor->levels; ++l) share[0] -= share[l];
        for (int l = 0; l < factor->levels; ++l)
            total += share[l] = fmax(share[l], factor->alpha[l] / (sum + s->n));
        for (int l = 0; l < factor->levels; ++l) share[l] /= total;
        share += factor->levels;
    }
    normal_draw_table(s, s->guess);
    normal_settle_table(s);
}

/* sorts x */
static double median(int count, double *x) {
    for (int i = 1; i < count; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            const double swap = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swap;
        }
    return x[count / 2];
}

/* c as the prior would have it: of n records with the medians, over draws of theta, of
 * the mean and of the factor of the covariance, its rows divided by their diagonal */
static void expect_totals(struct normal *s) {
    const int d = s->density.totals.d, *order = s->model.normal->order;
    double *theta = s->density.theta, *draws = s->guess;
    for (int m = 0; m < NORMAL_START_DRAWS; ++m) {
        double *out = draws + m;
        s->model.class->rprior(s->model.self, s->rng, theta);
        s->model.normal->distribution(s->model.self, theta, s->mean, s->chol);
        for (int i = 0; i < d; ++i) {
            const double *row = s->chol + (size_t)i * (size_t)d;
            *out = s->mean[i];
            out[NORMAL_START_DRAWS] = log(row[i]);
            out += 2 * NORMAL_START_DRAWS;
            for (int j = 0; j < i; ++j, out += NORMAL_START_DRAWS) *out = row[j] / row[i];
        }
    }
    for (int i = 0; i < d; ++i) {
        double *row = s->chol + (size_t)i * (size_t)d;
        s->mean[i] = median(NORMAL_START_DRAWS, draws);
        row[i] = exp(median(NORMAL_START_DRAWS, draws + NORMAL_START_DRAWS));
        draws += 2 * NORMAL_START_DRAWS;
        for (int j = 0; j < i; ++j, draws += NORMAL_START_DRAWS)
            row[j] = row[i] * median(NORMAL_START_DRAWS, draws);
    }
    const int columns = s->model.columns;
    for (int i = 0; i < d; ++i) {
        s->density.c[order[i]] = s->n * s->mean[i];
        for (int j = 0; j <= i; ++j) {
            double sum = s->mean[i] * s->mean[j];
            for (int m = 0; m <= j; ++m) sum += s->chol[i * d + m] * s->chol[j * d + m];
            s->density.c[moments_at(columns, order[i], order[j])] = s->n * sum;
        }
        for (int b = 1; b < s->density.totals.k; ++b) {
            const int v = s->fixed[b - 1];
            s->density.c[moments_at(columns, v, order[i])] = s->density.c[v] * s->mean[i];
        }
    }
}

/* What the prior expects columns to vary by; expect_totals() has left its draws of each mean. */
static void start_size(struct normal *s) {
    expect_totals(s);
    const double *draws = s->guess;
    for (int i = 0; i < s->model.columns; ++i, draws += (i + 1) * NORMAL_START_DRAWS) {
        const double *row = s->chol + (size_t)i * (size_t)s->model.columns;
        const double range = draws[3 * NORMAL_START_DRAWS / 4] - draws[NORMAL_START_DRAWS / 4];
        s->resize.size.between[i] = range * range / (QUARTILES * QUARTILES);
        s->resize.size.within[i] = linalg_dot(i + 1, row, row);
    }
    totals_resize_start(&s->resize, s->normal_draw);
    s->n = *s->resize.size.n;
}

/* Corrects c by the release with fresh noise, component by component, as if entries of
 * c were independent and of the order of their root mean squares; counts stay. */
static void correct_totals(struct normal *s) {
    const int d = s->model.columns, k = s->density.totals.k;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->variance[moments_at(d, i, j)] =
                s->density.c[moments_at(d, i, i)] * s->density.c[moments_at(d, j, j)];
    for (int i = 0; i < d; ++i) s->variance[i] = s->n * s->density.c[moments_at(d, i, i)];
    for (int a = 1; a < k; ++a) {
        s->variance[s->fixed[a - 1]] = 0;
        for (int b = a; b < k; ++b)
            s->variance[moments_at(d, s->fixed[a - 1], s->fixed[b - 1])] = 0;
    }
    /* the weight of exact ones has no limit */
    for (int j = 0; j < s->noise->size; ++j) {
        const struct component *one = s->density.component + j;
        const double noise = noise_variance(s->noise, j);
        const double away = normal_renew(s, j) - component_value(one, s->density.c);
        double spread = noise, gain[3];
        for (int e = 0; e < 3; ++e) {
            gain[e] = one->coef[e] * s->variance[one->at[e]];
            spread += gain[e] * one->coef[e];
        }
        for (int e = 0; e < 3; ++e) {
            if (one->coef[e] == 0 || !(spread > 0)) continue;
            s->density.c[one->at[e]] += gain[e] * away / spread;
            s->variance[one->at[e]] *= 1 - gain[e] * one->coef[e] / spread;
        }
    }
}

/* M'M of c, in the columns' order */
static double explained(const struct totals *t, int i, int j) {
    double sum = 0;
    for (int b = 0; b < t->k; ++b) {
        const double *mean = t->mean + (size_t)b * (size_t)t->width;
        sum += mean[i] * mean[j];
    }
    return sum;
}

/* Makes the scatter of c one that records could have; `least`: what it should be at
 * least, a column. `q` is overwritten. */
static void make_possible(struct normal *s, const double *least, double *q) {
    struct totals *t = &s->density.totals;
    const int d = t->d, columns = s->model.columns, *order = s->model.normal->order;
    double *a = s->guess, *work = a + (size_t)d * (size_t)d, *scale = s->normal_draw;
    (void)totals_coordinates(t, s->density.c, q); /* M at least */
    for (int i = 0; i < d; ++i) {
        const double own =
            s->density.c[moments_at(columns, order[i], order[i])] - explained(t, i, i);
        scale[i] = sqrt(own > least[i] ? own : least[i]);
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            a[i * d + j] =
                i == j
                    ? 1
                    : (s->density.c[moments_at(columns, order[i], order[j])] - explained(t, i, j)) /
                          (scale[i] * scale[j]);
    linalg_raise_eigenvalues(d, a, LEAST_EIGENVALUE, work);
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->density.c[moments_at(columns, order[i], order[j])] =
                a[i * d + j] * scale[i] * scale[j] + explained(t, i, j);
}

static int start_near_release(struct normal *s, double *q) {
    const struct totals *t = &s->density.totals;
    const int columns = s->model.columns, *order = s->model.normal->order;
    if (s->table.factors > 0) expect_table(s);
    expect_totals(s);
    if (s->table.factors > 0) normal_set_idle(s);
    for (int i = 0; i < t->d; ++i) {
        const double total = s->density.c[order[i]];
        const double square = s->density.c[moments_at(columns, order[i], order[i])];
        s->mean[i] = LEAST_SCATTER * (square - total * total / s->n);
    }
    correct_totals(s);
    make_possible(s, s->mean, q);
    return totals_coordinates(&s->density.totals, s->density.c, q);
}

/* of the sampler's coordinates */
static void lower_units(struct normal *s, const double *q, double *unit) {
    s->density.smooth = 1;
    hmc_lower_units(&s->hmc.target, q, unit, s->guess);
    s->density.smooth = 0;
}

/* Innovations for the totals of q, and their units. */
static void start_residual(struct normal *s, double *q, double *unit) {
    const int last = s->density.totals.size - s->density.totals.d;
    doubles_copy(s->response.place, q, s->density.totals.size);
    totals_density_natural_units(&s->density, q, unit);
    for (int j = last; !s->response.residual->alone && j < s->density.totals.size; ++j) unit[j] = 1;
    if (!s->response.residual->alone) unit[s->density.totals.d - 1] = 1;
    normal_read_residual(s, s->theta, q);
    for (int j = last; s->response.residual->alone && j < s->density.totals.size - 1; ++j)
        unit[j] = 1 + fabs(q[j]);
    lower_units(s, q, unit);
}

static void start_scatter(struct normal *s, double *q, double *unit) {
    totals_density_natural_units(&s->density, q, unit);
    normal_scatter_read(s, q);
    lower_units(s, q, unit);
}

void normal_start(struct collapse *of) {
    struct normal *s = of->self;
    double *q = s->old, *unit = s->guess + 3 * (size_t)normal_coordinates(s);
    if (s->resize.size.prior) start_size(s);
    if (of->given)
        draw_given(s, of->theta, q);
    else if (start_near_release(s, q) != PLUGIN_OK)
        return;
    if (!of->given) {
        (void)s->model.update->rtheta(s->model.self, s->density.c, s->n, s->rng, of->theta);
        doubles_copy(s->density.theta, of->theta, s->model.parameters);
    }
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        q[s->density.totals.size + j] = of->theta[s->model.marginal->kept[j]];
    for (int j = s->density.size; j < normal_coordinates(s); ++j) {
        q[j] = 0;
        unit[j] = 1;
    }
    normal_shift_release(s, q + s->density.size);
    totals_density_units(&s->density, q, unit, s->guess);
    if (s->resize.size.prior) {
        doubles_copy(s->resize.size.place, q, s->density.size);
        totals_size_free(&s->resize.size, s->resize.size.place, q);
        for (int j = 0; j < s->model.columns; ++j) unit[j] /= s->resize.size.stretch[j];
    }
    if (s->exact) totals_exact_start(s->exact, q, unit);
    if (s->response.residual) start_residual(s, q, unit);
    if (s->scatter_place) start_scatter(s, q, unit);
    hmc_start(&s->hmc, q, unit);
    (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}
