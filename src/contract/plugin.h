/* The contracts between the methods and the plug-ins: models, statistics and
 * mechanisms. A method sees only these structs; no plug-in names another.
 *
 * Records travel in blocks, structure of arrays: `x[v][i]` is variable v of
 * record i, 0 <= i < m, and every column may be read and written up to
 * PAD_LANES(m). The cost of a function pointer is paid once a block.
 *
 * A plug-in is one C file, in which everything but its class descriptor is static, and a line in
 * contract/registry.h. A hook that is NULL means "not available".
 *
 * The public header noiseaware.h offers the part that users need for their own models;
 * model/compiled.c translates. It differs in these points: random numbers come through a table of
 * functions, not as a struct rng; theta has no known coordinates and no description, but report()
 * and invert() instead; prior_gradient, innovations_serve, add_latent, curve, prior_curve,
 * record_density, regressors, log_likelihood, rshares, marginal, marginal_size, log_total,
 * tied_prior, tied_means, rtheta_uncut, distribution, pull_distribution, log_cells, observe,
 * log_posterior, information, shift, hold, read_levels, relevel, categorise,
 * category_probabilities, pull_categories, groups and costs are not offered; and it has a version.
 */
#ifndef NOISEAWARE_CONTRACT_PLUGIN_H
#define NOISEAWARE_CONTRACT_PLUGIN_H

#include "base/memory.h"
#include "base/rng.h"
#include "contract/coordinates.h"

/* What R sends to a plug-in: numeric vectors found by name. They stay valid
 * while the plug-in lives. */
struct field {
    const char *name;
    const double *value;
    int length;
};

struct fields {
    int count;
    const struct field *field;
    /* R's list itself, for the plug-ins whose hooks are R functions (r/):
     * nobody else looks at it. NULL in a program without R. */
    void *object;
};

/* The vector of that name; NULL unless it is there with `length` values
 * (any number if `length` is negative). */
const double *fields_vector(const struct fields *fields, const char *name, int length);
int fields_length(const struct fields *fields, const char *name);

enum {
    PLUGIN_OK = NOISEAWARE_OK,
    PLUGIN_BAD_FIELDS = NOISEAWARE_BAD_FIELDS,
    PLUGIN_NUMERICAL = NOISEAWARE_NUMERICAL
};

/* ---- model: how records arise, and the prior --------------------------- */

struct model_class;

/* What hooks cost for each record, in random normals or what takes as long; the
 * schedule of the sampler weighs one hook against another by them. 0 stands for what
 * most models have. */
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

    /* model_describe() fills in these. A compiled model has no blocks: it has report()
     * and invert(). */
    struct coordinates coordinates;
    int parameters; /* length of theta */
    int moving;     /* length of moves */
    int *moves;
    int reported; /* length of a draw as the user sees it */

    /* How many rounds an iteration of "augment" makes at least, if it may make several where there
     * is neither a surrogate nor a shape; with tied coefficients it may. 0: it makes one. */
    int rounds;

    /* Optional. Coordinates that are better moved apart: group[j] is that of
     * moves[j]; it grows from 0 to groups - 1 with j. */
    int groups;
    int *group;
    struct model_costs costs;
    /* Capabilities: what not every model can do. create() points to those that this one has, under
     * the fields that it was given. NULL: it does not have it, and methods do without. The
     * header of that name states what its hooks may assume. */
    const struct model_values *values; /* default: those of theta's unknown blocks */
    const struct model_innovations *innovations;
    const struct model_refresh *refresh; /* default: every proposal is fresh */
    const struct model_move *move;       /* default: chains mix slowly where the noise is wide */
    const struct model_levels *levels;
    const struct model_prior *prior;
    const struct model_statistic *statistic;
    const struct model_update *update; /* default: random walks */
    const struct model_density *density;
    const struct model_likelihood *likelihood;
    const struct model_marginal *marginal;
    const struct model_normal *normal;
    const struct model_record *record;
    const struct model_predictor *predictor;
    const struct model_categories *categories;
    const struct model_cells *cells;
};

/* The hooks of a model.
 *
 * A new model needs create, rprior, dprior, set, rrecords, and to move theta given the
 * records either log_density, or add and rtheta. All others make it faster, or serve one
 * method; NULL stands for the default named with each.
 *
 * In what order method "augment" calls them (nonprivate_posterior() makes the update
 * alone; "clt" and "collapse" call create, rprior, dprior, rtheta and what is named with
 * the hook):
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
     * Common errors: a field that is optional taken for granted; a pointer to something
     * on the stack. */
    int (*create)(const struct fields *fields, struct model *model);

    /* Goal: a draw of the unknown coordinates from the prior. The known ones are in
     * theta already, and stay. Required. */
    void (*rprior)(void *self, struct rng *rng, double *theta);

    /* Goal: theta is the current parameter of rrecords, from_innovations, refresh, set_move,
     * add_latent and log_density from now on. What these need of theta alone is computed
     * here, once, not in them. Required.
     * Common error: to keep the pointer. The vector changes; copy what is needed. */
    void (*set)(void *self, const double *theta);

    /* Goal: m records from f(. | theta), independent of all earlier ones. x holds
     * anything before. Required.
     * Common error: a record that is not finite, at the edge of what theta can be. */
    void (*rrecords)(void *self, struct rng *rng, int m, double *const *x);
};

