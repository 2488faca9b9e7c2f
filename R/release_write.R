# Writes a release as JSON: public facts only, in one piece or not at all.

#' Write a release as JSON
#'
#' The file contains only public facts. Doubles have 17 significant digits, so [read_release()] restores the same bits. The file is written to a temporary file in the
#' same folder and then renamed, so it is either complete or absent. A checksum of its contents detects changed numbers; white space does not matter. Files in
#' earlier versions of the layout can be read. Version 1 does not state the neighbours: the number of records is public, and one record is replaced. In versions
#' 1 and 2, numbers are unprocessed after the noise, and in versions 1 to 3 all numbers have noise. A hidden number ([published()]) is `null`.
#'
#' @param release A release.
#' @param path The file's name. An existing file is replaced.
#' @return The path, invisibly.
#' @section Errors: `noiseaware_error_file`: the file cannot be written, or the release has noisy records or only the numbers that a model used (`fit$release`
#'   of a narrow model).
#' @section Limits: Reading takes time proportional to the size of the file, whatever its contents. A statistic has at most 2,000 variables and 2,000 terms in a
#'   formula of at most 100,000 bytes. A statistic with more than 10,000 components is rejected before the components are computed if the file has fewer values.
#' @section Layout: An object with these fields, in this order:
#'
#' | field | content |
#' | --- | --- |
#' | `format`, `version` | `"noiseaware release"`, 4 |
#' | `n` | the public number of records, or `null` |
#' | `neighbours` | `"replace"`, `"add_remove"`; for [persons()] `"person"` or, with one replaced, `"person_replaced"` (version 5) |
#' | `contributions` | for persons, the largest number of records of one person |
#' | `missing` | `"refused"` |
#' | `noise` | `"published"` for numbers from others; `"entropy"` from [release()], with a field `granularity` after it; `"floating"`; `"simulation"` |
#' | `statistic` | an object with a `name` and the statistic's fields, see below; or an object of these, by their names |
#' | `mechanism` | an object with a `name`, such as `laplace`, the arguments of its function, and in `published` the later processing; or an object of these |
#' | `value` | a number, or `null` if hidden, for each component: `"port=C"`; for several statistics `"sizes: port=C"` |
#' | `checksum` | MD5 of the file without this field and without a line break at its end |
#'
#' Statistics are `size`; `counts` (with `formula`, `levels`); `sums` (`formula`, `bounds`, `outside`); `by` (`statistic`, `levels`); `linear` (`statistic`,
#' `queries`); `histogram` (`formula`, `breaks`, `levels`, `right`); `quantiles` (`formula`, `bounds`, `probs`, `steps`); `records`, `crossprod`, `centred`,
#' `moments4` and `objective`. `records` has a field `counted` (version 5), the answers to each variable, if `value` is the number of records with each
#' combination of answers. `smooth` (`formula`, `bounds`) has splines. A `crossprod` of rescaled variables with levels has a field `sensitivity`, `"levels"`;
#' without it, the noise was scaled by a larger sensitivity, as in earlier versions. A `crossprod` with survey weights has a field `weights`, the name of their
#' variable.
#' The text is UTF-8. Objects have a line for each field, indented by two spaces; objects that contain only numbers, and arrays, are on one line. Numbers are
#' written by `%.17g`, with up to 17 digits as needed.
#'
#' **From Python.** The module `system.file("python", "noiseaware.py", package = "noiseaware")` reads and writes such files, and needs only the standard
#' library.
#' @family making releases
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' totals <- c(y = 12.1, x = -3.4, `y^2` = 8.8, `y:x` = -2.5, `x^2` = 5.9)
#' rel <- as_release(totals, st, mech_laplace(epsilon = 1), n = 50)
#' path <- tempfile(fileext = ".json")
#' write_release(rel, path)
#' identical(read_release(path)$value, rel$value)
#' @export
write_release <- function(release, path) {
  check_given()
  check_release(release)
  check_path(path)
  if (!is.null(release$records)) {
    stop_classed("file", c("A release with noisy records cannot be written to a file.", i = "Write the noisy records instead, and call {.fn as_release} again."))
  }
  if (!is.null(release$spent)) {
    stop_classed("file", c("These are only the numbers that a model used: a file of them would state a smaller guarantee than the release has.",
                           i = "Write the release that was fitted."))
  }
  check_no_public(list(release), "A release is not written to a file with its", environment())
  if (!dir.exists(dirname(path))) stop_classed("file", "Cannot write {.file {path}}: there is no directory {.file {dirname(path)}}.")
  if (dir.exists(path)) stop_classed("file", "Cannot write {.file {path}}: it is a directory.")
  write_whole(paste0(release_json(release), "\n"), path)
  invisible(path)
}

schema_format <- "noiseaware release"
# 1 knew one kind of neighbours, and n; 2 nothing that was hidden or rounded; 3 no exact numbers; 4 no persons and no counts of answers
schema_version <- 5L

release_json <- function(release, version = if (of_persons(release$neighbours) || any_counts_answers(release$statistic)) 5L else 4L) {
  content <- list(
    format = schema_format, version = version,
    n = if (is.null(release$n)) structure("null", class = "json") else exact_numbers(release$n),
    neighbours = neighbours_json(release$neighbours, version),
    contributions = if (of_persons(release$neighbours)) contributions_of(release$neighbours),
    missing = release$missing,
    noise = release$noise,
    granularity = if (release$noise == "entropy") exact_numbers(one_if_same(release$granularity)),
    statistic = each_part(release$statistic, function(s) c(statistic_json(s), functions_json(s))),
    mechanism = each_part(release$mechanism, mechanism_json),
    value = exact_numbers(release$value)
  )
  content <- content[!vapply(content, is.null, TRUE)]
  content$checksum <- checksum(render_json(content))
  render_json(content)
}

# what a version of the layout says of them
neighbours_json <- function(neighbours, version) if (version == 1L) "one record replaced" else neighbour_kind(neighbours)

# MD5: against accidents, not against forgers
checksum <- function(text) {
  path <- tempfile("checksum-")
  on.exit(unlink(path))
  writeBin(charToRaw(enc2utf8(text)), path)
  unname(tools::md5sum(path))
}

one_if_same <- function(x) if (all(x == x[[1L]])) x[[1L]] else x

# one, or each of a named list
each_part <- function(x, f) if (is.list(x) && !is.object(x)) lapply(x, f) else f(x)

mechanism_json <- function(mechanism) {
  if (inherits(mechanism, "mech_custom")) {
    stop_classed("file", "A release with a custom noise density cannot be written as JSON; publish its value and the function's text.",
                 call = caller_env())
  }
  parameters <- unclass(mechanism)[setdiff(names(mechanism), c("name", "kernel", "after", if (is_unary(mechanism)) "n"))]
  parameters <- parameters[!vapply(parameters, is.null, TRUE)]
  after <- mechanism$after
  if (isTRUE(mechanism$noiseless)) {
    mechanism$name <- "exact"
    parameters <- NULL
  }
  steps <- c(lapply(after[names(after) != "listed"], exact_numbers), after["listed"])
  c(list(name = mechanism$name), lapply(parameters, parameter_json), if (!is.null(after)) list(published = steps))
}

# a matrix of answers: an object with an entry for each level, of objects with a probability for each answer
parameter_json <- function(p) {
  if (is.character(p) || is.logical(p)) return(p)
  if (is.list(p)) return(lapply(p, parameter_json))
  if (is.matrix(p)) lapply(stats::setNames(nm = rownames(p)), function(level) exact_numbers(p[level, ])) else exact_numbers(p)
}
