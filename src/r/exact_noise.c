/* Releases on an integer grid, as R sees them: the records' values are rounded
 * to multiples of `unit`, a power of two, and added as 64-bit integers, exact
 * noise is added, and only the result becomes a double. The true totals
 * leave this file only where owners add up partial ones: ffi_exact_totals().
 *
 * A record's value is truncated at limits so wide that no sum overflows; that depends on the
 * record alone, so it does not add to the sensitivity. */
#include "release/exact_noise.h"
#include "base/lanes.h"
#include "r/ffi.h"
#include "release/entropy.h"

static int from_system(void *self, unsigned char *out, size_t bytes) {
    (void)self;
    return system_entropy(out, bytes);
}

/* bytes that a test has laid out, a buffer at a time */
struct tape {
    const unsigned char *at;
    size_t left;
};

static int from_tape(void *self, unsigned char *out, size_t bytes) {
    struct tape *tape = self;
    if (tape->left < bytes) return 0;
    memcpy(out, tape->at, bytes);
    tape->at += bytes;
    tape->left -= bytes;
    return 1;
}

/* A discrete distribution of scale a / b. */
typedef int64_t exact_sampler(struct bit_source *source, uint64_t a, uint64_t b);

/* by its name, "laplace" or "gaussian" */
static exact_sampler *sampler_named(SEXP name) {
    return strcmp(CHAR(STRING_ELT(name, 0)), "laplace") == 0 ? exact_laplace : exact_gaussian;
}

/* Noise of scale numerator / denominator; NULL if the random bits ran out. */
SEXP ffi_exact_noise(SEXP distribution, SEXP count, SEXP numerator, SEXP denominator, SEXP bytes) {
    const int n = Rf_asInteger(count);
    struct tape tape;
    struct bit_source source;
    if (Rf_isNull(bytes)) {
        bits_start(&source, from_system, NULL);
    } else {
        tape = (struct tape){RAW(bytes), (size_t)Rf_xlength(bytes)};
        bits_start(&source, from_tape, &tape);
    }
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    exact_sampler *draw = sampler_named(distribution);
    const uint64_t a = (uint64_t)Rf_asReal(numerator), b = (uint64_t)Rf_asReal(denominator);
    for (int i = 0; i < n; ++i) REAL(out)[i] = (double)draw(&source, a, b);
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}

/* Uniforms strictly inside (0, 1) with 53 bits each; NULL without entropy. */
SEXP ffi_entropy(SEXP count) {
    const int n = Rf_asInteger(count);
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP values = PROTECT(Rf_allocVector(REALSXP, n));
    for (int i = 0; i < n; ++i)
        REAL(values)[i] = (double)(1 + exact_uniform(&source, (UINT64_C(1) << 53) - 1)) * 0x1p-53;
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : values;
}

/* A value in units; `most` is a whole number far below 2^63. */
static int64_t to_grid(double value, double unit, double most) {
    const double units = rint(value / unit);
    return (int64_t)(units > most ? most : units < -most ? -most : units);
}

/* Below this, a number is rounded to a whole one by adding ROUNDING, whose last bit is worth 1: the
 * bits of the sum, less those of ROUNDING, are that whole number. Halves go to the even one, as
 * in rint(). */
#define SMALL 0x1p51
#define ROUNDING 0x1.8p52

/* Adds to `sum` the m values in units, as to_grid() rounds them; 0, and nothing added, where one of
 * them is not below `small`, which is at most SMALL. Times 1 / unit is as good as a division: it is
 * a power of two. */
VECTOR_CLONES static int add_small(int m, const double *value, double per_unit, double small,
                                   int64_t *sum) {
    int64_t total = 0;
    int i = 0;
#if HAS_LANES
    const lanes by = LANES_OF(per_unit), limit = LANES_OF(small), rounding = LANES_OF(ROUNDING);
    lanes_bits units = {0}, large = {0};
    for (; i + LANES <= m; i += LANES) {
        const lanes v = LANES_LOAD(value + i) * by;
        large |= ~(lanes_bits)(LANES_ABS(v) < limit);
        units += (lanes_bits)(v + rounding) - (lanes_bits)rounding;
    }
    for (int k = 0; k < LANES; ++k) {
        if (large[k]) return 0;
        total += units[k];
    }
#endif
    for (; i < m; ++i) {
        const double v = value[i] * per_unit;
        if (!(fabs(v) < small)) return 0;
        total += (int64_t)rint(v);
    }
    *sum += total;
    return 1;
}

