# Parametric survival of the records of stat_survival(): src/model/survival.c.

survival_distributions <- c("weibull", "exponential", "piecewise", "discrete")

#' Survival times with proportional hazards
#'
#' Weibull, exponential, piecewise exponential and discrete survival times with proportional hazards between groups, fitted to the counts of [stat_survival()].
#'
#' @param formula `NULL` for all groups of the release; or a formula with some of them, such as `~ sex + ward` or `~ sex * ward`, or `~ 1`. It may have a
#'   left-hand side `Surv(time, event)`. Groups that it leaves out have no effect on survival, but their shares are still modelled.
#' @param distribution `"weibull"`; `"exponential"`; `"piecewise"`, a constant hazard in each interval between two breaks of the release; or `"discrete"`, a
#'   probability of the event in each interval, given entry into it.
#' @param prior [prior_normal()] for the intercept and the coefficients, one for all or by name. By default the coefficients, which are log hazard ratios, have
#'   mean 0 and sd 1.5. The intercept has mean -log(last break), that is one event on average up to the last break, and sd 2.
#' @param shape [prior_gamma()] for the shape of a Weibull distribution; not used for the others.
#' @param baseline [prior_gamma_process()] or [prior_beta_process()] for the hazards of a piecewise or discrete distribution. The default is a gamma process for
#'   the former and a beta process for the latter.
#' @param baseline_by `~ 1` or a formula of groups, such as `~ sex`: strata for a piecewise or discrete distribution. Each combination of these groups has its
#'   own hazards. By default `formula` then contains all other groups.
#' @param censoring `NULL` or [prior_beta()] for the probability of being censored in an interval, for a person who would otherwise stay under observation. By
#'   default its mean is 1 / (1 + the number of intervals).
#' @param censoring_by `~ 1` or a formula of groups, such as `~ sex`: each combination of these groups has its own censoring probabilities.
#' @param shares [prior_dirichlet()] for the shares of the combinations of all groups, with at most one weight.
#'
#' @details
#' Let \eqn{L} be the last break, \eqn{\alpha} the intercept and \eqn{\beta'x} the linear predictor of a group, in R's treatment contrasts. The cumulative
#' hazard is
#'
#' | `distribution` | cumulative hazard |
#' | --- | --- |
#' | `"exponential"` | \eqn{\exp(\alpha + \beta'x)\, t} |
#' | `"weibull"` | \eqn{\exp(\alpha + \beta'x)\, L\, (t / L)^k}, where \eqn{k} is the `shape` |
#' | `"piecewise"` | \eqn{\exp(\beta'x)} times the sum of `hazard` \eqn{h_j} times the time spent in interval \eqn{j} |
#' | `"discrete"` | \eqn{\exp(\beta'x)} times the sum of \eqn{-\log(1 - h_j)} over the intervals \eqn{j} that have passed, where \eqn{h_j} is the `hazard` |
#'
#' so \eqn{\exp(\alpha)} is the mean hazard per unit of time up to the last break for \eqn{x = 0}, and \eqn{\exp(\beta)} is a hazard ratio. The coefficients of
#' the exponential distribution are the same as in rstanarm (Brilleman et al. 2020), brms and flexsurv. For the Weibull distribution, the intercept in these
#' packages (the log of `scale` in flexsurv's `"weibullPH"`) is \eqn{\alpha + (1 - k) \log L}, and the coefficients of [survival::survreg()] are \eqn{-\beta / k}.
#'
#' **Cox regression.** `"piecewise"` is the closest: hazard ratios of the groups, with a hazard of any form as the baseline, constant in each interval.
#'
#' **Hazards by interval.** The baseline's cumulative hazard is a gamma process (Kalbfleisch 1978) or a beta process (Hjort 1990), see [prior_gamma_process()],
#' with a mean that grows by \eqn{\exp(\alpha)} per unit of time. Here the intercept is the location of the hazards' prior and does not multiply them. If the
#' process has a declared `rate`, there is no intercept.
#'
#' **Discrete hazards.** A person censored in an interval counts as at risk during the whole interval, as in [survival::survfit()] with times rounded up to the
#' ends of their intervals. Suppose that \eqn{d_j} of the \eqn{r_j} people who enter an interval have the event. Without groups in `formula`, with a declared
#' rate and without noise, the posterior is \eqn{h_j \sim \mathrm{Beta}(c h_{0j} + d_j, c (1 - h_{0j}) + r_j - d_j)}. The coefficients belong to a proportional
#' hazards model for grouped times, with the complementary log-log link.
#'
#' **Censoring** is independent of the event given the group. Both are assumed to have constant, or at least proportional, intensities within an interval. Let
#' \eqn{d} and \eqn{g} be the increments of the two cumulative hazards, and \eqn{s = d + g}. Of those who enter the interval, \eqn{(d / s) (1 - \exp(-s))} have
#' the event, \eqn{(g / s) (1 - \exp(-s))} are censored, and \eqn{\exp(-s)} stay. The parameters `censored[...)` are \eqn{1 - \exp(-g)}. With a discrete
#' distribution the event comes first, and \eqn{1 - \exp(-g)} of those who are left are censored. If the first break is not 0, all times are assumed to be known
#' to exceed it.
#'
#' The probabilities of the release's table of exits are smooth functions of the parameters. Method `"collapse"` is exact, with `n` known or unknown, whatever
#' processing followed the noise, and its cost does not depend on the number of records. Numeric covariates would need their totals in each interval, which
#' [stat_survival()] does not contain: convert them to factors with declared levels.
#'
#' @return A model: an object of class `model_survival`. Its parameters are the coefficients, `shape` or `hazard[...)` for each interval, `censored[...)`, and
#'   `prob[...]`, the shares of the groups. A `hazard` is for the reference group, per unit of time or, for a discrete distribution, the probability of the
#'   event.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_prior`, `noiseaware_error_argument`; when the model is fitted to the release,
#'   `noiseaware_error_variables` and `noiseaware_error_size` (more than 100,000 cells or 5,000 parameters).
#' @references
#' Hjort, N. L. (1990). Nonparametric Bayes estimators based on beta processes in models for life history data. *The Annals of Statistics*
#' 18, 1259-1294. \doi{10.1214/aos/1176347749}
#'
#' Kalbfleisch, J. D. (1978). Non-parametric Bayesian analysis of survival time data. *Journal of the Royal Statistical Society* B 40,
#' 214-221. \doi{10.1111/j.2517-6161.1978.tb01666.x}
#'
#' Brilleman, S. L., Elci, E. M., Novik, J. B. and Wolfe, R. (2020). Bayesian survival analysis using the rstanarm R package.
#' \doi{10.48550/arXiv.2002.09633}
#' @seealso [stat_survival()] for the release and for nonparametric curves; [private_test()] for the log-rank test; [survival_measures()]
#'   and [predict()][predict.noiseaware_fit] for curves, medians, restricted means and hazard ratios.
#' @family models
#' @examples
#' years <- 365.25 * c(0, 0.25, 0.5, 0.75, 1, 1.5, 2)
#' sexes <- list(sex = c("1", "2"))
#' exits <- survival_exits(survival::lung, Surv(time, status == 2) ~ sex, years, sexes)
#' set.seed(1)
#' st <- stat_survival(~ sex, years, sexes)
#' rel <- simulate_release(exits, st, mech_discrete_laplace(epsilon = 1))
#' fit <- sample_posterior(rel, model_survival(~ sex), chains = 2, iter = 600, seed = 1)
#' posterior::summarise_draws(survival_measures(fit, "hazard_ratio"))
#' predict(fit, data.frame(sex = c("1", "2")), type = "median", interval = "credible")
#' plot(fit, "survival")
#' @concept life table
#' @concept hazard ratio
#' @concept Cox regression
#' @export
model_survival <- function(formula = NULL, distribution = c("weibull", "exponential", "piecewise", "discrete"), prior = prior_normal(), shape = prior_gamma(2, 2),
                           baseline = NULL, baseline_by = ~ 1, censoring = NULL, censoring_by = ~ 1, shares = prior_dirichlet()) {
  check_given()
  distribution <- if (missing(distribution)) "weibull" else check_choice(distribution, "distribution", survival_distributions)
  check_class(prior, "prior", "prior_normal", "prior_normal()", "prior")
  check_class(shape, "shape", "prior_gamma", "prior_gamma()", "prior")
  if (is.null(shape$rate)) stop_argument("shape", "prior_gamma() with a rate", format(shape), "prior")
  if (!missing(shape) && distribution != "weibull") stop_argument("shape", "left out unless the distribution is \"weibull\"", format(shape), "prior")
  given <- !is.null(baseline)
  baseline <- baseline %||% if (distribution == "discrete") prior_beta_process() else prior_gamma_process()
  check_class(baseline, "baseline", c("prior_gamma_process", "prior_beta_process"), "NULL, prior_gamma_process() or prior_beta_process()", "prior")
  if (!is.null(censoring)) check_class(censoring, "censoring", "prior_beta", "NULL or prior_beta()", "prior")
  check_class(shares, "shares", "prior_dirichlet", "prior_dirichlet()", "prior")
  if (length(shares$alpha) > 1L) stop_argument("shares", "prior_dirichlet() with one weight", format(shares), "prior")
  if (given && !has_process(distribution)) {
    stop_argument("baseline", "NULL unless the distribution is \"piecewise\" or \"discrete\"", format(baseline), "prior")
  }
  formula <- if (!is.null(formula)) survival_terms(formula, "formula")
  strata <- all.vars(survival_terms(baseline_by, "baseline_by"))
  if (length(strata) && !has_process(distribution)) {
    stop_argument("baseline_by", "~ 1 unless the distribution is \"piecewise\" or \"discrete\"", formula_text(baseline_by), "formula")
  }
  by <- survival_terms(censoring_by, "censoring_by")
  new_model("survival", formula = formula, distribution = distribution, prior = prior, shape = shape, baseline = baseline, baseline_by = strata,
            censoring = censoring, censoring_by = all.vars(by), shares = shares, class = "model_survival")
}

