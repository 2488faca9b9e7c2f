/* A response with levels and factors alone (models "glm" and "categories"), as a table of counts:
 * the hooks with which method "collapse" moves the table given theta and theta given the table
 * (table/theta_nuts.c), free of the number of records.
 *
 *   log p(x, y) = sum_f log pi_f[x_f] + log P(y | eta(x)),
 *   eta_e(x) = beta_e0 + sum_f beta_ef[x_f],
 *
 * with beta_ef of a first level 0, and pi_f the probabilities of factor f, as sticks
 * (base/sticks.h). The model determines the number of predictors e, and P with its cuts
 * (model/glm_as_table.h). Given the counts the coefficients and each factor's sticks are
 * independent; the density of the coefficients is log-concave, and so are the sticks' densities.
 *
 * Factors that depend on each other (model/covariates_joint.c) have log p_x in place of the first
 * sum. Given the cells of records, the probabilities of their cross-table, and what their prior
 * depends on, are drawn by shift(), and held against gradients: these need ten times as long. They
 * move by gradients where records are not known, in coordinates of their own
 * (contract/model_uncentred.h).
 *
 * Terms that depend on one factor are spread over the combinations x factor by factor, and sums
 * over them are collected in the same way: two additions per combination in total, for any number
 * of factors. Cost: for each combination a logarithm and an exponential or two, for each level.
 *
 * Where the formula has products of factors, eta is the sum of the coefficients whose dummies, or
 * products of dummies, are 1 in a combination: these are listed once, for an addition each in eta
 * and in the slopes.
 */
#include "model/glm_as_table.h"

#include "base/linalg.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"
#include "contract/model_cells.h"
#include "contract/model_likelihood.h"
#include "contract/model_uncentred.h"
#include "model/covariates_factors.h"
#include "model/covariates_joint.h"

/* The levels of a factor, or the cells of dependent factors. */
struct shares {
    int levels, stick;   /* the first of its sticks in theta */
    const double *alpha; /* Dirichlet weights */
};

struct glm_cells {
    struct covariates *cov;
    const struct predictor *predictor;
    struct cell_response response;
    int *listed, *start; /* with products: the coefficients of each combination; else NULL */
    int *cell;           /* of dependent factors, by combination; else NULL */
    int share_groups;
    struct shares *shares;
    int combinations, levels; /* levels: of all factors */
    double *count;            /* of the cells */
    double *all;              /* and of the combinations */
    double *counted;          /* and of the levels */
    double *value;            /* workspace: for each predictor the combinations' values */
    double *eta, *log_p, *slope, *sum;
    double *effect;
    double *probability;
    double *unwanted; /* a gradient */
    int *row;
};

/* `self`: a model, whose covariates stand first. */
static struct glm_cells *table_of(void *self) {
    const struct covariates *cov = self;
    return cov->table;
}

/* Is a dummy, or a product of dummies, 1 in combination x? */
static int is_one(const struct glm_cells *s, int x, int column) {
    const struct covariates *cov = s->cov;
    const struct products *products = &cov->design.products;
    if (column >= products->first) {
        const double *of = products->of, *size = products->size;
        for (int j = products->first; j < column; ++j) of += (int)*size++;
        for (int e = 0; e < (int)*size; ++e)
            if (!is_one(s, x, (int)of[e])) return 0;
        return 1;
    }
    for (int f = cov->factors.count - 1; f >= 0; --f) {
        const struct factor *factor = cov->factors.factor + f;
        if (column >= factor->first && column < factor->first + factor->levels - 1)
            return x % factor->levels == column - factor->first + 1;
        x /= factor->levels;
    }
    return 0;
}

/* The first of a factor's coefficients among the coefficients of a predictor, whose constant is
 * number 0. */
static int first_coefficient(const struct glm_cells *s, const struct factor *factor) {
    return factor->first - s->response.columns + 1;
}

