/* Method "collapse", noisy records: every record has normal noise of known variances, which may be
 * 0, and the release has the totals of the noisy records and of their products (vignette
 * "Algorithms", "collapse"). Exact: nothing is clamped.
 *
 * Write X = (1, dummies, r) for the n x (k + d) matrix of observations, with r the noisy values of
 * the d continuous columns, w the confidential ones, N the columns with noise of variances D.
 * Given theta, with the precision L = Sigma^-1 of a record, records are independent and
 *
 *   w_N | X ~ N(A'x, Q^-1),  Q = L_NN + D^-1,  A'x = Q^-1 (L_N. mean(x) - L_NE r_E + D^-1 r_N).
 *
 * So w_N = X A + E with rows N(0, Q^-1) in E. The model's update needs only the products of w with
 * X and with itself, and these require only
 *
 *   X'E = C Z R^-1,  E'E = R^-T (Z'Z + W) R^-1,  with X'X = C C', Q = R R',
 *
 * Z standard normal, W ~ Wishart(n - rank X, I) independent of it: the part of E in the span of X,
 * and the rest. An iteration draws them, then theta given the totals: a Gibbs sampler of
 * (totals, theta), which has the posterior given all noisy records, since X'X is sufficient.
 *
 * It moves little if noise hides much of the information in the totals of the records. So NUTS
 * (mcmc/hmc.c) first moves theta, except for the probabilities of levels, with the totals
 * integrated out: given dummies f, r ~ N(B'f, S), S = Sigma + D, and with G the products of (1, f,
 * r)
 *
 *   log p(r | theta) = -(n log |S| + tr S^-1 U) / 2,  U = G_rr - G_rf B - B'G_fr + B'G_ff B.
 *
 * Cost: O((k + d)^2 d) an iteration and O(d^3 + k d^2) a gradient, free of n. No allocation except
 * in create().
 */
#include "base/block.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/collapse.h"
#include "contract/model_levels.h"
#include "contract/model_normal.h"
#include "contract/model_prior.h"
#include "contract/model_update.h"
#include "mcmc/hmc.h"
#include "totals/density.h"

enum {
    FEW = 60,   /* up to so many coordinates warmup learns a full matrix */
    SETTLE = 20 /* Gibbs steps before a chain begins */
};

/* Where noise hides much, the density is a thin bent shell. */
static const double TARGET_ACCEPT = 0.9;

/* NUTS: its coordinates' places in theta, and workspace, the matrices row by row. */
struct noisy_nuts {
    struct hmc hmc;
    int moving, *place;
    double *theta, *slope;
    double *spread, *about, *scatter; /* S's factor; G_fr - G_ff B, k x d; U */
    double *slope_mean, *slope_cov, *slope_chol, *work, *unit;
};

struct noisy {
    int d, k, size;     /* continuous columns; fixed ones; their sum */
    int *at;            /* the model's column of each of X; of the first, which is 1, none */
    int noisy;          /* how many columns have noise */
    int *column;        /* each one's place among the continuous columns */
    double *precision;  /* of its noise */
    const double *seen; /* complete-data statistic of the noisy records */
    struct {
        double *gram, *factor; /* X'X, and P'X'X P = C C' */
        int *pivot, rank;
    } x;
    const struct component *component;
    struct noisy_nuts nuts;
    const struct model *model;
    double n;

    /* State: the complete-data statistic of the confidential records, minus the log density of the
     * noise up to a constant, and NUTS's. */
    double *c, *energy;

    /* workspace, the matrices row by row */
    double *mean, *chol, *inverse, *lambda; /* k x d; d x d */
    double *root;                           /* R */
    double *map, *left, *product;           /* A, X'E, X'w_N: size x noisy */
    double *normal, *column_draw;           /* Z' */
    double *rest, *wishart;                 /* noisy x noisy */
};

static void transpose(int size, double *x) {
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < i; ++j) {
            const double swapped = x[i * size + j];
            x[i * size + j] = x[j * size + i];
            x[j * size + i] = swapped;
        }
}

