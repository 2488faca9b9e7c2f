/* Hamiltonian Monte Carlo: multinomial NUTS and its adaptation.
 *
 * Transitions: the no-U-turn sampler (Hoffman & Gelman 2014) with multinomial draws along the
 * trajectory and the generalized criterion (Betancourt 2017, A.3), also checked across subtrees,
 * as in Stan. The trajectory is doubled forwards or backwards at random until a subtree, the
 * whole, or a subtree with the next state beyond it turns back, or an energy error exceeds 1,000.
 *
 * The inverse metric is F F', with the momentum in the units where it is standard
 * normal: p moves by F' times the gradient, q by F p. Then p is its own velocity,
 * and the criterion is p . rho > 0 at both ends, rho the sum of momenta.
 *
 * Warmup is Stan's: step size by dual averaging (gamma 0.05, t0 10, kappa 0.75, target 0.8 by
 * default); the metric from windows of 25, 50, 100, ... iterations between a start of 75 and an
 * end of 50, in proportion where warmup is shorter. A window's variances are shrunk as Stan does,
 * 5 pseudo-observations of 1e-3, in the units that hmc_start() was given. If a target provides its
 * information matrix, this is used instead, at the start and in each window. If other moves change
 * the target between transitions, as moves of an unknown number of records do, positions spread
 * more than they do in any one of these targets. Then half the squares of how far transitions lead
 * are taken instead: their mean is the variance given the target, for transitions that forget.
 *
 * Invariants: a transition leaves the target invariant whatever the metric and the step size; the
 * store determines what follows, given the random stream. No allocation, no R. Cost in addition to
 * the target's: O(size) a leapfrog step with a diagonal metric, O(size^2) with a dense one.
 *
 * Vectors are padded to whole lanes; the padding is 0 and stays so while all is finite.
 */
#include "mcmc/hmc.h"

#include "base/linalg.h"

static const double MOST_ENERGY_ERROR = 1000;

/* dual averaging */
static const double GAMMA = 0.05, DELAY = 10, KAPPA = 0.75;
enum { DUAL_COUNT, DUAL_ERROR, DUAL_AVERAGE, DUAL_CENTRE, DUALS };

enum { START = 75, FIRST_WINDOW = 25, END = 50, LEAST_WARMUP = 20 };

/* ---- vectors ----------------------------------------------------------------- */

static void copy(int width, double *restrict to, const double *restrict from) {
    memcpy(to, from, (size_t)width * sizeof(double));
}

