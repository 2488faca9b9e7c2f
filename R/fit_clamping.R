# Both answers where it matters: an answer may depend on records outside the bounds. Under "clamp", the model's tails determine how many records are outside,
# and how far. If the bounds are natural limits, none are. If the expected share outside is not negligible, the release is also fitted as if its bounds were
# natural limits (stat_outside.R), by the method with the least expected cost. The two fits are compared, for each parameter: |difference of means| / posterior
# sd; for the print, the ratio of the lengths of their 90% intervals as well.
#
# The second fit has its own seeds, derived from the first one's: draws are the same with or without it. It costs as much as `beside_run`, at most `beside_seconds`
# or the expected cost of the fit itself. Otherwise it is skipped, and the fit says so. In a pool it has no more iterations than the fit itself, and half of
# the default's chains; the share outside is known where each site's draws have all parameters of its records, and otherwise both are always fitted.

# Shares of values beyond the bounds below this are negligible.
negligible_share <- 0.001

# posterior standard deviations
hangs_on <- 0.5
# lengths of intervals that differ by no more are about the same
about_ratio <- 1.25

beside_run <- list(chains = 2, iter = 1500, warmup = 500, thin = 1)
beside_seconds <- 2

# A list: `share` beyond the bounds, `shares` of single variables, `table` of both answers, or why there is none, `skipped`. NULL where nothing is compared.
compare_clamping <- function(fit, refit = NULL) {
  if (isFALSE(fit$asked$control$beside) || !has_clamping(fit)) return(NULL)
  share <- share_beyond(fit)
  if (!is.na(share) && share <= negligible_share || is.na(share) && !is_pooled(fit)) return(NULL)
  made <- if (is_pooled(fit)) pool_beside(fit, refit) else fit_beside(fit)
  if (is.character(made)) return(list(share = share, skipped = made))
  list(share = share, shares = shares_beyond(fit), table = both_answers(fit, made))
}

# Does the fit account for clamping, which a fit without it would not?
has_clamping <- function(fit) !is.null(fit$chains) && !is.null(fit$words) && takes_clamping(engine_of(fit), fit$release, fit$bound)

takes_clamping <- function(engine, release, bound) {
  if (!engine_clamps(engine, bound) || isTRUE(bound$callbacks) || isTRUE(bound$natural) || !without_refusal(check_records_distribution(bound))) return(FALSE)
  any(vapply(if (inherits(release, "noiseaware_release")) list(release) else release, may_clamp, TRUE))
}

may_clamp <- function(release) {
  any(vapply(lapply(release_parts(release), `[[`, "statistic"), function(s) says_outside(s) && !is_dropped(s) && !all_natural(list(s)), TRUE))
}

# Expected share of a model's values beyond the bounds that clamp them: what the method reports, or of records that are drawn.
share_beyond <- function(fit) if (!is.null(fit$chains[[1L]][["outside"]])) outside_bounds(fit)[["share"]] else sum(shares_beyond(fit))

# of each column: in a pool of the records of all sites, NA where draws do not have all parameters of a site's records
shares_beyond <- function(fit) {
  if (!is_pooled(fit)) return(shares_in_records(fit, own_parameters(fit), fit$release))
  own <- reported_as(fit, fit$bound$parameters)
  of <- function(site) if (is.null(fit$problem$partial)) own_parameters(fit) else plain_matrix(draws_of_site(fit, site))[, own, drop = FALSE]
  if (!is.null(fit$problem$partial) && !all(own %in% fit$problem$partial$reported)) return(NA_real_)
  n <- vapply(names(fit$release), function(site) as.double(fit$release[[site]]$n %||% mean(site_size_draws(fit, site))), 0)
  Reduce(`+`, Map(function(site, weight) weight * shares_in_records(fit, of(site), fit$release[[site]]), names(n), n / sum(n)))
}

