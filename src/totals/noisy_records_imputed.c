/* Method "collapse", noisy records that are kept: as in totals/noisy_records.c every record has
 * normal noise of known variances, which may be 0, but the response depends on products and powers
 * of noisy columns, or the levels of factors are answers by randomised response, so that no totals
 * of the noisy records are sufficient. The noisy records r_i themselves are the release, and the
 * confidential values w_i of the columns with noise, and levels of the factors with answers, are a
 * part of the state. Exact: nothing is clamped.
 *
 * A sweep draws each record's noisy columns, one after the other, in a way that leaves f(w_i |
 * theta) N(r_i; w_i, D) invariant; record_density() is f. In one column its logarithm is a
 * parabola where the response depends on that column linearly, so a proposal comes from the normal
 * distribution that has its slope and curvature at the noisy value, by differences, and is
 * accepted by Metropolis and Hastings' ratio: 1 for a parabola. With powers of a column it is
 * another function, possibly with several modes; so in the first sweep of an iteration, all noisy
 * columns of a record first make a random walk, by steps of 2.4 / sqrt(columns) times the standard
 * deviation of w_i given r_i alone, times 1 or, as often, 1/3. Nothing is learned, so a chain
 * needs no warmup. Then each factor's level is drawn given everything else in its record: level l
 * has the probability pi_l f(numbers | l, theta) P(answer | l). Then
 * theta is drawn given the records by the model's update.
 *
 * The parameters move only as fast as the records, so an iteration makes several such rounds,
 * fewer with more records.
 *
 * State: the complete-data statistic, minus the log density of the noise, the confidential values
 * of the noisy columns, and the levels. Cost: 2 + 4 times the columns with noise + levels
 * densities a record and round. No allocation except in create().
 */
#include "base/sticks.h"
#include "contract/channel.h"
#include "contract/collapse.h"
#include "contract/model_record.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

enum { SWEPT, MOVED };

enum {
    SETTLE = 20,           /* rounds before a chain begins */
    MOST_ROUNDS = 16,      /* of an iteration */
    ROUND_RECORDS = 20000, /* that an iteration visits, if there are fewer */
    LEAST_ROUNDS = 4,      /* unless that visits more than MOST_RECORDS */
    MOST_RECORDS = 400000,
    SETTLE_RECORDS = 1000000
};

/* of a proposal, times the noise's, where the conditional density is not concave */
static const double LEAST_PRECISION = 0.25;

/* A factor whose levels are answers. */
struct answered {
    int column, levels;       /* the first of its dummies, for its second level */
    int stick;                /* first of its sticks in theta */
    const double *log_answer; /* log P(answer | level) over the largest, level after level */
    double *log_p;            /* of the levels, under theta */
};

struct imputed {
    ptrdiff_t n;
    int columns, noisy, answered, complete, rounds;
    int *column;       /* those with noise */
    double *precision; /* of its noise */
    double *hidden_sd; /* of its values given the noisy ones alone */
    const double *seen;
    struct answered *factor;
    const double *answer; /* levels, factor after factor */

    double *c, *energy, *hidden, *level; /* state */

    double **x, **x_new, **seen_block; /* workspace: blocks */
    double *density, *density_new, *normal, *scale, *change, *fit;
    double *of_level, *weight; /* densities, level after level; of the levels */
};

static double *block_column(void) { return doubles(MAX_BLOCK); }

/* So many that the parameters, which follow the records, are nearly independent after a few
 * iterations. */
static int rounds_of(ptrdiff_t n) {
    ptrdiff_t rounds = ROUND_RECORDS / n;
    if (rounds < LEAST_ROUNDS) rounds = LEAST_ROUNDS;
    if (rounds > MOST_RECORDS / n) rounds = MOST_RECORDS / n;
    return rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : (int)rounds;
}

static double *log_answers(const struct channel *c) {
    const int size = c->levels * c->answers;
    double *log_p = doubles((size_t)size), most = 0;
    for (int k = 0; k < size; ++k) most = fmax(most, c->p[k]);
    for (int k = 0; k < size; ++k) log_p[k] = log(c->p[k] / most);
    return log_p;
}

