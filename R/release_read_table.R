# Published numbers in a table of rows: the meaning of each column, and what each row counts.

#' @rdname as_release
#' @export
as_release.data.frame <- function(value, statistic, mechanism, n, neighbours = c("replace", "add_remove"), ...,
                                  number = "value", noise = NULL, labels = NULL, site = NULL) {
  check_given()
  check_no_dots(...)
  if (is.null(site) || !rlang::is_bare_list(statistic)) check_statistic(statistic)
  if (!is.null(site)) {
    return(say_once({
      tell_means(number, statistic, TRUE)
      site_releases(value, statistic, mechanism, n, neighbours, number, noise, labels, site)
    }))
  }
  tell_means(number, statistic)
  given <- check_table_column(value, number, "number")
  names <- row_components(statistic, value, labels)
  if (is.function(mechanism)) mechanism <- mechanism_of_rows(mechanism, value, noise, names)
  as_release.default(stats::setNames(given, names), statistic, mechanism, n, neighbours)
}

# A column of means is no column of totals.
tell_means <- function(number, statistic, of_sites = FALSE) {
  sums <- Filter(function(one) inherits(one, "stat_sums"), if (is_several(statistic)) statistic else list(statistic))
  named <- grepl("(^|[._ ])(mean|means|avg|average)([._ ]|$)", number, ignore.case = TRUE) & !are_means(rlang::names2(number))
  if (length(sums) == 0L || !any(named)) return(invisible())
  example <- sprintf("number = c(\"mean(%s)\" = \"%s\")", sums[[1L]]$components[1L], number[named][1L])
  cli::cli_inform(c("{.field {unname(number)[named]}} {?is/are} read as totals of the records, as the statistic says, not as means.",
                    i = if (of_sites) "Means of sites with known numbers of records: {.code {example}}." else
                      "Means are entered as totals: each times its number of records, and noise given as a size as well.",
                    i = if (!of_sites) "Or use {.fn stat_means}, if all have the same number of records."), class = "noiseaware_message_means")
}

# as stat_means() calls them
are_means <- function(names) grepl("^mean[(].*[)]$", names)

# Each site has a number of records of its own, by which its totals were divided.
check_known_size <- function(n, number, call) {
  if (!is.null(n)) return(invisible())
  of <- sub("^mean[(](.*)[)]$", "\\1", names(number)[1L])
  total <- sprintf("table$total <- table$%s * table$size", number[[1L]])
  statistics <- sprintf("statistic = list(total = stat_sums(~ %s, bounds), size = stat_size())", of)
  columns <- sprintf("number = c(\"total: %s\" = \"total\", \"size: n\" = \"size\")", of)
  stop_classed("argument", c("{.arg n} must be the column with the numbers of records if the table has means, but is NULL.",
                             i = "If each mean was divided by a noisy number of records, recover the total: {.code {total}}.",
                             i = "Then use {.code {statistics}} and {.code {columns}}, with the noise of both."), call = call)
}

# A release for each site: of its rows, or of its row if each number has a column of its own.
site_releases <- function(table, statistic, mechanism, n, neighbours, number, noise, labels, site, call = caller_env()) {
  names <- site_names(table, site, call)
  sizes <- if (is.character(n)) check_table_column(table, n, "n", call)
  if (is.null(names(number)) && length(number) == 1L && length(statistic$components) == 1L) number <- stats::setNames(number, statistic$components)
  wide <- length(number) > 1L || !is.null(names(number))
  check_site_rows(names, table, number, statistic, labels, wide, call)
  of_columns <- wide && !is_several(statistic)
  means <- of_columns && all(are_means(names(number))) && !any(names(number) %in% statistic$components)
  if (means) check_known_size(n, number, call)
  published <- function(statistic) if (of_columns) published_columns(statistic, mechanism, number, neighbours, call) else list(statistic, mechanism)
  shared <- if (!means) published(statistic)
  new_sites_list(lapply(split(seq_len(nrow(table)), factor(names, unique(names))), function(rows) {
    own <- if (wide) component_rows(table[rows, , drop = FALSE], number, call) else table[rows, , drop = FALSE]
    size <- unique(sizes[rows])
    site <- names[rows[1L]]
    if (length(size) > 1L) stop_classed("value", "The column {.field {n}} must have one number of records for the site {.val {site}}, but has {size}.", call = call)
    size <- if (is.null(sizes)) n else size
    tryCatch({
      of <- shared %||% published(stat_means(statistic, size))
      if (is_several(statistic)) as_release.default(stats::setNames(own$value, own$component), of[[1L]], of[[2L]], size, neighbours) else
        as_release.data.frame(own, of[[1L]], of[[2L]], size, neighbours, number = if (wide) "value" else number, noise = noise, labels = labels)
    }, noiseaware_error = function(e) refuse_chunk(e, paste("the site", dQuote(site, FALSE)), call))
  }))
}

