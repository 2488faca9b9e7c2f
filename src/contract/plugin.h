/* What all plug-ins share. A plug-in is a model, a statistic, the moments of a record, or a
 * mechanism: one C file, in which everything but its class descriptor is static, and a line in
 * contract/registry.h. Methods see only the contracts (contract/model.h, stat.h, moments.h,
 * mech.h); no plug-in names another.
 *
 * Records travel in blocks, structure of arrays: `x[v][i]` is variable v of
 * record i, 0 <= i < m, and every column may be read and written up to
 * PAD_LANES(m). The cost of a function pointer is paid once a block.
 */
#ifndef NOISEAWARE_CONTRACT_PLUGIN_H
#define NOISEAWARE_CONTRACT_PLUGIN_H

#include "base/memory.h"

/* What R sends to a plug-in: numeric vectors found by name. They stay valid
 * while the plug-in lives. */
struct field {
    const char *name;
    const double *value;
    int length;
};

struct fields {
    int count;
    const struct field *field;
    /* R's list itself, for the plug-ins whose hooks are R functions (r/):
     * nobody else looks at it. NULL in a program without R. */
    void *object;
};

/* The vector of that name; NULL unless it is there with `length` values
 * (any number if `length` is negative). */
const double *fields_vector(const struct fields *fields, const char *name, int length);
int fields_length(const struct fields *fields, const char *name);

enum {
    PLUGIN_OK = NOISEAWARE_OK,
    PLUGIN_BAD_FIELDS = NOISEAWARE_BAD_FIELDS,
    PLUGIN_NUMERICAL = NOISEAWARE_NUMERICAL
};

#endif