static enum hmc_metric metric(const struct noisy *s) {
    return s->nuts.moving <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

/* entry of X'X in terms of the complete-data statistic */
static double gram_entry(const struct noisy *s, double n, int i, int j) {
    if (i == 0 && j == 0) return n;
    if (i == 0 || j == 0) return s->seen[s->at[i + j]];
    return s->seen[moments_at(s->model->columns, s->at[i], s->at[j])];
}

static void place_columns(struct noisy *s, const struct model *model) {
    int fixed = 1;
    for (int f = 0; f < model_factors(model); ++f)
        for (int l = 1; l < model->levels->factor[f].levels; ++l)
            s->at[fixed++] = model->levels->factor[f].first + l - 1;
    for (int i = 0; i < s->d; ++i) s->at[s->k + i] = model->normal->order[i];
}

/* What NUTS moves: where no column has noise, nothing. */
static void prepare_nuts(struct noisy *s) {
    struct noisy_nuts *nuts = &s->nuts;
    const struct model *model = s->model;
    const int d = s->d, k = s->k;
    nuts->place = plugin_memory((size_t)model->moving, sizeof(int));
    for (int j = 0; s->noisy > 0 && j < model->moving; ++j) {
        const struct theta_block *block = model->coordinates.block;
        while (model->moves[j] >= block->offset + block->length) ++block;
        if (block->transform != TRANSFORM_STICKS) nuts->place[nuts->moving++] = model->moves[j];
    }
    DOUBLES((size_t)model->parameters, &nuts->theta, &nuts->slope);
    DOUBLES((size_t)d * (size_t)d, &nuts->spread, &nuts->scatter, &nuts->slope_cov,
            &nuts->slope_chol);
    DOUBLES((size_t)k * (size_t)d, &nuts->about, &nuts->slope_mean);
    nuts->unit = doubles(5 * (size_t)nuts->moving);
    nuts->work = plugin_memory(hmc_workspace(nuts->moving, metric(s)), sizeof(double));
}

/* Fields: seen; noise_sd, one a column of the model, 0 for dummies; terms of the components. */
static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    if (!model->normal || !model->normal->pull_distribution) return PLUGIN_BAD_FIELDS;
    struct noisy *s = plugin_memory(1, sizeof *s);
    s->model = model;
    s->n = of->n;
    s->k = 1;
    for (int f = 0; f < model_factors(model); ++f) s->k += model->levels->factor[f].levels - 1;
    s->d = model->columns - (s->k - 1);
    s->size = s->k + s->d;
    s->seen = fields_vector(fields, "seen", model->complete);
    const double *sd = fields_vector(fields, "noise_sd", model->columns);
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * of->noise.size);
    if (!s->seen || !sd || !terms) return PLUGIN_BAD_FIELDS;
    s->component = read_components(model->columns, of->noise.size, terms);
    s->at = plugin_memory((size_t)s->size, sizeof(int));
    place_columns(s, model);

    const int d = s->d, size = s->size;
    s->column = plugin_memory((size_t)d, sizeof(int));
    s->precision = doubles((size_t)d);
    for (int i = 0; i < d; ++i) {
        const double of_column = sd[s->at[s->k + i]];
        if (of_column <= 0) continue;
        s->precision[s->noisy] = 1 / (of_column * of_column);
        s->column[s->noisy++] = i;
    }
    DOUBLES((size_t)size * (size_t)size, &s->x.gram, &s->x.factor);
    s->x.pivot = plugin_memory((size_t)size, sizeof(int));
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j) s->x.gram[i * size + j] = gram_entry(s, of->n, i, j);
    memcpy(s->x.factor, s->x.gram, (size_t)size * (size_t)size * sizeof(double));
    s->x.rank = linalg_semi_cholesky(size, s->x.factor, s->x.pivot, doubles(3 * (size_t)size));

    const int m = s->noisy;
    s->mean = doubles((size_t)s->k * (size_t)d);
    DOUBLES((size_t)d * (size_t)d, &s->chol, &s->inverse, &s->lambda);
    DOUBLES((size_t)m * (size_t)m, &s->root, &s->rest, &s->wishart);
    DOUBLES((size_t)size * (size_t)m, &s->map, &s->left, &s->product);
    s->normal = doubles((size_t)m * (size_t)size);
    s->column_draw = doubles((size_t)size);
    prepare_nuts(s);
    of->self = s;
    of->stored = model->complete + 1 + (int)hmc_stored(s->nuts.moving, metric(s));
    of->described = model->complete;
    return PLUGIN_OK;
}

