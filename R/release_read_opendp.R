# A measurement of OpenDP, read from the data to the noise, one call per step. An unknown step is an error that gives its name; it is never skipped.

#' @section A measurement of the OpenDP Library: `format = "opendp"`, with the arguments `value`, `variable`, `n` and `statistic`.
#'
#' OpenDP can write a measurement as JSON, with `dp.serialize()` or, up to version 0.12 and in the package opendp-logger, `to_json()`. A measurement is a chain of
#' transformations, such as a clamped sum or counts by category, followed by noise; or several such chains. The file contains no values, so you supply them.
#'
#' * `value`: the values that the measurement released: a number; the counts in the order of the categories; counts named by their keys; or, for randomised
#'   response, everyone's answers. For several measurements a list, in the order of the file; its names are the statistics' names.
#' * `variable`: a name for the variable. `NULL` (the default) uses the column that the file selects, or `"x"`.
#' * `n`: the public number of records; `NULL` (the default) if it is not known, or if it is in the file (`vector_domain(size = )`).
#' * `statistic`: the statistic that was released; `NULL` (the default) reads it from the file. For several measurements a list.
#'
#' | in the file | the statistic |
#' | --- | --- |
#' | `make_sum` | [stat_sums()], with the bounds of `make_clamp` or of `atom_domain(bounds = )` |
#' | `make_mean` | [stat_means()], with the size of `vector_domain(size = )` or `n` |
#' | `make_variance` | two sums, with the noise as [mech_custom()]: the number of the second is the variance, and the number of the first is not used |
#' | `make_count` | [stat_size()] |
#' | `make_count_by_categories` | [stat_counts()]; after `make_find_bin` [stat_histogram()] |
#' | `make_b_ary_tree` | [stat_linear()]: sums of these counts, one for each node of the tree |
#' | `make_count_by` with a threshold | [stat_counts()] of the keys in `value`: others may be hidden. Public keys are given as `statistic` |
#' | `make_randomized_response`, `make_randomized_response_bool` | [stat_records()] |
#' | `make_composition`, `make_basic_composition` | each of them |
#'
#' Noise: `laplace`, `gaussian`, `geometric` and `noise`, by any of their names in the library's versions (tried with layouts of 0.8 to 0.15), also with a
#' threshold, below which counts are hidden. `geometric` with bounds becomes [published()] with limits; the exact number is assumed to lie between them. Noise
#' is discrete for counts of integer type; for sums it is the continuous noise of the same scale. Distances between data sets: with the symmetric distance,
#' neighbours differ in a record added or removed; with `change_one_distance()`, `hamming_distance()` and data of known size, they differ in a replaced record.
#' Counts by category include an additional count of records in none of the categories, unless it was omitted; its level is called `other`.
#'
#' OpenDP does not promise that its JSON stays the same between versions. Parts that are not understood lead to an error that names them. Post-processing and
#' noise of any other kind are always an error. `make_resize` is understood if `n` is the size: then it changes nothing. Other transformations are an error
#' unless you give `statistic` and thereby take responsibility for them. Noise in steps (`k`) larger than a hundredth of its scale is an error, except for whole
#' numbers in steps of 1.
#' @references
#' Gaboardi, M., Hay, M. and Vadhan, S. (2020). A programming framework for OpenDP.
#' @examples
#'
#' # a measurement of OpenDP, made by hand in the layout of the library
#' path <- tempfile(fileext = ".json")
#' writeLines('{"__function__": "make_chain_mt", "__module__": "combinators", "__kwargs__": {
#'   "measurement1": {"__function__": "make_laplace", "__module__": "measurements",
#'     "__kwargs__": {"scale": 5.0}},
#'   "transformation0": {"__function__": "make_chain_tt", "__module__": "combinators", "__kwargs__": {
#'     "transformation1": {"__function__": "make_sum", "__module__": "transformations",
#'       "__kwargs__": {}},
#'     "transformation0": {"__function__": "make_clamp", "__module__": "transformations",
#'       "__kwargs__": {
#'       "input_metric": {"__function__": "symmetric_distance", "__module__": "metrics",
#'         "__kwargs__": {}},
#'       "bounds": {"__tuple__": [0.0, 10.0]}}}}}}}', path)
#' read_release(path, value = 421.7, variable = "visits", n = 90)
#' @name read_release
NULL

