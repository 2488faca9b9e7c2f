/* Method "clt": a normal distribution for the totals (Bernstein & Sheldon 2018, 2019), in
 * the one form that serves every model and statistic with known moments.
 *
 * For one record let (t, a) have mean mu and covariance V under theta, t the
 * released statistic, a what the complete-data statistic c needs beside it. By
 * the central limit theorem the total is N(n mu, n V), and z | s ~ N(s, Omega)
 * with Omega = diag(omega^2): fixed for Gaussian noise; for Laplace noise of
 * scale b, omega^2 ~ Exponential(rate 1 / (2 b^2)). Discrete noise has the same
 * kernel as its continuous twin. Steps:
 *   M. theta | omega, z with the total integrated out, z ~ N(n mu_t, n V_tt +
 *      Omega): random walks, their shape and scale learned in warmup;
 *   D. (s, a) | theta, omega, z: draw (s0, a0) ~ N(n mu, n V), e ~ N(0, Omega),
 *      r = (n V_tt + Omega)^-1 (z - s0 - e), add n V_.t r: V may be singular. Where
 *      the total is made of innovations, s = n mu + sqrt(n) A u with A A' = V, these are
 *      drawn: u0 + sqrt(n) A'r;
 *   N. theta | u, z with omega integrated out: moves that take s along, a quarter of them walks,
 *      the others regressions towards the centre that warmup saw;
 *   C. theta | c by the model's own update;
 *   V. omega | s, 1 / omega^2 inverse Gaussian.
 * Samplers, in the order of an iteration: the papers' Gibbs D, V, C; marginal M, D, V, C;
 * non-centred D, N, V, C. D does not look at the last total, and none of the innovations
 * outlives an iteration; omega, integrated out in N, is drawn before it is used (van Dyk &
 * Park 2008). Where noise dominates, the innovations say little of theta: a step N then does
 * what a step M does, without a covariance.
 *
 * NUTS: where the total is made of innovations and has gradients, NUTS (hmc.c) moves theta and
 * all innovations at once in
 *   p(theta) N(u; 0, I) eta(z | n mu + sqrt(n) A u),
 * omega integrated out: no step follows. The kinks of absolute kernels would cost it short steps:
 * NUTS sees |r| as (r^2 / round + round) / 2 where |r| < round (Huber), and its transition, which
 * is reversible, is accepted by the ratio of the true density to that one (Liu 2001, surrogate
 * transitions). The more components, the less is rounded, so that this ratio stays near 1. Its
 * coordinates are a linear map of (theta, u), with rows of Cholesky factors divided by their
 * diagonal, under which the posterior is about standard normal: by the curvature at the mode that
 * squared kernels have, with the Gauss-Newton approximation. Where noise dominates, the release
 * tells next to nothing of u, and each coordinate is only scaled.
 *
 * Without C the distribution is p(theta) N(z; n mu_t, n V_tt + Omega) p(omega), exactly; with it
 * the exact distribution of c given theta comes in, to which the normal one tends as n grows.
 *
 * A drawn c that no records could have (counts outside [0, n], a scatter that is
 * negative) is drawn again, then projected; both are counted.
 *
 * Cost, free of n: an iteration has one evaluation of the moments and one Cholesky factor
 * of the released ones; each step M has one more of both; without innovations D has one
 * of all moments. N costs what a total costs; a gradient two or three times that.
 */
#include "method_clt.h"

#include "dist.h"
#include "linalg.h"
#include "model.h"

const char *const clt_sampler_names[CLT_SAMPLERS] = {
    [CLT_GIBBS] = "gibbs",
    [CLT_MARGINAL] = "marginal",
    [CLT_NONCENTRED] = "noncentred",
    [CLT_NUTS] = "nuts",
};

/* draws before a complete-data statistic is projected */
enum { MOST_DRAWS = 20 };

static double *numbers(size_t count) { return plugin_memory(count, sizeof(double)); }

static void distribution_prepare(struct distribution *totals, int size, int wide) {
    totals->mean = numbers((size_t)wide);
    totals->cov = numbers((size_t)wide * (size_t)wide);
    totals->factor = numbers((size_t)size * (size_t)size);
    totals->white = numbers((size_t)size);
}

