/* Method "augment": draws of the shape of all records that keep the released totals, or draw new
 * ones from the noise.
 *
 * If clamping matters and noise is small, the clamped totals are known almost exactly. The records
 * beyond the bounds, and their distances, are not; a sweep, one record at a time, seldom changes
 * them, and a move that keeps the shape cannot. Write the records as in records/shape_hmc.c
 * without fixed columns,
 *
 *   w_i = m + F u_i,   sum u_i = 0,   sum u_i u_i' = n I,
 *
 * F lower triangular. Given n the shape U is uniform, and with theta integrated out (m, F) has the
 * density
 *
 *   p(m, F) = marginal(c) prod F_ii^(n - 2 - i),   i from 0 (Bartlett).
 *
 * If each clamped total and each product of columns is released, the released totals s have as
 * many components as (m, F) has entries: given U, (m, F) follows from s. In these terms the
 * density of s and U is
 *
 *   h(s, U) eta(z | s),   h = p(m, F) / |ds / d(m, F)|.
 *
 * A step draws a new U' uniformly and either keeps s, or draws s' from the release, the noise and
 * an approximation of h (records/redraw_totals.c); (m', F') solves s(m', F', U') = s', by Newton's
 * method from the solution without bounds, so that the solution is a function of (s', U') alone.
 * It is accepted by h' / h, divided by the ratio of the densities from which totals are drawn: on
 * average h does not change much with U. Clamping is not known to be one to one in (m, F), so a
 * step is only made if the same method gives the records themselves from (s, U).
 *
 * What is not released, such as the square if only a sum is published, is replaced by a coordinate
 * of (m, F): m_i for a total, log F_ii for a square, F_ij / F_jj for a product. s' then has these
 * from the approximation of h alone. A sum restricts mean and standard deviation to a narrow band,
 * along which sweeps do not move, so these steps are made however often sweeps accept.
 *
 * A standard deviation that the model keeps, for example if its prior is not in the mean's units,
 * would restrict F_ii to within a factor of 1 +- 1 / sqrt(2 n). So it moves along: log sd - log
 * F_ii, i the last column, is held fixed like U, with Jacobian 1, and h is evaluated at the
 * resulting log sd.
 *
 * If such steps are accepted, a chain starts with them, which takes much less time than a search
 * with the surrogate; while new totals are accepted often, all steps draw them, and the surrogate
 * learns nothing.
 *
 * Learned in warmup: how often each kind is accepted, which determines the choice of kind and the
 * number of steps in an iteration; how often sweeps accept, because frequent acceptance renews the
 * shape anyway.
 *
 * Cost a step: n d normal numbers, about five passes over n records of d^2 / 2 multiplications,
 * and as many solutions of d (d + 3) / 2 equations. No allocation except in redraw_new()
 * (records/redraw_places.c).
 */
#include "contract/model_marginal.h"
#include "contract/model_update.h"
#include "records/redraw_shape.h"

/* Most steps of an iteration; tries before what they tell counts. */
enum { MOST_STEPS = 6, TRIED = 50 };

/* Share of iterations that may leave the totals as they were. */
static const double LEFT = 0.05;

/* Of a start: fits of the guide, steps of each for a coefficient, the least share of them that is
 * accepted, steps after that; most totals, and records; where the release does not tell all, how
 * often it is tried. */
enum { FITS = 2, FITTED = 4, BEGUN = 25, MOST_GUIDED = 14, MOST_BEGUN = 1000, BEGINNINGS = 4 };
static const double LEAST = 0.1;

/* Sweeps that accept more often renew the shape. Steps that are accepted less often are left out,
 * and where new totals are accepted more often other moves of all records are. How fast running
 * means forget. */
static const double OFTEN = 0.5, SELDOM = 0.02, ENOUGH = 0.3, FORGET = 0.02;

enum { HOLD, REFRESH };

static void prepare(struct augment *a) {
    if (a->size.prior || a->layout.cells > 0) return;
    if (a->n > (a->model.columns == 1 ? MOST_REDRAWN_ALONE : MOST_REDRAWN)) return;
    struct redraw *r = OWN(a, redraw) = redraw_new(a, a->n);
    if (r) redraw_prepare_guide(r);
}

