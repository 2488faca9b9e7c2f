/* Shared by the files of method "augment" only:
 *   records/augment_chain.c  prepares, starts, and makes a round: moves, a sweep, moves, theta;
 *   records/move.h           the moves, each in its own file; records/sweep.c          proposes,
 *   and visits the records; records/accept_pass.c    decides on the proposals of a block, one
 *   record after the other; records/noise_energy.c   the energy, minus the log of the noise
 *   density; records/work.c           work, counted instead of time; records/diagnostics.c the
 *   report of a chain.
 */
#ifndef NOISEAWARE_RECORDS_AUGMENT_INTERNAL_H
#define NOISEAWARE_RECORDS_AUGMENT_INTERNAL_H

#include "base/integer_step.h"
#include "contract/model_prior.h"
#include "mcmc/surrogate_trajectory.h"
#include "records/augment.h"

/* candidates in one call of a density, see accept_speculatively() in records/accept_pass.c */
enum { MOST_SPECULATED = 63, PATH = MOST_SPECULATED + 1 };

/* ---- blocks ----------------------------------------------------------------- */

static inline const double *const *augment_read_only(double *const *x) {
    return (const double *const *)x;
}

/* Points x_at at the block that starts there; returns its number of records. */
static inline int augment_block_at(struct augment *a, ptrdiff_t start, int most) {
    for (int v = 0; v < a->model.columns; ++v) a->block.x_at[v] = a->x + v * a->stride + start;
    return (int)(a->n - start < most ? a->n - start : most);
}

/* A plug-in takes at most MAX_BLOCK records at a time, unless it wants all. */
static inline int augment_chunk(int whole, int left) { return whole ? left : block_length(left); }

/* the variables of one statistic from record `start` of a block on */
static inline const double *const *augment_view(struct augment *a, const struct part *part,
                                                const double *const *x, int start) {
    for (int v = 0; v < part->stat.columns; ++v) a->block.view[v] = x[part->column[v]] + start;
    return a->block.view;
}

/* ---- several records at once -------------------------------------------------------- */

/* one of 0..count-1, count below 2^32 */
static inline ptrdiff_t augment_choose(struct rng *rng, ptrdiff_t count) {
    return (ptrdiff_t)((rng_bits(rng) >> 32) * (uint64_t)count >> 32);
}

/* How many: up to `most`. */
static inline int augment_draw_count(struct rng *rng, double scale, int most) {
    const double units = units_draw(rng, scale);
    return units < most ? (int)units : most;
}

/* of a schedule, where autocorrelations fall the slower the longer the lag: of a response on
 * factors alone */
enum { LEAST_ROUNDS = 4 };

/* records in one of the `parts` of a sweep: whole lanes, but in the last */
static inline ptrdiff_t augment_part_length(const struct augment *a, int parts) {
    return PAD_LANES((a->n + parts - 1) / parts);
}

/* ---- sites, theta ------------------------------------------------------------------ */

/* records of all sites */
static inline double augment_records(const struct augment *a) {
    double n = 0;
    for (int k = 0; k < a->sites.count; ++k) n += (double)a->sites.of[k]->n;
    return n;
}

/* Is the number of records of any site unknown? */
static inline int augment_is_sized(const struct augment *a) {
    for (int k = 0; k < a->sites.count; ++k)
        if (a->sites.of[k]->size.prior) return 1;
    return 0;
}

/* the moving coordinates of theta */
static inline void augment_gather(const struct augment *a, double *out) {
    for (int j = 0; j < a->model.moving; ++j) out[j] = a->theta[a->model.moves[j]];
}

/* of theta, in the model or in a->layer */
static inline double augment_log_prior(const struct augment *a, const double *theta) {
    return a->layer ? a->layer->log_prior(a->layer->self, theta)
                    : a->model.prior->dprior(a->model.self, theta);
}

/* ---- records/sweep.c ------------------------------------------------------------------- */

/* The complete-data statistic of the records of all sites as they are; `latent`: with variables of
 * its records that the model needs and this draws. */
void augment_take_complete(struct augment *a, int latent, double *c);

