#' Draw from the posterior given a release
#'
#' The main function for analysts. It draws the model's parameters given the published numbers, accounting for the noise, the clamping and the public bounds.
#'
#' @param release A release: [release()], [as_release()], [read_release()].
#' @param model A model, such as [model_lm()]. If the bounds of a covariate that is modelled as
#'   normal suggest only two values, such as 0 and 1, a message of class
#'   `noiseaware_message_binary` says how to declare a factor.
#' @param method One of these:
#'   * `"auto"` chooses by the predicted cost and prefers exact methods: [method_auto].
#'   * `"augment"` imputes the confidential records. Exact; the cost is proportional to n: [method_augment].
#'   * `"collapse"` samples the totals, where their distribution is known. Exact for counts, and otherwise if no record lies outside the bounds; the cost does
#'     not depend on n: [method_collapse].
#'   * `"clt"` uses a normal approximation to the statistic's distribution. Approximate, better with more records; the cost does not depend on n: [method_clt].
#'   * `"naive"` treats the noisy totals as true. Not a posterior, but a baseline to compare with: [method_naive].
#' @param chains Number of chains. They run through the future package: set `future::plan()` to run them in parallel. The draws do not depend on the plan.
#' @param iter Iterations of each chain, warmup included.
#' @param warmup Iterations at the start, in which the proposals are tuned; they are discarded.
#' @param thin Keep every `thin`-th iteration after warmup.
#' @param seed A whole number that fixes the draws, or `NULL` to use the current state of R's generator (so that [set.seed()] fixes them).
#' @param init Starting values. `NULL` lets the method choose: by default, draws from the prior. Otherwise a list with a named vector of parameter values for
#'   each chain. Methods that draw independently (`"naive"`, and `"collapse"` for counts of few records) do not use starting values; a message of class
#'   `noiseaware_message_init` says so.
#' @eval control_help()
#' @param prior_n If the release does not state the number of records: a prior for it, see [prior_n()]. The default `NULL` is `prior_n("log_uniform")`, which gives
#'   every order of magnitude up to 2^31 - 1 the same probability. The number is then among the draws, as `n`. For a list of releases: one prior for all sites
#'   with an unknown number of records, or a named list of priors, see [pooling].
#' @param pool How to pool several sites. `release` is then a named list of releases about different people, one per site. Options are `"complete"`, `"partial"`,
#'   `"walk"` or [partial_pooling()], `"none"`, and a formula of what differs between sites, such as `~ 1` for the intercept. See
#'   [pooling]. The same options apply to a model of the groups in one release, such as `model_poisson(~ ward)`; there `NULL` means `"none"`. See [groups].
#' @param ... Must be empty. There is no `cores` argument: use `future::plan()`.
#'
#' @details
#' Progress is reported through progressr: `progressr::handlers(global = TRUE)` turns on a progress bar. After 3 seconds or a twentieth of the run, a message of
#' class `noiseaware_message_forecast` gives the remaining time, if that is 10 seconds or more. A second message follows the first chain's warmup if the
#' forecast has changed by half. An interrupted run returns the draws made so far, with a warning; [extend()] continues it.
#'
#' **Length.** The default of 2,000 iterations may not reach 400 effective draws and an R-hat of at most 1.01. The chains then run once
#' more, two to 32 times as long, if this is expected to take at most 45 seconds. They do not if you specified `iter`, `warmup`, `thin` or `init`, or if the
#' model, the statistic or the noise consists of R functions. `thin` is raised so that there are as many draws as before, and a message of class
#' `noiseaware_message_longer` gives the new length. A call with this `iter` and `thin` gives the same draws.
#'
#' **Narrow questions.** A model that names some of the release's variables (`model_lm(bwt ~ age)`, `model_normal("age")`,
#' `model_table(~ smoke:low)`) uses only the released numbers that involve these variables. Their noise is independent of the noise in the others, so the
#' posterior given these numbers is exact, but it ignores the information in the others. A message of class `noiseaware_message_components` states how many
#' numbers are used. Any of the variables can be the response.
#'
#' **Methods.** Each has a page: [method_auto], [method_augment], [method_collapse], [method_clt], [method_naive].
#'
#' **Unknown number of records.** `"collapse"` for counts and `"augment"` stay exact. The other methods assume at least a few records: see their pages. If no
#' method is available, describe the release by [as_release()] with an `n` that you consider plausible.
#'
#' @return A fit: an object of class `noiseaware_fit`, see [fit_methods]. Classed warnings report chains that have not converged, and anything else that makes
#'   the fit doubtful: see the section Warnings there.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_method`,
#'   `noiseaware_error_variables`, `noiseaware_error_prior`,
#'   `noiseaware_error_interrupted` (interrupted before the first draw),
#'   `noiseaware_error_worker` (every process that ran a chain died),
#'   `noiseaware_error_numerical`, `noiseaware_error_size` (more records than method `"augment"` can impute).
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data, Algorithm 1.
#' \doi{10.48550/arXiv.2206.00710}
#'
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31. \doi{10.48550/arXiv.1809.02188}
#' @family methods
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' fit
#' @concept credible interval
#' @concept posterior distribution
#' @export
sample_posterior <- function(release, model, method = "auto", chains = 4, iter = 2000,
                             warmup = floor(iter / 2), thin = 1, seed = NULL, init = NULL,
                             control = list(), ..., prior_n = NULL, pool = NULL) {
  check_given()
  check_no_dots(...)
  compiler_level <- pause_compiler(release, model)
  on.exit(compiler::enableJIT(compiler_level))
  asked <- list(model = model, method = method, chains = chains, seed = seed, init = init, control = control, prior_n = prior_n)
  lengths <- intersect(c("iter", "warmup", "thin"), names(match.call()))
  asked[lengths] <- mget(lengths)
  if (is_sites(release) && inherits(model, "noiseaware_model")) release <- narrow_sites(release, model)
  whole <- release
  if (inherits(release, "noiseaware_release") && inherits(model, "noiseaware_model")) release <- narrow_release(release, model)
  model <- stratified_model(model, release)
  if (is_grouped(model) || is_sites(release)) {
    check_groups_alone(model, release)
    sample <- if (is_grouped(model)) sample_groups else sample_sites
    return(sample(release, model, pool, method, check_run(chains, iter, warmup, thin, check_seed(seed)), init, control, prior_n, c(asked, list(pool = pool))))
  }
  check_no_pool(pool)
  check_release(release)
  check_model(model)
  if (has_public(release)) {
    sample <- function(run) sample_public(release, model, method, run, init, control, prior_n, asked)
    fit <- sample(check_run(chains, iter, warmup, thin, check_seed(seed)))
    return(with_troubles(if (leaves_length(asked)) longer_if_short(fit, sample) else fit))
  }
  prior_n <- check_size_prior(prior_n, release)
  check_choice(method, "method", c("auto", sampling_methods), "method")
  run <- wanted <- check_run(chains, iter, warmup, thin, check_seed(seed))
  control <- check_control(control, method)
  model <- complete_model(model, release)
  settled <- settle_factors(model, release$statistic, release$n, method, has_record_noise(release))
  bound <- bind_model(settled, release$statistic)
  if (!takes_dependent(method, release)) check_independent(bound)
  check_prior_draws(bound)
  init <- check_init(init, bound, run$chains)
  if (is.null(release$n)) check_unknown_size(method, release, bound)
  if (has_record_noise(release)) check_normal_records(bound, environment())
  chosen <- NULL
  method <- method_for_weights(method, release, bound)
  if (method == "auto") {
    chosen <- auto_method(release, bound, run, control, prior_n, independent = bind_independent(settled, model, release))
    method <- chosen$method
    if (!is.null(chosen$bound)) {
      bound <- chosen$bound
      init <- check_init(asked$init, bound, run$chains)
    }
    run <- chosen$run
    init <- init %||% chosen$init
    check_control(control, method)
  } else {
    engine_announce(as_engine(method), release, bound, control, prior_n)
  }
  tell_binary(bound)
  free <- leaves_length(asked) && identical(run, wanted)
  expected <- if (!is.null(chosen)) expect_call(list(method = method, release = release, bound = bound, run = run, asked = asked), prior_n, free)
  sample <- function(run) sample_method(method, release, bound, run, init, control, prior_n)
  fit <- sample(run)
  if (free) fit <- longer_if_short(fit, sample)
  fit$asked <- asked
  fit$whole <- if (length(whole$value) > length(release$value)) whole
  fit$why <- with_expected(chosen$why, expected)
  fit$expected <- expected
  with_troubles(fit)
}

