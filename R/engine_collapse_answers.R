# Method "collapse", records answered by randomised response: see src/table/randomised_answers.c. Records with the same
# answers are counted together.

# Are there answers among the parts of a release?
has_answers <- function(release) any(vapply(release_parts(release), function(p) p$mechanism$kernel == "match", TRUE))

# Models that method "collapse" takes answers for, where all that they see are factors; model_table() with prior_normal(), too.
takes_answers <- function(model) UseMethod("takes_answers")

#' @export
takes_answers.default <- function(model) FALSE

#' @export
takes_answers.model_glm <- function(model) TRUE

#' @export
takes_answers.model_logistic <- takes_answers.model_glm

# Combinations of levels
most_answer_cells <- 1e5

# The answers to each factor of the table: a list of `codes`, a column each, and `log_odds`, of the true level against another;
# or a refusal.
table_answers <- function(release, bound, call) {
  table <- as_table(bound)
  check_answered_model(table, call)
  parts <- component_parts(release)
  other <- Filter(function(p) p$mechanism$kernel != "match", parts)
  if (length(other)) {
    stop_classed("method", c("Method {.val collapse} cannot combine answers by randomised response with other statistics.",
                             x = "The release also has {describe_statistic(other[[1L]]$statistic)}.", i = "Method {.val augment} can use both."), call = call)
  }
  n <- release$n
  codes <- do.call(cbind, lapply(parts, function(p) matrix(p$value, n, dimnames = list(NULL, p$statistic$columns$variable))))
  log_odds <- do.call(cbind, lapply(parts, function(p) matrix(1 / p$scale, n)))
  variables <- names(table$levels)
  at <- match(variables, colnames(codes))
  twice <- unique(colnames(codes)[duplicated(colnames(codes))])
  fault <- if (length(twice)) "{.var {twice}} {?is/are} answered twice." else if (anyNA(at)) "{.var {variables[is.na(at)]}} {?is/are} not answered." else
    if (any(log_odds != rep(log_odds[1L, ], each = n))) "Answers to one variable have different probabilities of the true level."
  if (!is.null(fault)) {
    stop_classed("method", c("Method {.val collapse} needs one answer for each record and variable, all with the same noise.", x = fault,
                             i = "Method {.val augment} does not."), call = call)
  }
  list(codes = codes[, at, drop = FALSE], log_odds = log_odds[1L, at])
}

check_answered_model <- function(table, call) {
  if (!moves_theta(table) || length(table$parts) != 1L) {
    stop_classed("method", c("Method {.val collapse} supports answers by randomised response for regressions on factors, and for tables with normal priors.",
                             i = "Method {.val augment} can use them under this model."), call = call)
  }
  cells <- prod(lengths(table$levels))
  if (cells <= most_answer_cells) return(invisible())
  stop_classed("method", c(paste("Method {.val collapse} supports answers to variables with at most {format_size(most_answer_cells)} combinations of levels,",
                                 "but there are {format_size(cells)}."),
                           i = "Method {.val augment} can use them."), call = call)
}

answers_problem <- function(release, bound, call) {
  answers <- table_answers(release, bound, call)
  table <- as_table(bound)
  levels <- lengths(table$levels)
  stride <- rev(cumprod(c(1, rev(levels)[-length(levels)])))
  place <- function(codes) drop(codes %*% stride)
  own <- table$parts[[1L]]$codes
  tracked <- if (nrow(own) <= most_tracked) nrow(own) else 0
  c(noise_fields(), list(
    method = "collapse", exact = TRUE, model = table$model_spec %||% table$spec, family = "answers", n = as.double(release$n), prior_n = NULL,
    size_prior = size_prior_spec(NULL), where = integer(), summed = integer(), times = double(), tracked = as.double(tracked),
    fields = list(levels = as.double(levels), log_odds = as.double(answers$log_odds), place = as.double(place(own)),
                  counts = as.double(tabulate(place(answers$codes) + 1, prod(levels))), tracked = as.double(tracked > 0))))
}

#' @export
engine_lines.engine_collapse_answers <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_answers <- function(engine, fit, told) hamiltonian_row(told)

#' @export
engine_moves.engine_collapse_answers <- function(engine, fit, rows) paste("answers   counted;", hamiltonian_words(rows$steps, rows$mean))
