/* Capability: records follow when theta changes, with their innovations held fixed. Such moves are
 * what makes chains mix where the noise is wide. They need the capability of a prior density. */
#ifndef NOISEAWARE_CONTRACT_MODEL_MOVE_H
#define NOISEAWARE_CONTRACT_MODEL_MOVE_H

struct rng;
struct model_classes;

struct model_move {
    /* Goal: move() goes from the current theta to theta_new; changed[v] says whether
     * column v differs, each is written. */
    void (*set_move)(void *self, const double *theta_new, int *changed);

    /* Goal: records of the same innovations under theta_new; writes changed columns
     * only. Must be reversible: the way back undoes it, with the Jacobian that f has.
     * A discrete record has many innovations: one of them is drawn, so that
     * f(x; theta) K(x, x_new) = f(x_new; theta_new) K'(x_new, x), K' the move from
     * theta_new to theta.
     * Common errors: random numbers that depend on more than the block's records, since a
     * move that is accepted is made twice, and the same stream must give the same
     * records (costs.move > 0 keeps them instead); an innovation on the boundary of two
     * values of a record that rounding puts on the wrong side. */
    void (*move)(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new);

    /* Optional: contract/model_classes.h. NULL: records change their cells one by one. */
    const struct model_classes *classes;
};

#endif
