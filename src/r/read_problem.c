/* Reads the parts of R's list of a problem that all methods share. */
#include "r/run.h"

const struct size_prior *read_size_prior(SEXP problem) {
    SEXP spec = list_element(problem, "size_prior");
    if (Rf_isNull(spec)) return NULL;
    struct size_prior *prior = plugin_memory(1, sizeof *prior);
    const int kind = find_name(list_element(spec, "name"), SIZE_KINDS, size_prior_names);
    size_prior_set(prior, (enum size_prior_kind)kind, REAL(list_element(spec, "parameters")));
    return prior;
}

int statistic_width(SEXP problem) {
    SEXP tracked = optional_element(problem, "tracked");
    return (int)Rf_xlength(list_element(problem, "released")) +
           (tracked ? Rf_asInteger(tracked) : 0);
}
