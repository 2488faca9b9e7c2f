/* Method "clt": a normal distribution for the totals (Bernstein & Sheldon 2018, 2019), in a form
 * that works for every model and statistic with known moments.
 *
 * For one record let (t, a) have mean mu and covariance V under theta, t the released statistic, a
 * what the complete-data statistic c needs in addition. By the central limit theorem the total is
 * N(n mu, n V), and z | s ~ N(s, Omega) with Omega = diag(omega^2): fixed for Gaussian noise; for
 * Laplace noise of scale b, omega^2 ~ Exponential(rate 1 / (2 b^2)). Discrete noise has the same
 * kernel as its continuous twin. Steps:
 *   M. theta | omega, z with the total integrated out, z ~ N(n mu_t, n V_tt +
 *      Omega): random walks, their shape and scale learned in warmup;
 *   D. (s, a) | theta, omega, z: draw (s0, a0) ~ N(n mu, n V), e ~ N(0, Omega),
 *      r = (n V_tt + Omega)^-1 (z - s0 - e), add n V_.t r: V may be singular. Where
 *      the total is made of innovations, s = n mu + sqrt(n) A u with A A' = V, these are
 *      drawn: u0 + sqrt(n) A'r;
 *   N. theta | u, z with omega integrated out: moves that also move s, a quarter of them walks,
 *   the others regressions towards the centre found in warmup; C. theta | c by the model's own
 *   update; V. omega | s, 1 / omega^2 inverse Gaussian.
 * Samplers, in the order of an iteration: the papers' Gibbs D, V, C; marginal M, D, V, C;
 * non-centred D, N, V, C. D does not look at the last total, and none of the innovations outlives
 * an iteration; omega, integrated out in N, is drawn before it is used (van Dyk & Park 2008). If
 * noise dominates, the innovations contain little information about theta: a step N is then as
 * efficient as a step M, without a covariance.
 *
 * Or NUTS moves theta and the innovations at once (clt/clt_nuts_moves.c).
 *
 * Without C the distribution is p(theta) N(z; n mu_t, n V_tt + Omega) p(omega), exactly; with it
 * the exact distribution of c given theta is also used, to which the normal one converges as n
 * grows.
 *
 * A drawn c that no records could have (counts outside [0, n], a scatter that is
 * negative) is drawn again, then projected; both are counted.
 *
 * Cost, free of n: an iteration has one evaluation of the moments and one Cholesky factor
 * of the released ones; each step M has one more of both; without innovations D has one
 * of all moments. N costs what a total costs; a gradient two or three times that.
 */
#include "clt/clt.h"

#include "base/dist.h"
#include "base/linalg.h"
#include "contract/model.h"
#include "contract/model_prior.h"
#include "contract/model_update.h"

const char *const clt_sampler_names[CLT_SAMPLERS] = {
    [CLT_GIBBS] = "gibbs",
    [CLT_MARGINAL] = "marginal",
    [CLT_NONCENTRED] = "noncentred",
    [CLT_NUTS] = "nuts",
};

/* draws before a complete-data statistic is projected */
enum { MOST_DRAWS = 20 };

static void distribution_prepare(struct distribution *totals, int size, int wide) {
    totals->mean = doubles((size_t)wide);
    totals->cov = doubles((size_t)wide * (size_t)wide);
    totals->factor = doubles((size_t)size * (size_t)size);
    totals->white = doubles((size_t)size);
}

void clt_prepare(struct clt *a) {
    a->size = a->moments.released;
    a->wide = a->size + a->moments.aside;
    distribution_prepare(&a->now, a->size, a->wide);
    if (a->sampler == CLT_MARGINAL || (a->unknown.prior && a->sampler == CLT_GIBBS))
        distribution_prepare(&a->next, a->size, a->wide);
    a->total.now = doubles((size_t)a->wide);
    if (a->sampler == CLT_NONCENTRED || a->sampler == CLT_NUTS)
        a->total.next = doubles((size_t)a->wide);
    if (a->sampler == CLT_MARGINAL || a->sampler == CLT_NONCENTRED) {
        const size_t dim = (size_t)a->model.moving;
        DOUBLES((size_t)a->walk.passes * dim, &a->walk.normals, &a->walk.steps);
        DOUBLES(dim, &a->walk.sphered, &a->walk.sphered_new);
    }
    a->total.extra = doubles((size_t)a->size);
    a->total.u = doubles((size_t)a->moments.innovations);
    a->complete = doubles((size_t)a->moments.complete);
    if (!a->moments.class->from_innovations)
        a->factor.root = doubles((size_t)a->wide * (size_t)a->wide);
    a->factor.pivot = plugin_memory((size_t)a->wide, sizeof(int));
    a->factor.normal = doubles((size_t)a->wide);
    a->pull = doubles((size_t)a->size);
    a->factor.work = doubles(3 * (size_t)a->wide);
    DOUBLES((size_t)a->model.parameters, &a->theta_new, &a->step);
    if (a->sampler == CLT_NUTS) clt_nuts_prepare(a);
}