/* ---- steps -------------------------------------------------------------------------------- */

static int choose_kind(struct augment *a) {
    const double *taken = redraw_of(a)->told->taken;
    if (augment_redraws_totals(a)) return REFRESH;
    const double hold = taken[HOLD] * taken[HOLD], fresh = taken[REFRESH] * taken[REFRESH];
    return rng_uniform(a->rng) * (hold + fresh) >= hold;
}

/* From the place where the records are to the spare one. Returns whether it is taken. */
static int try(struct augment *a, int kind, double temper, const struct place *now,
               struct place *next) {
    struct redraw *r = redraw_of(a);
    const double threshold = rng_exponential(a->rng);
    double fall = now->log_density;
    if (!redraw_shape(a, r, a->n, next)) return 0;
    if (kind == HOLD) {
        memcpy(next->seen, now->seen, (size_t)r->size * sizeof(double));
    } else {
        if (!redraw_totals(a, temper, now->seen, next->seen)) return 0;
        fall += redraw_guide(r, next->seen) - redraw_guide(r, now->seen);
    }
    return redraw_solve(a, next) && fall - next->log_density < threshold;
}

/* The records become the place's records. */
static void keep(struct augment *a, const struct place *at) {
    redraw_write(a, redraw_of(a), a->n, at);
    augment_sum_up(a);
    memcpy(a->complete, at->c, (size_t)a->model.complete * sizeof(double));
    redraw_theta(a, at, a->theta);
}

int augment_redraws_shape(const struct augment *a) {
    const struct redraw *r = redraw_of(a);
    if (!r || a->layer || *a->surrogate->unbounded != 0) return 0;
    const struct redrawn *told = r->told;
    const int serve = told->swept < OFTEN || r->untold > 0;
    return serve && fmax(told->taken[HOLD], told->taken[REFRESH]) > SELDOM;
}

int augment_redraws_totals(const struct augment *a) {
    return augment_redraws_shape(a) && redraw_of(a)->told->tries > TRIED &&
           redraw_of(a)->told->taken[REFRESH] > ENOUGH;
}

/* Of an iteration after warmup: so many that few leave the totals as they were. */
static int count_steps(const struct augment *a, int learning) {
    if (learning || !augment_redraws_totals(a)) return 1;
    const double refused = fmax(1 - redraw_of(a)->told->taken[REFRESH], LEFT);
    return (int)fmin(ceil(log(LEFT) / log(refused)), MOST_STEPS);
}

/* Steps of that kind; `now` and `next` change places with each that is accepted. Returns how many
 * are. `fits`: their places go to the guide's fit. */
static int walk(struct augment *a, int steps, double temper, int fits, struct place **now,
                struct place **next) {
    int accepted = 0;
    for (int k = 0; k < steps; ++k) {
        if (try(a, REFRESH, temper, *now, *next)) {
            struct place *const left = *now;
            *now = *next;
            *next = left;
            accepted += 1;
        }
        if (fits) redraw_add_to_fit(a, *now);
    }
    return accepted;
}

static void copy_records(const struct augment *a, double **to, double *const *from) {
    for (int i = 0; i < redraw_of(a)->d; ++i) memcpy(to[i], from[i], (size_t)a->n * sizeof(double));
}

/* Do sweeps accept so often, near the release, that they renew the shape? Records and theta come
 * back. 1 where there are no records so near. */
static int sweeps_serve(struct augment *a, struct place *at, struct place *spare) {
    const size_t theta = (size_t)a->model.parameters * sizeof(double);
    if (!redraw_read_release(a, at->seen) || !redraw_shape(a, redraw_of(a), a->n, at) ||
        !redraw_solve(a, at))
        return 1;
    (void)augment_block_at(a, 0, 1);
    copy_records(a, spare->shape, a->block.x_at);
    memcpy(a->theta_new, a->theta, theta);
    keep(a, at);
    const int drawn = a->model.update->rtheta(a->model.self, a->complete, (double)a->n, a->rng,
                                              a->theta) == PLUGIN_OK;
    const double swept = drawn ? augment_sweep(a, 1) : 1;
    memcpy(a->theta, a->theta_new, theta);
    (void)augment_block_at(a, 0, 1);
    copy_records(a, a->block.x_at, spare->shape);
    augment_sum_up(a);
    return swept >= OFTEN;
}

