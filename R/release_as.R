#' Describe numbers published by someone else
#'
#' Makes a release from published numbers: you state what was summed, how noise was added and, if known, the number of records.
#'
#' @param value The published totals: a named numeric vector in any order (the factors of a product may also be
#'   swapped: `x:y` for `y:x`), or an unnamed one in the statistic's order
#'   (see `statistic$components`). A named vector may have fewer numbers than the statistic has components; the missing ones were not published, see Details.
#'   Counts may also be a table with dimensions named by variables, in any order, or, for one variable, a vector named by its levels. For several margins, give
#'   a list of tables, one per margin. Products ([stat_crossprod()]) and covariances ([stat_covariance()]) may be a symmetric matrix named by the variables.
#'   Values of single records may be a matrix whose columns are the components. For several statistics: a named list of such vectors, one per statistic; or one
#'   vector, named by the statistics and their components, as in `"totals: age"`.
#' @param statistic What was summed, such as [stat_crossprod()]; or a named list of statistics of the same records. Statistics of different people must not be
#'   in one release.
#' @param mechanism How noise was added, such as [mech_laplace()]; with a list of
#'   statistics, a list of mechanisms with the same names.
#' @param n The public number of records; `NULL` if it is not known. It is not needed with answers ([mech_randomized_response()]), noisy records
#'   ([mech_record_noise()]) or `public` covariates, which determine it.
#' @param neighbours The kind of neighbours that the noise was scaled for, see [sensitivity()] and [release()]. It determines the noise scale that corresponds
#'   to a budget.
#'
#' @param ... Not used.
#' @param number,noise,labels For a data frame with one row per number: `number` is the name of the column of numbers. If `mechanism` is a function such as
#'   [mech_gaussian], `noise` names the column with the size of each number's noise, and says how the size is expressed. `c(sd = "column")` is the standard
#'   deviation and `c(variance = "column")` the variance. `c(scale = "column")` is the scale of Laplace noise (for Gaussian noise, the standard deviation).
#'   `c(margin = "column", level = 0.95)` is a margin of error that the noise stays within with this probability. For Laplace noise,
#'   `c(epsilon = "column", sensitivity = 3)` is the budget and the largest change by one person, as a number or a column. `NULL` uses a column called `scale`
#'   or `sd`. `labels` gives the columns of variables that have other names in the statistic, as in `c(age = "age_group")`.
#'
#' @param site For a data frame of several sites: the name of the column that identifies them. `n` may then also be the name of a column. `number` is the column of
#'   numbers if a site has a row for each number; if it has one row, `number` names a column for each component, as in `c("smoke=yes" = "smokers")`.
#'   `c("mean(age)" = "average")` is a column of means: totals divided by each site's `n`, as in [stat_means()]. With a named list of statistics, the names are
#'   those of one vector for all, as in `c("total: age" = "sum", "size: n" = "people")`.
#' @param public `NULL`, or a data frame of exact covariates for [stat_records()] of the response, one row per record: see [public_covariates].
#'
#' @details
#' **A data frame** has a column of numbers. A column `component` identifies each of them or, for counts, a column of levels for each variable. In rows of a
#' margin of fewer variables, the other variables are missing. Tables from other projects have this form: grouped counts from Tumult Analytics, partitions from
#' PipelineDP (`labels = c(age = "partition_key")`). Take their noise from the documentation or the log of the project. [read_release()] reads noisy margins
#' of contingency tables from OpenDP.
#'
#' **Order.** Values without names are assumed to be in the statistic's order; a message shows this order if there are several variables. A vector made from a
#' table with its rows and columns swapped also has the right length, so names are safer.
#'
#' **Fewer numbers.** With fewer numbers than components, the statistic of the release is the [stat_subset()] of the published ones. A budget is then assumed to
#' be spent on these alone: one count changes by at most 1, all counts of a variable together by 2. A message states the noise computed from the budget, and the
#' noise that the budget would imply for the whole statistic. If you know the scale of the noise, give the scale. One scale for each component of the whole
#' statistic is also accepted. If numbers below a threshold are hidden ([published()]), all components must be given, hidden ones as `NA`; use [stat_subset()]
#' to leave out numbers that were never computed. With a column for each component (`site`), those without a column were never computed.
#'
#' **Units.** `value` is in the units of the statistic, which are shown when it is printed. By default, [stat_crossprod()], and [stat_sums()] of several terms,
#' use variables rescaled to \[-1, 1\]. Other publishers usually give totals in the variables' own units, which `rescale = FALSE` describes. A warning points
#' out numbers that appear to be in the variables' own units when rescaled totals are expected.
#'
#' **Margins of error.** For a data frame, `noise` converts them. Otherwise give the mechanism the standard deviation: for a 90% margin of Gaussian noise
#' `mech_gaussian(sd = margin / qnorm(0.95))`, for Laplace noise `mech_laplace(scale = margin / log(10))`.
#'
#' **Natural limits.** The analyst may know that no record lies outside the bounds, as for scores, 0/1 variables or numbers of children. Declare this with
#' `outside = "none"` in the statistic or, for a release that has been read, with [declare_outside()].
#'
#' @return A release: an object of class `noiseaware_release`. With `site`, a named list of releases, one for each site: see [pooling].
#'   Its `summary()` is a data frame with a row for each number of each site.
#' @section Errors: `noiseaware_error_value`, `noiseaware_error_argument`,
#'   `noiseaware_error_mechanism`, `noiseaware_error_neighbours`. The warning `noiseaware_warning_units`: see Details.
#' @family published numbers
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' as_release(c(y = 12.1, x = -3.4, `y^2` = 8.8, `y:x` = -2.5, `x^2` = 5.9),
#'   st, mech_laplace(epsilon = 1), n = 50)
#'
#' # a table as it comes, whatever the order of its dimensions
#' counted <- stat_counts(~ low:smoke, levels = list(low = c("0", "1"), smoke = c("0", "1")))
#' as_release(table(MASS::birthwt[c("smoke", "low")]), counted, mech_laplace(epsilon = 1), n = 189)
#'
#' # one count alone
#' as_release(c("low=1:smoke=1" = 30.4), counted, mech_laplace(epsilon = 1), n = 189)
#'
#' # rows with their labels and their noise, as tables are published
#' rows <- data.frame(smoke = c("no", "yes"), estimate = c(115.2, 73.9), sd = c(2, 3))
#' smoking <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' as_release(rows, smoking, mech_gaussian, n = 189, number = "estimate")
#'
#' # a row for each site
#' hospitals <- data.frame(hospital = c("north", "south"), patients = c(30, 50),
#'                         smokers = c(7.3, 21.8), noise = c(2, 3))
#' sites <- as_release(hospitals, smoking, mech_laplace, n = "patients", site = "hospital",
#'                     number = c("smoke=yes" = "smokers"), noise = c(scale = "noise"))
#' sample_posterior(sites, model_bernoulli(), pool = "partial", iter = 400, seed = 1)
#'
#' # two statistics, each with noise of its own
#' as_release(list(totals = c(age = 1243.2), answers = c(`smoke=no` = 28.9, `smoke=yes` = 21.4)),
#'   list(totals = stat_sums(~ age, bounds = list(age = c(0, 100))),
#'        answers = stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))),
#'   list(totals = mech_gaussian(mu = 1), answers = mech_laplace(epsilon = 1)), n = 50)
#' @seealso `vignette("cookbook")` for the ways in which numbers are published; [published()] for numbers that were hidden or rounded; [read_release()]
#'   for files from other projects.
#' @concept published numbers
#' @concept noisy count
#' @concept hidden denominator
#' @export
as_release <- function(value, statistic, mechanism, n, neighbours = c("replace", "add_remove"), ..., public = NULL) {
  if (!is.null(public) && !missing(value) && !missing(statistic) && !missing(mechanism)) {
    check_no_dots(...)
    force(value)
    return(public_release(value, statistic, mechanism, if (!missing(n)) n, match_neighbours(neighbours), public))
  }
  if (!missing(value) && !missing(statistic) && !missing(mechanism)) {
    force(value) # arguments are evaluated in their order, as by UseMethod()
    check_records_unbounded(statistic, mechanism)
    if (takes_codes(statistic, mechanism)) return(answers_release(value, statistic, mechanism, if (!missing(n)) list(n), match_neighbours(neighbours), ...))
    if (is_unbounded(statistic)) return(noisy_release(value, statistic, mechanism, if (missing(n)) NULL else n, ...))
  }
  check_given(hints = hints_of_release(value))
  UseMethod("as_release")
}

