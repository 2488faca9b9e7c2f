#' Confidence set from a private release
#'
#' The set of parameter values that [p_value()] does not reject: a frequentist confidence set by simulation that accounts for noise, clamping and thresholds.
#' Its coverage does not rely on many records or little noise; [p_value()] explains what is not guaranteed.
#'
#' @inheritParams p_value
#' @param parameter Name of a parameter, as in `names(coef(fit))`; `"prob"` is enough if only one name begins with `prob[`. Or a function of all parameters
#'   (a named vector) that returns one number.
#' @param level Confidence level.
#' @param alternative `"two.sided"`; `"greater"` for a lower limit only, from one-sided tests against larger values, or `"less"` for an upper limit.
#' @param method `"test"`, or `"bootstrap"` for a parametric bootstrap: faster, but approximate.
#' @param fit `NULL`, or a fit of the release by [sample_posterior()], to show its credible interval of the same level for comparison.
#' @param x An object returned by `confidence_set()`.
#'
#' @details
#' Values are tested with the same random numbers, from the estimate outwards until two in a row are rejected; then the ends are located from the outside
#' inwards, to a fiftieth of a standard error. The reported set is the interval between the ends. If values inside it were rejected, the interval is larger than
#' the set, and the printed result says so. If the p-value exceeds 1 - `level` at the best fit, the search for a larger one is skipped. The
#' best fit minimises the squared distance of the published numbers from their means, in units of their covariance matrix, plus
#' a penalty. The penalty is the squared distance of the parameters from the middle of their priors, in units of the priors' spread.
#'
#' **The whole range.** If the release contains no information about a parameter, the set is the whole range of its values, and the printed result says so. If
#' no test rejects towards one end, that end is the limit of the range.
#'
#' **Parametric bootstrap** (Ferrando, Wang and Sheldon 2022). Releases are simulated at the best fit, and the interval is between quantiles of the estimates from
#' them. Each estimate is one scoring step from the best fit. It needs one simulation where the tests need about 40. Its coverage is only approximate: for 95%
#' intervals it was 0.91 to 1.00 in six settings with 20 to 2,000 records.
#'
#' **Credible and confidence intervals** answer different questions. They differ if the prior matters, if there are few records, or if p-values are conservative
#' (because of the maximum over nuisance parameters, or discrete noise). A confidence set has at least its nominal coverage for every true value; a credible
#' interval has it on average over the prior. `vignette("calibration")` shows an example.
#' @return An object of class `noiseaware_confidence_set`, a list. `plot()` draws the p-values. The elements are:
#'
#' | element | content |
#' | --- | --- |
#' | `lower`, `upper`, `error` | the ends and their Monte Carlo errors |
#' | `estimate` | the parameter's value at the best fit |
#' | `curve` | a data frame of tested values and their p-values |
#' | `informative` | whether the release contains information about the parameter |
#' | `gaps` | whether values between the ends were rejected |
#' | `range` | the range of the parameter's values |
#' | `credible` | the credible interval of `fit`, or `NULL` |
#' | `level` | the confidence level |
#' | `gamma`, `replicates`, `seed`, `method` | as in [p_value()] |
#' @section Errors: The errors of [p_value()].
#' @references
#' Ferrando, C., Wang, S. and Sheldon, D. (2022). Parametric bootstrap for differentially private confidence intervals. *Proceedings of the 25th International
#' Conference on Artificial Intelligence and Statistics*, PMLR 151, 1598-1618. \doi{10.48550/arXiv.2006.07749}
#' @inherit p_value references
#' @family checks and tests
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_discrete_laplace(epsilon = 0.5))
#' set <- confidence_set(rel, model_bernoulli(), "prob")
#' set
#' plot(set)
#' @concept confidence interval
#' @concept frequentist inference
#' @export
confidence_set <- function(release, model, parameter, level = 0.95, alternative = c("two.sided", "less", "greater"), ..., method = c("test", "bootstrap"),
                           replicates = 999, seed = NULL, prior_n = NULL, fit = NULL) {
  check_given()
  check_no_dots(...)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  alternative <- match_alternative(alternative)
  method <- if (identical(method, c("test", "bootstrap"))) "test" else check_choice(method, "method", c("test", "bootstrap"))
  replicates <- check_count(replicates, "replicates", lower = ceiling(1 / (1 - level)) - 1)
  seed <- check_seed(seed) %||% new_seed()
  if (!is.null(fit)) check_class(fit, "fit", "noiseaware_fit", "NULL or a fit made by sample_posterior()")
  sim <- new_simulator(release, model, prior_n, replicates, seed)
  null <- read_parameter(parameter, sim, environment())
  null$side <- side_of(alternative, 1L, environment())
  bootstrap <- method == "bootstrap"
  exact <- if (!bootstrap) exact_proportion(sim, null$names, null$side)
  search <- new_inversion(sim, null, exact, level)
  inverted <- if (bootstrap && search$informative) bootstrap_interval(sim, null, search) else invert_test(search)
  curve <- inverted$curve[order(inverted$curve$value), ]
  simulated <- is.null(exact) && inverted$informative
  words <- if (bootstrap) "parametric bootstrap, approximate" else method_words(sim, exact)
  structure(c(inverted[c("lower", "upper", "estimate", "informative", "range")], list(
    error = inverted$error %||% if (simulated) end_errors(inverted, level, replicates, if (alternative == "two.sided") 2 else 1) else c(0, 0), curve = curve,
    gaps = any(curve$p < 1 - level & curve$value > inverted$lower & curve$value < inverted$upper), level = level,
    alternative = alternative, parameter = null$text,
    credible = credible_interval(fit, parameter, level), gamma = if (simulated && !bootstrap && length(sim$spread) > 1L) region_gamma(sim) else 0,
    replicates = replicates, seed = seed, method = words, describe = describe_release_for_test(sim))), class = "noiseaware_confidence_set")
}

