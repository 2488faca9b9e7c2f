/* See model/class_cells.h. */
#include "model/class_cells.h"

#include "base/dist.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"

#include <Rmath.h>

static inline int stick_at(const struct cell_covariate *of, int class) {
    return of->stick + class * (of->cells - 1);
}

static inline int bound_at(const struct cell_covariate *of, int class) {
    return of->bound + class * (of->cells + 1);
}

/* ---- prior -------------------------------------------------------------------------- */

void class_cells_rprior(const struct class_cells *s, struct rng *rng, double *theta) {
    if (s->classes > 1) sticks_draw(rng, s->classes, s->class_weight, theta + s->offset);
    for (int j = 0; j < s->covariates; ++j)
        for (int c = 0; c < s->classes; ++c)
            sticks_draw(rng, s->covariate[j].cells, s->covariate[j].weight,
                        theta + stick_at(s->covariate + j, c));
}

double class_cells_dprior(const struct class_cells *s, const double *theta) {
    double log_density =
        s->classes > 1 ? sticks_log_density(s->classes, s->class_weight, theta + s->offset) : 0;
    for (int j = 0; j < s->covariates; ++j)
        for (int c = 0; c < s->classes; ++c)
            log_density += sticks_log_density(s->covariate[j].cells, s->covariate[j].weight,
                                              theta + stick_at(s->covariate + j, c));
    return log_density;
}

void class_cells_prior_gradient(const struct class_cells *s, const double *theta,
                                double *gradient) {
    if (s->classes > 1)
        sticks_add_slopes(s->classes, s->class_weight, theta + s->offset, gradient + s->offset);
    for (int j = 0; j < s->covariates; ++j)
        for (int c = 0; c < s->classes; ++c) {
            const int at = stick_at(s->covariate + j, c);
            sticks_add_slopes(s->covariate[j].cells, s->covariate[j].weight, theta + at,
                              gradient + at);
        }
}

/* ---- distribution ------------------------------------------------------------------- */

/* bound[l] = P(before l) */
static void read_bounds(int levels, const double *stick, double *bound) {
    sticks_to_probabilities(levels, stick, bound + 1);
    bound[0] = 0;
    for (int l = 1; l < levels; ++l) bound[l + 1] += bound[l];
    bound[levels] = 1;
}

void class_cells_read(const struct class_cells *s, const double *theta,
                      struct cell_distribution *to) {
    to->class[0] = 0;
    to->class[1] = 1;
    if (s->classes > 1) {
        read_bounds(s->classes, theta + s->offset, to->class);
        sticks_to_log_probabilities(s->classes, theta + s->offset, to->log_class);
    }
    for (int j = 0; j < s->covariates; ++j)
        for (int c = 0; c < s->classes; ++c) {
            const struct cell_covariate *of = s->covariate + j;
            const double *stick = theta + stick_at(of, c);
            read_bounds(of->cells, stick, to->bound + bound_at(of, c));
            if (s->classes > 1)
                sticks_to_log_probabilities(of->cells, stick, to->log_cell + bound_at(of, c));
        }
}

int class_cells_differ(const struct class_cells *s) {
    const size_t classes = (size_t)s->classes + 1, bounds = (size_t)s->bounds;
    return memcmp(s->now.class, s->next.class, classes * sizeof(double)) != 0 ||
           memcmp(s->now.bound, s->next.bound, bounds * sizeof(double)) != 0;
}

void class_cells_margins(const struct class_cells *s, const double *theta, double *margin) {
    double *class = s->work, *cell = s->work + s->classes;
    class[0] = 1;
    if (s->classes > 1) sticks_to_probabilities(s->classes, theta + s->offset, class);
    for (int j = 0; j < s->covariates; ++j) {
        const struct cell_covariate *of = s->covariate + j;
        memset(margin, 0, (size_t)of->cells * sizeof(double));
        for (int c = 0; c < s->classes; ++c) {
            sticks_to_probabilities(of->cells, theta + stick_at(of, c), cell);
            for (int l = 0; l < of->cells; ++l) margin[l] += class[c] * cell[l];
        }
        margin += of->cells;
    }
}

/* ---- records ------------------------------------------------------------------------ */

/* the last of `levels` that begins at u or before */
static inline int find(int levels, const double *bound, double u) {
    int below = 0, above = levels;
    while (above - below > 1) {
        const int middle = (below + above) / 2;
        if (bound[middle] <= u)
            below = middle;
        else
            above = middle;
    }
    return below;
}

static inline void set_level(const struct cell_covariate *of, int level, int i, double *const *x) {
    for (int l = 1; l < of->cells; ++l) x[of->column + l - 1][i] = l == level;
}

int class_cells_level(const struct cell_covariate *of, int i, const double *const *x) {
    int level = of->cells - 1;
    while (level > 0 && x[of->column + level - 1][i] < 0.5) --level;
    return level;
}

