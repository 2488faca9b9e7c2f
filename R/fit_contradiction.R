# Does the release contradict the model? Two posterior predictive checks of all published totals, on draws of the parameters theta and of the
# confidential totals s that the chains hold, for every method that has such draws:
#
#   noise     u = (z - s) / scale is noise if the model is right: independent, of known distribution. q_j = P(|noise_j| >= |u_j|) are then uniform,
#             and the k-th least of K has the distribution function of a Beta(k, K - k + 1). The discrepancy of a draw is the least of these
#             probabilities over k, times the number of k (Bonferroni): it sees one total that is far off, or several that are somewhat off (three of
#             eight at 5 noise scales: 1e-4). Its mean over the draws is the posterior predictive p-value.
#   records   The records can take up what the noise does not: imputed ones are then improbable under theta. So z itself is compared with its
#             distribution under draws of theta: mean and variance of simulated records, of noise, and of theta. p_j is the tail of a normal
#             plus the noise's distribution, and K min p_j the p-value.
#
# A posterior predictive p-value is conservative: under the model P(p <= a) <= 2 a (Meng 1994, Annals of Statistics 22), and far less where the posterior
# adapts to the totals. By that the limits below give a false alarm in at most 1.2 of 1,000 releases. In about 1,500 simulated releases of right models (normal,
# linear, logistic, Poisson, table; n from 5 to 30,000, epsilon from 0.3 to 200) there were two, of chains that were short or had not converged.
#
# In pools the noise of all sites is checked together. Their records are not simulated.
#
# Cost: `predicted_records` simulated records, whatever n is.

noise_limit <- 5e-4
records_limit <- 1e-4

# of how many draws; how many simulated records in all of them
checked_draws <- 200L
predicted_draws <- 20L
predicted_records <- 1e5

# order statistics beyond this are not looked at
most_order <- 50L

# A list of one trouble, or NULL
contradiction_trouble <- function(fit) {
  totals <- checked_totals(fit)
  if (is.null(totals)) return(NULL)
  noise <- noise_check(fit, totals)
  records <- if (!is_pooled(fit)) records_check(fit, totals)
  if (noise$p >= noise_limit && !isTRUE(records$p < records_limit)) return(NULL)
  # of each total, how far it is from what the model predicts, by the check that finds more
  away <- if (isTRUE(records$p / records_limit < noise$p / noise_limit)) records else noise
  far <- which(away$component < max(1e-3 / nrow(totals), 10 * min(away$component)))
  far <- far[order(away$component[far], -abs(away$distance[far]))]
  shown <- utils::head(far, 4L)
  unit <- if (identical(away, noise)) "noise scales" else "standard deviations"
  each <- sprintf("%s by %s", totals$name[shown], format_number(floor(abs(away$distance[shown])), 3))
  reasons <- contradiction_reasons(fit$bound, totals[far, ], narrow_variables(fit))
  several <- if (is_of_groups(fit)) "groups" else "sites"
  list(list(kind = "contradiction", text = c(
    sprintf("The release contradicts the model: published numbers are far from what it predicts (%s %s%s).", paste(each, collapse = ", "), unit,
            if (length(far) > length(shown)) sprintf("; %d more are far", length(far) - length(shown)) else ""),
    stats::setNames(reasons$why, rep("x", length(reasons$why))),
    i = reasons$advice,
    i = if (identical(fit$pool, "complete")) sprintf("All %s have the same parameters; `pool = \"partial\"` lets them differ.", several),
    i = if (!is_pooled(fit)) "bayesplot::pp_check() shows what the model predicts for each number.",
    i = "If the model can produce these numbers, the chains are stuck.")))
}

# Published totals with noise of known distribution: a row each, `column` of the draws of totals that the chains hold. NULL where there are none.
checked_totals <- function(fit) {
  if (!is.matrix(fit$chains[[1L]]$statistic)) return(NULL)
  if (!is_pooled(fit)) return(if (!has_public(fit$release)) release_totals(fit$release, fit$problem$summed))
  index <- lapply(stats::setNames(nm = names(fit$release)), function(site) fit$problem$sites[[site]]$index %||% seq_along(fit$release[[site]]$value))
  before <- cumsum(lengths(index)) - lengths(index)
  do.call(rbind, unname(Map(function(site, index, before) {
    totals <- release_totals(fit$release[[site]], index)
    if (is.null(totals)) return(NULL)
    totals$column <- before + totals$column
    totals$site <- site
    if (!is_of_groups(fit)) totals$name <- site_variables(totals$name, site)
    totals
  }, names(index), index, before)))
}

