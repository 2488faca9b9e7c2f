# Named tests of one hypothesis against another, from private releases: Bayes factors with a description of the hypotheses.

#' Test a hypothesis by a Bayes factor: slopes, independence, equal rates
#'
#' The most common questions, each answered by the Bayes factor of the alternative H1 over the null hypothesis H0: how many times as probable the release is
#' under H1, noise included. If a release is too noisy to answer the question, the Bayes factor is near 1, whatever the records are.
#'
#' @param x A release, or a fit of it, which determines the model; for equal rates a named list of releases of different people, one for
#'   each rate, or a fit of these.
#' @param question What is asked:
#'   * names of covariates: are their slopes all zero? `x` is a release with a formula, or a fit of [model_lm()], which also determines the method.
#'   * a formula, `~ a + b` for two factors, or `~ a + b | c` given each level of one or more others: are the two independent? These must be all variables of
#'     the release. `x` is a release of counts, or a fit of a saturated [model_table()].
#'   * `NULL`: is the rate or probability the same in all releases of the list?
#' @param model The model with its prior. For slopes a [model_lm()] with [prior_nig()] or [prior_normal()]; for independence a saturated [model_table()] whose
#'   [prior_dirichlet()] has one weight; for equal rates [model_bernoulli()] or [model_poisson()]. `NULL` chooses the default of the question.
#' @param draws Number of draws, over all chains. For the independence of a release's factors, the initial number. Equal rates and a fit of a table need none.
#' @param error For the independence of a release's factors: the desired Monte Carlo standard error of the log Bayes factor. The number of draws is increased
#'   until it is reached, up to 640,000 draws.
#' @param seed Fixes the draws; see [sample_posterior()].
#'
#' @details
#' **Slopes** are tested in models without factors. H1 is the model, and H0 is the same model with the slopes fixed to 0. If the prior correlates the
#' coefficients, H0 uses the prior of the others given that these are 0. The test needs two runs of [log_evidence()]. The default prior for a slope, in
#' units of sigma, is wide: its sd is 2 divided by a quarter of the covariate's range (and by the root of the number of covariates). The narrower the prior, the
#' closer the Bayes factor is to 1, so report the prior.
#'
#' **Independence**: under H1 the cells (given each combination of the factors after the bar) have Dirichlet probabilities; under H0 the two margins have them,
#' and are independent. Every cell or level has the same weight, for a release by default 1. Without noise and with weight 1, this is the joint multinomial test
#' of Gunel & Dickey (1974). A fit has the weight of its own prior, by default a smaller one ([model_table()]), and gives another answer: a note says so.
#' The ratio is averaged over draws of the confidential table under H1, by method `"collapse"`. A note warns if a few draws dominate the average.
#'
#' **Equal rates**: under H1 each site has its own probability or rate with the model's prior; under H0 all sites share one. The result is exact, by
#' enumeration of the totals and quadrature. Separate rates spread over the whole prior are a poor alternative if all rates are small: the Bayes factor then
#' favours H0, although the rates differ. With a fit that has `pool = "partial"`, the rates vary about a mean under H1, with the priors of the fit.
#' @return An object of class `noiseaware_test`, a [bayes_factor()] of H1 over H0 with the attributes `log`, `error`, `note`, `h0`, `h1`, `prior` and `data`.
#'   The printed test also shows the posterior probability of H1 for equal prior probabilities.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_method`, `noiseaware_error_formula`, `noiseaware_error_variables`,
#'   `noiseaware_error_prior`, `noiseaware_error_pool`.
#' @references
#' Gunel, E. and Dickey, J. (1974). Bayes factors for independence in contingency tables. *Biometrika* 61, 545-557. \doi{10.1093/biomet/61.3.545}
#' @seealso [log_evidence()]
#' @family checks and tests
#' @examples
#' smoking <- stat_counts(~ smoke:low, levels = list(smoke = c("no", "yes"), low = c("no", "yes")))
#' counts <- as.vector(t(table(MASS::birthwt$smoke, MASS::birthwt$low)))
#' set.seed(1)
#' release <- as_release(counts + rnorm(4, 0, 2), smoking, mech_gaussian(sd = 2), n = 189)
#' test_hypothesis(release, ~ smoke + low, seed = 1)
#'
#' # the same probability in both hospitals?
#' yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' north <- as_release(c("smoke=yes" = 7.3), yes, mech_laplace(scale = 2), n = 30)
#' south <- as_release(c("smoke=yes" = 15.1), yes, mech_laplace(scale = 2), n = 30)
#' test_hypothesis(list(north = north, south = south))
#' @concept independence test
#' @export
test_hypothesis <- function(x, question = NULL, model = NULL, draws = 10000, error = 0.05, seed = NULL) {
  check_given()
  draws <- check_count(draws, "draws", lower = 100)
  error <- check_positive(error, "error")
  seed <- check_seed(seed)
  is_fit <- inherits(x, "noiseaware_fit")
  if (is_fit && !is.null(model)) stop_classed("argument", "{.arg model} must be left out if {.arg x} is a fit, which has a model.")
  if (is_sites(x) || inherits(x, "noiseaware_pool") && !is_of_groups(x)) return(test_sites(x, question, model, draws, seed, environment()))
  if (!is_fit && !inherits(x, "noiseaware_release")) stop_argument("x", "a release, a fit of sample_posterior(), or a named list of releases", describe(x))
  if (inherits(question, "formula")) {
    check_no_more_draws(is_fit, names(match.call()))
    return(test_independence(x, question, model, draws, error, seed, environment()))
  }
  ok <- is.character(question) && length(question) > 0L && !anyNA(question) && !anyDuplicated(question)
  if (!ok) stop_argument("question", "names of covariates, or a formula such as ~ a + b", describe(question))
  test_slope(x, question, model %||% if (!is_fit) model_lm(), draws, seed, environment())
}

