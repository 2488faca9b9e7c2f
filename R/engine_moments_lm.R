# What src/clt/moments_lm.c needs to know of a regression and its cross-products.

#' @export
clt_distribution.bound_lm <- function(bound, release, call) {
  check_normal_covariates(bound, "clt", call)
  part <- crossprod_part(bound, release, call)
  fields <- c(crossprod_fields(bound, part$statistic), bound$spec$fields[c("continuous", "factor_first", "factor_levels")])
  if (!is.null(bound$moments)) fields <- c(fields, fourth_fields(bound$moments, fields))
  list(spec = list(name = "lm", fields = fields, model = bound$spec), index = part$index, innovations = TRUE)
}

# the one part of a regression's release with cross-products
crossprod_part <- function(bound, release, call) {
  parts <- release_parts(release)
  of_class <- function(class) vapply(parts, function(p) inherits(p$statistic, class), TRUE)
  regression <- which(of_class("stat_crossprod"))
  # fourth moments are no data where they stand for the covariates' distribution
  used <- of_class("stat_crossprod") | (of_class("stat_moments4") & !is.null(bound$moments))
  if (length(regression) != 1L || !all(used)) refuse_clt(bound, release, call)
  parts[[regression]]
}

# Units and bounds of the model's columns, and where the statistic has their products.
crossprod_fields <- function(bound, statistic) {
  released <- open_fields(statistic, statistic_fields(statistic))
  q <- nrow(bound$columns)
  column <- match(bound$columns$name, statistic$columns$name)
  product <- matrix(0L, q, q) # 0: left out, products of dummies of one factor
  pairs <- statistic$pairs
  product[cbind(pairs$first, pairs$second)] <- product[cbind(pairs$second, pairs$first)] <- q + seq_len(nrow(pairs))
  # 1 stands for the constant in the pairs, for the response in the columns
  pairs <- product_pairs(q - 1L)
  at <- c(ifelse(pairs[, 1L] == 1L, column[pairs[, 2L]], product[cbind(column[pairs[, 1L]], column[pairs[, 2L]])]),
          column[1L], product[column[1L], column[-1L]], product[column[1L], column[1L]])
  list(scale = released$scale[column], shift = released$shift[column], centre = bound$spec$fields$centre,
       lower = released$lower[column], upper = released$upper[column], at = as.double(at - 1L))
}

# Cov(w) and its root in released units. One column: x' = a x + b of the
# moments' own units, and so x_i' x_j' = a_i a_j x_i x_j + a_i b_j x_i + b_i a_j x_j + b_i b_j.
fourth_fields <- function(moments, fields) {
  p <- length(moments$names)
  if (p == 0L) return(NULL)
  a <- c(1, fields$scale[-1L] / moments$scale)
  b <- c(0, fields$shift[-1L] - fields$scale[-1L] * moments$shift / moments$scale)
  pairs <- product_pairs(p)
  rows <- seq_len(nrow(pairs))
  map <- matrix(0, nrow(pairs), nrow(pairs))
  map[cbind(rows, rows)] <- a[pairs[, 1L]] * a[pairs[, 2L]]
  for (side in 1:2) {
    other <- 3 - side
    inner <- pairs[, 1L] > 1L
    at <- cbind(rows, pairs[, side] - 1L)[inner, , drop = FALSE]
    map[at] <- map[at] + (a[pairs[, side]] * b[pairs[, other]])[inner]
  }
  fourth <- map %*% moments$fourth %*% t(map)
  list(fourth = as.double(fourth), root = as.double(semi_root(fourth)))
}

# R with R R' = a, a positive semidefinite: as many columns as its rank
semi_root <- function(a) {
  unit <- sqrt(diag(a))
  factor <- suppressWarnings(chol(a / outer(unit, unit), pivot = TRUE))
  rank <- attr(factor, "rank")
  unit * t(factor[seq_len(rank), order(attr(factor, "pivot")), drop = FALSE])
}

# The moments in the order of the model's covariates.
bind_moments <- function(bound, call) {
  moments <- bound$model$covariates
  if (is_open_moments(moments)) {
    stop_classed("method", c("{.code covariate_moments()} without draws must be used with method {.val clt} and a release of {.fn stat_moments4}.",
                             i = "It does not say how records arise."), call = call)
  }
  covariates <- bound$columns$name[-1L]
  check_no_factors(names(bound$levels), call)
  if (!setequal(moments$names, covariates)) {
    stop_classed("moments", c("{.fn covariate_moments} must have the model's covariates.",
                              x = "The model has {.var {covariates}}, the moments {.var {moments$names}}."), call = call)
  }
  order <- match(covariates, moments$names)
  p <- length(order)
  pairs <- product_pairs(p)
  moved <- c(1L, order + 1L)
  place <- matrix(0L, p + 1L, p + 1L)
  place[pairs] <- place[pairs[, 2:1]] <- seq_len(nrow(pairs))
  rows <- place[cbind(moved[pairs[, 1L]], moved[pairs[, 2L]])]
  moments$names <- covariates
  moments$scale <- moments$scale[order]
  moments$shift <- moments$shift[order]
  moments$mean <- moments$mean[order]
  moments$fourth <- unname(moments$fourth)[rows, rows, drop = FALSE]
  moments
}

check_no_factors <- function(factors, call) {
  if (length(factors)) {
    stop_classed("moments", c("{.fn covariate_moments} must be of numbers: joint moments of the factor{?s} {.var {factors}} and the numbers are missing.",
                              i = "Give the numbers a distribution, {.fn prior_niw} or {.fn fixed}; that of a factor is {.arg levels}."), call = call)
  }
}

# the mean and covariance among them, for the model's C code
moments_distribution <- function(moments) {
  x <- seq_along(moments$names)
  list(mean = fixed((moments$mean - moments$shift) / moments$scale),
       cov = fixed(moments$fourth[x, x, drop = FALSE] / outer(moments$scale, moments$scale)))
}

# Methods that draw records, or move their totals exactly, need a distribution of the
# covariates.
check_records_distribution <- function(bound, call = caller_env()) {
  if (!is.null(bound$moments)) {
    stop_classed("method", c("Records can be drawn only from a model with a distribution of its covariates; {.fn covariate_moments} has none.",
                             i = "Give {.arg covariates} a {.fn prior_niw} or a fixed mean and covariance, or use method {.val clt}."), call = call)
  }
}

#' @export
clt_statistics.model_lm <- function(model) "stat_crossprod"

#' @export
clt_leaves_out_bounds.bound_lm <- function(bound) TRUE

#' @export
clt_takes_totals.bound_lm <- function(bound) is.null(bound$moments)
