# Classed errors, and the checks of arguments that raise them. Every message names the argument, what it must be and what it was.

# Neither the text nor the condition that a caller may log has any confidential
# value: do.call() and literals put the data into the call and the backtrace, so
# only the functions' names are left there. Where it is only asked whether a method takes something (without_refusal()),
# there is no text.
#' @noRd
stop_classed <- function(kind, message, call = caller_env(), .envir = parent.frame()) {
  if (kind == "method" && !session$reasons_wanted) stop(errorCondition("refused", class = c("noiseaware_error_method", "noiseaware_error")))
  trace <- tryCatch(rlang::trace_back(bottom = if (is.environment(call)) call else caller_env()), error = function(e) NULL)
  if (!is.null(trace)) trace$call <- lapply(trace$call, without_arguments)
  if (is.environment(call)) call <- public_call(call)
  cli::cli_abort(message, class = c(paste0("noiseaware_error_", kind), "noiseaware_error"),
                 call = without_arguments(call), trace = trace, .envir = .envir)
}

# f(a, b) as f(); NULL for a call of an unnamed function
without_arguments <- function(call) {
  named <- is.call(call) && (is.name(call[[1L]]) || rlang::is_call(call[[1L]], c("::", ":::")))
  if (named) as.call(list(call[[1L]]))
}

# The call of the frame, or of the nearest one around it, whose function users can call:
# exported, or a method of a generic that they can call. It is shown as they wrote it, by the generic's name.
public_call <- function(frame) {
  namespace <- topenv()
  methods <- getNamespaceInfo(namespace, "S3methods")
  exported <- getNamespaceExports(namespace)
  hidden <- function(name) exists(name, envir = namespace, inherits = FALSE) && !name %in% exported
  public <- c(exported, methods[!methods[, 1L] %in% Filter(hidden, unique(methods[, 1L])), 3L])
  at <- Position(function(f) identical(f, frame), sys.frames(), nomatch = 0L)
  for (k in rev(seq_len(at))) {
    if (!identical(environment(sys.function(k)), namespace)) next
    name <- sys.call(k)[[1L]]
    if (rlang::is_call(name, "::")) name <- name[[3L]]
    if (is.function(name)) return(sys.call(k)) # without a name by do.call()
    if (!is.name(name) || !as.character(name) %in% public) next
    generic <- methods[match(as.character(name), methods[, 3L]), 1L]
    if (is.na(generic)) return(sys.call(k))
    return(as.call(list(as.name(sub("^.*::", "", generic)))))
  }
  rlang::frame_call(frame)
}

# what a value was, in a few words that never quote more than one scalar
describe <- function(x) {
  if (inherits(x, "formula")) return(paste("the formula", shorten_text(formula_text(x))))
  if (inherits(x, "stringr_fixed")) return("a pattern of stringr, which hides noiseaware::fixed()")
  scalar <- is.atomic(x) && length(x) == 1L && is.null(dim(x)) && !is.object(x)
  if (!scalar) return(describe_shape(x))
  if (is.na(x) && !is.nan(x)) return("NA")
  if (is.character(x)) return(encodeString(shorten_text(x), quote = '"'))
  if (is.numeric(x)) format(x, digits = 6) else as.character(x)
}

# the same without any of the content: for what may be confidential
describe_shape <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.function(x)) return("a function")
  if (is.object(x) && is.null(dim(x)) && !is.atomic(x)) return(paste0("an object of class <", class(x)[1L], ">"))
  if (is.environment(x)) return("an environment")
  if (is.language(x)) return("an unevaluated expression")
  what <- if (is.object(x)) paste0("<", class(x)[1L], ">") else
    if (is.list(x)) "a list" else paste(if (is.integer(x)) "an" else "a", typeof(x),
                                        if (is.null(dim(x))) "vector" else if (is.matrix(x)) "matrix" else "array")
  paste(what, if (is.null(dim(x))) paste("of length", length(x)) else paste("of size", paste(dim(x), collapse = " x ")))
}

# the first bad one of several numbers, and where it is
describe_bad <- function(x, bad) {
  if (length(x) == 1L) return(describe(unname(x)))
  first <- which(bad)[1L]
  paste(describe(unname(x[first])), "at position", first)
}

shorten_text <- function(x, most = 60L) {
  x <- enc2utf8(x)
  if (is.na(nchar(x, allowNA = TRUE))) return("text that is not valid UTF-8")
  if (nchar(x) > most) paste0(substr(x, 1L, most - 3L), "...") else x
}

shorten_texts <- function(x) vapply(x, shorten_text, "", USE.NAMES = FALSE)

stop_argument <- function(name, must, was, kind = "argument", call = caller_env()) {
  stop_classed(kind, "{.arg {name}} must be {must}, but is {was}.", call = call)
}

# names of a function's arguments that have no default
needed_arguments <- function(f) {
  defaults <- formals(f)
  missing <- vapply(seq_along(defaults), function(i) rlang::is_missing(defaults[[i]]), TRUE)
  names(defaults)[missing & names(defaults) != "..."]
}