# whose baseline has a hazard for each interval
has_process <- function(distribution) distribution %in% c("piecewise", "discrete")

#' @rdname priors
#' @param concentration `NULL` or positive: see below. One number or, for `prior_beta_process()`, one for each interval.
#' @export
prior_gamma_process <- function(concentration = NULL, rate = NULL) {
  new_prior(concentration = if (!is.null(concentration)) check_positive(concentration, "concentration", "prior"),
            rate = check_prior_numbers(rate, "rate", TRUE, null = TRUE), class = "prior_gamma_process")
}

#' @rdname priors
#' @export
prior_beta_process <- function(concentration = NULL, rate = NULL) {
  new_prior(concentration = check_prior_numbers(concentration, "concentration", TRUE, null = TRUE), rate = check_prior_numbers(rate, "rate", TRUE, null = TRUE),
            class = "prior_beta_process")
}

# One-sided, of names joined by + : and *, without an environment that could hold anything
survival_terms <- function(formula, name, call = caller_env()) {
  must <- "a formula of groups joined by +, : or *, such as ~ sex + ward, or ~ 1"
  if (!inherits(formula, "formula")) stop_argument(name, must, describe(formula), "formula", call)
  if (length(formula) == 3L && !is_surv(formula[[2L]])) {
    stop_argument(name, paste0(must, "; on its left nothing, or Surv(time, event)"), formula_text(formula), "formula", call)
  }
  side <- formula[[length(formula)]]
  if (!identical(side, 1)) {
    joined <- function(side) if (is_operation(side, "(", 1L) || any(vapply(c(":", "*", "+"), is_operation, TRUE, side = side, arguments = 2L))) as.list(side)[-1L]
    leaves <- formula_leaves(side, joined, call)
    if (!all(vapply(leaves, is.name, TRUE))) {
      stop_classed("formula", c("{.arg {name}} must be {must}, but is {.code {shorten_text(formula_text(formula))}}.",
                                i = "Numbers and functions of them need totals that {.fn stat_survival} does not release: declare levels instead."), call = call)
    }
  }
  stats::as.formula(call("~", side), env = baseenv())
}

