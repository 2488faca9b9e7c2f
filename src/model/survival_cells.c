/* Survival within the cells of a table: exits by interval; see model/survival.c. */
#include "model/survival_cells.h"

static void leave_within(double log_d, double d, struct growth g, struct leaving *out) {
    const double s = d + g.size;
    double b, a; /* B(s) and its derivative */
    if (s < 0.01) {
        const double square = s * s;
        b = -s / 2 + square / 24 * (1 - square / 120);
        a = -0.5 + s / 12 * (1 - square / 60);
    } else {
        b = log(-expm1(-s) / s);
        a = 1 / expm1(s) - 1 / s;
    }
    *out = (struct leaving){
        .log_p = {log_d + b, g.log + b, -s},
        .slope_d = {1 + d * a, d * a, -d},
        .slope_t = {-g.missed * a, g.slope - g.missed * a, g.missed},
    };
}

static void leave_at_end(double log_d, double d, struct growth g, struct leaving *out) {
    *out = (struct leaving){
        .log_p = {growth_log_missed(log_d, d), growth_log_missed(g.log, g.size) - d, -d - g.size},
        .slope_d = {growth_slope_missed(d), -d, -d},
        .slope_t = {0, g.missed - 1, g.missed},
    };
}

void survival_leave(const struct survival *s, double log_d, double t, struct leaving *out) {
    const double d = exp(log_d);
    const struct growth g = growth_of_stick(t);
    (s->baseline == DISCRETE ? leave_at_end : leave_within)(log_d, d, g, out);
}

double survival_level(const struct survival *s, const double *theta) {
    return s->intercept ? theta[0] : 0;
}

void survival_predict(struct survival *s, const double *theta) {
    const double *row = s->design;
    for (int x = 0; x < s->groups; ++x, row += s->coefficients) {
        double eta = s->processes ? 0 : theta[0];
        for (int m = s->intercept; m < s->coefficients; ++m) eta += row[m] * theta[m];
        s->eta[x] = eta;
    }
}

const double *survival_censoring(const struct survival *s, const double *theta, int x) {
    return theta + s->at_censoring + s->row_of[x] * s->intervals;
}
