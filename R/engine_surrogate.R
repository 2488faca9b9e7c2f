# Surrogate transitions of method "augment": see src/records/shape_hmc.c.

# With so few unknown parameters non-centred moves cost less for an effective draw, unless the noise is small relative to the
# sampling variation: below the first of these, or the second where all coordinates of the totals are unknown
# (bench/dimension.R: Ju et al. at epsilon 10 and 100; bench/defaults.R); unless the release binds a mean to
# its standard deviation (R/engine_totals_bend.R); or tells means by
# their squares or products alone (R/engine_reflections.R); or the number of records is unknown (bench/unknown_n.R).
few_parameters <- 6L
small_noise <- c(0.1, 0.3)

# Coefficients of factors alone move without their responses where noise is larger than that relative to the sampling variation, and
# where the response is binary: latent variables, or tables of counts, do better.
large_noise <- 2

non_centred_serve <- function(bound, design, parts, n, unknown) {
  moving <- length(bound$moves)
  if (unknown || moving > few_parameters) return(FALSE)
  free <- sum(design$role == "free")
  all <- moving >= free * (free + 3) / 2
  parts_noise_ratio(parts, n) > small_noise[1L + all] && !length(surrogate_bend(design, parts, n)) && is.null(record_reflections(bound, parts))
}

# Their columns, see surrogate_design(); NULL where there are none: for models of continuous
# columns that are normal given the factors' dummies, or that enter the distribution of the other
# columns through a linear predictor, and releases of totals of columns and of their products.
surrogate_columns <- function(bound, parts, n, unknown) {
  design <- surrogate_design(bound)
  if (is.null(design) || (unknown && !is.null(bound$terms))) return(NULL)
  if (!any(design$role == "free") && (unknown || parts_noise_ratio(parts, n) > large_noise)) return(NULL)
  served <- all(vapply(parts, surrogate_serves, TRUE, bound = bound, design = design))
  if (served && (!is.null(bound$terms) || !non_centred_serve(bound, design, parts, n, unknown))) design
}

surrogate_serves <- function(part, bound, design) {
  statistic <- part$statistic
  smooth <- part$mechanism$kernel %in% c("absolute", "squared") || inherits(part$mechanism, "mech_tabulated")
  if (inherits(statistic, "stat_size")) return(smooth)
  if (statistic$kind == "cells") return(all(statistic$columns$name %in% design$name[design$role != "free"]))
  if (inherits(statistic, "stat_products")) return(smooth && !is.null(product_terms(part, bound)))
  statistic$kind == "totals" && smooth && !is.null(monomial_degrees(statistic))
}

# What the C code needs, an empty list where there are no such transitions. Without free columns the list describes a response's
# coefficients alone. `n`: the number of records, or about that where it is unknown; `layout` places the components (see layout_parts()).
surrogate_fields <- function(bound, parts, n, unknown, layout) {
  design <- surrogate_columns(bound, parts, n, unknown)
  if (is.null(design)) return(list())
  terms <- matrix(0, layout$dense, 6L) # components that only pad are 0
  variance <- rep_len(1, layout$dense)
  for (part in parts[vapply(parts, function(p) p$statistic$kind == "totals", TRUE)]) {
    at <- layout$where[match(part$index, layout$summed)]
    terms[at, ] <- if (inherits(part$statistic, "stat_products")) product_terms(part, bound) else normal_terms(part, design$name, design$centre, n, caller_env())
    variance[at] <- noise_variance(part$mechanism$kernel, layout$scale[at])
  }
  place <- function(role) which(design$role == role) - 1L
  column <- free_order(design)
  free <- design[column + 1L, ]
  bounds <- clamping_bounds(free$name, parts)
  first <- t(terms)
  first[1:2, ] <- match(first[1:2, ], column, nomatch = length(column) + 1L) - 1
  list(bend = if (is.null(bound$terms)) surrogate_bend(design, parts, n) else double(),
       scatter_noise = if (length(column) > 1L) scatter_noise(first, utils::head(layout$released, layout$dense), variance, length(column), n) else Inf,
       same_bounds = bounds$same && is.null(bound$terms), lower = bounds$lower - free$centre, upper = bounds$upper - free$centre,
       column = column, fixed = place("fixed"), rider = place("rider"), centre = as.double(design$centre),
       terms = as.double(t(terms)))
}

# Free columns from 0 on, in the order of their coordinates. A response that is free, the first
# column, comes last: given the others its distribution has parameters of its own.
free_order <- function(design) {
  free <- which(design$role == "free") - 1L
  if (any(design$role == "rider")) free else c(free[-1L], utils::head(free, 1L))
}

