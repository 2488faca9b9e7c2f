/* Gamma variables with mean 1 whose shape changes: G becomes T(G), where T is an increasing map
 * that approximately preserves probabilities: through cube roots by Wilson & Hilferty (1931, PNAS
 * 17), or for wide distributions through their lower tails. Let h be the density of T(G) and f the
 * new density. T(G) is kept with probability min(1, f / h), otherwise G' is drawn from f until one
 * is kept, with probability 1 - min(1, h / f). This is a maximal coupling of T(G) and G', the same
 * when old and new change places, so that a move is reversible as with quantiles, which take
 * twenty times as long.
 *
 * Cost: two logarithms and a root or exponential function, and at most one draw in expectation.
 */
#include "model/gamma_shape.h"

#include "base/core.h"
#include "base/dist.h"

#include <Rmath.h>

/* shapes below which cube roots are far from normal */
static const double WIDE_SHAPE = 1;

/* Draws that are not kept; so many where old and new cannot be distinguished, but for rounding. */
enum { MOST_DRAWS = 1000000 };

double gamma_shape_constant(double shape) {
    enum { LARGE = 16 };
    if (shape < LARGE) return shape * (log(shape) - 1) - Rf_lgammafn(shape);
    return 0.5 * log(shape) - M_LN_SQRT_2PI - stirling_rest(shape);
}

double gamma_shape_draw(struct rng *rng, double shape) {
    return fmax(dist_gamma(rng, shape) / shape, GAMMA_LEAST);
}

static struct gamma_shape_map map_between(double from, double to) {
    struct gamma_shape_map t = {.from = from, .to = to, .wide = fmin(from, to) < WIDE_SHAPE};
    t.from_constant = gamma_shape_constant(from);
    t.to_constant = gamma_shape_constant(to);
    if (t.wide) {
        /* small probabilities are (from g)^from / Gamma(from + 1) */
        t.slope = from / to;
        t.shift = (from * log(from) + Rf_lgammafn(to + 1) - Rf_lgammafn(from + 1)) / to - log(to);
    } else {
        t.slope = sqrt(from / to);
        t.shift = 1 - 1 / (9 * to) - t.slope * (1 - 1 / (9 * from));
    }
    t.log_slope = log(t.slope);
    return t;
}

struct gamma_shape_move gamma_shape_move(double from, double to) {
    return (struct gamma_shape_move){map_between(from, to), map_between(to, from)};
}

/* Returns by how much the log density at the place exceeds that of what the map brings there. */
static double map_shape(const struct gamma_shape_map *t, double g, double *g_new) {
    const double log_g = log(g);
    double excess = t->log_slope, log_new;
    if (t->wide) {
        log_new = t->slope * log_g + t->shift;
        *g_new = exp(log_new);
    } else {
        const double root = t->slope * cbrt(g) + t->shift;
        if (!(root > 0)) return -INFINITY;
        *g_new = root * root * root;
        log_new = 3 * log(root);
        excess += (log_g - log_new) / 3;
    }
    return excess + t->to_constant + t->to * (log_new - (*g_new - 1)) - t->from_constant -
           t->from * (log_g - (g - 1));
}

double gamma_shape_carry(const struct gamma_shape_move *move, struct rng *rng, double g) {
    double fresh = g, back;
    if (-rng_exponential(rng) < map_shape(&move->forth, g, &fresh)) return fmax(fresh, GAMMA_LEAST);
    for (int i = 0; i < MOST_DRAWS; ++i) {
        fresh = gamma_shape_draw(rng, move->forth.to);
        if (rng_exponential(rng) < -map_shape(&move->back, fresh, &back)) break;
    }
    return fresh;
}
