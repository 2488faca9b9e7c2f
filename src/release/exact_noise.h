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

/* How many levels, of k in a circle, lies the one that is told from the true one: 0
 * with odds exp(whole + p / 2^52) : 1 against each other; p < 2^52. */
uint64_t exact_response(struct bit_source *source, uint64_t k, uint64_t whole, uint64_t p);

/* A cell g of 0, ..., candidates - 1 with probability proportional to
 * exp(-(p / q) d(g)), where d(g) is how far `target` lies outside the numbers of
 * values below g and of values up to g. `cell` has the n values, sorted; p < 2^63,
 * q <= 2^31, n < 2^31. */
uint64_t exact_quantile(struct bit_source *source, uint64_t candidates, size_t n,
                        const double *cell, uint64_t target, uint64_t p, uint64_t q);

#endif
