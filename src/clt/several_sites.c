/* Moments of the releases of several sites, one after the other, under one theta: as if of one
 * release of all n records, of which site j has the share w_j. The sum over sites is then that of
 * n records with
 *
 *   mean (w_j mean_j)_j,  covariance diag(w_j cov_j),
 *
 * since records of different sites are independent. Each site keeps its components, and so its
 * noise; innovations also stand one site after the other. What is aside stands behind the released
 * components of all sites.
 *
 * The complete-data statistic of all records is the sum of the sites'; it is valid where each of
 * them is.
 *
 * Cost: the sum of the sites', and in eval() a square matrix of all components.
 */
#include "clt/several_sites.h"

struct sites {
    int count;
    const double *share;
    struct record_moments *of;
    int size, wide, complete; /* of all: released, released + aside; length of the statistic */
    double *mean, *cov;       /* of a site */
    double *total, *sum;      /* of a site; a complete-data statistic */
};

/* records of a site */
static double records_of(const struct sites *s, int j, double n) { return s->share[j] * n; }

/* where a component of a site stands among all */
static int place(const struct record_moments *of, int first, int aside, int k) {
    return k < of->released ? first + k : aside + k - of->released;
}

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct sites *s = self;
    const size_t wide = (size_t)s->wide;
    memset(cov, 0, wide * wide * sizeof(double));
    for (int j = 0, first = 0, aside = s->size; j < s->count; ++j) {
        const struct record_moments *of = s->of + j;
        const int own = of->released + of->aside;
        const int status = of->class->eval(of->self, theta, s->mean, s->cov);
        if (status != PLUGIN_OK) return status;
        for (int k = 0; k < own; ++k) {
            const int row = place(of, first, aside, k);
            mean[row] = s->share[j] * s->mean[k];
            for (int l = 0; l < own; ++l)
                cov[(size_t)row * wide + (size_t)place(of, first, aside, l)] =
                    s->share[j] * s->cov[(size_t)k * (size_t)own + (size_t)l];
        }
        first += of->released;
        aside += of->aside;
    }
    return PLUGIN_OK;
}

static void from_innovations(void *self, const double *theta, double n, const double *u,
                             double *total) {
    struct sites *s = self;
    double *aside = total + s->size;
    for (int j = 0; j < s->count; ++j) {
        const struct record_moments *of = s->of + j;
        of->class->from_innovations(of->self, theta, records_of(s, j, n), u, s->total);
        memcpy(total, s->total, (size_t)of->released * sizeof(double));
        memcpy(aside, s->total + of->released, (size_t)of->aside * sizeof(double));
        u += of->innovations;
        total += of->released;
        aside += of->aside;
    }
}

static void pull(void *self, double weight, const double *r, double *u) {
    struct sites *s = self;
    for (int j = 0; j < s->count; ++j) {
        const struct record_moments *of = s->of + j;
        of->class->pull(of->self, weight * sqrt(s->share[j]), r, u);
        u += of->innovations;
        r += of->released;
    }
}

static void gradient(void *self, double n, const double *u, const double *r, double *out) {
    struct sites *s = self;
    for (int j = 0; j < s->count; ++j) {
        const struct record_moments *of = s->of + j;
        of->class->gradient(of->self, records_of(s, j, n), u, r, out);
        u += of->innovations;
        r += of->released;
    }
}

static int complete(void *self, double n, const double *total, double *c) {
    struct sites *s = self;
    const double *aside = total + s->size;
    int valid = 1;
    memset(c, 0, (size_t)s->complete * sizeof(double));
    for (int j = 0; j < s->count; ++j) {
        const struct record_moments *of = s->of + j;
        memcpy(s->total, total, (size_t)of->released * sizeof(double));
        memcpy(s->total + of->released, aside, (size_t)of->aside * sizeof(double));
        valid &= of->class->complete(of->self, records_of(s, j, n), s->total, s->sum);
        for (int k = 0; k < s->complete; ++k) c[k] += s->sum[k];
        total += of->released;
        aside += of->aside;
    }
    return valid;
}

static void project(void *self, double n, double *c) {
    struct sites *s = self;
    s->of->class->project(s->of->self, n, c);
}

static double outside(void *self, const double *theta) {
    struct sites *s = self;
    double sum = 0;
    for (int j = 0; j < s->count; ++j)
        sum += s->share[j] * s->of[j].class->outside(s->of[j].self, theta);
    return sum;
}

int moments_sites(int count, const double *share, const struct record_moments *of,
                  struct record_moments *moments) {
    struct sites *s = plugin_memory(1, sizeof *s);
    struct record_moments_class *class = plugin_memory(1, sizeof *class);
    const struct record_moments_class all = {.eval = eval,
                                             .from_innovations = from_innovations,
                                             .pull = pull,
                                             .gradient = gradient,
                                             .complete = complete,
                                             .project = project,
                                             .outside = outside};
    *class = all;
    class->name = "sites";
    size_t widest = 0;
    memset(moments, 0, sizeof *moments);
    for (int j = 0; j < count; ++j) {
        const struct record_moments_class *inner = of[j].class;
        const size_t own = (size_t)(of[j].released + of[j].aside);
        if (of[j].complete != of->complete) return PLUGIN_BAD_FIELDS;
        if (own > widest) widest = own;
        moments->released += of[j].released;
        moments->aside += of[j].aside;
        moments->innovations += of[j].innovations;
        if (!inner->from_innovations) class->from_innovations = NULL;
        if (!inner->pull) class->pull = NULL;
        if (!inner->gradient) class->gradient = NULL;
        if (!inner->complete) class->complete = NULL;
        if (!inner->project) class->project = NULL;
        if (!inner->outside) class->outside = NULL;
    }
    moments->class = class;
    moments->self = s;
    moments->complete = s->complete = of->complete;
    s->count = count;
    s->share = share;
    s->size = moments->released;
    s->wide = moments->released + moments->aside;
    s->of = plugin_memory((size_t)count, sizeof *s->of);
    memcpy(s->of, of, (size_t)count * sizeof *of);
    DOUBLES(widest, &s->mean, &s->total);
    s->cov = doubles(widest * widest);
    s->sum = doubles((size_t)s->complete);
    return PLUGIN_OK;
}
