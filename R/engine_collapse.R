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
#   public  noisy responses beside public covariates, see engine_public.R

sample_collapse <- function(release, bound, run, init, control, records = NULL, call = caller_env()) {
  words <- with_seed(run$seed, seed_words())
  problem <- collapse_problem(release, bound, records, call)
  if (problem$family %in% c("recursion", "row") && !is.null(init)) say_init_unused("collapse")
  if (hides_residual(problem, bound, words, run$chains)) problem$fields$innovates <- 1 else if (tells_scatter(problem, bound)) problem$fields$scatter <- 1
  problem$fields$bend <- collapse_bend(problem, bound, clamped = FALSE)
  sample_chains(problem, release, bound, run, init, words, call)
}

# What the C code needs to know; see struct collapse. The function of its family gives
# fields for it, and of each component in the release's order what part of the
# totals it is (`component`, a matrix with a row or a vector with an entry each).
collapse_problem <- function(release, bound, records = NULL, call = caller_env()) {
  if (has_record_noise(release)) return(records_problem(release, bound, call))
  if (has_answers(release)) return(answers_problem(release, bound, call))
  bound <- as_table(bound)
  size <- if (is.null(release$n)) typical_size(release, records) else list(n = as.double(release$n))
  if (!is.null(records) && collapse_family(bound, call) == "normal") size$n <- max(size$n, least_size(bound))
  distribution <- collapse_distribution(release, bound, size$n, records, call = call)
  if (!is.null(records)) check_size_least(records, bound, distribution$family, call)
  check_size_exact(records, distribution$fields$group_total %||% distribution$fields$exact_start, call)
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  kernel <- unlist(lapply(parts, function(p) rep(p$mechanism$kernel, length(p$index))))
  # components with the absolute kernel first, then the squared one, those of published(), the exact ones
  order <- order(kernel == "exact", kernel != "absolute", kernel == "published")
  published <- do.call(rbind, lapply(parts, function(p) if (p$mechanism$kernel == "published") p$interval))
  fields <- c(distribution$fields, lapply(distribution$component, function(x) as.double(if (is.matrix(x)) t(x[order, ]) else x[order])))
  # of queries: an entry each, with the place of its component
  if (!is.null(distribution$entries)) fields <- c(fields, entry_fields(distribution$entries, order(order)))
  fields$size_spread <- size$sd
  problem <- list(method = "collapse", exact = if (isTRUE(bound$natural) || distribution$family %in% c("counts", "recursion", "row", "table", "crossing")) TRUE else NA,
                  model = bound$model_spec %||% bound$spec, family = distribution$family, n = size$n, records = records,
                  size_prior = size_prior_spec(records), released = unlist(lapply(parts, `[[`, "value"))[order],
                  weight = 1 / unlist(lapply(parts, `[[`, "scale"))[order], absolute = sum(kernel == "absolute"),
                  separable = sum(!kernel %in% c("published", "exact")), noisy = sum(kernel != "exact"),
                  published = list(fields = lapply(published, as.double)), where = order(order),
                  summed = seq_along(release$value), times = released_times(parts), tracked = as.double(distribution$tracked %||% 0),
                  fields = fields)
  problem$fields$tables <- .Call(ffi_collapse_tables, problem)
  problem
}

# Has a regression a residual standard deviation with a prior of its own that noise leaves less certain than the
# records alone would? Then its totals follow it rather than it the totals (src/totals/response_innovations.c): near 0 it would hold
# them too tightly to move. A short run tells.
hides_residual <- function(problem, bound, words, chains, warmup = 200, draws = 200) {
  own <- inherits(bound, "bound_lm") && inherits(bound$model$sigma, c("prior_half_normal", "prior_half_t", "prior_exponential", "prior_inverse_gamma"))
  if (!own || length(bound$levels) || !is.null(problem$records) || problem$noisy < length(problem$released) || problem$n <= nrow(bound$columns)) return(FALSE)
  state <- start_chain(problem, bound, words, chains + 2L, NULL)
  chain <- run_blocks(problem, state, warmup + draws, list(warmup = warmup, thin = 1), function(...) NULL)
  log_sigma <- log(chain$draws[, match("sigma", bound$parameters)])
  is_hidden(stats::mad(log_sigma), problem$n)
}

# `spread`: of log sigma; beside its standard deviation if the records were known
is_hidden <- function(spread, n) spread^2 > 1.5 / (2 * n)

entry_fields <- function(entries, place) {
  list(target = as.double(entries$target), component = as.double(place[entries$component] - 1), coefficient = as.double(entries$coefficient))
}

# `n`: where it is unknown, about what it is, and `records` its prior. `check`: only whether there is one, of counts TRUE if all are
# drawn at once
collapse_distribution <- function(release, bound, n = release$n %||% 1, records = NULL, check = FALSE, call = caller_env()) {
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
  distribution_of(bound, parts, n, if (is.null(release$n)) records %||% prior_log_uniform(), call)
}

# The scatter of normal records needs more of them than there are columns.
least_size <- function(bound) nrow(bound$columns) + 1

