# Partial pooling and walks by imputing the records of all sites: src/pool/gibbs_chain.c.

pooled_records_problem <- function(problem, pooling, bound, releases, call) {
  complete <- pooling$kind == "complete" # nothing varies
  own <- record_parameters(bound, complete)
  problem$move_sd <- replace(numeric(max(bound$unknown)), bound$unknown, prior_sd(bound, c(1, 3), 1L))
  vary <- if (complete) integer() else varying_coordinates(pooling$vary, own, call)
  walk <- pooling$kind == "walk"
  shown <- if (!complete) shown_of_sites(bound, own, vary)
  heads <- if (walk) setdiff(own$parameters, shown) else own$parameters
  scale <- if (complete) rep(1, length(own$places)) else record_scales(bound, own, problem) * (if (walk) 0.5 else 1)
  names <- if (own$paired) own$called[vary] else own$coordinates[vary]
  sd <- if (!complete) layer_sd(pooling, names, call)
  sign <- if (own$paired) coordinate_sign(bound) else 1
  design <- sign * design_of_sites(pooling$design, names(releases), call)
  called <- stats::setNames(own$called, own$parameters)
  pairs <- if (!is.null(pooling$correlation)) which(upper.tri(diag(length(vary))), arr.ind = TRUE)
  reference <- .Call(ffi_model_prior, bound$spec, new_stream(c(1, 3)), 1L)$theta
  effect_sd <- effect_scales(pooling$effects$sd, design, scale[vary])
  problem$partial <- list(at = own$places - 1L, which = vary - 1L, head = match(heads, bound$parameters) - 1L, show = match(shown, bound$parameters) - 1L,
                          sd = Map(function(name, scale) list(fields = lapply(sigma_fields(sd[[name]], scale), as.double)), names, scale[vary]),
                          effect_sd = effect_sd, complete = complete, lkj = as.double(pooling$correlation$eta %||% 0), walk = pooling$order,
                          first_step = as.double(2 * scale[vary]),
                          likelihood = if (has_flat_likelihood(bound)) likelihood_spec(bound), reference = as.double(reference), vary = names,
                          parameters = own$parameters, design = pooling$design, reported = unname(called[own$parameters]), shown = unname(called[shown]),
                          heads = unname(called[heads]))
  problem$partial$mirror <- mirror_of_sites(problem, bound, own, releases)
  problem$sites <- lapply(stats::setNames(nm = names(problem$sites)), function(site) {
    c(problem$sites[[site]], list(fields = list(covariate = as.double(design[match(site, names(releases)), ]))))
  })
  problem$method <- "pool_records"
  problem$sign <- sign
  problem$names <- c(if (complete) unname(called[heads]) else
    layer_names(unname(called[heads]), own$coordinates[vary], colnames(design), pairs, unname(called[shown]), names(releases), call),
                     size_names(names(problem$site_priors)))
  spread <- c(rep(0.5, length(vary)), effect_sd, rep(0.3, NROW(pairs)))
  problem$begin <- list(pairs = NROW(pairs), scale = scale[vary], sd = as.double(c(pmin(problem$move_sd[own$places], scale), spread)), effects = length(effect_sd))
  problem
}

# Where sites of normal records have even powers alone, about one point: which of their parameters is the mean, and this point for the records and for the mean
# as theta has it (src/pool/mirrored_sites.c).
mirror_of_sites <- function(problem, bound, own, releases) {
  partial <- problem$partial
  if (!bound$spec$name %in% c("normal", "lm") || nrow(bound$columns) != 1L || partial$walk > 0 || length(partial$effect_sd) || !1 %in% own$places) return(NULL)
  origins <- lapply(releases, function(release) record_reflections(bound, component_parts(release))$origin)
  if (any(lengths(origins) != 1L) || length(unique(unlist(origins))) != 1L) return(NULL)
  list(mean = match(1, own$places) - 1L, records = origins[[1L]], at = origins[[1L]] - if (is_regression(bound)) bound_centring(bound)$shift[1L] else 0)
}

# Parameters of a site, natural ones and their coordinates: `places` in theta. For regressions these are the coefficients and what else the response depends on;
# the distribution of the covariates is each site's own or, with `all`, shared. `paired`: each parameter has one coordinate.
record_parameters <- function(bound, all = FALSE) {
  blocks <- bound$coordinates
  block <- rep(blocks$block, blocks$length)
  regression <- "coefficients" %in% block && !all
  places <- if (regression) intersect(which(block %in% c("coefficients", "sigma", "df", "cv")), bound$unknown) else bound$unknown
  parameters <- if (regression) bound$parameters[seq_along(places)] else bound$parameters
  paired <- length(parameters) == length(places)
  # a model of R functions or in C describes no coordinates
  transform <- if (length(block)) rep(blocks$transform, blocks$length)[places] else rep("identity", length(places))
  transform[transform == "log_cholesky"] <- ifelse(is_variance(parameters[transform == "log_cholesky"]), "log_chol", "chol")
  link <- c(log = "log", sticks = "logit", log_chol = "log_chol", chol = "chol")[transform]
  one_row <- nrow(blocks) == 1L && length(parameters) == length(places) + 1L
  of <- if (paired || one_row) parameters[seq_along(places)] else paste0("theta", seq_along(places))
  called <- unname(ifelse(parameters %in% names(bound$called), bound$called[parameters], parameters))
  shown <- if (paired) called else of
  list(places = places, parameters = parameters, called = called, paired = paired, transform = transform,
       residual = if (regression) parameters[block[places] != "coefficients"],
       coordinates = unname(ifelse(is.na(link), shown, sprintf("%s(%s)", link, shown))))
}

