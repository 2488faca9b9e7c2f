/* The lock of a budget's file, as R has it: an external pointer. If R has lost it, because of an
 * interrupt, the garbage collector releases it. */
#include "release/file_lock.h"
#include "r/ffi.h"

SEXP ffi_unlock_file(SEXP pointer) {
    struct file_lock *lock = R_ExternalPtrAddr(pointer);
    if (!lock) return R_NilValue;
    R_ClearExternalPtr(pointer);
    file_lock_release(lock);
    R_Free(lock);
    return R_NilValue;
}

static void finalise(SEXP pointer) { ffi_unlock_file(pointer); }

/* list(answer, lock): the lock is NULL unless the answer is "locked" or "new". */
SEXP ffi_lock_file(SEXP path, SEXP create) {
    static const char *const answers[] = {"locked", "new", "busy", "failed"};
    struct file_lock *lock = R_Calloc(1, struct file_lock);
    SEXP pointer = PROTECT(R_MakeExternalPtr(lock, R_NilValue, R_NilValue));
#ifdef _WIN32
    const char *name = Rf_translateCharUTF8(STRING_ELT(path, 0));
#else
    const char *name = Rf_translateChar(STRING_ELT(path, 0));
#endif
    const enum file_lock_answer answer = file_lock_take(name, Rf_asLogical(create), lock);
    if (answer == FILE_LOCKED || answer == FILE_LOCKED_NEW) {
        R_RegisterCFinalizerEx(pointer, finalise, TRUE);
    } else {
        R_ClearExternalPtr(pointer);
        R_Free(lock);
        UNPROTECT(1);
        pointer = PROTECT(R_NilValue);
    }
    SEXP out = named_list(2, "answer", PROTECT(Rf_mkString(answers[answer])), "lock", pointer);
    UNPROTECT(2);
    return out;
}
