/* Method "collapse", public covariates: each record's response is published with its own noise,
 * and the covariates are known exactly (vignette "Algorithms", "collapse"). Exact.
 *
 * Covariates have no distribution. With the design Z and offsets o the linear predictor is eta = Z
 * beta + o, and the confidential responses are summed or integrated out record by record
 * (totals/noisy_answers.h):
 *
 *   log p(answers | theta) = sum_i l_i(eta_i, shape).
 *
 * NUTS (mcmc/hmc.c) moves the unknown coordinates of theta, the coefficients and the shape if
 * there is one, under that density times the prior. Its metric is the information, the sum of the
 * products of the records' scores and of the prior's information, averaged over positions of the
 * warmup.
 *
 * A chain starts near the mode, some way off in units of the posterior's spread: with many
 * records, the first trajectories from a draw of the prior would take longer than all others.
 * Damped steps by that information find it, starting with zero slopes and a constant from the mean
 * of the answers: far from the mode these densities are not concave, and the search may fail from
 * a draw of the prior.
 *
 * With many records the posterior is nearly normal about its mode. So there are also leaps:
 * proposals from a t distribution about the mode, with the scale from the second derivatives
 * there, which do not depend on the current position. If the first iterations of the warmup accept
 * most of them, a leap takes the place of a trajectory in all but every TURN-th iteration from
 * then on: one density without a gradient in place of several with it.
 *
 * Cost: for a gradient the density of each answer and two additions a coefficient, one without it;
 * for the information half the square of their number per record. No allocation except in
 * create().
 */
#include "base/block.h"
#include "base/dist.h"
#include "base/linalg.h"
#include "contract/collapse.h"
#include "contract/model.h"
#include "contract/model_prior.h"
#include "mcmc/hmc.h"
#include "totals/noisy_answers.h"

enum {
    TRIAL = 50, /* iterations that find out whether leaps pay off */
    TURN = 8,
    DF = 100 /* of the leaps' distribution */
};
static const double LEAPS_ENOUGH = 0.85; /* of them accepted */

/* of the state */
enum { LEAPS_MADE, LEAPS_ACCEPTED, LEAPS_SERVE, LEAP_STATE };

struct given {
    const struct model *model;
    struct noisy_answers answers;
    int n, k, size; /* records, columns of the design, unknown coordinates */
    int predictors, shapes;
    /* places in theta: of column j in predictor e, place[e * k + j], and of what else the response
     * depends on; and of each coordinate of theta the place of its scores among those, -1: none */
    int *place, *shape_at, *score_of;
    size_t stride;
    double *design, *offset; /* columns `stride` apart, which is padded */
    const double *begin;     /* where climbing to the mode begins, all of theta; NULL: anywhere */
    struct hmc hmc;

    /* State: minus the log density of the answers; what is known of leaps, the mode and the factor
     * of minus the second derivatives there; NUTS's follows. */
    double *energy, *leaps, *mode, *curvature;

    /* workspace */
    double *theta, *gradient; /* all coordinates of theta */
    struct {
        double *eta, *slope, *of_shape; /* rows of MAX_BLOCK */
    } block;
    double *log_shape, *score, *dots;
    double *q, *work; /* unknown coordinates; NUTS's */
    struct {
        double *at, *step, *to, *here, *information, *factor;
    } climb;   /* to the mode, in the unknown coordinates */
    int stale; /* hmc.gradient is that of another position */
};

static double *padded_columns(const struct given *s, const double *from, int columns) {
    double *to = doubles(s->stride * (size_t)columns);
    for (int j = 0; j < columns; ++j)
        doubles_copy(to + (size_t)j * s->stride, from + (size_t)j * (size_t)s->n, s->n);
    return to;
}

