/* Sites whose totals have a normal distribution given their parameters, as in method "clt" for one
 * release (clt/clt_nuts_moves.c): for site j
 *
 *   p(rest_j) N(u_j; 0, I) eta_j(z_j | n_j mu(theta_j) + sqrt(n_j) A(theta_j) u_j),
 *
 * theta_j made of the parameters phi_j that are pooled, whose prior pool/hyperprior.c has, and of
 * the rest, such as the distribution of covariates, that are the site's own and have the model's
 * prior.
 *
 * Coordinates q of y = (rest, u) are such that the site alone makes them about standard normal, and
 * independent of phi:
 *
 *   y = reference + slope (phi - centre) + C^-T q,
 *
 * with the curvature H of the log density at the site's own mode (centre, reference), slope =
 * -H_yy^-1 H_yphi, H_yy = C C'. The site's information about phi is then the curvature with y
 * integrated out, which pool/hyperprior.c uses. Errors in these affect only the shape of the
 * posterior in the coordinates, not the posterior.
 *
 * Cost, free of n: a gradient of clt/clt_nuts_moves.c, and size^2 for the map. No
 * allocation except in pool_clt_create().
 */
#include "pool/site_clt.h"

static int place_among(const struct model *model, int at) {
    for (int j = 0; j < model->moving; ++j)
        if (model->moves[j] == at) return j;
    return -1;
}

int pool_clt_create(struct pool_clt *s, const struct fields *fields, int parameters,
                    const int *place) {
    struct clt *alone = s->alone;
    const int moving = alone->model.moving, points = moving + alone->moments.innovations;
    s->parameters = parameters;
    s->size = points - parameters;
    s->phi_at = plugin_memory((size_t)parameters, sizeof *s->phi_at);
    s->own_at = plugin_memory((size_t)s->size, sizeof *s->own_at);
    int *pooled = plugin_memory((size_t)moving, sizeof *pooled);
    for (int k = 0; k < parameters; ++k) {
        s->phi_at[k] = place_among(&alone->model, place[k]);
        if (s->phi_at[k] < 0) return PLUGIN_BAD_FIELDS;
        pooled[s->phi_at[k]] = 1;
    }
    for (int j = 0, own = 0; j < points; ++j)
        if (j >= moving || !pooled[j]) s->own_at[own++] = j;
    coordinates_set_known(&alone->model.coordinates, alone->theta_new);
    alone->pooled.count = parameters;
    alone->pooled.at = place;
    alone->pooled.value = doubles(parameters);
    s->centre = fields_vector(fields, "centre", parameters);
    s->reference = fields_vector(fields, "reference", s->size);
    s->slope = fields_vector(fields, "slope", s->size * parameters);
    s->map = fields_vector(fields, "map", s->size * (s->size + 1) / 2);
    DOUBLES(points, &s->point, &s->point_slope);
    s->own_slope = doubles(s->size);
    return s->centre && s->reference && s->slope && s->map ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

static void put_point(struct pool_clt *s, const double *phi, const double *q) {
    double *y = s->own_slope;
    const double *row = s->slope;
    for (int i = 0; i < s->size; ++i, row += s->parameters) {
        y[i] = s->reference[i];
        for (int k = 0; k < s->parameters; ++k) y[i] += row[k] * (phi[k] - s->centre[k]);
    }
    row = s->map;
    for (int i = 0; i < s->size; row += ++i)
        for (int j = 0; j <= i; ++j) y[j] += q[i] * row[j];
    for (int k = 0; k < s->parameters; ++k) s->point[s->phi_at[k]] = phi[k];
    for (int i = 0; i < s->size; ++i) s->point[s->own_at[i]] = y[i];
}

double pool_clt_log(struct pool_clt *s, const double *phi, const double *q, double rounded,
                    double *slope_phi, double *slope_q) {
    put_point(s, phi, q);
    s->alone->nuts.round = rounded;
    const double log_density = clt_nuts_density(s->alone, s->point, s->point_slope);
    if (!(log_density > -INFINITY)) return -INFINITY;
    double *slope = s->own_slope;
    for (int i = 0; i < s->size; ++i) slope[i] = s->point_slope[s->own_at[i]];
    for (int k = 0; k < s->parameters; ++k) slope_phi[k] = s->point_slope[s->phi_at[k]];
    const double *row = s->slope;
    for (int i = 0; i < s->size; ++i, row += s->parameters)
        for (int k = 0; k < s->parameters; ++k) slope_phi[k] += row[k] * slope[i];
    row = s->map;
    for (int i = 0; i < s->size; row += ++i) {
        slope_q[i] = 0;
        for (int j = 0; j <= i; ++j) slope_q[i] += row[j] * slope[j];
    }
    return log_density;
}

const double *pool_clt_total(const struct pool_clt *s) { return s->alone->total.next; }

const double *pool_clt_theta(const struct pool_clt *s) { return s->alone->theta_new; }
