/* A compiled model as R sees it. Its library is looked up again in every call from R
 * (R/model_compiled.R): addresses are not valid in another process, where a chain may run. */
#include "contract/model_innovations.h"
#include "contract/registry.h"
#include "model/compiled.h"
#include "r/custom.h"

#include <R_ext/Rdynload.h>

typedef const struct noiseaware_model_class *(*entry_function)(void);

static const struct noiseaware_model_class *hooks_at(SEXP address) {
    const entry_function entry = (entry_function)R_ExternalPtrAddrFn(address);
    return entry ? entry() : NULL;
}

/* a function that another package has registered for C; an error without it */
SEXP ffi_compiled_callable(SEXP package, SEXP symbol) {
    DL_FUNC function = R_GetCCallable(CHAR(STRING_ELT(package, 0)), CHAR(STRING_ELT(symbol, 0)));
    return R_MakeExternalPtrFn(function, R_NilValue, R_NilValue);
}

/* What the model says of itself: ABI and size of its struct against ours, and
 * which hooks are there. The hooks are not looked at unless the first agree. */
SEXP ffi_compiled_hooks(SEXP address) {
    const struct noiseaware_model_class *hooks = hooks_at(address);
    const int agrees = hooks && hooks->abi == NOISEAWARE_ABI &&
                       hooks->size == sizeof(struct noiseaware_model_class);
    const char *const header_names[] = {"absent", "abi", "our_abi", "size", "our_size"};
    const double numbers[] = {!hooks, hooks ? hooks->abi : 0, NOISEAWARE_ABI,
                              hooks && hooks->abi == NOISEAWARE_ABI ? (double)hooks->size : 0,
                              (double)sizeof(struct noiseaware_model_class)};
    const char *const hook_names[] = {
        "create", "rprior", "set",      "rrecords", "add",     "rtheta",           "report",
        "invert", "dprior", "set_move", "move",     "refresh", "from_innovations", "log_density"};
    enum { NUMBERS = COUNT(numbers), HOOKS = COUNT(hook_names) };
    int present[HOOKS] = {0};
    if (agrees) {
        const int there[HOOKS] = {!!hooks->create,           !!hooks->rprior,     !!hooks->set,
                                  !!hooks->rrecords,         !!hooks->add,        !!hooks->rtheta,
                                  !!hooks->report,           !!hooks->invert,     !!hooks->dprior,
                                  !!hooks->set_move,         !!hooks->move,       !!hooks->refresh,
                                  !!hooks->from_innovations, !!hooks->log_density};
        memcpy(present, there, sizeof present);
    }
    SEXP header = PROTECT(Rf_allocVector(REALSXP, NUMBERS));
    memcpy(REAL(header), numbers, sizeof numbers);
    Rf_setAttrib(header, R_NamesSymbol, strings(NUMBERS, header_names));
    SEXP flags = PROTECT(Rf_allocVector(LGLSXP, HOOKS));
    memcpy(LOGICAL(flags), present, sizeof present);
    Rf_setAttrib(flags, R_NamesSymbol, strings(HOOKS, hook_names));
    SEXP title = PROTECT(agrees && hooks->name ? Rf_mkString(hooks->name) : Rf_mkString(""));
    SEXP list = named_list(3, "header", header, "hooks", flags, "name", title);
    UNPROTECT(3);
    return list;
}

static int create(const struct fields *fields, struct model *model) {
    SEXP spec = spec_of(fields);
    SEXP call = PROTECT(Rf_lang2(list_element(spec, "find"), list_element(spec, "source")));
    SEXP address = PROTECT(Rf_eval(call, R_GlobalEnv));
    const int status = model_compiled_create(hooks_at(address), fields, model);
    UNPROTECT(2);
    return status;
}

const struct model_class model_compiled = {
    .name = "compiled",
    .create = create,
    .rprior = model_compiled_rprior,
    .set = model_compiled_set,
    .rrecords = model_compiled_rrecords,
};

/* What create() returned, the sizes that it filled in, and the moving coordinates. */
SEXP ffi_compiled_sizes(SEXP spec) {
    struct model model = {0};
    const struct fields fields = read_fields(spec);
    const int status = create(&fields, &model);
    const int sane = model.moves && model.moving > 0 && model.moving <= model.parameters &&
                     model.parameters <= MOST_PARAMETERS;
    const char *const size_names[] = {"columns", "parameters",  "complete",  "reported",
                                      "moving",  "innovations", "innovation"};
    const struct model_innovations *of = model.innovations;
    const int sizes[] = {model.columns, model.parameters,   model.complete,        model.reported,
                         model.moving,  of ? of->count : 0, of ? (int)of->kind : 0};
    SEXP numbers = PROTECT(Rf_allocVector(INTSXP, COUNT(sizes)));
    memcpy(INTEGER(numbers), sizes, sizeof sizes);
    Rf_setAttrib(numbers, R_NamesSymbol, strings(COUNT(sizes), size_names));
    SEXP moves = PROTECT(Rf_allocVector(INTSXP, sane ? model.moving : 0));
    if (sane) memcpy(INTEGER(moves), model.moves, (size_t)model.moving * sizeof(int));
    SEXP list =
        named_list(4, "status", PROTECT(Rf_ScalarInteger(status)), "sizes", numbers, "lists_moves",
                   PROTECT(Rf_ScalarLogical(model.moves != NULL)), "moves", moves);
    UNPROTECT(4);
    return list;
}
