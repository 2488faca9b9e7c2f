/* Parameters phi_j of sites j, which vary about a common mean, in the coordinates of theta:
 *
 *   phi_j = centre_j + diag(sd) L z_j,   z_j ~ N(0, I),
 *
 * for the parameters that vary; the others are mu for all sites. The centre is mu + B x_j with
 * covariates x_j of the site, B ~ N(0, effect_sd^2). In a walk it is phi_{j-1}, and phi_1 = mu; in
 * one of order 2, 2 phi_{j-1} - phi_{j-2}, and phi_2 ~ N(phi_1, first_step^2).
 * L is the identity, or the Cholesky factor of correlations R ~ LKJ(eta) (Lewandowski, Kurowicka
 * & Joe 2009), p(R) ~ det(R)^(eta - 1): with canonical partial correlations r_vu = tanh(y_vu),
 *
 *   L_vu = r_vu prod_{w<u} sqrt(1 - r_vw^2),   log p(y_vu) = (eta + (V - 2 - u) / 2) log(1 -
 * r_vu^2).
 *
 * Coordinates: of each sd one in which its prior is nearly standard normal (model/scale_prior.c),
 * B, y, and numbers that are nearly standard normal and independent given these, w_k of the mean
 * and w_jv of each site. The releases inform about phi_jv approximately as a normal observation
 * with precision P and mean S / P. With c the centre, s the standard deviation of phi_jv given the
 * z before, and D = 1 + s^2 P,
 *
 *   phi_jv = c + s z_jv,   z_jv = s (S - c P) / D + w_jv / sqrt(D),
 *
 * would make w_jv ~ N(0, 1) a posteriori: if the release has no information, w is z, and if it
 * determines phi, w is phi on another scale (the partly centred form of Papaspiliopoulos, Roberts
 * & Skold 2003 with the best weight for each sd). About its centre, a site has precision P / D and
 * sum S / D; from these of all sites and of the prior, the coordinate of the mean mu_k is chosen
 * in the same way. In a walk, sites inform about earlier ones, so P and S of a site include the
 * information of all later ones, by a Kalman filter that runs backwards. Correlations are ignored
 * in P and S. A walk's first site has no w: it is the mean. Errors in P and S affect only the shape
 * of the posterior in these coordinates, not the posterior.
 *
 * Cost: O(V (V + C)) a site for V parameters that vary and C covariates. */
#include "pool/hyperprior.h"

static int correlations(const struct pool_spread *s) {
    return s->lkj > 0 ? s->varying * (s->varying - 1) / 2 : 0;
}

/* places of the effects on the v-th that varies, and of the correlations */
static int effects_at(const struct pool_spread *s, int v) {
    return s->parameters + s->varying + v * s->covariates;
}

static int correlations_at(const struct pool_spread *s) { return effects_at(s, s->varying); }

void pool_spread_create(struct pool_spread *s) {
    const int V = s->varying;
    s->size = V + V * s->covariates + correlations(s);
    s->mean = doubles(s->parameters);
    s->scale = plugin_memory((size_t)V, sizeof *s->scale);
    s->of_mean = plugin_memory((size_t)V, sizeof *s->of_mean);
    s->effect_sum = doubles(V * s->covariates);
    DOUBLES(V * V, &s->chol, &s->slope_chol);
    s->slope_z = doubles(V);
    for (int v = 0; v < V; ++v) s->chol[v * V + v] = 1;
}

void pool_member_create(const struct pool_spread *s, struct pool_member *member) {
    member->own = s->walk && !member->before ? 0 : s->varying;
    /* in one place: many sites are far apart in memory */
    const size_t V = (size_t)s->varying, parameters = (size_t)s->parameters;
    member->information =
        plugin_memory(1, V * sizeof *member->information + (2 * parameters + V) * sizeof(double));
    member->phi = (double *)(member->information + V);
    member->slope = member->phi + parameters;
    member->z = member->slope + parameters;
}

