# Reads a release field by field, and passes the fields to the constructors. Whatever the file contains, the result is something that they would have made, or
# an error.

read_noiseaware <- function(file) {
  check_path(file, name = "file")
  if (dir.exists(file)) stop_classed("file", "{.file {file}} must be a file, but is a directory.")
  if (!file.exists(file)) stop_classed("file", "There is no file {.file {file}}.")
  size <- file.size(file)
  if (size > largest_file) {
    stop_classed("file", "{.file {file}} must have at most 64 MB to be a release, but has {round(size / 2^20)} MB.")
  }
  if (size == 0) stop_classed("file", "{.file {file}} must be a JSON file, but is empty.")
  bytes <- read_bytes(file, size)
  if (is.null(bytes)) stop_classed("file", "Cannot read {.file {file}}; do you have permission to read it?")
  parsed <- parse_bytes(bytes)
  if (is.null(parsed)) {
    stop_classed("file", c("{.file {file}} must be a JSON file, but cannot be parsed: is it truncated or damaged?",
                           i = "A table, such as a CSV file, is read by {.code as_release(read.csv(file), ...)}: see {.code vignette(\"cookbook\")}."))
  }
  release_from_list(parsed, file)
}

# NULL if it is not JSON
parse_bytes <- function(bytes) {
  if (any(bytes == 0L)) return(NULL)
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  if (!validUTF8(text)) return(NULL)
  tryCatch(jsonlite::parse_json(text), error = function(e) NULL, warning = function(w) NULL)
}

largest_file <- 64 * 2^20

release_from_list <- function(content, path, call = caller_env()) {
  refuse <- function(message) {
    message <- encodeString(shorten_text(message, 1000L)) # it may quote the file
    stop_classed("file", c("{.file {path}} is not a valid release.", x = "{message}"), call = call)
  }
  if (!is.list(content) || !identical(content[["format"]], schema_format)) {
    refuse(paste0("Its format must be \"", schema_format, "\"."))
  }
  version <- content[["version"]]
  if (!is_number(version) || !version %in% seq_len(schema_version)) {
    refuse(paste0("Its version must be from 1 to ", schema_version, "; was it written by another version of this package?"))
  }
  tryCatch(release_from_fields(content, refuse), error = function(e) {
    if (inherits(e, "noiseaware_error_file")) stop(e)
    # what the constructors refuse, and whatever else a hostile file may provoke
    refuse(if (inherits(e, "noiseaware_error")) one_line(e) else "It cannot be made into a release.")
  })
}

# as files state them, and the argument of persons()
person_kinds <- c(person = "add_remove", person_replaced = "replace")

of_persons_json <- function(content) checkmate::test_choice(content[["neighbours"]], names(person_kinds))

neighbours_from_json <- function(content, refuse) {
  found <- Find(function(kind) identical(content$neighbours, neighbours_json(kind, content$version)), neighbour_kinds)
  if (!is.null(found)) return(found)
  if (content$version >= 5 && of_persons_json(content)) {
    if (!is_number(content$contributions)) refuse("contributions must be a number.")
    return(match_neighbours(persons(contributions = content$contributions, neighbours = person_kinds[[content$neighbours]])))
  }
  known <- c(unique(vapply(neighbour_kinds, neighbours_json, "", content$version)), if (content$version >= 5) names(person_kinds))
  refuse(paste0("neighbours must be ", paste0("\"", known, "\"", collapse = " or "), "."))
}

