#ifndef NOISEAWARE_TOTALS_NORMAL_TOTALS_H
#define NOISEAWARE_TOTALS_NORMAL_TOTALS_H

#include "base/integer_step.h"
#include "contract/collapse.h"
#include "contract/model_levels.h"
#include "mcmc/hmc.h"
#include "totals/density.h"
#include "totals/exact_totals.h"
#include "totals/n_steps.h"
#include "totals/response_innovations.h"

/* What the files of normal totals share; see totals/normal_totals_chain.c. */

/* The cross-table of the factors; see totals/cross_table.c. */
struct cross_table {
    int factors, cells; /* 0: there is none */
    const struct model_factor *factor;
    int *stride; /* of a factor's levels among the cells */

    /* State: with these restored, a run continues bit for bit. */
    double *count;         /* of records, a cell */
    double *scale, *tries; /* of moves, one a factor and kind */
    double *idle_sd;       /* of normal coordinates, the columns' sd where the chain started */
    double *clamps;        /* where bounds clamp: what they do to each component, about; and from */
    double *seen;          /* how many visits in warmup that is known */

    /* workspace */
    int *dummy, *kept_idle;
    int contexts, *here, *there; /* cells of the two levels of a move */
    double *out, *in;            /* records that leave `here` for `there`, and that come */
    double *innovation, *kept_design, *trial;
    double *old_count, *old_q; /* before a run of moves */

    /* while starting: components that depend on the table alone, and what they are to be */
    int counted, *of_counts;
    double *wanted, temper;
};

struct normal {
    struct model model;
    struct totals_density density; /* its c is the state's, where measure() was last */
    struct hmc hmc;
    const double *lower, *upper; /* bounds of the columns, natural units */
    double n;
    int *fixed; /* columns that are dummies */
    struct cross_table table;
    struct totals_resize resize; /* size.prior NULL: n is known */
    double *trial;               /* a gradient */
    const struct noise *noise;   /* what was released: the density's components, then exact ones */
    struct rng *rng;
    double *theta;
    int leapfrogs; /* of the last iteration */

    /* With bounds that clamp: columns of Gamma, and how many; the release less Gamma u. */
    struct {
        const double *spread;
        int directions;
        double *shifted;
    } clamp;
    /* The response's totals as innovations, see totals/response_innovations.c. */
    struct {
        struct totals_residual *residual; /* NULL: they are themselves */
        double *place, *slope_theta, log_volume;
    } response;

    /* log S_ii / 2 for log F_ii, see totals/scatter_coordinates.c: where it was placed last, and
     * 1 + sum of a_ij^2. NULL: F has coordinates of its own. */
    double *scatter_place, *length;

    struct totals_exact *exact; /* NULL: nothing is exact */

    double *statistic, energy; /* of the state */
    double misfit;             /* its energy under the noise that moves it; see clamp() */

    /* workspace */
    double *old, *work;
    double *mean, *chol,
        *normal_draw; /* distribution of a record, in the order of the model's distribution */
    double *guess;    /* while starting */
    double *variance; /* of entries of c, while starting */
};

/* After a start, or theta given the totals: coordinates that have the totals of `place`. */
void normal_read_residual(struct normal *s, const double *theta, double *q);

/* draws of theta that a start takes the median over */
enum { NORMAL_START_DRAWS = 25 };

/* what the family counts, in addition to the iterations */
enum {
    ITERATIONS,
    ACCEPTANCE,
    LEAPFROGS,
    DIVERGENT,
    DEEPEST,
    WITHIN,
    SIZE_MADE,
    SIZE_ACCEPTED,
    TABLE_MADE,
    TABLE_ACCEPTED
};

static inline int normal_coordinates(const struct normal *s) {
    return s->density.size + s->clamp.directions;
}

/* Of totals and of what is kept of theta, in the density's own coordinates. */
const double *normal_place(struct normal *s, const double *q);

/* less Gamma u, into `shifted` */
void normal_shift_release(struct normal *s, const double *u);

/* c, the released components and their misfit, at q */
void normal_measure(struct normal *s, const double *q);

/* Is a theta from the uncut distribution given the new totals within? Then it is the state's. */
int normal_is_within(struct normal *s);

/* ---- starts: totals/normal_totals_start.c ---- */

/* of what is attached to the store */
void normal_start(struct collapse *of);

/* ---- coordinates of the scatter: totals/scatter_coordinates.c ---- */

/* Of records without factors, of which there are more than columns. */
void normal_prepare_scatter(struct normal *s);

/* the density's coordinates for the sampler's, and back, in place */
const double *normal_scatter_place(struct normal *s, const double *q);
void normal_scatter_read(const struct normal *s, double *q);

/* After normal_scatter_place(): the gradient in the sampler's coordinates from that in the
 * density's, in place. */
void normal_scatter_pull(const struct normal *s, double *gradient);

/* component k as released with fresh noise added */
static inline double normal_renew(struct normal *s, int k) {
    const double draw = kernel_draw(s->noise->kernel[k], s->rng);
    return s->noise->released[k] + draw / s->noise->weight[k];
}

/* ---- the factors' cross-table: totals/cross_table.c ---- */

int normal_prepare_table(struct normal *s);
size_t normal_stored_table(const struct normal *s);
void normal_attach_table(struct normal *s, double *store);

/* A cell's level of a factor; and `amount` records more of the cell in the dummies' totals and
 * products. */
static inline int normal_level_of(const struct cross_table *t, int f, int cell) {
    return cell / t->stride[f] % t->factor[f].levels;
}
void normal_add_records(const struct normal *s, int cell, double amount);

/* What follows from the table: c's counts, D'D; the latter and its rank alone. */
void normal_load_table(struct normal *s);
void normal_read_design(struct normal *s);

/* Reads the totals of c and such a table, as if they were the state's. */
void normal_read_cells(struct normal *s, const double *count);

/* A table with these probabilities of its cells; or whose factors have these shares of their
 * levels, one after the other. */
void normal_draw_cells(struct normal *s, const double *probability);
void normal_draw_table(struct normal *s, const double *share);

/* From s->chol, of where the chain starts. */
void normal_set_idle(struct normal *s);

/* Does the mean of continuous column i, in distribution()'s order, depend on levels? s->mean and
 * s->table are there; and that mean in a cell. */
int normal_depends(const struct normal *s, int i);
double normal_mean_at(const struct normal *s, int i, int cell);

/* ---- totals/cross_table_moves.c ---- */

/* With one factor transfers alone make sense. */
enum table_move { TRANSFER, SWAP, PAIR, TABLE_MOVES };

int normal_moves(const struct normal *s); /* tried in an iteration */

/* Moves the table towards one that has the counts released, with fresh noise. */
void normal_settle_table(struct normal *s);

/* Moves of the table given the state's theta, which must be drawn again then, as must what
 * mcmc/hmc.h knows of the place. */
void normal_move_table(struct collapse *of, int learning);
void normal_statistic(const struct collapse *of, double *out);
double normal_energy(const struct collapse *of);

#endif
