/* From R's lists to the plug-ins' structs. */
#include "clt/cholesky_innovations.h"
#include "clt/clt.h"
#include "clt/several_sites.h"
#include "contract/registry.h"
#include "r/ffi.h"
#include "records/augment.h"
#include "stat/linear_queries.h"

void *host_allocate(size_t bytes) { return R_alloc(bytes, 1); }

/* ---- the registry ------------------------------------------------------- */

#define LIST_CLASS(name) &name,
static const void *const model_list[] = {MODELS(LIST_CLASS)};
static const void *const stat_list[] = {STATS(LIST_CLASS)};
static const void *const mechanism_list[] = {MECHANISMS(LIST_CLASS)};
static const void *const density_list[] = {DENSITIES(LIST_CLASS)};
static const void *const moments_list[] = {MOMENTS(LIST_CLASS)};
static const struct registry models = {"model", COUNT(model_list), model_list};
static const struct registry stats = {"statistic", COUNT(stat_list), stat_list};
static const struct registry mechanisms = {"mechanism", COUNT(mechanism_list), mechanism_list};
static const struct registry densities = {"density", COUNT(density_list), density_list};
static const struct registry moments_of_pairs = {"moments", COUNT(moments_list), moments_list};

static const char *class_name(const void *class) { return *(const char *const *)class; }

const void *find_class(const struct registry *registry, SEXP name) {
    const char *wanted = CHAR(STRING_ELT(name, 0));
    for (int i = 0; i < registry->count; ++i)
        if (strcmp(class_name(registry->class[i]), wanted) == 0) return registry->class[i];
    Rf_error("internal error: no %s '%s'", registry->noun, wanted);
    return NULL;
}

int find_name(SEXP name, int count, const char *const *names) {
    const char *wanted = CHAR(STRING_ELT(name, 0));
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i], wanted) == 0) return i;
    Rf_error("internal error: no '%s'", wanted);
    return -1;
}

static void stop_unless(int status, const struct registry *registry, const void *class) {
    if (status != PLUGIN_OK)
        Rf_error("internal error: %s '%s' refuses its fields", registry->noun, class_name(class));
}

struct model read_model(SEXP spec) {
    const struct model_class *class = find_class(&models, list_element(spec, "name"));
    const struct fields fields = read_fields(spec);
    struct model model = {.class = class};
    stop_unless(class->create(&fields, &model), &models, class);
    return model;
}

struct stat read_stat(SEXP spec) {
    SEXP of = optional_element(spec, "of");
    if (of) {
        const struct fields queries = read_fields(spec);
        const struct stat inner = read_stat(of);
        struct stat stat;
        if (stat_linear(&queries, &inner, &stat) != PLUGIN_OK)
            Rf_error("internal error: queries of statistic '%s' have wrong fields",
                     inner.class->name);
        return stat;
    }
    const struct stat_class *class = find_class(&stats, list_element(spec, "name"));
    const struct fields fields = read_fields(spec);
    struct stat stat = {.class = class};
    stop_unless(class->create(&fields, &stat), &stats, class);
    return stat;
}

/* One after the other, as those of one release. */
static struct record_moments read_moments_of_sites(SEXP sites, const double *share) {
    const int count = (int)Rf_xlength(sites);
    struct record_moments *of = plugin_memory((size_t)count, sizeof *of);
    for (int j = 0; j < count; ++j) of[j] = read_moments(VECTOR_ELT(sites, j));
    struct record_moments moments;
    if (moments_sites(count, share, of, &moments) != PLUGIN_OK)
        Rf_error("internal error: sites have different complete-data statistics");
    return moments;
}

struct record_moments read_moments(SEXP spec) {
    SEXP sites = optional_element(spec, "sites");
    if (sites) return read_moments_of_sites(sites, REAL(list_element(spec, "share")));
    SEXP factored = optional_element(spec, "factored");
    if (factored) {
        const struct record_moments inner = read_moments(factored);
        const struct model model = read_model(list_element(spec, "model"));
        struct record_moments moments;
        moments_factored(&inner, &model, &moments);
        return moments;
    }
    SEXP of = optional_element(spec, "of");
    if (of) {
        const struct fields queries = read_fields(spec);
        const struct record_moments inner = read_moments(of);
        struct record_moments moments;
        if (moments_linear(&queries, &inner, &moments) != PLUGIN_OK)
            Rf_error("internal error: queries of moments '%s' have wrong fields",
                     inner.class->name);
        return moments;
    }
    const struct record_moments_class *class =
        find_class(&moments_of_pairs, list_element(spec, "name"));
    const struct fields fields = read_fields(spec);
    struct model *model = plugin_memory(1, sizeof *model); /* the moments look at it again */
    *model = read_model(list_element(spec, "model"));
    struct record_moments moments = {.class = class};
    stop_unless(class->create(&fields, &model->coordinates, &moments), &moments_of_pairs, class);
    return moments;
}

struct density read_density(SEXP spec, int size) {
    const struct density_class *class = find_class(&densities, list_element(spec, "name"));
    const struct fields fields = read_fields(spec);
    struct density density = {.size = size};
    stop_unless(class->create(&fields, &density), &densities, class);
    return density;
}

const struct mech_class *read_mechanism(SEXP name) { return find_class(&mechanisms, name); }

static SEXP names_of(const struct registry *registry) {
    SEXP names = PROTECT(Rf_allocVector(STRSXP, registry->count));
    for (int i = 0; i < registry->count; ++i)
        SET_STRING_ELT(names, i, Rf_mkChar(class_name(registry->class[i])));
    UNPROTECT(1);
    return names;
}

/* What R would have to copy: names of plug-ins and of what C lists by number. */
SEXP ffi_registry(void) {
    const char *const names[] = {"models",  "statistics", "mechanisms", "densities",
                                 "moments", "passes",     "samplers"};
    const SEXP values[] = {PROTECT(names_of(&models)),
                           PROTECT(names_of(&stats)),
                           PROTECT(names_of(&mechanisms)),
                           PROTECT(names_of(&densities)),
                           PROTECT(names_of(&moments_of_pairs)),
                           PROTECT(strings(PASS_KINDS, adapt_pass_names)),
                           PROTECT(strings(CLT_SAMPLERS, clt_sampler_names))};
    SEXP list = list_of(7, names, values);
    UNPROTECT(7);
    return list;
}

SEXP ffi_duplicate(SEXP x) { return Rf_duplicate(x); }

static SEXP check_interrupt(void *unused) {
    (void)unused;
    R_CheckUserInterrupt();
    return R_NilValue;
}

static SEXP note_interrupt(SEXP condition, void *seen) {
    (void)condition;
    *(int *)seen = 1;
    return R_NilValue;
}

/* A condition handler, not R_ToplevelExec(): that one ends a script. */
int interrupt_pending(void) {
    int seen = 0;
    SEXP class = PROTECT(Rf_mkString("interrupt"));
    R_tryCatch(check_interrupt, NULL, class, note_interrupt, &seen, NULL, NULL);
    UNPROTECT(1);
    return seen;
}
