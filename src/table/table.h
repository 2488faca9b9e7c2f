#ifndef NOISEAWARE_TABLE_TABLE_H
#define NOISEAWARE_TABLE_TABLE_H

#include "contract/cell_weights.h"
#include "contract/collapse.h"
#include "mcmc/autocorrelation_tuner.h"
#include "mcmc/hmc.h"
#include "model/clique_tables.h"

/* What the files of family "table" share:
 *   table/table_chain.c        the target, the state, learning, an iteration;
 *   table/transfers.c  transfers between cells;
 *   table/filled_holes.c  noise with holes, which transfers cross;
 *   table/exact_sums.c  exact numbers: where tables start, which directions keep them;
 *   table/theta_nuts.c  probabilities that are not integrated out;
 *   table/noncentred_moves.c  counts that follow theta, where it is held.
 */

/* transfers that are counted: between two cells, of codes that are exchanged, of contrasts; births
 * and deaths; those that are made for exact numbers */
enum { PAIR, SWAP, CONTRAST, SIZE, KEPT, TRANSFERS };

/* after these, of NUTS */
enum { THETA_COUNTERS = 2 * TRANSFERS };

/* the most columns of a contrast */
enum { MOST_CONTRASTED = 4 };

/* Draws of a level from probabilities that were learned (alias method, Walker 1977). */
struct alias {
    double *share;
    int *other;
};

struct table_part {
    struct part_columns of;
    int at_cell; /* nodes of the cells, row by row */
    int at_row;  /* nodes of the rows; -1: there is only one row, n, which is known */
    int host;    /* an earlier part that has all its parents; -1: it has none */
};

/* A change of the table along which units are drawn: nodes that gain `by` a unit, and
 * released components that gain `change`. */
struct direction {
    int nodes, components;
    int *node, *component;
    double *by, *change;     /* dense: 0 but where a node or a component is listed */
    unsigned char *listed;   /* of nodes, then of components */
    double slope, curvature; /* of the energy of components with the squared kernel */
    double log_p;            /* slope of the log probability of cells that is known */
    int kinks;               /* components with the absolute kernel */
    double *kink_residual, *kink_change, *kink_weight;
    int intervals; /* what was hidden, rounded or clipped */
    int *interval;
};

/* Exact numbers: combinations of some columns' codes that are in the same ones are a group. Vectors
 * are changes of the groups' counts that leave all exact numbers as they are: a basis of the
 * lattice of these. */
struct table_exact {
    int columns, groups, vectors;
    int *column;
    int *group_of;        /* of a combination, -1: it is impossible */
    int *first;           /* members of a group: combinations */
    const double *member; /* the codes of a cell with such a combination, all columns */
    int *vector_first, *vector_group;
    const double *vector_by, *start; /* start: the groups' counts in some table that has them all */
    int open; /* the group that is in no exact number where n is unknown, or -1 */
};

/* Holes of the noise of components, and how they are filled: see table/filled_holes.c. */
struct table_holes {
    const double *lower, *upper; /* totals between which a component's holes are; NULL: there are
                                    none */
    const double *least;         /* energy of its noise */
    int in;                      /* components that are in a hole */
    unsigned char *is_in;
    double *fill;          /* what the energy in holes has more than the least; learned in warmup */
    double tries, outside; /* transfers of an iteration, and those that ended outside */
    int lost;              /* did transfers after warmup end in a hole? */
};

/* theta given the table: NUTS, and what it holds of its target, if anything, and where; whether a
 * trajectory came to where that is not so. */
struct table_theta {
    int held; /* theta is another's, which moves it given the table */
    struct hmc hmc;
    double *unit, *work;
    int holding, beyond;
    unsigned char *far, *far_there;
    double *from, *place;
};

struct table {
    int columns, parts, cells, nodes;
    int *size; /* codes of a column */
    struct table_part *part;
    struct {
        struct cell_weights of; /* that nodes refer to */
        int *at;
        double *sign; /* of a node's log weight: 1 of cells, -1 of rows */
    } weights;
    struct {
        int *first, *component; /* that a node is part of */
        const double *coefficient;
        int fractions; /* are there coefficients that are no whole numbers? */
    } queries;
    int tracked; /* are the counts of the cells stored with the statistic? */
    struct {
        int at;        /* its node, next to the cells */
        double most;   /* the largest there can be */
        double spread; /* where it is unknown, as the release tells it */
    } n;
    /* Kinds of transfers: contrasts of the columns of a set, one column or more; then pairs of any
     * cells; then swaps; then, where n is unknown, births and deaths; then, where there are exact
     * numbers, what keeps them. A set's columns start at `first`. */
    struct {
        int count, sets, births, kept, *first, *column;
    } kinds;
    struct table_holes holes;
    struct table_exact exact; /* no groups: there are no exact numbers */

    /* Where theta is given, and moves given the table: log probabilities of nodes, 0 for others
     * than cells. log_p NULL: probabilities are integrated out. */
    double *log_p, *log_factorial;
    struct table_theta theta;
    struct {
        double *count, *total, *stick, *log_p;
    } carried; /* workspace: counts that follow a theta */

    /* state */
    double *count;      /* of nodes */
    struct watch watch; /* components, cells, unknown n */
    struct {
        double *inverse; /* of their variances in the window before */
        double *visit;   /* how often a cell is to be visited, up to a constant */
        double *use;     /* and a kind */
        double *tried;   /* transfers of a kind in a window */
        double *gain_released, *gain_cells; /* squared jumps by them in units of the variances */
    } learned;
    double *moves; /* transfers of an iteration */