# in records that are drawn; a row of `values` a draw of the model's parameters, in their order
shares_in_records <- function(fit, values, release, draws = 40L, records = 100L) {
  bound <- fit$bound
  bounds <- tightest_bounds(bound$columns$name, release_parts(release))
  rows <- round(seq(1, nrow(values), length.out = draws))
  stream <- new_stream(fit$words, fit$run$chains + 20L)
  beyond <- 0
  for (i in rows) {
    made <- .Call(ffi_model_records, bound$spec, bound_theta(bound, stats::setNames(values[i, ], bound$parameters)), records, stream)
    stream <- made$state
    beyond <- beyond + rowSums(t(made$records) < bounds$lower | t(made$records) > bounds$upper)
  }
  stats::setNames(beyond / (draws * records), bound$columns$name)
}

# How it would be fitted as if bounds were natural limits, with the `seconds` that this is expected to take; or why it is not. `fit`: what there is before a run
plan_beside <- function(fit, prior_n) {
  release <- declare_outside(fit$release, "none")
  bound <- bind_model(settle_released(fit$asked$model, release, fit$method), release$statistic)
  # an approximation that allows for bounds takes them for clamps
  without_bounds <- function(method) !isFALSE(engine_exact(as_engine(method), bound)) || !engine_clamps(as_engine(method), bound)
  methods <- Filter(without_bounds, able_methods(release, bound, list()))
  each <- function(method, on, of) predict_cost(cost_features(method, on, of, prior_n = prior_n))$iteration
  costs <- vapply(stats::setNames(nm = methods), each, 0, release, bound) * beside_run$chains * beside_run$iter
  own <- each(fit$method, fit$release, fit$bound) * fit$run$chains * fit$run$iter
  if (length(costs) == 0L) return("no method can fit it without clamping")
  if (!isTRUE(min(costs) <= max(own, beside_seconds))) return(sprintf("that would take %s", about_time(min(costs))))
  list(method = methods[which.min(costs)], release = release, bound = bound, seconds = min(costs))
}

# The fit as if bounds were natural limits, or why there is none
fit_beside <- function(fit) {
  plan <- plan_beside(fit, fit$problem$prior_n)
  if (is.character(plan)) return(plan)
  run <- c(beside_run, list(seed = chain_seed(fit$words, 4242L)))
  tryCatch(without_troubles(without_progress(suppressMessages(sample_method(plan$method, plan$release, plan$bound, run, prior_n = fit$problem$prior_n)))),
           noiseaware_error = function(e) "the fit without clamping failed")
}

# `refit`: samples a pool again, given releases and a run
pool_beside <- function(fit, refit) {
  natural <- function(release) if (may_clamp(release)) declare_outside(release, "none") else release
  release <- if (is_of_groups(fit)) natural(fit$problem$groups$release) else lapply(fit$release, natural)
  refit_beside(fit, refit, release) %||% "the fit without clamping failed"
}

# `...`: the releases, and how they are pooled. NULL where that fails
refit_beside <- function(fit, refit, ...) {
  run <- c(beside_run, list(seed = chain_seed(fit$words, 4242L)))
  run[c("iter", "warmup")] <- lapply(c("iter", "warmup"), function(name) min(beside_run[[name]], fit$run[[name]]))
  tryCatch(without_troubles(without_progress(suppressMessages(suppressWarnings(refit(..., run = run), classes = "noiseaware_warning_method")))),
           noiseaware_error = function(e) NULL)
}

both_answers <- function(fit, other) {
  of <- if (is_pooled(fit)) function(fit) setdiff(posterior::variables(fit$draws), size_names(names(fit$release))) else function(fit) reported_parameters(fit$bound)
  names <- intersect(of(fit), of(other))
  a <- parameter_matrix(fit)[, names, drop = FALSE]
  b <- parameter_matrix(other)[, names, drop = FALSE]
  sd <- apply(a, 2L, stats::sd)
  # of the two means, in those units
  error <- sqrt(monte_carlo_error(fit, names)^2 + monte_carlo_error(other, names)^2) / sd
  # of the 90% intervals: of heavy tails, sds are too uncertain
  width <- function(draws) drop(diff(draws_quantiles(draws, c(0.05, 0.95))))
  data.frame(parameter = names, mean = colMeans(a), sd = sd, other = colMeans(b), other_sd = apply(b, 2L, stats::sd),
             difference = (colMeans(b) - colMeans(a)) / sd, error = error, ratio = width(a) / width(b), row.names = NULL)
}

