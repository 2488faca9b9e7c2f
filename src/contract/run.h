#ifndef NOISEAWARE_CONTRACT_RUN_H
#define NOISEAWARE_CONTRACT_RUN_H

/* What an iteration reports about itself. */
struct step {
    double acceptance; /* share of accepted moves */
    double work;       /* roughly its nanoseconds */
};

/* What a chain reports about itself, by name. */
enum { MOST_DIAGNOSTICS = 32 };

struct chain_diagnostics {
    int count;
    const char *name[MOST_DIAGNOSTICS];
    double value[MOST_DIAGNOSTICS];
};

static inline void diagnostics_tell(struct chain_diagnostics *told, const char *name,
                                    double value) {
    told->name[told->count] = name;
    told->value[told->count++] = value;
}

/* A method as the run loop sees it; `self` holds its problem and its state. */
struct sampler {
    /* Warmup ends after `warmup` iterations. Returns PLUGIN_*. */
    int (*iterate)(void *self, int iteration, int warmup, struct step *step);

    /* The parameters as the user sees them, and the released components before
     * noise. report() comes first. */
    void (*report)(void *self, double *draw);
    void (*statistic)(void *self, double *out);

    /* Log of the noise density, up to a constant. */
    double (*log_noise)(void *self);

    /* Expected share of records outside the bounds; NULL: not reported. */
    double (*outside)(void *self);

    /* The number of records, where it is unknown. NULL: it must be known. */
    double (*records)(void *self);

    /* Is there too little room for the next iteration? NULL: never. */
    int (*full)(const void *self);
};

/* RUN_FULL: more iterations need a state with more room */
enum run_status { RUN_DONE, RUN_INTERRUPTED, RUN_FAILED, RUN_FULL };

/* The results of a run: room for `iterations` of them. A draw is a column. */
struct results {
    double *draws, *statistic, *log_noise, *outside, *acceptance;
    double *records;     /* NULL: their number is known */
    int reported, width; /* rows of draws, of statistic */
    int iterations;
    int made, saved; /* iterations and draws that are there */
    double work;     /* of the iterations */
};

/* Runs on from iteration number `from`; keeps every `thin`-th after warmup.
 * Stops early, at the end of an iteration, when `interrupted` says so, an update fails, or
 * the state is full. */
enum run_status run(const struct sampler *sampler, void *self, int from, int warmup, int thin,
                    int (*interrupted)(void), struct results *results);

#endif
