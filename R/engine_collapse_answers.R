# Method "collapse", records answered by randomised response: see src/table/randomised_answers.c. Records with the same
# answers are counted together.

# Are there answers among the parts of a release?
has_answers <- function(release) any(vapply(release_parts(release), function(p) p$mechanism$kernel == "match", TRUE))

# Models whose answers method "collapse" supports, if all their variables are factors.
takes_answers <- function(model) inherits(model, c("model_glm", "model_logistic", "model_categorical", "model_bernoulli", "model_table"))

# Combinations of levels
most_answer_cells <- 1e5

# The answers to each factor of the table: a list of `codes`, a column each, and how many `times` each row was given, NULL for once; and
# `channels`; or a refusal.
table_answers <- function(release, bound, call) {
  table <- as_table(bound)
  check_answered_model(table, call)
  parts <- component_parts(release)
  other <- Filter(function(p) p$mechanism$kernel != "match", parts)
  if (length(other)) {
    stop_classed("method", c("Method {.val collapse} cannot combine answers by randomised response with other statistics.",
                             x = "The release also has {describe_statistic(other[[1L]]$statistic)}.", i = "Method {.val augment} can use both."), call = call)
  }
  codes <- do.call(cbind, lapply(parts, answer_codes, release$n))
  channels <- do.call(c, lapply(parts, function(p) channels_of(p$mechanism, p$statistic)))
  variables <- names(table$levels)
  at <- match(variables, colnames(codes))
  twice <- unique(colnames(codes)[duplicated(colnames(codes))])
  fault <- if (length(twice)) "{.var {twice}} {?is/are} answered twice." else if (anyNA(at)) "{.var {variables[is.na(at)]}} {?is/are} not answered."
  if (!is.null(fault)) {
    stop_classed("method", c("Method {.val collapse} needs one answer for each record and variable.", x = fault,
                             i = "Method {.val augment} does not."), call = call)
  }
  list(codes = codes[, at, drop = FALSE], times = if (counts_answers(parts[[1L]]$statistic)) parts[[1L]]$value, channels = channels[at])
}

# a row a record, or a combination of answers that is counted
answer_codes <- function(part, n) {
  codes <- if (counts_answers(part$statistic)) counted_codes(part$statistic) else matrix(part$value, n)
  colnames(codes) <- part$statistic$columns$variable
  codes
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
  grid <- function(codes, size) drop(codes %*% rev(cumprod(c(1, rev(size)[-length(size)]))))
  own <- part_codes(table$parts[[1L]], levels)
  tracked <- if (nrow(own) <= most_tracked) nrow(own) else 0
  channel <- channel_fields(answers$channels)
  answered <- grid(answers$codes, channel$answers) + 1
  counts <- if (is.null(answers$times)) as.double(tabulate(answered, prod(channel$answers))) else replace(numeric(prod(channel$answers)), answered, answers$times)
  place <- grid(own, levels)
  row <- if (length(answers$channels) == 1L && !moves_theta(table)) told_row(answers$channels[[1L]], counts, place, table$spec$fields$alpha, tracked)
  fields <- row %||% c(channel, list(place = as.double(place), tracked = as.double(tracked > 0), counts = counts))
  problem <- c(noise_fields(), list(
    method = "collapse", exact = TRUE, independent = !is.null(row), model = table$model_spec %||% table$spec, family = if (is.null(row)) "answers" else "row",
    n = as.double(release$n), prior_n = NULL, size_prior = size_prior_spec(NULL), where = integer(), summed = integer(), times = double(),
    tracked = as.double(tracked), fields = fields))
  problem$fields$tables <- .Call(ffi_collapse_tables, problem)
  problem
}

# ---- independent draws ----------------------------------------------------------------------

