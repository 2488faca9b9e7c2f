#' Naive Bayes: a class with conditionally independent features
#'
#' The log-linear model of Ju et al. (2022, section 4): p(y, x1, ..., xK) =
#' p(y) p(x1 | y) ... p(xK | y), where all variables are factors.
#'
#' @param class The name of the class variable.
#' @param features Names of the features; `NULL` means every other variable of the release.
#' @param prior Prior for the probabilities of the classes: [prior_dirichlet()], with one weight or one for each class; or `fixed(probabilities)`.
#' @param conditional Prior for the probabilities of each feature's levels given the class: [prior_dirichlet()] for all of them; or a named list with an entry
#'   for each feature. An entry is a `prior_dirichlet()`, with one weight or one for each level, for all classes; a named list of these, one for each class; or
#'   `fixed(matrix)` with a row for each class.
#'
#' @details
#' With a release of the margins y:x1, ..., y:xK
#' (`stat_counts(~ y:x1 + y:x2, levels)`) this is the problem of the paper; other statistics of the same variables are also supported.
#'
#' @return A model: an object of class `model_naive_bayes`. Its parameters are
#'   `prob[y=a]` for each class and `prob[x1=no|y=a]` for each level of each feature,
#'   class by class.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data, section 4 and supplement S-4.
#' \doi{10.48550/arXiv.2206.00710}
#' @family models
#' @examples
#' st <- stat_counts(~ low:smoke + low:race, levels = list(low = c("0", "1"),
#'   smoke = c("0", "1"), race = c("1", "2", "3")))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' model <- model_naive_bayes("low", prior = prior_dirichlet(2), conditional = prior_dirichlet(2))
#' fit <- sample_posterior(rel, model, chains = 2, iter = 400, seed = 1)
#' draws <- posterior::subset_draws(posterior::as_draws(fit), "prob\\[low", regex = TRUE)
#' posterior::summarise_draws(draws)
#' @export
model_naive_bayes <- function(class, features = NULL, prior = prior_dirichlet(), conditional = prior_dirichlet()) {
  check_given()
  check_variable(class, "class")
  if (!is.null(features)) check_features(features, class)
  check_class(prior, "prior", c("prior_dirichlet", "fixed"), "prior_dirichlet() or fixed()", "prior")
  if (!inherits(conditional, "prior_dirichlet")) check_conditional(conditional)
  if (inherits(prior, "fixed") && !inherits(conditional, "prior_dirichlet") && all(vapply(conditional, inherits, TRUE, "fixed"))) {
    stop_classed("prior", "Either {.arg prior} or an entry of {.arg conditional} must be a {.fn prior_dirichlet}: otherwise nothing is unknown.")
  }
  new_model("naive_bayes", class_variable = class, features = features, prior = prior, conditional = conditional, class = "model_naive_bayes")
}

check_features <- function(features, class, call = caller_env()) {
  ok <- is.character(features) && length(features) > 0L && !anyNA(features) && all(features != "") && !anyDuplicated(features)
  if (!ok) stop_argument("features", "NULL or the names of different variables", describe(features), call = call)
  if (class %in% features) stop_classed("argument", "{.arg class} must not be one of the {.arg features}, but {.var {class}} is.", call = call)
}

check_conditional <- function(conditional, call = caller_env()) {
  must <- "prior_dirichlet(), or a named list of prior_dirichlet(), fixed() or lists of prior_dirichlet()"
  named <- function(x) is.list(x) && !is.object(x) && length(x) > 0L && checkmate::test_names(names(x), "unique")
  entry <- function(x) {
    inherits(x, c("prior_dirichlet", "fixed")) || (named(x) && all(vapply(x, inherits, TRUE, "prior_dirichlet")))
  }
  if (!named(conditional) || !all(vapply(conditional, entry, TRUE))) {
    stop_argument("conditional", must, describe(conditional), "prior", call)
  }
}

#' @export
format.model_naive_bayes <- function(x, ...) {
  conditional <- if (inherits(x$conditional, "prior_dirichlet")) format(x$conditional) else
    vapply(names(x$conditional), function(v) {
      entry <- x$conditional[[v]]
      paste0(v, " ", if (inherits(entry, "noiseaware_prior")) format(entry) else "by class")
    }, "")
  c("<model> naive Bayes",
    paste0("  class        ", x$class_variable, ", ", format(x$prior)),
    paste0("  features     ", if (is.null(x$features)) "the release's other variables" else shorten_list(x$features)),
    paste0("  conditional  ", shorten_list(conditional)))
}

