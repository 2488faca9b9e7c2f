/* Method "augment" and its surrogate (records/shape_hmc.c): the passes over the records that a
 * move of all of them at once takes. Such a move maps the continuous columns by an affine map
 * that keeps the records' shape; the surrogate proposes it, the records decide. The surrogate takes
 * noise that has a density of its own for normal noise of its scale.
 *
 * Cost of a move: passes for the totals at the reference and of the proposal, and one to keep
 * it; with the exact density three passes a leapfrog step. A pass takes d / 2 + k multiplications
 * for each of d columns of a record, and the statistic. No allocation except in
 * augment_prepare_surrogate().
 */
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_predictor.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"
#include "records/augment_internal.h"
#include "records/response_hmc.h"

/* Of the search for a start: sweeps for the levels, NUTS transitions, and the exponent of the
 * noise density, below 1 so that chains start further apart than the posterior is wide. */
enum { SETTLE = 50, SEARCH = 100 };
static const double SEARCH_TEMPER = 0.5;

/* of records as the bounds clamp them */
struct shape {
    struct moments clamped;
    double **x;
};

/* the block's records under the map: fixed columns are not copied */
static const double *const *mapped_block(struct augment *a, int m) {
    const struct totals *t = &a->surrogate->density.totals;
    const double *row = a->surrogate->map;
    const double *const *from = (const double *const *)a->block.x_at;
    if (a->model.marginal->regressors) from = a->model.marginal->regressors(a->model.self, m, from);
    for (int v = 0; v < a->model.columns; ++v) a->block.moved[v] = a->block.x_at[v];
    for (int i = 0; i < t->d; ++i, row += t->columns + 1) {
        terms_clear(&a->block.map);
        for (int v = 0; v < t->columns; ++v) terms_add(&a->block.map, row[1 + v], from[v]);
        terms_sum(&a->block.map, row[0], m, a->block.x_new[t->column[i]]);
        a->block.moved[t->column[i]] = a->block.x_new[t->column[i]];
    }
    return a->block.moved;
}

void augment_mapped_totals(struct augment *a) {
    augment_clear_total(a);
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        (void)augment_add_totals(a, start, m, mapped_block(a, m));
    }
    a->count.work += a->cost.map;
}

/* the records become the mapped ones, whose totals were taken last */
void augment_keep_mapped(struct augment *a) {
    const struct totals *t = &a->surrogate->density.totals;
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        (void)mapped_block(a, m);
        for (int i = 0; i < t->d; ++i)
            doubles_copy(a->block.x_at[t->column[i]], a->block.x_new[t->column[i]], m);
    }
    a->count.work += a->cost.map;
}

/* The mapped block as the bounds clamp it. */
static const double *const *clamped_block(struct augment *a, int m) {
    const struct shape *shape = OWN(a, shape);
    const struct surrogate *s = a->surrogate;
    const struct totals *t = &s->density.totals;
    (void)mapped_block(a, m);
    for (int v = 0; v < t->columns; ++v) a->block.view[v] = a->block.moved[v];
    for (int i = 0; i < t->d; ++i) {
        const int v = t->column[i];
        block_clamp(1, 0, s->lower[i] + s->centre[v], s->upper[i] + s->centre[v], m,
                    a->block.moved[v], shape->x[i]);
        a->block.view[v] = shape->x[i];
    }
    return a->block.view;
}

static void sum_clamped(void *self, double *seen) {
    struct augment *a = self;
    struct shape *shape = OWN(a, shape);
    memset(seen, 0, (size_t)a->model.complete * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        moments_add(&shape->clamped, m, clamped_block(a, m), seen);
    }
    a->count.work += a->cost.map;
}

/* Slopes in the values w of a column count where these are inside the bounds; returns their sum. */
VECTOR_CLONES static double keep_inside(int m, double lower, double upper, const double *restrict w,
                                        double *restrict slope) {
    FOR_RECORDS(r, m) slope[r] = w[r] > lower && w[r] < upper ? slope[r] : 0;
    return block_sum(m, slope);
}

