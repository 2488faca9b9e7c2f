# Dependent covariates, a part of model_lm(), model_glm() and similar models: the general location model, src/model/covariates_joint.c. `factors` of a model
# is "dependent", "independent", or NULL: dependent if that is possible, see settle_factors(); otherwise independent, and the print says so.

# The effects' precision in units of the residual variance of the numbers: a standard deviation of 5. The logarithm of the concentration is normal about
# the logarithm of the number of cells, with this standard deviation.
effect_kappa <- 0.04
concentration_sd <- 1.5

most_joint_cells <- 10000

check_factors <- function(factors, call = caller_env()) {
  if (!is.null(factors)) check_choice(factors, "factors", c("dependent", "independent"), "prior", call)
  factors
}

takes_factors <- function(model) inherits(model, c("model_lm", "model_glm"))

has_effects <- function(design, model) {
  numbers <- setdiff(design$name[is.na(design$level)], names(model$covariates$lone))
  length(numbers) > 0L && !inherits(model$covariates$mean, "fixed")
}

# Why factors are independent although the model does not say so: NULL, or a text.
why_independent <- function(design, model, levels) {
  cells <- prod(lengths(levels[joint_factors(design, levels)]))
  if (cells > most_joint_cells) {
    return(sprintf("their cross-table has %s cells, but the limit is %s", format_size(cells), format_size(most_joint_cells)))
  }
  if (!is.null(model$covariates$mean$within) || !is.null(model$covariates$cov$within)) return("the covariates' prior has `within`")
}

# Have the covariates a cross-table, or numbers that depend on a factor?
is_dependent <- function(design, model, levels) {
  if (!takes_factors(model) || !identical(model$factors, "dependent") || inherits(model$covariates, "covariate_moments")) return(FALSE)
  factors <- joint_factors(design, levels)
  (length(factors) > 1L || (length(factors) == 1L && has_effects(design, model))) && is.null(why_independent(design, model, levels))
}

check_dependent <- function(design, model, levels, call) {
  if (!identical(model$factors, "dependent") || length(joint_factors(design, levels)) == 0L) return(invisible())
  why <- why_independent(design, model, levels)
  if (is.null(why)) return(invisible())
  stop_classed("prior", c("{.arg factors} cannot be {.val dependent} here: {why}.",
                          i = "With {.code factors = \"independent\"}, factors are independent of each other and of the numbers."), call = call)
}

joint_fields <- function(levels) {
  list(effect_kappa = effect_kappa, cells_log_mean = log(prod(lengths(levels))), cells_log_sd = concentration_sd)
}

# After mean[] and cov[]: in the order of joint_report().
joint_parameters <- function(design, model, levels) {
  factors <- levels[joint_factors(design, levels)]
  numbers <- if (has_effects(design, model)) setdiff(design$name[is.na(design$level)], names(model$covariates$lone))
  of_levels <- function(name) unlist(lapply(names(factors), function(v) paste0(name, "[", v, "=", factors[[v]], "]")))
  added <- unlist(lapply(names(factors), function(v) paste0(v, "=", factors[[v]][-1L])))
  effects <- if (length(numbers)) paste0("effect[", rep(numbers, length(added)), ",", rep(added, each = length(numbers)), "]")
  if (length(factors) == 1L) return(c(effects, of_levels("prob")))
  c(effects, of_levels("prob"), paste0("prob[", joint_cells(factors), "]"), of_levels("base"), "concentration")
}

# Parameters that other ones make, or that only say how they arise: of the prior, or to look up in the draws.
is_of_cells <- function(names) grepl("^base\\[", names) | grepl("^prob\\[[^]]*=[^]:]*:", names) | names == "concentration"

# Values, some of them others: of shares of levels and of cells what was not given follows from what was.
replace_parameters <- function(values, given, bound) {
  values[names(given)] <- given
  if (!isTRUE(bound$dependent)) return(values)
  of_cells <- is_of_cells(names(values))
  of_levels <- startsWith(names(values), "prob[") & !of_cells
  several <- any(of_cells)
  follow <- if (!several) FALSE else if (any(names(values)[of_levels] %in% names(given))) of_cells else of_levels & any(names(values)[of_cells] %in% names(given))
  values[!follow | names(values) %in% names(given)]
}

