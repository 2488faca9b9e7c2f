/* Method "augment": steps of the chain of totals (records/n_totals_chain.c) that change the
 * scatter itself, in cases where released components would fix it, or let it return only slowly.
 *
 * With few records, the scatter of a column can be far below its released square. If the prior of
 * the variance favours this, it is a separate mode, as wide in the logarithm as the prior, from
 * which trajectories with the step size of the other mode take long to return. Two kinds of steps
 * move between the modes.
 *
 * - RESIZE_GROW: one column, chosen uniformly, keeps its means and its standard deviation as n
 *   changes; the others keep the released components, as in other steps. The Jacobian is N_g' /
 *   N_g for each of its totals, and n' / n.
 * - RESIZE_SCATTER: n, counts and totals stay. A column, chosen uniformly, has a new standard
 *   deviation, and in half of the cases a new correlation with another one, independent of the old
 *   ones: its logarithm, and Fisher's z, have Cauchy distributions about the estimates from the
 *   released square and product without bounds. These have tails that a prior seldom outweighs;
 *   with tails as short as the noise's (RESIZE_REFRESH) steps would seldom propose the
 *   other mode.
 * Other correlations stay. With d columns and b the change of log sd, the Jacobian is exp((d + 1)
 * b), and (1 - r'^2) / (1 - r^2) for a new correlation r'.
 *
 * Cost: O(k) distribution functions, O(d^3), and a density. No allocation.
 */
#include "records/n_all_records.h"

/* Scales of these Cauchy distributions: the scale of the logarithm is the noise's, but for a least
 * one, and never above 0.5, since the square is taken to be at least the noise. */
static const double NARROWEST = 0.1, OF_Z = 0.3;

/* Changes of the logarithm, and Fisher's z, beyond which nothing is proposed. */
static const double MOST_CHANGE = 10, MOST_Z = 8;

double resize_grow_column(struct resize *r, int i) {
    const int d = r->d, k = r->k;
    const struct resize_totals *now = r->now;
    struct resize_totals *next = r->next;
    const double share = next->n / now->n;
    double log_jacobian = log(share);
    for (int g = 0; g < k; ++g) {
        const double of_level = next->count[g] / now->count[g];
        next->total[g * d + i] = of_level * now->total[g * d + i];
        log_jacobian += log(of_level);
    }
    next->scatter[i * d + i] = share * now->scatter[i * d + i];
    next->sd[i] = now->sd[i];
    memcpy(next->column + i * k, now->column + i * k, (size_t)k * sizeof *next->column);
    return log_jacobian;
}

static double draw_cauchy(struct rng *rng) { return tan(M_PI * (rng_uniform(rng) - 0.5)); }

/* but for constants */
static double log_cauchy(double x, double centre, double scale) {
    const double away = (x - centre) / scale;
    return -log1p(away * away);
}

/* The logarithm of a column's standard deviation by its released square, given n and its totals;
 * and how well the noise lets it be known. */
static double released_log_sd(const struct augment *a, const struct resize_totals *t, int i,
                              double *scale) {
    const struct resize *r = resize_of(a);
    const int at = r->told.product[i * r->d + i] - 1;
    const double coef = a->surrogate->density.component[at].coef[2];
    const double noise = 1 / (a->noise.weight[at] * fabs(coef));
    double square = a->noise.released[at] / coef;
    for (int g = 0; g < r->k; ++g) {
        const double off = t->total[g * r->d + i] / t->count[g] - r->pace.total[i];
        square -= t->count[g] * off * off;
    }
    square = fmax(square, noise);
    *scale = fmax(NARROWEST, 0.5 * noise / square);
    return 0.5 * log(square / t->n);
}

/* A new standard deviation of column i, to `next`; returns the log of the proposal back over that
 * forth, with the Jacobian. */
static double propose_sd(struct augment *a, int i) {
    struct resize *r = resize_of(a);
    const int d = r->d;
    const struct resize_totals *now = r->now;
    struct resize_totals *next = r->next;
    double scale;
    const double centre = released_log_sd(a, now, i, &scale), old = log(now->sd[i]);
    const double fresh = centre + scale * draw_cauchy(a->rng), by = fresh - old;
    if (!(fabs(by) < MOST_CHANGE)) return -INFINITY;
    for (int j = 0; j < d; ++j)
        next->scatter[i > j ? i * d + j : j * d + i] *= i == j ? exp(2 * by) : exp(by);
    for (int g = 0; g < r->k; ++g) r->newton.mean[g] = next->total[g * d + i] / next->count[g];
    resize_place_column(r, next, i, r->newton.mean, exp(fresh));
    return (d + 1) * by + log_cauchy(old, centre, scale) - log_cauchy(fresh, centre, scale);
}

/* The same of the correlation of i and another column, where their product and its square are
 * released. */
static double propose_correlation(struct augment *a, int i) {
    struct resize *r = resize_of(a);
    const int d = r->d, other = (int)augment_choose(a->rng, d - 1), j = other + (other >= i);
    const int row = i > j ? i : j, column = i > j ? j : i, at = row * d + column;
    if (!r->told.product[at] || !r->told.product[j * d + j]) return 0;
    const double root = r->next->n * r->next->sd[i] * r->next->sd[j];
    const double old = r->next->scatter[at] / root, from = atanh(old);
    const double centre = resize_released_z(a, r->next, row, column);
    const double to = centre + OF_Z * draw_cauchy(a->rng), fresh = tanh(to);
    if (!(fmax(fabs(from), fabs(to)) < MOST_Z)) return -INFINITY;
    r->next->scatter[at] = fresh * root;
    return log((1 - fresh * fresh) / (1 - old * old)) +
           log_cauchy(from, resize_released_z(a, r->now, row, column), OF_Z) -
           log_cauchy(to, centre, OF_Z);
}

double resize_draw_scatter(struct augment *a) {
    struct resize *r = resize_of(a);
    const size_t d = (size_t)r->d, k = (size_t)r->k;
    const struct resize_totals *now = r->now;
    struct resize_totals *next = r->next;
    const int i = (int)augment_choose(a->rng, r->d);
    if (!r->told.product[i * r->d + i]) return -INFINITY;
    next->n = now->n;
    memcpy(next->count, now->count, k * sizeof(double));
    memcpy(next->total, now->total, k * d * sizeof(double));
    memcpy(next->scatter, now->scatter, d * d * sizeof(double));
    memcpy(next->sd, now->sd, d * sizeof(double));
    memcpy(next->column, now->column, k * d * sizeof *next->column);
    memcpy(next->theta, now->theta, (size_t)a->model.parameters * sizeof(double));
    double log_ratio = propose_sd(a, i);
    if (log_ratio > -INFINITY && d > 1 && rng_bits(a->rng) >> 63)
        log_ratio += propose_correlation(a, i);
    if (!(log_ratio > -INFINITY) || !resize_factorise(r, next)) return -INFINITY;
    resize_evaluate(a, next);
    return log_ratio + next->log_density - now->log_density;
}
