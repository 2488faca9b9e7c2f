# Method "collapse": see src/contract/collapse.h. A model belongs to a family of
# distributions of the totals, each with a file of its own here and in src:
#   normal  totals of variables and of their products, records normal given the
#           parameters
#   counts  counts of a class and of features by class; `recursion` where few
#           records make independent draws possible
#   table   counts of a table of factors; `crossing` where margins cross its cliques
#   row     counts of single cells of one table: independent draws, of either
#   total   the total of one Poisson or exponential variable
#   records totals of noisy records, see mech_record_noise.R
#   imputed noisy records that are kept, see mech_record_noise.R
#   answers records answered by randomised response
#   public  noisy responses with public covariates, see engine_public.R

#' @export
engine_problem.engine_collapse <- function(engine, release, bound, control, words, chains, prior_n, call) {
  check_records_distribution(bound, call)
  problem <- collapse_problem(release, bound, prior_n, call)
  if (hides_residual(problem, bound, words, chains)) problem$fields$innovates <- 1 else if (tells_scatter(problem, bound)) problem$fields$scatter <- 1
  problem$fields$bend <- collapse_bend(problem, bound, clamped = FALSE)
  problem
}

# What the C code needs to know; see struct collapse. The function of its family gives
# fields for it, and of each component in the release's order what part of the
# totals it is (`component`, a matrix with a row or a vector with an entry each).
collapse_problem <- function(release, bound, prior_n = NULL, call = caller_env()) {
  if (has_record_noise(release)) return(records_problem(release, bound, call))
  if (has_answers(release)) return(answers_problem(release, bound, call))
  bound <- as_table(bound)
  size <- if (is.null(release$n)) typical_size(release, prior_n) else list(n = as.double(release$n))
  if (!is.null(prior_n) && collapse_family(bound, call) == "normal") size$n <- max(size$n, least_size(bound))
  distribution <- collapse_distribution(release, bound, size$n, prior_n, call = call)
  if (!is.null(prior_n)) check_size_least(prior_n, bound, distribution$family, call)
  check_size_exact(prior_n, distribution$fields$group_total %||% distribution$fields$exact_start, call)
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  kernel <- part_kernels(parts)
  # components with the absolute kernel first, then the squared one, those of published(), the exact ones
  order <- order(kernel == "exact", kernel != "absolute", kernel == "published")
  fields <- c(distribution$fields, lapply(distribution$component, function(x) as.double(if (is.matrix(x)) t(x[order, ]) else x[order])))
  # of queries: an entry each, with the place of its component
  if (!is.null(distribution$entries)) fields <- c(fields, entry_fields(distribution$entries, order(order)))
  fields$size_spread <- size$sd
  problem <- list(method = "collapse", exact = engine_exact(as_engine("collapse"), bound), independent = distribution$independent,
                  model = bound$model_spec %||% bound$spec, family = distribution$family, n = size$n, prior_n = prior_n,
                  size_prior = size_prior_spec(prior_n), where = order(order), summed = seq_along(release$value),
                  times = released_times(parts), tracked = as.double(distribution$tracked %||% 0),
                  fields = fields)
  problem <- c(problem, noise_fields(parts, order))
  problem$fields$tables <- .Call(ffi_collapse_tables, problem)
  problem
}

# Has a regression a residual standard deviation with a prior of its own that noise leaves less certain than the
# records alone would? Then its totals follow it rather than it the totals (src/totals/response_innovations.c): near 0 it would hold
# them too tightly to move. A short run tells.
hides_residual <- function(problem, bound, words, chains, warmup = 200, draws = 200) {
  own <- inherits(bound, "bound_lm") && !is.null(bound$model$sigma) && !inherits(bound$model$sigma, "fixed")
  if (!own || length(bound$levels) || !is.null(problem$prior_n) || "exact" %in% problem$kernel || problem$n <= nrow(bound$columns)) return(FALSE)
  state <- start_chain(problem, bound, words, chains + 2L, NULL)
  chain <- run_blocks(problem, state, warmup + draws, list(warmup = warmup, thin = 1), function(...) NULL)
  log_sigma <- log(chain$draws[, match("sigma", bound$parameters)])
  is_hidden(stats::mad(log_sigma), problem$n)
}

