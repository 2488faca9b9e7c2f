#' Synthetic data sets, and rules for combining their analyses
#'
#' Data frames that can be shared and analysed with any software: draws from the posterior predictive distribution, so that the uncertainty due to noise and to
#' the number of records appears as variation between them. They are computed from the release only, so its guarantee still holds, and no further budget is
#' spent.
#'
#' @param fit A fit from [sample_posterior()].
#' @param m Number of data sets.
#' @param of `"population"`: new records, drawn from the model with the parameters of a posterior draw; for any model that can simulate records. `"records"`:
#'   imputations of the confidential records; for [model_table()] by method `"collapse"`, where the draws include the table.
#' @param n Number of records in each set from a population; `NULL` means the release's number.
#' @param seed Fixes the draws; see [sample_posterior()].
#'
#' @details
#' **Combining rules.** Let q_i be the estimate from data set i, u_i its variance as if the data were real, and b the variance of the q_i. The combined estimate
#' is the mean of the q_i. For imputed records its variance is (1 + 1/m) b + mean(u), on (m - 1) (1 + mean(u) / ((1 + 1/m) b))^2 degrees of freedom (Rubin
#' 1987). For sets from a population it is (1 + 1/m) b - mean(u), because b counts their sampling variance once too often (Raghunathan, Reiter & Rubin 2003).
#' This difference is uncertain, and sometimes negative. The interval uses its posterior distribution given that it is positive (Si & Reiter 2011), and
#' `std.error` is the median of its root; `df` is `NA`. If all estimates are equal, they contain no information about it. The variance is then mean(u), times
#' the number of records in a set divided by the release's number. The rules need about twenty sets, preferably a hundred.
#'
#' **Values.** They follow the model. Under a normal distribution, values may lie outside the bounds, and ages need not be whole numbers. Nothing is cut off;
#' printing the sets shows how many values lie beyond natural limits. A covariate has values within its bounds with `covariates = list(x = covariate_beta())`,
#' and whole numbers with [covariate_count()].
#'
#' **The mice package.** `as_mids()` converts the sets to a `mids` object of that package, with every value imputed, for use with `with()` and `complete()`. Its
#' `pool()` applies Rubin's rules: correct for `of = "records"`, too wide for sets from a population.
#'
#' @return `synthesize()`: a list of `m` data frames, an object of class `noiseaware_synthetic`. `combine_synthetic()`: a data frame with
#'   a row for each estimate and the columns `term`, `estimate`, `std.error`, `df`, `conf.low`, `conf.high`. `as_mids()`: an object of class `mids`.
#' @section Messages: `noiseaware_message_sets`: fewer than ten sets; `noiseaware_message_cells`: combinations of the levels of two factors have fewer than five
#' records on average.
#' @section Errors: `noiseaware_error_analysis` (an error of `analysis`, with the number of the data set), `noiseaware_error_argument`, `noiseaware_error_method`,
#'   `noiseaware_error_package` (mice is not installed), `noiseaware_error_size` (more than 2^28 records).
#' @references
#' Raghunathan, T. E., Reiter, J. P. and Rubin, D. B. (2003). Multiple imputation for statistical disclosure limitation. *Journal of
#' Official Statistics* 19, 1-16.
#'
#' Rubin, D. B. (1987). *Multiple Imputation for Nonresponse in Surveys*. Wiley.
#'
#' Si, Y. and Reiter, J. P. (2011). A comparison of posterior simulation and inference by combining rules for multiple imputation. *Journal of
#' Statistical Theory and Practice* 5, 335-347.
#' @family tables and survival
#' @examples
#' admitted <- as.data.frame(UCBAdmissions)
#' admitted <- admitted[rep(seq_len(24), admitted$Freq), 1:3]
#' st <- stat_counts(~ Admit:Gender:Dept, levels = lapply(admitted, levels))
#' set.seed(1)
#' rel <- release(admitted, st, mech_gaussian(mu = 1))
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 400, seed = 1)
#' sets <- synthesize(fit, m = 20, seed = 1)
#' sets
#' head(sets[[1]])
#' combine_synthetic(sets, function(data) glm(Admit == "Admitted" ~ Gender + Dept, binomial, data))
#' @concept synthetic data
#' @export
synthesize <- function(fit, m = 20, of = "population", n = NULL, seed = NULL) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  refuse_several(fit)
  check_choice(of, "of", c("population", "records"))
  draws <- all_parameters(fit)
  m <- check_count(m, "m", lower = 2)
  if (m > nrow(draws)) stop_classed("argument", "{.arg m} must be at most the number of draws, {nrow(draws)}, but is {m}.")
  if (!is.null(n)) n <- check_count(n, "n")
  if (of == "records") check_has_table(fit, n)
  check_records_fit(m * (n %||% largest_size(fit, draws)))
  rows <- round(seq(1, nrow(draws), length.out = m)) # as far apart as they can be
  sets <- with_seed(check_seed(seed), lapply(rows, function(row) {
    intervals_by_variable(raw_records(if (of == "records") records_of_table(fit, row) else records_of_draw(fit, draws[row, ], n)))
  }))
  structure(sets, class = "noiseaware_synthetic", of = of, released = fit$release$n, privacy = format_privacy(privacy(fit$release)),
            limits = simulated_beyond(fit, sets))
}

