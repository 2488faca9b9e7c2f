#ifndef NOISEAWARE_MODEL_LM_ERRORS_H
#define NOISEAWARE_MODEL_LM_ERRORS_H

#include "contract/coordinates.h"
#include "model/derived_columns.h"
#include "model/gamma_shape.h"

/* Student-t errors of a linear regression; see model/lm_errors.c. */
struct errors {
    const double *known; /* df, or NULL */
    double log_known;
    double shape, rate, above; /* prior of df, and its mass where df may be */
    int at, at_complete;       /* in theta, and in the complete-data statistic */
    double df, df_next;
    struct gamma_shape_move move;
    double *weight, *residual, *weighted; /* MAX_BLOCK */
};

/* numbers in the complete-data statistic, of k coefficients */
static inline int errors_statistics(int k) { return k * (k + 1) / 2 + k + 1; }

/* Field errors_df, or errors_df_gamma (shape, rate). Returns PLUGIN_*. */
int errors_read(const struct fields *fields, struct errors *errors);
struct theta_block errors_block(const struct errors *errors);

/* Where df is not known: a draw of its logarithm, and the log prior density of that. */
double errors_draw_log_df(const struct errors *errors, struct rng *rng);
double errors_dprior(const struct errors *errors, double log_df);

/* Normal innovations become those of errors: of any records, and of those whose weights are what
 * the residuals y - eta tell. */
void errors_fresh(const struct errors *errors, struct rng *rng, int m, double *innovation);
void errors_refresh(struct errors *errors, struct rng *rng, double sigma, int m, const double *eta,
                    const double *y, double *innovation);

/* The next df of a move; and y_new = eta_new + the residual as it moves, sigma' = ratio sigma. */
void errors_set_next(struct errors *errors, double log_df);
void errors_move(struct errors *errors, struct rng *rng, double sigma, double ratio, int m,
                 const double *eta, const double *eta_new, const double *y, double *y_new);

/* Draws the weights and adds the complete-data statistic; after moments_centre(). */
void errors_add(struct errors *errors, struct rng *rng, const struct predictor *predictor,
                const struct moments *moments, double sigma, int m, const double *eta,
                const double *y, double *c);

/* Entries of Z'WZ, Z'Wy and y'Wy in it, of k coefficients. */
double errors_gram(const struct errors *errors, const double *c, int k, int i, int j);
double errors_response(const struct errors *errors, const double *c, int k, int i);
double errors_square(const struct errors *errors, const double *c, int k);

/* The sum of the log densities of y given eta, up to a constant. */
double errors_log_density(struct errors *errors, double sigma, int m, const double *eta,
                          const double *y);

#endif
