# Method "collapse", normal totals: see src/totals/normal_totals_chain.c.

# where the model measures the columns from; NULL if its records are not normal
collapse_origin <- function(bound) .Call(ffi_collapse_origin, bound$spec)

normal_distribution <- function(bound, parts, n, prior_n, call) {
  origin <- collapse_origin(bound)
  terms <- do.call(rbind, lapply(parts, normal_terms, names = bound$columns$name, origin = origin, n = n, call = call))
  check_normal_exact(parts, terms, n, prior_n, nrow(bound$columns), call)
  list(family = "normal", fields = tightest_bounds(bound$columns$name, parts), component = list(terms = terms))
}

# Exact are totals of columns and of their squares: each is one of the sampler's coordinates then.
check_normal_exact <- function(parts, terms, n, prior_n, columns, call) {
  exact <- Filter(function(p) is_exact(p$mechanism) && !inherits(p$statistic, "stat_size"), parts)
  if (length(exact) == 0L) return(invisible())
  if (!is.null(prior_n)) stop_classed("method", "Method {.val collapse} can respect exact totals of normal records only if their number is known.", call = call)
  for (p in exact) {
    own <- terms[p$index, , drop = FALSE]
    if (any(own[, 6L] != 0 & own[, 1L] != own[, 2L])) {
      stop_collapse_part(p, "exact totals of variables and of their squares, not of products of two", call)
    }
  }
  told <- data.frame(value = unlist(lapply(exact, `[[`, "value")), terms[unlist(lapply(exact, `[[`, "index")), , drop = FALSE])
  names(told)[-1L] <- c("column", "second", "constant", "first", "other", "product")
  total <- told[told$product == 0, ]
  mean <- (total$value - total$constant) / total$first
  square <- told[told$product != 0, ]
  linear <- square$first + square$other
  # the largest scatter that the squares leave, or the scatter at the exact total
  at <- mean[match(square$column, total$column)]
  at <- ifelse(is.na(at), -n * linear / square$product / 2, at)
  scatter <- (square$value - square$constant - linear * at) / square$product - at^2 / n
  if (nrow(square) && n <= columns) {
    stop_classed("method", "Method {.val collapse} can respect exact totals of squares if there are more than {columns} records, the number of variables.", call = call)
  }
  same <- function(key, value) all(abs(value - value[match(key, key)]) <= 1e-9 * pmax(1, abs(value)))
  if (!same(total$column, mean) || !same(square$column, scatter) || any(scatter <= 0)) {
    stop_classed("value", "No {format_size(n)} different records have all of the exact totals.", call = call)
  }
}

# Components in terms of the totals T of the columns and of their products P,
# both from the origin, a row each: i, j, then constant + first T_i + second T_j +
# product P_ij.
normal_terms <- function(part, names, origin, n, call) {
  statistic <- part$statistic
  if (inherits(statistic, "stat_size")) return(cbind(0, 0, n, 0, 0, 0)[part$at, , drop = FALSE])
  column <- match(statistic$columns$name, names)
  degree <- monomial_degrees(statistic)
  if (is.null(degree)) {
    stop_collapse_part(part, "totals of the variables and of products of two of them", call)
  }
  # a column is scale * (x - origin) + shift
  fields <- statistic_fields(statistic)
  scale <- rep_len(fields$scale, length(column))
  shift <- scale * origin[column] + fields$shift
  i <- degree$first
  j <- degree$second
  single <- is.na(j)
  j[single] <- i[single]
  terms <- cbind(column[i], column[j], n * shift[i] * shift[j], scale[i] * shift[j], scale[j] * shift[i], scale[i] * scale[j])
  terms[single, 3:6] <- cbind(n * shift[i], scale[i], 0, 0)[single, ]
  terms[, 1:2] <- terms[, 1:2] - 1
  terms[part$at, , drop = FALSE]
}

# Is noise small relative to the scatter of the variables, so that coordinates of the scatter work better (src/totals/scatter_coordinates.c)?
# Below 0.6 none of the scatter comes near 0. At 0.5 such coordinates give up to 60% more effective
# draws a second, at 0.85 some 10%. From the release alone: chains agree.
tells_scatter <- function(problem, bound) {
  d <- nrow(bound$columns)
  if (problem$family != "normal" || d == 1L || length(bound$levels) || !is.null(problem$prior_n) || "exact" %in% problem$kernel ||
      problem$n <= d) return(FALSE)
  scatter_noise(matrix(problem$fields$terms, 6L), problem$released, noise_variance(problem$kernel, problem$scale), d, problem$n) < 0.6
}

