/* Normal totals of an unknown number of records: steps of n, see totals/normal_totals_chain.c.
 *
 * Steps of n propose a number near its current value, or near the values in warmup, and either
 * leave the coordinates as they are or hold c fixed (see totals/n_coordinate.c for the
 * coordinates). With c, the mean and so the response's residuals depend on n. If the residual
 * standard deviation sigma is not integrated out, it follows them: log sigma moves as the log of
 * F_dd / sqrt(n) does, with Jacobian 1. Which kind is accepted depends on how wide the noise is, so
 * that all are made in turn. Each costs as much as a step of the trajectory that moves c, and those
 * are tens.
 *
 * If bounds clamp, the variance of clamped totals given c is in proportion to n: Gamma is in
 * proportion to its root. So is the variance that widens the noise, whose density then has a
 * constant that depends on n.
 *
 * No allocation except in totals_resize_create() and totals_resize_clamp().
 */
#include "totals/n_steps.h"

#include "base/block.h"
#include "base/dist.h"
#include "contract/model_marginal.h"

/* An iteration makes a step of each kind, or ROUNDS of them where warmup saw that the sd of log n
 * is more than UNCERTAIN: then n mixes more slowly than the totals. */
enum { ROUNDS = 3 };
static const double UNCERTAIN = 0.03;

/* variance of component k's noise as widened, over its own */
static double widening(const struct totals_resize *r, int k, double n) {
    return 1 + r->widened[k] * n / r->size.about;
}

/* what clamped totals vary by given c */
static void set_spread(struct totals_resize *r, double n) {
    const int count = r->density->noise.size;
    const double root = sqrt(n / r->size.about);
    for (int k = 0; k < count; ++k) r->weight[k] = r->weight_given[k] / sqrt(widening(r, k, n));
    for (int k = 0; k < r->directions * count; ++k) r->spread[k] = root * r->spread_given[k];
}

void totals_resize_set(struct totals_resize *r, double n) {
    totals_size_set(&r->size, n);
    if (r->widened) set_spread(r, n);
    totals_density_resize(r->density, n);
    r->density->totals.design[0] = sqrt(n);
}

/* what a factor of the target depends on n alone */
static double log_size(const struct totals_resize *r, double n) {
    const double log_prior = totals_size_log_prior(&r->size, n);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    const int d = r->density->totals.d;
    double log_widened = 0;
    for (int k = 0; r->widened && k < r->density->noise.size; ++k)
        log_widened += log(widening(r, k, n));
    return log_prior - 0.5 * log_widened + 0.5 * (n - 1) * d * log(M_PI) - 0.5 * d * log(n) -
           dist_log_multigamma(d, 0.5 * (n - 1)) +
           r->model->marginal->marginal_size(r->model->self, r->others + n);
}

static int holds(enum totals_step kind) { return kind == TOTALS_HELD || kind == TOTALS_HELD_FRESH; }

static int is_fresh(enum totals_step kind) {
    return kind == TOTALS_FRESH || kind == TOTALS_HELD_FRESH;
}

/* Of T and other coordinates, whose density log_size() is part of, the log volume over that of what
 * is held; c is expanded, and what is expected of it known. */
static double log_volume(const struct totals_resize *r, enum totals_step kind) {
    const struct totals *t = &r->density->totals;
    double sum = 0;
    if (!holds(kind)) return r->size.log_volume;
    for (int i = 0; i < t->d; ++i) sum += log(t->factor[(size_t)i * (size_t)t->width + (size_t)i]);
    if (r->widened)
        sum += (clamped_log_volume(r->density->clamped) + 0.5 * r->directions * log(*r->size.n)) /
               (t->d + 1);
    return -(t->d + 1) * sum;
}

/* of the last column, whose place is the last */
static double log_residual(const struct totals_resize *r) {
    return r->size.place[r->density->totals.size - 1] - 0.5 * log(*r->size.n);
}

static void expand(struct totals_resize *r, const double *q) {
    totals_size_place(&r->size, q);
    totals_expand(&r->density->totals, r->size.place, r->density->c);
    totals_density_expect(r->density);
}

/* The coordinates of what is held, which `gained` records change as those do that are where the
 * release measures columns from, with n as it is now; 0 if no n records have it. */
static int hold(struct totals_resize *r, double gained, double residual, double *q) {
    struct totals *t = &r->density->totals;
    const int d = t->d, *order = t->column, kept = r->size.size - t->size;
    double *c = r->density->c, *held = r->density->seen;
    for (int i = 0; i < d; ++i) {
        const double pace = r->pace[i] * totals_size_told(&r->size, i);
        held[order[i]] += gained * pace;
        for (int j = 0; j <= i; ++j)
            held[moments_at(t->columns, order[i], order[j])] +=
                gained * pace * r->pace[j] * totals_size_told(&r->size, j);
    }
    if (r->widened && !clamped_match(r->density->clamped, held, c)) return 0;
    if (totals_coordinates(t, c, r->size.place) != PLUGIN_OK) return 0;
    totals_size_free(&r->size, r->size.place, q);
    memcpy(q + t->size, r->old + t->size, (size_t)kept * sizeof(double));
    if (r->sigma >= 0)
        q[r->sigma] += log_residual(r) - residual + r->old_shift - r->size.shift[r->sigma];
    const double shrink = sqrt((*r->size.n - gained) / *r->size.n);
    for (int j = 0; j < r->directions; ++j) q[r->size.size + j] *= shrink;
    totals_expand(t, r->size.place, c);
    if (r->widened) totals_density_expect(r->density);
    return 1;
}

