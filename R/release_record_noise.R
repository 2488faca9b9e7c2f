# Releases of noisy records: the totals of these records, from moments that are computed chunk by chunk.

check_records_unbounded <- function(statistic, mechanism, call = caller_env()) {
  if (!inherits(mechanism, "mech_record_noise") || !inherits(statistic, "stat_records") || is_unbounded(statistic)) return(invisible())
  stop_classed("mechanism", c("Noisy records have no bounds: leave {.arg bounds} out of {.fn stat_records}.",
                              i = "For noise on values within bounds use {.fn mech_gaussian}."), call = call)
}

# Totals of noisy records and of their products, in one pass. The statistic's bounds are about what was seen.
noisy_release <- function(data, statistic, mechanism, n, ..., call = caller_env()) {
  check_no_dots(..., call = call)
  if (!is.null(n)) stop_argument("n", "absent or NULL for noisy records, which determine their number", describe(n), call = call)
  check_design(statistic, mechanism, call = call)
  factors <- names(statistic$levels)
  variables <- statistic$columns$name
  template <- expand_columns(variables, stats::setNames(lapply(variables, function(v) statistic$levels[[v]] %||% c(-1, 1)), variables))
  products <- has_products(text_formula(statistic$formula))
  kept <- products || !is.null(mechanism$answers)
  moments <- record_moments(data, template, statistic$levels, kept, call)
  n <- moments$n
  number <- setdiff(variables, factors)
  seen <- moments$square[number] / n
  if (!all(is.finite(moments$cross)) || any(seen <= 0)) {
    odd <- number[!is.finite(seen) | seen <= 0]
    stop_classed("data", "The noisy values of {.var {odd}} must differ, and their squares must not overflow.", call = call)
  }
  # of the confidential values, if noise leaves so much of them
  noise <- record_sd(mechanism, data.frame(name = number))^2
  sd <- stats::setNames(sqrt(pmax(seen - noise, seen / 25)), number)
  bounds <- lapply(stats::setNames(nm = variables), function(v) statistic$levels[[v]] %||% (moments$mean[[v]] + c(-3, 3) * sd[[v]]))
  response <- text_formula(statistic$formula)
  formula <- if (length(response) == 3L && !products) response else stats::reformulate(if (length(variables) > 1L) variables[-1L] else "1", variables[1L])
  totals <- stat_crossprod(formula, bounds, rescale = FALSE)
  value <- stats::setNames(products_of_moments(totals, moments$cross), totals$components)
  # the default of a model's formula
  if (products) totals$formula <- statistic$formula
  release <- new_release(value, totals, mechanism, n, rep(NA_real_, length(value)), 0, "published", "replace")
  release$records <- moments$records
  release
}

# A list: n; `records`, a matrix of them all if they are to be kept, else NULL; the products of (1, columns); of each column the mean
# and the sum of squares about it. Sums are of values less the first chunk's means, so that no digits are lost.
record_moments <- function(data, columns, levels, kept, call) {
  whole <- NULL
  records <- list()
  origin <- NULL
  add <- function(chunk) {
    x <- record_matrix(chunk, columns, levels, call, "value")
    if (is.null(origin)) origin <<- colMeans(x)
    if (kept) records[[length(records) + 1L]] <<- x
    part <- crossprod(cbind(1, sweep(x, 2L, origin)))
    whole <<- if (is.null(whole)) part else whole + part
  }
  each_chunk(readable_source(data, call), columns, levels, add, call)
  if (is.null(whole)) stop_classed("data", "{.arg value} must have at least one record, but has none.", call = call)
  n <- whole[1L, 1L]
  shift <- diag(ncol(whole))
  shift[-1L, 1L] <- origin
  names <- columns$name
  centred <- whole[1L, -1L] / n
  list(n = n, records = if (kept) do.call(rbind, records), cross = shift %*% whole %*% t(shift), mean = stats::setNames(origin + centred, names),
       square = stats::setNames(diag(whole)[-1L] - n * centred^2, names))
}

each_chunk <- function(data, columns, levels, add, call) UseMethod("each_chunk")

#' @export
each_chunk.default <- function(data, columns, levels, add, call) {
  must <- "a data frame of noisy records, a matrix with named columns, a database table or record_source()"
  if (!is.matrix(data) || is.null(colnames(data))) stop_argument("value", must, describe_shape(data), "data", call = call)
  add(as.data.frame(data, optional = TRUE))
}

#' @export
each_chunk.data.frame <- function(data, columns, levels, add, call) add(data)

#' @export
each_chunk.record_chunks <- function(data, columns, levels, add, call) {
  while (!is.null(chunk <- data$next_chunk())) add(chunk)
}

# The result of a query is read through a cursor: no database adds up doubles in an order that is known, nor about a mean before it has seen it.
#' @export
each_chunk.tbl_lazy <- function(data, columns, levels, add, call) {
  con <- dbplyr::remote_con(data)
  variables <- unique(columns$variable)
  absent <- setdiff(variables, colnames(data))
  if (length(absent)) stop_classed("data", c("{.arg value} must have every variable of the statistic.", x = "Missing: {.var {absent}}."), call)
  names <- paste(as.character(DBI::dbQuoteIdentifier(con, variables)), collapse = ", ")
  tried <- function(code) tryCatch(code, error = function(e) {
    stop_classed("database", c("The database returned no records.", x = "{conditionMessage(e)}", i = "Is the connection open, and can you see the table?"), call = call)
  })
  result <- tried(DBI::dbSendQuery(con, paste0("SELECT ", names, " FROM (", dbplyr::sql_render(data, con), ") records")))
  on.exit(DBI::dbClearResult(result))
  repeat {
    chunk <- tried(DBI::dbFetch(result, n = records_at_once))
    if (nrow(chunk) == 0L) break
    whole <- vapply(chunk, inherits, TRUE, "integer64")
    chunk[whole] <- lapply(chunk[whole], as.double)
    add(chunk)
  }
}

# rows of a database that are in memory at a time
records_at_once <- 5000

#' @export
each_chunk.record_files <- function(data, columns, levels, add, call) {
  variables <- unique(columns$variable)
  numbers <- stats::setNames(!variables %in% names(levels), variables)
  for (file in data$files) {
    reader <- open_records(file, data, numbers, call)
    tryCatch(while (!is.null(chunk <- reader$next_chunk())) add(chunk), finally = reader$close())
  }
}
