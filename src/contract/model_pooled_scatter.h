/* Capability: groups of records whose covariates have one covariance Sigma, and means that vary
 * about a common mean,
 *
 *   mean_j ~ N(mu, Sigma / kappa),   mu ~ N(m_0, Sigma / kappa_0),   log kappa ~ normal.
 *
 * Given kappa all of these integrate out: a group has the weight w_j = kappa n_j / (kappa + n_j),
 * and with S_j its scatter about its average a_j and W = kappa_0 + sum w_j
 *
 *   prod_j (kappa / (kappa + n_j))^(p / 2) W^(-p / 2) |Psi + Q|^(-(df + n) / 2),
 *   Q = sum S_j + sum w_j (a_j - m_0)(a_j - m_0)' - b b' / W,  b = sum w_j (a_j - m_0).
 */
#ifndef NOISEAWARE_CONTRACT_MODEL_POOLED_SCATTER_H
#define NOISEAWARE_CONTRACT_MODEL_POOLED_SCATTER_H

struct model_pooled_scatter {
    int size;         /* of the sums */
    double log_kappa; /* where kappa may begin */

    /* Goal: adds to the sums what a group of n records with the complete-data statistic c has. */
    void (*add)(void *self, double log_kappa, const double *c, double n, double *sums);

    /* Goal: from now on the covariance and the mean are those of n records of all groups, which
     * have these sums; `others` of them are not of the group that marginal_size() is asked for.
     * Returns the log of the above with the prior of log kappa, up to what marginal_size() has, and
     * its slope in log kappa; -INFINITY where no records have these sums. marginal() leaves this
     * factor out, but its gradient holds the slopes of it; rtheta() draws given the records of all
     * groups: once what they have in common, then the mean of each group that it is called for. */
    double (*set)(void *self, double log_kappa, const double *sums, double n, double others,
                  double *slope);
};

#endif
