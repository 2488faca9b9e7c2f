#ifndef NOISEAWARE_RECORDS_SHAPE_HMC_H
#define NOISEAWARE_RECORDS_SHAPE_HMC_H

#include "mcmc/hmc.h"
#include "totals/density.h"

/* Moves of all records at once for method "augment"; see records/shape_hmc.c. A record has the
 * columns of the complete-data statistic, in the same order, or gives them (regressors()).
 * */

/* What a caller does with its records under a map: see struct surrogate for that. */
struct surrogate_records {
    void *self;
    /* The complete-data statistic of the mapped records as the bounds clamp them. NULL: that
     * does not give the release, since bounds differ or drop records. */
    void (*sum)(void *self, double *seen);
    /* The gradient in the map, of its shape, of a function with that gradient in `seen`. */
    void (*pull)(void *self, const double *gradient_seen, double *gradient_map);
    /* in units of a leapfrog step's other work: of both, of a pass alone, and of a sweep */
    double work, pass_work, sweep_work;
};

struct surrogate {
    struct totals_density density;
    struct surrogate_records records;
    const double *released;      /* density.noise.released is these less what the bounds do */
    const double *centre;        /* of the columns in the complete-data statistic */
    const double *lower, *upper; /* bounds of the free columns, less their centres */
    double scatter_noise;        /* how large the noise is relative to their scatter; see R */
    int same_bounds;             /* do all statistics clamp a column to the same? */

    /* Views into the store: with it restored, a chain continues bit for bit. */
    double *referred;  /* is there a reference? */
    double *length;    /* of a trajectory, in units of the metric, */
    double *share;     /* and what of it a surrogate's has */
    double *followed;  /* running mean of the probability that the records follow */
    double *exact;     /* do trajectories follow the exact density? */
    double *unbounded; /* or of a surrogate that needs no bounds? */
    double *tried;     /* iterations since the reference is what it is, */
    double *trained;   /* the noise's exponent where NUTS ran there; 0: it has not */
    double *reference; /* coordinates; they stay once warmup is over */
    struct {
        double *count, *mean; /* iterations in the current window, mean of the coordinates, */
        double *bounds;       /* and what the bounds cost */
    } window;
    struct {
        double *from, *square; /* where the last move left the records, and the mean square of */
    } sweep;                   /* what the sweep then did, in units of the metric's deviations */
    struct tilt tilt;          /* of what is expected, in the coordinates */

    /* An affine map of the records, a row of `columns` + 1 for each free column: a shift,
     * then the coefficient of each column. */
    double *map;

    /* workspace */
    struct hmc hmc;
    struct hmc_step told;        /* of the last trajectory */
    double *here, *there, *home; /* coordinates of the records, and of the trajectory's end */
    struct {
        double *offset, *error, *mean, *coefficient, *inverse, *shift, *hmc, *tilt, *gradient_map;
    } work;
};

/* The caller fills in the release (density's components to weight, `released`,
 * `scatter_noise`), the centre, the bounds and the records' functions before; for the rest see
 * totals_density_create(). Returns 0 where there is no such move: the model does not integrate its
 * parameters out, or has too few records. */
int surrogate_create(struct surrogate *s, const struct model *model, double n, int d,
                     const int *column, int k, const int *fixed, int riders, const int *rider);
/* After that, where n is to change; and, before the records are read, n. Returns 0 where there are
 * too few records to move. */
void surrogate_vary(struct surrogate *s);
int surrogate_resize(struct surrogate *s, double n);
size_t surrogate_stored(const struct surrogate *s);
void surrogate_attach(struct surrogate *s, double *store);

/* Reads where the records are: their complete-data statistic, and theta for what it keeps.
 * Returns 0 where no move is possible: a level without records, a singular scatter. */
int surrogate_begin(struct surrogate *s, const double *c, const double *theta);

/* Has a search found units and a step size? */
static inline int surrogate_is_ready(const struct surrogate *s) { return *s->hmc.step_size > 0; }

/* After surrogate_begin(), for a start: runs `iterations` of NUTS on the density that
 * knows no bounds, the noise with the exponent `temper` after lower ones, and sets the map to
 * where they ended. Returns 0 where there is no density. */
int surrogate_search(struct surrogate *s, int iterations, double temper, struct rng *rng);

/* Sets the map to the reference and returns 1; 0 if there is none yet: it then is here. */
int surrogate_refer(struct surrogate *s);

/* Whether the next trajectory's density needs no reference. */
static inline int surrogate_is_exact(const struct surrogate *s) { return *s->exact != 0; }

/* What the bounds do at the reference: `total`, of the records there, are the released
 * components as the bounds leave them. */
void surrogate_correct(struct surrogate *s, const double *total);

/* Either density, with no correction at a reference, and its gradient, at q: for tests. Where
 * q[0] is NaN, at the records' own coordinates, which are written to q. */
double surrogate_density(struct surrogate *s, int exact, double *q, double *gradient);

/* In warmup, after that: learns what sweeps do, and how to move at a new reference. */
void surrogate_train(struct surrogate *s, struct rng *rng);

/* A trajectory. Returns 0 if it ends where it began, else sets the map to
 * its end; *gain is by how much the noise energy of its density fell. */
int surrogate_propose(struct surrogate *s, struct rng *rng, double *gain);

/* In warmup, where a trajectory ended: by how much it changed the records' totals teaches what the
 * surrogate should have expected. */
void surrogate_compare(struct surrogate *s, const double *gain);

/* The complete-data statistic, and the kept parameters, where the trajectory ended. */
void surrogate_take(const struct surrogate *s, double *c, double *theta);

/* In warmup, after a move that is not learned from: what the next sweep does is measured from here.
 */
void surrogate_leave(struct surrogate *surrogate, const double *c, const double *theta);

/* What warmup learns from a trajectory: whether it moved, and then how likely the records
 * were to follow. c and theta belong to the records as they are now. */
void surrogate_learn(struct surrogate *s, int iteration, int warmup, int moved, double probability,
                     const double *c, const double *theta, struct rng *rng);

#endif
