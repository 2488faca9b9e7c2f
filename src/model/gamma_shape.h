#ifndef NOISEAWARE_MODEL_GAMMA_SHAPE_H
#define NOISEAWARE_MODEL_GAMMA_SHAPE_H

#include "base/rng.h"

/* Gamma variables of mean 1: G ~ Gamma(shape, shape). See model/gamma_shape.c. */

/* what is smaller is this */
static const double GAMMA_LEAST = 1e-300;

/* log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, of x that are not small */
static inline double stirling_rest(double x) {
    const double r = 1 / (x * x);
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - r / 1680) * r) * r) / x;
}

/* shape (log shape - 1) - log Gamma(shape): the log density of log g is that plus
 * shape (log g - g + 1). */
double gamma_shape_constant(double shape);

double gamma_shape_draw(struct rng *rng, double shape);

/* From one shape to another: log g goes to a place where the distribution is about as far along. */
struct gamma_shape_map {
    double from, to;
    double from_constant, to_constant; /* of the densities of log g */
    int wide;
    double slope, shift, log_slope; /* of g^(1/3), or of log g where the distributions are wide */
};

struct gamma_shape_move {
    struct gamma_shape_map forth, back;
};

struct gamma_shape_move gamma_shape_move(double from, double to);
/* The G of the new shape that has the innovation of g. */
double gamma_shape_carry(const struct gamma_shape_move *move, struct rng *rng, double g);

#endif
