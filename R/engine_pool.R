# Pools releases of different records, one for each site: see src/pool/nuts_chain.c.

#' Several owners: pool releases of different people
#'
#' Hospitals, states or months publish separately. Instead of one release, give a named list of their releases, together with `pool`. The posterior is then for
#' all of them: `sample_posterior(list(north = first, south = second), model, pool = "complete")`.
#'
#' @section How sites are pooled:
#' * `"complete"`: all sites have the same parameters. Each site keeps its own noise, so a precise release counts for more than a vague one. (Adding up the
#'   noisy totals would lose this.)
#' * `"partial"`: the parameters of the sites are normal about a common mean, with standard deviations that have their own priors; see [partial_pooling()]. Some
#'   parameters can be the same in all sites: with `pool = ~ (Intercept)`, only the intercept differs.
#' * `"walk"`: sites are in order, such as weeks, and the parameters of each site are normal about the previous site's, or about the line through the previous two; see
#'   [partial_pooling()].
#' * `"none"`: separate fits, side by side, by any method.
#'
#' Sites may differ in the number of records, the bounds, the mechanism, the statistic, and in which of its components they publish, as long as each release has
#' what the model needs. Priors that are scaled by the bounds use bounds that enclose those of every site.
#'
#' **An unknown number of records.** Each site with an unknown number of records (`n = NULL` in [as_release()], or `neighbours = "add_remove"` in [release()])
#' has a prior for it. `prior_n` is one [prior][prior_n] for all of these sites, or a named list of priors, such as `prior_n = list(north =
#' prior_n("poisson", mean = 200))`; sites that are not in the list have `prior_n("log_uniform")`. The numbers are among the draws, as `n[north]`.
#' There are three methods:
#' * `"augment"` imputes the records of all sites. It is exact, and its cost grows with their number.
#' * `"collapse"` samples the tables of counts, or normal totals, at a cost that does not depend on the number of records. For normal totals it is chosen if
#'   each of these sites is expected to have 500 records or more. If you ask for it otherwise, it assumes that each site has more records than the release has
#'   variables. The printed fit says so, and a warning appears if fewer are likely.
#' * `"clt"` is approximate, as below, also at a cost that does not depend on the number of records. It assumes two records or more. It is not available for
#'   [model_expfam()] with complete pooling, or for truncated priors.
#'
#' With `pool = "none"`, any method works that works for the site alone. If the sites of a regression publish nothing about their number of records, chains mix
#' slowly, and a warning says so. A noisy number ([stat_size()]) prevents this.
#'
#' @section What can be pooled:
#' **Rates and normal totals.** Any release that method `"collapse"` accepts (counts, totals) can be pooled by [model_bernoulli()], [model_poisson()] and
#' [model_exponential()]. Totals of variables and of products of two can be pooled by [model_normal()], [model_mvnormal()] and [model_lm()] without factors. The
#' posterior is exact; for numbers, only if no record lies outside its site's bounds, and the printed fit shows how likely that is. Totals of variables and of their
#' squares may be exact ([mech_exact()]) at some or all sites. Hamiltonian Monte Carlo samples the parameters and the totals of all sites. Its cost grows with
#' the number of sites, not with the number of records. In two cases it may not be the best method. Either the numbers of records are known and only sums were
#' published, or a short run expects more than 1 per cent of the records outside the bounds. Then `method = "auto"` chooses `"augment"` if 1,000 effective draws
#' are expected to take less than five minutes. Otherwise, for rates only, it chooses `"clt"`, which accounts for bounds there, with a warning.
#'
#' **Counts** under [model_categorical()], [model_naive_bayes()] and [model_table()] (saturated, decomposable or log-linear) are exact by method `"collapse"`,
#' with complete and partial pooling and in walks. The table of each site is sampled given its parameters, and all parameters given the tables. The cost does
#' not depend on the number of records, which may be unknown, and numbers may be exact ([mech_exact()]). This method is chosen if numbers are exact, if the
#' number of records of a site is unknown, or if there are more than about 60 records per cell. Margins must be inside the cliques of a decomposable model. The
#' same holds for binary, ordered and categorical responses in [model_logistic()] and [model_glm()] if all covariates are factors. For them, the method is
#' chosen if numbers are exact, or from about 10 records per combination of levels (200 with complete pooling).
#'
#' **Complete pooling of every model** is exact by method `"augment"`. It imputes the records of all sites, each under its own statistic, bounds and mechanism,
#' and draws the parameters given all of them. It works for every model, statistic and noise, including [mech_randomized_response()] and models made of R
#' functions, but not for [mech_exact()], which needs method `"collapse"`. The cost of an iteration grows with the number of records of all sites. It is chosen
#' if totals cannot be sampled as above and 1,000 effective draws are expected to take less than five minutes. Otherwise ask for it with `method = "augment"`,
#' for example if records lie outside the bounds.
#'
#' Otherwise, complete pooling is **approximate**, by method [`"clt"`][method_clt], with a warning: the totals of each site are normal given the parameters that
#' all sites share. It works wherever this method works for one site, including [model_logistic()] and [model_glm()] with numeric covariates,
#' [model_categorical()] and [model_naive_bayes()] given counts, [model_lm()] with factors, and [model_expfam()]. The printed fit says that it is approximate
#' and, if bounds are ignored, how many records are expected outside them. You can ask for it with `method = "clt"`. A fit accepts at most 2,000 released
#' numbers over all sites (300 for categories).
#'
#' **Partial pooling and walks of other models** are also exact by method `"augment"`: the records of each site are imputed under the site's own parameters. It
#' works for [model_categorical()], [model_naive_bayes()], [model_table()], [model_logistic()], [model_glm()], [model_mvnormal()] and [model_lm()] with or
#' without factors, inside the bounds or not. It also works for truncated priors (`within`), for other statistics of rates, and for [model_expfam()] and
#' [model_custom()] with a `log_density`, if their parameters have no bounds. Probabilities of more than two levels vary through their coordinates, such as
#' `logit(prob[a])`: the logit of a level against the later ones. For [model_glm()] with numeric covariates, [model_lm()] with factors, [model_categorical()]
#' and [model_naive_bayes()], method `"clt"` is approximate in the way described above. Its cost grows only with the number of sites, and it is chosen if
#' imputing records would take too long.
#'
#' | Model | `"complete"` | `"partial"`, `"walk"` | `"none"` |
#' | --- | --- | --- | --- |
#' | [model_bernoulli()], [model_poisson()], [model_exponential()] | exact | exact | all methods |
#' | [model_normal()], [model_mvnormal()] | exact inside the bounds, or by `"augment"` | exact inside the bounds, or by `"augment"` | all methods |
#' | [model_lm()], numeric covariates | exact inside the bounds, or by `"augment"` | exact inside the bounds, or by `"augment"` | all methods |
#' | [model_logistic()], [model_glm()], numeric covariates | exact by `"augment"`, approximate by `"clt"` | exact by `"augment"`, approximate by `"clt"` | all methods |
#' | [model_lm()] with factors | exact by `"augment"`, approximate by `"clt"` | exact by `"augment"`, approximate by `"clt"` | all methods |
#' | [model_categorical()] of counts | exact, or approximate by `"clt"` | exact, or approximate by `"clt"` | all methods |
#' | [model_naive_bayes()] of counts | exact, or approximate by `"clt"` | exact, or approximate by `"clt"` | all methods |
#' | [model_table()] | exact | exact | all methods |
#' | responses with levels, only factors as covariates | exact | exact | all methods |
#' | all others | exact by `"augment"`, or approximate by `"clt"` | where the density of records is known | all methods |
#'
#' @section Same people, or different ones:
#' A release does not say whom it is about. Several releases of the **same** people are combined into one by [add_release()]; a list would be wrong. Releases of
#' **different** people are given as a list, with `pool`. Two sites with identical releases are an error if the noise is continuous or at least ten numbers
#' agree, because that is no coincidence.
#'
#' @section Errors: `noiseaware_error_pool`: no `pool`, sites without names, two sites with identical releases, sites with different variables, or a model that
#'   does not fit all of them. Also a site with an unknown number of records if it must be known: for totals of rates by `"collapse"`, and for R functions that
#'   see all records at once. `noiseaware_error_method`: a model that cannot be pooled.
#' @family sites and groups
#' @concept partial pooling
#' @concept mixed model
#' @concept hierarchical model
#' @name pooling
#' @seealso [pool_methods] for what to do with the fit; [groups] for groups in one release.
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' north <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' south <- as_release(c("smoke=yes" = 31.7), asked, mech_gaussian(sd = 4), n = 90)
#' sites <- list(north = north, south = south)
#' sample_posterior(sites, model_bernoulli(), pool = "complete", chains = 2, iter = 400, seed = 1)
NULL

