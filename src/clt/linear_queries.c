/* Moments of linear queries Q t of a statistic whose moments are known: with u = (t, a), where a
 * are the unreleased components of t, the released components are Q t and all of u counts as
 * unreleased, so that the complete-data statistic is found as before. Mean and covariance are B
 * E(u) and B V B', B = (Q; I).
 *
 * Costs as much as the other moments, plus a multiplication for each entry of Q and each component
 * of u or of a query.
 */
#include "stat/linear_queries.h"

struct linear {
    struct record_moments of;
    struct queries queries;
    int wide;        /* length of u */
    double *mean;    /* of u */
    double *cov;     /* of u */
    double *crossed; /* Q V */
    double *within;  /* Q'r, or a total of u */
};

static int eval(void *self, const double *theta, double *mean, double *cov) {
    struct linear *s = self;
    const struct queries *q = &s->queries;
    const size_t wide = (size_t)s->wide, size = (size_t)q->size, all = size + wide;
    const int status = s->of.class->eval(s->of.self, theta, s->mean, s->cov);
    if (status != PLUGIN_OK) return status;
    memset(mean, 0, size * sizeof(double));
    queries_add(q, s->mean, 1, 1, mean);
    memcpy(mean + size, s->mean, wide * sizeof(double));
    memset(s->crossed, 0, size * wide * sizeof(double));
    for (size_t j = 0; j < wide; ++j) queries_add(q, s->cov + j, wide, wide, s->crossed + j);
    for (size_t k = 0; k < size; ++k) {
        const double *row = s->crossed + k * wide;
        memset(cov + k * all, 0, size * sizeof(double));
        queries_add(q, row, 1, 1, cov + k * all);
        memcpy(cov + k * all + size, row, wide * sizeof(double));
    }
    for (size_t i = 0; i < wide; ++i) {
        double *row = cov + (size + i) * all;
        for (size_t k = 0; k < size; ++k) row[k] = s->crossed[k * wide + i];
        memcpy(row + size, s->cov + i * wide, wide * sizeof(double));
    }
    return PLUGIN_OK;
}

static void from_innovations(void *self, const double *theta, double n, const double *u,
                             double *total) {
    struct linear *s = self;
    const int size = s->queries.size;
    s->of.class->from_innovations(s->of.self, theta, n, u, total + size);
    memset(total, 0, (size_t)size * sizeof(double));
    queries_add(&s->queries, total + size, 1, 1, total);
}

static const double *pulled(struct linear *s, const double *r) {
    memset(s->within, 0, (size_t)s->wide * sizeof(double));
    queries_add_transposed(&s->queries, 1, r, s->within);
    return s->within;
}

static void pull(void *self, double weight, const double *r, double *u) {
    struct linear *s = self;
    s->of.class->pull(s->of.self, weight, pulled(s, r), u);
}

static void gradient(void *self, double n, const double *u, const double *r, double *out) {
    struct linear *s = self;
    s->of.class->gradient(s->of.self, n, u, pulled(s, r), out);
}

static int complete(void *self, double n, const double *total, double *c) {
    struct linear *s = self;
    return s->of.class->complete(s->of.self, n, total + s->queries.size, c);
}

static void project(void *self, double n, double *c) {
    struct linear *s = self;
    s->of.class->project(s->of.self, n, c);
}

static double outside(void *self, const double *theta) {
    struct linear *s = self;
    return s->of.class->outside(s->of.self, theta);
}

int moments_linear(const struct fields *fields, const struct record_moments *of,
                   struct record_moments *moments) {
    struct linear *s = plugin_memory(1, sizeof *s);
    if (queries_read(fields, of->released, &s->queries) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    const size_t wide = (size_t)(of->released + of->aside), size = (size_t)s->queries.size;
    s->of = *of;
    s->wide = (int)wide;
    DOUBLES(wide, &s->mean, &s->within);
    s->cov = doubles(wide * wide);
    s->crossed = doubles(size * wide);
    const struct record_moments_class *inner = of->class;
    struct record_moments_class *class = plugin_memory(1, sizeof *class);
    class->name = "linear";
    class->eval = eval;
    if (inner->from_innovations) class->from_innovations = from_innovations;
    if (inner->pull) class->pull = pull;
    if (inner->gradient) class->gradient = gradient;
    if (inner->complete) class->complete = complete;
    if (inner->project) class->project = project;
    if (inner->outside) class->outside = outside;
    moments->class = class;
    moments->self = s;
    moments->released = (int)size;
    moments->aside = (int)wide;
    moments->complete = of->complete;
    moments->innovations = of->innovations;
    return PLUGIN_OK;
}