/* whole numbers below `end` */
static int *read_places(const struct fields *fields, const char *name, int count, int end) {
    const double *value = fields_vector(fields, name, count);
    int *place = plugin_memory((size_t)count + 1, sizeof *place);
    for (int j = 0; value && j < count; ++j) {
        place[j] = (int)value[j];
        if (!(value[j] >= 0 && value[j] < end)) return NULL;
    }
    return value ? place : NULL;
}

/* Fields: design and offset, columns; place and shape_at, see struct given; those of
 * totals/noisy_answers.h. */
static int read_layout(const struct fields *fields, struct given *s) {
    const int parameters = s->model->parameters;
    const double *offset = fields_vector(fields, "offset", s->n);
    s->k = fields_length(fields, "design") / s->n;
    const double *design = fields_vector(fields, "design", s->n * s->k);
    s->predictors = s->answers.predictors;
    s->shapes = s->answers.shapes;
    s->place = read_places(fields, "place", s->predictors * s->k, parameters);
    s->shape_at = read_places(fields, "shape_at", s->shapes, parameters);
    s->begin = fields_vector(fields, "begin", parameters);
    if (!offset || !design || !s->place || !s->shape_at) return PLUGIN_BAD_FIELDS;
    s->stride = (size_t)PAD_LANES(s->n);
    s->design = padded_columns(s, design, s->k);
    s->offset = padded_columns(s, offset, 1);
    s->score_of = plugin_memory((size_t)parameters, sizeof *s->score_of);
    for (int j = 0; j < parameters; ++j) s->score_of[j] = -1;
    for (int j = 0; j < s->predictors * s->k; ++j) s->score_of[s->place[j]] = j;
    for (int j = 0; j < s->shapes; ++j) s->score_of[s->shape_at[j]] = s->predictors * s->k + j;
    return PLUGIN_OK;
}