is_sites <- function(release) is.list(release) && (!is.object(release) || inherits(release, "noiseaware_sites"))

# For one further site
new_sites <- c(partial = "new", walk = "next")

# What can be done with several releases at once
poolings <- c("complete", "partial", "walk", "none")

# ---- the sites -----------------------------------------------------------------------------

check_sites <- function(releases, pool, call) {
  if (length(releases) == 0L) stop_argument("release", "a release, or a list of releases", "an empty list", call = call)
  good <- vapply(releases, inherits, TRUE, "noiseaware_release")
  if (!all(good)) {
    stop_classed("argument", "{.arg release} must be a release, or a list of releases, but its entry {which(!good)[1L]} is {describe(releases[[which(!good)[1L]]])}.",
                 call = call)
  }
  if (is.null(pool)) {
    stop_classed("pool", c("{.arg pool} must be given for a list of releases.",
                           i = paste("Releases of different people (sites): {.code \"none\"}, separate fits; {.code \"partial\"}, similar parameters;",
                                     "{.code \"complete\"}, the same parameters; {.code \"walk\"}, sites in order."),
                           i = "Releases of the same people: {.fn add_release} combines them."), call = call)
  }
  names <- trimws(names(releases) %||% rep("", length(releases)))
  names[is.na(names)] <- ""
  if (!all(nzchar(names)) || anyDuplicated(names)) {
    stop_classed("pool", c("Every site in the list {.arg release} must have a different name.",
                           x = if (all(nzchar(names))) "Several are named {.val {unique(names[duplicated(names)])}}." else
                             if (any(nzchar(names))) "Entry {which(!nzchar(names))[1L]} has none." else "The list has no names.",
                           i = "For example {.code list(north = first, south = second)}."), call = call)
  }
  check_different(releases, call)
}