/* L = Sigma^-1 */
static void invert_covariance(struct noisy *s) {
    const int d = s->d;
    for (int j = 0; j < d; ++j) {
        double *row = s->inverse + (size_t)j * (size_t)d; /* a column of the factor's inverse */
        memset(row, 0, (size_t)d * sizeof(double));
        row[j] = 1;
        linalg_forward(d, s->chol, row);
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            s->lambda[i * d + j] = linalg_dot(d, s->inverse + (size_t)i * (size_t)d,
                                              s->inverse + (size_t)j * (size_t)d);
}

/* R; returns 0 if there is one */
static int factor_precision(struct noisy *s) {
    const int m = s->noisy;
    for (int a = 0; a < m; ++a) {
        for (int b = 0; b < m; ++b)
            s->root[a * m + b] = s->lambda[s->column[a] * s->d + s->column[b]];
        s->root[a * m + a] += s->precision[a];
    }
    return linalg_cholesky(m, s->root);
}

/* A, a row for each column of X */
static void map_seen(struct noisy *s) {
    const int m = s->noisy, d = s->d;
    memset(s->map, 0, (size_t)s->size * (size_t)m * sizeof(double));
    for (int a = 0; a < m; ++a) {
        const double *lambda = s->lambda + (size_t)s->column[a] * (size_t)d;
        for (int f = 0; f < s->k; ++f) s->map[f * m + a] = linalg_dot(d, lambda, s->mean + f * d);
        for (int i = 0; i < d; ++i) s->map[(s->k + i) * m + a] = -lambda[i];
    }
    for (int b = 0; b < m; ++b) {
        double *row = s->map + (size_t)(s->k + s->column[b]) * (size_t)m;
        memset(row, 0, (size_t)m * sizeof(double));
        row[b] = s->precision[b];
    }
    for (int j = 0; j < s->size; ++j) {
        linalg_forward(m, s->root, s->map + (size_t)j * (size_t)m);
        linalg_backward(m, s->root, s->map + (size_t)j * (size_t)m);
    }
}

/* X'E, and E'E to `rest` */
static void draw_left(struct noisy *s, struct rng *rng, double n) {
    const int m = s->noisy, rank = s->x.rank;
    memset(s->rest, 0, (size_t)m * (size_t)m * sizeof(double));
    for (int a = 0; a < m; ++a) {
        double *z = s->normal + (size_t)a * (size_t)s->size;
        rng_fill_normal(rng, rank, z);
        linalg_semi_multiply(s->size, rank, s->x.factor, s->x.pivot, z, s->column_draw);
        for (int j = 0; j < s->size; ++j) s->left[j * m + a] = s->column_draw[j];
    }
    for (int j = 0; j < s->size; ++j) linalg_backward(m, s->root, s->left + (size_t)j * (size_t)m);

    /* a Wishart matrix T T', T lower triangular, of fewer columns if there are few records */
    double *t = s->wishart;
    memset(t, 0, (size_t)m * (size_t)m * sizeof(double));
    for (int a = 0; a < m; ++a) {
        for (int b = 0; b < a && b < n - rank; ++b) t[a * m + b] = rng_normal(rng);
        if (a < n - rank) t[a * m + a] = sqrt(dist_chisq(rng, n - rank - a));
    }
    for (int a = 0; a < m; ++a)
        for (int b = 0; b < m; ++b)
            s->rest[a * m + b] = linalg_dot(m, t + a * m, t + b * m) +
                                 linalg_dot(rank, s->normal + (size_t)a * (size_t)s->size,
                                            s->normal + (size_t)b * (size_t)s->size);
    /* R^-T on both sides: on rows, and after a transposition on rows again */
    for (int side = 0; side < 2; ++side) {
        for (int a = 0; a < m; ++a) linalg_backward(m, s->root, s->rest + (size_t)a * (size_t)m);
        transpose(m, s->rest);
    }
}

/* X'w_N and w_N'w_N, into c; and the energy */
static void put_totals(struct noisy *s) {
    const int m = s->noisy, size = s->size;
    for (int j = 0; j < size; ++j)
        for (int a = 0; a < m; ++a) {
            double sum = s->left[j * m + a];
            for (int l = 0; l < size; ++l) sum += s->x.gram[j * size + l] * s->map[l * m + a];
            s->product[j * m + a] = sum;
        }
    *s->energy = 0;
    for (int a = 0; a < m; ++a) {
        const int column = s->at[s->k + s->column[a]];
        s->c[column] = s->product[a];
        for (int j = 1; j < size; ++j)
            s->c[moments_at(s->model->columns, s->at[j], column)] = s->product[j * m + a];
    }
    for (int a = 0; a < m; ++a) {
        const int own = s->k + s->column[a];
        for (int b = 0; b <= a; ++b) {
            double sum = s->rest[a * m + b];
            for (int l = 0; l < size; ++l)
                sum += s->map[l * m + a] * s->product[l * m + b] +
                       s->left[l * m + a] * s->map[l * m + b];
            s->c[moments_at(s->model->columns, s->at[own], s->at[s->k + s->column[b]])] = sum;
        }
        const double square = s->c[moments_at(s->model->columns, s->at[own], s->at[own])];
        const double away = s->x.gram[own * size + own] - 2 * s->product[own * m + a] + square;
        *s->energy += 0.5 * s->precision[a] * fmax(away, 0);
    }
}

/* the confidential totals given theta, then theta given them */
static int draw_both(struct collapse *of) {
    struct noisy *s = of->self;
    const struct model *model = s->model;
    model->normal->distribution(model->self, of->theta, s->mean, s->chol);
    invert_covariance(s);
    if (factor_precision(s) != 0) return PLUGIN_NUMERICAL;
    map_seen(s);
    draw_left(s, of->rng, of->n);
    put_totals(s);
    return model->update->rtheta(model->self, s->c, of->n, of->rng, of->theta);
}

/* ---- NUTS ------------------------------------------------------------------------------ */

/* S^-1 x for each row of `rows` x d numbers */
static void solve_rows(const struct noisy *s, int rows, double *x) {
    for (int i = 0; i < rows; ++i, x += s->d) {
        linalg_forward(s->d, s->nuts.spread, x);
        linalg_backward(s->d, s->nuts.spread, x);
    }
}

/* G_fr - G_ff B, and U */
static void measure_scatter(struct noisy *s) {
    const int d = s->d, k = s->k, size = s->size;
    for (int f = 0; f < k; ++f)
        for (int i = 0; i < d; ++i) {
            double sum = s->x.gram[f * size + k + i];
            for (int g = 0; g < k; ++g) sum -= s->x.gram[f * size + g] * s->mean[g * d + i];
            s->nuts.about[f * d + i] = sum;
        }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j) {
            double sum = s->x.gram[(k + i) * size + k + j];
            for (int f = 0; f < k; ++f)
                sum -= s->x.gram[f * size + k + i] * s->mean[f * d + j] +
                       s->mean[f * d + i] * s->nuts.about[f * d + j];
            s->nuts.scatter[i * d + j] = sum;
        }
}

