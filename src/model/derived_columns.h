#ifndef NOISEAWARE_MODEL_DERIVED_COLUMNS_H
#define NOISEAWARE_MODEL_DERIVED_COLUMNS_H

#include "base/block.h"
#include "contract/plugin.h"

/* The linear predictor of a regression over derived columns: products and powers of the columns
 * of the moments, and offsets. See model/derived_columns.c. */

/* Columns of the moments that are products of others: column `first` + j has `size[j]` factors,
 * column of[.] less shift[.]. The first `functions` of them have one factor, and are a function
 * of it: `steps[j]` steps, each with two constants. */
struct products {
    int first, count, functions;
    const double *size, *of, *shift, *steps, *step, *constant, *spline;
    double *column; /* `count` columns of MAX_BLOCK */
};

/* Fields product_size, product_of and product_shift, function_steps, function_step,
 * function_constant and function_spline; count = 0 where there are none. Returns PLUGIN_*. */
int products_read(const struct fields *fields, int columns, struct products *products);

/* Writes them, and where they are to design[first], ...; the columns before these are there. */
void products_fill(const struct products *products, int m, const double **design);

struct predictor {
    int k;       /* coefficients, the constant's first */
    int derived; /* not simply the moments' columns in their order */
    int *column; /* of each coefficient among the columns of the moments; 0: the constant */
    const double *centre; /* what each column of a coefficient is measured from; the first: what is
                           * added to the constant */
    /* see contract/coordinates.h; the centre of natural values there, and NULL or the maps of
     * these */
    const double *shift, *expand, *collect;

    int offsets;
    const double *offset_of, *offset_log; /* columns of the moments, or their logarithms */

    struct terms terms;
    double *log; /* `offsets` columns of MAX_BLOCK */
};

/* Fields term, coefficient_centre, coefficient_shift, expand, collect, offset_of and offset_log;
 * without `term` the coefficients belong to the moments' columns after the `response` first
 * ones, measured from `centre`. Returns PLUGIN_*. */
int predictor_read(const struct fields *fields, int columns, int response, const double *centre,
                   struct predictor *predictor);

/* The constant of columns that are not centred. */
double predictor_intercept(const struct predictor *predictor, const double *theta);

/* out = intercept + the sum of coefficients times columns, and the offsets; `design`: the moments'
 * columns, `out` none of them. theta[0] is not looked at. */
void predictor_eval(struct predictor *predictor, const double *theta, double intercept, int m,
                    const double *const *design, double *out);

/* c += the upper triangle of Z' diag(weight) Z, row by row, with Z the centred columns of the
 * coefficients, the constant's first; after moments_centre(). `work`: MAX_BLOCK. */
void predictor_add_weighted(const struct predictor *predictor, const struct moments *moments, int m,
                            const double *weight, double *work, double *c);

/* c += Z'value */
void predictor_add_sums(const struct predictor *predictor, const struct moments *moments, int m,
                        const double *value, double *c);

/* out = what has no coefficient in the predictor of centred columns */
void predictor_offsets(struct predictor *predictor, int m, const double *const *design,
                       double *out);

#endif
