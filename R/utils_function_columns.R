# Columns of records that are computed by functions of released variables.

# src/model/derived_columns.c has the same numbers
step_codes <- c("+" = 1, "*" = 2, "/" = 3, "^" = 4, pmin = 5, pmax = 6, sin = 7, cos = 8, abs = 9, asinh = 10, plogis = 11, log = 12, log1p = 13, sqrt = 14,
                exp = 15, expm1 = 16, qlogis = 17)
spline_code <- 22

total_steps <- c("+", "-", "*", "pmin", "pmax", "sin", "cos", "abs", "asinh", "plogis", "ns", "bs", "cut", "<", "<=", ">", ">=")

# Rows as those of `base` for the columns of the functions: a number, or one of each level but the first, which are 0 or 1 in the numbers' place.
# Their `steps` are a list by row.
function_rows <- function(said, base, covariates, call) {
  rows <- lapply(said$functions, function(f) {
    at <- which(base$variable == f$variable)
    if (length(at) != 1L || !is.na(base$level[at])) refuse_factor_function(f, call)
    image <- function_image(f, c(base$lower[at], base$upper[at]), "bounds", call)
    if (is.null(covariates$public)) check_total(f, covariates$lone[[f$variable]], call)
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
  stop_classed("variables", c("{.code {f$label}} in a model needs a number in the release, but {.var {f$variable}} is a factor there.",
                              i = "Release {.code {f$label}}: it can be used in the formula of a statistic."), call = call)
}

check_total <- function(f, lone, call) {
  partial <- vapply(f$steps, function(s) !(s$name %in% total_steps || s$name == "/" && !isTRUE(s$first) ||
                                             s$name == "^" && !isTRUE(s$first) && s$constant > 0 && s$constant == floor(s$constant)), TRUE)
  if (!any(partial) || identical(lone$kind, "beta")) return(invisible())
  stop_classed("variables", c("{.code {f$label}} needs a distribution of {.var {f$variable}} that stays within its bounds.",
                              x = "Outside them the function may be undefined, and {if (is.null(lone)) 'a normal' else 'this'} distribution has values there.",
                              i = "Use {.code covariates = list({f$variable} = covariate_beta())}, or release {.code {f$label}} itself."), call = call)
}

# list(code, a, b) of each step in C
step_program <- function(step) {
  first <- isTRUE(step$first)
  a <- step$constant
  line <- function(code, a = 0, b = 0) c(code, a, b)
  if (step$name %in% spline_steps) {
    table <- spline_table(step)
    return(list(structure(line(spline_code, 0, (length(table) + 1) / 6), table = table)))
  }
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
    stop_classed("variables", c("{.code {f$label}} in a model must be a comparison with {.code <}, {.code <=}, {.code >} or {.code >=}.",
                                i = "Release {.code {f$label}}: it can be used in the formula of a statistic."), call = call)
  }
  list(ends)
}

# Fields of src/model/derived_columns.c
function_fields <- function(rows) {
  steps <- unlist(rows$steps, recursive = FALSE)
  tables <- lapply(steps, attr, "table")
  # where each table begins
  before <- cumsum(lengths(tables)) - lengths(tables)
  constants <- Map(function(step, at, table) c(if (is.null(table)) step[2L] else at, step[3L]), steps, before, tables)
  list(function_steps = as.double(lengths(rows$steps)), function_step = vapply(steps, `[`, 0, 1L),
       function_constant = as.double(unlist(constants)), function_spline = as.double(unlist(tables)))
}

# Columns of the functions, of records in the columns of the covariates.
function_columns <- function(bound, x) {
  rows <- bound$terms$functions
  columns <- lapply(unique(rows$variable), function(label) {
    f <- named_function(label)
    value <- function_value(f, x[, rows$of[match(label, rows$variable)] - 1L])
    if (anyNA(value)) {
      stop_classed("data", "{.arg newdata} must have values of {.var {f$variable}} for which {.code {label}} is defined, but not in {rows_text(which(is.na(value)))}.")
    }
    if (is.factor(value)) vapply(levels(value)[-1L], function(l) as.double(value == l), numeric(length(value))) else value
  })
  matrix(unlist(columns), nrow(x), nrow(rows))
}