unsized_sites <- function(releases) names(releases)[vapply(releases, function(r) is.null(r$n), TRUE)]

# The prior for the number of records of each site where it is unknown, by name.
check_site_priors <- function(prior_n, releases, call) {
  unknown <- unsized_sites(releases)
  several <- is.list(prior_n) && !is.object(prior_n)
  if (!several) {
    if (!is.null(prior_n) && length(unknown) == 0L) {
      stop_classed("argument", "{.arg prior_n} is a prior for unknown numbers of records, but the number is known for all sites.", call = call)
    }
    return(lapply(releases[unknown], function(release) check_size_prior(prior_n, release, call)))
  }
  wrong <- setdiff(names(prior_n), unknown)
  if (length(prior_n) && !checkmate::test_names(names(prior_n), "unique") || length(wrong)) {
    stop_classed("argument", c("{.arg prior_n} must be a prior, or a named list of priors for sites with an unknown number of records.",
                               x = if (length(wrong)) "It names {.val {shorten_list(wrong)}}." else "It has no names, or the same twice.",
                               i = if (length(unknown)) "Such sites: {.val {shorten_list(unknown)}}." else "The number is known for all sites."), call = call)
  }
  lapply(stats::setNames(nm = unknown), function(site) check_size_prior(prior_n[[site]], releases[[site]], call))
}

# Numbers with continuous noise, or many whole numbers, agree only if the release is the same.
enough_to_tell <- 10L

check_different <- function(releases, call) {
  telling <- vapply(releases, function(r) any(r$value != round(r$value), na.rm = TRUE) || length(r$value) >= enough_to_tell, TRUE)
  print <- vapply(releases[telling], function(r) rlang::hash(list(unname(r$value), unname(r$scale), r$n)), "")
  twin <- which(duplicated(print))
  if (length(twin) == 0L) return(invisible())
  pair <- names(print)[c(match(print[twin[1L]], print), twin[1L])]
  stop_classed("pool", c("The sites {.val {pair}} have the same release, number by number: it cannot be about different people.",
                         i = "Numbers that were published twice are one release. {.fn add_release} combines different releases about the same people."), call = call)
}

