/* Reads the parts of R's list of a problem that all methods share. */
#include "r/run.h"

/* R's names */
const char *const kernel_names[] = {
    [KERNEL_ABSOLUTE] = "absolute", [KERNEL_SQUARED] = "squared",     [KERNEL_MATCH] = "match",
    [KERNEL_DENSITY] = "density",   [KERNEL_PUBLISHED] = "published", [KERNEL_EXACT] = "exact",
};

enum kernel find_kernel(SEXP name) {
    for (int k = 0; k < COUNT(kernel_names); ++k)
        if (strcmp(CHAR(name), kernel_names[k]) == 0) return (enum kernel)k;
    Rf_error("internal error: no kernel '%s'", CHAR(name));
}

const struct size_prior *read_size_prior(SEXP problem) {
    SEXP spec = list_element(problem, "size_prior");
    if (Rf_isNull(spec)) return NULL;
    struct size_prior *prior = plugin_memory(1, sizeof *prior);
    const int kind = find_name(list_element(spec, "name"), SIZE_KINDS, size_prior_names);
    size_prior_set(prior, (enum size_prior_kind)kind, REAL(list_element(spec, "parameters")));
    return prior;
}

const double *weights_of(SEXP scale) {
    const R_xlen_t size = Rf_xlength(scale);
    double *weight = doubles((size_t)size);
    for (R_xlen_t j = 0; j < size; ++j) weight[j] = 1 / REAL(scale)[j];
    return weight;
}

struct noise read_noise(SEXP spec) {
    SEXP released = list_element(spec, "released"), kernel = list_element(spec, "kernel");
    struct noise noise = {.size = (int)Rf_xlength(released),
                          .released = REAL(released),
                          .scale = REAL(list_element(spec, "scale")),
                          .weight = weights_of(list_element(spec, "scale"))};
    enum kernel *kernels = plugin_memory((size_t)noise.size, sizeof *kernels);
    for (int j = 0; j < noise.size; ++j) kernels[j] = find_kernel(STRING_ELT(kernel, j));
    noise.kernel = kernels;
    noise_find_runs(&noise, noise.size);
    const int intervals = noise.noisy - noise.separable;
    if (intervals == 0) return noise;
    const struct fields fields = read_fields(list_element(spec, "published"));
    if (published_read(&fields, intervals, &noise.published) != PLUGIN_OK)
        Rf_error("internal error: what was published is incomplete");
    return noise;
}

int statistic_width(SEXP problem) {
    SEXP tracked = optional_element(problem, "tracked"),
         untold = optional_element(problem, "untold");
    return (int)Rf_xlength(list_element(problem, "released")) +
           (tracked ? Rf_asInteger(tracked) : 0) - (untold ? Rf_asInteger(untold) : 0);
}
