/* Where chains of normal totals start (totals_normal.c).
 *
 * With the user's theta: totals from their distribution given it. Else the release with fresh noise
 * added, so that chains start apart, corrected towards what the prior thinks likely and made
 * possible. Scales for the metric's start are second differences there.
 *
 * Cost: some hundred evaluations of the density, for scales. No allocation.
 */
#include "totals_normal.h"

#include "block.h"
#include "dist.h"
#include "linalg.h"

/* eigenvalues of the correlations at the start, and share of the expected scatter */
static const double LEAST_EIGENVALUE = 0.05, LEAST_SCATTER = 0.05;

/* how far apart a normal distribution's quartiles are, in standard deviations */
static const double QUARTILES = 1.349;

/* Totals from their distribution given theta: T = n mean + sqrt(n) L g, and the scatter's factor L
 * B, B lower triangular, below the diagonal standard normal, on it chi with n - 1, n - 2, ...
 * degrees (Bartlett). */
static void draw_totals(struct normal *s, const double *theta) {
    const int d = s->density.totals.d, r = s->density.totals.rank, *order = s->model.order;
    double *l = s->chol, *g = s->normal_draw, *total = s->mean;
    double *b = s->guess, *factor = b + (size_t)d * (size_t)d;
    s->model.class->distribution(s->model.self, theta, s->mean, l);
    rng_fill_normal(s->rng, d, g);
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += l[i * d + j] * g[j];
        total[i] = s->n * total[i] + sqrt(s->n) * sum;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < r; ++j)
            b[i * d + j] = j > i   ? 0
                           : j < i ? rng_normal(s->rng)
                                   : sqrt(dist_chisq(s->rng, s->n - 1 - j));
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < r; ++j) {
            double sum = 0;
            for (int m = j; m <= i; ++m) sum += l[i * d + m] * b[m * d + j];
            factor[i * d + j] = sum;
        }
    for (int i = 0; i < d; ++i) {
        s->density.c[order[i]] = total[i];
        for (int j = 0; j <= i; ++j) {
            double sum = total[i] * total[j] / s->n;
            for (int m = 0; m < r; ++m) sum += factor[i * d + m] * factor[j * d + m];
            s->density.c[moments_at(d, order[i], order[j])] = sum;
        }
    }
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
    const int d = s->density.totals.d, *order = s->model.order;
    double *theta = s->density.theta, *draws = s->guess;
    for (int m = 0; m < NORMAL_START_DRAWS; ++m) {
        double *out = draws + m;
        s->model.class->rprior(s->model.self, s->rng, theta);
        s->model.class->distribution(s->model.self, theta, s->mean, s->chol);
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
    for (int i = 0; i < d; ++i) {
        s->density.c[order[i]] = s->n * s->mean[i];
        for (int j = 0; j <= i; ++j) {
            double sum = s->mean[i] * s->mean[j];
            for (int m = 0; m <= j; ++m) sum += s->chol[i * d + m] * s->chol[j * d + m];
            s->density.c[moments_at(d, order[i], order[j])] = s->n * sum;
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
        s->size.between[i] = range * range / (QUARTILES * QUARTILES);
        s->size.within[i] = linalg_dot(i + 1, row, row);
    }
    for (int i = 0; i < s->model.columns; ++i)
        s->normal_draw[i] = s->pace[i] * totals_size_told(&s->size, i);
    totals_size_start(&s->size, s->normal_draw, s->rng);
    normal_set_size(s, *s->size.n);
}

/* Corrects c by the release with fresh noise, component by component, as if entries of
 * c were independent and of the order of their root mean squares. */
static void correct_totals(struct normal *s) {
    const int d = s->density.totals.d;
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->variance[moments_at(d, i, j)] =
                s->density.c[moments_at(d, i, i)] * s->density.c[moments_at(d, j, j)];
    for (int i = 0; i < d; ++i) s->variance[i] = s->n * s->density.c[moments_at(d, i, i)];
    /* the weight of exact ones has no limit */
    for (int k = 0; k < s->components; ++k) {
        const struct component *one = s->density.component + k;
        const double draw = k < s->density.absolute
                                ? rng_exponential(s->rng) - rng_exponential(s->rng)
                                : rng_normal(s->rng);
        const double noise = (k < s->density.absolute ? 2 : 1) / (s->weight[k] * s->weight[k]);
        const double away =
            s->released[k] + draw / s->weight[k] - component_value(one, s->density.c);
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

/* Makes the scatter of c one that records could have; `least`: what it should be at
 * least, a column. */
static void make_possible(struct normal *s, const double *least) {
    const int d = s->density.totals.d;
    double *a = s->guess, *work = a + (size_t)d * (size_t)d, *scale = s->normal_draw;
    for (int i = 0; i < d; ++i) {
        const double own =
            s->density.c[moments_at(d, i, i)] - s->density.c[i] * s->density.c[i] / s->n;
        scale[i] = sqrt(own > least[i] ? own : least[i]);
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            a[i * d + j] = i == j ? 1
                                  : (s->density.c[moments_at(d, i, j)] -
                                     s->density.c[i] * s->density.c[j] / s->n) /
                                        (scale[i] * scale[j]);
    linalg_raise_eigenvalues(d, a, LEAST_EIGENVALUE, work);
    for (int i = 0; i < d; ++i)
        for (int j = i; j < d; ++j)
            s->density.c[moments_at(d, i, j)] =
                a[i * d + j] * scale[i] * scale[j] + s->density.c[i] * s->density.c[j] / s->n;
}

static void start_near_release(struct normal *s) {
    const int d = s->density.totals.d;
    expect_totals(s);
    for (int i = 0; i < d; ++i)
        s->mean[i] = LEAST_SCATTER *
                     (s->density.c[moments_at(d, i, i)] - s->density.c[i] * s->density.c[i] / s->n);
    correct_totals(s);
    make_possible(s, s->mean);
}

void normal_start(struct collapse *of) {
    struct normal *s = of->self;
    normal_attach(of);
    if (s->size.prior) start_size(s);
    if (of->given)
        draw_totals(s, of->theta);
    else
        start_near_release(s);
    double *q = s->old, *unit = s->guess + 3 * (size_t)normal_coordinates(s);
    if (totals_coordinates(&s->density.totals, s->density.c, q) != PLUGIN_OK) return;
    if (!of->given) {
        (void)s->model.class->rtheta(s->model.self, s->density.c, s->n, s->rng, of->theta);
        normal_copy(s->density.theta, of->theta, s->model.parameters);
    }
    for (int j = 0; j < s->model.keeps; ++j)
        q[s->density.totals.size + j] = of->theta[s->model.kept[j]];
    for (int j = s->density.size; j < normal_coordinates(s); ++j) {
        q[j] = 0;
        unit[j] = 1;
    }
    normal_shift_release(s, q + s->density.size);
    totals_density_units(&s->density, q, unit, s->guess);
    if (s->size.prior) {
        normal_copy(s->size.place, q, s->density.size);
        totals_size_free(&s->size, s->size.place, q);
        for (int j = 0; j < s->model.columns; ++j) unit[j] /= s->size.stretch[j];
    }
    if (s->exact) normal_exact_start(s, q, unit);
    hmc_start(&s->hmc, q, unit);
    (void)hmc_refresh(&s->hmc);
    hmc_find_step(&s->hmc, s->rng);
}
