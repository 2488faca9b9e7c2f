/* The run loop of all methods: iterations, warmup, thinning, draws kept, and from time to time a
 * check for the user's interrupt. Everything that a method needs to continue bit for bit is in its
 * state; the loop itself has no state.
 */
#include "contract/run.h"

#include <math.h>

#include "contract/plugin.h"

/* work between two looks at the user's interrupt, about 10 ms */
static const double WORK_PER_LOOK = 1e7;

static void keep(const struct sampler *sampler, void *self, struct results *r) {
    const size_t at = (size_t)r->saved++;
    sampler->report(self, r->draws + at * (size_t)r->reported);
    sampler->statistic(self, r->statistic + at * (size_t)r->width);
    r->log_noise[at] = sampler->log_noise(self);
    if (sampler->outside) r->outside[at] = sampler->outside(self);
    if (r->records) r->records[at] = sampler->records(self);
}

enum run_status run(const struct sampler *sampler, void *self, int from, int warmup, int thin,
                    int (*interrupted)(void), struct results *r) {
    /* a run of short iterations has one look, its first; R itself looks between runs of one */
    double since_look = r->iterations > 1 ? WORK_PER_LOOK : 0;
    while (r->made < r->iterations) {
        const int iteration = from + r->made;
        struct step step = {0, 0};
        if (sampler->full && sampler->full(self)) return RUN_FULL;
        if (sampler->iterate(self, iteration, warmup, &step) != PLUGIN_OK) return RUN_FAILED;
        r->acceptance[r->made++] = step.acceptance;
        if (iteration >= warmup && (iteration - warmup + 1) % thin == 0) keep(sampler, self, r);
        r->work += rint(step.work); /* whole: the sum does not depend on where a run is cut */
        since_look += step.work;
        if (since_look > WORK_PER_LOOK) {
            since_look = 0;
            if (interrupted()) return RUN_INTERRUPTED;
        }
    }
    return RUN_DONE;
}
