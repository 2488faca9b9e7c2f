# How a statistic treats values outside the bounds of a variable:
#   "clamp"  there may be some, and they were moved to the nearer bound;
#   "drop"   there may be some, and their records were left out (only stat_sums());
#   "none"   there are none: the bounds are the natural limits of the variable;
#   "above"  there may be some above the upper bound, and they were moved to it; the lower bound is a natural limit;
#   "below"  the same below the lower bound.
# A statistic keeps it as `outside`: one of these words, or a named vector with one for each numeric variable.
#
# The scale of the noise is the same for all, and release() also clamps under "none": a wrong "none" costs no privacy. Only the posterior differs. At a
# natural limit the records themselves are summed, so code that evaluates a statistic at records of a model does so without that bound
# (statistic_spec() except for confidential records, seen_columns()).

outside_choices <- c("clamp", "none", "above", "below")

# `choices`: the words that the statistic knows, "clamp" first, which is the default
check_outside <- function(outside, variables, choices = outside_choices, call = caller_env()) {
  if (identical(outside, choices)) return("clamp")
  if (is.null(names(outside)) || !is.vector(outside)) return(check_choice(outside, "outside", choices, call = call))
  outside <- name_outside(outside, variables)
  alone <- setdiff(choices, "drop")
  ok <- is.character(outside) && !anyNA(outside) && all(outside %in% alone) && !anyDuplicated(names(outside)) && all(names(outside) %in% variables)
  if (!ok) {
    quoted_words <- function(x) encodeString(x, quote = "\"")
    was <- if (is.character(outside)) paste(shorten_texts(names(outside)), "=", quoted_words(outside)) else describe(outside)
    stop_argument("outside", paste0("a single value, or ", paste(quoted_words(alone), collapse = " or "), " by variable, named by numeric variables"),
                  shorten_list(was), call = call)
  }
  said <- stats::setNames(rep("clamp", length(variables)), variables)
  said[names(outside)] <- outside
  if (all(said == said[[1L]])) said[[1L]] else said
}

# A function is also named by its variable.
name_outside <- function(outside, variables) {
  functions <- variables[match(names(outside), base_variables(variables))]
  derived <- !is.na(functions) & !names(outside) %in% variables
  names(outside)[derived] <- functions[derived]
  outside
}

# of the numbers among the variables
number_variables <- function(variables, bounds) variables[!vapply(bounds[variables], is.character, TRUE)]

# list(lower =, upper =): at which bounds of a statistic's columns are natural limits
natural_limits <- function(statistic) {
  outside <- statistic$outside
  columns <- statistic$columns
  said <- if (is.null(names(outside))) rep_len(outside %||% "clamp", nrow(columns)) else unname(outside[columns$variable])
  said[columns$variable %in% names(statistic$levels)] <- "clamp"
  list(lower = said %in% c("none", "above"), upper = said %in% c("none", "below"))
}

# columns beyond neither of whose bounds a record lies
natural_columns <- function(statistic) Reduce(`&`, natural_limits(statistic))

is_dropped <- function(statistic) identical(statistic$outside, "drop")

# columns between what clamps them, if anything does
seen_columns <- function(statistic) {
  statistic$columns[c("lower", "upper")] <- open_fields(statistic, statistic$columns)[c("lower", "upper")]
  statistic$columns
}

# the fields of a statistic that is evaluated at a model's records
open_fields <- function(statistic, fields) {
  natural <- natural_limits(statistic)
  fields$lower[natural$lower[seq_along(fields$lower)]] <- -Inf
  fields$upper[natural$upper[seq_along(fields$upper)]] <- Inf
  fields
}