# Factors of intervals are named by the variable: `age`, not `cut(age, c(0, 40, 60, 100))`.
intervals_by_variable <- function(data) {
  cuts <- Filter(is_cut, functions_named(names(data)))
  variables <- vapply(cuts, `[[`, "", "variable")
  kept <- variables %in% names(data) | duplicated(variables)
  names(data)[match(names(cuts)[!kept], names(data))] <- variables[!kept]
  data
}

largest_size <- function(fit, draws) if ("n" %in% setdiff(colnames(draws), fit$bound$parameters)) max(draws[, "n"]) else nobs(fit)

# of all sets together
most_synthesized <- 2^28

check_records_fit <- function(records, call = caller_env()) {
  if (records <= most_synthesized) return(invisible())
  stop_classed("size", c("The data sets would have {format_size(records)} records in all, but the limit is {format_size(most_synthesized)}.",
                         i = "Use fewer data sets ({.arg m}) or, from a population, smaller ones ({.arg n})."), call = call)
}

# new records under the parameters of a draw
records_of_draw <- function(fit, draw, n) {
  check_records_distribution(fit$bound, caller_env(2L))
  named_records(fit, drawn_records(fit, draw, n %||% size_of_draw(fit, draw)))
}

check_has_table <- function(fit, n, call = caller_env()) {
  if (is.null(fit$chains[[1L]]$table)) {
    stop_classed("method", c("{.code of = \"records\"} needs the counts of a table in each draw, which the fit does not have.",
                             i = "Method {.val collapse} for {.fn model_table} stores them, for up to {format_size(most_tracked)} cells."), call = call)
  }
  if (release_crosses(fit$release, fit$bound)) {
    stop_classed("method", c("{.code of = \"records\"} needs every released margin to be inside a clique of the model.",
                             i = "{.code of = \"population\"} works for any release."), call = call)
  }
  if (!is.null(n)) stop_classed("argument", "{.arg n} must be NULL with {.code of = \"records\"}: each draw says how many records there are.", call = call)
}

# Records that have the tables of a draw, in an order that tells nothing: part after part, the levels of a row are given
# to its records at random.
records_of_table <- function(fit, row) {
  bound <- fit$bound
  size <- lengths(bound$levels)
  table <- do.call(rbind, lapply(fit$chains, `[[`, "table"))[row, ]
  first <- bound$parts[[1L]]
  n <- sum(table[seq_len(nrow(first$codes %||% all_codes(size[first$children])))])
  codes <- matrix(0, n, length(size), dimnames = list(NULL, names(size)))
  end <- 0L
  for (part in bound$parts) {
    levels <- part$codes %||% all_codes(size[part$children])
    rows <- prod(size[part$parents])
    counts <- matrix(table[end + seq_len(rows * nrow(levels))], nrow(levels))
    end <- end + length(counts)
    of_row <- Reduce(function(at, v) at * size[[v]] + codes[, v], part$parents, rep(0, n))
    for (r in seq_len(rows)) {
      at <- which(of_row == r - 1)
      given <- rep(seq_len(nrow(levels)), counts[, r])
      codes[at, part$children] <- levels[given[sample.int(length(given))], ]
    }
  }
  record_frame(codes, bound$columns, data_levels(bound))
}

