# stat_crossprod(weights = ): cross-products of the weight and of its products with what an unweighted statistic of the same formula sums. These products
# are numbers of their own, as functions of variables are: derived_records() computes them for the owner, and a model of the release describes them.

# `plain`: the unweighted statistic; `weight`: see weight_range()
weighted_crossprod <- function(plain, weight, call) {
  range <- weight$range
  weight <- weight$variable
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
                             outside = "none", rescale = plain$rescale, pairs = pairs,
                             weighted = c(list(weight = weight, plain = plain, used = used, labels = labels), statistic_fields(plain)[c("scale", "shift")]),
                             class = c("stat_weighted", "stat_crossprod"))
  check_names_differ(statistic$components, columns, call)
  if (!all(is.finite(c(unlist(statistic_fields(statistic)), sensitivity(statistic, "L1"), sensitivity(statistic, "L2"))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled and multiplied, but the results overflow.",
                             i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, functions)
}

# The `variable` of the weights and its `range`.
weight_range <- function(weights, formula, bounds, call) {
  if (has_products(formula)) {
    stop_classed("formula", c("{.arg formula} must have no products and no powers if there are {.arg weights}.",
                              i = "Compute them in the data first, or use a function of one variable, see {.help noiseaware_terms}."), call = call)
  }
  ok <- inherits(weights, "formula") && length(weights) == 2L && is.name(weights[[2L]]) && !identical(weights[[2L]], quote(.))
  if (!ok) stop_argument("weights", "a formula with the variable of the weights, such as ~ w", describe(weights), "formula", call)
  weight <- as.character(weights[[2L]])
  if (weight %in% base_variables(formula_variables(formula, call))) {
    stop_classed("formula", "The weights {.var {weight}} must not also be a variable of {.arg formula}.", call = call)
  }
  range <- check_bounds(bounds[intersect(names(bounds), weight)], weight, call)[[1L]]
  if (is.character(range) || range[1L] < 0) {
    was <- if (is.character(range)) "levels" else paste0("c(", paste(format_number(range), collapse = ", "), ")")
    stop_argument(paste0("bounds$", weight), "the smallest and the largest weight, not negative", was, "bounds", call)
  }
  list(variable = weight, range = range)
}

# The statistic of weighted products among the statistics of a release; NULL if there is none.
weighted_statistic <- function(statistic) {
  for (s in if (is_several(statistic)) statistic else list(statistic)) {
    while (!is.null(s$statistic)) s <- s$statistic
    if (!is.null(s$weighted)) return(s)
  }
}

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
