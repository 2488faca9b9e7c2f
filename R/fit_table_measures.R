#' Measures of a table: probabilities, odds ratios, association, quantiles of a binned number
#'
#' Draws of functions of a table's probabilities, for a fit of [model_table()] or [model_naive_bayes()]. They can involve any of its variables, whether or not
#' these share a clique or were released together.
#'
#' @param fit,x A fit of [model_table()]; `table_measures()` also takes one of [model_naive_bayes()].
#' @param margin The variables, a formula such as `~ a:b`, or `~ a:b | c` for measures given each level of `c`. `NULL` means all variables of the table; for a
#'   binned number, the only variable with bins. `~ age` also finds `cut(age, breaks)`.
#' @param measure * `"probability"`: the probability of each combination of levels.
#'   * `"odds_ratio"`, for two variables: the odds ratio of each pair of levels against the first level of both.
#'   * `"loglinear"`: coefficients of the saturated log-linear model of the probabilities, in R's treatment contrasts, against the first level of each variable.
#'     The coefficient of two variables is their log odds ratio with the others at their first level.
#'   * `"association"`, for two variables: Cramer's V, the mutual information (in nats), Goodman and Kruskal's tau of the second variable given the first and,
#'     if both have two levels, Yule's Q.
#'   * `"quantile"`, `"mean"`, `"sd"`, for one variable whose levels are bins of a number, as from [stat_histogram()] or `cut()`: see Details.
#' @param probs Probabilities of the quantiles.
#' @param breaks The limits of the bins, in the order of the levels. `NULL` reads them from levels such as `[20,40)`. Give them if levels look different, or to
#'   close an open bin, as in `c(0, 20, 40, 60, 100)`.
#' @param level Probability inside the intervals.
#' @param ... Must be empty.
#'
#' @details
#' `coef()` gives their posterior means and [tidy()][interop] their means, standard deviations and intervals: `coef(fit, measure = "loglinear")`,
#' `tidy(fit, measure = "odds_ratio", margin = ~ a:b)`. Odds ratios have medians, because a few draws may dominate their mean.
#' [predict()][predict.noiseaware_fit] gives conditional distributions as a data frame.
#'
#' These measures describe the population that the records come from; [denoise()] gives the counts of the records themselves.
#'
#' **Numbers in bins.** Quantiles, means and standard deviations assume that the number is spread evenly within each bin. Wide bins make this a strong assumption,
#' which the intervals do not include: values often heap at round numbers. Without it, the interval reaches from `bins_from` to `bins_to`, the limits of the
#' bins that the ends are in. Quantiles in an open bin are infinite; means need closed bins. The outermost bins of a [stat_histogram()] also hold the values
#' beyond them: leave them open if there are any. The default prior gives each bin the same weight, whatever its width.
#'
#' @return `table_measures()` returns a [posterior::draws_array]. `quantile()` returns a data frame with a row for each probability and each level of the
#'   variables after the bar. Its columns are `probability`, the posterior median `estimate`, the ends `lower` and `upper` of the equal-tailed interval,
#'   `bins_from` and `bins_to`.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_formula`, `noiseaware_error_variables`. `noiseaware_error_pool`: sites have their own
#'   parameters. `noiseaware_error_size`: the variables, with those that link them in the graph, have more than 5,000 combinations.
#'   `noiseaware_error_zeros`: odds ratios or coefficients of impossible cells.
#' @references Agresti, A. (2013). *Categorical Data Analysis*, third edition. Wiley.
#' @family tables and survival
#' @examples
#' admitted <- as.data.frame(UCBAdmissions)
#' admitted <- admitted[rep(seq_len(24), admitted$Freq), 1:3]
#' st <- stat_counts(~ Admit:Gender:Dept, levels = lapply(admitted, levels))
#' set.seed(1)
#' rel <- release(admitted, st, mech_gaussian(mu = 1))
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 400, seed = 1)
#' # over all departments, and in each of them
#' posterior::summarise_draws(table_measures(fit, ~ Admit:Gender, "odds_ratio"), "mean", "sd")
#' posterior::summarise_draws(table_measures(fit, ~ Admit:Gender | Dept, "odds_ratio"), "mean", "sd")
#' predict(fit, ~ Admit | Gender, interval = "credible")
#'
#' # a number in bins
#' st <- stat_histogram(~ age:sex, c(0, 20, 40, 60, 100), list(sex = c("f", "m")))
#' counts <- setNames(c(22, 24, 31, 28, 25, 21, 18, 9), st$components)
#' rel <- as_release(counts, st, mech_laplace(epsilon = 1), n = 178)
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 1000, seed = 1)
#' quantile(fit, c(0.5, 0.9), ~ age | sex)
#' posterior::summarise_draws(table_measures(fit, ~ age | sex, "mean"), "mean", "sd")
#' @concept median
#' @concept quantiles of a histogram
#' @export
table_measures <- function(fit, margin = NULL, measure = c("probability", "odds_ratio", "loglinear", "association", "quantile", "mean", "sd"),
                           probs = c(0.25, 0.5, 0.75), breaks = NULL) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  refuse_own_parameters(fit, "fit", environment(), NULL)
  measure <- if (missing(measure)) "probability" else check_choice(measure, "measure", eval(formals()$measure))
  of_number <- measure %in% c("quantile", "mean", "sd")
  asked <- if (of_number) read_number(fit, margin, breaks) else read_margin(fit, margin)
  if (measure == "quantile") check_probs_of(probs)
  pair <- measure %in% c("odds_ratio", "association")
  if (pair && length(asked$of) != 2L) {
    stop_classed("formula", c("{.arg margin} must have two variables for {.val {measure}}, but has {length(asked$of)}.",
                              i = "Put variables that are held fixed after a bar: {.code ~ a:b | c}."))
  }
  p <- conditional_draws(fit, asked)
  levels <- fit$bound$levels
  if (measure %in% c("odds_ratio", "loglinear") && any(p == 0)) {
    stop_classed("zeros", "{.val {measure}} needs all cells to be possible, but {.arg margin} has impossible ones.")
  }
  given <- seq_len(prod(lengths(levels[asked$given])))
  each <- prod(lengths(levels[asked$of]))
  measured <- lapply(given, function(g) {
    own <- p[, (g - 1L) * each + seq_len(each), drop = FALSE]
    colnames(own) <- margin_cells(asked$of, levels)
    out <- switch(measure, probability = own, odds_ratio = odds_ratios(own, levels[asked$of]), loglinear = loglinear_coefficients(own, levels[asked$of]),
                  association = associations(own, lengths(levels[asked$of])), number_measures(own, asked$breaks, measure, probs))
    if (length(asked$given)) colnames(out) <- paste0(colnames(out), "|", margin_cells(asked$given, levels)[g])
    out
  })
  by_chain(do.call(cbind, measured), fit)
}