void clt_resume(struct clt *a) {
    if (a->sampler == CLT_NUTS) clt_nuts_resume(a);
}

/* ---- the distribution of z ----------------------------------------------------------- */

/* With many records a chain that starts far away may settle on the first of several
 * theta that explain z. A draw that is chosen among many by their densities lies near the
 * one that explains it best. */
static void search_marginal(struct clt *a, int search) {
    const size_t bytes = (size_t)a->model.parameters * sizeof(double);
    double all = -INFINITY; /* log of the sum of the densities */
    for (int k = 0; k <= search && search > 0; ++k) {
        if (k > 0) model_rprior(&a->model, a->rng, a->theta_new);
        const double *theta = k > 0 ? a->theta_new : a->theta;
        if (clt_set_moments(a, theta, &a->now) != PLUGIN_OK ||
            clt_set_density(a, &a->now) != PLUGIN_OK)
            continue;
        const double log_density = a->now.log_density, above = log_density - all;
        all = above > 0 ? log_density + log1p(exp(-above)) : all + log1p(exp(above));
        const int chosen = -rng_exponential(a->rng) < log_density - all;
        if (chosen && k > 0) memcpy(a->theta, a->theta_new, bytes);
    }
}

/* ---- the start ------------------------------------------------------------------ */

double clt_draw_size(const struct clt *a, struct rng *rng) {
    const struct size_prior *prior = a->unknown.prior;
    const double n = rint(a->n + a->unknown.spread * rng_normal(rng));
    return fmax(fmin(n, prior->upper), fmax(prior->lower, 2));
}

static void start_size(struct clt *a) {
    a->n = clt_draw_size(a, a->rng);
    size_slope_start(&a->unknown.slope);
}

void clt_start(struct clt *a, int search, const double *move_sd) {
    if (a->unknown.prior) start_size(a);
    const struct noise *z = &a->noise;
    for (int j = 0; j < a->size; ++j)
        a->variance[j] = (z->kernel[j] == KERNEL_ABSOLUTE ? 2 : 1) * z->scale[j] * z->scale[j];
    if (a->sampler == CLT_NUTS) {
        clt_nuts_start(a, search, move_sd);
        return;
    }
    search_marginal(a, search);
    adapt_start(&a->adapt, move_sd, a->walk.passes);
}

/* ---- proposals ------------------------------------------------------------------ */

/* Normal steps of the learned shape for all moves of an iteration, in one product:
 * coordinate j of move k is steps[j * passes + k]. */
static void draw_steps(struct clt *a) {
    const int dim = a->model.moving;
    const size_t passes = (size_t)a->walk.passes;
    for (int j = 0; j < dim; ++j)
        rng_fill_normal(a->rng, a->walk.passes, a->walk.normals + (size_t)j * passes);
    memcpy(a->walk.steps, a->walk.normals, (size_t)dim * passes * sizeof(double));
    linalg_shape_rows(a->walk.passes, dim, a->adapt.chol, a->walk.steps);
    for (int j = 0; j < dim; ++j)
        a->walk.sphered[j] = a->theta[a->model.moves[j]] - a->adapt.centre[j];
    linalg_forward(dim, a->adapt.chol, a->walk.sphered);
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
    for (int j = 0; j < dim; ++j) square += a->walk.sphered[j] * a->walk.sphered[j];
    regress = regress && *a->adapt.has_centre > 0 && square > 0;
    if (regress) {
        keep = 1 / sqrt(1 + scale * scale);
        spread = scale * keep * sqrt(0.5 * square / dist_gamma(a->rng, 0.5 * dim));
    }
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < dim; ++j) {
        const size_t at = (size_t)j * (size_t)a->walk.passes + (size_t)k;
        const int moved = a->model.moves[j];
        a->step[j] =
            (keep - 1) * (a->theta[moved] - a->adapt.centre[j]) + spread * a->walk.steps[at];
        a->theta_new[moved] += a->step[j];
        a->walk.sphered_new[j] = keep * a->walk.sphered[j] + spread * a->walk.normals[at];
        square_new += a->walk.sphered_new[j] * a->walk.sphered_new[j];
    }
    return regress ? 0.5 * dim * log(square_new / square) : 0;
}

