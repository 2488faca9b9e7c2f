/* Registration: name and address come from one list, so they cannot differ. */
#include "r/ffi.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

/* by way of the one type that may be cast to any other function's */
#define REGISTER_ROUTINE(name, count) {#name, (DL_FUNC)(void (*)(void)) & name, count},

static const R_CallMethodDef routines[] = {FFI_ROUTINES(REGISTER_ROUTINE){NULL, NULL, 0}};

void attribute_visible R_init_noiseaware(DllInfo *dll);

void attribute_visible R_init_noiseaware(DllInfo *dll) {
    R_registerRoutines(dll, NULL, routines, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
}
