/* The density of the totals of normal records given a release (MATH part 10): with c the
 * complete-data statistic that coordinates stand for (totals.c),
 *
 *   log volume(coordinates) + log marginal(c) + temper log eta(z | A c),
 *
 * marginal() the model's, theta integrated out but for the coordinates that it keeps; A c
 * the released components, each a constant and up to three entries of c. With bounds that
 * clamp, c there is replaced by what clamped.c expects of it.
 *
 * The force of an absolute kernel jumps at 0, an energy error in a step's first order. The
 * gradient may be that of a kernel that is rounded off: trajectories follow it, and are
 * weighted by the density itself (hmc.h).
 *
 * Cost: O(d^3 + components) for d columns, free of n. No allocation but in
 * totals_density_create() and read_components().
 */
#include "totals_density.h"

#include "block.h"

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
    totals_create(&density->totals, model->columns, n, d, column, k, fixed);
    density->size = density->totals.size + model->keeps;
    density->temper = 1;
    density->c = plugin_memory((size_t)model->complete, sizeof(double));
    density->seen = density->c;
    density->gradient_c = plugin_memory((size_t)model->complete, sizeof(double));
    density->theta = plugin_memory((size_t)model->parameters, sizeof(double));
}

void totals_density_clamp(struct totals_density *density, const double *lower,
                          const double *upper) {
    const size_t complete = (size_t)density->model->complete;
    density->clamped = clamped_new(&density->totals, lower, upper);
    density->seen = plugin_memory(complete, sizeof(double));
    density->gradient_seen = plugin_memory(complete, sizeof(double));
}

double totals_density_expand(struct totals_density *s, const double *q, double *gradient) {
    const struct model *model = s->model;
    for (int j = 0; j < model->keeps; ++j) s->theta[model->kept[j]] = q[s->totals.size + j];
    totals_expand(&s->totals, q, s->c);
    return model->class->marginal(model->self, s->c, s->totals.n, s->theta, s->gradient_c,
                                  gradient + s->totals.size);
}

void totals_density_noise(struct totals_density *s, double *gradient_seen) {
    s->energy = 0;
    for (int k = 0; k < s->components; ++k) {
        const struct component *one = s->component + k;
        const double r = (s->released[k] - component_value(one, s->seen)) * s->weight[k];
        const int bent = k < s->absolute && !s->smooth;
        const double force = !bent ? r : fabs(r) < s->rounded ? r / s->rounded : copysign(1, r);
        const double slope = s->temper * s->weight[k] * force;
        s->energy += bent ? fabs(r) : 0.5 * r * r;
        for (int e = 0; e < 3; ++e) gradient_seen[one->at[e]] += slope * one->coef[e];
    }
}

double totals_log_density(void *self, const double *q, double *gradient) {
    struct totals_density *s = self;
    const int complete = s->model->complete;
    const double marginal = totals_density_expand(s, q, gradient);
    if (!(marginal > -INFINITY)) return -INFINITY;
    if (s->clamped) {
        clamped_expect(s->clamped, s->c, s->seen);
        memset(s->gradient_seen, 0, (size_t)complete * sizeof(double));
        totals_density_noise(s, s->gradient_seen);
        clamped_pull(s->clamped, s->c, s->gradient_seen);
        for (int i = 0; i < complete; ++i) s->gradient_c[i] += s->gradient_seen[i];
    } else {
        totals_density_noise(s, s->gradient_c);
    }
    return marginal - s->temper * s->energy + totals_pull(&s->totals, q, s->gradient_c, gradient);
}

int totals_density_coordinates(struct totals_density *density, const double *c, const double *theta,
                               double *q) {
    const struct model *model = density->model;
    for (int j = 0; j < model->keeps; ++j) q[density->totals.size + j] = theta[model->kept[j]];
    return totals_coordinates(&density->totals, c, q);
}

/* Second differences of the log density with squared kernels, where it is concave. */
void totals_density_units(struct totals_density *s, const double *q, double *unit, double *work) {
    static const double SHARE = 1e-3;
    const int d = s->totals.d, means = s->totals.k * d;
    double *at = work, *up = at + s->size, *down = up + s->size;
    s->smooth = 1;
    memcpy(at, q, (size_t)s->size * sizeof(double));
    totals_expand(&s->totals, q, s->c);
    for (int i = 0; i < means; ++i) {
        const int v = s->totals.column[i % d];
        unit[i] = sqrt(s->c[moments_at(s->totals.columns, v, v)]);
    }
    for (int j = means; j < s->size; ++j) unit[j] = s->totals.rank == d ? 1 : 1 + fabs(q[j]);
    for (int j = 0; j < s->size; ++j) {
        const double step = SHARE * unit[j];
        at[j] = q[j] + step;
        const double above = totals_log_density(s, at, up);
        at[j] = q[j] - step;
        const double below = totals_log_density(s, at, down);
        at[j] = q[j];
        const double curvature = (down[j] - up[j]) / (2 * step);
        if (isfinite(above) && isfinite(below) && curvature * unit[j] * unit[j] > 1)
            unit[j] = 1 / sqrt(curvature);
    }
    s->smooth = 0;
}
