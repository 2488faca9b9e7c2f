/* Priors of a standard deviation sigma, in the coordinate u = log sigma with its Jacobian:
 *
 *   inverse gamma, of sigma^2     -2 a u - b exp(-2u)
 *   half-normal                   u - t^2 / 2,                        t = sigma / b
 *   half-t                        u - (a + 1) / 2 log(1 + t^2 / a)
 *   exponential                   u - b sigma
 *   log-normal                    -((u - a) / b)^2 / 2
 *
 * The first is conjugate to normal residuals; under the others u given residuals is
 * slice-sampled.
 *
 * In u all but the last have a long tail on the left and are steep on the right, so no step size
 * suits both. In x, with h the positive number that a half-normal one exceeds as often as a
 * standard normal one exceeds x, 2 (1 - Phi(h)) = 1 - Phi(x), and
 *
 *   t = h,                           half-normal, and exponential with t = b sigma
 *   t = sqrt(a (exp(h^2 / a) - 1))   half-t (Wallace 1959: the normal deviate of a t, about),
 *
 * the half-normal prior is standard normal, the half-t prior approximately, and the exponential
 * prior except for its right tail. */
#include "model/scale_prior.h"

#include "base/dist.h"
#include "base/slice.h"

#include <Rmath.h>

int scale_prior_read(const struct fields *fields, struct scale_prior *prior) {
    static const struct {
        const char *name;
        enum scale_prior_kind kind;
        int length;
    } KNOWN[] = {{"sigma_inverse_gamma", SCALE_INVERSE_GAMMA, 2},
                 {"sigma_half_normal", SCALE_HALF_NORMAL, 1},
                 {"sigma_half_t", SCALE_HALF_T, 2},
                 {"sigma_exponential", SCALE_EXPONENTIAL, 1},
                 {"sigma_lognormal", SCALE_LOGNORMAL, 2}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; ++i) {
        const double *value = fields_vector(fields, KNOWN[i].name, KNOWN[i].length);
        if (!value) continue;
        *prior = (struct scale_prior){
            .kind = KNOWN[i].kind, .a = value[0], .b = value[KNOWN[i].length - 1]};
        return PLUGIN_OK;
    }
    return PLUGIN_BAD_FIELDS;
}

static double draw_inverse_gamma(struct rng *rng, double shape, double rate) {
    return 0.5 * log(rate / dist_gamma(rng, shape));
}

double scale_prior_draw(const struct scale_prior *prior, struct rng *rng) {
    switch (prior->kind) {
    case SCALE_HALF_NORMAL:
        return log(prior->b * fabs(rng_normal(rng)));
    case SCALE_HALF_T:
        return log(prior->b * fabs(rng_normal(rng))) -
               0.5 * (log(2 / prior->a) + dist_log_gamma(rng, 0.5 * prior->a));
    case SCALE_EXPONENTIAL:
        return log(rng_exponential(rng) / prior->b);
    case SCALE_LOGNORMAL:
        return prior->a + prior->b * rng_normal(rng);
    case SCALE_INVERSE_GAMMA:
        break;
    }
    return draw_inverse_gamma(rng, prior->a, prior->b);
}

double scale_prior_density(const struct scale_prior *prior, double u, double *derivative) {
    const double a = prior->a, b = prior->b, sigma = exp(u), t = sigma / b;
    double log_density = 0, slope = 0;
    switch (prior->kind) {
    case SCALE_HALF_NORMAL:
        log_density = u - 0.5 * t * t;
        slope = 1 - t * t;
        break;
    case SCALE_HALF_T:
        log_density = u - 0.5 * (a + 1) * log1p(t * t / a);
        slope = 1 - (a + 1) / (1 + a / (t * t));
        break;
    case SCALE_EXPONENTIAL:
        log_density = u - b * sigma;
        slope = 1 - b * sigma;
        break;
    case SCALE_LOGNORMAL:
        slope = -(u - a) / (b * b);
        log_density = 0.5 * (u - a) * slope;
        break;
    case SCALE_INVERSE_GAMMA:
        log_density = -2 * a * u - b * exp(-2 * u);
        slope = -2 * a + 2 * b * exp(-2 * u);
        break;
    }
    if (derivative) *derivative = slope;
    return log_density;
}

