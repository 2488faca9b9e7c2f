/* Method "collapse", answers by randomised response: of every record's level of each factor f an
 * answer is published, drawn from the row of that level in the factor's channel M_f
 * (contract/channel.h; vignette "Algorithms", "collapse"). The records with the same answers are
 * one cell of a table, so that the release is the counts N_r of these cells, free of the number of
 * records. Exact.
 *
 * With p the probabilities of the cells of confidential levels under theta, the confidential levels
 * are summed out:
 *
 *   log p(z | theta) = sum_r N_r log P_r,  P = (M_1 x .. x M_F)' p,
 *
 * and by Fisher's identity its gradient is the gradient of the complete-data likelihood of the
 * expected counts p_k ((M_1 x .. x M_F)(N / P))_k, held fixed: the model computes it
 * (log_posterior()), and of one row of sticks it is theirs (base/sticks.h). NUTS (mcmc/hmc.c) moves
 * theta on that density, in the model's coordinates for gradients (contract/model_uncentred.h) if
 * it has any. A product with all M_f is one pass over the table for each factor.
 *
 * Each kept draw then has a table of confidential counts given theta: factor after factor the
 * records of a cell are divided among the levels that they may have, with the factors that are to
 * come still as they were answered.
 *
 * Cost: for a gradient two products with the channel a cell and factor, plus the cost of the
 * model's cells; for a draw a binomial number for each level and for what exceeds the least entry
 * of a column of the channel. No allocation except in create().
 */
#include "base/sticks.h"
#include "contract/channel.h"
#include "contract/collapse.h"
#include "contract/model_cells.h"
#include "contract/model_prior.h"
#include "contract/model_uncentred.h"
#include "mcmc/hmc.h"

enum { FEW = 60 /* up to so many coordinates warmup learns a full matrix */ };

struct answers {
    const struct model *model;
    double n;
    int factors, row;
    struct channel *channel;
    int *size;           /* of a grid whose factors from f on are answers, the others levels */
    int cells;           /* the model's, which may leave out some of the grid of levels */
    int tracked;         /* is the table reported with each draw? */
    const double *place; /* of each of the model's cells in the grid of levels */
    const double *count; /* N, of the grid of answers */
    struct hmc hmc;

    /* State: minus the log likelihood, the confidential counts, and NUTS's. */
    double *energy, *table;

    /* workspace */
    double *p, *expected;
    double **stage; /* p with the factors from this one on as they are answered */
    double *here, *there;
    double *theta; /* at NUTS's coordinates */
    double *unit, *work;
};

