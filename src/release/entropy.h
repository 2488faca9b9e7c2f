/* Random bits of the operating system. */
#ifndef NOISEAWARE_RELEASE_ENTROPY_H
#define NOISEAWARE_RELEASE_ENTROPY_H

#include "base/core.h"

/* Fills `bytes` bytes; 0 if the system cannot give them. */
int system_entropy(unsigned char *out, size_t bytes);

#endif
