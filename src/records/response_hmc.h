#ifndef NOISEAWARE_RECORDS_RESPONSE_HMC_H
#define NOISEAWARE_RECORDS_RESPONSE_HMC_H

#include "mcmc/surrogate_trajectory.h"
#include "totals/density.h"

/* Moves of a response's coefficients for method "augment", the innovations of the responses
 * held fixed; see records/response_hmc.c. The response is the first column of the complete-data
 * statistic. */
struct response {
    const struct model *model;
    double n;
    int p;                         /* columns of the linear predictor */
    struct totals_density density; /* of which only the noise is used */
    const double *released;        /* density.noise has these less the reference's error */

    struct trajectory path;

    /* workspace */
    double *mean, *factor, *along, *pull, *slope, *offset, *gradient, *work;
};

/* Returns 0 where there are no such moves. `like`: the surrogate's density, with the release. */
int response_create(struct response *r, const struct model *model, double n,
                    const struct totals_density *like);
size_t response_stored(const struct response *r);
void response_attach(struct response *r, double *store);

/* Reads where the records and theta are. Returns 0 where no move is possible. */
int response_begin(struct response *r, const double *c, const double *theta, struct rng *rng);

/* NUTS on the surrogate's density from where response_begin() was, the noise's exponent rising to
 * `temper`: writes coefficients that suit the release into theta. Restarts the moves. */
void response_search(struct response *r, double temper, struct rng *rng, double *theta);

/* The next four take a struct response.
 *
 * Writes the reference's coefficients into theta. */
void response_refer(void *self, double *theta);

/* `total`: the released components of the records with the responses that the reference makes. */
void response_correct(void *self, const double *total);

/* A trajectory. Returns 0 if it ends where it began, else writes the coefficients of its end
 * into theta; *gain is by how much the noise energy of its density fell. */
int response_propose(void *self, struct rng *rng, double *theta, double *gain);

void response_learn(void *self, const struct trajectory_seen *seen, struct rng *rng);

/* Log density and gradient at coordinates q; at the state's where q[0] is NaN. For tests. */
double response_density(struct response *r, double *q, double *gradient);

#endif