/* The slope in a mapped value, where it is inside the bounds: that in its total, and in its
 * product with every column times that one. */
static void pull_clamped(void *self, const double *gradient_seen, double *gradient_map) {
    struct augment *a = self;
    struct shape *shape = OWN(a, shape);
    const struct surrogate *s = a->surrogate;
    const struct totals *t = &s->density.totals;
    const int columns = t->columns, stride = columns + 1;
    double *slope = a->block.x_new[t->column[0]]; /* no longer needed once clamped */
    memset(gradient_map, 0, (size_t)t->d * (size_t)stride * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most_moved) {
        const int m = augment_block_at(a, start, a->block.most_moved);
        moments_centre(&shape->clamped, m, clamped_block(a, m));
        for (int i = 0; i < t->d; ++i) {
            const int own = t->column[i];
            terms_clear(&a->block.map);
            for (int v = 0; v < columns; ++v)
                terms_add(&a->block.map,
                          (v == own ? 2 : 1) * gradient_seen[moments_at(columns, own, v)],
                          shape->clamped.centred + (size_t)v * MAX_BLOCK);
            terms_sum(&a->block.map, gradient_seen[own], m, slope);
            double *row = gradient_map + (size_t)i * (size_t)stride;
            row[0] += keep_inside(m, s->lower[i], s->upper[i],
                                  shape->clamped.centred + (size_t)own * MAX_BLOCK, slope);
            block_add_dots(m, slope, columns, a->block.x_at[0], a->stride, row + 1);
        }
    }
    a->count.work += 2 * a->cost.map;
}

void augment_prepare_surrogate(struct augment *a) {
    struct surrogate *s = a->surrogate;
    const struct totals *t = &s->density.totals;
    if (a->model.marginal->regressors) return; /* the covariates have moves of their own */
    /* surrogate, response and transfers between levels move all of theta but a response's shape */
    a->model.moving = a->model.groups.count = 0;
    if (model_shape(&a->model) > 0) {
        a->model.moving = 1;
        a->model.moves = plugin_memory(1, sizeof *a->model.moves);
        a->model.moves[0] = model_shape(&a->model);
    }
    if (!s->same_bounds) return;
    s->records.self = a;
    s->records.sum = sum_clamped;
    s->records.pull = pull_clamped;
    s->records.pass_work = a->cost.map / a->cost.leapfrog;
    s->records.work = 3 * s->records.pass_work;
    s->records.sweep_work = (a->adapt.costs.visit + a->adapt.costs.complete) / a->cost.leapfrog;
    struct shape *shape = OWN(a, shape) = plugin_memory(1, sizeof *shape);
    shape->clamped = moments_new(t->columns, s->centre);
    shape->x = plugin_memory((size_t)t->d, sizeof *shape->x);
    for (int i = 0; i < t->d; ++i) shape->x[i] = doubles(MAX_BLOCK);
}

int augment_set_size(struct augment *a) {
    if (!a->size.prior) return 1;
    struct response *r = OWN(a, response);
    if (r) r->n = (double)a->n;
    return surrogate_resize(a->surrogate, (double)a->n);
}

double augment_surrogate_density(struct augment *a, int exact, double *q, double *gradient) {
    struct surrogate *s = a->surrogate;
    augment_take_complete(a, 0, a->complete);
    if (!augment_set_size(a) || !surrogate_begin(s, a->complete, a->theta)) return NAN;
    return surrogate_density(s, exact, q, gradient);
}

int augment_draw_within(struct augment *a, const double *c) {
    void *self = a->model.self;
    return a->model.update->rtheta_uncut(self, c, (double)a->n, a->rng, a->theta_new) ==
               PLUGIN_OK &&
           isfinite(a->model.prior->dprior(self, a->theta_new));
}

static double total_of(const struct augment *a, int j) {
    return noise_total(&a->noise, j, a->residual.dense[j]);
}