site_names <- function(table, site, call) {
  if (!checkmate::test_string(site, min.chars = 1L)) stop_argument("site", "the name of a column", describe(site), call = call)
  if (!site %in% names(table)) refuse_table(site, table, "{.arg site} is the column with the names of the sites.", call)
  names <- as.character(table[[site]])
  if (nrow(table) == 0L || anyNA(names)) stop_classed("value", "The column {.field {site}} must name a site in each row, and have rows.", call = call)
  names
}

# The statistic and the mechanism of the components that have a column: one that has none was never computed; one that is NA in its column may have been hidden.
published_columns <- function(statistic, mechanism, number, neighbours, call) {
  at <- named_components(stats::setNames(numeric(length(number)), names(number) %||% number), statistic, NULL, call, "number")
  if (!is.function(mechanism)) {
    tell_fewer(mechanism, statistic, at, match_neighbours(neighbours), call)
    mechanism <- published_mechanism(mechanism, statistic, at)
  }
  list(published_statistic(statistic, at), mechanism)
}

check_site_rows <- function(names, table, number, statistic, labels, wide, call) {
  if (!wide && is_several(statistic)) {
    stop_argument("number", "columns named by the statistics and their components, as in c(\"total: x\" = \"column\")", describe(number), call = call)
  }
  several <- unique(names[duplicated(names)])
  if (wide && length(several)) {
    stop_classed("value", c("A site must have one row if {.arg number} has a column for each component, but {.val {several}} {?has/have} several.",
                            i = "If each row has one number, {.arg number} is the name of one column."), call = call)
  }
  if (wide || length(several) || !isTRUE(number %in% names(table)) || names_rows(statistic, c(names(table), names(labels)))) return(invisible())
  example <- sprintf("number = c(\"%s\" = \"%s\")", statistic$components[length(statistic$components)], number)
  stop_classed("value", c("With a row for each site, {.arg number} must name the component that each column is, as in {.code {example}}.",
                          i = "Components: {shorten_list(statistic$components, 12L)}."), call = call)
}

# a row for each component, from columns that are named by `number`; what else the row says stays with them
component_rows <- function(row, number, call) {
  values <- vapply(number, function(column) check_table_column(row, column, "number", call), 0)
  rest <- row[rep(1L, length(values)), setdiff(names(row), c("component", "value", number)), drop = FALSE]
  cbind(data.frame(component = names(number) %||% number, value = values), rest, row.names = NULL)
}

# a column of numbers, named by an argument
check_table_column <- function(table, column, name, call = caller_env()) {
  if (!checkmate::test_string(column, min.chars = 1L)) stop_argument(name, "the name of a column", describe(column), call = call)
  if (!column %in% names(table)) refuse_table(column, table, paste0("Use {.arg ", name, "} to name the column."), call)
  if (!is.numeric(table[[column]]) || is.object(table[[column]])) {
    stop_classed("value", "The column {.field {column}} must be numbers, but is {describe_shape(table[[column]])}.", call = call)
  }
  as.double(table[[column]])
}

