/* NUTS in method "clt": where the total is made of innovations and has gradients, NUTS (mcmc/hmc.c)
 * moves theta and all innovations at once in
 *   p(theta) N(u; 0, I) eta(z | n mu + sqrt(n) A u),
 * omega integrated out: no step follows (the notation is clt/clt_chain.c's).
 *
 * The kinks of absolute kernels would require short steps, so NUTS replaces |r| by (r^2 / round +
 * round) / 2 where |r| < round (Huber), and its transition, which is reversible, is accepted by
 * the ratio of the true density to that one (Liu 2001, surrogate transitions). The more components
 * there are, the less is rounded, so that this ratio stays near 1.
 *
 * Its coordinates are a linear map of (theta, u), with rows of Cholesky factors divided by their
 * diagonal, under which the posterior is about standard normal. The map comes from the curvature
 * at the mode under squared kernels, in the Gauss-Newton approximation; the mode is found with
 * noise that is wide at first and becomes narrower. If noise dominates, the release contains
 * almost no information about u, and each coordinate is only scaled.
 *
 * If the number of records n is unknown, theta's coordinates move with it along the slopes of
 * mcmc/n_regression_proposal.c, and steps of n hold everything else fixed; they are accepted by
 * the ratio of the true densities.
 *
 * Cost, free of n: two or three times the cost of a total for each leapfrog step, and size^2 for
 * the map if it rotates.
 */
#include "clt/clt.h"

#include "base/linalg.h"
#include "contract/model.h"

static int coordinates(const struct clt *a) { return a->model.moving + a->moments.innovations; }

/* whether the map rotates, the reference, the rows of the map or the scales, NUTS's own */
size_t clt_nuts_stored(const struct clt *a) {
    const size_t size = (size_t)coordinates(a);
    return 1 + size + size * (size + 1) / 2 + hmc_stored((int)size, HMC_DIAGONAL);
}

static void widen(struct clt *a, double factor) {
    a->nuts.widen = factor;
    for (int j = 0; j < a->size; ++j) a->nuts.weight[j] = 1 / (factor * a->nuts.noise.scale[j]);
}

void clt_nuts_prepare(struct clt *a) {
    a->nuts.work = doubles(hmc_workspace(coordinates(a), HMC_DIAGONAL));
    const size_t size = (size_t)coordinates(a);
    a->nuts.scout = doubles(4 * size);
    DOUBLES(size, &a->nuts.point, &a->nuts.point_slope);
    a->nuts.curvature = doubles(size * size);
    a->nuts.misfit = doubles((size_t)a->size);
    /* then the log ratio has the variance 0.2 if residuals are as their noise */
    a->nuts.round = fmin(1, cbrt(2.0 / a->size));
    double *scale;
    DOUBLES((size_t)a->size, &scale, &a->nuts.weight);
    a->nuts.squared = plugin_memory((size_t)a->size, sizeof *a->nuts.squared);
    for (int j = 0; j < a->size; ++j) a->nuts.squared[j] = KERNEL_SQUARED;
    for (int j = 0; j < a->size; ++j)
        scale[j] = sqrt(a->noise.scale[j] * a->noise.scale[j] + a->ridge[j]);
    a->nuts.noise = a->noise;
    a->nuts.noise.scale = scale;
    a->nuts.noise.weight = a->nuts.weight;
    widen(a, 1);
}

/* log eta(z | total), its kinks rounded, and its gradient in the total */
static double fit_noise(const struct clt *a, const double *total, double *slope) {
    return -noise_pull_rounded(&a->nuts.noise, total, a->nuts.round, slope);
}

/* log of the true density over the rounded one */
static double log_unrounded(const struct clt *a, const double *total) {
    return noise_rounding(&a->nuts.noise, total, a->nuts.round);
}

/* The first row of an unknown Cholesky factor from block `*at` on, packed row by row, logarithms on
 * its diagonal; NULL: there is none. */
static const struct theta_block *next_factor(const struct clt *a, int *at) {
    const struct coordinates *all = &a->model.coordinates;
    for (; *at < all->count && !a->undivided; ++*at) {
        const struct theta_block *block = all->block + *at;
        if (block->transform == TRANSFORM_LOG_CHOLESKY && !block->known) {
            ++*at;
            return block;
        }
    }
    return NULL;
}

