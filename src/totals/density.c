/* The density of the totals of normal records given a release (vignette "Algorithms", "collapse"):
 * with c the complete-data statistic in the coordinates of totals/normal_coordinates.c,
 *
 *   log volume(coordinates) + log marginal(c) + temper log eta(z | A c),
 *
 * with the model's marginal(), where theta is integrated out except for the coordinates that it
 * keeps; A c the released components, each a constant and up to three entries of c. With bounds
 * that clamp, c there is replaced by its expectation from totals/clamped_moments.c.
 *
 * Tied coefficients (alpha, beta) of a linear predictor alpha + beta'w follow the columns so that
 * no record's predictor changes: with W = D B + U F' and gamma the coefficients of D, alpha the
 * first, F'beta and gamma + B beta stay. Then p(columns that stay | W, gamma, beta) also stays.
 * Their prior is part of marginal(), and dbeta / d(F'beta) is |F|^-1. The same holds for each of
 * several predictors.
 *
 * The force of an absolute kernel jumps at 0, an energy error in a step's first order. The
 * gradient may come from a kernel that is rounded off: trajectories follow it, and are
 * weighted by the density itself (mcmc/hmc.h).
 *
 * Cost: O(d^3 + components) for d columns, free of n. No allocation except in
 * totals_density_create() and read_components().
 */
#include "totals/density.h"

#include "base/block.h"
#include "contract/model_marginal.h"
#include "contract/model_predictor.h"

const struct component *read_components(int columns, int count, const double *terms) {
    struct component *component = plugin_memory((size_t)count, sizeof *component);
    for (int k = 0; k < count; ++k, terms += TERM_ROWS) {
        const int i = (int)terms[TERM_I], j = (int)terms[TERM_J];
        struct component one = {
            .constant = terms[TERM_CONSTANT],
            .coef = {terms[TERM_FIRST], terms[TERM_SECOND], terms[TERM_PRODUCT]},
            .at = {i, j, moments_at(columns, i, j)},
        };
        if (i == j) { /* one entry of c, one coefficient */
            one.coef[0] += one.coef[1];
            one.coef[1] = 0;
        }
        component[k] = one;
    }
    return component;
}

void totals_density_create(struct totals_density *density, const struct model *model, double n,
                           int d, const int *column, int k, const int *fixed) {
    density->model = model;
    totals_create(&density->totals, model_moments(model), n, d, column, k, fixed);
    density->size = density->totals.size + model->marginal->keeps;
    density->temper = 1;
    density->c = doubles((size_t)model->complete);
    density->seen = density->c;
    density->gradient_c = doubles((size_t)model->complete);
    density->theta = doubles((size_t)model->parameters);
}

void totals_density_vary(struct totals_density *s) {
    const size_t count = (size_t)s->noise.size;
    s->sized = plugin_memory(count, sizeof *s->sized);
    s->rate = doubles(count);
    for (int k = 0; k < s->noise.size; ++k) {
        s->sized[k] = s->component[k];
        s->rate[k] = s->component[k].constant / s->totals.n;
    }
    s->component = s->sized;
}

void totals_density_resize(struct totals_density *s, double n) {
    struct totals *t = &s->totals;
    t->power += n - t->n;
    t->n = n;
    for (int k = 0; k < s->noise.size; ++k) s->sized[k].constant = n * s->rate[k];
}

static void own_seen(struct totals_density *density) {
    const size_t complete = (size_t)density->model->complete;
    DOUBLES(complete, &density->seen, &density->gradient_seen);
}

void totals_density_clamp(struct totals_density *density, const double *lower,
                          const double *upper) {
    density->clamped = clamped_new(&density->totals, lower, upper);
    own_seen(density);
}

void totals_density_clamp_cells(struct totals_density *density, int cells, const int *dummy) {
    density->cells = clamped_cells_new(density->clamped, &density->totals, cells, dummy);
}

void totals_density_expect(struct totals_density *s) {
    if (s->clamped && !s->cells && !s->unbounded) {
        clamped_expect(s->clamped, s->c, s->seen);
        return;
    }
    if (s->seen != s->c) memcpy(s->seen, s->c, (size_t)s->model->complete * sizeof(double));
    if (s->cells) clamped_cells_expect(s->cells, s->seen);
}