#' @rdname table_measures
#' @importFrom stats quantile
#' @export
quantile.noiseaware_fit <- function(x, probs = c(0.25, 0.5, 0.75), margin = NULL, breaks = NULL, level = 0.95, ...) {
  check_no_dots(...)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  refuse_own_parameters(x, "x", environment(), NULL)
  if (!inherits(x$bound, "bound_table")) {
    stop_classed("argument", c("{.arg x} must be a fit of {.fn model_table} with a number in bins, but is a fit of {describe_model(x$bound)}.",
                               i = "{.fn confint} and {.fn posterior::summarise_draws} give quantiles of the draws."))
  }
  if (is.null(margin) && is.null(breaks) && !is.null(breaks_of_exits(as.character(x$bound$levels$exit)))) {
    stop_classed("argument", c("{.arg x} must be a fit of a number in bins, but is of survival times.",
                               i = "{.code survival_measures(fit, \"median\")} gives the median time of each group."))
  }
  asked <- read_number(x, margin, breaks)
  draws <- plain_matrix(table_measures(x, margin, "quantile", probs, breaks))
  remind_troubles(x)
  at <- draws_quantiles(draws, c(0.5, (1 - level) / 2, (1 + level) / 2))
  bin <- function(values) findInterval(values, asked$breaks, all.inside = TRUE)
  given <- x$bound$levels[asked$given]
  rows <- data.frame(probability = rep(probs, ncol(draws) / length(probs)))
  if (length(given)) rows <- cbind(rev(expand.grid(rev(given), KEEP.OUT.ATTRS = FALSE))[rep(seq_len(prod(lengths(given))), each = length(probs)), , drop = FALSE], rows)
  structure(data.frame(rows, estimate = at[1L, ], lower = at[2L, ], upper = at[3L, ], bins_from = asked$breaks[bin(at[2L, ])],
                       bins_to = asked$breaks[bin(at[3L, ]) + 1L], row.names = NULL, check.names = FALSE), of = asked$of, level = level,
            class = c("noiseaware_quantiles", "data.frame"))
}