read_parameter <- function(parameter, sim, call) {
  if (is.function(parameter)) {
    made <- function_null(parameter, sim, call, "parameter")
    if (length(made$target) != 1L) stop_custom("parameter", "one number", made$target, call)
    made$text <- sub(" = 0$", "", made$text)
    return(made)
  }
  known <- rownames(point_values(sim, sim$middle))
  if (checkmate::test_string(parameter)) parameter <- only_of_stem(parameter, known)
  if (!checkmate::test_string(parameter) || !parameter %in% known) {
    must <- "the name of a parameter, or a function of the parameters"
    stop_classed("argument", c("{.arg parameter} must be {must}, but is {describe(parameter)}.", i = "The model has {.val {known}}."), call = call)
  }
  made <- new_null(function(values) values[parameter, , drop = FALSE], 0)
  made$text <- made$names <- parameter
  made
}

credible_interval <- function(fit, parameter, level) {
  if (is.null(fit)) return(NULL)
  draws <- parameter_matrix(fit)
  values <- if (is.function(parameter)) apply(draws, 1L, parameter) else draws[, parameter]
  drop(draws_interval(matrix(values), level))
}

# ---- inversion -----------------------------------------------------------------------------------------

# What is searched: the estimate, a standard error, the range of values, and an environment that keeps each p-value.
new_inversion <- function(sim, null, exact, level) {
  search <- new.env(parent = emptyenv())
  search$alpha <- 1 - level
  search$close <- if (is.null(exact)) 0.02 else 1e-4 # of an end, in standard errors
  search$side <- null$side
  search$value <- numeric()
  search$kept <- list()
  if (!is.null(exact)) {
    search$estimate <- exact$estimate
    search$range <- exact$limits
    search$informative <- TRUE
    search$se <- max(sd_of_proportion(sim, exact$estimate), 1e-9)
    search$test <- exact$test
    return(search)
  }
  centre <- best_fit(sim)$point
  search$centre <- centre
  search$estimate <- as.vector(null_gap(sim, null, centre))
  at <- function(value) new_null(null$f, value, null$side)
  score <- score_at(sim, at(search$estimate), centre)
  search$informative <- !is.null(score) && ncol(score$tested) == 1L
  slopes <- drop(null_slopes(sim, at(search$estimate), centre))
  along <- sim$spread^2 * slopes / sum((sim$spread * slopes)^2)
  prior_sd <- sqrt(sum((sim$spread * slopes)^2))
  search$range <- parameter_range(sim, at(search$estimate), centre, search$estimate, along, prior_sd)
  if (search$informative) search$se <- min(1 / sqrt(sum(crossprod(score$tested, score$slopes %*% along)^2)), prior_sd)
  search$test <- function(value) null_p(sim, at(value), expected_fit(search, value, centre), enough = search$alpha)
  search
}

