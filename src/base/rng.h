#ifndef NOISEAWARE_BASE_RNG_H
#define NOISEAWARE_BASE_RNG_H

#include "base/core.h"

/* One private random stream: the state of xoshiro256++, nothing else. Copying
 * the struct copies the stream; nothing is cached between draws. */
struct rng {
    uint64_t s[4];
};

enum rng_kind { RNG_UNIFORM, RNG_NORMAL, RNG_EXPONENTIAL };

void rng_seed(struct rng *rng, uint64_t seed);
void rng_jump(struct rng *rng);

uint64_t rng_bits(struct rng *rng);
double rng_uniform(struct rng *rng);
double rng_normal(struct rng *rng);
double rng_exponential(struct rng *rng);

/* four numbers of 16 bits from each word */
void rng_fill_quarters(struct rng *rng, int words, uint16_t *out);
void rng_fill(struct rng *rng, enum rng_kind kind, int m, double *out);
void rng_fill_uniform(struct rng *rng, int m, double *out);
void rng_fill_normal(struct rng *rng, int m, double *out);
void rng_fill_exponential(struct rng *rng, int m, double *out);

#endif
