# Reads a release field by field, then through the constructors: whatever the file holds, what is
# read is what they would have made, or nothing.

#' @rdname write_release
#' @order 2
#' @export
read_release <- function(path) {
  check_given()
  check_path(path)
  if (dir.exists(path)) stop_classed("file", "{.file {path}} must be a file, but is a directory.")
  if (!file.exists(path)) stop_classed("file", "There is no file {.file {path}}.")
  size <- file.size(path)
  if (size > largest_file) {
    stop_classed("file", "{.file {path}} must have at most 64 MB to be a release, but has {round(size / 2^20)} MB.")
  }
  if (size == 0) stop_classed("file", "{.file {path}} must be a JSON file, but is empty.")
  bytes <- read_bytes(path, size)
  if (is.null(bytes)) stop_classed("file", "Cannot read {.file {path}}; do you have permission to read it?")
  parsed <- parse_bytes(bytes)
  if (is.null(parsed)) stop_classed("file", "{.file {path}} must be a JSON file, but cannot be parsed: cut short or damaged?")
  release_from_list(parsed, path)
}

# The file as it is, never more than its size: by readLines() a small compressed
# file could grow without limit.
read_bytes <- function(path, size) {
  tryCatch({
    connection <- file(normalizePath(path), "rb", raw = TRUE)
    on.exit(close(connection))
    readBin(connection, "raw", size)
  }, error = function(e) NULL, warning = function(w) NULL)
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

# the text of one of our errors without bullets and line breaks
one_line <- function(condition) cli::ansi_strip(paste(c(condition$message, condition$body), collapse = " "))

release_from_fields <- function(content, refuse) {
  require_fields(content, c("format", "version", "n", "neighbours", "missing", "noise", "statistic", "mechanism", "value",
                            if (identical(content[["noise"]], "entropy")) "granularity", "checksum"), "the file", refuse)
  neighbours <- Find(function(kind) identical(content$neighbours, neighbours_json(kind, content$version)), neighbour_kinds)
  if (is.null(neighbours)) {
    known <- unique(vapply(neighbour_kinds, neighbours_json, "", content$version))
    refuse(paste0("neighbours must be ", paste0("\"", known, "\"", collapse = " or "), "."))
  }
  if (!identical(content$missing, missing_rule)) refuse(paste0("missing must be \"", missing_rule, "\"."))
  if (!checkmate::test_choice(content$noise, names(noise_source))) {
    refuse(paste0("noise must be one of ", paste(dQuote(names(noise_source), FALSE), collapse = ", "), "."))
  }
  if (!is_number(content$n) && (!is.null(content$n) || content$version == 1)) refuse("n must be a number.")
  value <- json_numbers(content$value, "value", "object", refuse, hidden = content$version >= 3)
  statistic <- part_from_json(content$statistic, statistic_from_json, refuse, claim = value_claims(length(value), refuse))
  mechanism <- part_from_json(content$mechanism, mechanism_from_json, refuse)
  check_design(statistic, mechanism, neighbours)
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

is_number <- function(x) is.numeric(x) && length(x) == 1L && is.finite(x)

require_fields <- function(x, fields, where, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse(paste0(where, " must be an object with named fields."))
  absent <- setdiff(fields, names(x))
  strange <- setdiff(names(x), fields)
  twice <- unique(names(x)[duplicated(names(x))])
  if (length(absent)) refuse(paste0("Missing in ", where, ": ", paste(absent, collapse = ", "), "."))
  if (length(strange)) refuse(paste0("Not known in ", where, ": ", shorten_list(strange, 5L), "."))
  if (length(twice)) refuse(paste0("More than once in ", where, ": ", paste(twice, collapse = ", "), "."))
}

# the numbers of a JSON number, array or object, whichever of them may stand there
# (`hidden`: or null)
json_numbers <- function(x, where, shapes, refuse, hidden = FALSE) {
  if (hidden && is.list(x)) x[vapply(x, is.null, TRUE)] <- NA_real_
  shape <- if (!is.list(x)) "number" else if (is.null(names(x))) "array" else "object"
  numbers <- length(x) > 0L && all(vapply(x, function(v) is_number(v) || (hidden && identical(v, NA_real_)), TRUE))
  if (!numbers || !shape %in% shapes) {
    named <- c(number = "a finite number", array = "an array of finite numbers", object = "an object of finite numbers with their names")
    refuse(paste0(where, " must be ", paste(named[shapes], collapse = ", or "), "."))
  }
  vapply(x, as.double, 0)
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
       linear = stat_linear_from_json, centred = stat_centred_from_json, histogram = stat_histogram_from_json, size = stat_size_from_json)
}

statistic_from_json <- function(x, refuse, claim) {
  readers <- statistic_readers()
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(readers))) {
    refuse(paste0("The statistic must be one that this package knows: ", paste(dQuote(names(readers), FALSE), collapse = ", "), "."))
  }
  made <- readers[[name]](x[names(x) != "functions"], refuse, claim)
  if ("functions" %in% names(x)) functions_from_json(x$functions, made, refuse) else made
}