/* theta of such coordinates; what is known is there. Rows of Cholesky factors are divided by their
 * diagonal in the coordinates, so that they keep their direction where their scale moves. */
static void put_moving(const struct clt *a, const double *q, double *theta) {
    for (int j = 0; j < a->model.moving; ++j) theta[a->model.moves[j]] = q[j];
    int at = 0;
    for (const struct theta_block *block; (block = next_factor(a, &at));) {
        double *row = theta + block->offset;
        for (int i = 0; i < block->size; row += ++i)
            for (int j = 0; j < i; ++j) row[j] *= exp(row[i]);
    }
}

/* and back */
static void take_moving(const struct clt *a, const double *theta, double *q) {
    double *divided = a->step;
    memcpy(divided, theta, (size_t)a->model.parameters * sizeof(double));
    int at = 0;
    for (const struct theta_block *block; (block = next_factor(a, &at));) {
        double *row = divided + block->offset;
        for (int i = 0; i < block->size; row += ++i)
            for (int j = 0; j < i; ++j) row[j] /= exp(row[i]);
    }
    for (int j = 0; j < a->model.moving; ++j) q[j] = divided[a->model.moves[j]];
}

/* The slopes in theta, of which `slope` has all, as slopes in the coordinates; returns the log of
 * the Jacobian, whose slopes are added with the weight `jacobian`. */
static double pull_moving(const struct clt *a, const double *theta, double jacobian, double *slope,
                          double *out) {
    double log_jacobian = 0;
    int at = 0;
    for (const struct theta_block *block; (block = next_factor(a, &at));) {
        const double *row = theta + block->offset;
        double *of_row = slope + block->offset;
        for (int i = 0; i < block->size; row += i + 1, of_row += i + 1, ++i) {
            const double scale = exp(row[i]);
            for (int j = 0; j < i; ++j) {
                of_row[i] += of_row[j] * row[j];
                of_row[j] *= scale;
            }
            of_row[i] += jacobian * i;
            log_jacobian += i * row[i];
        }
    }
    for (int j = 0; j < a->model.moving; ++j) out[j] = slope[a->model.moves[j]];
    return log_jacobian;
}

/* log p(theta_new), and its gradient to a->step; neither has a part of what is pooled. */
static double fit_prior(struct clt *a) {
    for (int k = 0; k < a->pooled.count; ++k) {
        a->pooled.value[k] = a->theta_new[a->pooled.at[k]];
        a->theta_new[a->pooled.at[k]] = 0;
    }
    const double log_prior = model_prior(&a->model, a->theta_new, a->step);
    for (int k = 0; k < a->pooled.count; ++k) {
        a->theta_new[a->pooled.at[k]] = a->pooled.value[k];
        a->step[a->pooled.at[k]] = 0;
    }
    return log_prior;
}

/* Log density and gradient at (theta, u). */
static double joint_density(struct clt *a, const double *q, double *gradient) {
    const struct record_moments *m = &a->moments;
    const int moving = a->model.moving;
    const double *u = q + moving;
    put_moving(a, q, a->theta_new);
    const double log_prior = fit_prior(a);
    if (!(log_prior > -INFINITY)) return -INFINITY;
    m->class->from_innovations(m->self, a->theta_new, a->n, u, a->total.next);
    const double log_noise = fit_noise(a, a->total.next, a->nuts.misfit);
    m->class->gradient(m->self, a->n, u, a->nuts.misfit, a->step);
    const double log_jacobian = pull_moving(a, a->theta_new, 1, a->step, gradient);
    double square = 0;
    for (int j = 0; j < m->innovations; ++j) {
        gradient[moving + j] = -u[j];
        square += u[j] * u[j];
    }
    m->class->pull(m->self, sqrt(a->n), a->nuts.misfit, gradient + moving);
    return log_prior + log_jacobian + log_noise - 0.5 * square;
}

