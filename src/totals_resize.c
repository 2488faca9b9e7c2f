/* Normal totals of an unknown number of records: steps of n, for what totals_normal.c says of it.
 *
 * Steps of n go to a number next to it, or near where warmup saw it, and either leave the
 * coordinates as they are or hold c (totals_size.c has what the coordinates are then).
 *
 * No allocation but in totals_resize_create().
 */
#include "totals_resize.h"

#include "block.h"
#include "dist.h"

/* Steps of an iteration. After warmup the first, to a number next to n, is made in one of so many
 * iterations; where warmup saw n, another of so many leaves coordinates as they are, since holding
 * c goes further. */
enum { SIZE_STEPS = 2, SELDOM = 4 };

void totals_resize_set(struct totals_resize *r, double n) {
    totals_size_set(&r->size, n);
    totals_density_resize(r->density, n);
    r->density->totals.design[0] = sqrt(n);
}

/* what a factor of the target depends on n alone */
static double log_size(const struct totals_resize *r, double n) {
    const double log_prior = totals_size_log_prior(&r->size, n);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    const int d = r->density->totals.d;
    return log_prior + 0.5 * (n - 1) * d * log(M_PI) - 0.5 * d * log(n) -
           dist_log_multigamma(d, 0.5 * (n - 1)) +
           r->model->class->marginal_size(r->model->self, r->others + n);
}

static int holds(enum resize_kind kind) { return kind == RESIZE_HELD || kind == RESIZE_HELD_FRESH; }

static int is_fresh(enum resize_kind kind) {
    return kind == RESIZE_FRESH || kind == RESIZE_HELD_FRESH;
}

/* Of T and other coordinates, whose density log_size() is part of, the log volume over that of what
 * is held; c is expanded. */
static double log_volume(const struct totals_resize *r, enum resize_kind kind) {
    const struct totals *t = &r->density->totals;
    double sum = 0;
    if (!holds(kind)) return r->size.log_volume;
    for (int i = 0; i < t->d; ++i) sum += log(t->factor[(size_t)i * (size_t)t->width + (size_t)i]);
    return -(t->d + 1) * sum;
}

static void expand(struct totals_resize *r, const double *q) {
    totals_size_place(&r->size, q);
    totals_expand(&r->density->totals, r->size.place, r->density->c);
}

/* The coordinates of c, which `gained` records change as those do that are where the release
 * measures columns from, with n as it is now; 0 if no n records have it. */
static int hold(struct totals_resize *r, double gained, double *q) {
    struct totals *t = &r->density->totals;
    const int d = t->d, *order = t->column, kept = r->size.size - t->size;
    double *c = r->density->c;
    for (int i = 0; i < d; ++i) {
        const double pace = r->pace[i] * totals_size_told(&r->size, i);
        c[order[i]] += gained * pace;
        for (int j = 0; j <= i; ++j)
            c[moments_at(t->columns, order[i], order[j])] +=
                gained * pace * r->pace[j] * totals_size_told(&r->size, j);
    }
    if (totals_coordinates(t, c, r->size.place) != PLUGIN_OK) return 0;
    totals_size_free(&r->size, r->size.place, q);
    memcpy(q + t->size, r->old + t->size, (size_t)kept * sizeof(double));
    totals_expand(t, r->size.place, c);
    return 1;
}

static struct size_slope *learner(struct totals_resize *r, enum resize_kind kind) {
    return holds(kind) ? &r->size.linear : &r->size.logarithmic;
}

int totals_resize_propose(struct totals_resize *r, enum resize_kind kind, double *q,
                          double *log_ratio) {
    const double old = *r->size.n;
    const double n = is_fresh(kind) ? size_slope_fresh(learner(r, kind), old, r->rng, log_ratio)
                                    : size_slope_walk(learner(r, kind), old, r->rng, log_ratio);
    const double log_new = log_size(r, n);
    r->old_n = old;
    memcpy(r->old, q, (size_t)r->size.size * sizeof(double));
    if (!(log_new > -INFINITY)) return 0;
    if (holds(kind)) expand(r, q);
    *log_ratio += log_new - log_size(r, old) - log_volume(r, kind);
    totals_resize_set(r, n);
    if (holds(kind) && !hold(r, n - old, q)) return 0;
    *log_ratio += log_volume(r, kind);
    return 1;
}

void totals_resize_undo(struct totals_resize *r, double *q) {
    totals_resize_set(r, r->old_n);
    memcpy(q, r->old, (size_t)r->size.size * sizeof(double));
}

void totals_resize_learn(struct totals_resize *r, enum resize_kind kind, double log_ratio) {
    if (!is_fresh(kind)) size_slope_tried(learner(r, kind), log_ratio, r->size.prior->upper);
}

int totals_resize_create(struct totals_resize *r, const struct size_prior *prior, double about,
                         double spread, int size) {
    struct totals_density *density = r->density;
    const int d = density->totals.d;
    if (!r->model->class->marginal_size) return PLUGIN_BAD_FIELDS;
    totals_size_create(&r->size, prior, about, spread, d, size);
    totals_density_vary(density);
    r->pace = plugin_memory((size_t)d, sizeof(double));
    r->old = plugin_memory((size_t)size, sizeof(double));
    for (int k = 0; k < density->components; ++k) {
        const struct component *one = density->component + k;
        for (int i = 0; i < d; ++i) {
            if (one->at[0] != density->totals.column[i] || one->coef[0] == 0 || one->coef[1] != 0 ||
                one->coef[2] != 0)
                continue;
            const double told = density->weight[k] * one->coef[0];
            r->pace[i] = -density->rate[k] / one->coef[0];
            r->size.told[i] += told * told / (k < density->absolute ? 2 : 1);
        }
    }
    return PLUGIN_OK;
}

void totals_resize_start(struct totals_resize *r, double *pace) {
    for (int i = 0; i < r->density->totals.d; ++i)
        pace[i] = r->pace[i] * totals_size_told(&r->size, i);
    totals_size_start(&r->size, pace, r->rng);
    totals_resize_set(r, *r->size.n);
}

int totals_resize_steps(const struct totals_resize *r, int iteration, int learning, int *first) {
    const int knows = size_slope_knows(&r->size.logarithmic);
    *first = learning || !knows || iteration % SELDOM == 0 ? 0 : 1;
    return SIZE_STEPS;
}

enum resize_kind totals_resize_kind(const struct totals_resize *r, int iteration, int k) {
    if (k > 0 && size_slope_knows(&r->size.logarithmic))
        return iteration % SELDOM == 1 ? RESIZE_FRESH : RESIZE_HELD_FRESH;
    return (iteration + k) % 2 ? RESIZE_HELD : RESIZE_WALK;
}