/* ---- tied coefficients --------------------------------------------------------------- */

void totals_density_carry(struct totals_density *s, int riders, const int *rider) {
    struct totals *t = &s->totals;
    const size_t width = (size_t)t->width, k = (size_t)t->k;
    totals_carry(t, riders, rider);
    own_seen(s);
    const struct model_predictor *predictor = s->model->predictor;
    if (!predictor) return;
    t->power -= predictor->ties;
    DOUBLES(k * width, &t->slope_mean, &s->coefficient);
    s->pulled = doubles(width);
    s->solved = doubles(k);
    t->slope_factor = doubles((size_t)t->d * width);
    s->along = doubles((size_t)predictor->ties * width);
    s->constant = doubles((size_t)predictor->ties * k);
    s->gradient_tied = doubles((size_t)predictor->tied);
}

/* where the coefficient of free column i is in predictor e, and that of column b of D */
static inline int tied_slope(const struct totals_density *s, int e, int i) {
    return s->model->predictor->tie_slopes[e] + s->totals.column[i];
}

static inline int tied_fixed(const struct totals_density *s, int e, int b) {
    const struct model_predictor *of = s->model->predictor;
    return b == 0 ? of->tie_constant[e] : of->tie_slopes[e] + s->totals.fixed[b - 1];
}

/* entry b of B beta */
static double tied_shift(const struct totals_density *s, int e, int b, const double *theta) {
    const double *row = s->coefficient + (size_t)b * (size_t)s->totals.width;
    double sum = 0;
    for (int i = 0; i < s->totals.d; ++i) sum += row[i] * theta[tied_slope(s, e, i)];
    return sum;
}

void totals_density_read(struct totals_density *s, const double *c, const double *theta) {
    const struct totals *t = &s->totals;
    totals_read_riders(&s->totals, c);
    if (!s->along) return;
    totals_coefficients(t, s->coefficient);
    for (int e = 0; e < s->model->predictor->ties; ++e) {
        double *along = s->along + (size_t)e * (size_t)t->width;
        for (int l = 0; l < t->d; ++l) {
            along[l] = 0;
            for (int i = l; i < t->d; ++i)
                along[l] += t->factor[i * t->width + l] * theta[tied_slope(s, e, i)];
        }
        for (int b = 0; b < t->k; ++b)
            s->constant[e * t->k + b] = theta[tied_fixed(s, e, b)] + tied_shift(s, e, b, theta);
    }
}

/* beta = F^-T along */
static void place_tied(struct totals_density *s, int e) {
    const struct totals *t = &s->totals;
    const double *along = s->along + (size_t)e * (size_t)t->width;
    for (int l = t->d - 1; l >= 0; --l) {
        double sum = along[l];
        for (int i = l + 1; i < t->d; ++i)
            sum -= t->factor[i * t->width + l] * s->theta[tied_slope(s, e, i)];
        s->theta[tied_slope(s, e, l)] = sum / t->factor[l * t->width + l];
    }
    for (int b = 0; b < t->k; ++b)
        s->theta[tied_fixed(s, e, b)] = s->constant[e * t->k + b] - tied_shift(s, e, b, s->theta);
}

/* R^-1 of the slopes in the coefficients of D */
static void solve_fixed(struct totals_density *s, int e) {
    const struct totals *t = &s->totals;
    for (int b = 0; b < t->k; ++b) {
        double sum = s->gradient_tied[tied_fixed(s, e, b)];
        for (int a = 0; a < b; ++a) sum -= t->design[b * t->k + a] * s->solved[a];
        s->solved[b] = sum / t->design[b * t->k + b];
    }
}

/* From slopes in the coefficients to slopes in M and F. With g the slope in beta at fixed gamma +
 * B beta, d log = g'dbeta - (slope in gamma)' dB beta; dbeta = -F^-T dF' beta, dB = R^-T dM. */
