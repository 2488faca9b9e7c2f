# Moments of tables of counts for method "clt": see src/clt/moments_counts.c.

#' @export
clt_distribution.bound_categorical <- function(bound, release, call) {
  parts <- release_parts(release)
  if (!all(vapply(parts, function(p) inherits(p$statistic, "stat_counts"), TRUE))) refuse_clt(bound, release, call)
  variables <- bound$columns$name
  levels <- lengths(bound$levels)
  margins <- unlist(lapply(parts, function(p) lapply(p$statistic$margins, match, variables)), recursive = FALSE)
  # the complete-data counts: of the class, and of each feature by class
  wanted <- c(list(1L), lapply(seq_along(variables)[-1L], function(v) c(1L, v)))
  given <- function(set) which(vapply(margins, function(m) all(set %in% m), TRUE))[1L]
  for (set in rev(wanted)) if (is.na(given(set))) margins <- c(margins, list(set))
  cells <- lapply(margins, margin_levels, levels)
  cell_levels <- do.call(rbind, cells)
  first <- cumsum(c(0, vapply(cells, nrow, 0)))
  pairs <- Map(function(set, offset) {
    m <- given(set)
    digits <- cells[[m]][, set, drop = FALSE]
    to <- if (length(set) == 1L) digits[, 1L] else digits[, 1L] * levels[set[2L]] + digits[, 2L]
    cbind(first[m] + seq_len(nrow(digits)) - 1, offset + to)
  }, wanted, cumsum(c(0, levels[1L], levels[1L] * levels[-1L]))[seq_along(wanted)])
  pairs <- do.call(rbind, pairs)
  index <- unlist(lapply(parts, `[[`, "index"))
  fields <- list(levels = as.double(levels), released = as.double(length(index)),
                 margin = as.double(rep(seq_along(cells) - 1, vapply(cells, nrow, 0L))), level = as.double(t(cell_levels)),
                 complete_cell = as.double(pairs[, 1L]), part_of = as.double(pairs[, 2L]))
  list(spec = list(name = "counts", fields = fields, model = bound$spec), index = index)
}

# a row for each cell of a margin, the last variable fastest: its level of every
# variable, from 0, or -1
margin_levels <- function(margin, levels) {
  digits <- as.matrix(expand.grid(rev(lapply(levels[margin], function(l) seq_len(l) - 1))))
  out <- matrix(-1, nrow(digits), length(levels))
  out[, margin] <- digits[, rev(seq_along(margin))]
  out
}

#' @export
clt_statistics.model_categorical <- function(model) "stat_counts"

#' @export
clt_statistics.model_naive_bayes <- clt_statistics.model_categorical

#' @export
clt_statistics.model_bernoulli <- function(model) c("stat_counts", "stat_sums", "stat_crossprod", "stat_moments4", "stat_custom")
