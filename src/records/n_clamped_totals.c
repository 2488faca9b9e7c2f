/* Method "augment": steps of an unknown n that solve for clamped totals.
 *
 * If clamping matters and noise is small, records that follow a step of n
 * (records/n_all_records_steps.c) have clamped totals that differ from the expected ones by more
 * than the noise allows. If each clamped total and each product of columns is released, new
 * records can be given any totals, as in records/redraw_steps.c: with s the clamped totals, U the
 * shape and J = |d(T, S) / ds| given U, the density of n, s and U is
 *
 *   h(n, s, U) eta(z | s),   h = p(n, T, S) J,
 *
 * with p as in records/n_all_records_steps.c. And with (T~, S~) the totals for which s is
 * expected, J~ = |d(T~, S~) / ds|, the surrogate's chain is reversible for h~ eta, h~ = p(n, T~,
 * S~) J~. So a step
 *
 * - finds s and U of the records, and (T~, S~);
 * - makes the chain's steps from there;
 * - draws U' uniformly and solves for the (T, S) of records with this shape whose clamped totals
 *   are those expected at the end of the chain.
 *
 * It is accepted by h' h~ / (h h~'): the noise cancels. Each solution is found from s and U alone,
 * and a step is only made if that gives the records themselves, and the totals at the end of the
 * chain.
 *
 * Cost: n d normal numbers, about ten passes over n records of d^2 / 2 multiplications, and as
 * many solutions of d (d + 3) / 2 equations. No allocation except in resize_create_clamped().
 */
#include "records/n_all_records.h"

#include "base/linalg.h"

/* Of the work of a sweep, about. */
static const double SWEEPS = 2;

/* Standard deviations by which a solution may differ. */
static const double SAME = 1e-6;

void resize_create_clamped(struct augment *a) {
    struct resize *r = resize_of(a);
    r->clamped.most = a->stride;
    r->clamped.redraw = a->n > MOST_REDRAWN ? NULL : redraw_new(a, r->clamped.most);
    if (r->clamped.redraw && r->clamped.redraw->untold > 0) r->clamped.redraw = NULL;
}

/* The log density of records there, in terms of their clamped totals: log |ds / d(m, F)| is that.
 */
static double log_density(struct augment *a, const struct place *at, double log_slope,
                          struct resize_totals *t) {
    const struct resize *r = resize_of(a);
    const int d = r->d;
    const double n = t->n, root = sqrt(n);
    double log_volume = 0.5 * d * (d + 3) * log(n);
    t->count[0] = n;
    for (int i = 0; i < d; ++i) {
        t->total[i] = n * at->mean[i];
        log_volume += (d - i) * log(at->factor[i * d + i]);
        for (int j = 0; j <= i; ++j) {
            t->factor[i * d + j] = root * at->factor[i * d + j];
            t->scatter[i * d + j] = n * linalg_dot(j + 1, at->factor + i * d, at->factor + j * d);
        }
    }
    return resize_log_totals(a, t) + log_volume - log_slope;
}

int resize_begin_clamped(struct augment *a) {
    struct resize *r = resize_of(a);
    struct resize_totals *now = r->kept, *records = r->clamped.there = r->kept + 3;
    struct place *at = r->clamped.redraw->kept;
    double log_slope, log_volume;
    r->clamped.to = at + 1;
    r->now = now;
    r->next = now + 1;
    a->count.work += SWEEPS * a->adapt.costs.visit;
    if (a->n > r->clamped.most || a->n <= r->d + 1 ||
        !redraw_read(a, r->clamped.redraw, a->n, at) ||
        !redraw_finds(a, r->clamped.redraw, a->n, at, r->clamped.to, &log_slope))
        return 0;
    now->n = now->count[0] = records->n = (double)a->n;
    memcpy(now->theta, a->theta, (size_t)a->model.parameters * sizeof(double));
    memcpy(records->theta, a->theta, (size_t)a->model.parameters * sizeof(double));
    r->clamped.log_before = log_density(a, at, log_slope, records);
    if (!resize_match(r, now, at->seen, &log_volume)) return 0;
    resize_evaluate(a, now);
    r->clamped.log_before -= now->log_density + *a->adapt.temper * now->energy + log_volume;
    return isfinite(r->clamped.log_before);
}

/* What is expected of the clamped totals. */
static void expect(const struct resize *r, const struct resize_totals *t, double *seen) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        const struct clamped_moments *x = t->column + i;
        seen[i] = t->n * x->first;
        seen[d + i * (i + 3) / 2] = t->n * x->second;
        for (int j = 0; j < i; ++j) {
            const struct clamped_moments *y = t->column + j;
            seen[d + i * (i + 1) / 2 + j] =
                t->n * x->first * y->first + x->first_mean * y->first_mean * t->scatter[i * d + j];
        }
    }
}

/* Does resize_match() lead there? */
static int matches(struct resize *r, const struct resize_totals *t, struct resize_totals *spare,
                   const double *seen, double *log_volume) {
    const int d = r->d;
    spare->n = spare->count[0] = t->n;
    int same = resize_match(r, spare, seen, log_volume);
    for (int i = 0; i < d && same; ++i)
        same = fabs(spare->total[i] - t->total[i]) < SAME * t->n * t->sd[i] &&
               fabs(spare->sd[i] - t->sd[i]) < SAME * t->sd[i];
    return same;
}

double resize_follow_clamped(struct augment *a) {
    struct resize *r = resize_of(a);
    const struct resize_totals *next = r->next;
    const ptrdiff_t n = (ptrdiff_t)next->n;
    struct place *to = r->clamped.to;
    double log_slope, log_volume;
    expect(r, next, to->seen);
    if (n > r->clamped.most || fabs(next->n - (double)a->n) > a->size.most_born ||
        !matches(r, next, r->clamped.there, to->seen, &log_volume) ||
        !redraw_shape(a, r->clamped.redraw, n, to) ||
        !redraw_find(a, r->clamped.redraw, n, to, &log_slope))
        return -INFINITY;
    r->clamped.there->n = next->n;
    memcpy(r->clamped.there->theta, next->theta, (size_t)a->model.parameters * sizeof(double));
    const double log_after = log_density(a, to, log_slope, r->clamped.there) -
                             (next->log_density + *a->adapt.temper * next->energy + log_volume);
    return log_after - r->clamped.log_before;
}

void resize_keep_clamped(struct augment *a) {
    struct resize *r = resize_of(a);
    a->n = (ptrdiff_t)r->next->n;
    redraw_write(a, r->clamped.redraw, a->n, r->clamped.to);
    augment_sum_up(a);
    memcpy(a->theta, r->next->theta, (size_t)a->model.parameters * sizeof(double));
    augment_take_complete(a, 0, a->complete);
}