# of sites, or of a fit of them
test_sites <- function(x, question, model, draws, seed, call) {
  if (!is.null(question)) stop_argument("question", "NULL for several sites, whose rates are compared", describe(question), call = call)
  if (is_sites(x)) return(test_equal_rates(x, model, call))
  if (x$pool == "partial") test_varying_rates(x, draws, seed, call) else test_equal_rates(x$release, x$asked$model, call)
}

# a fit of a table has its draws
check_no_more_draws <- function(is_fit, given, call = caller_env()) {
  given <- setdiff(given, c("", "x", "question"))
  if (!is_fit || length(given) == 0L) return(invisible())
  stop_classed("argument", c("{.arg {given}} must be left out if {.arg x} is a fit of a table: its draws are used.",
                             i = "For more draws, sample again with a larger {.arg iter}, or give the release."), call = call)
}

test_slope <- function(x, term, model, draws, seed, call) {
  is_fit <- inherits(x, "noiseaware_fit")
  if (is_fit && (!inherits(x$bound, "bound_lm") || is.null(x$release) || is_read_off(x) || inherits(x, "noiseaware_pool"))) {
    stop_classed("argument", c("{.arg x} must be a fit of one release by {.fn model_lm}.",
                               i = "Other regressions: {.fn contrast} gives the probability that a slope is positive, and {.fn p_value} tests it."), call = call)
  }
  if (!is_fit) check_class(model, "model", "model_lm", "model_lm()", call = call)
  release <- if (is_fit) x$release else narrow_release(x, model, call)
  bound <- if (is_fit) x$bound else bind_model(complete_model(model, release, call), release$statistic, call)
  if (length(bound$levels)) {
    stop_classed("method", c("The test of slopes needs a model without factors, but {.var {names(bound$levels)}} {?is a factor/are factors}.",
                             i = "{.code p_value(release, model, {null_code(bound, term)})} tests slopes of any model, without a Bayes factor."), call = call)
  }
  check_independent(bound, what = "The test", call = call)
  null <- without_slopes(bound, term, call)
  method <- if (is_fit && inherits(engine_of(x), "engine_collapse")) "collapse" else totals_method(release, bound)
  evidence <- function(bound) totals_evidence(run_totals(release, bound, method, seed, call), draws, seed, call)
  one <- evidence(bound)
  zero <- evidence(null$bound)
  of <- slopes_text(term)
  new_test("Slope zero or not", as.numeric(one) - as.numeric(zero), sqrt(attr(one, "error")^2 + attr(zero, "error")^2),
           join_notes(attr(one, "note"), attr(zero, "note")),
           data = paste0(describe_model(bound), ", ", format_size(release$n), " records"),
           h0 = paste(of, "0"), h1 = paste(of, "unknown"), prior = null$prior)
}

