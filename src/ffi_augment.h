/* What methods that impute records share as R sees them. */
#ifndef NOISEAWARE_FFI_AUGMENT_H
#define NOISEAWARE_FFI_AUGMENT_H

#include "ffi_run.h"
#include "method_augment.h"

/* What was released of n records. */
void read_augment_release(SEXP spec, struct augment *a);

struct adapt_shape augment_learned_shape(const struct model *model);

/* The records of all sites, one site after the other: the first vectors of the state. */
enum { AUGMENT_RECORD_PARTS = 3 };
void augment_record_parts(int sites, struct augment *const *site, struct state_part *part);
void attach_augment_records(int sites, struct augment *const *site, SEXP state);
void detach_augment_records(int sites, struct augment *const *site, SEXP state);

/* The confidential statistics that the state's records have. */
void augment_statistic(int sites, struct augment *const *site, double *out);

#endif
