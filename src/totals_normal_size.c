/* Normal totals of an unknown number of records: what totals_normal.c says of n.
 *
 * Steps of n go to a number next to it, or near where warmup saw it, and either leave the
 * coordinates as they are or hold c (totals_size.c has what the coordinates are then).
 *
 * Cost: an evaluation of the density a step. No allocation but in normal_prepare_size().
 */
#include "totals_normal.h"

#include "block.h"
#include "dist.h"

/* Steps of an iteration. After warmup the first, to a number next to n, is made in one of so many
 * iterations; where warmup saw n, another of so many leaves coordinates as they are, since holding
 * c goes further. */
enum { SIZE_STEPS = 2, SELDOM = 4 };

void normal_set_size(struct normal *s, double n) {
    totals_size_set(&s->size, n);
    totals_density_resize(&s->density, n);
    s->n = n;
    s->density.totals.design[0] = sqrt(n);
}

/* what a factor of the target depends on n alone */
static double log_size(const struct normal *s, double n) {
    const double log_prior = totals_size_log_prior(&s->size, n);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    const int d = s->model.columns;
    return log_prior + 0.5 * (n - 1) * d * log(M_PI) - 0.5 * d * log(n) -
           dist_log_multigamma(d, 0.5 * (n - 1)) + s->model.class->marginal_size(s->model.self, n);
}

/* What a step of n holds, n being next to where it is or from where warmup saw it: the coordinates;
 * or c, measured from where the release measures columns. With a mean that is far from there in
 * units of the standard deviation the scatter of a known c shrinks fast as n falls, and coordinates
 * bend. */
enum size_step { WALK, FRESH, HELD, HELD_FRESH };

static int holds(enum size_step kind) { return kind == HELD || kind == HELD_FRESH; }
static int is_fresh(enum size_step kind) { return kind == FRESH || kind == HELD_FRESH; }

/* Of T and other coordinates, whose density log_size() is part of, the log volume over that of what
 * is held; c is expanded. */
static double log_volume(const struct normal *s, enum size_step kind) {
    const struct totals *t = &s->density.totals;
    double sum = 0;
    if (!holds(kind)) return s->size.log_volume;
    for (int i = 0; i < t->d; ++i) sum += log(t->factor[(size_t)i * (size_t)t->width + (size_t)i]);
    return -(t->d + 1) * sum;
}

/* The coordinates of c, which `gained` records change as those do that are where the release
 * measures columns from, with n as it is now; 0 if no n records have it. */
static int hold(struct normal *s, double gained) {
    const int at = s->density.totals.size, d = s->model.columns, *order = s->model.order;
    double *c = s->density.c;
    for (int i = 0; i < d; ++i) {
        const double pace = s->pace[i] * totals_size_told(&s->size, i);
        c[order[i]] += gained * pace;
        for (int j = 0; j <= i; ++j)
            c[moments_at(d, order[i], order[j])] +=
                gained * pace * s->pace[j] * totals_size_told(&s->size, j);
    }
    if (totals_coordinates(&s->density.totals, s->density.c, s->size.place) != PLUGIN_OK) return 0;
    totals_size_free(&s->size, s->size.place, s->hmc.q);
    normal_copy(s->hmc.q + at, s->old + at, s->model.keeps);
    return 1;
}

/* A step of n; c and the density are not those of the state after it. */
static int move_size(struct normal *s, enum size_step kind, int learning) {
    struct size_slope *learner = holds(kind) ? &s->size.linear : &s->size.logarithmic;
    double log_ratio, log_density = -INFINITY;
    const double old = s->n, n = is_fresh(kind)
                                     ? size_slope_fresh(learner, s->n, s->rng, &log_ratio)
                                     : size_slope_walk(learner, s->n, s->rng, &log_ratio);
    const double log_new = log_size(s, n);
    normal_copy(s->old, s->hmc.q, normal_coordinates(s));
    if (log_new > -INFINITY) {
        if (holds(kind)) totals_expand(&s->density.totals, normal_place(s, s->hmc.q), s->density.c);
        log_ratio += log_new - log_size(s, old) - log_volume(s, kind);
        normal_set_size(s, n);
        if (!holds(kind) || hold(s, n - old))
            log_density = s->hmc.target.log_density(s, s->hmc.q, s->trial);
        log_ratio += log_density - s->hmc.log_density + log_volume(s, kind);
    }
    if (!(log_density > -INFINITY)) log_ratio = -INFINITY;
    const int accept = -log_ratio < rng_exponential(s->rng) && normal_is_within(s);
    if (accept) {
        s->hmc.log_density = log_density;
        normal_copy(s->hmc.gradient, s->trial, normal_coordinates(s));
    } else {
        normal_set_size(s, old);
        normal_copy(s->hmc.q, s->old, normal_coordinates(s));
    }
    if (learning && !is_fresh(kind)) size_slope_tried(learner, log_ratio, s->size.prior->upper);
    return accept;
}

/* Of an unknown n: what a column's total gains with a record if a component that it alone is part
 * of stays. */
int normal_prepare_size(const struct fields *fields, const struct collapse *of, struct normal *s) {
    const int d = s->model.columns, count = s->density.components;
    const double *spread = fields_vector(fields, "size_spread", 1);
    if (!spread || !s->model.class->marginal_size) return PLUGIN_BAD_FIELDS;
    totals_size_create(&s->size, of->size_prior, of->n, *spread, d, s->density.size);
    totals_density_vary(&s->density);
    s->pace = normal_doubles((size_t)d);
    s->trial = normal_doubles((size_t)normal_coordinates(s));
    for (int k = 0; k < count; ++k) {
        const struct component *one = s->density.component + k;
        for (int i = 0; i < d; ++i) {
            if (one->at[0] != s->model.order[i] || one->coef[0] == 0 || one->coef[1] != 0 ||
                one->coef[2] != 0)
                continue;
            const double told = s->weight[k] * one->coef[0];
            s->pace[i] = -s->density.rate[k] / one->coef[0];
            s->size.told[i] += told * told / (k < s->density.absolute ? 2 : 1);
        }
    }
    return PLUGIN_OK;
}

/* Steps of an unknown n; the last thing of an iteration that moves the totals. */
void normal_move_sizes(struct collapse *of, int iteration, int warmup) {
    struct normal *s = of->self;
    const int learning = iteration < warmup, knows = size_slope_knows(&s->size.logarithmic);
    const int first = learning || !knows || iteration % SELDOM == 0 ? 0 : 1;
    for (int k = first; k < SIZE_STEPS; ++k) {
        of->counter[SIZE_MADE] += 1;
        enum size_step kind = (iteration + k) % 2 ? HELD : WALK;
        if (k > 0 && knows) kind = iteration % SELDOM == 1 ? FRESH : HELD_FRESH;
        of->counter[SIZE_ACCEPTED] += move_size(s, kind, learning);
    }
    normal_measure(s, s->hmc.q);
    if (learning) totals_size_learn(&s->size, hmc_window(iteration, warmup) == HMC_LAST, s->hmc.q);
}
