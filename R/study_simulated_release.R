# Releases that a model could have made, many of them under one parameter: what p_value() and confidence_set() compare a release with.
#
#   point       what is unknown: the model's unknown coordinates, and log n where the number of records is not published
#   replicates  records come from streams with fixed seeds, and noise from fixed uniforms: under two points the same random numbers
#               (common random numbers), so that p-values change little from one point to the next
#   moments     mean and covariance of the published numbers at a point, which the test statistic is made of: those of method "clt" where these
#               account for bounds, of all cells where records are factors, else of `pilot_records` simulated records or more, which have seeds of their
#               own. So they depend on the point alone, and at a given point the observed release and the replicates are exchangeable whatever
#               the moments are: errors in them cost power, not validity.
#
#   objective   perturbed objectives have no totals: the replicates' records are drawn one release at a time, and their loss is minimised. Moments are those of one
#               Newton step from the minimiser of the expected loss.
#
# Cost of a point: n records for each replicate. Above `most_simulated` records the totals are drawn from a normal distribution with the records'
# moments: approximate, and said in the print.

pilot_records <- 2000L # at least, and ten for each record: their own error moves the mean by less than a third of its standard deviation
pilot_releases <- 400L
most_simulated <- 2e4

# A list: all that depends on the release, the model and the seed. `point` is where the prior's middle is, `spread` the prior's width.
new_simulator <- function(release, model, prior_n, replicates, seed, call = caller_env()) {
  if (is_sites(release) || is_grouped(model)) return(group_simulator(release, model, prior_n, replicates, seed, call))
  met <- bind_simulated(release, model, call)
  release <- met$release
  bound <- met$bound
  if (length(bound$hidden)) {
    stop_classed("method", c("The largest p-value over the probabilities of latent classes cannot be found: they have no order.",
                             x = "Terms next to a smooth depend on each other through such classes.",
                             i = "A posterior by {.fn sample_posterior} is possible."), call = call)
  }
  parts <- release_parts(release)
  prior_n <- check_size_prior(prior_n, release, call)
  with_seed(seed, {
    words <- seed_words()
    theta <- with_callback_seed(bound, chain_seed(words, 0L), .Call(ffi_model_prior, bound$spec, new_stream(words), 400L)$theta)
    size <- length(release$value)
    sim <- list(release = release, bound = bound, parts = parts, replicates = replicates, unsized = is.null(release$n), theta = theta[, 1L],
                specs = lapply(parts, simulated_spec, bound = bound), value = shown_value(release$value, parts),
                seeds = matrix(floor(stats::runif(2L * replicates) * 2^32), 2L), pilot = new_stream(), draw_seed = new_seed(),
                uniform = matrix(stats::runif(replicates * size), replicates), normal = NULL)
    sim$limits <- cbind(rep(-Inf, size), Inf)
    for (part in parts) sim$limits[part$index, ] <- natural_means(part)
    added <- unlist(lapply(parts, added_variance))
    sim$added <- if (!anyNA(added)) diag(added, size)
    sim$pilot_uniform <- matrix(stats::runif(pilot_releases * size), pilot_releases)
    sim$pilot_normal <- matrix(stats::rnorm(pilot_releases * size), pilot_releases)
    typical <- if (sim$unsized) typical_size(release, prior_n) else list(n = release$n, sd = 0)
    sim$objectives <- Filter(function(part) part$mechanism$kernel == "objective", parts)
    if (length(sim$objectives)) sim <- with_perturbations(sim)
    sim$pilot_records <- as.integer(min(max(pilot_records, 10 * typical$n), 1e6))
    sim$approximate <- typical$n > most_simulated && length(sim$objectives) == 0L
    if (sim$approximate) sim$normal <- matrix(stats::rnorm(replicates * size), replicates)
    draws <- theta[bound$unknown, , drop = FALSE]
    sim$spread <- c(apply(draws, 1L, robust_sd), if (sim$unsized) max(typical$sd / typical$n, 1e-3))
    sim$middle <- c(apply(draws, 1L, stats::median), if (sim$unsized) log(max(typical$n, 1)))
    sim$all_unknown <- !sim$unsized && identical(as.integer(bound$unknown), seq_along(sim$theta))
    sim$starts <- rbind(draws, if (sim$unsized) sim$middle[length(sim$middle)])
    if (length(sim$objectives) == 0L) sim$known_moments <- known_moments(sim, max(typical$n, 2), call) %||% known_cells(sim)
    sim
  })
}