monte_carlo_error <- function(fit, names) {
  without_capping(vapply(names, function(name) as.double(posterior::mcse_mean(posterior::extract_variable_matrix(fit$draws, name))), 0))
}

# parameters whose means differ by more than `shift` posterior standard deviations, the most first
differing_answers <- function(table, shift) {
  table <- table[which(abs(table$difference) - 2 * table$error > shift), ]
  table[order(-abs(table$difference)), ]
}

# `under`: what the two answers assume
answer_words <- function(table, under) {
  answer <- function(mean, sd, under) sprintf("%s (sd %s) %s", format_number(mean, 3), format_number(sd, 2), under)
  paste0(table$parameter, ": ", answer(table$mean, table$sd, under[1L]), ", ", answer(table$other, table$other_sd, under[2L]))
}

# for a warning
answer_bullets <- function(found, under) {
  shown <- utils::head(found, 4L)
  c(stats::setNames(paste0(answer_words(shown, under), "."), rep("x", nrow(shown))),
    x = if (nrow(found) > nrow(shown)) paste0("Also: ", shorten_list(found$parameter[-seq_len(nrow(shown))], 5L), "."))
}

# for a print
answer_lines <- function(heading, found, under) {
  words <- if (nrow(found)) answer_words(utils::head(found, 4L), under)
  if (length(words)) paste0("  ", format(c(heading, rep("", length(words) - 1L)), width = 11L), words)
}

outside_or_not <- c("with clamped records", "if no record lies outside")

clamping_trouble <- function(fit) {
  found <- if (!is.null(fit$clamping$table)) differing_answers(fit$clamping$table, hangs_on)
  if (is.null(found) || nrow(found) == 0L) return(NULL)
  list(list(kind = "clamping", text = c(
    paste0("The answer depends on records outside the bounds", if (!is.na(fit$clamping$share))
      sprintf(", where %s%% of the records are expected%s", format_number(100 * min(fit$clamping$share, 1), 2), shares_words(fit$clamping$shares)), "."),
    answer_bullets(found, outside_or_not),
    i = "These draws are correct if values outside the bounds were moved to the nearest bound.",
    i = paste("If the bounds are natural limits, as for a score, a count or a 0/1 variable, declare this: `outside = \"none\"` in the statistic, or",
              "declare_outside(release, \"none\"). If only one bound is, such as 0 for incomes, name the side where records may lie outside: \"above\" or \"below\"."))))
}

# whose bounds
shares_words <- function(shares) {
  shares <- sort(shares[shares > negligible_share], decreasing = TRUE)
  if (length(shares)) paste0(": ", shorten_list(sprintf("%s %s%%", names(shares), format_number(100 * shares, 2)), 5L)) else ""
}

# for a print
clamping_lines <- function(fit) {
  if (is.null(fit$clamping)) return(NULL)
  if (!is.null(fit$clamping$skipped)) return(paste0("  clamping   not compared with natural limits: ", fit$clamping$skipped))
  found <- differing_answers(fit$clamping$table, hangs_on)
  if (nrow(found) == 0L) {
    ratio <- exp(max(abs(log(fit$clamping$table$ratio)), 0, na.rm = TRUE))
    if (ratio <= about_ratio) return("  clamping   the answer is about the same if no record lies outside the bounds")
    return(c(sprintf("  clamping   if no record lies outside the bounds, means are about the same, and 90%% intervals differ in length by a factor of up to %s",
                     format_number(ratio, 2)), natural_line))
  }
  c(answer_lines("clamping", found, outside_or_not), natural_line)
}

natural_line <- "             if the bounds are natural limits, fit declare_outside(release, \"none\")"