read_opendp <- function(file, value, variable = NULL, n = NULL, statistic = NULL) {
  check_given()
  check_path(file, name = "file")
  check_variable(variable, "variable", null = TRUE)
  json <- read_json(file)
  if (is.list(json[["ast"]])) json <- opendp_logged(json[["ast"]], file)
  measured <- opendp_measurements(json, file)
  if (length(measured) == 0L) stop_classed("file", "{.file {file}} must have a measurement, but has none.")
  several <- length(measured) > 1L
  if (several) {
    value <- opendp_list(value, measured, "value")
    if (!is.null(statistic)) statistic <- opendp_list(statistic, measured, "statistic")
  }
  parts <- lapply(seq_along(measured), function(k) {
    opendp_part(measured[[k]], if (several) value[[k]] else value, variable, n, if (several) statistic[[k]] else statistic, file)
  })
  sizes <- unique(c(n, unlist(lapply(parts, `[[`, "n"))))
  if (length(sizes) > 1L) stop_argument("n", paste("the number of records in the file,", sizes[-1L][1L]), describe(sizes[1L]))
  replaced <- length(sizes) > length(n) || any(unlist(json) %in% c("change_one_distance", "hamming_distance"))
  all_of <- function(field) if (several) stats::setNames(lapply(parts, `[[`, field), names(value)) else parts[[1L]][[field]]
  as_release(all_of("value"), all_of("statistic"), all_of("mechanism"), sizes, neighbours = if (replaced) "replace" else "add_remove")
}

# a file of JSON as lists
read_json <- function(path, call = caller_env()) {
  if (!file.exists(path) || dir.exists(path)) stop_classed("file", "There is no file {.file {path}}.", call = call)
  size <- file.size(path)
  if (size > largest_file) stop_classed("file", "{.file {path}} must have at most 64 MB, but has {round(size / 2^20)} MB.", call = call)
  bytes <- read_bytes(path, size)
  parsed <- if (!is.null(bytes) && length(bytes)) parse_bytes(bytes)
  if (!is.list(parsed)) stop_classed("file", "{.file {path}} must be a JSON file, but cannot be parsed: is it truncated or damaged?", call = call)
  if (nested_deeply(parsed)) stop_classed("file", "{.file {path}} must be nested at most 300 levels deep.", call = call)
  parsed
}

# by levels, not by calls of itself
nested_deeply <- function(x) {
  for (level in seq_len(300L)) {
    x <- unlist(x[vapply(x, is.list, TRUE)], recursive = FALSE, use.names = FALSE)
    if (length(x) == 0L) return(FALSE)
  }
  TRUE
}

# an array of labels as texts, NULL if it is something else; what is null in JSON is `empty`
json_labels <- function(x, empty = NA_character_) {
  if (!is.list(x)) return(if (is.atomic(x) && length(x)) as.character(x))
  if (!all(vapply(x, function(v) is.null(v) || (is.atomic(v) && length(v) == 1L), TRUE))) return(NULL)
  vapply(x, function(v) if (is.null(v)) empty else as.character(v), "", USE.NAMES = FALSE)
}

# ---- the calls -----------------------------------------------------------------------------

opendp_noise_name <- "^make_(base_)?(discrete_)?(laplace|gaussian|geometric|noise)(_cks20|_linear|_threshold)?$"
opendp_response_name <- "^make_randomized_response(_bool)?$"
# what changes the guarantee that is stated, not what is published
opendp_conversion <- "^make_(fix_delta|approximate|zCDP_to_approxDP|pureDP_to_zCDP|pureDP_to_fixed_approxDP|fixed_approxDP_to_approxDP)$"
# steps that leave the records as they are, or are understood
opendp_known <- paste0("^make_(clamp|(sized_)?(bounded_)?((int|float)_(checked|monotonic|ordered|split)_)?sum|(sized_)?(bounded_)?mean|count|count_by|",
                       "count_by_categories|b_ary_tree|find_bin|select_column|split_(lines|records|dataframe)|(df_)?cast(_.*)?)$")

