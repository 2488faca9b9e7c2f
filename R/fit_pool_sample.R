# Draws from the posterior of several sites, or of groups.

# "augment" if imputing records is affordable; otherwise "clt" if it accounts for bounds; otherwise "collapse", with a warning. `made`: its problem
method_for_clamped <- function(made, releases, bound, run, words, partial, imputes, call) {
  if (isTRUE(made$problem$exact) || has_exact_sites(releases)) return("collapse")
  imputes <- !partial || without_refusal(check_imputes_sites(bound, imputes, call))
  thousand <- if (imputes) pool_augment_cost(releases, bound, partial) else Inf
  bearable <- thousand <= auto_limits$affordable
  # nothing published then shows the scatter of records, and a short run of totals moves too slowly along a mean and its sd to say how many are outside
  if (bearable && all(vapply(releases, function(release) length(held_bounds(bound, component_parts(release))) > 0L, TRUE))) return("augment")
  approximate <- !bearable && !clt_leaves_out_bounds(bound) && serves_by_clt(releases, bound, call)
  if (!bearable && !approximate) return("collapse")
  short <- utils::modifyList(run, list(chains = 1, iter = 240, warmup = 120, thin = 1))
  trial <- without_troubles(without_progress(sample_pool(made$problem, releases, made$bound, short, NULL, words, short, call)))
  if (!isTRUE(outside_bounds(trial)[["share"]] > most_left_out)) return("collapse")
  if (bearable) return("augment")
  warn_method(c("Method {.val clt} was chosen, which is approximate: it uses a normal distribution for the totals of each site.",
                i = "Records outside the bounds are likely, which totals leave out."))
  "clt"
}

sample_groups <- function(release, model, pool, method, run, init, control, prior_n, asked, call = caller_env()) {
  check_release(release, call = call)
  variable <- model$group
  groups <- group_releases(release, variable, call)
  told <- list(variable = variable, release = release)
  one <- model
  one[c("group", "bars")] <- NULL
  bound <- bind_public(assume_independent(one, call, "A model of groups"), release_columns(groups[[1L]]$statistic), call)
  check_prior_draws(bound, call)
  if (!is.null(model$bars) || bound$spec$name %in% c("normal", "mvnormal")) {
    check_group_sizes(groups, bound, variable, call)
    if (bound$spec$name == "mvnormal" && !identical(pool %||% "none", "none")) {
      stop_classed("pool", "{.arg pool} must be \"none\" for a release by strata: they are fitted separately, and their totals are added up.", call = call)
    }
    pool <- if (is.null(model$bars)) pool %||% "none" else pooling_of_bars(pool, model, bound, call)
    return(fit_sites(groups, one, pool, method, run, init, control, check_site_priors(prior_n, groups, call), asked, call, told))
  }
  prior_n <- check_size_prior(prior_n, release, call)
  pool <- as_pooling(pool %||% "none", call)
  partial <- inherits(pool, "noiseaware_pooling")
  if (!partial) check_choice(pool, "pool", poolings, "pool", call)
  check_choice(method, "method", c("auto", "collapse"), "method", call)
  if (length(control)) stop_classed("argument", "{.arg control} must be empty for a model of groups.", call = call)
  if (!is.null(init)) stop_classed("argument", "{.arg init} must be NULL for a model of groups: the release determines where chains start.", call = call)
  pool_family(bound, call)
  sized <- check_group_sizes(groups, bound, variable, call)
  tell_binary(bound)
  words <- with_seed(run$seed, seed_words())
  if (partial) bound <- check_partial(bound, groups, NULL, pool, "collapse", call)
  problem <- if (sized) sized_problem(groups, release, bound, prior_n, call) else pool_problem(groups, bound, call)
  problem$groups <- told
  if (partial) problem <- partial_problem(problem, pool, bound, groups, call)
  if (identical(pool, "none")) problem <- separate_problem(problem, bound, names(groups))
  sample_pool(problem, groups, bound, run, NULL, words, asked, call)
}

sample_sites <- function(releases, model, pool, method, run, init, control, prior_n, asked, call = caller_env()) {
  check_sites(releases, pool, call)
  prior_n <- check_site_priors(prior_n, releases, call)
  check_model(model, call)
  fit_sites(releases, model, pool, method, run, init, control, prior_n, asked, call)
}