VECTOR_CLONES static double dot(int width, const double *restrict a, const double *restrict b) {
    double part[LANES] = {0};
    for (int i = 0; i < width; i += LANES)
        for (int l = 0; l < LANES; ++l) part[l] += a[i + l] * b[i + l];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* out += scale * a * b, entry by entry */
VECTOR_CLONES static void add_product(int width, double scale, const double *restrict a,
                                      const double *restrict b, double *restrict out) {
    FOR_RECORDS(i, width) out[i] += scale * a[i] * b[i];
}

VECTOR_CLONES static void add_multiple(int width, double scale, const double *restrict a,
                                       double *restrict out) {
    FOR_RECORDS(i, width) out[i] += scale * a[i];
}

VECTOR_CLONES static void add(int width, const double *restrict a, const double *restrict b,
                              double *restrict out) {
    FOR_RECORDS(i, width) out[i] = a[i] + b[i];
}

/* Do the ends p and r of a stretch with sum of momenta a + b move apart? */
VECTOR_CLONES static int persists(int width, const double *restrict p, const double *restrict r,
                                  const double *restrict a, const double *restrict b) {
    double at_p[LANES] = {0}, at_r[LANES] = {0};
    for (int i = 0; i < width; i += LANES)
        for (int l = 0; l < LANES; ++l) {
            const double sum = a[i + l] + b[i + l];
            at_p[l] += p[i + l] * sum;
            at_r[l] += r[i + l] * sum;
        }
    return (at_p[0] + at_p[1]) + (at_p[2] + at_p[3]) > 0 &&
           (at_r[0] + at_r[1]) + (at_r[2] + at_r[3]) > 0;
}

static double log_sum(double a, double b) {
    const double most = a > b ? a : b, least = a > b ? b : a;
    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

/* ---- store and workspace ------------------------------------------------------- */

static size_t metric_entries(int size, enum hmc_metric metric) {
    const size_t width = (size_t)PAD_LANES(size);
    return metric == HMC_DENSE ? (size_t)size * width : width;
}

size_t hmc_stored(int size, enum hmc_metric metric) {
    const size_t width = (size_t)PAD_LANES(size);
    return 3 * width + 2 * metric_entries(size, metric) + 1 + DUALS + 1 + 2;
}

size_t hmc_workspace(int size, enum hmc_metric metric) {
    const size_t width = (size_t)PAD_LANES(size);
    const size_t points = 5 * 3, others = 1 + 4 + 1, level = 4 + 2;
    return width * (points + others + HMC_MOST_DEPTH * level) +
           (metric == HMC_DENSE ? metric_entries(size, metric) : 0);
}

static double *take(double **memory, size_t count) {
    double *const taken = *memory;
    *memory += count;
    return taken;
}

void hmc_attach(struct hmc *hmc, const struct hmc_target *target, enum hmc_metric metric,
                double *store, double *work) {
    const size_t width = (size_t)PAD_LANES(target->size);
    const size_t entries = metric_entries(target->size, metric);
    hmc->target = *target;
    hmc->metric = metric;
    hmc->target_accept = HMC_TARGET_ACCEPT;
    hmc->begun = NULL;
    hmc->width = (int)width;
    hmc->q = take(&store, width);
    hmc->unit = take(&store, width);
    hmc->window.mean = take(&store, width);
    hmc->factor = take(&store, entries);
    hmc->window.scatter = take(&store, entries);
    hmc->step_size = take(&store, 1);
    hmc->dual = take(&store, DUALS);
    hmc->window.count = take(&store, 1);
    hmc->learned = take(&store, 1);
    hmc->length = take(&store, 1);

    hmc->gradient = take(&work, width);
    struct hmc_point *const points[] = {&hmc->now, &hmc->forward, &hmc->backward, &hmc->drawn,
                                        &hmc->proposed};
    for (int k = 0; k < 5; ++k) {
        points[k]->q = take(&work, width);
        points[k]->p = take(&work, width);
        points[k]->gradient = take(&work, width);
    }
    hmc->begin = take(&work, width);
    hmc->end = take(&work, width);
    hmc->sum = take(&work, width);
    hmc->total = take(&work, width);
    for (int d = 0; d < HMC_MOST_DEPTH; ++d) {
        struct hmc_level *level = hmc->level + d;
        level->first_end = take(&work, width);
        level->last_begin = take(&work, width);
        level->first_sum = take(&work, width);
        level->last_sum = take(&work, width);
        level->last.q = take(&work, width);
        level->last.gradient = take(&work, width);
    }
    /* of the velocities, and of the matrix that a window gives */
    hmc->scratch = take(&work, width + (metric == HMC_DENSE ? entries : 0));
}

static void set_unit_factor(struct hmc *hmc) {
    const int size = hmc->target.size;
    memset(hmc->factor, 0, metric_entries(size, hmc->metric) * sizeof(double));
    for (int i = 0; i < size; ++i) {
        const size_t at =
            hmc->metric == HMC_DENSE ? (size_t)i * (size_t)hmc->width + (size_t)i : (size_t)i;
        hmc->factor[at] = hmc->unit[i];
    }
}

static void forget_window(struct hmc *hmc) {
    *hmc->window.count = 0;
    memset(hmc->window.mean, 0, (size_t)hmc->width * sizeof(double));
    memset(hmc->window.scatter, 0, metric_entries(hmc->target.size, hmc->metric) * sizeof(double));
}

void hmc_lower_units(const struct hmc_target *target, const double *q, double *unit, double *work) {
    static const double SHARE = 1e-3;
    const int size = target->size;
    double *at = work, *up = at + size, *down = up + size;
    memcpy(at, q, (size_t)size * sizeof(double));
    for (int j = 0; j < size; ++j) {
        const double step = SHARE * unit[j];
        at[j] = q[j] + step;
        const double above = target->log_density(target->self, at, up);
        at[j] = q[j] - step;
        const double below = target->log_density(target->self, at, down);
        at[j] = q[j];
        const double curvature = (down[j] - up[j]) / (2 * step);
        if (isfinite(above) && isfinite(below) && curvature * unit[j] * unit[j] > 1)
            unit[j] = 1 / sqrt(curvature);
    }
}

/* A dense factor; the old one stays if the matrix has none. */
static void use_covariance(struct hmc *hmc, double *a) {
    const int size = hmc->target.size, width = hmc->width;
    if (linalg_cholesky(size, a) != 0) return;
    for (int i = 0; i < size; ++i)
        memcpy(hmc->factor + (size_t)i * (size_t)width, a + (size_t)i * (size_t)size,
               (size_t)(i + 1) * sizeof(double));
}

/* ---- a target that tells its information: sums of it are in `scatter`, rows of `size` ---- */

enum { APART = 4 /* positions of a window between two that are asked about */ };

static int informed(const struct hmc *hmc) {
    return hmc->target.information && hmc->metric == HMC_DENSE;
}

static void learn_information(struct hmc *hmc) {
    const size_t size = (size_t)hmc->target.size;
    const long seen = (long)*hmc->window.count;
    *hmc->window.count += 1;
    if (seen % APART != 0) return;
    hmc->target.information(hmc->target.self, hmc->q, hmc->scratch);
    for (size_t i = 0; i < size * size; ++i) hmc->window.scatter[i] += hmc->scratch[i];
}

/* the factor from the mean information */
static void invert_information(struct hmc *hmc) {
    const int size = hmc->target.size;
    double *l = hmc->window.scatter, *covariance = hmc->scratch, *column = hmc->window.mean;
    const double count = floor((*hmc->window.count - 1) / APART) + 1;
    for (size_t i = 0; i < (size_t)size * (size_t)size; ++i) l[i] /= count;
    if (linalg_cholesky(size, l) != 0) return;
    for (int j = 0; j < size; ++j) {
        memset(column, 0, (size_t)size * sizeof(double));
        column[j] = 1;
        linalg_forward(size, l, column);
        linalg_backward(size, l, column);
        for (int i = j; i < size; ++i) covariance[(size_t)i * (size_t)size + (size_t)j] = column[i];
    }
    use_covariance(hmc, covariance);
}

void hmc_start(struct hmc *hmc, const double *q, const double *unit) {
    for (int i = 0; i < hmc->width; ++i) {
        hmc->q[i] = i < hmc->target.size ? q[i] : 0;
        hmc->unit[i] = i < hmc->target.size ? (unit ? unit[i] : 1) : 0;
    }
    set_unit_factor(hmc);
    forget_window(hmc);
    if (informed(hmc)) {
        learn_information(hmc);
        invert_information(hmc);
        forget_window(hmc);
    }
    memset(hmc->dual, 0, DUALS * sizeof(double));
    *hmc->step_size = 1;
    *hmc->learned = *hmc->length = 0;
}

int hmc_refresh(struct hmc *hmc) {
    hmc->log_density = hmc->target.log_density(hmc->target.self, hmc->q, hmc->gradient);
    return hmc->log_density > -INFINITY && hmc->log_density < INFINITY;
}

/* ---- dynamics -------------------------------------------------------------------- */

/* p += scale F' gradient */
static void kick(struct hmc *hmc, double scale, struct hmc_point *z) {
    const int width = hmc->width;
    if (hmc->metric == HMC_DIAGONAL) {
        add_product(width, scale, hmc->factor, z->gradient, z->p);
        return;
    }
    for (int i = 0; i < hmc->target.size; ++i)
        add_multiple(PAD_LANES(i + 1), scale * z->gradient[i],
                     hmc->factor + (size_t)i * (size_t)width, z->p);
}

/* q += scale F p */
static void drift(struct hmc *hmc, double scale, struct hmc_point *z) {
    const int width = hmc->width;
    if (hmc->metric == HMC_DIAGONAL) {
        add_product(width, scale, hmc->factor, z->p, z->q);
        return;
    }
    for (int i = 0; i < hmc->target.size; ++i)
        z->q[i] += scale * dot(PAD_LANES(i + 1), hmc->factor + (size_t)i * (size_t)width, z->p);
}

static void leapfrog(struct hmc *hmc, double step_size, struct hmc_point *z) {
    kick(hmc, 0.5 * step_size, z);
    drift(hmc, step_size, z);
    z->log_density = hmc->target.log_density(hmc->target.self, z->q, z->gradient);
    kick(hmc, 0.5 * step_size, z);
}

/* INFINITY where there is no density */
static double weigh(const struct hmc *hmc, struct hmc_point *z) {
    const double h = 0.5 * dot(hmc->width, z->p, z->p) - z->log_density;
    return z->energy = isnan(h) ? INFINITY : h;
}

static void copy_position(const struct hmc *hmc, struct hmc_point *to,
                          const struct hmc_point *from) {
    copy(hmc->width, to->q, from->q);
    copy(hmc->width, to->gradient, from->gradient);
    to->log_density = from->log_density;
    to->energy = from->energy;
}

static void copy_point(const struct hmc *hmc, struct hmc_point *to, const struct hmc_point *from) {
    copy_position(hmc, to, from);
    copy(hmc->width, to->p, from->p);
}

/* the stored position with a fresh momentum */
static void begin(struct hmc *hmc, struct rng *rng, struct hmc_point *z) {
    copy(hmc->width, z->q, hmc->q);
    copy(hmc->width, z->gradient, hmc->gradient);
    z->log_density = hmc->log_density;
    rng_fill_normal(rng, hmc->target.size, z->p);
    /* an infinite gradient has left NaN in the padding */
    for (int i = hmc->target.size; i < hmc->width; ++i) z->p[i] = 0;
}

static void keep(struct hmc *hmc, const struct hmc_point *z) {
    copy(hmc->width, hmc->q, z->q);
    copy(hmc->width, hmc->gradient, z->gradient);
    hmc->log_density = z->log_density;
}

/* ---- NUTS ------------------------------------------------------------------------- */

/* Extends the trajectory from `now` by 2^depth steps in the direction of `step_size`.
 * Gives momenta at the subtree's two ends and their sum over it, a draw from it, and
 * the log of its weight. Returns 0 if it turns back somewhere or diverges. */
static int build(struct hmc *hmc, int depth, double step_size, struct hmc_point *drawn,
                 double *first, double *last, double *sum, double *log_weight) {
    const int width = hmc->width;
    if (depth == 0) {
        struct hmc_point *z = &hmc->now;
        leapfrog(hmc, step_size, z);
        ++hmc->told->leapfrogs;
        const double gain = hmc->start_energy - weigh(hmc, z);
        if (-gain > MOST_ENERGY_ERROR) hmc->told->divergent = 1;
        *log_weight = gain;
        hmc->metropolis += gain > 0 ? 1 : exp(gain);
        copy_position(hmc, drawn, z);
        copy(width, first, z->p);
        copy(width, last, z->p);
        copy(width, sum, z->p);
        return !hmc->told->divergent;
    }
    struct hmc_level *level = hmc->level + depth - 1;
    double log_first, log_last;
    if (!build(hmc, depth - 1, step_size, drawn, first, level->first_end, level->first_sum,
               &log_first))
        return 0;
    if (!build(hmc, depth - 1, step_size, &level->last, level->last_begin, last, level->last_sum,
               &log_last))
        return 0;
    *log_weight = log_sum(log_first, log_last);
    if (rng_uniform(hmc->rng) < exp(log_last - *log_weight))
        copy_position(hmc, drawn, &level->last);
    add(width, level->first_sum, level->last_sum, sum);
    return persists(width, first, last, level->first_sum, level->last_sum) &&
           persists(width, first, level->last_begin, level->first_sum, level->last_begin) &&
           persists(width, level->first_end, last, level->last_sum, level->first_end);
}

void hmc_nuts(struct hmc *hmc, struct rng *rng, struct hmc_step *told) {
    const int width = hmc->width;
    hmc->rng = rng;
    hmc->told = told;
    memset(told, 0, sizeof *told);
    begin(hmc, rng, &hmc->now);
    hmc->start_energy = weigh(hmc, &hmc->now);
    hmc->metropolis = 0;
    copy_point(hmc, &hmc->forward, &hmc->now);
    copy_point(hmc, &hmc->backward, &hmc->now);
    copy_point(hmc, &hmc->drawn, &hmc->now);
    copy(width, hmc->total, hmc->now.p);
    double log_weight = 0; /* of the trajectory, with the start's as unit */

    while (told->depth < HMC_MOST_DEPTH) {
        /* the ends of the old part: `inner` meets the new part, `outer` does not */
        const int forwards = rng_uniform(rng) > 0.5;
        struct hmc_point *inner = forwards ? &hmc->forward : &hmc->backward;
        const struct hmc_point *outer = forwards ? &hmc->backward : &hmc->forward;
        const double step_size = forwards ? *hmc->step_size : -*hmc->step_size;
        double log_added;
        copy_point(hmc, &hmc->now, inner);
        if (!build(hmc, told->depth, step_size, &hmc->proposed, hmc->begin, hmc->end, hmc->sum,
                   &log_added))
            break;
        ++told->depth;
        if (log_added > log_weight || rng_uniform(rng) < exp(log_added - log_weight)) {
            const struct hmc_point old = hmc->drawn;
            hmc->drawn = hmc->proposed;
            hmc->proposed = old;
        }
        log_weight = log_sum(log_weight, log_added);
        const int goes_on = persists(width, outer->p, hmc->end, hmc->total, hmc->sum) &&
                            persists(width, outer->p, hmc->begin, hmc->total, hmc->begin) &&
                            persists(width, inner->p, hmc->end, hmc->sum, inner->p);
        copy_point(hmc, inner, &hmc->now);
        if (!goes_on) break;
        add_multiple(width, 1, hmc->sum, hmc->total);
    }
    told->accept = hmc->metropolis / told->leapfrogs;
    keep(hmc, &hmc->drawn);
    told->energy = hmc->drawn.energy;
}

/* ---- trajectories of a given length -------------------------------------------------- */

void hmc_fixed(struct hmc *hmc, double length, int most, struct rng *rng, struct hmc_step *told) {
    struct hmc_point *z = &hmc->now;
    memset(told, 0, sizeof *told);
    const double steps = ceil(length * (0.5 + rng_uniform(rng)) / *hmc->step_size);
    const int count = steps < most ? (int)steps : most;
    begin(hmc, rng, z);
    const double before = weigh(hmc, z);
    double gain = 0;
    while (told->leapfrogs < count && !told->divergent) {
        leapfrog(hmc, *hmc->step_size, z);
        ++told->leapfrogs;
        gain = before - weigh(hmc, z);
        told->divergent = -gain > MOST_ENERGY_ERROR;
    }
    told->accept = gain > 0 ? 1 : exp(gain);
    /* a trajectory that was cut short is refused: the way back would not stop there */
    const int accepted = !told->divergent && -gain < rng_exponential(rng);
    if (accepted) keep(hmc, z);
    told->energy = accepted ? z->energy : before;
}

void hmc_close(struct hmc *hmc, struct rng *rng, struct hmc_step *told) {
    const double step_size = *hmc->step_size;
    *hmc->step_size = step_size / 8;
    hmc_fixed(hmc, step_size / 4, 3, rng, told);
    *hmc->step_size = step_size;
}

/* ---- adaptation ------------------------------------------------------------------------ */

void hmc_find_step(struct hmc *hmc, struct rng *rng) {
    enum { MOST_TRIES = 200 };
    double *step_size = hmc->step_size;
    int direction = 0;
    for (int k = 0; k < MOST_TRIES; ++k) {
        begin(hmc, rng, &hmc->now);
        const double before = weigh(hmc, &hmc->now);
        leapfrog(hmc, *step_size, &hmc->now);
        const int larger = before - weigh(hmc, &hmc->now) > log(hmc->target_accept) ? 1 : -1;
        if (direction == 0) direction = larger;
        if (larger != direction) break;
        *step_size *= direction > 0 ? 2 : 0.5;
    }
    memset(hmc->dual, 0, DUALS * sizeof(double));
    hmc->dual[DUAL_CENTRE] = log(10 * *step_size);
}

static void learn_step(struct hmc *hmc, double accept) {
    double *dual = hmc->dual;
    const double count = dual[DUAL_COUNT] += 1;
    const double weight = 1 / (count + DELAY);
    dual[DUAL_ERROR] = (1 - weight) * dual[DUAL_ERROR] + weight * (hmc->target_accept - accept);
    const double log_step = dual[DUAL_CENTRE] - dual[DUAL_ERROR] * sqrt(count) / GAMMA;
    const double share = pow(count, -KAPPA);
    dual[DUAL_AVERAGE] = (1 - share) * dual[DUAL_AVERAGE] + share * log_step;
    *hmc->step_size = exp(log_step);
}

/* Welford's running mean and scatter; or about where the transition began */
static void learn_metric(struct hmc *hmc) {
    const int size = hmc->target.size;
    const double count = *hmc->window.count += 1;
    double *away = hmc->scratch;
    for (int i = 0; i < size; ++i) {
        away[i] = hmc->q[i] - (hmc->begun ? hmc->begun[i] : hmc->window.mean[i]);
        if (!hmc->begun) hmc->window.mean[i] += away[i] / count;
    }
    const double shrink = hmc->begun ? 0.5 : (count - 1) / count;
    for (int i = 0; i < size; ++i) {
        if (hmc->metric == HMC_DIAGONAL) {
            hmc->window.scatter[i] += shrink * away[i] * away[i];
            continue;
        }
        double *row = hmc->window.scatter + (size_t)i * (size_t)hmc->width;
        for (int j = 0; j <= i; ++j) row[j] += shrink * away[i] * away[j];
    }
}

/* the factor from the window's scatter, shrunk */
static void set_factor(struct hmc *hmc) {
    const int size = hmc->target.size, width = hmc->width;
    const double count = *hmc->window.count, weight = count / (count + 5) / (count - 1);
    const double pseudo = 1e-3 * 5 / (count + 5);
    if (count < 2) return;
    if (hmc->metric == HMC_DIAGONAL) {
        for (int i = 0; i < size; ++i)
            hmc->factor[i] =
                sqrt(weight * hmc->window.scatter[i] + pseudo * hmc->unit[i] * hmc->unit[i]);
        return;
    }
    double *a = hmc->scratch;
    for (int i = 0; i < size; ++i) {
        const double *row = hmc->window.scatter + (size_t)i * (size_t)width;
        for (int j = 0; j <= i; ++j) a[(size_t)i * (size_t)size + (size_t)j] = weight * row[j];
        a[(size_t)i * (size_t)size + (size_t)i] += pseudo * hmc->unit[i] * hmc->unit[i];
    }
    use_covariance(hmc, a);
}

enum hmc_window hmc_window(int iteration, int warmup) {
    if (warmup < LEAST_WARMUP) return HMC_OUTSIDE;
    const int whole = START + FIRST_WINDOW + END <= warmup;
    const int start = whole ? START : (int)(0.15 * warmup);
    const int end = warmup - (whole ? END : (int)(0.1 * warmup));
    if (iteration < start || iteration >= end) return HMC_OUTSIDE;
    int length = whole ? FIRST_WINDOW : end - start, from = start;
    for (;;) {
        /* a window takes the rest if the one after it would not fit */
        const int next = from + length;
        const int to = next + 2 * length > end ? end : next;
        if (iteration < to) return iteration == to - 1 ? HMC_LAST : HMC_INSIDE;
        from = to;
        length *= 2;
    }
}

double hmc_length(const struct hmc *hmc) { return *hmc->length; }

double hmc_deviation(const struct hmc *hmc, int j) {
    if (hmc->metric == HMC_DIAGONAL) return hmc->factor[j];
    const double *row = hmc->factor + (size_t)j * (size_t)hmc->width;
    return sqrt(dot(hmc->width, row, row));
}

void hmc_count(double *counter, const struct hmc_step *told) {
    counter[HMC_TRANSITIONS] += 1;
    counter[HMC_ACCEPTANCE] += told->accept;
    counter[HMC_LEAPFROGS] += told->leapfrogs;
    counter[HMC_DIVERGENT] += told->divergent;
    counter[HMC_DEEPEST] += told->depth == HMC_MOST_DEPTH;
}

void hmc_learn(struct hmc *hmc, int iteration, int warmup, const struct hmc_step *told,
               struct rng *rng) {
    if (iteration >= warmup) return;
    if (told && told->leapfrogs > 0) { /* else it could not begin */
        *hmc->learned += 1;
        *hmc->length += (told->leapfrogs * *hmc->step_size - *hmc->length) / *hmc->learned;
        learn_step(hmc, told->accept);
    }
    const enum hmc_window window = hmc_window(iteration, warmup);
    if (window != HMC_OUTSIDE) {
        if (informed(hmc))
            learn_information(hmc);
        else
            learn_metric(hmc);
    }
    if (window == HMC_LAST) {
        if (informed(hmc))
            invert_information(hmc);
        else
            set_factor(hmc);
        forget_window(hmc);
        hmc_find_step(hmc, rng);
        *hmc->learned = *hmc->length = 0;
    }
    if (iteration == warmup - 1 && hmc->dual[DUAL_COUNT] > 0)
        *hmc->step_size = exp(hmc->dual[DUAL_AVERAGE]);
}
