/* Shared by the files of r/. They are the only ones that use SEXP: they read R's lists into plain
 * structs, run the algorithm, and raise errors. R has validated every argument; a failed check
 * here is a bug, not a user's mistake. */
#ifndef NOISEAWARE_R_FFI_H
#define NOISEAWARE_R_FFI_H

#include "base/rng.h"
#include "contract/mech.h"
#include "contract/model.h"
#include "contract/moments.h"
#include "contract/stat.h"

#include <R.h>
#include <Rinternals.h>

/* element of a named list; an error if it is not there */
SEXP list_element(SEXP list, const char *name);
/* NULL if there is none */
SEXP optional_element(SEXP list, const char *name);
double list_number(SEXP list, const char *name);

/* Lists of freshly made values, which must be protected: of a name and a value after the other, or
 * of arrays of both. */
SEXP named_list(int count, ...);
SEXP list_of(int count, const char *const *names, const SEXP *values);

SEXP strings(int count, const char *const *name);

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Everything that R picks by name is found here: classes whose first member is
 * their name. An error if there is none of that name. */
struct registry {
    const char *noun;
    int count;
    const void *const *class;
};

const void *find_class(const struct registry *registry, SEXP name);

/* Position of a name among others; an error if it is not there. */
int find_name(SEXP name, int count, const char *const *names);

/* A specification: a list with the `name` of a plug-in and its `fields`, numeric
 * vectors; where its hooks are R functions, also these. Linear queries of a statistic, or of
 * moments, have instead of a name the specification that they are `of`. */
struct fields read_fields(SEXP spec);
struct model read_model(SEXP spec);
struct stat read_stat(SEXP spec);
struct record_moments read_moments(SEXP spec);
struct density read_density(SEXP spec, int size);
const struct mech_class *read_mechanism(SEXP name);

void rng_read(SEXP raw, struct rng *rng);
SEXP rng_write(const struct rng *rng);

/* Records as R sends them: a matrix, or a list of its columns, one or more. */
R_xlen_t records_count(SEXP records);

/* Records, block by block. */
struct blocks {
    double **x; /* columns of `size` */
    int columns, size;
};

/* for n records; `whole`: all of them in one */
struct blocks blocks_new(int columns, int whole, R_xlen_t n);

/* the block of records that begins at `start`; returns how many there are */
int blocks_load(struct blocks *b, SEXP records, R_xlen_t start);
void blocks_store(const struct blocks *b, SEXP matrix, R_xlen_t start, int m);
const double *const *read_only(const struct blocks *b);

/* a pending user interrupt, consumed */
int interrupt_pending(void);

/* Every routine that R may call: X(name, number of arguments). */
#define FFI_ROUTINES(X) \
    X(ffi_registry, 0) \
    X(ffi_entropy, 1) \
    X(ffi_lock_file, 2) \
    X(ffi_unlock_file, 1) \
    X(ffi_exact_noise, 5) \
    X(ffi_exact_release, 8) \
    X(ffi_exact_totals, 5) \
    X(ffi_exact_add_noise, 5) \
    X(ffi_exact_quantile, 5) \
    X(ffi_exact_response, 3) \
    X(ffi_exact_answers, 2) \
    X(ffi_rng_seed, 2) \
    X(ffi_rng_draw, 4) \
    X(ffi_mech_quantile, 3) \
    X(ffi_mech_log_density, 3) \
    X(ffi_density, 2) \
    X(ffi_discrete_distribution, 5) \
    X(ffi_stat_eval, 2) \
    X(ffi_stat_total, 2) \
    X(ffi_model_shape, 1) \
    X(ffi_model_prior, 3) \
    X(ffi_model_log_prior, 2) \
    X(ffi_model_prior_gradient, 2) \
    X(ffi_model_cells, 2) \
    X(ffi_model_report, 2) \
    X(ffi_model_invert, 2) \
    X(ffi_model_log_jacobian, 2) \
    X(ffi_model_records, 4) \
    X(ffi_simulated_totals, 5) \
    X(ffi_record_sets, 4) \
    X(ffi_set_totals, 3) \
    X(ffi_sample_moments, 1) \
    X(ffi_total_moments, 5) \
    X(ffi_points, 3) \
    X(ffi_moments_loss, 3) \
    X(ffi_point_slopes, 3) \
    X(ffi_pseudo_inverse, 1) \
    X(ffi_scoring_step, 6) \
    X(ffi_score_at, 7) \
    X(ffi_score_values, 3) \
    X(ffi_model_refresh, 5) \
    X(ffi_model_move, 5) \
    X(ffi_model_complete, 2) \
    X(ffi_model_curve, 3) \
    X(ffi_model_gibbs, 7) \
    X(ffi_model_joint, 4) \
    X(ffi_model_walk_joint, 5) \
    X(ffi_model_marginal, 4) \
    X(ffi_model_overrun, 5) \
    X(ffi_model_written, 2) \
    X(ffi_model_log_density, 3) \
    X(ffi_model_formed, 4) \
    X(ffi_compiled_callable, 2) \
    X(ffi_compiled_hooks, 1) \
    X(ffi_compiled_sizes, 1) \
    X(ffi_augment_density, 4) \
    X(ffi_start, 3) \
    X(ffi_block, 3) \
    X(ffi_run, 4) \
    X(ffi_chain_diagnostics, 3) \
    X(ffi_running, 1) \
    X(ffi_augment_layout, 1) \
    X(ffi_clt_moments, 2) \
    X(ffi_clt_form, 5) \
    X(ffi_clt_complete, 3) \
    X(ffi_clt_mode, 2) \
    X(ffi_collapse_origin, 1) \
    X(ffi_collapse_tables, 1) \
    X(ffi_collapse_totals, 2) \
    X(ffi_collapse_clamped, 2) \
    X(ffi_collapse_complete, 2) \
    X(ffi_collapse_density, 3) \
    X(ffi_collapse_resize, 5) \
    X(ffi_pool_density, 3) \
    X(ffi_pool_told, 2) \
    X(ffi_geography, 4) \
    X(ffi_hmc_start, 5) \
    X(ffi_hmc_run, 6) \
    X(ffi_tilt_slopes, 2) \
    X(ffi_normal_tails, 1) \
    X(ffi_diagnostics, 2) \
    X(ffi_tail_ess, 1) \
    X(ffi_duplicate, 1)

#define SEXP_ARGUMENTS_0 void
#define SEXP_ARGUMENTS_1 SEXP
#define SEXP_ARGUMENTS_2 SEXP, SEXP
#define SEXP_ARGUMENTS_3 SEXP, SEXP, SEXP
#define SEXP_ARGUMENTS_4 SEXP, SEXP, SEXP, SEXP
#define SEXP_ARGUMENTS_5 SEXP, SEXP, SEXP, SEXP, SEXP
#define SEXP_ARGUMENTS_6 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define SEXP_ARGUMENTS_7 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define SEXP_ARGUMENTS_8 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP

#define DECLARE_ROUTINE(name, count) SEXP name(SEXP_ARGUMENTS_##count);
FFI_ROUTINES(DECLARE_ROUTINE)
#undef DECLARE_ROUTINE

#endif
