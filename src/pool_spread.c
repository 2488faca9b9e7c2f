/* Parameters phi_j of sites j, spread about what they have in common, on the coordinates of theta:
 *
 *   phi_j = centre_j + diag(sd) L z_j,   z_j ~ N(0, I),
 *
 * for the parameters that vary; the others are mu for all sites. The centre is mu + B x_j with
 * covariates x_j of the site, B ~ N(0, effect_sd^2); or in a walk phi_{j-1}, and phi_1 = mu.
 * L is the identity, or the Cholesky factor of correlations R ~ LKJ(eta) (Lewandowski, Kurowicka
 * & Joe 2009), p(R) ~ det(R)^(eta - 1): with canonical partial correlations r_vu = tanh(y_vu),
 *
 *   L_vu = r_vu prod_{w<u} sqrt(1 - r_vw^2),   log p(y_vu) = (eta + (V - 2 - u) / 2) log(1 -
 * r_vu^2).
 *
 * Coordinates: mu, log sd, B, y; and of each site z_jv or, where its release tells more of phi_jv
 * than the others do, phi_jv itself, from which z_jv follows. A walk's first site has none.
 *
 * Cost: O(V (V + C)) a site for V parameters that vary and C covariates. */
#include "pool_spread.h"

static double *doubles(int count) { return plugin_memory((size_t)count, sizeof(double)); }

static int correlations(const struct pool_spread *s) {
    return s->lkj > 0 ? s->varying * (s->varying - 1) / 2 : 0;
}

static const double *log_sd(const struct pool_spread *s, const double *shared) {
    return shared + s->parameters;
}

/* places of the effects on the v-th that varies, and of the correlations */
static int effects_at(const struct pool_spread *s, int v) {
    return s->parameters + s->varying + v * s->covariates;
}

static int correlations_at(const struct pool_spread *s) { return effects_at(s, s->varying); }

void pool_spread_create(struct pool_spread *s) {
    const int V = s->varying;
    s->size = V + V * s->covariates + correlations(s);
    s->chol = doubles(V * V);
    s->slope_chol = doubles(V * V);
    s->slope_z = doubles(V);
    for (int v = 0; v < V; ++v) s->chol[v * V + v] = 1;
}

void pool_member_create(const struct pool_spread *s, struct pool_member *member) {
    member->own = s->walk && !member->before ? 0 : s->varying;
    member->phi = doubles(s->parameters);
    member->slope = doubles(s->parameters);
    member->z = doubles(s->varying);
}

/* log(1 - tanh(y)^2) */
static double log_rest(double y) { return 2 * (M_LN2 - fabs(y) - log1p(exp(-2 * fabs(y)))); }

static double prior_of_correlations(struct pool_spread *s, const double *y, double *slope) {
    double log_density = 0;
    for (int v = 1; v < s->varying; ++v) {
        double *row = s->chol + v * s->varying, left = 1;
        for (int u = 0; u < v; ++u, ++y, ++slope) {
            const double r = tanh(*y), rest = log_rest(*y);
            const double power = s->lkj + 0.5 * (s->varying - 2 - u);
            log_density += power * rest;
            *slope = -2 * power * r;
            row[u] = r * left;
            left *= exp(0.5 * rest);
        }
        row[v] = left;
    }
    return log_density;
}

double pool_spread_prior(struct pool_spread *s, const double *shared, double *slope) {
    double log_density = 0;
    for (int v = 0; v < s->varying; ++v) {
        const int at = s->parameters + v;
        log_density += scale_prior_density(s->sd + v, shared[at], slope + at);
    }
    const int first = effects_at(s, 0);
    for (int i = 0; i < s->varying * s->covariates; ++i) {
        const double t = shared[first + i] / s->effect_sd[i];
        log_density -= 0.5 * t * t;
        slope[first + i] = -t / s->effect_sd[i];
    }
    memset(s->slope_chol, 0, (size_t)(s->varying * s->varying) * sizeof(double));
    if (s->lkj > 0) {
        const int at = correlations_at(s);
        log_density += prior_of_correlations(s, shared + at, slope + at);
    }
    return log_density;
}

static double centre_of(const struct pool_spread *s, const double *shared,
                        const struct pool_member *member, int v) {
    const int k = s->which[v];
    const double *effect = shared + effects_at(s, v);
    double centre = member->before ? member->before->phi[k] : shared[k];
    for (int c = 0; c < s->covariates; ++c) centre += effect[c] * member->covariate[c];
    return centre;
}

/* what the z before the v-th bring to it */
static double shift_of(const struct pool_spread *s, const struct pool_member *member, int v) {
    double shift = 0;
    for (int u = 0; s->lkj > 0 && u < v; ++u) shift += s->chol[v * s->varying + u] * member->z[u];
    return shift;
}

