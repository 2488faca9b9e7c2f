/* Hamiltonian Monte Carlo by itself, for tests: the density is an R function of the
 * position that returns the log density and then its gradient. */
#include "mcmc/hmc.h"
#include "r/ffi.h"

struct callback {
    SEXP call, environment;
    int size;
};

static double log_density(void *self, const double *q, double *gradient) {
    const struct callback *callback = self;
    SEXP position = PROTECT(Rf_allocVector(REALSXP, callback->size));
    memcpy(REAL(position), q, (size_t)callback->size * sizeof(double));
    SETCADR(callback->call, position);
    SEXP value = PROTECT(Rf_eval(callback->call, callback->environment));
    memcpy(gradient, REAL(value) + 1, (size_t)callback->size * sizeof(double));
    const double out = REAL(value)[0];
    UNPROTECT(2);
    return out;
}

/* the call must be protected */
static void attach(struct hmc *hmc, struct callback *callback, SEXP dense, SEXP store) {
    const struct hmc_target target = {callback->size, callback, log_density, NULL};
    const enum hmc_metric metric = Rf_asLogical(dense) ? HMC_DENSE : HMC_DIAGONAL;
    double *work = doubles(hmc_workspace(callback->size, metric));
    hmc_attach(hmc, &target, metric, REAL(store), work);
}

static SEXP finish(SEXP store, const struct rng *rng, SEXP draws, SEXP told) {
    SEXP list =
        named_list(4, "store", store, "rng", PROTECT(rng_write(rng)), "draws", draws, "told", told);
    UNPROTECT(1);
    return list;
}

/* A new state at `position`, with a step size. */
SEXP ffi_hmc_start(SEXP density, SEXP position, SEXP unit, SEXP dense, SEXP rng_state) {
    const int size = (int)Rf_xlength(position);
    const enum hmc_metric metric = Rf_asLogical(dense) ? HMC_DENSE : HMC_DIAGONAL;
    struct callback callback = {PROTECT(Rf_lang2(density, R_NilValue)), R_GlobalEnv, size};
    SEXP store = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)hmc_stored(size, metric)));
    struct rng rng;
    struct hmc hmc;
    rng_read(rng_state, &rng);
    attach(&hmc, &callback, dense, store);
    hmc_start(&hmc, REAL(position), REAL(unit));
    if (!hmc_refresh(&hmc)) Rf_error("internal error: no density at the start");
    hmc_find_step(&hmc, &rng);
    SEXP state = finish(store, &rng, R_NilValue, R_NilValue);
    UNPROTECT(2);
    return state;
}

enum { TOLD = 5 };

/* Iterations from number schedule[0] on, schedule[1] of them, of a warmup of schedule[2];
 * trajectories of `length`, or NUTS where it is NA. A draw is a column, and so is what
 * its transition tells. */
SEXP ffi_hmc_run(SEXP density, SEXP size_, SEXP dense, SEXP state, SEXP schedule, SEXP length) {
    const int size = Rf_asInteger(size_);
    const int from = INTEGER(schedule)[0], count = INTEGER(schedule)[1];
    const int warmup = INTEGER(schedule)[2];
    struct callback callback = {PROTECT(Rf_lang2(density, R_NilValue)), R_GlobalEnv, size};
    SEXP store = PROTECT(Rf_duplicate(list_element(state, "store")));
    SEXP draws = PROTECT(Rf_allocMatrix(REALSXP, size, count));
    SEXP told = PROTECT(Rf_allocMatrix(REALSXP, TOLD, count));
    struct rng rng;
    struct hmc hmc;
    rng_read(list_element(state, "rng"), &rng);
    attach(&hmc, &callback, dense, store);
    hmc_refresh(&hmc);
    for (int k = 0; k < count; ++k) {
        struct hmc_step step;
        if (ISNA(Rf_asReal(length)))
            hmc_nuts(&hmc, &rng, &step);
        else
            hmc_fixed(&hmc, Rf_asReal(length), 1 << HMC_MOST_DEPTH, &rng, &step);
        hmc_learn(&hmc, from + k, warmup, &step, &rng);
        memcpy(REAL(draws) + (size_t)k * (size_t)size, hmc.q, (size_t)size * sizeof(double));
        double *out = REAL(told) + (size_t)TOLD * (size_t)k;
        out[0] = step.accept;
        out[1] = step.energy;
        out[2] = step.leapfrogs;
        out[3] = step.depth;
        out[4] = step.divergent;
    }
    SEXP list = finish(store, &rng, draws, told);
    UNPROTECT(4);
    return list;
}
