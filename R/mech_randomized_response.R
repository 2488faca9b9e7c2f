#' Randomised response
#'
#' Local privacy for categories: the level of each record is published at random, with known probabilities. With a budget, the true level is published with
#' probability e^epsilon / (e^epsilon + k - 1), where k is the number of levels. Otherwise one of the others is published, each with the same probability (Warner
#' 1965; k-ary: Kairouz, Oh & Viswanath 2014). Or give any public matrix of probabilities. This is pure epsilon-differential privacy, and if every person randomises
#' their own answer, the guarantee also holds against those who collect the data.
#'
#' **Any matrix.** `matrix` has a row for each level and a column for each answer: the probabilities of the answers given the level, which sum to 1 in each row.
#' Use it if the truth has different probabilities for yes and no, or if an answer is not a level, such as "refused". Several questions may have a matrix each.
#' Probabilities may be 0, as for forced answers. Rows and columns are matched by their names. The epsilon of a matrix is the largest log ratio of the
#' probabilities of an answer at two levels; the epsilons of several questions add up. An infinite epsilon is an error in [release()], but not in
#' [as_release()]. If the matrix is singular, as it is if there are fewer answers than levels, the answers say nothing about some differences between levels,
#' and the prior decides there.
#'
#' **Answers in [as_release()]** are codes from 0 on: first the answers that are levels, in the order of the levels, then the other columns. For one question
#' they may also be strings or a factor, or the number of records with each answer, `c(no = 269, yes = 131)`. For several questions they may be a table of the
#' number of records with each combination, with dimensions named by the variables. The order of records does not matter, and `n` need not be given. Numbers of
#' records stay as they are in the release: 10^8 answers take no more memory or time than 10^4. Answers to several questions that were counted separately are
#' separate releases.
#'
#' **Other descriptions.** Suppose that an answer is true with probability t, and that otherwise one of the k levels is drawn at random, by a coin if there are
#' two. Then epsilon = log(1 + k t / (1 - t)), which is log(7) for t = 0.75 and two levels. If a level is kept with probability p,
#' epsilon = log((k - 1) p / (1 - p)).
#'
#' Use it with [stat_records()] of factors. Several factors in one statistic have equal shares of epsilon, or a matrix each; for other shares, use a list of
#' matrices, or separate statistics with one mechanism each. For sums of one bit per level, use [mech_unary_encoding()].
#'
#' **Exact at a cost independent of the number of records** if all variables are factors. This holds for [model_bernoulli()], [model_categorical()],
#' [model_table()] with one term or with [prior_normal()], and [model_glm()] with a response of two or more levels. Method `"collapse"` counts the records with the
#' same answers and sums over their true levels. For one question whose untrue answers all have the same probability, draws are independent
#' as long as there are not too many records: with 200 levels, up to a few million. Other models impute the records.
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget per record, a positive number; or give `matrix`.
#' @param matrix A matrix of probabilities, named by levels (rows) and answers (columns), or a list of them named by variables. A single matrix applies to every
#' variable.
#' @return A mechanism: an object of class `mech_randomized_response`.
#' @section Errors: `noiseaware_error_mechanism`, also from [release()] and [as_release()] with any other statistic, or levels that are not the matrix's rows.
#'   `noiseaware_error_value` from [as_release()] with values that are not answers, or counts of answers that do not add up to `n`.
#' @references
#' Warner, S. (1965). Randomized response: a survey technique for eliminating
#' evasive answer bias. \doi{10.1080/01621459.1965.10480775}
#'
#' Kairouz, P., Oh, S. and Viswanath, P. (2014). Extremal mechanisms for local
#' differential privacy. \doi{10.48550/arXiv.1407.1338}
#' @family mechanisms
#' @examples
#' st <- stat_records(~ smoke, levels = list(smoke = c("0", "1")))
#' rel <- release(MASS::birthwt, st, mech_randomized_response(epsilon = 1))
#' sample_posterior(rel, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#'
#' # a sensitive question: of those who would say yes, some say no, and some refuse
#' asked <- rbind(no = c(no = 0.9, yes = 0.05, refused = 0.05), yes = c(0.2, 0.6, 0.2))
#' coin <- mech_randomized_response(matrix = asked)
#' privacy(coin)
#' question <- stat_records(~ y, levels = list(y = c("no", "yes")))
#' said <- as_release(c(no = 269, yes = 131, refused = 40), question, coin)
#' sample_posterior(said, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' @export
mech_randomized_response <- function(..., epsilon = NULL, matrix = NULL) {
  check_all_named(...)
  given <- check_one_of(list(epsilon = epsilon, matrix = matrix))
  if (given == "epsilon") epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  if (given == "matrix") matrix <- if (is.list(matrix)) check_channels(matrix) else check_channel(matrix, "matrix")
  new_mechanism("randomized_response", "match", epsilon = epsilon, matrix = matrix, class = "mech_randomized_response")
}