# One factor, where an answer is more likely at one level and alike at all others, as in k-ary randomised response: probability b + c p, p the probability of
# its level. (b + c p)^N is a sum over how many of the N answers depend on the level, the others on nothing. Given the sum M of these m_k over
# levels p is integrated out, and they are like noisy counts, of weight
#   choose(N_k, m_k) (c_k / b_k)^m_k Gamma(a_k + m_k), and of M 1 / Gamma(A + M), A the sum of a:
# see R/engine_collapse_row.R. NULL: another kind of answers, or too many. `place`: each cell's level, from 0.
told_row <- function(channel, counts, place, alpha, tracked) {
  base <- apply(channel, 2L, min)
  more <- t(channel) - base # a row an answer
  if (any(rowSums(more > 0) > 1)) return(NULL)
  level <- match(max.col(more, "first") - 1, place)
  level[rowSums(more) == 0] <- NA
  more <- apply(more, 1L, max)
  used <- which(counts > 0)
  at <- used[!is.na(level[used])]
  if (length(at) == 0L || anyDuplicated(level[at]) || any(base[setdiff(used, at)] == 0)) return(NULL)
  cells <- length(alpha)
  most <- replace(numeric(cells), level[at], counts[at])
  odds <- replace(numeric(cells), level[at], more[at] / base[at])
  row <- told_counts(most, odds, alpha)
  if (is.null(row)) return(NULL)
  level[is.na(level)] <- 0
  c(row_fields(row, tracked), list(place = double(), multiple = double(), answered = counts[used], base = unname(base[used]), more = unname(more[used]),
                                   level = as.double(level[used] - 1)))
}

# Do chains have the likelihood with the records' levels summed out?
sums_out_levels <- function(problem) identical(problem$family, "answers") || !is.null(problem$fields$answered)

# Beyond so much work (a second or so) theta moves.
most_told <- list(work = 1e10, size = 4e6, n = 1e9)

told_counts <- function(most, odds, alpha) {
  enough <- -log(least_kept)
  all <- sum(alpha)
  sum_of <- sum(most)
  free <- most > 0 & is.finite(odds)
  # where the weight of m with (c / b) / (A + M) for c / b is largest
  mode <- function(tell) {
    rate <- odds[free] / (all + tell)
    slope <- rate * (most[free] - alpha[free]) - 1
    root <- sqrt(pmax(slope^2 + 4 * rate * (rate * most[free] * alpha[free] - 1), 0))
    replace(most, free, pmin(pmax((slope + root) / (2 * rate), 0), most[free]))
  }
  told <- stats::uniroot(function(m) sum(mode(m)) - m, c(0, sum_of), tol = 0.1 + 1e-6 * sum_of)$root
  tilt <- log(all + told)
  weight <- function(k, m) {
    if (k > length(alpha)) return(m * tilt - lgamma(all + m))
    if (!free[k]) return(0 * m)
    lchoose(most[k], m) + lgamma(alpha[k] + m) + m * (log(odds[k]) - tilt)
  }
  centre <- c(mode(told), told)
  # log weights fall off as a normal density's, and where the mode is at an end with a slope as well
  falls <- c(free, TRUE)
  variance <- ifelse(falls, c(most - centre[seq_along(most)] + 1, told + all), 0)
  slope <- numeric(length(falls))
  at <- centre[which(free)]
  slope[which(free)] <- abs(log(odds[free] / (all + told) * pmax(most[free] - at, 1) * (alpha[free] + at) / (at + 1)))
  reach <- ifelse(falls, 2 * enough / (slope + sqrt(slope^2 + 2 * enough / variance)), 0)
  highest <- c(most, sum_of)
  likely <- function(reach) rbind(pmax(floor(centre - reach), 0), pmin(ceiling(centre + reach), highest))
  width <- likely(reach)[2L, ] - likely(reach)[1L, ] + 1
  if (!row_is_small(list(width = width, most = sum_of), most_told)) return(NULL)
  range <- function(times) likely(ifelse(falls, times * (reach + enough), 0))
  row_counts(range, weight, numeric(length(centre)), highest, c(!free, FALSE))
}

# ---- what the fit has to report ---------------------------------------------------------------

#' @export
engine_lines.engine_collapse_answers <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_answers <- function(engine, fit, told) hamiltonian_row(told)

#' @export
engine_moves.engine_collapse_answers <- function(engine, fit, rows) paste("answers   counted;", hamiltonian_words(rows$steps, rows$mean))
