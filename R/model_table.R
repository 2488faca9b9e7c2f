#' A table of factors
#'
#' Combinations of the levels of several factors: any combination with a probability of its own, or a graphical model, in which
#' factors are independent given others, or any other log-linear model.
#'
#' @param formula The model. One term with all variables, `~ a:b:c` or `~ a * b * c`, is a saturated table: any combination
#'   of levels has a probability of its own. Several terms, as in `~ a:b + b:c`, are the cliques of a decomposable
#'   graph: here `a` and `c` are independent given `b`. `~ a + b` makes two factors independent. `NULL` takes all variables of the
#'   release, saturated. With `prior_normal()` any terms will do, such as `~ a:b + b:c + a:c`, which leaves out the interaction of three.
#' @param prior Of the probabilities: [prior_dirichlet()]. Of a saturated table one weight, or one for each possible
#'   cell, named after the cells or in their order. Of several cliques one weight: see below. Or [prior_normal()], of the
#'   coefficients of a log-linear model: one mean and sd for all of them, or named after some; by default 0 and 2.
#' @param zeros Combinations of levels that cannot be, of a saturated or a log-linear table. It is a formula such as `~ sex == "male" & pregnant == "yes"`, true where
#'   they are, or a data frame with a column for each of some variables and a row for each impossible combination.
#'
#' @details
#' The release may hold whatever sums of the table's cells: margins of any variables ([stat_counts()]), overlapping
#' or not, some of their cells, linear queries ([stat_linear()], [stat_cumulative()]), or several of these with a
#' mechanism each. Method `"collapse"` moves the table of counts itself, at a cost that does not depend on
#' the number of records, with the probabilities integrated out. It is exact, whatever the noise. Of a saturated table with the counts of single cells
#' it draws all counts at once, independently of earlier draws, unless they are very many or the noise very wide. With several cliques it moves their
#' tables, which agree with one another, so that many variables are no trouble. Where a released margin has variables that no clique has together, it
#' moves the records' codes instead, at a cost in proportion to their number, of which there may be 5 million.
#'
#' The number of records need not be known (`n = NULL` in [as_release()]): see [prior_n]. The table then also
#' gains and loses records.
#'
#' The counts of the confidential table, in every draw, are what [denoise()] gives with a formula:
#' `denoise(fit, ~ a:b)`.
#'
#' **Prior of several cliques.** The hyper-Dirichlet distribution (Dawid & Lauritzen 1993): the probabilities of each clique have a
#' Dirichlet distribution, and any two cliques the same for what they share. The weights of all
#' cells of a clique have the same sum in each, spread evenly; in the largest clique a cell has the weight that was given.
#'
#' **Log-linear models.** With [prior_normal()] the logarithms of the probabilities are sums of coefficients (Bishop, Fienberg & Holland
#' 1975). There are coefficients of each term and of all terms inside it, in R's treatment contrasts, as [stats::glm()] with the family `poisson()` has them.
#' There is no intercept, since probabilities sum to 1. The coefficients are the parameters, named as by `glm()`; probabilities
#' and all else come from [table_measures()]. The whole table of counts is kept, up to 10^6 cells, and any margins may be released; method
#' `"collapse"` moves it given the coefficients, and these by Hamiltonian Monte Carlo given the table. Tables of some
#' thousand cells take minutes.
#'
#' @return A model: an object of class `model_table`. Its parameters are the coefficients of a log-linear model. Otherwise they are
#'   `prob[a=x:b=y]`, one for each cell that is possible,
#'   the last variable fastest. With several cliques they are the cells of the first, then `prob[c=z|b=y]`, of each further clique what is new
#'   in it given what it shares with those before.
#' @section Errors: `noiseaware_error_formula` (also for a model that is not decomposable, with a Dirichlet prior), `noiseaware_error_prior`,
#'   `noiseaware_error_argument`, `noiseaware_error_variables`, `noiseaware_error_zeros`, `noiseaware_error_size` (more than 100,000 cells in all
#'   cliques, or in a log-linear model more than 10^6 cells or 5,000 coefficients).
#' @references
#' Bishop, Y. M. M., Fienberg, S. E. and Holland, P. W. (1975). *Discrete Multivariate Analysis: Theory and Practice*. MIT Press.
#'
#' Dawid, A. P. and Lauritzen, S. L. (1993). Hyper Markov laws in the statistical analysis of decomposable graphical models. *The
#' Annals of Statistics* 21, 1272-1317. \doi{10.1214/aos/1176349260}
#' @seealso [model_categorical()] for one variable, [model_naive_bayes()], [stat_counts()].
#' @family models
#' @examples
#' admitted <- as.data.frame(UCBAdmissions)
#' admitted <- admitted[rep(seq_len(24), admitted$Freq), 1:3]
#' st <- stat_counts(~ Admit:Dept + Gender:Dept, levels = lapply(admitted, levels))
#' set.seed(1)
#' rel <- release(admitted, st, mech_gaussian(mu = 1))
#' # admission depends on the department alone
#' fit <- sample_posterior(rel, model_table(~ Admit:Dept + Gender:Dept),
#'                         chains = 2, iter = 400, seed = 1)
#' posterior::summarise_draws(denoise(fit, ~ Admit:Dept), "mean", "sd")
#'
#' # the same odds ratio of admission and gender in every department
#' model_table(~ Admit:Gender + Admit:Dept + Gender:Dept, prior_normal())
#' @export
model_table <- function(formula = NULL, prior = prior_dirichlet(1), zeros = NULL) {
  check_class(prior, "prior", c("prior_dirichlet", "prior_normal"), "prior_dirichlet() or prior_normal()", "prior")
  if (!is.null(zeros)) check_zeros(zeros)
  if (inherits(prior, "prior_normal")) {
    return(new_model("table", cliques = if (!is.null(formula)) formula_generators(formula), prior = prior, zeros = zeros, class = "model_table"))
  }
  cliques <- if (!is.null(formula)) formula_cliques(formula)
  if (length(cliques) > 1L && length(prior$alpha) > 1L) {
    stop_classed("prior", "{.arg prior} must have one weight for a table of several cliques, but has {length(prior$alpha)}.")
  }
  if (length(cliques) > 1L && !is.null(zeros)) {
    stop_classed("zeros", "{.arg zeros} must be of a saturated table, but {.arg formula} has {length(cliques)} cliques.")
  }
  new_model("table", cliques = cliques, prior = prior, zeros = zeros, class = "model_table")
}

