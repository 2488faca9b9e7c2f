/* Random streams, as R sees them. */
#include "base/dist.h"
#include "base/dist_polya_gamma.h"
#include "r/ffi.h"

void rng_read(SEXP raw, struct rng *rng) { memcpy(rng->s, RAW(raw), sizeof rng->s); }

SEXP rng_write(const struct rng *rng) {
    SEXP raw = Rf_allocVector(RAWSXP, (R_xlen_t)sizeof rng->s);
    memcpy(RAW(raw), rng->s, sizeof rng->s);
    return raw;
}

/* A stream from two numbers in [0, 2^32), moved on by that many jumps. */
SEXP ffi_rng_seed(SEXP words, SEXP jumps) {
    const double *word = REAL(words);
    struct rng rng;
    rng_seed(&rng, ((uint64_t)word[0] << 32) | (uint64_t)word[1]);
    for (int i = 0; i < Rf_asInteger(jumps); ++i) rng_jump(&rng);
    return rng_write(&rng);
}

/* Values and the stream after them; "bits" come as pairs of 32-bit halves. */
SEXP ffi_rng_draw(SEXP state, SEXP kind, SEXP count, SEXP parameter) {
    const char *what = CHAR(STRING_ELT(kind, 0));
    const int n = Rf_asInteger(count);
    const int bits = strcmp(what, "bits") == 0;
    struct rng rng;
    rng_read(state, &rng);
    SEXP values = PROTECT(Rf_allocVector(REALSXP, bits ? 2 * (R_xlen_t)n : n));
    double *out = REAL(values);
    if (bits) {
        for (int i = 0; i < n; ++i) {
            const uint64_t word = rng_bits(&rng);
            out[2 * i] = (double)(word >> 32);
            out[2 * i + 1] = (double)(word & UINT64_C(0xffffffff));
        }
    } else if (strcmp(what, "uniform") == 0) {
        rng_fill_uniform(&rng, n, out);
    } else if (strcmp(what, "normal") == 0) {
        rng_fill_normal(&rng, n, out);
    } else if (strcmp(what, "exponential") == 0) {
        rng_fill_exponential(&rng, n, out);
    } else if (strcmp(what, "gamma") == 0) {
        for (int i = 0; i < n; ++i) out[i] = dist_gamma(&rng, Rf_asReal(parameter));
    } else if (strcmp(what, "polya_gamma") == 0) {
        struct polya_gamma distribution;
        polya_gamma_prepare(&distribution);
        for (int i = 0; i < n; ++i) out[i] = Rf_asReal(parameter);
        polya_gamma_fill(&distribution, &rng, n, out, out);
    } else if (strcmp(what, "laplace_variance") == 0) {
        for (int i = 0; i < n; ++i) out[i] = dist_laplace_variance(&rng, Rf_asReal(parameter));
    } else {
        Rf_error("internal error: no draw of kind '%s'", what);
    }
    SEXP after = PROTECT(rng_write(&rng));
    SEXP list = named_list(2, "values", values, "state", after);
    UNPROTECT(2);
    return list;
}