/* ---- walks ------------------------------------------------------------------------------- */

/* The centre of a member in a walk: before * (the member before) + second * (the one before that),
 * and the sd of its distance from there, which is learned or not. */
struct walk_step {
    double before, second, sd, log_sd;
    int learned;
};

static struct walk_step step_to(const struct pool_spread *s, const struct pool_member *member,
                                int v) {
    struct walk_step step = {1, 0, s->scale[v].sd, s->scale[v].log_sd, 1};
    if (s->walk < 2 || !member->before) return step;
    if (member->before->before) {
        step.before = 2;
        step.second = -1;
        return step;
    }
    step.sd = s->first_step[v];
    step.log_sd = log(step.sd);
    step.learned = 0;
    return step;
}

/* ---- information ------------------------------------------------------------------------- */

static void add_information(struct pool_information *to, const struct pool_information *more) {
    to->precision += more->precision;
    to->cross += more->cross;
    to->sum += more->sum;
    to->slope_precision += more->slope_precision;
    to->slope_cross += more->slope_cross;
    to->slope_sum += more->slope_sum;
}

/* x / D and its slope; `share` is 1 / D */
static void divide(double x, double slope_x, double share, double slope_D, double *to,
                   double *slope) {
    *to = x * share;
    *slope = (slope_x - *to * slope_D) * share;
}

/* Integrates a number out. Returns what this leaves about the site before; what it leaves about the
 * site before that one goes to `second`. */
static struct pool_information integrate_out(const struct pool_information *of,
                                             const struct walk_step *step,
                                             struct pool_information *second) {
    const double P = of->precision, B = of->cross, S = of->sum, a = step->before, b = step->second;
    const double V = step->sd * step->sd, slope_V = step->learned ? 2 * V : 0;
    const double share = 1 / (1 + V * P), slope_D = slope_V * P + V * of->slope_precision;
    struct pool_information about = {0};
    memset(second, 0, sizeof *second);
    divide(a * a * P + 2 * a * B - V * B * B,
           a * a * of->slope_precision + 2 * (a - V * B) * of->slope_cross - slope_V * B * B, share,
           slope_D, &about.precision, &about.slope_precision);
    divide(S * (a - V * B), of->slope_sum * (a - V * B) - S * (slope_V * B + V * of->slope_cross),
           share, slope_D, &about.sum, &about.slope_sum);
    if (b == 0) return about;
    divide(b * (a * P + B), b * (a * of->slope_precision + of->slope_cross), share, slope_D,
           &about.cross, &about.slope_cross);
    divide(b * b * P, b * b * of->slope_precision, share, slope_D, &second->precision,
           &second->slope_precision);
    divide(b * S, b * of->slope_sum, share, slope_D, &second->sum, &second->slope_sum);
    return about;
}

/* Takes the effects of the covariates out of the information about a site. */
static void leave_out_effects(struct pool_spread *s, const double *shared,
                              const struct pool_member *member, int v,
                              struct pool_information *info) {
    const double *effect = shared + effects_at(s, v);
    double shift = 0;
    for (int c = 0; c < s->covariates; ++c) {
        shift += effect[c] * member->covariate[c];
        s->effect_sum[v * s->covariates + c] -= info->precision * member->covariate[c];
    }
    info->sum -= info->precision * shift;
    info->slope_sum -= info->slope_precision * shift;
}

static void gather(struct pool_spread *s, const double *shared, int v) {
    struct pool_information later = {0}, second = {0};
    s->of_mean[v] = (struct pool_information){.precision = s->mean_precision[v],
                                              .sum = s->mean_precision[v] * s->mean_at[v]};
    for (struct pool_member *member = s->last; member; member = member->before) {
        const struct walk_step step = step_to(s, member, v);
        const double P = member->precision[v];
        struct pool_information *info = member->information + v;
        *info = (struct pool_information){.precision = P, .sum = P * member->at[v]};
        if (s->walk) add_information(info, &later);
        if (s->walk && !member->before) {
            add_information(s->of_mean + v, info);
            return;
        }
        const struct pool_information passed = second;
        later = integrate_out(info, &step, &second);
        if (s->walk) {
            add_information(&later, &passed);
            continue;
        }
        leave_out_effects(s, shared, member, v, &later);
        add_information(s->of_mean + v, &later);
    }
}

