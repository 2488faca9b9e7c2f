/* Moments "expfam": of (t, c), a released statistic and the statistic c of a family
 * of one number given by R functions (r/model_expfam.c).
 *
 * They are integrals over the support, cut at the bounds of the release, at
 * the mode of the density and at points about it, so that R's adaptive rules
 * (QUADPACK) find the mass. Products are measured from the values at the mode.
 *
 * Every integrand of a theta needs the density and the components at the same
 * nodes: what R's functions gave there is kept, so that an evaluation costs a
 * few calls to R for each piece, not some for each integral.
 */
#include "contract/registry.h"
#include "r/custom.h"

#include <R_ext/Applic.h>

/* QUADPACK's subintervals, and its longest vector of nodes */
enum { LIMIT = 100, MOST_NODES = 30, MOST_KEPT = 128, MOST_CUTS = 8 };

/* nodes, and there the density and every component, less its reference */
struct nodes {
    int count;
    double *x, *value;
};

struct integrals {
    int parameters, released, components, cuts;
    const double *cut, *support;
    SEXP evaluate, log_density, project;
    double *reference, *projected;
    double *piece_end; /* of the current theta */
    SEXP theta;
    double peak; /* log density at the mode */
    struct nodes kept[MOST_KEPT];
    int used;
    int first, second; /* the integrand: product of these components, -1 for 1 */
    double *work;
    int *iwork;
};

static SEXP call_user_function(SEXP function, int n, const double *x, SEXP theta) {
    SEXP nodes = PROTECT(custom_vector(n, x));
    SEXP call = PROTECT(Rf_lang3(function, nodes, theta));
    SEXP value = Rf_eval(call, R_GlobalEnv);
    UNPROTECT(2);
    return value;
}

static const struct nodes *at_nodes(struct integrals *s, int n, const double *x) {
    for (int k = 0; k < s->used && k < MOST_KEPT; ++k)
        if (s->kept[k].count == n && memcmp(s->kept[k].x, x, (size_t)n * sizeof(double)) == 0)
            return s->kept + k;
    /* a full store overwrites its last entry */
    struct nodes *nodes = s->kept + (s->used < MOST_KEPT ? s->used++ : MOST_KEPT - 1);
    SEXP value = PROTECT(call_user_function(s->evaluate, n, x, s->theta));
    nodes->count = n;
    memcpy(nodes->x, x, (size_t)n * sizeof(double));
    const double *in = REAL(value);
    for (int i = 0; i < n; ++i) nodes->value[i] = exp(in[i] - s->peak);
    for (int j = 0; j < s->components; ++j)
        for (int i = 0; i < n; ++i)
            nodes->value[(size_t)(j + 1) * MOST_NODES + i] =
                in[(size_t)(j + 1) * n + i] - s->reference[j];
    UNPROTECT(1);
    return nodes;
}

static void integrand(double *x, int n, void *self) {
    struct integrals *s = self;
    const struct nodes *nodes = at_nodes(s, n, x);
    const double *density = nodes->value;
    const double *a = s->first < 0 ? NULL : density + (size_t)(s->first + 1) * MOST_NODES;
    const double *b = s->second < 0 ? NULL : density + (size_t)(s->second + 1) * MOST_NODES;
    for (int i = 0; i < n; ++i) {
        /* nothing where the density underflows: a component may overflow there */
        double value = density[i];
        if (value > 0 && a) value *= a[i];
        if (value > 0 || value < 0) value *= b ? b[i] : 1;
        x[i] = value;
    }
}

