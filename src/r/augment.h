/* Shared by the interfaces to R of methods that impute records. */
#ifndef NOISEAWARE_R_AUGMENT_H
#define NOISEAWARE_R_AUGMENT_H

#include "r/run.h"
#include "records/augment.h"

/* What was released of n records, and what is believed of n. */
void read_augment_release(SEXP spec, struct augment *a);

struct adapt_shape augment_learned_shape(const struct model *model);

/* The records of all sites, one site after the other, the room that each has, and what there is
 * where their number is not known: the first vectors of the state. */
enum { AUGMENT_RECORD_PARTS = 5 };
void augment_record_parts(int sites, struct augment *const *site, struct state_part *part);
void attach_augment_records(int sites, struct augment *const *site, SEXP state);
void detach_augment_records(int sites, struct augment *const *site, SEXP state);

/* Starts with as many records as the problem says, about, where that is not known. */
void start_augment_size(SEXP spec, struct augment *a);

/* Of each site where it is not known, the number of records. */
void augment_sizes(int sites, struct augment *const *site, double *out);

/* The confidential statistics that the state's records have. */
void augment_statistic(int sites, struct augment *const *site, double *out);

#endif
