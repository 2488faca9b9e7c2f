#ifndef NOISEAWARE_METHOD_COLLAPSE_COUNTS_H
#define NOISEAWARE_METHOD_COLLAPSE_COUNTS_H

#include "dist.h"
#include "method_collapse.h"

/* What the files of family "counts" share:
 *   method_collapse_counts.c        the target, the state, learning, an iteration;
 *   method_collapse_counts_moves.c  moves of the table.
 */

/* kinds of moves that are counted */
enum { WITHIN, BETWEEN, SPLIT };

/* counts below TABLE are looked up */
enum { TABLE = 1024 };

/* One sweep in CYCLE walks within rows, one has moves between classes of one cell each; one cycle
 * in FINER is on a finer scale. */
enum { CYCLE = 4, FINER = 8 };

/* two cells are drawn by the noise if they and their levels have no more components */
enum { MOST_KINKS = 8 };

/* log phi of a cell. Dirichlet weight alpha, or a known probability: then
 * relative to Poisson counts of mean `mean`, which keeps the numbers small. */
struct counts_distribution {
    double value; /* alpha or the mean */
    struct dist_rising rising;
    const double *table;
    int known;
};

struct counts_variable {
    int levels, at_cell, at_level, at_row, known;
};

struct counts {
    int variables, classes, cells, levels, rows;
    struct counts_variable *variable;
    struct counts_distribution *distribution; /* that cells and rows refer to */
    int distributions, tables;
    int *cell_distribution, *row_distribution; /* rows: of the features, class by class */
    /* components that a cell, then those that a feature's level is part of */
    int *first, *component;
    double n;
    double weight; /* of the noise of all components; 0: differs, or is not Laplace */
    double geometric[MOST_KINKS + 1]; /* 1 / (1 - exp(-k weight)) */

    /* state: the table, and scales of d; of the class cells, for kinds 2 and 3 */
    double *count, *scale, *split_scale, *tries, *split_tries;
    double *mean, *square; /* of the counts in a window: average, squares about it */
    double *share;         /* of a row, for moves of kind 3 */
    double *seen, *sweeps;

    /* follows from the state */
    double *log_phi, *log_psi, *total;

    /* workspace */
    double *part_from, *part_to, *phi_from, *phi_to; /* a level */
    double *psi_from, *psi_to;                       /* a variable */
};

static inline double counts_compute_log_phi(const struct counts_distribution *distribution,
                                            double n) {
    return distribution->known ? dist_log_poisson(n, distribution->value)
                               : dist_log_rising(&distribution->rising, n);
}

static inline double counts_look_up(const struct counts_distribution *distribution, double n) {
    return distribution->table && n < TABLE ? distribution->table[(int)n]
                                            : counts_compute_log_phi(distribution, n);
}

/* log phi and log psi of n records in a cell, and in a row */
static inline double counts_log_phi(const struct counts *s, int cell, double n) {
    return counts_look_up(s->distribution + s->cell_distribution[cell], n);
}

static inline double counts_log_psi(const struct counts *s, int row, double n) {
    return -counts_look_up(s->distribution + s->row_distribution[row], n);
}

/* One sweep of moves, number `turn` (from 0). `learning`: scales are learned from it. */
void counts_sweep(struct collapse *c, struct counts *s, int turn, int learning);

#endif
