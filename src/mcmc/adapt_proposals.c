/* Proposals of the non-centred passes. Their shape is the covariance of theta over a
 * window, shrunk towards its diagonal, so that a short or unconverged window gives
 * a usable one. Kinds of proposal:
 *   PASS_WALK   a normal step of that shape. Its scale is learned by Robbins & Monro
 *          on log(scale), towards the acceptance rate TARGET that suits a random
 *          walk in a few dimensions (Roberts, Gelman & Gilks 1997; Andrieu &
 *          Thoms 2008), see mcmc/adapt_window.c;
 *   PASS_LEAP   an independent draw from a multivariate t about the window's mean,
 *          heavier in the tails than a normal distribution (Tierney 1994): where noise
 *          dominates, the records' innovations say little about theta, and one
 *          leap does what dozens of steps do;
 *   PASS_GROUP_WALK, PASS_GROUP_LEAP  the same in one of the groups of coordinates that
 *          the model names, in turn: where there are many coordinates, or the
 *          groups have little to do with each other;
 *   PASS_FAR  a walk that is longer by a factor whose logarithm is uniform: where the noise has a
 *          hole, the others stay on their side.
 * Cost: O(d^2) for d moving coordinates.
 */
#include "mcmc/adapt_internal.h"

const char *const adapt_pass_names[PASS_KINDS] = {
    [PASS_WALK] = "walk",
    [PASS_LEAP] = "leap",
    [PASS_GROUP_WALK] = "group_walk",
    [PASS_GROUP_LEAP] = "group_leap",
};

/* Degrees of freedom of a leap: twice the number of exponential variates whose
 * sum is its chi-square. */
enum { LEAP_EXPONENTIALS = 4 };

static double neutral_scale(int dim) { return dim > 0 ? log(2.38 / sqrt((double)dim)) : 0; }

int adapt_group_size(const struct adapt_shape *shape, int group) {
    int size = 0;
    for (int j = 0; j < shape->dim; ++j) size += shape->group[j] == group;
    return size;
}

void adapt_reset_scales(struct adapt *adapt) {
    adapt->log_scale[0] = neutral_scale(adapt->shape.dim);
    for (int g = 0; g < adapt->shape.groups; ++g)
        adapt->log_scale[1 + g] = neutral_scale(adapt_group_size(&adapt->shape, g));
}

/* coordinates lo, ..., hi - 1 */
struct range {
    int lo, hi;
};

static struct range range_of(const struct adapt_shape *shape, int group) {
    struct range range = {0, shape->dim};
    if (group < 0) return range;
    while (shape->group[range.lo] != group) ++range.lo;
    range.hi = range.lo + adapt_group_size(shape, group);
    return range;
}

/* out = scale * chol * normal in that range, 0 elsewhere */
static void shaped_normal(struct adapt *adapt, const double *chol, struct range range, double scale,
                          struct rng *rng, double *out) {
    const int d = adapt->shape.dim;
    double *normal = adapt->scratch;
    rng_fill_normal(rng, range.hi - range.lo, normal);
    for (int i = 0; i < d; ++i) {
        const double *row = chol + (size_t)i * d + range.lo;
        const int inside = i >= range.lo && i < range.hi;
        double sum = 0;
        for (int j = 0; inside && j <= i - range.lo; ++j) sum += row[j] * normal[j];
        out[i] = scale * sum;
    }
}

/* log density of a leap that far from the centre, up to a constant; `away` is
 * destroyed in the range */
static double leap_density(const struct adapt *adapt, const double *chol, struct range range,
                           double *away) {
    const int freedom = 2 * LEAP_EXPONENTIALS;
    double square = 0;
    for (int i = range.lo; i < range.hi; ++i) {
        const double *row = chol + (size_t)i * adapt->shape.dim;
        double sum = away[i];
        for (int j = range.lo; j < i; ++j) sum -= row[j] * away[j];
        away[i] = sum / row[i];
        square += away[i] * away[i];
    }
    return -0.5 * (freedom + range.hi - range.lo) * log1p(square / freedom);
}

static double leap(struct adapt *adapt, const double *chol, struct range range, const double *theta,
                   struct rng *rng, double *step) {
    double sum = 0, exponential[LEAP_EXPONENTIALS];
    shaped_normal(adapt, chol, range, 1, rng, step);
    rng_fill_exponential(rng, LEAP_EXPONENTIALS, exponential);
    for (int i = 0; i < LEAP_EXPONENTIALS; ++i) sum += exponential[i];
    const double stretch = sqrt(LEAP_EXPONENTIALS / sum);
    double *away = adapt->scratch;
    for (int j = range.lo; j < range.hi; ++j) away[j] = step[j] *= stretch;
    const double forth = leap_density(adapt, chol, range, away);
    for (int j = range.lo; j < range.hi; ++j) step[j] -= away[j] = theta[j] - adapt->centre[j];
    return leap_density(adapt, chol, range, away) - forth;
}

double adapt_propose(struct adapt *adapt, enum pass_kind kind, const double *theta, struct rng *rng,
                     double *step) {
    const int leaps = kind == PASS_LEAP || kind == PASS_GROUP_LEAP;
    const double *chol = adapt->chol;
    int group = -1;
    if (kind == PASS_GROUP_WALK || kind == PASS_GROUP_LEAP) {
        double *turn = adapt->turn + leaps;
        chol = adapt->group_chol;
        group = (int)*turn;
        *turn = (group + 1) % adapt->shape.groups;
    }
    const struct range range = range_of(&adapt->shape, group);
    if (leaps) return leap(adapt, chol, range, theta, rng, step);
    const double farther = kind == PASS_FAR ? adapt->far * rng_uniform(rng) : 0;
    shaped_normal(adapt, chol, range, exp(adapt->log_scale[1 + group] + farther), rng, step);
    return 0;
}