hints_of_release <- function(value) {
  table <- if (!missing(value)) statistic_of_table(value)
  c(statistic = if (is.null(table)) "{.arg statistic} says what the numbers are, for example {.fn stat_counts} or {.fn stat_sums}." else
      paste0("This table has `", escape_braces(table), "`."),
    mechanism = "{.arg mechanism} says what noise they have, for example {.code mech_laplace(scale = 2)} or {.code mech_gaussian(sd = 3)}.",
    n = paste0("Use {.code n = NULL} if the number of records is unknown", if (!missing(value) && is.data.frame(value))
      "; for a table of sites, it may be the name of a column", "."))
}

# of a table with named dimensions, as code
statistic_of_table <- function(value) {
  levels <- if (is.table(value)) dimnames(value)
  if (is.null(names(levels)) || !all(nzchar(names(levels)))) return(NULL)
  formula <- stats::reformulate(paste(format_name(names(levels)), collapse = ":"))
  listed <- paste0(format_name(names(levels)), " = ", vapply(levels, function(l) paste(deparse(l, 500L), collapse = ""), ""), collapse = ", ")
  sprintf("stat_counts(%s, list(%s))", formula_text(formula), listed)
}

#' @rdname as_release
#' @export
as_release.default <- function(value, statistic, mechanism, n, neighbours = c("replace", "add_remove"), ...) {
  check_given()
  check_no_dots(...)
  neighbours <- match_neighbours(neighbours)
  check_design(statistic, mechanism, neighbours)
  n <- check_public_size(n, design_parts(statistic, mechanism))
  if (isTRUE(attr(statistic, "means"))) {
    value <- totals_of_means(value, statistic, mechanism)
    attr(statistic, "means") <- NULL
  }
  listed <- is.list(value) && !is.object(value) && is_several(statistic)
  published <- published_design(value, statistic, mechanism, listed, n, neighbours)
  published$mechanism <- sized_mechanism(published$mechanism, n, neighbours)
  value <- estimated_counts(value, published$statistic, published$mechanism, listed, n)
  tell_order(value, published$statistic, listed)
  release <- release_of(value, published$statistic, published$mechanism, n, neighbours, listed)
  warn_units(release)
  release
}