#' @export
print.noiseaware_quantiles <- function(x, ...) {
  if (is.null(attr(x, "of"))) return(NextMethod())
  cat("<quantiles> of ", attr(x, "of"), ", posterior medians with ", format_number(100 * attr(x, "level")), "% intervals\n",
      "  records are assumed to be spread evenly within each bin; otherwise, only bins_from and bins_to hold\n\n", sep = "")
  print(as.data.frame(unclass(x), check.names = FALSE), row.names = FALSE, digits = 4)
  invisible(x)
}

# ---- numbers in bins --------------------------------------------------------------------------

# As read_margin(), of one variable, with the limits of its bins
read_number <- function(fit, margin, breaks, call = caller_env()) {
  asked <- read_margin(fit, margin, "margin", call)
  read <- lapply(fit$bound$levels[asked$of], interval_breaks)
  if (is.null(margin) && length(asked$of) > 1L) asked$of <- asked$of[lengths(read) > 0L]
  if (length(asked$of) != 1L) {
    found <- if (is.null(margin)) sprintf("is NULL, and %d variables have bins", length(asked$of)) else paste("has", length(asked$of))
    stop_classed("formula", c("{.arg margin} must have one variable, a number in bins, but {found}.",
                              i = "Such as {.code ~ age}, or {.code ~ age | sex} for each level of {.var sex}. Bins are levels such as {.val [20,40)}."), call = call)
  }
  levels <- fit$bound$levels[[asked$of]]
  given <- is.numeric(breaks) && length(breaks) == length(levels) + 1L && !anyNA(breaks) && all(diff(breaks) > 0) && all(is.finite(inner_breaks(breaks)))
  if (!is.null(breaks) && !given) {
    stop_argument("breaks", sprintf("%d increasing numbers, the limits of the %d bins of %s, infinite only at the ends", length(levels) + 1L, length(levels), asked$of),
                  describe(breaks), call = call)
  }
  asked$breaks <- breaks %||% read[[asked$of]]
  if (is.null(asked$breaks)) {
    stop_argument("breaks", sprintf("given: the %d limits of the bins of %s, whose levels (%s) are not intervals such as [20,40)", length(levels) + 1L, asked$of,
                                    shorten_list(levels, 4L)), "NULL", call = call)
  }
  asked
}

# Limits of adjacent intervals such as "[0,20)" and "[20,Inf)"; NULL where levels are anything else
interval_breaks <- function(levels) {
  parts <- regmatches(levels, regexec("^[[(]([^,]+),([^,]+)[])]$", levels))
  if (length(levels) < 2L || !all(lengths(parts) == 3L)) return(NULL)
  ends <- suppressWarnings(matrix(as.numeric(vapply(parts, `[`, character(2L), 2:3)), 2L))
  breaks <- c(ends[1L, ], ends[2L, ncol(ends)])
  if (!anyNA(ends) && all(diff(breaks) > 0) && identical(ends[1L, -1L], ends[2L, -ncol(ends)])) breaks
}