# Sites, or the groups of one release given their sizes, are independent: a simulator of each, whose points and numbers stand one after another (rows `at`).
group_simulator <- function(release, model, prior_n, replicates, seed, call) {
  if (is_sites(release)) {
    check_sites(release, "none", call)
    check_model(model, call)
    if (is_grouped(model)) stop_classed("groups", "{.arg model} must have no groups if {.arg release} is a list of sites.", call = call)
    groups <- release
    n <- NULL
  } else {
    check_release(release, call)
    if (!is.null(model$bars)) stop_classed("groups", "{.arg model} must have no bars: groups are not pooled here.", call = call)
    release <- narrow_release(release, model, call)
    groups <- group_releases(release, model$group, call)
    n <- release$n
  }
  by <- model$group
  model["group"] <- NULL
  if (!is.null(by)) check_group_sizes(groups, bind_model(model, groups[[1L]]$statistic, call), by, call)
  prior_n <- check_site_priors(prior_n, groups, call)
  seeds <- with_seed(seed, sample.int(.Machine$integer.max, length(groups)))
  each <- Map(function(name, seed) new_simulator(groups[[name]], model, prior_n[[name]], replicates, seed, call), stats::setNames(nm = names(groups)), seeds)
  all <- function(field) unlist(lapply(each, `[[`, field), use.names = FALSE)
  sizes <- vapply(each, function(one) length(one$spread), 0L)
  unsized <- any(all("unsized")) && is.null(n)
  if (!unsized) n <- n %||% sum(vapply(groups, function(group) as.double(group$n), 0))
  list(groups = each, at = unname(split(seq_len(sum(sizes)), rep(seq_along(each), sizes))), release = list(n = n), bound = each[[1L]]$bound,
       by = by %||% "site", parts = unlist(lapply(each, `[[`, "parts"), recursive = FALSE), replicates = replicates, unsized = unsized, value = all("value"),
       spread = all("spread"), middle = all("middle"), starts = do.call(rbind, lapply(each, `[[`, "starts")), approximate = any(all("approximate")),
       known_moments = if (!any(vapply(each, function(one) is.null(one$known_moments), TRUE))) TRUE)
}

# `f` of the simulator and the point of each group, whose points are rows of `points`
in_each_group <- function(sim, points, f) Map(function(one, at) f(one, as.matrix(points)[at, , drop = FALSE]), sim$groups, sim$at)

# the numbers of the release that the model uses, and the model of their variables
bind_simulated <- function(release, model, call = caller_env()) {
  check_release(release, call)
  check_model(model, call)
  release <- narrow_release(release, model, call)
  for (part in release_parts(release)) check_simulated_part(part, call)
  model <- complete_model(model, release, call)
  bound <- bind_model(settle_factors(model, release$statistic, release$n, "auto", FALSE, call), release$statistic, call)
  check_records_distribution(bound, call)
  list(release = release, bound = bound)
}

robust_sd <- function(x) {
  sd <- stats::mad(x[is.finite(x)])
  if (is.finite(sd) && sd > 0) sd else 1
}

check_simulated_part <- function(part, call) {
  if (part$statistic$kind %in% c("totals", "cells", "objective") && part$mechanism$kernel != "records") return(invisible())
  stop_classed("method", c("Totals with noise are needed here.", x = "The release has {describe_statistic(part$statistic)}, {format(part$mechanism)}."), call = call)
}

simulated_spec <- function(part, bound) {
  statistic <- as_simulated(part$statistic)
  spec <- if (statistic$kind == "objective") objective_spec(statistic, part$value) else statistic_spec(statistic)
  spec$column <- match(statistic$columns$name, bound$columns$name) - 1L
  spec
}

# a hidden number stands at its threshold
shown_value <- function(value, parts) {
  threshold <- unlist(lapply(parts, function(p) rep(p$mechanism$after$threshold %||% NA_real_, length(p$index))))
  unname(ifelse(is.na(value), threshold, value))
}

# ---- a point -------------------------------------------------------------------------------------------

