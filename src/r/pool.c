/* Method "pool" as R sees it. */
#include "r/pool.h"
#include "pool/pool_nuts.h"

static const char *const family_names[] = {"rates", "totals", "clt"};

int *read_places(SEXP list, const char *name, int *count) {
    SEXP places = list_element(list, name);
    *count = (int)Rf_xlength(places);
    return INTEGER(places);
}

void read_spread(SEXP partial, struct pool_spread *spread) {
    spread->which = read_places(partial, "which", &spread->varying);
    spread->sd = plugin_memory((size_t)spread->varying, sizeof *spread->sd);
    SEXP sd = list_element(partial, "sd");
    for (int v = 0; v < spread->varying; ++v) {
        const struct fields fields = read_fields(VECTOR_ELT(sd, v));
        if (scale_prior_read(&fields, spread->sd + v) != PLUGIN_OK)
            Rf_error("internal error: no prior of a standard deviation");
    }
    SEXP effect_sd = list_element(partial, "effect_sd");
    spread->effect_sd = REAL(effect_sd);
    spread->covariates = spread->varying > 0 ? (int)(Rf_xlength(effect_sd) / spread->varying) : 0;
    spread->lkj = list_number(partial, "lkj");
    spread->walk = Rf_asInteger(list_element(partial, "walk"));
    if (spread->walk > 1) spread->first_step = REAL(list_element(partial, "first_step"));
}

/* What varies between sites; NULL: nothing. */
static void read_partial(SEXP partial, struct pool *s) {
    if (!partial || Rf_isNull(partial)) return;
    s->partial = 1;
    read_spread(partial, &s->spread);
    s->heads.at = read_places(partial, "head", &s->heads.count);
    s->shown.at = read_places(partial, "show", &s->shown.count);
    if (optional_element(partial, "draw"))
        s->drawn.at = read_places(partial, "draw", &s->drawn.count);
    s->spread.mean_at = REAL(list_element(partial, "mean_at"));
    s->spread.mean_precision = REAL(list_element(partial, "mean_precision"));
    SEXP separate = optional_element(partial, "separate");
    s->separate = separate && Rf_asLogical(separate);
    if (s->family == POOL_TOTALS) {
        s->likelihood = read_model(list_element(partial, "likelihood"));
        s->pooled_scatter = Rf_asLogical(list_element(partial, "pooled_scatter"));
    }
    if (s->family == POOL_CLT) s->place = read_places(partial, "coordinates", &s->parameters);
}

static int read_site(SEXP spec, struct pool *s, struct pool_site *site) {
    const struct fields fields = read_fields(spec);
    site->member.at = fields_vector(&fields, "at", s->spread.varying);
    site->member.precision = fields_vector(&fields, "precision", s->spread.varying);
    site->member.covariate = fields_vector(&fields, "covariate", s->spread.covariates);
    switch (s->family) {
    case POOL_RATES:
        return pool_rate_read(&fields, &site->rate);
    case POOL_TOTALS:
        site->noise = read_noise(spec);
        site->size_prior = read_size_prior(spec);
        return pool_read_totals(&fields, s->partial ? &s->likelihood : &s->model, site);
    case POOL_CLT:
        break;
    }
    site->clt.alone = read_clt(list_element(spec, "alone"));
    return pool_read_clt(&fields, s, site);
}

static void *read(SEXP problem) {
    struct pool *s = plugin_memory(1, sizeof *s);
    SEXP sites = list_element(problem, "sites");
    s->model = read_model(list_element(problem, "model"));
    s->family = (enum pool_family)find_name(list_element(problem, "family"), COUNT(family_names),
                                            family_names);
    s->n = list_number(problem, "n");
    read_partial(optional_element(problem, "partial"), s);
    s->sites = (int)Rf_xlength(sites);
    s->site = plugin_memory((size_t)s->sites, sizeof *s->site);
    for (int j = 0; j < s->sites; ++j) {
        SEXP spec = VECTOR_ELT(sites, j);
        struct pool_site *site = s->site + j;
        site->first = s->columns;
        site->components = Rf_asInteger(list_element(spec, "components"));
        s->columns += site->components;
        SEXP innovates = optional_element(spec, "innovates");
        site->innovates =
            innovates ? (enum pool_innovations)Rf_asInteger(innovates) : INNOVATE_NONE;
        if (read_site(spec, s, site) != PLUGIN_OK)
            Rf_error("internal error: a site refuses its fields");
    }
    s->sizes.groups = s->sites > 0 && s->site[0].rate.sized ? s->sites : 0;
    s->sizes.prior = read_size_prior(problem);
    if (pool_create(s) != PLUGIN_OK) Rf_error("internal error: nothing to sample");
    return s;
}

