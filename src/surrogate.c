/* Surrogate transitions: exact moves of all records at once, for the price of two passes
 * over them and some evaluations of a function of their totals (MATH part 11; Liu 2001;
 * Christen & Fox 2005).
 *
 * The free columns W of the records are normal given the fixed ones, D. Write
 *
 *   W = D B + U F',   U'U = I,  D'U = 0,
 *
 * B the least-squares coefficients on D, F the lower Cholesky factor of the scatter. Given
 * D the shape U is uniform, whatever the parameters. So (B, F) given U and D has the
 * density of the totals with the parameters integrated out (totals_density.c) with
 * eta(z | s(B, F, U)) as its last factor: s the released totals of the records as the
 * bounds clamp them.
 *
 * s costs a pass over the records. Were they clamped as normal records are expected to be
 * it would be A c(B, F), a function of the complete-data statistic (clamped.c). The
 * surrogate takes
 *
 *   A c(B, F) + delta(U),   delta(U) = s(B_0, F_0, U) - A c(B_0, F_0),
 *
 * for it, with a reference (B_0, F_0) that stays once warmup is over. A trajectory of
 * Hamiltonian Monte Carlo is reversible for the surrogate's density; its end (B', F') is
 * accepted with
 *
 *   min(1, [eta(z | s') / eta(z | A c' + delta)] / [eta(z | s) / eta(z | A c + delta)]),
 *
 * which makes the move exact. Parameters that do not integrate out are coordinates too.
 *
 * Where bounds bind so much that the ends of long trajectories are refused, they follow the
 * exact density instead: clamping is continuous, its gradient two passes over the records
 * for each step. Their ends are then always accepted.
 *
 * Learned in warmup: step size, metric and the length of a trajectory, by NUTS (hmc.c), which
 * is not reversible and ends with warmup; the reference, the mean of the coordinates over the
 * last window of the metric; and by a trial after each window, which share of that length a
 * surrogate's trajectory may have until it is refused, and which of the two densities to
 * follow, by the squared distance that is accepted per counted work.
 *
 * Nothing here sees a record: the caller applies the map and sums up. Cost: the density's
 * for each leapfrog step. No allocation but in surrogate_create().
 */
#include "surrogate.h"

/* Length of trajectories: about a quarter of a turn before NUTS told any, and at least; at
 * most; the least share of a length that is worth two passes; the share that is enough where
 * each step takes passes. */
static const double QUARTER = 1.5, LONGEST = 15, LEAST_SHARE = 0.02, EXACT_SHARE = 0.5;

/* Acceptance probability that the share aims at. */
static const double TARGET = 0.75;

/* What the exact density's trajectories are worth, and the surrogate's: refused ends come one
 * after the other, where the reference is far, and the more so the less of a length goes
 * well. How fast running means forget. */
static const double EXACT_WORTH = 0.8, SURROGATE_WORTH = 0.3, FORGET = 0.05;

/* Iterations that a surrogate with a new reference is tried for, and how many transitions of
 * NUTS the length of the last window is worth. */
enum { TRIAL = 25, KNOWN = 5 };

/* So many coordinates have a dense metric: where noise is small they are strongly correlated,
 * and warmup is long enough to learn how (bench/defaults.R). */
enum { FEW = 20 };

enum { MOST_STEPS = 1 << HMC_MOST_DEPTH, SCALARS = 8 };

static double log_density(void *self, const double *q, double *gradient);