static int create_answers(const struct fields *fields, const struct model *model,
                          struct imputed *s) {
    s->answered = fields_length(fields, "answer_column");
    if (s->answered < 0) s->answered = 0;
    const double *column = fields_vector(fields, "answer_column", s->answered);
    const double *factor = fields_vector(fields, "answer_factor", s->answered);
    struct channel *channel;
    s->answer = fields_vector(fields, "answer", s->answered * (int)s->n);
    if (s->answered > 0 &&
        (!column || !factor || !s->answer || channels_read(fields, &channel) != s->answered))
        return PLUGIN_BAD_FIELDS;
    s->factor = plugin_memory((size_t)s->answered, sizeof *s->factor);
    int most = 0;
    for (int f = 0; f < s->answered; ++f) {
        const struct theta_block *block =
            coordinates_probabilities(&model->coordinates, (int)factor[f]);
        if (!block || channel[f].levels != block->size || channel[f].answers != block->size)
            return PLUGIN_BAD_FIELDS;
        struct answered *a = s->factor + f;
        *a = (struct answered){
            .column = (int)column[f],
            .levels = block->size,
            .stick = block->offset,
            .log_answer = log_answers(channel + f),
        };
        a->log_p = doubles((size_t)a->levels);
        if (most < a->levels) most = a->levels;
    }
    s->of_level = doubles((size_t)most * MAX_BLOCK);
    s->weight = doubles((size_t)most);
    return PLUGIN_OK;
}

/* Fields: seen, the noisy records, column after column; noise_sd, one a column of the model;
 * hidden_sd, the standard deviation of each column's values given the noisy ones alone, about; and
 * of each factor with answers: answer_column, the first of its dummies; answer_factor, its place
 * among the model's factors; answer, its levels; its channel (channels_read()). */
static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    if (!model->record || !model->statistic || !model->update) return PLUGIN_BAD_FIELDS;
    struct imputed *s = plugin_memory(1, sizeof *s);
    s->n = (ptrdiff_t)of->n;
    s->columns = model->columns;
    s->complete = model->complete;
    s->seen = fields_vector(fields, "seen", s->columns * (int)s->n);
    const double *sd = fields_vector(fields, "noise_sd", s->columns);
    const double *hidden = fields_vector(fields, "hidden_sd", s->columns);
    if (!s->seen || !sd || !hidden) return PLUGIN_BAD_FIELDS;
    s->column = plugin_memory((size_t)s->columns, sizeof(int));
    DOUBLES((size_t)s->columns, &s->precision, &s->hidden_sd);
    s->x = plugin_memory((size_t)s->columns, sizeof *s->x);
    s->x_new = plugin_memory((size_t)s->columns, sizeof *s->x_new);
    s->seen_block = plugin_memory((size_t)s->columns, sizeof *s->seen_block);
    for (int v = 0; v < s->columns; ++v) {
        s->x[v] = block_column();
        s->x_new[v] = block_column();
        if (sd[v] <= 0) continue;
        s->precision[s->noisy] = 1 / (sd[v] * sd[v]);
        s->hidden_sd[s->noisy] = hidden[v];
        s->seen_block[s->noisy] = block_column();
        s->column[s->noisy++] = v;
    }
    s->density = block_column();
    s->density_new = block_column();
    s->normal = block_column();
    s->scale = block_column();
    s->change = block_column();
    s->fit = doubles(3 * MAX_BLOCK);
    const int status = create_answers(fields, model, s);
    if (status != PLUGIN_OK) return status;
    s->rounds = s->noisy > 0 || s->answered > 0 ? rounds_of(s->n) : 1;
    of->self = s;
    of->stored = s->complete + 1 + (s->noisy + s->answered) * (int)s->n;
    of->described = s->complete;
    return PLUGIN_OK;
}

static void write_level(const struct answered *a, double level, int i, double *const *x) {
    for (int l = 1; l < a->levels; ++l) x[a->column + l - 1][i] = level == l ? 1 : 0;
}

/* padding repeats the last record */
static void pad_block(int m, double *x) {
    for (int i = m; i < PAD_LANES(m); ++i) x[i] = x[m - 1];
}