double clt_nuts_density(struct clt *a, const double *point, double *slope) {
    const double rounded = joint_density(a, point, slope);
    return rounded > -INFINITY ? rounded + log_unrounded(a, a->total.next) : -INFINITY;
}

/* Row i of a lower triangle that is packed. */
static double *packed_row(double *triangle, int i) {
    return triangle + (size_t)i * ((size_t)i + 1) / 2;
}

VECTOR_CLONES static void add_multiple(int n, double weight, const double *restrict a,
                                       double *restrict out) {
    for (int j = 0; j < n; ++j) out[j] += weight * a[j];
}

VECTOR_CLONES static double dot(int n, const double *restrict a, const double *restrict b) {
    double part[LANES] = {0}, rest = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; ++l) part[l] += a[i + l] * b[i + l];
    for (; i < n; ++i) rest += a[i] * b[i];
    return (part[0] + part[1]) + (part[2] + part[3]) + rest;
}

/* a->nuts.point = reference + M'q with the map's rows M, and what n moves it by */
static void put_point(struct clt *a, const double *q) {
    const int size = coordinates(a);
    memcpy(a->nuts.point, a->nuts.reference, (size_t)size * sizeof(double));
    for (int j = 0; a->unknown.prior && j < a->model.moving; ++j)
        a->nuts.point[j] += a->unknown.slope.slope[j] * log(a->n / a->unknown.about);
    if (*a->nuts.rotated == 0) {
        for (int i = 0; i < size; ++i) a->nuts.point[i] += a->nuts.map[i] * q[i];
        return;
    }
    for (int i = 0; i < size; ++i)
        add_multiple(i + 1, q[i], packed_row(a->nuts.map, i), a->nuts.point);
}

/* the same at NUTS's own coordinates */
static double mapped_density(void *self, const double *q, double *gradient) {
    struct clt *a = self;
    put_point(a, q);
    const double log_density = joint_density(a, a->nuts.point, a->nuts.point_slope);
    const int size = coordinates(a);
    if (*a->nuts.rotated == 0) {
        for (int i = 0; i < size; ++i) gradient[i] = a->nuts.map[i] * a->nuts.point_slope[i];
        return log_density;
    }
    for (int i = 0; i < size; ++i)
        gradient[i] = dot(i + 1, packed_row(a->nuts.map, i), a->nuts.point_slope);
    return log_density;
}

/* theta and the total of NUTS's state */
static void take_state(struct clt *a) {
    put_point(a, a->nuts.hmc.q);
    put_moving(a, a->nuts.point, a->theta);
    a->moments.class->from_innovations(a->moments.self, a->theta, a->n,
                                       a->nuts.point + a->model.moving, a->total.now);
}

void clt_nuts_resume(struct clt *a) {
    const struct hmc_target target = {coordinates(a), a, mapped_density, NULL};
    const size_t size = (size_t)target.size;
    a->nuts.rotated = a->nuts.store;
    a->nuts.reference = a->nuts.store + 1;
    a->nuts.map = a->nuts.reference + size;
    hmc_attach(&a->nuts.hmc, &target, HMC_DIAGONAL, a->nuts.map + size * (size + 1) / 2,
               a->nuts.work);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    (void)hmc_refresh(&a->nuts.hmc);
}

/* What the log density curves by about q, to a->nuts.curvature, the lower triangle: the prior as
 * `precision` says, and J'WJ with J the slopes of the totals and W the noise's Fisher information.
 */
static void set_curvature(struct clt *a, const double *q, const double *precision) {
    const struct record_moments *m = &a->moments;
    const int size = coordinates(a), moving = a->model.moving;
    const double *u = q + moving;
    memset(a->nuts.curvature, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < size; ++i) a->nuts.curvature[(size_t)i * size + i] = precision[i];
    put_moving(a, q, a->theta_new);
    m->class->from_innovations(m->self, a->theta_new, a->n, u, a->total.next);
    memset(a->nuts.misfit, 0, (size_t)a->size * sizeof(double));
    for (int j = 0; j < a->size; ++j) {
        double *row = a->nuts.point_slope;
        a->nuts.misfit[j] = a->nuts.noise.weight[j];
        memset(a->step, 0, (size_t)a->model.parameters * sizeof(double));
        memset(row, 0, (size_t)size * sizeof(double));
        m->class->gradient(m->self, a->n, u, a->nuts.misfit, a->step);
        (void)pull_moving(a, a->theta_new, 0, a->step, row);
        m->class->pull(m->self, sqrt(a->n), a->nuts.misfit, row + moving);
        for (int i = 0; i < size; ++i)
            if (row[i] != 0) add_multiple(i + 1, row[i], row, a->nuts.curvature + (size_t)i * size);
        a->nuts.misfit[j] = 0;
    }
}

