# Method "collapse", normal totals: see src/totals_normal.c.

# where the model measures the columns from; NULL if its records are not normal
collapse_origin <- function(bound) .Call(ffi_collapse_origin, bound$spec)

normal_distribution <- function(bound, parts, n, unknown, call) {
  origin <- collapse_origin(bound)
  terms <- do.call(rbind, lapply(parts, normal_terms, names = bound$columns$name, origin = origin, n = n, call = call))
  list(family = "normal", fields = tightest_bounds(bound$columns$name, parts), component = list(terms = terms))
}

# of each column over the statistics that have it
tightest_bounds <- function(names, parts) {
  columns <- do.call(rbind, lapply(parts, function(p) p$statistic$columns[c("name", "lower", "upper")]))
  each <- function(values, choose) vapply(names, function(name) choose(values[columns$name == name]), 0, USE.NAMES = FALSE)
  list(lower = each(columns$lower, max), upper = each(columns$upper, min))
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
  fields <- if (inherits(statistic, "stat_crossprod")) statistic_fields(statistic) else list(scale = 1, shift = 0)
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

# columns whose product each component is the total of, `second` NA where it is
# one alone; NULL if there are others
monomial_degrees <- function(statistic) {
  if (inherits(statistic, "stat_crossprod")) {
    q <- nrow(statistic$columns)
    return(list(first = c(seq_len(q), statistic$pairs$first), second = c(rep(NA, q), statistic$pairs$second)))
  }
  if (!inherits(statistic, "stat_sums") || any(rowSums(statistic$powers) > 2)) return(NULL)
  factors <- apply(statistic$powers, 1L, function(p) c(rep(seq_along(p), p), NA)[1:2])
  list(first = factors[1L, ], second = factors[2L, ])
}

#' @export
collapse_statistics.model_lm <- function(model) c("stat_crossprod", "stat_sums")

#' @export
collapse_statistics.model_normal <- collapse_statistics.model_lm

#' @export
collapse_statistics.model_mvnormal <- collapse_statistics.model_lm