void clt_prepare(struct clt *a) {
    a->size = a->moments.released;
    a->wide = a->size + a->moments.aside;
    distribution_prepare(&a->now, a->size, a->wide);
    if (a->sampler == CLT_MARGINAL) distribution_prepare(&a->next, a->size, a->wide);
    a->total = numbers((size_t)a->wide);
    if (a->sampler == CLT_NONCENTRED || a->sampler == CLT_NUTS)
        a->total_new = numbers((size_t)a->wide);
    if (a->sampler == CLT_MARGINAL || a->sampler == CLT_NONCENTRED) {
        const size_t dim = (size_t)a->model.moving;
        a->normals = numbers((size_t)a->passes * dim);
        a->steps = numbers((size_t)a->passes * dim);
        a->sphered = numbers(dim);
        a->sphered_new = numbers(dim);
    }
    a->extra = numbers((size_t)a->size);
    a->u = numbers((size_t)a->moments.innovations);
    a->complete = numbers((size_t)a->moments.complete);
    if (!a->moments.class->from_innovations) a->root = numbers((size_t)a->wide * (size_t)a->wide);
    a->pivot = plugin_memory((size_t)a->wide, sizeof(int));
    a->normal = numbers((size_t)a->wide);
    a->pull = numbers((size_t)a->size);
    a->work = numbers(3 * (size_t)a->wide);
    if (a->sampler == CLT_NUTS) {
        a->hmc_work = numbers(hmc_workspace(clt_coordinates(a), HMC_DIAGONAL));
        const size_t size = (size_t)clt_coordinates(a);
        a->scout = numbers(4 * size);
        a->point = numbers(size);
        a->point_slope = numbers(size);
        a->curvature = numbers(size * size);
        a->misfit = numbers((size_t)a->size);
        a->noise_scale = numbers((size_t)a->size);
        /* then the log ratio has the variance 0.2 if residuals are as their noise */
        a->round = fmin(1, cbrt(2.0 / a->size));
        for (int j = 0; j < a->size; ++j)
            a->noise_scale[j] = sqrt(a->scale[j] * a->scale[j] + a->ridge[j]);
    }
    a->theta_new = numbers((size_t)a->model.parameters);
    a->step = numbers((size_t)a->model.parameters);
}

/* ---- the distribution of z ----------------------------------------------------------- */

static int set_moments(const struct clt *a, const double *theta, struct distribution *totals) {
    return a->moments.class->eval(a->moments.self, theta, totals->mean, totals->cov);
}