refuse_table <- function(absent, table, hint, call) {
  columns <- shorten_list(encodeString(names(table), quote = "\""), 20L)
  stop_classed("value", c("The table must have the column{?s} {.field {absent}}.", x = "It has {columns}.", i = hint), call = call)
}

# The component that each row is, by a column of their names, or by the levels of a margin's
# variables in columns of theirs. A row is of the margin whose variables are not missing in it.
row_components <- function(statistic, table, labels, call = caller_env()) {
  if ("component" %in% names(table)) return(as.character(table$component))
  whole <- whole_statistic(statistic)
  if (!is_table(whole)) refuse_table("component", table, "It names the statistic's components.", call)
  table <- rename_labels(table, labels, call)
  cells <- cell_labels(whole)
  variables <- intersect(names(cells), names(table))
  margins <- whole$margins
  if (!names_rows(whole, variables)) {
    refuse_table(setdiff(names(cells), variables), table,
                 "Use {.arg labels} to match columns and variables, as in {.code labels = c(age = \"age_group\")}.", call)
  }
  codes <- lapply(stats::setNames(nm = variables), function(v) level_codes(table[[v]], cells[[v]], v, call))
  here <- do.call(cbind, lapply(codes, function(code) !is.na(code)))
  margin <- match(apply(here, 1L, function(h) paste(sort(variables[h]), collapse = "\r")),
                  vapply(margins, function(m) paste(sort(m), collapse = "\r"), ""))
  if (anyNA(margin)) {
    shown <- vapply(margins, paste, "", collapse = ":")
    stop_classed("value", c("Every row of the table must be a cell of a margin, with levels of its variables and of no other.",
                            x = "This is not so in {rows_text(which(is.na(margin)))}.", i = "Margins of the statistic: {.code {shown}}."), call = call)
  }
  vapply(seq_along(margin), function(row) {
    in_order <- margins[[margin[row]]]
    paste0(in_order, "=", vapply(in_order, function(v) cells[[v]][codes[[v]][row]], ""), collapse = ":")
  }, "")
}

# without the choice of its components
whole_statistic <- function(statistic) if (inherits(statistic, "stat_linear") && statistic$subset) statistic$statistic else statistic

# Do the columns say which component a row is?
names_rows <- function(statistic, columns) {
  "component" %in% columns || any(vapply(whole_statistic(statistic)$margins, function(m) all(m %in% columns), TRUE))
}

rename_labels <- function(table, labels, call) {
  if (is.null(labels)) return(table)
  ok <- is.character(labels) && checkmate::test_names(names(labels), "unique") && !anyDuplicated(labels)
  if (!ok) stop_argument("labels", "names of columns, named by variables", describe(labels), call = call)
  absent <- setdiff(labels, names(table))
  if (length(absent)) refuse_table(absent, table, "{.arg labels} names it.", call)
  table <- table[setdiff(names(table), setdiff(names(labels), labels))]
  names(table)[match(labels, names(table))] <- names(labels)
  table
}

# NA where there is none
level_codes <- function(column, levels, variable, call) {
  codes <- match(level_text(column), levels)
  codes[is.na(codes)] <- match(as.character(column[is.na(codes)]), levels)
  strange <- is.na(codes) & !is.na(column)
  if (any(strange)) {
    stop_classed("value", c("The column {.field {variable}} must have declared levels, or be missing if the row does not concern {.var {variable}}.",
                            x = "Not a level: {.val {shorten_texts(unique(as.character(column[strange])))}}.",
                            i = "Declared: {shorten_list(encodeString(levels, quote = '\"'))}."), call = call)
  }
  codes
}

