# Functions of one variable in a formula: log(wage), I(educ > 12), cut(age, c(18, 30, 65)).
#
# Each is a derived column of the records, a variable whose name is the function as written. functions_as_names() replaces the call by this name, so that
# statistics and models see only variables. The name determines the computation: it is parsed by a closed grammar, and never evaluated; constants that have
# names are written out before. A function is a chain of steps, each of one variable with constants (utils_steps.R), so that its range over the bounds of the
# variable is exact.
#
# Records are clamped on the variable itself, and then transformed. A statistic keeps the bounds of the variables in `functions`, a named list of
# list(variable =, bounds =); its columns have the bounds of the function, or its levels.

#' Functions of variables in formulas
#'
#' Statistics and models take functions of variables in their formulas, as [stats::lm()] does:
#' `log(wage) ~ log1p(exper) + I(educ > 12) + cut(age, c(18, 30, 50, 65))`. The owner declares the bounds of the original variables. The analyst writes the same
#' formula, and makes predictions from the original variables.
#'
#' @details
#' **What is possible.** A function takes one variable, and its constants must be written out. Functions can be nested.
#' * Numbers: `log()` (also with a base), `log2()`, `log10()`, `log1p()`, `sqrt()`, `exp()`, `expm1()`, `asinh()`, `qlogis()`, `plogis()`, `sin()`, `cos()`, `abs()`;
#'   `pmin(x, 30)`, `pmax(x - 30, 0)`. Inside `I()`, or inside another function: `+`, `-`, `*`, `/` and `^` with a constant, as in `log(x + 1)`,
#'   `I((x - 40) / 10)`, `I(x^0.5)` and `sin(2 * pi * month / 12)`.
#' * Factors: `cut(x, breaks)` with all breaks, optionally with `labels`, `right` and `include.lowest`; `factor(x)` with declared levels, or `factor(x, 1:3)`;
#'   comparisons with a constant, `I(x > 12)`, `I(region == "south")`, `I(x %in% c(1, 3))`, with levels `FALSE` and `TRUE`.
#' * Products and powers of functions, as in `log(x) * g` and `log(x) + I(log(x)^2)`, and functions as the response. `poly(x, 3, raw = TRUE)` is short for
#'   `x + I(x^2) + I(x^3)`.
#'
#' Constants are numbers, strings, `pi`, and `c()`, `:`, `seq()` and arithmetic of these. Or they are named, as in `cut(age, breaks)`, if `breaks` is a short
#' vector where the formula is made and `age` is not: the formula then has its values, and a message shows them. Constants must be public, so never compute
#' them from the records. Any other function is an error, which lists the supported ones.
#'
#' **Interpretation.** Each function is a separate column, named as in [stats::lm()]. Records are clamped to the bounds of the variable and then transformed, so
#' that, for example, no logarithm of a negative number arises. The column's bounds are the exact range of the function between the variable's bounds, and the
#' sensitivity follows from them. A fit is identical, bit for bit, to a fit with a precomputed column. The model describes the function: if `log(x)` is a
#' covariate, it is normal, so `x` is lognormal. If a function has no other values outside the bounds, such as a sine over a whole period, no record lies
#' outside its range; see [declare_outside()].
#'
#' The breaks of `cut()` must span the bounds of the variable, and each interval must contain values between the bounds. A value at the outermost break is in
#' the adjacent interval, as with `include.lowest = TRUE`. In [stat_counts()], where the variable has no bounds, a value beyond the breaks is counted in the
#' adjacent interval.
#'
#' **Several functions of a variable.** A statistic can have one function of each variable, and powers of it: `x + I(x^2)` and `log(x) + I(log(x)^2)`, but not
#' `x + log(x)`. Different statistics in a release may have different functions of a variable if the model needs only one of them. With method `"augment"`,
#' [model_lm()] and [model_glm()] may have any number of functions of a variable that was itself released, as in `y ~ x + pmax(x - 30, 0)` or
#' `y ~ x + I(x > 12) * g`. The prior determines combinations of coefficients that the release does not, and chains mix slowly along them: check R-hat. Records
#' may lie outside the bounds. Functions that are undefined for some numbers, or that grow as fast as `exp()`, therefore need a covariate that stays within its
#' bounds: `covariates = list(x = covariate_beta())`. If a function is the response, the function itself must be released.
#'
#' **Splines.** Such a model also accepts `ns(x, knots = c(2, 3), Boundary.knots = c(1, 4))` and `bs(x, knots, degree, Boundary.knots)` from the package
#' splines. All knots must be written out and lie within the bounds of the variable, because `df` would choose them from the data. The columns and the names of
#' the coefficients are the same as with [splines::ns()] and [splines::bs()]. Records may lie beyond the boundary knots, where natural splines are linear.
#' Statistics cannot contain splines: release the variable itself. Cross-products of y and x determine the slope of a line, but its curvature is then largely
#' determined by the prior. Released functions, such as `I(x^2)` or `pmax(x - 30, 0)`, or counts of a binned x are more informative, and so are the totals of a
#' smooth, `stat_crossprod(y ~ s(x, k = 10), bounds)`.
#'
#' **Where functions are accepted.** [stat_crossprod()], [stat_sums()], [stat_by()], [stat_counts()], [stat_moments4()] and [stat_covariance()]; [model_lm()],
#' [model_glm()], [model_table()] and [regress()]. Other models name the column, as in `model_normal("log(wage)")`. Files written by [write_release()] contain
#' each function as a list of steps with constants, never as code. [predict()][predict.noiseaware_fit], emmeans and marginaleffects use the original variables.
#' [synthesize()] returns the original variable if the function is invertible for every number, such as the logarithm, and otherwise the column. The column of
#' `cut(age, breaks)` is then called `age`, a factor of intervals, which `cut(age, breaks)` in a statistic accepts. [release()] does not compute functions in a
#' database.
#' @section Errors: `noiseaware_error_formula`: a function that is unknown, has several variables, or has constants that are not written out; two functions of
#'   one variable. `noiseaware_error_bounds`: a function that is not finite between the bounds, such as a logarithm at 0, or that is constant; breaks that do
#'   not span the bounds. `noiseaware_error_levels`: `factor(x)` without declared levels.
#' @family statistics of numbers
#' @examples
#' bounds <- list(Volume = c(5, 100), Girth = c(5, 25), Height = c(50, 100))
#' st <- stat_crossprod(log(Volume) ~ log(Girth) + I(Height > 75), bounds)
#' st
#' set.seed(1)
#' rel <- simulate_release(trees, st, mech_laplace(epsilon = 20))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' coef(fit)
#' predict(fit, data.frame(Girth = c(10, 20), Height = c(70, 80)))
#' @name noiseaware_terms
NULL