# Sums of bits as estimates of counts, which releases have.
estimated_counts <- function(value, statistic, mechanism, listed, n, call = caller_env()) {
  if (!is_several(statistic)) return(if (is_unary(mechanism)) estimates_of(value, statistic, mechanism, n, call) else value)
  for (name in names(Filter(is_unary, mechanism))) {
    if (listed && !is.null(value[[name]])) value[[name]] <- estimates_of(value[[name]], statistic[[name]], mechanism[[name]], n, call) else if (!listed) {
      at <- startsWith(names(value) %||% "", paste0(name, ": "))
      value[at] <- unary_estimates(mechanism[[name]], value[at])
    }
  }
  value
}

estimates_of <- function(value, statistic, mechanism, n, call) {
  value <- named_value(statistic, value, n, call)
  if (is.numeric(value)) unary_estimates(mechanism, value) else value
}

takes_codes <- function(statistic, mechanism) inherits(mechanism, "mech_randomized_response") && inherits(statistic, "stat_records")

# A release of answers by randomised response. `given`: a list with n, or NULL: then there are as many records as answers.
answers_release <- function(value, statistic, mechanism, given, neighbours, ..., call = caller_env()) {
  check_no_dots(..., call = call)
  n <- given[[1L]]
  check_design(statistic, mechanism, neighbours, call)
  answers <- published_answers(value, statistic, mechanism, call)
  value <- answers$value
  statistic <- answers$statistic
  if (is.null(given) && is.numeric(value)) n <- if (counts_answers(statistic)) sum(value) else length(value) / length(statistic$components)
  if (counts_answers(statistic)) check_answer_numbers(value, n, call)
  n <- check_public_size(n, design_parts(statistic, mechanism), call)
  release_of(value, statistic, mechanism, n, neighbours, FALSE, call)
}

# The same release of single records, for what needs them
uncounted <- function(release) {
  if (is_several(release$statistic) || !counts_answers(release$statistic)) return(release)
  statistic <- release$statistic
  codes <- counted_codes(statistic)[rep(seq_along(release$value), release$value), , drop = FALSE]
  statistic$counted <- NULL
  value <- stats::setNames(as.double(codes), part_components(statistic, release$n))
  result <- new_release(value, statistic, release$mechanism, release$n, rep_len(unname(release$scale), length(value)), 0, release$noise, release$neighbours)
  result$missing <- release$missing
  result
}

