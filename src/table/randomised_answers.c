/* Method "collapse", answers by randomised response: every record's level of each factor f is
 * published with probability keep_f, otherwise one of the other levels, each with probability
 * lie_f (vignette "Algorithms", "collapse"). The records with the same answers are one cell of a
 * table, so that the release is the counts N_r of these cells, free of the number of records.
 * Exact.
 *
 * With p the probabilities of the cells of confidential levels under theta and M_f the matrix
 * lie_f + (keep_f - lie_f) I, the confidential levels are summed out:
 *
 *   log p(z | theta) = sum_r N_r log P_r,  P = (M_1 x .. x M_F) p,
 *
 * and by Fisher's identity its gradient is that of the complete-data likelihood of the expected
 * counts p_k ((M_1 x .. x M_F)(N / P))_k, held fixed, which the model computes (log_posterior()).
 * NUTS (mcmc/hmc.c) moves theta on that density. A product with all M_f is one pass over the table
 * for each factor: lie_f times the sum along f, plus a multiple of the previous value.
 *
 * Each kept draw then has a table of confidential counts given theta: factor after factor the
 * records of a cell are divided among the levels that they may have, with the factors that are to
 * come still as they were answered. Answers that are lies are counted on the way, for the noise's
 * density.
 *
 * Cost: for a gradient 2 F additions a cell, plus the cost of the model's cells; for a draw a
 * binomial number for each cell with records, factor and level. No allocation except in create().
 */
#include "base/dist.h"
#include "contract/collapse.h"
#include "contract/model_cells.h"
#include "contract/model_prior.h"
#include "mcmc/hmc.h"

enum { FEW = 60 /* up to so many coordinates warmup learns a full matrix */ };

struct answers {
    const struct model *model;
    double n;
    int factors, size; /* of the grid of all combinations of levels */
    int cells;         /* the model's, which may leave some out */
    int *levels;
    int tracked;         /* is the table told with each draw? */
    const double *place; /* of each of the model's cells in the grid */
    const double *count; /* N, of the grid */
    const double *log_odds;
    double *keep, *lie;
    struct hmc hmc;

    /* State: minus the log density of the answers, the confidential counts, and NUTS's. */
    double *energy, *table;

    /* workspace */
    double *log_p, *expected;
    double **stage; /* p with the factors from this one on as they are answered */
    double *here, *there;
    double *unit, *work;
};

static enum hmc_metric metric(const struct answers *s) {
    return s->model->parameters <= FEW ? HMC_DENSE : HMC_DIAGONAL;
}

/* Fields: levels, one a factor; log_odds, of the true level against another, one a factor; place,
 * one a cell of the model; counts, of the grid, the last factor the fastest. */
static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    if (!model->cells || !model->cells->observe || model->moving != model->parameters)
        return PLUGIN_BAD_FIELDS;
    struct answers *s = plugin_memory(1, sizeof *s);
    s->model = model;
    s->n = of->n;
    s->factors = fields_length(fields, "levels");
    const double *levels = fields_vector(fields, "levels", s->factors),
                 *tracked = fields_vector(fields, "tracked", 1);
    s->log_odds = fields_vector(fields, "log_odds", s->factors);
    if (s->factors < 1 || !levels || !tracked || !s->log_odds) return PLUGIN_BAD_FIELDS;
    s->tracked = *tracked != 0;
    const size_t factors = (size_t)s->factors;
    s->levels = plugin_memory(factors, sizeof(int));
    DOUBLES(factors, &s->keep, &s->lie);
    s->size = 1;
    for (int f = 0; f < s->factors; ++f) {
        s->levels[f] = (int)levels[f];
        s->size *= s->levels[f];
        const double others = (levels[f] - 1) * exp(-s->log_odds[f]);
        s->keep[f] = 1 / (1 + others);
        s->lie[f] = exp(-s->log_odds[f]) / (1 + others);
    }
    s->cells = model->complete;
    s->place = fields_vector(fields, "place", s->cells);
    s->count = fields_vector(fields, "counts", s->size);
    if (!s->place || !s->count) return PLUGIN_BAD_FIELDS;
    for (int k = 0; k < s->cells; ++k)
        if (!(s->place[k] >= 0) || s->place[k] >= s->size) return PLUGIN_BAD_FIELDS;
    const size_t size = (size_t)s->size, parameters = (size_t)model->parameters;
    DOUBLES((size_t)s->cells, &s->log_p, &s->expected);
    s->stage = plugin_memory(factors + 1, sizeof *s->stage);
    for (int f = 0; f <= s->factors; ++f) s->stage[f] = doubles(size);
    DOUBLES(size, &s->here, &s->there);
    s->unit = doubles(5 * parameters);
    s->work = doubles(hmc_workspace(model->parameters, metric(s)));
    of->self = s;
    of->stored = 1 + s->cells + (int)hmc_stored(model->parameters, metric(s));
    return PLUGIN_OK;
}

/* ---- the density ------------------------------------------------------------------------ */

/* to = M_f from; these may be the same */
static void mix(const struct answers *s, int f, const double *from, double *to) {
    const int levels = s->levels[f];
    const double lie = s->lie[f], more = s->keep[f] - lie;
    int stride = 1;
    for (int g = f + 1; g < s->factors; ++g) stride *= s->levels[g];
    for (int block = 0; block < s->size; block += stride * levels)
        for (int x = block; x < block + stride; ++x) {
            double sum = 0;
            for (int l = 0; l < levels; ++l) sum += from[x + l * stride];
            for (int l = 0; l < levels; ++l)
                to[x + l * stride] = lie * sum + more * from[x + l * stride];
        }
}