#' @export
format.model_survival <- function(x, ...) {
  c(paste0("<model> survival, ", survival_title(x$distribution)),
    paste0("  hazard ratios  ", if (is.null(x$formula)) "of all groups of the release" else formula_text(x$formula)),
    paste0("  coefficients   ", format(x$prior)),
    if (x$distribution == "weibull") paste0("  shape          ", format(x$shape)),
    if (has_process(x$distribution)) paste0("  hazards        ", process_text(x$baseline), by_text(x$baseline_by)),
    paste0("  censoring      ", if (is.null(x$censoring)) "beta, by the number of intervals" else format(x$censoring), by_text(x$censoring_by)))
}

by_text <- function(groups) if (length(groups)) paste0(", by ", paste(groups, collapse = ", ")) else ""

# what the bounds have no part in
process_text <- function(process) {
  name <- if (inherits(process, "prior_beta_process")) "beta process" else "gamma process"
  weight <- if (is.null(process$concentration)) "" else paste0(", concentration ", describe_value(process$concentration))
  paste0(name, weight, if (is.null(process$rate)) ", mean by the intercept" else paste0(", rate ", describe_value(process$rate)))
}

survival_title <- function(distribution) {
  c(weibull = "Weibull", exponential = "exponential", piecewise = "piecewise exponential", discrete = "discrete")[[distribution]]
}

