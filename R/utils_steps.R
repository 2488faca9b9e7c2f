# The steps that functions in formulas are made of, each a function of one value with constants: a closed list. A step is a list with its
# `name` and constants:
#   plain            log, sqrt, ...: none
#   + - * / ^ pmin pmax   `constant`; - / ^ also `first`: the constant comes first
#   < <= > >= == != %in%   `constant`, numbers or texts: gives the levels FALSE and TRUE
#   cut              `breaks`, `right`, `labels`
#   factor           `levels`, NULL: those declared
#   ns bs            `knots`, `boundary`, `degree`, `column` (utils_splines.R): ends a chain of numbers
# Numbers go through all but the last three kinds, which end a chain.
#
# Ranges are exact: each step is continuous on an interval, or it has no range there, so that an interval goes to an interval, with its ends at the
# images of the ends and of the turning points in between.

plain_steps <- list(
  log = list(value = log, inverse = exp, onto = TRUE), log2 = list(value = log2, inverse = function(v) 2^v, onto = TRUE),
  log10 = list(value = log10, inverse = function(v) 10^v, onto = TRUE), log1p = list(value = log1p, inverse = expm1, onto = TRUE),
  sqrt = list(value = sqrt, inverse = function(v) v^2), exp = list(value = exp, inverse = log), expm1 = list(value = expm1, inverse = log1p),
  asinh = list(value = asinh, inverse = sinh, onto = TRUE), qlogis = list(value = stats::qlogis, inverse = stats::plogis, onto = TRUE),
  plogis = list(value = stats::plogis, inverse = stats::qlogis), sin = list(value = sin, inverse = asin), cos = list(value = cos, inverse = acos),
  abs = list(value = abs, inverse = identity))

arithmetic_steps <- c("+", "-", "*", "/", "^", "pmin", "pmax")
comparison_steps <- c("<", "<=", ">", ">=", "==", "!=", "%in%")
ending_steps <- c(comparison_steps, "cut", "factor")

known_functions <- function() c(names(plain_steps), arithmetic_steps, comparison_steps, "cut", "factor", spline_steps, "I")

refuse_function <- function(label, why, call, hint = NULL, .envir = parent.frame()) {
  why <- cli::format_inline(why, .envir = .envir)
  stop_classed("formula", c("A term of {.arg formula} must be a variable, a known function of one variable with constants, or a product or power of these.",
                            x = "{.code {shorten_text(label)}} is none of these. {why}", i = hint), call = call)
}

# ---- reading ---------------------------------------------------------------------------

# list(steps =, side = what they are of)
read_step <- function(side, label, call) {
  operator <- operator_of(side)
  arguments <- as.list(side)[-1L]
  if (!operator %in% c(known_functions(), "as.factor")) {
    known <- cli::cli_vec(known_functions(), list("vec-trunc" = 100))
    hint <- if (operator == "s") "Smooths are for {.fn model_lm} and {.fn stat_crossprod}, as in {.code y ~ s(x, k = 10)}." else
      if (operator %in% c("te", "ti", "t2", "lo", "gp")) "A smooth curve is {.code s(x)}, or a walk over intervals: see the section Curves of {.code ?groups}." else
      "Known: {.code {known}}."
    refuse_function(label, "{.code {shorten_text(formula_text(side[[1L]]))}} is unknown.", call, cli::format_inline(hint))
  }
  has_variable <- vapply(arguments, function(a) length(setdiff(all.vars(a), constant_names)) > 0L, TRUE)
  if (sum(has_variable) != 1L) {
    names <- setdiff(all.vars(side), constant_names)
    hint <- if (length(names) > 1L) "Constants must be written out, or be short vectors where the formula is made, under a name other than the variable's."
    refuse_function(label, if (length(names) > 1L) "{.var {names}} would all be variables." else if (any(has_variable)) "It has one variable twice." else
      "It has no variable.", call, hint)
  }
  read <- switch(operator, cut = read_cut, factor = , as.factor = read_factor, log = read_log, ns = , bs = read_spline,
                 if (operator %in% names(plain_steps)) read_plain else read_binary)
  read(operator, arguments, has_variable, label, call)
}

