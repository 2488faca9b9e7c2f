/* A channel: P(answer r | true level l), a row of the matrix for each level, where every record's
 * level is answered at random (randomised response with any public matrix).
 *
 * The matrix is base_r plus what exceeds it, base_r being the least of column r. Where all lies
 * have the same probability only the diagonal exceeds it, so products cost levels + answers, not
 * their product; and nothing is negative, so that small probabilities lose no digits.
 */
#ifndef NOISEAWARE_CONTRACT_CHANNEL_H
#define NOISEAWARE_CONTRACT_CHANNEL_H

#include "base/rng.h"

struct channel {
    int levels, answers;
    const double *p; /* row after row */
    double *base;    /* an answer */
    /* what exceeds it, answer after answer: from first[r] to before first[r + 1] */
    int *first, *level;
    double *more;
};

/* `p` is kept. */
void channel_create(struct channel *c, int levels, int answers, const double *p);

/* Fields: `levels` and `answers`, one a channel; `channel`, their matrices one after the other.
 * Returns how many there are; -1 if the fields do not fit. */
struct fields;
int channels_read(const struct fields *fields, struct channel **channels);

/* to_r = sum over l of P(r | l) from_l, and to_l = sum over r of P(r | l) from_r; of vectors whose
 * entries are `stride` apart. */
void channel_answer(const struct channel *c, int stride, const double *from, double *to);
void channel_level(const struct channel *c, int stride, const double *from, double *to);

/* true_[l] += how many of the records with each answer have level l, given the weights of the
 * levels before they are answered; entries are `stride` apart. Cost: a binomial number a level and
 * one for each entry above base_r. */
void channel_divide(const struct channel *c, struct rng *rng, int stride, const double *answered,
                    const double *weight, double *true_);

#endif
