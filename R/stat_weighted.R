# stat_crossprod(weights = ): cross-products of the weight and of its products with what an unweighted statistic of the same formula sums. These products
# are numbers of their own, as functions of variables are: derived_records() computes them for the owner, and a model of the release describes them.

weighted_crossprod <- function(formula, bounds, rescale, outside, weights, call) {
  if (has_products(formula)) {
    stop_classed("formula", c("{.arg formula} must have no products and no powers if there are {.arg weights}.",
                              i = "Compute them in the data first, or use a function of one variable, see {.help noiseaware_terms}."), call = call)
  }
  weight <- weight_variable(weights, formula, call)
  range <- check_bounds(bounds[intersect(names(bounds), weight)], weight, call)[[1L]]
  if (is.character(range) || range[1L] < 0) {
    was <- if (is.character(range)) "levels" else paste0("c(", paste(format_number(range), collapse = ", "), ")")
    stop_argument(paste0("bounds$", weight), "the smallest and the largest weight, not negative", was, "bounds", call)
  }
  plain <- stat_crossprod(formula, bounds[setdiff(names(bounds), weight)], rescale, outside)
  functions <- plain$functions
  plain$functions <- NULL
  # the square of the response is needed neither for coefficients nor for their design variance
  used <- setdiff(seq_along(plain$components), nrow(plain$columns) + 1L)
  limits <- rbind(range, t(apply(component_limits(plain)[used, , drop = FALSE], 1L, function(ends) range(outer(range, ends)))))
  labels <- paste0(weight, "*", gsub(":", "*", plain$components[used], fixed = TRUE))
  columns <- data.frame(name = c(weight, labels), lower = limits[, 1L], upper = limits[, 2L], variable = c(weight, labels), level = NA_character_,
                        row.names = NULL)
  pairs <- monomial_pairs(columns)
  quoted <- ifelse(columns$name == weight, weight, paste0("(", columns$name, ")"))
  square <- pairs$first == pairs$second
  pairs$name <- ifelse(square, paste0(quoted[pairs$first], "^2"), paste0(quoted[pairs$first], ":", quoted[pairs$second]))
  statistic <- new_statistic("crossprod", "totals", columns = columns, levels = list(), components = c(columns$name, pairs$name), formula = plain$formula,
                             outside = "none", rescale = rescale, pairs = pairs, weighted = list(weight = weight, plain = plain, used = used, labels = labels),
                             class = c("stat_weighted", "stat_crossprod"))
  check_names_differ(statistic$components, columns, call)
  if (!all(is.finite(c(unlist(statistic_fields(statistic)), sensitivity(statistic, "L1"), sensitivity(statistic, "L2"))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled and multiplied, but the results overflow.",
                             i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, functions)
}

weight_variable <- function(weights, formula, call) {
  ok <- inherits(weights, "formula") && length(weights) == 2L && is.name(weights[[2L]]) && !identical(weights[[2L]], quote(.))
  if (!ok) stop_argument("weights", "a formula with the variable of the weights, such as ~ w", describe(weights), "formula", call)
  weight <- as.character(weights[[2L]])
  if (weight %in% base_variables(formula_variables(formula, call))) {
    stop_classed("formula", "The weights {.var {weight}} must not also be a variable of {.arg formula}.", call = call)
  }
  weight
}

# The statistic of weighted products among those of a release; NULL if there is none.
weighted_statistic <- function(statistic) {
  for (s in if (is_several(statistic)) statistic else list(statistic)) {
    while (!is.null(s$statistic)) s <- s$statistic
    if (!is.null(s$weighted)) return(s)
  }
}

# As it is of the variables that records have.
of_raw_variables <- function(statistic) {
  if (is_several(statistic)) return(lapply(statistic, of_raw_variables))
  of <- statistic$weighted
  if (is.null(of)) return(statistic)
  own <- !statistic$columns$name %in% of$labels # the weight, and the groups
  statistic$columns <- rbind(of$plain$columns, statistic$columns[own, ])
  statistic$levels <- c(of$plain$levels, statistic$levels)
  statistic
}

# Records with the weighted products. Those of a model have them.
weighted_records <- function(data, statistic, call, name) {
  of <- statistic$weighted
  plain <- of$plain
  if (is.null(of) || !is.data.frame(data) || !any(c(plain$columns$variable, of$weight) %in% names(data)) || all(of$labels %in% names(data))) return(data)
  columns <- rbind(plain$columns, statistic$columns[match(of$weight, statistic$columns$name), ])
  x <- record_matrix(data, columns, plain$levels, call, name, empty = TRUE)
  each <- function(v) rep(v, each = nrow(x))
  x[] <- pmin(pmax(x, each(columns$lower)), each(columns$upper))
  fields <- statistic_fields(plain)
  value <- x[, -ncol(x), drop = FALSE] * each(fields$scale) + each(fields$shift)
  value <- cbind(value, value[, plain$pairs$first, drop = FALSE] * value[, plain$pairs$second, drop = FALSE])
  data[of$labels] <- as.data.frame(x[, ncol(x)] * value[, of$used, drop = FALSE])
  data
}

# draws x columns x columns: the weighted cross-product of (1, columns) in the variables' own units, from draws of (weight, weighted products). It is
# linear in these.
weighted_moments <- function(statistic, values) {
  of <- statistic$weighted
  size <- length(of$plain$components)
  each <- lapply(0:length(of$used), function(k) crossprod_moments(of$plain, replace(numeric(size), of$used[k], 1), as.double(k == 0L)))
  moments <- values[, c(of$weight, of$labels), drop = FALSE] %*% t(vapply(each, as.vector, numeric(length(each[[1L]]))))
  array(moments, c(nrow(values), dim(each[[1L]])), c(list(NULL), dimnames(each[[1L]])))
}

#' @export
narrow_statistic.stat_weighted <- function(statistic, variables) narrow_statistic.default(statistic, variables)

#' @export
describe_statistic.stat_weighted <- function(statistic) {
  of <- statistic$weighted
  paste0("cross-products of ", called_formula(statistic$formula), ", weighted by ", of$weight, if (statistic$rescale) ", rescaled to [-1, 1]" else
           ", in the variables' units", if (nzchar(outside_words(of$plain))) outside_words(of$plain) else ", variables and weights clamped to the bounds")
}

#' @export
statistic_json.stat_weighted <- function(statistic) {
  of <- statistic$weighted
  json <- statistic_json(of$plain)
  json$bounds[[of$weight]] <- exact_numbers(unlist(statistic$columns[1L, c("lower", "upper")], use.names = FALSE))
  c(json, list(weights = of$weight))
}

stat_weighted_from_json <- function(x, bounds, outside, refuse, claim) {
  if (!checkmate::test_string(x$weights, min.chars = 1L)) refuse("The statistic's weights must be the name of a variable.")
  # the products of two of the columns
  columns <- sum(json_columns(bounds[setdiff(names(bounds), x$weights)]))
  claim((columns + 1)^2 * (columns + 2)^2 / 8)
  stat_crossprod(json_formula(x$formula, refuse), bounds, rescale = x$rescale, outside = outside,
                 weights = stats::as.formula(call("~", as.name(x$weights)), baseenv()))
}