/* stage[f], all f; stage[0] is P. Leaves exp(log_p) in `expected`. */
static void find_stages(struct answers *s, const double *theta) {
    double *p = s->stage[s->factors];
    s->model->cells->log_cells(s->model->self, theta, s->log_p);
    memset(p, 0, (size_t)s->size * sizeof(double));
    for (int k = 0; k < s->cells; ++k) p[(int)s->place[k]] = s->expected[k] = exp(s->log_p[k]);
    for (int f = s->factors - 1; f >= 0; --f) mix(s, f, s->stage[f + 1], s->stage[f]);
}

/* for mcmc/hmc.h */
static double log_density(void *self, const double *q, double *gradient) {
    struct answers *s = self;
    const struct model *model = s->model;
    find_stages(s, q);
    double log_likelihood = 0;
    for (int r = 0; r < s->size; ++r) {
        s->here[r] = 0;
        if (!(s->count[r] > 0)) continue;
        log_likelihood += s->count[r] * log(s->stage[0][r]);
        s->here[r] = s->count[r] / s->stage[0][r];
    }
    if (!isfinite(log_likelihood)) return -INFINITY;
    for (int f = 0; f < s->factors; ++f) mix(s, f, s->here, s->here);
    for (int k = 0; k < s->cells; ++k) s->expected[k] *= s->here[(int)s->place[k]];
    model->cells->observe(model->self, s->expected, s->n);
    (void)model->cells->log_posterior(model->self, q, gradient);
    return model->prior->dprior(model->self, q) + log_likelihood;
}

/* ---- the confidential counts ------------------------------------------------------------- */

/* `records` answered level r of factor f; x is the cell with level 0 of it. Returns how many of
 * them lied. */
static double divide(struct answers *s, struct rng *rng, int f, int x, int stride, int r,
                     double records) {
    const double *later = s->stage[f + 1];
    double left = records, rest = s->stage[f][x + r * stride], honest = 0;
    for (int l = 0; l < s->levels[f] && left > 0; ++l) {
        const int at = x + l * stride;
        const double weight = (l == r ? s->keep[f] : s->lie[f]) * later[at];
        double taken = left;
        if (l < s->levels[f] - 1 && weight < rest)
            dist_binomial_fill(rng, weight / rest, 1, &left, &taken);
        s->there[at] += taken;
        if (l == r) honest = taken;
        left -= taken;
        rest -= weight;
    }
    return records - honest;
}

static void draw_table(struct answers *s, const double *theta, struct rng *rng) {
    const size_t bytes = (size_t)s->size * sizeof(double);
    find_stages(s, theta);
    memcpy(s->here, s->count, bytes);
    *s->energy = 0;
    int stride = s->size;
    for (int f = 0; f < s->factors; ++f) {
        const int levels = s->levels[f];
        stride /= levels;
        memset(s->there, 0, bytes);
        double lies = 0;
        for (int block = 0; block < s->size; block += stride * levels)
            for (int x = block; x < block + stride; ++x)
                for (int r = 0; r < levels; ++r) {
                    const double records = s->here[x + r * stride];
                    if (records > 0) lies += divide(s, rng, f, x, stride, r, records);
                }
        *s->energy += lies * s->log_odds[f];
        memcpy(s->here, s->there, bytes);
    }
    for (int k = 0; k < s->cells; ++k) s->table[k] = s->here[(int)s->place[k]];
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
    memcpy(s->hmc.q, of->theta, (size_t)s->model->parameters * sizeof(double));
    (void)hmc_refresh(&s->hmc);
}

static void save(struct collapse *of) { (void)of; /* all of it stands in the store */ }

static void start(struct collapse *of) {
    struct answers *s = of->self;
    const int size = s->model->parameters;
    double *q = s->unit + size;
    attach(of);
    memcpy(q, of->theta, (size_t)size * sizeof(double));
    for (int j = 0; j < size; ++j) s->unit[j] = 1 + fabs(q[j]);
    hmc_lower_units(&s->hmc.target, q, s->unit, q + size);
    hmc_start(&s->hmc, q, s->unit);
    if (hmc_refresh(&s->hmc)) hmc_find_step(&s->hmc, of->rng);
    draw_table(s, of->theta, of->rng);
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct answers *s = of->self;
    struct hmc_step told;
    hmc_nuts(&s->hmc, of->rng, &told);
    hmc_learn(&s->hmc, iteration, warmup, &told, of->rng);
    memcpy(of->theta, s->hmc.q, (size_t)s->model->parameters * sizeof(double));
    hmc_count(of->counter, &told);
    *accepted = told.accept;
    if (iteration >= warmup) draw_table(s, of->theta, of->rng);
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
    return gradients * (30.0 * s->cells + 4.0 * s->factors * s->size) + 100;
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    return log_density(of->self, q, gradient);
}

const struct collapse_class collapse_answers = {
    .name = "answers",
    .counters =
        {
            HMC_COUNTER_NAMES(0),
        },
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .work = work,
    .log_density = density_at,
};