/* A sweep of all records, with the exponent `temper` of the noise density; a->complete is
 * theirs then. Returns the share of proposals that are accepted. */
double augment_sweep(struct augment *a, double temper);

/* Proposals for m records from x_at on that keep the share rho of their innovations. */
void augment_propose(struct augment *a, double rho, int m, double *const *x_new);

/* Of a sweep in `parts` parts, one iteration each, the part of each site whose turn it is at
 * iteration `at` of warmup, or after it. Returns the share of its proposals that were accepted. */
double augment_sweep_part(struct augment *a, int parts, int at, double rho, double temper);

/* The same with fresh latent variables, in a->complete, under a->theta. */
void augment_take_latent(struct augment *a);

/* ---- records/noise_energy.c ---------------------------------------------------------- */

/* of the totals whose noise has a separable kernel */
double augment_dense_energy(const struct augment *a, const double *residual);

/* of the totals whose noise has a density of its own */
double augment_density_energy(const struct augment *a, const double *residual);

/* of the counts whose ranks have a joint density, which each such density holds then */
double augment_ranks_energy(const struct augment *a, const double *residual);

/* Of a part whose noise has a density of its own; candidates are columns, `stride` apart. While a
 * start is searched for, impossible ones have normal noise about possible ones. */
void augment_log_density(const struct augment *a, const struct part *part, int candidates,
                         int stride, const double *noise, double *out);

/* of a release of n, with so many records more */
double augment_size_energy(const struct augment *a, double more);

/* of all totals: dense residuals, and the residuals of the cells */
double augment_total_energy(const struct augment *a, const struct residuals *of);

/* extra[i] += sign * energy of the local noise of record i of the block */
void augment_clear_extra(struct augment *a);
void augment_add_local(struct augment *a, ptrdiff_t start, int m, const double *const *x,
                       double sign);

/* Totals of the block's records are added to a->total; local energy is returned. */
void augment_clear_total(struct augment *a);
double augment_add_totals(struct augment *a, ptrdiff_t start, int m, const double *const *x);

/* The candidate: residuals of `of` with m records more, or by `sign` less. */
void augment_add_records(struct augment *a, const struct residuals *of, int m, double *const *x,
                         int sign);

/* residuals from a->total */
void augment_residuals(const struct augment *a, struct residuals *out);
void augment_copy_residuals(const struct augment *a, struct residuals *to,
                            const struct residuals *from);

/* Totals and residuals of the records, from the records themselves. */
void augment_sum_up(struct augment *a);

/* ---- records/accept_pass.c --------------------------------------------------------- */

/* What a pass over a block draws itself: thresholds, and `needed` innovations of the
 * next block, `each` a record. */
struct draws {
    int each, needed;
    double slack; /* 1 / temper */
    double *drawn;
};

/* Decides on the block's proposals, which find_changes() has compared with the records:
 * gap[i] is above 0 where one is rejected. `draws` may be NULL; then the thresholds are
 * drawn before the pass. The noise density enters with the exponent `temper`. */
void augment_accept(struct augment *a, struct draws *draws, double temper, int m);

/* ---- records/noncentred_moves.c ------------------------------------------------------------ */

/* The residuals of the records of all sites as set_move() moves them, as candidates; their energy
 * is returned. */
double augment_moved_energy(struct augment *a);

/* Moves them. `innovations`: the stream as it was when the energy was computed. */
void augment_keep_moved(struct augment *a, const struct rng *innovations);

/* ---- records/work.c -------------------------------------------------------------------- */

/* of a pass that the prior forbids */
static const double LEAST_PASS = 100;

/* Fills in costs: what a sweep and a pass cost. */
void augment_count_work(struct augment *a);

/* Of moving the records once under set_move(), and of copying them. */
double augment_move_work(const struct augment *a);
double augment_copy_work(const struct augment *a);

/* ---- records/response_moves.c ---------------------------------------------------------- */

/* A surrogate of what coefficients and the responses that follow them do to the totals: the
 * functions of records/response_hmc.h, or of records/category_hmc.h. */
