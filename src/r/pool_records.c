/* Method "pool_records" as R sees it. */
#include "contract/model.h"
#include "pool/pool_gibbs.h"
#include "r/augment.h"
#include "r/pool.h"
#include "records/augment_internal.h"

/* Of the counters of each site in the state's "sites" those that all sites have: the largest step
 * of its energy, work, and its passes. */
enum { OF_SITE = offsetof(struct counters, maps_made) / sizeof(double) };

static void *read(SEXP problem) {
    struct pool_records *s = plugin_memory(1, sizeof *s);
    SEXP sites = list_element(problem, "sites"), partial = list_element(problem, "partial");
    s->model = read_model(list_element(problem, "model"));
    SEXP likelihood = list_element(partial, "likelihood");
    if (!Rf_isNull(likelihood)) s->likelihood = read_model(likelihood);
    read_spread(partial, &s->spread);
    s->place = read_places(partial, "at", &s->parameters);
    s->heads.at = read_places(partial, "head", &s->heads.count);
    s->shown.at = read_places(partial, "show", &s->shown.count);
    s->reference = REAL(list_element(partial, "reference"));
    SEXP mirror = optional_element(partial, "mirror");
    if (mirror && !Rf_isNull(mirror)) {
        s->mirror.made = 1;
        s->mirror.mean = Rf_asInteger(list_element(mirror, "mean"));
        s->mirror.records = list_number(mirror, "records");
        s->mirror.at = list_number(mirror, "at");
    }
    s->sites = (int)Rf_xlength(sites);
    s->site = plugin_memory((size_t)s->sites, sizeof *s->site);
    for (int j = 0; j < s->sites; ++j) {
        SEXP spec = VECTOR_ELT(sites, j);
        const struct fields fields = read_fields(spec);
        s->site[j].augment.model = s->model;
        s->site[j].member.covariate = fields_vector(&fields, "covariate", s->spread.covariates);
        SEXP table = optional_element(spec, "table");
        if (table)
            s->site[j].table = read_collapse(table);
        else
            read_augment_release(spec, &s->site[j].augment);
    }
    if (pool_records_create(s) != PLUGIN_OK) Rf_error("internal error: no likelihood of records");
    return s;
}

static size_t adapt_length(const struct pool_records *s) {
    const struct adapt_shape shape = augment_learned_shape(&s->site[0].augment.model);
    return adapt_size(&shape);
}

static size_t walks_length(const struct pool_records *s) {
    size_t sum = 0;
    for (int k = 0; k < POOL_WALKS; ++k) sum += walk_stored(s->moved[k].count);
    return sum;
}

/* what all have of these, and what imputed records need in addition */
enum { POOL_PARTS = 6, RECORD_PARTS = 3 };

static struct state_shape shape(const void *self) {
    const struct pool_records *s = self;
    const R_xlen_t sites = s->sites;
    const struct state_part own[POOL_PARTS] = {
        {"thetas", REALSXP, sites * s->model.parameters},
        {"walks", REALSXP, sites * (R_xlen_t)walk_stored(s->walks.count)},
        {"layer", REALSXP, (R_xlen_t)walks_length(s)},
        {"shared", REALSXP, s->shared},
        {"anchors", REALSXP, sites * s->parameters},
        {"store", REALSXP, (R_xlen_t)pool_records_given_stored(s)},
    };
    struct state_shape shape = {.counters = POOL_GIVEN_COUNTERS, .parts = POOL_PARTS};
    memcpy(shape.part, own, sizeof own);
    if (s->tables) {
        R_xlen_t stored = 0;
        for (int j = 0; j < s->sites; ++j) stored += s->site[j].table->stored;
        shape.part[shape.parts++] = (struct state_part){"tables", REALSXP, stored};
        shape.part[shape.parts++] =
            (struct state_part){"transfers", REALSXP, sites * COLLAPSE_COUNTERS};
        return shape;
    }
    const struct state_part of_records[RECORD_PARTS] = {
        {"adapt", REALSXP, sites * (R_xlen_t)adapt_length(s)},
        {"sites", REALSXP, sites * OF_SITE},
        {"rounds", REALSXP, (R_xlen_t)rounds_stored(pool_records_watched(s))},
    };
    memcpy(shape.part + shape.parts, of_records, sizeof of_records);
    shape.parts += RECORD_PARTS;
    augment_record_parts(s->sites, s->records, shape.part + shape.parts);
    shape.parts += AUGMENT_RECORD_PARTS;
    return shape;
}

static void attach_tables(struct pool_records *s, SEXP state) {
    double *store = REAL(list_element(state, "tables"));
    double *counter = REAL(list_element(state, "transfers"));
    for (int j = 0; j < s->sites; ++j, counter += COLLAPSE_COUNTERS) {
        struct collapse *table = s->site[j].table;
        table->store = store;
        table->counter = counter;
        store += table->stored;
    }
}

/* records, and what is learned of them */
static void attach_records(struct pool_records *s, SEXP state) {
    attach_augment_records(s->sites, s->records, state);
    double *adapt = REAL(list_element(state, "adapt"));
    const double *told = REAL(list_element(state, "sites"));
    const struct adapt_shape learned = augment_learned_shape(&s->site[0].augment.model);
    rounds_attach(&s->rounds, pool_records_watched(s), REAL(list_element(state, "rounds")));
    for (int j = 0; j < s->sites; ++j, told += OF_SITE) {
        struct augment *a = &s->site[j].augment;
        adapt_attach(&a->adapt, &learned, adapt + (size_t)j * adapt_length(s));
        a->rounds = s->rounds;
        memcpy(&a->count, told, OF_SITE * sizeof(double));
    }
}

