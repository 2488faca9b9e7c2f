# testthat's expectations for what is plainly as expected, as nearly all is. To look for differences that are not
# there takes testthat about five milliseconds, and there are tens of thousands; what differs is left to it.

passed <- function(object) {
  testthat::expect(TRUE, "")
  invisible(object)
}

text_of <- function(expression) paste(deparse(expression), collapse = " ")

expect_identical <- function(object, expected, ..., label = NULL, expected.label = NULL) {
  if (identical(object, expected)) return(passed(object))
  testthat::expect_identical(object, expected, ..., label = label %||% text_of(substitute(object)),
                             expected.label = expected.label %||% text_of(substitute(expected)))
}

expect_equal <- function(object, expected, ..., tolerance = testthat::testthat_tolerance(), label = NULL, expected.label = NULL) {
  if (close_numbers(object, expected, tolerance)) return(passed(object))
  testthat::expect_equal(object, expected, ..., tolerance = tolerance, label = label %||% text_of(substitute(object)),
                         expected.label = expected.label %||% text_of(substitute(expected)))
}

# every number within the tolerance of its own, where testthat asks for their mean
close_numbers <- function(a, b, tolerance) {
  if (identical(a, b)) return(TRUE)
  if (is.null(tolerance) || !is.double(a) || !is.double(b) || length(a) != length(b) || !identical(attributes(a), attributes(b))) return(FALSE)
  isTRUE(all(abs(a - b) < tolerance * abs(b) | a == b))
}

expect_true <- function(object, info = NULL, label = NULL) {
  if (isTRUE(object)) return(passed(object))
  testthat::expect_true(object, info = info, label = label %||% text_of(substitute(object)))
}

expect_false <- function(object, info = NULL, label = NULL) {
  if (isFALSE(object)) return(passed(object))
  testthat::expect_false(object, info = info, label = label %||% text_of(substitute(object)))
}

of_order <- function(compare, otherwise) {
  function(object, expected, label = NULL, expected.label = NULL) {
    if (isTRUE(compare(object, expected))) return(passed(object))
    otherwise(object, expected, label = label %||% text_of(substitute(object)), expected.label = expected.label %||% text_of(substitute(expected)))
  }
}

expect_lt <- of_order(`<`, testthat::expect_lt)
expect_lte <- of_order(`<=`, testthat::expect_lte)
expect_gt <- of_order(`>`, testthat::expect_gt)
expect_gte <- of_order(`>=`, testthat::expect_gte)

expect_null <- function(object, info = NULL, label = NULL) {
  if (is.null(object)) return(passed(object))
  testthat::expect_null(object, info = info, label = label %||% text_of(substitute(object)))
}

expect_length <- function(object, n) {
  if (length(object) == n) return(passed(object))
  testthat::expect_length(object, n)
}

expect_named <- function(object, expected, ...) {
  if (!missing(expected) && identical(names(object), expected)) return(passed(object))
  testthat::expect_named(object, expected, ...)
}

# what pp_check() plots
check_of <- function(fit, ...) bayesplot::pp_check(fit, ...)$data

# the tables behind plots
calibration_data <- function(x, type = "ecdf_diff", ...) plot(x, type, ...)$data
shrinkage_data <- function(fit, parameter = NULL, ...) plot(fit, "shrinkage", parameter = parameter, ...)$data
survival_data <- function(fit, ...) plot(fit, "survival", ...)$data
table_data <- function(fit, margin = NULL, level = 0.9) plot(fit, "table", margin = margin, level = level)$data
prior_data <- function(fit, ...) plot(fit, "prior", ...)$data
predictive_data <- function(...) getFromNamespace("predictive_data", "noiseaware")(...)

# What chains report of their moves can be: shares are shares, trajectories have steps, and nothing is divided by a count of zero.
expect_possible_moves <- function(fit) {
  told <- Filter(is.numeric, internal("diagnostics_of")(fit))
  steps <- intersect(c("steps", "together_steps"), names(told))
  tallies <- intersect(c("chain", "passes", "divergent", "deepest", "together_divergent", "parts", "rounds"), names(told))
  least <- list(0, 1)[1L + names(told) %in% steps]
  most <- ifelse(names(told) %in% steps, 1024, ifelse(names(told) %in% tallies, 1e9, 1 + 1e-12))
  possible <- mapply(function(values, least, most) all(is.na(values) | (values >= least & values <= most)), told, least, most)
  expect_true(all(possible), label = paste(names(told)[!possible], collapse = ", "))
}