/* x: the records of the block from `start` on; seen_block: their noisy values */
static void read_block(const struct imputed *s, ptrdiff_t start, int m) {
    for (int v = 0; v < s->columns; ++v)
        memcpy(s->x[v], s->seen + (size_t)v * (size_t)s->n + start, (size_t)m * sizeof(double));
    for (int a = 0; a < s->noisy; ++a) {
        const int v = s->column[a];
        memcpy(s->seen_block[a], s->x[v], (size_t)m * sizeof(double));
        pad_block(m, s->seen_block[a]);
        memcpy(s->x[v], s->hidden + (size_t)a * (size_t)s->n + start, (size_t)m * sizeof(double));
    }
    for (int f = 0; f < s->answered; ++f) {
        const double *level = s->level + (size_t)f * (size_t)s->n + start;
        for (int i = 0; i < m; ++i) write_level(s->factor + f, level[i], i, s->x);
    }
    for (int v = 0; v < s->columns; ++v) {
        pad_block(m, s->x[v]);
        memcpy(s->x_new[v], s->x[v], (size_t)PAD_LANES(m) * sizeof(double));
    }
}

/* Minus the change of the noise's energy, a half times its precision times the squared distance. */
VECTOR_CLONES static void add_noise(int m, double precision, const double *restrict seen,
                                    const double *restrict old, const double *restrict fresh,
                                    double *restrict change) {
    FOR_RECORDS(i, m)
    change[i] -= 0.5 * precision * (fresh[i] - old[i]) * (fresh[i] + old[i] - 2 * seen[i]);
}

/* Records that are accepted keep what is fresh, whose density is the second. */
VECTOR_CLONES static void accept(int m, const double *restrict exponential,
                                 const double *restrict change, double *restrict accepted) {
    FOR_RECORDS(i, m) accepted[i] = change[i] + exponential[i] > 0 ? 1 : 0;
}

VECTOR_CLONES static void keep(int m, const double *restrict accepted, double *restrict fresh,
                               double *restrict old) {
    FOR_RECORDS(i, m) {
        const double kept = accepted[i] > 0 ? fresh[i] : old[i];
        fresh[i] = old[i] = kept;
    }
}

/* Accepts or refuses what stands in the noisy columns from `first` to before `end` of x_new; in
 * addition to the densities, `change` has what proposals add to the logarithm of the ratio. Returns
 * how many records moved. */
static double decide(struct imputed *s, const struct model *model, struct rng *rng, int m,
                     int first, int end) {
    for (int a = first; a < end; ++a) pad_block(m, s->x_new[s->column[a]]);
    const double *const *at = (const double *const *)s->x_new;
    model->record->record_density(model->self, m, at, s->density_new);
    FOR_RECORDS(i, m) s->change[i] += s->density_new[i] - s->density[i];
    for (int a = first; a < end; ++a) {
        const int v = s->column[a];
        add_noise(m, s->precision[a], s->seen_block[a], s->x[v], s->x_new[v], s->change);
    }
    rng_fill_exponential(rng, m, s->scale);
    accept(m, s->scale, s->change, s->normal);
    keep(m, s->normal, s->density_new, s->density);
    for (int a = first; a < end; ++a)
        keep(m, s->normal, s->x_new[s->column[a]], s->x[s->column[a]]);
    return block_sum(m, s->normal);
}

/* One walk of all noisy columns. */
static double walk_block(struct imputed *s, const struct model *model, struct rng *rng, int m) {
    const double share = 1 / sqrt(s->noisy);
    rng_fill_uniform(rng, m, s->scale);
    for (int i = 0; i < m; ++i) s->scale[i] = s->scale[i] < 0.5 ? share : share / 3;
    for (int a = 0; a < s->noisy; ++a) {
        const double *x = s->x[s->column[a]], by = 2.4 * s->hidden_sd[a];
        double *x_new = s->x_new[s->column[a]];
        rng_fill_normal(rng, m, s->normal);
        for (int i = 0; i < m; ++i) x_new[i] = x[i] + by * s->scale[i] * s->normal[i];
    }
    memset(s->change, 0, (size_t)PAD_LANES(m) * sizeof(double));
    return decide(s, model, rng, m, 0, s->noisy);
}

VECTOR_CLONES static void shift(int m, double by, const double *restrict from,
                                double *restrict to) {
    FOR_RECORDS(i, m) to[i] = from[i] + by;
}

/* fit: log densities at h below `seen`, there and h above it. Draws x_new, and puts into `change`
 * the log ratio of its density at x over that at x_new. */