# what is understood, or changes nothing that is published; types are in capitals
opendp_arguments <- c("input_domain", "input_metric", "output_measure", "scale", "k", "bounds", "threshold", "size", "constant", "categories", "null_category",
                      "edges", "key", "column_name", "separator", "col_names", "leaf_count", "branching_factor", "ddof", "prob", "constant_time")

# A constructor with its arguments, NULL where there is none; earlier versions called them "func" and "kwargs".
opendp_call <- function(node) {
  name <- if (is.list(node)) node[["__function__"]] %||% node[["func"]]
  if (!checkmate::test_string(name)) return(NULL)
  list(name = sub("^then_", "make_", name), arguments = as.list(node[["__kwargs__"]] %||% node[["kwargs"]]))
}

# The layout of `to_json()`: the package opendp-logger, and versions up to 0.12. `x >> then_y()` is a pair, arguments may have no names, lists are objects and
# tuples arrays, and what has its default is left out: counts are integers then.
opendp_logged <- function(node, path, call = caller_env()) {
  if (!is.list(node)) return(node)
  inner <- function(x) lapply(x, opendp_logged, path, call)
  if (identical(node[["_type"]], "list")) return(inner(node[["_items"]]))
  if (identical(node[["_type"]], "partial_chain")) {
    last <- opendp_logged(node[["rhs"]], path, call)
    measures <- grepl(paste0(opendp_noise_name, "|", opendp_response_name), opendp_call(last)$name %||% "")
    arguments <- stats::setNames(list(last, opendp_logged(node[["lhs"]], path, call)), c(if (measures) "measurement1" else "transformation1", "transformation0"))
    return(list(`__function__` = if (measures) "make_chain_mt" else "make_chain_tt", `__kwargs__` = arguments))
  }
  step <- opendp_call(node)
  if (is.null(step)) return(inner(node))
  unnamed <- inner(node[["args"]])
  names <- opendp_unnamed[[step$name]]
  if (grepl("_domain$", opendp_call(unnamed[1L][[1L]])$name %||% "") && step$name != "vector_domain") names <- c("input_domain", "input_metric", names)
  if (length(unnamed) > length(names)) {
    stop_classed("file", "{.file {path}} has arguments of {.code {step$name}} without names, which are not understood.", call = call)
  }
  arguments <- c(stats::setNames(unnamed, names[seq_along(unnamed)]), inner(step$arguments))
  type <- c(make_count = "TO", make_count_by = "TV", make_count_by_categories = "TOA")[step$name]
  if (!is.na(type)) arguments[[type]] <- arguments[[type]] %||% "int"
  list(`__function__` = step$name, `__kwargs__` = arguments)
}

# arguments in their order, without the input's domain and metric
opendp_unnamed <- local({
  each <- function(names, ...) stats::setNames(rep(list(c(...)), length(names)), paste0("make_", names))
  c(each("chain_tt", "transformation1", "transformation0"), each("chain_mt", "measurement1", "transformation0"),
    each(c("composition", "basic_composition"), "measurements"), each(c("fix_delta", "zCDP_to_approxDP", "pureDP_to_zCDP"), "measurement", "delta"),
    each("clamp", "bounds"), each("resize", "size", "constant"), each("find_bin", "edges"), each("select_column", "key", "TOA"),
    each("split_dataframe", "separator", "col_names"), each(c("cast", "cast_default"), "TOA"), each("sum"), each("mean"), each("variance", "ddof"), each("count", "TO"),
    each("count_by", "MO", "TV"), each("count_by_categories", "categories", "null_category"), each("b_ary_tree", "leaf_count", "branching_factor"),
    each(c("laplace", "gaussian", "base_laplace", "base_gaussian", "base_discrete_laplace", "base_discrete_gaussian"), "scale", "k"),
    each(c("geometric", "base_geometric"), "scale", "bounds"), each(c("laplace_threshold", "gaussian_threshold", "base_laplace_threshold"), "scale", "threshold"),
    each("randomized_response_bool", "prob"), each("randomized_response", "categories", "prob"),
    list(vector_domain = c("atom_domain", "size"), atom_domain = "bounds"))
})