/* The quantile u is that of record i in x. */
static inline void set_quantile(const struct cell_covariate *of, const double *bound, double u,
                                int i, double *const *x) {
    const int cell = find(of->cells, bound, u);
    if (cells_are_levels(of)) {
        set_level(of, cell, i, x);
        return;
    }
    const double mass = bound[cell + 1] - bound[cell];
    const double share = mass > 0 ? fmin((u - bound[cell]) / mass, 1) : 0.5;
    x[of->column][i] = of->lower + of->width * (cell + share);
}

/* in cells from the lower bound */
static inline double place(const struct cell_covariate *of, double x) {
    return fmin(fmax((x - of->lower) / of->width, 0), of->cells);
}

static inline int cell_of(const struct cell_covariate *of, int i, const double *const *x) {
    if (cells_are_levels(of)) return class_cells_level(of, i, x);
    const int cell = (int)place(of, x[of->column][i]);
    return cell < of->cells ? cell : of->cells - 1;
}

/* of record i in x, drawn where it gives a level */
static inline double quantile_of(const struct cell_covariate *of, const double *bound,
                                 struct rng *rng, int i, const double *const *x) {
    const int cell = cell_of(of, i, x);
    const double share =
        cells_are_levels(of) ? rng_uniform(rng) : place(of, x[of->column][i]) - cell;
    return bound[cell] + share * (bound[cell + 1] - bound[cell]);
}

/* of record i, given its covariates */
static int class_of(const struct class_cells *s, struct rng *rng, int i, const double *const *x) {
    if (s->classes == 1) return 0;
    double *odds = s->work;
    for (int j = 0; j < s->covariates; ++j) s->cell[j] = cell_of(s->covariate + j, i, x);
    for (int c = 0; c < s->classes; ++c) {
        odds[c] = s->now.log_class[c];
        for (int j = 0; j < s->covariates; ++j)
            odds[c] += s->now.log_cell[bound_at(s->covariate + j, c) + s->cell[j]];
    }
    return dist_choose(rng, s->classes, odds);
}

/* a uniform that gives the class */
static double uniform_of(const struct class_cells *s, struct rng *rng, int class) {
    const double *bound = s->now.class + class;
    return bound[0] + (bound[1] - bound[0]) * rng_uniform(rng);
}

void class_cells_draw(const struct class_cells *s, struct rng *rng, int m, double *const *x_new) {
    for (int i = 0; i < m; ++i) {
        const int class = s->classes > 1 ? find(s->classes, s->now.class, rng_uniform(rng)) : 0;
        for (int j = 0; j < s->covariates; ++j) {
            const struct cell_covariate *of = s->covariate + j;
            set_quantile(of, s->now.bound + bound_at(of, class), x_new[of->column][i], i, x_new);
        }
    }
}

/* in standard normal innovations */
static inline double partial_refresh(double rho, double u, double z) {
    static const double LEAST = 1e-300, MOST = 1 - 1e-16;
    const double old = Rf_qnorm5(fmin(fmax(u, LEAST), MOST), 0, 1, 1, 0);
    return Rf_pnorm5(rho * old + sqrt(1 - rho * rho) * z, 0, 1, 1, 0);
}

void class_cells_refresh(const struct class_cells *s, double rho, struct rng *rng, int m,
                         const double *const *x, double *const *x_new) {
    for (int i = 0; i < m; ++i) {
        const int from = class_of(s, rng, i, x);
        int to = 0;
        if (s->classes > 1) {
            const double u = uniform_of(s, rng, from);
            to = find(s->classes, s->now.class, partial_refresh(rho, u, rng_normal(rng)));
        }
        for (int j = 0; j < s->covariates; ++j) {
            const struct cell_covariate *of = s->covariate + j;
            const double u = quantile_of(of, s->now.bound + bound_at(of, from), rng, i, x);
            set_quantile(of, s->now.bound + bound_at(of, to),
                         partial_refresh(rho, u, x_new[of->column][i]), i, x_new);
        }
    }
}

void class_cells_move(const struct class_cells *s, struct rng *rng, int m, const double *const *x,
                      double *const *x_new) {
    for (int i = 0; i < m; ++i) {
        const int from = class_of(s, rng, i, x);
        const int to =
            s->classes > 1 ? find(s->classes, s->next.class, uniform_of(s, rng, from)) : 0;
        for (int j = 0; j < s->covariates; ++j) {
            const struct cell_covariate *of = s->covariate + j;
            const double u = quantile_of(of, s->now.bound + bound_at(of, from), rng, i, x);
            set_quantile(of, s->next.bound + bound_at(of, to), u, i, x_new);
        }
    }
}

/* ---- update ------------------------------------------------------------------------- */

void class_cells_classes(const struct class_cells *s, struct rng *rng, int m,
                         const double *const *x, int *class) {
    for (int i = 0; i < m; ++i) class[i] = class_of(s, rng, i, x);
}

void class_cells_find(const struct class_cells *s, int covariate, int m, const double *const *x,
                      int *cell) {
    for (int i = 0; i < m; ++i) cell[i] = cell_of(s->covariate + covariate, i, x);
}

