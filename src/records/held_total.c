/* Method "augment": moves of a mean and a standard deviation that keep a released total.
 *
 * For one column of records x_i = mean + sd e_i, only a clamped sum was published. If noise is
 * small, it restricts (mean, log sd) given the innovations e to a narrow, curved band: non-centred
 * passes take short steps along it, and a sweep none. A move proposes log sd' = log sd + step, a
 * normal step of random length, and the mean' at which the same innovations have the same clamped
 * total T. Held are T and e: in the coordinates (T, log sd, e) the density is
 *
 *   p(theta) p(e) eta(z | ..) / (dT / dmean),   dT / dmean = the number of records inside,
 *
 * and steps of log sd are symmetric. So the move is accepted by
 *
 *   p(theta') inside(theta) eta(z | s') / (p(theta) inside(theta') eta(z | s)),
 *
 * where eta changes only by rounding, or through other published numbers. If a record is inside
 * the bounds, T increases with the mean, which is thus a function of T, log sd and e: the move is
 * reversible.
 *
 * Invariant: theta and the records stay together, as in noncentred_moves.c. Cost of a move: about
 * ten passes over the records, of one comparison each. No allocation.
 */
#include "contract/model_move.h"
#include "contract/model_normal.h"
#include "records/augment_internal.h"

/* a move takes about as many passes over the records */
enum { STEPS = 8, PASSES = 12, MOST_SOLVED = 60 };

/* Steps of log sd have standard deviations between these, uniform on the log scale. */
static const double LONGEST = 1.5, SHORTEST = 0.05;

/* How far the total may be off, in units of the bounds, for each record. */
static const double SAME = 1e-13;

enum { MEAN, LOG_SD };

static int serves(const struct augment *a) {
    return OWN(a, held_total) && a->n > 0 && !a->plain && !(a->layout.searching > 0) &&
           a->sites.count == 1 && !OWN(a, redraw) && !(a->layer && a->model.moving < 2) &&
           a->model.move && a->model.normal;
}

/* The total of shift + stretch x, clamped; how many are inside the bounds, to `inside`. */
static double clamped_total(const struct augment *a, double shift, double stretch, double *inside) {
    const double *hold = OWN(a, held_total), lower = hold[0], upper = hold[1];
    double sum = 0, count = 0;
    for (ptrdiff_t i = 0; i < a->n; ++i) {
        const double x = shift + stretch * a->x[i];
        sum += x < lower ? lower : x > upper ? upper : x;
        count += x > lower && x < upper;
    }
    *inside = count;
    return sum;
}

/* The shift at which the records, stretched, have that total: Newton's method, kept within what
 * brackets it. Returns the records inside; 0 where there are none. */
static double solve(const struct augment *a, double total, double stretch, double shift,
                    double *out) {
    const double *hold = OWN(a, held_total), width = hold[1] - hold[0];
    const double close = SAME * (fabs(hold[0]) + fabs(hold[1])) * (double)a->n;
    double below = -INFINITY, above = INFINITY, inside;
    for (int k = 0; k < MOST_SOLVED; ++k) {
        const double off = clamped_total(a, shift, stretch, &inside) - total;
        *out = shift;
        if (fabs(off) <= close) return inside;
        if (off > 0)
            above = shift;
        else
            below = shift;
        double next = inside > 0 ? shift - off / inside : NAN;
        if (!(next > below && next < above)) {
            next = isfinite(below) && isfinite(above) ? 0.5 * (below + above)
                                                      : shift + (off > 0 ? -width : width);
        }
        shift = next;
    }
    return 0;
}

static double mean_of_records(const struct augment *a) {
    double mean, sd;
    a->model.normal->distribution(a->model.self, a->theta, &mean, &sd);
    return *a->model.normal->origin + mean;
}

/* theta_new, at which records are shift + stretch x */
static void place(struct augment *a, double log_stretch, double shift, double mean) {
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    a->theta_new[MEAN] += shift + (exp(log_stretch) - 1) * mean;
    a->theta_new[LOG_SD] += log_stretch;
}

static void take(struct augment *a, double log_prior, double energy) {
    const struct rng innovations = *a->rng;
    augment_keep_moved(a, &innovations);
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
    a->model.class->set(a->model.self, a->theta);
    a->step.log_prior = log_prior;
    a->step.energy = energy;
}

static void move(struct augment *a) {
    const double length = LONGEST * pow(SHORTEST / LONGEST, rng_uniform(a->rng));
    const double step = length * rng_normal(a->rng), threshold = rng_exponential(a->rng);
    const double mean = mean_of_records(a);
    double inside, shift;
    const double total = clamped_total(a, 0, 1, &inside);
    if (!(inside > 0)) return;
    const double inside_new = solve(a, total, exp(step), (1 - exp(step)) * mean, &shift);
    if (!(inside_new > 0)) return;
    place(a, step, shift, mean);
    const double log_prior = augment_log_prior(a, a->theta_new);
    if (!isfinite(log_prior)) return;
    a->model.move->set_move(a->model.self, a->theta_new, a->step.changed);
    const double energy = augment_moved_energy(a);
    const double log_ratio = log_prior - a->step.log_prior + log(inside / inside_new) +
                             (a->step.energy - energy) * *a->adapt.temper;
    if (-log_ratio < threshold) take(a, log_prior, energy);
}

static void make(struct augment *a, struct round *round) {
    (void)round;
    if (!serves(a)) return;
    a->model.class->set(a->model.self, a->theta);
    a->step.log_prior = augment_log_prior(a, a->theta);
    a->step.energy = augment_energy(a);
    for (int k = 0; k < STEPS; ++k) move(a);
    a->count.work += STEPS * PASSES * a->cost.pass;
}

const struct move move_held_total = {.phase = MOVE_BEFORE, .make = make};
