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
#include "rng.h"

#include "rng_tables.h"

static inline uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next_bits(struct rng *rng) {
    uint64_t *s = rng->s;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

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
            (void)next_bits(rng);
        }
    }
    memcpy(rng->s, s, sizeof s);
}

static inline double uniform_from(struct rng *rng) {
    uint64_t v;
    do v = next_bits(rng) >> 11;
    while (v == 0);
    return (double)(int64_t)v * 0x1p-53;
}

/* Beyond the base strip's edge r: Marsaglia (1964). */
NOINLINE static double normal_tail(struct rng *rng) {
    const double r = normal_edge[1];
    for (;;) {
        const double x = -log(uniform_from(rng)) / r;
        const double y = -log(uniform_from(rng));
        if (y + y > x * x) return r + x;
    }
}

/* Called when the position falls outside the layer's inner rectangle; 0 asks
 * for a new word. Out of line, so that the fast path stays short. */
NOINLINE static double normal_slow(struct rng *rng, int layer, double x) {
    if (layer == 0) return copysign(normal_tail(rng), x);
    const double low = normal_height[layer], high = normal_height[layer + 1];
    const int under = low + uniform_from(rng) * (high - low) < exp(-0.5 * x * x);
    return under ? x : 0;
}

static inline double normal_from(struct rng *rng) {
    for (;;) {
        const uint64_t bits = next_bits(rng);
        const int layer = (int)(bits & 255);
        /* sign and 53 bits: every compiler shifts a signed value arithmetically */
        const double x = (double)((int64_t)bits >> 10) * normal_step[layer];
        if (fabs(x) < normal_edge[layer + 1]) return x;
        /* a copy goes to the slow path, so that the stream stays in registers */
        struct rng copy = *rng;
        const double slow = normal_slow(&copy, layer, x);
        *rng = copy;
        if (slow != 0) return slow;
    }
}

/* As normal_slow, but it sees the draw through. */
NOINLINE static double exponential_slow(struct rng *rng, int layer, double x) {
    /* no memory: beyond the base strip's edge the law starts afresh */
    if (layer == 0) return exponential_edge[1] + rng_exponential(rng);
    const double low = exponential_height[layer], high = exponential_height[layer + 1];
    const int under = low + uniform_from(rng) * (high - low) < exp(-x);
    return under ? x : rng_exponential(rng);
}

static inline double exponential_from(struct rng *rng) {
    const uint64_t bits = next_bits(rng);
    const int layer = (int)(bits & 255);
    const double x = (double)(int64_t)(bits >> 11) * exponential_step[layer];
    if (x < exponential_edge[layer + 1]) return x;
    struct rng copy = *rng;
    const double slow = exponential_slow(&copy, layer, x);
    *rng = copy;
    return slow;
}

uint64_t rng_bits(struct rng *rng) { return next_bits(rng); }
double rng_uniform(struct rng *rng) { return uniform_from(rng); }
double rng_normal(struct rng *rng) { return normal_from(rng); }
double rng_exponential(struct rng *rng) { return exponential_from(rng); }

/* The fills keep the state in registers: a local copy that is written back. */

void rng_fill_uniform(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = uniform_from(&local);
    *rng = local;
}

void rng_fill_normal(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = normal_from(&local);
    *rng = local;
}

void rng_fill_exponential(struct rng *rng, int m, double *out) {
    struct rng local = *rng;
    for (int i = 0; i < m; ++i) out[i] = exponential_from(&local);
    *rng = local;
}
