/* Every plug-in of the package: one line adds one. The class descriptor (`model_lm` in
 * model/lm.c) and the R constructor have the same name. Plug-ins whose hooks are R functions, or in
 * a user's library, come last: their files are in r/. */
#ifndef NOISEAWARE_CONTRACT_REGISTRY_H
#define NOISEAWARE_CONTRACT_REGISTRY_H

#include "contract/mech.h"
#include "contract/model.h"
#include "contract/moments.h"
#include "contract/stat.h"

#define MODELS(X) \
    X(model_lm) \
    X(model_glm) \
    X(model_categories) \
    X(model_mvnormal) \
    X(model_categorical) \
    X(model_loglinear) \
    X(model_survival) \
    X(model_normal) \
    X(model_poisson) \
    X(model_exponential) \
    X(model_smooth) \
    X(model_expfam) \
    X(model_custom) \
    X(model_compiled)

#define STATS(X) \
    X(stat_crossprod) \
    X(stat_sums) \
    X(stat_by) \
    X(stat_counts) \
    X(stat_histogram) \
    X(stat_records) \
    X(stat_objective) \
    X(stat_quantiles) \
    X(stat_smooth) \
    X(stat_size) \
    X(stat_custom)

#define MECHANISMS(X) \
    X(mech_laplace) \
    X(mech_gaussian) \
    X(mech_discrete_laplace) \
    X(mech_discrete_gaussian)

#define DENSITIES(X) \
    X(mech_objective) \
    X(mech_exponential) \
    X(mech_published) \
    X(mech_custom)

#define MOMENTS(X) \
    X(moments_counts) \
    X(moments_sums) \
    X(moments_lm) \
    X(moments_glm) \
    X(moments_smooth) \
    X(moments_expfam)

#define DECLARE_MODEL(name) extern const struct model_class name;
#define DECLARE_STAT(name) extern const struct stat_class name;
#define DECLARE_MECHANISM(name) extern const struct mech_class name;
#define DECLARE_DENSITY(name) extern const struct density_class name;
#define DECLARE_MOMENTS(name) extern const struct record_moments_class name;
MODELS(DECLARE_MODEL)
STATS(DECLARE_STAT)
MECHANISMS(DECLARE_MECHANISM)
DENSITIES(DECLARE_DENSITY)
MOMENTS(DECLARE_MOMENTS)
#undef DECLARE_MODEL
#undef DECLARE_STAT
#undef DECLARE_MECHANISM
#undef DECLARE_DENSITY
#undef DECLARE_MOMENTS

#endif
