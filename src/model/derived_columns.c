/* Derived columns of a linear predictor, in one place for all regressions.
 *
 * The moments' columns (model/covariates.h) are the response, the covariates with dummies for
 * factors, and then products of these: column j of the products is
 *
 *   prod_e (w_(of e) - shift_e),
 *
 * a power where a column comes more than once. R measures numbers from the middles of their bounds
 * wherever the model also has all lower terms, so that products are nearly uncorrelated with
 * these. Before them are functions of a covariate, whose steps R parses from a formula
 * (R/utils_steps.R). R raises an error if the distribution of the covariate has values for which a
 * step is undefined. The covariates' own distribution does not involve these functions; they enter
 * the complete-data statistic (the moments of all columns), and the predictor
 *
 *   eta = theta_0 + centre_0 + sum_j theta_j (w_(column j) - centre_j) + sum offsets,
 *
 * whose offsets are columns, or logarithms of columns, without a coefficient. Numbers that are not
 * positive are given the logarithm of the smallest positive double: a rate of 0.
 *
 * Cost per record: each step of each function, a multiplication for each factor of each product,
 * one for each coefficient, a logarithm for each offset. No allocation except in the functions
 * that read.
 */
#include "model/derived_columns.h"

#include "contract/coordinates.h"

#include <float.h>

/* R/model_functions.R has the same numbers */
enum step {
    STEP_ADD = 1,
    STEP_MULTIPLY,
    STEP_DIVIDE,
    STEP_POWER,
    STEP_LEAST,
    STEP_LARGEST,
    STEP_SIN,
    STEP_COS,
    STEP_ABS,
    STEP_ASINH,
    STEP_PLOGIS,
    STEP_LOG,
    STEP_LOG1P,
    STEP_SQRT,
    STEP_EXP,
    STEP_EXPM1,
    STEP_QLOGIS,
    STEP_RECIPROCAL,  /* constant / x */
    STEP_EXPONENT,    /* constant^x */
    STEP_WITHIN,      /* is a < x <= b? */
    STEP_WITHIN_LEFT, /* is a <= x < b? */
    STEP_SPLINE       /* b pieces, from place a of the field function_spline on */
};

/* Numbers of a spline: its breaks, one less than pieces, then of each piece where it is measured
 * from and four coefficients. */
static double spline_size(double pieces) { return 6 * pieces - 1; }