check_groups_alone <- function(model, release, call = caller_env()) {
  if (!is_grouped(model) || !is_sites(release)) return(invisible())
  stop_classed("groups", c("A model of groups needs one release, which has the totals of all groups.",
                           i = "A list of releases has one release per site; use {.arg pool} to say how the sites are related."), call = call)
}

check_no_pool <- function(pool, call = caller_env()) {
  if (is.null(pool)) return(invisible())
  stop_classed("pool", c("{.arg pool} is for a list of releases, one per site, or for the groups of one release; a single release has nothing to pool.",
                         i = "Groups that the release has totals of ({.fn stat_by}) are named in the model, as in {.code model_poisson(~ ward)}.",
                         i = "Counts over time or by area are sites: {.code as_release(data, ..., site = \"week\")} makes a list of them."), call = call)
}

# Can the method do without the number of records, or with "auto" some method?
check_unknown_size <- function(method, release, bound, call = caller_env()) {
  if (method != "auto" && method_serves(method, release, bound)) return(invisible())
  able <- able_methods(release, bound, list())
  if (method == "auto" && length(able)) return(invisible())
  if (has_exact(release)) check_keeps_exact(release, bound, call)
  clash <- "n" %in% bound$parameters
  stop_classed("method", c(if (method == "auto") "The number of records must be known for this model and release." else
                             "Method {.val {method}} needs the number of records here, but the release does not contain it.",
                           x = if (clash) "The model has a parameter called {.val n}, which is also the name of the number of records.",
                           i = if (length(able)) "Methods that do not need it: {.val {able}}." else
                             if (isTRUE(bound$dependent)) "{.code factors = \"dependent\"} needs it; independent factors do not." else if (!clash)
                             "A model or a statistic defined by R functions of all records needs to know how many there are.",
                           i = "Or describe the release by {.fn as_release} with an {.arg n} that you consider plausible."), call = call)
}
