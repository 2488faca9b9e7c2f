# Engines draw from a posterior. An engine is an object whose classes go from the kind that runs to the method that a user asks for: engine_clt_totals,
# engine_clt, engine. Other code uses only the generics below and knows no names. To add an engine, write R/engine_<name>.R with its methods for these
# generics, and add its name to `sampling_methods`.

sampling_methods <- c("augment", "collapse", "clt", "naive")

as_engine <- function(method, kinds = NULL) {
  structure(list(method = method), class = c(sprintf("engine_%s_%s", method, kinds), paste0("engine_", method), "engine"))
}

# of a fit, whose problem says which kind ran
engine_of <- function(fit) as_engine(fit$method, c(fit$problem$sampler, fit$problem$family))

# ---- before a run ------------------------------------------------------------------------

# Can it sample this posterior? Where the release does not say n, with n unknown. `bound` has been checked by itself.
engine_serves <- function(engine, release, bound) UseMethod("engine_serves")

#' @export
engine_serves.engine <- function(engine, release, bound) FALSE

# Are the draws from the posterior? TRUE, NA (if no record lies outside the bounds) or FALSE.
engine_exact <- function(engine, bound) UseMethod("engine_exact")

#' @export
engine_exact.engine <- function(engine, bound) FALSE

# The same for plug-ins of which only the classes are known (R/engine_supported.R); NULL: they are not supported.
engine_pairs <- function(engine, model, statistic, mechanism) UseMethod("engine_pairs")

# The entries of `control`: a list as R/engine_control.R describes it.
engine_control <- function(engine) UseMethod("engine_control")

#' @export
engine_control.engine <- function(engine) list()

# Why no other method can fit this release, in words; NULL: others may.
engine_alone <- function(engine, release, bound) UseMethod("engine_alone")

#' @export
engine_alone.engine <- function(engine, release, bound) NULL

# What its cost depends on: the row of `cost_constants`, `engine`, and the `size` of what it moves. `sized`: the release with about its n.
engine_size <- function(engine, release, sized, bound, control, prior_n) UseMethod("engine_size")

# Seconds for an `iteration` and for `thousand` effective draws. The default (R/engine_cost.R) is what the constants predict.
engine_cost <- function(engine, release, bound, control, prior_n, call) UseMethod("engine_cost")

# Does it impute the records? Its cost then grows with n, its trajectories are proposals alongside other moves, and it reflects records.
engine_imputes <- function(engine) UseMethod("engine_imputes")

#' @export
engine_imputes.engine <- function(engine) FALSE

# Does it account for what bounds do to records?
engine_clamps <- function(engine, bound) UseMethod("engine_clamps")

#' @export
engine_clamps.engine <- function(engine, bound) FALSE

# Does a short run say more of it, since it is right only where few records are clamped?
engine_doubtful <- function(engine, bound) UseMethod("engine_doubtful")

#' @export
engine_doubtful.engine <- function(engine, bound) TRUE

# What a user who asks for it hears first.
engine_announce <- function(engine, release, bound, control, prior_n) UseMethod("engine_announce")

#' @export
engine_announce.engine <- function(engine, release, bound, control, prior_n) invisible()

# ---- a run -------------------------------------------------------------------------------

# What C needs to know, or a refusal: see new_problem().
engine_problem <- function(engine, release, bound, control, words, chains, prior_n, call) UseMethod("engine_problem")

# A fit. The default (R/engine_chains.R) runs chains of the problem.
engine_sample <- function(engine, release, bound, run, init = NULL, control = list(), prior_n = NULL, call = caller_env()) UseMethod("engine_sample")

sample_method <- function(method, release, bound, run, init = NULL, control = list(), prior_n = NULL, call = caller_env()) {
  engine_sample(as_engine(method), release, bound, run, init, control, prior_n, call)
}

# The method that a user asks for to have it
engine_method <- function(engine) UseMethod("engine_method")

#' @export
engine_method.engine <- function(engine) engine$method

# The least number of records that it takes, where that is unknown.
engine_fewest <- function(engine, bound) UseMethod("engine_fewest")

#' @export
engine_fewest.engine <- function(engine, bound) 0

# ---- after a run -------------------------------------------------------------------------

# What a print calls it
engine_title <- function(engine) UseMethod("engine_title")

# Lines of a print, about this fit
engine_lines <- function(engine, fit) UseMethod("engine_lines")

#' @export
engine_lines.engine <- function(engine, fit) NULL

# acceptance(): a data frame with the row of a chain, from what C `told` of it; and lines in words of all `rows`
engine_diagnostics <- function(engine, fit, told) UseMethod("engine_diagnostics")

engine_moves <- function(engine, fit, rows) UseMethod("engine_moves")

diagnostics_of <- function(fit) {
  engine <- engine_of(fit)
  do.call(rbind, lapply(seq_along(fit$chains), function(k) cbind(chain = k, engine_diagnostics(engine, fit, as.list(fit$chains[[k]]$diagnostics)))))
}

# Are the draws right, as far as bounds go? The default: if likely no record is outside (R/engine_shared.R).
engine_valid <- function(engine, fit) UseMethod("engine_valid")

# Sentences: how this run could have been made better; another sampler of the same method; and what another fit by this method would be like
engine_advice <- function(engine, fit) UseMethod("engine_advice")

#' @export
engine_advice.engine <- function(engine, fit) NULL

engine_samplers <- function(engine, fit) UseMethod("engine_samplers")

#' @export
engine_samplers.engine <- function(engine, fit) NULL

engine_offer <- function(engine, bound) UseMethod("engine_offer")

# Of several sites, or of groups?
is_pooled <- function(fit) inherits(engine_of(fit), "engine_pool")

# Of one release with several groups: what stands in messages for a site
is_of_groups <- function(fit) !is.null(fit$problem$groups)

# the error of what takes one set of parameters alone; `instead`: what does for a site or a group
refuse_several <- function(fit, name = "fit", instead = NULL, class = "argument", call = caller_env()) {
  if (!inherits(fit, "noiseaware_pool")) return(invisible())
  several <- if (is_of_groups(fit)) "groups" else "sites"
  stop_classed(class, c("{.arg {name}} must be a fit of one population, but is a fit of several {several}.",
                        i = instead, if (several == "sites") c(i = "A site can be fitted alone.")), call = call)
}

# the same for sites with their own parameters
refuse_own_parameters <- function(fit, name, call, instead = "{.fn predict} takes a {.arg site}.") {
  if (inherits(fit, "noiseaware_pool") && fit$pool != "complete") refuse_several(fit, name, instead, "pool", call)
}
