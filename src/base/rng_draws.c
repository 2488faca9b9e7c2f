/* Random streams for the per-record hot path.
 *
 * Bits: xoshiro256++ 1.0 (Blackman & Vigna 2021, ACM TOMS 47(4)), period
 * 2^256 - 1, seeded by splitmix64. `rng_jump` advances 2^128 steps, so that
 * each chain owns a stream that no other chain can reach.
 *
 * Normal and exponential: 256-layer ziggurats (Marsaglia & Tsang 2000). One
 * 64-bit word gives the layer (bits 0..7), the sign and 53 bits of position
 * (bits 10..63): layer and position share no bit (the fault that Doornik 2005
 * found in the original), and a draw has the full resolution of a double.
 *
 * Invariants: uniforms lie strictly inside (0, 1); no function keeps state
 * outside `struct rng`. Cost: about 1.3 words per normal, fast path one
 * multiplication and one comparison.
 */
#include "base/rng_inline.h"

#include "base/rng_tables.h"

void rng_seed(struct rng *rng, uint64_t seed) {
    for (int i = 0; i < 4; ++i) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        rng->s[i] = z ^ (z >> 31);
    }
}

void rng_jump(struct rng *rng) {
    /* coefficients of x^(2^128) modulo the generator's characteristic polynomial */
    static const uint64_t jump[4] = {UINT64_C(0x180ec6d33cfd0aba), UINT64_C(0xd5a61266f0c9392c),
                                     UINT64_C(0xa9582618e03fc9aa), UINT64_C(0x39abdc4529b1661c)};
    uint64_t s[4] = {0, 0, 0, 0};
    for (int word = 0; word < 4; ++word) {
        for (int bit = 0; bit < 64; ++bit) {
            if (jump[word] & (UINT64_C(1) << bit))
                for (int i = 0; i < 4; ++i) s[i] ^= rng->s[i];
            (void)rng_bits_inline(rng);
        }
    }
    memcpy(rng->s, s, sizeof s);
}

/* Beyond the base strip's edge r: Marsaglia (1964). */
NOINLINE static double normal_tail(struct rng *rng) {
    const double r = rng_normal_edge[1];
    for (;;) {
        const double x = -log(rng_uniform_inline(rng)) / r;
        const double y = -log(rng_uniform_inline(rng));
        if (y + y > x * x) return r + x;
    }
}

/* 0 where the position is rejected. */
static double normal_rest(struct rng *rng, int layer, double x) {
    if (layer == 0) return copysign(normal_tail(rng), x);
    const double low = normal_height[layer], high = normal_height[layer + 1];
    const int under = low + rng_uniform_inline(rng) * (high - low) < exp(-0.5 * x * x);
    return under ? x : 0;
}

NOINLINE double rng_normal_rest(struct rng *rng, int layer, double x) {
    const double drawn = normal_rest(rng, layer, x);
    return drawn != 0 ? drawn : rng_normal(rng);
}

NOINLINE double rng_exponential_rest(struct rng *rng, int layer, double x) {
    /* no memory: beyond the base strip's edge the distribution starts afresh */
    if (layer == 0) return rng_exponential_edge[1] + rng_exponential(rng);
    const double low = exponential_height[layer], high = exponential_height[layer + 1];
    const int under = low + rng_uniform_inline(rng) * (high - low) < exp(-x);
    return under ? x : rng_exponential(rng);
}

uint64_t rng_bits(struct rng *rng) { return rng_bits_inline(rng); }
double rng_uniform(struct rng *rng) { return rng_uniform_inline(rng); }
double rng_normal(struct rng *rng) { return rng_normal_inline(rng); }
double rng_exponential(struct rng *rng) { return rng_exponential_inline(rng); }

/* The fills keep the state in registers: a local copy that is written back. */

void rng_fill_quarters(struct rng *rng, int words, uint16_t *out) {
    struct rng local = *rng;
    for (int i = 0; i < words; ++i, out += 4) {
        const uint64_t bits = rng_bits_inline(&local);
        out[0] = (uint16_t)bits;
        out[1] = (uint16_t)(bits >> 16);
        out[2] = (uint16_t)(bits >> 32);
        out[3] = (uint16_t)(bits >> 48);
    }
    *rng = local;
}

void rng_fill_uniform(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = rng_uniform_inline(&local);
    *rng = local;
}

void rng_fill_normal(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = rng_normal_inline(&local);
    *rng = local;
}

void rng_fill_exponential(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = rng_exponential_inline(&local);
    *rng = local;
}

void rng_fill(struct rng *rng, enum rng_kind kind, int m, double *out) {
    switch (kind) {
    case RNG_UNIFORM:
        rng_fill_uniform(rng, m, out);
        break;
    case RNG_NORMAL:
        rng_fill_normal(rng, m, out);
        break;
    case RNG_EXPONENTIAL:
        rng_fill_exponential(rng, m, out);
        break;
    }
}