# The model bound to what all sites have: their variables, with bounds around those of every site.
bind_sites <- function(model, releases, call) {
  public <- list()
  seen <- character()
  for (site in names(releases)) {
    key <- rlang::hash(releases[[site]]$statistic)
    if (key %in% seen) next
    seen <- c(seen, key)
    binding <- tryCatch(bind_model(complete_model(model, releases[[site]], call), releases[[site]]$statistic, call), noiseaware_error = identity)
    if (inherits(binding, "condition")) {
      said <- c(binding$message, unname(binding$body))
      lines <- sprintf("{said[%d]}", seq_along(said))
      stop_classed("pool", c("The release of site {.val {site}} does not have what the model needs.", stats::setNames(lines, rep("x", length(said)))), call = call)
    }
    public[[site]] <- release_columns(releases[[site]]$statistic)
  }
  bind_public(complete_model(model, releases[[1L]], call), join_columns(public, call), call)
}

join_columns <- function(public, call) {
  first <- public[[1L]]
  for (site in names(public)[-1L]) {
    other <- public[[site]]
    at <- match(first$columns$name, other$columns$name)
    if (anyNA(at) || nrow(other$columns) != nrow(first$columns) || !identical(other$levels[names(first$levels)], first$levels)) {
      stop_classed("pool", c("All sites must have the same variables, with the same levels in the same order, but {.val {names(public)[1L]}} and {.val {site}} do not.",
                             x = "{.val {names(public)[1L]}}: {shown_columns(first)}.", x = "{.val {site}}: {shown_columns(other)}."), call = call)
    }
    first$columns$lower <- pmin(first$columns$lower, other$columns$lower[at])
    first$columns$upper <- pmax(first$columns$upper, other$columns$upper[at])
    first$natural <- first$natural && other$natural
  }
  first
}

shown_columns <- function(public) {
  levels <- vapply(public$levels[public$columns$variable], function(l) if (length(l)) paste0(" (", shorten_list(l, 5L), ")") else "", "")
  shorten_list(paste0(public$columns$name, levels))
}

# ---- what C needs to know ------------------------------------------------------------------

pool_problem <- function(releases, bound, call, prior_n = list()) {
  family <- pool_family(bound, call, has_exact_sites(releases))
  sites <- lapply(stats::setNames(nm = names(releases)), function(name) {
    if (family == "rates") rate_site(releases[[name]], bound, call) else totals_site(releases[[name]], bound, prior_n[[name]], call)
  })
  width <- vapply(sites, `[[`, 0L, "components")
  first <- cumsum(width) - width
  exact <- if (bound$spec$name == "categorical" || isTRUE(bound$natural)) TRUE else NA
  list(method = "pool", exact = exact, model = bound$spec, family = family, n = sum(vapply(sites, function(site) site$fields$n, 0)), size_prior = NULL,
       released = unlist(lapply(sites, `[[`, "released"), use.names = FALSE), sites = sites,
       where = unlist(Map(function(site, from) from + site$where, sites, first), use.names = FALSE), summed = seq_len(sum(width)),
       first = first, names = c(bound$parameters, size_names(names(prior_n))), site_priors = prior_n)
}

# "rates": a total whose distribution is that of one rate; "totals": of normal records. `exact`: does a site have exact numbers, which other methods do not keep?
pool_family <- function(bound, call, exact = FALSE) {
  family <- tryCatch(collapse_family(bound, call), noiseaware_error_method = function(e) "none")
  rate <- family == "total" || family == "counts" && length(bound$levels) == 1L && length(bound$levels[[1L]]) == 2L &&
    length(bound$unknown) == 1L
  if (rate) return("rates")
  if (family == "normal" && length(bound$levels) == 0L && !bound_is_cut(bound)) return("totals")
  if (bound_is_cut(bound) && exact) stop_cut_exact(bound, call)
  stop_classed("method", c(paste("Sites can be pooled under {.fn model_bernoulli}, {.fn model_poisson}, {.fn model_exponential}, {.fn model_normal},",
                                 "{.fn model_mvnormal} and {.fn model_lm} without factors; counts under {.fn model_categorical},",
                                 "{.fn model_naive_bayes} and {.fn model_table}."),
                           x = "The model is: {describe_model(bound)}{if (bound_is_cut(bound)) ', with a truncated prior'}.",
                           i = if (bound_is_cut(bound))
                             "{.code method = \"augment\"} works with it. Moves of totals integrate out the parameters, which is not possible with truncation.",
                           i = if (exact) "Methods {.val augment} and {.val clt}, which fit other models, do not keep the exact numbers of these sites." else
                             "{.code pool = \"complete\"} also works if methods {.val augment} or {.val clt} do, and {.code pool = \"none\"} for every model."),
                 call = call)
}