#' @export
print.noiseaware_synthetic <- function(x, ...) {
  first <- x[[1L]]
  size <- paste(vapply(unique(range(vapply(x, nrow, 0L))), format_size, ""), collapse = " to ")
  cat(sprintf("<synthetic> %d data sets of %s records and %d variables: %s\n", length(x), size, ncol(first), shorten_list(names(first), 6L)))
  cat(sprintf("  of         %s\n", if (attr(x, "of") == "records") "the confidential records, imputed" else "a population, from the posterior predictive distribution"))
  if (!is.null(attr(x, "limits"))) cat(sprintf("  limits     %s\n", attr(x, "limits")))
  cat(sprintf("  guarantee  the release's: %s\n", paste(attr(x, "privacy"), collapse = "; ")))
  invisible(x)
}

#' @rdname synthesize
#' @param sets Data sets from `synthesize()`.
#' @param analysis A function of a data frame that returns a fit with methods for [coef()] and [vcov()], such as [lm()] or
#'   [glm()], or a list of `estimate` and `variance`, two vectors.
#' @param level Probability of the confidence intervals.
#' @export
combine_synthetic <- function(sets, analysis, level = 0.95) {
  check_given()
  check_class(sets, "sets", "noiseaware_synthetic", "data sets made by synthesize()")
  if (!is.function(analysis)) stop_argument("analysis", "a function of a data frame", describe(analysis))
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  tell_few_sets(sets)
  call <- environment()
  warned <- list()
  told <- lapply(seq_along(sets), function(k) {
    result <- withCallingHandlers(tryCatch(analysis(sets[[k]]), error = function(e) {
      stop_classed("analysis", c("{.arg analysis} failed for data set {k} of {length(sets)}.", x = "{conditionMessage(e)}"), call = call)
    }), warning = function(w) {
      warned[[conditionMessage(w)]] <<- union(warned[[conditionMessage(w)]], k)
      tryInvokeRestart("muffleWarning")
    })
    read_analysis(result, k, call)
  })
  for (text in names(warned)) {
    cli::cli_warn(c("{.arg analysis} warned for {length(warned[[text]])} of {length(sets)} data sets: {shorten_list(warned[[text]], 5L)}.", x = "{text}"),
                  class = "noiseaware_warning_analysis")
  }
  lengths <- unique(lapply(told, function(t) names(t$estimate)))
  if (length(lengths) > 1L) stop_classed("argument", "{.arg analysis} must return the same estimates for each data set, but their names differ.")
  q <- do.call(rbind, lapply(told, `[[`, "estimate"))
  u <- colMeans(do.call(rbind, lapply(told, `[[`, "variance")))
  m <- nrow(q)
  between <- (1 + 1 / m) * apply(q, 2L, stats::var)
  combined <- mapply(if (attr(sets, "of") == "records") combine_records else combine_population, between, u,
                     MoreArgs = list(m = m, level = level, ratio = nrow(sets[[1L]]) / (attr(sets, "released") %||% nrow(sets[[1L]]))))
  estimate <- colMeans(q)
  data.frame(term = colnames(q) %||% paste0("estimate", seq_len(ncol(q))), estimate = unname(estimate), std.error = combined["se", ], df = combined["df", ],
             conf.low = unname(estimate) - combined["half", ], conf.high = unname(estimate) + combined["half", ], row.names = NULL)
}

# Rubin (1987): `between` is (1 + 1/m) times the variance of the estimates, `within` the mean of their variances
combine_records <- function(between, within, m, level, ratio) {
  df <- if (between > 0) (m - 1) * (1 + within / between)^2 else Inf
  se <- sqrt(between + within)
  c(se = se, df = df, half = stats::qt((1 + level) / 2, df) * se)
}

# The variance is between - within, of which `between` is uncertain: by m estimates it is (m - 1) / X times what was seen, X chi-square with m - 1
# degrees of freedom, and above `within` (Si & Reiter 2011). The interval is of the mixture of normals over midpoints of X's distribution. A t
# distribution (Raghunathan, Reiter & Rubin 2003) has next to no degrees of freedom where the two are close, and intervals without end.
combine_population <- function(between, within, m, level, ratio) {
  room <- if (within > 0) stats::pchisq((m - 1) * between / within, m - 1) else 1
  if (room < 1e-12) { # the sets do not differ
    se <- sqrt(within * ratio)
    return(c(se = se, df = NA, half = normal_half(level) * se))
  }
  x <- stats::qchisq((seq_len(1000L) - 0.5) / 1000 * room, m - 1)
  sd <- sqrt(between * (m - 1) / x - within)
  beyond <- function(half) mean(stats::pnorm(-half / sd)) - (1 - level) / 2
  most <- normal_half(level) * max(sd)
  half <- if (between > 0 && most > 0) stats::uniroot(beyond, c(0, most), tol = 1e-9 * max(sd))$root else 0
  c(se = stats::median(sd), df = NA, half = half)
}

