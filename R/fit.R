# A fit:
#   draws     posterior::draws_array of the parameters
#   release   or NULL (non-private); bound, run; method
#   exact     NA: if no record lies outside the bounds
#   chains    per chain the raw draws, the imputed statistic, log noise density,
#             acceptance and the state to continue from; for "collapse" also the
#             share of records outside the bounds; NULL for baselines
#   info      what a method has to report
#   troubles  what was warned of when it was sampled: see fit_diagnostics.R
#   why       lines: why "auto" chose the method; NULL where it did not
#   decided   names of parameters that the prior decides, see fit_prior_power.R
#   weighted  what update(prior = ) found of the importance weights by which the draws were resampled
#   whole     the release, where it has more numbers than the model uses: `release` holds those
#   contextual  of groups: slopes if intercepts depend on the groups' means: see fit_contextual.R
#   clamping  what the answer would be if bounds were natural limits: see fit_clamping.R
#   shapes    what a regression that is not linear would say if its covariates were skewed: see fit_shapes_compare.R
#   asked     the other arguments of sample_posterior() as they were given, for update()

#' Work with a fit
#'
#' Estimates, intervals and draws of a fit, by R's usual functions and the package posterior.
#'
#' @param object,x A fit from [sample_posterior()].
#' @param parm Names or numbers of variables; by default those of `variables`.
#' @param level,prob Probability inside the interval, under either name. `summary()` shows its ends, such as
#'   `q2.5` and `q97.5`; with summary functions of your own, only if it is given.
#' @param variables `"coefficients"`, if the model has any, or `"all"`.
#' @param measure,margin For table models: the measure that `coef()` reports instead of the parameters, see [table_measures()].
#' @param complete,use.fallback,row.names,optional,stringsAsFactors As in the generics, which other packages call with them.
#' @param ... Summary functions for `summary()`, as in [posterior::summarise_draws()]. Must be empty for `coef()`, `vcov()`, `confint()`, `nobs()`,
#'   `as.data.frame()` and `print()`.
#'
#' @details
#' **Warnings in the summary.** The attribute `warnings` of `summary()` lists the fit's warnings and what the inference about n rests on; it is printed with the
#' table.
#'
#' **Ends of intervals** of `confint()` are quantiles of the draws, of type 6 in [stats::quantile()]. With S independent draws these have the nominal coverage on
#' average; R's default, type 7, covers 94.4 per cent instead of 95 with 300 draws.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `summary()` | a [posterior::summarise_draws()] table, one row per parameter |
#' | `coef()` | posterior means of the coefficients (of all parameters, if the model is not a regression, or with `variables = "all"`) |
#' | `vcov()` | their posterior covariance |
#' | `confint()` | equal-tailed posterior intervals, one row per coefficient, or per parameter where `coef()` has all |
#' | `nobs()` | the public number of records |
#' | [posterior::as_draws()] and its variants | the draws |
#' @section Warnings: A doubtful fit triggers a warning when it is sampled or extended, and once more per session in the first of `summary()`, `coef()`,
#'   `vcov()`, `confint()`, [predict()][predict.noiseaware_fit] and [tidy()][interop] that is called on it:
#'   * `noiseaware_warning_convergence`: R-hat above 1.01, fewer than 400 (bulk)
#'     effective draws (Vehtari et al. 2021), or either unknown. The warning suggests a remedy, and so does the printed fit, which also counts effective draws
#'     in the tails.
#'   * `noiseaware_warning_divergences`: after warmup, trajectories of Hamiltonian Monte Carlo diverged (their energy error exceeded 1,000), more than one per
#'     133 effective draws. The number of divergences per effective draw approximates the probability of the region that trajectories cannot reach; fewer than
#'     one per 133 hardly move the ends of 95% intervals. Divergences in method `"augment"` are rejected proposals along an approximation. They are harmless
#'     because there are other moves, and they do not lead to a warning.
#'   * `noiseaware_warning_depth`: a trajectory reached the maximum length (1,024 steps). [acceptance()] counts both kinds of trajectories, chain by chain.
#'   * `noiseaware_message_prior`, a message: the prior strongly influences some parameters, or a combination of several that no single parameter shows. The
#'     check raises the prior's density to the powers 0.8 and 1.25 (power-scaling, Kallioinen et al. 2024). It reports parameters with a mean, or a squared
#'     distance from the middle, that moves by more than a tenth of its standard deviation. The message names up to three, coefficients first. The printed fit
#'     also has parameters that are rarely of interest, such as means of covariates, which alone give no message. Typical causes are much
#'     noise, or fewer published numbers than unknown parameters. Another cause is a mean many standard deviations from the middle of wide bounds, on which
#'     `prior_nig()` and `prior_niw()` put little mass: the variance is then overestimated. If totals differ in their noise relative to their range, the
#'     printed fit names the noisiest. Fits of several sites (for the parameters that they share) and of groups give this message as well.
#'   * `noiseaware_message_size`, a message: the number of records is not known, and no published number is a size ([stat_size()], a margin of counts). Totals
#'     inform n only through their ratios, so the priors of means and variances matter. The message gives the interval of n and the parameters that n is
#'     correlated with.
#'   * `noiseaware_warning_bounds`: the method ignores clamping, and the probability that some record lies outside the bounds is above 0.01. This concerns
#'     `"collapse"`, and `"clt"` for the regressions that [method_clt] names. For other regressions by `"clt"`: more than 30 per cent of the values are outside.
#'   * `noiseaware_warning_clamping`: the answer depends on what lies outside the bounds. If more than 0.001 of the values are expected there, and the fit
#'     accounts for their clamping, the release is also fitted as if the bounds were natural limits. This second fit has its own seeds. It uses the fastest
#'     method available and takes at most as long as the fit itself, or two seconds if that is longer. In a pool of imputed records it has half the default
#'     number of chains, and at most as many iterations as the fit. The warning gives both answers for the parameters that differ by more than half a posterior
#'     standard deviation; [declare_outside()] explains which is right. The printed fit repeats this, or states why there was no second fit, or by how much the
#'     lengths of the intervals differ.
#'   * `noiseaware_warning_contextual`: in a regression with a bar, or of partially pooled sites, intercepts are assumed not to depend on the groups' means of
#'     the covariates. If every group has totals of all covariates, and the same statistic, the release is also fitted with intercepts that may depend on these
#'     means (Mundlak 1978), with half the default number of chains. The warning gives both answers for slopes that differ by more than a posterior standard
#'     deviation, and by more than 2.5 times the standard deviation that the difference has under the assumption (Hausman 1978). The printed fit also shows
#'     slopes that exceed only the first limit: there the release cannot tell which answer is right.
#'   * `noiseaware_warning_hidden`: in partially pooled regressions whose covariates are not pooled, each group's covariates have a prior of their own. This prior
#'     partly determines how much a covariate varies within groups if the noise is large. The warning is given if, in the median group, the noise's standard
#'     deviation on the sum of squares exceeds 0.7 of the sum of squares about the mean. Slopes may then be too near 0, with intervals that are too narrow.
#'     [partial_pooling()] with `covariates = "pooled"` or `"shared"` prevents that.
#'   * `noiseaware_warning_covariates`: in a logistic or other regression that is not linear, coefficients depend on the shape of the covariates' distribution.
#'     Where a release consists of cross-products with natural limits ([declare_outside()]) and covariates are modelled as normal, the coefficients are also
#'     computed approximately for skewed covariates with the same means and covariances. These are beta-distributed within the limits, or log-normal from the
#'     nearer limit. The warning gives both answers for the coefficients that differ by more than a posterior standard deviation, and the printed fit repeats
#'     them. [refit_covariates()] fits other distributions exactly.
#'   * `noiseaware_warning_contradiction`: the release contradicts the model. Two posterior predictive checks look at all published totals. One computes the
#'     noise that they would need given the draws of the confidential totals, singly and jointly. The other, which is skipped for pools, computes their
#'     distances from the totals of records simulated under draws of the parameters. The warning names the numbers that are farthest off, what the model
#'     lacks (a dependence between two variables, a distribution), and a remedy. Another cause is stuck chains, which R-hat does not detect. Among about
#'     1,500 simulated releases with the right model, two gave this warning; their chains were short or had not converged.
#'   * `noiseaware_warning_mirror`: the release would be the same for records mirrored at a point, as when only squares are released. Method `"collapse"` or
#'     `"clt"` reached one side only, whereas `"augment"` reaches both.
#'   * `noiseaware_warning_diagnostic`: one of these checks failed and was skipped; the draws are complete.
#'   * `noiseaware_warning_few_records`: the number of records is not known, and method `"collapse"` or `"clt"` excludes small values of n that are plausible.
#'     The method assumes more normal records than variables, at least one exponential record, or for `"clt"` at least two records. More than 0.005 of the
#'     draws are at the smallest n that is allowed.
#'   * `noiseaware_warning_impossible`: no n records could produce the published totals.
#'   * `noiseaware_warning_limit`: up to a small amount of noise, a total equals n times a bound, as if every record were clamped.
#' @references
#' Hausman, J. A. (1978). Specification tests in econometrics. *Econometrica* 46, 1251-1271. \doi{10.2307/1913827}
#'
#' Kallioinen, N., Paananen, T., Buerkner, P.-C. and Vehtari, A. (2024). Detecting and diagnosing prior and likelihood sensitivity with power-scaling.
#' *Statistics and Computing* 34, 57. \doi{10.1007/s11222-023-10366-5}
#'
#' Mundlak, Y. (1978). On the pooling of time series and cross section data. *Econometrica* 46, 69-85. \doi{10.2307/1913646}
#'
#' Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Buerkner, P.-C. (2021).
#' Rank-normalization, folding, and localization: an improved R-hat for assessing
#' convergence of MCMC. *Bayesian Analysis* 16. \doi{10.1214/20-BA1221}
#' @family summaries of fits
#' @name fit_methods
#' @aliases noiseaware_fit
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' coef(fit)
#' confint(fit, "age")
#' posterior::as_draws_df(fit)
NULL