/* Returns 0 if that has a Cholesky factor, which it then is. */
static int factor_curvature(struct clt *a, const double *q, const double *precision) {
    set_curvature(a, q, precision);
    return linalg_cholesky(coordinates(a), a->nuts.curvature);
}

/* The rows of the map: the inverse of the factor. */
static void invert_factor(struct clt *a) {
    const int size = coordinates(a);
    for (int i = 0; i < size; ++i) {
        const double *row = a->nuts.curvature + (size_t)i * size;
        double *out = packed_row(a->nuts.map, i);
        memset(out, 0, (size_t)(i + 1) * sizeof(double));
        out[i] = 1;
        for (int k = 0; k < i; ++k)
            if (row[k] != 0) add_multiple(k + 1, -row[k], packed_row(a->nuts.map, k), out);
        for (int k = 0; k <= i; ++k) out[k] /= row[i];
    }
}

/* theta as it is, or a draw from the prior, by how near its expected totals are to z: tails
 * count little, all draws may be far. */
static void search_expected(struct clt *a, int search) {
    const size_t bytes = (size_t)a->model.parameters * sizeof(double);
    double best = INFINITY;
    memcpy(a->theta_new, a->theta, bytes);
    for (int k = 0; k <= search && search > 0; ++k) {
        if (k > 0) model_rprior(&a->model, a->rng, a->theta_new);
        a->moments.class->from_innovations(a->moments.self, a->theta_new, a->n, a->total.u,
                                           a->total.next);
        double away = 0;
        for (int j = 0; j < a->size; ++j)
            away += log1p(fabs(a->noise.released[j] - a->total.next[j]) / a->nuts.noise.scale[j]);
        if (!(away < best)) continue;
        best = away;
        memcpy(a->theta, a->theta_new, bytes);
    }
}

/* How far the last total that was made is from z, in units of the noise. */
static double distance(const struct clt *a) {
    double square = 0;
    for (int j = 0; j < a->size; ++j) {
        const double r = (a->noise.released[j] - a->total.next[j]) / a->nuts.noise.scale[j];
        square += r * r;
    }
    return sqrt(square / a->size);
}

/* A step of Gauss and Newton from the reference, halved until the density rises; by how much it
 * does, or 0. The curvature is factored. */
static double ascend(struct clt *a) {
    enum { HALVINGS = 12 };
    const int size = coordinates(a);
    double *step = a->nuts.scout, *trial = step + size, *slope = trial + size;
    const double now = joint_density(a, a->nuts.reference, step);
    linalg_forward(size, a->nuts.curvature, step);
    linalg_backward(size, a->nuts.curvature, step);
    double share = 1;
    for (int h = 0; h < HALVINGS; ++h, share *= 0.5) {
        for (int j = 0; j < size; ++j) trial[j] = a->nuts.reference[j] + share * step[j];
        const double next = joint_density(a, trial, slope);
        if (!(next > now)) continue;
        memcpy(a->nuts.reference, trial, (size_t)size * sizeof(double));
        return next - now;
    }
    return 0;
}

/* Climbs from the reference to about a mode, all kernels squared. Where noise is small relative to
 * what is to be explained the density is a narrow and bent ridge, which no straight step follows:
 * the noise is as wide as the totals are away from z at first, and narrows as they come nearer.
 * Leaves the factored curvature at the mode. Returns 0 if it has none. */
