# Noisy records under method "collapse": what src/totals/noisy_records.c and noisy_records_imputed.c read.

# for methods that have no such noise
check_noise_on_totals <- function(method, release, call) {
  if (!has_record_noise(release)) return(invisible())
  stop_classed("method", c("Method {.val {method}} needs noise on totals, or on records with bounds.",
                           x = "The release has {format(release$mechanism)}.", i = "Method {.val collapse} is exact here."), call = call)
}

check_no_record_noise <- function(releases, call) {
  check_no_public(releases, "Sites cannot be pooled that have", call)
  noisy <- names(Filter(has_record_noise, releases))
  if (length(noisy) == 0L) return(invisible())
  stop_classed("pool", c("Sites with noisy records cannot be pooled; {.val {noisy}} {?has/have} {.fn mech_record_noise}.",
                         i = "{.code pool = \"none\"} fits each site separately. Noisy records with equal noise can be combined before {.fn as_release}."), call = call)
}

check_normal_records <- function(bound, call) {
  check_no_lone(bound, "collapse", call)
  if (inherits(bound, c("bound_lm", "bound_mvnormal"))) return(invisible())
  stop_classed("method", c("{.fn mech_record_noise} needs records that are normal given the parameters and their factors: {.fn model_lm} or {.fn model_mvnormal}.",
                           x = "The model is {describe_model(bound)}."), call = call)
}

# see struct noisy in src/totals/noisy_records.c
records_problem <- function(release, bound, call) {
  check_normal_records(bound, call)
  if (!is.null(bound$terms) || length(answered_factors(release, bound))) return(imputed_problem(release, bound, call))
  part <- component_parts(release)[[1L]]
  size <- length(part$value)
  terms <- normal_terms(part, bound$columns$name, collapse_origin(bound), release$n, call)
  seen <- bound_complete(bound, crossprod_moments(part$statistic, part$value, release$n), release$n)
  list(method = "collapse", exact = TRUE, model = bound$spec, family = "records", n = as.double(release$n), prior_n = NULL,
       size_prior = size_prior_spec(NULL), released = part$value, scale = rep(1, size), kernel = rep("squared", size),
       where = seq_len(size), summed = seq_len(size), times = released_times(list(part)),
       fields = list(seen = as.double(seen), noise_sd = record_sd(release$mechanism, bound$columns), terms = as.double(t(terms))))
}

# Products and powers of noisy variables, and answers of factors: see src/totals/noisy_records_imputed.c. The values are imputed, and no totals are kept.
imputed_problem <- function(release, bound, call) {
  check_kept_records(release, bound, call)
  seen <- release$records[, bound$columns$name, drop = FALSE]
  noise <- record_sd(release$mechanism, bound$columns)^2
  spread <- apply(seen, 2L, stats::var)
  left <- pmax(spread - noise, spread / 25)
  c(noise_fields(), list(
    method = "collapse", exact = TRUE, model = bound$spec, family = "imputed", n = as.double(release$n), prior_n = NULL,
    size_prior = size_prior_spec(NULL), where = integer(), summed = integer(), times = NULL,
    fields = c(list(seen = as.double(seen), noise_sd = sqrt(noise), hidden_sd = sqrt(left * noise / (left + noise))),
               answer_fields(seen, release, bound))))
}

answered_factors <- function(release, bound) intersect(names(bound$levels), names(answer_channels(release$mechanism, release$statistic$levels)))

# `seen` has the dummies of the levels after the first
answer_fields <- function(seen, release, bound) {
  factors <- answered_factors(release, bound)
  if (length(factors) == 0L) return(NULL)
  dummies <- lapply(factors, function(f) which(bound$columns$variable == f))
  channels <- channel_fields(answer_channels(release$mechanism, release$statistic$levels)[factors])
  c(channels, list(answer_column = vapply(dummies, `[`, 1L, 1L) - 1, answer_factor = match(factors, names(bound$levels)) - 1,
                   answer = unlist(lapply(dummies, function(d) drop(seen[, d, drop = FALSE] %*% seq_along(d))))))
}

check_kept_records <- function(release, bound, call) {
  if (!is.null(release$records)) return(invisible())
  stop_classed("method", c("Products and powers of noisy variables need the noisy records themselves, but the release has only their totals.",
                           x = "The formula is {.code {shorten_text(formula_text(bound$formula))}}.",
                           i = "Give {.fn stat_records} a formula with them: {.fn as_release} then keeps the noisy records."), call = call)
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_lines.engine_collapse_records <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_records <- function(engine, fit, told) hamiltonian_row(told)

#' @export
engine_moves.engine_collapse_records <- function(engine, fit, rows) {
  if (is.null(rows$steps)) "totals   exact: no variable has noise" else paste("noisy records  ", hamiltonian_words(rows$steps, rows$mean))
}

#' @export
engine_title.engine_collapse_imputed <- function(engine) "collapse: imputes the confidential values of the noisy records"

#' @export
engine_diagnostics.engine_collapse_imputed <- function(engine, fit, told) data.frame(mean = share_of(told$moved, told$swept))

#' @export
engine_moves.engine_collapse_imputed <- function(engine, fit, rows) {
  sprintf("noisy records   proposals of each record's values: %s", share_words(rows$mean))
}