struct response_guide {
    void *self;
    void (*refer)(void *self, double *theta);
    void (*correct)(void *self, const double *total);
    int (*propose)(void *self, struct rng *rng, double *theta, double *gain);
    void (*learn)(void *self, const struct trajectory_seen *seen, struct rng *rng);
    const struct trajectory *path;
    double work; /* of getting ready */
};

/* Such a move, with the model set at theta. */
void augment_guide(struct augment *a, const struct response_guide *g, int iteration, int warmup);

/* ---- records/n_birth_death.c -------------------------------------------------------------- */

/* Which steps of n take theta along in this iteration: to where warmup saw n, and to a number near
 * it. */
enum { SIZE_FRESH = 1, SIZE_WALK = 2 };
int augment_size_steps(const struct augment *a, int iteration, int learning);

/* Such a step's n, with the log of the probability of the step back over that forth; and what was
 * learned of it. */
double augment_propose_size(struct augment *a, double n, int fresh, double *log_back);
void augment_tried_size(struct augment *a, int fresh, int learning, double log_ratio, int accept);

void augment_swap_records(struct augment *a, ptrdiff_t i, ptrdiff_t j);

/* The candidates become the state's, with m records of `born` more, or the last m less. */
void augment_keep_size(struct augment *a, int m, int birth);

/* ---- records/n_all_records_steps.c ------------------------------------------------------------
 */

/* Are there such steps? */
static inline int augment_resizes(const struct augment *a) {
    return OWN(a, resize) || OWN(a, resize_counts);
}

/* Do such steps redraw n, and records with it, often enough? */
int augment_redraws(const struct augment *a);

/* ---- records/redraw_steps.c ------------------------------------------------------------ */

/* Are steps of these made; and do they draw the totals so often that nothing else need move all
 * records? */
int augment_redraws_shape(const struct augment *a);
int augment_redraws_totals(const struct augment *a);

/* For a start: records near the release, by such steps with that exponent of the noise density.
 * Returns 0, the records as they were, where too few of them are accepted. */
int augment_redraw_start(struct augment *a, double temper);

/* ---- records/level_transfers.c ------------------------------------------------------------ */

/* The records by their level of factor f; the list of those of one level; and m of a list of
 * `count`, chosen uniformly, to its end or to its beginning. */
void augment_sort_levels(struct augment *a, int f);
int *augment_level_records(struct augment *a, int level);
void augment_choose_records(struct rng *rng, int *list, int count, int m, int to_end);

/* sorted: 0, ..., n - 1 by code; those of code k are from first[k] to before first[k + 1]. */
void augment_counting_sort(int n, const int *code, int codes, int *first, int *sorted);

/* Copies of m records of a list; by how much the energy rises if they are replaced; and replaces
 * them, right after that. */
void augment_gather_records(const struct augment *a, const int *list, int m, double *const *out);
double augment_replacement_energy(struct augment *a, int m, double *const *before,
                                  double *const *after);
void augment_replace_records(struct augment *a, const int *list, int m, double *const *by);

/* ---- records/shape_hmc_pass.c --------------------------------------------------------- */

/* Is there a theta within the bounds of a prior that is cut off, drawn from the uncut
 * posterior given c? It is a->theta_new then. */
int augment_draw_within(struct augment *a, const double *c);

/* The totals of the records under the surrogate's map; and they become these. */
void augment_mapped_totals(struct augment *a);
void augment_keep_mapped(struct augment *a);

/* Tells the surrogate how many records there are now. Returns 0 if they are too few for moves of
 * all at once, which then must be left out. */
int augment_set_size(struct augment *a);

/* ---- records/linear_maps.c ------------------------------------------------------------ */

static inline struct record_maps *maps_of(const struct augment *a) { return OWN(a, reflections); }

/* The map of no column, to be filled in. */
void augment_start_map(struct augment *a);

/* Accepts the map, or leaves the records: is it accepted? It leaves the records' distribution with
 * theta integrated out invariant: theta must be drawn after it. Needs the complete-data statistic,
 * and keeps it. */
int augment_try_map(struct augment *a);

/* By how much the energy of the noise would fall, tempered in warmup; and the map that it was asked
 * for made, with theta_new. */
double augment_map_fall(struct augment *a);
void augment_keep_map(struct augment *a);

#endif