# ---- channels: P(answer | level), a row a level -------------------------------------------

check_channels <- function(matrix, call = caller_env()) {
  if (is.object(matrix) || length(matrix) == 0L || !checkmate::test_names(names(matrix), "unique")) {
    stop_argument("matrix", "a matrix of probabilities, or a list of them named by variables", describe_shape(matrix), "mechanism", call)
  }
  Map(function(m, variable) check_channel(m, paste0("matrix$", variable), call), matrix, names(matrix))
}

check_channel <- function(matrix, name, call = caller_env()) {
  must <- "a matrix of probabilities with a row for each level and a column for each answer, two or more, and names for both"
  named <- function(x) checkmate::test_names(x, "unique")
  ok <- is.matrix(matrix) && is.numeric(matrix) && all(dim(matrix) > 1L) && named(rownames(matrix)) && named(colnames(matrix))
  if (!ok) stop_argument(name, must, paste0(describe_shape(matrix), if (is.matrix(matrix) && is.null(dimnames(matrix))) " without names"), "mechanism", call)
  bad <- !is.finite(matrix) | matrix < 0 | matrix > 1
  if (any(bad)) stop_argument(name, "probabilities from 0 to 1", describe_bad(matrix, bad), "mechanism", call)
  sums <- rowSums(matrix)
  off <- abs(sums - 1) > 1e-6
  if (any(off)) {
    stop_classed("mechanism", c("The rows of {.arg {name}} must sum to 1, over the answers that are given at a level.",
                                x = "{.val {rownames(matrix)[off][1]}} has the sum {format_number(sums[off][[1L]])}.",
                                i = if (all(abs(colSums(matrix) - 1) <= 1e-6)) "The columns do: use {.code t()}."), call = call)
  }
  storage.mode(matrix) <- "double"
  matrix
}

# The mechanism of which an owner draws exactly: probabilities are multiples of 2^-52, and rows sum to exactly 1.
drawn_mechanism <- function(mechanism) {
  if (!is.object(mechanism)) return(lapply(mechanism, drawn_mechanism))
  if (is.list(mechanism[["matrix"]])) mechanism$matrix <- lapply(mechanism$matrix, drawn_channel) else if (!is.null(mechanism[["matrix"]]))
    mechanism$matrix <- drawn_channel(mechanism$matrix)
  mechanism
}

drawn_channel <- function(channel) {
  unit <- 2^-52
  channel <- round(channel / rowSums(channel) / unit) * unit
  largest <- cbind(seq_len(nrow(channel)), max.col(channel, "first"))
  channel[largest] <- channel[largest] + (1 - rowSums(channel))
  channel
}

# Of each factor of a statistic, in the order of its levels; the answers that are levels come first, in that order.
channels_of <- function(mechanism, statistic) {
  variables <- statistic$columns$variable
  lapply(stats::setNames(nm = variables), function(v) channel_of(mechanism, v, statistic$levels[[v]], length(variables)))
}

# `questions`: how many have equal shares of epsilon
channel_of <- function(mechanism, variable, levels, questions = 1) {
  if (is.null(mechanism$epsilon)) {
    matrix <- if (is.list(mechanism$matrix)) mechanism$matrix[[variable]] else mechanism$matrix
    answers <- colnames(matrix)
    sums <- rowSums(matrix)
    if (any(sums != 1)) matrix <- matrix / sums
    return(matrix[levels, c(intersect(levels, answers), setdiff(answers, levels)), drop = FALSE])
  }
  odds <- exp(-mechanism$epsilon / questions)
  k <- length(levels)
  matrix <- base::matrix(odds, k, k, dimnames = list(levels, levels))
  diag(matrix) <- 1
  matrix / (1 + (k - 1) * odds)
}