check_probs_of <- function(probs, call = caller_env()) {
  ok <- is.numeric(probs) && length(probs) > 0L && !anyNA(probs) && all(probs >= 0 & probs <= 1) && !anyDuplicated(probs)
  if (!ok) stop_argument("probs", "different probabilities from 0 to 1", describe(probs), call = call)
}

# draws x quantiles, or x 1: of a number with density p_j / width_j in bin j
number_measures <- function(p, breaks, measure, probs, call = caller_env()) {
  size <- ncol(p)
  if (measure == "quantile") {
    up_to <- p %*% upper.tri(diag(size), diag = TRUE)
    values <- vapply(probs, function(q) {
      bin <- pmin(rowSums(up_to < q) + 1L, size)
      at <- cbind(seq_len(nrow(p)), bin)
      share <- ifelse(p[at] > 0, pmin(pmax((q - (up_to[at] - p[at])) / p[at], 0), 1), 0)
      lower <- breaks[bin]
      width <- breaks[bin + 1L] - lower
      ifelse(is.finite(width), lower + share * width, ifelse(is.finite(lower), Inf, -Inf))
    }, numeric(nrow(p)))
    return(matrix(values, nrow(p), dimnames = list(NULL, paste0(format_number(100 * probs), "%"))))
  }
  if (!all(is.finite(breaks))) {
    stop_classed("argument", c("A {.val {measure}} needs bins that are closed on both sides, but {cli::qty(sum(!is.finite(breaks)))}{?one is/two are} open.",
                               i = "Close {cli::qty(sum(!is.finite(breaks)))}{?it/them} with {.arg breaks}: {length(breaks)} finite limits."), call = call)
  }
  middle <- breaks[-1L] - diff(breaks) / 2
  mean <- drop(p %*% middle)
  if (measure == "mean") return(cbind(mean = mean))
  cbind(sd = sqrt(rowSums(p * outer(mean, middle, "-")^2) + drop(p %*% diff(breaks)^2) / 12))
}

# draws x columns, chains one after the other
by_chain <- function(draws, fit) {
  chains <- dim(fit$draws)[2L]
  rows <- split(seq_len(nrow(draws)), rep(seq_len(chains), each = nrow(draws) / chains))
  chains_array(lapply(rows, function(r) draws[r, , drop = FALSE]))
}

# joint probabilities of several factors
has_cells <- function(bound) inherits(bound, c("bound_table", "bound_naive_bayes"))

# Variables of a formula, and those behind its bar.
read_margin <- function(fit, margin, arg = "margin", call = caller_env()) {
  if (!has_cells(fit$bound)) {
    stop_classed("argument", "{.arg {arg}} is for tables, so {.arg fit} must be a fit of {.fn model_table}, but is a fit of {describe_model(fit$bound)}.", call = call)
  }
  known <- names(fit$bound$levels)
  if (is.null(margin)) return(list(of = known, given = character()))
  if (!inherits(margin, "formula") || length(margin) != 2L) {
    stop_argument(arg, "a formula such as ~ a:b or ~ a:b | c", describe(margin), "formula", call)
  }
  sides <- list(margin[[2L]])
  if (is_operation(margin[[2L]], "|", 2L)) sides <- as.list(margin[[2L]])[-1L]
  joined <- function(side) if (is_operation(side, "(", 1L) || any(vapply(c(":", "*", "+"), is_operation, TRUE, side = side, arguments = 2L))) as.list(side)[-1L]
  variables <- lapply(sides, function(side) {
    leaves <- formula_leaves(side, joined, call)
    if (!all(vapply(leaves, is.name, TRUE))) {
      stop_argument(arg, "names of variables joined by : and at most one bar", shorten_text(formula_text(margin)), "formula", call)
    }
    names <- vapply(leaves, as.character, "")
    # the variable of which the table has a function
    at <- match(names, base_variables(known))
    ifelse(names %in% known | is.na(at), names, known[at])
  })
  named <- unlist(variables)
  if (anyDuplicated(named)) stop_classed("formula", "{.arg {arg}} must have each variable once, but has {.var {named[duplicated(named)]}} twice.", call = call)
  strange <- setdiff(named, known)
  if (length(strange)) {
    stop_classed("variables", c("{.arg {arg}} must name variables of the table, but {.var {strange}} {?is/are} not.", i = "The table has {.var {known}}."), call = call)
  }
  list(of = variables[[1L]], given = if (length(variables) > 1L) variables[[2L]] else character())
}