# Measurements as list(steps, noise). Noise is the last step: what is done to its result is not understood.
opendp_measurements <- function(node, path, before = list(), call = caller_env()) {
  step <- opendp_call(node)
  inner <- function(node, before) opendp_measurements(node, path, before, call)
  name <- step$name %||% "an unnamed step"
  if (grepl(opendp_conversion, name)) return(inner(step$arguments[["measurement"]], before))
  if (name == "make_chain_mt") return(inner(step$arguments[["measurement1"]], c(before, opendp_steps(step$arguments[["transformation0"]], path, call))))
  if (name %in% c("make_composition", "make_basic_composition")) return(unlist(lapply(step$arguments[["measurements"]], inner, before), FALSE))
  if (grepl(paste0(opendp_noise_name, "|", opendp_response_name), name)) return(list(list(steps = before, noise = step)))
  stop_classed("file", c("{.file {path}} must contain transformations followed by noise, such as {.code make_laplace}, and nothing else; some steps are not understood.",
                         x = "{.code {name}}.",
                         i = if (grepl("private_(lazyframe|expr)", name)) "For a table, use {.code query.summarize()} and {.code format = \"opendp_table\"}."),
               call = call)
}

# transformations from the data on
opendp_steps <- function(node, path, call) {
  step <- opendp_call(node)
  if (is.null(step)) stop_classed("file", "{.file {path}} has a transformation without a name.", call = call)
  if (step$name != "make_chain_tt") return(list(step))
  c(opendp_steps(step$arguments[["transformation0"]], path, call), opendp_steps(step$arguments[["transformation1"]], path, call))
}

# the last of an argument that the steps, or the domains of their inputs, have
opendp_argument <- function(steps, argument) {
  found <- NULL
  for (step in steps) {
    domain <- opendp_call(step$arguments[["input_domain"]])$arguments
    found <- step$arguments[[argument]] %||% domain[[argument]] %||% opendp_call(domain[["atom_domain"]])$arguments[[argument]] %||% found
  }
  if (is.list(found)) unlist(found[["__tuple__"]] %||% found) else found
}

opendp_list <- function(x, measured, name, call = caller_env()) {
  if (is.numeric(x) && length(x) == length(measured)) x <- as.list(x)
  if (!is.list(x) || is.object(x) || length(x) != length(measured)) {
    stop_argument(name, paste("a list of", length(measured), "entries, one for each measurement in the file"), describe(x), call = call)
  }
  kinds <- vapply(measured, function(m) sub("^make_", "", c(m$steps, list(m$noise))[[max(1L, length(m$steps))]]$name), "")
  if (is.null(names(x))) names(x) <- make.unique(kinds, "_")
  x
}

# ---- what they are --------------------------------------------------------------------------