# `summed`: which of its components
release_totals <- function(release, summed) {
  if (length(summed) == 0L) return(NULL)
  rows <- lapply(release_parts(release), function(part) {
    if (!part$mechanism$kernel %in% c("absolute", "squared")) return(NULL)
    data.frame(index = part$index, absolute = part$mechanism$kernel == "absolute", value = part$value, scale = part$scale, unit = part$granularity,
               variables = I(component_variables(part$statistic)), component = part$statistic$components)
  })
  totals <- do.call(rbind, rows)
  if (is.null(totals)) return(NULL)
  totals$column <- match(totals$index, summed)
  totals$name <- names(release$value)[totals$index]
  totals <- totals[!is.na(totals$column) & is.finite(totals$value) & totals$scale > 0, ]
  if (nrow(totals)) totals
}

# draws x columns of one chain; in a pool those of all sites, side by side
held_totals <- function(fit, chain) {
  if (!is_pooled(fit)) return(chain$statistic)
  do.call(cbind, lapply(names(fit$release), function(site) site_totals(fit$problem, site, chain$statistic)))
}

# ---- noise ---------------------------------------------------------------------------------------------

noise_check <- function(fit, totals) {
  held <- do.call(rbind, lapply(fit$chains, function(chain) held_totals(fit, chain)[, totals$column, drop = FALSE]))
  held <- held[round(seq(1, nrow(held), length.out = min(checked_draws, nrow(held)))), , drop = FALSE]
  u <- sweep(totals$value - t(held), 1L, totals$scale, "/")
  tail <- noise_tail(u, totals$absolute, totals$unit / totals$scale)
  list(p = mean(order_p(tail)), component = rowMeans(tail), distance = apply(u, 1L, stats::median))
}

# P(|noise| >= |u|), a row a total; noise in units of its scale, on a grid of that `unit`, 0 for none
noise_tail <- function(u, absolute, unit) {
  tail <- abs(u)
  tail[absolute, ] <- exp(-tail[absolute, ]) * 2 / (1 + exp(-unit[absolute]))
  tail[!absolute, ] <- 2 * stats::pnorm(-pmax(tail[!absolute, ] - unit[!absolute] / 2, 0))
  pmin(tail, 1)
}

# Of each column, K probabilities that are uniform and independent under the model: see the head.
order_p <- function(tail) {
  count <- nrow(tail)
  k <- seq_len(min(count, most_order))
  least <- matrix(tail[order(col(tail), tail)], count)[k, , drop = FALSE] # each column sorted
  least <- stats::pbeta(least, k, count - k + 1L)
  pmin(1, length(k) * do.call(pmin, lapply(k, function(i) least[i, ])))
}

# ---- records -------------------------------------------------------------------------------------------

records_check <- function(fit, totals) {
  predicted <- predicted_totals(fit)
  if (is.null(predicted)) return(NULL)
  at <- match(totals$index, predicted$index)
  sd <- sqrt(predicted$variance[at])
  distance <- totals$value - predicted$mean[at]
  noise_sd <- totals$scale * ifelse(totals$absolute, sqrt(2), 1)
  tail <- ifelse(totals$absolute, normal_laplace_tail(distance, sd, totals$scale), 2 * stats::pnorm(-abs(distance) / sqrt(sd^2 + totals$scale^2)))
  list(p = nrow(totals) * min(1, tail, na.rm = TRUE), component = ifelse(is.na(tail), 1, tail), distance = distance / sqrt(sd^2 + noise_sd^2))
}

# P(|N + L| >= |x|), N normal with mean 0 and that sd, L Laplace with that scale:
# P(N + L > x) = Phi(-x / sd) + (e^{-x/b} Phi(x/sd - sd/b) - e^{x/b} Phi(-x/sd - sd/b)) e^{sd^2 / 2 b^2} / 2
normal_laplace_tail <- function(x, sd, scale) {
  x <- abs(x)
  # where one is negligible its size does not matter, as long as the ratio is a number
  sd <- pmax(sd, 1e-6 * scale)
  scale <- pmax(scale, 1e-5 * sd)
  ratio <- sd / scale
  side <- function(sign) exp(ratio^2 / 2 - sign * x / scale + stats::pnorm(sign * x / sd - ratio, log.p = TRUE))
  pmin(1, 2 * stats::pnorm(-x / sd) + pmax(side(1) - side(-1), 0))
}