# bends of their coordinates; from the release alone, so that chains agree
surrogate_bend <- function(design, parts, n) {
  column <- free_order(design)
  free <- design[column + 1L, ]
  bounds <- clamping_bounds(free$name, parts)
  clamped <- is.finite(bounds$lower)
  if (!any(vapply(parts, function(p) is_dropped(p$statistic), TRUE))) bounds <- tightest_bounds(free$name, parts, function(s) s$columns)
  parts <- parts[vapply(parts, function(p) p$statistic$kind == "totals", TRUE)]
  if (length(parts) == 0L) return(double())
  terms <- t(do.call(rbind, lapply(parts, normal_terms, names = design$name, origin = design$centre, n = n, call = NULL)))
  terms[1:2, ] <- match(terms[1:2, ], column, nomatch = length(column) + 1L) - 1
  told <- function(field) unlist(lapply(parts, function(p) rep_len(p[[field]], length(p$value))))
  variance <- unlist(lapply(parts, function(p) rep_len(noise_variance(p$mechanism$kernel, p$scale), length(p$value))))
  totals_bend(terms, told("value"), variance, bounds$lower - free$centre, bounds$upper - free$centre, n, clamped)
}

# Between what each column is clamped, and whether all statistics agree on that. Where
# records outside the bounds are dropped nothing is clamped.
clamping_bounds <- function(names, parts) {
  dropped <- vapply(parts, function(p) is_dropped(p$statistic), TRUE)
  if (any(dropped)) return(list(lower = rep(-Inf, length(names)), upper = rep(Inf, length(names)), same = FALSE))
  columns <- do.call(rbind, lapply(parts, function(p) seen_columns(p$statistic)[c("name", "lower", "upper")]))
  c(tightest_bounds(names, parts), same = nrow(unique(columns)) == length(unique(columns$name)) && all(is.finite(unlist(columns[c("lower", "upper")]))))
}

#' @export
surrogate_design.default <- function(bound) NULL

#' @export
surrogate_design.bound_lm <- function(bound) {
  if (length(bound$model$covariates$lone)) return(NULL)
  if (!is.null(bound$terms)) return(response_design(bound))
  design <- bound$design
  if (!identical(design$name, bound$columns$name)) return(NULL)
  data.frame(name = design$name, centre = design$centre, role = ifelse(is.na(design$level), "free", "fixed"))
}

# With products or powers the response alone is normal given all other columns (src/model/derived_columns.c).
response_design <- function(bound) {
  names <- c(bound$base$name, bound$terms$functions$name, bound$design$name[bound$terms$product])
  data.frame(name = names, centre = bound$terms$fields$centre, role = rep(c("free", "fixed"), c(1L, length(names) - 1L)))
}

# As normal_terms(), of a statistic with products and powers: each component with the response is a multiple of its total, or of the total of its product with one
# of the columns. Those without it do not change when the response alone moves. NULL where there is no such column.
product_terms <- function(part, bound) {
  statistic <- part$statistic
  if (is.null(bound$terms) || !statistic$rescale) return(NULL)
  base <- bound$base$name
  powers <- statistic$powers[, match(base, statistic$columns$name), drop = FALSE]
  q <- length(base)
  before <- q + NROW(bound$terms$functions)
  of_functions <- rowSums(bound$terms$powers[bound$terms$product, -seq_len(q), drop = FALSE]) > 0
  closed <- bound$terms$fields$centre[-seq_len(before)] == 0 & vapply(bound$terms$shift, function(s) all(s == 0 | s %in% bound$base$centre), TRUE) & !of_functions
  columns <- rbind(diag(q), bound$terms$powers[bound$terms$product[closed], seq_len(q), drop = FALSE])
  at <- c(seq_len(q), before + which(closed))
  key <- function(p) paste(p, collapse = " ")
  of_y <- powers[, 1L]
  rest <- powers
  rest[, 1L] <- 0
  with <- at[match(apply(rest, 1L, key), apply(columns, 1L, key))]
  with[of_y == 2 & rowSums(rest) == 0] <- 1
  alone <- of_y == 1 & rowSums(rest) == 0
  if (any(of_y > 0 & !alone & is.na(with)) || any(of_y > 2 | (of_y == 2 & rowSums(rest) > 0))) return(NULL)
  scale <- statistic_fields(statistic)$scale[match(base, statistic$columns$name)]
  coefficient <- apply(t(powers), 2L, function(p) prod(scale^p)) * (of_y > 0)
  second <- ifelse(alone | of_y == 0, 1, with)
  terms <- cbind(0, second - 1, 0, ifelse(alone, coefficient, 0), 0, ifelse(alone, 0, coefficient))
  terms[part$at, , drop = FALSE]
}

#' @export
surrogate_design.bound_mvnormal <- surrogate_design.bound_lm

#' @export
surrogate_design.bound_normal <- function(bound) {
  data.frame(name = bound$columns$name, centre = bound$spec$fields$centre, role = "free")
}

#' @export
surrogate_design.bound_glm <- function(bound) {
  if (!is.null(bound$terms)) return(NULL)
  design <- surrogate_design.bound_lm(bound)
  if (is.null(design) || (is_binary_family(bound$model) && all(design$role[-1L] == "fixed"))) return(NULL)
  design$role[1L] <- "rider"
  design
}
