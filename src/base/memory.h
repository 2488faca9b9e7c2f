#ifndef NOISEAWARE_BASE_MEMORY_H
#define NOISEAWARE_BASE_MEMORY_H

#include "base/core.h"

/* Zero-initialised memory that lives as long as the call from R. */
void *plugin_memory(size_t count, size_t size);
static inline double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

/* So many for each of these: DOUBLES(d, &r->mean, &r->sd). */
static inline void doubles_each(size_t count, double **const *each) {
    for (; *each; ++each) **each = doubles(count);
}
#define DOUBLES(count, ...) doubles_each(count, (double **const[]){__VA_ARGS__, NULL})

static inline void doubles_copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

/* Where that memory comes from: the program that hosts the plug-ins defines it.
 * Never NULL, and freed by the host alone. In the package it is R_alloc() (r/read_plugins.c). */
void *host_allocate(size_t bytes);

#endif