check_size_least <- function(records, bound, family, call) {
  least <- least_size(bound)
  if (family == "total" && size_range(records)[2L] < 1) {
    stop_classed("method", "Method {.val collapse} needs that there may be a record, but {.arg records} is {format(records)}.", call = call)
  }
  if (family != "normal" || size_range(records)[2L] >= least) return(invisible())
  stop_classed("method", c("Method {.val collapse} assumes at least {least} records, one more than variables, where their number is unknown.",
                           x = "{.arg records} is {format(records)}.", i = "Method {.val augment} is exact for any number."), call = call)
}

# An unknown number of records holds those of exact numbers.
check_size_exact <- function(records, settled, call) {
  least <- sum(settled[settled > 0])
  if (is.null(records) || size_range(records)[2L] >= least) return(invisible())
  stop_classed("argument", "{.arg records} must allow {format_size(least)} records, which exact numbers have, but is {format(records)}.", call = call)
}

# Normal totals with factors: src/totals/cross_table.c.
check_cross_table <- function(bound, n, call, most = 10000) {
  cells <- prod(lengths(bound$levels))
  least <- nrow(bound$columns) + 1
  fault <- if (is.null(n)) "The number of records is unknown." else
    if (cells > most) "Their cross-table has {format_size(cells)} cells, and at most {format_size(most)} are possible." else
      if (n < least) "The release has {n} record{?s}, and at least {least} are needed, one more than columns."
  if (is.null(fault)) return(invisible())
  stop_classed("method", c("Method {.val collapse} cannot serve this regression with the factor{?s} {.var {names(bound$levels)}}.", x = fault,
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
  stop_classed("method", c(paste("Method {.val collapse} needs totals whose distribution given the parameters is known:",
                                 "of counts, of one Poisson or exponential variable, or of normal records."),
                           x = fault, i = "Method {.val augment} does not need it."), call = call)
}

check_collapse_part <- function(part, family, call) {
  if (family == "normal") check_as_noise_left(part, "collapse", call)
  if (family == "total") check_no_exact(list(part), "collapse", call)
  if (!part$mechanism$kernel %in% c("absolute", "squared", "match", "published", "exact")) {
    stop_classed("method", "Method {.val collapse} needs noise of a built-in mechanism, not {format(part$mechanism)}.", call = call)
  }
  if (part$statistic$kind != "records") return(invisible())
  stop_classed("method", c("Method {.val collapse} needs totals with noise.",
                           x = "The release has {.fn stat_records}, one noisy value per record.",
                           i = "Method {.val augment} can use it."), call = call)
}

# Up to this probability of a record outside the bounds the draws count as exact.
likely_outside <- 0.01

# Posterior expectation of the share of records outside the bounds (summed over
# the variables, so if anything too large: `summed`, or 1 if that is less), and the probability
# that there is one.
outside_bounds <- function(fit) {
  summed <- unlist(lapply(fit$chains, `[[`, "outside"))
  share <- pmin(summed, 1)
  n <- if (is.null(fit$problem$records)) fit$problem$n %||% nobs(fit) else unlist(lapply(fit$chains, `[[`, "records"))
  c(summed = mean(summed), share = mean(share), any = mean(-expm1(n * log1p(-share))))
}

outside_lines <- function(fit, what = "exact") {
  if (isTRUE(fit$bound$natural)) return("  bounds     natural limits: no record lies beyond")
  outside <- outside_bounds(fit)
  verdict <- if (outside[["any"]] <= likely_outside) paste(what, "if no record lies outside the bounds") else
    sprintf("NOT %s: records outside the bounds are likely", what)
  c(paste0("  bounds     ", verdict), share_line(fit))
}

share_line <- function(fit) {
  shown <- format_number(outside_bounds(fit), 2)
  sprintf("             expected share of records outside %s, probability of at least one %s", shown[["share"]], shown[["any"]])
}

collapse_lines <- function(fit) {
  a <- collapse_acceptance(fit)
  switch(fit$problem$family,
         normal = c(outside_lines(fit), hamiltonian_lines(a)),
         records = , answers = , public = , table = hamiltonian_lines(a),
         public_totals = c(outside_lines(fit), hamiltonian_lines(a)),
         total = outside_lines(fit))
}

hamiltonian_lines <- function(a) {
  c(if (any(a$divergent > 0)) sprintf("  divergent  %g transitions", sum(a$divergent)),
    if (any(a$deepest > 0)) sprintf("  too long   %g transitions, cut at 1,024 steps", sum(a$deepest)))
}

# acceptance() in words
collapse_moves <- function(fit, a) {
  share <- function(x) if (all(is.na(x))) "none" else paste("accepted", format_number(mean(x, na.rm = TRUE), 2))
  of_n <- if (!is.null(fit$problem$records)) sprintf("; of n: %s", share(a$records))
  switch(fit$problem$family,
         normal = paste0(sprintf("totals   Hamiltonian: %s steps a trajectory, acceptance %s", format_number(mean(a$steps), 2), format_number(mean(a$mean), 2)),
                         if (!is.null(a$table)) sprintf("; cross-table of the factors: %s", share(a$table)), of_n),
         recursion = , row = "counts   independent draws, all counts at once",
         records = if (is.null(a$steps)) "totals   as they are: no variable has noise" else
           sprintf("noisy records   Hamiltonian: %s steps a trajectory, acceptance %s", format_number(mean(a$steps), 2), format_number(mean(a$mean), 2)),
         imputed = sprintf("noisy records   proposals of each record's values: %s", share(a$mean)),
         public = sprintf("answers   responses summed out; Hamiltonian: %s steps a trajectory, acceptance %s", format_number(mean(a$steps), 2),
                          format_number(mean(a$mean), 2)),
         public_totals = sprintf("totals   of the response; Hamiltonian: %s steps a trajectory, acceptance %s", format_number(mean(a$steps), 2),
                                 format_number(mean(a$mean), 2)),
         answers = sprintf("answers   counted; Hamiltonian: %s steps a trajectory, acceptance %s", format_number(mean(a$steps), 2), format_number(mean(a$mean), 2)),
         table = paste0(sprintf("table    transfers between two cells: %s; that exchange codes: %s; contrasts: %s", share(a$pair), share(a$swap), share(a$contrast)),
                        if (!is.null(a$kept)) sprintf("; made to keep exact numbers: %s", share(a$kept)), of_n,
                        if (!is.null(a$steps)) sprintf("; coefficients Hamiltonian: %s steps a trajectory, acceptance %s",
                                                       format_number(mean(a$steps), 2), format_number(mean(a$acceptance), 2))),
         crossing = sprintf("records  a variable at a time, given all else: %s changed", format_number(mean(a$mean), 2)),
         counts = paste0(sprintf("counts   moves within a class: %s; between classes: %s", share(a$within), share(a$between)), of_n),
         total = paste0(sprintf("total    walk: %s; proposals from the prior: %s", share(a$mean), share(a$fresh)), of_n))
}

# acceptance() of a fit, from what the family counts (`counters` in its C file)
collapse_acceptance <- function(fit) {
  rows <- lapply(seq_along(fit$chains), function(k) {
    told <- as.list(fit$chains[[k]]$diagnostics)
    share <- function(accepted, made) if (made > 0) accepted / made else NA_real_
    switch(fit$problem$family,
           normal = {
             row <- data.frame(chain = k, mean = told$acceptance / told$transitions, steps = told$leapfrogs / told$transitions,
                               divergent = told$divergent, deepest = told$deepest, within = told$within / told$transitions)
             if (length(fit$bound$levels)) row$table <- share(told$table_accepted, told$table_made)
             with_records(row, fit, told)
           },
           recursion = , row = {
             row <- data.frame(chain = k, mean = share(told$accepted, told$made))
             if (is.null(fit$problem$records)) row else cbind(row, records = row$mean)
           },
           crossing = data.frame(chain = k, mean = share(told$moved, told$made)),
           imputed = data.frame(chain = k, mean = share(told$moved, told$swept)),
           records = , answers = , public = , public_totals = if (told$transitions == 0) data.frame(chain = k, mean = 1) else
             data.frame(chain = k, mean = told$acceptance / told$transitions, steps = told$leapfrogs / told$transitions,
                        divergent = told$divergent, deepest = told$deepest),
           table = {
             accepted <- told$pair_accepted + told$swap_accepted + told$contrast_accepted + told$kept_accepted
             made <- told$pair_made + told$swap_made + told$contrast_made + told$kept_made
             row <- data.frame(chain = k, mean = accepted / made, pair = share(told$pair_accepted, told$pair_made),
                               swap = share(told$swap_accepted, told$swap_made), contrast = share(told$contrast_accepted, told$contrast_made))
             if (!is.null(fit$problem$fields$exact_start)) row$kept <- share(told$kept_accepted, told$kept_made)
             if (told$transitions > 0) {
               row <- cbind(row, steps = told$leapfrogs / told$transitions, acceptance = told$acceptance / told$transitions, divergent = told$divergent,
                            deepest = told$deepest)
             }
             with_records(row, fit, told)
           },
           counts = {
             accepted <- told$between_accepted + told$split_accepted
             made <- told$between_made + told$split_made
             row <- data.frame(chain = k, mean = (told$within_accepted + accepted) / (told$within_made + made),
                              within = share(told$within_accepted, told$within_made), between = accepted / made)
             with_records(row, fit, told)
           },
           total = {
             row <- data.frame(chain = k, mean = share(told$walk_accepted, told$walk_made), fresh = share(told$fresh_accepted, told$fresh_made))
             with_records(row, fit, told)
           })
  })
  do.call(rbind, rows)
}

# beside it the share of accepted steps of an unknown n
with_records <- function(row, fit, told) {
  if (is.null(fit$problem$records)) row else cbind(row, records = told$size_accepted / told$size_made)
}

# ---- which pairs it serves ----------------------------------------------------------

# Classes of the statistics whose totals have a known distribution under the model.
# Each stands beside its collapse_family().
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
  stop_classed("method", c("No method keeps the exact numbers of this release under this model.", gsub("([{}])", "\\1\\1", reasons)), call = call)
}

collapse_serves <- function(release, bound) without_refusal(collapse_distribution(release, bound, check = TRUE))