struct grid {
    const double *unit, *numerator, *denominator;
    exact_sampler *draw;
};

static double release_total(struct bit_source *source, const struct grid *grid, int j,
                            int64_t total) {
    total += grid->draw(source, (uint64_t)grid->numerator[j], (uint64_t)grid->denominator[j]);
    return (double)total * grid->unit[j];
}

/* integers already, and no finer unit loses one: few components are touched */
static void sum_counts(const struct stat *stat, SEXP x, const double *unit, int64_t *sum) {
    const R_xlen_t n = records_count(x);
    struct blocks b = blocks_new(stat->columns, stat->whole, n);
    double *total = plugin_memory((size_t)stat->size, sizeof *total);
    for (R_xlen_t start = 0; start < n; start += b.size) {
        const int m = blocks_load(&b, x, start);
        stat->class->total(stat->self, m, read_only(&b), total);
    }
    for (int j = 0; j < stat->size; ++j) sum[j] = to_grid(total[j], unit[j], 0x1p62);
}

/* What becomes of every record's value: it is added to `sum`, or released by itself. */
struct values {
    int64_t *sum;
    struct bit_source *source;
    const struct grid *grid;
    double *out;
};

static void each_value(const struct stat *stat, SEXP x, const double *unit, double most,
                       const struct values *v) {
    const R_xlen_t n = records_count(x);
    const double small = most < SMALL ? most : SMALL;
    struct blocks b = blocks_new(stat->columns, stat->whole, n);
    const int stride = PAD_LANES(b.size);
    double *t = plugin_memory((size_t)stat->size * stride, sizeof *t);
    for (R_xlen_t start = 0; start < n; start += b.size) {
        const int m = blocks_load(&b, x, start);
        stat->class->eval(stat->self, m, read_only(&b), stride, t);
        for (int j = 0; j < stat->size; ++j) {
            const double *value = t + (size_t)j * stride;
            if (v->sum && add_small(m, value, 1 / unit[j], small, &v->sum[j])) continue;
            for (int i = 0; i < m; ++i) {
                const int64_t units = to_grid(value[i], unit[j], most);
                if (v->sum)
                    v->sum[j] += units;
                else
                    v->out[j * n + start + i] = release_total(v->source, v->grid, j, units);
            }
        }
    }
}

/* Totals in units of the records x, which are some of `records` or all of them. */
static int64_t *sum_units(const struct stat *stat, SEXP x, SEXP kind, const double *unit,
                          SEXP records) {
    int64_t *sum = plugin_memory((size_t)stat->size, sizeof *sum);
    if (strcmp(CHAR(STRING_ELT(kind, 0)), "cells") == 0) {
        sum_counts(stat, x, unit, sum);
    } else {
        const struct values v = {.sum = sum};
        each_value(stat, x, unit, floor(0x1p62 / Rf_asReal(records)), &v);
    }
    return sum;
}

/* What is released of the records x: totals, or with kind
 * "records" every value; with noise of scale numerator[j] / denominator[j]
 * units[j] in component j. NULL without entropy. */
SEXP ffi_exact_release(SEXP spec, SEXP x, SEXP kind, SEXP unit, SEXP distribution, SEXP numerator,
                       SEXP denominator, SEXP records) {
    const int summed = strcmp(CHAR(STRING_ELT(kind, 0)), "records") != 0;
    const struct stat stat = read_stat(spec);
    const struct grid grid = {REAL(unit), REAL(numerator), REAL(denominator),
                              sampler_named(distribution)};
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP out = PROTECT(
        Rf_allocVector(REALSXP, summed ? stat.size : (R_xlen_t)stat.size * records_count(x)));
    if (summed) {
        const int64_t *sum = sum_units(&stat, x, kind, grid.unit, records);
        for (int j = 0; j < stat.size; ++j) REAL(out)[j] = release_total(&source, &grid, j, sum[j]);
    } else {
        const struct values v = {.source = &source, .grid = &grid, .out = REAL(out)};
        each_value(&stat, x, grid.unit, 0x1p62, &v);
    }
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}

