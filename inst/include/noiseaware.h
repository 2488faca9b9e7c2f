/* noiseaware.h: a model of your own in C, for model_compiled() of the R package
 * noiseaware. Plain C99 (or C++), nothing of R, nothing to link: the package
 * hands you random numbers and memory through pointers.
 *
 * A model is a `struct noiseaware_model_class` of hooks and a function that
 * returns its address:
 *
 *     static const struct noiseaware_model_class my_class = {
 *         .abi = NOISEAWARE_ABI, .size = sizeof my_class, .name = "mine",
 *         .create = create, ...
 *     };
 *     const struct noiseaware_model_class *my_model(void) { return &my_class; }
 *
 * Compile with `R CMD SHLIB my_model.c` and PKG_CPPFLAGS set to -I and
 * system.file("include", package = "noiseaware"); then in R
 * model_compiled("my_model", dll = "my_model.so", ...). A complete pair of files
 * is in system.file("examples", package = "noiseaware"): gamma_model.c, .R.
 *
 * Records travel in blocks of m <= NOISEAWARE_MAX_BLOCK, structure of arrays:
 * x[v][i] is variable v of record i. Every column may be read and written up to
 * the next multiple of NOISEAWARE_LANES; what stands there beyond m is finite
 * and is never used.
 *
 * A model needs seven hooks: create, rprior, dprior, set, rrecords, and either
 * log_density, or add and rtheta. The built-in models have the same contract and a few
 * hooks more, which serve one model or method each: src/contract/model.h of the package's
 * sources names them, and shows in what order hooks are called.
 *
 * theta is a vector of unconstrained coordinates (a log rate, not a rate).
 * Hooks must not keep state outside `self`, and must take every random number
 * from `random`: so a seed fixes the draws, and chains can run side by side.
 */
#ifndef NOISEAWARE_H
#define NOISEAWARE_H

#include <stddef.h>

/* Changes whenever a struct below does; checked when a model is looked up. */
#define NOISEAWARE_ABI 3

enum { NOISEAWARE_LANES = 4, NOISEAWARE_MAX_BLOCK = 256 };

/* What create() and rtheta() return: done; fields that are missing or wrong; an
 * update that has no answer, such as a matrix that is not positive definite. */
enum { NOISEAWARE_OK = 0, NOISEAWARE_BAD_FIELDS = 1, NOISEAWARE_NUMERICAL = 2 };

/* For each record i of a block of m, padding included: lanes of constant width
 * are what compilers vectorise at -O2. */
#define NOISEAWARE_RECORDS(i, m) \
    for (int lane_base = 0; lane_base < (m); lane_base += NOISEAWARE_LANES) \
        for (int i = lane_base; i < lane_base + NOISEAWARE_LANES; ++i)