# What as_release() makes of noisy numbers and public covariates.
public_release <- function(value, statistic, mechanism, n, neighbours, public, call = caller_env()) {
  public <- public_columns(public, call = call)
  check_public_statistic(statistic, mechanism, public, call)
  rows <- nrow(public)
  if (!is.null(n) && check_count(n, "n", call = call) != rows) {
    stop_classed("public", "{.arg public} must have a row for each of the {n} record{?s}, but has {rows}.", call = call)
  }
  statistic <- as_whole(statistic, mechanism)
  check_design(statistic, mechanism, neighbours, call)
  check_answer_count(value, statistic, rows, call)
  release <- release_of(value, statistic, mechanism, rows, neighbours, FALSE, call)
  release$public <- public
  release
}

check_answer_count <- function(value, statistic, rows, call) {
  answers <- if (is.matrix(value)) nrow(value) else length(value) / length(statistic$components)
  if (statistic$kind != "records" || answers == rows) return(invisible())
  stop_classed("public", c("{.arg public} must have a row for each noisy answer.",
                           x = "There {cli::qty(answers)}{?is/are} {format_number(answers, 9L)} answer{?s} but {rows} row{?s} of public covariates."), call = call)
}

# of every component of the statistics; `listed`: a list with an entry for each of several
release_of <- function(value, statistic, mechanism, n, neighbours, listed, call = caller_env()) {
  mechanism <- sized_mechanism(mechanism, n, neighbours, call)
  parts <- design_parts(statistic, mechanism, neighbours)
  check_record_noise_totals(parts, n, call)
  given <- if (listed) sum(lengths(value)) else length(value)
  if (sum(vapply(parts, function(p) value_size(p$statistic, n), 0)) > max(1e4, given)) {
    stop_classed("value", "{.arg value} must have one number for each record, but has {given} for {n} records.", call = call)
  }
  components <- lapply(parts, function(p) part_components(p$statistic, n, p$name))
  scales <- lapply(parts, function(p) {
    per_number(mechanism_scale(p$mechanism, p$statistic, call, neighbours = neighbours), p$statistic, n)
  })
  value <- if (listed) join_values(value, parts, n, call) else if (is_several(statistic)) {
    check_value(value, unlist(components), call, hidden = unlist(Map(function(p, c) rep(hides(p$mechanism), length(c)), parts, components)))
  } else {
    check_value(named_value(statistic, value, n, call), components[[1L]], call, hidden = hides(mechanism))
  }
  result <- new_release(value, statistic, mechanism, n, unlist(scales), 0, "published", neighbours)
  for (p in release_parts(result)) check_noisy(p$mechanism, p$statistic, p$value, call)
  check_invariants(release_parts(result), n, call)
  check_few_enough(result, call)
  result
}

# the number of records, NULL if it is not known
check_public_size <- function(n, parts, call = caller_env()) {
  if (length(n) == 1L && is.atomic(n) && is.na(n)) {
    stop_classed("argument", c("{.arg n} must be a positive whole number or NULL, but is {describe(n)}.",
                               i = "Use {.code n = NULL} if it is unknown."), call = call)
  }
  if (!is.null(n)) return(check_count(n, "n", call = call))
  if (any(vapply(parts, function(p) p$statistic$kind == "records", TRUE))) {
    stop_argument("n", "given for stat_records(), because its values determine the number of records", "NULL", call = call)
  }
}

# Statistics and mechanisms of the components that the value names, where those are fewer than there are.
published_design <- function(value, statistic, mechanism, listed, n, neighbours, call = caller_env()) {
  if (!is_several(statistic)) {
    at <- published_components(value, statistic, mechanism, n, call, "value")
    tell_fewer(mechanism, statistic, at, neighbours, call)
    return(list(statistic = published_statistic(statistic, at), mechanism = published_mechanism(mechanism, statistic, at)))
  }
  given <- names(value)
  for (name in names(statistic)) {
    part <- if (listed) value[[name]] else if (!is.null(given) && is.numeric(value)) {
      prefix <- paste0(name, ": ")
      here <- which(startsWith(given, prefix))
      stats::setNames(value[here], substring(given[here], nchar(prefix) + 1L))
    }
    if (length(part) == 0L) next
    at <- published_components(part, statistic[[name]], mechanism[[name]], n, call, paste0("value$", name))
    tell_fewer(mechanism[[name]], statistic[[name]], at, neighbours, call)
    mechanism[[name]] <- published_mechanism(mechanism[[name]], statistic[[name]], at)
    statistic[[name]] <- published_statistic(statistic[[name]], at)
  }
  list(statistic = statistic, mechanism = mechanism)
}