# A formula with functions as names; others as they are, to be refused by whoever reads them.
functions_as_names <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula")) return(formula)
  last <- length(formula)
  leaves <- formula_leaves(formula[[last]], chain_operands("+"), call)
  named <- lapply(leaves, name_leaf, call, environment(formula))
  powers <- vapply(leaves, operator_of, "") == "poly" & vapply(named, operator_of, "") == "("
  named[powers] <- lapply(named[powers], `[[`, 2L) # a sum in a sum needs no parentheses
  if (!identical(named, leaves)) formula[[last]] <- Reduce(function(a, b) call("+", a, b), named)
  if (last == 3L && is.call(formula[[2L]])) formula[[2L]] <- as.name(function_label(write_constants(formula[[2L]], environment(formula)), call))
  formula
}

# `from`: where the formula was made, whose numbers it may name
name_leaf <- function(side, call, from) {
  if (!is.call(side)) return(side)
  operator <- operator_of(side)
  # refused later, without a recursion of any depth
  if (length(formula_leaves(side, product_operands, call)) > most_factors) return(side)
  if (operator %in% c("+", ":", "*", "(")) {
    side[-1L] <- lapply(as.list(side)[-1L], name_leaf, call, from)
    return(side)
  }
  if (operator == "^" && length(side) == 3L) {
    side[[2L]] <- name_leaf(side[[2L]], call, from)
    return(side)
  }
  if (operator %in% c("-", "%in%", "/", "|", "offset", "~")) return(side)
  side <- write_constants(side, from)
  if (operator == "I" && length(side) == 2L) return(name_arithmetic(side, call))
  if (operator %in% spline_steps) return(spline_sum(side, call))
  if (operator == "poly") return(name_leaf(power_sum(side, call), call, from))
  as.name(function_label(side, call))
}

