#ifndef NOISEAWARE_RECORDS_AUGMENT_H
#define NOISEAWARE_RECORDS_AUGMENT_H

#include "base/block.h"
#include "contract/mech.h"
#include "contract/model.h"
#include "contract/model_levels.h"
#include "contract/n_prior.h"
#include "contract/noise.h"
#include "contract/run.h"
#include "contract/stat.h"
#include "mcmc/adapt.h"
#include "mcmc/n_regression_proposal.h"
#include "mcmc/rounds_per_iteration.h"
#include "mcmc/theta_metropolis.h"
#include "records/move.h"
#include "records/shape_hmc.h"

/* How a part's noise meets its statistic. DENSE: a record may change every
 * total. CELLS: it touches a few of many counts. RECORDS: one noisy value per
 * record, nothing is summed (local privacy). SIZE: counts that depend on n alone, so that a
 * sweep need not look at them. RANKS: it is in one of many cells, whose counts have a joint density
 * (quantiles). */
enum part_kind { PART_DENSE, PART_CELLS, PART_RECORDS, PART_RANKS, PART_SIZE };

static inline int part_is_counts(enum part_kind kind) {
    return kind == PART_CELLS || kind == PART_SIZE || kind == PART_RANKS;
}

/* Does a record move from cell to cell? */
static inline int part_has_cells(enum part_kind kind) {
    return kind == PART_CELLS || kind == PART_RANKS;
}

/* One released statistic, and the model's columns that hold its variables. */
struct part {
    struct stat stat;
    enum part_kind kind;
    enum kernel kernel;
    const int *column;
    int offset; /* DENSE: among the dense components; CELLS, SIZE, RANKS: among the cells */
    /* RECORDS: released values, n a component, and each component's weight */
    const double *local_released, *local_weight;
    /* with KERNEL_MATCH, of each component: its answers, and the energy of each given each level */
    const int *answers;
    const double **answer_energy;
    int *cell_before, *cell_after; /* CELLS, RANKS: touched * block */
    struct density density;        /* with KERNEL_DENSITY */
};

/* What steps of all records do with what is released of totals and of products: all of it stays;
 * totals grow with the root of n; or some are drawn from their release and the noise. How often
 * each of these is made is learned. Or one column's totals and square grow with n, or n stays and a
 * column's scatter is drawn again. */
enum resize_kind {
    RESIZE_HOLD,
    RESIZE_STRETCH,
    RESIZE_REFRESH,
    RESIZE_KINDS,
    RESIZE_GROW = RESIZE_KINDS,
    RESIZE_SCATTER
};

/* How records come to have the totals where such steps lead: they follow what is expected of them,
 * or they are found by solving for the totals. */
enum resize_way { RESIZE_FOLLOW, RESIZE_SOLVE, RESIZE_WAYS };

/* Of births and deaths: the scale of how many records at once, and how often it was learned; after
 * warmup how many were tried and accepted, and the same of proposals of records. */
struct births {
    double scale, tries, made, accepted, visited, updated;
    double tilt_made, tilt_accepted; /* of those that take theta along */
    double followed; /* in warmup, running mean of those accepted that go where n was seen */
    double taken[RESIZE_KINDS]; /* the same of each kind of steps of totals, */
    double ways[RESIZE_WAYS];   /* and of each way in which records come to have these */
};

/* Where the parts' components are among those of struct noise. Dense ones come first: the absolute
 * kernel, the squared one, the rest of `dense` with densities of their parts' own. Each run is a
 * multiple of LANES; a component that only pads has released = weight = 0. Then the cells, first
 * the `open` ones that records can leave; after them those of RANKS, of which draws tell nothing.
 */
struct layout {
    int parts;
    struct part *part;
    int dense, cells, open, ranks;
    int dense_parts, used;     /* used: dense components up to the last that does not only pad */
    int locals;                /* components of all parts of kind RECORDS */
    const struct part *counts; /* if its cells, of one scale, are all that records can change */
    double searching;          /* for a start that the release has density at: see noise_energy.c */
};

/* (released - total) * weight */
struct residuals {
    double *dense, *cells;
};

/* The number of records, where it is not known: records/n_birth_death.c. */
struct size {
    const struct size_prior *prior; /* NULL: n is known; else a part of the state */
    double spread;                  /* sd of its start about the n that is given */
    int most_born;                  /* births and deaths at once, at most */
    int told;                       /* is a draw to have the numbers of records? */

    /* state */
    struct births births;
    struct size_slope slope; /* of the coordinates that move without a surrogate; and of the */
    struct size_slope pace;  /* complete-data statistic, of nothing where no update takes it */