#' @export
format.model_table <- function(x, ...) {
  if (is_loglinear(x)) return(format_loglinear(x))
  several <- length(x$cliques) > 1L
  c(paste("<model> table,", if (several) "decomposable" else "saturated"),
    if (several) paste0("  cliques    ", shorten_list(clique_names(x$cliques))) else
      paste0("  variables  ", if (is.null(x$cliques)) "the release's" else shorten_list(x$cliques[[1L]])),
    paste0("  prob       ", if (several) sprintf("hyper-Dirichlet, weight %s of a cell of the largest clique", format_number(x$prior$alpha)) else format(x$prior)),
    if (!is.null(x$zeros)) paste0("  zeros      ", format_zeros(x$zeros)))
}

# ---- the graph ---------------------------------------------------------------------------

# The terms that are not part of others, as variables.
formula_generators <- function(formula, call = caller_env()) {
  formula <- functions_as_names(formula, call)
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "NULL or a formula without a left-hand side, such as ~ a:b:c", describe(formula), "formula", call)
  }
  operands <- function(side) if (is_operation(side, "(", 1L) || is_operation(side, ":", 2L) || is_operation(side, "*", 2L)) as.list(side)[-1L]
  terms <- lapply(formula_leaves(formula[[2L]], chain_operands("+"), call), function(term) {
    names <- formula_leaves(term, operands, call)
    for (name in names) if (!is.name(name) || identical(name, quote(.))) refuse_table_term(name, call)
    unique(vapply(names, as.character, ""))
  })
  largest_sets(terms)
}

