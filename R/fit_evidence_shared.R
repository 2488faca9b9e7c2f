# Shared by all computations of evidence.

# log of the mean of exp(ratio), draws x chains. Where few draws carry it, its error is not to be relied on.
average_ratio <- function(ratio, few = 100, cure = "use more draws") {
  most <- max(ratio)
  weight <- exp(ratio - most)
  share <- weight / sum(weight)
  effective <- min(without_capping(posterior::ess_mean(weight)), length(weight), na.rm = TRUE)
  error <- stats::sd(weight) / mean(weight) / sqrt(effective)
  list(value = most + log(mean(weight)), error = error,
       note = if (error > 0 && 1 / sum(share^2) < few) paste("rough: a few draws of the table dominate;", cure))
}

# log of the integral over one rate of its prior and the likelihoods of sites, their totals summed out; the constants of the noise are
# left out. The trapezoidal rule on the log or logit scale, whose error falls exponentially.
log_rate_integral <- function(bound, sites, points = 2001L) {
  likelihoods <- lapply(sites, function(site) rate_likelihood(site$fields, bound$spec$name))
  log_density <- function(u) log_rate_prior(bound, u) + Reduce(`+`, lapply(likelihoods, function(of) of(u)))
  ends <- c(-700, 700) # of u; then where the density is not negligible
  for (width in 1:6) {
    u <- seq(ends[1L], ends[2L], length.out = 201L)
    at <- log_density(u)
    kept <- range(which(at > max(at) - 45))
    ends <- c(u[max(1L, kept[1L] - 1L)], u[min(201L, kept[2L] + 1L)])
  }
  u <- seq(ends[1L], ends[2L], length.out = points)
  log_sum_exp(log_density(u)) + log(u[2L] - u[1L])
}

# log density of the logit or of the log rate
log_rate_prior <- function(bound, u) {
  prior <- bound$spec$fields
  if (is_log_rate(bound)) return(prior$shape * u - prior$rate * exp(u) + prior$shape * log(prior$rate) - lgamma(prior$shape))
  prior$alpha[2L] * stats::plogis(u, log.p = TRUE) + prior$alpha[1L] * stats::plogis(-u, log.p = TRUE) - lbeta(prior$alpha[2L], prior$alpha[1L])
}

join_notes <- function(...) if (length(c(...))) paste(unique(unlist(strsplit(c(...), "; ", fixed = TRUE))), collapse = "; ")

inverse_gamma_constant <- function(shape, rate) shape * log(rate) - lgamma(shape)

log_determinant <- function(matrix) as.numeric(determinant(matrix)$modulus)

log_student_constant <- function(df, scale) lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2 - log(scale)

# of the densities of log sigma in src/model/scale_prior.c
log_scale_constant <- function(fields) {
  if (!is.null(fields[["sigma"]])) return(0)
  if (!is.null(fields[["sigma_inverse_gamma"]])) return(log(2) + inverse_gamma_constant(fields[["sigma_inverse_gamma"]][1L], fields[["sigma_inverse_gamma"]][2L]))
  if (!is.null(fields[["sigma_half_normal"]])) return(log(2) - log(fields[["sigma_half_normal"]]) - log(2 * pi) / 2)
  if (!is.null(fields[["sigma_half_t"]])) return(log(2) + log_student_constant(fields[["sigma_half_t"]][1L], fields[["sigma_half_t"]][2L]))
  if (!is.null(fields[["sigma_lognormal"]])) return(-log(fields[["sigma_lognormal"]][2L]) - log(2 * pi) / 2)
  log(fields[["sigma_exponential"]])
}

new_evidence <- function(value, error, note = NULL) structure(value, error = error, note = note, class = "noiseaware_evidence")

stop_no_evidence <- function(fault, call = caller_env(), .envir = parent.frame(), instead = NULL) {
  stop_classed("method", c("The evidence is not available for this fit.", x = fault, i = instead, i = "See {.fn log_evidence} for the models with evidence.",
                           i = "{.fn bayesplot::pp_check} of each fit shows which model the release contradicts."),
               call = call, .envir = .envir)
}

log_sum_exp <- function(x) {
  most <- max(x)
  if (is.finite(most)) most + log(sum(exp(x - most))) else most
}

# with as many digits as the error leaves
format_estimate <- function(value, error) {
  if (error == 0) return(paste(format(value, digits = 6), "(exact)"))
  digits <- max(0, 1 - floor(log10(error)))
  sprintf("%.*f (Monte Carlo error %s)", as.integer(digits), value, format(signif(error, 2)))
}

note_lines <- function(x) if (length(attr(x, "note"))) paste0("  ", attr(x, "note"), "\n")

# log of what makes the kernels of the noise distributions
log_noise_constant <- function(release, call) {
  sum(vapply(component_parts(release, repeated = TRUE), function(part) {
    if (inherits(part$mechanism, "mech_tabulated")) return(-sum(log(release$scale[part$index])))
    if (part$mechanism$kernel == "published") return(0) # a probability or a density as it is: src/contract/published.c
    b <- release$scale[part$index]
    one <- switch(part$mechanism$name,
                  laplace = -log(2 * b), gaussian = -log(b) - log(2 * pi) / 2,
                  discrete_laplace = log(tanh(1 / (2 * b))), discrete_gaussian = -log(vapply(b, gaussian_sum, 0)),
                  exact = 0 * b,
                  stop_classed("method", "The evidence is not available for {.val {part$mechanism$name}} noise.", call = call))
    sum(one)
  }, 0))
}

