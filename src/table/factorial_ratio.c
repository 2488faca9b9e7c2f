/* Ratios of factorials of the counts of a table; see table/theta_nuts.c. */
#include "table/table.h"

/* log n! less its leading terms (n + 1/2) log n - n, for n >= CELL_TABLE */
static double remainder_of(double n) { return (1 - 1 / (30 * n * n)) / (12 * n); }

double table_log_factorial(const struct table *s, double n) {
    const double constant = 0.91893853320467274178; /* log(2 pi) / 2 */
    if (n < CELL_TABLE) return s->log_factorial[(int)n];
    return (n + 0.5) * log(n) - n + constant + remainder_of(n);
}

double table_log_factorial_ratio(const struct table *s, double from, double to) {
    if (from < CELL_TABLE || to < CELL_TABLE)
        return table_log_factorial(s, to) - table_log_factorial(s, from);
    const double by = to - from;
    return (to + 0.5) * log1p(by / from) + by * (log(from) - 1) + remainder_of(to) -
           remainder_of(from);
}