static int functions_read(const struct fields *fields, struct products *products) {
    if (products->functions == 0) return PLUGIN_OK;
    const int steps = fields_length(fields, "function_step");
    products->steps = fields_vector(fields, "function_steps", products->functions);
    products->step = fields_vector(fields, "function_step", steps);
    products->constant = fields_vector(fields, "function_constant", 2 * steps);
    if (!products->steps || !products->step || !products->constant) return PLUGIN_BAD_FIELDS;
    const int numbers = fields_length(fields, "function_spline");
    products->spline = fields_vector(fields, "function_spline", numbers);
    double total = 0;
    for (int j = 0; j < products->functions; ++j) {
        if (!(products->steps[j] >= 1)) return PLUGIN_BAD_FIELDS;
        total += products->steps[j];
    }
    for (int s = 0; s < steps; ++s) {
        const double step = products->step[s], *constant = products->constant + 2 * s;
        if (!(step >= STEP_ADD && step <= STEP_SPLINE)) return PLUGIN_BAD_FIELDS;
        if (step == STEP_SPLINE && !(constant[0] >= 0 && constant[1] >= 1 &&
                                     constant[0] + spline_size(constant[1]) <= numbers))
            return PLUGIN_BAD_FIELDS;
    }
    return total == steps ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

int products_read(const struct fields *fields, int columns, struct products *products) {
    products->count = fields_length(fields, "product_size");
    products->first = columns - products->count;
    if (products->count == 0) return PLUGIN_OK;
    const int factors = fields_length(fields, "product_of");
    products->size = fields_vector(fields, "product_size", products->count);
    products->of = fields_vector(fields, "product_of", factors);
    products->shift = fields_vector(fields, "product_shift", factors);
    if (!products->of || !products->shift) return PLUGIN_BAD_FIELDS;
    products->functions = fields_length(fields, "function_steps");
    if (products->functions > products->count) return PLUGIN_BAD_FIELDS;
    int total = 0;
    for (int j = 0; j < products->count; ++j) {
        const double size = products->size[j];
        if (!(j < products->functions ? size == 1 : size >= 2)) return PLUGIN_BAD_FIELDS;
        if (total + size > factors) return PLUGIN_BAD_FIELDS;
        for (int e = 0; e < (int)size; ++e) {
            const double of = products->of[total + e];
            if (!(of >= 0 && of < products->first + (j < products->functions ? 0 : j)))
                return PLUGIN_BAD_FIELDS;
        }
        total += (int)size;
    }
    if (total != factors) return PLUGIN_BAD_FIELDS;
    if (functions_read(fields, products) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    products->column = doubles((size_t)products->count * MAX_BLOCK);
    return PLUGIN_OK;
}

VECTOR_CLONES static void multiply(int m, const double *restrict a, double shift_a,
                                   const double *restrict b, double shift_b, double *restrict out) {
    FOR_RECORDS(i, m) out[i] = (a[i] - shift_a) * (b[i] - shift_b);
}

VECTOR_CLONES static void multiply_by(int m, const double *restrict a, double shift,
                                      double *restrict out) {
    FOR_RECORDS(i, m) out[i] *= a[i] - shift;
}

static void apply_spline(const double *table, int pieces, int m, double *x) {
    for (int i = 0; i < m; ++i) {
        int piece = 0;
        while (piece < pieces - 1 && x[i] >= table[piece]) ++piece;
        const double *of = table + (pieces - 1) + 5 * piece, t = x[i] - of[0];
        x[i] = of[1] + t * (of[2] + t * (of[3] + t * of[4]));
    }
}

static void apply_step(enum step step, const double *constant, const double *spline, int m,
                       double *x) {
    const double a = constant[0], b = constant[1];
    switch (step) {
    case STEP_ADD:
        FOR_RECORDS(i, m) x[i] += a;
        break;
    case STEP_MULTIPLY:
        FOR_RECORDS(i, m) x[i] *= a;
        break;
    case STEP_DIVIDE:
        FOR_RECORDS(i, m) x[i] /= a;
        break;
    case STEP_POWER:
        FOR_RECORDS(i, m) x[i] = pow(x[i], a);
        break;
    case STEP_LEAST:
        FOR_RECORDS(i, m) x[i] = x[i] < a ? x[i] : a;
        break;
    case STEP_LARGEST:
        FOR_RECORDS(i, m) x[i] = x[i] > a ? x[i] : a;
        break;
    case STEP_SIN:
        FOR_RECORDS(i, m) x[i] = sin(x[i]);
        break;
    case STEP_COS:
        FOR_RECORDS(i, m) x[i] = cos(x[i]);
        break;
    case STEP_ABS:
        FOR_RECORDS(i, m) x[i] = fabs(x[i]);
        break;
    case STEP_ASINH:
        FOR_RECORDS(i, m) x[i] = asinh(x[i]);
        break;
    case STEP_PLOGIS:
        FOR_RECORDS(i, m) x[i] = 1 / (1 + exp(-x[i]));
        break;
    case STEP_LOG:
        FOR_RECORDS(i, m) x[i] = log(x[i]);
        break;
    case STEP_LOG1P:
        FOR_RECORDS(i, m) x[i] = log1p(x[i]);
        break;
    case STEP_SQRT:
        FOR_RECORDS(i, m) x[i] = sqrt(x[i]);
        break;
    case STEP_EXP:
        FOR_RECORDS(i, m) x[i] = exp(x[i]);
        break;
    case STEP_EXPM1:
        FOR_RECORDS(i, m) x[i] = expm1(x[i]);
        break;
    case STEP_QLOGIS:
        FOR_RECORDS(i, m) x[i] = log(x[i]) - log1p(-x[i]);
        break;
    case STEP_RECIPROCAL:
        FOR_RECORDS(i, m) x[i] = a / x[i];
        break;
    case STEP_EXPONENT:
        FOR_RECORDS(i, m) x[i] = pow(a, x[i]);
        break;
    case STEP_WITHIN:
        FOR_RECORDS(i, m) x[i] = x[i] > a && x[i] <= b;
        break;
    case STEP_WITHIN_LEFT:
        FOR_RECORDS(i, m) x[i] = x[i] >= a && x[i] < b;
        break;
    case STEP_SPLINE:
        apply_spline(spline + (size_t)a, (int)b, m, x);
        break;
    }
}

static void fill_functions(const struct products *products, int m, const double **design) {
    const double *step = products->step, *constant = products->constant;
    for (int j = 0; j < products->functions; ++j) {
        double *out = products->column + (size_t)j * MAX_BLOCK;
        const double *of = design[(int)products->of[j]];
        FOR_RECORDS(i, m) out[i] = of[i];
        for (int s = 0; s < (int)products->steps[j]; ++s, constant += 2)
            apply_step((enum step) * step++, constant, products->spline, m, out);
        design[products->first + j] = out;
    }
}

void products_fill(const struct products *products, int m, const double **design) {
    fill_functions(products, m, design);
    const double *of = products->of + products->functions;
    const double *shift = products->shift + products->functions;
    for (int j = products->functions; j < products->count; ++j) {
        double *out = products->column + (size_t)j * MAX_BLOCK;
        const int size = (int)products->size[j];
        multiply(m, design[(int)of[0]], shift[0], design[(int)of[1]], shift[1], out);
        for (int e = 2; e < size; ++e) multiply_by(m, design[(int)of[e]], shift[e], out);
        design[products->first + j] = out;
        of += size;
        shift += size;
    }
}

int predictor_read(const struct fields *fields, int columns, int response, const double *centre,
                   struct predictor *predictor) {
    const int given = fields_length(fields, "term"), k = given > 0 ? given : columns - response + 1;
    const double *term = fields_vector(fields, "term", given);
    predictor->k = k;
    predictor->derived = given > 0;
    predictor->column = plugin_memory((size_t)k, sizeof *predictor->column);
    for (int j = 0; j < k; ++j) {
        predictor->column[j] = given > 0 ? (int)term[j] : j > 0 ? response - 1 + j : 0;
        if (predictor->column[j] < 0 || predictor->column[j] >= columns) return PLUGIN_BAD_FIELDS;
    }
    /* the response's last one belongs to the constant */
    predictor->centre = predictor->shift = centre + response - 1;
    if (given > 0) {
        predictor->centre = fields_vector(fields, "coefficient_centre", k);
        predictor->shift = fields_vector(fields, "coefficient_shift", 1);
        predictor->expand = fields_vector(fields, "expand", k * k);
        predictor->collect = fields_vector(fields, "collect", k * k);
        if (!predictor->centre || !predictor->shift || !predictor->expand || !predictor->collect)
            return PLUGIN_BAD_FIELDS;
    }
    predictor->offsets = fields_length(fields, "offset_of");
    predictor->offset_of = fields_vector(fields, "offset_of", predictor->offsets);
    predictor->offset_log = fields_vector(fields, "offset_log", predictor->offsets);
    if (predictor->offsets > 0 && !predictor->offset_log) return PLUGIN_BAD_FIELDS;
    predictor->log = doubles((size_t)predictor->offsets * MAX_BLOCK);
    predictor->terms = terms_new(k + predictor->offsets);
    return PLUGIN_OK;
}

double predictor_intercept(const struct predictor *predictor, const double *theta) {
    return centred_intercept(predictor->k, predictor->centre, theta);
}

static void logarithms(int m, const double *x, double *out) {
    FOR_RECORDS(i, m) out[i] = log(x[i] > DBL_MIN ? x[i] : DBL_MIN);
}

static void add_offsets(struct predictor *predictor, int m, const double *const *design) {
    for (int j = 0; j < predictor->offsets; ++j) {
        const double *column = design[(int)predictor->offset_of[j]];
        if (predictor->offset_log[j] != 0) {
            double *log = predictor->log + (size_t)j * MAX_BLOCK;
            logarithms(m, column, log);
            column = log;
        }
        terms_add(&predictor->terms, 1, column);
    }
}

void predictor_offsets(struct predictor *predictor, int m, const double *const *design,
                       double *out) {
    terms_clear(&predictor->terms);
    add_offsets(predictor, m, design);
    terms_sum(&predictor->terms, predictor->centre[0], m, out);
}

void predictor_eval(struct predictor *predictor, const double *theta, double intercept, int m,
                    const double *const *design, double *out) {
    terms_clear(&predictor->terms);
    for (int j = 1; j < predictor->k; ++j)
        terms_add(&predictor->terms, theta[j], design[predictor->column[j]]);
    add_offsets(predictor, m, design);
    terms_sum(&predictor->terms, intercept, m, out);
}

/* of a coefficient, centred */
static INLINE const double *regressor(const struct predictor *predictor,
                                      const struct moments *moments, int j) {
    return moments->centred + (size_t)predictor->column[j] * MAX_BLOCK;
}

VECTOR_CLONES static void weight_column(int m, const double *restrict weight,
                                        const double *restrict z, double *restrict out) {
    FOR_RECORDS(i, m) out[i] = weight[i] * z[i];
}

VECTOR_CLONES void predictor_add_weighted(const struct predictor *predictor,
                                          const struct moments *moments, int m,
                                          const double *weight, double *work, double *c) {
    const int k = predictor->k;
    *c++ += block_sum(m, weight);
    for (int j = 1; j < k; ++j) *c++ += block_dot(m, weight, regressor(predictor, moments, j));
    for (int i = 1; i < k; ++i) {
        weight_column(m, weight, regressor(predictor, moments, i), work);
        for (int j = i; j < k; ++j) *c++ += block_dot(m, work, regressor(predictor, moments, j));
    }
}

void predictor_add_sums(const struct predictor *predictor, const struct moments *moments, int m,
                        const double *value, double *c) {
    c[0] += block_sum(m, value);
    for (int j = 1; j < predictor->k; ++j)
        c[j] += block_dot(m, value, regressor(predictor, moments, j));
}