# The null hypothesis of p_value(), as code: of a factor all coefficients, the first slope where the question names none.
null_code <- function(bound, term) {
  slopes <- bound$columns[-1L, ]
  asked <- trimws(sub("[<>=!].*$", "", term))
  found <- slopes$name[slopes$name %in% asked | slopes$variable %in% asked]
  if (length(found) == 0L) found <- slopes$name[1L]
  sprintf("c(%s)", paste(format_name(found), "= 0", collapse = ", "))
}

slopes_text <- function(term) {
  paste(if (length(term) > 1L) "the slopes of" else "the slope of", paste(term, collapse = ", "), if (length(term) > 1L) "are" else "is")
}

# The model with slopes held at 0, by a prior that is far narrower than any release tells; and the prior of the slopes in words.
without_slopes <- function(bound, term, call) {
  fields <- bound$spec$fields
  names <- bound$columns$name
  slopes <- names[-1L]
  strange <- setdiff(term, slopes)
  if (length(strange)) {
    stop_classed("variables", c("{.arg question} must name covariates of the model, but {.val {strange}} {?is/are} not.",
                                i = "The model has {.val {slopes}}.",
                                i = if (any(grepl("[<>=]", strange))) "{.fn contrast} gives the probability that an expression is positive."), call = call)
  }
  if (is.null(fields[["beta_precision"]])) {
    stop_classed("prior", "The coefficients must have {.fn prior_nig} or {.fn prior_normal}, but have {format(bound$model$prior)}.", call = call)
  }
  k <- length(fields[["centre"]])
  at <- match(term, names)
  precision <- matrix(fields[["beta_precision"]], k)
  mean <- fields[["beta_mean"]]
  told <- sprintf("%s normal, mean %s, sd %s%s", term, vapply(mean[at], format_number, "", digits = 3),
                  vapply(1 / sqrt(diag(precision)[at]), format_number, "", digits = 3), if (fields[["beta_nig"]] != 0) " sigma" else "")
  rest <- setdiff(seq_len(k), at)
  if (any(precision[rest, at] != 0)) {
    mean[rest] <- mean[rest] + drop(invert_positive(precision[rest, rest, drop = FALSE]) %*% precision[rest, at, drop = FALSE] %*% mean[at])
  }
  held <- diag(precision)[at] * 1e12
  precision[at, ] <- 0
  precision[, at] <- 0
  precision[cbind(at, at)] <- held
  mean[at] <- 0
  bound$spec$fields[["beta_precision"]] <- as.double(precision)
  bound$spec$fields[["beta_mean"]] <- mean
  list(bound = bound, prior = paste(told, collapse = "; "))
}

has_saturated_table <- function(fit) {
  bound <- fit$bound
  inherits(bound, "bound_table") && !moves_theta(bound) && inherits(engine_of(fit), "engine_collapse") && length(bound$parts) == 1L && is.null(bound$model$zeros)
}

test_independence <- function(x, formula, model, draws, error, seed, call) {
  is_fit <- inherits(x, "noiseaware_fit")
  usual <- !is_fit && is.null(model)
  if (!is_fit) model <- check_class(model %||% model_table(prior = prior_dirichlet(1)), "model", "model_table", "model_table()", call = call)
  asked <- read_independence(formula, call)
  argument <- if (is_fit) "x" else "model"
  weights <- length((if (is_fit) x$bound$model else model)$prior$alpha)
  if (weights > 1L) stop_argument(argument, "a model with one weight for all cells", paste("one with", weights, "weights"), "prior", call)
  fit <- if (is_fit) x else table_fit(x, model, draws, seed, call)
  if (!has_saturated_table(fit)) {
    stop_classed("argument", c("{.arg {argument}} must be {if (is_fit) 'a fit of '}a saturated {.fn model_table} with {.fn prior_dirichlet}, without zeros.",
                               i = if (is_fit) "The method must be {.val collapse}."), call = call)
  }
  weight <- fit$bound$spec$fields$alpha[1L]
  levels <- fit$bound$levels
  check_independence(asked, names(levels), call)
  cure <- if (is_fit) "sample again with a larger `iter`, or give the release" else "use more draws"
  averaged <- average_independence(fit, asked, weight, call, cure)
  while (!is_fit && !isTRUE(averaged$error <= error) && draws < most_test_draws) {
    draws <- min(4 * draws, most_test_draws)
    averaged <- average_independence(table_fit(x, model, draws, seed, call), asked, weight, call, cure)
  }
  given <- if (length(asked$given)) paste(" given", paste(asked$given, collapse = ", ")) else ""
  new_test("Independence in a table", -averaged$value, averaged$error, join_notes(averaged$note, weight_note(weight, usual, is_fit, levels)),
           data = sprintf("table of %s, %s records", paste(names(levels), collapse = ", "),
                          if (is.null(fit$release$n)) "an unknown number of" else format_size(fit$release$n)),
           h0 = sprintf("%s and %s are independent%s", asked$pair[1L], asked$pair[2L], given),
           h1 = sprintf("any association of %s and %s%s", asked$pair[1L], asked$pair[2L], given),
           prior = sprintf("Dirichlet(%s) of the cells (H1) and of both margins (H0)", format_number(weight)))
}