# A function with the constants that its names have where the formula was made written out: all names but one must have some, the variable. A product of names
# is none of a name and a constant. It says what it read, as a column of the records may have that name.
write_constants <- function(side, from) {
  names <- setdiff(all.vars(side), constant_names)
  if (length(names) < 2L || !operator_of(side) %in% known_functions() || is_operation(side, "I", 1L) && is_monomial(side[[2L]])) return(side)
  values <- Filter(Negate(is.null), lapply(stats::setNames(nm = names), constant_named, from))
  if (length(values) != length(names) - 1L) return(side)
  written <- do.call(substitute, list(side, values))
  cli::cli_inform(c("{.code {formula_text(side)}}: {.var {names(values)}} {?is a constant/are constants} read from where the formula was made.",
                    i = "The term is {.code {formula_text(written)}}."), class = "noiseaware_message_constants")
  written
}

# As code, with the digits that are written; NULL where it is no short vector: the records themselves may be there.
constant_named <- function(name, from, most = 100L) {
  value <- user_object(name, from)
  if (!is.vector(value) || !(is.numeric(value) || is.character(value)) || !length(value) %in% seq_len(most) || anyNA(value)) return(NULL)
  value <- if (is.numeric(value)) signif(as.double(value), 15) else as.character(value)
  if (length(value) == 1L) value else as.call(c(quote(c), as.list(value)))
}

# not of a package that is attached
user_object <- function(name, from) {
  if (is.null(from)) return(NULL)
  if (exists(name, from, inherits = FALSE)) return(get(name, from, inherits = FALSE))
  if (!identical(from, topenv(from))) user_object(name, parent.env(from))
}

# poly(x, 3, raw = TRUE) as (x + I(x^2) + I(x^3))
power_sum <- function(side, call) {
  given <- as.list(side)[-1L]
  names(given) <- names(given) %||% rep("", length(given))
  names(given)[names(given) == ""] <- setdiff(c("x", "degree"), names(given))[seq_len(sum(names(given) == ""))]
  ok <- length(given) == 3L && setequal(names(given), c("x", "degree", "raw")) && isTRUE(given$raw) && is_power(given$degree) && given$degree <= most_power
  if (!ok) {
    refuse_function(formula_text(side), "Orthogonal polynomials depend on the records.", call,
                    cli::format_inline("Polynomials are {.code poly(x, 2, raw = TRUE)}, with a degree of up to {most_power}."))
  }
  powers <- lapply(seq_len(given$degree)[-1L], function(k) call("I", call("^", given$x, as.double(k))))
  sum <- Reduce(function(a, b) call("+", a, b), c(given$x, powers))
  if (length(powers)) call("(", sum) else sum
}

# I(): products and powers of names stay, a power of a function is a power of that
name_arithmetic <- function(side, call) {
  inner <- side[[2L]]
  if (is_monomial(inner)) return(side)
  if (is_operation(inner, "^", 2L) && is.call(inner[[2L]]) && is_power(inner[[3L]]) && inner[[3L]] >= 2 && inner[[3L]] <= most_power) {
    side[[2L]][[2L]] <- as.name(function_label(inner[[2L]], call))
    return(side)
  }
  as.name(function_label(side, call))
}

# A loop, not a recursion, which ends where no statistic takes as many factors: a formula may be of any depth.
is_monomial <- function(side) {
  todo <- list(side)
  seen <- 0L
  while (length(todo) && seen <= most_factors) {
    side <- todo[[1L]]
    todo <- todo[-1L]
    seen <- seen + 1L
    if (is.name(side)) next
    if (is_operation(side, "(", 1L) || is_operation(side, "*", 2L)) todo <- c(as.list(side)[-1L], todo) else
      if (is_operation(side, "^", 2L) && is_power(side[[3L]])) todo <- c(list(side[[2L]]), todo) else return(FALSE)
  }
  TRUE
}

function_label <- function(side, call) {
  f <- read_function(side, call)
  if (is_spline(f)) refuse_function(f$label, "It has several columns, so it has no powers.", call)
  formula_text(side)
}

# list(variable =, steps =, label =), the innermost step first
read_function <- function(side, call = caller_env()) {
  label <- formula_text(side)
  steps <- list()
  while (is.call(side)) {
    if (is_operation(side, "(", 1L) || is_operation(side, "I", 1L)) {
      side <- side[[2L]]
      next
    }
    if (length(steps) >= most_steps) {
      refuse_function(label, "It has more than {most_steps} nested functions.", call)
    }
    read <- read_step(side, label, call)
    steps <- c(read$steps, steps)
    side <- read$side
  }
  if (!is.name(side) || identical(side, quote(.))) refuse_function(label, "It has no variable.", call)
  ends <- vapply(steps, function(s) s$name %in% ending_steps, TRUE)
  if (any(ends[-length(ends)])) refuse_function(label, "A function that gives levels, such as a comparison, must be outermost.", call)
  if (any(vapply(steps[-length(steps)], function(s) s$name %in% spline_steps, TRUE))) {
    refuse_function(label, "A function that gives several columns must be outermost.", call)
  }
  list(variable = as.character(side), steps = steps, label = label)
}