# `spread`: of log sigma; it is compared with the standard deviation if the records were known
is_hidden <- function(spread, n) spread^2 > 1.5 / (2 * n)

entry_fields <- function(entries, place) {
  list(target = as.double(entries$target), component = as.double(place[entries$component] - 1), coefficient = as.double(entries$coefficient))
}

# `n`: where it is unknown, about what it is, and `prior_n` its prior. `check`: only whether there is one, of counts TRUE if all are
# drawn at once
collapse_distribution <- function(release, bound, n = release$n %||% 1, prior_n = NULL, check = FALSE, call = caller_env()) {
  if (has_record_noise(release)) return(check_normal_records(bound, call))
  if (has_answers(release)) return(table_answers(release, bound, call))
  bound <- as_table(bound)
  family <- collapse_family(bound, call)
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  if (family == "normal" && length(bound$levels)) {
    check_cross_table(bound, release$n, call)
    check_no_exact(parts, "collapse", call)
  }
  distribution_of <- switch(family, normal = normal_distribution,
                            counts = if (check) counts_served else counts_distribution,
                            table = if (check) table_served else table_distribution, total = total_distribution)
  for (p in parts) check_collapse_part(p, family, call)
  distribution_of(bound, parts, n, if (is.null(release$n)) prior_n %||% prior_n("log_uniform"), call)
}

check_size_least <- function(prior_n, bound, family, call) {
  least <- least_size(bound)
  if (family == "total" && size_range(prior_n)[2L] < 1) {
    stop_classed("method", "Method {.val collapse} needs a prior that allows at least one record, but {.arg prior_n} is {format(prior_n)}.", call = call)
  }
  if (family != "normal" || size_range(prior_n)[2L] >= least) return(invisible())
  stop_classed("method", c("If the number of records is unknown, method {.val collapse} assumes at least {least}, one more than variables.",
                           x = "{.arg prior_n} is {format(prior_n)}.", i = "Method {.val augment} is exact for any number."), call = call)
}

# An unknown number of records holds those of exact numbers.
check_size_exact <- function(prior_n, settled, call) {
  least <- sum(settled[settled > 0])
  if (is.null(prior_n) || size_range(prior_n)[2L] >= least) return(invisible())
  stop_classed("argument", "{.arg prior_n} must allow {format_size(least)} records, as the exact numbers imply, but is {format(prior_n)}.", call = call)
}

# Normal totals with factors: src/totals/cross_table.c.
check_cross_table <- function(bound, n, call, most = 10000) {
  cells <- prod(lengths(bound$levels))
  least <- nrow(bound$columns) + 1
  fault <- if (is.null(n)) "The number of records is unknown." else
    if (cells > most) "Their cross-table has {format_size(cells)} cells, but the limit is {format_size(most)}." else
      if (n < least) "The release has {n} record{?s}, but at least {least} are needed, one more than variables (a factor with k levels counts as k - 1)."
  if (is.null(fault)) return(invisible())
  stop_classed("method", c("Method {.val collapse} cannot fit this regression with the factor{?s} {.var {names(bound$levels)}}.", x = fault,
                           i = "Method {.val augment} can."), call = call)
}

collapse_family <- function(bound, call = caller_env()) UseMethod("collapse_family")

#' @export
collapse_family.default <- function(bound, call = caller_env()) {
  check_records_distribution(bound, call)
  check_normal_covariates(bound, "collapse", call)
  if (!is.null(collapse_origin(bound))) return("normal")
  fault <- if (length(bound$levels)) "The factor{?s} {.var {names(bound$levels)}} make{?s/} the records non-normal." else
    "The distribution of this model's totals is unknown."
  stop_classed("method", c(paste("Method {.val collapse} needs totals with a known distribution given the parameters:",
                                 "of counts, of one Poisson or exponential variable, or of normal records."),
                           x = fault, i = "Method {.val augment} does not."), call = call)
}

check_collapse_part <- function(part, family, call) {
  check_no_quantiles(list(part), "collapse", call)
  if (family == "normal") check_as_noise_left(part, "collapse", call)
  if (family == "total") check_no_exact(list(part), "collapse", call)
  if (!part$mechanism$kernel %in% c("absolute", "squared", "match", "published", "exact")) {
    stop_classed("method", "Method {.val collapse} needs noise from a built-in mechanism, not {format(part$mechanism)}.", call = call)
  }
  if (part$statistic$kind != "records") return(invisible())
  stop_classed("method", c("Method {.val collapse} needs totals with noise.",
                           x = "The release has {.fn stat_records}, one noisy value per record.",
                           i = "Method {.val augment} can use it."), call = call)
}