#' @export
variable_kinds.model_survival <- function(x) "code"

#' @export
bind_columns.model_survival <- function(model, columns, levels, formula, call) {
  breaks <- if ("exit" %in% columns$variable) breaks_of_exits(as.character(levels[["exit"]]))
  if (is.null(breaks)) {
    stop_classed("variables", c("The release must be of survival: it needs a factor {.var exit} as made by {.fn survival_exits} and {.fn stat_survival}.",
                                x = "It has {.var {unique(columns$variable)}}."), call = call)
  }
  columns <- columns[order(columns$variable == "exit"), ]
  levels <- coded_levels(columns, levels, call)
  groups <- levels[names(levels) != "exit"]
  check_survival_groups(all.vars(model$formula), groups, "formula", call)
  check_survival_groups(model$censoring_by, groups, "censoring_by", call)
  check_survival_groups(model$baseline_by, groups, "baseline_by", call)
  check_table_size(list(names(levels)), lengths(levels), call)
  codes <- all_codes(lengths(levels))
  part <- list(children = seq_along(levels), parents = integer(), host = 0, codes = codes)
  bound <- bind_parts(model, columns, levels, list(part), list(matrix(1, 1L, nrow(codes))), list(NULL), parameters = NULL,
                      class = c("bound_survival", "bound_cells", "bound_table"))
  terms <- model$formula %||% groups_formula(setdiff(names(groups), model$baseline_by))
  grid <- survival_grid(groups)
  design <- survival_design(terms, grid, has_process(model$distribution) && !is.null(model$baseline$rate))
  bound$breaks <- breaks
  bound$terms <- terms
  bound$coefficients <- colnames(design)
  bound$parameters <- survival_parameters(model, colnames(design), breaks, groups)
  if (length(bound$parameters) > most_coefficients) {
    stop_classed("size", "The model must have at most {format_size(most_coefficients)} parameters, but has {format_size(length(bound$parameters))}.", call = call)
  }
  own <- list(code = as.double(t(codes)), baseline = match(model$distribution, c("exponential", "weibull", "piecewise", "discrete")) - 1, breaks = breaks,
              design = as.double(t(design)), censoring_row = strata_rows(model$censoring_by, grid) - 1)
  bound$spec$name <- "survival"
  bound$spec$fields[c(names(own), survival_prior_names)] <- c(own, survival_priors(model, colnames(design), breaks, nrow(design), call))
  if (has_process(model$distribution)) {
    process <- process_fields(model$baseline, breaks, strata_rows(model$baseline_by, grid) - 1, call)
    bound$spec$fields[names(process)] <- process
  }
  bound
}

check_survival_groups <- function(variables, groups, name, call) {
  strange <- setdiff(variables, names(groups))
  if (length(strange) == 0L) return(invisible())
  stop_classed("variables", c("{.arg {name}} must name groups of the release; {.var {strange}} {?is/are} not among them.",
                              i = if (length(groups)) "The release has {.var {names(groups)}}." else "The release has no groups."), call = call)
}

groups_formula <- function(groups) stats::as.formula(paste("~", paste(c("1", vapply(groups, format_name, "")), collapse = " + ")), env = baseenv())

# the combinations of the groups' levels, the last the fastest
survival_grid <- function(groups) {
  if (length(groups) == 0L) return(data.frame(row.names = 1L))
  codes <- all_codes(lengths(groups))
  as.data.frame(lapply(stats::setNames(nm = names(groups)), function(g) factor(groups[[g]][codes[, g] + 1L], groups[[g]])), optional = TRUE)
}

# a row for each of `grid`, whose factors have all levels
survival_design <- function(terms, grid, without_intercept = FALSE) {
  design <- stats::model.matrix(terms, grid, contrasts.arg = lapply(grid[intersect(all.vars(terms), names(grid))], function(f) stats::contr.treatment(levels(f))))
  design <- matrix(as.double(design), nrow(design), dimnames = list(NULL, colnames(design)))
  if (without_intercept) design[, colnames(design) != "(Intercept)", drop = FALSE] else design
}

# which combination of the levels of the groups `by` each row of the grid has, the last the fastest
strata_rows <- function(by, grid) {
  row <- Reduce(function(at, g) at * nlevels(grid[[g]]) + as.integer(grid[[g]]) - 1L, by, rep(0, nrow(grid)))
  row + 1
}