# The function that a variable's name says, NULL where it says none.
named_function <- function(name) {
  if (!may_be_function(name) || nchar(name, "bytes") > most_label) return(NULL)
  said <- spline_name(name)
  side <- tryCatch(str2lang(said$label), error = function(e) NULL)
  if (!is.call(side)) return(NULL)
  read <- tryCatch(read_function(side), error = function(e) NULL)
  if (!is.null(read) && identical(read$label, said$label)) spline_column(read, said$number)
}

most_label <- 1e4

may_be_function <- function(names) grepl("[^[:alnum:]._]", names)

functions_named <- function(names) {
  names <- names[may_be_function(names)]
  if (length(names)) Filter(Negate(is.null), lapply(stats::setNames(nm = names), named_function)) else list()
}

# the variable behind each name
base_variables <- function(names) {
  found <- functions_named(names)
  ifelse(names %in% names(found), vapply(names, function(v) found[[v]]$variable %||% v, ""), names)
}

# The columns of a release, and the variables that a model has a distribution of, are free of each other, but for dependence that the model
# describes; two functions of one variable are not. Functions in the linear predictor alone are another matter (model_functions.R).
check_one_function <- function(variables, call = caller_env()) {
  variables <- unique(variables)
  check_no_splines(variables, call)
  base <- base_variables(variables)
  twice <- unique(base[duplicated(base)])
  if (length(twice) == 0L) return(invisible())
  shown <- variables[base == twice[1L]]
  of_levels <- any(vapply(functions_named(shown), function(f) f$steps[[length(f$steps)]]$name %in% ending_steps, TRUE))
  stop_classed("formula", c("A formula can have only one function of each variable, and powers of it, but has {.code {shown}} of {.var {twice[1]}}.",
                            x = "Each determines the other, which no model here can describe.",
                            i = if (of_levels) "Choose one of them." else "Choose one of them, or powers of one, such as {.code {shown[1]} + I({shown[1]}^2)}."),
               call = call)
}

# They are several functions of one variable.
check_no_splines <- function(variables, call) {
  splines <- Filter(is_spline, functions_named(variables))
  if (length(splines) == 0L) return(invisible())
  f <- splines[[1L]]
  stop_classed("formula", c("{.code {spline_name(f$label)$label}} is for the formula of a model, not of a statistic.",
                            i = "Release {.var {f$variable}} itself; {.fn model_lm} and {.fn model_glm} then take the spline."), call = call)
}

# ---- splines ---------------------------------------------------------------------------

# ns() and bs() have several columns. The name of one is the call, as it is written, and the column's number: what stats::lm() calls its coefficient.
is_spline <- function(f) length(f$steps) > 0L && f$steps[[length(f$steps)]]$name %in% spline_steps

# the sum of its columns, by name; a single one has no number
spline_sum <- function(side, call) {
  f <- read_function(side, call)
  count <- spline_columns(utils::tail(f$steps, 1L)[[1L]])
  names <- paste0(f$label, if (count > 1L) seq_len(count))
  sum <- Reduce(function(a, b) call("+", a, b), lapply(names, as.name))
  if (length(names) > 1L) call("(", sum) else sum
}

# What precedes a column's number in its name, and that; of other names these themselves, and NA.
spline_name <- function(name) {
  number <- if (grepl("^(ns|bs)\\(.*\\)[1-9][0-9]{0,3}$", name)) as.integer(sub("^.*\\)", "", name)) else NA_integer_
  list(label = if (is.na(number)) name else sub("[0-9]+$", "", name), number = number)
}

# A function that was read, as the column with that number; NULL where there is none.
spline_column <- function(f, number) {
  if (!is_spline(f)) return(if (is.na(number)) f)
  last <- length(f$steps)
  count <- spline_columns(f$steps[[last]])
  if (is.na(number) != (count == 1L) || !is.na(number) && number > count) return(NULL)
  f$steps[[last]]$column <- if (is.na(number)) 1L else number
  if (!is.na(number)) f$label <- paste0(f$label, number)
  f
}

# ---- bounds ----------------------------------------------------------------------------

