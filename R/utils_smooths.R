# Smooths in formulas, y ~ s(x, k = 10) + z + g, and the cubic B-splines of which they consist, as in src/base/cubic_splines.h: with equal knots between the
# bounds of x.

smooth_sizes <- c(least = 6, most = 50)
most_smooth_terms <- 20

# list(response =, variable =, k =, label =, numbers =, factors =, variables =, formula =) of a formula with smooths, where `variable`, `k` and `label` have one
# entry a smooth, `numbers` the other terms, and `variables` all of them; NULL where there is no smooth. with_factors() knows which of them are `factors`.
read_smooth <- function(formula, call = caller_env()) {
  terms <- smooth_terms(formula, call)
  if (is.null(terms)) return(NULL)
  name_of <- function(side) if (is.name(side)) as.character(side) else function_label(side, call)
  smooths <- lapply(terms$smooths, read_smooth_term, name_of, call)
  variable <- vapply(smooths, `[[`, "", "variable")
  k <- vapply(smooths, `[[`, 0, "k")
  others <- vapply(terms$others, name_of, "")
  response <- name_of(formula[[2L]])
  twice <- unique(c(variable, others)[duplicated(c(variable, others))])
  if (length(twice)) stop_classed("formula", "Each variable must be in one term of {.arg formula}, but {.var {twice}} {?is/are} in several.", call = call)
  if (response %in% c(variable, others)) {
    stop_classed("formula", "The response {.var {response}} must not also be a term of {.arg formula}.", call = call)
  }
  new_smooth(response, variable, k, others)
}

# Factors follow the numbers.
with_factors <- function(smooth, factors) {
  new_smooth(smooth$response, smooth$variable, smooth$k, setdiff(smooth$numbers, factors), intersect(smooth$numbers, factors))
}

new_smooth <- function(response, variable, k, numbers, factors = character()) {
  sides <- c(Map(function(v, k) call("s", as.name(v), k = k), variable, k), lapply(c(numbers, factors), as.name))
  list(response = response, variable = variable, k = k, label = paste0("s(", variable, ")"), numbers = numbers, factors = factors,
       variables = c(response, variable, numbers, factors),
       formula = formula_text(call("~", as.name(response), Reduce(function(a, b) call("+", a, b), sides))))
}

# list(variable =, k =) of s(x, k = 10)
read_smooth_term <- function(term, name_of, call) {
  given <- as.list(term)[-1L]
  named <- names(given) %||% rep("", length(given))
  if (!identical(named, "") && !identical(named, c("", "k"))) {
    refuse_smooth(term, "It must be {.code s(x)} or {.code s(x, k = 10)}: cubic splines of one variable, with a penalty on their second differences.", call)
  }
  k <- if (length(given) == 2L) given[[2L]] else 10
  if (!is_power(k) || k < smooth_sizes[["least"]] || k > smooth_sizes[["most"]]) {
    refuse_smooth(term, "{.arg k}, the number of splines, must be a whole number from {smooth_sizes[['least']]} to {smooth_sizes[['most']]}.", call)
  }
  if (!is.name(given[[1L]]) && !is.call(given[[1L]]) || identical(given[[1L]], quote(.))) refuse_smooth(term, "It needs a variable.", call)
  list(variable = name_of(given[[1L]]), k = as.double(k))
}

# list(smooths =, others =): the terms of a formula with a smooth, but for the intercept's 1
smooth_terms <- function(formula, call) {
  if (!inherits(formula, "formula") || length(formula) != 3L) return(NULL)
  terms <- formula_leaves(formula[[3L]], chain_operands("+"), call)
  terms <- terms[!vapply(terms, function(t) identical(t, 1) || identical(t, 1L), TRUE)]
  smooths <- vapply(terms, function(t) operator_of(t) == "s", TRUE)
  if (!any(smooths)) {
    for (t in terms[vapply(terms, function(t) operator_of(t) %in% c("*", ":"), TRUE)]) {
      if (any(vapply(formula_leaves(t, product_operands, call), operator_of, "") == "s")) refuse_beside_smooth(t, call)
    }
    return(NULL)
  }
  for (t in terms[!smooths]) if (!is_single_term(t)) refuse_beside_smooth(t, call)
  if (length(terms) > most_smooth_terms) {
    stop_classed("formula", "{.arg formula} must have at most {most_smooth_terms} terms with a smooth, but has {length(terms)}.", call = call)
  }
  list(smooths = terms[smooths], others = terms[!smooths])
}

# a name, or a function such as log(z), cut(z, c(0, 1, 2)) or I(z > 0)
is_single_term <- function(term) {
  if (is.name(term)) return(!identical(term, quote(.)))
  if (is_operation(term, "I", 1L)) term <- term[[2L]]
  operator_of(term) %in% c(names(plain_steps), ending_steps, "as.factor")
}