/* Takes theta_new, or not. */
static int decide(struct clt *a, double log_ratio, int learning) {
    const int accept = -log_ratio < rng_exponential(a->rng);
    if (accept) {
        memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        memcpy(a->walk.sphered, a->walk.sphered_new, (size_t)a->model.moving * sizeof(double));
    }
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        adapt_saw_pass(&a->adapt, PASS_WALK, probability, a->step, 1);
    } else {
        a->counter[CLT_MADE] += 1;
        a->counter[CLT_ACCEPTED] += accept;
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
    a->next.log_prior = a->model.prior->dprior(a->model.self, a->theta_new);
    if (isfinite(a->next.log_prior) && clt_set_moments(a, a->theta_new, &a->next) == PLUGIN_OK &&
        clt_set_density(a, &a->next) == PLUGIN_OK)
        log_ratio = a->next.log_prior - a->now.log_prior + a->next.log_density - a->now.log_density;
    const int accept = decide(a, log_ratio, learning);
    if (accept) swap_distributions(a);
    return accept;
}

/* ---- the total given theta, omega and z ---------------------------------------- */

static void prepare_root(struct clt *a) {
    if (a->moments.class->from_innovations) return;
    memcpy(a->factor.root, a->now.cov, (size_t)a->wide * (size_t)a->wide * sizeof(double));
    a->factor.rank = linalg_semi_cholesky(a->wide, a->factor.root, a->factor.pivot, a->factor.work);
}

static void add_extra(const struct clt *a, double *total) {
    for (int j = 0; j < a->size; ++j) total[j] += a->total.extra[j];
}

static void draw_total(struct clt *a) {
    const int d = a->size, w = a->wide;
    const struct record_moments *m = &a->moments;
    double *total = a->total.now, *pull = a->pull;
    const double root_n = sqrt(a->n);
    if (m->class->from_innovations) {
        rng_fill_normal(a->rng, m->innovations, a->total.u);
        m->class->from_innovations(m->self, a->theta, a->n, a->total.u, total);
    } else {
        rng_fill_normal(a->rng, a->factor.rank, a->factor.normal);
        linalg_semi_multiply(w, a->factor.rank, a->factor.root, a->factor.pivot, a->factor.normal,
                             a->factor.work);
        for (int i = 0; i < w; ++i) total[i] = a->n * a->now.mean[i] + root_n * a->factor.work[i];
    }
    rng_fill_normal(a->rng, d, a->factor.normal);
    for (int j = 0; j < d; ++j) {
        a->total.extra[j] = a->ridge[j] > 0 ? sqrt(a->ridge[j]) * rng_normal(a->rng) : 0;
        pull[j] = a->noise.released[j] - total[j] - a->total.extra[j] -
                  sqrt(a->variance[j]) * a->factor.normal[j];
    }
    linalg_forward(d, a->now.factor, pull);
    linalg_backward(d, a->now.factor, pull);
    for (int j = 0; j < d; ++j) a->total.extra[j] += a->ridge[j] * pull[j];
    if (m->class->from_innovations) {
        m->class->pull(m->self, root_n, pull, a->total.u);
        m->class->from_innovations(m->self, a->theta, a->n, a->total.u, total);
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
    return !a->conjugate || m->class->complete(m->self, a->n, a->total.now, a->complete);
}

/* Could records have the total? */
static int draw_possible_total(struct clt *a, int learning) {
    for (int k = 1; k <= MOST_DRAWS; ++k) {
        draw_total(a);
        if (complete(a)) return 1;
        a->counter[CLT_IMPOSSIBLE] += k == 1 && !learning;
    }
    return 0;
}

static void draw_variances(struct clt *a) {
    for (int j = 0; j < a->size; ++j) {
        if (a->noise.kernel[j] != KERNEL_ABSOLUTE) continue;
        const double b = a->noise.scale[j], away = fabs(a->noise.released[j] - a->total.now[j]);
        a->variance[j] = b * b * dist_laplace_variance(a->rng, away / b);
    }
}

/* ---- theta with the total's innovations fixed ---------------------------------------- */

static int move_noncentred(struct clt *a, int k, int learning) {
    const struct record_moments *m = &a->moments;
    const double back_over_forth = propose(a, k, k % 4 != 0);
    double log_ratio = -INFINITY, log_noise = 0;
    const double log_prior = a->model.prior->dprior(a->model.self, a->theta_new);
    if (isfinite(log_prior)) {
        m->class->from_innovations(m->self, a->theta_new, a->n, a->total.u, a->total.next);
        add_extra(a, a->total.next);
        log_noise = clt_log_noise(a, a->total.next);
        log_ratio = log_prior - a->now.log_prior + log_noise - a->total.log_noise + back_over_forth;
    }
    if (!decide(a, log_ratio, learning)) return 0;
    double *const old = a->total.now;
    a->total.now = a->total.next;
    a->total.next = old;
    a->now.log_prior = log_prior;
    a->total.log_noise = log_noise;
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
        a->counter[CLT_PROJECTED] += !learning;
    }
    a->fresh = 0;
    return a->model.update->rtheta(a->model.self, a->complete, a->n, a->rng, a->theta);
}