release_from_fields <- function(content, refuse) {
  require_fields(content, c("format", "version", "n", "neighbours", "missing", "noise", "statistic", "mechanism", "value",
                            if (identical(content[["noise"]], "entropy")) "granularity",
                            if (of_persons_json(content)) "contributions", "checksum"), "the file", refuse)
  neighbours <- neighbours_from_json(content, refuse)
  if (!identical(content$missing, missing_rule)) refuse(paste0("missing must be \"", missing_rule, "\"."))
  if (!checkmate::test_choice(content$noise, names(noise_source))) {
    refuse(paste0("noise must be one of ", paste(dQuote(names(noise_source), FALSE), collapse = ", "), "."))
  }
  if (!is_number(content$n) && (!is.null(content$n) || content$version == 1)) refuse("n must be a number.")
  value <- json_numbers(content$value, "value", "object", refuse, hidden = content$version >= 3)
  statistic <- part_from_json(content$statistic, statistic_from_json, refuse, claim = value_claims(length(value), refuse))
  mechanism <- part_from_json(content$mechanism, mechanism_from_json, refuse)
  check_design(statistic, mechanism, neighbours)
  if (any_counts_answers(statistic)) check_counted(statistic, mechanism, value, content, refuse)
  check_value_names(names(value), design_parts(statistic, mechanism), content$n, refuse)
  result <- release_of(value, statistic, mechanism, check_public_size(content$n, design_parts(statistic, mechanism)), neighbours, listed = FALSE)
  result$noise <- content$noise
  if (content$noise == "entropy") result <- read_granularity(result, content, refuse)
  if (!checkmate::test_string(content$checksum)) refuse("checksum must be a string.")
  # what was read, written again, is what was written
  if (!grepl(paste0('"checksum": "', content$checksum, '"'), release_json(result, as.integer(content$version)), fixed = TRUE)) {
    refuse("Its contents do not match its checksum: it was changed after it was written.")
  }
  result
}

check_counted <- function(statistic, mechanism, value, content, refuse) {
  if (content$version < 5 || is_several(statistic) || !takes_codes(statistic, mechanism) ||
        !identical(statistic$counted, lapply(channels_of(mechanism, statistic), colnames))) {
    refuse("counted must be the answers to each variable of one statistic of records.")
  }
  check_answer_numbers(value, content$n, NULL)
}

# Too many for the messages of as_release(), which name them.
check_value_names <- function(names, parts, n, refuse) {
  if (length(names) <= few_values) return(invisible())
  sizes <- vapply(parts, function(p) value_size(p$statistic, n), 0)
  if (sum(sizes) != length(names)) {
    refuse(sprintf("value must have a number for each component of the statistic, %s, but has %d.", format_number(sum(sizes), 15L), length(names)))
  }
  components <- unlist(lapply(parts, function(p) part_components(p$statistic, n, p$name)))
  if (anyDuplicated(names) || !setequal(names, components)) refuse("value must have the names of the statistic's components, each once.")
}

read_granularity <- function(result, content, refuse) {
  unit <- json_numbers(content$granularity, "granularity", c("number", "object"), refuse)
  if (!is.null(names(unit))) {
    if (!setequal(names(unit), names(result$value)) || anyDuplicated(names(unit))) refuse("granularity must have the names of the values.")
    unit <- unit[names(result$value)]
  }
  result <- set_granularity(result, unit)
  if (is.character(result)) refuse(result)
  result
}

# one object with a name, or an object of such objects
part_from_json <- function(x, f, refuse, ...) {
  several <- is.list(x) && length(x) > 0L && !is.null(names(x)) && !checkmate::test_string(x[["name"]])
  if (several) lapply(x, f, refuse = refuse, ...) else f(x, refuse, ...)
}

# A few bytes can name millions of components: twenty variables with two levels,
# crossed. So each statistic claims its components from the values in the file
# before anything is made of them; a few are made anyway, so that the
# constructors can say what is wrong.
value_claims <- function(values, refuse) {
  claimed <- 0
  function(count) {
    claimed <<- claimed + count
    if (claimed > max(values, few_values)) {
      refuse(sprintf("value must have a number for each component of the statistic, %s or more, but has %d.", format_number(claimed, 15L), values))
    }
  }
}

few_values <- 1e4

# Readers of the statistics, by name: each checks its fields, claims as many values as
# it has components (or a lower bound of that), and calls the constructor.
statistic_readers <- function() {
  list(crossprod = stat_crossprod_from_json, moments4 = stat_moments4_from_json, sums = stat_sums_from_json, by = stat_by_from_json,
       counts = stat_counts_from_json, records = stat_records_from_json, objective = stat_objective_from_json,
       linear = stat_linear_from_json, centred = stat_centred_from_json, histogram = stat_histogram_from_json,
       quantiles = stat_quantiles_from_json, size = stat_size_from_json, smooth = stat_smooth_from_json)
}