# half the length of an interval of the standard normal distribution, finite for every level below 1
normal_half <- function(level) -stats::qnorm((1 - level) / 2)

# The rules need estimates of a variance between sets, and analyses that do not hang on a few records.
tell_few_sets <- function(sets, few = 10L, empty = 5) {
  if (length(sets) < few) {
    cli::cli_inform(c("There are only {length(sets)} data sets: the variance between them is uncertain, and intervals may be far too wide or too narrow.",
                      i = "Use {.fn synthesize} with {.code m = 100}."), class = "noiseaware_message_sets")
  }
  factors <- names(Filter(is.factor, sets[[1L]]))
  crossed <- if (length(factors) > 1L) utils::combn(factors, 2L, simplify = FALSE) else as.list(factors)
  cells <- lapply(crossed, function(variables) {
    counts <- rowMeans(vapply(unclass(sets), function(data) c(table(data[variables])), numeric(prod(lengths(lapply(sets[[1L]][variables], levels))))))
    margin_cells(variables, lapply(sets[[1L]][variables], levels))[aperm(array(counts < empty, lengths(lapply(sets[[1L]][variables], levels))))]
  })
  cells <- unlist(cells)
  if (length(cells) == 0L) return(invisible())
  more <- if (length(cells) > 5L) ", ..."
  cli::cli_inform(c("The data sets have hardly any records in some cells, fewer than {empty} on average: {.val {utils::head(cells, 5L)}}{more}.",
                    i = "Estimates that depend on such cells differ wildly between sets: combine levels."), class = "noiseaware_message_cells")
}

read_analysis <- function(result, k, call) {
  if (is.list(result) && !is.object(result)) {
    told <- list(estimate = result$estimate, variance = result$variance)
  } else {
    told <- tryCatch(list(estimate = stats::coef(result), variance = diag(as.matrix(stats::vcov(result)))), error = function(e) list())
  }
  ok <- is.numeric(told$estimate) && is.numeric(told$variance) && length(told$estimate) > 0L && length(told$estimate) == length(told$variance) &&
    all(is.finite(told$estimate), is.finite(told$variance), told$variance >= 0)
  if (ok) return(told)
  stop_classed("argument", c("{.arg analysis} must return a fit with coefficients and a covariance matrix, or a list of finite {.field estimate} and {.field variance}.",
                             x = "For data set {k} it returned {describe(result)}."), call = call)
}

#' @rdname synthesize
#' @export
as_mids <- function(sets) {
  check_given()
  check_class(sets, "sets", "noiseaware_synthetic", "data sets made by synthesize()")
  sizes <- vapply(sets, nrow, 0L)
  if (length(unique(sizes)) > 1L || sizes[1L] < 1L) {
    stop_classed("argument", c("{.arg sets} must have the same number of records each, at least one.",
                               x = "They have from {format_size(min(sizes))} to {format_size(max(sizes))}.",
                               i = "Give {.fn synthesize} an {.arg n}; or use {.fn combine_synthetic}."))
  }
  check_installed("mice", "makes such an object")
  # mice() takes a first data set, which it marks as missing throughout, and whose values are then taken out
  long <- do.call(rbind, Map(function(set, k) data.frame(.imp = k, set, check.names = FALSE), c(sets[1L], unclass(sets)), c(0L, seq_along(sets))))
  missing <- matrix(TRUE, sizes[1L], ncol(sets[[1L]]), dimnames = list(NULL, names(sets[[1L]])))
  made <- suppressWarnings(mice::as.mids(long, where = missing)) # it logs that it would have had nothing to impute from
  made$data[] <- lapply(made$data, function(x) replace(x, TRUE, NA))
  made$nmis[] <- sizes[1L]
  made$method[] <- ""
  made$loggedEvents <- NULL
  made
}
