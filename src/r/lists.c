/* R's lists, read and made. */
#include "r/ffi.h"

#include <stdarg.h>

SEXP optional_element(SEXP list, const char *name) {
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    for (R_xlen_t i = 0; i < Rf_xlength(names); ++i)
        if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) return VECTOR_ELT(list, i);
    return NULL;
}

SEXP list_element(SEXP list, const char *name) {
    SEXP element = optional_element(list, name);
    if (!element) Rf_error("internal error: no element '%s'", name);
    return element;
}

double list_number(SEXP list, const char *name) { return Rf_asReal(list_element(list, name)); }

SEXP strings(int count, const char *const *name) {
    SEXP values = PROTECT(Rf_allocVector(STRSXP, count));
    for (int i = 0; i < count; ++i) SET_STRING_ELT(values, i, Rf_mkChar(name[i]));
    UNPROTECT(1);
    return values;
}

SEXP list_of(int count, const char *const *names, const SEXP *values) {
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

SEXP named_list(int count, ...) {
    enum { MOST = 16 };
    const char *names[MOST];
    SEXP values[MOST];
    va_list pairs;
    va_start(pairs, count);
    for (int i = 0; i < count && i < MOST; ++i) {
        names[i] = va_arg(pairs, const char *);
        values[i] = va_arg(pairs, SEXP);
    }
    va_end(pairs);
    return list_of(count, names, values);
}

/* Numeric elements only; the names and values stay R's. */
struct fields read_fields(SEXP spec) {
    SEXP list = optional_element(spec, "fields");
    const int count = list ? (int)Rf_xlength(list) : 0;
    SEXP names = count > 0 ? Rf_getAttrib(list, R_NamesSymbol) : R_NilValue;
    struct field *field = plugin_memory((size_t)count, sizeof *field);
    for (int i = 0; i < count; ++i) {
        SEXP value = VECTOR_ELT(list, i);
        if (TYPEOF(value) != REALSXP) Rf_error("internal error: a field is not numeric");
        field[i].name = CHAR(STRING_ELT(names, i));
        field[i].value = REAL(value);
        field[i].length = (int)Rf_xlength(value);
    }
    struct fields fields = {.count = count, .field = field, .object = spec};
    return fields;
}