# Probabilities of the combinations of `of` given each of `given`: draws x combinations, those of `given` the slowest.
conditional_draws <- function(fit, asked, call = caller_env()) {
  p <- probability_draws(fit, c(asked$given, asked$of), call)
  if (length(asked$given) == 0L) return(p)
  group <- rep(seq_len(prod(lengths(fit$bound$levels[asked$given]))), each = prod(lengths(fit$bound$levels[asked$of])))
  sums <- t(rowsum(t(p), group))
  p / sums[, group]
}

# Probabilities of all combinations of some variables, the last the fastest: draws x combinations. The parts that bring these
# variables into the table, and those they depend on, multiply to a distribution that is summed over the others.
probability_draws <- function(fit, variables, call) {
  bound <- fit$bound
  size <- lengths(bound$levels)
  brings <- rep(seq_along(bound$parts), vapply(bound$parts, function(p) length(p$children), 0L))
  brings <- brings[order(unlist(lapply(bound$parts, `[[`, "children")))]
  needed <- integer()
  wanted <- match(variables, names(size))
  while (length(wanted)) {
    needed <- union(brings[wanted], needed)
    wanted <- setdiff(unlist(lapply(bound$parts[needed], `[[`, "parents")), which(brings %in% needed))
  }
  over <- names(size)[brings %in% needed]
  if (prod(size[over]) > most_tracked) {
    stop_classed("size", c("The variables, with those that link them in the graph, must have at most {format_size(most_tracked)} combinations.",
                           x = "They are {.var {over}}, with {format_size(prod(size[over]))} combinations."), call = call)
  }
  codes <- all_codes(size[over])
  place <- function(codes, variables) Reduce(function(at, v) at * size[[v]] + codes[, v], variables, 0)
  draws <- own_parameters(fit)
  if (any(!is.na(bound$probability))) { # some were fixed
    free <- draws
    draws <- matrix(bound$probability, nrow(free), length(bound$probability), byrow = TRUE)
    draws[, is.na(bound$probability)] <- free
  }
  if (moves_theta(bound)) draws <- cell_probabilities(bound, draws)
  first <- c(0L, cumsum(vapply(bound$parts, function(p) nrow(part_codes(p, size)), 0L)))
  joint <- matrix(1, nrow(draws), nrow(codes))
  for (k in sort(needed)) {
    cells <- part_codes(bound$parts[[k]], size)
    at <- match(place(codes, colnames(cells)), place(cells, colnames(cells)))
    own <- cbind(draws[, first[k] + seq_len(nrow(cells)), drop = FALSE], 0)
    joint <- joint * own[, ifelse(is.na(at), nrow(cells) + 1L, at), drop = FALSE]
  }
  sums <- t(rowsum(t(joint), factor(place(codes, variables), seq_len(prod(size[variables])) - 1)))
  matrix(sums, nrow(draws), dimnames = list(NULL, margin_cells(variables, bound$levels)))
}