read_plain <- function(operator, arguments, has_variable, label, call) {
  if (length(arguments) != 1L) refuse_function(label, "{.fn {operator}} takes one argument here.", call)
  list(steps = list(list(name = operator)), side = arguments[[1L]])
}

read_log <- function(operator, arguments, has_variable, label, call) {
  if (length(arguments) == 1L) return(read_plain(operator, arguments, has_variable, label, call))
  given <- named_arguments(arguments, c("x", "base"), label, call)
  base <- constant_number(given$base, label, call)
  if (base <= 0 || base == 1) refuse_function(label, "The base of a logarithm must be positive and not 1.", call)
  steps <- if (base %in% c(2, 10)) list(list(name = paste0("log", base))) else list(list(name = "log"), list(name = "/", constant = log(base)))
  list(steps = steps, side = given$x)
}

read_binary <- function(operator, arguments, has_variable, label, call) {
  if (length(arguments) == 1L && operator %in% c("-", "+")) {
    steps <- if (operator == "-") list(list(name = "*", constant = -1)) else list()
    return(list(steps = steps, side = arguments[[1L]]))
  }
  if (length(arguments) != 2L || !is.null(names(arguments))) refuse_function(label, "{.code {operator}} takes two arguments here.", call)
  at <- which(has_variable)
  other <- arguments[[3L - at]]
  step <- (if (operator %in% comparison_steps) comparison_step else arithmetic_step)(operator, other, at == 2L, label, call)
  list(steps = list(step), side = arguments[[at]])
}

# `first`: the constant comes first
comparison_step <- function(operator, other, first, label, call) {
  constant <- constant_value(other, label, call)
  if (operator == "%in%" && first) refuse_function(label, "The variable must come before {.code %in%}.", call)
  count <- length(constant)
  if (count == 0L || count > 1L && operator != "%in%" || anyNA(constant)) refuse_function(label, "Its constant must be one number or string.", call)
  if (is.character(constant) && !operator %in% c("==", "!=", "%in%")) refuse_function(label, "Strings have no order here.", call)
  flipped <- c("<" = ">", "<=" = ">=", ">" = "<", ">=" = "<=")
  list(name = if (first && operator %in% names(flipped)) flipped[[operator]] else operator, constant = constant)
}

arithmetic_step <- function(operator, other, first, label, call) {
  constant <- constant_number(other, label, call)
  if (operator %in% c("*", "/", "^") && constant == 0) refuse_function(label, "It is constant or not finite.", call)
  if (operator == "^" && first && (constant < 0 || constant == 1)) refuse_function(label, "The base of a power must be positive and not 1.", call)
  c(list(name = operator, constant = constant), if (first && operator %in% c("-", "/", "^")) list(first = TRUE))
}

read_cut <- function(operator, arguments, has_variable, label, call) {
  given <- named_arguments(arguments, c("x", "breaks", "labels", "include.lowest", "right", "dig.lab"), label, call)
  if (is.null(given$breaks)) refuse_function(label, "{.fn cut} needs {.arg breaks}: two or more public numbers.", call)
  constant <- lapply(given[setdiff(names(given), "x")], constant_value, label, call)
  breaks <- as.double(constant$breaks)
  if (!is.numeric(constant$breaks) || length(breaks) < 3L || anyNA(breaks) || is.unsorted(breaks, strictly = TRUE)) {
    refuse_function(label, "{.arg breaks} of {.fn cut} must be three or more increasing numbers: a number of breaks would choose them from the data.", call)
  }
  labels <- constant$labels
  if (!is.null(labels) && (length(labels) != length(breaks) - 1L || anyDuplicated(labels))) {
    refuse_function(label, "{.arg labels} of {.fn cut} must be different strings, one fewer than {.arg breaks}.", call)
  }
  right <- constant$right %||% TRUE
  intervals <- function() {
    levels(cut(numeric(), breaks, if (!is.null(labels)) as.character(labels), include.lowest = isTRUE(constant$include.lowest),
               right = isTRUE(right), dig.lab = as.integer(constant$dig.lab %||% 3L)))
  }
  made <- tryCatch(with_decimal_point(intervals()), error = function(e) NULL)
  if (is.null(made)) refuse_function(label, "R's {.fn cut} does not take these arguments.", call)
  list(steps = list(list(name = "cut", breaks = breaks, right = isTRUE(right), labels = made)), side = given$x)
}

