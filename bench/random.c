/* Random numbers in blocks that stay in the cache, as the sampler draws them.
 * Compiled with src/base/rng_draws.c and src/base/dist.c by bench/record.R; kind: 0 uniform,
 * 1 normal, 2 exponential, 3 Poisson of that mean. */
#include "base/dist.h"

enum { BLOCK = 512 };

void draw_blocks(const int *kind, const int *blocks, double *last) {
    double block[BLOCK];
    struct rng rng;
    struct dist_poisson law;
    if (*kind == 3) dist_poisson_set(&law, *last);
    rng_seed(&rng, 1);
    for (int i = 0; i < *blocks; ++i) {
        if (*kind == 0) rng_fill_uniform(&rng, BLOCK, block);
        if (*kind == 1) rng_fill_normal(&rng, BLOCK, block);
        if (*kind == 3) dist_poisson_fill(&law, &rng, BLOCK, block);
        if (*kind == 2) rng_fill_exponential(&rng, BLOCK, block);
    }
    *last = block[BLOCK - 1];
}