# of two variables, the second the fastest
odds_ratios <- function(p, levels) {
  at <- function(a, b) p[, (a - 1L) * length(levels[[2L]]) + b]
  pairs <- expand.grid(b = seq_along(levels[[2L]])[-1L], a = seq_along(levels[[1L]])[-1L])
  out <- mapply(function(a, b) at(a, b) * at(1L, 1L) / (at(a, 1L) * at(1L, b)), pairs$a, pairs$b)
  names <- sprintf("%s=%s:%s=%s", names(levels)[1L], levels[[1L]][pairs$a], names(levels)[2L], levels[[2L]][pairs$b])
  matrix(out, nrow(p), dimnames = list(NULL, names))
}

# One for each combination of levels: the coefficient of the variables that are not at their first level, with differences along each of these.
loglinear_coefficients <- function(p, levels) {
  codes <- all_codes(lengths(levels))
  contrast <- 1
  for (size in lengths(levels)) {
    against_first <- diag(size)
    against_first[-1L, 1L] <- -1
    contrast <- kronecker(contrast, against_first)
  }
  out <- log(p) %*% t(contrast)
  colnames(out) <- apply(codes, 1L, function(code) {
    moved <- which(code > 0)
    if (length(moved) == 0L) return("(Intercept)")
    paste0(names(levels)[moved], "=", mapply(function(v, k) levels[[v]][k + 1], moved, code[moved]), collapse = ":")
  })
  out[, order(rowSums(codes > 0)), drop = FALSE]
}

associations <- function(p, size) {
  first <- rep(seq_len(size[1L]), each = size[2L])
  second <- rep(seq_len(size[2L]), size[1L])
  of_first <- t(rowsum(t(p), first))
  of_second <- t(rowsum(t(p), second))
  expected <- of_first[, first, drop = FALSE] * of_second[, second, drop = FALSE]
  ratio <- ifelse(p > 0, p / expected, 1)
  squares <- rowSums(of_second^2)
  out <- cbind(cramers_v = sqrt(rowSums(ifelse(expected > 0, (p - expected)^2 / expected, 0)) / (min(size) - 1)), mutual_information = rowSums(p * log(ratio)),
               tau = (rowSums(ifelse(p > 0, p^2 / of_first[, first], 0)) - squares) / (1 - squares))
  if (all(size == 2L)) out <- cbind(out, yule_q = (p[, 1L] * p[, 4L] - p[, 2L] * p[, 3L]) / (p[, 1L] * p[, 4L] + p[, 2L] * p[, 3L]))
  out
}

# predict() of a table: conditional distributions
predict_table <- function(fit, formula, type, interval, level, call = caller_env()) {
  asked <- read_margin(fit, formula, "newdata", call)
  if (type == "draws" || interval == "predictive") {
    stop_classed("argument", c("A table has conditional distributions, not responses.",
                               x = "{.arg type} must be {.val mean} or {.val expected}, and {.arg interval} {.val none} or {.val credible}.",
                               i = "{.fn synthesize} draws records."), call = call)
  }
  p <- conditional_draws(fit, asked, call)
  levels <- fit$bound$levels
  variables <- c(asked$given, asked$of)
  of <- margin_cells(asked$of, levels)
  names <- if (length(asked$given) == 0L) of else as.vector(outer(of, margin_cells(asked$given, levels), paste, sep = "|"))
  colnames(p) <- names
  remind_troubles(fit)
  if (type == "expected") return(p)
  codes <- all_codes(lengths(levels[variables]))
  out <- as.data.frame(lapply(stats::setNames(nm = variables), function(v) factor(levels[[v]][codes[, v] + 1], levels[[v]])), optional = TRUE)
  out$fit <- unname(colMeans(p))
  if (interval == "credible") out[c("lower", "upper", "mcse")] <- as.data.frame(cbind(t(draws_interval(p, level)), column_errors(p, fit)))
  out
}