/* log(1 - tanh(y)^2) */
static double log_rest(double y) { return 2 * (M_LN2 - fabs(y) - log1p(exp(-2 * fabs(y)))); }

static void place_correlations(struct pool_spread *s, const double *y) {
    for (int v = 1; v < s->varying; ++v) {
        double *row = s->chol + v * s->varying, left = 1;
        for (int u = 0; u < v; ++u, ++y) {
            row[u] = tanh(*y) * left;
            left *= exp(0.5 * log_rest(*y));
        }
        row[v] = left;
    }
}

void pool_spread_open(struct pool_spread *s, const double *shared) {
    memcpy(s->mean, shared, (size_t)s->parameters * sizeof(double));
    memset(s->effect_sum, 0, (size_t)(s->varying * s->covariates) * sizeof(double));
    if (s->lkj > 0) place_correlations(s, shared + correlations_at(s));
    for (int v = 0; v < s->varying; ++v) {
        const int k = s->which[v];
        s->scale[v] = scale_prior_place(s->sd + v, shared[s->parameters + v]);
        gather(s, shared, v);
        const struct pool_information *info = s->of_mean + v;
        s->mean[k] = info->sum / info->precision + shared[k] / sqrt(info->precision);
    }
}

static double prior_of_correlations(const struct pool_spread *s, const double *y, double *slope) {
    double log_density = 0;
    for (int v = 1; v < s->varying; ++v) {
        for (int u = 0; u < v; ++u, ++y, ++slope) {
            const double power = s->lkj + 0.5 * (s->varying - 2 - u);
            log_density += power * log_rest(*y);
            *slope -= 2 * power * tanh(*y);
        }
    }
    return log_density;
}

/* |log sd|, at most: of an sd that no number tells from 0, sites have no distance from their mean
 */
static const double MOST_LOG_SD = 300;

double pool_spread_prior(struct pool_spread *s, const double *shared, double *slope) {
    double log_density = 0;
    for (int v = 0; v < s->varying; ++v) {
        const struct pool_information *info = s->of_mean + v;
        double slope_sd;
        if (!(fabs(s->scale[v].log_sd) < MOST_LOG_SD)) return -INFINITY;
        log_density += scale_prior_density(s->sd + v, s->scale[v].log_sd, &slope_sd);
        log_density += log(s->scale[v].slope) - 0.5 * log(info->precision);
        slope[s->parameters + v] += slope_sd - 0.5 * info->slope_precision / info->precision;
    }
    const int first = effects_at(s, 0);
    for (int i = 0; i < s->varying * s->covariates; ++i) {
        const double t = shared[first + i] / s->effect_sd[i];
        log_density -= 0.5 * t * t;
        slope[first + i] -= t / s->effect_sd[i];
    }
    memset(s->slope_chol, 0, (size_t)(s->varying * s->varying) * sizeof(double));
    if (s->lkj > 0) {
        const int at = correlations_at(s);
        log_density += prior_of_correlations(s, shared + at, slope + at);
    }
    return log_density;
}

/* ---- members ------------------------------------------------------------------------------ */

static double centre_of(const struct pool_spread *s, const double *shared,
                        const struct pool_member *member, int v) {
    const int k = s->which[v];
    const double *effect = shared + effects_at(s, v);
    double centre = s->mean[k];
    if (s->walk && member->before) {
        const struct walk_step step = step_to(s, member, v);
        centre = step.before * member->before->phi[k];
        if (step.second != 0) centre += step.second * member->before->before->phi[k];
    }
    for (int c = 0; c < s->covariates; ++c) centre += effect[c] * member->covariate[c];
    return centre;
}

