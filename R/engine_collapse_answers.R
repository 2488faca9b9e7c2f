# Method "collapse", records answered by randomised response: see src/table/randomised_answers.c. Records with the same
# answers are counted together.

# Are there answers among the parts of a release?
has_answers <- function(release) any(vapply(release_parts(release), function(p) p$mechanism$kernel == "match", TRUE))

# Models whose answers method "collapse" supports, if all their variables are factors.
takes_answers <- function(model) inherits(model, c("model_glm", "model_logistic", "model_categorical", "model_bernoulli", "model_table"))

# Combinations of levels
most_answer_cells <- 1e5

# The answers to each factor of the table: a list of `codes`, a column each, and `channels`; or a refusal.
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
  channels <- do.call(c, lapply(parts, function(p) channels_of(p$mechanism, p$statistic)))
  variables <- names(table$levels)
  at <- match(variables, colnames(codes))
  twice <- unique(colnames(codes)[duplicated(colnames(codes))])
  fault <- if (length(twice)) "{.var {twice}} {?is/are} answered twice." else if (anyNA(at)) "{.var {variables[is.na(at)]}} {?is/are} not answered."
  if (!is.null(fault)) {
    stop_classed("method", c("Method {.val collapse} needs one answer for each record and variable.", x = fault,
                             i = "Method {.val augment} does not."), call = call)
  }
  list(codes = codes[, at, drop = FALSE], channels = channels[at])
}

check_answered_model <- function(table, call) {
  one_row <- inherits(table, c("bound_table", "bound_categorical")) && all(is.na(table$probability))
  if (!(moves_theta(table) || one_row) || length(table$parts) != 1L) {
    stop_classed("method", c(paste("Method {.val collapse} supports answers by randomised response for one categorical variable, for saturated tables,",
                                   "for tables with normal priors, and for regressions on factors."),
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
  place <- function(codes, size) drop(codes %*% rev(cumprod(c(1, rev(size)[-length(size)]))))
  own <- part_codes(table$parts[[1L]], levels)
  tracked <- if (nrow(own) <= most_tracked) nrow(own) else 0
  channel <- channel_fields(answers$channels)
  c(noise_fields(), list(
    method = "collapse", exact = TRUE, model = table$model_spec %||% table$spec, family = "answers", n = as.double(release$n), prior_n = NULL,
    size_prior = size_prior_spec(NULL), where = integer(), summed = integer(), times = double(), tracked = as.double(tracked),
    fields = c(channel, list(place = as.double(place(own, levels)), tracked = as.double(tracked > 0),
                             counts = as.double(tabulate(place(answers$codes, channel$answers) + 1, prod(channel$answers)))))))
}

#' @export
engine_lines.engine_collapse_answers <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_answers <- function(engine, fit, told) hamiltonian_row(told)

#' @export
engine_moves.engine_collapse_answers <- function(engine, fit, rows) paste("answers   counted;", hamiltonian_words(rows$steps, rows$mean))