/* The coefficients of combination x, the constant's last; returns how many. */
static int list_coefficients(const struct glm_cells *s, int x, int *row) {
    const struct covariates *cov = s->cov;
    const struct predictor *predictor = s->predictor;
    int listed = 0;
    if (predictor->derived) {
        for (int j = 1; j < predictor->k; ++j)
            if (is_one(s, x, predictor->column[j])) row[listed++] = j;
    } else {
        for (int f = cov->factors.count - 1; f >= 0; --f) {
            const int level = x % cov->factors.factor[f].levels;
            x /= cov->factors.factor[f].levels;
            if (level > 0)
                row[listed++] = first_coefficient(s, cov->factors.factor + f) + level - 1;
        }
    }
    row[listed++] = 0;
    return listed;
}

/* where coefficient j of predictor e is in theta */
static inline int place(const struct glm_cells *s, int e, int j) {
    return j == 0 ? s->response.constant[e] : s->response.slopes[e] + j;
}

static void list_all(struct glm_cells *s) {
    s->start = plugin_memory((size_t)s->combinations + 1, sizeof *s->start);
    for (int x = 0; x < s->combinations; ++x)
        s->start[x + 1] = s->start[x] + list_coefficients(s, x, s->row);
    s->listed = plugin_memory((size_t)s->start[s->combinations], sizeof *s->listed);
    for (int x = 0; x < s->combinations; ++x)
        (void)list_coefficients(s, x, s->listed + s->start[x]);
}

static int count_cells(const struct glm_cells *s) { return s->response.levels * s->combinations; }

/* value[x] = constant + sum over factors of the level's effect */
static void spread(const struct glm_cells *s, double constant, const double *of_level,
                   double *value) {
    int size = 1;
    value[0] = constant;
    for (int f = 0; f < s->cov->factors.count; ++f) {
        const int levels = s->cov->factors.factor[f].levels;
        for (int x = size - 1; x >= 0; --x) {
            const double base = value[x];
            for (int l = levels - 1; l >= 0; --l) value[x * levels + l] = base + of_level[l];
        }
        size *= levels;
        of_level += levels;
    }
}

/* of_level[l] = sum over combinations with that level; returns that of all. Spoils `value`. */
static double fold(const struct glm_cells *s, double *value, double *of_level) {
    int size = s->combinations, at = s->levels;
    for (int f = s->cov->factors.count - 1; f >= 0; --f) {
        const int levels = s->cov->factors.factor[f].levels;
        at -= levels;
        size /= levels;
        memset(of_level + at, 0, (size_t)levels * sizeof(double));
        for (int x = 0; x < size; ++x) {
            double sum = 0;
            for (int l = 0; l < levels; ++l) {
                const double one = value[x * levels + l];
                of_level[at + l] += one;
                sum += one;
            }
            value[x] = sum;
        }
    }
    return value[0];
}

/* value: of every predictor */
static void predict(struct glm_cells *s, const double *theta) {
    double *eta = s->value;
    for (int e = 0; e < s->response.predictors; ++e, eta += s->combinations) {
        for (int x = 0; s->listed && x < s->combinations; ++x) {
            eta[x] = 0;
            for (int a = s->start[x]; a < s->start[x + 1]; ++a)
                eta[x] += theta[place(s, e, s->listed[a])];
        }
        if (s->listed) continue;
        int at = 0;
        for (int f = 0; f < s->cov->factors.count; ++f) {
            const struct factor *factor = s->cov->factors.factor + f;
            const double *slope = theta + s->response.slopes[e] + first_coefficient(s, factor);
            s->effect[at++] = 0;
            for (int l = 1; l < factor->levels; ++l) s->effect[at++] = slope[l - 1];
        }
        spread(s, theta[s->response.constant[e]], s->effect, eta);
    }
}

/* log P(y) of combination x, and its slopes; after predict() */
static void find_logs(struct glm_cells *s, int x) {
    const struct cell_response *response = &s->response;
    for (int e = 0; e < response->predictors; ++e)
        s->eta[e] = s->value[(size_t)e * (size_t)s->combinations + (size_t)x];
    response->logs(response->self, s->eta, s->log_p, s->slope);
}

static void use(struct glm_cells *s, const double *theta) {
    if (s->response.use) s->response.use(s->response.self, theta);
    predict(s, theta);
}

static void log_shares(const struct glm_cells *s, const double *theta, double *log_p) {
    for (int f = 0; f < s->share_groups; ++f) {
        const struct shares *shares = s->shares + f;
        sticks_to_log_probabilities(shares->levels, theta + shares->stick, log_p);
        log_p += shares->levels;
    }
}