read_factor <- function(operator, arguments, has_variable, label, call) {
  given <- named_arguments(arguments, c("x", "levels"), label, call)
  levels <- if (!is.null(given$levels)) level_text(constant_value(given$levels, label, call))
  if (!is.null(levels) && (length(levels) < 2L || anyNA(levels) || anyDuplicated(levels))) {
    refuse_function(label, "{.arg levels} of {.fn factor} must be two or more different levels.", call)
  }
  list(steps = list(list(name = "factor", levels = levels)), side = given$x)
}

read_spline <- function(operator, arguments, has_variable, label, call) {
  given <- named_arguments(arguments, c("x", "df", "knots", if (operator == "bs") "degree", "intercept", "Boundary.knots"), label, call)
  if (!is.null(given$df)) refuse_function(label, "{.arg df} would choose the knots from the data: write them out as {.arg knots}.", call)
  constant <- lapply(given[setdiff(names(given), "x")], constant_value, label, call)
  if (!is.null(constant$intercept) && !isFALSE(constant$intercept)) refuse_function(label, "{.arg intercept} must be FALSE: the model has one.", call)
  increasing <- function(x) is.numeric(x) && all(is.finite(x)) && !is.unsorted(x, strictly = TRUE)
  ends <- constant$Boundary.knots
  if (!increasing(ends) || length(ends) != 2L) {
    refuse_function(label, "{.fn {operator}} needs {.arg Boundary.knots}: two public numbers, such as the bounds.", call)
  }
  knots <- as.double(constant$knots)
  if (!is.null(constant$knots) && !increasing(constant$knots) || any(knots <= ends[1L] | knots >= ends[2L])) {
    refuse_function(label, "{.arg knots} must be increasing numbers between the {.arg Boundary.knots}.", call)
  }
  degree <- constant$degree %||% 3
  if (!is.numeric(degree) || length(degree) != 1L || !degree %in% 1:3) refuse_function(label, "{.arg degree} must be 1, 2 or 3.", call)
  list(steps = list(list(name = operator, knots = knots, boundary = as.double(ends), degree = as.double(degree))), side = given$x)
}

# by name, or by place
named_arguments <- function(arguments, formals, label, call) {
  named <- names(arguments) %||% rep("", length(arguments))
  free <- setdiff(formals, named)
  if (!all(named %in% c("", formals)) || anyDuplicated(named[named != ""]) || sum(named == "") > length(free)) {
    refuse_function(label, "Its arguments must be among {.arg {formals}}.", call)
  }
  named[named == ""] <- free[seq_len(sum(named == ""))]
  arguments <- stats::setNames(arguments, named)
  if (length(setdiff(all.vars(arguments$x), constant_names)) == 0L) refuse_function(label, "Its variable must be the first argument.", call)
  arguments
}

# ---- constants -------------------------------------------------------------------------

constant_names <- "pi"
most_constants <- 2000

constant_number <- function(side, label, call) {
  value <- constant_value(side, label, call)
  if (is.numeric(value) && length(value) == 1L && is.finite(value)) return(as.double(value))
  refuse_function(label, "Its constants must be finite numbers, written out.", call)
}

# What an expression of literals says; computed here, never evaluated.
constant_value <- function(side, label, call, depth = 0L) {
  refuse <- function() refuse_function(label, "Its constants must be written out: numbers, strings, and c(), : or seq() of these.", call)
  if (is.numeric(side) || is.character(side) || is.logical(side)) return(side)
  if (identical(side, quote(pi))) return(pi)
  operator <- operator_of(side)
  if (depth > most_steps || !operator %in% names(constant_operations) || length(side) < 2L || length(side) > most_constants) refuse()
  values <- lapply(as.list(side)[-1L], constant_value, label, call, depth + 1L)
  value <- tryCatch(suppressWarnings(constant_operations[[operator]](values)), error = function(e) NULL)
  if (is.null(value) || length(value) > most_constants) refuse()
  value
}

