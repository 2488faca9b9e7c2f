/* Capability: records are codes, and their combinations, the cells, have probabilities that
 * theta gives. "collapse" then moves the table of counts, which is the complete-data statistic,
 * and theta given the table. */
#ifndef NOISEAWARE_CONTRACT_MODEL_CELLS_H
#define NOISEAWARE_CONTRACT_MODEL_CELLS_H

struct rng;

struct model_cells {
    /* Goal: the log probability of each cell, -INFINITY for none. */
    void (*log_cells)(void *self, const double *theta, double *log_p);

    /* The next three together; default: Dirichlet probabilities integrate out, and the update
     * draws theta.
     *
     * Goal: c and n are what log_posterior() is given from now on. What it needs of them alone is
     * computed here, once. */
    void (*observe)(void *self, const double *c, double n);

    /* Goal: log p(theta) + log p(c | theta, n) up to a constant, of all coordinates, and its
     * gradient; -INFINITY where that is not finite. */
    double (*log_posterior)(void *self, const double *theta, double *gradient);

    /* Goal: minus the second derivatives of that, or what is expected of them: rows of the lower
     * triangle. */
    void (*information)(void *self, const double *theta, double *matrix);

    /* Goal: theta from one more kernel that leaves the distribution of log_posterior() as it is,
     * for what neither gradients nor random walks follow; after observe(), all coordinates unknown.
     * "augment" calls it before random walks. Default: there is none. */
    void (*shift)(void *self, struct rng *rng, double *theta);

    /* Goal: held[j] = whether coordinate j is too far out for gradients and random walks, which
     * then leave it to shift(), and refuse to go where this hook's answer is another. Returns
     * whether any is. Default: none is. */
    int (*hold)(void *self, const double *theta, unsigned char *held);
};

#endif