    /* follows from the state */
    double *total;
    struct alias alias, kind_alias;

    /* workspace */
    struct direction along;
    int *codes, *codes_to; /* a column each */
    int *small, *large;    /* lists of levels */
};

static inline double table_log(const struct table *s, int node, double n) {
    return s->weights.sign[node] * cell_log(s->weights.of.weight + s->weights.at[node], n);
}

/* The combination of some columns' codes, the last column's the fastest. */
static inline int table_combine(const struct table *s, int count, const int *column,
                                const int *codes) {
    int at = 0;
    for (int k = 0; k < count; ++k) at = at * s->size[column[k]] + codes[column[k]];
    return at;
}

/* The level of a part that has these codes; -1: they are impossible. */
static inline int table_level(const struct table *s, const struct table_part *part,
                              const int *codes) {
    if (part->of.children == 1) return codes[part->of.child[0]];
    return part->of.level_of[table_combine(s, part->of.children, part->of.child, codes)];
}

/* Writes the codes of a level of a part to its children's places. */
static inline void table_set_level(const struct table_part *part, int level, int *codes) {
    if (part->of.children == 1)
        codes[part->of.child[0]] = level;
    else
        for (int k = 0; k < part->of.children; ++k)
            codes[part->of.child[k]] = (int)part->of.code[level * part->of.children + k];
}

/* So many transfers; where theta is integrated out, so many that end outside all holes of the
 * noise. `wide`: drawn from all that is possible, however far. `learning`: what they were good for
 * is noted. */
void table_transfers(struct collapse *c, struct table *s, int count, int wide, int learning);

/* ---- noise with holes: table/filled_holes.c ---- */

/* Reads the fields, if there are some. Returns PLUGIN_*. */
int table_holes_read(const struct fields *fields, const struct collapse *c, struct table *s);

/* The energy of the noise of a component with holes filled. */
double table_energy(const struct collapse *c, const struct table *s, int j, double total);

/* Finds out which of all components, or of the direction's, are in a hole. */
void table_holes_find(const struct collapse *c, struct table *s);
void table_holes_follow(const struct collapse *c, struct table *s);

/* How many transfers may be tried for so many that end outside. */
double table_holes_tries(const struct table *s, int count, int learning);

/* After an iteration of warmup. */
void table_holes_learn(struct table *s, int size);

/* Makes `visit` the probabilities of cells to be chosen, row by row, and `use` those of kinds. */
void table_set_choices(struct table *s);

/* The corner with these codes gains `by`. Returns 0 if it is impossible. */
int table_add_corner(struct table *s, const int *codes, double by);

/* Forgets the corners. */
void table_clear(struct table *s);

/* Draws of a combination from what warmup learned; and of one of so many things. */
void table_draw_codes(struct rng *rng, const struct table *s, int *codes);
int table_choose(struct rng *rng, int count);

/* Reads the fields of exact numbers, if there are some. Returns PLUGIN_*. */
int table_exact_read(const struct fields *fields, struct table *s);

/* A table that has the exact numbers and, where n is unknown, `n` records if it may. Counts are 0
 * before. */
void table_exact_start(struct rng *rng, struct table *s, double n);

/* Adds corners that leave the exact numbers as they are. Returns 0 if one is impossible. */
int table_exact_direction(struct rng *rng, struct table *s);

/* Counts of the rows of a part as the tables of the parts before have them. */
void table_count_rows(struct table *s, const struct table_part *part, double *count);

/* ---- counts that follow theta: table/noncentred_moves.c ---- */

void table_carry_create(const struct collapse *c, struct table *s);

/* Makes the counts that follow theta to `theta_to`. Returns the log of the ratio of the densities
 * of all but theta. */
double table_carry(struct collapse *c, const double *theta_to);

/* Takes these. */
void table_keep_carried(struct collapse *c);

/* ---- theta given the table: table/theta_nuts.c ---- */

int table_theta_serves(const struct collapse *c);
void table_theta_create(const struct collapse *c, struct table *s);
void table_given_create(struct table *s);
int table_theta_stored(const struct collapse *c);
void table_theta_attach(struct collapse *c, struct table *s, double *store);

/* Makes log_p that of theta as it is. */
void table_theta_use(const struct collapse *c, struct table *s);

/* Counts of n records, given theta; then a new state of NUTS. */
void table_theta_draw_cells(const struct collapse *c, struct table *s, double n);
void table_theta_start(struct collapse *c, struct table *s);

/* theta given the table. Returns PLUGIN_*. */
int table_theta_move(struct collapse *c, struct table *s, struct hmc_step *told);
double table_theta_work(const struct collapse *c, const struct table *s);

/* What NUTS samples from, given the table as it is. */
double table_theta_density(const struct collapse *c, const struct table *s, const double *q,
                           double *gradient);

/* log(to! / from!) */
double table_log_factorial_ratio(const struct table *s, double from, double to);

static inline void table_gain(struct table *s, int node, double by) {
    for (int k = s->queries.first[node]; k < s->queries.first[node + 1]; ++k)
        s->total[s->queries.component[k]] += s->queries.coefficient[k] * by;
}
double table_log_factorial(const struct table *s, double n);
void table_draw_in_group(struct rng *rng, const struct table *s, int group, int *codes);
int table_draw_alias(struct rng *rng, int levels, const double *share, const int *other);

#endif