sd_of_proportion <- function(sim, estimate) {
  n <- sim$release$n
  inside <- min(max(estimate, 1 / (n + 2)), 1 - 1 / (n + 2))
  sqrt(inside * (1 - inside) / n + max(unlist(lapply(sim$parts, added_variance))) / n^2)
}

# Where the best fit at a value is to be expected: on the line through the fits at the two nearest values.
expected_fit <- function(search, value, centre) {
  nearest <- order(abs(search$value - value))
  if (length(nearest) == 0L) return(centre)
  at <- search$value[nearest]
  fits <- lapply(search$kept[nearest], `[[`, "fitted")
  if (length(nearest) == 1L) return(fits[[1L]])
  share <- (value - at[1L]) / (at[2L] - at[1L])
  fits[[1L]] + min(max(share, -1), 1) * (fits[[2L]] - fits[[1L]])
}

# Where the parameter's values end: where they come to as `along` leads very far, if that is an end as a rule is, or more than a hundred of the prior's widths away.
# Else the last that can be.
parameter_range <- function(sim, null, centre, estimate, along, prior_sd) {
  target <- null$target
  far <- target + drop(null_gap(sim, null, centre + 1e4 * prior_sd * cbind(-along, along)))
  possible <- function(value) !is.null(move_to_null(sim, new_null(null$f, value), centre, Inf))
  vapply(c(-1, 1), function(side) {
    inside <- estimate
    beyond <- estimate + side * 100 * prior_sd
    end <- far[(side + 3) / 2]
    if (isTRUE(side * (end - beyond) >= 0)) return(side * Inf)
    known <- c(-1, 0, 1) # of a difference, a variance, a probability
    if (isTRUE(min(abs(end - known)) < 1e-6 * prior_sd)) return(known[which.min(abs(end - known))])
    if (possible(beyond)) return(side * Inf)
    for (i in seq_len(40L)) {
      middle <- (inside + beyond) / 2
      if (possible(middle)) inside <- middle else beyond <- middle
    }
    # an end is a round number where it is known
    if (abs(beyond - round(beyond)) < 1e-4 * prior_sd) round(beyond) else beyond
  }, 0)
}

# p-value at a value, kept
p_at <- function(search, value) test_at(search, value)$p
margin_at <- function(search, value) test_at(search, value)$margin

test_at <- function(search, value) {
  known <- match(value, search$value)
  if (!is.na(known)) return(search$kept[[known]])
  tested <- search$test(value) %||% list(p = 0)
  kept <- list(p = tested$p, margin = max(tested$margin %||% normal_margin(search, tested$p), -10),
               fitted = tested$fitted %||% if (length(search$kept)) search$kept[[1L]]$fitted)
  search$value <- c(search$value, value)
  search$kept <- c(search$kept, list(kept))
  kept
}

# How far a value is from being rejected, in standard errors: negative for those that are.
normal_margin <- function(search, p) {
  sides <- if (search$side == 0) 2 else 1
  stats::qnorm(min(max(p, 1e-6), 1 - 1e-6) / sides) - stats::qnorm(search$alpha / sides)
}

invert_test <- function(search) {
  out <- as.list(search)[c("estimate", "informative", "range")]
  if (!search$informative) return(c(out, list(lower = out$range[1L], upper = out$range[2L], curve = no_curve())))
  p_at(search, inside_range(search, search$estimate))
  ends <- vapply(c(-1, 1), function(side) if (side == search$side) search$range[(side + 3) / 2] else end_of_set(search, side), 0)
  c(out, list(lower = ends[1L], upper = ends[2L], curve = data.frame(value = search$value, p = vapply(search$kept, `[[`, 0, "p"))))
}