stop_cut_exact <- function(bound, call) {
  stop_classed("method", c("Sites with exact numbers cannot be pooled under a truncated prior.", x = "The model is: {describe_model(bound)}.",
                           i = paste("Only moves of totals keep exact numbers, and they integrate out the parameters, which is not possible with truncation.",
                                     "Imputed records do not keep exact numbers."),
                           i = "Leave out {.arg within} in the prior; or {.code pool = \"none\"} fits each site."), call = call)
}

totals_site <- function(release, bound, prior_n, call) {
  problem <- collapse_problem(release, bound, prior_n, call)
  if ("published" %in% problem$kernel) {
    stop_classed("method", "Numbers that were hidden or rounded cannot be pooled under a model of normal records.", call = call)
  }
  c(problem[c("released", "scale", "kernel", "published", "where", "times", "size_prior")],
    list(components = length(problem$released), alone = problem, fields = c(problem$fields[c("terms", "lower", "upper")], list(n = problem$n, size_spread = 0))))
}

# ---- rates ---------------------------------------------------------------------------------

# How far the noise may reach, in units of its scale, so that sums over all totals are fast.
furthest_reach <- 200

# Noise that moves of totals, or sums over them, cannot handle.
check_pooled_noise <- function(releases, bound, family, call) {
  for (release in releases) for (part in release_parts(release)) {
    if (family == "totals") check_as_noise_left(part, "collapse", call)
    if (!is_log_rate(bound) || noise_reach(part$mechanism, furthest) <= furthest_reach) next
    stop_classed("method", c("Method {.val collapse} sums over all totals that the noise leaves possible, which are too many for tails this heavy.",
                             x = "The mechanism is {format(part$mechanism)}.", i = "Method {.val augment} can use it."), call = call)
  }
}

# How the total s gives each component: constant + slope s.
rate_components <- function(release, bound, parts, call) {
  n <- release$n
  for (p in parts) check_collapse_part(p, collapse_family(bound, call), call)
  count <- length(release$value)
  if (is_log_rate(bound)) {
    is_size <- total_distribution(bound, parts, n, NULL, call)$component$is_size
    return(list(constant = n * is_size, slope = 1 - is_size))
  }
  entries <- counts_components(bound, parts, call)
  if (!is.data.frame(entries)) entries <- data.frame(component = seq_len(count), target = entries, coefficient = 1)
  sum_of <- function(values) as.vector(rowsum(c(entries$coefficient * values[entries$target + 1], numeric(count)), c(entries$component, seq_len(count))))
  list(constant = sum_of(c(n, 0, n)), slope = sum_of(c(-1, 1, 0)))
}

rate_site <- function(release, bound, call) {
  n <- as.double(release$n)
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  map <- rate_components(release, bound, parts, call)
  nodes <- rate_nodes(bound, parts, map, n)
  s <- nodes$at
  noise <- numeric(length(s))
  for (p in parts) for (k in seq_along(p$index)) {
    at <- p$index[k]
    if (map$slope[at] != 0) noise <- noise + log_noise_at(p, k, map$constant[at] + map$slope[at] * s)
  }
  if (!any(noise > -Inf)) stop_classed("pool", "No {n} records can have the exact numbers of a release.", call = call)
  kept <- range(which(noise > max(noise) - furthest))
  kept <- kept[1L]:kept[2L]
  base <- switch(bound$spec$name, poisson = ifelse(s == 0, 0, s * log(n)) - lgamma(s + 1), exponential = (n - 1) * log(s) - lgamma(n), lchoose(n, s))
  told <- moments_of(s, noise + (nodes$log_gap %||% 0))
  continuous <- if (!is.null(nodes$log_gap)) list(node = s[kept], log_gap = nodes$log_gap[kept])
  bounds <- if (is_log_rate(bound)) tightest_bounds(bound$columns$name, parts)
  times <- unlist(lapply(parts, `[[`, "times")) %||% rep(1, length(release$value))
  likely <- if (is.null(continuous)) s[which.max(noise)] else told[1L]
  information <- if (bound$spec$name == "poisson") likely + 2 * told[2L] else n # that a total has of t, at most
  list(components = 1L, released = NA_real_, where = 1L, likely = likely, noise = told[2L],
       constant = times * map$constant, slope = times * map$slope,
       fields = c(list(kind = rate_kinds[[bound$spec$name]], n = n, information = as.double(information), first = as.double(s[kept[1L]]),
                       log_weight = as.double((noise + base)[kept])), continuous, bounds))
}

