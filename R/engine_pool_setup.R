# The problem of a pool of sites, and the starting values of its chains.

# `pool`: "complete", or a pooling of parameters that differ. `bound`, as the engine takes the model, and the `problem`.
set_up_pool <- function(engine, bound, releases, pool, init, words, run, prior_n, call) {
  partial <- inherits(pool, "noiseaware_pooling")
  if (partial) bound <- check_partial(bound, releases, init, pool, engine, call)
  problem <- switch(engine, collapse = pool_problem(releases, bound, call, prior_n), tables = pool_tables_problem(releases, bound, prior_n, call),
                    augment = pool_augment_problem(releases, bound, words, run$chains, prior_n, call),
                    clt = if (partial || length(prior_n)) clt_sites_problem(releases, bound, words, run$chains, prior_n, call) else
                      pool_clt_problem(releases, bound, words, run$chains, call))
  layer <- if (partial) pool else if (engine == "tables" || engine == "clt" && length(prior_n)) list(kind = "complete", order = 0L)
  if (!is.null(layer)) {
    add_layer <- if (engine %in% c("augment", "tables")) pooled_records_problem else partial_problem
    problem <- add_layer(problem, layer, bound, releases, call)
  }
  list(bound = bound, problem = problem)
}

# `engine`: "collapse", rates and normal totals; "augment", records; or "clt"
check_partial <- function(bound, releases, init, pool, engine, call) {
  if (!is.null(init)) stop_classed("argument", "{.arg init} must be NULL with partial pooling and in a walk: the releases determine where chains start.", call = call)
  if (inherits(bound, "bound_smooth")) {
    stop_classed("method", c("A smooth has no partial pooling and no walk: all sites can have one curve, or each its own.",
                             i = "{.code pool = \"complete\"} and {.code pool = \"none\"} do that."), call = call)
  }
  if (length(releases) == 1L) {
    what <- c(partial = "Partial pooling", walk = "A walk")[[pool$kind]]
    stop_classed("pool", c("{what} needs at least two sites: one says nothing about how sites differ, and the prior alone would decide the standard deviation.",
                           i = "A single release is fitted by itself."), call = call)
  }
  if (length(releases) <= pool$order) {
    stop_classed("pool", c("A walk of second order needs at least three sites, but there are {length(releases)}.",
                           i = "{.code partial_pooling(walk = 1)} needs only two."), call = call)
  }
  more <- new_sites[[pool$kind]]
  if (more %in% names(releases)) {
    stop_classed("pool", "No site can have the name {.val {more}}: it names a site that released nothing.", call = call)
  }
  if (engine == "clt" && bound_is_cut(bound) && !is_regression(bound)) {
    if (has_exact_sites(releases)) stop_cut_exact(bound, call)
    stop_classed("method", c("Partial pooling and walks by {.val clt} do not work with a truncated prior of the sites' parameters, because moves use its gradient.",
                             i = "{.code method = \"augment\"} works with it."), call = call)
  }
  if (engine == "clt" && bound$spec$name == "expfam") {
    stop_classed("method", c("Partial pooling and walks are not available for {.fn model_expfam}: its moments are integrals, and gradients would need too many of them.",
                             i = "{.code method = \"augment\"} works if the model has {.arg r_records}."), call = call)
  }
  if (engine == "collapse" || engine == "augment") as_regression(bound) else bound
}

