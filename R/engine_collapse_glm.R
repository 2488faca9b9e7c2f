# Method "collapse", generalised linear models of a response with two or more levels and factors only: the log-linear tables of src/table/theta_nuts.c, with
# the probabilities of src/model/glm_as_table.c. Factors may depend on each other.

# Combinations of all levels
most_glm_cells <- 1e5

# What method "collapse" takes a bound model for: itself, or a table with the `model_spec` of its probabilities.
as_table <- function(bound) UseMethod("as_table")

#' @export
as_table.default <- function(bound) bound

# The factors in the order of the model's covariates, then the response, whose code is the fastest.
#' @export
as_table.bound_glm <- function(bound) if (is_binary_family(bound$model)) response_table(bound) else bound

#' @export
as_table.bound_categories <- function(bound) response_table(bound)

response_table <- function(bound) {
  design <- bound$base
  factors <- unique(design$variable[-1L])
  if (inherits(bound$model$prior, "fixed") || anyNA(design$level[-1L])) return(bound)
  response <- design$variable[1L]
  levels <- c(bound$levels[factors], stats::setNames(list(bound$levels[[response]] %||% c("0", "1")), response))
  cells <- prod(lengths(levels))
  if (cells > most_glm_cells) return(bound)
  part <- list(children = seq_along(levels), parents = integer(), host = 0, codes = all_codes(lengths(levels)))
  columns <- data.frame(name = names(levels), variable = names(levels))
  table <- bind_parts(bound$model, columns, levels, list(part), list(matrix(1, 1L, cells)), list(NULL), bound$parameters,
                      class = c("bound_glm_table", "bound_cells", "bound_table"))
  table$model_spec <- list(name = bound$spec$name, fields = c(bound$spec$fields, cells = as.double(cells)))
  table
}

# Are the probabilities of a table drawn with the coefficients that they are functions of, not integrated out?
moves_theta <- function(bound) inherits(bound, "bound_cells")

# Probabilities of the possible cells of such a table: draws x cells.
cell_probabilities <- function(bound, draws) t(.Call(ffi_model_cells, bound$spec, cell_coordinates(bound, draws[, bound$parameters, drop = FALSE])))

# The coordinates of draws: coordinates x draws
cell_coordinates <- function(bound, draws) UseMethod("cell_coordinates")

#' @export
cell_coordinates.bound_cells <- function(bound, draws) .Call(ffi_model_invert, bound$spec, t(draws))

#' @export
cell_coordinates.bound_loglinear <- function(bound, draws) t(draws)

# Every total is a query of the counts of all combinations.
#' @export
release_for.bound_glm_table <- function(bound, release) {
  codes <- bound$parts[[1L]]$codes
  counts <- stat_counts(stats::reformulate(paste(vapply(names(bound$levels), format_name, ""), collapse = ":")), bound$levels)
  in_queries(release, function(statistic) {
    columns <- statistic$columns
    value <- vapply(seq_len(nrow(columns)), function(j) {
      code <- codes[, columns$variable[j]]
      if (is.na(columns$level[j])) code else as.double(code == match(columns$level[j], bound$levels[[columns$variable[j]]]) - 1)
    }, numeric(nrow(codes)))
    queries_of_cells(statistic, counts, matrix(as.double(value), nrow(codes)))
  })
}

# The release with its statistics of totals as others that `as_queries` makes of them
in_queries <- function(release, as_queries) {
  converted <- function(statistic) if (statistic$kind != "totals" || inherits(statistic, "stat_size")) statistic else as_queries(statistic)
  release$statistic <- if (is_several(release$statistic)) lapply(release$statistic, converted) else converted(release$statistic)
  release
}

# A statistic of totals as queries of counts: `x` has a record for each cell of these, in the statistic's columns.
queries_of_cells <- function(statistic, counts, x) {
  each <- .Call(ffi_stat_eval, statistic_spec(statistic), x)
  used <- each != 0
  used[nrow(x), colSums(used) == 0] <- TRUE
  linear_of(counts, list(names = statistic$components, length = colSums(used), column = row(used)[used], weight = each[used]))
}

#' @export
moves_counts.bound_glm <- function(bound) inherits(as_table(bound), "bound_table")

#' @export
moves_counts.bound_categories <- moves_counts.bound_glm

#' @export
collapse_statistics.model_glm <- function(model) c("stat_counts", "stat_crossprod", "stat_moments4", "stat_sums", "stat_custom")

#' @export
collapse_statistics.model_logistic <- collapse_statistics.model_glm

# Totals of a 0/1 variable are queries of the counts of 0 and of 1.
#' @export
release_for.bound_bernoulli <- function(bound, release) {
  if (!bound$number) return(release)
  counts <- stat_counts(stats::reformulate(format_name(bound$columns$name)), bound$levels)
  in_queries(release, function(statistic) queries_of_cells(statistic, counts, matrix(c(0, 1))))
}