/* Describes theta: its blocks, in order, of which name, transform, size and what else
 * the transform needs are filled in. create() calls it once. */
void model_describe(struct model *model, int blocks, const struct theta_block *block);

/* ---- statistic: what was summed over the records ----------------------- */

struct stat_class;

struct stat {
    const struct stat_class *class;
    void *self;
    int columns; /* variables it looks at */
    int size;    /* components */
    int touched; /* with cells(): how many components a record can touch */
    int whole;   /* wants all records in one block */
};

struct stat_class {
    const char *name;
    int (*create)(const struct fields *fields, struct stat *stat);

    /* Component j of record i goes to t[j * stride + i]. */
    void (*eval)(void *self, int m, const double *const *x, int stride, double *t);

    /* What eval() would tell of both, in one go: component j of record i of x_new
     * less that of x, times weight[j], goes to row[i * width + j], and anything
     * to one more column if there is an odd number of them. Returns 0 if this
     * statistic cannot; may be NULL. m is at most MAX_BLOCK. */
    int (*changes)(void *self, int m, const double *const *x, const double *const *x_new,
                   const double *weight, int width, double *row);

    /* total[j] += the block's sum of component j. */
    void (*total)(void *self, int m, const double *const *x, double *total);

    /* For counts, NULL otherwise: record i adds 1 to the components
     * index[k * stride + i], 0 <= k < touched; no two k ever share one. */
    void (*cells)(void *self, int m, const double *const *x, int stride, int *index);
};

/* ---- moments: the normal distribution of the totals, for "clt" ------------------- */

struct record_moments_class;

/* Mean and covariance, under theta, of what one record adds to a vector of
 * totals: first the `released` components of the statistic, t, then `aside`
 * ones that the model's complete-data statistic needs and t does not give. A
 * pair of a model and a release has one of these; it reads theta by the model's
 * description of its coordinates, and nothing else of the model. */
struct record_moments {
    const struct record_moments_class *class;
    void *self;
    int released;    /* components of t, in the units of the release */
    int aside;       /* 0 where the total of t determines the complete-data one */
    int complete;    /* length of the model's complete-data statistic */
    int innovations; /* that from_innovations() makes a total of */
};

struct record_moments_class {
    const char *name;
    /* `coordinates`: of the model whose theta eval() reads. */
    int (*create)(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments);

    /* mean: released + aside values; cov: a square matrix of that size, row by
     * row, both triangles; it may be singular. PLUGIN_NUMERICAL where they are
     * not finite. */
    int (*eval)(void *self, const double *theta, double *mean, double *cov);

    /* The total over n records, released and aside, that standard normal innovations u make:
     * n mean + sqrt(n) A u, A A' = cov, with what eval() gives at theta. NULL: the
     * method factors the covariance. */
    void (*from_innovations)(void *self, const double *theta, double n, const double *u,
                             double *total);
    /* u += weight A'r, with the A of the last from_innovations(); r is 0 for what is aside and has
     * the released components alone. */
    void (*pull)(void *self, double weight, const double *r, double *u);
    /* gradient += that of r'total in theta, all coordinates, after from_innovations() with the same
     * theta, n and u; that in u is what pull() adds with the weight sqrt(n). NULL: no gradients. */
    void (*gradient)(void *self, double n, const double *u, const double *r, double *gradient);

    /* The complete-data statistic that a total stands for. Returns 1 if records
     * could have it, else 0; project() then makes it one that they could. Both NULL: totals
     * do not determine what the model's update needs. */
    int (*complete)(void *self, double n, const double *total, double *c);
    void (*project)(void *self, double n, double *c);

    /* Expected share of records outside the bounds. NULL: the moments know what
     * bounds do to records. */
    double (*outside)(void *self, const double *theta);
};

/* ---- mechanism: how noise was added ------------------------------------ */

/* log eta(z | s) = const - sum_j kernel((z_j - s_j) * weight_j); with MATCH, of
 * single values only, const - sum_j (weight_j where z_j differs from s_j). */
enum kernel {
    KERNEL_ABSOLUTE /* |r| */,
    KERNEL_SQUARED /* r^2 / 2 */,
    KERNEL_MATCH,
    KERNEL_DENSITY
};

/* With DENSITY, any log density, up to a constant, of the noise z - s of several
 * candidates at once: component j of candidate i is noise[j * stride + i]. A call
 * may be expensive. */
struct density {
    void *self;
    int size; /* components of a candidate; known before create() */
    /* noise that is possible, if any is known, and the range of each component of a record; or NULL
     */
    const double *near, *range;
    void (*log_density)(void *self, int candidates, int stride, const double *noise, double *out);
};

/* A density that is built in. */
struct density_class {
    const char *name;
    int (*create)(const struct fields *fields, struct density *density);
};

struct mech_class {
    const char *name;

    /* Log density of one noise value, normalised. */
    double (*log_density)(double noise, double scale);

    /* Noise value at lower-tail probability u in (0, 1), computed from the
     * nearer tail. */
    double (*quantile)(double u, double scale);
};

#endif
