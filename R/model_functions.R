# Functions of released variables in the formula of a model: y ~ x + pmax(x - 30, 0) where x was released.
#
# The records of the model have the variable. Each function is a column that follows from it (src/model/derived_columns.c), beside the products: the
# covariates' distribution is that of the variable, the linear predictor has the functions. So a model may have any number of functions of a variable;
# what the release cannot tell of their coefficients comes from the prior. Method "augment" has them, and is exact.
#
# A record may lie beyond the bounds, where its distribution has values there. Functions that are not known of every number, or have no end within
# a double, need a covariate that keeps within its bounds: covariate_beta().

# src/model/derived_columns.c has the same numbers
step_codes <- c("+" = 1, "*" = 2, "/" = 3, "^" = 4, pmin = 5, pmax = 6, sin = 7, cos = 8, abs = 9, asinh = 10, plogis = 11, log = 12, log1p = 13, sqrt = 14,
                exp = 15, expm1 = 16, qlogis = 17)
total_steps <- c("+", "-", "*", "pmin", "pmax", "sin", "cos", "abs", "asinh", "plogis", "cut", "<", "<=", ">", ">=")

# Names of functions in a formula of a release's variables, which are not columns of the release themselves, each with its variable.
model_functions <- function(variables, released) {
  found <- functions_named(setdiff(variables, released))
  Filter(function(f) f$variable %in% released, found)
}

# What model_terms() says, with the variables in the place of their functions; `functions`, a list by name, are those.
with_model_functions <- function(said, released, call) {
  functions <- model_functions(said$variables, released)
  if (length(functions) == 0L) return(said)
  if (said$response %in% names(functions)) {
    f <- functions[[said$response]]
    stop_classed("variables", c("The response must be a variable of the release, but {.code {f$label}} is not.",
                                x = "The release is of {.var {f$variable}}, whose totals are not those of a function of it.",
                                i = "Release {.code {f$label}}: the formula of a statistic takes it."), call = call)
  }
  said$variables <- unique(ifelse(said$variables %in% names(functions), base_variables(said$variables), said$variables))
  if (said$response %in% said$variables[-1L] || any(vapply(functions, `[[`, "", "variable") == said$response)) {
    stop_classed("formula", "The response {.var {said$response}} must not be a term or an offset of {.arg formula}, too.", call = call)
  }
  said$functions <- functions
  said$plain <- FALSE
  said
}

# Rows as those of `base` for the columns of the functions: a number, or one of each level but the first, which are 0 or 1 in the numbers' place.
# Their `steps` are a list by row.
function_rows <- function(said, base, lone, call) {
  rows <- lapply(said$functions, function(f) {
    at <- which(base$variable == f$variable)
    if (length(at) != 1L || !is.na(base$level[at])) refuse_factor_function(f, call)
    image <- function_image(f, c(base$lower[at], base$upper[at]), "bounds", call)
    check_total(f, lone[[f$variable]], call)
    numbers <- f$steps
    ends <- if (is.character(image)) level_ends(numbers[[length(numbers)]], f, call)
    numbers <- unlist(lapply(if (is.null(ends)) numbers else numbers[-length(numbers)], step_program), recursive = FALSE)
    names <- if (is.null(ends)) f$label else paste0(f$label, image[-1L])
    frame <- data.frame(name = names, lower = if (is.null(ends)) image[1L] else 0, upper = if (is.null(ends)) image[2L] else 1, variable = f$label,
                        level = NA_character_, column = -1, code = 0, centre = if (is.null(ends)) mean(image) else 0.5)
    frame$of <- at
    frame$steps <- if (is.null(ends)) list(numbers) else lapply(ends, function(e) c(numbers, list(e)))
    frame
  })
  do.call(rbind, unname(rows))
}

refuse_factor_function <- function(f, call) {
  stop_classed("variables", c("{.code {f$label}} of a model must be of a number of the release, but {.var {f$variable}} is a factor there.",
                              i = "Release {.code {f$label}}: the formula of a statistic takes it."), call = call)
}

check_total <- function(f, lone, call) {
  partial <- vapply(f$steps, function(s) !(s$name %in% total_steps || s$name == "/" && !isTRUE(s$first) ||
                                             s$name == "^" && !isTRUE(s$first) && s$constant > 0 && s$constant == floor(s$constant)), TRUE)
  if (!any(partial) || identical(lone$kind, "beta")) return(invisible())
  stop_classed("variables", c("{.code {f$label}} needs a distribution of {.var {f$variable}} that keeps within its bounds.",
                              x = "Beyond them the function may not be known, and {if (is.null(lone)) 'a normal' else 'this'} distribution has values there.",
                              i = "Say {.code covariates = list({f$variable} = covariate_beta())}; or release {.code {f$label}} itself."), call = call)
}

# list(code, a, b) of each step in C
step_program <- function(step) {
  first <- isTRUE(step$first)
  a <- step$constant
  line <- function(code, a = 0, b = 0) c(code, a, b)
  if (step$name == "-") return(if (first) list(line(2, -1), line(1, a)) else list(line(1, -a)))
  if (step$name %in% c("/", "^") && first) return(list(line(if (step$name == "/") 18 else 19, a)))
  if (step$name %in% c("log2", "log10")) return(list(line(12), line(3, log(if (step$name == "log2") 2 else 10))))
  list(line(step_codes[[step$name]], a %||% 0))
}

# steps to 0 and 1, of each level but the first
level_ends <- function(step, f, call) {
  if (step$name == "cut") {
    breaks <- step$breaks
    breaks[length(breaks)] <- Inf
    return(lapply(seq_along(step$labels)[-1L], function(k) c(if (step$right) 20 else 21, breaks[k], breaks[k + 1L])))
  }
  a <- step$constant
  ends <- list("<" = c(21, -Inf, a), "<=" = c(20, -Inf, a), ">" = c(20, a, Inf), ">=" = c(21, a, Inf))[[step$name]]
  if (is.null(ends)) {
    stop_classed("variables", c("{.code {f$label}} of a model must be a comparison by {.code <}, {.code <=}, {.code >} or {.code >=}.",
                                i = "Release {.code {f$label}}: the formula of a statistic takes it."), call = call)
  }
  list(ends)
}

# Fields of src/model/derived_columns.c
function_fields <- function(rows) {
  steps <- unlist(rows$steps, recursive = FALSE)
  list(function_steps = as.double(lengths(rows$steps)), function_step = vapply(steps, `[`, 0, 1L),
       function_constant = as.double(unlist(lapply(steps, `[`, 2:3))))
}

# Columns of the functions, of records in the columns of the covariates.
function_columns <- function(bound, x) {
  rows <- bound$terms$functions
  columns <- lapply(unique(rows$variable), function(label) {
    f <- named_function(label)
    value <- function_value(f, x[, rows$of[match(label, rows$variable)] - 1L])
    if (anyNA(value)) {
      stop_classed("data", "{.arg newdata} must have values of {.var {f$variable}} that {.code {label}} is known of, but has others in {rows_text(which(is.na(value)))}.")
    }
    if (is.factor(value)) vapply(levels(value)[-1L], function(l) as.double(value == l), numeric(length(value))) else value
  })
  matrix(unlist(columns), nrow(x), nrow(rows))
}