# Declared bounds and levels with those of functions in the place of their variables'; `functions` of the result as its attribute.
bounds_of_functions <- function(bounds, variables, name = "bounds", call = caller_env()) {
  found <- functions_named(setdiff(variables, names(bounds)))
  if (length(found) == 0L) return(bounds)
  raw <- vapply(found, `[[`, "", "variable")
  functions <- lapply(found, function(f) {
    declared <- (if (name == "levels") declared_levels else plain_bound)(bounds[[f$variable]])
    list(variable = f$variable, bounds = if (!is.null(declared)) check_bound(declared, paste0(name, "$", f$variable), call))
  })
  images <- Map(function(f, of) function_image(f, of$bounds, name, call), found, functions)
  whole <- Map(is_whole_range, found, images)
  functions <- Map(function(of, whole) c(of, whole = whole), functions, whole)
  structure(c(bounds[!names(bounds) %in% setdiff(raw, variables)], images), functions = functions)
}

plain_bound <- function(b) if (is.factor(b)) levels(b) else if (is.logical(b)) level_text(b) else b

# ---- for readers -----------------------------------------------------------------------

# A formula, or its text, with the functions as calls again
called_formula <- function(formula) {
  if (is.character(formula)) {
    if (!grepl("`", formula, fixed = TRUE)) return(formula)
    return(formula_text(called_formula(text_formula(formula))))
  }
  labels <- names(functions_named(all.vars(formula)))
  calls <- lapply(stats::setNames(nm = labels), function(label) str2lang(spline_name(label)$label))
  if (length(calls)) formula[-1L] <- lapply(as.list(formula)[-1L], function(side) one_spline(do.call(substitute, list(side, calls))))
  formula
}

# A sum of the same spline, for each of its columns, is the spline.
one_spline <- function(side) {
  if (!is.call(side)) return(side)
  side[-1L] <- lapply(as.list(side)[-1L], one_spline)
  if (operator_of(side) == "(" && operator_of(side[[2L]]) %in% spline_steps) return(side[[2L]])
  if (operator_of(side) == "+" && length(side) == 3L && operator_of(side[[3L]]) %in% spline_steps && identical(side[[2L]], side[[3L]])) return(side[[2L]])
  side
}

# Rows that represent records, with the variables in the place of functions of them.
raw_columns <- function(data) {
  for (f in functions_named(names(data))) {
    names(data)[names(data) == f$label] <- f$variable
    data[[f$variable]] <- function_inverse(f, data[[f$variable]])
  }
  data
}

# The same of synthetic records, where each value of the function is that of one value of the variable.
raw_records <- function(data) {
  onto <- Filter(is_onto, functions_named(names(data)))
  keep <- vapply(onto, function(f) !f$variable %in% names(data), TRUE)
  for (f in onto[keep]) {
    names(data)[names(data) == f$label] <- f$variable
    data[[f$variable]] <- function_inverse(f, data[[f$variable]])
  }
  data
}

check_bound <- function(bound, name, call) {
  if (is.character(bound)) {
    if (length(bound) < 2L || anyNA(bound) || anyDuplicated(bound) || any(bound == "")) {
      shown <- paste0("c(", shorten_list(encodeString(bound, quote = '"')), ")")
      stop_argument(name, "two or more different, non-empty levels", shown, "levels", call)
    }
    return(bound)
  }
  if (is.numeric(bound) && length(bound) > 2L) {
    stop_argument(name, "two numbers, lower and upper, or a character vector of levels, such as c(\"1\", \"2\", \"3\")", describe(bound), "bounds", call)
  }
  if (!is.numeric(bound) || length(bound) != 2L) {
    stop_argument(name, "two numbers, lower and upper, or the levels of a factor", describe(bound), "bounds", call)
  }
  bound <- as.double(bound)
  shown <- paste0("c(", paste(format_number(bound, 15L), collapse = ", "), ")")
  if (!all(is.finite(bound)) || bound[1L] >= bound[2L]) {
    stop_argument(name, "two different finite numbers, the lower one first", shown, "bounds", call)
  }
  if (!is.finite(bound[2L] - bound[1L])) {
    stop_argument(name, "a finite distance apart", shown, "bounds", call)
  }
  bound
}

# levels as text, if they are levels
declared_levels <- function(x) {
  if (is.factor(x)) return(base::levels(x))
  if (is.atomic(x) && !is.object(x) && is.null(dim(x)) && (is.numeric(x) || is.logical(x))) level_text(x) else x
}