refuse_beside_smooth <- function(term, call) {
  stop_classed("formula", c("Next to a smooth, {.arg formula} must have other smooths, numbers and factors: variables, or functions such as {.code log(z)}.",
                            x = "Another term is {.code {shorten_text(formula_text(term))}}.",
                            i = "Next to such terms, splines without a penalty are possible: {.code bs(x, knots = , Boundary.knots = )}.",
                            i = "Curves of groups can be walks over intervals: see the section Curves of {.code ?groups}."), call = call)
}

refuse_smooth <- function(term, why, call) {
  shown <- shorten_text(formula_text(term))
  why <- cli::format_inline(why, .envir = parent.frame())
  stop_classed("formula", c("A smooth of {.arg formula} must have one variable and constants, but {.code {shown}} does not.", x = "{why}"), call = call)
}

# At shares t of the way through an interval, the four splines that are not 0 there, a column each.
cubic_splines <- function(t) cbind((1 - t)^3 / 6, 2 / 3 - t^2 * (1 - t / 2), 2 / 3 - (1 - t)^2 * (1 + t) / 2, t^3 / 6)

# The largest product of two of them.
spline_product_limit <- function(i, j) {
  product <- function(t) {
    b <- cubic_splines(t)
    b[, i] * b[, j]
  }
  inner <- stats::optimize(product, c(0, 1), maximum = TRUE, tol = 1e-10)$objective
  max(inner, product(c(0, 1)))
}

# All splines, a column each, at x, which is moved to the nearer bound if it is beyond.
spline_basis <- function(x, lower, upper, k) {
  u <- pmin(pmax((x - lower) / (upper - lower), 0), 1) * (k - 3)
  interval <- pmin(floor(u), k - 4)
  out <- matrix(0, length(x), k)
  four <- cubic_splines(u - interval)
  for (j in seq_len(4L)) out[cbind(seq_along(x), interval + j)] <- four[, j]
  out
}

# Of which of them products are released, in the order of C: pairs of 1, ..., k that are less than `band` apart.
spline_pairs <- function(k, band = 3) {
  first <- rep(seq_len(k), pmin(band, k - seq_len(k) + 1))
  data.frame(first = first, second = first + sequence(pmin(band, k - seq_len(k) + 1)) - 1L)
}

# Coefficients of the splines of all smooths, of the numbers and of the dummies, a row each, from the level in the middle of the bounds, the slopes of all these
# columns, and the second differences of each smooth's coefficients. `lower` and `upper` are the columns'.
smooth_expansion <- function(smooth, lower, upper) {
  p <- length(smooth$k)
  linear <- 1L + length(lower)
  rows <- c(smooth$k, rep(1, length(lower) - p))
  out <- matrix(0, sum(rows), linear + sum(smooth$k - 2))
  for (j in seq_along(lower)) {
    at <- sum(rows[seq_len(j - 1L)]) + seq_len(rows[j])
    if (j > p) {
      out[at, 1L + j] <- 1
      next
    }
    own <- spline_expansion(lower[j], upper[j], smooth$k[j])
    out[at, c(if (j == 1L) 1L, 1L + j)] <- own[, if (j == 1L) 1:2 else 2L]
    out[at, linear + sum(smooth$k[seq_len(j - 1L)] - 2) + seq_len(rows[j] - 2)] <- own[, -(1:2)]
  }
  out
}

# Coefficients of one smooth's splines from its level, its slope and their second differences: k x k.
spline_expansion <- function(lower, upper, k) {
  differences <- diff(diag(k), differences = 2L)
  centres <- (seq_len(k) - (k + 1) / 2) * (upper - lower) / (k - 3)
  cbind(1, centres, t(differences) %*% solve(tcrossprod(differences)))
}

# of the line, then of the second differences
smooth_coefficients <- function(bound) c("(Intercept)", bound$columns$name[-1L], smooth_differences(bound$smooth))

smooth_differences <- function(smooth) unlist(Map(function(label, k) paste0(label, seq_len(k - 2)), smooth$label, smooth$k), use.names = FALSE)

smooth_taus <- function(smooth) if (length(smooth$k) == 1L) "tau" else sprintf("tau[%s]", smooth$variable)

# Columns of the coefficients but the intercept's: the covariates, and curves of the second differences. `x` has the covariates' columns.
smooth_columns <- function(bound, x) {
  smooth <- bound$smooth
  curves <- lapply(seq_along(smooth$k), function(j) {
    lower <- bound$columns$lower[1L + j]
    upper <- bound$columns$upper[1L + j]
    x[, j] <<- pmin(pmax(x[, j], lower), upper)
    spline_basis(x[, j], lower, upper, smooth$k[j]) %*% spline_expansion(lower, upper, smooth$k[j])[, -(1:2)]
  })
  out <- do.call(cbind, c(list(x), curves))
  dimnames(out) <- list(NULL, smooth_coefficients(bound)[-1L])
  out
}
