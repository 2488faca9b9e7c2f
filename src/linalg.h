#ifndef NOISEAWARE_LINALG_H
#define NOISEAWARE_LINALG_H

#include "core.h"

/* Square matrices are n x n, row-major, lower triangle used. */

/* a = L L', L over a's lower triangle. Returns 0, or 1 + the index of the
 * first pivot that is not positive. */
int linalg_cholesky(int n, double *a);

/* x = L^-1 x and x = L^-T x. */
void linalg_forward(int n, const double *l, double *x);
void linalg_backward(int n, const double *l, double *x);

/* (x - centre)' a (x - centre), a full. */
double linalg_quadratic(int n, const double *a, const double *x, const double *centre);

/* Smallest eigenvalue of a full symmetric matrix, which is destroyed. NaN
 * if an entry is not finite. */
double linalg_least_eigenvalue(int n, double *a);

#endif