static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    struct given *s = plugin_memory(1, sizeof *s);
    s->model = model;
    if (model->moving < 1 || noisy_answers_create(fields, &s->answers) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->n = s->answers.records;
    s->size = model->moving;
    if (read_layout(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const size_t size = (size_t)s->size, parameters = (size_t)model->parameters;
    const size_t predictors = (size_t)s->predictors, shapes = (size_t)s->shapes;
    s->theta = doubles(parameters);
    s->gradient = doubles(2 * parameters);
    DOUBLES(predictors * MAX_BLOCK, &s->block.eta, &s->block.slope);
    s->block.of_shape = doubles((shapes + 1) * MAX_BLOCK);
    s->log_shape = doubles(shapes + 1);
    s->score = doubles(2 * MAX_BLOCK);
    s->dots = doubles((size_t)s->k);
    DOUBLES(size, &s->q, &s->climb.at, &s->climb.step, &s->climb.to, &s->climb.here);
    DOUBLES(size * size, &s->climb.information, &s->climb.factor);
    s->work = doubles(hmc_workspace(s->size, HMC_DENSE));
    of->self = s;
    of->stored = 1 + LEAP_STATE + s->size + s->size * s->size + (int)hmc_stored(s->size, HMC_DENSE);
    return PLUGIN_OK;
}

/* ---- the density ------------------------------------------------------------------------ */

static void set(struct given *s, const double *q) {
    coordinates_set_known(&s->model->coordinates, s->theta);
    for (int j = 0; j < s->size; ++j) s->theta[s->model->moves[j]] = q[j];
    for (int j = 0; j < s->shapes; ++j) s->log_shape[j] = s->theta[s->shape_at[j]];
    if (s->answers.class->set) s->answers.class->set(&s->answers, s->log_shape);
}

/* The records from `first` on: their log density, and its slopes in `slope` and `of_shape`. */
static double block_density(struct given *s, int first, int m) {
    const double *restrict offset = s->offset + first;
    for (int e = 0; e < s->predictors; ++e) {
        double *restrict eta = s->block.eta + (size_t)e * MAX_BLOCK;
        FOR_RECORDS(i, m) eta[i] = offset[i];
        for (int j = 0; j < s->k; ++j) {
            const double beta = s->theta[s->place[e * s->k + j]];
            const double *restrict column = s->design + (size_t)j * s->stride + first;
            FOR_RECORDS(i, m) eta[i] += beta * column[i];
        }
    }
    return s->answers.class->log_density(&s->answers, first, m, s->block.eta, s->block.slope,
                                         s->block.of_shape);
}

/* adds the gradient of the block's log density to that of theta */
static void add_gradient(struct given *s, int first, int m) {
    for (int e = 0; e < s->predictors; ++e) {
        memset(s->dots, 0, (size_t)s->k * sizeof(double));
        block_add_dots(m, s->block.slope + (size_t)e * MAX_BLOCK, s->k, s->design + first,
                       (ptrdiff_t)s->stride, s->dots);
        for (int j = 0; j < s->k; ++j) s->gradient[s->place[e * s->k + j]] += s->dots[j];
    }
    for (int j = 0; j < s->shapes; ++j)
        s->gradient[s->shape_at[j]] += block_sum(m, s->block.of_shape + (size_t)j * MAX_BLOCK);
}

/* of the answers; adds its gradient to that of theta, if `wanted` */
static double log_likelihood(struct given *s, int wanted) {
    double sum = 0;
    for (int first = 0; first < s->n && sum > -INFINITY; first += MAX_BLOCK) {
        const int m = block_length(s->n - first);
        sum += block_density(s, first, m);
        if (wanted) add_gradient(s, first, m);
    }
    return sum;
}

/* for mcmc/hmc.h; also without the gradient, which is then NULL */
static double log_density(void *self, const double *q, double *gradient) {
    struct given *s = self;
    set(s, q);
    const double prior = model_prior(s->model, s->theta, s->gradient);
    if (!(prior > -INFINITY)) return -INFINITY;
    const double value = prior + log_likelihood(s, gradient != NULL);
    for (int j = 0; gradient && j < s->size; ++j) gradient[j] = s->gradient[s->model->moves[j]];
    return isfinite(value) ? value : -INFINITY;
}

/* ---- the information -------------------------------------------------------------------- */

/* what the prior adds: differences of its gradient, at theta */
static void prior_information(struct given *s, double *out) {
    static const double STEP = 1e-4;
    const struct model *model = s->model;
    double *up = s->gradient, *down = s->gradient + model->parameters;
    for (int j = 0; j < s->size; ++j) {
        double *at = s->theta + model->moves[j];
        const double here = *at, step = STEP * (1 + fabs(here));
        *at = here + step;
        (void)model_prior(model, s->theta, up);
        *at = here - step;
        (void)model_prior(model, s->theta, down);
        *at = here;
        for (int i = 0; i < s->size; ++i)
            out[i * s->size + j] = (down[model->moves[i]] - up[model->moves[i]]) / (2 * step);
    }
}

/* The scores of the block's records in coordinate `at` of theta; written to `out` unless they are
 * there already. */
static const double *scores(const struct given *s, int at, int first, int m, double *out) {
    const int place = s->score_of[at], predictor = place / s->k;
    if (place >= s->predictors * s->k)
        return s->block.of_shape + (size_t)(place - s->predictors * s->k) * MAX_BLOCK;
    const double *restrict column = s->design + (size_t)(place % s->k) * s->stride + first;
    const double *restrict slope = s->block.slope + (size_t)predictor * MAX_BLOCK;
    for (int i = 0; i < m; ++i) out[i] = column[i] * slope[i];
    return out;
}

/* for mcmc/hmc.h */
static void information(void *self, const double *q, double *out) {
    struct given *s = self;
    const int size = s->size, *moves = s->model->moves;
    set(s, q);
    prior_information(s, out);
    for (int first = 0; first < s->n; first += MAX_BLOCK) {
        const int m = block_length(s->n - first);
        (void)block_density(s, first, m);
        for (int i = 0; i < size; ++i) {
            const double *a = scores(s, moves[i], first, m, s->score);
            for (int j = 0; j <= i; ++j) {
                const double *b = i == j ? a : scores(s, moves[j], first, m, s->score + MAX_BLOCK);
                out[i * size + j] += block_dot(m, a, b);
            }
        }
    }
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < i; ++j) out[j * size + i] = out[i * size + j];
}

/* ---- the start -------------------------------------------------------------------------- */

/* The factor of the information with its diagonal `more` times as large; whether there is one. */
static int damped_factor(struct given *s, double more) {
    const int size = s->size;
    memcpy(s->climb.factor, s->climb.information, (size_t)size * (size_t)size * sizeof(double));
    for (int j = 0; j < size; ++j) s->climb.factor[j * size + j] *= 1 + more;
    return linalg_cholesky(size, s->climb.factor) == 0;
}

/* q + scale step, to `to`; its log density, and the gradient to `here`. */
static double try_step(struct given *s, const double *q, double scale) {
    for (int j = 0; j < s->size; ++j) s->climb.to[j] = q[j] + scale * s->climb.step[j];
    return log_density(s, s->climb.to, s->climb.here);
}

/* Doubles a step as long as that gains more: far from the mode the scores' products are much larger
 * than the second derivatives, and steps by them too short. Returns the scale. */
static double lengthen(struct given *s, const double *q, double value) {
    double scale = 1;
    while (scale < 1e6) {
        const double further = try_step(s, q, 2 * scale);
        if (!(further > value)) break;
        value = further;
        scale *= 2;
    }
    return scale;
}

/* A step from q by the damped information, of a gain that is not negative; `value` is the log
 * density there, `gradient` its gradient. Returns the gain, -1 where there is no such step. */
static double climb_once(struct given *s, double *q, double value, double *gradient,
                         double *damping) {
    static const double LEAST = 1e-10, LARGEST = 1e10;
    information(s, q, s->climb.information);
    for (; *damping < LARGEST; *damping *= 8) {
        if (!damped_factor(s, *damping)) continue;
        memcpy(s->climb.step, gradient, (size_t)s->size * sizeof(double));
        linalg_forward(s->size, s->climb.factor, s->climb.step);
        linalg_backward(s->size, s->climb.factor, s->climb.step);
        const double there = try_step(s, q, 1);
        if (!(there >= value)) continue;
        const double gain = try_step(s, q, lengthen(s, q, there)) - value;
        memcpy(q, s->climb.to, (size_t)s->size * sizeof(double));
        memcpy(gradient, s->climb.here, (size_t)s->size * sizeof(double));
        *damping = fmax(*damping / 16, LEAST);
        return gain;
    }
    return -1;
}

/* From q to the mode, or near it; `gradient` is spent. */
static void climb(struct given *s, double *q, double *gradient) {
    enum { MOST = 100 };
    static const double NEAR = 1e-8;
    double value = log_density(s, q, gradient), damping = 1e-3, gain = 1;
    for (int tries = 0; tries < MOST && value > -INFINITY && gain > NEAR; ++tries) {
        gain = climb_once(s, q, value, gradient, &damping);
        value += gain;
    }
}

/* So many standard deviations off, in a random direction; nearer where there is no density. */
static void step_aside(struct given *s, double *q, double *gradient, struct rng *rng) {
    static const double AWAY = 1.5;
    information(s, q, s->climb.information);
    if (!damped_factor(s, 0)) return;
    for (int j = 0; j < s->size; ++j) s->climb.step[j] = AWAY * rng_normal(rng);
    linalg_backward(s->size, s->climb.factor, s->climb.step);
    for (int tries = 0; tries < 10; ++tries) {
        for (int j = 0; j < s->size; ++j) s->climb.to[j] = q[j] + s->climb.step[j];
        if (log_density(s, s->climb.to, gradient) > -INFINITY) {
            memcpy(q, s->climb.to, (size_t)s->size * sizeof(double));
            return;
        }
        for (int j = 0; j < s->size; ++j) s->climb.step[j] /= 2;
    }
}

/* ---- leaps -------------------------------------------------------------------------------- */

/* Minus the second derivatives at the mode, by differences of the gradient in steps of a share of
 * each coordinate's spread, and their factor. Leaps have no scale where it is not positive
 * definite: then LEAPS_SERVE is -1. */
static void find_curvature(struct given *s) {
    static const double SHARE = 1e-2;
    const int size = s->size;
    double *h = s->curvature;
    information(s, s->mode, s->climb.information);
    memcpy(s->climb.to, s->mode, (size_t)size * sizeof(double));
    for (int j = 0; j < size; ++j) {
        const double step = SHARE / sqrt(s->climb.information[j * size + j]);
        s->climb.to[j] = s->mode[j] + step;
        (void)log_density(s, s->climb.to, s->climb.here);
        s->climb.to[j] = s->mode[j] - step;
        (void)log_density(s, s->climb.to, s->climb.step);
        s->climb.to[j] = s->mode[j];
        for (int i = 0; i < size; ++i)
            h[i * size + j] = (s->climb.step[i] - s->climb.here[i]) / (2 * step);
    }
    int usable = 1;
    for (int i = 0; i < size * size; ++i) usable = usable && isfinite(h[i]);
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < i; ++j) h[i * size + j] = 0.5 * (h[i * size + j] + h[j * size + i]);
    if (!usable || linalg_cholesky(size, h) != 0) s->leaps[LEAPS_SERVE] = -1;
}