# ---- methods ----------------------------------------------------------------------------

# Regressions that do not say whether factors are dependent: they are, where the covariates have a cross-table or numbers that can depend on a factor, and
# where the method, the number of records and the noise allow it. n: NULL where it is unknown. Several statistics: those of one release.
can_settle <- function(model, statistic, n, method, noisy_records) {
  if (!takes_factors(model) || !is.null(model$factors)) return(FALSE)
  sized <- !is.null(n) && !inherits(n, "prior_n")
  sized && !noisy_records && (!is.character(method) || method %in% c("auto", "augment", "collapse", "nonprivate"))
}

settle_factors <- function(model, statistic, n, method = "auto", noisy_records = FALSE, call = caller_env()) {
  if (!can_settle(model, statistic, n, method, noisy_records)) return(model)
  bound <- bind_model(model, statistic, call)
  covariates <- bound$base[-1L, ]
  if (any(is.infinite(bound$columns$upper))) return(model)
  dependent <- model
  dependent$factors <- "dependent"
  if (is_dependent(covariates, dependent, bound$levels)) dependent else model
}

settle_released <- function(model, release, method, call = caller_env()) {
  settle_factors(complete_model(model, release, call), release$statistic, release$n, method, has_record_noise(release), call)
}

# The model that was settled, as it was said; NULL where that is the same.
bind_independent <- function(settled, model, release, call = caller_env()) if (!identical(settled, model)) bind_model(model, release$statistic, call)

# As if the number of records were known.
bind_settled <- function(model, statistic, method = "auto", noisy_records = FALSE, call = caller_env()) {
  bind_model(settle_factors(model, statistic, 1, method, noisy_records, call), statistic, call)
}

# Others have independent factors alone.
takes_dependent <- function(method, release) method == "auto" || (method %in% c("augment", "collapse") && !has_record_noise(release))

# The model for a method that has independent factors alone: an error where it has dependent ones.
assume_independent <- function(model, call = caller_env(), what = "This method") {
  if (!takes_factors(model)) return(model)
  if (identical(model$factors, "dependent")) {
    stop_classed("method", c("{what} needs factors that are independent of each other and of the numbers, but {.arg factors} is {.val dependent}.",
                             i = "Methods {.val augment} and {.val collapse} support dependent ones, for a single release without noise on every record."), call = call)
  }
  model
}

check_independent <- function(bound, call = caller_env(), what = "This method") {
  if (isTRUE(bound$dependent)) assume_independent(bound$model, call, what)
}

# A line for the print where nobody said whether factors are independent, and they are.
independence_line <- function(bound) {
  model <- bound$model
  if (!takes_factors(model) || !is.null(model$factors) || is.null(bound$base)) return(NULL)
  model$factors <- "dependent"
  if (is_dependent(bound$base[-1L, ], model, bound$levels)) {
    "  covariates factors are assumed to be independent of each other and of the numbers; see the model's `factors`"
  }
}

# By parameter, as describe_covariates() has them, in the parameters' order; NA where others make them.
describe_joint <- function(bound) {
  fields <- bound$spec$fields
  names <- joint_parameters(bound$base[-1L, ], bound$model, bound$levels)
  several <- length(joint_factors(bound$base[-1L, ], bound$levels)) > 1L
  of_levels <- rep(say("dirichlet", unique(fields$alpha)), length(names))
  text <- ifelse(startsWith(names, "effect["), paste0("normal(0, ", say_sd(sub("^effect\\[(.*),[^,]*=.*", "\\1", names), fields$effect_kappa), ")"),
          ifelse(startsWith(names, "base[") | (startsWith(names, "prob[") & !several), of_levels,
          ifelse(names == "concentration", say("lognormal", fields$cells_log_mean, fields$cells_log_sd),
          ifelse(is_of_cells(names), "dirichlet(concentration base)", NA_character_))))
  stats::setNames(text, names)
}
