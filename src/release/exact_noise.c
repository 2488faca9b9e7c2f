/* Discrete Laplace and discrete Gaussian noise from random bits by integer
 * arithmetic alone (Canonne, Kamath & Steinke 2020, Algorithms 1 to 3): no
 * rounding, so no trace of the true value in the last bits (Mironov 2012).
 *
 * Everything is built from coins with rational probability p / q, thrown as a uniform integer
 * below q. exp(-x) for a rational x in [0, 1] is the chance that the first failure among coins x /
 * 1, x / 2, x / 3, ... is an odd one; x / k is thrown as the coin x and the coin 1 / k, and a
 * product of rationals as one coin for each, so that no product has to fit a machine word.
 *
 * The Gaussian is a discrete Laplace Y of integer scale t, kept with probability exp(-d^2 / 2)
 * where d = | |Y| - sigma^2 / t | / sigma. With sigma = a / b that is | |Y| t b^2 - a^2 | / (a t
 * b) = V + U / Q, an integer and a remainder below one, and d^2 / 2 = V^2 / 2 + V U / Q + (U /
 * Q)^2 / 2.
 *
 * Cost: about 20 random words for a Gaussian, 8 for a Laplace value. A value
 * beyond MOST_STEPS scales, of probability below exp(-2000), is drawn again.
 */
#include "release/exact_noise.h"

enum { MOST_STEPS = 2000 };

void bits_start(struct bit_source *source,
                int (*fill)(void *self, unsigned char *out, size_t bytes), void *self) {
    memset(source, 0, sizeof *source);
    source->fill = fill;
    source->self = self;
}

void bits_end(struct bit_source *source) {
    volatile uint64_t *word = source->word; /* so that the compiler does not leave it out */
    for (size_t i = 0; i < sizeof source->word / sizeof *source->word; ++i) word[i] = 0;
    source->left = 0;
}

static uint64_t next_word(struct bit_source *source) {
    if (source->left == 0) {
        if (!source->fill(source->self, (unsigned char *)source->word, sizeof source->word)) {
            source->failed = 1;
            return 0;
        }
        source->left = (int)(sizeof source->word / sizeof *source->word);
    }
    return source->word[--source->left];
}

uint64_t exact_uniform(struct bit_source *source, uint64_t below) {
    uint64_t mask = below - 1;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    if (mask == 0) return 0;
    uint64_t value;
    do value = next_word(source) & mask;
    while (value >= below && !source->failed);
    return source->failed ? 0 : value;
}

static int coin(struct bit_source *source, uint64_t p, uint64_t q) {
    return exact_uniform(source, q) < p;
}

struct ratio {
    uint64_t p, q;
};

/* exp(-x), x the product of `count` ratios, each in [0, 1] */
static int exp_coin(struct bit_source *source, int count, const struct ratio *x) {
    for (uint64_t k = 1; !source->failed; ++k) {
        int success = coin(source, 1, k);
        for (int i = 0; i < count && success; ++i) success = coin(source, x[i].p, x[i].q);
        if (!success) return (int)(k & 1);
    }
    return 0;
}

/* exp(-x) to the power of `times` */
static int exp_coins(struct bit_source *source, uint64_t times, struct ratio x) {
    while (times-- > 0)
        if (!exp_coin(source, 1, &x)) return 0;
    return 1;
}

static const struct ratio one = {1, 1}, half = {1, 2};

int64_t exact_laplace(struct bit_source *source, uint64_t t, uint64_t s) {
    while (!source->failed) {
        const struct ratio part = {exact_uniform(source, t), t};
        if (!exp_coin(source, 1, &part)) continue;
        uint64_t steps = 0;
        while (steps < MOST_STEPS && exp_coin(source, 1, &one)) ++steps;
        if (steps == MOST_STEPS) continue;
        const int64_t size = (int64_t)((part.p + t * steps) / s);
        const int negative = coin(source, 1, 2);
        if (negative && size == 0) continue; /* zero would come twice */
        return negative ? -size : size;
    }
    return 0;
}

int64_t exact_gaussian(struct bit_source *source, uint64_t a, uint64_t b) {
    const uint64_t t = a / b + 1, whole = a * t * b;
    while (!source->failed) {
        const int64_t y = exact_laplace(source, t, 1);
        const uint64_t left = (uint64_t)(y < 0 ? -y : y) * t * b * b, right = a * a;
        const uint64_t distance = left > right ? left - right : right - left;
        const uint64_t steps = distance / whole;
        const struct ratio rest = {distance % whole, whole}, square[] = {rest, rest, half};
        if (exp_coins(source, steps * steps / 2, one) && exp_coins(source, steps & 1, half) &&
            exp_coins(source, steps, rest) && exp_coin(source, 3, square))
            return y;
    }
    return 0;
}

uint64_t exact_response(struct bit_source *source, uint64_t k, uint64_t whole, uint64_t p) {
    const struct ratio rest = {p, UINT64_C(1) << 52};
    while (!source->failed) {
        const uint64_t shift = exact_uniform(source, k);
        if (shift == 0 || (exp_coins(source, whole, one) && exp_coin(source, 1, &rest)))
            return shift;
    }
    return 0;
}

/* Exponential mechanism over a grid by rejection: a uniform point is kept with probability exp(-(p
 * / q) distance). Some point has distance 0, so a try succeeds with probability 1 / points at the
 * least. */
uint64_t exact_quantile(struct bit_source *source, uint64_t points, const double *below,
                        uint64_t rank, uint64_t p, uint64_t q) {
    const uint64_t unit = UINT64_C(1) << RANK_BITS;
    while (!source->failed) {
        const uint64_t g = exact_uniform(source, points);
        const uint64_t low = (uint64_t)below[g] * unit, high = (uint64_t)below[g + 1] * unit;
        const uint64_t distance = low > rank ? low - rank : high < rank ? rank - high : 0;
        const uint64_t whole = distance / unit, more = whole * (p % q);
        const struct ratio part = {distance % unit, unit}, rest = {more % q, q},
                           both[] = {part, {p % q, q}};
        if (exp_coins(source, whole * (p / q) + more / q, one) && exp_coin(source, 1, &rest) &&
            exp_coins(source, p / q, part) && exp_coin(source, 2, both))
            return g;
    }
    return 0;
}
