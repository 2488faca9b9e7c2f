/* Capability: proposals that keep part of a record. They help where the noise is narrow and the
 * released totals do not determine what the records say about theta: Student-t errors, smooths,
 * responses of other families. Where they are about what is sufficient for theta, nothing was
 * gained. */
#ifndef NOISEAWARE_CONTRACT_MODEL_REFRESH_H
#define NOISEAWARE_CONTRACT_MODEL_REFRESH_H

struct rng;

struct model_refresh {
    /* Goal: a partial refresh, m records that keep the share rho in [0, 1] of the innovations
     * of x: for normal ones a preconditioned Crank-Nicolson step, rho times the old plus
     * sqrt(1 - rho^2) fresh; rho = 1 gives x back.
     * Needs a complete-data statistic: by how it moves warmup learns which rho works best. Must be
     * reversible, f(x) K(x, x_new) = f(x_new) K(x_new, x).
     * Common error: a kernel that leaves f(. | theta) invariant and is not reversible; the
     * sampler accepts by the noise density alone. */
    void (*refresh)(void *self, double rho, struct rng *rng, int m, const double *const *x,
                    double *const *x_new);
};

#endif