# The same records are behind all statistics of a release: what one says of a variable's limits holds for the others. Where their bounds
# are as wide as these limits they clamp nothing either.
settle_outside <- function(statistics) {
  natural <- lapply(statistics, natural_limits)
  if (!any(unlist(natural))) return(statistics)
  limits <- function(side, narrowest) {
    at <- unlist(lapply(natural, `[[`, side))
    columns <- function(name) unlist(lapply(statistics, function(s) s$columns[[name]]))[at]
    tapply(columns(side), columns("variable"), narrowest)
  }
  lower <- limits("lower", max)
  upper <- limits("upper", min)
  lapply(statistics, function(s) {
    if (is.null(s$outside) || is_dropped(s)) return(s)
    columns <- s$columns[!s$columns$variable %in% names(s$levels), ]
    wide <- function(known) !is.na(known) & known
    low <- wide(columns$lower <= lower[columns$variable])
    high <- wide(columns$upper >= upper[columns$variable])
    if (any(low | high)) with_outside(s, stats::setNames(c("clamp", "above", "below", "none")[1L + low + 2L * high], columns$variable)) else s
  })
}

# the same of one, or of a list of several
settled_statistic <- function(statistic) if (is_several(statistic)) settle_outside(statistic) else statistic

# Is there no number that bounds may clamp?
all_natural <- function(statistics) {
  all(unlist(lapply(statistics, function(s) natural_columns(s) | s$columns$variable %in% names(s$levels))))
}

# A statistic that says something else; of queries and of groups, what they are of does as well.
with_outside <- function(statistic, outside) {
  numbers <- setdiff(unique(statistic$columns$variable), names(statistic$levels))
  if (!is.null(names(outside))) {
    before <- statistic$outside
    said <- if (is.null(names(before))) stats::setNames(rep(before, length(numbers)), numbers) else before
    said[intersect(names(outside), numbers)] <- outside[intersect(names(outside), numbers)]
    outside <- if (all(said == said[[1L]])) said[[1L]] else said
  }
  statistic$outside <- outside
  if (!is.null(statistic$statistic)) statistic$statistic <- with_outside(statistic$statistic, outside)
  statistic
}

# Does it say anything of what lies beyond bounds?
says_outside <- function(statistic) !is.null(statistic$outside)

# Statistics as a model's records are seen by them, also where they are taken for confidential: for simulated records.
as_simulated <- function(statistic) {
  if (is_several(statistic)) return(lapply(statistic, as_simulated))
  statistic$simulated <- TRUE
  if (!is.null(statistic$statistic)) statistic$statistic <- as_simulated(statistic$statistic)
  statistic
}

# for a print; "" where values are clamped
outside_words <- function(statistic) {
  natural <- natural_limits(statistic)
  variables <- setdiff(unique(statistic$columns$variable), names(statistic$levels))
  words <- function(at, where) {
    open <- unique(statistic$columns$variable[at])
    if (length(open)) paste0(", no record ", where, if (length(open) < length(variables)) paste(" of", shorten_list(open, 5L)))
  }
  paste(c(words(natural$lower & natural$upper, "outside the bounds"), words(natural$lower & !natural$upper, "below the lower bound"),
          words(natural$upper & !natural$lower, "above the upper bound")), collapse = "")
}

# JSON: `outside` is a word, or an object by variable. A file that says nothing means clamping.
outside_json <- function(statistic) {
  outside <- statistic$outside %||% "clamp"
  if (!is.null(names(outside))) list(outside = as.list(outside)) else if (outside != "clamp") list(outside = outside)
}

# `x`: of a file; check_outside() refuses what is neither
outside_from_json <- function(x) {
  if (!"outside" %in% names(x)) return("clamp")
  said <- x[["outside"]]
  by_variable <- is.list(said) && !is.null(names(said)) && all(vapply(said, checkmate::test_string, TRUE))
  if (by_variable) unlist(said) else if (checkmate::test_string(said)) said else as.list(said)
}

