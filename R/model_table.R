#' A table of factors
#'
#' Combinations of the levels of several factors. The parameters are the probabilities of the cells.
#'
#' @param formula The model: `~ a:b:c` or `~ a * b * c`, any combination of levels has a probability of its own (a
#'   saturated table). `NULL` takes all variables of the release.
#' @param prior Of the probabilities: [prior_dirichlet()], one weight, or one for each possible cell, named after
#'   the parameters or in their order.
#' @param zeros Combinations of levels that cannot be: a formula such as `~ sex == "male" & pregnant == "yes"`, true where
#'   they are; or a data frame with a column for each of some variables and a row for each impossible combination.
#'
#' @details
#' The release may hold whatever sums of the table's cells: margins of any variables ([stat_counts()]), overlapping
#' or not, some of their cells, linear queries ([stat_linear()], [stat_cumulative()]), or several of these with a
#' mechanism each. Method `"collapse"` moves the table of counts itself, at a cost that does not depend on
#' the number of records, with the probabilities integrated out. It is exact, whatever the noise.
#'
#' The counts of the confidential table, in every draw, are what [denoise()] gives with a formula:
#' `denoise(fit, ~ a:b)`.
#'
#' @return A model: an object of class `model_table`. Its parameters are `prob[a=x:b=y]`, one for each cell that is possible,
#'   the last variable fastest.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`, `noiseaware_error_zeros`, `noiseaware_error_size` (more than 100,000 cells).
#' @seealso [model_categorical()] for one variable, [model_naive_bayes()], [stat_counts()].
#' @examples
#' admitted <- as.data.frame(UCBAdmissions)
#' admitted <- admitted[rep(seq_len(24), admitted$Freq), 1:3]
#' st <- stat_counts(~ Admit:Dept + Gender:Dept + Admit:Gender, levels = lapply(admitted, levels))
#' set.seed(1)
#' rel <- release(admitted, st, mech_gaussian(mu = 1))
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 400, seed = 1)
#' posterior::summarise_draws(denoise(fit, ~ Admit:Gender), "mean", "sd")
#' @export
model_table <- function(formula = NULL, prior = prior_dirichlet(1), zeros = NULL) {
  variables <- if (!is.null(formula)) table_variables(formula)
  check_class(prior, "prior", "prior_dirichlet", "prior_dirichlet()", "prior")
  if (!is.null(zeros)) check_zeros(zeros)
  new_model("table", variables = variables, prior = prior, zeros = zeros, class = "model_table")
}

# The variables of the only term that is not part of another.
table_variables <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "NULL or a formula without a left-hand side, such as ~ a:b:c", describe(formula), "formula", call)
  }
  operands <- function(side) if (is_operation(side, "(", 1L) || is_operation(side, ":", 2L) || is_operation(side, "*", 2L)) as.list(side)[-1L]
  terms <- lapply(formula_leaves(formula[[2L]], chain_operands("+"), call), function(term) {
    names <- formula_leaves(term, operands, call)
    for (name in names) if (!is.name(name) || identical(name, quote(.))) refuse_table_term(name, call)
    unique(vapply(names, as.character, ""))
  })
  largest <- terms[[which.max(lengths(terms))]]
  left <- setdiff(unlist(terms), largest)
  if (length(left)) {
    stop_classed("formula", c("{.arg formula} must have one term with all variables, such as {.code a:b:c}, but no term has {.var {left}} beside {.var {largest}}."),
                 call = call)
  }
  largest
}

refuse_table_term <- function(side, call) {
  shown <- shorten_text(formula_text(side))
  stop_classed("formula", "{.arg formula} must be names of factors joined by {.code :}, {.code *} and {.code +}, but {.code {shown}} is not a name.",
               call = call)
}

check_zeros <- function(zeros, call = caller_env()) {
  ok <- (inherits(zeros, "formula") && length(zeros) == 2L) ||
    (is.data.frame(zeros) && nrow(zeros) > 0L && checkmate::test_names(names(zeros), "unique"))
  if (!ok) {
    stop_argument("zeros", "NULL, a formula without a left-hand side or a data frame of impossible combinations, a row each", describe(zeros), "zeros", call)
  }
}

#' @export
format.model_table <- function(x, ...) {
  c("<model> table, saturated",
    paste0("  variables  ", if (is.null(x$variables)) "the release's" else shorten_list(x$variables)),
    paste0("  prob       ", format(x$prior)),
    if (!is.null(x$zeros)) paste0("  zeros      ", if (is.data.frame(x$zeros)) paste(nrow(x$zeros), "combinations") else shorten_text(formula_text(x$zeros))))
}