points_theta <- function(sim, points) {
  if (sim$all_unknown) return(points)
  theta <- matrix(sim$theta, length(sim$theta), ncol(points))
  theta[sim$bound$unknown, ] <- points[seq_along(sim$bound$unknown), ]
  theta
}
point_size <- function(sim, point) {
  if (!is.null(sim$groups)) return(sum(unlist(in_each_group(sim, point, point_size))))
  if (sim$unsized) max(0, round(exp(point[length(point)]))) else sim$release$n
}

# natural values at points, one a column
point_values <- function(sim, points) {
  if (!is.null(sim$groups)) {
    values <- in_each_group(sim, points, point_values)
    return(do.call(rbind, Map(function(of, group) `rownames<-`(of, site_variables(rownames(of), group)), values, names(values))))
  }
  if (!is.matrix(points)) dim(points) <- c(length(points), 1L)
  values <- .Call(ffi_model_report, sim$bound$spec, points_theta(sim, points))
  dimnames(values) <- list(sim$bound$parameters, NULL)
  if (sim$unsized) values <- rbind(values, n = exp(points[nrow(points), ]))
  values
}

# Published numbers of the replicates, a row each.
simulate_values <- function(sim, point) {
  if (!is.null(sim$groups)) {
    values <- in_each_group(sim, point, simulate_values)
    return(if (!any(vapply(values, is.null, TRUE))) do.call(cbind, unname(values)))
  }
  n <- point_size(sim, point)
  theta <- points_theta(sim, cbind(point))
  if (sim$approximate) {
    moments <- total_moments_at(sim, theta, n)[[1L]]
    if (is.null(moments)) return(NULL)
    totals <- normal_totals(moments, sim$normal)
  } else if (length(sim$objectives)) {
    totals <- t(vapply(seq_len(sim$replicates), function(r) released_totals(sim, theta, n, r), numeric(length(sim$value))))
  } else {
    totals <- t(with_callback_seed(sim$bound, sim$draw_seed, .Call(ffi_simulated_totals, sim$bound$spec, theta, as.double(n), sim$seeds, sim$specs)))
  }
  with_noise(sim, totals, sim$uniform)
}

normal_totals <- function(moments, normal) {
  root <- semi_root_or_none(moments$cov)
  sweep(normal[, seq_len(ncol(root)), drop = FALSE] %*% t(root), 2L, moments$mean, "+")
}

semi_root_or_none <- function(cov) {
  moves <- diag(cov) > 0
  root <- matrix(0, nrow(cov), 1L)
  if (!any(moves)) return(root)
  part <- semi_root(cov[moves, moves, drop = FALSE])
  root <- matrix(0, nrow(cov), ncol(part))
  root[moves, ] <- part
  root
}

# totals and uniforms: a row a release
with_noise <- function(sim, totals, uniform) {
  values <- totals
  for (part in sim$parts) {
    at <- part$index
    if (part$mechanism$kernel != "objective") values[, at] <- simulated_values(part, totals[, at, drop = FALSE], uniform[, at, drop = FALSE], sim$draw_seed)
  }
  values
}

# ---- moments -------------------------------------------------------------------------------------------

# The specification of known moments and which numbers they are of, or NULL.
known_moments <- function(sim, n, call) {
  bound <- sim$bound
  if (clt_leaves_out_bounds(bound) && !isTRUE(bound$natural)) return(NULL)
  release <- if (sim$unsized) without_size(sim$release, n) else sim$release
  found <- NULL
  without_refusal(found <- released_distribution(bound, release, call))
  index <- match(names(release$value)[found$index], names(sim$release$value))
  if (is.null(found) || length(index) < length(release$value)) return(NULL)
  list(spec = found$spec, index = index)
}

# Mean and covariance of what one record adds to the published numbers, or to those of known moments, under each theta (a column): a list, NULL where they are not
# finite
record_moments_at <- function(sim, theta) {
  known <- sim$known_moments
  if (is.null(known)) return(lapply(seq_len(ncol(theta)), function(j) pilot_moments(sim, theta[, j])))
  if (!is.null(known$probability)) return(apply(known$probability(theta), 2L, cell_moments, known$each, simplify = FALSE))
  .Call(ffi_clt_moments, known$spec, theta)
}

# The same of the totals of n records, and of noise. Numbers without known moments are the number of records, to which each adds 1. Between natural limits lie
# also the means of what records add: no other mean is possible, though the model may have it.
total_moments_at <- function(sim, theta, n, added = matrix(0, length(sim$value), length(sim$value))) {
  .Call(ffi_total_moments, record_moments_at(sim, theta), as.double(n), sim$known_moments$index %||% seq_along(sim$value), sim$limits, added)
}