# bends of the coordinates of the totals (R/engine_totals_bend.R), where these are M and F themselves
# `clamped`: whether each column is
collapse_bend <- function(problem, bound, clamped) {
  if (problem$family != "normal" || length(bound$levels) || !is.null(problem$fields$innovates) || "exact" %in% problem$kernel ||
      problem$n <= nrow(bound$columns)) return(double())
  origin <- collapse_origin(bound)
  range <- declared_range(bound, problem$fields)
  totals_bend(matrix(problem$fields$terms, 6L), problem$released, noise_variance(problem$kernel, problem$scale),
              range$lower - origin, range$upper - origin, problem$n, clamped)
}

# of each column the range that clamps it, or else that in which it was declared to lie
declared_range <- function(bound, bounds) {
  list(lower = ifelse(is.finite(bounds$lower), bounds$lower, bound$columns$lower),
       upper = ifelse(is.finite(bounds$upper), bounds$upper, bound$columns$upper))
}

# How far from 0 the eigenvalues of noise alone on the scatter of columns 1 to d would reach, in units of its diagonal: the eigenvalues of a
# random symmetric matrix with d columns reach to 2 sqrt(d) standard deviations of an entry, taken of the mean variance (Wigner).
# `terms`: 6 for each component, see normal_terms(). Inf where a square or a product is not known, or a square is all noise.
scatter_noise <- function(terms, value, variance, d, n) {
  # means of what components say about each place, by precision, and their variances
  told <- function(chosen, place, size, coefficient, value) {
    add <- function(x) drop(rowsum(c(x[chosen], double(size)), c(place[chosen], seq_len(size))))
    precision <- add(coefficient^2 / variance)
    list(mean = unname(add(value * coefficient / variance) / precision), variance = unname(1 / precision))
  }
  column <- terms[1:2, , drop = FALSE] + 1
  inside <- column[1L, ] <= d & column[2L, ] <= d
  squares <- terms[6L, ] != 0
  value <- value - terms[3L, ]
  total <- told(inside & !squares & terms[4L, ] != 0, column[1L, ], d, terms[4L, ], value)$mean
  total[is.na(total)] <- 0
  value <- value - terms[4L, ] * total[column[1L, ]] - terms[5L, ] * total[column[2L, ]]
  place <- pmin(column[1L, ], column[2L, ]) + d * (pmax(column[1L, ], column[2L, ]) - 1)
  product <- told(inside & squares, place, d^2, terms[6L, ], value)
  diagonal <- seq_len(d) + d * (seq_len(d) - 1)
  scatter <- product$mean[diagonal] - total^2 / n
  noise <- matrix(product$variance, d)
  noise[lower.tri(noise)] <- t(noise)[lower.tri(noise)]
  if (isTRUE(all(scatter > 0))) 2 * sqrt(sum(noise / outer(scatter, scatter)) / d) else Inf
}

#' @export
collapse_statistics.model_lm <- function(model) c("stat_crossprod", "stat_sums")

#' @export
collapse_statistics.model_normal <- collapse_statistics.model_lm

#' @export
collapse_statistics.model_mvnormal <- collapse_statistics.model_lm

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_fewest.engine_collapse_normal <- function(engine, bound) least_size(bound)

#' @export
engine_lines.engine_collapse_normal <- function(engine, fit) c(outside_lines(fit), hamiltonian_lines(diagnostics_of(fit)))

#' @export
engine_diagnostics.engine_collapse_normal <- function(engine, fit, told) {
  row <- cbind(hamiltonian_row(told), within = told$within / told$transitions)
  if (length(fit$bound$levels)) row$table <- share_accepted(told, "table")
  with_records(row, fit, told)
}

#' @export
engine_moves.engine_collapse_normal <- function(engine, fit, rows) {
  paste0("totals   ", hamiltonian_words(rows$steps, rows$mean),
         if (!is.null(rows$table)) sprintf("; cross-table of the factors: %s", share_words(rows$table)), size_words(fit, rows))
}