/* of the integrand over all pieces; NaN if a rule fails */
static double integrate(struct integrals *s, int pieces) {
    double sum = 0;
    for (int k = 0; k < pieces; ++k) {
        double low = s->piece_end[k], high = s->piece_end[k + 1];
        double absolute = 1e-13, relative = 1e-9, result, error;
        int evaluations, failure, limit = LIMIT, length = 4 * LIMIT, last;
        if (isfinite(low) && isfinite(high)) {
            Rdqags(integrand, s, &low, &high, &absolute, &relative, &result, &error, &evaluations,
                   &failure, &limit, &length, &last, s->iwork, s->work);
        } else {
            double bound = isfinite(low) ? low : isfinite(high) ? high : 0;
            int ends = isfinite(low) ? 1 : isfinite(high) ? -1 : 2;
            Rdqagi(integrand, s, &bound, &ends, &absolute, &relative, &result, &error, &evaluations,
                   &failure, &limit, &length, &last, s->iwork, s->work);
        }
        if (failure != 0 && !(error <= 1e-6 * fabs(result) + 1e-9)) return NAN;
        sum += result;
    }
    return sum;
}

/* A point of the support at u in (0, 1): evenly over an interval, from 1e-12 to
 * 1e12 in distance where it is endless. */
static double support_point(const double *support, double u) {
    const double low = support[0], high = support[1];
    if (isfinite(low) && isfinite(high)) return low + u * (high - low);
    if (isfinite(low)) return low + pow(10, 24 * u - 12);
    if (isfinite(high)) return high - pow(10, 12 - 24 * u);
    return u < 0.5 ? -pow(10, 12 - 48 * u) : pow(10, 48 * u - 36);
}

/* Where the density is largest, by grids within grids, and about how far from
 * there its logarithm has fallen by 2, to either side. On a half-line it is the
 * density of the logarithm of the distance from the end: that has a peak where
 * the density itself has a pole. */
enum { GRID = 101 };

static void log_heights(const struct integrals *s, const double *x, double *height) {
    const int from_low = isfinite(s->support[0]), half = from_low != isfinite(s->support[1]);
    SEXP value = PROTECT(call_user_function(s->log_density, GRID, x, s->theta));
    for (int i = 0; i < GRID; ++i)
        height[i] = REAL(value)[i] + (half ? log(fabs(x[i] - s->support[from_low ? 0 : 1])) : 0);
    UNPROTECT(1);
}