check_channel_levels <- function(mechanism, variable, levels, name, call) {
  matrix <- if (is.list(mechanism$matrix)) mechanism$matrix[[variable]] else mechanism$matrix
  if (setequal(rownames(matrix), levels)) return(invisible())
  stop_classed("mechanism", c("The rows of {.arg {name}} must be named by the levels of {.var {variable}}.", x = "Rows: {.val {rownames(matrix)}}.",
                              i = "Levels: {.val {levels}}."), call = call)
}

# fields of channels_read() in src/contract/channel.c
channel_fields <- function(channels) {
  list(levels = as.double(vapply(channels, nrow, 0L)), answers = as.double(vapply(channels, ncol, 0L)), channel = unlist(lapply(unname(channels), t)))
}

# the largest change of the probability of an answer, if one level is replaced by another
channel_epsilon <- function(channel) max(apply(log(channel / rowSums(channel)), 2L, function(p) if (all(p == -Inf)) 0 else max(p) - min(p)))

# Do different probabilities of the levels give the same probabilities of the answers?
is_singular <- function(channel) qr(t(channel), tol = 1e-10)$rank < nrow(channel)

matrices_of <- function(mechanism) if (is.list(mechanism$matrix)) mechanism$matrix else if (!is.null(mechanism$matrix)) list(mechanism$matrix)

# ---- what a mechanism does ---------------------------------------------------------------

# With a budget, one over the log of the odds of the true level against another.
#' @export
mechanism_scale.mech_randomized_response <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  questions <- length(statistic$components)
  if (is.null(mechanism$epsilon)) return(rep(NA_real_, questions))
  expand_scale(questions / mechanism$epsilon, statistic, "epsilon", call)
}

# a level differs or not: there is no size of the noise
#' @export
mechanism_sd.mech_randomized_response <- function(mechanism, scale) rep(NA_real_, length(scale))

#' @export
add_noise.mech_randomized_response <- function(mechanism, statistic, total, uniform, scale) {
  channels <- channels_of(mechanism, statistic)
  variable <- rep(seq_along(channels), each = length(total) / length(channels))
  answer <- numeric(length(total))
  for (v in seq_along(channels)) {
    for (level in seq_len(nrow(channels[[v]]))) {
      at <- variable == v & total == level - 1
      up_to <- cumsum(channels[[v]][level, ])
      answer[at] <- findInterval(uniform[at], up_to[-length(up_to)])
    }
  }
  answer
}

#' @export
guarantee_of.mech_randomized_response <- function(x, ...) {
  if (!is.null(x$epsilon)) return(privacy_row(epsilon = x$epsilon, delta = 0, rho = x$epsilon^2 / 2))
  questions <- if (is.list(x$matrix)) 1 else max(1, length(list(...)$statistic$components))
  epsilon <- rep(vapply(matrices_of(x), channel_epsilon, 0), questions)
  privacy_row(epsilon = sum(epsilon), delta = 0, rho = sum(epsilon^2) / 2)
}

#' @export
format.mech_randomized_response <- function(x, ...) {
  if (!is.null(x$epsilon)) return(paste0("randomised response, epsilon = ", format_number(x$epsilon)))
  matrices <- matrices_of(x)
  each <- vapply(matrices, function(m) paste(nrow(m), "levels,", ncol(m), "answers, epsilon =", format_number(channel_epsilon(m))), "")
  singular <- vapply(matrices, is_singular, TRUE)
  paste0("randomised response with a matrix: ", shorten_list(if (is.null(names(each))) each else paste0(names(each), " (", each, ")"), 4L),
         if (any(singular)) "; singular: the answers cannot distinguish some probabilities of the levels")
}

