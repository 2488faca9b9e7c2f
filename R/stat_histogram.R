#' Histogram of a number
#'
#' Counts of records in declared bins of a number, alone or crossed with factors.
#'
#' @param formula The margins, one per term, as in [stat_counts()]: `~ age`, or `~ age:sex + age`.
#' @param breaks A named list with the increasing bin limits of each number; for a single number, the limits alone. The first and the last may be infinite.
#'   Breaks are public: choose them from subject knowledge, never from the confidential data.
#' @param levels A named list with the levels of the variables that are factors.
#' @param right Whether bins contain their upper limit, `(20,40]`, rather than the lower one, `[20,40)`.
#'
#' @details
#' **Components** are named as in [stat_counts()], with bins instead of levels: `age=[20,40)`, `age=[20,40):sex=f`.
#'
#' Every record is counted: a value beyond the outermost breaks is counted in the outermost bin, as if it were clamped. If such records were not counted in any
#' published bin, add open bins on both sides and give [as_release()] only the published bins, by name.
#'
#' **Default priors** are scaled by the smallest and the largest finite break, as they are by bounds for other statistics.
#'
#' **Sensitivity** is the same as for [stat_counts()]: 2 k and sqrt(2 k) for k margins if a record is replaced, k and sqrt(k) if a record is added or removed.
#'
#' **Methods.** `"augment"` is exact for every model of the number, including regressions. `"clt"` is available for the histogram of one number under
#' [model_normal()], [model_poisson()] and [model_exponential()]. For [model_table()], [model_categorical()] and [model_naive_bayes()] the bins are the levels of
#' a factor, as if they had been counted by [stat_counts()].
#'
#' **Quantiles and means** of the number, without a model of its shape: `quantile(fit)` and [table_measures()] of a fit of [model_table()].
#'
#' @return A statistic: an object of class `stat_histogram`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`, `noiseaware_error_levels`.
#' @family statistics of counts
#' @examples
#' ages <- stat_histogram(~ age, breaks = c(0, 20, 40, 60, Inf))
#' ages
#' rel <- as_release(c(210, 275, 240, 130), ages, mech_laplace(epsilon = 1), n = 850)
#' sample_posterior(rel, model_normal(), chains = 1, iter = 400, seed = 1)
#' fit <- sample_posterior(rel, model_table(), chains = 1, iter = 1000, seed = 1)
#' quantile(fit, c(0.25, 0.5))
#' @export
stat_histogram <- function(formula, breaks, levels = NULL, right = FALSE) {
  check_given()
  check_flag(right, "right")
  margins <- formula_margins(formula)
  variables <- unique(unlist(margins))
  breaks <- check_breaks(breaks, variables, names(levels))
  factors <- setdiff(variables, names(breaks))
  levels <- if (length(factors) || length(levels)) check_levels(levels, factors) else list()
  bins <- lapply(breaks, bin_labels, right)
  labels <- c(levels, bins)[variables]
  check_cells(margins, labels)
  finite <- lapply(breaks, function(b) range(b[is.finite(b)]))
  column <- function(number, factor) vapply(variables, function(v) if (v %in% factors) factor(levels[[v]]) else number(finite[[v]]), 0, USE.NAMES = FALSE)
  columns <- data.frame(name = variables, lower = column(min, function(l) 0), upper = column(max, function(l) length(l) - 1), variable = variables,
                        level = NA_character_)
  new_statistic("histogram", "cells", columns = columns, levels = levels, components = margin_components(margins, labels),
                formula = formula_text(formula), margins = margins, breaks = breaks, right = right, bins = bins, class = "stat_histogram")
}

# a list of breaks, by the variables that are no factors
check_breaks <- function(breaks, variables, factors, call = caller_env()) {
  numbers <- setdiff(variables, factors)
  if (is.numeric(breaks) && length(numbers) == 1L) breaks <- stats::setNames(list(breaks), numbers)
  if (!is.list(breaks) || length(breaks) == 0L || !checkmate::test_names(names(breaks), "unique")) {
    stop_argument("breaks", "a named list with the limits of the bins of each number", describe(breaks), "bounds", call)
  }
  strange <- setdiff(names(breaks), variables)
  if (length(strange)) stop_classed("bounds", "{.arg breaks} must name variables of {.arg formula}, but {.var {strange}} {?is/are} not.", call = call)
  both <- intersect(names(breaks), factors)
  if (length(both)) stop_classed("bounds", "A variable must have breaks or levels, but {.var {both}} {?has/have} both.", call = call)
  for (v in names(breaks)) {
    if (!are_breaks(breaks[[v]])) {
      stop_argument(paste0("breaks$", v), "three or more increasing numbers, infinite only at the ends, with at least two finite ones",
                    describe(breaks[[v]]), "bounds", call)
    }
  }
  lapply(breaks, as.double)
}

are_breaks <- function(x) {
  is.numeric(x) && !is.object(x) && !anyNA(x) && length(x) >= 3L && all(diff(x) > 0) && all(is.finite(inner_breaks(x))) && sum(is.finite(x)) >= 2L
}

bin_labels <- function(breaks, right) {
  text <- break_text(breaks)
  ends <- if (right) c("(", "]") else c("[", ")")
  last <- length(text)
  lower <- paste0(ifelse(breaks[-last] == -Inf, "(", ends[1L]), text[-last])
  upper <- paste0(text[-1L], ifelse(breaks[-1L] == Inf, ")", ends[2L]))
  # the end bins have both limits
  if (!right && is.finite(breaks[last])) upper[last - 1L] <- paste0(text[last], "]")
  if (right && is.finite(breaks[1L])) lower[1L] <- paste0("[", text[1L])
  paste(lower, upper, sep = ",")
}