json_bounds <- function(x, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse("The statistic's bounds must be an object with an entry for each variable.")
  check_entries(x, refuse)
  Map(function(bound, variable) json_bound(bound, paste("The bounds of", variable), refuse), x, names(x))
}

check_entries <- function(x, refuse) {
  if (length(x) > most_terms) refuse(paste0("The statistic must have at most ", most_terms, " variables."))
}

# how many columns each variable has
json_columns <- function(bounds) vapply(bounds, function(b) if (is.character(b)) length(b) - 1 else 1, 0)

json_bound <- function(x, where, refuse) {
  levels <- is.list(x) && length(x) > 0L && is.null(names(x)) && all(vapply(x, checkmate::test_string, TRUE))
  numbers <- is.list(x) && length(x) == 2L && is.null(names(x)) && all(vapply(x, is_number, TRUE))
  if (!levels && !numbers) refuse(paste(where, "must be an array of two finite numbers, or of levels."))
  unlist(x)
}

largest_formula <- 1e5

# parsed, never evaluated
json_formula <- function(text, refuse) {
  if (is.character(text) && nchar(text, "bytes")[1L] > largest_formula) {
    refuse(paste("The statistic's formula must have at most", format(largest_formula, scientific = FALSE), "bytes."))
  }
  parsed <- if (checkmate::test_string(text)) tryCatch(str2lang(text), error = function(e) NULL)
  if (!is.call(parsed) || !identical(parsed[[1L]], quote(`~`))) refuse("The statistic's formula must be a string such as \"y ~ x\".")
  formula <- structure(parsed, class = "formula", .Environment = baseenv())
  if (!identical(functions_as_names(formula), formula)) refuse("The statistic's formula must have functions by their names, which `functions` explains, not as calls.")
  formula
}

mechanism_from_json <- function(x, refuse) {
  constructors <- list(laplace = mech_laplace, gaussian = mech_gaussian, discrete_laplace = mech_discrete_laplace,
                       discrete_gaussian = mech_discrete_gaussian, randomized_response = mech_randomized_response,
                       objective = mech_objective, exact = mech_exact, record_noise = mech_record_noise)
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(constructors))) {
    refuse(paste0("The mechanism must be one that this package knows: ", paste(dQuote(names(constructors), FALSE), collapse = ", "), "."))
  }
  constructor <- constructors[[name]]
  given <- setdiff(names(x), c("name", "published"))
  require_fields(x, c("name", intersect(given, setdiff(names(formals(constructor)), "answers")), if ("published" %in% names(x)) "published"), "mechanism", refuse)
  parameters <- lapply(stats::setNames(nm = given), function(p) {
    if (p == "norm") return(json_norm(x[[p]], refuse))
    # only a noise scale may differ between components
    shapes <- if (name == "record_noise") "object" else if (p %in% c("scale", "sd")) c("number", "array", "object") else "number"
    json_numbers(x[[p]], paste("The mechanism's", p), shapes, refuse)
  })
  mechanism <- do.call(constructor, parameters)
  if (is.null(x[["published"]])) mechanism else published_from_json(mechanism, x[["published"]], refuse)
}

json_norm <- function(x, refuse) {
  if (!identical(x, "Linf")) refuse("The mechanism's norm must be \"Linf\", or not be there.")
  x
}

published_from_json <- function(mechanism, x, refuse) {
  steps <- c("threshold", "round", "lower", "upper")
  require_fields(x, c(intersect(steps, names(x)), "listed"), "published", refuse)
  if (!checkmate::test_flag(x$listed)) refuse("listed must be true or false.")
  numbers <- lapply(x[intersect(steps, names(x))], json_numbers, "A step of published", "number", refuse)
  do.call(published, c(list(mechanism), numbers, list(listed = x$listed)))
}
