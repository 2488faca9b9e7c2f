#' @section Files of the 2020 US Census: `format = "census_nmf"`, with the arguments `query`, `geocode`, `levels` and `n`, for noisy measurement files, and
#'   `format = "census_gls"`, with the arguments `statistic`, `queries`, `geocode` and `n`, for least squares estimates.
#'
#' The Census Bureau published the noisy counts that its disclosure avoidance system made before they were adjusted to one another, and least squares
#' estimates of them with their standard deviations.
#'
#' * `file`: the name of a text file in the published layout, or of a parquet file (which the package nanoparquet reads, if it is installed); or a
#'   data frame with the columns of that layout.
#' * `geocode`: the geography, by its code in the file; `NULL` (the default) if the file has one.
#' * `query`: names of queries as in the file, such as `"votingage * hispanic_dpq"`. Several names give a release of several statistics of the same records.
#' * `levels`: a named list with the levels of each variable of the queries, in the order of the file; the variables of
#'   the redistricting data are known: `hhgq`, `votingage`, `hispanic`, `cenrace` and `h1`.
#' * `statistic`: the statistic that was estimated, such as [stat_counts()].
#' * `queries`: the query in the file for each component of the statistic: codes named by components, as in `c("race=white" = "P0010003")`.
#' * `n`: the number of records in that geography; `NULL` (the default) if it is not known.
#'
#' **Noisy measurements**: columns `geocode`, `query_name`, `value` and `variance`, and a column for each variable, which shows how it enters the query (`*`:
#' not at all). `value` has the counts of a query as an array, with the last variable varying fastest. The noise is discrete Gaussian, and neighbours differ in
#' a replaced record. Constraints (rows with a `sign`) are left out. A query without variables, such as `"total_dpq"`, counts the records ([stat_size()]), so
#' `n` must be `NULL`. A replaced person may live elsewhere, so neighbours of a release with this query differ in a record added or removed.
#'
#' **Least squares estimates**: a file separated by `|` with the columns `geocode`, `query`, `estimate`, `std_dev`. The estimates of a geography are correlated,
#' and their correlations are not published. This release treats them as independent, which is correct for a single estimate and a working approximation for a
#' few cells that do not overlap. For anything more, use the noisy measurements.
#'
#' @references
#' Abowd, J. et al. (2022). The 2020 Census disclosure avoidance system TopDown algorithm. *Harvard Data Science
#' Review*, Special Issue 2. \doi{10.1162/99608f92.529e3cb9}
#'
#' Cumings-Menon, R. (2024). Full-information estimation for hierarchical data. \doi{10.48550/arXiv.2404.13164}
#' @examples
#'
#' # the noisy measurements of the US Census, made by hand in their layout
#' measured <- data.frame(geocode = "01001", query_name = "votingage * hispanic_dpq",
#'   value = "[310, 25, 1040, 61]", variance = 12.4,
#'   votingage = "votingage", hispanic = "hispanic", hhgq = "*", cenrace = "*")
#' read_release(measured, query = "votingage * hispanic_dpq", n = 1440)
#'
#' # and least squares estimates
#' estimated <- data.frame(geocode = "01001020100", query = c("P0010001", "P0010003"),
#'   estimate = c(1773.9, 1385.2), std_dev = c(1.64, 2.34))
#' races <- stat_counts(~ race, levels = list(race = c("white", "other")))
#' read_release(estimated, statistic = races, queries = c("race=white" = "P0010003"), n = 1775)
#' @concept census
#' @name read_release
NULL

read_census_nmf <- function(file, geocode = NULL, query, levels = NULL, n = NULL) {
  check_given()
  table <- census_table(file, ",", c("geocode", "query_name", "value", "variance"))
  table <- rows_of(table, geocode)
  if (!is.null(table$sign)) table <- table[is.na(table$sign), , drop = FALSE]
  there <- unique(table$query_name)
  if (!is.character(query) || length(query) == 0L || anyDuplicated(query) || !all(query %in% there)) {
    stop_argument("query", paste("some of", shorten_list(encodeString(there, quote = "\""), 12L)), describe(query))
  }
  parts <- lapply(query, function(name) census_query(table[table$query_name %in% name, , drop = FALSE], name, levels))
  counts_all <- vapply(parts, function(part) inherits(part$statistic, "stat_size"), TRUE)
  neighbours <- if (any(counts_all)) "add_remove" else "replace"
  if (any(counts_all) && !is.null(n)) stop_argument("n", "NULL if a query counts all records", describe(n))
  if (length(query) == 1L) return(as_release(parts[[1L]]$value, parts[[1L]]$statistic, parts[[1L]]$mechanism, n, neighbours = neighbours))
  all_of <- function(field) stats::setNames(lapply(parts, `[[`, field), query)
  as_release(all_of("value"), all_of("statistic"), all_of("mechanism"), n, neighbours = neighbours)
}