# ---- which pairs it supports --------------------------------------------------------

# Classes of the statistics whose totals have a known distribution under the model.
# Each stands next to its collapse_family().
collapse_statistics <- function(model) UseMethod("collapse_statistics")

#' @export
collapse_statistics.default <- function(model) character()

# Is it exact whatever the bounds are, or since they are natural limits?
collapse_is_exact <- function(bound) isTRUE(bound$natural) || moves_counts(bound)

# Are the totals counts, which no bounds clamp?
moves_counts <- function(bound) UseMethod("moves_counts")

#' @export
moves_counts.default <- function(bound) FALSE

# "collapse" alone keeps them: why it does not
check_keeps_exact <- function(release, bound, call = caller_env()) {
  fault <- tryCatch({
    collapse_distribution(release, bound, check = TRUE)
    NULL
  }, noiseaware_error_method = identity)
  if (is.null(fault)) return(invisible())
  reasons <- c(fault$message, fault$body[names(fault$body) != "i"])
  reasons <- stats::setNames(reasons, rep("x", length(reasons)))
  stop_classed("method", c("No method can respect the exact numbers of this release under this model.", gsub("([{}])", "\\1\\1", reasons)), call = call)
}

collapse_serves <- function(release, bound) without_refusal(collapse_distribution(release, bound, check = TRUE))

#' @export
engine_serves.engine_collapse <- function(engine, release, bound) collapse_serves(release, bound)

#' @export
engine_exact.engine_collapse <- function(engine, bound) if (collapse_is_exact(bound)) TRUE else NA

#' @export
engine_pairs.engine_collapse <- function(engine, model, statistic, mechanism) {
  if (inherits(mechanism, "mech_record_noise")) return(if (inherits(model, c("model_lm", "model_mvnormal"))) TRUE)
  by_totals <- !inherits(mechanism, "mech_custom") && inherits(statistic, collapse_statistics(model))
  if (!by_totals && !(inherits(mechanism, "mech_randomized_response") && takes_answers(model))) return(NULL)
  counts <- "stat_counts" %in% collapse_statistics(model)
  if (inherits(mechanism, "mech_tabulated") && !counts && !inherits(model, c("model_poisson", "model_exponential"))) return(NULL)
  if (counts) TRUE else NA
}

#' @export
engine_alone.engine_collapse <- function(engine, release, bound) {
  if (has_record_noise(release)) return("exact for noise on every record")
  if (!has_exact(release)) return(NULL)
  check_keeps_exact(release, bound)
  "keeps exact numbers"
}

#' @export
engine_size.engine_collapse <- function(engine, release, sized, bound, control, prior_n) {
  table <- as_table(bound)
  row <- collapse_row(release, table)
  size <- switch(row, crossing = sum(lengths(bound$levels)),
                 "log-linear table" = , "response table" = , answers = nrow(part_codes(table$parts[[1L]], lengths(table$levels))),
                 counts = , recursion = if (!inherits(bound, "bound_table")) length(sized$value))
  list(engine = row, size = size %||% if (inherits(bound, "bound_table")) bound$sizes$complete else bound$sizes$columns)
}

collapse_row <- function(release, bound) {
  if (has_answers(release)) return("answers")
  family <- collapse_family(bound)
  # independent draws of a row of counts are cheaper than the draws of the recursion, and far cheaper than moves
  if (isTRUE(collapse_distribution(release, bound, check = TRUE))) return("recursion")
  if (release_crosses(release, bound)) return("crossing")
  if (family == "normal" && length(bound$levels)) return("cross-table")
  if (inherits(bound, "bound_glm_table")) "response table" else if (moves_theta(bound)) "log-linear table" else family
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_collapse <- function(engine) "collapse: moves the totals, not the records"

#' @export
engine_offer.engine_collapse <- function(engine, bound) {
  paste("moves the totals, at a cost that does not grow with n:",
        if (collapse_is_exact(bound)) "exact here." else "exact only if no record lies outside the bounds; the printed fit says how likely that is.")
}
