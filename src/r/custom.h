/* Shared by the plug-ins whose hooks are R functions (r/model_*.c, r/stat_custom.c,
 * r/mech_custom.c). They want all records in one block, so that an iteration costs a few calls to
 * R, not some per record. The functions stay R's, protected by the specification that holds them.
 */
#ifndef NOISEAWARE_R_CUSTOM_H
#define NOISEAWARE_R_CUSTOM_H

#include "r/ffi.h"

/* the specification that a plug-in is made of */
static inline SEXP spec_of(const struct fields *fields) { return fields->object; }

/* Numbers as an R vector; records as an m x columns matrix. Protect what they return. */
SEXP custom_vector(int count, const double *value);
SEXP custom_records(int m, int columns, const double *const *x);

#endif
