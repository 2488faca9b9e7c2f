# Monomials of variables, shared by several statistics.

check_response_levels <- function(response, bounds, call = caller_env()) {
  levels <- bounds[[response]]
  if (!is.character(levels) || length(levels) == 2L) return(invisible())
  stop_classed("formula", "The response {.var {response}} must be a number, or a factor with two levels, but it has {length(levels)} levels.", call = call)
}

check_names_differ <- function(components, columns, call = caller_env()) {
  clash <- unique(c(components[duplicated(components)], intersect(columns$name, "(Intercept)")))
  if (length(clash) == 0L) return(invisible())
  stop_classed("formula", c("Components must have different names, but {.val {clash}} would be the name of more than one.",
                            i = "Rename a variable or a level: a component is named after its variables, as in {.val y:x} and {.val x^2}."), call = call)
}

# Products of two columns, row by row of the upper triangle, but for those that
# a factor's 0/1 coding makes redundant.
monomial_pairs <- function(columns) {
  q <- nrow(columns)
  first <- rep(seq_len(q), times = q:1)
  second <- unlist(lapply(seq_len(q), function(i) i:q))
  redundant <- !is.na(columns$level[first]) & columns$variable[first] == columns$variable[second]
  first <- first[!redundant]
  second <- second[!redundant]
  name <- ifelse(first == second, paste0(columns$name[first], "^2"),
                 paste(columns$name[first], columns$name[second], sep = ":"))
  data.frame(name = name, first = first, second = second)
}

moment_variables <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "a formula without a response, such as ~ x1 + x2", describe(formula), "formula", call)
  }
  variables <- formula_terms(formula[[2L]], call)
  twice <- unique(variables[duplicated(variables)])
  if (length(variables) == 0L || length(twice)) {
    fault <- if (length(twice)) "{.var {twice}} appear{?s/} more than once" else "there is none"
    stop_classed("formula", paste0("{.arg formula} must name each covariate once, but ", fault, "."), call = call)
  }
  variables
}

# "x", "x^2", "x:z", "x^2:z"
monomial_name <- function(powers, variables) {
  at <- which(powers > 0)
  paste(ifelse(powers[at] == 1, variables[at], paste0(variables[at], "^", powers[at])), collapse = ":")
}

# Minimum and maximum of every term over the box. A power's ends are at the
# bounds, or at 0 for an even one; a product's at ends of its powers.
term_limits <- function(powers, lower, upper) {
  t(apply(powers, 1L, function(powers) {
    ends <- c(1, 1)
    for (v in which(powers > 0)) {
      power <- c(lower[v], upper[v])^powers[v]
      if (powers[v] %% 2 == 0 && lower[v] < 0 && upper[v] > 0) power <- c(0, max(power))
      ends <- range(outer(ends, power))
    }
    ends
  }))
}