static int climb(struct clt *a, const double *precision, int most) {
    const double NARROWER = 0.5;
    int possible = 0, arrived = most == 0;
    a->nuts.noise.kernel = a->nuts.squared;
    if (most > 0) {
        (void)joint_density(a, a->nuts.reference, a->nuts.scout);
        const double away = distance(a);
        if (away > 1 && isfinite(away)) widen(a, away);
    }
    for (int k = 0; k <= most; ++k) {
        if (k == most) arrived = 1;
        if (arrived) widen(a, 1);
        possible = factor_curvature(a, a->nuts.reference, precision) == 0;
        if (!possible || arrived) break;
        const double gain = ascend(a);
        arrived = a->nuts.widen == 1 && gain < 0.01 * coordinates(a);
        const double away = gain > 0 ? distance(a) : INFINITY;
        widen(a, fmax(1, fmin(NARROWER * a->nuts.widen, away)));
    }
    a->nuts.noise.kernel = a->noise.kernel;
    return possible;
}

/* scale[i] = 1 / sqrt(curvature) of coordinate i, from its factor */
static void scale_by_curvature(const struct clt *a, double *scale) {
    const int size = coordinates(a);
    for (int i = 0; i < size; ++i) {
        const double *row = a->nuts.curvature + (size_t)i * size;
        scale[i] = 1 / sqrt(dot(i + 1, row, row));
    }
}

/* Beyond it the parameters and the innovations share what the release says about the totals. */
static const double MOST_TOLD = 0.1;

/* What the release says about an innovation, on average, in units of what is known before. */
static double told_of_innovations(const struct clt *a, const double *scale) {
    const int moving = a->model.moving, innovations = a->moments.innovations;
    double sum = 0;
    for (int i = moving; i < moving + innovations; ++i) sum += 1 / (scale[i] * scale[i]) - 1;
    return sum / innovations;
}

/* NUTS's coordinates are those in which the posterior is about standard normal where its mode
 * would be with normal noise; chains start at such a normal draw. A chain whose theta is given
 * starts there. */
void clt_nuts_start(struct clt *a, int search, const double *move_sd) {
    enum { MOST_STEPS = 40 };
    const int moving = a->model.moving, size = coordinates(a);
    double *precision = a->nuts.scout + 3 * (size_t)size;
    *a->nuts.store = 0;
    clt_nuts_resume(a);
    if (search > 0) search_expected(a, search);
    memset(a->nuts.reference, 0, (size_t)size * sizeof(double));
    take_moving(a, a->theta, a->nuts.reference);
    for (int j = 0; j < size; ++j) {
        precision[j] = j < moving ? 1 / (move_sd[j] * move_sd[j]) : 1;
    }
    double *const scale = a->nuts.scout;
    const int possible = climb(a, precision, search > 0 ? MOST_STEPS : 0);
    for (int i = 0; i < size && !possible; ++i) scale[i] = 1 / sqrt(precision[i]);
    if (possible) scale_by_curvature(a, scale);
    *a->nuts.rotated = possible && told_of_innovations(a, scale) > MOST_TOLD;
    if (*a->nuts.rotated != 0)
        invert_factor(a);
    else
        memcpy(a->nuts.map, scale, (size_t)size * sizeof(double));
    double *q = a->nuts.scout;
    memset(q, 0, (size_t)size * sizeof(double));
    if (search > 0) rng_fill_normal(a->rng, size, q);
    hmc_start(&a->nuts.hmc, q, NULL);
    if (!hmc_refresh(&a->nuts.hmc)) {
        memset(q, 0, (size_t)size * sizeof(double));
        hmc_start(&a->nuts.hmc, q, NULL);
        (void)hmc_refresh(&a->nuts.hmc);
    }
    hmc_find_step(&a->nuts.hmc, a->rng);
    take_state(a);
}

void clt_nuts_information(struct clt *a, double *point, double *out) {
    const int moving = a->model.moving, size = coordinates(a);
    double *precision = a->nuts.scout;
    for (int j = 0; j < size; ++j) precision[j] = j >= moving;
    set_curvature(a, a->nuts.reference, precision);
    memcpy(point, a->nuts.reference, (size_t)size * sizeof(double));
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j)
            out[i * size + j] = out[j * size + i] = a->nuts.curvature[(size_t)i * size + j];
}