/* Below it h is a series in Phi(x), of which terms from the fourth power on are left out. */
static const double LEFT = -3;

/* Above it 1 - Phi(x) is about to underflow, and about exp(-x^2 / 2) but for a factor that h
 * shares. */
static const double RIGHT = 37;

static const double LOG_ROOT_HALF_PI = 0.225791352644727432363;

static double log_unit(const struct scale_prior *prior) {
    return prior->kind == SCALE_EXPONENTIAL ? -log(prior->b) : log(prior->b);
}

/* of h */
static struct scale_place half_normal_place(double x) {
    struct scale_place at;
    if (x > RIGHT) {
        const double square = x * x + 2 * M_LN2, slope = x / square;
        return (struct scale_place){0.5 * log(square), sqrt(square), slope, 1 / x - 2 * slope};
    }
    if (x < LEFT) {
        const double log_p = Rf_pnorm5(x, 0, 1, 1, 1), p = exp(log_p);
        at.log_sd = LOG_ROOT_HALF_PI + log_p + log1p(M_PI / 12 * p * p);
    } else {
        const double left = Rf_pnorm5(x, 0, 1, 0, 0);
        at.log_sd = log(Rf_qnorm5(0.5 * left, 0, 1, 0, 0));
    }
    const double h = at.sd = exp(at.log_sd), slope = 0.5 * exp(0.5 * (h * h - x * x) - at.log_sd);
    at.slope = slope;
    at.bend = h * h * slope - x - slope;
    return at;
}

struct scale_place scale_prior_place(const struct scale_prior *prior, double x) {
    struct scale_place at = half_normal_place(x);
    if (prior->kind == SCALE_HALF_T) {
        const double a = prior->a, h = at.sd, g = h * h / a, rest = -expm1(-g);
        /* t = h sqrt(e^g / by); 1 where g is 0 */
        const double by = g > 0 ? g / rest : 1;
        at.log_sd += 0.5 * (g - log(by));
        at.bend += at.slope * (2 - 2 * by * (1 - rest));
        at.slope *= by;
    }
    at.log_sd += log_unit(prior);
    at.sd = exp(at.log_sd);
    return at;
}

double scale_prior_coordinate(const struct scale_prior *prior, double u) {
    static const double SMALL = 1e-4;
    const double log_h = u - log_unit(prior);
    double h = exp(log_h);
    if (prior->kind == SCALE_HALF_T && h > SMALL) h = sqrt(prior->a * log1p(h * h / prior->a));
    if (h > RIGHT) return sqrt(h * h - 2 * M_LN2);
    if (h > SMALL) return Rf_qnorm5(2 * Rf_pnorm5(h, 0, 1, 0, 0), 0, 1, 0, 0);
    return Rf_qnorm5(log_h - LOG_ROOT_HALF_PI, 0, 1, 1, 1);
}

struct residuals {
    const struct scale_prior *prior;
    double n, square;
};

static double log_conditional(void *self, const double *u) {
    const struct residuals *of = self;
    return scale_prior_density(of->prior, *u, NULL) - of->n * *u - 0.5 * of->square * exp(-2 * *u);
}

double scale_prior_update(const struct scale_prior *prior, double n, double square, struct rng *rng,
                          double u) {
    if (prior->kind == SCALE_INVERSE_GAMMA)
        return draw_inverse_gamma(rng, prior->a + 0.5 * n, prior->b + 0.5 * square);
    struct residuals residuals = {.prior = prior, .n = n, .square = square};
    const int first = 0;
    const double width = 2 / sqrt(1 + n); /* about three standard deviations */
    slice_sweep(1, &first, &width, log_conditional, &residuals, rng, &u);
    return u;
}
