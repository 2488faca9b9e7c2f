/* Moments computed from innovations by a Cholesky factor, if there is no better way: the totals
 * over n records are
 *
 *   n mean(theta) + sqrt(n) L(theta) u,   L L' = cov(theta), u standard normal.
 *
 * The covariance may be singular, since counts add up to n: a pivot that is negligible relative to
 * its diagonal leaves a column of zeros, so that L is smooth in theta as long as the same linear
 * combinations are constant. Unreleased components are left out.
 *
 * Slopes: with f = r'total, and S the covariance, dL/dS is followed back through the factorisation
 * (Smith 1995, "Differentiation of the Cholesky algorithm"), dmean and dS in theta are the
 * moments' own slopes, or central differences.
 *
 * Cost: an evaluation and size^3 / 3 multiplications a total, as many its slopes, and there two
 * evaluations for each coordinate of theta that moves where the moments have no slopes.
 */
#include "clt/cholesky_innovations.h"

#include "base/linalg.h"

/* A pivot of less than this share of its diagonal is rounding error. */
static const double ROUNDING = 1e-9;

struct factored {
    struct record_moments of;
    int moving;
    const int *moves; /* coordinates of theta that move */
    int parameters;
    double *mean, *cov;   /* released and aside */
    double *chol;         /* of the released */
    double *theta;        /* theta, of which one coordinate is moved */
    double *slope, *back; /* slopes in L, in S */
    double *weight;       /* of the means */
};

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct factored *s = self;
    const int size = s->of.released, wide = size + s->of.aside;
    const int status = s->of.class->eval(s->of.self, theta, s->mean, s->cov);
    if (status != PLUGIN_OK) return status;
    for (int i = 0; i < size; ++i) {
        mean[i] = s->mean[i];
        memcpy(cov + (size_t)i * size, s->cov + (size_t)i * wide, (size_t)size * sizeof(double));
    }
    return PLUGIN_OK;
}

/* rows of the lower triangle; NaN where there is none */
static void factor(struct factored *s) {
    const int size = s->of.released, wide = size + s->of.aside;
    for (int i = 0; i < size; ++i) {
        double *row = s->chol + (size_t)i * size;
        const double *cov = s->cov + (size_t)i * wide;
        for (int j = 0; j <= i; ++j) {
            const double *other = s->chol + (size_t)j * size;
            const double rest = cov[j] - linalg_dot(j, row, other);
            if (j < i)
                row[j] = other[j] > 0 ? rest / other[j] : 0;
            else
                row[j] = rest > ROUNDING * cov[i] ? sqrt(rest) : 0;
        }
    }
}

static void from_innovations(void *self, const double *theta, double n, const double *u,
                             double *total) {
    struct factored *s = self;
    const int size = s->of.released;
    if (s->of.class->eval(s->of.self, theta, s->mean, s->cov) != PLUGIN_OK) s->mean[0] = NAN;
    factor(s);
    memcpy(s->theta, theta, (size_t)s->parameters * sizeof(double));
    for (int i = 0; i < size; ++i)
        total[i] = n * s->mean[i] + sqrt(n) * linalg_dot(i + 1, s->chol + (size_t)i * size, u);
}

static void pull(void *self, double weight, const double *r, double *u) {
    struct factored *s = self;
    const int size = s->of.released;
    for (int i = 0; i < size; ++i) {
        const double *row = s->chol + (size_t)i * size;
        for (int j = 0; j <= i; ++j) u[j] += weight * r[i] * row[j];
    }
}

/* The slopes in L become those in the lower triangle of S. */
static void pull_factor(struct factored *s) {
    const int size = s->of.released;
    for (int j = size - 1; j >= 0; --j) {
        const double *pivot_row = s->chol + (size_t)j * size;
        double *pivot_slope = s->slope + (size_t)j * size;
        const double pivot = pivot_row[j];
        for (int i = j; i < size; ++i) s->back[(size_t)i * size + j] = 0;
        if (!(pivot > 0)) continue;
        for (int i = size - 1; i > j; --i) {
            const double *row = s->chol + (size_t)i * size;
            double *slope = s->slope + (size_t)i * size;
            const double back = slope[j] / pivot;
            s->back[(size_t)i * size + j] = back;
            pivot_slope[j] -= back * row[j];
            for (int k = 0; k < j; ++k) {
                slope[k] -= back * pivot_row[k];
                pivot_slope[k] -= back * row[k];
            }
        }
        const double back = 0.5 * pivot_slope[j] / pivot;
        s->back[(size_t)j * size + j] = back;
        for (int k = 0; k < j; ++k) pivot_slope[k] -= 2 * back * pivot_row[k];
    }
}

/* f at the moments of s->theta, but for a constant */
static double linear_form(struct factored *s, double n, const double *r) {
    const int size = s->of.released, wide = size + s->of.aside;
    if (s->of.class->eval(s->of.self, s->theta, s->mean, s->cov) != PLUGIN_OK) return NAN;
    double sum = n * linalg_dot(size, r, s->mean);
    for (int i = 0; i < size; ++i)
        sum += linalg_dot(i + 1, s->back + (size_t)i * size, s->cov + (size_t)i * wide);
    return sum;
}

static void gradient(void *self, double n, const double *u, const double *r, double *out) {
    static const double STEP = 1e-5;
    struct factored *s = self;
    const int size = s->of.released;
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j) s->slope[(size_t)i * size + j] = sqrt(n) * r[i] * u[j];
    pull_factor(s);
    if (s->of.class->slopes && s->of.aside == 0) {
        for (int i = 0; i < size; ++i) s->weight[i] = n * r[i];
        s->of.class->slopes(s->of.self, s->theta, s->weight, s->back, out);
        return;
    }
    for (int k = 0; k < s->moving; ++k) {
        const int at = s->moves[k];
        const double here = s->theta[at], step = STEP * (1 + fabs(here));
        s->theta[at] = here + step;
        const double above = linear_form(s, n, r);
        s->theta[at] = here - step;
        out[at] += (above - linear_form(s, n, r)) / (2 * step);
        s->theta[at] = here;
    }
}

static double outside(void *self, const double *theta) {
    struct factored *s = self;
    return s->of.class->outside ? s->of.class->outside(s->of.self, theta) : 0;
}

static const struct record_moments_class factored_class = {
    .name = "factored",
    .eval = eval,
    .from_innovations = from_innovations,
    .pull = pull,
    .gradient = gradient,
    .outside = outside,
};

void moments_factored(const struct record_moments *of, const struct model *model,
                      struct record_moments *moments) {
    struct factored *s = plugin_memory(1, sizeof *s);
    const size_t size = (size_t)of->released, wide = size + (size_t)of->aside;
    s->of = *of;
    s->moving = model->moving;
    s->moves = model->moves;
    s->parameters = model->parameters;
    DOUBLES(wide, &s->mean, &s->weight);
    s->cov = doubles(wide * wide);
    DOUBLES(size * size, &s->chol, &s->slope, &s->back);
    s->theta = doubles((size_t)model->parameters);
    memset(moments, 0, sizeof *moments);
    moments->class = &factored_class;
    moments->self = s;
    moments->released = moments->innovations = of->released;
}
