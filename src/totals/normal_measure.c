/* Normal totals at given coordinates, and their distance from the release; see
 * totals/normal_totals_chain.c. */
#include "contract/model_marginal.h"
#include "totals/normal_totals.h"

void normal_shift_release(struct normal *s, const double *u) {
    const int count = s->density.noise.size;
    if (s->clamp.directions > 0) doubles_copy(s->clamp.shifted, s->noise->released, count);
    for (int j = 0; j < s->clamp.directions; ++j) {
        const double *restrict column = s->clamp.spread + (size_t)j * (size_t)count;
        for (int k = 0; k < count; ++k) s->clamp.shifted[k] -= u[j] * column[k];
    }
}

static const double *place_residual(struct normal *s, const double *q) {
    const int size = s->density.totals.size;
    doubles_copy(s->response.place, q, normal_coordinates(s));
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        s->density.theta[s->model.marginal->kept[j]] = q[size + j];
    s->response.log_volume = totals_residual_place(s->response.residual, s->density.theta, q);
    doubles_copy(s->response.place, s->response.residual->at, size);
    return s->response.place;
}

void normal_read_residual(struct normal *s, const double *theta, double *q) {
    const int size = s->density.totals.size;
    doubles_copy(q, s->response.place, size);
    for (int j = 0; j < s->model.marginal->keeps; ++j)
        q[size + j] = theta[s->model.marginal->kept[j]];
    totals_residual_read(s->response.residual, theta, q);
}

const double *normal_place(struct normal *s, const double *q) {
    if (s->response.residual) return place_residual(s, q);
    if (s->scatter_place) return normal_scatter_place(s, q);
    if (s->exact) return totals_exact_place(s->exact, q);
    if (!s->resize.size.prior) return q;
    totals_size_place(&s->resize.size, q);
    return s->resize.size.place;
}

void normal_measure(struct normal *s, const double *q) {
    totals_expand(&s->density.totals, normal_place(s, q), s->density.c);
    totals_density_expect(&s->density);
    normal_shift_release(s, q + s->density.size);
    struct noise wide = s->density.noise;
    wide.released = s->noise->released;
    for (int k = 0; k < wide.size; ++k)
        s->statistic[k] = component_value(s->density.component + k, s->density.seen) +
                          wide.released[k] - s->density.noise.released[k];
    s->energy = noise_energy(s->noise, s->statistic);
    s->misfit = noise_energy(&wide, s->statistic);
}

void normal_statistic(const struct collapse *of, double *out) {
    const struct normal *s = of->self;
    doubles_copy(out, s->statistic, s->noise->size);
}

double normal_energy(const struct collapse *of) {
    const struct normal *s = of->self;
    return s->energy;
}