# A mechanism of noise whose size each row tells: `mechanism` is a function such as mech_gaussian.
mechanism_of_rows <- function(mechanism, table, noise, names, call = caller_env()) {
  takes <- size_argument(mechanism, call)
  if (is.null(noise)) {
    column <- intersect(c(takes, "sd"), names(table))[1L]
    if (is.na(column)) {
      refuse_table(takes, table, paste("It is the size of each number's noise:", noise_forms, "names the column, or give a {.arg mechanism} made from it."), call)
    }
    noise <- stats::setNames(column, column)
  }
  noise <- check_noise_column(noise, call)
  size <- check_table_column(table, noise$column, "noise", call)
  if (noise$what == "epsilon") {
    if (takes != "scale") stop_argument("noise", "for Laplace noise, if it is a budget and a sensitivity", "for another mechanism", call = call)
    size <- row_sensitivity(table, noise$sensitivity, call) / size
    noise$what <- "scale"
  }
  if (anyDuplicated(names)) {
    stop_classed("value", "Every component must be in one row of the table, but {.val {unique(names[duplicated(names)])}} {?is/are} in several.", call = call)
  }
  mechanism_of_size(mechanism, stats::setNames(size, names), noise, call)
}

mechanism_of_size <- function(mechanism, size, noise, call) {
  do.call(mechanism, stats::setNames(list(noise_parameter(size, noise, mechanism, call)), size_argument(mechanism, call)))
}

noise_forms <- paste("{.code noise = c(sd = \"column\")}, {.code c(scale = )}, {.code c(variance = )},",
                     "{.code c(margin = \"column\", level = 0.95)} or, of Laplace noise, {.code c(epsilon = \"column\", sensitivity = 3)}")

# A column's name does not say what is in it, so the user does: list(what, column, level, sensitivity)
check_noise_column <- function(noise, call) {
  noise <- as.list(noise)
  what <- names(noise)[1L]
  forms <- list(sd = "sd", scale = "scale", variance = "variance", margin = c("margin", "level"), epsilon = c("epsilon", "sensitivity"))
  named <- isTRUE(what %in% names(forms)) && length(noise) == length(forms[[what]]) && setequal(names(noise), forms[[what]])
  level <- suppressWarnings(as.numeric(noise$level %||% 0.5))
  ok <- named && checkmate::test_string(noise[[what]], min.chars = 1L) && checkmate::test_number(level) && level > 0 && level < 1
  if (!ok || !checkmate::test_scalar(noise$sensitivity, null.ok = TRUE)) {
    stop_classed("argument", c("{.arg noise} must name the column and how it expresses the noise.", i = noise_forms,
                               x = if (identical(what, "margin") && is.null(noise$level)) "{.arg level} is missing: the share of the noise that lies within the margin.",
                               x = if (!is.null(noise$level) && !isTRUE(level > 0 && level < 1))
                                 "{.arg level} must be a share such as 0.9, but is {noise$level}."), call = call)
  }
  list(what = what, column = noise[[what]], level = level, sensitivity = noise$sensitivity)
}

# what one person can change, a column or a number
row_sensitivity <- function(table, each, call) {
  if (each %in% names(table)) return(check_table_column(table, each, "noise", call))
  number <- suppressWarnings(as.numeric(each))
  if (is.na(number)) stop_argument("noise", "a sensitivity that is a number or the name of a column", describe(each), call = call)
  number
}

# The sd or the scale that the mechanism takes, of what was published of its noise. The variance v of discrete Laplace noise is
# 2 p / (1 - p)^2, p = exp(-1 / scale).
noise_parameter <- function(size, noise, mechanism, call) {
  if (noise$what == "scale") return(size)
  # asked of what the function makes, which may be a user's function
  family <- if (size_argument(mechanism, call) == "scale") do.call(mechanism, list(scale = 1))$name else "gaussian"
  laplace <- family == "laplace"
  discrete <- family == "discrete_laplace"
  if (!laplace && !discrete && family != "gaussian") stop_argument("noise", "a scale, unless noise is Laplace or Gaussian", noise$what, call = call)
  if (noise$what == "margin" && discrete) {
    stop_argument("noise", "a scale, an sd or a variance, because discrete Laplace noise has margins only at a few levels", "a margin of error", call = call)
  }
  if (noise$what == "margin") return(size / if (laplace) -log1p(-noise$level) else stats::qnorm((1 + noise$level) / 2))
  sd <- if (noise$what == "variance") sqrt(size) else size
  if (laplace) sd / sqrt(2) else if (discrete) 1 / log1p((1 + sqrt(2 * sd^2 + 1)) / sd^2) else sd
}