# value, statistic, mechanism and public number of records of one measurement
opendp_part <- function(measured, value, variable, n, statistic, path, call = caller_env()) {
  variable <- variable %||% opendp_argument(measured$steps, "key") %||% "x"
  check_variable(variable, "variable", call = call)
  known <- if (is.null(statistic)) Filter(function(step) grepl(paste0(opendp_known, "|^make_variance$"), step$name), measured$steps)
  check_opendp_arguments(c(known, list(measured$noise)), path, call)
  if (grepl(opendp_response_name, measured$noise$name)) return(opendp_response(measured, value, variable, statistic, path, call))
  size <- opendp_argument(measured$steps, "size")
  hidden <- opendp_scalar(measured$noise, "threshold", path, call)
  if (endsWith(measured$noise$name, "_threshold") && is.null(hidden)) {
    stop_classed("file", "{.file {path}} must give {.code {measured$noise$name}} a positive threshold.", call = call)
  }
  listed <- !is.null(statistic)
  if (is.list(value)) value <- unlist(value) # a dictionary
  measured$steps <- opendp_unresized(measured$steps, n)
  if (is.null(statistic)) {
    last <- length(measured$steps)
    if (last > 0L && measured$steps[[last]]$name == "make_variance") return(opendp_variance(measured, value, variable, n %||% size, path, call))
    tree <- if (last > 0L && measured$steps[[last]]$name == "make_b_ary_tree") measured$steps[[last]]
    if (!is.null(tree)) measured$steps <- measured$steps[-last]
    statistic <- opendp_statistic(measured$steps, variable, n %||% size, if (!is.null(hidden)) names(value), path, call)
    if (!is.null(tree)) {
      nodes <- opendp_nodes(statistic, tree, value, path, call)
      value <- unname(value)[lengths(nodes) > 0L]
      statistic <- stat_linear(statistic, nodes[lengths(nodes) > 0L])
    }
  }
  check_statistic(statistic, call)
  mechanism <- opendp_mechanism(measured, statistic, path, call)
  limits <- unlist(measured$noise$arguments[["bounds"]])
  if (!is.null(hidden)) mechanism <- published(mechanism, threshold = hidden, listed = listed)
  if (!is.null(limits)) mechanism <- published(mechanism, lower = limits[1L], upper = limits[2L])
  # every record is in a bin, so that the count of those in none is noise alone
  if (inherits(statistic, "stat_histogram") && length(value) == length(statistic$components) + 1L) value <- value[-length(value)]
  if (!is.null(hidden) && listed) value <- opendp_hidden(value, statistic)
  list(value = value, statistic = statistic, mechanism = mechanism, n = size)
}

check_opendp_arguments <- function(steps, path, call) {
  strange <- unlist(lapply(steps, function(step) {
    sprintf("%s(%s = )", step$name, setdiff(grep("^[A-Z]+$", names(step$arguments), value = TRUE, invert = TRUE), opendp_arguments))
  }))
  if (length(strange) == 0L) return(invisible())
  stop_classed("file", c("{.file {path}} has {cli::qty(strange)}{?an argument/arguments} that {?is/are} not understood.", x = "{.code {strange}}.",
                         i = if (length(steps) > 1L) "If a transformation has it, you can give {.arg statistic} instead."), call = call)
}

# Steps without those that ask for as many records as there are.
opendp_unresized <- function(steps, n) {
  resized <- function(step) step$name == "make_resize" && is_number(n) && identical(as.double(unlist(step$arguments[["size"]])), as.double(n))
  Filter(Negate(resized), steps)
}

# A variance about the exact mean is a function of two sums, of which only the second has a number: the published one.
opendp_variance <- function(measured, value, variable, n, path, call) {
  last <- length(measured$steps)
  step <- measured$steps[[last]]
  measured$steps[[last]]$name <- "make_sum"
  sums <- opendp_statistic(measured$steps, variable, n, NULL, path, call)
  noise <- opendp_mechanism(measured, sums, path, call)
  ddof <- step$arguments[["ddof"]] %||% 1
  if (!is_number(n) || !is_number(ddof) || n <= ddof) {
    stop_classed("file", "{.file {path}} must give {.code make_variance} the size of its data, larger than its {.field ddof}; or give {.arg n}.", call = call)
  }
  if (!is_number(value)) stop_argument("value", "one number, the variance", describe(value), "value", call)
  bounds <- stats::setNames(list(c(sums$columns$lower, sums$columns$upper)), variable)
  both <- stat_sums(stats::as.formula(sprintf("~ %1$s + I(%1$s^2)", format_name(variable))), bounds, rescale = FALSE)
  variance <- substitute((s[, 2L] - s[, 1L]^2 / n) / (n - ddof), list(n = as.double(n), ddof = as.double(ddof)))
  log_density <- if (is.null(noise$scale)) substitute(function(z, s) -(z[, 2L] - v)^2 / (2 * sd^2), list(v = variance, sd = noise$sd)) else
    substitute(function(z, s) -abs(z[, 2L] - v) / scale, list(v = variance, scale = noise$scale))
  list(value = stats::setNames(c(0, value), both$components), statistic = both, mechanism = mech_custom(log_density = eval(log_density, baseenv())), n = as.double(n))
}