#' @export
check_pair.mech_randomized_response <- function(statistic, mechanism, call) {
  if (statistic$kind != "records") {
    stop_classed("mechanism", c("Randomised response changes the levels of individual records; it cannot be added to totals.",
                                x = "The statistic is {describe_statistic(statistic)}.",
                                i = "Use {.fn stat_records}, or another mechanism."), call = call)
  }
  variables <- statistic$columns$variable
  numbers <- setdiff(variables, names(statistic$levels))
  if (length(numbers)) {
    stop_classed("mechanism", c("Randomised response is for factors, but {.var {numbers}} {?is a number/are numbers}.",
                                i = "Use {.fn mech_laplace} or {.fn mech_gaussian}, or release the numbers as a separate statistic."),
                 call = call)
  }
  if (is.null(mechanism$matrix)) return(invisible())
  if (is.list(mechanism$matrix) && !setequal(names(mechanism$matrix), variables)) {
    stop_classed("mechanism", c("{.arg matrix} must have a matrix for each variable of the statistic.", x = "Given: {.var {names(mechanism$matrix)}}.",
                                i = "Variables: {.var {variables}}."), call = call)
  }
  for (v in variables) check_channel_levels(mechanism, v, statistic$levels[[v]], if (is.list(mechanism$matrix)) paste0("matrix$", v) else "matrix", call)
}

#' @export
check_noisy.mech_randomized_response <- function(mechanism, statistic, value, call = caller_env()) {
  channels <- channels_of(mechanism, statistic)
  if (counts_answers(statistic)) value <- as.double(counted_codes(statistic)[value > 0, ])
  each <- length(value) / length(channels)
  bad <- value != floor(value) | value < 0 | value >= rep(vapply(channels, ncol, 0L), each = each)
  if (any(bad)) stop_argument("value", "codes of answers, 0 for the first", describe_bad(value, bad), "value", call)
  for (v in seq_along(channels)) {
    channel <- channels[[v]]
    never <- colnames(channel)[colSums(channel) == 0]
    said <- intersect(never, colnames(channel)[value[(v - 1) * each + seq_len(each)] + 1])
    if (length(said)) {
      stop_classed("value", "{.arg value} has {cli::qty(said)}{?an answer/answers} to {.var {names(channels)[v]}} that no level gives: {.val {said}}.", call = call)
    }
  }
}

# In integers, see src/release/exact_noise.c; of the budget at most what the last bits of a double
# may have added is left unspent.
exact_response <- function(part, data, call) {
  codes <- statistic_total(part$statistic, data, call)
  mechanism <- part$mechanism
  scale <- mechanism_scale(mechanism, part$statistic, call)
  scale <- rep(scale, each = length(codes) / length(scale))
  value <- if (is.null(mechanism$epsilon)) {
    channels <- channels_of(mechanism, part$statistic)
    of_variable <- split(codes, rep(seq_along(channels), each = length(codes) / length(channels)))
    answers <- unname(Map(function(x, channel) .Call(ffi_exact_answers, as.double(x), channel), of_variable, channels))
    if (!any(vapply(answers, is.null, TRUE))) unlist(answers)
  } else {
    levels <- rep(unname(lengths(part$statistic$levels[part$statistic$columns$variable])), each = length(codes) / nrow(part$statistic$columns))
    .Call(ffi_exact_response, as.double(codes), as.double(levels), pmin((1 - 2^-40) / scale, 2^52))
  }
  list(value = value %||% stop_entropy(call), scale = scale, unit = numeric(length(codes)))
}

# A level that never gives an answer is ruled out by it.
check_private_channels <- function(parts, call) {
  for (p in parts) {
    if (p$mechanism$kernel != "match" || is.finite(privacy(p$mechanism, statistic = p$statistic)$epsilon)) next
    stop_classed("mechanism", c("{.arg matrix} must give each answer a positive probability at every level, or at none, in a release by the owner.",
                                x = "Some answer rules out a level: epsilon is infinite."), call = call)
  }
}

#' @export
mechanism_takes.mech_randomized_response <- function(mechanism, statistic, kinds) inherits(statistic, "stat_records") && "code" %in% kinds

# ---- what methods need ---------------------------------------------------------------------