#' @rdname fit_methods
#' @export
summary.noiseaware_fit <- function(object, ..., level = NULL, prob = level) {
  measures <- list(...)
  # functions have the names that the caller has for them
  written <- vapply(as.list(substitute(list(...)))[-1L], function(x) if (is.name(x)) as.character(x) else "", "")
  unnamed <- !nzchar(rlang::names2(measures)) & vapply(measures, is.function, TRUE)
  if (any(unnamed)) names(measures) <- ifelse(unnamed, written, rlang::names2(measures))
  chosen <- intersect(names(measures), c("variable", "variables", "pars", "parm"))
  if (length(chosen)) {
    stop_classed("argument", c("Further arguments must be summaries of draws, but {.arg {chosen[1L]}} chooses variables.",
                               i = "The summary has a row for each variable: take those you want, as in {.code subset(summary(fit), variable == \"sigma\")}."))
  }
  strange <- Filter(function(one) !is.function(one) && !is.character(one) && !rlang::is_formula(one), measures[!startsWith(rlang::names2(measures), ".")])
  if (length(strange)) {
    stop_classed("argument", c("Further arguments must be summaries of draws: functions, formulas, or names of functions, as in {.fn posterior::summarise_draws}.",
                               x = "{.arg {names(strange)[1L] %||% 'One'}} is {describe(strange[[1L]])}.",
                               i = "{.arg level} is the probability inside the interval."))
  }
  if (is.null(prob) && !length(measures)) prob <- 0.95
  if (!is.null(prob)) {
    prob <- check_number(prob, if (is.null(level)) "prob" else "level", "a number between 0 and 1", 0, 1, strict = TRUE)
    tails <- c((1 - prob) / 2, (1 + prob) / 2)
    ends <- function(x) stats::setNames(draws_quantiles(matrix(x), tails), paste0("q", format_number(100 * tails, 4)))
    if (!length(measures)) measures <- c(as.list(posterior::default_summary_measures())[1:4], list(ends), as.list(posterior::default_convergence_measures()))
    else measures <- c(measures, list(ends))
  }
  remind_troubles(object)
  table <- do.call(posterior::summarise_draws, c(list(object$draws), measures))
  attr(table, "warnings") <- c(trouble_lines(object), no_size_line(object))
  class(table) <- c("summary_noiseaware_fit", class(table))
  table
}

