# Classed errors, and the checks of arguments that raise them. Every message
# names the argument, what it must be and what it was.

#' @noRd
stop_classed <- function(kind, message, call = caller_env(), .envir = parent.frame()) {
  cli::cli_abort(message, class = c(paste0("noiseaware_error_", kind), "noiseaware_error"),
                 call = call, .envir = .envir)
}

# what a value was, in a few words that never quote more than one scalar
describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.numeric(x) && length(x) == 1L && is.null(dim(x))) return(format(x, digits = 6))
  if (is.character(x) && length(x) == 1L && !is.na(x)) return(encodeString(x, quote = '"', width = 0))
  if (is.logical(x) && length(x) == 1L) return(as.character(x))
  size <- if (is.null(dim(x))) paste("of length", length(x)) else
    paste("of size", paste(dim(x), collapse = " x "))
  paste(if (is.object(x)) paste0("<", class(x)[1L], ">") else paste("a", typeof(x), "vector"), size)
}

stop_argument <- function(name, must, was, kind = "argument", call = caller_env()) {
  stop_classed(kind, "{.arg {name}} must be {must}, but is {was}.", call = call)
}

check_number <- function(x, name, must = "a finite number", lower = -Inf, upper = Inf,
                         strict = FALSE, kind = "argument", call = caller_env()) {
  ok <- is.numeric(x) && length(x) == 1L && is.finite(x) &&
    (if (strict) x > lower && x < upper else x >= lower && x <= upper)
  if (!ok) stop_argument(name, must, describe(x), kind, call)
  as.double(x)
}

check_positive <- function(x, name, kind = "argument", call = caller_env()) {
  check_number(x, name, "a positive finite number", lower = 0, strict = TRUE, kind = kind, call = call)
}

check_count <- function(x, name, lower = 1, kind = "argument", call = caller_env()) {
  must <- if (lower == 1) "a positive whole number" else paste("a whole number of at least", lower)
  ok <- is.numeric(x) && length(x) == 1L && is.finite(x) && x == floor(x) && x >= lower && x <= 2^31 - 1
  if (!ok) stop_argument(name, must, describe(x), kind, call)
  as.double(x)
}

check_flag <- function(x, name, call = caller_env()) {
  if (!checkmate::test_flag(x)) stop_argument(name, "TRUE or FALSE", describe(x), call = call)
  x
}

check_choice <- function(x, name, choices, kind = "argument", call = caller_env()) {
  if (!checkmate::test_choice(x, choices)) {
    stop_argument(name, paste("one of", paste(dQuote(choices, FALSE), collapse = ", ")),
                  describe(x), kind, call)
  }
  x
}

check_class <- function(x, name, class, must, kind = "argument", call = caller_env()) {
  if (!inherits(x, class)) stop_argument(name, must, describe(x), kind, call)
  x
}

# exactly one of several alternatives, given as a named list of values
check_one_of <- function(given, kind = "mechanism", call = caller_env()) {
  set <- names(given)[!vapply(given, is.null, TRUE)]
  if (length(set) != 1L) {
    stop_classed(kind, c("Exactly one of {.arg {names(given)}} must be given.",
                         x = if (length(set)) "Given: {.arg {set}}." else "None is given."), call = call)
  }
  set
}

check_statistic <- function(x, call = caller_env()) {
  check_class(x, "statistic", "noiseaware_statistic", "a statistic such as stat_crossprod()", call = call)
}

check_mechanism <- function(x, call = caller_env()) {
  check_class(x, "mechanism", "noiseaware_mechanism", "a mechanism such as mech_laplace()", call = call)
}

check_release <- function(x, call = caller_env()) {
  check_class(x, "release", "noiseaware_release", "a release made by release() or as_release()", call = call)
}

check_model <- function(x, call = caller_env()) {
  check_class(x, "model", "noiseaware_model", "a model such as model_lm()", call = call)
}
