# A release holds one statistic with its mechanism, or several of the same data,
# each with its own: then `statistic` and `mechanism` are named lists, and the
# components of part "a" are called "a: component".

# list of parts: name, statistic, mechanism, neighbours, scale, value (named after the
# statistic's components), index among the release's components
release_parts <- function(release) {
  end <- 0L
  lapply(design_parts(release$statistic, release$mechanism, release$neighbours), function(part) {
    index <- end + seq_len(value_size(part$statistic, release$n))
    end <<- utils::tail(index, 1L)
    c(part, list(index = index, scale = unname(release$scale[index]), value = unname(release$value[index]),
                 granularity = unname(release$granularity[index])))
  })
}

# list of name, statistic, mechanism, neighbours; the name is "" where there is one
design_parts <- function(statistic, mechanism, neighbours = "replace") {
  part <- function(name, statistic, mechanism) list(name = name, statistic = statistic, mechanism = mechanism, neighbours = neighbours)
  if (!is_several(statistic)) return(list(part("", statistic, mechanism)))
  lapply(names(statistic), function(name) part(name, statistic[[name]], mechanism[[name]]))
}

# one statistic and one mechanism, or named lists of the same names
check_design <- function(statistic, mechanism, neighbours = "replace", call = caller_env()) {
  if (is.list(statistic) && !is.object(statistic)) {
    ok <- length(statistic) > 0L && checkmate::test_names(names(statistic), "unique") &&
      all(vapply(statistic, inherits, TRUE, "noiseaware_statistic"))
    if (!ok) stop_argument("statistic", "a statistic, or a list of statistics with different names", describe(statistic), call = call)
    ok <- is.list(mechanism) && !is.object(mechanism) && setequal(names(mechanism), names(statistic)) &&
      length(mechanism) == length(statistic) && all(vapply(mechanism, inherits, TRUE, "noiseaware_mechanism"))
    if (!ok) {
      stop_classed("mechanism", "{.arg mechanism} must be a list of mechanisms with the statistics' names ({.val {names(statistic)}}), but is {describe(mechanism)}.",
                   call = call)
    }
  } else {
    check_statistic(statistic, call)
    check_mechanism(mechanism, call)
  }
  for (p in design_parts(statistic, mechanism)) {
    check_objective_pair(p$statistic, p$mechanism, call)
    check_pair(p$statistic, p$mechanism, call)
    check_neighbours(p$statistic, neighbours, call)
  }
}

check_objective_pair <- function(statistic, mechanism, call) {
  if ((statistic$kind == "objective") == (mechanism$kernel == "objective")) return(invisible())
  stop_classed("mechanism", "{.fn mech_objective} and {.fn stat_objective} must go together: the released coefficients minimise a perturbed loss.",
               call = call)
}

# can that noise be added to that statistic?
check_pair <- function(statistic, mechanism, call) UseMethod("check_pair", mechanism)

#' @export
check_pair.default <- function(statistic, mechanism, call) invisible()

is_several <- function(statistic) !inherits(statistic, "noiseaware_statistic")

# how many numbers a statistic of n records releases
value_size <- function(statistic, n) {
  length(statistic$components) * (if (statistic$kind == "records") n else 1)
}

part_components <- function(statistic, n, name = "") {
  components <- statistic$components
  if (statistic$kind == "records") components <- as.vector(outer(seq_len(n), components, function(i, c) paste0(c, "[", i, "]")))
  if (name == "") components else paste0(name, ": ", components)
}

# columns of all statistics, each once, and the levels of factors
release_columns <- function(statistic) {
  statistics <- if (is_several(statistic)) statistic else list(statistic)
  columns <- do.call(rbind, unname(lapply(statistics, `[[`, "columns")))
  levels <- do.call(c, unname(lapply(statistics, `[[`, "levels")))
  formulas <- unname(unlist(lapply(statistics, `[[`, "formula")))
  response <- !startsWith(as.character(formulas), "~") # a regression's says more
  list(columns = columns[!duplicated(columns$name), ], levels = levels[!duplicated(names(levels))],
       formula = c(formulas[response], formulas)[1L])
}