inside_range <- function(search, value) {
  width <- 1e-6 * search$se
  min(max(value, search$range[1L] + width), search$range[2L] - width)
}

# Outwards until two in a row are rejected, then back in. After a value that is accepted, a little past where the line through the margins of the last two crosses
# zero; after one that is rejected, far, since a set may go on.
end_of_set <- function(search, side) {
  limit <- search$range[if (side < 0) 1L else 2L]
  accepted <- inside_range(search, search$estimate)
  rejected <- NULL
  step <- 2.25 * search$se # most often past the end
  far <- 1.5 * search$se
  value <- accepted
  for (i in seq_len(40L)) {
    before <- value
    value <- value + side * step
    if (side * (value - limit) >= 0) value <- (before + limit) / 2
    if (i > 3L) far <- 2 * far
    step <- far
    if (p_at(search, value) >= search$alpha) {
      accepted <- value
      rejected <- NULL
      to_zero <- abs(value - before) / (margin_at(search, before) / margin_at(search, value) - 1)
      if (isTRUE(to_zero > 0)) step <- min(far, 1.5 * to_zero + 0.1 * search$se)
    } else if (is.null(rejected)) {
      rejected <- value
    } else {
      break
    }
    if (abs(value - limit) < search$close * search$se) break
  }
  if (is.null(rejected)) return(limit)
  close_in(search, accepted, rejected)
}

# Between one that is accepted and one that is rejected, until the latter is close: where a line through their margins crosses zero, a little to the side of the
# farther one, so that this one comes close; every fourth time, and at the end, the middle.
close_in <- function(search, accepted, rejected) {
  close <- search$close * search$se
  for (i in seq_len(40L)) {
    away <- rejected - accepted
    inner <- margin_at(search, accepted)
    share <- inner / (inner - margin_at(search, rejected))
    if (abs(away) < close || isTRUE((1 - share) * abs(away) < close / 2)) break
    share <- share + (if (share > 0.5) -0.45 else 0.45) * close / abs(away)
    if (!is.finite(share) || i %% 4L == 0L || abs(away) < 2 * close) share <- 0.5
    middle <- accepted + min(max(share, 0.02), 0.98) * away
    if (p_at(search, middle) >= search$alpha) accepted <- middle else rejected <- middle
  }
  rejected
}

# Monte Carlo error of an end: the p-value's error over its slope at the end. The slope is approximated by the slope of a normal test.
end_errors <- function(x, level, replicates, sides = 2) {
  alpha <- 1 - level
  z <- stats::qnorm(1 - alpha / sides)
  of_p <- sqrt(alpha * level / (replicates + 1))
  error <- of_p * abs(c(x$lower, x$upper) - x$estimate) / (sides * z * stats::dnorm(z))
  ifelse(is.finite(error) & !c(x$lower, x$upper) %in% x$range, error, 0)
}

# ---- parametric bootstrap ------------------------------------------------------------------------------

# Quantiles of the parameter over estimates from releases that are simulated at the best fit, each of them a scoring step from there without the prior.
bootstrap_interval <- function(sim, null, search) {
  at <- point_slopes(sim, search$centre)
  r <- (simulate_values(sim, search$centre) - rep(at$mean, each = sim$replicates)) %*% t(at$w)
  values <- drop(null_gap(sim, null, search$centre + .Call(ffi_pseudo_inverse, at$slopes) %*% t(r)))
  tail <- search$alpha / if (search$side == 0) 2 else 1
  ends <- drop(draws_quantiles(matrix(values), c(tail, 1 - tail)))
  if (search$side != 0) ends[if (search$side > 0) 2L else 1L] <- search$range[if (search$side > 0) 2L else 1L]
  error <- sqrt(tail * (1 - tail) / sim$replicates) / stats::dnorm(stats::qnorm(tail)) * robust_sd(values)
  list(estimate = search$estimate, informative = TRUE, range = search$range, lower = ends[1L], upper = ends[2L], curve = no_curve(),
       error = ifelse(ends %in% search$range, 0, error))
}

