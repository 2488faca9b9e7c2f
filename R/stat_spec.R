# The description of a statistic that C reads.

# Does the function return the same for confidential records that are in another order, in two groups?
check_unmixed <- function(evaluate, records, value, call) {
  group <- rev(seq.int(1L, nrow(records), by = 3L))
  for (rows in list(group, seq_len(nrow(records))[-group])) {
    if (length(rows) && !same_rows(value[rows, , drop = FALSE], evaluate(records[rows, , drop = FALSE]))) refuse_mixing(call)
  }
}

# but for the last digits, which matrix products may round differently
same_rows <- function(a, b) {
  size <- apply(abs(a), 2L, max)
  all(abs(a - b) <= 1e-8 * rep(size, each = nrow(a)))
}

refuse_mixing <- function(call) {
  stop_classed("custom", c("{.fn fun} must treat each record separately, but its value for a record depends on the other records, their order, or chance.",
                           i = "One replaced record could then move the totals by more than the declared sensitivity."), call = call)
}

# With `confidential`, for records whose values no condition may carry.
custom_statistic_spec <- function(statistic, confidential = FALSE, call = caller_env()) {
  variables <- statistic$columns$name
  components <- statistic$components
  fun <- statistic$fun
  call_fun <- if (confidential) function(records) call_in_confidence(fun, "fun", call, records) else function(records) call_user(fun, "fun", records)
  evaluate <- function(records) {
    value <- call_fun(records)
    if (is.atomic(value) && is.null(dim(value)) && length(value) && length(components) == 1L) value <- matrix(value, ncol = 1L)
    ok <- (is.numeric(value) || is.logical(value)) && identical(dim(value), c(nrow(records), length(components))) &&
      all(is.finite(value))
    if (!ok) {
      must <- "finite numbers in a matrix of {nrow(records)} row{?s} and {length(components)} column{?s}"
      stop_classed("custom", paste0("{.fn fun} must return ", must, ", but returned {describe_shape(value)}."), call = call)
    }
    storage.mode(value) <- "double"
    value
  }
  list(name = "custom", columns = length(variables), size = length(components), fun = function(records) {
    colnames(records) <- variables
    value <- evaluate(records)
    if (confidential) check_unmixed(evaluate, records, value, call)
    value
  })
}

# A user's function of confidential records: its conditions may quote them, so nothing of
# what they say is passed on.
call_in_confidence <- function(f, name, call, ...) {
  spoke <- FALSE
  hush <- function(restart) function(condition) {
    spoke <<- TRUE
    invokeRestart(restart)
  }
  failed <- FALSE
  value <- withCallingHandlers(tryCatch(f(...), error = function(e) failed <<- TRUE),
                               warning = hush("muffleWarning"), message = hush("muffleMessage"))
  advice <- "Try it on made-up records."
  if (failed) {
    stop_classed("custom", c("The function {.fn {name}} failed; its message is not shown, because it may quote records.", i = advice), call = call)
  }
  if (spoke) {
    cli::cli_warn(c("The function {.fn {name}} gave a warning or a message, which is not shown, because it may quote records.", i = advice),
                  class = c("noiseaware_warning_custom", "noiseaware_warning"))
  }
  value
}

# for C, where queries of R functions are made in R
linear_spec <- function(statistic, confidential, call) {
  of <- statistic_spec(statistic$statistic, confidential, call)
  if (of$name != "custom") return(list(name = "linear", of = of, fields = statistic_fields(statistic)))
  weights <- query_matrix(statistic)
  fun <- of$fun
  utils::modifyList(of, list(size = ncol(weights), fun = function(records) fun(records) %*% weights))
}

# `confidential`: about the records themselves, not the records of a model, which know of no bounds that are natural limits.
statistic_spec <- function(statistic, confidential = FALSE, call = caller_env()) {
  if (statistic$name == "custom") return(custom_statistic_spec(statistic, confidential, call))
  if (statistic$name == "linear") return(linear_spec(statistic, confidential, call))
  fields <- statistic_fields(statistic)
  list(name = statistic$name, fields = if (confidential && !isTRUE(statistic$simulated)) fields else open_fields(statistic, fields))
}

# what is summed; with one value a record, component after component
statistic_total <- function(statistic, data, call = caller_env(), confidential = FALSE, empty = FALSE) {
  x <- statistic_records(statistic, data, call, empty)
  spec <- statistic_spec(statistic, confidential, call)
  if (statistic$kind == "records") return(as.vector(.Call(ffi_stat_eval, spec, x)))
  stats::setNames(.Call(ffi_stat_total, spec, x), statistic$components)
}

# The records of data sets that are stacked in `data`, of these sizes, as the statistic's C code reads them.
set_records <- function(statistic, data, sizes, call, empty = FALSE) {
  x <- statistic_records(statistic, data, call, empty)
  Map(function(last, size) {
    rows <- last - size + seq_len(size)
    if (is.list(x)) lapply(x, `[`, rows) else x[rows, , drop = FALSE]
  }, cumsum(sizes), sizes)
}

# The totals of several data sets, a row each, whose rows follow each other in `data`: reading a small set costs far more than adding it up.
set_totals <- function(statistic, data, sizes, call, confidential = FALSE, empty = FALSE) {
  spec <- statistic_spec(statistic, confidential, call)
  x <- statistic_records(statistic, data, call, empty)
  `colnames<-`(t(.Call(ffi_set_totals, spec, x, as.double(sizes))), statistic$components)
}