# The usual weight is 1: then the margins that H1 implies for independent factors have weight 1 as well (Gunel & Dickey). The default weight of
# model_table() is smaller, as its cells are estimated, not compared. A release and a fit of it answer the question with different priors.
weight_note <- function(weight, usual, is_fit, levels) {
  default <- format_number(min(1, 2 / prod(lengths(levels))))
  if (usual) return(sprintf("Weight 1 is usual for this test. A fit of model_table() has by default weight %s, and so another Bayes factor.", default))
  if (!is_fit || weight == 1) return(NULL)
  sprintf("The weight %s is the fit's. It is usually 1 for this test, as for a release: the Bayes factor is then another.", format_number(weight))
}

most_test_draws <- 640000

average_independence <- function(fit, asked, weight, call, cure) {
  tables <- lapply(fit$chains, `[[`, "table")
  if (is.null(tables[[1L]])) stop_classed("size", "The table has more than {format_size(most_tracked)} cells, too many to store.", call = call)
  ratio <- function(table) independence_ratio(table, lengths(fit$bound$levels), asked, weight)
  average_ratio(vapply(tables, ratio, double(nrow(tables[[1L]]))), cure = cure)
}

table_fit <- function(release, model, draws, seed, call) {
  bound <- bind_model(complete_model(model, release, call), release$statistic, call)
  run <- list(chains = 4, iter = 500 + ceiling(draws / 4), warmup = 500, thin = 1, seed = seed)
  without_progress(sample_method("collapse", release, bound, run, prior_n = check_size_prior(NULL, release, call), call = call))
}

read_independence <- function(formula, call) {
  fault <- function() stop_argument("question", "a formula such as ~ a + b or ~ a + b | c", describe(formula), "formula", call)
  if (!inherits(formula, "formula") || length(formula) != 2L) fault()
  sides <- list(formula[[2L]])
  if (is_operation(formula[[2L]], "|", 2L)) sides <- as.list(formula[[2L]])[-1L]
  leaves <- lapply(sides, function(side) formula_leaves(side, chain_operands("+"), call))
  if (!all(vapply(unlist(leaves), is.name, TRUE)) || length(leaves[[1L]]) != 2L) fault()
  names <- lapply(leaves, vapply, as.character, "")
  if (anyDuplicated(unlist(names))) fault()
  list(pair = names[[1L]], given = if (length(names) > 1L) names[[2L]] else character())
}

check_independence <- function(asked, known, call) {
  if (setequal(unlist(asked), known)) return(invisible())
  stop_classed("variables", c("{.arg question} must have all variables of the release, {.var {known}}, but has {.var {unlist(asked)}}.",
                              i = "Put all variables but the two after a bar, as in {.code ~ a + b | c}."), call = call)
}

# log p(table | H0) / p(table | H1) of tables, a row each, by Dirichlet integrals for each combination of what is given
independence_ratio <- function(table, size, asked, weight) {
  codes <- all_codes(size)
  index <- function(of) if (length(of)) drop(Reduce(function(at, v) at * size[[v]] + codes[, v], of, 0)) else rep(0, nrow(codes))
  group <- index(asked$given)
  log_beta <- function(of) {
    key <- factor(group * prod(size[of]) + index(of))
    sums <- t(rowsum(t(table), key))
    owner <- group[match(levels(key), as.character(key))]
    rowSums(lgamma(weight + sums) - lgamma(weight)) - rowSums(matrix(vapply(unique(owner), function(g) {
      own <- owner == g
      lgamma(sum(own) * weight + rowSums(sums[, own, drop = FALSE])) - lgamma(sum(own) * weight)
    }, double(nrow(table))), nrow(table)))
  }
  log_beta(asked$pair[1L]) + log_beta(asked$pair[2L]) - log_beta(asked$pair)
}

