/* Exact samplers of discrete noise, for releases that are published: see
 * release/exact_noise.c. */
#ifndef NOISEAWARE_RELEASE_EXACT_NOISE_H
#define NOISEAWARE_RELEASE_EXACT_NOISE_H

#include "base/core.h"

/* Where random words come from: `fill` writes that many bytes and says whether
 * it could. After a failure every draw ends and is worth nothing. */
struct bit_source {
    int (*fill)(void *self, unsigned char *out, size_t bytes);
    void *self;
    int failed, left; /* words left in the buffer */
    uint64_t word[128];
};

void bits_start(struct bit_source *source,
                int (*fill)(void *self, unsigned char *out, size_t bytes), void *self);

/* forgets the words that are left */
void bits_end(struct bit_source *source);

/* Uniform on 0, ..., below - 1. */
uint64_t exact_uniform(struct bit_source *source, uint64_t below);

/* P(k) proportional to exp(-|k| s / t); 0 < t <= 2^52, 0 < s. */
int64_t exact_laplace(struct bit_source *source, uint64_t t, uint64_t s);

/* P(k) proportional to exp(-k^2 / (2 sigma^2)), sigma = a / b; a, b <= 2^25. */
int64_t exact_gaussian(struct bit_source *source, uint64_t a, uint64_t b);

/* How many levels, of k in a circle, lies the reported one from the true one: 0
 * with odds exp(whole + p / 2^52) : 1 against each other; p < 2^52. */
uint64_t exact_response(struct bit_source *source, uint64_t k, uint64_t whole, uint64_t p);

/* A point g of 0, ..., points - 1 with probability proportional to exp(-(p / q) d(g)), where d(g)
 * is how far `rank` lies outside the numbers of values below[g] and below[g + 1]: those at smaller
 * points, and at g or smaller ones. The rank is in units of 2^-RANK_BITS of a value; p < 2^51,
 * q <= 2^31, below < 2^31. */
enum { RANK_BITS = 20 };
uint64_t exact_quantile(struct bit_source *source, uint64_t points, const double *below,
                        uint64_t rank, uint64_t p, uint64_t q);

#endif
