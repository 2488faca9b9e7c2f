/* The operating system's entropy: getrandom() on Linux, rand_s() on Windows,
 * getentropy() elsewhere. */
#if defined(_WIN32)
#define _CRT_RAND_S
#include <stdlib.h>
#elif defined(__APPLE__)
#include <sys/random.h>
#elif defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/random.h>
#else
#include <unistd.h>
#endif

#include "release/entropy.h"

#include <errno.h>

int system_entropy(unsigned char *out, size_t bytes) {
#if defined(_WIN32)
    for (size_t i = 0; i < bytes; i += sizeof(unsigned int)) {
        unsigned int word;
        if (rand_s(&word)) return 0;
        memcpy(out + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
    return 1;
#elif defined(__linux__)
    while (bytes > 0) {
        const ssize_t got = getrandom(out, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        out += got;
        bytes -= (size_t)got;
    }
    return 1;
#else
    while (bytes > 0) { /* getentropy gives 256 bytes at a time */
        const size_t chunk = bytes < 256 ? bytes : 256;
        if (getentropy(out, chunk) != 0) return 0;
        out += chunk;
        bytes -= chunk;
    }
    return 1;
#endif
}
