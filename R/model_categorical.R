#' Categorical model for a factor
#'
#' The parameters are the probabilities of the factor's levels.
#'
#' @param variable The variable's name; `NULL` means the release's only variable.
#' @param prior Prior for the probabilities: [prior_dirichlet()], with one weight or one for each level.
#'
#' @return A model: an object of class `model_categorical`. Its parameters are
#'   `prob[level]`, one for each level.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @seealso [model_bernoulli()], [model_naive_bayes()], [stat_counts()].
#' @family models
#' @examples
#' st <- stat_counts(~ race, levels = list(race = c("1", "2", "3")))
#' rel <- as_release(c(99.2, 27.8, 61.4), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_categorical(), chains = 2, iter = 400, seed = 1)
#' @export
model_categorical <- function(variable = NULL, prior = prior_dirichlet()) {
  check_variable(variable, "variable", null = TRUE)
  check_class(prior, "prior", "prior_dirichlet", "prior_dirichlet()", "prior")
  new_model("categorical", variable = variable, prior = prior, class = "model_categorical")
}

#' @export
format.model_categorical <- function(x, ...) {
  c("<model> categorical",
    paste0("  variable  ", x$variable %||% "the release's"),
    paste0("  prob      ", format(x$prior)))
}

#' @export
variable_kinds.model_categorical <- function(x) "code"

#' @export
bind_columns.model_categorical <- function(model, columns, levels, formula, call) {
  columns <- bind_only_column(model$variable, columns, levels, call)
  levels <- coded_levels(columns, levels, call)
  count <- length(levels[[1L]])
  weights <- list(matrix(expand_weights(model$prior, count, call = call), 1L))
  bind_categorical(model, columns, levels, weights, list(NULL), parameters = paste0("prob[", levels[[1L]], "]"))
}

#' @export
describe_model.bound_categorical <- function(bound) {
  sprintf("categorical %s, %d levels", bound$columns$name, length(bound$levels[[1L]]))
}

# ---- what the models of categorical variables share --------------------------

# For each variable, class first, `weights` of the Dirichlet priors or what is
# `known`, a rows x levels matrix each, the other NULL. `last_alone`: a draw reports the
# second of two levels, not both.
bind_categorical <- function(model, columns, levels, weights, known, parameters, class = NULL, last_alone = FALSE) {
  parts <- lapply(seq_along(levels), function(v) list(children = v, parents = if (v > 1L) 1L))
  bind_parts(model, columns, levels, parts, weights, known, parameters, c(class, "bound_categorical"), last_alone)
}

# The same for `parts`, a list with, for each, its `children` and its `parents` among the variables and, of several
# children, the `codes` of its levels, from 0, a row each.
bind_parts <- function(model, columns, levels, parts, weights, known, parameters, class, last_alone = FALSE) {
  row_by_row <- function(f) unlist(Map(function(w, k) as.vector(t(f(w, k))), weights, known), use.names = FALSE)
  alpha <- row_by_row(function(w, k) w %||% (0 * k + 1))
  probability <- row_by_row(function(w, k) k %||% (w * NA))
  rownames(columns) <- NULL
  bound <- list(model = model, columns = columns, levels = levels, parameters = parameters, parts = parts,
                probability = probability)
  probability[is.na(probability)] <- 1
  children <- lapply(parts, `[[`, "children")
  parents <- lapply(parts, `[[`, "parents")
  of_levels <- vapply(Map(function(w, k) ncol(w %||% k), weights, known), as.double, 0)
  bound$spec <- list(name = "categorical", fields = list(
    columns = as.double(lengths(levels)), levels = of_levels, known = as.double(!vapply(known, is.null, TRUE)),
    children = as.double(lengths(children)), parents = as.double(lengths(parents)), child = as.double(unlist(children)) - 1,
    parent = as.double(unlist(parents)) - 1, code = as.double(unlist(lapply(parts, function(p) if (!is.null(p$codes)) t(p$codes)))),
    alpha = alpha, probability = probability, reports_last = as.double(last_alone)))
  structure(bound, class = c(class, "noiseaware_bound"))
}