/* log p(r | theta), its slopes in B and in Sigma's factor; -INFINITY where S has no factor */
static double log_likelihood(struct noisy *s) {
    const int d = s->d;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            s->nuts.spread[i * d + j] = linalg_dot(j + 1, s->chol + i * d, s->chol + j * d);
    for (int a = 0; a < s->noisy; ++a)
        s->nuts.spread[s->column[a] * (d + 1)] += 1 / s->precision[a];
    if (linalg_cholesky(d, s->nuts.spread) != 0) return -INFINITY;
    double log_density = 0;
    for (int i = 0; i < d; ++i) log_density -= s->n * log(s->nuts.spread[i * (d + 1)]);
    measure_scatter(s);
    memcpy(s->nuts.slope_mean, s->nuts.about, (size_t)s->k * (size_t)d * sizeof(double));
    solve_rows(s, s->k, s->nuts.slope_mean);
    /* U S^-1, then S^-1 U S^-1 - n S^-1 */
    double *slope = s->nuts.slope_cov;
    memcpy(slope, s->nuts.scatter, (size_t)d * (size_t)d * sizeof(double));
    solve_rows(s, d, slope);
    transpose(d, slope);
    for (int i = 0; i < d; ++i) {
        log_density -= 0.5 * slope[i * d + i];
        slope[i * d + i] -= s->n;
    }
    solve_rows(s, d, slope);
    /* Sigma = C C' and 2 d log p / dSigma is `slope` */
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = 0;
            for (int l = j; l < d; ++l) sum += slope[i * d + l] * s->chol[l * d + j];
            s->nuts.slope_chol[i * d + j] = sum;
        }
    return log_density;
}

/* for mcmc/hmc.h */
static double log_density(void *self, const double *q, double *gradient) {
    struct noisy *s = self;
    struct noisy_nuts *nuts = &s->nuts;
    const struct model *model = s->model;
    for (int j = 0; j < nuts->moving; ++j) nuts->theta[nuts->place[j]] = q[j];
    const double prior = model->prior->dprior(model->self, nuts->theta);
    if (!isfinite(prior)) return -INFINITY;
    model->normal->distribution(model->self, nuts->theta, s->mean, s->chol);
    const double likelihood = log_likelihood(s);
    if (!isfinite(likelihood)) return -INFINITY;
    memset(nuts->slope, 0, (size_t)model->parameters * sizeof(double));
    model->prior->prior_gradient(model->self, nuts->theta, nuts->slope);
    model->normal->pull_distribution(model->self, nuts->theta, s->mean, s->chol, nuts->slope_mean,
                                     nuts->slope_chol, nuts->slope);
    for (int j = 0; j < nuts->moving; ++j) gradient[j] = nuts->slope[nuts->place[j]];
    return prior + likelihood;
}

