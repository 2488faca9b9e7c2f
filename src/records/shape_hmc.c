/* Surrogate transitions: exact moves of all records at once, at the cost of two passes over them
 * and some evaluations of a function of their totals (vignette "Algorithms", all records at once;
 * Liu 2001; Christen & Fox 2005).
 *
 * The free columns W of the records are normal given the fixed ones, D. Write
 *
 *   W = D B + U F',   U'U = I,  D'U = 0,
 *
 * B the least-squares coefficients on D, F the lower Cholesky factor of the scatter. Given
 * D the shape U is uniform, whatever the parameters. So (B, F) given U and D has the
 * density of the totals with the parameters integrated out (totals/density.c) with
 * eta(z | s(B, F, U)) as its last factor: s the released totals of the records as the
 * bounds clamp them.
 *
 * s costs a pass over the records. Were they clamped as normal records are expected to be
 * it would be A c(B, F), a function of the complete-data statistic (totals/clamped_moments.c). The
 * surrogate takes
 *
 *   A c(B, F) + delta(U) + T ((B, F) - (B_0, F_0)),   delta(U) = s(B_0, F_0, U) - A c(B_0, F_0),
 *
 * for it, with a reference (B_0, F_0) and slopes T (mcmc/online_least_squares.c) that stay once
 * warmup is over. A trajectory of Hamiltonian Monte Carlo is reversible for the surrogate's
 * density; its end (B', F') is accepted with
 *
 *   min(1, [eta(z | s') / eta(z | surrogate')] / [eta(z | s) / eta(z | surrogate)]),
 *
 * which makes the move exact. Parameters that do not integrate out are also coordinates.
 *
 * If clamping is so strong that the ends of long trajectories are rejected, they follow the exact
 * density instead: clamping is continuous, its gradient two passes over the records for each step.
 * Their ends are then always accepted.
 *
 * Learned in warmup, at the end of each of its windows: the reference, the mean of the coordinates
 * over the window; the slopes, from the trajectories since then; step size, metric and the length
 * of a trajectory, by a run of NUTS (mcmc/hmc.c) on the surrogate's density, the records staying
 * as they are. That density, U given, may be much narrower than the posterior: a metric learned
 * from the chain's own draws takes tiny steps. And, by a trial, which share of that length a
 * trajectory may have until it is refused, and which of the two densities to follow, by the
 * squared distance moved per counted work.
 *
 * This file uses no records: the caller applies the map and computes the sums. Cost: the density's
 * for each leapfrog step. No allocation except in surrogate_create().
 */
#include "records/shape_hmc.h"
#include "contract/model_marginal.h"
#include "contract/model_predictor.h"

/* Length of trajectories: at least, about a quarter of a turn, and at most; as a share of NUTS's,
 * which go on until they turn back; the least share of it that is worth two passes. */
static const double QUARTER = 1.5, LONGEST = 15, OF_NUTS = 0.5, LEAST_SHARE = 0.02;

/* Acceptance probability that the share aims at; with a smaller share than the second number,
 * slopes are worth their work, and another run of NUTS after the first window. */
static const double TARGET = 0.75, POOR = 0.5;

/* What bounds may change the noise's energy by, in the mean, where the surrogate does without them:
 * a third of its work. Where they count in the tails alone, records that went there would not come
 * back. */
static const double NEGLIGIBLE = 0.1;

/* What a trajectory of full length is worth, see choose_density(). */
static const double WORTH = 1.6;

/* How much more work the exact density of one column may cost to be followed in any case: records
 * may go where a surrogate is poor, and seldom come back. */
static const double CHEAP = 2;

/* How fast running means forget. */
static const double FORGET = 0.05;

/* With more steps than that a trajectory of the exact density does not get shorter ones. */
static const double MANY_STEPS = 32;

/* Iterations that a surrogate with a new reference is tried for. */
enum { TRIAL = 25 };

/* Transitions of NUTS that learn step size, metric and length for a reference: fewer leave the
 * metric too few draws in its last window (mcmc/hmc.c). More where is_narrow(). */
enum { TRAINING = 250, LONG_TRAINING = 500 };

/* Iterations of a search for a start at each exponent of the noise but the last. */
enum { STAGE = 50 };

/* Terms of the series in totals/clamped_moments.c: what they leave out the acceptance step
 * corrects. */
enum { TERMS = 3 };