# for check_given() of statistics
bounds_hint <- c(bounds = "The range that each variable can have, whatever the records are. For example {.code bounds = list(x = c(0, 10))}.")

# every argument of the caller that has no default; `hints` are lines about some of them
check_given <- function(kind = "argument", hints = character(), call = caller_env()) {
  needed <- needed_arguments(sys.function(sys.parent()))
  absent <- needed[vapply(needed, function(name) eval(call("missing", as.name(name)), call), TRUE)]
  if (length(absent)) {
    hints <- hints[intersect(names(hints), absent)]
    stop_classed(kind, c("{.arg {absent}} must be given; {?it has/they have} no default.", stats::setNames(hints, rep("i", length(hints)))), call = call)
  }
  if ("formula" %in% names(formals(sys.function(sys.parent())))) evaluated_name(get("formula", call), "formula", call, "a formula", "formula")
}

# the argument's value; a name without quotes is an object that is not there
evaluated_name <- function(x, name, call, must = "the name of a variable in quotes", kind = "argument") {
  tryCatch(x, error = function(e) {
    if (!startsWith(conditionMessage(e), "object '")) stop(e)
    stop_argument(name, must, paste0("an object that does not exist: ", conditionMessage(e)), kind, call)
  })
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
  ok <- is.numeric(x) && length(x) == 1L && is.finite(x) && x == floor(x) && x >= lower
  if (ok && x > 2^31 - 1) must <- "at most 2147483647 (2^31 - 1)"
  if (!ok || x > 2^31 - 1) stop_argument(name, must, describe(x), kind, call)
  as.double(x)
}

check_flag <- function(x, name, call = caller_env()) {
  if (!checkmate::test_flag(x) || !is.null(dim(x))) stop_argument(name, "TRUE or FALSE", describe(x), call = call)
  x
}

check_choice <- function(x, name, choices, kind = "argument", call = caller_env()) {
  if (!checkmate::test_choice(x, choices) || !is.null(dim(x))) {
    stop_argument(name, paste("one of", paste(dQuote(choices, FALSE), collapse = ", ")),
                  describe(x), kind, call)
  }
  x
}

check_class <- function(x, name, class, must, kind = "argument", call = caller_env()) {
  if (!inherits(x, class)) stop_argument(name, must, describe(x), kind, call)
  x
}

# names of some of what there is; NULL for all of it
check_names_of <- function(x, name, what, all, call = caller_env()) {
  if (is.null(x)) return(all)
  if (!is.character(x) || !is.null(dim(x)) || length(x) == 0L || anyNA(x)) stop_argument(name, paste("names of", what), describe(x), call = call)
  x <- unlist(lapply(x, names_of_stem, all))
  absent <- shorten_texts(setdiff(x, all))
  if (length(absent)) {
    stop_classed("argument", c("{.arg {name}} must be names of {what}, but {.val {absent}} {?is/are} not.", i = "Available: {.val {all}}."), call = call)
  }
  x
}

# "prob" names prob[no] and prob[yes]
names_of_stem <- function(x, all) {
  members <- all[startsWith(all, paste0(x, "["))]
  if (x %in% all || length(members) == 0L) x else members
}

# "prob" names prob[yes] if there is no other
only_of_stem <- function(x, all) vapply(x, function(name) if (length(members <- names_of_stem(name, all)) == 1L) members else name, "", USE.NAMES = FALSE)

# The `...` of a method that has no use for them: a misspelt argument lands there.
check_no_dots <- function(..., call = caller_env()) {
  if (...length() == 0L) return(invisible())
  given <- names(substitute(list(...)))[-1L]
  known <- setdiff(names(formals(sys.function(sys.parent()))), "...")
  check_argument_names(stats::setNames(vector("list", ...length()), given), known, call = call)
}

# named arguments, all of them known
check_argument_names <- function(given, known, kind = "argument", call = caller_env()) {
  if (length(given) == 0L) return(invisible())
  names <- names(given)
  if (is.null(names) || !all(nzchar(names))) stop_classed(kind, "Further arguments must be named.", call = call)
  strange <- setdiff(names, known)
  if ("cores" %in% strange) {
    stop_classed(kind, c("{.arg cores} is not an argument here: {.fn future::plan} decides where chains run.",
                         i = "For example {.code future::plan(future::multisession, workers = 2)}, before the call."), call = call)
  }
  if (length(strange)) {
    elsewhere <- if (kind == "mechanism" && length(intersect(strange, c("margin", "variance")))) {
      c(i = "The sd of Gaussian noise is {.code sqrt(variance)}, or {.code margin / qnorm((1 + level) / 2)} for a margin of error.",
        i = "For a data frame {.fn as_release} computes it: {.code noise = c(margin = \"column\", level = 0.9)} or {.code c(variance = \"column\")}.")
    }
    if (kind == "mechanism" && "sd" %in% strange && "scale" %in% known) {
      elsewhere <- c(elsewhere, i = "Laplace noise with standard deviation sd has {.code scale = sd / sqrt(2)}, and discrete Laplace noise nearly so.")
    }
    stop_classed(kind, c("{.arg {strange}} {?is/are} not {?an argument/arguments} here.", i = "Arguments: {.arg {known}}.", elsewhere), call = call)
  }
  if (anyDuplicated(names)) stop_classed(kind, "{.arg {unique(names[duplicated(names)])}} must be given only once.", call = call)
}