# of constants, a list; NULL or an error where they do not fit
constant_operations <- local({
  one_or_two <- function(f, counts) {
    function(v) if (length(v) %in% counts && is.null(names(v)) && all(vapply(v, is.numeric, TRUE))) do.call(f, v)
  }
  c(list(c = function(v) unlist(unname(v)), "(" = function(v) v[[1L]], seq = function(v) constant_sequence(v),
         ":" = function(v) constant_sequence(c(v, if (v[[2L]] < v[[1L]]) -1 else 1))),
    sapply(c("log", "exp", "sqrt"), one_or_two, 1L), sapply(c("+", "-"), one_or_two, 1:2), sapply(c("*", "/", "^"), one_or_two, 2L))
})

constant_sequence <- function(values) {
  names <- names(values) %||% rep("", length(values))
  names[names == ""] <- setdiff(c("from", "to", "by"), names)[seq_len(sum(names == ""))]
  values <- stats::setNames(values, names)
  known <- list(c("from", "to"), c("from", "to", "by"), c("from", "to", "length.out"))
  if (!any(vapply(known, setequal, TRUE, names)) || any(lengths(values) != 1L) || !all(vapply(values, is.finite, TRUE))) return(NULL)
  count <- values$length.out %||% (abs(values$to - values$from) / abs(values$by %||% 1))
  if (!is.na(count) && count <= most_constants) do.call(seq, values)
}

# ---- computing -------------------------------------------------------------------------

# or also the levels of a factor
takes_numbers <- function(f) !f$steps[[1L]]$name %in% c("factor", "==", "!=", "%in%")

step_value <- function(step, x) {
  name <- step$name
  if (name %in% names(plain_steps)) return(suppressWarnings(plain_steps[[name]]$value(x)))
  constant <- step$constant
  if (name %in% spline_steps) return(spline_value(step, x))
  if (name == "pmin") return(pmin(x, constant))
  if (name == "pmax") return(pmax(x, constant))
  if (name %in% arithmetic_steps) return(if (isTRUE(step$first)) do.call(name, list(constant, x)) else do.call(name, list(x, constant)))
  if (name == "factor") return(factor(level_text(x), step$levels))
  if (name == "cut") {
    last <- length(step$breaks)
    code <- .bincode(pmin(pmax(x, step$breaks[1L]), step$breaks[last]), step$breaks, step$right, TRUE)
    return(factor(step$labels[code], step$labels))
  }
  if (is.character(constant) || !is.numeric(x)) {
    x <- level_text(x)
    constant <- level_text(constant)
  }
  factor(c("FALSE", "TRUE")[1L + do.call(name, list(x, constant))], c("FALSE", "TRUE"))
}

# `bounds`: NULL, two numbers that clamp, or the levels of the variable
function_value <- function(f, x, bounds = NULL) {
  if (is.numeric(bounds)) x <- pmin(pmax(as.double(x), bounds[1L]), bounds[2L])
  if (is.character(bounds) && f$steps[[1L]]$name == "factor" && is.null(f$steps[[1L]]$levels)) f$steps[[1L]]$levels <- bounds
  for (step in f$steps) {
    if (step$name == "factor" && is.null(step$levels)) return(as.character(level_text(x))) # its levels are the model's
    x <- step_value(step, x)
  }
  x
}

# the ends of a step's image of an interval; NULL where it has none
step_image <- function(step, ends) {
  name <- step$name
  if (name %in% c("sin", "cos") && diff(ends) >= 2 * pi) return(c(-1, 1))
  turning <- switch(name, sin = turning_points(ends, pi / 2), cos = turning_points(ends, 0), abs = 0,
                    "^" = if (!isTRUE(step$first)) 0, ns = , bs = spline_turning_points(step), numeric())
  pole <- name == "/" && isTRUE(step$first) || name == "^" && !isTRUE(step$first) && step$constant < 0
  if (pole && ends[1L] <= 0 && ends[2L] >= 0) return(NULL)
  values <- step_value(step, c(ends, turning[turning > ends[1L] & turning < ends[2L]]))
  if (!all(is.finite(values))) return(NULL)
  range(values)
}

# of sine and cosine, at `first` + k pi
turning_points <- function(ends, first) {
  k <- ceiling((ends[1L] - first) / pi)
  first + pi * (k + 0:1)
}