static double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static enum hmc_metric metric(const struct surrogate *s) {
    return s->density.size <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

/* ---- set-up ---------------------------------------------------------------------- */

int surrogate_create(struct surrogate *s, const struct model *model, double n, int d,
                     const int *column, int k, const int *fixed, int riders, const int *rider) {
    if (!model->class->marginal || n < k + d + 1 || (riders > 0 && model->tied == 0)) return 0;
    struct totals_density *density = &s->density;
    totals_density_create(density, model, n, d, column, k, fixed);
    if (riders > 0) totals_density_carry(density, riders, rider);
    const size_t size = (size_t)density->size, width = (size_t)density->totals.width;
    s->map = doubles((size_t)d * ((size_t)model->columns + 1));
    s->here = doubles(size);
    s->there = doubles(size);
    s->offset = doubles((size_t)density->components);
    s->mean = doubles((size_t)k * width);
    s->coefficient = doubles((size_t)k * width);
    s->inverse = doubles((size_t)d * width);
    s->gradient_map = doubles((size_t)d * ((size_t)model->columns + 1));
    s->shift = doubles(2 * (size_t)k + (size_t)d);
    s->work = doubles(hmc_workspace(density->size, metric(s)));
    density->released = s->offset;
    /* what is expected of clamped products with riders is not known */
    if (riders == 0) totals_density_clamp(density, s->lower, s->upper);
    return 1;
}

size_t surrogate_stored(const struct surrogate *s) {
    return SCALARS + 2 * (size_t)s->density.size + hmc_stored(s->density.size, metric(s));
}

void surrogate_attach(struct surrogate *s, double *store) {
    s->referred = store;
    s->share = store + 1;
    s->followed = store + 2;
    s->exact = store + 3;
    s->tried = store + 4;
    s->seen = store + 5;
    s->length = store + 6;
    s->measured = store + 7;
    s->reference = store + SCALARS;
    s->mean_seen = s->reference + s->density.size;
    const struct hmc_target target = {s->density.size, s, log_density};
    hmc_attach(&s->hmc, &target, metric(s), s->mean_seen + s->density.size, s->work);
}

/* ---- maps ---------------------------------------------------------------------------- */

/* inverse of a lower triangle */
static void invert(int d, int width, const double *f, double *out) {
    for (int j = 0; j < d; ++j)
        for (int i = j; i < d; ++i) {
            double sum = i == j;
            for (int l = j; l < i; ++l) sum -= f[i * width + l] * out[l * width + j];
            out[i * width + j] = sum / f[i * width + i];
        }
}

/* The map from `here` to what totals_expand() saw last. In columns less their centres new
 * ones are A w + C'(1, dummies), A = F' F^-1, and with D'D = R R' and M = R'B it is
 * R'C = M' - M A'. */
static void set_map(struct surrogate *s) {
    const struct totals *t = &s->density.totals;
    const int d = t->d, k = t->k, width = t->width, stride = t->columns + 1;
    double *shift = s->shift;
    for (int i = 0; i < d; ++i) {
        double *row = s->map + (size_t)i * (size_t)stride;
        memset(row, 0, (size_t)stride * sizeof(double));
        for (int b = 0; b < k; ++b) shift[b] = t->mean[b * width + i];
        for (int j = 0; j <= i; ++j) {
            double sum = 0;
            for (int l = j; l <= i; ++l)
                sum += t->factor[i * width + l] * s->inverse[l * width + j];
            row[1 + t->column[j]] = sum;
            for (int b = 0; b < k; ++b) shift[b] -= sum * s->mean[b * width + j];
        }
        for (int b = k - 1; b >= 0; --b) {
            for (int e = b + 1; e < k; ++e) shift[b] -= t->design[e * k + b] * shift[e];
            shift[b] /= t->design[b * k + b];
            if (b > 0) row[1 + t->fixed[b - 1]] = shift[b];
        }
        row[0] = shift[0] + s->centre[t->column[i]];
        for (int v = 0; v < t->columns; ++v) row[0] -= row[1 + v] * s->centre[v];
    }
}

/* ---- the exact density ------------------------------------------------------------------ */

/* Adds to the gradient in the coordinates what a gradient in the map gives: W' = D B' + U F'',
 * so that the slopes in B' are D' dW, those in F' dW'U = dW'(W - D B) F^-1'. */
static void pull_map(const struct surrogate *s, double *gradient) {
    const struct totals *t = &s->density.totals;
    const int d = t->d, k = t->k, width = t->width, stride = t->columns + 1;
    double *along = s->shift;
    for (int i = 0; i < d; ++i) {
        const double *row = s->gradient_map + (size_t)i * (size_t)stride;
        /* R'B = M: a lower triangle to solve */
        for (int b = 0; b < k; ++b) {
            const int v = b > 0 ? t->fixed[b - 1] : 0;
            double sum = b > 0 ? row[1 + v] - s->centre[v] * row[0] : row[0];
            along[k + b] = sum;
            for (int e = 0; e < b; ++e) sum -= t->design[b * k + e] * along[e];
            along[b] = sum / t->design[b * k + b];
            gradient[b * d + i] += along[b];
        }
        for (int j = 0; j < d; ++j) {
            const int v = t->column[j];
            double sum = row[1 + v] - s->centre[v] * row[0];
            for (int b = 0; b < k; ++b) sum -= along[k + b] * s->coefficient[b * width + j];
            along[2 * k + j] = sum;
        }
        double *out = gradient + k * d + i * (i + 1) / 2;
        const double *factor = t->factor + (size_t)i * (size_t)width;
        for (int l = 0; l <= i; ++l) {
            double sum = 0;
            for (int j = 0; j <= l; ++j) sum += along[2 * k + j] * s->inverse[l * width + j];
            if (l < i) out[l] += factor[i] * sum;
            out[i] += factor[l] * sum;
        }
    }
}

static double log_density(void *self, const double *q, double *gradient) {
    struct surrogate *s = self;
    struct totals_density *density = &s->density;
    if (!surrogate_is_exact(s)) return totals_log_density(density, q, gradient);
    const double marginal = totals_density_expand(density, q, gradient);
    if (!(marginal > -INFINITY)) return -INFINITY;
    set_map(s);
    s->records.sum(s->records.self, density->seen);
    memset(density->gradient_seen, 0, (size_t)density->model->complete * sizeof(double));
    totals_density_noise(density, density->gradient_seen);
    s->records.pull(s->records.self, density->gradient_seen, s->gradient_map);
    const double volume = totals_pull(&density->totals, q, density->gradient_c, gradient);
    pull_map(s, gradient);
    return marginal + volume - density->temper * density->energy;
}

/* ---- a move ---------------------------------------------------------------------------- */

static void copy(const struct surrogate *s, double *to, const double *from) {
    memcpy(to, from, (size_t)s->density.size * sizeof(double));
}

int surrogate_begin(struct surrogate *s, const double *c, const double *theta) {
    struct totals_density *density = &s->density;
    const struct totals *t = &density->totals;
    const struct model *model = density->model;
    memcpy(density->c, c, (size_t)model->complete * sizeof(double));
    memcpy(density->seen, c, (size_t)model->complete * sizeof(double));
    memcpy(density->theta, theta, (size_t)model->parameters * sizeof(double));
    if (totals_design(&density->totals, c) != PLUGIN_OK ||
        totals_density_coordinates(density, c, theta, s->here) != PLUGIN_OK)
        return 0;
    totals_density_read(density, c, theta);
    totals_expand(&density->totals, s->here, density->c);
    memcpy(s->mean, t->mean, (size_t)t->k * (size_t)t->width * sizeof(double));
    invert(t->d, t->width, t->factor, s->inverse);
    for (int i = 0; i < t->d; ++i) /* R'B = M */
        for (int b = t->k - 1; b >= 0; --b) {
            double sum = s->mean[b * t->width + i];
            for (int e = b + 1; e < t->k; ++e)
                sum -= t->design[e * t->k + b] * s->coefficient[e * t->width + i];
            s->coefficient[b * t->width + i] = sum / t->design[b * t->k + b];
        }
    return 1;
}

static void begin_trial(struct surrogate *s) {
    *s->exact = *s->tried = *s->seen = *s->measured = 0;
    *s->share = 1;
    *s->followed = TARGET;
}

/* Hamiltonian Monte Carlo anew from `here`. Returns whether there is a density. */
static int begin_search(struct surrogate *s, struct rng *rng) {
    totals_density_units(&s->density, s->here, s->there, s->work);
    memset(s->work, 0, hmc_workspace(s->density.size, metric(s)) * sizeof(double));
    hmc_start(&s->hmc, s->here, s->there);
    const int possible = hmc_refresh(&s->hmc);
    if (possible) hmc_find_step(&s->hmc, rng);
    return possible;
}

int surrogate_search(struct surrogate *s, int iterations, double temper, struct rng *rng) {
    struct totals_density *density = &s->density;
    memcpy(s->offset, s->released, (size_t)density->components * sizeof(double));
    begin_trial(s);
    *s->referred = 0;
    *s->length = QUARTER;
    density->temper = temper;
    /* Without the bounds: far outside them they leave no slope to follow. */
    struct clamped *const clamped = density->clamped;
    double *const seen = density->seen;
    density->clamped = NULL;
    density->seen = density->c;
    /* units are those of where they are measured: far from the release, too wide */
    int possible = begin_search(s, rng);
    for (int round = 0; round < 2 && iterations > 0 && possible; ++round) {
        for (int k = 0; k < iterations / 2; ++k) {
            hmc_nuts(&s->hmc, rng, &s->told);
            hmc_learn(&s->hmc, k, iterations / 2, &s->told, rng);
        }
        *s->length = fmin(fmax(hmc_length(&s->hmc), QUARTER), LONGEST);
        copy(s, s->here, s->hmc.q);
        possible = begin_search(s, rng);
    }
    density->clamped = clamped;
    density->seen = seen;
    if (!possible) return 0;
    copy(s, s->there, s->hmc.q);
    totals_density_place(density, s->there);
    set_map(s);
    return 1;
}

int surrogate_refer(struct surrogate *s) {
    const int referred = *s->referred != 0;
    if (!referred) copy(s, s->reference, s->here);
    *s->referred = 1;
    totals_expand(&s->density.totals, s->reference, s->density.c);
    totals_density_expect(&s->density);
    set_map(s);
    return referred;
}

void surrogate_correct(struct surrogate *s, const double *total) {
    const struct totals_density *density = &s->density;
    for (int k = 0; k < density->components; ++k) {
        const double expected = component_value(density->component + k, density->seen);
        s->offset[k] = s->released[k] - (total[k] - expected);
    }
}

double surrogate_density(struct surrogate *s, int exact, double *q, double *gradient) {
    if (isnan(q[0])) copy(s, q, s->here);
    memcpy(s->offset, s->released, (size_t)s->density.components * sizeof(double));
    *s->exact = exact;
    s->density.rounded = 0;
    return log_density(s, q, gradient);
}

/* Is the length to be learned, in warmup? Where each step takes passes that is too dear. */
static int measures(const struct surrogate *s) {
    return *s->tried >= TRIAL && !surrogate_is_exact(s) && *s->share == 1;
}

int surrogate_propose(struct surrogate *s, int warmup, struct rng *rng, double *gain) {
    if (surrogate_is_exact(s))
        memcpy(s->offset, s->released, (size_t)s->density.components * sizeof(double));
    copy(s, s->hmc.q, s->here);
    s->density.rounded = *s->hmc.step_size;
    s->told = (struct hmc_step){0};
    if (!hmc_refresh(&s->hmc)) return 0;
    const double before = s->density.energy;
    if (warmup && measures(s))
        hmc_nuts(&s->hmc, rng, &s->told);
    else
        hmc_fixed(&s->hmc, *s->share * *s->length, MOST_STEPS, rng, &s->told);
    copy(s, s->there, s->hmc.q);
    if (memcmp(s->here, s->there, (size_t)s->density.size * sizeof(double)) == 0) return 0;
    (void)hmc_refresh(&s->hmc); /* where it stands now may not be where it looked last */
    *gain = before - s->density.energy;
    set_map(s);
    return 1;
}

void surrogate_take(const struct surrogate *s, double *c, double *theta) {
    const struct model *model = s->density.model;
    memcpy(c, s->density.c, (size_t)model->complete * sizeof(double));
    for (int j = 0; j < model->keeps; ++j)
        theta[model->kept[j]] = s->there[s->density.totals.size + j];
    memcpy(theta, s->density.theta, (size_t)model->tied * sizeof(double));
}

/* Accepted squared distance per work: three passes a surrogate's trajectory, and what its
 * leapfrog steps cost; the records' work for each step of the exact density's. */
static void choose_density(struct surrogate *s) {
    if (!s->records.sum) return;
    const double steps = *s->length / *s->hmc.step_size, share = *s->share;
    const double surrogate_work = 3 * s->records.pass_work + share * steps + 1;
    const double exact_work =
        (1 + s->records.work) * (EXACT_SHARE * steps + 1) + s->records.pass_work;
    const double worth = SURROGATE_WORTH * share * *s->followed * share * share;
    *s->exact = worth / surrogate_work < EXACT_WORTH / exact_work;
    if (surrogate_is_exact(s)) *s->share = EXACT_SHARE;
}

void surrogate_learn(struct surrogate *s, int iteration, int warmup, int moved, double probability,
                     const double *c, const double *theta, struct rng *rng) {
    if (!surrogate_begin(s, c, theta)) return;
    copy(s, s->hmc.q, s->here);
    if (!hmc_refresh(&s->hmc)) return;
    if (measures(s)) {
        *s->measured += 1;
        const double told = s->told.leapfrogs * *s->hmc.step_size;
        const double length = fmin(fmax(told, QUARTER), LONGEST);
        *s->length += (length - *s->length) / (KNOWN + *s->measured);
    }
    hmc_learn(&s->hmc, iteration, warmup, &s->told, rng);
    *s->tried += 1;
    if (moved && !surrogate_is_exact(s)) {
        const double pace = 2 / (5 + sqrt(*s->tried));
        *s->share *= exp(pace * (probability - TARGET));
        *s->share = fmin(fmax(*s->share, LEAST_SHARE), 1);
        *s->followed += fmax(FORGET, 1 / *s->tried) * (probability - *s->followed);
    }
    if (*s->tried == TRIAL || (*s->tried < TRIAL && iteration + 1 == warmup)) choose_density(s);
    const enum hmc_window window = hmc_window(iteration, warmup);
    if (window == HMC_OUTSIDE) return;
    *s->seen += 1;
    for (int j = 0; j < s->density.size; ++j)
        s->mean_seen[j] += (s->hmc.q[j] - s->mean_seen[j]) / *s->seen;
    if (window != HMC_LAST) return;
    copy(s, s->reference, s->mean_seen);
    begin_trial(s);
}