#' @export
print.summary_noiseaware_fit <- function(x, ...) {
  NextMethod()
  for (line in attr(x, "warnings")) cat("! ", line, "\n", sep = "")
  invisible(x)
}

#' @rdname fit_methods
#' @export
coef.noiseaware_fit <- function(object, measure = NULL, margin = NULL, variables = "coefficients", ...) {
  check_no_dots(...)
  variables <- check_choice(variables, "variables", c("coefficients", "all"))
  remind_troubles(object)
  if (!is.null(measure) || !is.null(margin)) {
    draws <- plain_matrix(table_measures(object, margin, measure %||% "probability"))
    return(if (identical(measure, "odds_ratio")) apply(draws, 2L, stats::median) else colMeans(draws)) # the mean of a ratio may be infinite
  }
  colMeans(if (variables == "all") parameter_matrix(object) else coefficient_draws(object))
}

#' @rdname fit_methods
#' @export
vcov.noiseaware_fit <- function(object, complete = TRUE, ...) { # of other packages
  check_no_dots(...)
  remind_troubles(object)
  stats::cov(coefficient_draws(object))
}

#' @rdname fit_methods
#' @export
confint.noiseaware_fit <- function(object, parm = NULL, level = 0.95, variables = "coefficients", ...) {
  check_no_dots(...)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  variables <- check_choice(variables, "variables", c("coefficients", "all"))
  draws <- parameter_matrix(object)
  if (is.null(parm) && variables == "coefficients") parm <- coefficient_terms(object)
  if (is.numeric(parm) && all(parm %in% seq_len(ncol(draws)))) parm <- colnames(draws)[parm]
  parm <- check_names_of(parm, "parm", "variables of the fit", colnames(draws))
  remind_troubles(object)
  tails <- c((1 - level) / 2, 1 - (1 - level) / 2)
  out <- t(draws_interval(draws[, parm, drop = FALSE], level))
  colnames(out) <- paste(format(100 * tails, trim = TRUE, digits = 3), "%")
  out
}