/* sum of a block, without its padding */
static inline double noiseaware_sum(int m, const double *a) {
    double part[NOISEAWARE_LANES] = {0};
    const int whole = m & ~(NOISEAWARE_LANES - 1);
    for (int i = 0; i < whole; i += NOISEAWARE_LANES)
        for (int l = 0; l < NOISEAWARE_LANES; ++l) part[l] += a[i + l];
    for (int i = whole; i < m; ++i) part[i - whole] += a[i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* The stream of the chain that is running: random->normal(random). It is lent
 * for one call of a hook. */
struct noiseaware_random {
    double (*uniform)(struct noiseaware_random *random); /* inside (0, 1) */
    double (*normal)(struct noiseaware_random *random);
    double (*exponential)(struct noiseaware_random *random);             /* rate 1 */
    double (*gamma)(struct noiseaware_random *random, double shape);     /* rate 1 */
    double (*log_gamma)(struct noiseaware_random *random, double shape); /* its log, never -inf */
    double (*poisson)(struct noiseaware_random *random, double mean);
    /* m of them at once, faster */
    void (*fill_uniform)(struct noiseaware_random *random, int m, double *out);
    void (*fill_normal)(struct noiseaware_random *random, int m, double *out);
    void (*fill_exponential)(struct noiseaware_random *random, int m, double *out);
};

/* Kinds of random numbers: inside (0, 1); standard normal; exponential of rate 1. */
enum noiseaware_kind { NOISEAWARE_UNIFORM, NOISEAWARE_NORMAL, NOISEAWARE_EXPONENTIAL };

/* What create() may ask for. */
struct noiseaware_host {
    /* The numeric vector of that name among the fields of model_compiled(); NULL
     * unless it is there with `length` values (any number if negative). `lower`
     * and `upper` are always there: the public bounds, one a column. It stays
     * valid as long as the model. */
    const double *(*field)(const struct noiseaware_host *host, const char *name, int length);
    /* its length, 0 if there is none */
    int (*field_length)(const struct noiseaware_host *host, const char *name);
    /* zeroed memory that lives as long as the model; not to be freed */
    void *(*memory)(const struct noiseaware_host *host, size_t count, size_t size);
};

/* What create() fills in; zeroed before. */
struct noiseaware_model {
    void *self;     /* handed to every hook */
    int columns;    /* variables of a record */
    int parameters; /* length of theta */
    int complete;   /* length of the complete-data statistic */
    int reported;   /* values of a draw as the user sees it */
    /* the coordinates of theta that move() can carry records along with */
    int moving;
    int *moves;
    /* how many numbers of that kind from_innovations() makes a record of */
    int innovations;
    enum noiseaware_kind innovation;
};

struct noiseaware_model_class {
    int abi;     /* NOISEAWARE_ABI */
    size_t size; /* sizeof(struct noiseaware_model_class) */
    const char *name;

    /* Reads the fields, allocates, fills in `model`. Returns NOISEAWARE_*. */
    int (*create)(const struct noiseaware_host *host, struct noiseaware_model *model);

    /* A draw of theta from the prior. */
    void (*rprior)(void *self, struct noiseaware_random *random, double *theta);

    /* Makes theta the current parameter of rrecords, refresh and move. */
    void (*set)(void *self, const double *theta);

    /* m records from f(. | theta). */
    void (*rrecords)(void *self, struct noiseaware_random *random, int m, double *const *x);

    /* ---- either the next two, or the two after them ----------------------- */

    /* c += sum over the block of c(x_i). */
    void (*add)(void *self, int m, const double *const *x, double *c);
    /* theta from p(theta | c, n), or from any kernel that leaves it invariant, in
     * place. Returns NOISEAWARE_*. */
    int (*rtheta)(void *self, const double *c, double n, struct noiseaware_random *random,
                  double *theta);

    /* Log prior density of theta in these coordinates, Jacobian included, up to a
     * constant; -INFINITY outside the support. */
    double (*dprior)(void *self, const double *theta);
    /* Sum over the block of log f(x_i | theta) under the current theta (see set), up to a
     * constant that is the same for every theta; may be -INFINITY. Without rtheta,
     * random walks on theta that learn their shape in warmup use it: several
     * evaluations for each record and iteration. */
    double (*log_density)(void *self, int m, const double *const *x);

    /* ---- the following may be NULL --------------------------------------- */

    /* Values of one draw as the user sees them, and the way back (NOISEAWARE_*;
     * values outside the support are BAD_FIELDS). Both NULL: theta itself.
     * invert alone NULL: `init` and `parameters` cannot be given. */
    void (*report)(void *self, const double *theta, double *out);
    int (*invert)(void *self, const double *values, double *theta);

    /* The next two together, with dprior, or none; without them chains mix slowly where
     * the noise is large. Prepares move() from the current theta to theta_new; changed[v] says
     * whether column v differs. */
    void (*set_move)(void *self, const double *theta_new, int *changed);
    /* The records with the same innovations under theta_new: x = T(u, theta), u
     * held fixed, x_new = T(u, theta_new). Writes changed columns only. A discrete
     * record has many innovations: draw one, so that the pair (x, x_new), x from
     * f(. | theta), has the distribution that the way back gives to (x_new, x). Called twice
     * with the same stream, it must give the same records. */
    void (*move)(void *self, struct noiseaware_random *random, int m, const double *const *x,
                 double *const *x_new);

    /* Records that keep the share rho in [0, 1] of their innovations (correlation
     * rho): 1 gives x back, 0 fresh records. The pair (x, x_new) must have a
     * symmetric distribution for x from f(. | theta). Helps where the noise is small; needs add. */
    void (*refresh)(void *self, double rho, struct noiseaware_random *random, int m,
                    const double *const *x, double *const *x_new);

    /* The m records that rrecords() makes of these innovations, z[k][i] number k of
     * record i, which rrecords() draws column after column (random->fill_normal(...)
     * and the like) and nothing else. Saves time: they are drawn while the sampler
     * waits for something else. */
    void (*from_innovations)(void *self, int m, const double *const *z, double *const *x);
};

#endif
