/* Slice sampling coordinate by coordinate (Neal 2003, Annals of Statistics 31, figures 3 and 5:
 * stepping out within a limit, then shrinkage). Leaves any density invariant, including truncated
 * ones, without tuning. For the rare update from whose distribution it is impossible to draw
 * directly. Cost: about ten densities a coordinate. */
#include "base/slice.h"

enum { MOST_STEPS = 32 };

void slice_sweep(int count, const int *which, const double *width,
                 double (*log_density)(void *self, const double *theta), void *self,
                 struct rng *rng, double *theta) {
    for (int k = 0; k < count; ++k) {
        double *at = theta + which[k];
        const double old = *at, level = log_density(self, theta) - rng_exponential(rng);
        double left = old - width[k] * rng_uniform(rng), right = left + width[k];
        int steps_left = (int)(MOST_STEPS * rng_uniform(rng));
        int steps_right = MOST_STEPS - 1 - steps_left;
        for (*at = left; steps_left > 0 && log_density(self, theta) > level; --steps_left)
            *at = left -= width[k];
        for (*at = right; steps_right > 0 && log_density(self, theta) > level; --steps_right)
            *at = right += width[k];
        for (;;) {
            *at = left + rng_uniform(rng) * (right - left);
            if (log_density(self, theta) > level) break;
            if (*at < old)
                left = *at;
            else
                right = *at;
            if (!(right - left > 1e-14 * (fabs(left) + fabs(right)))) {
                *at = old; /* rounding leaves no room */
                break;
            }
        }
    }
}