/* NUTS's state from theta */
static int read_theta(struct collapse *of, double *q) {
    struct noisy *s = of->self;
    memcpy(s->nuts.theta, of->theta, (size_t)s->model->parameters * sizeof(double));
    for (int j = 0; j < s->nuts.moving; ++j) q[j] = of->theta[s->nuts.place[j]];
    return q == s->nuts.hmc.q ? hmc_refresh(&s->nuts.hmc) : 1;
}

static void attach(struct collapse *of) {
    struct noisy *s = of->self;
    const struct hmc_target target = {s->nuts.moving, s, log_density, NULL};
    s->c = of->store;
    s->energy = of->store + s->model->complete;
    hmc_attach(&s->nuts.hmc, &target, metric(s), s->energy + 1, s->nuts.work);
    s->nuts.hmc.target_accept = TARGET_ACCEPT;
}

static void load(struct collapse *of) {
    struct noisy *s = of->self;
    attach(of);
    (void)read_theta(of, s->nuts.hmc.q);
}

/* Where the noisy values are treated as the true ones, and some Gibbs steps from there. */
static void start(struct collapse *of) {
    struct noisy *s = of->self;
    const struct model *model = s->model;
    attach(of);
    memcpy(s->c, s->seen, (size_t)s->model->complete * sizeof(double));
    *s->energy = 0;
    if (!of->given) {
        (void)model->update->rtheta(model->self, s->c, of->n, of->rng, of->theta);
        for (int k = 0; k < SETTLE; ++k) (void)draw_both(of);
    }
    double *q = s->nuts.unit + s->nuts.moving;
    (void)read_theta(of, q);
    for (int j = 0; j < s->nuts.moving; ++j) s->nuts.unit[j] = 1 + fabs(q[j]);
    hmc_lower_units(&s->nuts.hmc.target, q, s->nuts.unit, q + s->nuts.moving);
    hmc_start(&s->nuts.hmc, q, s->nuts.unit);
    if (hmc_refresh(&s->nuts.hmc)) hmc_find_step(&s->nuts.hmc, of->rng);
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct noisy *s = of->self;
    *accepted = 1;
    if (s->nuts.moving > 0) {
        struct hmc_step told;
        hmc_nuts(&s->nuts.hmc, of->rng, &told);
        hmc_learn(&s->nuts.hmc, iteration, warmup, &told, of->rng);
        for (int j = 0; j < s->nuts.moving; ++j) of->theta[s->nuts.place[j]] = s->nuts.hmc.q[j];
        hmc_count(of->counter, &told);
        *accepted = told.accept;
    }
    if (draw_both(of) != PLUGIN_OK) return PLUGIN_NUMERICAL;
    return s->nuts.moving == 0 || read_theta(of, s->nuts.hmc.q) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static void statistic(const struct collapse *of, double *out) {
    const struct noisy *s = of->self;
    for (int k = 0; k < of->noise.size; ++k) out[k] = component_value(s->component + k, s->c);
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    return log_density(of->self, q, gradient);
}

static void complete(const struct collapse *of, double *out) {
    const struct noisy *s = of->self;
    memcpy(out, s->c, (size_t)s->model->complete * sizeof(double));
}

static double energy(const struct collapse *of) {
    const struct noisy *s = of->self;
    return *s->energy;
}

static double work(const struct collapse *of) {
    const struct noisy *s = of->self;
    const double d = s->d, m = s->noisy, size = s->size;
    const double gradients = 8; /* about */
    return 2 * d * d * d + 3 * m * size * (size + m) +
           gradients * (4 * d * d * d + 2 * d * d * s->k) + 100;
}

static const struct collapse_coordinates coordinates = {.log_density = density_at};
static const struct collapse_complete complete_data = {.statistic = complete};

const struct collapse_class collapse_records = {
    .name = "records",
    .counters =
        {
            HMC_COUNTER_NAMES(0),
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .work = work,
    .coordinates = &coordinates,
    .complete = &complete_data,
};