# sum of exp(-k^2 / (2 sd^2)) over all integers k
gaussian_sum <- function(sd) sum(exp(-seq(-ceiling(40 * sd), ceiling(40 * sd))^2 / (2 * sd^2)))

# draws x sites
site_log_lik <- function(fit, call) {
  if (fit$pool == "none") {
    stop_classed("method", c("Sites that are not pooled share nothing: without its own release, a site has only the prior.",
                             i = "Use {.fn log_evidence} on each fit in {.code fit$fits}."), call = call)
  }
  if (isTRUE(fit$problem$sized)) {
    stop_classed("method", "The likelihood of a group's totals is unknown if its size is unknown, because sizes of groups are sampled.", call = call)
  }
  if (fit$pool == "separate") {
    stop_classed("method", "Groups that are not pooled share nothing: without its own numbers, a group has only the prior.", call = call)
  }
  if (fit$pool == "walk") {
    stop_classed("method", "In a walk, a site depends on its neighbours in time, which {.fn loo} does not assume.", call = call)
  }
  if (!moves_rates(fit)) {
    stop_classed("method", c("The likelihood of a site's release is known only for one rate or probability.",
                             x = "The model is: {describe_model(fit$bound)}."), call = call)
  }
  draws <- parameter_matrix(fit)
  between <- fit$pool == "partial" && length(fit$problem$partial$vary)
  u <- if (is_log_rate(fit$bound)) log(draws[, 1L]) else stats::qlogis(draws[, 1L])
  sd <- if (between) draws[, 2L]
  design <- fit$problem$partial$design$matrix
  effects <- if (!is.null(design)) draws[, 2L + seq_len(ncol(design)), drop = FALSE]
  spread <- spread_of_rates(fit$problem)
  vapply(names(fit$release), function(name) {
    release <- fit$release[[name]]
    own <- if (is.null(design)) u else u + drop(effects %*% design[name, ])
    k <- match(name, names(fit$release))
    about <- about_site(fit$bound, spread, k)
    log_likelihood <- rate_log_likelihood(fit$problem$sites[[name]]$fields, fit$bound$spec$name, own, sd, about)
    log_noise_constant(release, call) + if (between) integrate_site(log_likelihood, own, sd, about) else log_likelihood(own)
  }, double(nrow(draws)))
}

# Log likelihood of a site's rate or probability as a function of its logarithm or logit, the total summed out.
rate_likelihood <- function(fields, model) {
  s <- fields$node %||% (fields$first + seq_along(fields$log_weight) - 1)
  n <- fields$n
  log_weight <- fields$log_weight + (fields$log_gap %||% 0)
  of_total <- switch(model, poisson = function(u) s * u - n * exp(u), exponential = function(u) n * u - s * exp(u),
                     function(u) s * stats::plogis(u, log.p = TRUE) + (n - s) * stats::plogis(-u, log.p = TRUE))
  function(u) vapply(u, function(u) log_sum_exp(log_weight + of_total(u)), 0)
}

# The same by a spline through values over the range that the draws can reach, since it is smooth there.
rate_log_likelihood <- function(fields, model, u, sd, about, points = 1001L) {
  at <- rate_likelihood(fields, model)
  if (length(u) <= points && is.null(sd)) return(at)
  reach <- furthest_site * if (is.null(sd)) 0 else sd
  grid <- grid_about(about, max(min(u - reach), -least_log), min(max(u + reach), least_log), points)
  values <- at(grid)
  # far below the greatest a spline through values that fall ever faster would overshoot
  stats::splinefun(grid, pmax(values, max(values) - 1000))
}

# Where a site's release says that its rate or probability is.
about_site <- function(bound, spread, k) list(at = coordinate_sign(bound) * spread$at[k], se = spread$se[k])

# Dense where the release says that the rate or probability is, about.
grid_about <- function(about, from, to, points) {
  ends <- asinh((c(from, to) - about$at) / about$se)
  about$at + about$se * sinh(seq(ends[1L], ends[2L], length.out = points))
}

# A site is at most so many standard deviations from the mean, and its rate or probability not beyond exp() of this.
furthest_site <- 10

least_log <- 300

# log of the integral over u_j ~ N(u, sd^2), one for each draw: the trapezoidal rule in t, u_j = centre + width sinh(t), dense where the
# likelihood, taken for normal about its mode, and that distribution overlap, and as wide as the latter.
integrate_site <- function(log_likelihood, u, sd, about, nodes = 121L) {
  range <- c(min(u - furthest_site * sd), max(u + furthest_site * sd))
  range <- pmin(pmax(range, -least_log), least_log)
  grid <- grid_about(about, range[1L], range[2L], 2001L)
  values <- log_likelihood(grid)
  k <- min(max(which.max(values), 2L), length(grid) - 1L)
  information <- max(-log_likelihood(grid[k], deriv = 2L), 0)
  weight <- 1 / sd^2
  centre <- (weight * u + information * grid[k]) / (weight + information)
  width <- 1 / sqrt(weight + information)
  reach <- asinh((furthest_site * sd + abs(centre - u)) / width)
  t <- outer(reach, seq(-1, 1, length.out = nodes))
  at <- pmin(pmax(centre + width * sinh(t), range[1L]), range[2L])
  terms <- matrix(log_likelihood(at) + stats::dnorm(at, u, sd, log = TRUE) + log(width * cosh(t)), length(u))
  most <- do.call(pmax, as.data.frame(terms))
  most + log(rowSums(exp(terms - most))) + log(2 * reach / (nodes - 1))
}
