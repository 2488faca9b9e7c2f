/* Random numbers in blocks that stay in the cache, as the sampler draws them.
 * Compiled with src/rng.c by bench/record.R; kind: 0 uniform, 1 normal,
 * 2 exponential. */
#include "rng.h"

enum { BLOCK = 512 };

void draw_blocks(const int *kind, const int *blocks, double *last) {
    double block[BLOCK];
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < *blocks; ++i) {
        if (*kind == 0) rng_fill_uniform(&rng, BLOCK, block);
        if (*kind == 1) rng_fill_normal(&rng, BLOCK, block);
        if (*kind == 2) rng_fill_exponential(&rng, BLOCK, block);
    }
    *last = block[BLOCK - 1];
}