# minus the log of the probability of each answer given each level, over the largest; what is impossible counts as 1e-300
answer_energy <- function(channel) pmin(log(max(channel)) - log(channel), 690)

#' @export
augment_part.mech_randomized_response <- function(part, bound, n) {
  channels <- unname(channels_of(part$mechanism, part$statistic))
  c(NextMethod(), list(answers = vapply(channels, ncol, 0L), answer_energy = lapply(channels, function(m) as.double(t(answer_energy(m))))))
}

#' @export
log_noise.mech_randomized_response <- function(part, data) {
  channels <- channels_of(part$mechanism, part$statistic)
  each <- length(part$value) / length(channels)
  true <- statistic_total(part$statistic, data, empty = TRUE)
  -sum(unlist(lapply(seq_along(channels), function(v) {
    at <- (v - 1) * each + seq_len(each)
    answer_energy(channels[[v]])[cbind(true[at], part$value[at]) + 1]
  })))
}

# ---- answers as they were published ----------------------------------------------------------

# A list: `value`, codes of answers, also from texts; or how many records gave each answer, which is all that matters, and the `statistic` says so.
published_answers <- function(value, statistic, mechanism, call = caller_env()) {
  answers <- lapply(channels_of(mechanism, statistic), colnames)
  if (is.character(value) || is.factor(value)) value <- coded_answers(as.character(value), answers, call)
  counts <- answer_counts(value, statistic)
  if (!is.null(counts)) {
    for (v in names(answers)) check_counted_answers(dimnames(counts)[[v]], answers[[v]], v, call)
    statistic$counted <- answers
    counts <- do.call(`[`, c(list(unclass(counts)), unname(answers), drop = FALSE))
    value <- stats::setNames(as.double(aperm(counts)), part_components(statistic))
  }
  list(value = value, statistic = statistic)
}

check_answer_numbers <- function(counts, n, call) {
  bad <- !is.finite(counts) | counts < 0 | counts != floor(counts)
  if (any(bad)) stop_argument("value", "whole numbers of records with each answer", describe_bad(counts, bad), "value", call)
  if (sum(counts) >= 1 && (is.null(n) || sum(counts) == n)) return(invisible())
  of <- if (!is.null(n)) paste(" of", n)
  stop_classed("value", "{.arg value} must be the numbers of all records with each answer, but {sum(counts)} answer{?s} {?is/are} counted{of}.", call = call)
}

# An array with a dimension for each variable; NULL if these are no counts.
answer_counts <- function(value, statistic) {
  variables <- statistic$columns$variable
  if (is.array(value) && setequal(names(dimnames(value)), variables)) return(aperm(value, match(variables, names(dimnames(value)))))
  vector <- is.numeric(value) && is.null(dim(value)) && length(variables) == 1L
  if (!vector || length(value) == 0L || is.null(names(value)) || any(is_record_name(names(value), variables))) return(NULL)
  array(value, length(value), stats::setNames(list(names(value)), variables))
}

# such as "y[3]"
is_record_name <- function(names, variable) startsWith(names, variable) & grepl("^\\[[0-9]+\\]$", substring(names, nchar(variable) + 1L))

# The codes of the combinations of answers that are counted, a row each
counted_codes <- function(statistic) {
  sizes <- lengths(statistic$counted)
  as.matrix(rev(expand.grid(rev(lapply(sizes, seq_len))))) - 1
}

coded_answers <- function(value, answers, call) {
  if (length(answers) > 1L) {
    stop_classed("value", "Answers to several questions must be codes, or a table of how many records gave each combination of answers.", call = call)
  }
  strange <- setdiff(value, answers[[1L]])
  if (length(strange)) {
    stop_classed("value", c("{.arg value} must be answers.", x = "Not an answer: {.val {strange}}.", i = "Answers: {.val {answers[[1]]}}."), call = call)
  }
  match(value, answers[[1L]]) - 1
}

check_counted_answers <- function(given, answers, variable, call) {
  if (setequal(given, answers) && !anyDuplicated(given)) return(invisible())
  stop_classed("value", c("{.arg value} must have a number for each answer to {.var {variable}}, each once.", x = "Given: {.val {given}}.",
                          i = "Answers: {.val {answers}}."), call = call)
}
