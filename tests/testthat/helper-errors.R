# Errors as users see them: the function in the error's call, and the message.

# what conditionMessage() shows, without the time that laying it out takes
message_lines <- function(condition) {
  if (!inherits(condition, "rlang_error")) return(conditionMessage(condition))
  unname(c(condition$message, if (length(condition$body)) paste(names(condition$body), condition$body)))
}

# What users can call: exported functions, and generics of other packages with a method here.
users_functions <- local({
  namespace <- asNamespace("noiseaware")
  generics <- unique(namespace$.__NAMESPACE__.$S3methods[, 1L])
  c(getNamespaceExports(namespace), setdiff(generics, ls(namespace)))
})

# The name of the function that an error says it is from
called <- function(condition) {
  call <- conditionCall(condition)
  if (is.null(call)) "nothing" else paste(deparse(call[[1L]]), collapse = " ")
}

error_header <- function(condition) {
  if (is.null(conditionCall(condition))) "Error:" else paste0("Error in `", called(condition), "()`:")
}

# Functions that a call names, and those that the test's own functions in it name.
named_functions <- function(call, frame) {
  names <- all.names(call)
  own <- lapply(names, get0, envir = frame, mode = "function")
  own <- Filter(function(f) is.function(f) && !is.primitive(f) && environmentName(environment(f)) == "", own)
  c(names, unlist(lapply(own, function(f) all.names(body(f)))))
}

# Calls that must be refused by an error of one class, which is from a function that the user
# called: lines with each call and its error.
refusals <- function(kind, calls, frame = parent.frame()) {
  local_reproducible_output(.env = frame)
  lines <- lapply(calls, function(call) {
    condition <- tryCatch(not_laid_out(eval(call, frame)), error = identity, warning = identity)
    text <- paste(deparse(call, width.cutoff = 500L), collapse = " ")
    message <- message_lines(condition)
    # no number with twenty digits, no empty list
    ok <- inherits(condition, paste0("noiseaware_error_", kind)) && inherits(condition, "noiseaware_error") &&
      !any(grepl("[0-9]{18}|: \\.|``", message))
    expect_true(ok, label = paste(c(text, class(condition)[1], message), collapse = ": "))
    named <- named_functions(call, frame)
    expect_true(called(condition) %in% c(named, if ("do.call" %in% named) "nothing"), label = paste(text, "is refused by", called(condition)))
    c(paste0("> ", text), error_header(condition), message, "")
  })
  unlist(lines)
}

show <- function(lines) expect_snapshot_output(writeLines(lines))

# An error of the package is from the function that was called, not from one inside; it has no
# call where that function has no name, as by do.call().
expect_error <- function(object, ..., label = paste(deparse(substitute(object)), collapse = " ")) {
  condition <- not_laid_out(testthat::expect_error(object, ..., label = label))
  traced <- vapply(Filter(Negate(is.null), condition$trace$call), function(call) paste(deparse(call[[1L]]), collapse = " "), "")
  if (inherits(condition, "noiseaware_error") && any(sub("^noiseaware::", "", traced) %in% users_functions)) {
    expect_true(called(condition) %in% c(users_functions, "nothing"), label = paste(label, "is refused by", called(condition)))
  }
  invisible(condition)
}

# The same errors without their words, which take most of the time that refusing something takes.
without_words <- function(code) {
  plain <- function(kind, message, ...) {
    stop(structure(class = c(paste0("noiseaware_error_", kind), "noiseaware_error", "error", "condition"), list(message = message[[1L]], call = NULL)))
  }
  old <- set_constant("stop_classed", plain)
  on.exit(set_constant("stop_classed", old))
  code
}

# Code whose errors are caught without having been laid out, which takes as long as to make them: to signal one asks for its message.
not_laid_out <- function(code) {
  methods <- baseenv()[[".__S3MethodsTable__."]]
  methods$conditionMessage.noiseaware_error <- function(c) {
    paste(c(c$message, names(c$body), c$body, if (!is.null(c$parent)) conditionMessage(c$parent)), collapse = "\n")
  }
  on.exit(suppressWarnings(rm("conditionMessage.noiseaware_error", envir = methods)))
  code
}

# Quantiles of few records without the warning that says so: its words take most of the time that thousands of them take.
without_few <- function(code) {
  old <- set_constant("warn_of_few", function(...) invisible())
  on.exit(set_constant("warn_of_few", old))
  code
}