/* what the z before the v-th bring to it */
static double shift_of(const struct pool_spread *s, const struct pool_member *member, int v) {
    double shift = 0;
    for (int u = 0; s->lkj > 0 && u < v; ++u) shift += s->chol[v * s->varying + u] * member->z[u];
    return shift;
}

/* `sum` of the information about a member, given the member before it. */
static double information_sum(const struct pool_spread *s, const struct pool_member *member,
                              int v) {
    const struct pool_information *info = member->information + v;
    if (info->cross == 0) return info->sum;
    return info->sum - info->cross * member->before->phi[s->which[v]];
}

/* w is left out: of z its mean given the centre and the releases, and the root of D */
static double mean_of_z(double precision, double sum, double centre, double sd, double *root) {
    const double D = 1 + sd * sd * precision;
    *root = sqrt(D);
    return sd * (sum - centre * precision) / D;
}

void pool_spread_place(const struct pool_spread *s, const double *shared,
                       struct pool_member *member, const double *own) {
    memcpy(member->phi, s->mean, (size_t)s->parameters * sizeof(double));
    for (int v = 0; v < member->own; ++v) {
        const double whole = step_to(s, member, v).sd, sd = whole * s->chol[v * s->varying + v];
        const double centre = centre_of(s, shared, member, v) + whole * shift_of(s, member, v);
        double root;
        member->z[v] = mean_of_z(member->information[v].precision, information_sum(s, member, v),
                                 centre, sd, &root);
        member->z[v] += own[v] / root;
        member->phi[s->which[v]] = centre + sd * member->z[v];
    }
}

double pool_member_density(const struct pool_spread *s, const double *shared,
                           struct pool_member *member) {
    double log_density = 0;
    for (int v = 0; v < member->own; ++v) {
        const double log_whole = step_to(s, member, v).log_sd;
        const double diagonal = s->chol[v * s->varying + v];
        const double away = member->phi[s->which[v]] - centre_of(s, shared, member, v);
        const double z = (away * exp(-log_whole) - shift_of(s, member, v)) / diagonal;
        member->z[v] = z;
        log_density -= 0.5 * z * z + log_whole + log(diagonal);
    }
    return log_density;
}

/* The slope in a member's centre, passed on to what makes it. */
static void pull_centre(const struct pool_spread *s, const struct pool_member *member, int v,
                        double slope_centre, double *slope) {
    const int k = s->which[v];
    double *effect = slope + effects_at(s, v);
    if (s->walk && member->before) {
        const struct walk_step step = step_to(s, member, v);
        member->before->slope[k] += step.before * slope_centre;
        if (step.second != 0) member->before->before->slope[k] += step.second * slope_centre;
    } else {
        slope[k] += slope_centre;
    }
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
        const struct pool_information *info = member->information + v;
        const struct walk_step step = step_to(s, member, v);
        const int k = s->which[v];
        const double whole = step.sd, diagonal = s->chol[v * s->varying + v];
        const double shift = shift_of(s, member, v), sd = whole * diagonal, z = member->z[v];
        const double centre = centre_of(s, shared, member, v) + whole * shift;
        const double P = info->precision, sum = information_sum(s, member, v),
                     slope_phi = member->slope[k];
        double root;
        const double fixed = mean_of_z(P, sum, centre, sd, &root), D = root * root;
        log_density -= 0.5 * z * z + log(root);
        const double slope_z = slope_phi * sd - z + s->slope_z[v];
        const double slope_D = -(slope_z * (fixed + 0.5 * own[v] / root) + 0.5) / D;
        const double slope_centre = slope_phi - slope_z * sd * P / D;
        const double slope_s =
            slope_phi * z + slope_z * (sum - centre * P) / D + 2 * slope_D * sd * P;
        const double slope_P = slope_D * sd * sd - slope_z * sd * centre / D;
        const double slope_sum = slope_z * sd / D;
        slope_own[v] = slope_z / root;
        slope[s->parameters + v] += slope_P * info->slope_precision + slope_sum * info->slope_sum;
        if (step.learned) slope[s->parameters + v] += slope_s * sd + slope_centre * whole * shift;
        if (info->cross != 0) {
            member->before->slope[k] -= slope_sum * info->cross;
            slope[s->parameters + v] -= slope_sum * info->slope_cross * member->before->phi[k];
        }
        s->slope_chol[v * s->varying + v] += slope_s * whole;
        pull_centre(s, member, v, slope_centre, slope);
        pull_shift(s, member, v, slope_centre * whole);
    }
    return log_density;
}