static int find_mode(const struct integrals *s, double *mode, double *left, double *right) {
    double grid[GRID], height[GRID], from = 0, to = 1, peak = 0;
    for (int round = 0; round < 5; ++round) {
        int best = -1;
        for (int i = 0; i < GRID; ++i)
            grid[i] = support_point(s->support, from + (to - from) * (i + 0.5) / GRID);
        log_heights(s, grid, height);
        for (int i = 0; i < GRID; ++i)
            if (isfinite(height[i]) && (best < 0 || height[i] > height[best])) best = i;
        if (best < 0) return 0;
        peak = height[best];
        *mode = grid[best];
        const double step = (to - from) / GRID, at = from + step * (best + 0.5);
        from = at - 1.5 * step > 0 ? at - 1.5 * step : 0;
        to = at + 1.5 * step < 1 ? at + 1.5 * step : 1;
    }
    for (int side = 0; side <= 1; ++side) {
        const double end = s->support[side];
        double reach = isfinite(end) ? fabs(end - *mode) : 1e12;
        for (int i = 0; i < GRID; ++i, reach *= 0.6)
            grid[i] = *mode + (side ? 0.999 : -0.999) * reach;
        log_heights(s, grid, height);
        int near = 0;
        while (near < GRID - 1 && !(height[near] > peak - 2)) ++near;
        *(side ? right : left) = fabs(grid[near] - *mode);
    }
    return 1;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int set_pieces(struct integrals *s, double mode, double left, double right) {
    const double candidates[MOST_CUTS] = {s->support[0],    s->support[1],    mode,
                                          mode - left,      mode + right,     mode - 4 * left,
                                          mode + 4 * right, mode + 16 * right};
    double *end = s->piece_end;
    int count = 0;
    for (int k = 0; k < MOST_CUTS + s->cuts; ++k) {
        const double at = k < MOST_CUTS ? candidates[k] : s->cut[k - MOST_CUTS];
        if (at >= s->support[0] && at <= s->support[1]) end[count++] = at;
    }
    qsort(end, (size_t)count, sizeof *end, compare);
    int unique = 1;
    for (int k = 1; k < count; ++k)
        if (end[k] > end[unique - 1]) end[unique++] = end[k];
    return unique - 1;
}

static int all_moments(struct integrals *s, double *mean, double *cov) {
    const int w = s->components;
    double mode, left, right;
    if (!find_mode(s, &mode, &left, &right)) return PLUGIN_NUMERICAL;
    SEXP value = PROTECT(call_user_function(s->evaluate, 1, &mode, s->theta));
    s->peak = REAL(value)[0];
    memcpy(s->reference, REAL(value) + 1, (size_t)w * sizeof(double));
    UNPROTECT(1);
    const int pieces = set_pieces(s, mode, left, right);
    s->used = 0;
    s->first = s->second = -1;
    const double mass = integrate(s, pieces);
    if (!(mass > 0) || !isfinite(mass)) return PLUGIN_NUMERICAL;
    double check = 0;
    for (int i = 0; i < w; ++i) {
        s->first = i;
        s->second = -1;
        mean[i] = integrate(s, pieces) / mass;
    }
    for (int i = 0; i < w; ++i)
        for (int j = 0; j <= i; ++j) {
            s->first = i;
            s->second = j;
            const double product = integrate(s, pieces) / mass - mean[i] * mean[j];
            cov[(size_t)i * w + j] = cov[(size_t)j * w + i] =
                i == j && !(product > 0) ? 0 * product : product;
            check += product;
        }
    for (int i = 0; i < w; ++i) check += mean[i] += s->reference[i];
    return isfinite(check) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct integrals *s = self;
    s->theta = PROTECT(custom_vector(s->parameters, theta));
    const int status = all_moments(s, mean, cov);
    UNPROTECT(1);
    return status;
}

/* ---- the complete-data statistic --------------------------------------------------- */

static void project(void *self, double n, double *c) {
    const struct integrals *s = self;
    const int k = s->components - s->released;
    SEXP total = PROTECT(custom_vector(k, c));
    SEXP count = PROTECT(Rf_ScalarReal(n));
    SEXP call = PROTECT(Rf_lang3(s->project, total, count));
    SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
    memcpy(c, REAL(value), (size_t)k * sizeof(double));
    UNPROTECT(4);
}

static int complete(void *self, double n, const double *total, double *c) {
    struct integrals *s = self;
    const size_t bytes = (size_t)(s->components - s->released) * sizeof(double);
    memcpy(c, total + s->released, bytes);
    memcpy(s->projected, c, bytes);
    project(s, n, s->projected);
    return memcmp(s->projected, c, bytes) == 0;
}

static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    (void)coordinates;
    SEXP spec = spec_of(fields), functions = list_element(spec, "functions");
    struct integrals *s = plugin_memory(1, sizeof *s);
    s->parameters = Rf_asInteger(list_element(spec, "parameters"));
    s->released = Rf_asInteger(list_element(spec, "released"));
    const int complete_size = Rf_asInteger(list_element(spec, "complete"));
    s->components = s->released + complete_size;
    s->cut = REAL(list_element(spec, "cuts"));
    s->cuts = (int)Rf_xlength(list_element(spec, "cuts"));
    s->support = REAL(list_element(spec, "support"));
    s->evaluate = list_element(functions, "evaluate");
    s->log_density = list_element(functions, "log_density");
    s->project = list_element(functions, "project");
    s->reference = doubles((size_t)s->components);
    s->projected = doubles((size_t)complete_size);
    s->piece_end = doubles((size_t)(MOST_CUTS + s->cuts));
    s->work = doubles(4 * LIMIT);
    s->iwork = plugin_memory(LIMIT, sizeof(int));
    for (int k = 0; k < MOST_KEPT; ++k) {
        s->kept[k].x = doubles(MOST_NODES);
        s->kept[k].value = doubles((size_t)(s->components + 1) * MOST_NODES);
    }
    moments->self = s;
    moments->released = s->released;
    moments->aside = moments->complete = complete_size;
    return PLUGIN_OK;
}

const struct record_moments_class moments_expfam = {
    .name = "expfam",
    .create = create,
    .eval = eval,
    .complete = complete,
    .project = project,
};