static struct size_slope *learner(struct totals_resize *r, enum totals_step kind) {
    return holds(kind) ? &r->size.linear : &r->size.logarithmic;
}

int totals_resize_go(struct totals_resize *r, enum totals_step kind, double n, double *q,
                     double *log_ratio) {
    const double old = *r->size.n, log_new = log_size(r, n);
    r->old_n = old;
    memcpy(r->old, q, (size_t)(r->size.size + r->directions) * sizeof(double));
    if (!(log_new > -INFINITY)) return 0;
    if (holds(kind)) expand(r, q);
    const double residual = holds(kind) ? log_residual(r) : 0;
    *log_ratio += log_new - log_size(r, old) - log_volume(r, kind);
    if (r->sigma >= 0) r->old_shift = r->size.shift[r->sigma];
    totals_resize_set(r, n);
    if (holds(kind) && !hold(r, n - old, residual, q)) return 0;
    *log_ratio += log_volume(r, kind);
    return 1;
}

int totals_resize_propose(struct totals_resize *r, enum totals_step kind, double *q,
                          double *log_ratio) {
    const double old = *r->size.n;
    const double n = is_fresh(kind) ? size_slope_fresh(learner(r, kind), old, r->rng, log_ratio)
                                    : size_slope_walk(learner(r, kind), old, r->rng, log_ratio);
    return totals_resize_go(r, kind, n, q, log_ratio);
}

void totals_resize_undo(struct totals_resize *r, double *q) {
    totals_resize_set(r, r->old_n);
    memcpy(q, r->old, (size_t)(r->size.size + r->directions) * sizeof(double));
}

void totals_resize_learn(struct totals_resize *r, enum totals_step kind, double log_ratio) {
    if (!is_fresh(kind)) size_slope_tried(learner(r, kind), log_ratio, r->size.prior->upper);
}

int totals_resize_create(struct totals_resize *r, const struct size_prior *prior, double about,
                         double spread, int size) {
    struct totals_density *density = r->density;
    const int d = density->totals.d;
    if (!r->model->marginal->marginal_size) return PLUGIN_BAD_FIELDS;
    totals_size_create(&r->size, prior, about, spread, d, size);
    totals_density_vary(density);
    r->pace = doubles((size_t)d);
    r->sigma = -1;
    const struct model_marginal *marginal = r->model->marginal;
    for (int j = 0; marginal->residual > 0 && j < size - density->totals.size; ++j)
        if (marginal->kept[j] == marginal->residual) r->sigma = density->totals.size + j;
    r->old = doubles((size_t)size);
    for (int k = 0; k < density->noise.size; ++k) {
        const struct component *one = density->component + k;
        for (int i = 0; i < d; ++i) {
            if (one->at[0] != density->totals.column[i] || one->coef[0] == 0 || one->coef[1] != 0 ||
                one->coef[2] != 0)
                continue;
            const double told = density->noise.weight[k] * one->coef[0];
            r->pace[i] = -density->rate[k] / one->coef[0];
            r->size.told[i] += told * told / (k < density->noise.absolute ? 2 : 1);
        }
    }
    return PLUGIN_OK;
}

void totals_resize_clamp(struct totals_resize *r, const double *weight, const double *spread,
                         int directions) {
    struct totals_density *density = r->density;
    const int count = density->noise.size;
    r->directions = directions;
    r->old = doubles(r->size.size + directions);
    r->weight_given = weight;
    r->spread_given = spread;
    r->widened = doubles(count);
    for (int k = 0; k < count; ++k) {
        const double ratio = weight[k] / density->noise.weight[k];
        r->widened[k] = ratio * ratio - 1;
    }
    density->noise.weight = r->weight = doubles(count);
    if (directions > 0) r->spread = doubles(directions * count);
    set_spread(r, r->size.about);
}

void totals_resize_start(struct totals_resize *r, double *pace) {
    for (int i = 0; i < r->density->totals.d; ++i)
        pace[i] = r->pace[i] * totals_size_told(&r->size, i);
    totals_size_start(&r->size, pace, r->rng);
    totals_resize_set(r, *r->size.n);
}

int totals_resize_steps(const struct totals_resize *r) {
    return TOTALS_STEPS * (size_slope_share(&r->size.logarithmic) > UNCERTAIN ? ROUNDS : 1);
}

enum totals_step totals_resize_kind(const struct totals_resize *r, int k) {
    const enum totals_step kind = (enum totals_step)(k % TOTALS_STEPS);
    if (size_slope_knows(&r->size.logarithmic)) return kind;
    return holds(kind) ? TOTALS_HELD : TOTALS_WALK;
}