static void finish_means(const struct pool_spread *s, const double *shared, double *slope) {
    for (int v = 0; v < s->varying; ++v) {
        const struct pool_information *info = s->of_mean + v;
        const int k = s->which[v];
        const double share = slope[k] / info->precision, away = shared[k] * sqrt(info->precision);
        slope[s->parameters + v] +=
            share *
            (info->slope_sum - (info->sum + 0.5 * away) / info->precision * info->slope_precision);
        for (int c = 0; c < s->covariates; ++c)
            slope[effects_at(s, v) + c] += share * s->effect_sum[v * s->covariates + c];
        slope[k] /= sqrt(info->precision);
    }
}

/* Slopes in log sd become those in its coordinate. */
static void finish_sds(const struct pool_spread *s, double *slope) {
    for (int v = 0; v < s->varying; ++v) {
        double *of = slope + s->parameters + v;
        *of = *of * s->scale[v].slope + s->scale[v].bend;
    }
}

void pool_spread_finish(const struct pool_spread *s, const double *shared, double *slope) {
    finish_means(s, shared, slope);
    finish_sds(s, slope);
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

void pool_spread_read_sds(const struct pool_spread *s, double *shared) {
    for (int v = 0; v < s->varying; ++v) {
        double *at = shared + s->parameters + v;
        *at = scale_prior_coordinate(s->sd + v, *at);
    }
}

void pool_spread_start(struct pool_spread *s, double *shared) {
    pool_spread_open(s, shared);
    for (int v = 0; v < s->varying; ++v) {
        const struct pool_information *info = s->of_mean + v;
        double *at = shared + s->which[v];
        *at = (*at - info->sum / info->precision) * sqrt(info->precision);
    }
    pool_spread_open(s, shared);
}

void pool_member_start(const struct pool_spread *s, const double *shared,
                       struct pool_member *member, const double *phi, double *own) {
    memcpy(member->phi, s->mean, (size_t)s->parameters * sizeof(double));
    for (int v = 0; v < member->own; ++v) {
        const int k = s->which[v];
        const double whole = step_to(s, member, v).sd, sd = whole * s->chol[v * s->varying + v];
        const double centre = centre_of(s, shared, member, v) + whole * shift_of(s, member, v);
        double root;
        const double fixed = mean_of_z(member->information[v].precision,
                                       information_sum(s, member, v), centre, sd, &root);
        member->phi[k] = phi[k];
        member->z[v] = (phi[k] - centre) / sd;
        own[v] = root * (member->z[v] - fixed);
    }
}

void pool_spread_report(const struct pool_spread *s, const double *shared, double *draw) {
    const int effects = s->varying * s->covariates, V = s->varying;
    for (int v = 0; v < V; ++v) *draw++ = s->scale[v].sd;
    for (int i = 0; i < effects; ++i) *draw++ = shared[effects_at(s, 0) + i];
    for (int v = 1; s->lkj > 0 && v < V; ++v) {
        for (int u = 0; u < v; ++u, ++draw) {
            *draw = 0;
            for (int w = 0; w <= u; ++w) *draw += s->chol[v * V + w] * s->chol[u * V + w];
        }
    }
}