#' @export
variable_kinds.model_naive_bayes <- function(x) "code"

#' @export
bind_columns.model_naive_bayes <- function(model, columns, levels, formula, call) {
  class <- model$class_variable
  variables <- c(class, model$features %||% setdiff(columns$variable, class))
  check_all_described(variables, columns, NULL, call)
  if (length(variables) < 2L) {
    stop_classed("variables", c("The release must have a feature in addition to the class {.var {class}}.", i = "Use {.fn model_categorical}."),
                 call = call)
  }
  columns <- columns[order(match(columns$variable, variables)), ]
  levels <- coded_levels(columns, levels, call)
  conditional <- split_conditional(model$conditional, variables[-1L], levels, call)
  priors <- c(list(list(prior = model$prior, name = "prior")), conditional)
  rows <- Map(function(p, l) prior_rows(p$prior, if (p$name == "prior") NULL else levels[[1L]], l, p$name, call), priors, levels[variables])
  weights <- lapply(rows, `[[`, "weights")
  known <- lapply(rows, `[[`, "known")
  names <- naive_bayes_names(levels)
  unknown <- rep(vapply(known, is.null, TRUE), lengths(names))
  bind_categorical(model, columns, levels, weights, known, parameters = unlist(names)[unknown], class = "bound_naive_bayes")
}

# what `conditional` says of each feature: prior, and its name in messages
split_conditional <- function(conditional, features, levels, call) {
  if (inherits(conditional, "prior_dirichlet")) {
    return(rep(list(list(prior = conditional, name = "conditional")), length(features)))
  }
  if (!setequal(names(conditional), features)) {
    strange <- union(setdiff(names(conditional), features), setdiff(features, names(conditional)))
    stop_classed("prior", "{.arg conditional} must have one entry for each feature; see {.var {strange}}.", call = call)
  }
  lapply(features, function(v) list(prior = conditional[[v]], name = paste0("conditional$", v)))
}

# Rows of weights or of known probabilities: one for each class, one alone for
# the class itself (`classes` NULL).
prior_rows <- function(prior, classes, levels, name, call) {
  count <- max(length(classes), 1L)
  size <- length(levels)
  if (inherits(prior, "fixed")) return(list(known = known_rows(prior$value, count, size, name, call)))
  if (inherits(prior, "prior_dirichlet")) prior <- rep(list(prior), count)
  else if (!setequal(names(prior), classes)) {
    stop_classed("prior", "{.arg {name}} must have one entry for each class ({.val {classes}}), but has {.val {names(prior)}}.", call = call)
  } else prior <- prior[classes]
  weights <- lapply(prior, function(p) expand_weights(p, size, paste0(name, "$alpha"), call))
  list(weights = do.call(rbind, unname(weights)))
}

# one row applies to every class
known_rows <- function(value, count, size, name, call) {
  must <- if (count == 1L) paste(size, "probabilities") else paste("a", count, "x", size, "matrix of probabilities, a row for each class")
  if (is.list(value)) stop_argument(name, must, "fixed to a list", "prior", call)
  if (!is.matrix(value)) value <- matrix(value, count, length(value), byrow = TRUE)
  if (!identical(dim(value), c(count, size))) {
    stop_argument(name, must, paste0("fixed to one of ", nrow(value), " x ", ncol(value)), "prior", call)
  }
  if (any(value < 0) || any(abs(rowSums(value) - 1) > 1e-6)) {
    stop_classed("prior", "{.arg {name}} must fix probabilities that sum to 1 over the levels.", call = call)
  }
  unname(value / rowSums(value))
}

# names of all probabilities, a vector for each variable
naive_bayes_names <- function(levels) {
  class <- paste0(names(levels)[1L], "=", levels[[1L]])
  features <- lapply(names(levels)[-1L], function(v) {
    paste0("prob[", rep(paste0(v, "=", levels[[v]]), length(class)), "|", rep(class, each = length(levels[[v]])), "]")
  })
  c(list(paste0("prob[", class, "]")), features)
}

#' @export
describe_model.bound_naive_bayes <- function(bound) {
  variables <- bound$columns$name
  sprintf("naive Bayes, %s given %s", shorten_list(variables[-1L], 6L), variables[1L])
}
