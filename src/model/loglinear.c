/* Model "loglinear": columns of codes 0, 1, ..., whose combinations, the cells, have probabilities
 * of a log-linear model,
 *
 *   log p_k = eta_k - log sum_l exp(eta_l),  eta_k = sum_g m_g[k],
 *
 * a sum over margins g of the table (the generators of the model; Bishop, Fienberg & Holland
 * 1975). The value m_g of a cell of a margin is the sum of the coefficients of theta that are
 * listed for it: under treatment contrasts the coefficients of its factors' levels but the first,
 * and of their combinations. Each coefficient belongs to one margin. Impossible cells are left out
 * of the sum.
 *
 * theta: the coefficients, with independent normal priors. There is no constant: the probabilities
 * sum to 1. Records are those of model/records_of_cells.c.
 *
 * The counts' log density given theta, and its gradient in the coefficients, are available for
 * methods that move theta by gradients: margins N_g - n P_g of the counts minus their expectation,
 * summed over the cells of a coefficient. The log density is concave.
 *
 * Cost of a density: an exponential and two additions a margin for each cell; of the information, a
 * pair of a cell's coefficients each.
 */
#include "contract/model_cells.h"
#include "contract/model_likelihood.h"
#include "contract/model_prior.h"
#include "model/records_of_cells.h"

struct loglinear {
    struct cell_records records; /* first: model/records_of_cells.h */
    int margins, coefficients;
    /* Cells of all margins, one margin after the other. Those of cell k of the table: at[k *
     * margins
     * + g]. Coefficients of cell m of a margin: listed[first[m]], ... */
    int entries, *at, *first, *listed;
    const double *mean, *sd;

    /* counts that log_posterior() is given, their sum, and their sums by margin */
    double n, *counted;

    /* workspace: of the margins' cells; of the coefficients */
    double *value, *expected;
    double *slope;
    int *list;
};

/* ---- set-up ------------------------------------------------------------------- */

/* Where each cell stands in each margin. Returns PLUGIN_*. */
static int read_margins(const struct fields *fields, struct loglinear *s) {
    s->margins = fields_length(fields, "margin");
    const double *margin = fields_vector(fields, "margin", s->margins);
    const double *column = fields_vector(fields, "margin_column", -1);
    if (!margin || !column) return PLUGIN_BAD_FIELDS;
    s->at = plugin_memory((size_t)s->records.cells * (size_t)s->margins, sizeof *s->at);
    for (int g = 0; g < s->margins; ++g) {
        const int count = (int)margin[g];
        int all = 1;
        for (int v = 0; v < count; ++v) all *= s->records.size[(int)column[v]];
        for (int k = 0; k < s->records.cells; ++k) {
            int place = 0;
            for (int v = 0; v < count; ++v)
                place = place * s->records.size[(int)column[v]] +
                        (int)s->records.code[(size_t)k * s->records.columns + (size_t)column[v]];
            s->at[(size_t)k * s->margins + g] = s->entries + place;
        }
        s->entries += all;
        column += count;
    }
    const double *first = fields_vector(fields, "margin_first", s->entries + 1);
    const int length = fields_length(fields, "margin_listed");
    const double *listed = fields_vector(fields, "margin_listed", length);
    if (!first || !listed || first[s->entries] != length) return PLUGIN_BAD_FIELDS;
    s->first = plugin_memory((size_t)s->entries + 1, sizeof *s->first);
    s->listed = plugin_memory((size_t)length, sizeof *s->listed);
    for (int m = 0; m <= s->entries; ++m) s->first[m] = (int)first[m];
    for (int e = 0; e < length; ++e) s->listed[e] = (int)listed[e];
    return PLUGIN_OK;
}

/* ---- prior -------------------------------------------------------------------- */

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct loglinear *s = self;
    for (int j = 0; j < s->coefficients; ++j) theta[j] = s->mean[j] + s->sd[j] * rng_normal(rng);
}

static double dprior(void *self, const double *theta) {
    const struct loglinear *s = self;
    double log_density = 0;
    for (int j = 0; j < s->coefficients; ++j) {
        const double z = (theta[j] - s->mean[j]) / s->sd[j];
        log_density -= 0.5 * z * z;
    }
    return log_density;
}

static void prior_gradient(void *self, const double *theta, double *gradient) {
    const struct loglinear *s = self;
    for (int j = 0; j < s->coefficients; ++j)
        gradient[j] -= (theta[j] - s->mean[j]) / (s->sd[j] * s->sd[j]);
}

/* ---- cells -------------------------------------------------------------------- */

/* eta of the cells, and the largest of them; the margins' values stay in `value` */
static double predict(struct loglinear *s, const double *theta, double *restrict eta) {
    for (int m = 0; m < s->entries; ++m) {
        double sum = 0;
        for (int e = s->first[m]; e < s->first[m + 1]; ++e) sum += theta[s->listed[e]];
        s->value[m] = sum;
    }
    const int margins = s->margins, *at = s->at;
    double most = -INFINITY;
    for (int k = 0; k < s->records.cells; ++k, at += margins) {
        double sum = 0;
        for (int g = 0; g < margins; ++g) sum += s->value[at[g]];
        eta[k] = sum;
        if (most < sum) most = sum;
    }
    return most;
}

