# The parts of a partial total: integer sums on the grid of each part.

is_partial <- function(x) inherits(x, "noiseaware_partial")

holds_partials <- function(x) is.list(x) && !is.object(x) && length(x) > 0L && all(vapply(x, is_partial, TRUE))

records_in <- function(data) if (is_partial(data)) data$n else as.double(nrow(data))

new_partial <- function(totals, unit, n, statistic, mechanism, neighbours) {
  structure(list(totals = totals, unit = unit, n = as.double(n), statistic = statistic, mechanism = mechanism, neighbours = neighbours),
            class = "noiseaware_partial")
}

add_partials <- function(a, b, call = caller_env()) {
  same <- identical(a[c("statistic", "mechanism", "neighbours")], b[c("statistic", "mechanism", "neighbours")])
  if (!same) stop_classed("partial", "Partial totals must have the same statistic, mechanism and neighbours to be added up.", call = call)
  if (!identical(a$unit, b$unit)) {
    stop_classed("partial", c("Partial totals must have the same grid to be added up.", i = "Give all of them the same {.arg n}, the number of records of all owners."),
                 call = call)
  }
  a$totals <- Map(add_units, a$totals, b$totals)
  a$n <- a$n + b$n
  a
}

# high * word + low, exact in doubles, both of the same sign
word <- 1e9
in_words <- function(counts) cbind(counts %/% word, counts %% word, deparse.level = 0L)

add_units <- function(a, b) {
  high <- a[, 1L] + b[, 1L]
  low <- a[, 2L] + b[, 2L]
  carry <- trunc(low / word)
  high <- high + carry
  low <- low - carry * word
  borrow <- (high > 0 & low < 0) - (high < 0 & low > 0)
  cbind(high - borrow, low + borrow * word, deparse.level = 0L)
}

# The parts of a design whose totals are added up, each with its unit.
# Usually it is the same for any number of records; else `n` must be known.
partial_parts <- function(statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  lapply(design_parts(statistic, mechanism, neighbours), function(part) {
    if (part$mechanism$kernel == "ranks") return(c(part, list(unit = 1)))
    if (!part$statistic$kind %in% c("totals", "cells") || part$mechanism$kernel == "match" || is_exact(part$mechanism)) {
      stop_classed("partial", c("Only totals with noise can be added up; {describe_statistic(part$statistic)} must be released from a data frame with all records.",
                                x = "The mechanism is {format(part$mechanism)}."), call = call)
    }
    any_number <- is.null(n) && replaces(part$neighbours)
    part$grid <- part_grid(part, if (any_number) most_records else n %||% most_records, call)
    part$unit <- summed_unit(part, part$grid)
    few <- if (any_number) release_unit(part$mechanism, part$statistic, 1, part$neighbours, call)
    if (any_number && (!identical(part$grid$unit, few) || part$statistic$name == "custom")) {
      stop_classed("partial", c("The number of all records must be known before the first of them is added up.",
                                i = "Give {.arg n}, or release from a data frame."), call = call)
    }
    part
  })
}

# Counts are rounded when all are added up, as release() does: a coarser unit than 1 rounds their total, not records.
summed_unit <- function(part, grid) if (part$statistic$kind == "cells") pmin(grid$unit, 1) else grid$unit

# of one data frame of records
frame_total <- function(data, parts, statistic, mechanism, neighbours, call = caller_env()) {
  totals <- lapply(parts, function(part) {
    x <- statistic_records(part$statistic, data, call, empty = TRUE)
    if (part$mechanism$kernel == "ranks") return(in_words(point_counts(part$statistic, x)))
    .Call(ffi_exact_totals, statistic_spec(part$statistic, confidential = TRUE, call), x, part$statistic$kind, part$unit, part$grid$records)
  })
  new_partial(totals, lapply(parts, function(part) part$unit), nrow(data), statistic, mechanism, neighbours)
}

# the released values of a part
partial_part <- function(part, partial, call) {
  if (partial$n == 0 && replaces(part$neighbours)) {
    stop_classed("data", c("A release with a public number of records must have at least one record, but there are none.",
                           i = "If their number is confidential, use {.code neighbours = \"add_remove\"}."), call = call)
  }
  at <- match(part$name, vapply(design_parts(partial$statistic, partial$mechanism, partial$neighbours), `[[`, "", "name"))
  if (!replaces(part$neighbours) && partial$n >= most_records) stop_classed("partial", "A release can have at most 2^31 - 1 records.", call = call)
  total <- partial$totals[[at]]
  if (part$mechanism$kernel == "ranks") return(exact_quantiles(part, total[, 1L] * word + total[, 2L], call))
  grid <- part_grid(part, partial$n, call)
  unit <- partial$unit[[at]]
  if (!identical(summed_unit(part, grid), unit)) {
    stop_classed("partial", c("The partial totals must have the grid for all records together.",
                              i = "Give all of them the same {.arg n}: there are {format(partial$n, big.mark = ',', decimal.mark = '.')} records."), call = call)
  }
  coarse <- grid$unit > unit
  total[coarse, ] <- in_words(round((total[, 1L] * word + total[, 2L])[coarse] / grid$unit[coarse]))
  value <- .Call(ffi_exact_add_noise, total, grid$unit, grid$family, grid$scale$numerator, grid$scale$denominator)
  exact_result(value, part, grid, call)
}