    /* workspace */
    double **born;              /* records that are to be born */
    double *jump;               /* by which steps of n moved theta's coordinates */
    double *followed, *updates; /* of what warmup learns */
    double *batch_log;          /* of steps that take theta along, */
    struct residuals beside;    /* and of the records that are as they were */
    struct rng *batch_start;
};

/* Of the iterations after warmup, part of the state as they stand here. */
struct counters {
    double most_energy_step; /* minus the smallest log acceptance probability seen */
    double work;             /* see records/work.c */
    double passes_made[PASS_KINDS], passes_accepted[PASS_KINDS];
    double maps_made, maps_accepted, leapfrogs; /* of surrogate transitions */
    double responses_made, responses_accepted;
    double divergent, deepest; /* trajectories of either that diverged; of the surrogate's cut */
    double regrouped_made, regrouped_accepted; /* transfers between levels */
};

/* Work, see records/work.c: of a pass over the records, of moving a column; of the surrogate's map
 * and of a leapfrog step. */
struct work {
    double pass, column, map, leapfrog;
};

/* Views of some records, and what becomes of them. */
struct block {
    int most, most_moved; /* records of a block of a sweep, and of a pass */
    double **x_new, **x_at, **at_chunk, **to_chunk;
    const double **view, **view_new, **moved;
    /* all records after a move, columns of `stride`: where they are expensive to make twice */
    double *moved_x;
    struct terms map;               /* of a column under a linear map */
    struct record_columns *records; /* of each site */
};

/* Workspace of a sweep. */
struct visit {
    double *before, *change; /* dense components of a block, one after the other */
    double *diff;            /* the changes, record after record */
    double *local;           /* components of a block under local noise */
    double *extra;           /* what local noise adds to a record's step */
    double *threshold;       /* drawn, of which the first are taken */
    int drawn, taken;
    /* Whether a pass may draw thresholds, and the innovations of the next block's
     * records meanwhile: see records/accept_pass.c */
    int draws_ahead;
    double *innovation; /* of a block, column after column */
    const double **column_of;
    double *gap; /* of the records of a block: above 0 where the proposal is rejected */
    int *listed; /* with `counts`: the records of a block that would change a cell, */
    double *by;  /* and how far they would move residuals, touched * block */
    double *path, *path_energy, *path_log; /* see accept_speculatively */
    double accepted_share;                 /* share of the last proposals that were accepted */
    double *complete_before;               /* the complete-data statistic before it */
};

/* Of steps of theta: by how much, its moving coordinates, the columns that move with it; log prior
 * and energy of the state while passes run. */
struct theta_step {
    double *by, *place;
    int *changed;
    double log_prior, energy;
};

/* In place of the model's prior and update of theta: where theta has a prior that depends on other
 * sites. */
struct augment_layer {
    void *self;
    double (*log_prior)(void *self, const double *theta);
    int (*update)(void *self, int learning); /* theta given the records; returns PLUGIN_* */
};

/* Linear maps of all records: what R says of them, and workspace. See records/linear_maps.c. */
struct record_maps {
    int sets;                /* of columns that are reflected together */
    const double *set;       /* 1 for each column of a set, else 0 */
    const double *origin;    /* of each column: the point that powers are about */
    int keeps_squares;       /* are maps of records/second_moments.c made? */
    const double *unit;      /* of a column's directions; 0: it stays as it is */
    const double *stretched; /* of each column: 1 where its square is not published */

    /* x' = mix x + shift of the columns that are turned; log_volume: of all records' values */
    int *turned;
    double *mix, *shift, log_volume;
    double
        log_residual; /* by how much the log of a residual standard deviation that is kept grows */
    double *gram, *sums, *solved;        /* of these columns about their origins */
    double *slope_complete, *slope_kept; /* of a marginal density, of no use here */
};

/* Components that may cross a hole of their noise, and those that stay meanwhile; and workspace.
 * See records/hole_crossings.c. */
struct hole_crossings {
    int components, crossing;
    /* of each component, 6: two columns, then what a release of n adds, and multiples of the
     * columns' totals and of the total of their product, about the origins */
    const double *terms, *origin;
    const int *first;     /* of its pieces of noise, where their centres are; and of the last */
    const double *centre; /* in the component's units */
    double *total, *total_after, *product, *product_after, *factor, *factor_after, *inverse, *by;
};

struct augment {
    /* Releases of different records under one theta, one a site: each has records, statistics and
     * noise in a struct augment of its own. The first is this one, which all that concerns theta
     * is done with; the others share it, see augment_share_theta(). One release: no others. */
    struct {
        int count;
        struct augment **of, *lead; /* lead: the first of all sites */
    } sites;

