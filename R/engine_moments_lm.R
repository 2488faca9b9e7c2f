# What src/clt/moments_lm_class.c needs to know about a regression and its cross-products.

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
  # fourth moments are no data where they describe the covariates' distribution
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
  # 1 is the constant in the pairs, the response in the columns
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

#' @export
clt_statistics.model_lm <- function(model) "stat_crossprod"

#' @export
clt_leaves_out_bounds.bound_lm <- function(bound) TRUE

#' @export
clt_takes_totals.bound_lm <- function(bound) is.null(bound$moments)