# For a model of factors alone: what a record of each cell adds to the published numbers, and the cells' probabilities as a function of thetas: a column each.
known_cells <- function(sim) {
  bound <- sim$bound
  factors <- bound$levels[unique(bound$columns$variable)]
  if (any(lengths(factors) == 0L) || isTRUE(bound$callbacks) || prod(lengths(factors)) > most_known_cells) return(NULL)
  cells <- expand.grid(lapply(factors, function(l) factor(l, l)))
  probability <- saturated_cells(bound, cells) %||% cells_by_density(bound, cells)
  if (!is.null(probability)) list(each = component_values(sim, model_records(bound, cells)), probability = probability)
}

most_known_cells <- 400

# whose parameters they are
saturated_cells <- function(bound, cells) {
  if (!inherits(bound, "bound_table")) return(NULL)
  labels <- do.call(paste, c(Map(paste0, names(bound$levels), "=", cells[names(bound$levels)]), sep = ":"))
  at <- match(sprintf("prob[%s]", labels), bound$parameters)
  if (anyNA(at) || length(at) != length(bound$parameters)) return(NULL)
  function(theta) t(reported(bound, theta)[, at, drop = FALSE])
}

cells_by_density <- function(bound, cells) {
  if (!.Call(ffi_model_shape, bound$spec)$has_density) return(NULL)
  x <- model_records(bound, cells)
  function(theta) {
    log <- vapply(seq_len(nrow(x)), function(i) .Call(ffi_model_log_density, bound$spec, theta, x[i, , drop = FALSE]), numeric(ncol(theta)))
    apply(matrix(log, ncol(theta)), 1L, function(log) {
      p <- exp(log - max(log))
      p / sum(p)
    })
  }
}

cell_moments <- function(p, each) {
  if (!all(is.finite(p))) return(NULL)
  mean <- colSums(p * each)
  list(mean = mean, cov = crossprod(each * sqrt(p)) - tcrossprod(mean))
}

# the statistic's components of each record
component_values <- function(sim, x) {
  do.call(cbind, lapply(sim$specs, function(s) {
    if (length(s$column) == 0L) matrix(1, nrow(x), 1L) else .Call(ffi_stat_eval, s, x[, s$column + 1L, drop = FALSE])
  }))
}

pilot_moments <- function(sim, theta) {
  x <- with_callback_seed(sim$bound, sim$draw_seed, .Call(ffi_model_records, sim$bound$spec, theta, sim$pilot_records, sim$pilot))$records
  .Call(ffi_sample_moments, component_values(sim, x))
}

# ---- perturbed objectives --------------------------------------------------------------------------------

# with the perturbation b of each replicate, and the variance of one of its numbers
with_perturbations <- function(sim) {
  for (k in which(vapply(sim$parts, function(part) part$mechanism$kernel == "objective", TRUE))) {
    part <- sim$parts[[k]]
    d <- length(part$index)
    noise <- objective_noise(part$mechanism, part$statistic, neighbours = part$neighbours)
    draw <- function(r) perturbation(d, noise$scale, part$mechanism, stats::runif)
    sim$parts[[k]]$ridge <- noise$ridge
    sim$parts[[k]]$perturbation <- t(vapply(seq_len(sim$replicates), draw, numeric(d)))
    sim$parts[[k]]$variance <- noise$scale^2 * if (is_largest(part$mechanism)) (d + 1) * (d + 2) / 3 else if (is_normal(part$mechanism)) 1 else d + 1
  }
  sim$streams <- lapply(seq_len(sim$replicates), function(r) new_stream(sim$seeds[, r]))
  sim
}

records_of_seed <- function(sim, theta, n, stream) {
  with_callback_seed(sim$bound, sim$draw_seed, .Call(ffi_model_records, sim$bound$spec, theta, n, stream))$records
}

columns_of <- function(x, spec) x[, spec$column + 1L, drop = FALSE]

# of one replicate: totals, and minimisers of perturbed losses
released_totals <- function(sim, theta, n, r) {
  x <- records_of_seed(sim, theta, n, sim$streams[[r]])
  unlist(Map(function(part, spec) {
    own <- columns_of(x, spec)
    if (part$mechanism$kernel != "objective") return(if (length(spec$column)) .Call(ffi_stat_total, spec, own) else n)
    minimise_objective(spec, own, part$perturbation[r, ], part$ridge, NULL)
  }, sim$parts, sim$specs), use.names = FALSE)
}

