# Noisy margins of a table, each a vector of counts with its variables and the size of its noise: called marginals by projects that fit graphical models to
# them.

#' @section Noisy margins of a table: `format = "marginals"`, with the arguments `mechanism`, `n` and `neighbours`.
#'
#' Marginals as stored by OpenDP's contingency tables and Private-PGM (`mbi`): values, clique and standard deviation. The result is a release for
#' [model_table()], which gives the posterior of the whole table.
#'
#' * `file`: the name of a JSON file, or a list. Its element `levels` has all levels of each variable, by name. Each of its `marginals` has a `clique` (names
#'   of variables), `values` (the noisy counts, with the last variable of the clique varying fastest) and the size of the noise as `sd`, `scale` or `variance`.
#' * `mechanism`: a function, [mech_discrete_gaussian] (OpenDP with a zero-concentrated budget), [mech_discrete_laplace] (with a pure one), or
#'   [mech_gaussian] if measurements of the same clique were averaged.
#' * `n`: the public number of records; `NULL` (the default) if it is not known.
#' * `neighbours`: as in [as_release()]; by default `"add_remove"`.
#'
#' In Python, `write_marginals(path, table)` from the module `system.file("python", "noiseaware.py", package = "noiseaware")` writes the file. Use
#' `laplace=True` if the budget was pure: OpenDP's `stddev` is then sqrt(2) times the scale.
#'
#' **The noisy measurements, not the fitted table.** The results of `project()` and `project_melted()` for OpenDP's tables, and synthetic data made from them,
#' were adjusted so that margins agree; their noise has no known distribution. The noise of the measurements themselves (`table.marginals`) does.
#'
#' **Margins selected using the data** (AIM, MST) were published because a noisy score was large. This selection also depends on the data; it is ignored here.
#'
#' @examples
#'
#' # noisy margins
#' noisy <- list(levels = list(sex = c("f", "m"), smoke = c("no", "yes")),
#'   marginals = list(
#'     list(clique = "sex", values = c(52, 46), sd = 1.5),
#'     list(clique = c("sex", "smoke"), values = c(37, 14, 30, 18), sd = 3)))
#' read_release(noisy, mechanism = mech_discrete_gaussian)
#' @name read_release
NULL

read_marginals <- function(file, mechanism, n = NULL, neighbours = "add_remove") {
  check_given()
  content <- if (is.character(file)) {
    check_path(file, name = "file")
    read_json(file)
  } else file
  # a level that is null in JSON counts what is in no other
  levels <- if (is.list(content) && is.list(content[["levels"]])) lapply(content[["levels"]], json_labels, "missing")
  if (length(levels) == 0L || !is.list(content[["marginals"]]) || length(content[["marginals"]]) == 0L) {
    stop_argument("file", "a JSON file or a list with levels and marginals", describe(file))
  }
  check_known_fields(content, c("levels", "marginals"), "The file")
  parts <- lapply(seq_along(content[["marginals"]]), function(k) marginal_part(content[["marginals"]][[k]], levels, mechanism, k))
  names(parts) <- make.unique(vapply(parts, `[[`, "", "name"))
  all_of <- function(field) if (length(parts) == 1L) parts[[1L]][[field]] else lapply(parts, `[[`, field)
  as_release(all_of("value"), all_of("statistic"), all_of("mechanism"), n, neighbours = neighbours)
}

marginal_part <- function(x, levels, mechanism, k, call = caller_env()) {
  refuse <- function(message) {
    stop_classed("file", c("Marginal {k} must have a clique, its counts and the size of their noise.", x = message), call = call, .envir = parent.frame())
  }
  if (!is.list(x)) refuse("It is {describe(x)}.")
  sizes <- c("sd", "scale", "variance")
  check_known_fields(x, c("clique", "values", sizes), paste("Marginal", k), call)
  clique <- json_labels(as.list(x[["clique"]]))
  what <- intersect(sizes, names(x))
  if (length(clique) == 0L || anyDuplicated(clique)) refuse("Its clique must be names of variables.")
  if (!all(clique %in% names(levels))) refuse("There are no levels of {.var {setdiff(clique, names(levels))}}.")
  values <- suppressWarnings(as.double(unlist(x[["values"]])))
  size <- prod(lengths(levels[clique]))
  if (length(values) != size || !all(is.finite(values))) {
    refuse("{.var {paste(clique, collapse = ':')}} has {size} cells, but there are {length(values)} values, or some are not finite numbers.")
  }
  if (length(what) != 1L || !is_number(x[[what]]) || x[[what]] <= 0) refuse("It must have one of {.field sd}, {.field scale} and {.field variance}, a positive number.")
  statistic <- stat_counts(stats::reformulate(paste(format_name(clique), collapse = ":")), levels[clique])
  list(name = paste(clique, collapse = ":"), statistic = statistic, value = stats::setNames(values, statistic$components),
       mechanism = mechanism_of_size(mechanism, x[[what]], list(what = what), call))
}