/* log density of a leap to q, up to a constant */
static double leap_density(struct given *s, const double *q) {
    const int size = s->size;
    double square = 0;
    for (int i = 0; i < size; ++i) { /* L'(q - mode) */
        double sum = 0;
        for (int j = i; j < size; ++j) sum += s->curvature[j * size + i] * (q[j] - s->mode[j]);
        square += sum * sum;
    }
    return -0.5 * (DF + size) * log1p(square / DF);
}

/* Returns whether it was accepted. */
static int leap(struct given *s, struct rng *rng) {
    struct hmc *hmc = &s->hmc;
    const int size = s->size;
    for (int j = 0; j < size; ++j) s->climb.step[j] = rng_normal(rng);
    const double stretch = sqrt(DF / (2 * dist_gamma(rng, 0.5 * DF)));
    linalg_backward(size, s->curvature, s->climb.step);
    for (int j = 0; j < size; ++j) s->climb.to[j] = s->mode[j] + stretch * s->climb.step[j];
    const double value = log_density(s, s->climb.to, NULL);
    const double log_ratio =
        value - hmc->log_density + leap_density(s, hmc->q) - leap_density(s, s->climb.to);
    if (!(log(rng_uniform(rng)) < log_ratio)) return 0;
    memcpy(hmc->q, s->climb.to, (size_t)size * sizeof(double));
    hmc->log_density = value;
    s->stale = 1;
    return 1;
}