# mean and standard deviation
moments_of <- function(s, log_weight) {
  weight <- exp(log_weight - max(log_weight))
  mean <- sum(weight * s) / sum(weight)
  c(mean, sqrt(sum(weight * (s - mean)^2) / sum(weight)))
}

# as in src/pool/site_rate.h
rate_kinds <- c(categorical = 0, poisson = 1, exponential = 2)

# Totals to sum over: `at`, and where they are nodes of an integral `log_gap`, of the interval that each represents.
rate_nodes <- function(bound, parts, map, n) {
  if (bound$spec$name == "exponential") return(exponential_nodes(bound, parts, map, n))
  range <- if (bound$spec$name == "poisson") whole_range(noise_range(parts, map)) else c(0, n)
  list(at = range[1L]:range[2L])
}

whole_range <- function(range) c(floor(range[1L]), max(1, ceiling(range[2L])))

# Steps between nodes are a part of the noise's scale and of the standard deviation of a total of n exponential records, whichever is less: even steps of
# x(s) = dense log(s) + fine s / scale.
exponential_nodes <- function(bound, parts, map, n, dense = 3 * sqrt(n), fine = 15) {
  prior <- bound$spec$fields
  # rates that sites may have: beyond the prior, since they spread about a mean
  fastest <- stats::qgamma(1 - 1e-12, prior$shape, prior$rate) * exp(8)
  range <- noise_range(parts, map)
  least <- max(range[1L], stats::qgamma(1e-12, n) / fastest)
  most <- max(range[2L], 10 * least)
  scale <- min(unlist(lapply(parts, `[[`, "scale")))
  place <- function(s) dense * log(s / scale) + fine * s / scale
  x <- seq(place(least), place(most), length.out = ceiling(place(most) - place(least)) + 1)
  # Newton's method for log(s / scale), from above, where the function is convex
  u <- ifelse(x > fine, log(pmax(x, fine) / fine), pmin(x / dense, 0))
  for (k in 1:60) {
    step <- (dense * u + fine * exp(u) - x) / (dense + fine * exp(u))
    u <- u - step
    if (max(abs(step)) < 1e-13) break
  }
  s <- scale * exp(u)
  list(at = s, log_gap = log(x[2L] - x[1L]) - log(dense / s + fine / scale))
}

# totals of which the noise is not out of the question
noise_range <- function(parts, map) {
  ends <- do.call(rbind, lapply(parts, function(p) {
    value <- if (p$mechanism$kernel == "published") as.matrix(p$interval[c("lower", "upper")]) else cbind(p$value, p$value)
    slope <- map$slope[p$index]
    reach <- noise_reach(p$mechanism, furthest) * p$scale # a squared kernel is there at 11
    cbind(value[, 1L] - reach, value[, 2L] + reach) / slope
  }))
  ends[ends == -Inf] <- 0
  c(max(0, min(ends)), max(ends[is.finite(ends)]))
}

# ---- chains --------------------------------------------------------------------------------

pool_from_chains <- function(chains, releases, bound, run, problem, words) {
  draws <- chains_array(lapply(chains, function(c) {
    colnames(c$draws) <- problem$names
    draws <- c$draws[, setdiff(problem$names, problem$drawn), drop = FALSE]
    if (is.null(problem$prior_n)) draws else cbind(draws, n = c$records)
  }))
  fit <- new_fit(draws, releases, bound, run, "pool", problem$exact, chains, problem, words)
  fit$pool <- if (is.null(problem$partial) || isTRUE(problem$partial$complete)) "complete" else if (isTRUE(problem$partial$separate)) "separate" else
    if (problem$partial$walk) "walk" else "partial"
  structure(fit, class = c("noiseaware_pool", class(fit)))
}

# Within 1 of the rate that the likely totals have together, towards a draw from the prior.
near_rate <- function(problem, theta) {
  total <- sum(vapply(problem$sites, `[[`, 0, "likely"))
  about <- switch(problem$model$name, poisson = log((total + 0.5) / problem$n), exponential = log(problem$n / total),
                  log((problem$n - total + 0.5) / (total + 0.5)))
  about + pmin(pmax(theta - about, -1), 1)
}

# ---- separate fits --------------------------------------------------------------------------