/* of sites, and of what they share */
static void attach_walks(struct pool_records *s, SEXP state) {
    double *walk = REAL(list_element(state, "walks")), *layer = REAL(list_element(state, "layer"));
    for (int j = 0; j < s->sites; ++j, walk += walk_stored(s->walks.count))
        walk_attach(&s->site[j].walk, s->walks.count, walk);
    for (int k = 0; k < POOL_WALKS; ++k) {
        walk_attach(s->walk + k, s->moved[k].count, layer);
        layer += walk_stored(s->moved[k].count);
    }
}

static void attach(void *self, SEXP state, struct rng *rng) {
    struct pool_records *s = self;
    s->rng = rng;
    s->theta = REAL(list_element(state, "thetas"));
    s->at = REAL(list_element(state, "shared"));
    attach_walks(s, state);
    if (s->tables)
        attach_tables(s, state);
    else
        attach_records(s, state);
    double *anchor = REAL(list_element(state, "anchors"));
    for (int j = 0; j < s->sites; ++j, anchor += s->parameters) s->site[j].anchor = anchor;
    s->given.counter = REAL(list_element(state, "counters"));
    if (s->gradients) pool_records_given_attach(s, REAL(list_element(state, "store")));
    pool_records_attach(s);
}

static void resume(void *self) { pool_records_resume(self); }

static void detach(void *self, SEXP state) {
    const struct pool_records *s = self;
    if (s->tables) return; /* all of it stands in the store */
    detach_augment_records(s->sites, s->records, state);
    double *told = REAL(list_element(state, "sites"));
    for (int j = 0; j < s->sites; ++j, told += OF_SITE)
        memcpy(told, &s->site[j].augment.count, OF_SITE * sizeof(double));
}

static void start(void *self, SEXP problem) {
    struct pool_records *s = self;
    SEXP begin = list_element(problem, "start"), sites = list_element(problem, "sites");
    memcpy(s->at, REAL(list_element(begin, "shared")), (size_t)s->shared * sizeof(double));
    const double *theta = REAL(list_element(begin, "theta"));
    const double *move_sd = REAL(list_element(problem, "move_sd"));
    double *sd = plugin_memory((size_t)s->model.parameters, sizeof *sd);
    for (int j = 0; j < s->sites; ++j) {
        struct augment *a = &s->site[j].augment;
        memcpy(a->theta, theta, (size_t)s->model.parameters * sizeof(double));
        for (int k = 0; k < s->walks.count; ++k) sd[k] = move_sd[s->walks.at[k]];
        walk_start(&s->site[j].walk, sd);
        if (s->tables) continue;
        a->count.most_energy_step = R_NegInf;
        start_augment_size(VECTOR_ELT(sites, j), a);
        for (int k = 0; k < s->moves.count; ++k) sd[k] = move_sd[s->moves.at[k]];
        adapt_start(&a->adapt, sd, -1);
    }
    pool_records_start(s, REAL(list_element(begin, "sd")));
}

/* For tests: a column for each site, with where its records' likelihood of what varies is greatest,
 * and then the precision there. */
SEXP ffi_pool_told(SEXP problem, SEXP state) {
    struct pool_records *s = read(problem);
    struct rng rng;
    attach(s, state, &rng);
    const int V = s->spread.varying;
    for (int j = 0; j < s->sites; ++j) {
        struct augment *a = &s->site[j].augment;
        augment_take_complete(a, 1, a->complete);
    }
    pool_records_given_tell(s);
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, 2 * V, s->sites));
    for (int j = 0; j < s->sites; ++j) {
        double *column = REAL(out) + (size_t)j * 2 * (size_t)V;
        memcpy(column, s->site[j].told_at, (size_t)V * sizeof(double));
        memcpy(column + V, s->site[j].precision, (size_t)V * sizeof(double));
    }
    UNPROTECT(1);
    return out;
}

static int iterate(void *self, int iteration, int warmup, struct step *step) {
    return pool_records_iterate(self, iteration, warmup, &step->acceptance, &step->work);
}

static void report(void *self, double *draw) {
    const struct pool_records *s = self;
    augment_sizes(s->sites, s->records, pool_records_report(self, draw));
}

static int full(const void *self) {
    const struct pool_records *s = self;
    for (int j = 0; !s->tables && j < s->sites; ++j)
        if (augment_is_full(s->records[j])) return 1;
    return 0;
}

static void statistic(void *self, double *out) {
    const struct pool_records *s = self;
    if (!s->tables) augment_statistic(s->sites, s->records, out);
    for (int j = 0; s->tables && j < s->sites; ++j) {
        const struct collapse *table = s->site[j].table;
        table->class->statistic(table, out);
        out += table->noise.size;
    }
}

static double log_noise(void *self) { return -pool_records_energy(self); }

static void diagnostics(const void *self, double after, struct chain_diagnostics *told) {
    pool_records_diagnostics(self, after, told);
}

const struct method method_pool_records = {
    .name = "pool_records",
    .sampler = {.iterate = iterate,
                .report = report,
                .statistic = statistic,
                .log_noise = log_noise,
                .full = full},
    .read = read,
    .shape = shape,
    .attach = attach,
    .resume = resume,
    .detach = detach,
    .diagnostics = diagnostics,
    .start = start,
    .may_fail = 1,
};