no_curve <- function() data.frame(value = numeric(), p = numeric())

# ---- what users see ------------------------------------------------------------------------------------

#' @export
print.noiseaware_confidence_set <- function(x, ...) {
  percent <- paste0(format_number(100 * x$level), "%")
  ends <- function(v) paste(format_number(v, 4), collapse = " to ")
  cat("<confidence set> ", x$describe, "\n", sep = "")
  cat("  parameter  ", x$parameter, switch(x$alternative, greater = ", lower limit", less = ", upper limit"), "\n", sep = "")
  cat("  ", formatC(percent, width = -9), "  ", ends(c(x$lower, x$upper)),
      if (any(x$error > 0)) paste0(" (Monte Carlo error ", paste(format_number(x$error, 1), collapse = ", "), ")"), "\n", sep = "")
  if (!x$informative) {
    cat("  nothing    ", ruled_out_nothing, "\n", sep = "")
  } else if (any((c(x$lower, x$upper) == x$range)[c(x$alternative != "less", x$alternative != "greater")])) {
    cat("  open       an end that no test rejects is the end of the parameter's range\n")
  }
  if (x$gaps) cat("  gaps       some values inside were rejected: the interval is larger than the set\n")
  if (!is.null(x$credible)) cat("  credible   ", ends(x$credible), ", ", percent, " of the posterior\n", sep = "")
  cat("  method     ", x$method, "\n", sep = "")
  if (any(x$error > 0)) cat("  replicates ", simulation_words(x), "\n", sep = "")
  invisible(x)
}

#' @rdname confidence_set
#' @exportS3Method generics::tidy
tidy.noiseaware_confidence_set <- function(x, ...) {
  data.frame(term = x$parameter, estimate = x$estimate, conf.low = x$lower, conf.high = x$upper, conf.level = x$level, mc.error = max(x$error))
}

# p-values between those that were computed: linear in the scale of a normal test's statistic
between_tests <- function(x) {
  if (nrow(x$curve) < 2L) return(x$curve)
  if (x$alternative != "two.sided") {
    value <- seq(min(x$curve$value), max(x$curve$value), length.out = 301L)
    return(data.frame(value = value, p = stats::pnorm(stats::approx(x$curve$value, stats::qnorm(pmin(pmax(x$curve$p, 1e-8), 1 - 1e-8)), value, ties = mean)$y)))
  }
  side <- ifelse(x$curve$value < x$estimate, 1, -1)
  value <- seq(min(x$curve$value), max(x$curve$value), length.out = 301L)
  z <- stats::approx(x$curve$value, side * stats::qnorm(pmax(x$curve$p, 1e-8) / 2), value, ties = mean)$y
  data.frame(value = value, p = 2 * stats::pnorm(-abs(z)))
}

#' @rdname confidence_set
#' @export
plot.noiseaware_confidence_set <- function(x, ...) {
  check_no_dots(...)
  if (nrow(x$curve) == 0L) {
    stop_classed("argument", "{.arg x} must be a set from tests, for a parameter on which the release has information: there are no p-values to draw.")
  }
  intervals <- data.frame(interval = "confidence", lower = x$lower, upper = x$upper, at = -0.04)
  if (!is.null(x$credible)) intervals <- rbind(intervals, data.frame(interval = "credible", lower = x$credible[1L], upper = x$credible[2L], at = -0.08))
  ggplot2::ggplot(x$curve, ggplot2::aes(.data$value, .data$p)) +
    ggplot2::geom_hline(yintercept = 1 - x$level, linetype = 2, colour = "grey50") +
    ggplot2::geom_line(data = between_tests(x)) +
    ggplot2::geom_point(size = 1) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, y = .data$at, yend = .data$at, colour = .data$interval), intervals, linewidth = 2) +
    ggplot2::labs(x = x$parameter, y = "p-value", colour = NULL,
                  subtitle = paste0("values above the dashed line are in the ", format_number(100 * x$level), "% confidence set")) +
    theme_noiseaware()
}