/* While warmup tries them leaps come before trajectories. */
static void try_leap(struct given *s, int iteration, struct rng *rng) {
    s->leaps[LEAPS_MADE] += 1;
    s->leaps[LEAPS_ACCEPTED] += leap(s, rng);
    if (iteration == TRIAL - 1)
        s->leaps[LEAPS_SERVE] = s->leaps[LEAPS_ACCEPTED] >= LEAPS_ENOUGH * s->leaps[LEAPS_MADE];
}

/* ---- the method --------------------------------------------------------------------------- */

static void attach(struct collapse *of) {
    struct given *s = of->self;
    const struct hmc_target target = {s->size, s, log_density, information};
    s->energy = of->store;
    s->leaps = s->energy + 1;
    s->mode = s->leaps + LEAP_STATE;
    s->curvature = s->mode + s->size;
    hmc_attach(&s->hmc, &target, HMC_DENSE, s->curvature + s->size * s->size, s->work);
}

static void load(struct collapse *of) {
    struct given *s = of->self;
    attach(of);
    for (int j = 0; j < s->size; ++j) s->hmc.q[j] = of->theta[s->model->moves[j]];
    (void)hmc_refresh(&s->hmc);
    s->stale = 0;
}

/* minus the log density of the answers given theta */
static void tell_energy(struct given *s) {
    set(s, s->hmc.q);
    *s->energy = s->model->prior->dprior(s->model->self, s->theta) - s->hmc.log_density;
}