/* log p(x) of all combinations */
static void log_combinations(struct glm_cells *s, const double *theta, double *log_p) {
    log_shares(s, theta, s->probability);
    if (!s->cell) {
        spread(s, 0, s->probability, log_p);
        return;
    }
    for (int x = 0; x < s->combinations; ++x) log_p[x] = s->probability[s->cell[x]];
}

static void log_cells(void *self, const double *theta, double *log_p) {
    struct glm_cells *s = table_of(self);
    const int levels = s->response.levels;
    /* its last part, read before it is written */
    double *of_covariates = log_p + (size_t)(levels - 1) * (size_t)s->combinations;
    log_combinations(s, theta, of_covariates);
    use(s, theta);
    for (int x = 0; x < s->combinations; ++x) {
        const double base = of_covariates[x];
        find_logs(s, x);
        for (int l = 0; l < levels; ++l) *log_p++ = base + s->log_p[l];
    }
}

static void observe(void *self, const double *count, double n) {
    struct glm_cells *s = table_of(self);
    (void)n; /* the counts add up to it */
    const int levels = s->response.levels;
    memcpy(s->count, count, (size_t)count_cells(s) * sizeof(double));
    for (int x = 0; x < s->combinations; ++x) {
        s->all[x] = 0;
        for (int l = 0; l < levels; ++l) s->all[x] += *count++;
    }
    for (int x = 0; s->cell && x < s->combinations; ++x) s->counted[s->cell[x]] = s->all[x];
    if (s->cell) return;
    memcpy(s->value, s->all, (size_t)s->combinations * sizeof(double));
    (void)fold(s, s->value, s->counted);
}

/* of the response given the covariates; s->value gets the slopes in the predictors, and gradient
 * those in the cuts */
static double likelihood_of_response(struct glm_cells *s, double *gradient) {
    const struct cell_response *response = &s->response;
    const int levels = response->levels, predictors = response->predictors,
              own = predictors + response->cuts;
    const double *count = s->count;
    double log_likelihood = 0;
    for (int x = 0; x < s->combinations; ++x, count += levels) {
        memset(s->sum, 0, (size_t)own * sizeof(double));
        if (s->all[x] > 0) {
            find_logs(s, x);
            for (int l = 0; l < levels; ++l) {
                const double *slope = s->slope + (size_t)l * (size_t)own;
                if (!(count[l] > 0)) continue;
                log_likelihood += count[l] * s->log_p[l];
                for (int j = 0; j < own; ++j) s->sum[j] += count[l] * slope[j];
            }
        }
        for (int e = 0; e < predictors; ++e)
            s->value[(size_t)e * (size_t)s->combinations + (size_t)x] = s->sum[e];
        for (int j = predictors; j < own; ++j)
            gradient[response->cut_at + j - predictors] += s->sum[j];
    }
    return log_likelihood;
}

static void fold_slopes(struct glm_cells *s, int e, double *value, double *gradient) {
    for (int x = 0; s->listed && x < s->combinations; ++x)
        for (int a = s->start[x]; a < s->start[x + 1]; ++a)
            gradient[place(s, e, s->listed[a])] += value[x];
    if (s->listed) return;
    gradient[s->response.constant[e]] += fold(s, value, s->effect);
    const double *effect = s->effect;
    for (int f = 0; f < s->cov->factors.count; effect += s->cov->factors.factor[f++].levels) {
        const struct factor *factor = s->cov->factors.factor + f;
        double *slope = gradient + s->response.slopes[e] + first_coefficient(s, factor);
        for (int l = 1; l < factor->levels; ++l) slope[l - 1] += effect[l];
    }
}

