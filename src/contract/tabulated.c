/* Noise whose density is given at points. Between two of them the log density is linear, or the
 * density itself where it is 0 at one of them. Where a point is repeated the density jumps; there
 * it has the larger value. Beyond the points it falls exponentially, or is 0.
 *
 * Where noise is impossible the log density is finite, and falls with the distance from the
 * points: so energies can be subtracted, and chains that start there find their way out. Chains do
 * not come back, as exp(-TABULATED_IMPOSSIBLE) is 0; R refuses draws that are still there.
 *
 * Cost: a binary search.
 */
#include "contract/tabulated.h"

/* of the log density where noise is impossible, per unit of its scale */
static const double WAY_OUT = 1e3;

/* Noise as near to a point as rounding is the point. */
static const double SAME = 1e-12;

static double beyond(double end, double slope, double distance) {
    return slope < 0 ? -TABULATED_IMPOSSIBLE - WAY_OUT * distance : end - slope * distance;
}

/* The first of `size` points that is not below the noise, or the last. */
static int first_above(const double *point, int size, double noise) {
    int low = 0;
    for (int left = size - 1; left > 0;) { /* without branches: no one could foretell them */
        const int half = (left + 1) / 2;
        low += point[low + half - 1] < noise ? half : 0;
        left -= half;
    }
    return low;
}

double tabulated_log(const double *table, double noise) {
    const int size = (int)table[0], last = size - 1;
    const double *point = table + 3, *value = point + size;
    const double close = SAME * fabs(noise);
    int k = first_above(point, size, noise - close);
    if (fabs(point[k] - noise) <= close) {
        double most = value[k];
        while (++k < size && point[k] - noise <= close) most = fmax(most, value[k]);
        return most;
    }
    if (k == 0) return beyond(value[0], table[1], point[0] - noise);
    if (noise > point[last]) return beyond(value[last], table[2], noise - point[last]);
    const double left = value[k - 1], right = value[k];
    const double share = (noise - point[k - 1]) / (point[k] - point[k - 1]);
    if (left == right) return left;
    if (left == -TABULATED_IMPOSSIBLE) return right + log(share);
    if (right == -TABULATED_IMPOSSIBLE) return left + log1p(-share);
    return left + share * (right - left);
}