/* Moves of theta; returns how many were accepted. */
static int move(struct clt *a, int learning) {
    int accepted = 0;
    if (a->sampler == CLT_GIBBS) return 0;
    a->now.log_prior = a->model.prior->dprior(a->model.self, a->theta);
    if (a->sampler == CLT_NONCENTRED) a->total.log_noise = clt_log_noise(a, a->total.now);
    draw_steps(a);
    for (int k = 0; k < a->walk.passes; ++k)
        accepted += a->sampler == CLT_MARGINAL ? move_marginal(a, k, learning)
                                               : move_noncentred(a, k, learning);
    return accepted;
}

int clt_iterate(struct clt *a, int iteration, int warmup, double *accepted) {
    const int learning = iteration < warmup;
    if (a->sampler == CLT_NUTS) {
        clt_nuts_iterate(a, iteration, warmup, accepted);
        return PLUGIN_OK;
    }
    if (!a->fresh && clt_set_moments(a, a->theta, &a->now) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    if (clt_set_density(a, &a->now) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    a->fresh = 1;
    double *before = a->step, *after = a->theta_new;
    int moved = 0;
    if (a->sampler == CLT_MARGINAL) moved = move(a, learning);
    if (a->unknown.prior && a->sampler != CLT_NONCENTRED)
        (void)clt_move_size(a, iteration, learning);
    prepare_root(a);
    int possible = draw_possible_total(a, learning);
    if (a->sampler == CLT_NONCENTRED && (moved = move(a, learning)) > 0) {
        a->fresh = 0;
        possible = complete(a);
    }
    if (a->unknown.prior && a->sampler == CLT_NONCENTRED &&
        clt_move_size(a, iteration, learning) > 0) {
        a->fresh = 0;
        possible = complete(a);
    }
    *accepted = a->sampler == CLT_GIBBS ? 0 : (double)moved / a->walk.passes;
    draw_variances(a);
    gather_moving(a, before);
    if (a->conjugate && update(a, possible, learning) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    if (learning && a->unknown.prior) {
        size_slope_saw(&a->unknown.slope, a->n, log(a->n), a->theta);
        if (adapt_window(iteration, warmup)) size_slope_close(&a->unknown.slope);
    }
    if (!learning || a->sampler == CLT_GIBBS) return PLUGIN_OK;
    gather_moving(a, after);
    adapt_saw_sweep(&a->adapt, before, after, 1);
    if (adapt_window(iteration, warmup)) adapt_close_window(&a->adapt, WINDOW_ENDS);
    return PLUGIN_OK;
}