/* So many coordinates have a dense metric: with more, training is too short to learn one, or, with
 * little noise, a step costs too much. */
enum { FEW = 20, SEVERAL = 60 };

/* Noise relative to the scatter below which the density is narrow, and below which a dense metric
 * of several coordinates is worth its cost. */
static const double NARROW = 10, VERY_NARROW = 1.5;

enum { MOST_STEPS = 1 << HMC_MOST_DEPTH, SCALARS = 10 };

static double log_density(void *self, const double *q, double *gradient);

/* Where the noise is small relative to the scatter, the density of rows of the inverse factor is
 * narrow and bent, and steps would be short: rows of F itself, and longer training. Few coordinates
 * do without (bench/results.md, Regressions of real size). */
static int is_narrow(const struct surrogate *s) {
    return s->scatter_noise < NARROW && s->density.size > FEW;
}

static enum hmc_metric metric(const struct surrogate *s) {
    return s->density.size <= (s->scatter_noise < VERY_NARROW ? SEVERAL : FEW) ? HMC_DENSE
                                                                               : HMC_DIAGONAL;
}

static int has_tilt(const struct surrogate *s) { return s->density.size <= TILT_MOST; }

/* ---- set-up ---------------------------------------------------------------------- */

int surrogate_create(struct surrogate *s, const struct model *model, double n, int d,
                     const int *column, int k, const int *fixed, int riders, const int *rider) {
    if (!model->marginal || n < k + d + 1 || (riders > 0 && !model->predictor)) return 0;
    struct totals_density *density = &s->density;
    totals_density_create(density, model, n, d, column, k, fixed);
    /* with a response whose coefficients are tied, rows of F itself mix better */
    if (!model->predictor && !is_narrow(s)) totals_invert_rows(&density->totals);
    if (riders > 0) totals_density_carry(density, riders, rider);
    const size_t size = (size_t)density->size, width = (size_t)density->totals.width;
    DOUBLES((size_t)d * ((size_t)model_moments(model) + 1), &s->map, &s->work.gradient_map);
    DOUBLES(size, &s->here, &s->home, &s->there);
    s->work.offset = doubles((size_t)density->noise.size);
    DOUBLES((size_t)k * width, &s->work.mean, &s->work.coefficient);
    s->work.inverse = doubles((size_t)d * width);
    s->work.shift = doubles(2 * (size_t)k + (size_t)d);
    s->work.hmc = doubles(hmc_workspace(density->size, metric(s)));
    density->noise.released = s->work.offset;
    if (has_tilt(s)) {
        s->work.tilt = doubles(tilt_workspace(density->size));
        DOUBLES((size_t)density->noise.size, &s->work.error, &density->tilted, &density->slope);
    }
    /* what is expected of clamped products with riders, or with what is no dummy, is not known */
    if (riders == 0 && !model->marginal->regressors) {
        totals_density_clamp(density, s->lower, s->upper);
        density->clamped->most = TERMS;
    }
    return 1;
}

void surrogate_vary(struct surrogate *s) { totals_density_vary(&s->density); }

int surrogate_resize(struct surrogate *s, double n) {
    const struct totals *t = &s->density.totals;
    if (n < t->k + t->d + 1) return 0;
    totals_density_resize(&s->density, n);
    return 1;
}

size_t surrogate_stored(const struct surrogate *s) {
    const int size = s->density.size;
    return SCALARS + 4 * (size_t)size + hmc_stored(size, metric(s)) +
           (has_tilt(s) ? tilt_stored(size, s->density.noise.size) : 0);
}

static void use_slopes(struct surrogate *s) {
    s->density.tilt = *s->tilt.learned != 0 ? &s->tilt : NULL;
    s->density.tilt_at = s->reference;
}

void surrogate_attach(struct surrogate *s, double *store) {
    const int size = s->density.size;
    s->referred = store;
    s->share = store + 1;
    s->followed = store + 2;
    s->exact = store + 3;
    s->tried = store + 4;
    s->window.count = store + 5;
    s->length = store + 6;
    s->trained = store + 7;
    s->unbounded = store + 8;
    s->density.unbounded = *s->unbounded != 0;
    s->window.bounds = store + 9;
    s->reference = store + SCALARS;
    s->window.mean = s->reference + size;
    s->sweep.from = s->window.mean + size;
    s->sweep.square = s->sweep.from + size;
    const struct hmc_target target = {size, s, log_density, NULL};
    hmc_attach(&s->hmc, &target, metric(s), s->sweep.square + size, s->work.hmc);
    if (!has_tilt(s)) return;
    tilt_attach(&s->tilt, size, s->density.noise.size,
                s->sweep.square + size + hmc_stored(size, metric(s)), s->work.tilt);
    use_slopes(s);
}