void class_cells_shift(const struct class_cells *s, int covariate, int by, int m,
                       const double *const *x, double *const *x_new) {
    const struct cell_covariate *of = s->covariate + covariate;
    for (int v = 0; v < s->columns; ++v) memcpy(x_new[v], x[v], (size_t)m * sizeof(double));
    for (int i = 0; i < m; ++i)
        if (cells_are_levels(of))
            set_level(of, class_cells_level(of, i, x) + by, i, x_new);
        else
            x_new[of->column][i] += by * of->width;
}

void class_cells_add(const struct class_cells *s, struct rng *rng, int m, const double *const *x,
                     double *c) {
    for (int i = 0; i < m; ++i) {
        const int class = class_of(s, rng, i, x);
        c[class] += 1;
        for (int j = 0; j < s->covariates; ++j) {
            const struct cell_covariate *of = s->covariate + j;
            c[of->count + class * of->cells + cell_of(of, i, x)] += 1;
        }
    }
}

static void draw_sticks(const struct class_cells *s, int levels, const double *weight,
                        const double *count, struct rng *rng, double *stick) {
    for (int l = 0; l < levels; ++l) s->work[l] = weight[l] + count[l];
    sticks_draw(rng, levels, s->work, stick);
}

void class_cells_update_covariate(const struct class_cells *s, int covariate, const double *count,
                                  struct rng *rng, double *theta) {
    const struct cell_covariate *of = s->covariate + covariate;
    for (int k = 0; k < s->classes; ++k)
        draw_sticks(s, of->cells, of->weight, count + k * of->cells, rng, theta + stick_at(of, k));
}

void class_cells_update(const struct class_cells *s, const double *c, struct rng *rng,
                        double *theta) {
    if (s->classes > 1) draw_sticks(s, s->classes, s->class_weight, c, rng, theta + s->offset);
    for (int j = 0; j < s->covariates; ++j)
        class_cells_update_covariate(s, j, c + s->covariate[j].count, rng, theta);
}

/* ---- create ------------------------------------------------------------------------- */

static void new_distribution(const struct class_cells *s, struct cell_distribution *of) {
    DOUBLES((size_t)s->classes + 1, &of->class, &of->log_class);
    DOUBLES((size_t)s->bounds, &of->bound, &of->log_cell);
}

int class_cells_create(const struct fields *fields, int offset, struct class_cells *s) {
    const double *classes = fields_vector(fields, "classes", 1);
    if (!classes) return PLUGIN_BAD_FIELDS;
    s->classes = (int)*classes;
    s->covariates = fields_length(fields, "cells");
    s->class_weight = fields_vector(fields, "class_weight", s->classes);
    const double *cells = fields_vector(fields, "cells", s->covariates);
    const double *lower = fields_vector(fields, "cell_lower", s->covariates);
    const double *width = fields_vector(fields, "cell_width", s->covariates);
    const double *weight = fields_vector(fields, "weight", -1);
    if (!s->class_weight || !cells || !lower || !width || !weight) return PLUGIN_BAD_FIELDS;
    s->covariate = plugin_memory((size_t)s->covariates, sizeof *s->covariate);
    int stick = offset + s->classes - 1, count = s->classes, bound = 0, most = s->classes;
    s->columns = s->margins = 0;
    for (int j = 0; j < s->covariates; ++j) {
        const int size = (int)cells[j];
        s->covariate[j] = (struct cell_covariate){.cells = size,
                                                  .column = s->columns,
                                                  .lower = lower[j],
                                                  .width = width[j],
                                                  .weight = weight + s->margins,
                                                  .stick = stick,
                                                  .count = count,
                                                  .bound = bound};
        stick += s->classes * (size - 1);
        count += s->classes * size;
        bound += s->classes * (size + 1);
        s->margins += size;
        s->columns += cells_are_levels(s->covariate + j) ? size - 1 : 1;
        if (size > most) most = size;
    }
    if (fields_length(fields, "weight") != s->margins) return PLUGIN_BAD_FIELDS;
    s->offset = offset;
    s->length = stick - offset;
    s->counts = count;
    s->bounds = bound;
    new_distribution(s, &s->now);
    new_distribution(s, &s->next);
    s->work = doubles((size_t)(s->classes + most));
    s->cell = plugin_memory((size_t)s->covariates, sizeof *s->cell);
    return PLUGIN_OK;
}

struct theta_block *class_cells_describe(const struct class_cells *s, struct theta_block *block) {
    if (s->classes > 1)
        *block++ = (struct theta_block){
            .name = "class", .transform = TRANSFORM_STICKS, .size = s->classes, .rows = 1};
    for (int j = 0; j < s->covariates; ++j)
        *block++ = (struct theta_block){.name = "prob",
                                        .transform = TRANSFORM_STICKS,
                                        .size = s->covariate[j].cells,
                                        .rows = s->classes};
    return block;
}