VECTOR_CLONES static void propose(int m, double h, double noise, const double *restrict seen,
                                  const double *restrict fit, const double *restrict normal,
                                  const double *restrict x, double *restrict x_new,
                                  double *restrict change) {
    const double *restrict below = fit, *restrict middle = fit + MAX_BLOCK,
                           *restrict above = fit + 2 * MAX_BLOCK;
    const double per_slope = 0.5 / h, per_curvature = 1 / (h * h), least = LEAST_PRECISION * noise;
    FOR_RECORDS(i, m) {
        const double slope = (above[i] - below[i]) * per_slope;
        const double fitted = noise - (above[i] - 2 * middle[i] + below[i]) * per_curvature;
        const double precision = fitted > least ? fitted : least;
        const double away = x[i] - seen[i] - slope / precision;
        x_new[i] = seen[i] + slope / precision + normal[i] / sqrt(precision);
        change[i] = 0.5 * (normal[i] * normal[i] - precision * away * away);
    }
}

/* Values of one noisy column, from the normal distribution whose log density has at the noisy value
 * the slope and curvature of the conditional one, by differences. */
static double draw_block(struct imputed *s, const struct model *model, struct rng *rng, int m,
                         int a) {
    const int v = s->column[a];
    const double h = s->hidden_sd[a], *seen = s->seen_block[a];
    for (int k = 0; k < 3; ++k) {
        shift(m, (k - 1) * h, seen, s->x_new[v]);
        model->record->record_density(model->self, m, (const double *const *)s->x_new,
                                      s->fit + (size_t)k * MAX_BLOCK);
    }
    rng_fill_normal(rng, m, s->normal);
    for (int i = m; i < PAD_LANES(m); ++i) s->normal[i] = s->normal[m - 1];
    propose(m, h, s->precision[a], seen, s->fit, s->normal, s->x[v], s->x_new[v], s->change);
    return decide(s, model, rng, m, a, a + 1);
}

/* The levels of one factor. */
static void draw_levels(struct imputed *s, const struct model *model, struct rng *rng, int f,
                        ptrdiff_t start, int m) {
    const struct answered *a = s->factor + f;
    double *level = s->level + (size_t)f * (size_t)s->n + start;
    const double *answer = s->answer + (size_t)f * (size_t)s->n + start;
    for (int l = 0; l < a->levels; ++l) {
        for (int k = 1; k < a->levels; ++k) {
            double *dummy = s->x_new[a->column + k - 1];
            FOR_RECORDS(i, m) dummy[i] = k == l ? 1 : 0;
        }
        model->record->record_density(model->self, m, (const double *const *)s->x_new,
                                      s->of_level + (size_t)l * MAX_BLOCK);
    }
    rng_fill_uniform(rng, m, s->scale);
    for (int i = 0; i < m; ++i) {
        double *of = s->of_level + i, most = -INFINITY, sum = 0;
        for (int l = 0; l < a->levels; ++l) {
            s->weight[l] =
                of[l * MAX_BLOCK] + a->log_p[l] + a->log_answer[l * a->levels + (int)answer[i]];
            if (most < s->weight[l]) most = s->weight[l];
        }
        for (int l = 0; l < a->levels; ++l) sum += s->weight[l] = exp(s->weight[l] - most);
        double left = s->scale[i] * sum;
        int drawn = 0;
        while (drawn < a->levels - 1 && (left -= s->weight[drawn]) >= 0) ++drawn;
        level[i] = drawn;
        s->density[i] = of[drawn * MAX_BLOCK];
        write_level(a, drawn, i, s->x);
    }
    for (int k = 1; k < a->levels; ++k) {
        double *dummy = s->x[a->column + k - 1];
        pad_block(m, dummy);
        memcpy(s->x_new[a->column + k - 1], dummy, (size_t)PAD_LANES(m) * sizeof(double));
    }
}

/* log probabilities of the levels */
static void set_levels(struct imputed *s, const double *theta) {
    for (int f = 0; f < s->answered; ++f) {
        const struct answered *a = s->factor + f;
        sticks_to_probabilities(a->levels, theta + a->stick, a->log_p);
        for (int l = 0; l < a->levels; ++l) a->log_p[l] = log(a->log_p[l]);
    }
}