/* `again`: since the last one the records have kept their shape. */
static void follow(struct augment *a, int iteration, int warmup, int again) {
    struct surrogate *s = a->surrogate;
    const int parameters = a->model.parameters;
    if (!surrogate_begin(s, a->complete, a->theta)) return;
    /* a chain whose start had a level without records */
    if (!surrogate_is_ready(s) && (iteration >= warmup || !surrogate_search(s, 0, 1, a->rng)))
        return;
    s->density.temper = *a->adapt.temper;
    const int learns = iteration < warmup && !again;
    if (!surrogate_is_exact(s) && !again) {
        if (surrogate_refer(s)) {
            augment_mapped_totals(a);
        } else {
            for (int j = 0; j < a->layout.dense; ++j) a->total[j] = total_of(a, j);
        }
        surrogate_correct(s, a->total);
    }
    if (learns) surrogate_train(s, a->rng);
    double gain, probability = 0;
    int accept = 0;
    const int moved = surrogate_propose(s, a->rng, &gain);
    if (moved) {
        augment_mapped_totals(a);
        augment_residuals(a, &a->candidate);
        if (learns) {
            for (int j = 0; j < a->layout.dense; ++j) a->total[j] -= total_of(a, j);
            surrogate_compare(s, a->total);
        }
        const double fall = augment_dense_energy(a, a->residual.dense) +
                            augment_density_energy(a, a->residual.dense) -
                            augment_dense_energy(a, a->candidate.dense) -
                            augment_density_energy(a, a->candidate.dense);
        const double log_ratio = s->density.temper * (fall - gain);
        memcpy(a->theta_new, a->theta, (size_t)parameters * sizeof(double));
        surrogate_take(s, a->complete_after, a->theta_new);
        probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        accept = -log_ratio < rng_exponential(a->rng) &&
                 (!model_is_cut(&a->model) || augment_draw_within(a, a->complete_after));
    }
    a->count.work += a->cost.leapfrog * s->told.leapfrogs;
    if (accept) {
        augment_keep_mapped(a);
        memcpy(a->residual.dense, a->candidate.dense, (size_t)a->layout.dense * sizeof(double));
        memcpy(a->complete, a->complete_after, (size_t)a->model.complete * sizeof(double));
        memcpy(a->theta, a->theta_new, (size_t)parameters * sizeof(double));
    }
    if (learns)
        surrogate_learn(s, iteration, warmup, moved, probability, a->complete, a->theta, a->rng);
    else if (iteration >= warmup) {
        a->count.maps_made += 1;
        a->count.maps_accepted += accept;
        a->count.leapfrogs += s->told.leapfrogs;
        a->count.divergent += s->told.divergent;
        a->count.deepest += s->told.leapfrogs >= 1 << HMC_MOST_DEPTH;
    } else {
        surrogate_leave(s, a->complete, a->theta);
    }
}

/* A surrogate's trajectory costs no more than the sweep before it and the pass for the new shape at
 * the reference, so that a second one makes the most of these; once the reference stays. */
static void make(struct augment *a, struct round *round) {
    const int iteration = round->iteration, warmup = round->warmup;
    round->follows = a->surrogate && augment_set_size(a) && !augment_redraws_totals(a);
    if (!round->follows) return;
    follow(a, iteration, warmup, 0);
    if (iteration < warmup / 2 || OWN(a, response) || surrogate_is_exact(a->surrogate)) return;
    follow(a, iteration, warmup, 1);
}

/* Components that no free column enters. */
static int is_of_levels(const struct surrogate *s, int component) {
    const struct totals *t = &s->density.totals;
    const struct component *k = s->density.component + component;
    for (int e = 0; e < 3; ++e) {
        if (k->coef[e] == 0) continue;
        for (int i = 0; i < t->d; ++i)
            for (int v = 0; v < t->columns; ++v)
                if (k->at[e] == t->column[i] || k->at[e] == moments_at(t->columns, v, t->column[i]))
                    return 0;
    }
    return 1;
}