void pool_spread_place(const struct pool_spread *s, const double *shared,
                       struct pool_member *member, const double *own) {
    memcpy(member->phi, shared, (size_t)s->parameters * sizeof(double));
    for (int v = 0; v < member->own; ++v) {
        const double sd = exp(log_sd(s, shared)[v]), diagonal = s->chol[v * s->varying + v];
        const double centre = centre_of(s, shared, member, v), shift = shift_of(s, member, v);
        double *phi = member->phi + s->which[v];
        if (member->centred[v] != 0) {
            *phi = own[v];
            member->z[v] = ((*phi - centre) / sd - shift) / diagonal;
        } else {
            member->z[v] = own[v];
            *phi = centre + sd * (shift + diagonal * own[v]);
        }
    }
}

/* The slope in a member's centre, passed on to what makes it. */
static void pull_centre(const struct pool_spread *s, const struct pool_member *member, int v,
                        double slope_centre, double *slope) {
    const int k = s->which[v];
    double *effect = slope + effects_at(s, v);
    if (member->before)
        member->before->slope[k] += slope_centre;
    else
        slope[k] += slope_centre;
    for (int c = 0; c < s->covariates; ++c) effect[c] += slope_centre * member->covariate[c];
}

/* The slope in (L z)_v, passed on to L and to the z before. */
static void pull_shift(struct pool_spread *s, const struct pool_member *member, int v,
                       double slope_shift) {
    const double *row = s->chol + v * s->varying;
    double *slope = s->slope_chol + v * s->varying;
    for (int u = 0; s->lkj > 0 && u < v; ++u) {
        s->slope_z[u] += slope_shift * row[u];
        slope[u] += slope_shift * member->z[u];
    }
    slope[v] += slope_shift * member->z[v];
}

double pool_spread_pull(struct pool_spread *s, const double *shared, struct pool_member *member,
                        const double *own, double *slope, double *slope_own) {
    for (int k = 0, v = 0; k < s->parameters; ++k) {
        if (v < member->own && s->which[v] == k)
            ++v;
        else
            slope[k] += member->slope[k];
    }
    double log_density = 0;
    memset(s->slope_z, 0, (size_t)s->varying * sizeof(double));
    for (int v = member->own - 1; v >= 0; --v) {
        const double u = log_sd(s, shared)[v], sd = exp(u), z = member->z[v];
        const double diagonal = s->chol[v * s->varying + v];
        const double slope_phi = member->slope[s->which[v]];
        double *slope_sd = slope + s->parameters + v;
        log_density -= 0.5 * z * z;
        if (member->centred[v] != 0) {
            const double away = (own[v] - centre_of(s, shared, member, v)) / sd;
            const double slope_away = (s->slope_z[v] - z) / diagonal;
            log_density -= u + log(diagonal);
            slope_own[v] = slope_phi + slope_away / sd;
            *slope_sd -= slope_away * away + 1;
            pull_centre(s, member, v, -slope_away / sd, slope);
            pull_shift(s, member, v, -slope_away);
            s->slope_chol[v * s->varying + v] -= 1 / diagonal;
        } else {
            const double away = shift_of(s, member, v) + diagonal * z;
            slope_own[v] = s->slope_z[v] + slope_phi * sd * diagonal - z;
            *slope_sd += slope_phi * sd * away;
            pull_centre(s, member, v, slope_phi, slope);
            pull_shift(s, member, v, slope_phi * sd);
        }
    }
    return log_density;
}

void pool_spread_finish(const struct pool_spread *s, const double *shared, double *slope) {
    if (!(s->lkj > 0)) return;
    const double *y = shared + correlations_at(s);
    slope += correlations_at(s);
    for (int v = 1; v < s->varying; ++v) {
        const double *row = s->chol + v * s->varying, *of_row = s->slope_chol + v * s->varying;
        double left = 1;
        for (int u = 0; u < v; ++u, ++y, ++slope) {
            const double rest = log_rest(*y);
            double later = 0;
            for (int w = u + 1; w <= v; ++w) later += of_row[w] * row[w];
            *slope += of_row[u] * left * exp(rest) - tanh(*y) * later;
            left *= exp(0.5 * rest);
        }
    }
}

void pool_spread_start(const struct pool_spread *s, const double *shared,
                       struct pool_member *member, const double *phi, double *own, double *unit) {
    memcpy(member->phi, shared, (size_t)s->parameters * sizeof(double));
    for (int v = 0; v < member->own; ++v) {
        const int k = s->which[v];
        const double sd = exp(log_sd(s, shared)[v]);
        member->phi[k] = phi[k];
        own[v] = member->centred[v] != 0 ? phi[k] : (phi[k] - centre_of(s, shared, member, v)) / sd;
        unit[v] = member->centred[v] != 0 ? sd : 1;
    }
}

void pool_spread_report(const struct pool_spread *s, const double *shared, double *draw) {
    const int effects = s->varying * s->covariates, V = s->varying;
    for (int v = 0; v < V; ++v) *draw++ = exp(log_sd(s, shared)[v]);
    for (int i = 0; i < effects; ++i) *draw++ = shared[effects_at(s, 0) + i];
    for (int v = 1; s->lkj > 0 && v < V; ++v) {
        for (int u = 0; u < v; ++u, ++draw) {
            *draw = 0;
            for (int w = 0; w <= u; ++w) *draw += s->chol[v * V + w] * s->chol[u * V + w];
        }
    }
}
