/* Models and statistics whose hooks are R functions (model_custom.c,
 * stat_custom.c, mech_custom.c): the only plug-ins that see SEXP. They want all records in one
 * block, so that an iteration costs a few calls to R, not some per record. */
#ifndef NOISEAWARE_CUSTOM_H
#define NOISEAWARE_CUSTOM_H

#include "ffi.h"

/* The functions stay R's, protected by the specification that holds them. */
struct model model_custom_read(SEXP spec);
struct stat stat_custom_read(SEXP spec);

/* A noise density that is an R function (mech_custom.c). */
struct density mech_custom_read(SEXP fun, int size);

/* A family of one number and its moments (expfam_custom.c). */
struct model model_expfam_read(SEXP spec);
struct record_moments moments_expfam_read(SEXP spec);

/* A model in a user's library (ffi_compiled.c). */
struct model model_compiled_read(SEXP spec);

/* An m x columns matrix of the records in x. */
SEXP custom_records(int m, int columns, const double *const *x);

#endif
