# Noise with holes, as that of random factors that are never close to 1: moves from one side to the other.

# The log of how much farther walks go that cross holes of tabulated noise: its range, in widths of its narrowest piece. 0: there are no holes.
farthest_walk <- function(parts) {
  tabulated <- Filter(function(part) inherits(part$mechanism, "mech_tabulated"), parts)
  max(0, vapply(tabulated, function(part) {
    piece <- noise_pieces(part$mechanism)
    range <- max(piece$to) - min(piece$from)
    if (nrow(piece) > 1L) log(2 * min(max(range / (piece$to - piece$from)), 1e3)) else 0
  }, 0))
}

# Totals and products of normal columns that may cross a hole of their noise, and those that do not: see src/records/hole_crossings.c. NULL: there are none.
hole_crossings <- function(bound, parts, n) {
  design <- surrogate_design(bound)
  parts <- Filter(function(part) part$statistic$kind == "totals" && !inherits(part$statistic, "stat_size"), parts)
  if (is.null(design) || !all(design$role == "free") || nrow(design) != nrow(bound$columns) || farthest_walk(parts) == 0) return(NULL)
  if (!all(vapply(parts, function(part) !is.null(monomial_degrees(part$statistic)), TRUE))) return(NULL)
  terms <- do.call(rbind, lapply(parts, normal_terms, names = bound$columns$name, origin = design$centre, n = n, call = NULL))
  centre <- unlist(lapply(parts, piece_centres), recursive = FALSE)
  # one component for each moment, of those that cross the first
  order <- order(lengths(centre) < 2L)
  alone <- terms[, 6L] == 0
  moment <- paste(pmin(terms[, 1L], terms[, 2L]), pmax(terms[, 1L], terms[, 2L]), alone)
  kept <- sort(order[!duplicated(moment[order])])
  list(terms = t(terms[kept, , drop = FALSE]), origin = as.double(design$centre), first = c(0L, cumsum(lengths(centre[kept]))), centre = as.double(unlist(centre[kept])))
}

# of each component of a part, where the pieces of its noise are
piece_centres <- function(part) {
  none <- rep(list(numeric()), length(part$at))
  if (!inherits(part$mechanism, "mech_tabulated")) return(none)
  piece <- noise_pieces(part$mechanism)
  if (nrow(piece) < 2L) return(none)
  lapply(part$scale / noise_table(part$mechanism)$spread, function(scale) scale * (piece$from + piece$to) / 2)
}

# Totals between which the holes of each component's noise are, lower above upper where it has none, and the least energy of its noise: see
# src/table/filled_holes.c. NULL: no noise has holes.
hole_ranges <- function(parts) {
  if (farthest_walk(parts) == 0) return(NULL)
  index <- unlist(lapply(parts, `[[`, "index"))
  ranges <- do.call(rbind, lapply(parts, hole_range))[order(index), , drop = FALSE]
  list(hole_lower = ranges[, 1L], hole_upper = ranges[, 2L], hole_energy = ranges[, 3L])
}

hole_range <- function(part) {
  none <- matrix(c(0, -1, 0), length(part$index), 3L, byrow = TRUE)
  if (!inherits(part$mechanism, "mech_tabulated")) return(none)
  piece <- noise_pieces(part$mechanism)
  if (nrow(piece) < 2L) return(none)
  table <- noise_table(part$mechanism)
  scale <- part$scale / table$spread
  cbind(part$value - scale * max(piece$to), part$value - scale * min(piece$from), -max(table$value) - log(table$spread))
}

# Linear maps of all records: reflections (R/engine_reflections.R), or crossings without them.
record_maps <- function(bound, parts) {
  none <- numeric(nrow(bound$columns))
  record_reflections(bound, parts) %||% if (farthest_walk(parts) > 0)
    list(columns = matrix(0, length(none), 0L), origin = none, turns = 0, unit = none, stretch = none)
}
