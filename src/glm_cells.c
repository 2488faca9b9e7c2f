/* Model "glm" of a binary response and factors alone, as a table of counts: the hooks with which
 * method "collapse" moves the table given theta and theta given the table
 * (method_collapse_table_theta.c), free of the number of records.
 *
 *   log p(x, y) = sum_f log pi_f[x_f] + log P(y | eta(x)),  eta(x) = beta_0 + sum_f beta_f[x_f],
 *
 * with beta_f of a first level 0, and pi_f the probabilities of factor f, as sticks (sticks.h).
 * Given the counts the coefficients and each factor's sticks are independent; that of the
 * coefficients is log-concave, and so are those of the sticks.
 *
 * What depends on one factor at a time is spread over the combinations x factor by factor, and sums
 * over them are folded back in the same way: two additions a combination in all, whatever the
 * number of factors. Cost: a logarithm and an exponential or two for each combination.
 *
 * Where the formula has products of factors, eta is the sum of the coefficients whose dummies, or
 * products of dummies, are 1 in a combination: these are listed once, for an addition each in eta
 * and in the slopes.
 */
#include "glm_cells.h"

#include "sticks.h"

struct glm_cells {
    const struct covariates *cov;
    const struct predictor *predictor;
    const struct family *family;
    int *listed, *start;      /* with products: the coefficients of each combination; else NULL */
    int combinations, levels; /* levels: of all factors */
    double *no, *yes;         /* counts of the combinations */
    double *counted;          /* and of the levels */
    double n;
    double *value; /* workspace: of the combinations */
    double *effect;
    double *probability;
    int *row;
};

/* Is a dummy, or a product of dummies, 1 in combination x? */
static int is_one(const struct glm_cells *s, int x, int column) {
    const struct covariates *cov = s->cov;
    const struct products *products = &cov->products;
    if (column >= products->first) {
        const double *of = products->of, *size = products->size;
        for (int j = products->first; j < column; ++j) of += (int)*size++;
        for (int e = 0; e < (int)*size; ++e)
            if (!is_one(s, x, (int)of[e])) return 0;
        return 1;
    }
    for (int f = cov->factors - 1; f >= 0; --f) {
        const struct factor *factor = cov->factor + f;
        if (column >= factor->first && column < factor->first + factor->levels - 1)
            return x % factor->levels == column - factor->first + 1;
        x /= factor->levels;
    }
    return 0;
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
        for (int f = cov->factors - 1; f >= 0; --f) {
            const int level = x % cov->factor[f].levels;
            x /= cov->factor[f].levels;
            if (level > 0) row[listed++] = cov->factor[f].first + level - 1;
        }
    }
    row[listed++] = 0;
    return listed;
}

static void list_all(struct glm_cells *s) {
    s->start = plugin_memory((size_t)s->combinations + 1, sizeof *s->start);
    for (int x = 0; x < s->combinations; ++x)
        s->start[x + 1] = s->start[x] + list_coefficients(s, x, s->row);
    s->listed = plugin_memory((size_t)s->start[s->combinations], sizeof *s->listed);
    for (int x = 0; x < s->combinations; ++x)
        (void)list_coefficients(s, x, s->listed + s->start[x]);
}

struct glm_cells *glm_cells_create(const struct covariates *cov, const struct predictor *predictor,
                                   const struct family *family) {
    struct glm_cells *s = plugin_memory(1, sizeof *s);
    s->cov = cov;
    s->predictor = predictor;
    s->family = family;
    s->combinations = 1;
    for (int f = 0; f < cov->factors; ++f) {
        s->combinations *= cov->factor[f].levels;
        s->levels += cov->factor[f].levels;
    }
    const size_t size = (size_t)s->combinations;
    s->no = plugin_memory(size, sizeof(double));
    s->yes = plugin_memory(size, sizeof(double));
    s->value = plugin_memory(size, sizeof(double));
    s->counted = plugin_memory((size_t)s->levels, sizeof(double));
    s->effect = plugin_memory((size_t)s->levels, sizeof(double));
    s->probability = plugin_memory((size_t)s->levels, sizeof(double));
    const int most = predictor->derived ? predictor->k : cov->factors + 1;
    s->row = plugin_memory((size_t)most, sizeof *s->row);
    if (predictor->derived) list_all(s);
    return s;
}

int glm_cells_count(const struct glm_cells *s) { return 2 * s->combinations; }