/* ---- the number of records ---------------------------------------------------------- */

enum { SIZE_STEPS = 2 };

/* A step of n with NUTS's coordinates fixed; the total is not the state's after it. */
static void move_size(struct clt *a, int fresh, int learning) {
    struct hmc *hmc = &a->nuts.hmc;
    const double old = a->n,
                 before = clt_log_size(&a->unknown, old) + log_unrounded(a, a->total.now);
    double log_ratio, log_density = -INFINITY;
    const double n = fresh ? size_slope_fresh(&a->unknown.slope, old, a->rng, &log_ratio)
                           : size_slope_walk(&a->unknown.slope, old, a->rng, &log_ratio);
    const double log_size = clt_log_size(&a->unknown, n);
    if (log_size > -INFINITY) {
        a->n = n;
        log_density = mapped_density(a, hmc->q, a->nuts.scout);
    }
    log_ratio = log_density > -INFINITY ? log_ratio + log_size + log_unrounded(a, a->total.next) -
                                              before + log_density - hmc->log_density
                                        : -INFINITY;
    if (-log_ratio < rng_exponential(a->rng)) {
        hmc->log_density = log_density;
        memcpy(hmc->gradient, a->nuts.scout, (size_t)coordinates(a) * sizeof(double));
        memcpy(a->total.now, a->total.next, (size_t)a->size * sizeof(double));
    } else {
        a->n = old;
    }
    if (learning && !fresh) size_slope_tried(&a->unknown.slope, log_ratio, a->unknown.prior->upper);
}

/* At the end of a window the slopes are new; the reference sees to it that the point stays. */
static void learn_size(struct clt *a, int closes) {
    const int moving = a->model.moving;
    for (int j = 0; j < moving; ++j) a->step[a->model.moves[j]] = a->nuts.point[j];
    size_slope_saw(&a->unknown.slope, a->n, log(a->n), a->step);
    if (!closes) return;
    const double off = log(a->n / a->unknown.about);
    for (int j = 0; j < moving; ++j) a->nuts.reference[j] += a->unknown.slope.slope[j] * off;
    size_slope_close(&a->unknown.slope);
    for (int j = 0; j < moving; ++j) a->nuts.reference[j] -= a->unknown.slope.slope[j] * off;
}

static void move_sizes(struct clt *a, int iteration, int warmup) {
    const int learning = iteration < warmup, knows = size_slope_knows(&a->unknown.slope);
    for (int k = 0; k < SIZE_STEPS; ++k) move_size(a, knows && k > 0, learning);
    take_state(a);
    if (learning) learn_size(a, hmc_window(iteration, warmup) == HMC_LAST);
}

void clt_nuts_iterate(struct clt *a, int iteration, int warmup, double *accepted) {
    struct hmc_step told;
    double *old = a->nuts.scout;
    const size_t bytes = (size_t)coordinates(a) * sizeof(double);
    memcpy(old, a->nuts.hmc.q, bytes);
    take_state(a);
    const double before = log_unrounded(a, a->total.now);
    hmc_nuts(&a->nuts.hmc, a->rng, &told);
    take_state(a);
    const int kept = -rng_exponential(a->rng) < log_unrounded(a, a->total.now) - before;
    if (!kept) {
        memcpy(a->nuts.hmc.q, old, bytes);
        (void)hmc_refresh(&a->nuts.hmc);
        take_state(a);
    }
    hmc_learn(&a->nuts.hmc, iteration, warmup, &told, a->rng);
    if (a->unknown.prior) move_sizes(a, iteration, warmup);
    *accepted = told.accept;
    if (iteration < warmup) return;
    a->counter[CLT_MADE] += 1;
    a->counter[CLT_ACCEPTED] += told.accept;
    a->counter[CLT_KEPT] += kept;
    a->counter[CLT_LEAPFROGS] += told.leapfrogs;
    a->counter[CLT_DIVERGENT] += told.divergent;
    a->counter[CLT_DEEPEST] += told.depth == HMC_MOST_DEPTH;
}
