/* Shared by the interfaces to R of methods for several sites. */
#ifndef NOISEAWARE_R_POOL_H
#define NOISEAWARE_R_POOL_H

#include "pool/hyperprior.h"
#include "r/run.h"

int *read_places(SEXP list, const char *name, int *count);

/* What varies between sites, and the priors of how widely; not what is known about means. */
void read_spread(SEXP partial, struct pool_spread *spread);

#endif
