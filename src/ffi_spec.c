/* From R's lists to the plug-ins' structs. */
#include "custom.h"
#include "ffi.h"
#include "registry.h"

/* Starts a cache line: a vector that lies across two takes twice as long to store. */
void *plugin_memory(size_t count, size_t size) {
    enum { LINE = 64 };
    const size_t bytes = (count > 0 ? count : 1) * size;
    char *memory = R_alloc(bytes + LINE - 1, 1);
    memory += (LINE - (uintptr_t)memory % LINE) % LINE;
    memset(memory, 0, bytes);
    return memory;
}

static const struct field *find_field(const struct fields *fields, const char *name) {
    for (int i = 0; i < fields->count; ++i)
        if (strcmp(fields->field[i].name, name) == 0) return fields->field + i;
    return NULL;
}

const double *fields_vector(const struct fields *fields, const char *name, int length) {
    const struct field *field = find_field(fields, name);
    if (!field || (length >= 0 && field->length != length)) return NULL;
    return field->value;
}

int fields_length(const struct fields *fields, const char *name) {
    const struct field *field = find_field(fields, name);
    return field ? field->length : 0;
}

SEXP list_element(SEXP list, const char *name) {
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    for (R_xlen_t i = 0; i < Rf_xlength(names); ++i)
        if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) return VECTOR_ELT(list, i);
    Rf_error("internal error: no element '%s'", name);
    return R_NilValue;
}

double list_number(SEXP list, const char *name) { return Rf_asReal(list_element(list, name)); }

SEXP named_list(int count, const char *const *names, const SEXP *values) {
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    SEXP list_names = Rf_allocVector(STRSXP, count);
    Rf_setAttrib(list, R_NamesSymbol, list_names);
    for (int i = 0; i < count; ++i) {
        SET_STRING_ELT(list_names, i, Rf_mkChar(names[i]));
        SET_VECTOR_ELT(list, i, values[i]);
    }
    UNPROTECT(1);
    return list;
}

/* Numeric elements only; the names and values stay R's. */
struct fields read_fields(SEXP list) {
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    const int count = (int)Rf_xlength(list);
    struct field *field = plugin_memory((size_t)count, sizeof *field);
    for (int i = 0; i < count; ++i) {
        SEXP value = VECTOR_ELT(list, i);
        if (TYPEOF(value) != REALSXP) Rf_error("internal error: a field is not numeric");
        field[i].name = CHAR(STRING_ELT(names, i));
        field[i].value = REAL(value);
        field[i].length = (int)Rf_xlength(value);
    }
    struct fields fields = {.count = count, .field = field};
    return fields;
}

#define LIST_CLASS(name) &name,
static const struct model_class *const models[] = {MODELS(LIST_CLASS)};
static const struct stat_class *const stats[] = {STATS(LIST_CLASS)};
static const struct record_moments_class *const moments_classes[] = {MOMENTS(LIST_CLASS)};
static const struct density_class *const densities[] = {DENSITIES(LIST_CLASS)};
static const struct mech_class *const mechanisms[] = {MECHANISMS(LIST_CLASS)};
#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static void stop_unless(int status, const char *what, const char *name) {
    if (status != PLUGIN_OK) Rf_error("internal error: %s '%s' refuses its fields", what, name);
}

static const char *spec_name(SEXP spec) { return CHAR(STRING_ELT(list_element(spec, "name"), 0)); }

struct model read_model(SEXP spec) {
    const char *name = spec_name(spec);
    if (strcmp(name, "custom") == 0) return model_custom_read(spec);
    if (strcmp(name, "expfam") == 0) return model_expfam_read(spec);
    if (strcmp(name, "compiled") == 0) return model_compiled_read(spec);
    struct model model = {0};
    for (int i = 0; i < COUNT(models) && !model.class; ++i)
        if (strcmp(models[i]->name, name) == 0) model.class = models[i];
    if (!model.class) Rf_error("internal error: no model '%s'", name);
    const struct fields fields = read_fields(list_element(spec, "fields"));
    stop_unless(model.class->create(&fields, &model), "model", name);
    return model;
}

struct stat read_stat(SEXP spec) {
    const char *name = spec_name(spec);
    if (strcmp(name, "custom") == 0) return stat_custom_read(spec);
    struct stat stat = {0};
    for (int i = 0; i < COUNT(stats) && !stat.class; ++i)
        if (strcmp(stats[i]->name, name) == 0) stat.class = stats[i];
    if (!stat.class) Rf_error("internal error: no statistic '%s'", name);
    const struct fields fields = read_fields(list_element(spec, "fields"));
    stop_unless(stat.class->create(&fields, &stat), "statistic", name);
    return stat;
}

struct record_moments read_moments(SEXP spec) {
    const char *name = spec_name(spec);
    if (strcmp(name, "expfam") == 0) return moments_expfam_read(spec);
    struct record_moments moments = {0};
    for (int i = 0; i < COUNT(moments_classes) && !moments.class; ++i)
        if (strcmp(moments_classes[i]->name, name) == 0) moments.class = moments_classes[i];
    if (!moments.class) Rf_error("internal error: no moments '%s'", name);
    const struct fields fields = read_fields(list_element(spec, "fields"));
    stop_unless(moments.class->create(&fields, &moments), "moments", name);
    return moments;
}

struct density read_density(SEXP spec, int size) {
    if (Rf_isFunction(spec)) return mech_custom_read(spec, size);
    const char *name = spec_name(spec);
    struct density density = {0};
    const struct fields fields = read_fields(list_element(spec, "fields"));
    for (int i = 0; i < COUNT(densities); ++i)
        if (strcmp(densities[i]->name, name) == 0)
            stop_unless(densities[i]->create(&fields, &density), "density", name);
    if (!density.log_density) Rf_error("internal error: no density '%s'", name);
    return density;
}

const struct mech_class *read_mechanism(SEXP name) {
    const char *wanted = CHAR(STRING_ELT(name, 0));
    for (int i = 0; i < COUNT(mechanisms); ++i)
        if (strcmp(mechanisms[i]->name, wanted) == 0) return mechanisms[i];
    Rf_error("internal error: no mechanism '%s'", wanted);
    return NULL;
}

/* names of all plug-ins, for the tests that loop over them */
SEXP ffi_registry(void) {
    SEXP model_names = PROTECT(Rf_allocVector(STRSXP, COUNT(models)));
    SEXP stat_names = PROTECT(Rf_allocVector(STRSXP, COUNT(stats)));
    SEXP mechanism_names = PROTECT(Rf_allocVector(STRSXP, COUNT(mechanisms)));
    for (int i = 0; i < COUNT(models); ++i)
        SET_STRING_ELT(model_names, i, Rf_mkChar(models[i]->name));
    for (int i = 0; i < COUNT(stats); ++i) SET_STRING_ELT(stat_names, i, Rf_mkChar(stats[i]->name));
    for (int i = 0; i < COUNT(mechanisms); ++i)
        SET_STRING_ELT(mechanism_names, i, Rf_mkChar(mechanisms[i]->name));
    const char *const names[] = {"models", "statistics", "mechanisms"};
    const SEXP values[] = {model_names, stat_names, mechanism_names};
    SEXP list = named_list(3, names, values);
    UNPROTECT(3);
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