# public keys that are not in the value were hidden
opendp_hidden <- function(value, statistic) {
  value <- named_value(statistic, value, NULL)
  if (!all(names(value) %in% statistic$components) || is.null(names(value))) return(value)
  stats::setNames(value[match(statistic$components, names(value))], statistic$components)
}

# everyone's answers
opendp_response <- function(measured, value, variable, statistic, path, call) {
  if (length(measured$steps)) {
    stop_classed("file", c("{.file {path}} changes records before randomised response, which is not understood.",
                           x = "{.code {measured$steps[[1L]]$name}}."), call = call)
  }
  kept <- opendp_scalar(measured$noise, "prob", path, call)
  levels <- if (measured$noise$name == "make_randomized_response_bool") c("FALSE", "TRUE") else
    json_labels(measured$noise$arguments[["categories"]])
  if (length(levels) < 2L || anyNA(levels) || is.null(kept) || kept * length(levels) <= 1 || kept >= 1) {
    stop_classed("file", "{.file {path}} must give {.code {measured$noise$name}} categories, and a {.field prob} above chance and below 1.", call = call)
  }
  codes <- match(as.character(unlist(value)), levels) - 1
  if (anyNA(codes)) stop_argument("value", "answers that are categories of the file", describe(value), "value", call)
  list(value = codes, statistic = statistic %||% stat_records(stats::reformulate(format_name(variable)), levels = stats::setNames(list(levels), variable)),
       mechanism = mech_randomized_response(epsilon = log(kept / (1 - kept) * (length(levels) - 1))), n = length(codes))
}

# a positive number, or NULL
opendp_scalar <- function(step, argument, path, call) {
  x <- step$arguments[[argument]]
  if (!is.null(x) && (!is_number(x) || x <= 0)) stop_classed("file", "{.file {path}} must give {.code {step$name}} a positive {argument}.", call = call)
  x
}