static enum hmc_metric metric(const struct answers *s) {
    return s->model->parameters <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

/* Are the parameters one row of sticks? Then Dirichlet weights are all of their prior. */
static int is_row(const struct model *model) {
    const struct coordinates *theta = &model->coordinates;
    return theta->count == 1 && theta->block->transform == TRANSFORM_STICKS &&
           theta->block->rows == 1 && theta->block->size == model->complete &&
           model->prior->prior_gradient;
}

static int read_channels(const struct fields *fields, struct answers *s) {
    s->factors = channels_read(fields, &s->channel);
    if (s->factors < 1) return 0;
    s->size = plugin_memory((size_t)s->factors + 1, sizeof(int));
    for (int f = 0; f <= s->factors; ++f) {
        s->size[f] = 1;
        for (int g = 0; g < s->factors; ++g)
            s->size[f] *= g < f ? s->channel[g].levels : s->channel[g].answers;
    }
    return 1;
}

/* ---- the density ------------------------------------------------------------------------ */

/* Factor f of a grid whose earlier factors are levels and later ones answers: vectors along it are
 * `stride` apart in `blocks` blocks. */
struct along {
    const struct channel *channel;
    int blocks, stride;
};

static struct along along(const struct answers *s, int f) {
    struct along a = {s->channel + f, 1, 1};
    for (int g = 0; g < f; ++g) a.blocks *= s->channel[g].levels;
    for (int g = f + 1; g < s->factors; ++g) a.stride *= s->channel[g].answers;
    return a;
}

static void answer_factor(const struct answers *s, int f, const double *from, double *to) {
    const struct along a = along(s, f);
    for (int block = 0; block < a.blocks; ++block)
        for (int x = 0; x < a.stride; ++x)
            channel_answer(a.channel, a.stride, from + block * a.stride * a.channel->levels + x,
                           to + block * a.stride * a.channel->answers + x);
}

/* the way back, in `here`, by way of `there` */
static void level_factor(struct answers *s, int f) {
    const struct along a = along(s, f);
    double *const from = s->here;
    for (int block = 0; block < a.blocks; ++block)
        for (int x = 0; x < a.stride; ++x)
            channel_level(a.channel, a.stride, from + block * a.stride * a.channel->answers + x,
                          s->there + block * a.stride * a.channel->levels + x);
    s->here = s->there;
    s->there = from;
}

static void find_cells(struct answers *s, const double *theta) {
    if (s->row) {
        sticks_to_probabilities(s->cells, theta, s->p);
        return;
    }
    s->model->cells->log_cells(s->model->self, theta, s->p);
    for (int k = 0; k < s->cells; ++k) s->p[k] = exp(s->p[k]);
}

/* stage[f], all f, of the cells' p; stage[0] is P. */
static void find_stages(struct answers *s) {
    double *p = s->stage[s->factors];
    memset(p, 0, (size_t)s->size[s->factors] * sizeof(double));
    for (int k = 0; k < s->cells; ++k) p[(int)s->place[k]] = s->p[k];
    for (int f = s->factors - 1; f >= 0; --f) answer_factor(s, f, s->stage[f + 1], s->stage[f]);
}

/* Expected counts of the cells, after find_stages(). Returns the log likelihood; not finite: there
 * are none. */
static double expect_counts(struct answers *s) {
    double log_likelihood = 0;
    for (int r = 0; r < s->size[0]; ++r) {
        s->here[r] = 0;
        if (!(s->count[r] > 0)) continue;
        log_likelihood += s->count[r] * log(s->stage[0][r]);
        s->here[r] = s->count[r] / s->stage[0][r];
    }
    if (!isfinite(log_likelihood)) return -INFINITY;
    for (int f = 0; f < s->factors; ++f) level_factor(s, f);
    for (int k = 0; k < s->cells; ++k) s->expected[k] = s->p[k] * s->here[(int)s->place[k]];
    return log_likelihood;
}

/* of the log posterior given these */
static void find_gradient(struct answers *s, const double *q, double *gradient) {
    const struct model *model = s->model;
    if (!s->row) {
        model->cells->observe(model->self, s->expected, s->n);
        (void)model->cells->log_posterior(model->self, q, gradient);
        return;
    }
    const int last = s->cells - 1;
    double all = s->expected[last], rest = s->p[last];
    for (int l = last - 1; l >= 0; --l) {
        all += s->expected[l];
        rest += s->p[l];
        gradient[l] = s->expected[l] - (rest > 0 ? all * (s->p[l] / rest) : 0);
    }
    model->prior->prior_gradient(model->self, q, gradient);
}

/* theta at NUTS's coordinates. Returns the log determinant of its derivatives. */
static double find_theta(const struct answers *s, const double *q, double *theta) {
    const struct model *model = s->model;
    if (model->uncentred) return model->uncentred->find(model->self, q, theta);
    memcpy(theta, q, (size_t)model->parameters * sizeof(double));
    return 0;
}

/* for mcmc/hmc.h */
static double log_density(void *self, const double *q, double *gradient) {
    struct answers *s = self;
    const struct model *model = s->model;
    const double log_determinant = find_theta(s, q, s->theta);
    find_cells(s, s->theta);
    find_stages(s);
    const double log_likelihood = expect_counts(s);
    if (!isfinite(log_likelihood)) return -INFINITY;
    find_gradient(s, s->theta, gradient);
    if (model->uncentred) model->uncentred->pull(model->self, q, gradient);
    return model->prior->dprior(model->self, s->theta) + log_likelihood + log_determinant;
}

/* ---- set-up ------------------------------------------------------------------------------ */

/* From 0, the answer does not depend on the level, to 1, it is the level: the mean squared
 * correlation of both, all levels alike. */
static double share_told(const struct channel *c) {
    double told = -1;
    for (int r = 0; r < c->answers; ++r) {
        double sum = 0, squares = 0;
        for (int l = 0; l < c->levels; ++l) {
            const double p = c->p[(size_t)l * (size_t)c->answers + (size_t)r];
            sum += p;
            squares += p * p;
        }
        if (sum > 0) told += squares / sum;
    }
    return c->levels > 1 ? told / (c->levels - 1) : 1;
}

/* About how many records of each cell the answers reveal: by the EM algorithm, less what
 * noise hides. */
static void expect_cells(struct answers *s) {
    enum { STEPS = 50 };
    double told = 1;
    for (int f = 0; f < s->factors; ++f) told *= share_told(s->channel + f);
    for (int k = 0; k < s->cells; ++k) s->p[k] = 1.0 / s->cells;
    for (int step = 0; step < STEPS; ++step) {
        find_stages(s);
        (void)expect_counts(s);
        for (int k = 0; k < s->cells; ++k) s->p[k] = s->expected[k] / s->n;
    }
    for (int k = 0; k < s->cells; ++k) s->expected[k] *= told;
    s->model->uncentred->expect(s->model->self, s->expected);
}

/* Fields: those of channels_read(), one a factor; place, one a cell of the model; counts, of the
 * grid of answers, the last factor the fastest; tracked. */
static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    if (!model->cells || !model->prior || model->moving != model->parameters ||
        !(model->cells->observe || is_row(model)))
        return PLUGIN_BAD_FIELDS;
    struct answers *s = plugin_memory(1, sizeof *s);
    s->model = model;
    s->n = of->n;
    s->row = !model->cells->observe;
    const double *tracked = fields_vector(fields, "tracked", 1);
    if (!tracked || !read_channels(fields, s)) return PLUGIN_BAD_FIELDS;
    s->tracked = *tracked != 0;
    s->cells = model->complete;
    s->place = fields_vector(fields, "place", s->cells);
    s->count = fields_vector(fields, "counts", s->size[0]);
    if (!s->place || !s->count) return PLUGIN_BAD_FIELDS;
    for (int k = 0; k < s->cells; ++k)
        if (!(s->place[k] >= 0) || s->place[k] >= s->size[s->factors]) return PLUGIN_BAD_FIELDS;
    const size_t parameters = (size_t)model->parameters;
    size_t most = 0;
    DOUBLES((size_t)s->cells, &s->p, &s->expected);
    s->theta = doubles(parameters);
    s->stage = plugin_memory((size_t)s->factors + 1, sizeof *s->stage);
    for (int f = 0; f <= s->factors; ++f) {
        const size_t size = (size_t)s->size[f];
        s->stage[f] = doubles(size);
        most = size > most ? size : most;
    }
    DOUBLES(most, &s->here, &s->there);
    s->unit = doubles(5 * parameters);
    s->work = doubles(hmc_workspace(model->parameters, metric(s)));
    if (model->uncentred) expect_cells(s);
    of->self = s;
    of->stored = 1 + s->cells + (int)hmc_stored(model->parameters, metric(s));
    return PLUGIN_OK;
}

