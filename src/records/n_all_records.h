#ifndef NOISEAWARE_RECORDS_N_ALL_RECORDS_H
#define NOISEAWARE_RECORDS_N_ALL_RECORDS_H

#include "records/augment_internal.h"
#include "records/redraw_shape.h"
#include "totals/clamped_moments.h"

/* What records/n_all_records_steps.c, records/n_totals_density.c, records/n_totals_chain.c,
 * records/n_scatter.c and records/n_clamped_totals.c share. */

/* How fast running means of shares that are taken forget, in warmup. */
static const double RESIZE_FORGET = 0.01;

/* Totals of the records of each level; d columns, k levels. */
struct resize_totals {
    double n, *count, *total, *scatter, *factor; /* k; k x d; d x d, lower triangles */
    double *sd;                                  /* of a column about the level means */
    struct clamped_moments *column;              /* d x k: what the bounds leave of it in a level */
    double *c, *theta;
    double *value;              /* of each component, as it is expected to be */
    double log_density, energy; /* of the surrogate, and what of it the noise has */
};

struct resize {
    int d, k;
    const int *column, *fixed;   /* of the totals: see totals/normal_coordinates.h */
    const double *lower, *upper; /* bounds of the columns, less their centres */
    double weight;               /* sum of the Dirichlet weights; 0: there is no factor */

    /* What a record that is born adds to T and to the counts, measured from the centres, so that
     * released components stay. */
    struct {
        double *total, *level;
        double *cross; /* the level's share that is subtracted there */
    } pace;
    /* The place of a component from 1 on, 0 where it is not released: the place of the count of a
     * level, of a column's total, of its total in a level (k x d), of the product of two columns.
     * And whether totals of a column are there for all levels. */
    struct {
        int *level, *total, *cross, *product, *all;
    } told;
    struct {
        double *count, *first, *product; /* k, k x d, d x d */
    } change;                            /* of a step */

    /* The records' own totals stand first in `kept`, what a way back leads to, or records that are
     * solved for, last; a chain goes from `now` to `next`. */
    struct resize_totals kept[4], *now, *next;
    /* Records that go; of their places, those that others fill, and by which. */
    struct {
        int *list, *hole, *filler, holes;
        int *all, *goes; /* of each record: its number; does it go? */
    } gone;
    double *mean, *moved; /* k x d: level means of Y before and after */
    double *normal, *spread;
    struct resize_map {
        double *matrix, *shift; /* d x d, k x d */
    } standard, shape;          /* of a record to Y, of Y to a record */
    double *row, *gradient_c, *gradient_kept;
    struct {
        double *mean, *left, *aim, *step, *slope;
    } newton; /* solves for the places of a column in the levels */

    /* Steps that solve for clamped totals. */
    struct {
        struct redraw *redraw; /* NULL: there are none */
        ptrdiff_t most;        /* so many records at most */
        double log_before;     /* what the ratio has of where the records are, */
        struct place *to;      /* and where they go */
        struct resize_totals *there;
    } clamped;
};

static inline struct resize *resize_of(const struct augment *a) { return OWN(a, resize); }

/* Are there such steps? Prepares what follows. */
int resize_create(struct augment *a);

/* The records' totals, from their complete-data statistic, to now. Returns 0 where a level is
 * empty, the scatter singular, or so few records that no step leads there. */
int resize_read(struct augment *a);

/* What the bounds leave of column i with these level means and this standard deviation, to `column`
 * and `sd`; what follows from n, counts, T, S, columns and what is kept of theta; and where `of`
 * stands in `column`, or -1. */
void resize_place_column(const struct resize *r, struct resize_totals *t, int i, const double *mean,
                         double sd);
void resize_evaluate(struct augment *a, struct resize_totals *t);
int resize_place_of(int count, const int *column, int of);

/* The factor of S. Returns 0 where S has none. */
int resize_factorise(const struct resize *r, struct resize_totals *t);

/* The log density of records with these totals, without eta. */
double resize_log_totals(struct augment *a, struct resize_totals *t);

/* The totals of which `seen`, those of struct redraw, are expected, and the log of the volume of
 * totals over that of `seen`. t->n is there. Returns 0 where they are not found. */
int resize_match(struct resize *r, struct resize_totals *t, const double *seen, double *log_volume);

/* What of the products of columns i and j does not come from their covariance, about their places,
 * and, to `slope`, what comes from a covariance of 1. */
double resize_product_held(const struct resize *r, const struct resize_totals *t, int i, int j,
                           double *slope);

/* Fisher's z of the correlation of i and j that gives their product where it was released, kept
 * within what normal records have. */
double resize_released_z(const struct augment *a, const struct resize_totals *t, int i, int j);

/* records/n_scatter.c: T and S_ii of a column of `next`, whose counts are there, that keeps
 * its means and its standard deviation; returns the log Jacobian. And a step of the kind
 * RESIZE_SCATTER, returning what resize_step() does. */
double resize_grow_column(struct resize *r, int i);
double resize_draw_scatter(struct augment *a);

/* From `now` to `next`: n, the counts, T and S, and what the model keeps of theta. Returns the log
 * of the ratio of densities and of proposals, with the Jacobian; -INFINITY where it is no step. */
double resize_step(struct augment *a, int fresh, enum resize_kind kind);

/* Which of the kinds whose share is learned comes next: more often one that warmup saw taken more
 * often. Whether a step is taken. */
enum resize_kind resize_choose_kind(struct augment *a);
int resize_takes(struct augment *a, enum resize_kind kind, double log_ratio, int learning);

/* records/n_clamped_totals.c: are there steps that solve for clamped totals? Room for as many
 * records as the state has. */
void resize_create_clamped(struct augment *a);

/* Before the chain of totals: `now` become those of which the records' clamped totals are expected.
 * After it, the log ratio of such a step to `next`; and it is made. The first returns 0 where there
 * is none. */
int resize_begin_clamped(struct augment *a);
double resize_follow_clamped(struct augment *a);
void resize_keep_clamped(struct augment *a);

#endif
