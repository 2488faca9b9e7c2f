# Shared by models of one variable.

check_variable <- function(x, name, null = FALSE, call = caller_env()) {
  x <- evaluated_name(x, name, call)
  if ((null && is.null(x)) || checkmate::test_string(x, min.chars = 1L)) return(invisible())
  stop_argument(name, paste0(if (null) "NULL or ", "the name of a variable"), describe(x), call = call)
}

# The release's column that a model of one variable describes.
bind_only_column <- function(variable, columns, levels, call) {
  variable <- variable %||% (if (nrow(columns) == 1L) columns$name)
  if (is.null(variable)) {
    stop_classed("variables", c("The model describes one variable, but the release has {nrow(columns)}: {.var {columns$name}}.",
                                i = if (length(levels)) "Give groups in a model's formula, as in {.code model_poisson(~ {names(levels)[1L]})}: see {.code ?groups}.",
                                i = "Name one of them as the model's variable; numbers that involve others are then not used."), call = call)
  }
  if (!identical(variable, columns$name)) {
    stop_classed("variables", c("The model must have the variable of the release.",
                                x = "The model has {.var {variable}}, but the release has {.var {columns$name}}."), call = call)
  }
  columns
}

# the release's column, which must be a number
bind_number <- function(variable, columns, levels, call) {
  columns <- bind_only_column(variable, columns, levels, call)
  if (columns$variable %in% names(levels)) {
    stop_classed("variables", "The model's variable must be a number, but {.var {columns$variable}} is a factor.", call = call)
  }
  columns
}

# gamma prior of a rate, E(rate) = rate_at(middle of the bounds) by default
rate_prior <- function(prior, columns, rate_at, call) {
  middle <- columns$lower + (columns$upper - columns$lower) / 2
  rate <- prior$rate %||% (prior$shape / rate_at(middle))
  if (!is.finite(rate) || rate <= 0) {
    stop_classed("prior", c("{.arg prior} must have a rate, as in {.code prior_gamma(shape, rate)}: only bounds with a positive middle can scale it.",
                            x = "{.var {columns$name}} has the bounds {format_number(columns$lower)} and {format_number(columns$upper)}."),
                 call = call)
  }
  list(shape = prior$shape, rate = rate)
}

# levels of the columns, each of which must hold the codes of a factor
coded_levels <- function(columns, levels, call) {
  coded <- is.na(columns$level) & columns$variable %in% names(levels)
  if (!all(coded)) {
    stop_classed("variables", c("The model's variables must be categorical, released by {.fn stat_counts}.",
                                x = "{.var {unique(columns$variable[!coded])}} {?is/are} not.",
                                i = "Bins of a histogram are declared as levels: {.code stat_counts(~ age, list(age = c(\"[0,20)\", \"[20,40)\")))}."), call = call)
  }
  levels[columns$variable]
}

# `variable` of a model of one variable, with the factor of its groups where it is a formula
read_variable <- function(x, model, call = caller_env()) {
  x <- evaluated_name(x, "variable", call)
  if (!inherits(x, "formula")) {
    check_variable(x, "variable", null = TRUE, call = call)
    return(list(variable = x, group = NULL))
  }
  sides <- as.list(functions_as_names(x, call))[-1L]
  if (!all(vapply(sides, is.name, TRUE)) || any(vapply(sides, identical, TRUE, quote(.)))) {
    stop_classed("argument", c(paste("{.arg variable} must be NULL, the name of a variable, or a formula of names such as {.code visits ~ ward} or {.code ~ ward},",
                                     "but is {.code {formula_text(x)}}."),
                               unlist(lapply(meant_variable(x, model), function(hint) c(i = hint)))), call = call)
  }
  sides <- vapply(sides, as.character, "")
  list(variable = if (length(sides) == 2L) sides[1L], group = sides[length(sides)])
}

# What a formula with a constant or a bar was meant to be
meant_variable <- function(x, model) {
  sides <- lapply(as.list(x)[-1L], all.vars)
  names <- vapply(sides, function(side) if (length(side) == 1L) format_name(side) else "", "")
  if (length(x) == 3L && identical(x[[3L]], 1)) {
    return(if (nzchar(names[1L])) sprintf("Without groups, it is {.code %s(%s)}.", model, encodeString(sides[[1L]], quote = "\"")))
  }
  if (model == "model_normal" && length(x) == 3L && length(sides[[2L]]) > 1L) return("A regression is {.fn model_lm}.")
  if (!any(c("|", "||") %in% all.names(x))) return(NULL)
  of_groups <- "{.code pool = \"partial\"} in {.fn sample_posterior}"
  if (!all(nzchar(names))) return(paste0("Partial pooling of groups is ", of_groups, "."))
  formula <- paste(if (length(names) == 2L) names[1L], "~", names[length(names)])
  c(sprintf("Partial pooling of groups is {.code %s(%s)} with %s.", model, trimws(formula), of_groups),
    if (model == "model_normal" && length(names) == 2L) sprintf("With one sd for all groups, it is {.code model_lm(%s ~ 1 + (1 | %s))}.", names[1L], names[2L]))
}

# for format()
variable_line <- function(model) paste0("  variable  ", model$variable %||% "the release's", if (is_grouped(model)) paste(", by", model$group))