survival_parameters <- function(model, coefficients, breaks, groups) {
  intervals <- interval_labels(breaks)
  by_strata <- function(name, by) paste0(name, intervals, rep(strata_labels(by, groups), each = length(intervals)))
  c(coefficients, if (model$distribution == "weibull") "shape", if (has_process(model$distribution)) by_strata("hazard", model$baseline_by),
    by_strata("censored", model$censoring_by), if (length(groups)) paste0("prob[", group_labels(groups), "]"))
}

strata_labels <- function(by, groups) if (length(by)) paste0(":", margin_cells(by, groups)) else ""

survival_prior_names <- c("prior_mean", "prior_sd", "prior_shape", "prior_censoring", "prior_share")

survival_priors <- function(model, coefficients, breaks, groups, call) {
  intervals <- length(breaks) - 1L
  last <- breaks[length(breaks)]
  first <- coefficients == "(Intercept)"
  mean <- expand_named(model$prior$mean, ifelse(first, -log(last), 0), "mean", coefficients, call)
  beta <- model$censoring %||% prior_beta(1, intervals)
  sd <- expand_named(model$prior$sd, ifelse(first, 2, 1.5), "sd", coefficients, call)
  list(prior_mean = as.double(mean + ifelse(first, log(last), 0)), prior_sd = as.double(sd),
       prior_shape = c(model$shape$shape, model$shape$rate), prior_censoring = c(beta$a, beta$b), prior_share = expand_weights(model$shares, groups))
}

process_fields <- function(process, breaks, row, call) {
  intervals <- length(breaks) - 1L
  beta <- inherits(process, "prior_beta_process")
  concentration <- process$concentration %||% (2 * intervals)
  weight <- if (beta) expand_prior(concentration, intervals, "concentration", call) else concentration * diff(breaks) / diff(range(breaks))
  c(list(process_beta = as.double(beta), process_weight = weight, process_row = row),
    if (!is.null(process$rate)) list(process_rate = expand_prior(process$rate, intervals, "rate", call)))
}

#' @export
coefficients_of.bound_survival <- function(bound) bound$coefficients

#' @export
describe_model.bound_survival <- function(bound) {
  groups <- lengths(bound$levels[names(bound$levels) != "exit"])
  sprintf("%s survival, %d intervals, %s", survival_title(bound$model$distribution), length(bound$breaks) - 1L,
          if (length(groups)) sprintf("%d groups: hazard ratios %s", prod(groups), formula_text(bound$terms)) else "no groups")
}

#' @export
describe_priors.bound_survival <- function(bound) {
  model <- bound$model
  fields <- bound$spec$fields
  last <- bound$breaks[length(bound$breaks)]
  mean <- fields$prior_mean - ifelse(bound$coefficients == "(Intercept)", log(last), 0)
  coefficients <- vapply(seq_along(mean), function(j) say("normal", mean[j], fields$prior_sd[j]), "")
  intervals <- length(bound$breaks) - 1L
  base <- if (model$distribution == "weibull") say("gamma", fields$prior_shape[1L], fields$prior_shape[2L]) else
    if (has_process(model$distribution)) rep(describe_process(fields, diff(bound$breaks), model$distribution == "discrete"), max(fields$process_row) + 1)
  rows <- max(fields$censoring_row) + 1
  shares <- length(bound$parameters) - length(mean) - length(base) - rows * intervals
  stats::setNames(c(coefficients, base, rep(say("beta", fields$prior_censoring[1L], fields$prior_censoring[2L]), rows * intervals),
                    rep(say_dirichlet(expand_weights(model$shares, shares)), shares)), bound$parameters)
}

# of a hazard in each interval
describe_process <- function(fields, width, discrete) {
  weight <- fields$process_weight
  rate <- if (is.null(fields$process_rate)) rep("exp((Intercept))", length(width)) else format_number(fields$process_rate)
  if (fields$process_beta == 1) {
    chance <- sprintf("beta with mean 1 - exp(-%s %s) and weight %s", rate, format_number(width), format_number(weight))
    return(if (discrete) chance else sprintf("-log(1 - p) / %s, p %s", format_number(width), chance))
  }
  relative <- sprintf("%s %s", rate, vapply(weight, function(a) say("gamma", a, a), ""))
  if (discrete) sprintf("1 - exp(-%s h), h %s", format_number(width), relative) else relative
}

#' @export
collapse_statistics.model_survival <- function(model) "stat_counts"