# Places of the named components, if these are some of the statistic's; NULL: all of them, or what check_value() refuses.
published_components <- function(value, statistic, mechanism, n, call, name) {
  at <- named_components(value, statistic, n, call, name)
  if (!is.null(at) && hides(mechanism) && mechanism$after$listed) refuse_unlisted(statistic$components[-at], name, call)
  at
}

named_components <- function(value, statistic, n, call, name) {
  if (!statistic$kind %in% c("totals", "cells")) return(NULL)
  names <- names(named_value(statistic, value, n, call, name))
  if (length(names) == 0L || length(names) >= length(statistic$components)) return(NULL)
  at <- match(reorder_products(names, statistic$components), statistic$components)
  if (anyNA(at) || anyDuplicated(at)) return(NULL)
  sort(at)
}

# Where small numbers are hidden, one that is absent was most likely small: to take it as never published would
# lose what that says.
refuse_unlisted <- function(absent, name, call) {
  stop_classed("value", c("{.arg {name}} must have all of the statistic's components if numbers below a threshold are hidden.",
                          x = "Absent: {shorten_list(encodeString(absent, quote = '\"'))}.", i = "Use {.code NA} for a number that was hidden.",
                          i = paste("If only the numbers that were shown are listed, use {.code published(listed = FALSE)}.",
                                    "Leave out numbers that were never computed with {.code stat_subset()}.")), call = call)
}

# scales that were given one by one
published_mechanism <- function(mechanism, statistic, at) {
  components <- statistic$components
  for (field in intersect(c("scale", "sd"), names(mechanism))) {
    scale <- mechanism[[field]]
    if (is.null(at) || length(scale) != length(components)) next
    if (setequal(names(scale), components)) scale <- scale[components]
    if (is.null(names(scale)) || identical(names(scale), components)) mechanism[[field]] <- scale[at]
  }
  mechanism
}

# one vector from the vectors of the parts
join_values <- function(value, parts, n, call = caller_env()) {
  wanted <- vapply(parts, `[[`, "", "name")
  if (length(value) != length(wanted) || !setequal(names(value), wanted)) {
    stop_classed("value", c("{.arg value} must have a vector for each statistic, named by the statistic.",
                            i = "Statistics: {.val {wanted}}."), call = call)
  }
  unlist(lapply(parts, function(p) {
    name <- paste0("value$", p$name)
    checked <- check_value(named_value(p$statistic, value[[p$name]], n, call, name), part_components(p$statistic, n), call, name, hides(p$mechanism))
    stats::setNames(checked, part_components(p$statistic, n, p$name))
  }))
}

# `hidden`: may numbers be NA, all or each of the components?
check_value <- function(value, components, call = caller_env(), name = "value", hidden = FALSE) {
  if (is.logical(value) && all(is.na(value)) && any(hidden)) value[] <- NA_real_
  if (!is.numeric(value) || is.object(value) || !is.null(dim(value))) stop_argument(name, "a vector of numbers", describe(value), "value", call)
  check_finite(value, components, call, name, hidden)
  if (length(value) != length(components) && (is.null(names(value)) || length(value) > length(components))) {
    example <- sprintf("c(\"%s\" = %s)", components[length(components)], format_number(c(value, 1)[1L]))
    stop_classed("value", c("{.arg {name}} must have {length(components)} number{?s}, one for each component of the statistic, but has {length(value)}.",
                            i = "Components: {.val {components}}.",
                            i = if (length(value) < length(components)) "With names it may have fewer, such as {.code {example}}."), call = call)
  }
  if (!is.null(names(value))) {
    names(value) <- reorder_products(names(value), components)
    check_component_names(names(value), components, name, call)
    value <- value[components]
  }
  stats::setNames(as.double(value), components)
}

