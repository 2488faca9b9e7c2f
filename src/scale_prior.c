/* Priors of a standard deviation sigma, in the coordinate u = log sigma with its Jacobian:
 *
 *   inverse gamma, of sigma^2     -2 a u - b exp(-2u)
 *   half-normal                   u - t^2 / 2,                        t = sigma / b
 *   half-t                        u - (a + 1) / 2 log(1 + t^2 / a)
 *   exponential                   u - b sigma
 *
 * The first is conjugate to normal residuals; under the others u given residuals is
 * slice-sampled.
 *
 * In u these have a long tail on the left and are steep on the right, so that a step that is short
 * enough for the one is too short for the other. In x, with h = log(1 + exp(x)) and
 *
 *   t = h,                           half-normal, and exponential with t = b sigma
 *   t = sqrt(a (exp(h^2 / a) - 1))   half-t (Wallace 1959: the normal deviate of a t, about),
 *
 * sigma falls off exponentially on the left, and the right is that of a standard normal
 * distribution, or of an exponential one. */
#include "scale_prior.h"

#include "dist.h"
#include "slice.h"

int scale_prior_read(const struct fields *fields, struct scale_prior *prior) {
    static const struct {
        const char *name;
        enum scale_prior_kind kind;
        int length;
    } KNOWN[] = {{"sigma_inverse_gamma", SCALE_INVERSE_GAMMA, 2},
                 {"sigma_half_normal", SCALE_HALF_NORMAL, 1},
                 {"sigma_half_t", SCALE_HALF_T, 2},
                 {"sigma_exponential", SCALE_EXPONENTIAL, 1}};
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
    case SCALE_INVERSE_GAMMA:
        log_density = -2 * a * u - b * exp(-2 * u);
        slope = -2 * a + 2 * b * exp(-2 * u);
        break;
    }
    if (derivative) *derivative = slope;
    return log_density;
}

/* below it h is exp(x) to the last digit */
static const double FAR_LEFT = -37;

static double log_unit(const struct scale_prior *prior) {
    return prior->kind == SCALE_EXPONENTIAL ? -log(prior->b) : log(prior->b);
}

struct scale_place scale_prior_place(const struct scale_prior *prior, double x) {
    const double a = prior->a, unit = log_unit(prior), small = exp(-fabs(x));
    if (x < FAR_LEFT) return (struct scale_place){unit + x, exp(unit + x), 1, 0};
    const double h = fmax(x, 0) + log1p(small), slope = (x > 0 ? 1 : small) / (1 + small);
    struct scale_place at = {log(h), 0, slope / h, 1 - slope - slope / h};
    if (prior->kind == SCALE_HALF_T) {
        const double g = h * h / a, rest = -expm1(-g);
        at.log_sd = 0.5 * (log(a) + g + log(rest));
        at.slope = slope * h / (a * rest);
        at.bend = 1 - slope + slope * (1 / h - 2 * h / a * (1 - rest) / rest);
    }
    at.log_sd += unit;
    at.sd = exp(at.log_sd);
    return at;
}

double scale_prior_coordinate(const struct scale_prior *prior, double u) {
    const double log_t = u - log_unit(prior);
    if (log_t < FAR_LEFT) return log_t;
    double h = exp(log_t);
    if (prior->kind == SCALE_HALF_T) h = sqrt(prior->a * log1p(h * h / prior->a));
    return h + log(-expm1(-h));
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