/* Of the counts; gradient += its gradient. */
static double log_of_counts(struct glm_cells *s, const double *theta, double *gradient) {
    use(s, theta);
    double log_likelihood = likelihood_of_response(s, gradient);
    for (int e = 0; e < s->response.predictors; ++e)
        fold_slopes(s, e, s->value + (size_t)e * (size_t)s->combinations, gradient);
    const double *counted = s->counted;
    for (int f = 0; f < s->share_groups; counted += s->shares[f++].levels) {
        const struct shares *shares = s->shares + f;
        double rest = counted[shares->levels - 1];
        for (int l = shares->levels - 2; l >= 0; --l) {
            const double t = theta[shares->stick + l];
            rest += counted[l];
            log_likelihood += stick_log_density(counted[l], rest, t);
            gradient[shares->stick + l] += counted[l] - rest * stick_share(t);
        }
    }
    return log_likelihood;
}

static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    struct glm_cells *s = table_of(self);
    observe(self, c, n);
    return log_of_counts(s, theta, gradient ? gradient : s->unwanted);
}

static double log_posterior(void *self, const double *theta, double *gradient) {
    struct glm_cells *s = table_of(self);
    const struct model_prior *prior = s->response.prior;
    memset(gradient, 0, (size_t)s->cov->end * sizeof(double));
    prior->prior_gradient(self, theta, gradient);
    return prior->dprior(self, theta) + log_of_counts(s, theta, gradient);
}

static void rshares(void *self, const double *c, double n, struct rng *rng, double *theta) {
    struct glm_cells *s = table_of(self);
    observe(self, c, n);
    const double *counted = s->counted;
    double *weight = s->probability;
    for (int f = 0; f < s->share_groups; counted += s->shares[f++].levels) {
        const struct shares *shares = s->shares + f;
        for (int l = 0; l < shares->levels; ++l) weight[l] = shares->alpha[l] + counted[l];
        sticks_draw(rng, shares->levels, weight, theta + shares->stick);
    }
}

/* E slope slope' of a record of combination x, in the predictors and cuts, to s->sum */
static void expect_squares(struct glm_cells *s, int x) {
    const int own = s->response.predictors + s->response.cuts;
    find_logs(s, x);
    memset(s->sum, 0, (size_t)own * (size_t)own * sizeof(double));
    for (int l = 0; l < s->response.levels; ++l) {
        const double p = exp(s->log_p[l]), *slope = s->slope + (size_t)l * (size_t)own;
        for (int i = 0; i < own; ++i)
            for (int j = 0; j < own; ++j) s->sum[i * own + j] += p * slope[i] * slope[j];
    }
}

/* The information, roughly: expected for the coefficients; from counts and prior for sticks. */
static void information(void *self, const double *theta, double *matrix) {
    struct glm_cells *s = table_of(self);
    const struct covariates *cov = s->cov;
    const struct cell_response *response = &s->response;
    const size_t size = (size_t)cov->end;
    memset(matrix, 0, size * size * sizeof(double));
    response->prior_information(self, theta, cov->end, matrix);
    const int predictors = response->predictors, own = predictors + response->cuts;
    use(s, theta);
    for (int x = 0; x < s->combinations; ++x) {
        const double count = s->all[x];
        if (count == 0) continue;
        expect_squares(s, x);
        const int listed = list_coefficients(s, x, s->row);
        /* each pair of coordinates once */
        for (int i = 0; i < own; ++i)
            for (int j = 0; j <= i; ++j) {
                const double weight = count * s->sum[i * own + j];
                const int of_i = i < predictors ? listed : 1, of_j = j < predictors ? listed : 1;
                for (int a = 0; a < of_i; ++a)
                    for (int b = 0; b < (i == j ? a + 1 : of_j); ++b)
                        linalg_add_below(matrix, size,
                                         i < predictors ? place(s, i, s->row[a])
                                                        : response->cut_at + i - predictors,
                                         j < predictors ? place(s, j, s->row[b])
                                                        : response->cut_at + j - predictors,
                                         weight);
            }
    }
    const double *counted = s->counted;
    for (int f = 0; f < s->share_groups; counted += s->shares[f++].levels) {
        const struct shares *shares = s->shares + f;
        double rest = counted[shares->levels - 1] + shares->alpha[shares->levels - 1];
        for (int l = shares->levels - 2; l >= 0; --l) {
            const double share = stick_share(theta[shares->stick + l]);
            rest += counted[l] + shares->alpha[l];
            matrix[(size_t)(shares->stick + l) * (size + 1)] += rest * share * (1 - share);
        }
    }
}

