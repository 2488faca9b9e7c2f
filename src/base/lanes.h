/* A few doubles side by side, in registers: GNU C's vector types (gcc, clang), which the compiler
 * turns into what the machine has. HAS_LANES is 0 elsewhere; each use is accompanied by a plain
 * loop that gives the same bits.
 *
 * Values stay local to a function: how they are passed depends on the machine.
 */
#ifndef NOISEAWARE_BASE_LANES_H
#define NOISEAWARE_BASE_LANES_H

#include "base/core.h"

#if defined(__GNUC__) && !defined(NOISEAWARE_NO_LANES)
#define HAS_LANES 1

/* memory need be aligned for a double only */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));
typedef double pair __attribute__((vector_size(2 * sizeof(double)), aligned(8), may_alias));
typedef int64_t lanes_bits __attribute__((vector_size(LANES * sizeof(int64_t)), aligned(8)));

#define LANES_LOAD(p) (*(const lanes *)(p))
#define LANES_STORE(p, value) (*(lanes *)(p) = (value))
#define LANES_ABS(a) ((lanes)((lanes_bits)(a) & ~(lanes_bits)(lanes){-0.0, -0.0, -0.0, -0.0}))

/* where a mask is set a, else b */
#define LANES_SELECT(mask, a, b) ((lanes)(((lanes_bits)(a) & (mask)) | ((lanes_bits)(b) & ~(mask))))
#define LANES_OF(a) ((lanes){a, a, a, a})

#define PAIR_LOAD(p) (*(const pair *)(p))
#define PAIR_STORE(p, value) (*(pair *)(p) = (value))

/* a[i], b[j] */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PAIR_OF(a, i, b, j) __builtin_shufflevector(a, b, i, 2 + j)
#define LANES_HALF(a, i, j) __builtin_shufflevector(a, a, i, j)
#endif
#endif
#ifndef PAIR_OF
#define PAIR_OF(a, i, b, j) ((pair){(a)[i], (b)[j]})
#define LANES_HALF(a, i, j) ((pair){(a)[i], (a)[j]})
#endif

/* before a loop over lanes of a small, constant number of rounds: arrays of lanes become registers
 */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* small integers, more of them at a time */
enum { BYTES = 32, INTS = 8 };
typedef int32_t ints __attribute__((vector_size(INTS * sizeof(int32_t)), aligned(4), may_alias));
typedef uint8_t bytes __attribute__((vector_size(BYTES), aligned(1), may_alias));
typedef uint64_t byte_words __attribute__((vector_size(BYTES)));

#define BYTES_LOAD(p) (*(const bytes *)(p))

#define INTS_LOAD(p) (*(const ints *)(p))
#define INTS_STORE(p, value) (*(ints *)(p) = (value))

/* table[index[l]] for each lane, and 16 bits made 32: not by every compiler */
#define HAS_LOOKUP 0
#if defined(__has_builtin)
#if __has_builtin(__builtin_shuffle) && __has_builtin(__builtin_convertvector)
#undef HAS_LOOKUP
#define HAS_LOOKUP 1
typedef uint16_t halves
    __attribute__((vector_size(INTS * sizeof(uint16_t)), aligned(2), may_alias));
#define INTS_LOOKUP(table, index) __builtin_shuffle(table, index)
#define INTS_OF(p) __builtin_convertvector(*(const halves *)(p), ints)
#endif
#endif

/* of bytes that are at most 31 */
static INLINE int bytes_sum(const bytes *a) {
    const byte_words w = (byte_words)*a;
    const uint64_t four = w[0] + w[1] + w[2] + w[3], odd = UINT64_C(0x00ff00ff00ff00ff);
    return (int)(((four & odd) + (four >> 8 & odd)) * UINT64_C(0x0001000100010001) >> 48);
}

/* in the order of block_sum() */
static INLINE double lanes_sum(const lanes *a) {
    const pair first = LANES_HALF(*a, 0, 1), second = LANES_HALF(*a, 2, 3);
    return (first[0] + first[1]) + (second[0] + second[1]);
}

#else
#define HAS_LANES 0
#define HAS_LOOKUP 0
#endif

#endif