# Minimisers z are near z0 - A^{-1} (G + b): z0 minimises the expected loss, A is its Hessian with the ridge, G the gradient at z0, a total. The other numbers are totals.
objective_moments <- function(sim, theta, n) {
  x <- records_of_seed(sim, theta, sim$pilot_records, sim$pilot)
  each <- Map(function(part, spec) {
    own <- columns_of(x, spec)
    d <- length(part$index)
    if (part$mechanism$kernel != "objective") {
      values <- if (length(spec$column)) .Call(ffi_stat_eval, spec, own) else matrix(1, nrow(x), 1L)
      return(list(values = values, mean = n * colMeans(values), added = diag(added_variance(part), d)))
    }
    centre <- minimise_objective(spec, own, numeric(d), part$ridge * nrow(x) / n, NULL)
    spec$fields$coefficients <- centre
    sums <- .Call(ffi_stat_eval, spec, own)
    hessian <- matrix(0, d, d)
    hessian[upper.tri(hessian, diag = TRUE)] <- n * colMeans(sums[, -seq_len(d), drop = FALSE])
    hessian <- hessian + t(hessian) - diag(diag(hessian), d)
    inverse <- solve(hessian + diag(part$ridge, d))
    list(values = -sums[, seq_len(d), drop = FALSE] %*% inverse, mean = centre, added = part$variance * inverse %*% inverse)
  }, sim$parts, sim$specs)
  values <- do.call(cbind, lapply(each, `[[`, "values"))
  mean <- unlist(lapply(each, `[[`, "mean"), use.names = FALSE)
  sampled <- .Call(ffi_sample_moments, values)
  if (!is.null(sampled)) list(mean = mean, cov = n * sampled$cov + join_moments(lapply(each, function(one) list(mean = one$mean, cov = one$added)))$cov)
}

# of the published numbers at points, one a column: a list, NULL where there are none
moments_at <- function(sim, points) {
  if (!is.null(sim$groups)) {
    each <- in_each_group(sim, points, moments_at)
    return(lapply(seq_len(ncol(points)), function(j) join_moments(lapply(each, `[[`, j))))
  }
  n <- if (sim$unsized) exp(points[nrow(points), ]) else rep(sim$release$n, ncol(points)) # a derivative in log n needs no whole number
  theta <- points_theta(sim, points)
  if (length(sim$objectives)) return(lapply(seq_along(n), function(j) objective_moments(sim, theta[, j], n[j])))
  if (!is.null(sim$added)) return(total_moments_at(sim, theta, n, sim$added))
  lapply(total_moments_at(sim, theta, n), function(moments) {
    values <- if (!is.null(moments)) with_noise(sim, normal_totals(moments, sim$pilot_normal), sim$pilot_uniform)
    if (!is.null(values)) list(mean = colMeans(values), cov = stats::cov(values))
  })
}

# With some margin, since derivatives are differences.
natural_means <- function(part) {
  limits <- component_limits(part$statistic)
  unlimited <- cbind(rep(-Inf, length(part$index)), Inf)
  if (!identical(dim(limits), dim(unlimited)) || !all(natural_columns(part$statistic))) return(unlimited)
  unname(limits + 0.01 * (limits[, 2L] - limits[, 1L]) %o% c(-1, 1))
}

# of independent numbers
join_moments <- function(each) {
  if (any(vapply(each, is.null, TRUE))) return(NULL)
  mean <- unlist(lapply(each, `[[`, "mean"), use.names = FALSE)
  owner <- rep(seq_along(each), vapply(each, function(one) length(one$mean), 0L))
  cov <- matrix(0, length(mean), length(mean))
  for (g in seq_along(each)) cov[owner == g, owner == g] <- each[[g]]$cov
  list(mean = mean, cov = cov)
}

# NA: noise that is more than added to a total
added_variance <- function(part) {
  size <- length(part$index)
  if (is_exact(part$mechanism)) return(numeric(size))
  if (!part$mechanism$kernel %in% c("absolute", "squared")) return(rep(NA_real_, size))
  rep_len(mechanism_sd(part$mechanism, part$scale)^2, size)
}
