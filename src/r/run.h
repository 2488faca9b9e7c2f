/* A method as r/chains.c sees it: how R's lists become its structs. */
#ifndef NOISEAWARE_R_RUN_H
#define NOISEAWARE_R_RUN_H

#include "contract/n_prior.h"
#include "contract/noise.h"
#include "contract/run.h"
#include "r/ffi.h"

/* How many numbers a draw of the statistic has: the released components, and what a method
 * keeps after them. */
int statistic_width(SEXP problem);

/* A vector of the state in addition to those that every method has: theta, rng, the number
 * of iterations made, and counters. */
struct state_part {
    const char *name;
    SEXPTYPE type;
    R_xlen_t length;
};

enum { MOST_STATE_PARTS = 16 };

struct state_shape {
    int counters;
    int parts;
    struct state_part part[MOST_STATE_PARTS];
};

struct method {
    const char *name;
    struct sampler sampler;

    /* The problem as the method's own struct. */
    void *(*read)(SEXP problem);
    struct state_shape (*shape)(const void *self);

    /* Points into the state, which R owns; detach() writes back what is not there
     * already, and may be NULL. The random stream and the iteration's number are r/chains.c's. */
    void (*attach)(void *self, SEXP state, struct rng *rng);
    void (*resume)(void *self); /* what follows from an old state; may be NULL */
    void (*detach)(void *self, SEXP state);

    /* What the chain reports about itself, `after` iterations after warmup: R reads the names. */
    void (*diagnostics)(const void *self, double after, struct chain_diagnostics *told);

    /* A new state: theta is as given, all else 0. `may_fail`: one where the noise is impossible is
     * none. */
    int may_fail;
    void (*start)(void *self, SEXP problem);
};

/* R's names of kernels. */
extern const char *const kernel_names[];
enum kernel find_kernel(SEXP name);

/* 1 over each scale. */
const double *weights_of(SEXP scale);

/* What was published of totals, with its noise: R's noise_fields(). */
struct noise read_noise(SEXP spec);

/* What is believed of the number of records; NULL where it is known. */
const struct size_prior *read_size_prior(SEXP problem);

/* A problem of method "collapse": of a site in method "pool_records". */
struct collapse;
struct collapse *read_collapse(SEXP problem);

/* A problem of method "clt", with its sampler's workspace: also of a site in method "pool". */
struct clt;
struct clt *read_clt(SEXP problem);

extern const struct method method_augment, method_clt, method_collapse, method_pool,
    method_pool_records;

#endif
