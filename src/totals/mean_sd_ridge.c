/* The most likely mean of normal records given their standard deviation.
 *
 * Some releases determine a function of mean and standard deviation much more precisely than
 * either of them: a noisy sum of squares about a distant point, and a sum that bounds clamp, with
 * or without squares. The two parameters then lie in a narrow, bent band, along which steps would
 * be short. Coordinates of the mean as the distance from the band (totals/normal_coordinates.c)
 * make it straight.
 *
 * The band is given by its values and slopes at knots that are equally spaced in the log of the
 * standard deviation: cubic pieces between them, straight lines beyond (R/engine_totals_bend.R).
 */
#include "totals/mean_sd_ridge.h"

#include <math.h>

double totals_bend(const double *column, double x, double *slope) {
    const double *value = column + BEND_VALUES, *rise = value + BEND_KNOTS;
    const double step = column[BEND_STEP], at = (x - column[BEND_FIRST]) / step;
    const int last = BEND_KNOTS - 1;
    if (!isfinite(at)) return *slope = 0;
    if (!(at > 0 && at < last)) {
        const int end = at > 0 ? last : 0;
        *slope = rise[end];
        return value[end] + (at - end) * step * rise[end];
    }
    const int k = (int)at;
    const double t = at - k, from = value[k], by = value[k + 1] - from;
    const double a = rise[k] * step, b = rise[k + 1] * step;
    /* Hermite's cubic: from + t (a + t (3 by - 2 a - b + t (a + b - 2 by))) */
    const double second = 3 * by - 2 * a - b, third = a + b - 2 * by;
    *slope = (a + t * (2 * second + t * 3 * third)) / step;
    return from + t * (a + t * (second + t * third));
}
