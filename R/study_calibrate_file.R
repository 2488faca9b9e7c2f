# The checkpoint of calibrate(): JSON lines, a header and then a line for each replicate. Lines are only ever added, so a kill can only truncate the last
# line.

calibration_format <- "noiseaware calibration"
calibration_version <- 2L

# What is there already: list(seed, runs). A new file gets its header.
resume_file <- function(path, problem, call = caller_env()) {
  if (!dir.exists(dirname(path))) stop_classed("file", "Cannot write {.file {path}}: there is no directory {.file {dirname(path)}}.", call = call)
  if (dir.exists(path)) stop_classed("file", "{.file {path}} must be a file, but is a directory.", call = call)
  if (!file.exists(path)) {
    problem$seed <- problem$seed %||% new_seed()
    write_whole(paste0(header_json(problem), "\n"), path, call)
    return(list(seed = problem$seed, runs = list()))
  }
  bytes <- read_bytes(path, file.size(path))
  if (is.null(bytes)) stop_classed("file", "Cannot read {.file {path}}; do you have permission to read it?", call = call)
  ends <- which(bytes == charToRaw("\n"))
  whole <- bytes[seq_len(max(ends, 0L))]
  if (any(whole == 0L) || !validUTF8(rawToChar(whole))) refuse_file(path, "It is not a text file.", call)
  lines <- strsplit(enc2utf8(rawToChar(whole)), "\n", fixed = TRUE)[[1L]]
  parsed <- lapply(lines, function(line) tryCatch(jsonlite::parse_json(line), error = function(e) NULL))
  seed <- check_header(if (length(parsed)) parsed[[1L]], problem, path, call)
  runs <- lapply(seq_along(parsed)[-1L], function(k) {
    tryCatch(run_from_list(parsed[[k]]), error = function(e) refuse_file(path, paste0("Line ", k, " is not a replicate."), call))
  })
  if (length(whole) < length(bytes)) write_whole(rawToChar(whole), path, call)
  list(seed = seed, runs = runs[!duplicated(vapply(runs, `[[`, 0L, "seed"))])
}

refuse_file <- function(path, message, call) {
  stop_classed("file", c("{.file {path}} cannot be resumed; nothing in it is used.", x = "{message}",
                         i = "Give another {.arg file}, or remove this one."), call = call)
}

check_header <- function(header, problem, path, call) {
  if (!is.list(header) || !identical(header[["format"]], calibration_format)) {
    refuse_file(path, paste0("Its first line must have the format \"", calibration_format, "\"."), call)
  }
  if (!identical(header[["version"]], calibration_version)) {
    refuse_file(path, paste0("Its version must be ", calibration_version, "."), call)
  }
  asked <- problem_texts(problem)
  stored <- header[["problem"]]
  differ <- names(asked)[!vapply(names(asked), function(name) identical(stored[[name]], asked[[name]]), TRUE)]
  if (length(differ)) refuse_file(path, paste0("It belongs to another problem: see ", paste(differ, collapse = ", "), "."), call)
  seed <- header[["seed"]]
  if (!is.integer(seed) || length(seed) != 1L) refuse_file(path, "Its seed must be a whole number.", call)
  if (!is.null(problem$seed) && problem$seed != seed) {
    refuse_file(path, paste0("It was made with seed = ", seed, ", not ", problem$seed, "."), call)
  }
  seed
}

header_json <- function(problem) {
  jsonlite::toJSON(list(format = calibration_format, version = calibration_version, seed = problem$seed,
                        problem = problem_texts(problem)), auto_unbox = TRUE)
}

# what makes a problem what it is, as short texts; NULL is a text too
problem_texts <- function(problem) {
  fields <- c("model", "statistic", "mechanism", "neighbours", "n", "method", "arguments", "parameters", "level")
  parts <- stats::setNames(problem[fields], fields)
  if (!is.null(problem$data)) parts$data <- rlang::hash(problem$data) # no record is written
  lapply(parts, function(part) {
    text <- paste(canonical_text(part), collapse = " ")
    if (nchar(text) <= 100L) text else paste0(substr(text, 1L, 60L), "... ", rlang::hash(text))
  })
}

# Numbers to the last bit, functions by their code, no environments.
canonical_text <- function(x) {
  if (is.function(x)) return(deparse(utils::removeSource(x), width.cutoff = 500L))
  if (is.list(x)) {
    inner <- vapply(unclass(x), function(e) paste(canonical_text(e), collapse = " "), "")
    return(paste0(paste0(class(x), collapse = "/"), "(", paste(names(inner), unname(inner), collapse = ", "), ")"))
  }
  if (!is.atomic(x)) return(if (is.language(x)) deparse(x, width.cutoff = 500L) else typeof(x))
  shape <- c(if (!is.null(dim(x))) paste0("[", paste(dim(x), collapse = " x "), "]"), names(x))
  c(shape, if (is.null(x)) "NULL" else if (is.numeric(x)) exact_text(x) else as.character(x))
}

append_runs <- function(path, runs, call = caller_env()) {
  text <- paste0(vapply(runs, run_json, ""), "\n", collapse = "")
  if (!append_whole(text, path)) stop_classed("file", "Cannot add to {.file {path}}; is there space left?", call = call)
}

number_columns <- c("truth", "rank", "draws", "quantile", "mean", "sd", "lower", "upper", "rhat", "ess")

run_json <- function(run) {
  numbers <- function(x) structure(paste0("[", paste(ifelse(is.finite(x), exact_text(x), "null"), collapse = ","), "]"), class = "json")
  content <- list(seed = run$seed, seconds = run$seconds, method = run$method, failed = run$failed)
  if (!run$failed) {
    content$results <- c(list(variable = I(as.character(run$results$variable))), lapply(run$results[number_columns], numbers))
  }
  if (!is.null(run$conditions)) content$conditions <- lapply(run$conditions, I)
  as.character(jsonlite::toJSON(content, auto_unbox = TRUE, json_verbatim = TRUE, na = "null", digits = NA))
}

# stops on anything that run_json() does not write
run_from_list <- function(content) {
  run <- list(seed = content$seed, seconds = as.double(content$seconds), method = content$method %||% NA_character_,
              failed = content$failed)
  stopifnot(is.integer(run$seed), length(run$seed) == 1L, length(run$seconds) == 1L, is.character(run$method),
            checkmate::test_flag(run$failed), run$failed == is.null(content$results))
  if (!run$failed) {
    results <- content$results
    stopifnot(setequal(names(results), c("variable", number_columns)), length(unique(lengths(results))) == 1L)
    numbers <- lapply(results[number_columns], function(column) vapply(column, function(v) if (is.null(v)) NA_real_ else as.double(v), 0))
    run$results <- data.frame(variable = vapply(results$variable, identity, ""), numbers)
  }
  if (!is.null(content$conditions)) {
    run$conditions <- as.data.frame(lapply(content$conditions, function(column) vapply(column, identity, "")))
    stopifnot(identical(names(run$conditions), c("type", "class", "message")))
  }
  run[c("seed", "seconds", "method", "failed", "results", "conditions")]
}
