#ifndef NOISEAWARE_METHOD_COLLAPSE_TABLE_H
#define NOISEAWARE_METHOD_COLLAPSE_TABLE_H

#include "cells.h"
#include "method_collapse.h"

/* What the files of family "table" share:
 *   method_collapse_table.c        the target, the state, learning, an iteration;
 *   method_collapse_table_moves.c  transfers between cells.
 */

/* transfers that are counted: between two cells, of codes that are exchanged, of contrasts; births
 * and deaths */
enum { PAIR, SWAP, CONTRAST, SIZE };

/* the most columns of a contrast */
enum { MOST_CONTRASTED = 4 };

/* Draws of a level from probabilities that were learned (alias method, Walker 1977). */
struct alias {
    double *share;
    int *other;
};

struct table_part {
    int levels, rows, children, parents;
    int *child, *parent; /* columns */
    const double *code;  /* of several children: their codes, level by level */
    int *level_of;       /* and the level of each combination, -1: it is impossible */
    int at_cell;         /* nodes of the cells, row by row */
    int at_row;          /* nodes of the rows; -1: there is only one row, n, which is known */
    int host;            /* an earlier part that has all its parents; -1: it has none */
};

/* A change of the table along which units are drawn: nodes that gain `by` a unit, and
 * released components that gain `change`. */
struct direction {
    int nodes, components;
    int *node, *component;
    double *by, *change;     /* dense: 0 but where a node or a component is listed */
    unsigned char *listed;   /* of nodes, then of components */
    double slope, curvature; /* of the energy of components with the squared kernel */
    int kinks;               /* components with the absolute kernel */
    double *kink_residual, *kink_change, *kink_weight;
    int intervals; /* what was hidden, rounded or clipped */
    int *interval;
};

struct table {
    int columns, parts, cells, nodes;
    int *size; /* codes of a column */
    struct table_part *part;
    struct cell_weights weights; /* that nodes refer to */
    int *weight;
    double *sign; /* of a node's log weight: 1 of cells, -1 of rows */
    /* components that a node is part of, and their coefficients */
    int *first, *component;
    const double *coefficient;
    int fractions; /* are there coefficients that are no whole numbers? */
    int tracked;   /* the cells are told with the statistic */
    int at_size;   /* the node of n, next to the cells */
    double most;   /* the largest n there can be */
    double spread; /* of n where it is unknown, as the release tells it */
    /* Kinds of transfers: contrasts of the columns of a set, one column or more; then pairs of
     * any cells; then swaps; then, where n is unknown, births and deaths. A set's columns start at
     * kind_first. */
    int kinds, sets, *kind_first, *kind_column;

    /* state */
    double *count;                       /* of nodes */
    double *mean, *square, *step, *last; /* of what is watched: components, cells, unknown n */
    double *inverse;                     /* of their variances in the window before */
    double *visit;                       /* how often a cell is to be visited, up to a constant */
    double *use;                         /* and a kind */
    double *tried;                       /* transfers of a kind in a window */
    double *gain_released, *gain_cells;  /* squared jumps by them in units of the variances */
    double *seen, *moves;                /* iterations of a window; transfers of an iteration */

    /* follows from the state */
    double *total;
    struct alias alias, kind_alias;

    /* workspace */
    struct direction along;
    int *codes, *codes_to; /* a column each */
    int *small, *large;    /* lists of levels */
    double *correlation;   /* of what is watched */
};

static inline double table_log(const struct table *s, int node, double n) {
    return s->sign[node] * cell_log(s->weights.weight + s->weight[node], n);
}

/* The combination of some columns' codes, the last column's the fastest. */
static inline int table_combine(const struct table *s, int count, const int *column,
                                const int *codes) {
    int at = 0;
    for (int k = 0; k < count; ++k) at = at * s->size[column[k]] + codes[column[k]];
    return at;
}

/* Writes the codes of a level of a part to its children's places. */
static inline void table_set_level(const struct table_part *part, int level, int *codes) {
    if (part->children == 1)
        codes[part->child[0]] = level;
    else
        for (int k = 0; k < part->children; ++k)
            codes[part->child[k]] = (int)part->code[level * part->children + k];
}

/* One transfer. `wide`: drawn from all that is possible, however far. `learning`: what it was
 * good for is noted. */
void table_transfer(struct collapse *c, struct table *s, int wide, int learning);

/* Makes `visit` the probabilities of cells to be chosen, row by row, and `use` those of kinds. */
void table_set_choices(struct table *s);

static inline void table_gain(struct table *s, int node, double by) {
    for (int k = s->first[node]; k < s->first[node + 1]; ++k)
        s->total[s->component[k]] += s->coefficient[k] * by;
}

#endif