# natural parameters that differ between sites
shown_of_sites <- function(bound, own, vary) {
  free <- setdiff(own$parameters, own$residual)
  if (!own$paired) return(free)
  vary <- own$parameters[vary]
  differ <- if (is_regression(bound)) coefficients_that_differ(bound, free, vary) else if (any(free %in% vary)) free
  c(differ, intersect(own$residual, vary))
}

varying_coordinates <- function(vary, own, call) {
  if (is.null(vary)) return(seq_along(own$places))
  if (!own$paired) {
    stop_classed("pool", c("All parameters must vary if several of them share coordinates, as probabilities of more than two levels do.",
                           x = "{.arg vary} is {formula_text(vary)}."), call = call)
  }
  match(varying_parameters(vary, stats::setNames(own$called, own$parameters), call), own$parameters)
}

# Default scales of standard deviations between sites: as in partial_problem(), and otherwise half of the prior's.
record_scales <- function(bound, own, problem) {
  if (bound$spec$name == "normal" || has_default_scales(bound)) return(unname(spread_scales(bound, own$parameters)))
  ifelse(own$transform == "log_chol", 0.5, ifelse(own$transform == "log", if ("coefficients" %in% bound$coordinates$block) 0.5 else 1,
         ifelse(own$transform == "sticks", 1, problem$move_sd[own$places] / 2)))
}

# Chains start at different draws from the prior; sites differ by the scale of the standard deviations, or more, or less.
start_records <- function(problem, bound, words, k, call = caller_env()) {
  prior <- .Call(ffi_model_prior, bound$spec, new_stream(words, k - 1L), 1L)
  prior$theta <- begin_central(bound, prior$theta)
  apart <- c(0, 1, -1, 0.5, -0.5)[(k - 1L) %% 5L + 1L]
  begin <- problem$begin
  shared <- c(prior$theta[problem$partial$at + 1L], log(begin$scale) + 0.5 * apart - 0.5, numeric(begin$effects + begin$pairs))
  problem$start <- list(shared = as.double(shared), theta = as.double(prior$theta), sd = begin$sd)
  new_state(problem, prior$theta, prior$state, call)
}

# A start, which may be anywhere, whose means of normal variables are not near a bound. Of totals of y and y^2 with little noise, a chain with the mean near the
# wrong bound stays there: fewer large y would bring the first nearer, and take the second further away.
begin_central <- function(bound, theta, most = 0.4) {
  if (bound_is_cut(bound) || !bound$spec$name %in% c("normal", "mvnormal", "lm")) return(theta)
  at <- unknown_at(bound, if (bound$spec$name == "lm") "coefficients" else "mean")
  column <- if (bound$spec$name == "mvnormal") bound$columns else bound$columns[1L, ]
  at <- utils::head(at, nrow(column))
  if (length(at) < nrow(column)) return(theta)
  half <- (column$upper - column$lower) / 2
  middle <- column$lower + half
  theta[at] <- pmin(pmax(theta[at], middle - most * half), middle + most * half)
  theta
}

# Natural values of a site's parameters, one row each, as coordinates; the inverse; and whether such coordinates are inside the bounds of a truncated prior.
record_coordinates <- function(fit) {
  partial <- fit$problem$partial
  at <- match(partial$parameters, fit$bound$parameters)
  natural <- drop(reported(fit$bound, partial$reference))
  thetas <- function(values) {
    theta <- matrix(partial$reference, length(partial$reference), nrow(values))
    theta[partial$at + 1L, ] <- t(values)
    theta
  }
  list(of = function(values) {
    all <- matrix(natural, length(natural), nrow(values))
    all[at, ] <- t(values)
    t(.Call(ffi_model_invert, fit$bound$spec, all)[partial$at + 1L, , drop = FALSE])
  }, natural = function(values) reported(fit$bound, thetas(values))[, at, drop = FALSE],
  inside = if (bound_is_cut(fit$bound)) function(values) is.finite(.Call(ffi_model_log_prior, fit$bound$spec, thetas(values))))
}