/* What is known of the levels stays as it is, all else goes back. */
static void keep_all_but_sticks(const struct model *model, const double *old, double *theta) {
    for (int k = 0; k < model->coordinates.count; ++k) {
        const struct theta_block *block = model->coordinates.block + k;
        if (block->transform != TRANSFORM_STICKS)
            doubles_copy(theta + block->offset, old + block->offset, block->length);
    }
}

/* Sweeps with these weights, after each of which theta's probabilities follow the records. */
static void settle(struct augment *a, const double *weight, int sweeps) {
    const double *const own = a->noise.weight;
    a->noise.weight = weight;
    augment_sum_up(a);
    for (int k = 0; k < sweeps; ++k) {
        memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
        (void)augment_sweep(a, SEARCH_TEMPER);
        if (a->model.update->rtheta(a->model.self, a->complete, (double)a->n, a->rng, a->theta) !=
            PLUGIN_OK)
            memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        keep_all_but_sticks(&a->model, a->theta_new, a->theta);
    }
    a->noise.weight = own;
}

/* Sweeps that see what the release says of the levels alone, the distribution of all else
 * staying as it is: once the free columns follow the levels, many records cannot change theirs
 * together. Under wide noise a record has little to follow, and from a draw of the prior a
 * sweep's records would go a small part of the way; so the noise is first as small as a record. */
static void settle_levels(struct augment *a) {
    const int count = a->noise.size;
    double *const levels = plugin_memory((size_t)count, sizeof *levels);
    double *const narrow = plugin_memory((size_t)count, sizeof *narrow);
    for (int j = 0; j < count; ++j) {
        levels[j] = j >= a->layout.dense || is_of_levels(a->surrogate, j) ? a->noise.weight[j] : 0;
        narrow[j] = levels[j] > 0 ? fmax(levels[j], 1) : 0;
    }
    settle(a, narrow, SETTLE / 2);
    settle(a, levels, SETTLE / 2);
    augment_sum_up(a);
}

/* Coefficients that suit the release; the responses follow. From a draw of the prior, steps that
 * records accept may take longer than warmup. */
static void search_response(struct augment *a) {
    struct response *r = OWN(a, response);
    augment_take_complete(a, 0, a->complete);
    if (!response_begin(r, a->complete, a->theta, a->rng)) return;
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    response_search(r, SEARCH_TEMPER, a->rng, a->theta_new);
    a->model.class->set(a->model.self, a->theta);
    const struct rng innovations = *a->rng;
    a->model.move->set_move(a->model.self, a->theta_new, a->step.changed);
    (void)augment_moved_energy(a);
    augment_keep_moved(a, &innovations);
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
    a->model.class->set(a->model.self, a->theta);
    augment_sum_up(a);
    augment_take_complete(a, 0, a->complete);
}

static void start(struct augment *a, const struct move_start *start) {
    struct surrogate *s = a->surrogate;
    const int search = start->search;
    if (!s || !augment_set_size(a)) return;
    if (search && augment_redraw_start(a, SEARCH_TEMPER)) {
        (void)a->model.update->rtheta(a->model.self, a->complete, (double)a->n, a->rng, a->theta);
        return;
    }
    if (search && a->model.levels) settle_levels(a);
    augment_take_complete(a, 0, a->complete);
    const int placed = surrogate_begin(s, a->complete, a->theta) &&
                       surrogate_search(s, search ? SEARCH : 0, SEARCH_TEMPER, a->rng);
    if (!search || !(placed || OWN(a, response))) return;
    if (placed) {
        augment_mapped_totals(a);
        augment_keep_mapped(a);
        augment_residuals(a, &a->residual);
        surrogate_take(s, a->complete, a->theta);
    }
    if (OWN(a, response)) search_response(a);
    if (model_has_latent(&a->model)) augment_take_latent(a);
    (void)a->model.update->rtheta(a->model.self, a->complete, (double)a->n, a->rng, a->theta);
}

const struct move move_shape = {.phase = MOVE_AFTER, .start = start, .make = make};
