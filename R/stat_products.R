# stat_crossprod() for a formula with products and powers: totals of all distinct monomials of degree 1 and 2 in the response, the variables and the derived
# terms. In C each is the product of two earlier ones, as in stat_moments4().

# Combinations of levels that are compared with each other for the sensitivity, and columns that are multiplied with each other.
most_level_combinations <- 200
most_derived <- 300

new_products <- function(formula, bounds, rescale, outside, call) {
  said <- model_terms(formula, call)
  bounds <- check_bounds(bounds, said$variables, call)
  outside <- check_outside(outside, number_variables(said$variables, bounds), call = call)
  columns <- expand_columns(said$variables, bounds, call)
  check_response_levels(said$response, bounds, call)
  levels <- bounds[vapply(bounds, is.character, TRUE)]
  check_margins(said$terms, levels, call)
  derived <- do.call(rbind, lapply(said$terms, term_powers_of, columns, levels, call))
  powers <- product_powers(rbind(diag(nrow(columns)), derived), columns, call)
  statistic <- new_statistic("crossprod", "totals", columns = columns, levels = levels,
                             components = apply(powers, 1L, monomial_name, columns$name), formula = formula_text(formula), outside = outside, rescale = rescale,
                             powers = powers, pairs = earlier_pairs(powers, call), class = "stat_products")
  check_names_differ(statistic$components, columns, call)
  if (!all(is.finite(c(component_limits(statistic), sensitivity(statistic, "L1"), sensitivity(statistic, "L2"))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled and multiplied, but the results overflow.",
                             i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, attr(bounds, "functions"))
}

# Rows of powers of the columns: the distinct ones given, then their products. Of dummies a square is the dummy, and a product
# with another of the same factor is 0.
product_powers <- function(rows, columns, call) {
  dummy <- !is.na(columns$level)
  rows <- unique(rows)
  if (nrow(rows) > most_derived) {
    stop_classed("formula", "{.arg formula} must give at most {most_derived} columns to multiply, but gives {nrow(rows)}.", call = call)
  }
  pairs <- which(upper.tri(diag(nrow(rows)), diag = TRUE), arr.ind = TRUE)
  pairs <- pairs[order(pairs[, 1L], pairs[, 2L]), , drop = FALSE]
  products <- rows[pairs[, 1L], , drop = FALSE] + rows[pairs[, 2L], , drop = FALSE]
  products[, dummy] <- pmin(products[, dummy], 1)
  twice <- vapply(seq_len(nrow(products)), function(j) anyDuplicated(columns$variable[dummy & products[j, ] > 0]) > 0L, TRUE)
  rows <- unname(unique(rbind(rows, products[!twice, , drop = FALSE])))
  rows[order(rowSums(rows)), , drop = FALSE]
}

# For those of degree 2 and more the two earlier ones that each is the product of.
earlier_pairs <- function(powers, call) {
  degree <- rowSums(powers)
  place <- stats::setNames(seq_along(degree), apply(powers, 1L, paste, collapse = " "))
  pair <- vapply(which(degree > 1), function(j) {
    before <- which(degree < degree[j] & degree >= degree[j] / 2)
    before <- rev(before[colSums(t(powers[before, , drop = FALSE]) > powers[j, ]) == 0])
    for (first in before) {
      second <- place[paste(powers[j, ] - powers[first, ], collapse = " ")]
      if (!is.na(second)) return(c(first, second))
    }
    stop_classed("formula", c("{.arg formula} must have lower powers with higher ones, but lacks those for {.val {paste(powers[j, ], collapse = ' ')}}.",
                              i = "Add the lower power, such as {.code I(x^2)}."), call = call)
  }, c(0, 0))
  data.frame(first = pair[1L, ], second = pair[2L, ])
}

# numbers as they are multiplied; dummies are 0 and 1
multiplied_bounds <- function(statistic) {
  columns <- statistic$columns
  number <- is.na(columns$level)
  if (!statistic$rescale) return(list(lower = columns$lower, upper = columns$upper))
  list(lower = ifelse(number, -1, 0), upper = rep(1, nrow(columns)))
}

#' @export
statistic_fields.stat_products <- function(statistic) {
  columns <- statistic$columns
  ends <- multiplied_bounds(statistic)
  scaled <- statistic$rescale & is.na(columns$level)
  width <- columns$upper - columns$lower
  list(scale = ifelse(scaled, 2 / width, 1), shift = ifelse(scaled, -(columns$upper + columns$lower) / width, 0), lower = ends$lower, upper = ends$upper,
       first = statistic$pairs$first - 1, second = statistic$pairs$second - 1)
}

# none: supported() is of what constructors make by default
#' @export
variable_kinds.stat_products <- function(x) character()

#' @export
describe_statistic.stat_products <- function(statistic) {
  paste0("cross-products of ", called_formula(statistic$formula), if (statistic$rescale) ", numbers rescaled to [-1, 1]" else ", in the variables' units",
         outside_words(statistic))
}

#' @export
single_components.stat_products <- function(statistic) {
  one <- which(rowSums(statistic$powers) == 1)
  one[is.na(statistic$columns$level[max.col(statistic$powers[one, , drop = FALSE])])]
}

#' @export
component_degrees.stat_products <- function(statistic) rowSums(statistic$powers)

#' @export
component_limits.stat_products <- function(statistic) {
  ends <- multiplied_bounds(statistic)
  term_limits(statistic$powers, ends$lower, ends$upper)
}

# A record is in one combination of the factors' levels. There a component is the monomial of its numbers, or 0 where a dummy of it is. Two records
# differ in a component that both have by its range at most, in one that either has by its largest modulus. The numbers of all components are taken
# to be at their worst at once, which makes it an upper bound; the bound of a record alone is attained.
#' @export
sensitivity.stat_products <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  ends <- multiplied_bounds(statistic)
  dummy <- !is.na(statistic$columns$level)
  numbers <- statistic$powers
  numbers[, dummy] <- 0
  limits <- term_limits(numbers, ends$lower, ends$upper)
  range <- limits[, 2L] - limits[, 1L]
  far <- pmax(abs(limits[, 1L]), abs(limits[, 2L]))
  has <- active_components(statistic)
  if (!replaces(neighbours)) {
    return(if (is.null(has)) length_of(far, norm) else max(apply(has, 1L, function(a) length_of(far[a], norm))))
  }
  widest <- component_limits(statistic)
  if (is.null(has)) return(length_of(pmax(range, widest[, 2L] - widest[, 1L]), norm))
  pairs <- which(upper.tri(diag(nrow(has)), diag = TRUE), arr.ind = TRUE)
  max(apply(pairs, 1L, function(p) length_of(ifelse(has[p[1L], ] & has[p[2L], ], range, ifelse(has[p[1L], ] | has[p[2L], ], far, 0)), norm)))
}

# combinations of levels x components: are its dummies 1 there? NULL where there are too many
active_components <- function(statistic) {
  columns <- statistic$columns
  if (prod(lengths(statistic$levels)) > most_level_combinations) return(NULL)
  cells <- as.matrix(expand.grid(lapply(statistic$levels, seq_along)))
  if (length(statistic$levels) == 0L) cells <- matrix(0, 1L, 0L)
  dummies <- which(!is.na(columns$level))
  one <- vapply(dummies, function(v) {
    factor <- columns$variable[v]
    statistic$levels[[factor]][cells[, match(factor, names(statistic$levels))]] == columns$level[v]
  }, logical(nrow(cells)))
  one <- matrix(one, nrow(cells))
  (!one) %*% t(statistic$powers[, dummies, drop = FALSE]) == 0
}