static void tell(struct collapse *of) {
    struct given *s = of->self;
    for (int j = 0; j < s->size; ++j) of->theta[s->model->moves[j]] = s->hmc.q[j];
}

static void start(struct collapse *of) {
    struct given *s = of->self;
    double *q = s->q;
    attach(of);
    for (int j = 0; j < s->size; ++j) q[j] = of->theta[s->model->moves[j]];
    for (int j = 0; j < s->size; ++j) s->mode[j] = s->begin ? s->begin[s->model->moves[j]] : q[j];
    climb(s, s->mode, s->climb.at);
    find_curvature(s);
    if (!of->given) {
        memcpy(q, s->mode, (size_t)s->size * sizeof(double));
        step_aside(s, q, s->climb.at, of->rng);
    }
    hmc_start(&s->hmc, q, NULL);
    if (hmc_refresh(&s->hmc)) hmc_find_step(&s->hmc, of->rng);
    tell(of);
    tell_energy(s);
}

/* counters after those of trajectories */
enum { COUNT_LEAPS = HMC_DEEPEST + 1, COUNT_LEAPS_ACCEPTED };

static void count_leap(double *counter, int accepted) {
    counter[COUNT_LEAPS] += 1;
    counter[COUNT_LEAPS_ACCEPTED] += accepted;
}

static void refresh(struct given *s) {
    if (s->stale) (void)hmc_refresh(&s->hmc);
    s->stale = 0;
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct given *s = of->self;
    const int trial = iteration < TRIAL && iteration < warmup && s->leaps[LEAPS_SERVE] == 0;
    if (trial) try_leap(s, iteration, of->rng);
    const int leaps = !trial && s->leaps[LEAPS_SERVE] == 1 && iteration % TURN != 0;
    struct hmc_step told = {0};
    if (leaps) {
        *accepted = leap(s, of->rng);
    } else {
        refresh(s);
        hmc_nuts(&s->hmc, of->rng, &told);
        *accepted = told.accept;
    }
    if (hmc_window(iteration, warmup) == HMC_LAST) refresh(s); /* it looks for a step */
    hmc_learn(&s->hmc, iteration, warmup, leaps ? NULL : &told, of->rng);
    tell(of);
    if (leaps)
        count_leap(of->counter, (int)*accepted);
    else
        hmc_count(of->counter, &told);
    if (iteration >= warmup) tell_energy(s);
    return PLUGIN_OK;
}

/* Nothing that was released is a total. */
static void statistic(const struct collapse *of, double *out) { (void)of, (void)out; }

static double energy(const struct collapse *of) {
    const struct given *s = of->self;
    return *s->energy;
}

static double work(const struct collapse *of) {
    const struct given *s = of->self;
    const double gradients = 4; /* about */
    return gradients * s->n * (30.0 + 4.0 * s->k) + 100;
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    return log_density(of->self, q, gradient);
}

static const struct collapse_coordinates coordinates = {.log_density = density_at};

const struct collapse_class collapse_public = {
    .name = "public",
    .counters =
        {
            HMC_COUNTER_NAMES(0),
            [COUNT_LEAPS] = "leaps",
            [COUNT_LEAPS_ACCEPTED] = "leaps_accepted",
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .work = work,
    .coordinates = &coordinates,
};