# The same of a decomposable graph, its cliques, in an order in which each shares with those before it what one of them has.
formula_cliques <- function(formula, call = caller_env()) {
  generators <- formula_generators(formula, call)
  cliques <- ordered_cliques(generators, call)
  strange <- Filter(function(c) !any(vapply(generators, setequal, TRUE, c)), cliques)
  if (length(strange)) {
    stop_classed("formula", c("{.arg formula} must be the cliques of a graph, but has all pairs of {.var {strange[[1L]]}} without their common term.",
                              i = "Add the term {.code {clique_names(strange[1L])}}; or say {.code prior = prior_normal()}, which takes any formula."), call = call)
  }
  cliques
}

refuse_table_term <- function(side, call) {
  shown <- shorten_text(formula_text(side))
  stop_classed("formula", "{.arg formula} must be names of factors joined by {.code :}, {.code *} and {.code +}, but {.code {shown}} is not a name.",
               call = call)
}

# those that are not inside another
largest_sets <- function(sets) {
  sets <- sets[!duplicated(lapply(sets, sort))]
  inside <- vapply(seq_along(sets), function(k) any(vapply(sets[-k], function(other) all(sets[[k]] %in% other), TRUE)), TRUE)
  sets[!inside]
}

# Maximum cardinality search (Tarjan & Yannakakis 1984): the next vertex is one with the most neighbours among those before,
# which must be neighbours of each other.
ordered_cliques <- function(generators, call) {
  variables <- unique(unlist(generators))
  adjacent <- matrix(FALSE, length(variables), length(variables), dimnames = list(variables, variables))
  for (g in generators) adjacent[g, g] <- TRUE
  diag(adjacent) <- FALSE
  before <- character()
  sets <- list()
  while (length(before) < length(variables)) {
    left <- setdiff(variables, before)
    vertex <- left[which.max(rowSums(adjacent[left, before, drop = FALSE]))]
    joined <- before[adjacent[vertex, before]]
    apart <- which(!adjacent[joined, joined, drop = FALSE] & upper.tri(diag(length(joined))), arr.ind = TRUE)
    if (length(apart)) {
      pair <- joined[apart[1L, ]]
      stop_classed("formula", c("{.arg formula} must be a decomposable graph, but has a cycle of four or more variables without a chord, through {.var {vertex}}.",
                                i = "A term {.code {pair[1]}:{pair[2]}:{vertex}} would close it; and {.code prior = prior_normal()} takes any formula."), call = call)
    }
    sets <- c(sets, list(c(joined, vertex)))
    before <- c(before, vertex)
  }
  largest_sets(sets)
}

check_zeros <- function(zeros, call = caller_env()) {
  ok <- (inherits(zeros, "formula") && length(zeros) == 2L) ||
    (is.data.frame(zeros) && nrow(zeros) > 0L && checkmate::test_names(names(zeros), "unique"))
  if (!ok) {
    stop_argument("zeros", "NULL, a formula without a left-hand side or a data frame of impossible combinations, a row each", describe(zeros), "zeros", call)
  }
}

#' @export
variable_kinds.model_table <- function(x) "code"

# more cells are refused before anything is made of them
most_table_cells <- 1e5

#' @export
bind_columns.model_table <- function(model, columns, levels, formula, call) {
  if (is_loglinear(model)) return(bind_loglinear(model, columns, levels, call))
  cliques <- model$cliques %||% list(columns$variable)
  columns <- table_columns(cliques, columns, call)
  levels <- coded_levels(columns, levels, call)
  size <- lengths(levels)
  check_table_size(cliques, size, call)
  parts <- clique_parts(cliques, size)
  if (!is.null(model$zeros)) {
    codes <- parts[[1L]]$codes %||% all_codes(size)
    parts[[1L]]$codes <- codes[!impossible(model$zeros, codes, levels, call), , drop = FALSE]
  }
  weights <- table_weights(model$prior, parts, levels, call)
  names <- unlist(lapply(parts, part_names, levels))
  bind_parts(model, columns, levels, parts, weights, vector("list", length(parts)), parameters = paste0("prob[", names, "]"), class = "bound_table")
}

