# Survival tables: a time and whether an event ended it, in declared intervals, form one factor: how a record leaves the study. Everything else is as for
# tables: the statistic is stat_linear() of its counts. Curves: fit_survival_measures.R.

#' Survival times: records and counts
#'
#' Counts of events and of people at risk, by interval and group, form a table of how people leave a study: by the event or by censoring, in which interval, or
#' not at all. `survival_exits()` makes records of these exits, and `stat_survival()` describes the published counts. Use [model_survival()] for proportional
#' hazards between groups and [model_table()] for hazards of any form. [survival_measures()] computes survival curves and related quantities.
#'
#' @param data A data frame of the confidential records.
#' @param formula For `survival_exits()`: a formula `Surv(time, event) ~ group`, with any number of factors joined by `+`, or `~ 1`. `time` is a numeric
#'   expression. `event` is an expression that gives `TRUE` and `FALSE`, or 1 and 0, such as `status == 2`. The survival package is not needed. For
#'   `stat_survival()`: the groups only, `~ group`, or `~ 1` without groups; a left-hand side `Surv(time, event)` is ignored.
#' @param breaks Three or more increasing numbers, the first at least 0: the ends of the intervals, which contain their lower ends but not their upper ends.
#'   People still in the study at the last break have the exit `"after"`. Breaks are declared, never taken from the data.
#' @param levels Named list with the levels of each group.
#' @param publish What to publish in addition to the events in each interval and the number left after the last: `"censored"`, the number censored in each
#'   interval, or `"at_risk"`, the number entering it. The former gives the same information with less noise, because its sensitivity does not grow with the
#'   number of intervals.
#' @details
#' **Prior of [model_table()].** The exits' probabilities have the Dirichlet prior of [model_table()]. With weight \eqn{w} for each of the \eqn{2 J + 1} exits,
#' the event probabilities given entry into the interval are independent Beta(\eqn{w}, \eqn{w (2 J - 2 j + 2)}). By default \eqn{w = 2 / ((2 J + 1) G)} for G
#' groups, because the weights of all cells sum to 2.
#'
#' Method `"collapse"` gives the exact posterior, whatever the noise, at a cost that does not depend on the number of records.
#'
#' @return `survival_exits()`: a data frame of factors, `exit` and the groups; it is confidential, like `data`. `stat_survival()`: a [stat_linear()] of
#'   [stat_counts()].
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_data`, `noiseaware_error_missing`, `noiseaware_error_levels`,
#'   `noiseaware_error_bounds`, `noiseaware_error_argument`.
#' @seealso [model_survival()], [model_table()], [survival_measures()], [denoise()] for the counts, [private_test()] for the log-rank test.
#' @family statistics of counts
#' @examples
#' years <- 365.25 * c(0, 0.25, 0.5, 0.75, 1, 1.5, 2)
#' sexes <- list(sex = c("1", "2"))
#' exits <- survival_exits(survival::lung, Surv(time, status == 2) ~ sex, years, sexes)
#' st <- stat_survival(~ sex, years, sexes)
#' set.seed(1)
#' rel <- simulate_release(exits, st, mech_discrete_laplace(epsilon = 1))
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 1000, seed = 1)
#' plot(fit, "survival")
#' @export
stat_survival <- function(formula, breaks, levels = NULL, publish = c("censored", "at_risk")) {
  check_given()
  groups <- survival_groups(formula, environment())
  breaks <- check_survival_breaks(breaks, environment())
  publish <- if (missing(publish)) "censored" else check_choice(publish, "publish", c("censored", "at_risk"))
  levels <- check_group_levels(levels, groups, environment())
  exits <- exit_levels(breaks)
  table <- stat_counts(stats::as.formula(paste("~", paste(c("exit", groups), collapse = ":"))), levels = c(list(exit = exits), levels))
  group <- group_labels(levels)
  # the table's cells: the last variable is the fastest
  cells <- matrix(table$components, length(exits), length(group), byrow = TRUE)
  each <- expand.grid(group = seq_along(group), interval = seq_len(length(breaks) - 1L))
  query <- function(name, interval, rows) {
    of <- lapply(seq_along(interval), function(k) cells[rows(interval[k]), (k - 1L) %% length(group) + 1L])
    where <- ifelse(interval < length(breaks), interval_labels(breaks)[interval], "")
    stats::setNames(of, paste0(name, where, if (length(groups)) ":", group))
  }
  queries <- c(query("events", each$interval, function(j) 2L * j - 1L),
               if (publish == "censored") query("censored", each$interval, function(j) 2L * j) else
                 query("at_risk", each$interval, function(j) seq(2L * j - 1L, length(exits))),
               query("after", rep(length(breaks), length(group)), function(j) length(exits)))
  stat_linear(table, queries)
}

#' @rdname stat_survival
#' @concept life table
#' @export
survival_exits <- function(data, formula, breaks, levels = NULL) {
  check_given()
  call <- environment()
  if (!is.data.frame(data)) stop_argument("data", "a data frame", describe_shape(data), "data")
  read <- read_survival_formula(formula, environment())
  groups <- read$groups
  breaks <- check_survival_breaks(breaks, environment())
  levels <- check_group_levels(levels, groups, environment())
  absent <- setdiff(c(all.vars(read$time), all.vars(read$event), groups), names(data))
  if (length(absent)) stop_classed("data", c("{.arg data} must have every variable of {.arg formula}.", x = "Missing: {.var {absent}}."))
  # what a function in the formula says of its values is not passed on
  column_of <- function(expression) {
    tryCatch(suppressMessages(suppressWarnings(eval(expression, data, baseenv()))), error = function(e) {
      stop_classed("data", c("{.code {text_of(expression)}} cannot be computed; its message is not shown, because it may quote records.",
                             i = "Only functions from R's base package are available; try it on made-up records."), call = call)
    })
  }
  time <- column_of(read$time)
  event <- column_of(read$event)
  numbers <- is.numeric(time) && !is.object(time) && length(time) == nrow(data)
  if (!numbers) stop_classed("data", "{.code {text_of(read$time)}} must be a number for each row of {.arg data}, but is {describe_shape(time)}.")
  told <- length(event) == nrow(data) && (is.logical(event) || is.numeric(event) && all(event %in% c(0, 1, NA)))
  if (!told) {
    stop_classed("data", c("{.code {text_of(read$event)}} must be TRUE or FALSE, or 1 or 0, for each row of {.arg data}, but has other values.",
                           i = "If 2 means an event, use {.code Surv(time, status == 2)}."))
  }
  missing <- which(is.na(time) | is.na(event))
  if (length(missing)) stop_classed("missing", c("{.arg data} must have no missing times or events.", x = "{length(missing)} missing, in {rows_text(missing)}."))
  early <- which(time < breaks[1L] | time == Inf)
  if (length(early)) stop_classed("data", c("Times must be finite and not before the first break.", x = "{length(early)} {?is/are} not: {rows_text(early)}."))
  columns <- data.frame(variable = groups, name = groups, level = rep(NA_character_, length(groups)))
  codes <- if (length(groups)) record_matrix(data, columns, levels) + 1
  interval <- findInterval(time, breaks)
  exits <- exit_levels(breaks)
  code <- pmin(2L * interval - (event == 1), length(exits))
  result <- data.frame(exit = factor(exits[code], exits))
  for (g in groups) result[[g]] <- factor(levels[[g]][codes[, g]], levels[[g]])
  result
}

# ---- declared facts ------------------------------------------------------------------------------

# "sex=1:age=old" of each group; "" if there are none
group_labels <- function(levels) if (length(levels)) margin_cells(names(levels), levels) else ""

check_survival_breaks <- function(breaks, call) {
  if (!are_breaks(breaks) || !all(is.finite(breaks)) || breaks[1L] < 0) {
    was <- if (is.numeric(breaks) && length(breaks)) shorten_list(format_number(breaks)) else describe(breaks)
    endless <- is.numeric(breaks) && any(breaks == Inf, na.rm = TRUE)
    stop_classed("bounds", c("{.arg breaks} must be three or more increasing finite numbers, the first 0 or more, but is {was}.",
                             i = if (endless) "People still in the study at the last break have the exit {.val after}, so leave out {.val {Inf}}."), call = call)
  }
  as.double(breaks)
}

check_group_levels <- function(levels, groups, call) {
  if (length(groups) == 0L && is.null(levels)) return(NULL)
  check_levels(levels, groups, call)
}

text_of <- function(expression) shorten_text(paste(deparse(expression), collapse = " "))

survival_groups <- function(formula, call) {
  must <- "a formula of groups joined by +, such as ~ sex or Surv(time, event) ~ sex, or ~ 1"
  if (inherits(formula, "formula") && is_surv(formula[[2L]])) formula <- formula[-2L]
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    was <- if (inherits(formula, "formula")) formula_text(formula) else describe(formula)
    stop_argument("formula", must, was, "formula", call)
  }
  read_groups(formula[[2L]], must, call)
}

is_surv <- function(side) {
  is_operation(side, "Surv", 2L) || is.call(side) && identical(side[[1L]], quote(survival::Surv)) && length(side) == 3L
}

read_groups <- function(side, must, call) {
  if (identical(side, 1)) return(character())
  leaves <- formula_leaves(side, function(side) if (is_operation(side, "(", 1L) || is_operation(side, "+", 2L)) as.list(side)[-1L], call)
  groups <- vapply(leaves, function(leaf) if (is.name(leaf)) as.character(leaf) else "", "")
  if (!all(nzchar(groups)) || anyDuplicated(groups) || "exit" %in% groups) {
    stop_argument("formula", paste0(must, ", each once, none called exit"), text_of(side), "formula", call)
  }
  groups
}

read_survival_formula <- function(formula, call) {
  must <- "a formula such as Surv(time, event) ~ group, or ~ 1 on the right"
  ok <- inherits(formula, "formula") && length(formula) == 3L
  left <- if (ok) formula[[2L]]
  if (!is_surv(left)) {
    stop_argument("formula", must, if (inherits(formula, "formula")) formula_text(formula) else describe(formula), "formula", call)
  }
  list(time = left[[2L]], event = left[[3L]], groups = read_groups(formula[[3L]], must, call))
}