read_census_gls <- function(file, statistic, queries, geocode = NULL, n = NULL) {
  check_given()
  check_statistic(statistic)
  ok <- is.character(queries) && length(queries) > 0L && checkmate::test_names(names(queries), "unique") && !anyDuplicated(queries)
  if (!ok) stop_argument("queries", "codes of queries named by components", describe(queries))
  table <- rows_of(census_table(file, "|", c("geocode", "query", "estimate", "std_dev")), geocode)
  rows <- match(queries, table$query)
  if (anyNA(rows)) stop_classed("file", "The file has no quer{?y/ies} {.val {queries[is.na(rows)]}} of that geography.")
  number <- function(column) stats::setNames(text_numbers(table[[column]][rows], column), names(queries))
  as_release(number("estimate"), statistic, mech_gaussian(sd = number("std_dev")), n)
}

census_table <- function(file, separator, needs, call = caller_env()) {
  if (is.data.frame(file)) return(check_layout(as.data.frame(file), needs, "file", call))
  read_rows(file, separator, needs, call)
}

# the variables of the redistricting data, by what their columns say of a query
census_levels <- list(
  hhgq = list(hhgq = c("household", "correctional", "juvenile", "nursing", "other institutional", "college", "military", "other noninstitutional"),
              hhinstlevels = c("household", "institutional", "noninstitutional")),
  votingage = list(votingage = c("under 18", "18 and over")),
  hispanic = list(hispanic = c("not hispanic", "hispanic")),
  cenrace = list(cenrace = local({
    races <- c("white", "black", "aian", "asian", "nhopi", "other")
    unlist(lapply(seq_along(races), function(k) utils::combn(races, k, paste, collapse = "+")))
  })),
  h1 = list(h1 = c("vacant", "occupied"))
)

# value, statistic and mechanism of one row
census_query <- function(row, name, levels, call = caller_env()) {
  if (nrow(row) != 1L) stop_classed("file", "The file must have the query {.val {name}} once per geography, but has it {nrow(row)} times.", call = call)
  variables <- intersect(c(names(census_levels), names(levels)), names(row))
  enters <- variables[!vapply(row[variables], function(x) is.na(x) || identical(as.character(x), "*"), TRUE)]
  each <- lapply(stats::setNames(nm = enters), function(v) levels[[v]] %||% known_levels(v, as.character(row[[v]]), name, call))
  value <- array_numbers(row$value[[1L]], call)
  statistic <- if (length(enters) == 0L) stat_size() else stat_counts(stats::reformulate(paste(format_name(enters), collapse = ":")), each)
  if (length(enters) == 0L && length(value) != 1L) {
    stop_classed("file", c("The query {.val {name}} has no variable and must be one count, but has {length(value)}.",
                           i = "Columns of variables: {.field {variables}}. Name other columns in {.arg levels}."), call = call)
  }
  if (length(value) != length(statistic$components)) {
    stop_classed("file", c("The query {.val {name}} must have {length(statistic$components)} counts, one for each combination of levels, but has {length(value)}.",
                           i = "Are these the levels of {.field {enters}}? Give {.arg levels}."), call = call)
  }
  list(value = value, statistic = statistic, mechanism = mech_discrete_gaussian(sd = sqrt(text_numbers(plain_text(row$variance), "variance", call))))
}

known_levels <- function(variable, spec, name, call) {
  known <- census_levels[[variable]]
  known[[if (spec == "detailed") variable else spec]] %||%
    stop_argument("levels", paste0("given for ", variable, ", which enters the query ", name, " as ", spec), "missing", call = call)
}

# an array, or its text: "[1, 2, 3]"
array_numbers <- function(value, call) {
  if (is.numeric(value)) return(as.double(value))
  value <- trimws(as.character(value))
  if (grepl("^[[{(]", value) != grepl("[]})]$", value)) {
    stop_classed("file", "The column {.field value} must have arrays such as {.val [1, 2, 3]}, but has one that is cut off.", call = call)
  }
  text <- strsplit(trimws(gsub("[][,;{}()]+", " ", value)), " +")[[1L]]
  text_numbers(text, "value", call)
}
