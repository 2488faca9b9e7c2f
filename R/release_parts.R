# A release holds one statistic with its mechanism, or several of the same data,
# each with its own: then `statistic` and `mechanism` are named lists, and the
# components of part "a" are called "a: component".

# list of parts: name, statistic, mechanism, scale, value (named after the
# statistic's components), index among the release's components
release_parts <- function(release) {
  several <- is_several(release$statistic)
  statistics <- if (several) release$statistic else list(release$statistic)
  mechanisms <- if (several) release$mechanism else list(release$mechanism)
  names <- if (several) names(statistics) else ""
  end <- 0L
  Map(function(statistic, mechanism, name) {
    index <- end + seq_len(value_size(statistic, release$n))
    end <<- utils::tail(index, 1L)
    list(name = name, statistic = statistic, mechanism = mechanism, index = index,
         scale = unname(release$scale[index]), value = unname(release$value[index]))
  }, statistics, mechanisms, names, USE.NAMES = FALSE)
}

is_several <- function(statistic) !inherits(statistic, "noiseaware_statistic")

# how many numbers a statistic of n records releases
value_size <- function(statistic, n) {
  length(statistic$components) * if (statistic$kind == "records") n else 1L
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
  list(columns = columns[!duplicated(columns$name), ], levels = levels[!duplicated(names(levels))],
       formula = Find(Negate(is.null), lapply(statistics, `[[`, "formula")))
}