statistic_from_json <- function(x, refuse, claim) {
  readers <- statistic_readers()
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(readers))) {
    refuse(paste0("Unknown statistic. It must be one of: ", paste(dQuote(names(readers), FALSE), collapse = ", "), "."))
  }
  made <- readers[[name]](x[names(x) != "functions"], refuse, claim)
  if ("functions" %in% names(x)) functions_from_json(x$functions, made, refuse) else made
}

mechanism_from_json <- function(x, refuse) {
  constructors <- list(laplace = mech_laplace, gaussian = mech_gaussian, discrete_laplace = mech_discrete_laplace,
                       discrete_gaussian = mech_discrete_gaussian, randomized_response = mech_randomized_response,
                       objective = mech_objective, exponential = mech_exponential, exact = mech_exact, record_noise = mech_record_noise,
                       tabulated = mech_tabulated, unary_encoding = unary_from_json)
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(constructors))) {
    refuse(paste0("Unknown mechanism. It must be one of: ", paste(dQuote(names(constructors), FALSE), collapse = ", "), "."))
  }
  constructor <- constructors[[name]]
  given <- setdiff(names(x), c("name", "published"))
  require_fields(x, c("name", intersect(given, setdiff(names(formals(constructor)), "answers")), if ("published" %in% names(x)) "published"), "mechanism", refuse)
  parameters <- lapply(stats::setNames(nm = given), function(p) {
    if (p == "norm") return(json_norm(x[[p]], refuse))
    if (p == "shared") return(isTRUE(x[[p]]) || refuse("The mechanism's shared must be true or absent."))
    if (p == "matrix") return(json_channels(x[[p]], refuse))
    # only a noise scale may differ between components
    shapes <- if (name == "record_noise") "object" else
      if (p %in% c("density", "grid")) "array" else if (p %in% c("scale", "sd")) c("number", "array", "object") else "number"
    json_numbers(x[[p]], paste("The mechanism's", p), shapes, refuse)
  })
  mechanism <- do.call(constructor, parameters)
  if (is.null(x[["published"]])) mechanism else published_from_json(mechanism, x[["published"]], refuse)
}

# of one matrix an entry a level; of several, by variables, one deeper
json_channels <- function(x, refuse) {
  rows <- function(x) is.list(x) && !is.null(names(x)) && length(x) && all(vapply(x, is.list, TRUE))
  if (rows(x) && all(vapply(x, rows, TRUE))) return(lapply(x, json_channel, refuse))
  json_channel(x, refuse)
}

json_channel <- function(x, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse("The mechanism's matrix must be an object with an entry for each level.")
  rows <- lapply(x, json_numbers, "The mechanism's matrix", "object", refuse)
  if (!all(vapply(rows, function(r) identical(names(r), names(rows[[1L]])), TRUE))) refuse("The rows of the mechanism's matrix must have the same answers.")
  do.call(rbind, rows)
}

unary_from_json <- function(p = NULL, q = NULL, hashed = NULL, shared = FALSE) {
  mechanism <- mech_unary_encoding(p = p, q = q, shared = shared)
  mechanism$hashed <- hashed
  mechanism
}

json_norm <- function(x, refuse) {
  if (!identical(x, "Linf")) refuse("The mechanism's norm must be \"Linf\" or absent.")
  x
}

published_from_json <- function(mechanism, x, refuse) {
  steps <- c("threshold", "round", "lower", "upper")
  require_fields(x, c(intersect(steps, names(x)), "listed"), "published", refuse)
  if (!checkmate::test_flag(x$listed)) refuse("listed must be true or false.")
  numbers <- lapply(x[intersect(steps, names(x))], json_numbers, "A step of published", "number", refuse)
  do.call(published, c(list(mechanism), numbers, list(listed = x$listed)))
}

stat_linear_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "statistic", "queries"), "statistic", refuse)
  if (identical(x$statistic[["name"]], "linear")) refuse("The statistic of queries must not have queries itself.")
  queries <- x$queries
  if (!is.list(queries) || is.null(names(queries))) refuse("The statistic's queries must be an object with an entry for each published number.")
  claim(length(queries))
  inner <- statistic_from_json(x$statistic, refuse, function(count) {
    if (count > most_unpublished) refuse(sprintf("The statistic of queries must have at most %s components.", format_number(most_unpublished)))
  })
  stat_linear(inner, Map(function(query, name) json_numbers(query, paste("The query", name), "object", refuse), queries, names(queries)))
}