/* ---- dependent factors ------------------------------------------------------------ */

/* after observe() */
static void shift(void *self, struct rng *rng, double *theta) {
    struct glm_cells *s = table_of(self);
    joint_update_cells(s->cov, s->counted, rng, theta);
}

static int hold(void *self, const double *theta, unsigned char *held) {
    const struct glm_cells *s = table_of(self);
    (void)theta; /* all, wherever they are */
    for (int j = 0; j < s->cov->end; ++j) held[j] = j >= s->cov->joint->at_cells;
    return 1;
}

static void expect(void *self, const double *c) {
    struct glm_cells *s = table_of(self);
    observe(self, c, 0);
    joint_expect(s->cov, s->counted);
}

static const struct model_uncentred uncentred_hooks = {
    .expect = expect, .find = joint_find, .pull = joint_pull, .start = joint_start};

/* ---- set-up ------------------------------------------------------------------------- */

static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood,
                                                         .rshares = rshares};
static const struct model_cells cells_hooks = {.log_cells = log_cells,
                                               .observe = observe,
                                               .log_posterior = log_posterior,
                                               .information = information};
static const struct model_cells dependent_hooks = {.log_cells = log_cells,
                                                   .observe = observe,
                                                   .log_posterior = log_posterior,
                                                   .information = information,
                                                   .shift = shift,
                                                   .hold = hold};

static void describe_shares(struct glm_cells *s) {
    const struct covariates *cov = s->cov;
    const struct joint *joint = cov->joint;
    s->share_groups = joint ? 1 : cov->factors.count;
    s->shares = plugin_memory((size_t)cov->factors.count, sizeof *s->shares);
    for (int f = 0; f < cov->factors.count && !joint; ++f)
        s->shares[f] = (struct shares){.levels = cov->factors.factor[f].levels,
                                       .stick = cov->factors.factor[f].stick,
                                       .alpha = cov->factors.alpha + cov->factors.factor[f].at};
    if (!joint) return;
    s->shares[0] =
        (struct shares){.levels = joint->cells, .stick = joint->at_cells, .alpha = joint->alpha};
    s->cell = plugin_memory((size_t)s->combinations, sizeof *s->cell);
    for (int x = 0; x < s->combinations; ++x) {
        s->cell[x] = 0;
        for (int f = cov->factors.count - 1, rest = x; f >= 0;
             rest /= cov->factors.factor[f--].levels)
            s->cell[x] += joint->stride[f] * (rest % cov->factors.factor[f].levels);
    }
}

int glm_cells_create(struct covariates *cov, const struct predictor *predictor,
                     const struct cell_response *response, double cells, struct model *model) {
    struct glm_cells *s = plugin_memory(1, sizeof *s);
    s->cov = cov;
    s->predictor = predictor;
    s->response = *response;
    s->combinations = 1;
    for (int f = 0; f < cov->factors.count; ++f) {
        s->combinations *= cov->factors.factor[f].levels;
        s->levels += cov->factors.factor[f].levels;
    }
    const size_t size = (size_t)s->combinations, of_y = (size_t)response->levels,
                 predictors = (size_t)response->predictors,
                 own = predictors + (size_t)response->cuts;
    s->count = doubles(of_y * size);
    s->all = doubles(size);
    s->value = doubles(predictors * size);
    s->eta = doubles(predictors);
    s->log_p = doubles(of_y);
    s->slope = doubles(of_y * own);
    s->sum = doubles(own * own);
    DOUBLES((size_t)s->levels + size, &s->counted, &s->effect, &s->probability);
    describe_shares(s);
    const int most = predictor->derived ? predictor->k : cov->factors.count + 1;
    s->row = plugin_memory((size_t)most, sizeof *s->row);
    if (predictor->derived) list_all(s);
    s->unwanted = doubles((size_t)cov->end);
    cov->table = s;
    model->complete = count_cells(s);
    model->prior = response->prior;
    model->likelihood = &likelihood_hooks;
    model->cells = cov->joint ? &dependent_hooks : &cells_hooks;
    if (cov->joint && cov->joint->shares) model->uncentred = &uncentred_hooks;
    return model->complete == cells ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}