static void log_cells(void *self, const double *theta, double *log_p) {
    struct loglinear *s = self;
    const double most = predict(s, theta, log_p);
    double sum = 0;
    for (int k = 0; k < s->records.cells; ++k) sum += exp(log_p[k] - most);
    const double log_sum = most + log(sum);
    for (int k = 0; k < s->records.cells; ++k) log_p[k] -= log_sum;
}

static void observe(void *self, const double *c, double n) {
    struct loglinear *s = self;
    s->n = n;
    memset(s->counted, 0, (size_t)s->entries * sizeof(double));
    const int *at = s->at;
    for (int k = 0; k < s->records.cells; ++k, at += s->margins) {
        if (c[k] == 0) continue;
        for (int g = 0; g < s->margins; ++g) s->counted[at[g]] += c[k];
    }
}

/* of what was observed; adds its slopes to the gradient */
static double observed(struct loglinear *s, const double *theta, double *gradient) {
    const int margins = s->margins, *at = s->at;
    const double most = predict(s, theta, s->records.log_p);
    if (!isfinite(most)) return -INFINITY;
    memset(s->expected, 0, (size_t)s->entries * sizeof(double));
    double sum = 0;
    for (int k = 0; k < s->records.cells; ++k, at += margins) {
        const double share = exp(s->records.log_p[k] - most);
        sum += share;
        for (int g = 0; g < margins; ++g) s->expected[at[g]] += share;
    }
    double log_density = -s->n * (most + log(sum));
    for (int m = 0; m < s->entries; ++m) {
        const double slope = s->counted[m] - s->n / sum * s->expected[m];
        log_density += s->counted[m] * s->value[m];
        for (int e = s->first[m]; gradient && e < s->first[m + 1]; ++e)
            gradient[s->listed[e]] += slope;
    }
    return log_density;
}

static double log_posterior(void *self, const double *theta, double *gradient) {
    struct loglinear *s = self;
    memset(gradient, 0, (size_t)s->coefficients * sizeof(double));
    prior_gradient(s, theta, gradient);
    return dprior(s, theta) + observed(s, theta, gradient);
}

static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    observe(self, c, n);
    return observed(self, theta, gradient);
}

/* Coefficients of a cell of the table; returns how many. */
static int list_of_cell(const struct loglinear *s, int k, int *list) {
    const int *at = s->at + (size_t)k * (size_t)s->margins;
    int count = 0;
    for (int g = 0; g < s->margins; ++g)
        for (int e = s->first[at[g]]; e < s->first[at[g] + 1]; ++e) list[count++] = s->listed[e];
    return count;
}

/* n (sum p x x' - sum p x sum p x'), x a cell's row of the design, and the prior's precision */
static void information(void *self, const double *theta, double *matrix) {
    struct loglinear *s = self;
    const size_t size = (size_t)s->coefficients;
    double *mean = s->slope;
    log_cells(s, theta, s->records.log_p);
    memset(matrix, 0, size * size * sizeof(double));
    memset(mean, 0, size * sizeof(double));
    for (int k = 0; k < s->records.cells; ++k) {
        const double p = exp(s->records.log_p[k]);
        const int count = list_of_cell(s, k, s->list);
        for (int a = 0; a < count; ++a) {
            double *row = matrix + (size_t)s->list[a] * size;
            mean[s->list[a]] += p;
            for (int b = 0; b < count; ++b)
                if (s->list[b] <= s->list[a]) row[s->list[b]] += p;
        }
    }
    for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j <= i; ++j)
            matrix[i * size + j] = s->n * (matrix[i * size + j] - mean[i] * mean[j]);
        matrix[i * size + i] += 1 / (s->sd[i] * s->sd[i]);
    }
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior, .prior_gradient = prior_gradient};
static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood};
static const struct model_cells cells_hooks = {.log_cells = log_cells,
                                               .observe = observe,
                                               .log_posterior = log_posterior,
                                               .information = information};

/* Fields: columns, the codes of each; code, of each cell in turn; margin, how many columns each
 * has, and margin_column, these, one margin after the other; for the cells of all margins,
 * margin_first, where their coefficients begin in margin_listed, and where the last ones end;
 * prior_mean and prior_sd, of the coefficients. */
static int create(const struct fields *fields, struct model *model) {
    struct loglinear *s = plugin_memory(1, sizeof *s);
    if (cell_records_create(&s->records, fields, log_cells, model) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    s->coefficients = fields_length(fields, "prior_mean");
    s->mean = fields_vector(fields, "prior_mean", s->coefficients);
    s->sd = fields_vector(fields, "prior_sd", s->coefficients);
    if (!s->mean || !s->sd || read_margins(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;

    const size_t entries = (size_t)s->entries;
    DOUBLES(entries, &s->counted, &s->value, &s->expected);
    s->slope = doubles((size_t)s->coefficients);
    s->list = plugin_memory((size_t)s->coefficients, sizeof(int));

    const struct theta_block block = {
        .name = "coefficients",
        .transform = TRANSFORM_IDENTITY,
        .size = s->coefficients,
    };
    model_describe(model, 1, &block);
    model->prior = &prior_hooks;
    model->likelihood = &likelihood_hooks;
    model->cells = &cells_hooks;
    return PLUGIN_OK;
}

const struct model_class model_loglinear = {
    .name = "loglinear",
    .create = create,
    .rprior = rprior,
    .set = cell_records_set,
    .rrecords = cell_records_draw,
};
