#ifndef NOISEAWARE_BASE_MEMORY_H
#define NOISEAWARE_BASE_MEMORY_H

#include "base/core.h"

/* Zero-initialised memory that lives as long as the call from R. */
void *plugin_memory(size_t count, size_t size);

/* Where that memory comes from: the program that hosts the plug-ins defines it.
 * Never NULL, and freed by the host alone. In the package it is R_alloc() (r/read_plugins.c). */
void *host_allocate(size_t bytes);

#endif
