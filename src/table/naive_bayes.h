#ifndef NOISEAWARE_TABLE_NAIVE_BAYES_H
#define NOISEAWARE_TABLE_NAIVE_BAYES_H

#include "base/integer_step.h"
#include "contract/cell_weights.h"
#include "contract/collapse.h"
#include "mcmc/n_regression_proposal.h"

/* What the files of family "counts" share:
 *   table/naive_bayes_chain.c        the target, the state, learning, an iteration;
 *   table/naive_bayes_moves.c  moves of the table;
 *   table/naive_bayes_n_steps.c   those that change its sum.
 */

/* kinds of moves that are counted */
enum { WITHIN, BETWEEN, SPLIT, SIZE };

/* One sweep in CYCLE walks within rows, one has moves between classes of one cell each; one cycle
 * in FINER is on a finer scale. */
enum { CYCLE = 4, FINER = 8 };

/* two cells are drawn by the noise if they and their levels have no more components */
enum { MOST_KINKS = 8 };

struct counts_variable {
    int levels, at_cell, at_level, at_row, known;
};

/* What the parameters that are integrated out leave: log phi of a cell and log psi of a row. */
struct counts_prior {
    struct cell_weights weights; /* that cells and rows refer to */
    int *cell, *row, root;       /* rows: of the features, class by class; root: of the classes */
};

/* Components that a cell, then those that a feature's level, then those that n is part of. */
struct counts_targets {
    int *first, *component;
    const double *coefficient; /* of each entry of `component`, in linear queries; NULL: all 1 */
    int size;                  /* the number of n */
};

/* Groups of classes, between which no records move. 0 groups: there are no exact numbers. */
struct class_groups {
    int count, *of, *at, *first, *class; /* a class's, its place there; the classes of each group */
    const double *total;                 /* below 0: not settled */
};

/* Births and deaths, where n is unknown. */
struct size_steps {
    double spread;
    double *scale, *tries, *share; /* state: of a cell a class, of a class, of all; the classes' */
    struct size_slope slope;       /* of the classes' counts in log n */
    int *class;                    /* 0, 1, ... */
    double *part;                  /* a class */
};

struct counts {
    int variables, classes, cells, levels, rows;
    struct counts_variable *variable;
    struct counts_prior prior;
    struct counts_targets targets;
    /* Levels whose cells were hidden, and nothing else was published of: of the classes, then of
     * each row; NULL: there are none. */
    struct {
        int *level, *first;
        double most; /* the most that a hidden number was, or thereabouts */
    } loose;
    struct class_groups groups;
    double n, most; /* records, a part of the state where they are unknown; the most there can be */
    double weight;  /* of the noise of all components; 0: differs, or is not Laplace */
    double geometric[MOST_KINKS + 1]; /* 1 / (1 - exp(-k weight)) */
    struct size_steps sizes;

    /* state: the table; scales of d and their tries, of each cell, and of the class cells for kinds
     * 2 and 3 */
    double *count;
    struct {
        double *scale, *tries;
    } units, split;
    struct {
        double *seen, *mean, *square; /* of the counts: average, squares about it */
    } window;
    double *share; /* of a row, for moves of kind 3 */
    double *sweeps;

    /* follows from the state */
    double *log_phi, *log_psi, *total;

    /* workspace: what a row that loses, and one that gains, gets by a move */
    struct {
        double *part, *phi; /* a level */
        double *psi;        /* a variable */
    } from, to;
    struct {
        int count, *cell, *level;
        double *by;
    } changes; /* of a move that may be undone */
};

/* log phi and log psi of n records in a cell, and in a row */
static inline double counts_log_phi(const struct counts_prior *prior, int cell, double n) {
    return cell_log(prior->weights.weight + prior->cell[cell], n);
}

static inline double counts_log_psi(const struct counts_prior *prior, int row, double n) {
    return -cell_log(prior->weights.weight + prior->row[row], n);
}

/* log psi of n records in all classes, where n is unknown */
static inline double counts_log_root(const struct counts_prior *prior, double n) {
    return -cell_log(prior->weights.weight + prior->root, n);
}

/* change of energy when a target (a cell, a level, or n) gains `by` */
static inline double counts_gain_energy(const struct collapse *c, const struct counts *s,
                                        int target, double by) {
    double change = 0;
    for (int k = s->targets.first[target]; k < s->targets.first[target + 1]; ++k) {
        const int j = s->targets.component[k];
        const double gained = s->targets.coefficient ? s->targets.coefficient[k] * by : by;
        change += noise_change(&c->noise, j, s->total[j], gained);
    }
    return change;
}

static inline void counts_gain(struct counts *s, int target, double by) {
    for (int k = s->targets.first[target]; k < s->targets.first[target + 1]; ++k)
        s->total[s->targets.component[k]] +=
            s->targets.coefficient ? s->targets.coefficient[k] * by : by;
}

/* May a class have records more or less, where n is unknown? */
static inline int counts_is_open(const struct class_groups *groups, int class) {
    return groups->count == 0 || groups->total[groups->of[class]] < 0;
}

/* one of 0..count-1 */
static inline int counts_choose(struct rng *rng, int count) {
    return (int)((rng_bits(rng) >> 32) * (uint64_t)count >> 32);
}

static inline int counts_choose_other(struct rng *rng, int count, int one) {
    const int other = counts_choose(rng, count - 1);
    return other + (other >= one);
}

/* d units in the proportions of a row's shares; the parts sum to d */
static inline void counts_split_units(int levels, const double *share, double d, double *part) {
    double sum = 0, before = 0;
    for (int l = 0; l < levels - 1; ++l) {
        sum += share[l];
        const double upto = fmin(floor(d * sum + 0.5), d);
        part[l] = upto - before;
        before = upto;
    }
    part[levels - 1] = d - before;
}

/* All of d to one level of a feature in a class; half the time to one that was hidden, if there is
 * any. Which one does not depend on the state. */
static inline void counts_all_units(struct rng *rng, const struct counts *s, int v, int class,
                                    double d, double *part) {
    const int levels = s->variable[v].levels, row = 1 + s->variable[v].at_row + class;
    const int first = s->loose.level ? s->loose.first[row] : 0;
    const int hidden = s->loose.level ? s->loose.first[row + 1] - first : 0;
    memset(part, 0, (size_t)levels * sizeof(double));
    if (hidden > 0 && rng_bits(rng) >> 63)
        part[s->loose.level[first + counts_choose(rng, hidden)]] = d;
    else
        part[counts_choose(rng, levels)] = d;
}

/* One sweep of moves, number `turn` (from 0). `learning`: scales are learned from it. */
void counts_sweep(struct collapse *c, struct counts *s, int turn, int learning);

/* Where s->weight is not 0: a class's count, from 0 to `most`, by the noise alone; what it is where
 * none is released. */
double counts_draw_alone(const struct collapse *c, const struct counts *s, int cell, double most);

/* The same as counts_sweep() of births and deaths, where n is unknown. */
void counts_move_size(struct collapse *c, struct counts *s, int turn, int learning);

/* Does that draw all counts again? Then a sweep has less to do. */
int counts_redraws(const struct counts *s);

#endif