#' @rdname fit_methods
#' @importFrom stats nobs
#' @export
nobs.noiseaware_fit <- function(object, use.fallback = FALSE, ...) { # of other packages
  check_no_dots(...)
  if (is.null(object$release)) object$info$n else object$release$n %||% NA_real_
}

# of a regression its coefficients, else all of the model's parameters
coefficient_draws <- function(fit, call = caller_env()) {
  if (inherits(fit, "noiseaware_pool") && fit$pool != "complete") {
    draws <- parameter_matrix(fit)
    return(draws[, coefficient_terms(fit) %||% colnames(draws), drop = FALSE])
  }
  draws <- parameter_matrix(fit)[, reported_parameters(fit$bound), drop = FALSE]
  if (!has_coefficients(fit$bound)) return(draws)
  names <- coefficients_of(fit$bound)
  if (!all(names %in% colnames(draws))) {
    stop_classed("argument", "The coefficients of this model are fixed, so there are no draws of them.", call = call)
  }
  draws[, names, drop = FALSE]
}

#' @rdname fit_methods
#' @export
print.noiseaware_fit <- function(x, ...) {
  check_no_dots(...)
  cat("<posterior> ", describe_model(x$bound), "\n\n", sep = "")
  table <- printed_summary(x$draws)
  of_cells <- isTRUE(x$bound$dependent) & is_of_cells(table$variable)
  print_summary(with_medians(table[!of_cells, ], x$draws))
  if (any(of_cells)) cat(sprintf("(%d of the cross-table of factors: summary())
", sum(of_cells)))
  cat("", fit_lines(x), sep = "\n")
  release_marks(x$release)
  mixing_marks(x, table)
  for (trouble in x$troubles) if (trouble$kind == "contradiction") cat("! ", trouble$text[[1L]], "\n", sep = "")
  invisible(x)
}

# the table of a print and of a report: interval ends are those of confint()
printed_summary <- function(draws) {
  found <- draws_diagnostics(draws, tail = TRUE)
  names <- c("mean", "sd", "q2.5", "q97.5", "rhat", "ess_bulk", "ess_tail")
  data.frame(variable = colnames(found), stats::setNames(as.data.frame(t(found), row.names = NA), names), check.names = FALSE)
}

# how the draws were made, and what makes them doubtful; what sweeps and moves did is acceptance()'s
fit_lines <- function(fit) {
  size <- dim(fit$draws)
  chains <- paste(size[2L], if (size[2L] == 1L) "chain of" else "chains of", size[1L])
  engine <- engine_of(fit)
  c(paste0("  method     ", engine_title(engine), if (isTRUE(fit$exact) && !is.null(fit$release)) " (exact)"),
    if (length(fit$why)) paste0(c(if (is_read_off(fit)) "             " else "  chosen     ", rep("             ", length(fit$why) - 1L)), fit$why),
    paste0("  records    ", if (is.null(fit$problem$prior_n)) format(nobs(fit), big.mark = ",", decimal.mark = ".", scientific = FALSE) else
      paste0("not known (n); prior ", format(fit$problem$prior_n), fewest_words(fit))),
    if (!is.null(fit$release)) persons_line(fit$release),
    if (lacks_size(fit)) paste0("             ", no_size_line(fit)),
    paste0(rep("             ", length(size_gap_line(fit))), size_gap_line(fit)),
    if (!is.null(fit$whole)) sprintf("  uses       %d of the %d numbers of the release", length(fit$release$value), length(fit$whole$value)),
    if (!is.null(fit$release)) paste0("  mechanism  ", paste(vapply(release_parts(fit$whole %||% fit$release), function(p) format(p$mechanism), ""), collapse = "; ")),
    paste0("  draws      ", chains, " (warmup ", fit$run$warmup, ", thin ", fit$run$thin, ")"),
    if (!is.null(fit$weighted)) paste0("  weights    resampled for another prior: ", weights_line(fit$weighted)),
    decided_lines(fit),
    tail_line(fit),
    if (only_quantiles(fit)) "  shape      only quantiles were released: everything else, such as the mean, relies on the model's distribution",
    spread_line(fit),
    clamping_lines(fit),
    shape_lines(fit),
    independence_line(fit$bound),
    engine_lines(engine, fit),
    if (isTRUE(fit$info$projected)) "  totals     impossible as published; moved to the nearest valid ones")
}

tail_line <- function(fit) {
  heavy <- heavy_variables(printed_summary(fit$draws))
  if (length(heavy)) paste0("  tails      heavy: means and standard deviations of ", shorten_list(heavy, 5L), " are unreliable; * marks medians and mads instead")
}

#' @export
describe_model.bound_lm <- function(bound) {
  formula <- called_formula(bound$formula)
  if (endsWith(formula, " ~ 1")) paste("normal model of", sub(" ~ 1$", "", formula)) else paste("linear regression", formula)
}

#' @export
describe_model.bound_student <- function(bound) paste0("linear regression ", called_formula(bound$formula), ", Student-t errors")

# as many rows as can be read
print_summary <- function(table, most = 40L) {
  more <- nrow(table) - most
  table <- utils::head(table, most)
  table[2:5] <- without_traces(table[2:5], table$variable)
  shown <- data.frame(variable = table$variable,
                      lapply(table[c("mean", "sd", "q2.5", "q97.5")], function(v) formatC(v, digits = 4, format = "g", flag = "#")),
                      rhat = formatC(table$rhat, digits = 3, format = "f"),
                      lapply(table[c("ess_bulk", "ess_tail")], function(v) formatC(v, digits = 0, format = "f")),
                      check.names = FALSE)
  print(shown, row.names = FALSE, right = TRUE)
  if (more > 0L) cat("... ", more, " more variables, which summary() has\n", sep = "")
}

#' Acceptance rates and other sampler statistics
#'
#' How often each kind of proposal was accepted, and what warmup chose, for each chain: where to look if chains mix slowly.
#'
#' @param fit A fit of method `"augment"`, `"collapse"` or `"clt"`.
#' @details
#' **Columns for `"augment"`.**
#'
#' | column | meaning |
#' | --- | --- |
#' | `mean`, `lowest` | share of accepted record updates; the same for the record accepted least often |
#' | `least` | smallest acceptance probability that occurred |
#' | `bound` | exp(-epsilon), which `least` cannot fall below under pure epsilon-differential privacy (Ju et al. 2022, Proposition 3.1) |
#' | `passes`, `moves` | non-centred moves in an iteration, and their acceptance rate |
#' | `walk`, `leap` | acceptance of random-walk steps of the parameters, and of independence proposals |
#' | `group_walk`, `group_leap` | the same for one group of parameters |
#' | `moved`, `steps` | acceptance of moves of all records at once, and leapfrog steps per move |
#' | `responded` | acceptance of the moves of a [model_glm()]'s coefficients with the responses; `NaN` if warmup found that they are not worth their time |
#' | `divergent`, `deepest` | number of trajectories of these two kinds of moves that diverged; number of moves of all records that reached the maximum length |
#' | `regrouped` | acceptance of moves of several records to another level of a factor, or another interval of a covariate of [smooths][model_lm] |
#' | `newton` | acceptance of Newton proposals of a [model_glm()]'s coefficients given the records |
#' | `kept`, `share` | share of a record's innovation that some sweeps keep, and the share of such sweeps |
#' | `parts` | number of iterations over which a sweep over the records is spread |
#' | `rounds` | rounds of sweeps and moves per iteration, chosen during warmup |
#'
#' **Columns for `"collapse"`**, and for a linear regression with normal covariates by `"clt"`.
#'
#' | column | meaning |
#' | --- | --- |
#' | `mean` | share of accepted moves of the totals |
#' | `steps`, `divergent`, `deepest` | for normal totals: of trajectories, as above |
#' | `within` | for normal totals, the share that stayed within the bounds of the prior; for counts, acceptance of moves within a class |
#' | `between` | for counts, acceptance of moves between classes |
#' | `fresh` | for one total, acceptance of proposals from the prior |
#' | `leaps` | with public covariates, acceptance of independent proposals about the mode; `NA` if none are made |
#'
#' **Columns for `"clt"`.**
#'
#' | column | meaning |
#' | --- | --- |
#' | `mean` | share of accepted moves of the parameters |
#' | `passes` | their number in an iteration |
#' | `divergent`, `deepest` | of trajectories, as above |
#' @return A data frame with one row per chain and the columns listed in Details. When printed, it starts with a summary in words and omits columns of moves that
#'   were never made. Rates refer to the iterations after warmup; they are `NaN` or `NA` if there were no such moves.
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' acceptance(sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1))
#' @export
acceptance <- function(fit) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  if (is.null(fit$chains)) stop_classed("argument", "Method {.val {fit$method}} draws independently: there are no acceptance rates to report.")
  rows <- diagnostics_of(fit)
  structure(rows, lines = engine_moves(engine_of(fit), fit, rows), class = c("noiseaware_acceptance", "data.frame"))
}

#' @export
print.noiseaware_acceptance <- function(x, digits = 3, ...) {
  if (!is.null(attr(x, "lines"))) cat(attr(x, "lines"), "", sep = "\n")
  attr(x, "lines") <- NULL
  shown <- as.data.frame(unclass(x))
  print(shown[vapply(shown, function(column) !all(is.na(column)), TRUE)], digits = digits, ..., row.names = FALSE)
  invisible(x)
}

#' Draws of the confidential statistic
#'
#' The exact totals, before noise, are unknown to the analyst. Method `"augment"` imputes them along with the records, `"collapse"` without the records, and
#' `"clt"` from their normal approximation.
#'
#' @param fit A fit of method `"augment"`, `"collapse"` or `"clt"`, or of several sites.
#' @param margin `NULL`, or margins of the table, as in `~ a:b + c`, whether they were released or not. Only for a fit of [model_table()] by method `"collapse"`
#'   with at most 5,000 cells.
#' @param site For fits of several sites ([pooling]): names of the sites to return (default: all).
#' @return A [posterior::draws_array] of the statistic's components, in the units of the release; with several statistics, only the totals. For several
#'   sites, names are `component[site]`; for [groups], they are the names in the release. With `margin`, the counts of its cells, named as in [stat_counts()].
#' @section Errors: `noiseaware_error_argument`, also for a release without totals, such as one of single records,
#'   coefficients ([stat_objective()]) or quantiles ([stat_quantiles()]): the draws of the n records are not kept.
#'   `noiseaware_error_formula`, `noiseaware_error_variables`: from `margin`.
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' posterior::summarise_draws(denoise(sample_posterior(rel, model_lm(), iter = 1000, seed = 1)))
#' @concept post-processing
#' @concept confidential totals
#' @export
denoise <- function(fit, margin = NULL, site = NULL) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  if (!is.null(margin)) return(denoise_margin(fit, margin))
  if (inherits(fit, "noiseaware_pool")) return(denoise_sites(fit, site))
  if (!is.null(site)) stop_classed("argument", "{.arg site} is for a fit of several sites, but this is a fit of one release.")
  if (is.null(fit$chains)) stop_classed("argument", "Method {.val {fit$method}} imputes no statistic.")
  if (length(fit$problem$summed) == 0L) {
    stop_classed("argument", c("The release has no totals of the records, so there is no confidential statistic to draw.",
                               i = "The draws of the records themselves are not kept."))
  }
  chains_array(lapply(fit$chains, function(c) {
    names <- names(fit$release$value)
    colnames(c$statistic) <- names[fit$problem$summed]
    # method "clt" has n apart from the totals
    left <- setdiff(size_components(fit$release), colnames(c$statistic))
    if (is.null(c$records) || length(left) == 0L) return(c$statistic)
    n <- matrix(c$records, length(c$records), length(left), dimnames = list(NULL, left))
    cbind(c$statistic, n)[, intersect(names, c(colnames(c$statistic), left)), drop = FALSE]
  }))
}

