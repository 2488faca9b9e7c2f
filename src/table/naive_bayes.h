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

struct counts {
    int variables, classes, cells, levels, rows;
    struct counts_variable *variable;
    struct cell_weights weights;   /* that cells and rows refer to */
    int *cell_weight, *row_weight; /* rows: of the features, class by class */
    /* components that a cell, then those that a feature's level is part of */
    int *first, *component;
    const double *coefficient; /* of each entry of `component`, in linear queries; NULL: all 1 */
    /* Levels whose cells were hidden, and nothing else was published of: of the classes, then of
     * each row; NULL: there are none. */
    int *loose, *loose_first;
    double loose_most; /* the most that a hidden number was, or thereabouts */
    /* Groups of classes, between which no records move: that of a class, the
     * class's place in it, and the classes of each group. 0 groups: there are no exact numbers. */
    int groups, *group, *group_at, *group_first, *group_class;
    const double *group_total; /* below 0: not settled */
    double n, most; /* records, a part of the state where they are unknown; the most there can be */
    int size_target; /* the components that are n, after the levels */
    int root;        /* unknown n: the weight of the classes, as of a row */
    double size_spread;
    double weight; /* of the noise of all components; 0: differs, or is not Laplace */
    double geometric[MOST_KINKS + 1]; /* 1 / (1 - exp(-k weight)) */

    /* state: the table, and scales of d; of the class cells, for kinds 2 and 3 */
    double *count, *scale, *split_scale, *tries, *split_tries;
    double *mean, *square; /* of the counts in a window: average, squares about it */
    double *share;         /* of a row, for moves of kind 3 */
    double *seen, *sweeps;
    /* unknown n: of a cell a class, of a class, of all; and the classes' shares */
    double *size_scale, *size_tries, *class_share;
    struct size_slope slope; /* of the classes' counts in log n */
    int *class_at;           /* 0, 1, ... */

    /* follows from the state */
    double *log_phi, *log_psi, *total;

    /* workspace */
    double *part_from, *part_to, *phi_from, *phi_to; /* a level */
    double *psi_from, *psi_to;                       /* a variable */
    double *class_part;                              /* unknown n: a class */
    /* changes of a move that may be undone */
    int changes, *changed_cell, *changed_level;
    double *changed_by;
};

/* log phi and log psi of n records in a cell, and in a row */
static inline double counts_log_phi(const struct counts *s, int cell, double n) {
    return cell_log(s->weights.weight + s->cell_weight[cell], n);
}

static inline double counts_log_psi(const struct counts *s, int row, double n) {
    return -cell_log(s->weights.weight + s->row_weight[row], n);
}

/* log psi of n records in all classes, where n is unknown */
static inline double counts_log_root(const struct counts *s, double n) {
    return -cell_log(s->weights.weight + s->root, n);
}

/* change of energy when a target (a cell, a level, or n) gains `by` */
static inline double counts_gain_energy(const struct collapse *c, const struct counts *s,
                                        int target, double by) {
    double change = 0;
    for (int k = s->first[target]; k < s->first[target + 1]; ++k) {
        const int j = s->component[k];
        const double gained = s->coefficient ? s->coefficient[k] * by : by;
        change += noise_change(&c->noise, j, s->total[j], gained);
    }
    return change;
}

static inline void counts_gain(struct counts *s, int target, double by) {
    for (int k = s->first[target]; k < s->first[target + 1]; ++k)
        s->total[s->component[k]] += s->coefficient ? s->coefficient[k] * by : by;
}

/* May a class have records more or less, where n is unknown? */
static inline int counts_is_open(const struct counts *s, int class) {
    return s->groups == 0 || s->group_total[s->group[class]] < 0;
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
    const int first = s->loose ? s->loose_first[row] : 0;
    const int hidden = s->loose ? s->loose_first[row + 1] - first : 0;
    memset(part, 0, (size_t)levels * sizeof(double));
    if (hidden > 0 && rng_bits(rng) >> 63)
        part[s->loose[first + counts_choose(rng, hidden)]] = d;
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