test_equal_rates <- function(releases, model, call) {
  if (length(releases) < 2L) stop_argument("x", "a named list of two or more releases", describe(releases), call = call)
  check_sites(releases, "complete", call)
  if (is.null(model)) model <- if (length(release_columns(releases[[1L]]$statistic)$levels)) model_bernoulli() else model_poisson()
  check_class(model, "model", c("model_bernoulli", "model_poisson"), "model_bernoulli() or model_poisson()", call = call)
  bound <- bind_sites(model, releases, call)
  sites <- lapply(releases, rate_site, bound = bound, call = call)
  apart <- sum(vapply(sites, function(site) log_rate_integral(bound, list(site)), 0))
  rate <- if (inherits(bound, "bound_poisson")) "rate" else "probability"
  prior <- bound$spec$fields
  new_test("Equal rates", apart - log_rate_integral(bound, sites), 0, NULL,
           data = sprintf("%d sites: %s", length(sites), shorten_list(names(sites))), h0 = sprintf("one %s for all", rate),
           h1 = sprintf("a separate %s for each", rate),
           prior = if (rate == "rate") sprintf("Gamma(%s, %s) of a rate", format_number(prior$shape), format_number(prior$rate)) else
             sprintf("Beta(%s, %s) of a probability", format_number(prior$alpha[2L]), format_number(prior$alpha[1L])))
}

# The same for rates that vary about a mean, as they do in a partial pool.
test_varying_rates <- function(fit, draws, seed, call) {
  h0 <- test_equal_rates(fit$release, fit$asked$model, call)
  evidence <- log_evidence(fit, draws, seed)
  bound <- bind_sites(fit$asked$model, fit$release, call)
  sites <- lapply(fit$release, rate_site, bound = bound, call = call)
  together <- one_rate_evidence(list(bound = bound, problem = list(sites = sites), release = fit$release), call)
  of_pool <- prior_summary.noiseaware_fit(fit)
  of_pool <- of_pool[of_pool$variable %in% fit$bound$parameters | startsWith(of_pool$variable, "sd["), ]
  new_test("Equal rates", as.numeric(evidence) - together, attr(evidence, "error"), attr(evidence, "note"), data = attr(h0, "data"), h0 = attr(h0, "h0"),
           h1 = sub("a separate (.*) for each", "a \\1 for each, which vary about a mean", attr(h0, "h1")),
           prior = paste0("H0: ", attr(h0, "prior"), "; H1: ", paste(of_pool$variable, of_pool$prior, collapse = ", ")))
}

new_test <- function(title, log, error, note, data, h0, h1, prior) {
  structure(exp(log), log = log, error = error, note = note, title = title, data = data, h0 = h0, h1 = h1, prior = prior,
            class = c("noiseaware_test", "noiseaware_bayes_factor"))
}

# the probability of a hypothesis at even odds, from the log Bayes factor for it
format_odds <- function(log) {
  p <- stats::plogis(log)
  if (p > 0.9999) "above 0.9999" else if (p < 1e-4) "below 0.0001" else format(p, digits = 3)
}

#' @export
print.noiseaware_test <- function(x, ...) {
  log <- attr(x, "log")
  cat("\n\t", attr(x, "title"), ", from a private release\n\n", sep = "")
  cat("data:   ", attr(x, "data"), "\nH0:     ", attr(x, "h0"), "\nH1:     ", attr(x, "h1"), "\nprior:  ", attr(x, "prior"), "\n", sep = "")
  cat("log Bayes factor, H1 over H0: ", format_estimate(log, attr(x, "error")), "\n", sep = "")
  cat("Bayes factor ", format(exp(abs(log)), digits = 3), " for ", if (log >= 0) "H1" else "H0",
      "; at even odds the probability of H1 is ", format_odds(log), " and of H0 ", format_odds(-log), "\n", note_lines(x), "\n", sep = "")
  invisible(x)
}