opendp_mechanism <- function(measured, statistic, path, call) {
  noise <- measured$noise
  scale <- opendp_scalar(noise, "scale", path, call)
  if (is.null(scale)) stop_classed("file", "{.file {path}} must give {.code {noise$name}} a positive scale.", call = call)
  kind <- if (!grepl("noise", noise$name)) noise$name else {
    measure <- opendp_call(noise$arguments[["output_measure"]])
    measure <- (if (identical(measure$name, "approximate")) opendp_call(measure$arguments[["measure"]]) else measure)$name %||% "none"
    c(max_divergence = "laplace", zero_concentrated_divergence = "gaussian")[measure]
  }
  if (is.na(kind)) stop_classed("file", "{.file {path}} gives {.code {noise$name}} an {.field output_measure} that is not understood.", call = call)
  integers <- c("int", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize")
  # the type of what is summed, not of what it was made from
  counts <- utils::tail(measured$steps, 1L)
  type <- opendp_argument(counts, "TO") %||% opendp_argument(counts, "TOA") %||% opendp_argument(counts, "TV") %||%
    opendp_argument(list(noise), "T") %||% unlist(noise$arguments)
  # what clamps integers does not say that they are
  whole <- integer_valued(statistic) && (grepl("discrete|geometric", noise$name) || any(type %in% integers))
  step <- if (is_number(noise$arguments[["k"]])) 2^noise$arguments[["k"]] else 0
  if (step > max(scale / 100, whole)) {
    stop_classed("file", "{.file {path}} gives {.code {noise$name}} noise in steps of 2^k = {step}, too large to be ignored at a scale of {scale}.", call = call)
  }
  if (grepl("gaussian", kind)) (if (whole) mech_discrete_gaussian else mech_gaussian)(sd = scale) else
    (if (whole) mech_discrete_laplace else mech_laplace)(scale = scale)
}

# `keys`: of counts that were shown
opendp_statistic <- function(steps, variable, n, keys, path, call) {
  names <- vapply(steps, `[[`, "", "name")
  strange <- unique(names[!grepl(opendp_known, names)])
  if (length(strange)) {
    stop_classed("file", c("{.arg statistic} must be given: {.file {path}} has {cli::qty(strange)}{?a step/steps} that {?is/are} not understood.",
                           x = "{.code {strange}}.",
                           i = if ("make_resize" %in% strange) "If the data have as many records as {.code make_resize} asks for, give this number as {.arg n}."),
                 call = call)
  }
  last <- if (length(names)) names[length(names)] else "no transformation"
  formula <- stats::reformulate(format_name(variable))
  of <- function(x) stats::setNames(list(x), variable)
  if (last == "make_count") return(stat_size())
  if (last == "make_count_by" && length(keys)) return(stat_counts(formula, of(keys)))
  if (last == "make_count_by_categories") return(opendp_counts(steps, formula, of, path, call))
  bounds <- opendp_argument(steps, "bounds")
  total <- grepl("(sum|mean)$", last) && is.numeric(bounds) && length(bounds) == 2L
  if (total && !grepl("mean$", last)) return(stat_sums(formula, of(bounds)))
  if (total && !is.null(n)) return(stat_means(stat_sums(formula, of(bounds)), n))
  stop_classed("file", c("{.arg statistic} must be given: what {.file {path}} releases is not understood.",
                         x = "It has {shorten_list(if (length(names)) names else last, 12L)}.",
                         i = "A sum needs bounds, a mean bounds and the number of records, {.code make_count_by} a threshold and a value named by keys."), call = call)
}

# The counts that each node of a tree adds up, from the root on. Leaves are counts in their order; those after the last count have nobody.
opendp_nodes <- function(statistic, step, value, path, call) {
  leaves <- step$arguments[["leaf_count"]]
  branches <- step$arguments[["branching_factor"]]
  ok <- is_number(leaves) && is_number(branches) && leaves >= 1 && branches >= 2 && as.double(leaves) * branches <= most_unpublished && is_table(statistic)
  if (!ok) {
    stop_classed("file", "{.file {path}} must give {.code make_b_ary_tree} counts by category, a {.field leaf_count} and a {.field branching_factor}.", call = call)
  }
  below <- 1 # leaves of the root
  while (below < leaves) below <- below * branches
  missing <- below - leaves
  counts <- utils::head(statistic$components, leaves)
  nodes <- list()
  for (width in round(below / branches^seq(0, round(log(below, branches))))) {
    nodes <- c(nodes, split(counts, factor((seq_along(counts) - 1) %/% width, seq(0, below / width - 1))))
  }
  nodes <- utils::head(nodes, length(nodes) - missing)
  if (length(value) != length(nodes)) {
    stop_argument("value", paste("a number for each of the", length(nodes), "nodes of the tree, from the root on"), describe(value), "value", call)
  }
  stats::setNames(nodes, paste("node", seq_along(nodes)))
}

opendp_counts <- function(steps, formula, of, path, call) {
  categories <- opendp_argument(steps, "categories")
  edges <- opendp_argument(steps, "edges")
  if (is.null(edges)) {
    levels <- as.character(categories)
    return(stat_counts(formula, of(c(levels, if (!isFALSE(opendp_argument(steps, "null_category"))) "other"))))
  }
  if (!is.numeric(edges) || !is.numeric(categories) || !identical(as.double(categories), as.double(seq(0, length(edges))))) {
    stop_classed("file", "{.file {path}} must count the bins of {.code make_find_bin} in their order, from 0 to {length(edges)}.", call = call)
  }
  stat_histogram(formula, of(c(-Inf, edges, Inf)))
}