# a named list of draws, one entry a site
bind_sites_draws <- function(draws) {
  named <- lapply(names(draws), function(site) {
    posterior::variables(draws[[site]]) <- site_variables(posterior::variables(draws[[site]]), site)
    draws[[site]]
  })
  if (length(named) == 1L) named[[1L]] else do.call(posterior::bind_draws, c(named, along = "variable"))
}

# A normal model as a regression without covariates, whose coordinates it then has; a regression has no prior that is cut off.
as_regression <- function(bound) {
  if (bound$spec$name != "normal" || bound_is_cut(bound)) return(bound)
  fields <- bound$spec$fields
  mean <- bound$model$prior$mean
  prior <- if (!is.null(fields[["mean"]])) fixed(fields$mean) else if (inherits(mean, "prior_nig"))
    prior_nig(fields$prior_mean, fields$prior_precision, fields$shape, fields$rate) else prior_normal(fields$prior_mean, 1 / sqrt(fields$prior_precision))
  sigma <- if (!is.null(fields[["sd"]])) fixed(fields$sd) else if (!inherits(mean, "prior_nig")) prior_inverse_gamma(fields$shape, fields$rate)
  model <- model_lm(stats::reformulate("1", as.name(bound$columns$name)), prior = prior, sigma = sigma)
  regression <- bind_public(model, list(columns = bound$columns, levels = list(), formula = NULL, natural = bound$natural), NULL)
  regression$called <- c("(Intercept)" = "mean", sigma = "sd")
  regression
}

is_regression <- function(bound) bound$spec$name %in% c("lm", "glm")

# The model without the priors of coefficients and sigma, which the sites' parameters have.
likelihood_spec <- function(bound) {
  spec <- bound$spec
  prior <- c("beta_mean", "beta_precision", "beta_nig", "beta_df", "beta_scale", "beta_first", "sigma_inverse_gamma", "sigma_half_normal",
             "sigma_half_t", "sigma_exponential", "sigma_lognormal")
  spec$fields <- c(spec$fields[setdiff(names(spec$fields), prior)], list(flat = 1))
  spec
}

# Is the density of a site's records known? `separate`: has each site its own covariates' distribution?
check_imputes_sites <- function(bound, separate, call) {
  if (is_student(bound$model)) refuse_errors("Partial pooling and walks need", call, "{.code pool = \"complete\"} and {.code pool = \"none\"} accept them.")
  bound <- as_regression(bound)
  shape <- .Call(ffi_model_shape, bound$spec)
  if (!separate) {
    stop_classed("method", "Method {.val augment} gives each site its own distribution of the covariates: {.arg covariates} must be {.val separate}.", call = call)
  }
  if (shape$has_likelihood || has_flat_likelihood(bound)) return(invisible())
  stop_classed("method", c("Partial pooling and walks need the density of records given the parameters.", x = "The model is: {describe_model(bound)}.",
                           i = "{.code pool = \"complete\"} and {.code pool = \"none\"} accept it."), call = call)
}

# normal records, whose likelihood is the marginal density without a prior
has_flat_likelihood <- function(bound) bound$spec$name %in% c("lm", "mvnormal") && .Call(ffi_model_shape, likelihood_spec(bound))$integrates

# ---- what the fit has to report ----------------------------------------------------------

# After the pooling in a print: how
#' @export
engine_title.engine_pool <- function(engine) ""

#' @export
engine_method.engine_pool <- function(engine) "collapse"

#' @export
engine_fewest.engine_pool_totals <- function(engine, bound) least_size(bound)

#' @export
engine_lines.engine_pool <- function(engine, fit) if (!is.null(fit$chains)) c(pool_bounds_lines(fit), hamiltonian_lines(diagnostics_of(fit)))

pool_bounds_lines <- function(fit) if (is.na(fit$problem$exact)) outside_lines(fit)

#' @export
engine_diagnostics.engine_pool <- function(engine, fit, told) {
  row <- hamiltonian_row(told)
  if (told$size_made > 0) row$sizes <- told$size_accepted / told$size_made
  row
}

#' @export
engine_moves.engine_pool <- function(engine, fit, rows) {
  what <- if (is_of_groups(fit)) "sizes of groups" else "unknown numbers of records"
  paste0("all at once   ", hamiltonian_words(rows$steps, rows$mean),
         if (!is.null(rows$sizes)) sprintf("; %s: accepted %s", what, format_number(mean(rows$sizes), 2)))
}

# Is one rate or probability of each site moved, with its total summed out?
moves_rates <- function(fit) inherits(engine_of(fit), "engine_pool_rates")