# ---- files of rows ---------------------------------------------------------------------

# A file of text with a header line, its columns as they are written. `needs`: columns.
read_rows <- function(path, separator, needs, call = caller_env()) {
  check_path(path, call)
  if (!file.exists(path) || dir.exists(path)) stop_classed("file", "There is no file {.file {path}}.", call = call)
  if (file.size(path) > largest_file) stop_classed("file", "{.file {path}} must have at most 64 MB; choose its rows first.", call = call)
  if (grepl("[.]parquet$", path)) return(check_layout(read_parquet_rows(path, call), needs, path, call))
  table <- tryCatch(utils::read.table(path, header = TRUE, sep = separator, quote = "\"", comment.char = "", colClasses = "character",
                                      check.names = FALSE, na.strings = "", fileEncoding = "UTF-8-BOM"),
                    error = function(e) NULL, warning = function(w) NULL)
  if (is.null(table)) {
    stop_classed("file", "{.file {path}} must have columns separated by {.val {separator}}, but cannot be read: is it truncated, or in another layout?",
                 call = call)
  }
  check_layout(table, needs, path, call)
}

# by nanoparquet, if that is there
read_parquet_rows <- function(path, call) {
  if (!requireNamespace("nanoparquet", quietly = TRUE)) {
    stop_classed("file", c("{.file {path}} is a parquet file, which needs the package {.pkg nanoparquet}: it is not installed.",
                           i = "Or read it with another package, as with {.code arrow::read_parquet()}, and supply the data frame."), call = call)
  }
  table <- tryCatch(as.data.frame(nanoparquet::read_parquet(path)), error = function(e) NULL)
  if (is.null(table)) stop_classed("file", "{.file {path}} must be a parquet file, but cannot be read: is it truncated, or in another format?", call = call)
  texts <- vapply(table, is.character, TRUE)
  table[texts] <- lapply(table[texts], function(text) replace(text, text == "", NA)) # as in a file of text
  table
}

check_layout <- function(table, needs, what, call = caller_env()) {
  absent <- setdiff(needs, names(table))
  if (length(absent) == 0L) return(table)
  columns <- shorten_list(encodeString(names(table), quote = "\""), 20L)
  stop_classed("file", c("{.file {what}} has another layout: it must have the {cli::qty(absent)}column{?s} {.field {absent}}.", x = "It has {columns}."), call = call)
}

# numbers of a column of texts
text_numbers <- function(text, column, call = caller_env()) {
  numbers <- suppressWarnings(as.double(text))
  if (anyNA(numbers) || !all(is.finite(numbers))) {
    stop_classed("file", "The column {.field {column}} must have finite numbers, but does not in {rows_text(which(!is.finite(numbers)))}.", call = call)
  }
  numbers
}

check_known_fields <- function(x, known, where, call = caller_env()) {
  strange <- setdiff(names(x), known)
  if (length(strange)) stop_classed("file", c("{where} must have only {.field {known}}.", x = "Not known: {.field {shorten_texts(strange)}}."), call = call)
}

# the rows of one geography, chosen where there are several
rows_of <- function(table, geocode, call = caller_env()) {
  there <- unique(table$geocode)
  if (is.null(geocode) && length(there) == 1L) return(table)
  if (!checkmate::test_string(geocode) || !geocode %in% there) {
    stop_argument("geocode", paste("one of", shorten_list(encodeString(there, quote = "\""), 8L)), if (is.null(geocode)) "missing" else describe(geocode), call = call)
  }
  table[table$geocode %in% geocode, , drop = FALSE]
}
