#' Contingency tables of factors
#'
#' Models for the combinations of levels of several factors: a saturated table, where each combination has its own probability; a graphical model, where factors
#' are conditionally independent; or any other log-linear model.
#'
#' @param formula The model. One term with all variables, `~ a:b:c` or `~ a * b * c`, is a saturated table: each combination of levels has its own probability.
#'   Several terms, as in `~ a:b + b:c`, are the cliques of a decomposable graph: here `a` and `c` are independent given `b`. `~ a + b` makes two factors
#'   independent. `NULL` means a saturated table of all variables of the release. With `prior_normal()` any terms are allowed, such as `~ a:b + b:c + a:c`,
#'   which omits the three-way interaction.
#' @param prior Prior for the probabilities: [prior_dirichlet()]. A saturated table takes one weight, or one for each possible cell, named by the cells or in
#'   their order. Several cliques take one weight, see below. Or [prior_normal()] for the coefficients of a log-linear model: one mean and sd for all of them,
#'   or values named by coefficients; by default 0 and 2.
#' @param zeros Impossible combinations of levels, in a saturated or a log-linear table. It is a formula such as `~ sex == "male" & pregnant == "yes"` that is
#'   true for impossible combinations, or a data frame with columns for some of the variables and a row for each impossible combination.
#'
#' @details
#' The release may contain any sums of the table's cells: margins of any variables ([stat_counts()]), overlapping or not, some of their cells, linear queries
#' ([stat_linear()], [stat_cumulative()]), or several of these with one mechanism each. Method `"collapse"` moves the table of counts itself, with the
#' probabilities integrated out, at a cost that does not depend on the number of records. It is exact, whatever the noise. For a saturated table with counts of
#' single cells, it draws all counts at once, independently of earlier draws, unless there are very many cells or the noise is very large. With several cliques
#' it moves the cliques' tables, kept consistent with one another, so it can handle many variables. If a released margin combines variables that no clique
#' contains together, it moves the records' codes instead, at a cost proportional to the number of records, which may be up to 5 million.
#'
#' The number of records need not be known (`n = NULL` in [as_release()]): see [prior_n]. The sampler then also adds records to the table and removes records
#' from it.
#'
#' Bins of a [stat_histogram()] are levels as well. [quantile()][table_measures] then gives quantiles of the number, and [table_measures()] its mean.
#'
#' [denoise()] with a formula returns the counts of the confidential table in every draw: `denoise(fit, ~ a:b)`.
#'
#' **Weight of the prior.** The weights count like records, spread evenly over the cells. With weight 1 in each cell of a large table, they outweigh the
#' released records, however little noise there is. Most cells of real tables are nearly empty, and a factor that is nearly constant would seem far less so.
#' The default weights therefore have the sum 2, and are at most 1. The total probability of any half of the cells is then uniform a priori, as is the margin
#' of a factor with two levels. `bench/table_prior.R` compares weights on real data.
#'
#' **Prior for several cliques.** The hyper-Dirichlet distribution (Dawid & Lauritzen 1993): the probabilities of each clique have a Dirichlet distribution, and
#' two cliques agree on the distribution of the variables that they share. The weights of a clique's cells have the same sum for each clique and are spread
#' evenly over its cells; in the largest clique, each cell has the given weight.
#'
#' **Parameters of several cliques.** First come the cells of the first clique, then `prob[c=z|b=y]` for each further clique: the probabilities of its new
#' variables given those shared with earlier cliques.
#'
#' **Log-linear models.** With [prior_normal()] the logarithms of the probabilities are sums of coefficients (Bishop, Fienberg & Holland
#' 1975). Each term and all its lower-order terms have coefficients, in R's treatment contrasts, as in [stats::glm()] with the family `poisson()`. There is no
#' intercept, since probabilities sum to 1. The coefficients are the parameters, named as in `glm()`; [table_measures()] computes probabilities and other
#' quantities. The whole table of counts is stored, up to 10^6 cells, and any margins may be released. Method `"collapse"` moves the table given the
#' coefficients, and the coefficients by Hamiltonian Monte Carlo given the table. Tables with a few thousand cells take minutes.
#'
#' @return A model: an object of class `model_table`. Its parameters are the coefficients of a log-linear model. Otherwise they are `prob[a=x:b=y]`, one for each
#'   possible cell, with the last variable varying fastest; Details has the parameters of several cliques.
#' @section Errors: `noiseaware_error_formula` (also for a non-decomposable model with a Dirichlet prior), `noiseaware_error_prior`,
#'   `noiseaware_error_argument`, `noiseaware_error_variables`, `noiseaware_error_zeros`, `noiseaware_error_size` (more than 100,000 cells in all cliques, or in
#'   a log-linear model more than 10^6 cells or 5,000 coefficients).
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
#' @concept contingency table
#' @concept cross-tabulation
#' @export
model_table <- function(formula = NULL, prior = prior_dirichlet(), zeros = NULL) {
  check_given()
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
    stop_classed("zeros", "{.arg zeros} needs a saturated table, but {.arg formula} has {length(cliques)} cliques.")
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
    paste0("  prob       ", format_table_prior(x$prior, several)),
    if (!is.null(x$zeros)) paste0("  zeros      ", format_zeros(x$zeros)))
}

format_table_prior <- function(prior, several) {
  if (!several) return(format(prior))
  paste("hyper-Dirichlet,", if (is.null(prior$alpha)) "weights of each clique that sum to 2" else
    sprintf("weight %s of a cell of the largest clique", format_number(prior$alpha)))
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
                              i = "Add the term {.code {clique_names(strange[1L])}}, or use {.code prior = prior_normal()}, which accepts any formula."), call = call)
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
                                i = "Add a term {.code {pair[1]}:{pair[2]}:{vertex}} to close it, or use {.code prior = prior_normal()} for any formula."), call = call)
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
    stop_argument("zeros", "NULL, a formula without a left-hand side, or a data frame of impossible combinations, one per row", describe(zeros), "zeros", call)
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
    alpha <- expand_weights(prior, shape[[1L]][2L], call = call, coordinates = part_names(parts[[1L]], levels))
    return(list(matrix(alpha, 1L)))
  }
  all <- sum(expand_weights(prior, max(vapply(shape, prod, 0)), call = call))
  lapply(shape, function(s) matrix(all / prod(s), s[1L], s[2L]))
}

part_names <- function(part, levels) {
  codes <- part_codes(part, lengths(levels))
  children <- cell_names(codes, levels[part$children])
  if (length(part$parents) == 0L) children else paste0(children, "|", cell_names(codes, levels[part$parents]))
}

# Codes of a part's cells, row by row: codes of its parents, the last the fastest, then of its children.
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
counted_size.bound_table <- function(bound) bound$sizes$complete

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