# What the function is between the bounds: two numbers, or levels.
function_image <- function(f, bounds, name, call) {
  last <- f$steps[[length(f$steps)]]
  ending <- last$name %in% ending_steps
  if (is.character(bounds) && (length(f$steps) > 1L || takes_numbers(f))) {
    stop_classed(name, "{.code {f$label}} needs numbers, but {.arg {paste0(name, '$', f$variable)}} has levels.", call = call)
  }
  if (name == "levels" && !ending) {
    stop_classed("levels", "{.code {f$label}} must have levels, like {.fn cut}, {.fn factor} and comparisons, but it is a number.", call = call)
  }
  if (is.null(bounds) && !(ending && length(f$steps) == 1L)) {
    stop_classed(name, "{.arg {name}} must have an entry for {.var {f$variable}}, the variable in {.code {f$label}}.", call = call)
  }
  ends <- numbers_image(f, f$steps[seq_len(length(f$steps) - ending)], bounds, call)
  if (!ending) return(ends)
  if (last$name == "cut") return(cut_image(f, last, ends, name, call))
  if (last$name == "factor") return(factor_image(f, last, bounds, name, call))
  comparison_image(f, last, ends, call)
}

# of the steps that give numbers
numbers_image <- function(f, steps, bounds, call) {
  ends <- bounds
  for (step in steps) {
    if (step$name %in% spline_steps) check_knots(f, step, ends, call)
    image <- step_image(step, ends)
    if (is.null(image) || image[1L] == image[2L]) refuse_image(f, step, bounds, ends, image, call)
    ends <- image
  }
  ends
}

# Has the function, as a sine does, no other values beyond the bounds? Then no record lies beyond its own.
is_whole_range <- function(f, image) {
  if (is.character(image)) return(FALSE)
  ends <- c(-1e15, 1e15)
  for (step in f$steps) {
    ends <- step_image(step, ends)
    if (is.null(ends)) return(FALSE)
  }
  identical(ends, image)
}

refuse_image <- function(f, step, bounds, ends, image, call) {
  shown <- paste(format_number(bounds, 10L), collapse = " and ")
  why <- if (is.null(image)) "is not finite throughout" else "is constant"
  hint <- if (is.null(image) && step$name %in% c("log", "log2", "log10") && ends[1L] <= 0) {
    "A lower bound above 0 must be declared with the statistic; {.fn log1p} and {.fn asinh} also accept 0."
  } else if (is.null(image)) "Declare bounds between which it is finite." else "Declare wider bounds."
  stop_classed("bounds", c("{.code {f$label}} must be a finite function between the bounds of {.var {f$variable}}, and not constant.",
                           x = "The bounds are {shown}, where it {why}.", i = hint), call = call)
}

# knots within what the step is of: the bounds, or their images
check_knots <- function(f, step, ends, call) {
  outside <- step$knots <= ends[1L] | step$knots >= ends[2L]
  beyond <- step$boundary < ends[1L] | step$boundary > ends[2L]
  if (!any(outside, beyond)) return(invisible())
  shown <- format_number(ends, 10L)
  bad <- format_number(c(step$knots[outside], step$boundary[beyond]), 10L)
  stop_classed("bounds", c("The knots of {.code {f$label}} must lie within the bounds of {.var {f$variable}}, {shown[1]} to {shown[2]}.",
                           x = "{bad} {?does/do} not."), call = call)
}

cut_image <- function(f, step, ends, name, call) {
  last <- length(step$breaks)
  if (is.null(ends)) return(step$labels)
  shown <- format_number(c(ends, step$breaks[c(1L, last)]), 10L)
  if (step$breaks[1L] > ends[1L] || step$breaks[last] < ends[2L]) {
    stop_classed("bounds", c("The breaks of {.code {f$label}} must span the bounds of {.var {f$variable}}, {shown[1]} to {shown[2]}.",
                             x = "They span {shown[3]} to {shown[4]}.", i = "Add the bounds to the breaks, or {.code -Inf} and {.code Inf}."), call = call)
  }
  reached <- as.integer(step_value(step, ends))
  beyond <- setdiff(seq_along(step$labels), reached[1L]:reached[2L])
  if (length(beyond)) {
    stop_classed("bounds", paste("Each level of {.code {f$label}} must have values between the bounds of {.var {f$variable}}, {shown[1]} to {shown[2]};",
                                 "{.val {step$labels[beyond]}} {?has/have} none."), call = call)
  }
  step$labels
}

