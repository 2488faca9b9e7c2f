/* Covariates without a parametric distribution: each is in one of several cells of equal width
 * between its bounds, and uniform within the cell. A factor's cells are its levels, and its columns
 * are dummies of all but the first. With several classes, a record is in one of
 * them, a latent variable; given the class, covariates are independent (Dunson & Xing 2009), and
 * the classes make them dependent. Probabilities have Dirichlet priors. Classes have no order: what
 * is identified is the probability of a cell over all classes, its margin.
 *
 * theta, from `offset` on: sticks of the classes (none if there is one), then for each covariate
 * the sticks of its cells, a row a class. Counts: of the classes, then for each covariate of its
 * cells, a row a class. A record's innovations are a uniform for its class, drawn where it gives
 * the class, and for each covariate its quantile within the class, of a factor drawn where it gives
 * the level.
 *
 * Cost of a record: a search for each covariate; with several classes, an exponential a class.
 */
#ifndef NOISEAWARE_MODEL_CLASS_CELLS_H
#define NOISEAWARE_MODEL_CLASS_CELLS_H

#include "base/rng.h"
#include "contract/coordinates.h"
#include "contract/plugin.h"

struct cell_covariate {
    int cells, column;
    double lower, width;  /* width: of a cell; 0 of a factor */
    const double *weight; /* Dirichlet, of the cells in a class */
    int stick, count;     /* in theta and among the counts, of the first class */
    int bound;            /* in a distribution, of the first class */
};

/* Of one theta: P(an earlier class), P(an earlier cell | class), and with several classes the
 * logarithms of probabilities. Cells of a covariate and class are cells + 1 apart. */
struct cell_distribution {
    double *class, *bound, *log_class, *log_cell;
};

struct class_cells {
    int classes, covariates, columns;
    int offset, length; /* in theta */
    int counts, margins, bounds;
    struct cell_covariate *covariate;
    const double *class_weight;
    struct cell_distribution now, next;
    double *work; /* for each class, and for each cell of a covariate */
    int *cell;    /* of a record's covariates */
};

/* Fields: classes; class_weight; cells, cell_lower and cell_width, one of a covariate; weight, of
 * all cells. Columns are in the order of covariates. Returns PLUGIN_*. */
int class_cells_create(const struct fields *fields, int offset, struct class_cells *s);

/* Appends its blocks, and returns the end. */
struct theta_block *class_cells_describe(const struct class_cells *s, struct theta_block *block);

void class_cells_rprior(const struct class_cells *s, struct rng *rng, double *theta);
double class_cells_dprior(const struct class_cells *s, const double *theta);
void class_cells_prior_gradient(const struct class_cells *s, const double *theta, double *gradient);

/* Probabilities of the cells over all classes, of one covariate after the other. */
void class_cells_margins(const struct class_cells *s, const double *theta, double *margin);

/* to `now` or `next` */
void class_cells_read(const struct class_cells *s, const double *theta,
                      struct cell_distribution *to);

/* Do `now` and `next`? */
int class_cells_differ(const struct class_cells *s);

/* Records of `now`; those that keep the share rho of innovations; and those with the same
 * innovations under `next`. In draw and refresh the first column of each covariate in x_new comes
 * with uniforms and with standard normal numbers. */
void class_cells_draw(const struct class_cells *s, struct rng *rng, int m, double *const *x_new);
void class_cells_refresh(const struct class_cells *s, double rho, struct rng *rng, int m,
                         const double *const *x, double *const *x_new);
void class_cells_move(const struct class_cells *s, struct rng *rng, int m, const double *const *x,
                      double *const *x_new);

/* Classes are drawn under `now`. c += counts. */
void class_cells_classes(const struct class_cells *s, struct rng *rng, int m,
                         const double *const *x, int *class);
void class_cells_add(const struct class_cells *s, struct rng *rng, int m, const double *const *x,
                     double *c);

static inline int cells_are_levels(const struct cell_covariate *of) { return of->width == 0; }

/* The level of record i. */
int class_cells_level(const struct cell_covariate *of, int i, const double *const *x);

/* Copies covariates, with one of them so many cells higher at the same place of its cell. */
void class_cells_shift(const struct class_cells *s, int covariate, int by, int m,
                       const double *const *x, double *const *x_new);

/* The cells of a covariate; and its probabilities from the counts of these, class after class. */
void class_cells_find(const struct class_cells *s, int covariate, int m, const double *const *x,
                      int *cell);
void class_cells_update_covariate(const struct class_cells *s, int covariate, const double *count,
                                  struct rng *rng, double *theta);
void class_cells_update(const struct class_cells *s, const double *c, struct rng *rng,
                        double *theta);

#endif
