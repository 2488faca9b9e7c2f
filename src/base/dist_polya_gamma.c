/* Polya-Gamma variates PG(1, tilt), exactly: Polson, Scott & Windle (2013, JASA
 * 108), after Devroye (2009, Statistics and Probability Letters 79).
 *
 * PG(1, c) is X / 4 where X has the density cosh(z) exp(-z^2 x / 2)
 * sum_n (-1)^n a_n(x), z = |c| / 2. On both sides of CUT the a_n decrease in n,
 * so partial sums close in on the density from both sides; the first term is the
 * envelope:
 *   left   a_n = pi (n + 1/2) (2 / (pi x))^{3/2} exp(-2 (n + 1/2)^2 / x): inverse
 *          Gaussian with mean 1 / z and shape 1, cut off;
 *   right  a_n = pi (n + 1/2) exp(-(n + 1/2)^2 pi^2 x / 2): exponential.
 * With v uniform, a candidate stays unless v < a_1 / a_0 - a_2 / a_0 + ..., which
 * is below SQUEEZE: an exponential is rarely computed.
 *
 * Which piece a candidate comes from is decided by a uniform against the right
 * one's share. That share falls in z: between two entries of a table it is only
 * computed for a uniform that lies between them.
 *
 * Cost: about six random numbers.
 */
#include "base/dist_polya_gamma.h"

static const double PI = 3.141592653589793238462643383280;
static const double CUT = 0.64, ROOT_CUT = 0.8;
static const double CELLS_PER_UNIT = 64;
static const double SQUEEZE = 0.0058; /* above 3 exp(-4 / CUT) and 3 exp(-pi^2 CUT) */

/* beyond this z the right piece is below the resolution of a uniform */
static const double NO_RIGHT = 40;

static double right_rate(double z) { return PI * PI / 8 + z * z / 2; }

/* the right piece's share of the envelope */
static NOINLINE double right_share(double z) {
    if (z > NO_RIGHT) return 0;
    const double rate = right_rate(z), root_half = sqrt(0.5);
    const double right = PI / (2 * rate) * exp(-rate * CUT);
    const double left = exp(-z) * erfc((1 - CUT * z) / ROOT_CUT * root_half) +
                        exp(z) * erfc((1 + CUT * z) / ROOT_CUT * root_half);
    return right / (left + right);
}

void polya_gamma_prepare(struct polya_gamma *distribution) {
    for (int g = 0; g <= POLYA_GAMMA_CELLS; ++g)
        distribution->right[g] = right_share(g / CELLS_PER_UNIT);
}

static int is_right(const struct polya_gamma *distribution, double z, double u) {
    const double at = z * CELLS_PER_UNIT;
    const int g = at < POLYA_GAMMA_CELLS ? (int)at : POLYA_GAMMA_CELLS;
    if (u >= distribution->right[g]) return 0;
    if (g < POLYA_GAMMA_CELLS && u < distribution->right[g + 1]) return 1;
    return u < right_share(z);
}

/* Inverse Gaussian with mean 1 / z and shape 1, below CUT. */
static double draw_left(struct rng *rng, double z) {
    if (z * CUT < 1) {
        /* mean beyond the cut: 1 / (the tail of a chi-square), tilted. Its
         * candidate 1 / x is CUT^-1 plus twice an exponential. */
        for (;;) {
            const double x = 1 / (1 / CUT + 2 * rng_exponential(rng)), u = rng_uniform(rng);
            if (u * u * CUT < x && rng_exponential(rng) > 0.5 * z * z * x) return x;
        }
    }
    /* Michael, Schucany & Haas (1976, American Statistician 30) */
    for (;;) {
        const double normal = rng_normal(rng), mean = 1 / z, w = 0.5 * mean * normal * normal;
        const double least = mean / (1 + w + sqrt(w * (2 + w)));
        const double x = rng_uniform(rng) * (mean + least) < mean ? least : mean * mean / least;
        if (x < CUT) return x;
    }
}

/* v below the squeeze: the alternating series decides */
static NOINLINE int series_accepts(double x, double v) {
    const double decay = x < CUT ? 2 / x : 0.5 * PI * PI * x;
    double sum = 0;
    for (int n = 1;; ++n) {
        const double term = (2 * n + 1) * exp(-decay * n * (n + 1.0));
        if (n % 2 == 1) {
            sum += term;
            if (v >= sum) return 1;
        } else {
            sum -= term;
            if (v < sum) return 0;
        }
    }
}

void polya_gamma_fill(const struct polya_gamma *distribution, struct rng *rng, int m,
                      const double *tilt, double *out) {
    for (int i = 0; i < m; ++i) {
        const double z = 0.5 * fabs(tilt[i]);
        double x, v;
        do {
            if (is_right(distribution, z, rng_uniform(rng)))
                x = CUT + rng_exponential(rng) / right_rate(z);
            else
                x = draw_left(rng, z);
            v = rng_uniform(rng);
        } while (v < SQUEEZE && !series_accepts(x, v));
        out[i] = 0.25 * x;
    }
}