check_finite <- function(value, components, call, name, hidden) {
  if (length(hidden) > 1L) {
    at <- if (is.null(names(value))) seq_along(value) else match(reorder_products(names(value), components), components)
    hidden <- hidden[at] %in% TRUE
  }
  missing <- is.na(value) & !is.nan(value)
  bad <- which(!is.finite(value) & !(missing & hidden))
  if (length(bad) == 0L) return(invisible())
  asks <- any(missing[bad])
  names <- names(value) %||% if (length(value) == length(components)) components
  bad <- if (is.null(names)) as.character(bad) else names[bad]
  stop_classed("value", c("{.arg {name}} must be finite, but is not in {cli::qty(bad)}component{?s} {.val {bad}}.",
                          i = if (asks) "If small numbers were hidden, they are NA: use {.code published(mechanism, threshold = )}.",
                          i = if (asks) "Leave out exact numbers that were hidden: name those that were shown."), call = call)
}

check_component_names <- function(names, components, name, call) {
  strange <- union(setdiff(names, components), names[duplicated(names)])
  absent <- setdiff(components, names)
  if (length(strange) == 0L && length(absent) == 0L) return(invisible())
  # fewer names than components: what is missing need not have been published
  missed <- length(absent) > 0L && (length(strange) == 0L || length(names) == length(components))
  stop_classed("value", c("{.arg {name}} must be named by the statistic's components, each once, or have no names.",
                          x = if (length(strange)) "Unknown or repeated: {.val {strange}}.", x = if (missed) "Missing: {.val {absent}}.",
                          i = if (!missed) "Components: {shorten_list(components, 12L)}."), call = call)
}

# What a user has of one statistic, as a vector: where a statistic knows what the
# dimensions of an array or other names mean, with its components as names.
named_value <- function(statistic, value, n, call = caller_env(), name = "value") UseMethod("named_value")

#' @export
named_value.default <- function(statistic, value, n, call = caller_env(), name = "value") {
  if (length(dim(value)) == 1L && !is.null(names(value)) && is.numeric(value)) value <- c(value)
  if (is.matrix(value) && is.numeric(value) && nrow(value) == ncol(value) && !is.null(rownames(value))) return(pair_values(statistic, value, call, name))
  if (!is.null(dim(value))) {
    stop_classed("value", c("{.arg {name}} must be a vector of numbers, but is {describe_shape(value)}.",
                            i = "Components: {shorten_list(statistic$components)}."), call = call)
  }
  value
}

# A symmetric matrix of products or covariances, named by the components that its pairs of variables are.
pair_values <- function(statistic, value, call, name) {
  variables <- rownames(value)
  if (!setequal(variables, colnames(value)) || anyDuplicated(variables)) {
    stop_classed("value", "{.arg {name}} must be a matrix with the same row and column names.", call = call)
  }
  value <- value[, variables, drop = FALSE]
  if (!isSymmetric(value, tol = 1e-8)) {
    stop_classed("value", c("{.arg {name}} must be a symmetric matrix, with noise added once for each pair of variables.",
                            i = "If both triangles have their own noise, they are two releases of the same numbers, see {.fn add_release}."), call = call)
  }
  if (nrow(value) > 1L && all(diag(value) == 1)) {
    stop_classed("value", c("{.arg {name}} must be a matrix of totals, but has ones on its diagonal. Are they correlations?",
                            x = "A correlation is not a total, but a function of cross-products.",
                            i = "{.code vignette(\"cookbook\")} describes correlations by {.fn mech_custom}.",
                            i = "Fits of noisy covariances, or of products of variables divided by public numbers, are faster."), call = call)
  }
  at <- which(lower.tri(value, diag = TRUE), arr.ind = TRUE)
  first <- variables[at[, 1L]]
  second <- variables[at[, 2L]]
  forms <- cbind(ifelse(first == second, paste0("var(", first, ")"), sprintf("cov(%s,%s)", first, second)), sprintf("cov(%s,%s)", second, first),
                 ifelse(first == second, paste0(first, "^2"), paste0(first, ":", second)), paste0(second, ":", first),
                 ifelse(second == "(Intercept)", first, ifelse(first == "(Intercept)", second, NA)))
  forms[!forms %in% statistic$components] <- NA
  known <- apply(forms, 1L, function(f) f[!is.na(f)][1L])
  keep <- !(first == "(Intercept)" & second == "(Intercept)") # the number of records
  stats::setNames(value[at], ifelse(is.na(known), paste0(first, ":", second), known))[keep]
}