#' @export
variable_kinds.model_table <- function(x) "code"

# more cells are refused before anything is made of them
most_table_cells <- 1e5

#' @export
bind_columns.model_table <- function(model, columns, levels, formula, call) {
  variables <- model$variables %||% columns$variable
  check_all_described(variables, columns, NULL, call)
  columns <- columns[match(variables, columns$variable), ]
  levels <- coded_levels(columns, levels, call)
  check_table_size(prod(lengths(levels)), call)
  codes <- all_codes(lengths(levels))
  if (!is.null(model$zeros)) codes <- codes[!impossible(model$zeros, codes, levels, call), , drop = FALSE]
  cells <- cell_names(codes, levels)
  weights <- list(matrix(expand_prior(model$prior$alpha, nrow(codes), "alpha", call, cells), 1L))
  parts <- list(list(children = seq_along(levels), parents = NULL, codes = if (length(levels) > 1L) codes, host = 0))
  bound <- bind_parts(model, columns, levels, parts, weights, list(NULL), parameters = paste0("prob[", cells, "]"), class = "bound_table")
  bound$possible <- codes
  bound
}

check_table_size <- function(size, call) {
  if (size <= most_table_cells) return(invisible())
  stop_classed("size", "The table must have at most {format_size(most_table_cells)} cells, but has {format(size, big.mark = ',')}.", call = call)
}

# Codes of all combinations of so many levels, from 0: a row each, the last variable fastest.
all_codes <- function(size) {
  grid <- do.call(expand.grid, c(lapply(rev(unname(size)), function(k) seq_len(k) - 1), KEEP.OUT.ATTRS = FALSE))
  codes <- as.matrix(grid)[, rev(seq_along(size)), drop = FALSE]
  dimnames(codes) <- list(NULL, names(size))
  codes
}

cell_names <- function(codes, levels) {
  parts <- lapply(names(levels), function(v) paste0(v, "=", levels[[v]])[codes[, v] + 1])
  do.call(paste, c(parts, sep = ":"))
}

# Which combinations of codes cannot be.
impossible <- function(zeros, codes, levels, call) {
  labels <- as.data.frame(lapply(stats::setNames(nm = names(levels)), function(v) levels[[v]][codes[, v] + 1]), optional = TRUE)
  out <- if (is.data.frame(zeros)) listed_zeros(zeros, labels, levels, call) else told_zeros(zeros, labels, call)
  if (sum(!out) < 2L) {
    stop_classed("zeros", "{.arg zeros} must leave two cells or more, but leaves {sum(!out)} of {length(out)}.", call = call)
  }
  out
}

listed_zeros <- function(zeros, labels, levels, call) {
  strange <- setdiff(names(zeros), names(levels))
  if (length(strange)) {
    stop_classed("zeros", c("The columns of {.arg zeros} must be variables of the table, but {.var {strange}} {?is/are} not.",
                            i = "The table has {.var {names(levels)}}."), call = call)
  }
  for (v in names(zeros)) {
    unknown <- setdiff(as.character(zeros[[v]]), levels[[v]])
    if (length(unknown)) {
      stop_classed("zeros", "{.code zeros${v}} must hold levels of {.var {v}} ({.val {levels[[v]]}}), but has {.val {unknown}}.", call = call)
    }
  }
  key <- function(data) do.call(paste, c(unname(lapply(data[names(zeros)], as.character)), sep = "\r"))
  key(labels) %in% key(zeros)
}

told_zeros <- function(zeros, labels, call) {
  shown <- shorten_text(formula_text(zeros))
  strange <- setdiff(all.vars(zeros), names(labels))
  strange <- strange[!vapply(strange, exists, TRUE, envir = environment(zeros))]
  if (length(strange)) {
    stop_classed("zeros", c("{.arg zeros} must be about variables of the table, but {.var {strange}} {?is/are} not among them.",
                            i = "The table has {.var {names(labels)}}."), call = call)
  }
  out <- eval(zeros[[2L]], labels, environment(zeros))
  if (!is.logical(out) || length(out) != nrow(labels) || anyNA(out)) {
    stop_argument("zeros", "a formula that is TRUE or FALSE for each combination of levels", paste(shown, "which gives", describe(out)), "zeros", call)
  }
  out
}

#' @export
describe_model.bound_table <- function(bound) {
  size <- lengths(bound$levels)
  left_out <- prod(size) - nrow(bound$possible)
  sprintf("table of %s, saturated, %d cells%s", shorten_list(names(size), 6L), nrow(bound$possible),
          if (left_out > 0) sprintf(" (%d impossible)", left_out) else "")
}