/* All records, and their complete-data statistic and energy then. Returns the share that moved. */
static double sweep(struct collapse *of, int walks) {
    struct imputed *s = of->self;
    const struct model *model = &of->model;
    double moved = 0;
    model->class->set(model->self, of->theta);
    set_levels(s, of->theta);
    memset(s->c, 0, (size_t)s->complete * sizeof(double));
    *s->energy = 0;
    for (ptrdiff_t start = 0; start < s->n; start += MAX_BLOCK) {
        const int m = block_length(s->n - start);
        const double *const *x = (const double *const *)s->x;
        read_block(s, start, m);
        if (s->noisy > 0) {
            model->record->record_density(model->self, m, x, s->density);
            if (walks) moved += walk_block(s, model, of->rng, m);
            for (int a = 0; a < s->noisy; ++a) moved += draw_block(s, model, of->rng, m, a);
        }
        for (int f = 0; f < s->answered; ++f) draw_levels(s, model, of->rng, f, start, m);
        model->statistic->add(model->self, m, x, s->c);
        for (int f = 0; f < s->answered; ++f) {
            const ptrdiff_t at = (ptrdiff_t)f * s->n + start;
            const struct answered *a = s->factor + f;
            for (int i = 0; i < m; ++i)
                *s->energy -=
                    a->log_answer[(int)s->level[at + i] * a->levels + (int)s->answer[at + i]];
        }
        for (int a = 0; a < s->noisy; ++a) {
            const int v = s->column[a];
            FOR_RECORDS(i, m) s->change[i] = s->x[v][i] - s->seen_block[a][i];
            *s->energy += 0.5 * s->precision[a] * block_dot(m, s->change, s->change);
            doubles_copy(s->hidden + (size_t)a * (size_t)s->n + start, s->x[v], m);
        }
    }
    return moved / ((double)s->n * fmax(1, s->noisy + walks));
}

static int update(struct collapse *of) {
    const struct imputed *s = of->self;
    return of->model.update->rtheta(of->model.self, s->c, of->n, of->rng, of->theta);
}

static void load(struct collapse *of) {
    struct imputed *s = of->self;
    s->c = of->store;
    s->energy = s->c + s->complete;
    s->hidden = s->energy + 1;
    s->level = s->hidden + (size_t)s->noisy * (size_t)s->n;
}

/* The noisy values and answers are treated as the true ones, theta drawn given them, and some
 * rounds made. */
static void start(struct collapse *of) {
    struct imputed *s = of->self;
    load(of);
    for (int a = 0; a < s->noisy; ++a)
        doubles_copy(s->hidden + (size_t)a * (size_t)s->n,
                     s->seen + (size_t)s->column[a] * (size_t)s->n, s->n);
    const int noisy = s->noisy, answered = s->answered;
    if (answered > 0) memcpy(s->level, s->answer, (size_t)answered * (size_t)s->n * sizeof(double));
    if (!of->given) {
        s->noisy = s->answered = 0; /* the statistic alone */
        (void)sweep(of, 0);
        s->noisy = noisy;
        s->answered = answered;
        (void)update(of);
    }
    (void)sweep(of, 1);
    const int settle = s->n * SETTLE < SETTLE_RECORDS ? SETTLE : 1;
    for (int k = 0; !of->given && k < settle; ++k) {
        (void)update(of);
        (void)sweep(of, 1);
    }
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    const struct imputed *s = of->self;
    (void)iteration, (void)warmup;
    double moved = 0;
    for (int k = 0; k < s->rounds; ++k) {
        moved += sweep(of, k == 0) / s->rounds;
        const int status = update(of);
        if (status != PLUGIN_OK) return status;
    }
    of->counter[SWEPT] += 1;
    of->counter[MOVED] += moved;
    *accepted = moved;
    return PLUGIN_OK;
}

/* no totals were released */
static void statistic(const struct collapse *of, double *out) { (void)of, (void)out; }

static void complete(const struct collapse *of, double *out) {
    const struct imputed *s = of->self;
    memcpy(out, s->c, (size_t)s->complete * sizeof(double));
}

static double energy(const struct collapse *of) {
    const struct imputed *s = of->self;
    return *s->energy;
}

static double work(const struct collapse *of) {
    const struct imputed *s = of->self;
    int densities = 2 + 4 * s->noisy;
    for (int f = 0; f < s->answered; ++f) densities += s->factor[f].levels;
    return (double)s->rounds * (double)s->n * densities * (20.0 + s->columns * (s->columns + 4.0));
}

static const struct collapse_complete complete_data = {.statistic = complete};

const struct collapse_class collapse_imputed = {
    .name = "imputed",
    .counters = {[SWEPT] = "swept", [MOVED] = "moved"},
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .work = work,
    .complete = &complete_data,
};