/* R has no such integers: a total is high * WORD + low, both of its sign. */
enum { WORD = 1000000000 };

/* The same totals without noise, for owners who add them up before they publish:
 * a matrix with a row a component and the columns high and low. */
SEXP ffi_exact_totals(SEXP spec, SEXP x, SEXP kind, SEXP unit, SEXP records) {
    const struct stat stat = read_stat(spec);
    const int64_t *sum = sum_units(&stat, x, kind, REAL(unit), records);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, stat.size, 2));
    for (int j = 0; j < stat.size; ++j) {
        REAL(out)[j] = (double)(sum[j] / WORD);
        REAL(out)[stat.size + j] = (double)(sum[j] % WORD);
    }
    UNPROTECT(1);
    return out;
}

/* Totals, as above, released. */
SEXP ffi_exact_add_noise(SEXP total, SEXP unit, SEXP distribution, SEXP numerator,
                         SEXP denominator) {
    const int size = Rf_nrows(total);
    const struct grid grid = {REAL(unit), REAL(numerator), REAL(denominator),
                              sampler_named(distribution)};
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, size));
    for (int j = 0; j < size; ++j) {
        const int64_t units = (int64_t)REAL(total)[j] * WORD + (int64_t)REAL(total)[size + j];
        REAL(out)[j] = release_total(&source, &grid, j, units);
    }
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}

/* Randomised response to codes 0, 1, ..., levels - 1, with a budget epsilon for each.
 * NULL without entropy. */
SEXP ffi_exact_response(SEXP codes, SEXP levels, SEXP epsilon) {
    const R_xlen_t n = Rf_xlength(codes);
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t i = 0; i < n; ++i) {
        const double whole = floor(REAL(epsilon)[i]), part = REAL(epsilon)[i] - whole;
        const uint64_t k = (uint64_t)REAL(levels)[i];
        const uint64_t shift =
            exact_response(&source, k, (uint64_t)whole, (uint64_t)(part * 0x1p52));
        REAL(out)[i] = (double)(((uint64_t)REAL(codes)[i] + shift) % k);
    }
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}

/* Answers to codes 0, 1, ..., drawn from their rows of a matrix of multiples of 2^-52 that sum
 * to 1. NULL without entropy. */
SEXP ffi_exact_answers(SEXP codes, SEXP matrix) {
    const R_xlen_t n = Rf_xlength(codes);
    const int levels = Rf_nrows(matrix), answers = Rf_ncols(matrix);
    const uint64_t whole = UINT64_C(1) << 52;
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t i = 0; i < n; ++i) {
        const double *p = REAL(matrix) + (int)REAL(codes)[i];
        uint64_t u = exact_uniform(&source, whole);
        int r = 0;
        for (; r < answers - 1; ++r) {
            const uint64_t share = (uint64_t)(p[(size_t)r * levels] * 0x1p52);
            if (u < share) break;
            u -= share;
        }
        REAL(out)[i] = r;
    }
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}

/* A point of the grid, or `count` of them for the tests; NULL without entropy. `below`: the numbers
 * of values below each point, and of all; rank: a multiple of 2^-RANK_BITS. */
SEXP ffi_exact_quantile(SEXP count, SEXP below, SEXP rank, SEXP numerator, SEXP denominator) {
    const int n = Rf_asInteger(count);
    const uint64_t points = (uint64_t)Rf_xlength(below) - 1;
    struct bit_source source;
    bits_start(&source, from_system, NULL);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    double *draw = REAL(out);
    const uint64_t units = (uint64_t)ldexp(Rf_asReal(rank), RANK_BITS);
    for (int i = 0; i < n; ++i)
        draw[i] = (double)exact_quantile(&source, points, REAL(below), units,
                                         (uint64_t)Rf_asReal(numerator),
                                         (uint64_t)Rf_asReal(denominator));
    bits_end(&source);
    UNPROTECT(1);
    return source.failed ? R_NilValue : out;
}
