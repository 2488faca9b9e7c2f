/* Mechanism "published": noise of a built-in mechanism, and processing of the noisy numbers before
 * publication (contract/published.h). Its "noise" is 0 minus the exact total, so the total is
 * minus the argument. R sends noise that is possible where tabulated noise may not be. Cost: one
 * published_log() for each component and candidate.
 */
#include "contract/published.h"
#include "contract/mech.h"

static void log_density(void *self, int candidates, int stride, const double *noise, double *out) {
    const struct published *p = self;
    for (int i = 0; i < candidates; ++i) out[i] = 0;
    for (int j = 0; j < p->size; ++j, noise += stride)
        for (int i = 0; i < candidates; ++i) out[i] += published_log(p, j, -noise[i]);
    for (int i = 0; i < candidates; ++i)
        if (out[i] < -TABULATED_IMPOSSIBLE / 2) out[i] = -INFINITY;
}

static int create(const struct fields *fields, struct density *density) {
    struct published *p = plugin_memory(1, sizeof *p);
    density->self = p;
    density->pieces = density->size > 0 ? fields_length(fields, "near") / density->size : 0;
    density->near = fields_vector(fields, "near", density->pieces * density->size);
    density->range = fields_vector(fields, "range", density->size);
    density->log_density = log_density;
    return published_read(fields, density->size, p);
}

const struct density_class mech_published = {
    .name = "published",
    .create = create,
};