static void pull_tied(struct totals_density *s) {
    const struct totals *t = &s->totals;
    double *pulled = s->pulled; /* F^-1 g */
    memset(t->slope_mean, 0, (size_t)t->k * (size_t)t->width * sizeof(double));
    memset(t->slope_factor, 0, (size_t)t->d * (size_t)t->width * sizeof(double));
    for (int e = 0; e < s->model->predictor->ties; ++e) {
        solve_fixed(s, e);
        for (int i = 0; i < t->d; ++i) {
            const double *row = t->factor + (size_t)i * (size_t)t->width;
            const double beta = s->theta[tied_slope(s, e, i)];
            double sum = s->gradient_tied[tied_slope(s, e, i)];
            for (int b = 0; b < t->k; ++b) {
                sum -= s->gradient_tied[tied_fixed(s, e, b)] * s->coefficient[b * t->width + i];
                t->slope_mean[b * t->width + i] -= s->solved[b] * beta;
            }
            for (int l = 0; l < i; ++l) sum -= row[l] * pulled[l];
            pulled[i] = sum / row[i];
        }
        for (int i = 0; i < t->d; ++i)
            for (int l = 0; l <= i; ++l)
                t->slope_factor[i * t->width + l] -= s->theta[tied_slope(s, e, i)] * pulled[l];
    }
}

/* ---- the density ----------------------------------------------------------------------- */

void totals_density_place(struct totals_density *s, const double *q) {
    for (int j = 0; j < s->model->marginal->keeps; ++j)
        s->theta[s->model->marginal->kept[j]] = q[s->totals.size + j];
    totals_expand(&s->totals, q, s->c);
    if (!s->along) return;
    totals_coefficients(&s->totals, s->coefficient);
    for (int e = 0; e < s->model->predictor->ties; ++e) place_tied(s, e);
}

double totals_density_expand(struct totals_density *s, const double *q, double *gradient) {
    const struct model *model = s->model;
    totals_density_place(s, q);
    const double log_density =
        model->marginal->marginal(model->self, s->c, s->totals.n, s->theta, s->gradient_c,
                                  s->along ? s->gradient_tied : gradient + s->totals.size);
    if (s->along) pull_tied(s);
    return log_density;
}

/* which of the free columns it is; -1: none */
static int free_column(const struct totals *t, int column) {
    for (int i = 0; i < t->d; ++i)
        if (t->column[i] == column) return i;
    return -1;
}

/* which of the fixed columns */
static int fixed_column(const struct totals *t, int column) {
    int b = 0;
    while (t->fixed[b] != column) ++b;
    return b;
}

/* Of one record, after clamped_expand(), whose fixed columns have the values `dummy`. */
static double component_left(const struct totals_density *s, const struct component *one,
                             const int *dummy) {
    const struct totals *t = &s->totals;
    const double product = one->coef[2];
    const int i = free_column(t, one->at[0]);
    if (product == 0) return i < 0 ? 0 : one->coef[0] * one->coef[0] * clamped_left(s->clamped, i);
    const int j = free_column(t, one->at[1]), same = i == j;
    if (i < 0 && j < 0) return 0;
    if (i < 0 || j < 0) {
        const int free = i < 0 ? j : i, other = i < 0 ? one->at[0] : one->at[1];
        const double coef = one->coef[i < 0] + product * dummy[fixed_column(t, other)];
        return coef * coef * clamped_left(s->clamped, free);
    }
    /* it is product (x_i + shift_i) (x_j + shift_j) */
    const double shift_i = (same ? 0.5 * one->coef[0] : one->coef[1]) / product;
    const double shift_j = (same ? 0.5 : 1) * one->coef[0] / product;
    return product * product * clamped_product_left(s->clamped, i, shift_i, j, shift_j);
}

static void add_left(const struct totals_density *s, double records, const int *dummy,
                     double *left) {
    for (int k = 0; k < s->noise.size; ++k)
        left[k] += records * component_left(s, s->component + k, dummy);
}

void totals_density_left(const struct totals_density *s, double *left) {
    const struct totals *t = &s->totals;
    memset(left, 0, (size_t)s->noise.size * sizeof(double));
    if (!s->cells) {
        clamped_expand(s->clamped);
        add_left(s, t->n, NULL, left);
        return;
    }
    for (int cell = 0; cell < s->cells->cells; ++cell) {
        if (s->cells->count[cell] == 0) continue;
        clamped_cells_expand(s->cells, cell);
        add_left(s, s->cells->count[cell], s->cells->dummy + (size_t)cell * (size_t)(t->k - 1),
                 left);
    }
}