# the limits between two bins
inner_breaks <- function(breaks) breaks[-c(1L, length(breaks))]

#' @export
statistic_fields.stat_histogram <- function(statistic) {
  variables <- statistic$columns$name
  cuts <- lapply(stats::setNames(nm = variables), function(v) if (is.null(statistic$breaks[[v]])) NULL else inner_breaks(statistic$breaks[[v]]))
  binned <- variables %in% names(statistic$breaks)
  list(levels = as.double(lengths(cell_labels(statistic))), members = as.double(lengths(statistic$margins)),
       column = match(unlist(statistic$margins), variables) - 1, binned = as.double(binned), cuts = as.double(unlist(cuts)), right = as.double(statistic$right))
}

# the levels and the bins of each variable
cell_labels <- function(statistic) c(statistic$levels, statistic$bins)[statistic$columns$name]

# The same counts, of factors whose levels are the bins
bins_as_levels <- function(statistic) {
  if (inherits(statistic, "stat_histogram")) return(stat_counts(text_formula(statistic$formula), cell_labels(statistic)))
  if (inherits(statistic, "stat_linear") && inherits(statistic$statistic, "stat_histogram")) {
    statistic$statistic <- bins_as_levels(statistic$statistic)
    statistic[c("columns", "levels")] <- statistic$statistic[c("columns", "levels")]
  }
  statistic
}

# Records with the bins of their numbers, as bins_as_levels() describes them.
bin_records <- function(data, statistic) {
  if (is_several(statistic)) return(Reduce(bin_records, statistic, data))
  if (inherits(statistic, "stat_linear")) statistic <- statistic$statistic
  if (!inherits(statistic, "stat_histogram")) return(data)
  for (v in intersect(names(statistic$breaks), names(data))) if (is.numeric(data[[v]])) {
    data[[v]] <- cut(data[[v]], c(-Inf, inner_breaks(statistic$breaks[[v]]), Inf), statistic$bins[[v]], right = statistic$right)
  }
  data
}

# counts of cells, of which a record is in one of each margin
is_table <- function(statistic) inherits(statistic, c("stat_counts", "stat_histogram"))

#' @export
variable_kinds.stat_histogram <- function(x) "number"

#' @export
describe_statistic.stat_histogram <- function(statistic) {
  paste0("histogram of ", shorten_text(statistic$formula), if (length(statistic$margins) > 1L) paste0(" (", length(statistic$margins), " margins)"))
}

#' @export
format.stat_histogram <- function(x, ...) {
  labels <- cell_labels(x)
  statistic_lines(x, paste0("  cells       ", shorten_list(sprintf("%s in {%s}", names(labels), vapply(labels, shorten_list, "")))))
}

#' @export
sensitivity.stat_histogram <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  sensitivity.stat_counts(statistic, norm, neighbours)
}

#' @export
component_limits.stat_histogram <- function(statistic) component_limits.stat_counts(statistic)

# bins of the only variable as names
#' @export
named_value.stat_histogram <- function(statistic, value, n, call = caller_env(), name = "value") {
  labels <- cell_labels(statistic)
  given <- names(value)
  if (length(labels) == 1L && !is.null(given) && all(given %in% labels[[1L]])) names(value) <- paste0(names(labels), "=", given)
  NextMethod()
}

# Indicators of the bins, for clt/moments_sums.c: powers 0, dropped outside. A whole number on a limit is in one bin.
#' @export
power_components.stat_histogram <- function(statistic) {
  if (nrow(statistic$columns) > 1L || length(statistic$levels)) return(NULL)
  cuts <- inner_breaks(statistic$breaks[[1L]])
  step <- pmax(abs(cuts), 1e-300) * 2^-50
  data.frame(lower = c(-Inf, if (statistic$right) cuts + step else cuts), upper = c(if (statistic$right) cuts else cuts - step, Inf), drop = 1,
             shift = 0, factor = 1, power = 0)
}

# JSON has no infinite numbers
#' @export
statistic_json.stat_histogram <- function(statistic) {
  breaks <- lapply(statistic$breaks, function(b) list(finite = I(exact_numbers(b[is.finite(b)])), open = I(c(b[1L] == -Inf, b[length(b)] == Inf))))
  list(name = "histogram", formula = statistic$formula, breaks = breaks, levels = if (length(statistic$levels)) statistic$levels else list(),
       right = statistic$right)
}

stat_histogram_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "breaks", "levels", "right"), "statistic", refuse)
  formula <- json_formula(x$formula, refuse)
  if (!is.list(x$breaks) || is.null(names(x$breaks))) refuse("The statistic's breaks must be an object with an entry for each number.")
  check_entries(x$breaks, refuse)
  flags <- function(open) is.list(open) && length(open) == 2L && all(vapply(open, checkmate::test_flag, TRUE))
  breaks <- Map(function(b, v) {
    require_fields(b, c("finite", "open"), paste("the breaks of", v), refuse)
    if (!flags(b$open)) refuse("Whether end bins are open must be two of true and false.")
    c(if (b$open[[1L]]) -Inf, json_numbers(b$finite, paste("The breaks of", v), "array", refuse), if (b$open[[2L]]) Inf)
  }, x$breaks, names(x$breaks))
  levels <- if (length(x$levels)) json_levels(x$levels, refuse)
  sizes <- c(lengths(breaks) - 1, lengths(levels))
  claim(sum(vapply(formula_margins(formula), function(m) prod(sizes[m]), 0), na.rm = TRUE))
  stat_histogram(formula, breaks, levels, right = x$right)
}