/* ---- the confidential counts ------------------------------------------------------------- */

/* and theta, where NUTS is */
static void draw_table(struct answers *s, struct rng *rng, double *theta) {
    const double log_determinant = find_theta(s, s->hmc.q, theta);
    find_cells(s, theta);
    find_stages(s);
    memcpy(s->here, s->count, (size_t)s->size[0] * sizeof(double));
    for (int f = 0; f < s->factors; ++f) {
        const struct along a = along(s, f);
        double *const answered = s->here;
        memset(s->there, 0, (size_t)s->size[f + 1] * sizeof(double));
        for (int block = 0; block < a.blocks; ++block)
            for (int x = 0; x < a.stride; ++x) {
                const int at = block * a.stride * a.channel->levels + x;
                channel_divide(a.channel, rng, a.stride,
                               answered + block * a.stride * a.channel->answers + x,
                               s->stage[f + 1] + at, s->there + at);
            }
        s->here = s->there;
        s->there = answered;
    }
    for (int k = 0; k < s->cells; ++k) s->table[k] = s->here[(int)s->place[k]];
    *s->energy =
        s->model->prior->dprior(s->model->self, theta) + log_determinant - s->hmc.log_density;
}

/* ---- the method ----------------------------------------------------------------------------- */

static void attach(struct collapse *of) {
    struct answers *s = of->self;
    const struct hmc_target target = {s->model->parameters, s, log_density, NULL};
    s->energy = of->store;
    s->table = of->store + 1;
    hmc_attach(&s->hmc, &target, metric(s), s->table + s->cells, s->work);
}

static void load(struct collapse *of) {
    struct answers *s = of->self;
    attach(of);
    (void)hmc_refresh(&s->hmc);
}

static void start(struct collapse *of) {
    struct answers *s = of->self;
    const int size = s->model->parameters;
    double *q = s->unit + size;
    attach(of);
    memcpy(q, of->theta, (size_t)size * sizeof(double));
    if (s->model->uncentred) s->model->uncentred->start(s->model->self, of->theta, q);
    for (int j = 0; j < size; ++j) s->unit[j] = 1 + fabs(q[j]);
    hmc_lower_units(&s->hmc.target, q, s->unit, q + size);
    hmc_start(&s->hmc, q, s->unit);
    if (hmc_refresh(&s->hmc)) hmc_find_step(&s->hmc, of->rng);
    draw_table(s, of->rng, of->theta);
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct answers *s = of->self;
    struct hmc_step told;
    hmc_nuts(&s->hmc, of->rng, &told);
    hmc_learn(&s->hmc, iteration, warmup, &told, of->rng);
    hmc_count(of->counter, &told);
    *accepted = told.accept;
    if (iteration < warmup)
        (void)find_theta(s, s->hmc.q, of->theta);
    else
        draw_table(s, of->rng, of->theta);
    return PLUGIN_OK;
}

/* Nothing that was released is a total. */
static void statistic(const struct collapse *of, double *out) {
    const struct answers *s = of->self;
    if (s->tracked) memcpy(out, s->table, (size_t)s->cells * sizeof(double));
}

static double energy(const struct collapse *of) {
    const struct answers *s = of->self;
    return *s->energy;
}

static double work(const struct collapse *of) {
    const struct answers *s = of->self;
    const double gradients = 8; /* about */
    double products = 0;
    for (int f = 0; f < s->factors; ++f) {
        const struct channel *c = s->channel + f;
        products += s->size[f] * (2.0 + (double)c->first[c->answers] / c->answers);
    }
    return gradients * (30.0 * s->cells + 2 * products) + 100;
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    return log_density(of->self, q, gradient);
}

static const struct collapse_coordinates coordinates = {.log_density = density_at};

const struct collapse_class collapse_answers = {
    .name = "answers",
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
};