# Mean and variance of the totals before noise under draws of theta. NULL where records cannot be simulated.
predicted_totals <- function(fit) {
  bound <- fit$bound
  if (is.null(fit$words) || isTRUE(bound$callbacks) || !is.null(bound$moments) || is.null(bound$spec)) return(NULL)
  parts <- Filter(function(part) part$statistic$kind %in% c("totals", "cells") && part$statistic$name != "custom", release_parts(fit$release))
  if (length(parts) == 0L) return(NULL)
  clamps <- engine_clamps(engine_of(fit), bound)
  statistics <- lapply(parts, function(part) {
    if (clamps || !says_outside(part$statistic) || is_dropped(part$statistic)) part$statistic else with_outside(part$statistic, "none")
  })
  draws <- all_parameters(fit)
  rows <- round(seq(1, nrow(draws), length.out = min(predicted_draws, nrow(draws))))
  n <- if (is.null(fit$release$n)) draws[rows, "n"] else rep_len(fit$release$n, length(rows))
  size <- pmax(2, pmin(n, ceiling(predicted_records / length(rows))))
  stream <- new_stream(fit$words, fit$run$chains + 21L)
  theta <- draws_theta(bound, draws[rows, bound$parameters, drop = FALSE])
  records <- Map(function(k, size) {
    made <- .Call(ffi_model_records, bound$spec, theta[, k], size, stream)
    stream <<- made$state
    made$records
  }, seq_along(rows), size)
  # in one piece: to read a small data set costs far more than its sums
  data <- record_frame(do.call(rbind, records), bound$columns, data_levels(bound))
  each <- lapply(statistics, function(statistic) {
    Map(moments_over_records, list(statistic), list(statistic_spec(statistic)), set_records(statistic, data, size, NULL, TRUE), size, size < n)
  })
  over <- function(name) do.call(rbind, lapply(each, function(sets) matrix(unlist(lapply(sets, `[[`, name)), ncol = length(rows))))
  mean <- sweep(over("mean"), 2L, n, "*")
  variance <- over("variance")
  averaged <- function(weight) drop(variance %*% weight) / length(rows)
  between <- apply(mean, 1L, stats::var)
  list(index = unlist(lapply(parts, `[[`, "index")), mean = rowMeans(mean),
       variance = averaged(n) + pmax(0, between - averaged(n^2 / size)) + between / length(rows))
}

# Mean and variance of each component over records. Of counts, each 0 or 1 for a record, without a matrix of records and cells. `part`: there are fewer
# records than in the release. A cell without any of them is not impossible: its variance is as if one more record were in it.
moments_over_records <- function(statistic, spec, records, size, part) {
  linear <- inherits(statistic, "stat_linear")
  if (statistic$kind == "cells" && !linear) {
    mean <- .Call(ffi_stat_total, spec, records) / size
    return(list(mean = mean, variance = mean * (1 - mean) * size / (size - 1) + part / size))
  }
  each <- .Call(ffi_stat_eval, spec, records)
  mean <- colMeans(each)
  of_cells <- linear && statistic$statistic$kind == "cells"
  one <- if (of_cells && part) unname(tapply(statistic$queries$weight^2, query_rows(statistic), max)) / size else 0
  list(mean = mean, variance = colSums(sweep(each, 2L, mean)^2) / (size - 1) + one)
}

# ---- reasons -------------------------------------------------------------------------------------------

# Of each component of a statistic the variables that it is made of, a list.
component_variables <- function(statistic) UseMethod("component_variables")

# those of all, where no more is known
#' @export
component_variables.default <- function(statistic) {
  columns <- statistic$columns$variable
  if (!is.null(statistic$powers)) return(lapply(seq_len(nrow(statistic$powers)), function(j) unique(columns[statistic$powers[j, ] > 0])))
  if (!is.null(statistic$margins)) {
    cells <- vapply(statistic$margins, function(m) prod(lengths(cell_labels(statistic))[m]), 0)
    return(rep(unname(statistic$margins), cells))
  }
  rep(list(unique(columns)), length(statistic$components))
}

#' @export
component_variables.stat_crossprod <- function(statistic) {
  of <- as.list(statistic$columns$variable)
  c(of, Map(function(i, j) unique(c(of[[i]], of[[j]])), statistic$pairs$first, statistic$pairs$second))
}

#' @export
component_variables.stat_linear <- function(statistic) {
  of <- component_variables(statistic$statistic)
  unname(lapply(split(statistic$queries$column, query_rows(statistic)), function(at) unique(unlist(of[at]))))
}

# `totals` that are far off, the farthest first. Pairs say more than single variables: these are off, too, where the model finds a compromise.
contradiction_reasons <- function(bound, totals, narrow = character()) {
  sizes <- lengths(totals$variables)
  told <- if (any(sizes > 1L)) sizes > 1L else sizes == 1L
  found <- unique(lapply(totals$variables[told], sort))
  each <- lapply(utils::head(found, 3L), contradiction_reason, bound = bound, narrow = narrow)
  list(why = unique(unlist(lapply(each, `[[`, "why"))), advice = unique(unlist(lapply(each, `[[`, "advice"))))
}

