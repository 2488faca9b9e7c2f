# Parsing of formulas. They may come from a file and may be deeply nested, so the walk is a loop with its own stack, linear in the size of the formula. It
# stops as soon as there are more terms than any statistic allows.

most_terms <- 2000

# What `operands()` cannot take apart any further, from left to right.
# `operands(side)` gives a list of the operands of a call, or NULL.
formula_leaves <- function(side, operands, call = caller_env()) {
  leaves <- list()
  stack <- list(side)
  depth <- 1L
  while (depth > 0L) {
    side <- stack[[depth]]
    depth <- depth - 1L
    inner <- operands(side)
    if (is.null(inner)) {
      leaves[length(leaves) + 1L] <- list(side) # it may be NULL
    } else {
      stack[depth + seq_along(inner)] <- rev(inner)
      depth <- depth + length(inner)
    }
    # each entry of the stack has one leaf or more
    if (length(leaves) + depth > most_terms) {
      stop_classed("formula", "{.arg formula} must have at most {most_terms} terms, but has more.", call = call)
    }
  }
  leaves
}

# of a sum, or of another operator's chain, in parentheses or not
chain_operands <- function(operator) {
  function(side) if (is_operation(side, "(", 1L) || is_operation(side, operator, 2L)) as.list(side)[-1L]
}

is_operation <- function(side, operator, arguments) {
  is.call(side) && identical(side[[1L]], as.name(operator)) && length(side) == arguments + 1L
}

# Response first, then the covariates in order; refuses everything but names.
formula_variables <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 3L) {
    stop_argument("formula", "a formula with a response, such as y ~ x", describe(formula), "formula", call)
  }
  response <- formula[[2L]]
  covariates <- formula_terms(formula[[3L]], call)
  if (!is.name(response)) {
    stop_classed("formula", c("The response of {.arg formula} must be the name of a variable.",
                              x = "It is {.code {shorten_text(formula_text(response))}}.",
                              i = "Transform the variable in the data first."), call = call)
  }
  variables <- c(as.character(response), covariates)
  twice <- unique(variables[duplicated(variables)])
  if (length(twice)) {
    stop_classed("formula", "Each variable may appear only once in {.arg formula}, but {.var {twice}} appear{?s/} more than once.",
                 call = call)
  }
  variables
}

# The names on the right-hand side, but for the intercept's 1.
formula_terms <- function(side, call) {
  terms <- formula_leaves(side, chain_operands("+"), call)
  terms <- terms[!vapply(terms, function(t) identical(t, 1) || identical(t, 1L), TRUE)]
  for (t in terms) if (!is.name(t) || identical(t, quote(.))) refuse_term(t, call)
  vapply(terms, as.character, "")
}

refuse_term <- function(side, call) {
  operator <- if (is.call(side) && is.name(side[[1L]])) as.character(side[[1L]]) else ""
  shown <- shorten_text(formula_text(side))
  if (identical(side, quote(.))) {
    stop_classed("formula", "{.arg formula} must name its variables: {.code .} would depend on the data.", call = call)
  }
  if (operator %in% c(":", "*", "^", "%in%", "/")) {
    stop_classed("formula", c("{.arg formula} must have main effects only, but has {.code {shown}}.",
                              i = "Add the product to the data as a variable with its own bounds."), call = call)
  }
  if (operator %in% c("|", "||")) {
    stop_classed("formula", c("{.arg formula} must be names joined by {.code +}; groups, as in {.code {shown}}, are not possible here.",
                              i = "{.fn stat_by} has totals by group: {.code stat_by(stat_crossprod(y ~ x, bounds), list(g = c(\"a\", \"b\")))}."), call = call)
  }
  if (operator == "-" || identical(side, 0) || identical(side, 0L)) {
    stop_classed("formula", c("{.arg formula} must be names joined by {.code +}; nothing can be removed, as in {.code {shown}}.",
                              i = "The intercept is always included: the number of records is public."), call = call)
  }
  stop_classed("formula", c("{.arg formula} must be names joined by {.code +}, but {.code {shown}} is not a name.",
                            i = "Transform the variable in the data first."), call = call)
}

text_formula <- function(text) stats::as.formula(text, env = baseenv())

# Of one product, as x * g * h; and how high a power may be.
most_factors <- 50

most_power <- 8

product_operands <- function(side) {
  for (operator in c("+", ":", "*", "^")) if (is_operation(side, operator, 2L)) return(as.list(side)[-1L])
  if (is_operation(side, "(", 1L)) as.list(side)[-1L]
}

is_power <- function(x) is.numeric(x) && length(x) == 1L && is.finite(x) && x >= 1 && x == floor(x)
