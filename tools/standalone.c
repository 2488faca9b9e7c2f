/* A chain of "augment" in a program without R: exponential waiting times, their
 * total published with Laplace noise. tests/testthat/test-plugin.R compiles it with the
 * plug-ins and the method, links neither libR nor Rmath, and compares the mean of the
 * rate's draws, which it prints.
 *
 * What does need R's mathematics (Rmath: normal tails and quantiles, gamma functions):
 * model/covariates_normal.c, and so the models lm, logistic and mvnormal; mech/gaussian.c,
 * base/dist_discrete.c and the mechanisms of discrete noise; clt/moments_sums.c,
 * clt/moments_glm.c, clt/moments_lm_outside.c, totals/normal_totals_chain.c, totals/rate_total.c,
 * base/diagnostics.c.
 */
#include "records/augment.h"
#include "contract/model.h"
#include "contract/registry.h"

#include <stdio.h>
#include <stdlib.h>

/* freed at the program's end */
void *host_allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) exit(2);
    return memory;
}

#define NUMBER(key, ...) \
    { .name = key, .value = (const double[]){__VA_ARGS__}, .length = 1 }
#define FIELDS(list) \
    (struct fields) { .count = (int)(sizeof list / sizeof *list), .field = list }

enum { N = 8, WARMUP = 500, DRAWS = 20000 };

int main(void) {
    const struct field prior[] = {NUMBER("shape", 3), NUMBER("rate", 2)};
    const struct field total[] = {NUMBER("scale", 1),   NUMBER("shift", 0), NUMBER("lower", 0),
                                  NUMBER("upper", 100), NUMBER("drop", 0),  NUMBER("degree", 1),
                                  NUMBER("factor", 0)};
    const struct fields model_fields = FIELDS(prior), stat_fields = FIELDS(total);
    const int column[] = {0};
    const double released[LANES] = {4}, weight[LANES] = {1e-6}; /* noise that says nothing */
    const enum kernel kernel[LANES] = {KERNEL_ABSOLUTE};
    struct part part = {.stat.class = &stat_sums, .kernel = KERNEL_ABSOLUTE, .column = column};
    struct augment a = {
        .model.class = &model_exponential,
        .layout = {.parts = 1, .part = &part, .dense = LANES},
        .noise = {.size = LANES,
                  .kernel = kernel,
                  .released = released,
                  .weight = weight,
                  .absolute = LANES,
                  .separable = LANES},
        .n = N,
        .stride = PAD_LANES(N),
    };
    if (model_exponential.create(&model_fields, &a.model) != PLUGIN_OK) return 3;
    if (stat_sums.create(&stat_fields, &part.stat) != PLUGIN_OK) return 3;
    augment_prepare(&a);
    augment_prepare_moves(&a);

    struct rng rng;
    rng_seed(&rng, 1);
    double theta, rate, accepted, mean = 0;
    int hits[N] = {0};
    const struct adapt_shape shape = {.dim = a.model.moving, .complete = a.model.complete};
    a.rng = &rng;
    a.theta = &theta;
    a.accepted = hits;
    a.x = plugin_memory((size_t)a.stride, sizeof(double));
    adapt_attach(&a.adapt, &shape, plugin_memory(adapt_size(&shape), sizeof(double)));
    adapt_start(&a.adapt, (const double[]){1}, -1);
    model_rprior(&a.model, &rng, &theta);
    augment_start(&a, 0, NULL);
    for (int i = 0; i < WARMUP + DRAWS; ++i) {
        if (augment_iterate(&a, i, WARMUP, &accepted) != PLUGIN_OK) return 4;
        model_report(&a.model, &theta, &rate);
        if (i >= WARMUP) mean += rate / DRAWS;
    }
    printf("%.6f\n", mean);
    return 0;
}