# Default priors have 5% of the probability of a standard deviation below about this share of the bounds' width, and next to none far below: they hold
# the spread of data in far wider bounds up, against the noise.
narrow_share <- 0.06

# Numbers with a spread that the default prior hardly expects; none where the user has given its scale
narrow_variables <- function(fit) {
  bound <- fit$bound
  model <- bound$model
  prior <- if (inherits(bound, "bound_normal")) model$prior$sd else model$covariates$cov
  if (is.null(prior) || inherits(prior, "fixed") || !is.null(prior$rate) || !is.null(prior$scale)) return(character())
  columns <- bound$columns
  names <- if (inherits(bound, "bound_normal")) rep("sd", nrow(columns)) else sprintf("cov[%s,%s]", columns$name, columns$name)
  known <- names %in% posterior::variables(fit$draws) & !columns$variable %in% names(bound$levels)
  spread <- vapply(names[known], function(name) mean(posterior::extract_variable(fit$draws, name)), 0)
  spread <- ifelse(names[known] == "sd", spread, sqrt(spread))
  columns$variable[known][spread < narrow_share * (columns$upper - columns$lower)[known]]
}

contradiction_reason <- function(variables, bound, narrow = character()) {
  names <- paste0("`", variables, "`", collapse = " and ")
  response <- if (!is.null(response_of(bound))) bound$columns$variable[1L]
  advice <- if (any(variables %in% response)) spread_advice(bound) else count_advice(variables, bound)
  if (all(variables %in% narrow)) {
    prior <- if (inherits(bound, "bound_normal")) "prior_nig(rate = )" else "prior_niw(scale = )"
    return(list(why = sprintf("The prior hardly allows the spread of %s to be this small relative to the bounds, or its distribution is not the model's.", names),
                advice = sprintf("If values vary over little of the bounds, give a prior for a smaller spread: %s, see ?priors.", prior)))
  }
  if (length(variables) == 1L) return(list(why = single_reason(variables, names, bound), advice = advice))
  if (length(variables) == 2L && any(variables %in% response)) {
    other <- setdiff(variables, response)
    return(list(why = sprintf("The regression does not fit: how `%s` depends on `%s`, or its spread about its mean.", response, other), advice = advice))
  }
  factors <- intersect(variables, names(bound$levels))
  lone <- intersect(variables, names(bound$model$covariates$lone))
  if (length(lone)) return(list(why = sprintf("The model has no dependence of %s: a covariate with its own distribution is independent of the others.", names)))
  if (length(factors) && !isTRUE(bound$dependent)) {
    return(list(why = sprintf("The model has no dependence of %s.", names), advice = dependence_advice(bound)))
  }
  normal <- length(factors) == 0L && is_of_normal_numbers(bound)
  list(why = sprintf(if (normal) "The dependence of %s is not as for normal variables." else "The model has no dependence of %s this strong or of this kind.", names))
}

single_reason <- function(variable, name, bound) {
  if (variable %in% names(bound$levels)) return(sprintf("The model does not fit: how many records have each level of %s.", name))
  lone <- bound$model$covariates$lone[[variable]]$kind
  response <- !is.null(response_of(bound)) && variable == bound$columns$variable[1L]
  word <- if (!is.null(lone)) lone else if (response) gsub("_", " ", stats_word(bound)) else if (is_of_normal_numbers(bound)) "normal" else bound$model$name
  sprintf("The distribution of %s is not the model's (%s).", name, word)
}

stats_word <- function(bound) {
  if (inherits(bound, "bound_glm")) return(family_of(bound$model)$family)
  if (inherits(bound, "bound_lm")) "normal" else if (inherits(bound, "bound_student")) "Student-t" else bound$model$name
}

is_of_normal_numbers <- function(bound) inherits(bound, c("bound_regression", "bound_mvnormal", "bound_normal"))

dependence_advice <- function(bound) {
  if (!takes_factors(bound$model) || is.null(bound$base)) return(NULL)
  model <- bound$model
  model$factors <- "dependent"
  if (is_dependent(bound$base[-1L, ], model, bound$levels)) "With factors = \"dependent\" in the model, factors depend on each other and on the numbers."
}

count_advice <- function(variables, bound) {
  poisson <- Filter(function(covariate) inherits(covariate, "covariate_count") && is.null(covariate$size), bound$model$covariates$lone[variables])
  if (length(poisson)) "`covariate_count(size = prior_gamma(1, 0.2))` is for counts that vary more than a Poisson distribution allows."
}

# counts that vary more than a Poisson distribution lets them
spread_advice <- function(bound) {
  poisson <- inherits(bound, "bound_glm") && family_of(bound$model)$family == "poisson"
  if (poisson) "`family = \"negative_binomial\"` is for counts that vary more than a Poisson distribution allows."
}
