/* Contract of a model: how records arise, and the prior. See contract/plugin.h.
 *
 * A model has the four hooks of struct model_class. What else it can do are its capabilities: each
 * is a struct of a few hooks, and of what is known of them, in a header of its own. create() points
 * to those that the model has under the fields that it was given. One that is NULL means "not
 * available": a method that needs it does not support the model, or does without.
 *
 * The public header noiseaware.h offers the part that users need for their own models;
 * model/compiled.c translates. It differs in these points: random numbers come through a table of
 * functions, not as a struct rng; theta has no known coordinates and no description, but report()
 * and invert() instead; of the capabilities there are values, prior, statistic, update, density,
 * innovations, refresh and move, without prior_gradient, add_latent, rtheta_uncut, curve,
 * prior_curve and serve(); groups, rounds and costs are not offered; and it has a version.
 */
#ifndef NOISEAWARE_CONTRACT_MODEL_H
#define NOISEAWARE_CONTRACT_MODEL_H

#include "base/rng.h"
#include "contract/coordinates.h"
#include "contract/plugin.h"

struct model_class;

/* What hooks cost for each record, in units of the time that a random normal takes. The sampler's
 * schedule compares hooks by these costs. 0 means the usual cost, which is given with each. */
struct model_costs {
    double records; /* rrecords; 0: one for each column */
    double refresh; /* 0: as rrecords */
    double move;    /* 0: nothing random, and cheap to do twice */
    double latent;  /* add_latent */
    double density; /* log_density; 0: one for each column */
};

/* A model bound to its prior. theta is a vector of `parameters` unconstrained
 * coordinates, known ones included; `moving` of them, listed in `moves`, are
 * unknown and may be proposed by a non-centred move. */
struct model {
    const struct model_class *class;
    void *self;
    int columns;  /* variables of a record */
    int complete; /* length of the complete-data statistic */
    int whole;    /* wants all records in one block */

    /* model_describe() fills in these. A compiled model has no blocks: it has values of its own. */
    struct coordinates coordinates;
    int parameters; /* length of theta */
    int moving;     /* length of moves */
    int *moves;
    int reported; /* length of a draw as the user sees it */

    /* Optional. Coordinates that are better moved apart: of[j] is the group of
     * moves[j]; it grows from 0 to count - 1 with j. */
    struct {
        int count, *of;
    } groups;
    /* Optional. How many rounds an iteration of "augment" makes at least, if it may make several
     * where there is neither a surrogate nor tied coefficients. 0: it makes one. */
    int rounds;
    struct model_costs costs;

    /* Capabilities, contract/model_<name>.h, and what is done where one is NULL. */
    const struct model_values *values;           /* natural values of theta's unknown blocks */
    const struct model_prior *prior;             /* theta moves by its update alone */
    const struct model_statistic *statistic;     /* nothing is summed over the records */
    const struct model_update *update;           /* theta walks, by the densities */
    const struct model_density *density;         /* the update moves all of theta */
    const struct model_likelihood *likelihood;   /* a pass over the records */
    const struct model_marginal *marginal;       /* theta and totals move in turns */
    const struct model_normal *normal;           /* no "collapse" of normal totals */
    const struct model_record *record;           /* no "collapse" of imputed noisy records */
    const struct model_cells *cells;             /* no "collapse" of tables by gradients */
    const struct model_uncentred *uncentred;     /* gradients move theta as it is */
    const struct model_innovations *innovations; /* records are drawn when they are needed */
    const struct model_refresh *refresh;         /* every proposal is fresh */
    const struct model_move *move;               /* chains mix slowly where the noise is wide */
    const struct model_levels *levels;           /* records change their levels one by one */
    const struct model_predictor *predictor;     /* coefficients move without the totals */
    const struct model_categories *categories;   /* coefficients move without the response */
};

/* The hooks that every model has.
 *
 * To move theta given the records a model also needs either the capabilities prior and density, or
 * statistic and update. All others make it faster, or are for one method.
 *
 * In what order method "augment" calls them (nonprivate_posterior() makes the update
 * alone; "clt" and "collapse" call create, rprior, dprior, rtheta and the capabilities whose
 * headers name them):
 *
 *     create
 *        |
 *     rprior -> set -> rrecords                            a chain begins
 *        |
 *     +->+  in each iteration
 *     |  |
 *     |  set -> dprior                                     moves, some times or never
 *     |  |        \-> dprior(new) -> set_move -> move, block by block -> set if accepted
 *     |  |
 *     |  set -> rrecords | from_innovations | refresh -> add   sweep, block by block
 *     |  |                                                 \-> add_latent
 *     |  read_levels -> relevel -> add                     transfers between levels
 *     |  |
 *     |  rtheta                                            update
 *     |  | or, or then: dprior -> set -> log_density, block by block, for each step
 *     |  |
 *     +--+---> report                                      the draws that are kept
 *
 * What every hook may assume. theta has all coordinates, known ones at their values, and
 * is finite. A block has 1 to MAX_BLOCK records, or all n if the model is `whole`;
 * columns may be read and written up to PAD_LANES(m), what lies in the padding is finite
 * and means nothing. Columns read and columns written never overlap. Blocks come in the
 * order of the records, but need not be the same blocks from one hook to the next.
 *
 * What none may do. Keep state outside `self`: chains run side by side. Draw from anything
 * but `rng`: a seed fixes the draws. Allocate after create(); call R or stop with an error
 * (the models made of R functions, r/model_*.c, are alone in that).
 */
struct model_class {
    const char *name;

    /* Goal: a model that is ready to be used. Reads the fields, allocates, calls
     * model_describe(), fills in self, columns, complete and what else the hooks
     * need. Returns PLUGIN_*; PLUGIN_BAD_FIELDS is a bug of the R side, which has
     * checked what the user said.
     * Common errors: a field that is optional assumed to be there; a pointer to something
     * on the stack. */
    int (*create)(const struct fields *fields, struct model *model);

    /* Goal: a draw of the unknown coordinates from the prior. The known ones are in
     * theta already, and stay. */
    void (*rprior)(void *self, struct rng *rng, double *theta);

    /* Goal: theta is the current parameter of rrecords, from_innovations, refresh, set_move,
     * add_latent and log_density from now on. What these need of theta alone is computed
     * here, once, not in them.
     * Common error: to keep the pointer. The vector changes; copy what is needed. */
    void (*set)(void *self, const double *theta);

    /* Goal: m records from f(. | theta), independent of all earlier ones. x holds
     * anything before.
     * Common error: a record that is not finite, at the edge of what theta can be. */
    void (*rrecords)(void *self, struct rng *rng, int m, double *const *x);
};

/* Describes theta: its blocks, in order, of which name, transform, size and what else
 * the transform needs are filled in. create() calls it once. */
void model_describe(struct model *model, int blocks, const struct theta_block *block);

/* A draw from the prior, known coordinates at their values. */
void model_rprior(const struct model *model, struct rng *rng, double *theta);

/* The log prior density, -INFINITY where it is not finite, and its gradient, of all coordinates;
 * theta comes back as it was. */
double model_prior(const struct model *model, double *theta, double *gradient);

/* The natural values that a draw reports. */
void model_report(const struct model *model, const double *theta, double *out);

/* theta of such values. Returns -1, or the block whose values are impossible; of a model
 * that inverts itself, 0 for any. */
int model_invert(const struct model *model, const double *value, double *theta);

#endif
