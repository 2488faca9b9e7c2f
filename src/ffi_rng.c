/* Random streams and the operating system's entropy, as R sees them. */
#if defined(_WIN32)
#define _CRT_RAND_S
#include <stdlib.h>
#elif defined(__APPLE__)
#include <sys/random.h>
#elif defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/random.h>
#else
#include <unistd.h>
#endif

#include "dist.h"
#include "ffi.h"

#include <errno.h>

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
    } else {
        Rf_error("internal error: no draw of kind '%s'", what);
    }
    SEXP after = PROTECT(rng_write(&rng));
    const char *const names[] = {"values", "state"};
    const SEXP parts[] = {values, after};
    SEXP list = named_list(2, names, parts);
    UNPROTECT(2);
    return list;
}

/* Random bytes from the operating system; 0 if it cannot give them. */
static int system_entropy(unsigned char *out, size_t bytes) {
#if defined(_WIN32)
    for (size_t i = 0; i < bytes; i += sizeof(unsigned int)) {
        unsigned int word;
        if (rand_s(&word)) return 0;
        memcpy(out + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
    return 1;
#elif defined(__linux__)
    while (bytes > 0) {
        const ssize_t got = getrandom(out, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        out += got;
        bytes -= (size_t)got;
    }
    return 1;
#else
    while (bytes > 0) { /* getentropy gives 256 bytes at a time */
        const size_t chunk = bytes < 256 ? bytes : 256;
        if (getentropy(out, chunk) != 0) return 0;
        out += chunk;
        bytes -= chunk;
    }
    return 1;
#endif
}

/* Uniforms strictly inside (0, 1) with 53 bits each. */
SEXP ffi_entropy(SEXP count) {
    const int n = Rf_asInteger(count);
    SEXP values = PROTECT(Rf_allocVector(REALSXP, n));
    int complete = 1;
    for (int i = 0; i < n && complete; ++i) {
        uint64_t word = 0;
        while (word == 0 && complete) {
            complete = system_entropy((unsigned char *)&word, sizeof word);
            word >>= 11;
        }
        REAL(values)[i] = (double)(int64_t)word * 0x1p-53;
    }
    UNPROTECT(1);
    return complete ? values : R_NilValue;
}
