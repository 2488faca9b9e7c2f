/* Capability: coordinates q in which gradients move theta although the prior's width of some of it
 * depends on the rest. theta moves as it is without. */
#ifndef NOISEAWARE_CONTRACT_MODEL_UNCENTRED_H
#define NOISEAWARE_CONTRACT_MODEL_UNCENTRED_H

struct model_uncentred {
    /* Goal: c is about the numbers of records that the data suggest for each cell: where these are
     * many, q should follow them rather than the prior. Any c is right; the density of q is exact.
     */
    void (*expect)(void *self, const double *c);

    /* Goal: theta at q; the log determinant of its derivatives. */
    double (*find)(void *self, const double *q, double *theta);

    /* Goal: the gradient of a log density in theta becomes that in q, determinant included. */
    void (*pull)(void *self, const double *q, double *gradient);

    /* Goal: where chains start, q at theta, or near it if that is far from what the data suggest.
     */
    void (*start)(void *self, const double *theta, double *q);
};

#endif