# Normal totals start where the site's own chain would start; a rate starts near the value that the releases suggest.
start_pool <- function(problem, bound, words, k, theta) {
  if (problem$method == "pool_records") return(start_records(problem, bound, words, k))
  if (problem$method != "pool") return(start_chain(problem, bound, words, k, theta))
  stream <- new_stream(words, k - 1L)
  given <- !is.null(theta)
  if (!given) {
    prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
    theta <- prior$theta
    stream <- prior$state
  }
  partial <- problem$partial
  begin <- if (isTRUE(partial$separate)) begin_separate(problem, k, theta) else if (!is.null(partial)) begin_partial(problem, k)
  if (problem$family == "clt") {
    theta[partial$place] <- begin$mean
  } else if (problem$family == "rates") {
    theta <- if (!is.null(partial)) begin$mean else if (given) theta else near_rate(problem, theta)
  } else {
    described <- lapply(problem$sites, function(site) {
      own <- c(site$alone[names(site$alone) != "given"], list(given = given))
      state <- .Call(ffi_start, own, as.double(theta), stream)
      stream <<- state$rng
      if (!given) theta <<- state$theta
      .Call(ffi_collapse_complete, own, state)
    })
    # behind the statistic of a site its unknown n, as its own chain has it
    complete <- seq_len(bound$sizes$complete)
    problem$complete <- unlist(lapply(described, `[`, complete), use.names = FALSE)
    problem$unsized <- as.double(unlist(lapply(described, `[`, -complete), use.names = FALSE))
    if (!is.null(partial)) theta[partial$place] <- begin$mean
  }
  problem[c("phi", "spread", "error")] <- begin[c("phi", "spread", "error")]
  .Call(ffi_start, problem, as.double(theta), stream)
}

# Chains start at different points: the mean is moved by part of the spread (or by its error if sites do not vary), and the spread by a factor.
begin_partial <- function(problem, k) {
  begin <- problem$begin
  apart <- c(0, 1, -1, 0.5, -0.5)[(k - 1L) %% 5L + 1L]
  mean <- apply(begin$at, 2L, stats::median)
  from <- problem$partial$which + 1L
  if (problem$partial$walk) mean[from] <- begin$at[1L, from]
  mean[from] <- mean[from] + apart * begin$sd
  if (problem$partial$complete) mean <- mean + apart * begin$error[seq_along(mean)]
  list(mean = mean, phi = as.double(t(begin$at)), spread = as.double(c(log(begin$sd) + 0.5 * apart, begin$effects, numeric(begin$pairs))), error = begin$error)
}

# ---- bars in the formula of a model, see R/model_bars.R -------------------------------------------

# The pooling that a model's bars define, with the priors of `pool`. Complete and no pooling stay as they are.
pooling_of_bars <- function(pool, model, bound, call) {
  pool <- as_pooling(pool %||% "partial", call)
  if (!inherits(pool, "noiseaware_pooling")) return(pool)
  if (!is.null(pool$vary)) {
    stop_classed("pool", c("What varies between groups must be given by the bars of the formula or by {.arg pool}, not by both.",
                           i = "{.fn partial_pooling} without {.arg vary} gives the priors alone."), call = call)
  }
  names <- bar_coefficients(model$bars$labels, bound, call)
  pool$vary <- stats::as.formula(call("~", Reduce(function(a, b) call("+", a, b), lapply(names, function(name) {
    if (name == "(Intercept)") quote((Intercept)) else as.name(name)
  }))), globalenv())
  if (model$bars$correlated && length(names) > 1L) pool$correlation <- pool$correlation %||% prior_lkj(1)
  if (!model$bars$correlated && !is.null(pool$correlation)) {
    stop_classed("pool", "Terms that vary are independent in the formula of the model, so {.arg pool} must have no {.arg correlation}.", call = call)
  }
  pool
}

# names of the coefficients of terms: of a factor all of its levels
bar_coefficients <- function(labels, bound, call) {
  if (!bound$spec$name %in% c("lm", "glm")) {
    stop_classed("method", "Bars in a formula are for responses that are numbers or have two levels, but the model is: {describe_model(bound)}.", call = call)
  }
  names <- coefficients_of(bound)
  base <- bound$base %||% bound$design
  variable <- stats::setNames(ifelse(is.na(base$level), base$name, base$variable), base$name)
  term <- vapply(strsplit(names, ":", fixed = TRUE), function(parts) paste(sort(ifelse(parts %in% base$name, variable[parts], parts)), collapse = ":"), "")
  absent <- setdiff(labels, c(names, term))
  if (length(absent)) {
    stop_classed("formula", "A slope that varies between groups must be a term of the model, but {.code {absent}} {?is/are} not.", call = call)
  }
  names[names %in% labels | term %in% labels]
}