    struct model model;
    const struct augment_layer *layer; /* NULL: none */
    struct layout layout;
    struct noise noise;  /* of totals: dense components and cells */
    ptrdiff_t n, stride; /* records, and room for them: PAD_LANES(n), or more where n is unknown */
    struct size size;
    int plain;                   /* no partial refresh: the sweep of Ju et al. alone */
    struct surrogate *surrogate; /* what is expected of all records' totals; NULL: none */
    void *own[MOVES];            /* what each move has of its own; NULL: it is not made */

    /* State: with these restored, a run continues bit for bit. The residuals are copied in and out
     * because the dense part swaps places with its candidate. */
    double *theta;
    double *x;     /* columns of `stride` */
    int *accepted; /* of each record, after warmup; of no account where n is unknown */
    struct rng *rng;
    struct adapt adapt;
    struct theta_update update; /* of a model without rtheta() */
    struct rounds rounds;       /* where augment_makes_rounds(), or a pool's rounds */
    struct residuals residual;
    struct counters count;

    /* Workspace, see augment_prepare() */
    struct residuals candidate;
    double *total, *complete, *complete_after, *theta_new;
    struct theta_step step;
    struct block block;
    struct visit visit;
    struct work cost;
};

/* cells and those of RANKS */
static inline int augment_counts(const struct augment *a) {
    return a->layout.cells + a->layout.ranks;
}

/* What a move has of its own, by its name in AUGMENT_MOVES. */
#define OWN(a, name) ((a)->own[OWN_##name])

/* Where each part's components stand: sets the parts' offsets, the layout and the kernels, from the
 * parts' kinds, kernels and sizes. */
void augment_lay_out(struct augment *a);
void augment_prepare(struct augment *a);

/* All sites prepared, of which this is the first; and when it has theta, a random stream and what
 * is learned, the others share these. */
void augment_join_sites(struct augment *a, int sites, struct augment **site);
void augment_share_theta(struct augment *a);

/* Workspace that has one entry a record, for so many. */
void augment_make_room(struct augment *a, ptrdiff_t room);

/* With a surrogate, after that; and then the moves. */
void augment_prepare_surrogate(struct augment *a);
void augment_prepare_moves(struct augment *a);

/* The factors between whose levels records are transferred, and how many. */
static inline int augment_factors(const struct model *model) {
    return model_joint(model) ? 1 : model_factors(model);
}
static inline const struct model_factor *augment_factor(const struct model *model, int f) {
    const struct model_levels *levels = model->levels;
    return levels->joint ? levels->joint : levels->factor + f;
}

/* May an iteration have several rounds? */
int augment_makes_rounds(const struct augment *a);

/* Records drawn given theta; with `search`, moved to where the release has density, and
 * theta drawn given them. `sd`: guesses of the standard deviations of theta, NULL where there are
 * none. */
void augment_start(struct augment *a, int search, const double *sd);

/* From a start where noise with a density of its own is impossible, moves records to where it is
 * possible, and theta with them: by sweeps and moves under normal noise that narrows. Needs all
 * that an iteration needs; where it fails the noise stays impossible. */
void augment_find_support(struct augment *a);

/* The density that surrogate transitions, or exact ones, move on, and its gradient, at
 * coordinates q; the records' coordinates where the first is NaN, which are written to q. */
double augment_surrogate_density(struct augment *a, int exact, double *q, double *gradient);

/* The same of the moves of a response's coefficients. */
double augment_response_density(struct augment *a, double *q, double *gradient);
double augment_categories_density(struct augment *a, double *q, double *gradient);

/* the largest that was seen at any site */
double augment_most_energy_step(const struct augment *a);

/* Minus the log of the noise density at the state, up to a constant. */
double augment_energy(struct augment *a);

/* Where n is unknown: is there too little room for the births of an iteration? */
int augment_is_full(const struct augment *a);

/* What the chain reports about itself, `after` iterations after warmup. */
void augment_diagnostics(const struct augment *a, double after, struct chain_diagnostics *told);

/* One iteration: non-centred passes, a sweep, a draw of theta. Warmup ends
 * after `warmup` iterations. Returns PLUGIN_*; *accepted gets the share of the
 * proposals that the sweep accepted. */
int augment_iterate(struct augment *a, int iteration, int warmup, double *accepted);

/* One of its rounds, from 0; a pool, whose rounds these are, asks for them itself. */
int augment_make_round(struct augment *a, int iteration, int warmup, int round, double *accepted);

#endif
