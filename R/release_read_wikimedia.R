#' @section Page views published by the Wikimedia Foundation: `format = "wikimedia"`, with the arguments `country`, `project`, `pages`, `date`, `mechanism` and
#'   `columns`, all `NULL` by default.
#'
#' The Foundation publishes noisy daily counts of page views by country, project and page if they are large enough. Noise and threshold changed over time and
#' follow from the date.
#'
#' * `file`: the name of a file of one day, its columns separated by tabs, or a data frame of its rows.
#' * `country`, `project`: the country and project to read, as in the file; `NULL` if the file has only one.
#' * `pages`: titles, or numbers (`page_id`), of two or more pages; pages that are not in the file were hidden. `NULL` uses the pages in the file; the set of
#'   other possible pages is then unknown.
#' * `date`: the day, a [Date] or a text such as `"2023-02-06"`; `NULL` reads it from the name of the file.
#' * `mechanism`: the noise and the threshold; `NULL` derives them from the date.
#' * `columns`: names of the file's columns, if the first row does not contain them.
#'
#' **The layout** follows the Foundation's documentation: columns `country`, `project`, `page_id`, `page_title` and `private_count` (in earlier files
#' `gbc`); other columns are ignored.
#'
#' **Noise and threshold by date**, as documented: until 8 February 2017, Laplace noise of scale 300 (up to 300 views per user at epsilon = 1) with a threshold
#' of 3,500. Until 5 February 2023, scale 30 with a threshold of 450. Since then, Gaussian noise with rho = 0.015 for a user's first 10 different pages of a
#' day, that is, an sd of sqrt(10 / (2 rho)) = 18.3, with a threshold of 90. Counts are whole numbers, so the noise is discrete. Since 15 February 2024 some
#' countries have other values: give them by `mechanism`, as in `published(mech_discrete_gaussian(sd = 25), threshold = 150)`.
#'
#' **What a record is.** A view of one of these pages from that country; the number of views is not known. The documented guarantee covers all views of a user.
#' Neighbours here differ in one view, so the budget is smaller than documented. A page must have had more than 150 views worldwide that day to be counted at
#' all: do not name other pages in `pages`.
#'
#' @references
#' Adeleye, T. et al. (2023). Publishing Wikipedia usage data with strong privacy guarantees. \doi{10.48550/arXiv.2308.16298}
#' @examples
#'
#' # rows of Wikimedia made by hand; the numbers are invented
#' views <- data.frame(country = "France", project = "fr.wikipedia", page_id = c(11, 12, 15),
#'   page_title = c("Lyon", "Paris", "Nice"), private_count = c(311, 927, 118))
#' read_release(views, pages = c("Paris", "Lyon", "Lens"), date = "2023-06-01")
#' @name read_release
NULL

read_wikimedia <- function(file, country = NULL, project = NULL, pages = NULL, date = NULL, mechanism = NULL, columns = NULL) {
  check_given()
  table <- wikimedia_table(file, columns)
  table <- wikimedia_rows(wikimedia_rows(table, "country", country), "project", project)
  if (!is.null(mechanism)) check_mechanism(mechanism)
  mechanism <- mechanism %||% wikimedia_mechanism(wikimedia_date(date, file))
  if (is.null(pages)) {
    pages <- table$page_title
    if (!is.null(mechanism$after)) mechanism$after$listed <- FALSE
  } else {
    wanted <- is.character(pages) || (is.numeric(pages) && all(is.finite(pages)))
    if (!wanted || length(pages) < 2L || anyNA(pages) || anyDuplicated(pages)) {
      stop_argument("pages", "NULL, or the titles or numbers of at least two different pages", describe(pages))
    }
  }
  by <- if (is.numeric(pages)) text_numbers(as.character(table$page_id), "page_id") else table$page_title
  twice <- intersect(pages, by[duplicated(by)])
  if (length(twice)) {
    stop_classed("file", c("The file must have each page once, but has {.val {twice[1L]}} several times.", i = "Give {.arg pages} by number, or a {.arg project}."))
  }
  if (length(pages) < 2L) stop_classed("file", "The file must have at least two pages of that country and project, but has {length(pages)}.")
  value <- text_numbers(as.character(table$private_count), "private_count")[match(pages, by)]
  statistic <- stat_counts(~ page, levels = list(page = as.character(pages)))
  as_release(stats::setNames(value, statistic$components), statistic, mechanism, n = NULL, neighbours = "add_remove")
}

wikimedia_table <- function(file, columns, call = caller_env()) {
  needs <- c("country", "project", "page_id", "page_title", "private_count")
  if (is.data.frame(file)) {
    table <- as.data.frame(file)
  } else {
    check_path(file, call, "file")
    if (!file.exists(file) || dir.exists(file)) stop_classed("file", "There is no file {.file {file}}.", call = call)
    # titles have quotes and number signs of their own
    table <- tryCatch(utils::read.delim(file, header = is.null(columns), quote = "", comment.char = "", colClasses = "character", check.names = FALSE,
                                        encoding = "UTF-8", na.strings = character(), fill = FALSE),
                      error = function(e) stop_classed("file", c("{.file {file}} must have columns separated by tabs.", x = "{conditionMessage(e)}"), call = call))
  }
  if (!is.null(columns)) {
    if (!is.character(columns) || length(columns) != ncol(table) || anyDuplicated(columns)) {
      stop_argument("columns", paste("NULL, or the names of the file's", ncol(table), "columns"), describe(columns), call = call)
    }
    names(table) <- columns
  }
  names(table)[names(table) == "gbc"] <- "private_count"
  absent <- setdiff(needs, names(table))
  if (length(absent)) {
    stop_classed("file", c("The file must have the column{?s} {.field {absent}}.", x = "It has {shorten_list(encodeString(names(table), quote = '\"'), 20L)}.",
                           i = "If its first row has no names, give {.arg columns}."), call = call)
  }
  table
}

# of one country or project
wikimedia_rows <- function(table, column, wanted, call = caller_env()) {
  there <- unique(table[[column]])
  if (is.null(wanted) && length(there) == 1L) return(table)
  if (!checkmate::test_choice(wanted, there)) {
    stop_argument(column, paste("one of", shorten_list(encodeString(there, quote = "\""), 8L)), describe(wanted), call = call)
  }
  table[table[[column]] == wanted, , drop = FALSE]
}

wikimedia_date <- function(date, file, call = caller_env()) {
  if (is.null(date) && is.character(file)) {
    found <- regmatches(basename(file), regexpr("[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", basename(file)))
    if (length(found)) date <- found
  }
  day <- if (inherits(date, "Date") || checkmate::test_string(date)) tryCatch(as.Date(date), error = function(e) NULL)
  if (length(day) != 1L || is.na(day)) stop_argument("date", "a day such as \"2023-02-06\", because the noise depends on it", describe(date), call = call)
  if (day < as.Date("2015-07-01")) stop_argument("date", "1 July 2015 or later, when these numbers begin", format(day), call = call)
  day
}

wikimedia_mechanism <- function(day) {
  if (day < as.Date("2017-02-09")) return(published(mech_discrete_laplace(scale = 300), threshold = 3500))
  if (day < as.Date("2023-02-06")) return(published(mech_discrete_laplace(scale = 30), threshold = 450))
  published(mech_discrete_gaussian(sd = sqrt(10 / (2 * 0.015))), threshold = 90)
}