/* Finds the guide, and a place near the release. Returns the share of steps from there that are
 * accepted with that exponent of the noise density, 0 where too few were before. */
static double begin(struct augment *a, double temper, struct place **now, struct place **next) {
    struct redraw *r = redraw_of(a);
    r->apart = 0;
    if (r->untold == 0 && sweeps_serve(a, *now, *next)) return 0;
    if (!redraw_find_guide(a, *now)) return 0;
    memcpy((*now)->seen, r->guide.centre, (size_t)r->size * sizeof(double));
    if (!redraw_solve(a, *now)) return 0;
    const int steps = FITTED * r->guide.terms;
    for (int k = 0; k < FITS; ++k) {
        redraw_begin_fit(a);
        if (walk(a, steps, 1, 1, now, next) < LEAST * steps) return 0;
        redraw_end_fit(r);
    }
    return (double)walk(a, BEGUN, temper, 0, now, next) / BEGUN;
}

/* Other chains find what the release tells well enough. */
static int may_begin(const struct augment *a, const struct redraw *r) {
    return r->size <= MOST_GUIDED &&
           a->model.marginal->keeps == (a->model.marginal->residual > 0) &&
           (r->untold > 0 || a->n <= MOST_BEGUN);
}

int augment_redraw_start(struct augment *a, double temper) {
    struct redraw *r = redraw_of(a);
    if (!r || !may_begin(a, r)) return 0;
    struct place *now = r->kept, *next = r->kept + 1;
    const struct rng before = *a->rng;
    double accepted = 0;
    for (int k = r->untold > 0 ? BEGINNINGS : 1; k > 0 && accepted < ENOUGH; --k)
        accepted = begin(a, temper, &now, &next);
    if (accepted < ENOUGH) {
        redraw_forget_guide(r);
        *a->rng = before; /* the chain is what it is without the attempt */
        return 0;
    }
    redraw_of(a)->told->taken[REFRESH] = accepted;
    redraw_of(a)->told->tries = TRIED + 1;
    keep(a, now);
    return 1;
}

static void make(struct augment *a, struct round *round) {
    struct redraw *r = redraw_of(a);
    const int learning = round->learning;
    if (!r) return;
    struct redrawn *told = r->told;
    if (learning)
        told->swept += fmax(FORGET, 1.0 / (1 + round->iteration)) * (round->swept - told->swept);
    if (!augment_redraws_shape(a)) return;
    struct place *now = r->kept, *next = r->kept + 1;
    const int steps = count_steps(a, learning);
    a->count.work += a->cost.pass + a->adapt.costs.visit * (steps + 0.5);
    if (!redraw_read(a, r, a->n, now) || !redraw_is_solution(a, now, next)) return;
    int moved = 0;
    for (int k = 0; k < steps; ++k) {
        const int kind = choose_kind(a), accept = try(a, kind, *a->adapt.temper, now, next);
        if (learning) told->taken[kind] += FORGET * (accept - told->taken[kind]);
        if (!accept) continue;
        struct place *const left = now;
        now = next;
        next = left;
        moved = 1;
    }
    if (learning) told->tries += 1;
    if (moved) keep(a, now);
}

static size_t stored(const struct augment *a) {
    return redraw_of(a) ? sizeof(struct redrawn) / sizeof(double) : 0;
}

static void attach(struct augment *a, double *store) {
    redraw_of(a)->told = (struct redrawn *)store;
}

static void start_site(struct augment *a) {
    if (redraw_of(a)) *redraw_of(a)->told = (struct redrawn){.swept = 1, .taken = {1, 1}};
}

const struct move move_redraw = {
    .phase = MOVE_AFTER,
    .store = "redraw",
    .prepare = prepare,
    .stored = stored,
    .attach = attach,
    .start_site = start_site,
    .make = make,
};