void totals_density_noise(struct totals_density *s, const double *released, double *gradient_seen) {
    double r[NOISE_BLOCK];
    const int bent = s->smooth ? 0 : s->noise.absolute;
    s->energy = 0;
    for (int from = 0, count; from < s->noise.size; from += count) {
        const enum kernel kernel = from < bent ? KERNEL_ABSOLUTE : KERNEL_SQUARED;
        const int end = from < bent ? bent : s->noise.size;
        const double *weight = s->noise.weight + from;
        const struct component *component = s->component + from;
        count = end - from < NOISE_BLOCK ? end - from : NOISE_BLOCK;
        for (int k = 0; k < count; ++k)
            r[k] = (released[from + k] - component_value(component + k, s->seen)) * weight[k];
        s->energy += noise_slopes(kernel, count, s->rounded, r);
        for (int k = 0; k < count; ++k) {
            const struct component *one = component + k;
            const double slope = s->temper * weight[k] * r[k];
            if (s->slope) s->slope[from + k] = slope;
            gradient_seen[one->at[2]] += slope * one->coef[2];
            if (one->coef[0] == 0 && one->coef[1] == 0) continue;
            gradient_seen[one->at[0]] += slope * one->coef[0];
            gradient_seen[one->at[1]] += slope * one->coef[1];
        }
    }
}

double totals_log_density(void *self, const double *q, double *gradient) {
    struct totals_density *s = self;
    const int complete = s->model->complete;
    const double marginal = totals_density_expand(s, q, gradient);
    if (!(marginal > -INFINITY)) return -INFINITY;
    totals_density_expect(s);
    const double *released = s->noise.released;
    if (s->tilt) {
        tilt_correct(s->tilt, q, s->tilt_at, released, s->tilted);
        released = s->tilted;
    }
    if (s->clamped && !s->unbounded) {
        memset(s->gradient_seen, 0, (size_t)complete * sizeof(double));
        totals_density_noise(s, released, s->gradient_seen);
        if (s->cells) {
            clamped_cells_pull(s->cells, s->gradient_seen);
        } else {
            clamped_pull(s->clamped, s->c, s->gradient_seen);
            for (int i = 0; i < complete; ++i) s->gradient_c[i] += s->gradient_seen[i];
        }
    } else {
        totals_density_noise(s, released, s->gradient_c);
    }
    const double volume = totals_pull(&s->totals, q, s->gradient_c, gradient);
    if (s->tilt) tilt_pull(s->tilt, s->slope, gradient);
    return marginal - s->temper * s->energy + volume;
}

int totals_density_coordinates(struct totals_density *density, const double *c, const double *theta,
                               double *q) {
    const struct model *model = density->model;
    for (int j = 0; j < model->marginal->keeps; ++j)
        q[density->totals.size + j] = theta[model->marginal->kept[j]];
    return totals_coordinates(&density->totals, c, q);
}

void totals_density_natural_units(struct totals_density *s, const double *q, double *unit) {
    const int d = s->totals.d, means = s->totals.k * d;
    totals_expand(&s->totals, q, s->c);
    for (int i = 0; i < means; ++i) {
        const int v = s->totals.column[i % d];
        unit[i] = sqrt(s->c[moments_at(s->totals.columns, v, v)]);
    }
    for (int j = means; j < s->size; ++j) unit[j] = s->totals.rank == d ? 1 : 1 + fabs(q[j]);
    if (!s->totals.inverse) return;
    for (int i = 0, at = means; i < d; at += ++i)
        for (int j = 0; j < i; ++j)
            unit[at + j] = 1 / s->totals.factor[(size_t)j * (size_t)s->totals.width + (size_t)j];
}

/* Kernels are taken to be squared: absolute ones have no curvature. */
void totals_density_units(struct totals_density *s, const double *q, double *unit, double *work) {
    const struct hmc_target target = {s->size, s, totals_log_density, NULL};
    totals_density_natural_units(s, q, unit);
    s->smooth = 1;
    hmc_lower_units(&target, q, unit, work);
    s->smooth = 0;
}
