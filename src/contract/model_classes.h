/* Part of the capability of moves: covariates are in cells, independently of each other given a
 * latent class of the record. Many records can then change their cell together. */
#ifndef NOISEAWARE_CONTRACT_MODEL_CLASSES_H
#define NOISEAWARE_CONTRACT_MODEL_CLASSES_H

struct rng;

/* Cells of equal width, in their order, or levels without one. */
struct model_cells_of {
    int cells, levels;    /* levels: are they? */
    const double *weight; /* Dirichlet, of the cells in each class */
};

struct model_classes {
    int classes, covariates;
    const struct model_cells_of *covariate;

    /* Goal: each record's class, 0, 1, ..., drawn under the current theta. */
    void (*draw_classes)(void *self, struct rng *rng, int m, const double *const *x, int *class);

    /* Goal: each record's cell of a covariate, 0, 1, ... */
    void (*read_cells)(void *self, int covariate, int m, const double *const *x, int *cell);

    /* Goal: the records, all in one cell, with the covariate so many cells higher, at the same
     * place of its cell, and the other columns as move() has them. Must be reversible. Writes all
     * columns. */
    void (*shift)(void *self, int covariate, int by, int m, const double *const *x,
                  double *const *x_new);

    /* Goal: the probabilities of a covariate's cells, in place, given the counts of its cells in
     * the first class, then in the second, and so on. */
    void (*draw_cells)(void *self, struct rng *rng, int covariate, const double *count,
                       double *theta);
};

#endif