#' @export
named_value.stat_records <- function(statistic, value, n, call = caller_env(), name = "value") {
  if (!is.matrix(value) || !is.numeric(value)) return(NextMethod())
  columns <- colnames(value)
  if (anyDuplicated(columns) || !setequal(columns, statistic$components) || nrow(value) != n) {
    stop_classed("value", c("{.arg {name}} must be a matrix with a row for each of the {n} record{?s} and a column, with its name, for each component.",
                            x = "It has {nrow(value)} row{?s} and {ncol(value)} column{?s}.", i = "Components: {.val {statistic$components}}."), call = call)
  }
  as.vector(value[, statistic$components])
}

#' @export
named_value.stat_counts <- function(statistic, value, n, call = caller_env(), name = "value") {
  if (is.list(value) && !is.object(value) && length(value)) {
    return(unlist(lapply(unname(value), function(table) named_value(statistic, table, n, call, name))))
  }
  if (is.array(value)) return(table_cells(statistic, value, call, name))
  levels <- names(value)
  if (length(statistic$levels) == 1L && !is.null(levels) && !anyNA(levels) && all(levels %in% statistic$levels[[1L]])) {
    names(value) <- paste0(names(statistic$levels), "=", levels)
  }
  value
}

# A table's counts, named by the cells of the margin that its dimensions are. An
# array of R runs first index fastest, a margin's cells last variable fastest.
table_cells <- function(statistic, table, call, name) {
  if (!is.numeric(table)) stop_argument(name, "a table of numbers", describe(table), "value", call)
  variables <- names(dimnames(table))
  # a table of one vector has no name for its variable
  if (length(dim(table)) == 1L && all(variables %in% "") && length(statistic$levels) == 1L) variables <- names(statistic$levels)
  margin <- table_margin(statistic$margins, table, variables, call, name)
  levels <- stats::setNames(dimnames(table), variables)
  for (v in margin) check_table_levels(levels[[v]], statistic$levels[[v]], v, call, name)
  ordered <- do.call(`[`, c(list(aperm(unclass(table), match(margin, variables))), unname(statistic$levels[margin]), drop = FALSE))
  stats::setNames(as.vector(aperm(ordered)), margin_cells(margin, statistic$levels))
}

# the margin that a table with dimensions of these names counts
table_margin <- function(margins, table, variables, call, name) {
  shown <- vapply(margins, paste, "", collapse = ":")
  if (is.null(variables) || is.null(dimnames(table)) || !all(nzchar(variables))) {
    without <- if (is.null(dimnames(table))) "It has no {.code dimnames()}." else if (is.null(variables) || !any(nzchar(variables)))
      "Its dimensions have no names: {.code names(dimnames())} should be the variables." else "Not all of its dimensions have a name."
    stop_classed("value", c("The dimensions of {.arg {name}} must be named by variables and their entries by levels, as {.fn xtabs} names them.",
                            x = without, i = "Margins of the statistic: {.code {shown}}."), call = call)
  }
  margin <- Find(function(m) setequal(m, variables) && length(m) == length(variables), margins)
  if (is.null(margin)) {
    given <- shorten_texts(variables)
    stop_classed("value", c("{.arg {name}} must be a table of one of the statistic's margins, but its {cli::qty(given)}dimension{?s} {?is/are} {.var {given}}.",
                            i = "Margins of the statistic: {.code {shown}}."), call = call)
  }
  margin
}

check_table_levels <- function(given, declared, variable, call, name) {
  strange <- setdiff(given, declared)
  absent <- setdiff(declared, given)
  if (length(strange) == 0L && length(absent) == 0L && !anyDuplicated(given)) return(invisible())
  stop_classed("value", c("{.arg {name}} must have each level of {.var {variable}} exactly once.",
                          x = if (length(strange)) "Not a level: {.val {shorten_texts(strange)}}.", x = if (length(absent)) "Missing: {.val {absent}}."),
               call = call)
}

#' @export
named_value.stat_linear <- function(statistic, value, n, call = caller_env(), name = "value") {
  if (statistic$subset) named_value(statistic$statistic, value, n, call, name) else NextMethod()
}
