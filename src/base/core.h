/* Core header: used by every C file of the package. Includes and calls go in one direction only,
 * from r/ through the methods, the plug-ins and contract/ to base/: see tools/layers.R. */
#ifndef NOISEAWARE_BASE_CORE_H
#define NOISEAWARE_BASE_CORE_H

#ifndef R_NO_REMAP
#define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#define STRICT_R_HEADERS
#endif
#ifndef USE_FC_LEN_T
#define USE_FC_LEN_T
#endif
#include "noiseaware.h"
#include <Rconfig.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* keeps a rare path out of the registers of a hot one */
#if defined(__GNUC__)
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))
#define LIKELY(condition) __builtin_expect(condition, 1)
#else
#define NOINLINE
#define INLINE inline
#define LIKELY(condition) (condition)
#endif

/* Compiles a kernel twice, for plain x86-64 and for AVX2, and lets the loader
 * choose. AVX2 without FMA: both versions give the same bits. Not with clang, whose
 * resolvers of static functions clash where these have the same name. Aligned, since where a
 * short loop lies in its cache lines makes up to 6 per cent (bench/variants.R, three covariates);
 * otherwise that would change with any other function. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define VECTOR_CLONES __attribute__((target_clones("avx2", "default"), aligned(64)))
#else
#define VECTOR_CLONES
#endif

/* Loops over the records of a block run in lanes of this constant width, so
 * that a compiler vectorises them at -O2 without a scalar remainder. Buffers
 * are padded to a multiple of LANES; what stands in the padding is finite and
 * is never read by a sum. */
enum { LANES = NOISEAWARE_LANES };

/* No block has more records than this. */
enum { MAX_BLOCK = NOISEAWARE_MAX_BLOCK };

/* How many of the records that are left make the next block. */
static inline int block_length(ptrdiff_t left) { return left < MAX_BLOCK ? (int)left : MAX_BLOCK; }

#define PAD_LANES(m) (((m) + (LANES - 1)) & ~(LANES - 1))

/* for each record i of a block of m, padding included */
#define FOR_RECORDS(i, m) NOISEAWARE_RECORDS(i, m)

/* Sums over a block without its padding, in LANES partial sums. */
static inline double block_sum(int m, const double *a) { return noiseaware_sum(m, a); }

static inline double block_dot(int m, const double *restrict a, const double *restrict b) {
    double part[LANES] = {0};
    const int whole = m & ~(LANES - 1);
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; ++l) part[l] += a[i + l] * b[i + l];
    for (int i = whole; i < m; ++i) part[i - whole] += a[i] * b[i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

#endif