# `groups`: the release of all groups, and their factor; NULL if each site has its own release
fit_sites <- function(releases, model, pool, method, run, init, control, prior_n, asked, call, groups = NULL) {
  pool <- as_pooling(pool, call)
  partial <- inherits(pool, "noiseaware_pooling")
  if (!partial) check_choice(pool, "pool", poolings, "pool", call)
  if (identical(pool, "none")) {
    fit <- separate_fits(releases, model, prior_n, asked, call)
    if (!is.null(groups)) fit$problem <- list(groups = groups)
    fit$asked <- asked
    return(fit)
  }
  check_choice(method, "method", c("auto", "collapse", "augment", "clt"), "method", call)
  if (length(control)) stop_classed("argument", "{.arg control} must be empty where sites are pooled.", call = call)
  check_no_record_noise(releases, call)
  model <- assume_independent(model, call, "A pool of sites")
  bound <- bind_sites(model, releases, call)
  check_prior_draws(bound, call)
  tell_binary(bound)
  words <- with_seed(run$seed, seed_words())
  imputes <- !partial || pool$covariates %in% c("default", "separate")
  engine <- if (length(prior_n)) pooled_sized_method(releases, bound, method, partial, imputes, prior_n, call) else
    pooled_method(releases, bound, method, partial, imputes, call)
  made <- set_up_pool(engine, bound, releases, pool, init, words, run, prior_n, call)
  if (method == "auto" && engine == "collapse" && length(prior_n) == 0L) {
    another <- method_for_clamped(made, releases, bound, run, words, partial, imputes, call)
    if (another != engine) made <- set_up_pool(another, bound, releases, pool, init, words, run, prior_n, call)
  }
  made$problem$groups <- groups
  sample_pool(made$problem, releases, made$bound, run, check_init(init, made$bound, run$chains, call), words, asked, call)
}


# `asked`: the arguments that were given
sample_pool <- function(problem, releases, bound, run, init, words, asked, call) {
  sample <- function(run) pool_from_chains(pool_chains(problem, bound, run, init, words, call), releases, bound, run, problem, words)
  fit <- sample(run)
  if (leaves_length(asked)) fit <- longer_if_short(fit, sample)
  fit$asked <- asked
  with_pool_troubles(fit, function(...) sample_again(fit, ..., call = call), call)
}

# The same of other releases, by the method that suits them
sample_again <- function(fit, releases, run, pool = fit$asked$pool, call = caller_env()) {
  asked <- fit$asked
  sample <- if (is_of_groups(fit)) sample_groups else sample_sites
  sample(releases, asked$model, pool, "auto", run, NULL, list(), asked$prior_n, run, call)
}

pool_chains <- function(problem, bound, run, init, words, call) {
  run_chains(run$chains, function(k, report) {
    with_callback_seed(bound, chain_seed(words, k), {
      run_blocks(problem, start_pool(problem, bound, words, k, init[[k]]), run$iter, run, report)
    })
  }, run$iter * run$chains, call)
}

separate_fits <- function(releases, model, prior_n, asked, call) {
  arguments <- asked[setdiff(names(asked), c("model", "pool", "init", "prior_n"))]
  if (!is.null(asked$init)) stop_classed("argument", "{.arg init} must be NULL with {.code pool = \"none\"}: each site has its own parameters.", call = call)
  seeds <- with_seed(asked$seed, floor(stats::runif(length(releases)) * 2^30))
  # errors show the call: with names, not a whole release
  named <- lapply(stats::setNames(nm = union(names(arguments), c("seed", "prior_n"))), function(name) call("$", quote(arguments), as.name(name)))
  one <- as.call(c(quote(sample_posterior), quote(release), quote(model), named))
  fits <- withCallingHandlers(Map(function(release, seed, site) {
    arguments[c("seed", "prior_n")] <- list(seed, prior_n[[site]])
    with_site_named(site, call, eval(one))
  }, releases, seeds, names(releases)), noiseaware_message_prior = function(m) rlang::cnd_muffle(m))
  fit <- new_fit(bind_sites_draws(lapply(fits, `[[`, "draws")), releases, fits[[1L]]$bound, fits[[1L]]$run, "pool", all(vapply(fits, `[[`, NA, "exact")))
  fit$pool <- "none"
  fit$fits <- fits
  fit$decided <- sites_decided(lapply(fits, `[[`, "decided"))
  tell_decided(fit)
  structure(fit, class = c("noiseaware_pool", class(fit)))
}

# warnings of a site's fit begin with its name, and show the call that the user made
with_site_named <- function(site, call, code) {
  withCallingHandlers(code, warning = function(w) {
    if (!any(startsWith(class(w), "noiseaware_warning"))) return()
    w$message <- paste0(site, ": ", w$message)
    w$call <- public_call(call)
    warning(w)
    rlang::cnd_muffle(w)
  })
}

#' @rdname extend
#' @export
extend.noiseaware_pool <- function(fit, iter, ...) {
  check_given()
  check_no_dots(...)
  if (fit$pool == "none") stop_classed("pool", "Fits of separate sites are extended one by one: {.code extend(fit$fits$north, {describe(iter)})}.")
  run <- extended_run(fit, iter)
  extended <- pool_from_chains(continue_chains(fit, run, iter), fit$release, fit$bound, run, fit$problem, fit$words)
  extended$asked <- extended_asked(fit, run)
  call <- environment()
  with_pool_troubles(extended, function(...) sample_again(extended, ..., call = call))
}
