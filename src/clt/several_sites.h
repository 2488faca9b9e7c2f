/* Several releases of different records under one theta, as method "clt" sees them. */
#ifndef NOISEAWARE_CLT_SEVERAL_SITES_H
#define NOISEAWARE_CLT_SEVERAL_SITES_H

#include "contract/moments.h"

/* The moments of all of `count` sites as those of one release, see clt/several_sites.c. `share`:
 * of the records that a site has. Returns PLUGIN_*. */
int moments_sites(int count, const double *share, const struct record_moments *of,
                  struct record_moments *moments);

#endif