denoise_sites <- function(fit, site, call = caller_env()) {
  sites <- check_site(fit, site, call)
  if (fit$pool == "none") return(bind_sites_draws(lapply(fit$fits[sites], denoise)))
  chains_array(lapply(fit$chains, function(c) {
    do.call(cbind, lapply(sites, function(name) {
      values <- site_totals(fit$problem, name, c$statistic)
      names <- names(fit$release[[name]]$value)
      names <- names[fit$problem$sites[[name]]$index %||% seq_along(names)]
      colnames(values) <- if (is_of_groups(fit)) names else site_variables(names, name)
      values
    }))
  }))
}

# Nothing but ranks of the records, and their number
only_quantiles <- function(fit) {
  if (is.null(fit$release) || inherits(fit, "noiseaware_pool")) return(FALSE)
  kinds <- vapply(release_parts(fit$release), function(part) if (part$statistic$name == "size") "size" else part$statistic$kind, "")
  any(kinds == "ranks") && all(kinds %in% c("ranks", "size"))
}

# An unknown standard deviation, without any number that depends on how much records vary
lacks_squares <- function(fit) {
  # of sites that are partially pooled, the normal model is a regression
  normal <- inherits(fit$bound, "bound_normal") || inherits(fit$bound, "bound_lm") && nrow(covariate_columns(fit$bound)) == 0L
  if (!normal || !any(c("sd", "sigma") %in% fit$bound$parameters) || is.null(fit$release)) return(FALSE)
  releases <- if (inherits(fit, "noiseaware_pool")) fit$release else list(fit$release)
  all(vapply(unlist(lapply(releases, release_parts), recursive = FALSE), function(part) {
    whole <- if (inherits(part$statistic, "stat_linear")) part$statistic$statistic else part$statistic
    whole$name == "size" || whole$name == "sums" && all(rowSums(whole$powers) == 1)
  }, TRUE))
}

spread_line <- function(fit) {
  if (lacks_squares(fit)) "  spread     only means or sums were released: the spread of the records is known only from the prior of sd and the bounds"
}