/* ---- maps ---------------------------------------------------------------------------- */

/* The map from `here` to what totals_expand() saw last. In columns less their centres new
 * ones are A w + C'(1, dummies), A = F' F^-1, and with D'D = R R' and M = R'B it is
 * R'C = M' - M A'. */
static void set_map(struct surrogate *s) {
    const struct totals *t = &s->density.totals;
    const int d = t->d, k = t->k, width = t->width, stride = t->columns + 1;
    double *shift = s->work.shift;
    for (int i = 0; i < d; ++i) {
        double *row = s->map + (size_t)i * (size_t)stride;
        memset(row, 0, (size_t)stride * sizeof(double));
        for (int b = 0; b < k; ++b) shift[b] = t->mean[b * width + i];
        for (int j = 0; j <= i; ++j) {
            double sum = 0;
            for (int l = j; l <= i; ++l)
                sum += t->factor[i * width + l] * s->work.inverse[l * width + j];
            row[1 + t->column[j]] = sum;
            for (int b = 0; b < k; ++b) shift[b] -= sum * s->work.mean[b * width + j];
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
static void pull_map(struct surrogate *s, double *gradient) {
    struct totals *t = &s->density.totals;
    const int d = t->d, k = t->k, width = t->width, stride = t->columns + 1;
    double *along = s->work.shift;
    for (int i = 0; i < d; ++i) {
        const double *row = s->work.gradient_map + (size_t)i * (size_t)stride;
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
            for (int b = 0; b < k; ++b) sum -= along[k + b] * s->work.coefficient[b * width + j];
            along[2 * k + j] = sum;
        }
        double *out = t->pull + (size_t)i * (size_t)width;
        for (int l = 0; l <= i; ++l) {
            out[l] = 0;
            for (int j = 0; j <= l; ++j)
                out[l] += along[2 * k + j] * s->work.inverse[l * width + j];
        }
        if (t->bend) totals_pull_bend(t, i, along[0], out);
    }
    totals_pull_factor(t, t->pull, gradient + k * d);
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
    totals_density_noise(density, density->noise.released, density->gradient_seen);
    s->records.pull(s->records.self, density->gradient_seen, s->work.gradient_map);
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
    if (totals_design(&density->totals, c) < t->k ||
        totals_density_coordinates(density, c, theta, s->here) != PLUGIN_OK)
        return 0;
    totals_density_read(density, c, theta);
    totals_expand(&density->totals, s->here, density->c);
    memcpy(s->work.mean, t->mean, (size_t)t->k * (size_t)t->width * sizeof(double));
    totals_invert(t->d, t->width, t->factor, s->work.inverse);
    totals_coefficients(t, s->work.coefficient);
    return 1;
}

/* The density follows from the release, with nothing added at a reference. */
static void see_release(struct surrogate *s) {
    memcpy(s->work.offset, s->released, (size_t)s->density.noise.size * sizeof(double));
}

static void begin_trial(struct surrogate *s) {
    *s->exact = *s->tried = *s->window.count = *s->trained = 0;
    *s->share = 1;
    *s->followed = TARGET;
}

/* A fresh run of NUTS from `here`, which moves on; where the noise's exponent is to rise, until its
 * energy is what the energy of a draw is. Returns whether there is a density. */
static int run(struct surrogate *s, int iterations, int cooling, struct rng *rng) {
    struct totals_density *density = &s->density;
    density->rounded = 0; /* the last trajectory's value is no part of the state */
    totals_density_units(density, s->here, s->there, s->work.hmc);
    memset(s->work.hmc, 0, hmc_workspace(density->size, metric(s)) * sizeof(double));
    hmc_start(&s->hmc, s->here, s->there);
    if (!hmc_refresh(&s->hmc)) return 0;
    hmc_find_step(&s->hmc, rng);
    const double most = density->noise.size / density->temper;
    for (int k = 0; k < iterations; ++k) {
        density->rounded = *s->hmc.step_size;
        (void)hmc_refresh(&s->hmc); /* where it looked last may be elsewhere */
        if (cooling && density->energy <= most) break;
        hmc_nuts(&s->hmc, rng, &s->told);
        hmc_learn(&s->hmc, k, iterations, &s->told, rng);
    }
    (void)hmc_refresh(&s->hmc);
    /* with a response there is but one trajectory a sweep */
    const double share = density->model->predictor ? 1 : OF_NUTS;
    *s->length = fmin(fmax(share * hmc_length(&s->hmc), QUARTER), LONGEST);
    copy(s, s->here, s->hmc.q);
    return 1;
}

int surrogate_search(struct surrogate *s, int iterations, double temper, struct rng *rng) {
    struct totals_density *density = &s->density;
    see_release(s);
    begin_trial(s);
    *s->referred = 0;
    if (has_tilt(s)) {
        tilt_start(&s->tilt);
        use_slopes(s);
    }
    density->unbounded = 1; /* far outside the bounds they leave no slope to follow */
    density->temper = temper;
    int possible = run(s, 0, 0, rng);
    if (iterations > 0 && possible) {
        /* At a draw of the prior the noise's energy may be a hundred thousand, all slopes and
         * kinks: its exponent doubles from where the chain is at home. */
        density->temper = density->noise.size / density->energy;
        for (; density->temper < temper && possible; density->temper *= 2)
            possible = run(s, STAGE, 1, rng);
        density->temper = temper;
        possible = possible && run(s, iterations, 0, rng);
    }
    *s->unbounded = density->unbounded = 0;
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
    for (int k = 0; k < density->noise.size; ++k) {
        const double expected = component_value(density->component + k, density->seen);
        s->work.offset[k] = s->released[k] - (total[k] - expected);
    }
}

/* error += sign * what the totals at q are expected to be */
static void add_expected(struct surrogate *s, const double *q, double sign) {
    struct totals_density *density = &s->density;
    totals_expand(&density->totals, q, density->c);
    totals_density_expect(density);
    for (int k = 0; k < density->noise.size; ++k)
        s->work.error[k] += sign * component_value(density->component + k, density->seen);
}

void surrogate_compare(struct surrogate *s, const double *gain) {
    if (!has_tilt(s)) return;
    memcpy(s->work.error, gain, (size_t)s->density.noise.size * sizeof(double));
    add_expected(s, s->here, 1);
    add_expected(s, s->there, -1); /* where `c` stays */
    for (int j = 0; j < s->density.size; ++j) s->home[j] = s->there[j] - s->here[j];
    tilt_add(&s->tilt, s->home, s->work.error);
}

double surrogate_density(struct surrogate *s, int exact, double *q, double *gradient) {
    if (isnan(q[0])) copy(s, q, s->here);
    see_release(s);
    *s->exact = exact;
    s->density.rounded = 0;
    return log_density(s, q, gradient);
}

void surrogate_train(struct surrogate *s, struct rng *rng) {
    const int size = s->density.size;
    if (*s->tried > 0)
        for (int j = 0; j < size; ++j) {
            const double jump = (s->here[j] - s->sweep.from[j]) / hmc_deviation(&s->hmc, j);
            s->sweep.square[j] += (jump * jump - s->sweep.square[j]) / *s->tried;
        }
    if (*s->trained != 0) return;
    *s->trained = s->density.temper;
    copy(s, s->home, s->here);
    (void)run(s, is_narrow(s) ? LONG_TRAINING : TRAINING, 0, rng);
    copy(s, s->here, s->home);
}

int surrogate_propose(struct surrogate *s, struct rng *rng, double *gain) {
    if (surrogate_is_exact(s)) see_release(s);
    copy(s, s->hmc.q, s->here);
    s->density.rounded = *s->hmc.step_size;
    s->told = (struct hmc_step){0};
    if (!hmc_refresh(&s->hmc)) return 0;
    const double before = s->density.energy;
    hmc_fixed(&s->hmc, *s->share * *s->length, MOST_STEPS, rng, &s->told);
    copy(s, s->there, s->hmc.q);
    if (memcmp(s->here, s->there, (size_t)s->density.size * sizeof(double)) == 0) return 0;
    *gain = before - s->density.energy;
    set_map(s);
    return 1;
}

void surrogate_take(const struct surrogate *s, double *c, double *theta) {
    const struct model *model = s->density.model;
    memcpy(c, s->density.c, (size_t)model->complete * sizeof(double));
    for (int j = 0; j < model->marginal->keeps; ++j)
        theta[model->marginal->kept[j]] = s->there[s->density.totals.size + j];
    memcpy(theta, s->density.theta, (size_t)model_tied(model) * sizeof(double));
}

/* By the square of what the slowest coordinate moves per work, sweeps included, in deviations of
 * the metric: 2 are a draw that forgot where it came from. A surrogate's trajectory takes three
 * passes and its leapfrog steps; each step of the exact density the records' work. Of one column
 * and a known n the exact density is preferred, see CHEAP. */
static void choose_density(struct surrogate *s) {
    if (!s->records.sum) return;
    const double steps = *s->length / *s->hmc.step_size, share = *s->share;
    double swept = INFINITY;
    for (int j = 0; j < s->density.size; ++j) swept = fmin(swept, s->sweep.square[j]);
    const double surrogate_work =
        s->records.sweep_work + 3 * s->records.pass_work + share * steps + 1;
    const double exact_work =
        s->records.sweep_work + s->records.pass_work + (1 + s->records.work) * (steps + 1);
    const double worth = WORTH * pow(share * *s->followed, 3);
    *s->exact =
        (swept + worth) / surrogate_work < (swept + WORTH) / exact_work ||
        (s->density.totals.d == 1 && !s->density.sized && exact_work < CHEAP * surrogate_work);
    if (surrogate_is_exact(s)) *s->share = 1;
}

/* By how much the bounds change the noise's energy at most where the records are, whose
 * complete-data statistic surrogate_begin() has read. */
static double bounds_cost(struct surrogate *s) {
    struct totals_density *density = &s->density;
    double sum = 0;
    if (!density->clamped) return 0;
    density->unbounded = 0;
    totals_density_expect(density);
    density->unbounded = *s->unbounded != 0;
    for (int k = 0; k < density->noise.size; ++k) {
        const struct component *one = density->component + k;
        const double off = component_value(one, density->seen) - component_value(one, density->c);
        sum += fabs(off) * density->noise.weight[k];
    }
    return sum;
}

/* An eighth of warmup, a quarter and a half. */
static int ends_window(int iteration, int warmup) {
    for (int part = 8; part > 1; part /= 2)
        if (iteration + 1 == warmup / part) return 1;
    return 0;
}

void surrogate_leave(struct surrogate *s, const double *c, const double *theta) {
    if (surrogate_begin(s, c, theta)) copy(s, s->sweep.from, s->here);
}

void surrogate_learn(struct surrogate *s, int iteration, int warmup, int moved, double probability,
                     const double *c, const double *theta, struct rng *rng) {
    if (!surrogate_begin(s, c, theta)) return;
    copy(s, s->sweep.from, s->here);
    *s->tried += 1;
    const double pace = 2 / (5 + sqrt(*s->tried));
    if (surrogate_is_exact(s)) {
        /* the surrogate's steps may be too long for it where noise is small */
        const double more = pace * (s->told.accept - TARGET);
        if (more > 0 || *s->length < MANY_STEPS * *s->hmc.step_size) *s->hmc.step_size *= exp(more);
    } else if (moved) {
        *s->share *= exp(pace * (probability - TARGET));
        *s->share = fmin(fmax(*s->share, LEAST_SHARE), 1);
        *s->followed += fmax(FORGET, 1 / *s->tried) * (probability - *s->followed);
    }
    if (*s->tried == TRIAL || (*s->tried < TRIAL && iteration + 1 == warmup)) choose_density(s);
    *s->window.count += 1;
    *s->window.bounds += (bounds_cost(s) - *s->window.bounds) / *s->window.count;
    for (int j = 0; j < s->density.size; ++j)
        s->window.mean[j] += (s->here[j] - s->window.mean[j]) / *s->window.count;
    if (!ends_window(iteration, warmup)) return;
    const int poor = *s->share < POOR || surrogate_is_exact(s);
    /* steps that suit noise raised to a power below 1 are too long later */
    const int trained = *s->trained == 1 && !poor && iteration + 1 > warmup / 8;
    copy(s, s->reference, s->window.mean);
    *s->unbounded = s->density.unbounded = *s->window.bounds < NEGLIGIBLE;
    if (has_tilt(s)) {
        if (poor || *s->tilt.learned != 0)
            tilt_solve(&s->tilt);
        else
            tilt_forget(&s->tilt);
        use_slopes(s);
    }
    begin_trial(s);
    *s->trained = trained;
}