/* value[x] = constant + sum over factors of that of the level */
static void spread(const struct glm_cells *s, double constant, const double *of_level,
                   double *value) {
    int size = 1;
    value[0] = constant;
    for (int f = 0; f < s->cov->factors; ++f) {
        const int levels = s->cov->factor[f].levels;
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
    for (int f = s->cov->factors - 1; f >= 0; --f) {
        const int levels = s->cov->factor[f].levels;
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

static void predict(struct glm_cells *s, const double *theta, double *eta) {
    for (int x = 0; s->listed && x < s->combinations; ++x) {
        eta[x] = 0;
        for (int a = s->start[x]; a < s->start[x + 1]; ++a) eta[x] += theta[s->listed[a]];
    }
    if (s->listed) return;
    int at = 0;
    for (int f = 0; f < s->cov->factors; ++f) {
        const struct factor *factor = s->cov->factor + f;
        s->effect[at++] = 0;
        for (int l = 1; l < factor->levels; ++l) s->effect[at++] = theta[factor->first + l - 1];
    }
    spread(s, theta[0], s->effect, eta);
}

/* log P(l) = sum of log(1 - share) of the levels before, and log share */
static void log_levels(const struct glm_cells *s, const double *theta, double *log_p) {
    for (int f = 0; f < s->cov->factors; ++f) {
        const struct factor *factor = s->cov->factor + f;
        double rest = 0;
        for (int l = 0; l < factor->levels - 1; ++l) {
            const double t = theta[factor->stick + l];
            const double later = -(t > 0 ? t : 0) - log1p(exp(-fabs(t)));
            *log_p++ = rest + t + later;
            rest += later;
        }
        *log_p++ = rest;
    }
}

void glm_cells_log(struct glm_cells *s, const double *theta, double *log_p) {
    double *of_covariates = log_p + s->combinations; /* its second half, read before written */
    log_levels(s, theta, s->probability);
    spread(s, 0, s->probability, of_covariates);
    predict(s, theta, s->value);
    for (int x = 0; x < s->combinations; ++x) {
        double log_y[2], slope[2];
        const double base = of_covariates[x];
        s->family->class->logs(s->value[x], log_y, slope);
        log_p[2 * x] = base + log_y[0];
        log_p[2 * x + 1] = base + log_y[1];
    }
}

void glm_cells_observe(struct glm_cells *s, const double *count) {
    for (int x = 0; x < s->combinations; ++x) {
        s->no[x] = count[2 * x];
        s->yes[x] = count[2 * x + 1];
        s->value[x] = s->no[x] + s->yes[x];
    }
    s->n = fold(s, s->value, s->counted);
}

double glm_cells_log_likelihood(struct glm_cells *s, const double *theta, double *gradient) {
    double log_likelihood = 0;
    predict(s, theta, s->value);
    for (int x = 0; x < s->combinations; ++x) {
        double log_y[2], slope[2], sum = 0;
        if (s->no[x] + s->yes[x] > 0) {
            s->family->class->logs(s->value[x], log_y, slope);
            if (s->no[x] > 0) log_likelihood += s->no[x] * log_y[0], sum += s->no[x] * slope[0];
            if (s->yes[x] > 0) log_likelihood += s->yes[x] * log_y[1], sum += s->yes[x] * slope[1];
        }
        s->value[x] = sum;
    }
    for (int x = 0; s->listed && x < s->combinations; ++x)
        for (int a = s->start[x]; a < s->start[x + 1]; ++a) gradient[s->listed[a]] += s->value[x];
    if (!s->listed) gradient[0] += fold(s, s->value, s->effect);
    int at = 0;
    for (int f = 0; f < s->cov->factors; at += s->cov->factor[f++].levels) {
        const struct factor *factor = s->cov->factor + f;
        for (int l = 1; !s->listed && l < factor->levels; ++l)
            gradient[factor->first + l - 1] += s->effect[at + l];
        double rest = s->counted[at + factor->levels - 1];
        for (int l = factor->levels - 2; l >= 0; --l) {
            const double one = s->counted[at + l], t = theta[factor->stick + l];
            rest += one;
            log_likelihood += stick_log_density(one, rest, t);
            gradient[factor->stick + l] += one - rest * stick_share(t);
        }
    }
    return log_likelihood;
}

void glm_cells_information(struct glm_cells *s, const double *theta, int rows, double *matrix) {
    const struct covariates *cov = s->cov;
    const size_t size = (size_t)rows;
    predict(s, theta, s->value);
    for (int x = 0; x < s->combinations; ++x) {
        const double count = s->no[x] + s->yes[x];
        if (count == 0) continue;
        double log_y[2], slope[2];
        s->family->class->logs(s->value[x], log_y, slope);
        const double weight = -count * slope[0] * slope[1];
        const int listed = list_coefficients(s, x, s->row);
        for (int a = 0; a < listed; ++a)
            for (int b = 0; b < listed; ++b)
                if (s->row[b] <= s->row[a])
                    matrix[(size_t)s->row[a] * size + (size_t)s->row[b]] += weight;
    }
    int at = 0;
    for (int f = 0; f < cov->factors; at += cov->factor[f++].levels) {
        const struct factor *factor = cov->factor + f;
        const double *alpha = cov->alpha + factor->at;
        double rest = s->counted[at + factor->levels - 1] + alpha[factor->levels - 1];
        for (int l = factor->levels - 2; l >= 0; --l) {
            const double share = stick_share(theta[factor->stick + l]);
            rest += s->counted[at + l] + alpha[l];
            matrix[(size_t)(factor->stick + l) * (size + 1)] += rest * share * (1 - share);
        }
    }
}
