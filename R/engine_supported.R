# What fits together. Nothing is listed here. A model and a statistic state which kinds of variables they use, a mechanism which statistics it accepts, and a
# method (next to its code) which statistics it can use under a model. All are asked by class, without an object, so a new plug-in is found through its
# methods for these generics.

# "number", "code" (of a factor's level), or both
variable_kinds <- function(x) UseMethod("variable_kinds")

# `statistic`: of that class; `kinds`: what it shares with the model
mechanism_takes <- function(mechanism, statistic, kinds) UseMethod("mechanism_takes")

#' @export
mechanism_takes.default <- function(mechanism, statistic, kinds) !inherits(statistic, c("stat_objective", "stat_quantiles"))

# names of the plug-ins of a kind: "model", "stat", "mech"
plugin_names <- function(kind) {
  generic <- if (kind == "mech") "mechanism_scale" else "variable_kinds"
  prefix <- paste0(generic, ".", kind, "_")
  sub(prefix, "", ls(topenv(), pattern = paste0("^", prefix)), fixed = TRUE)
}

# represents any plug-in of its class
stand_in <- function(kind, name) structure(list(), class = paste0(kind, "_", name))

#' Supported combinations of models, statistics, mechanisms and methods
#'
#' Models, statistics and mechanisms that use the same kind of variable can be combined. Any other combination fails before any work starts, with an error that
#' says what is missing. The table does not contain [stat_size()], which is released with other statistics, or [stat_by()], see [groups].
#'
#' @param model,statistic `NULL` for all, or names such as `"lm"` and `"crossprod"`
#'   (of [model_lm()] and [stat_crossprod()]), or a model and a statistic.
#'
#' @return A data frame of class `supported` with a row for each supported combination and the columns `model`, `statistic`, `mechanism`, `method` and `exact`
#'   (`NA`: exact if no record lies outside the bounds). It prints as a matrix of models by statistics, in which letters denote the methods.
#' @section Errors: `noiseaware_error_argument`.
#' @details `"naive"` needs the totals that the model's update uses: the total of `x`; for [model_normal()] with an unknown sd, the totals of `x` and `I(x^2)`;
#'   for naive Bayes models, every margin class:feature.
#'
#'   Discrete noise needs a statistic with whole numbers: counts, or the codes of a factor. Randomised response needs one category per record. Numbers that were
#'   hidden, rounded or truncated ([published()]), and noise with a density of your own ([mech_tabulated()]), work with `"augment"`, and with
#'   `"collapse"` for counts and totals of Poisson and exponential records. Noise on records ([mech_record_noise()]) needs `"collapse"`. It works with the totals of noisy
#'   records, and with the records themselves, [stat_records()] without
#'   bounds. `"collapse"` imputes their confidential values under [model_lm()] if the model has products, or factors with randomised response. Objective
#'   perturbation ([mech_objective()]) needs [stat_objective()]. A density that is an R function ([mech_custom()]) works only with `"augment"` and `"naive"`.
#' @family methods
#' @examples
#' supported()
#' supported(model = "lm")
#' subset(supported(statistic = "counts"), method == "collapse")
#' @export
supported <- function(model = NULL, statistic = NULL) {
  models <- chosen_names(model, "model", "model")
  statistics <- chosen_names(statistic, "stat", "statistic")
  grid <- expand.grid(mechanism = plugin_names("mech"), statistic = statistics, model = models, stringsAsFactors = FALSE)[3:1]
  methods <- Map(pair_methods, grid$model, grid$statistic, grid$mechanism)
  out <- grid[rep(seq_len(nrow(grid)), lengths(methods)), ]
  out$method <- as.character(unlist(lapply(methods, names)))
  out$exact <- as.logical(unlist(methods))
  rownames(out) <- NULL
  structure(out, class = c("supported", "data.frame"))
}

# the names asked for: all, some, or the name of an object
chosen_names <- function(x, kind, name, call = caller_env()) {
  all <- plugin_names(kind)
  if (is.null(x)) return(all)
  if (inherits(x, "stat_linear")) x <- x$statistic
  if (is.object(x)) x <- intersect(sub(paste0("^", kind, "_"), "", class(x)), all)
  if (is.character(x) && length(x) > 0L && all(x %in% all)) return(unique(x))
  stop_argument(name, paste("NULL, one of", paste(all, collapse = ", "), "or an object of these"), describe(x), call = call)
}

# by name, are they exact?
pair_methods <- function(model, statistic, mechanism) {
  model <- stand_in("model", model)
  statistic <- stand_in("stat", if (statistic == "histogram" && describes_factors(model)) "counts" else statistic)
  mechanism <- stand_in("mech", mechanism)
  kinds <- intersect(variable_kinds(model), variable_kinds(statistic))
  if (length(kinds) == 0L || !mechanism_takes(mechanism, statistic, kinds)) return(list())
  Filter(Negate(is.null), lapply(stats::setNames(nm = sampling_methods), function(m) engine_pairs(as_engine(m), model, statistic, mechanism)))
}

method_letters <- c(augment = "A", collapse = "C", clt = "L", naive = "N")

#' @export
print.supported <- function(x, ...) {
  if (!all(c("model", "statistic", "method") %in% names(x)) || nrow(x) == 0L) return(print(as.data.frame(x), ...))
  models <- sort(unique(x$model))
  statistics <- sort(unique(x$statistic))
  cell <- function(m, s) {
    there <- names(method_letters) %in% x$method[x$model == m & x$statistic == s]
    paste(ifelse(there, method_letters, if (any(there)) "." else ""), collapse = "")
  }
  shown <- outer(models, statistics, Vectorize(cell))
  dimnames(shown) <- list(models, statistics)
  print(noquote(shown))
  cat("\nA augment (exact); C collapse (exact for counts; otherwise if no record lies outside the bounds);",
      "L clt (approximate); N naive (ignores the noise)", sep = "\n")
  invisible(x)
}

#' @export
as.data.frame.supported <- function(x, ...) {
  class(x) <- "data.frame"
  x
}