static struct state_shape shape(const void *self) {
    const struct state_shape shape = {
        .counters = POOL_COUNTERS,
        .parts = 3,
        .part = {{"store", REALSXP, pool_stored(self)},
                 {"sizes", REALSXP, ((const struct pool *)self)->sizes.groups},
                 {"size_scale", REALSXP, ((const struct pool *)self)->sizes.groups}},
    };
    return shape;
}

static void attach(void *self, SEXP state, struct rng *rng) {
    struct pool *s = self;
    s->theta = REAL(list_element(state, "theta"));
    s->store = REAL(list_element(state, "store"));
    s->counter = REAL(list_element(state, "counters"));
    s->sizes.n = REAL(list_element(state, "sizes"));
    s->sizes.log_scale = REAL(list_element(state, "size_scale"));
    s->rng = rng;
    pool_attach(s);
}

static void resume(void *self) { pool_load(self); }

static const double *optional_numbers(SEXP list, const char *name) {
    SEXP values = optional_element(list, name);
    return values ? REAL(values) : NULL;
}

static void start(void *self, SEXP problem) {
    const struct pool_begin begin = {.complete = optional_numbers(problem, "complete"),
                                     .phi = optional_numbers(problem, "phi"),
                                     .spread = optional_numbers(problem, "spread"),
                                     .error = optional_numbers(problem, "error"),
                                     .sizes = optional_numbers(problem, "sizes"),
                                     .size_error = optional_numbers(problem, "size_error"),
                                     .unsized = optional_numbers(problem, "unsized")};
    pool_start(self, &begin);
}

/* Log density of the state's problem at such coordinates, and its gradient; for tests. */
SEXP ffi_pool_density(SEXP problem, SEXP state, SEXP coordinates) {
    struct pool *s = read(problem);
    struct rng rng;
    attach(s, state, &rng);
    if (XLENGTH(coordinates) < s->size) Rf_error("a density of %d coordinates", s->size);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, 1 + s->size));
    memset(REAL(out), 0, (size_t)(1 + s->size) * sizeof(double));
    REAL(out)[0] = pool_log_density(s, REAL(coordinates), REAL(out) + 1);
    UNPROTECT(1);
    return out;
}

static int iterate(void *self, int iteration, int warmup, struct step *step) {
    struct pool *s = self;
    const int status = pool_iterate(s, iteration, warmup, &step->acceptance);
    step->work = (1.0 + s->leapfrogs) * s->sites * (s->family == POOL_CLT ? 5000 : 500);
    /* counters speak of what follows */
    if (iteration + 1 == warmup) memset(s->counter, 0, POOL_COUNTERS * sizeof(double));
    return status;
}

static void report(void *self, double *draw) { pool_report(self, draw); }

static void statistic(void *self, double *out) {
    struct pool *s = self;
    pool_draw_totals(s);
    for (int j = 0; j < s->sites; ++j) {
        const struct pool_site *site = s->site + j;
        memcpy(out + site->first, site->statistic, (size_t)site->components * sizeof(double));
    }
}

static double log_noise(void *self) {
    const struct pool *s = self;
    double sum = 0;
    for (int j = 0; j < s->sites; ++j) sum -= s->site[j].energy;
    return sum;
}

static double outside(void *self) { return pool_outside(self); }

static double records(void *self) { return pool_sizes_sum(&((const struct pool *)self)->sizes); }

static void diagnostics(const void *self, double after, struct chain_diagnostics *told) {
    static const char *const names[POOL_COUNTERS] = {"transitions",  "acceptance", "leapfrogs",
                                                     "divergent",    "deepest",    "size_made",
                                                     "size_accepted"};
    const struct pool *s = self;
    (void)after;
    for (int k = 0; k < POOL_COUNTERS; ++k) diagnostics_tell(told, names[k], s->counter[k]);
}

const struct method method_pool = {
    .name = "pool",
    .sampler = {.iterate = iterate,
                .report = report,
                .statistic = statistic,
                .log_noise = log_noise,
                .outside = outside,
                .records = records},
    .read = read,
    .shape = shape,
    .attach = attach,
    .resume = resume,
    .diagnostics = diagnostics,
    .start = start,
};
