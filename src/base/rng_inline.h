/* The draws of base/rng_draws.c for loops in which a call would cost too much. */
#ifndef NOISEAWARE_BASE_RNG_INLINE_H
#define NOISEAWARE_BASE_RNG_INLINE_H

#include "base/rng.h"

/* of the layers of the ziggurats, see base/rng_tables.h */
extern const double rng_normal_edge[257], rng_normal_step[257];
extern const double rng_exponential_edge[257], rng_exponential_step[257];

/* Called when the position x falls outside the layer's inner rectangle; they
 * complete the draw. */
double rng_normal_rest(struct rng *rng, int layer, double x);
double rng_exponential_rest(struct rng *rng, int layer, double x);

static INLINE uint64_t rng_rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static INLINE uint64_t rng_bits_inline(struct rng *rng) {
    uint64_t *s = rng->s;
    const uint64_t result = rng_rotate(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotate(s[3], 45);
    return result;
}

static INLINE double rng_uniform_inline(struct rng *rng) {
    uint64_t v;
    do v = rng_bits_inline(rng) >> 11;
    while (v == 0);
    return (double)(int64_t)v * 0x1p-53;
}

static INLINE double rng_normal_inline(struct rng *rng) {
    const uint64_t bits = rng_bits_inline(rng);
    const int layer = (int)(bits & 255);
    /* sign and 53 bits: every compiler shifts a signed value arithmetically */
    const double x = (double)((int64_t)bits >> 10) * rng_normal_step[layer];
    if (LIKELY(fabs(x) < rng_normal_edge[layer + 1])) return x;
    /* a copy goes to the slow path, so that the stream stays in registers */
    struct rng copy = *rng;
    const double drawn = rng_normal_rest(&copy, layer, x);
    *rng = copy;
    return drawn;
}

static INLINE double rng_exponential_inline(struct rng *rng) {
    const uint64_t bits = rng_bits_inline(rng);
    const int layer = (int)(bits & 255);
    const double x = (double)(int64_t)(bits >> 11) * rng_exponential_step[layer];
    if (LIKELY(x < rng_exponential_edge[layer + 1])) return x;
    struct rng copy = *rng;
    const double drawn = rng_exponential_rest(&copy, layer, x);
    *rng = copy;
    return drawn;
}

static INLINE double rng_inline(struct rng *rng, enum rng_kind kind) {
    if (kind == RNG_NORMAL) return rng_normal_inline(rng);
    return kind == RNG_UNIFORM ? rng_uniform_inline(rng) : rng_exponential_inline(rng);
}

#endif
