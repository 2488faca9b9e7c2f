# Smooths in formulas, y ~ s(x, k = 10), and the cubic B-splines of which they consist, with equal knots between the bounds of x, as in src/base/cubic_splines.h.

smooth_sizes <- c(least = 6, most = 50)

# list(response =, variable =, k =, label =, formula =) of a formula with a smooth; NULL where there is none.
read_smooth <- function(formula, call = caller_env()) {
  term <- smooth_term(formula, call)
  if (is.null(term)) return(NULL)
  given <- as.list(term)[-1L]
  named <- names(given) %||% rep("", length(given))
  if (!identical(named, "") && !identical(named, c("", "k"))) {
    refuse_smooth(term, "It must be {.code s(x)} or {.code s(x, k = 10)}: cubic splines of one variable, with a penalty on their second differences.", call)
  }
  k <- if (length(given) == 2L) given[[2L]] else 10
  if (!is_power(k) || k < smooth_sizes[["least"]] || k > smooth_sizes[["most"]]) {
    refuse_smooth(term, "{.arg k}, the number of splines, must be a whole number from {smooth_sizes[['least']]} to {smooth_sizes[['most']]}.", call)
  }
  name_of <- function(side) if (is.name(side)) as.character(side) else function_label(side, call)
  if (!is.name(given[[1L]]) && !is.call(given[[1L]]) || identical(given[[1L]], quote(.))) refuse_smooth(term, "It needs a variable.", call)
  response <- name_of(formula[[2L]])
  variable <- name_of(given[[1L]])
  if (response == variable) stop_classed("formula", "The response {.var {response}} must not also be a term of {.arg formula}.", call = call)
  side <- call("s", as.name(variable), k = as.double(k))
  list(response = response, variable = variable, k = as.double(k), label = paste0("s(", variable, ")"),
       formula = formula_text(call("~", as.name(response), side)))
}

# the only term of a formula, but for the intercept's 1
smooth_term <- function(formula, call) {
  if (!inherits(formula, "formula") || length(formula) != 3L) return(NULL)
  terms <- formula_leaves(formula[[3L]], chain_operands("+"), call)
  terms <- terms[!vapply(terms, function(t) identical(t, 1) || identical(t, 1L), TRUE)]
  smooths <- vapply(terms, function(t) operator_of(t) == "s", TRUE)
  if (!any(smooths)) return(NULL)
  if (length(terms) == 1L) return(terms[[1L]])
  other <- terms[-which(smooths)[1L]][[1L]]
  stop_classed("formula", c("A smooth must be the only term of {.arg formula}.", x = "Another term is {.code {shorten_text(formula_text(other))}}.",
                            i = "Next to other terms, splines without a penalty are possible: {.code bs(x, knots = , Boundary.knots = )}.",
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

# Of which of them products are released, in the order of C.
spline_pairs <- function(k) {
  first <- rep(seq_len(k), pmin(3, k - seq_len(k) + 1))
  data.frame(first = first, second = first + sequence(pmin(3, k - seq_len(k) + 1)) - 1L)
}

# Coefficients of the splines from what the curve's level in the middle of the bounds is, its slope, and the coefficients' second differences: k x k.
spline_expansion <- function(lower, upper, k) {
  differences <- diff(diag(k), differences = 2L)
  centres <- (seq_len(k) - (k + 1) / 2) * (upper - lower) / (k - 3)
  cbind(1, centres, t(differences) %*% solve(tcrossprod(differences)))
}

# of the line, then of the second differences
smooth_coefficients <- function(smooth) c("(Intercept)", smooth$variable, paste0(smooth$label, seq_len(smooth$k - 2)))

# Columns of the coefficients but the intercept's: the variable, and curves of the second differences.
smooth_columns <- function(bound, x) {
  lower <- bound$columns$lower[2L]
  upper <- bound$columns$upper[2L]
  x <- pmin(pmax(x, lower), upper)
  curves <- spline_basis(x, lower, upper, bound$smooth$k) %*% spline_expansion(lower, upper, bound$smooth$k)[, -(1:2)]
  `colnames<-`(cbind(x, curves), smooth_coefficients(bound$smooth)[-1L])
}