#' Declare whether records can lie outside a release's bounds
#'
#' Changes a release's statement about records outside the bounds. `"none"` means that the bounds are the natural limits of a variable, `"clamp"` that records
#' may lie outside and were clamped, `"above"` or `"below"` that only one bound clamps.
#'
#' @param release A release: [release()], [as_release()], [read_release()].
#' @param outside `"none"`, `"clamp"`, `"above"` (records may lie above the upper bound and were clamped; the lower bound is a natural limit) or `"below"` (the
#'   reverse), for all variables, or by variable as in `c(age = "none", income = "above")`.
#' @return The release. Its numbers, its noise and its guarantee are unchanged; only their interpretation by [sample_posterior()] changes.
#' @details
#' **Which is right?** Totals of clamped values do not show how far the clamped values lay outside the bounds. Under `"clamp"`, this follows from the model's
#' distribution: with normal records and bounds at 1.5 standard deviations, one record in eight is assumed to lie outside. That is right for incomes that were
#' cut off at some amount. It is wrong if the variable cannot exceed the bounds. Examples are a score from 0 to 100, an answer from 1 to 5, a variable that is 0
#' or 1, a number of children, a share, a depth that is never negative. Declare `"none"` for these: the totals are then sums of the unclamped records. A wrong
#' `"none"` makes means and slopes refer to the clamped values. Incomes from 0 to a top code are clamped at one end only: declare `"above"`.
#'
#' Data owners declare it in the statistic, as in `stat_crossprod(y ~ x, bounds, outside = "none")`. [release()] still clamps, so that a record that does lie
#' outside, contrary to the declaration, is as protected as any other. If one statistic of a release declares natural limits of a variable, they also hold for
#' other statistics with bounds at least as wide. A statistic that drops records, `stat_sums(outside = "drop")`, is not changed.
#' @section Errors: `noiseaware_error_argument`.
#' @family published numbers
#' @examples
#' st <- stat_crossprod(bwt ~ smoke, bounds = list(bwt = c(500, 5500), smoke = c(0, 1)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' # no birth weight is beyond 5,500 g, and a 0/1 variable is never beyond 0 and 1
#' declare_outside(rel, "none")
#' @export
declare_outside <- function(release, outside) {
  check_given()
  check_release(release)
  statistics <- if (is_several(release$statistic)) release$statistic else list(release$statistic)
  # totals without dropped records have units and noise of their own
  able <- vapply(statistics, function(s) says_outside(s) && !is_dropped(s), TRUE)
  if (!any(able)) stop_argument("release", "one with statistics that clamp numbers to bounds", describe_statistic(statistics[[1L]]))
  variables <- unique(unlist(lapply(statistics[able], function(s) setdiff(s$columns$variable, names(s$levels)))))
  outside <- if (is.null(names(outside))) check_choice(outside, "outside", outside_choices) else {
    check_outside(outside, variables)
    name_outside(outside, variables)
  }
  statistics[able] <- lapply(statistics[able], with_outside, outside)
  release$statistic <- if (is_several(release$statistic)) statistics else statistics[[1L]]
  release
}

# Columns of all statistics, each once, the levels of factors, and whether all numbers are within natural limits.
release_columns <- function(statistic) {
  statistics <- if (is_several(statistic)) settle_outside(statistic) else list(statistic)
  columns <- do.call(rbind, unname(lapply(statistics, `[[`, "columns")))
  levels <- do.call(c, unname(lapply(statistics, `[[`, "levels")))
  formulas <- unname(unlist(lapply(statistics, `[[`, "formula")))
  response <- !startsWith(as.character(formulas), "~") # a regression's says more
  functions <- do.call(c, unname(lapply(statistics, `[[`, "functions")))
  list(columns = columns[!duplicated(columns$name), ], levels = levels[!duplicated(names(levels))], functions = functions[!duplicated(names(functions))],
       formula = c(formulas[response], formulas)[1L], natural = all_natural(statistics), weighted = !all(vapply(statistics, function(s) is.null(s$weighted), TRUE)))
}