/* factor and log density from the moments; PLUGIN_NUMERICAL if not positive definite */
static int set_density(const struct clt *a, struct distribution *totals) {
    const int d = a->size, w = a->wide;
    for (int i = 0; i < d; ++i) {
        const double *restrict cov = totals->cov + (size_t)i * w;
        double *restrict row = totals->factor + (size_t)i * d;
        for (int j = 0; j <= i; ++j) row[j] = a->n * cov[j];
        row[i] += a->ridge[i] + a->variance[i];
        totals->white[i] = a->released[i] - a->n * totals->mean[i];
    }
    if (linalg_cholesky(d, totals->factor) != 0) return PLUGIN_NUMERICAL;
    linalg_forward(d, totals->factor, totals->white);
    double square = 0, log_pivots = 0, product = 1;
    for (int i = 0; i < d; ++i) {
        square += totals->white[i] * totals->white[i];
        product *= totals->factor[(size_t)i * d + i];
        if (!(product > 1e-100 && product < 1e100)) {
            log_pivots += log(product);
            product = 1;
        }
    }
    totals->log_density = -0.5 * square - log_pivots - log(product);
    return isfinite(totals->log_density) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

/* With many records a chain that starts far away may settle on the first of several
 * theta that explain z. A draw that is chosen among many by their densities lies near the
 * one that explains it best. */
static void search_marginal(struct clt *a, int search) {
    const size_t bytes = (size_t)a->model.parameters * sizeof(double);
    double all = -INFINITY; /* log of the sum of the densities */
    for (int k = 0; k <= search && search > 0; ++k) {
        if (k > 0) model_rprior(&a->model, a->rng, a->theta_new);
        const double *theta = k > 0 ? a->theta_new : a->theta;
        if (set_moments(a, theta, &a->now) != PLUGIN_OK || set_density(a, &a->now) != PLUGIN_OK)
            continue;
        const double log_density = a->now.log_density, above = log_density - all;
        all = above > 0 ? log_density + log1p(exp(-above)) : all + log1p(exp(above));
        const int chosen = -rng_exponential(a->rng) < log_density - all;
        if (chosen && k > 0) memcpy(a->theta, a->theta_new, bytes);
    }
}

/* ---- NUTS in theta and the innovations ------------------------------------------- */

int clt_coordinates(const struct clt *a) { return a->model.moving + a->moments.innovations; }

/* whether the map rotates, the reference, the rows of the map or the scales, NUTS's own */
size_t clt_stored(const struct clt *a) {
    const size_t size = (size_t)clt_coordinates(a);
    return 1 + size + size * (size + 1) / 2 + hmc_stored((int)size, HMC_DIAGONAL);
}

/* log eta(z | total), its kinks rounded, and its gradient in the total */
static double fit_noise(const struct clt *a, const double *total, double *slope) {
    double energy = 0;
    for (int j = 0; j < a->size; ++j) {
        const double weight = 1 / a->noise_scale[j], r = (a->released[j] - total[j]) * weight;
        if (a->absolute[j] == 0 || a->smooth) {
            energy += 0.5 * r * r;
            slope[j] = weight * r;
        } else if (fabs(r) < a->round) {
            energy += 0.5 * (r * r / a->round + a->round);
            slope[j] = weight * r / a->round;
        } else {
            energy += fabs(r);
            slope[j] = weight * ((r > 0) - (r < 0));
        }
    }
    return -energy;
}

/* log of the true density over the rounded one */
static double log_unrounded(const struct clt *a, const double *total) {
    double sum = 0;
    for (int j = 0; j < a->size; ++j) {
        const double within = a->round - fabs(a->released[j] - total[j]) / a->noise_scale[j];
        if (a->absolute[j] != 0 && within > 0) sum += 0.5 * within * within / a->round;
    }
    return sum;
}

/* The first row of an unknown Cholesky factor from block `*at` on, packed row by row, logarithms on
 * its diagonal; NULL: there is none. */
static const struct theta_block *next_factor(const struct clt *a, int *at) {
    const struct coordinates *all = &a->model.coordinates;
    for (; *at < all->count; ++*at) {
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

/* Log density and gradient at (theta, u). */
static double joint_density(struct clt *a, const double *q, double *gradient) {
    const struct record_moments *m = &a->moments;
    const int moving = a->model.moving;
    const double *u = q + moving;
    put_moving(a, q, a->theta_new);
    const double log_prior = a->model.class->dprior(a->model.self, a->theta_new);
    if (!isfinite(log_prior)) return -INFINITY;
    memset(a->step, 0, (size_t)a->model.parameters * sizeof(double));
    a->model.class->prior_gradient(a->model.self, a->theta_new, a->step);
    m->class->from_innovations(m->self, a->theta_new, a->n, u, a->total_new);
    const double log_noise = fit_noise(a, a->total_new, a->misfit);
    m->class->gradient(m->self, a->n, u, a->misfit, a->step);
    const double log_jacobian = pull_moving(a, a->theta_new, 1, a->step, gradient);
    double square = 0;
    for (int j = 0; j < m->innovations; ++j) {
        gradient[moving + j] = -u[j];
        square += u[j] * u[j];
    }
    m->class->pull(m->self, sqrt(a->n), a->misfit, gradient + moving);
    return log_prior + log_jacobian + log_noise - 0.5 * square;
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

/* a->point = reference + M'q with the map's rows M */
static void put_point(struct clt *a, const double *q) {
    const int size = clt_coordinates(a);
    memcpy(a->point, a->reference, (size_t)size * sizeof(double));
    if (*a->rotated == 0) {
        for (int i = 0; i < size; ++i) a->point[i] += a->map[i] * q[i];
        return;
    }
    for (int i = 0; i < size; ++i) add_multiple(i + 1, q[i], packed_row(a->map, i), a->point);
}

/* the same at NUTS's own coordinates */
static double mapped_density(void *self, const double *q, double *gradient) {
    struct clt *a = self;
    put_point(a, q);
    const double log_density = joint_density(a, a->point, a->point_slope);
    const int size = clt_coordinates(a);
    if (*a->rotated == 0) {
        for (int i = 0; i < size; ++i) gradient[i] = a->map[i] * a->point_slope[i];
        return log_density;
    }
    for (int i = 0; i < size; ++i) gradient[i] = dot(i + 1, packed_row(a->map, i), a->point_slope);
    return log_density;
}

/* theta and the total of NUTS's state */
static void take_state(struct clt *a) {
    put_point(a, a->hmc.q);
    put_moving(a, a->point, a->theta);
    a->moments.class->from_innovations(a->moments.self, a->theta, a->n, a->point + a->model.moving,
                                       a->total);
}

void clt_resume(struct clt *a) {
    if (a->sampler != CLT_NUTS) return;
    const struct hmc_target target = {clt_coordinates(a), a, mapped_density};
    const size_t size = (size_t)target.size;
    a->rotated = a->store;
    a->reference = a->store + 1;
    a->map = a->reference + size;
    hmc_attach(&a->hmc, &target, HMC_DIAGONAL, a->map + size * (size + 1) / 2, a->hmc_work);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    (void)hmc_refresh(&a->hmc);
}

/* What the log density curves by about q, to a->curvature: the prior as `precision` says, and
 * J'WJ with J the slopes of the totals and W the noise's Fisher information. Returns 0 if
 * that has a Cholesky factor, which it then is. */
static int factor_curvature(struct clt *a, const double *q, const double *precision) {
    const struct record_moments *m = &a->moments;
    const int size = clt_coordinates(a), moving = a->model.moving;
    const double *u = q + moving;
    memset(a->curvature, 0, (size_t)size * (size_t)size * sizeof(double));
    for (int i = 0; i < size; ++i) a->curvature[(size_t)i * size + i] = precision[i];
    put_moving(a, q, a->theta_new);
    m->class->from_innovations(m->self, a->theta_new, a->n, u, a->total_new);
    memset(a->misfit, 0, (size_t)a->size * sizeof(double));
    for (int j = 0; j < a->size; ++j) {
        double *row = a->point_slope;
        a->misfit[j] = 1 / a->noise_scale[j];
        memset(a->step, 0, (size_t)a->model.parameters * sizeof(double));
        memset(row, 0, (size_t)size * sizeof(double));
        m->class->gradient(m->self, a->n, u, a->misfit, a->step);
        (void)pull_moving(a, a->theta_new, 0, a->step, row);
        m->class->pull(m->self, sqrt(a->n), a->misfit, row + moving);
        for (int i = 0; i < size; ++i)
            if (row[i] != 0) add_multiple(i + 1, row[i], row, a->curvature + (size_t)i * size);
        a->misfit[j] = 0;
    }
    return linalg_cholesky(size, a->curvature);
}

/* The rows of the map: the inverse of the factor. */
static void invert_factor(struct clt *a) {
    const int size = clt_coordinates(a);
    for (int i = 0; i < size; ++i) {
        const double *row = a->curvature + (size_t)i * size;
        double *out = packed_row(a->map, i);
        memset(out, 0, (size_t)(i + 1) * sizeof(double));
        out[i] = 1;
        for (int k = 0; k < i; ++k)
            if (row[k] != 0) add_multiple(k + 1, -row[k], packed_row(a->map, k), out);
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
        a->moments.class->from_innovations(a->moments.self, a->theta_new, a->n, a->u, a->total_new);
        double away = 0;
        for (int j = 0; j < a->size; ++j)
            away += log1p(fabs(a->released[j] - a->total_new[j]) / a->noise_scale[j]);
        if (!(away < best)) continue;
        best = away;
        memcpy(a->theta, a->theta_new, bytes);
    }
}

/* Climbs from the reference to about a mode, all kernels squared: steps of Gauss and Newton, halved
 * until the density rises. Leaves the factored curvature there. Returns 0 if it has none. */
static int climb(struct clt *a, const double *precision, int most) {
    enum { HALVINGS = 12 };
    const int size = clt_coordinates(a);
    double *step = a->scout, *trial = step + size, *slope = trial + size;
    int possible = 0;
    a->smooth = 1;
    for (int k = 0; k <= most; ++k) {
        possible = factor_curvature(a, a->reference, precision) == 0;
        if (!possible || k == most) break;
        const double now = joint_density(a, a->reference, step);
        double next = -INFINITY, share = 1;
        linalg_forward(size, a->curvature, step);
        linalg_backward(size, a->curvature, step);
        for (int h = 0; h < HALVINGS && !(next > now); ++h, share *= 0.5) {
            for (int j = 0; j < size; ++j) trial[j] = a->reference[j] + share * step[j];
            next = joint_density(a, trial, slope);
        }
        if (!(next > now)) break;
        memcpy(a->reference, trial, (size_t)size * sizeof(double));
        if (next - now < 0.01 * size) most = k + 1;
    }
    a->smooth = 0;
    return possible;
}

/* scale[i] = 1 / sqrt(curvature) of coordinate i, from its factor */
static void scale_by_curvature(const struct clt *a, double *scale) {
    const int size = clt_coordinates(a);
    for (int i = 0; i < size; ++i) {
        const double *row = a->curvature + (size_t)i * size;
        scale[i] = 1 / sqrt(dot(i + 1, row, row));
    }
}

/* Beyond it the parameters and the innovations share what the release tells of the totals. */
static const double MOST_TOLD = 0.1;

/* What the release tells of an innovation, on average, in units of what is known before. */
static double told_of_innovations(const struct clt *a, const double *scale) {
    const int moving = a->model.moving, innovations = a->moments.innovations;
    double sum = 0;
    for (int i = moving; i < moving + innovations; ++i) sum += 1 / (scale[i] * scale[i]) - 1;
    return sum / innovations;
}

/* NUTS's coordinates are those in which the posterior is about standard normal where its mode
 * would be with normal noise; chains start at such a normal draw. A chain whose theta is given
 * starts there. */
static void start_nuts(struct clt *a, int search, const double *move_sd) {
    enum { MOST_STEPS = 40 };
    const int moving = a->model.moving, size = clt_coordinates(a);
    double *precision = a->scout + 3 * (size_t)size;
    *a->store = 0;
    clt_resume(a);
    if (search > 0) search_expected(a, search);
    memset(a->reference, 0, (size_t)size * sizeof(double));
    take_moving(a, a->theta, a->reference);
    for (int j = 0; j < size; ++j) {
        precision[j] = j < moving ? 1 / (move_sd[j] * move_sd[j]) : 1;
    }
    double *const scale = a->scout;
    const int possible = climb(a, precision, search > 0 ? MOST_STEPS : 0);
    for (int i = 0; i < size && !possible; ++i) scale[i] = 1 / sqrt(precision[i]);
    if (possible) scale_by_curvature(a, scale);
    *a->rotated = possible && told_of_innovations(a, scale) > MOST_TOLD;
    if (*a->rotated != 0)
        invert_factor(a);
    else
        memcpy(a->map, scale, (size_t)size * sizeof(double));
    double *q = a->scout;
    memset(q, 0, (size_t)size * sizeof(double));
    if (search > 0) rng_fill_normal(a->rng, size, q);
    hmc_start(&a->hmc, q, NULL);
    if (!hmc_refresh(&a->hmc)) {
        memset(q, 0, (size_t)size * sizeof(double));
        hmc_start(&a->hmc, q, NULL);
        (void)hmc_refresh(&a->hmc);
    }
    hmc_find_step(&a->hmc, a->rng);
    take_state(a);
}

static void iterate_nuts(struct clt *a, int iteration, int warmup, double *accepted) {
    struct hmc_step told;
    double *old = a->scout;
    const size_t bytes = (size_t)clt_coordinates(a) * sizeof(double);
    memcpy(old, a->hmc.q, bytes);
    take_state(a);
    const double before = log_unrounded(a, a->total);
    hmc_nuts(&a->hmc, a->rng, &told);
    take_state(a);
    const int kept = -rng_exponential(a->rng) < log_unrounded(a, a->total) - before;
    if (!kept) {
        memcpy(a->hmc.q, old, bytes);
        (void)hmc_refresh(&a->hmc);
        take_state(a);
    }
    hmc_learn(&a->hmc, iteration, warmup, &told, a->rng);
    *accepted = told.accept;
    if (iteration < warmup) return;
    a->moves_made += 1;
    a->moves_accepted += told.accept;
    a->kept += kept;
    a->leapfrogs += told.leapfrogs;
    a->divergent += told.divergent;
    a->deepest += told.depth == HMC_MOST_DEPTH;
}

void clt_start(struct clt *a, int search, const double *move_sd) {
    for (int j = 0; j < a->size; ++j)
        a->variance[j] = (a->absolute[j] != 0 ? 2 : 1) * a->scale[j] * a->scale[j];
    if (a->sampler == CLT_NUTS) {
        start_nuts(a, search, move_sd);
        return;
    }
    search_marginal(a, search);
    adapt_start(&a->adapt, move_sd, a->passes);
}

/* ---- proposals ------------------------------------------------------------------ */

/* Normal steps of the learned shape for all moves of an iteration, in one product:
 * coordinate j of move k is steps[j * passes + k]. */
static void draw_steps(struct clt *a) {
    const int dim = a->model.moving;
    const size_t passes = (size_t)a->passes;
    for (int j = 0; j < dim; ++j)
        rng_fill_normal(a->rng, a->passes, a->normals + (size_t)j * passes);
    memcpy(a->steps, a->normals, (size_t)dim * passes * sizeof(double));
    linalg_shape_rows(a->passes, dim, a->adapt.chol, a->steps);
    for (int j = 0; j < dim; ++j) a->sphered[j] = a->theta[a->model.moves[j]] - a->adapt.centre[j];
    linalg_forward(dim, a->adapt.chol, a->sphered);
}

/* Returns the log ratio of the proposal's densities, back over forth. With w the sphered
 * theta, a walk proposes w + l x, x normal; a regression towards the centre
 * (w + l sqrt(g) x) / sqrt(1 + l^2), g inverse gamma such that w ~ N(0, g I) given g, and
 * is reversible for |w|^-dim (Kamatani 2018): a walk's tails, and in many dimensions
 * longer steps, the more so the closer theta's distribution comes to elliptical. */
static double propose(struct clt *a, int k, int regress) {
    const int dim = a->model.moving;
    const double scale = exp(*a->adapt.log_scale);
    double keep = 1, spread = scale, square = 0, square_new = 0;
    for (int j = 0; j < dim; ++j) square += a->sphered[j] * a->sphered[j];
    regress = regress && *a->adapt.has_centre > 0 && square > 0;
    if (regress) {
        keep = 1 / sqrt(1 + scale * scale);
        spread = scale * keep * sqrt(0.5 * square / dist_gamma(a->rng, 0.5 * dim));
    }
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < dim; ++j) {
        const size_t at = (size_t)j * (size_t)a->passes + (size_t)k;
        const int moved = a->model.moves[j];
        a->step[j] = (keep - 1) * (a->theta[moved] - a->adapt.centre[j]) + spread * a->steps[at];
        a->theta_new[moved] += a->step[j];
        a->sphered_new[j] = keep * a->sphered[j] + spread * a->normals[at];
        square_new += a->sphered_new[j] * a->sphered_new[j];
    }
    return regress ? 0.5 * dim * log(square_new / square) : 0;
}

/* Takes theta_new, or not. */
static int decide(struct clt *a, double log_ratio, int learning) {
    const int accept = -log_ratio < rng_exponential(a->rng);
    if (accept) {
        memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        memcpy(a->sphered, a->sphered_new, (size_t)a->model.moving * sizeof(double));
    }
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        adapt_saw_pass(&a->adapt, PASS_WALK, probability, a->step, 1);
    } else {
        a->moves_made += 1;
        a->moves_accepted += accept;
    }
    return accept;
}

/* ---- theta with the total integrated out ------------------------------------- */

static void swap_distributions(struct clt *a) {
    const struct distribution old = a->now;
    a->now = a->next;
    a->next = old;
}

static int move_marginal(struct clt *a, int k, int learning) {
    (void)propose(a, k, 0);
    double log_ratio = -INFINITY;
    a->next.log_prior = a->model.class->dprior(a->model.self, a->theta_new);
    if (isfinite(a->next.log_prior) && set_moments(a, a->theta_new, &a->next) == PLUGIN_OK &&
        set_density(a, &a->next) == PLUGIN_OK)
        log_ratio = a->next.log_prior - a->now.log_prior + a->next.log_density - a->now.log_density;
    const int accept = decide(a, log_ratio, learning);
    if (accept) swap_distributions(a);
    return accept;
}

/* ---- the total given theta, omega and z ---------------------------------------- */

static void prepare_root(struct clt *a) {
    if (a->moments.class->from_innovations) return;
    memcpy(a->root, a->now.cov, (size_t)a->wide * (size_t)a->wide * sizeof(double));
    a->rank = linalg_semi_cholesky(a->wide, a->root, a->pivot, a->work);
}

static void add_extra(const struct clt *a, double *total) {
    for (int j = 0; j < a->size; ++j) total[j] += a->extra[j];
}

static void draw_total(struct clt *a) {
    const int d = a->size, w = a->wide;
    const struct record_moments *m = &a->moments;
    double *total = a->total, *pull = a->pull;
    const double root_n = sqrt(a->n);
    if (m->class->from_innovations) {
        rng_fill_normal(a->rng, m->innovations, a->u);
        m->class->from_innovations(m->self, a->theta, a->n, a->u, total);
    } else {
        rng_fill_normal(a->rng, a->rank, a->normal);
        linalg_semi_multiply(w, a->rank, a->root, a->pivot, a->normal, a->work);
        for (int i = 0; i < w; ++i) total[i] = a->n * a->now.mean[i] + root_n * a->work[i];
    }
    rng_fill_normal(a->rng, d, a->normal);
    for (int j = 0; j < d; ++j) {
        a->extra[j] = a->ridge[j] > 0 ? sqrt(a->ridge[j]) * rng_normal(a->rng) : 0;
        pull[j] = a->released[j] - total[j] - a->extra[j] - sqrt(a->variance[j]) * a->normal[j];
    }
    linalg_forward(d, a->now.factor, pull);
    linalg_backward(d, a->now.factor, pull);
    for (int j = 0; j < d; ++j) a->extra[j] += a->ridge[j] * pull[j];
    if (m->class->from_innovations) {
        m->class->pull(m->self, root_n, pull, a->u);
        m->class->from_innovations(m->self, a->theta, a->n, a->u, total);
    } else {
        for (int i = 0; i < w; ++i) {
            const double *restrict cov = a->now.cov + (size_t)i * w;
            double sum = 0;
            for (int j = 0; j < d; ++j) sum += cov[j] * pull[j];
            total[i] += a->n * sum;
        }
    }
    add_extra(a, total);
}

static int complete(struct clt *a) {
    const struct record_moments *m = &a->moments;
    return !a->conjugate || m->class->complete(m->self, a->n, a->total, a->complete);
}

/* Could records have the total? */
static int draw_possible_total(struct clt *a, int learning) {
    for (int k = 1; k <= MOST_DRAWS; ++k) {
        draw_total(a);
        if (complete(a)) return 1;
        a->invalid += k == 1 && !learning;
    }
    return 0;
}

static void draw_variances(struct clt *a) {
    for (int j = 0; j < a->size; ++j) {
        if (a->absolute[j] == 0) continue;
        const double b = a->scale[j];
        a->variance[j] =
            b * b * dist_laplace_variance(a->rng, fabs(a->released[j] - a->total[j]) / b);
    }
}

double clt_log_noise(const struct clt *a, const double *total) {
    double energy = 0;
    for (int j = 0; j < a->size; ++j) {
        const double r = fabs(a->released[j] - total[j]) / a->scale[j];
        energy += a->absolute[j] != 0 ? r : 0.5 * r * r;
    }
    return -energy;
}

/* ---- theta with the total's innovations fixed ---------------------------------------- */

static int move_noncentred(struct clt *a, int k, int learning) {
    const struct record_moments *m = &a->moments;
    const double back_over_forth = propose(a, k, k % 4 != 0);
    double log_ratio = -INFINITY, log_noise = 0;
    const double log_prior = a->model.class->dprior(a->model.self, a->theta_new);
    if (isfinite(log_prior)) {
        m->class->from_innovations(m->self, a->theta_new, a->n, a->u, a->total_new);
        add_extra(a, a->total_new);
        log_noise = clt_log_noise(a, a->total_new);
        log_ratio = log_prior - a->now.log_prior + log_noise - a->log_noise + back_over_forth;
    }
    if (!decide(a, log_ratio, learning)) return 0;
    double *const old = a->total;
    a->total = a->total_new;
    a->total_new = old;
    a->now.log_prior = log_prior;
    a->log_noise = log_noise;
    return 1;
}

/* ---- an iteration ----------------------------------------------------------------- */

static void gather_moving(const struct clt *a, double *out) {
    for (int j = 0; j < a->model.moving; ++j) out[j] = a->theta[a->model.moves[j]];
}

/* theta given the total */
static int update(struct clt *a, int possible, int learning) {
    if (!possible) {
        a->moments.class->project(a->moments.self, a->n, a->complete);
        a->projected += !learning;
    }
    a->fresh = 0;
    return a->model.class->rtheta(a->model.self, a->complete, a->n, a->rng, a->theta);
}

/* Moves of theta; returns how many were accepted. */
static int move(struct clt *a, int learning) {
    int accepted = 0;
    if (a->sampler == CLT_GIBBS) return 0;
    a->now.log_prior = a->model.class->dprior(a->model.self, a->theta);
    if (a->sampler == CLT_NONCENTRED) a->log_noise = clt_log_noise(a, a->total);
    draw_steps(a);
    for (int k = 0; k < a->passes; ++k)
        accepted += a->sampler == CLT_MARGINAL ? move_marginal(a, k, learning)
                                               : move_noncentred(a, k, learning);
    return accepted;
}

int clt_iterate(struct clt *a, int iteration, int warmup, double *accepted) {
    const int learning = iteration < warmup;
    if (a->sampler == CLT_NUTS) {
        iterate_nuts(a, iteration, warmup, accepted);
        return PLUGIN_OK;
    }
    if (!a->fresh && set_moments(a, a->theta, &a->now) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    if (set_density(a, &a->now) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    a->fresh = 1;
    double *before = a->step, *after = a->theta_new;
    int moved = 0;
    if (a->sampler == CLT_MARGINAL) moved = move(a, learning);
    prepare_root(a);
    int possible = draw_possible_total(a, learning);
    if (a->sampler == CLT_NONCENTRED && (moved = move(a, learning)) > 0) {
        a->fresh = 0;
        possible = complete(a);
    }
    *accepted = a->sampler == CLT_GIBBS ? 0 : (double)moved / a->passes;
    draw_variances(a);
    gather_moving(a, before);
    if (a->conjugate && update(a, possible, learning) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    if (!learning || a->sampler == CLT_GIBBS) return PLUGIN_OK;
    gather_moving(a, after);
    adapt_saw_sweep(&a->adapt, before, after, 1);
    if (adapt_window(iteration, warmup)) adapt_close_window(&a->adapt, WINDOW_ENDS);
    return PLUGIN_OK;
}