# The `...` of a mechanism, before its arguments: 2 may be a budget or a scale.
check_all_named <- function(..., call = caller_env()) {
  if (...length() == 0L) return(invisible())
  known <- setdiff(names(formals(sys.function(sys.parent()))), "...")
  given <- list(...)
  named <- if (is.null(names(given))) logical(length(given)) else nzchar(names(given))
  check_argument_names(given[named], known, "mechanism", call)
  choices <- paste0("`", known, "`")
  last <- length(choices)
  if (last > 1L) choices <- paste(paste(choices[-last], collapse = ", "), "or", choices[last])
  stop_classed("mechanism", c("Arguments must be named, but {describe(given[!named][[1L]])} is not.", i = "Do you mean {choices}?"), call = call)
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

# What lasts for a session: which fits were warned of, whether nothing is to be
# said (of the replicates of a calibration, which warn_unconverged() counts), and their bound model (with_binding()).
session <- new.env(parent = emptyenv())
session$reasons_wanted <- TRUE
session$told <- character()
session$quiet <- FALSE

without_troubles <- function(code) {
  before <- session$quiet
  on.exit(session$quiet <- before)
  session$quiet <- TRUE
  code
}

check_installed <- function(package, what, call = caller_env()) {
  if (requireNamespace(package, quietly = TRUE)) return(invisible())
  stop_classed("package", c("The package {.pkg {package}}, which {what}, is not installed.", i = "{.code install.packages(\"{package}\")} installs it."), call = call)
}

stop_entropy <- function(call) {
  stop_classed("entropy", "The operating system returned no random bytes; nothing is released.", call = call)
}

check_path <- function(path, call = caller_env(), name = "path") {
  # R warns of text that is no path on any system
  if (!checkmate::test_string(path, min.chars = 1L) || nchar(path, "bytes") > 4000L) stop_argument(name, "the name of a file", describe(path), "file", call)
}

check_column <- function(column, variable, number, call, name) {
  # only its own package reads the bits of integer64
  suitable <- if (number) (is.numeric(column) || is.logical(column)) && !inherits(column, "integer64") else
    is.atomic(column)
  if (!suitable || !is.null(dim(column))) {
    must <- if (number) "numbers" else "one level per row"
    stop_classed("data", c("{.arg {name}} must have {must} in {.var {variable}}, but the column is of class {.cls {class(column)[1L]}}.",
                           i = if (number && is.factor(column)) "For a factor declare the levels, not bounds."), call)
  }
}

check_missing <- function(data, variables, call, name) {
  rows <- lapply(variables, function(v) if (anyNA(data[[v]])) which(is.na(data[[v]])))
  bad <- which(lengths(rows) > 0L)
  if (length(bad) == 0L) return(invisible())
  lines <- vapply(bad, function(i) {
    cli::format_inline("{.var {variables[i]}}: {length(rows[[i]])} missing, in {rows_text(rows[[i]])}.")
  }, "")
  where <- if (name == "newdata") "covariates" else "released variables"
  stop_classed("missing", c("{.arg {name}} must have no missing values in the {where}.",
                            stats::setNames(sprintf("{lines[%d]}", seq_along(lines)), rep("x", length(lines))),
                            i = if (name == "data") "Decide what a missing value means before the release."), call)
}

is_several <- function(statistic) !inherits(statistic, "noiseaware_statistic")

# "row 3", "rows 1, 2, 3, 4, 5, ..."
rows_text <- function(rows) paste(if (length(rows) == 1L) "row" else "rows", shorten_list(rows, 6L))

# values that are no declared levels of a variable
refuse_levels <- function(strange, variable, levels, call, name) {
  stop_classed("levels", c("{.arg {name}} must have only the declared levels in {.var {variable}}.",
                           x = "{sum(strange)} other{?s}, in {rows_text(which(strange))}.",
                           i = "Declared: {shorten_list(encodeString(levels, quote = '\"'))}."), call = call)
}

# Of each of these classes of messages, only the first.
say_once <- function(code, classes = paste0("noiseaware_message_", c("binary", "components", "means"))) {
  said <- character()
  withCallingHandlers(code, message = function(m) {
    class <- intersect(class(m), classes)
    if (length(class) == 0L) return()
    if (class %in% said) rlang::cnd_muffle(m)
    said <<- c(said, class)
  })
}
