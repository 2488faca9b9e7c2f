#ifndef NOISEAWARE_TOTALS_MEAN_SD_RIDGE_H
#define NOISEAWARE_TOTALS_MEAN_SD_RIDGE_H

/* Where the mean of normal records is most likely to be given their standard deviation; see
 * totals/mean_sd_ridge.c. A column has BEND_FIRST, BEND_STEP, then BEND_KNOTS values and as many
 * slopes. */
enum { BEND_FIRST, BEND_STEP, BEND_VALUES, BEND_KNOTS = 64, BEND_ROWS = 2 + 2 * BEND_KNOTS };

/* The mean at x, the log of the standard deviation, and its slope in x. */
double totals_bend(const double *column, double x, double *slope);

#endif
