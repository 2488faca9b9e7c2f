/* Densities of noisy answers, tabulated: with one linear predictor and no shape, records with the
 * same answer, noise and size, a group, have the same function of eta. With many records and few
 * groups, it is stored as a polynomial on each of many panels of eta, and computed by the class
 * itself elsewhere.
 *
 * A polynomial interpolates the log density at TERMS Chebyshev points of a panel. A panel is
 * computed when it is first needed, and compared with the class at some points between: if value
 * or slope differ, as they may for large rates, it is not used. Neither depends on earlier calls.
 *
 * Cost per record: two multiplications and two additions a term. No allocation except in create().
 */
#include "totals/noisy_answers.h"

enum { NOT_MADE, MADE, UNLIKE };

enum { TERMS = 8, FROM = -12, TO = 16, PANELS_A_UNIT = 16, PANELS = (TO - FROM) * PANELS_A_UNIT };

struct noisy_table {
    const struct noisy_answer_class *class;
    const double *group;                       /* of each record */
    int *first;                                /* a record of each group */
    double *term;                              /* TERMS of each panel of each group */
    char *made;                                /* NOT_MADE, ... */
    double point[TERMS], power[TERMS * TERMS]; /* points; powers of what is 1 at each of them */
};

/* Powers of the polynomials that are 1 at one of the points and 0 at the others. */
static void prepare_points(struct noisy_table *s) {
    static const double PI = 3.14159265358979323846;
    for (int j = 0; j < TERMS; ++j) s->point[j] = cos(PI * (j + 0.5) / TERMS);
    for (int j = 0; j < TERMS; ++j) {
        double *power = s->power + (ptrdiff_t)j * TERMS;
        int degree = 0;
        power[0] = 1;
        for (int l = 0; l < TERMS; ++l) {
            if (l == j) continue;
            const double scale = 1 / (s->point[j] - s->point[l]);
            for (int p = ++degree; p >= 0; --p) /* times (t - point l) scale */
                power[p] = scale *
                           ((p > 0 ? power[p - 1] : 0) - s->point[l] * (p < degree ? power[p] : 0));
        }
    }
}

int noisy_answers_tabulate(const struct fields *fields, struct noisy_answers *a) {
    struct noisy_table *s = plugin_memory(1, sizeof *s);
    const double *groups = fields_vector(fields, "groups", 1);
    s->group = fields_vector(fields, "group", a->records);
    if (!groups || !s->group || a->shapes > 0 || a->predictors > 1) return PLUGIN_BAD_FIELDS;
    const size_t count = (size_t)*groups;
    s->class = a->class;
    s->first = plugin_memory(count, sizeof *s->first);
    s->term = doubles(count * PANELS * TERMS);
    s->made = plugin_memory(count * PANELS, sizeof *s->made);
    for (int i = a->records - 1; i >= 0; --i) s->first[(int)s->group[i]] = i;
    prepare_points(s);
    a->table = s;
    a->class = &noisy_answer_tabulated;
    return PLUGIN_OK;
}

static double at_point(int panel, double t) {
    return FROM + (panel + 0.5 * (1 + t)) / PANELS_A_UNIT;
}

/* the polynomial and its slope in eta */
static inline double evaluate(const double *term, double t, double *slope) {
    double value = term[TERMS - 1], rise = 0;
    for (int p = TERMS - 2; p >= 0; --p) {
        rise = rise * t + value;
        value = value * t + term[p];
    }
    *slope = 2 * PANELS_A_UNIT * rise;
    return value;
}

static double ask_class(const struct noisy_answers *a, int group, double eta, double *slope) {
    double of_shape;
    return a->table->class->log_density(a, a->table->first[group], 1, &eta, slope, &of_shape);
}

/* Is it what the class says, between its points? */
static int is_alike(const struct noisy_answers *a, int group, int panel, const double *term) {
    enum { CHECKS = 4 };
    static const double between[CHECKS] = {-1, -0.7, 0.4, 1}, CLOSE = 1e-11, STEEP = 1e-7;
    for (int j = 0; j < CHECKS; ++j) {
        double slope, slope_there;
        const double value = evaluate(term, between[j], &slope),
                     there = ask_class(a, group, at_point(panel, between[j]), &slope_there);
        if (!(fabs(value - there) <= CLOSE * (1 + fabs(there))) ||
            !(fabs(slope - slope_there) <= STEEP * (1 + fabs(slope_there))))
            return 0;
    }
    return 1;
}

static char make_panel(const struct noisy_answers *a, int group, int panel, double *term) {
    const struct noisy_table *s = a->table;
    double slope;
    memset(term, 0, TERMS * sizeof(double));
    for (int j = 0; j < TERMS; ++j) {
        const double value = ask_class(a, group, at_point(panel, s->point[j]), &slope);
        for (int p = 0; p < TERMS; ++p) term[p] += value * s->power[j * TERMS + p];
    }
    return is_alike(a, group, panel, term) ? MADE : UNLIKE;
}

/* Of the panel where `at` is, in panels from the first; NULL: the class is asked. */
static const double *find_panel(const struct noisy_answers *a, int i, double at) {
    const struct noisy_table *s = a->table;
    if (!(at >= 0 && at < PANELS)) return NULL;
    const int group = (int)s->group[i], panel = (int)at;
    const size_t place = (size_t)group * PANELS + (size_t)panel;
    double *term = s->term + place * TERMS;
    if (s->made[place] == NOT_MADE) s->made[place] = make_panel(a, group, panel, term);
    return s->made[place] == MADE ? term : NULL;
}

static double log_density(const struct noisy_answers *a, int first, int m, const double *eta,
                          double *slope, double *of_shape) {
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        const double at = (eta[i] - FROM) * PANELS_A_UNIT;
        const double *term = find_panel(a, first + i, at);
        sum +=
            term ? evaluate(term, 2 * (at - floor(at)) - 1, slope + i)
                 : a->table->class->log_density(a, first + i, 1, eta + i, slope + i, of_shape + i);
    }
    return sum;
}

const struct noisy_answer_class noisy_answer_tabulated = {.log_density = log_density};