check_table_size <- function(cliques, size, call) {
  cells <- vapply(cliques, function(clique) prod(size[clique]), 0)
  if (sum(cells) <= most_table_cells) return(invisible())
  wide <- cliques[[which.max(cells)]]
  shown <- format(c(most_table_cells, sum(cells)), big.mark = ",", decimal.mark = ".", trim = TRUE, digits = 7)
  stop_classed("size", c(if (length(cliques) == 1L) "The table must have at most {shown[1]} cells, but has {shown[2]}." else
                           "The cliques must have at most {shown[1]} cells together, but have {shown[2]}.",
                         x = if (length(cliques) > 1L) "The widest clique has {length(wide)} variables: {.code {clique_names(list(wide))}}.",
                         i = if (length(cliques) == 1L) "A {.arg formula} of several terms, as in {.code ~ a:b + b:c}, has a table for each of them."), call = call)
}

# Of each clique its new variables, and those that one before it has, its `host`.
clique_parts <- function(cliques, size) {
  variables <- names(size)
  seen <- character()
  lapply(seq_along(cliques), function(k) {
    clique <- variables[sort(match(cliques[[k]], variables))]
    parents <- intersect(clique, seen)
    children <- setdiff(clique, seen)
    earlier <- cliques[seq_len(k - 1L)]
    host <- if (length(parents)) which(vapply(earlier, function(c) all(parents %in% c), TRUE))[1L] else 0
    seen <<- c(seen, children)
    list(children = match(children, variables), parents = match(parents, variables), host = as.double(host),
         codes = if (length(children) > 1L) all_codes(size[children]))
  })
}

# rows x levels of the Dirichlet weights of each part
table_weights <- function(prior, parts, levels, call) {
  size <- lengths(levels)
  shape <- lapply(parts, function(p) c(prod(size[p$parents]), if (is.null(p$codes)) size[[p$children]] else nrow(p$codes)))
  if (length(parts) == 1L) {
    alpha <- expand_prior(prior$alpha, shape[[1L]][2L], "alpha", call, part_names(parts[[1L]], levels))
    return(list(matrix(alpha, 1L)))
  }
  all <- prior$alpha * max(vapply(shape, prod, 0))
  lapply(shape, function(s) matrix(all / prod(s), s[1L], s[2L]))
}

part_names <- function(part, levels) {
  codes <- part_codes(part, lengths(levels))
  children <- cell_names(codes, levels[part$children])
  if (length(part$parents) == 0L) children else paste0(children, "|", cell_names(codes, levels[part$parents]))
}

# Codes of a part's cells, row by row: those of its parents, the last the fastest, then of its children.
part_codes <- function(part, size) {
  children <- part$codes %||% all_codes(size[part$children])
  if (length(part$parents) == 0L) return(children)
  rows <- all_codes(size[part$parents])
  cbind(rows[rep(seq_len(nrow(rows)), each = nrow(children)), , drop = FALSE], children[rep(seq_len(nrow(children)), nrow(rows)), , drop = FALSE])
}

cell_names <- function(codes, levels) {
  parts <- lapply(names(levels), function(v) paste0(v, "=", levels[[v]])[codes[, v] + 1])
  do.call(paste, c(parts, sep = ":"))
}

#' @export
describe_model.bound_table <- function(bound) {
  size <- lengths(bound$levels)
  cells <- length(bound$parameters)
  if (length(bound$parts) > 1L) {
    return(sprintf("table of %d variables, %d cliques: %s", length(size), length(bound$parts), shorten_list(clique_names(bound$model$cliques), 6L)))
  }
  left_out <- prod(size) - cells
  sprintf("table of %s, saturated, %d cells%s", shorten_list(names(size), 6L), cells, if (left_out > 0) sprintf(" (%d impossible)", left_out) else "")
}

#' @export
describe_priors.bound_table <- function(bound) {
  prior <- bound$model$prior
  text <- if (length(bound$parts) > 1L) sprintf("hyper-Dirichlet(%s in the largest clique)", format_number(prior$alpha)) else format(prior)
  stats::setNames(rep(text, length(bound$parameters)), bound$parameters)
}