factor_image <- function(f, step, bounds, name, call) {
  declared <- if (is.character(bounds)) bounds
  levels <- step$levels %||% declared
  if (is.null(levels)) {
    stop_classed("levels", c("{.code {f$label}} needs declared levels.",
                             i = paste("Write them out, as in {.code factor({f$variable}, c(1, 2, 3))}, or declare them:",
                                       "{.code {name} = list({f$variable} = c(\"1\", \"2\", \"3\"))}.")), call = call)
  }
  left <- setdiff(declared, levels)
  if (length(left)) stop_classed("levels", "The levels of {.code {f$label}} must be all of those declared, but {.val {left}} {?is/are} missing.", call = call)
  levels
}

comparison_image <- function(f, step, ends, call) {
  seen <- if (is.character(ends)) unique(as.character(step_value(step, ends))) else if (is.null(ends)) c("FALSE", "TRUE") else {
    at <- if (step$name %in% c("==", "!=", "%in%")) step$constant[is.numeric(step$constant) & step$constant >= ends[1L] & step$constant <= ends[2L]]
    between <- if (length(at)) ends[1L] + (ends[2L] - ends[1L]) * c(0.43, 0.57, 0.61)
    unique(as.character(step_value(step, c(ends, at, between))))
  }
  if (length(seen) < 2L) {
    stop_classed("bounds", paste("{.code {f$label}} must be TRUE for some values between the bounds of {.var {f$variable}}, and FALSE for others,",
                                 "but is always {seen}."), call = call)
  }
  c("FALSE", "TRUE")
}

# ---- the way back ----------------------------------------------------------------------

# a value that the step takes to v
step_inverse <- function(step, v) {
  name <- step$name
  constant <- step$constant
  first <- isTRUE(step$first)
  if (name %in% names(plain_steps)) return(suppressWarnings(plain_steps[[name]]$inverse(v)))
  switch(name, "+" = v - constant, "-" = if (first) constant - v else v + constant, "*" = v / constant, "/" = if (first) constant / v else v * constant,
         "^" = if (first) log(v) / log(constant) else if (is_odd(constant)) sign(v) * abs(v)^(1 / constant) else v^(1 / constant), v)
}

is_odd <- function(x) x == floor(x) && x %% 2 == 1

# Values of the variable that the function takes to these; of levels one value each.
function_inverse <- function(f, v) {
  steps <- rev(f$steps)
  last <- steps[[1L]]
  if (last$name == "factor") return(v)
  if (last$name %in% ending_steps) {
    points <- level_points(last)
    v <- points[match(as.character(v), names(points))]
    steps <- steps[-1L]
    if (is.character(points)) return(unname(v))
  }
  for (step in steps) v <- step_inverse(step, v)
  unname(v)
}

level_points <- function(step) {
  if (step$name == "cut") {
    breaks <- step$breaks
    finite <- breaks[is.finite(breaks)]
    width <- if (length(finite) > 1L) min(diff(finite)) else 2
    breaks[breaks == -Inf] <- finite[1L] - width
    breaks[breaks == Inf] <- finite[length(finite)] + width
    return(stats::setNames((breaks[-1L] + breaks[-length(breaks)]) / 2, step$labels))
  }
  constant <- step$constant
  tried <- if (is.character(constant)) c(constant, paste0("not ", constant[1L])) else c(constant, max(constant) + 1, min(constant) - 1)
  given <- as.character(step_value(step, tried))
  stats::setNames(tried[match(c("FALSE", "TRUE"), given)], c("FALSE", "TRUE"))
}

# Does the function take the line to the line, one to one?
is_cut <- function(f) length(f$steps) == 1L && f$steps[[1L]]$name == "cut"

is_onto <- function(f) {
  all(vapply(f$steps, function(s) isTRUE(plain_steps[[s$name]]$onto) || s$name %in% c("+", "-", "*") || s$name == "/" && !isTRUE(s$first) ||
                        s$name == "^" && !isTRUE(s$first) && is_odd(s$constant) && s$constant > 0, TRUE))
}

most_steps <- 20L

operator_of <- function(side) if (is.call(side) && is.name(side[[1L]])) as.character(side[[1L]]) else ""
