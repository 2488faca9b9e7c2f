# Where the prior decides: how estimates change if the prior is raised to a power (power-scaling, Kallioinen, Paananen, Buerkner & Vehtari 2024). Draws are
# weighted by p(theta)^(a - 1), a = 0.8 and 1.25, without another run. A quantity is decided by the prior if its weighted mean moves by more than a tenth of
# its sd, and by more than its Monte Carlo error explains.
#
# Quantities: each parameter; its squared distance from the middle, because a prior that affects only the width leaves the mean where it is; and both in the
# leading directions of the posterior (eigenvectors of the correlations with eigenvalues above 1), because a ridge can hide an influence that no single
# parameter shows. Parameters are used as normal scores of their ranks, with mean 0 and sd 1 whatever the units and the tails. Cost: the prior's density at up
# to 1,000 draws.

prior_powers <- c(0.8, 1.25)
moved_by_prior <- 0.1
scaled_draws <- 1000L
most_directions <- 10L
most_correlated <- 200L # parameters whose correlations are looked at

# Chains further apart than this say nothing of the posterior.
far_apart <- 1.2

# Names of parameters; the attribute `together`: of those that only a direction shows. character() where that is not known: of chains that have not
# met, of priors that R functions draw from.
prior_decides <- function(fit) {
  if (is.null(fit$chains) || isTRUE(fit$bound$callbacks) || posterior::ndraws(fit$draws) < 100L) return(character())
  if (any(mixing_diagnostics(fit)$rhat > far_apart, na.rm = TRUE)) return(character())
  found <- if (identical(fit$pool, "separate")) decided_by_group(fit) else decided(fit_scores(fit))
  if (isTRUE(fit$bound$dependent)) without_cells(found) else found
}

# Cells of many factors have a distribution together: that few records inform each is no news.
without_cells <- function(found) {
  kept <- function(names) names[!is_of_cells(names)]
  structure(kept(as.character(found)), together = kept(as.character(attr(found, "together"))))
}

# of the draws, evenly
thinned_draws <- function(draws) {
  draws <- unclass(posterior::as_draws_matrix(draws))
  draws[unique(round(seq(1, nrow(draws), length.out = min(nrow(draws), scaled_draws)))), , drop = FALSE]
}

# list(values = draws x parameters, log_prior), the number of records left out: its prior is another argument
fit_scores <- function(fit) {
  draws <- thinned_draws(fit$draws)
  lp <- log_prior_of(fit$bound, with_unreported(fit, draws)) + log_prior_between(fit$problem, draws)
  list(values = draws[, setdiff(colnames(draws), "n"), drop = FALSE], log_prior = lp)
}

# Draws of the model's parameters. Those of covariates that each site has for itself are not reported: they stand at one value, as their prior does not
# depend on the others, nor the others' on them.
with_unreported <- function(fit, draws) {
  names <- prior_columns(fit, colnames(draws))
  absent <- !names %in% colnames(draws)
  if (!any(absent)) return(draws[, names, drop = FALSE])
  out <- reported(fit$bound, .Call(ffi_model_prior, fit$bound$spec, new_stream(c(1, 2)), 1L)$theta)[rep(1L, nrow(draws)), , drop = FALSE]
  out[, !absent] <- draws[, names[!absent]]
  out
}

# The parameters that have the model's prior: of a pool the means over sites, of a walk the first site's.
prior_columns <- function(fit, there) {
  names <- fit$bound$parameters
  names <- ifelse(names %in% names(fit$bound$called), fit$bound$called[names], names)
  if (identical(fit$pool, "walk")) ifelse(names %in% there, names, site_variables(names, names(fit$release)[1L])) else names
}

# groups that are not pooled have the prior each
decided_by_group <- function(fit) {
  sites <- names(fit$release)
  sites_decided(lapply(stats::setNames(nm = sites), function(site) {
    draws <- thinned_draws(draws_of_site(fit, site))
    decided(list(values = draws, log_prior = log_prior_of(fit$bound, draws[, fit$bound$parameters, drop = FALSE])))
  }))
}

# of several sites, by name
sites_decided <- function(each) {
  named <- function(part) as.character(unlist(Map(function(one, site) if (length(part(one))) site_variables(part(one), site), each, names(each))))
  structure(named(c), together = named(function(one) attr(one, "together")))
}

# In unconstrained coordinates (logarithms, logits): there no proper prior is flat, whose powers would be the same. NA where a model of the
# user's has no way back to its coordinates, or values are at the edge of what they can be.
log_prior_of <- function(bound, values) {
  theta <- .Call(ffi_model_invert, bound$spec, t(values))
  if (is.character(theta)) rep(NA_real_, nrow(values)) else .Call(ffi_model_log_prior, bound$spec, theta)
}

# of logarithms of standard deviations between sites
log_prior_between <- function(problem, draws) {
  sd <- problem$partial$sd
  if (length(sd) == 0L) return(0)
  at <- length(problem$partial$heads) + seq_along(sd)
  rowSums(mapply(function(prior, name) log_scale_prior(prior$fields, draws[, name]), sd, problem$names[at]))
}

log_scale_prior <- function(fields, x) {
  value <- fields[[1L]]
  log(x) + switch(names(fields), sigma_half_normal = stats::dnorm(x, 0, value, log = TRUE), sigma_half_t = stats::dt(x / value[2L], value[1L], log = TRUE),
         sigma_exponential = -value * x)
}

decided <- function(scores) {
  lp <- scores$log_prior
  if (!all(is.finite(lp))) return(character())
  normal <- apply(scores$values, 2L, function(x) stats::qnorm((rank(x) - 0.5) / length(x)))
  constant <- apply(scores$values, 2L, function(x) min(x) == max(x))
  normal <- normal[, !constant, drop = FALSE]
  alone <- colnames(normal)[moves_with(normal, lp)]
  structure(alone, together = setdiff(ridge_of(normal, lp), alone))
}

# which columns, of mean 0 and sd 1
moves_with <- function(z, lp) {
  quantities <- list(z, (z^2 - 1) / sqrt(2))
  Reduce(`|`, lapply(prior_powers, function(power) {
    weight <- exp((power - 1) * (lp - max(lp) * (power > 1) - min(lp) * (power < 1)))
    weight <- weight / mean(weight)
    Reduce(`|`, lapply(quantities, function(q) {
      centred <- q - rep(colMeans(q), each = nrow(q))
      move <- colMeans(weight * centred)
      error <- sqrt(colMeans(((weight - 1) * (centred - rep(move, each = nrow(q))))^2) / nrow(q))
      abs(move) - error > moved_by_prior
    }))
  }))
}

# parameters that weigh at least half as much as the heaviest in a leading direction that moves
ridge_of <- function(z, lp) {
  if (ncol(z) < 2L || ncol(z) > min(most_correlated, nrow(z) / 4)) return(character())
  directions <- eigen(stats::cor(z), symmetric = TRUE)
  leading <- which(directions$values > 1)
  leading <- leading[seq_len(min(length(leading), most_directions))]
  if (length(leading) == 0L) return(character())
  vectors <- directions$vectors[, leading, drop = FALSE]
  along <- z %*% vectors
  along <- along / rep(sqrt(colMeans(along^2)), each = nrow(along))
  found <- which(moves_with(along, lp))
  heavy <- apply(abs(vectors[, found, drop = FALSE]), 2L, function(v) v > max(v) / 2)
  colnames(z)[rowSums(matrix(heavy, ncol(z))) > 0]
}

# ---- what is said --------------------------------------------------------------------

tell_decided <- function(fit) {
  line <- decided_line(fit)
  if (is.null(line)) return(invisible())
  cli::cli_inform(c(escape_braces(line), i = "The printed fit has the details, and {.fn rstantools::prior_summary} shows the prior."), class = "noiseaware_message_prior")
}

decided_names <- function(fit) union(fit$decided, attr(fit$decided, "together"))

# what the prior decides by itself; one name is no combination
decided_alone <- function(fit) {
  together <- attr(fit$decided, "together")
  union(fit$decided, if (length(together) == 1L) together)
}

# Parameters that are asked about, coefficients first: not what a model needs besides, which the print has.
asked_about <- function(fit, names) {
  coefficients <- if (!is.null(fit$bound)) coefficient_terms(fit)
  besides <- c("censored", "concentration", "shape", "df", "cv", "base", if (length(coefficients)) c("mean", "cov", "prob"))
  asked <- names[!sub("\\[.*", "", names) %in% besides | names %in% coefficients]
  asked[order(!asked %in% coefficients, asked == "(Intercept)")]
}

# for a message: at most three names; of a combination, only if no parameter is influenced by itself. NULL if none is asked about
decided_line <- function(fit, most = 3L) {
  found <- decided_alone(fit)
  alone <- length(asked_about(fit, found)) > 0L
  if (!alone) found <- attr(fit$decided, "together")
  named <- utils::head(asked_about(fit, found), most)
  if (length(named) == 0L) return(NULL)
  more <- length(found) - length(named)
  paste0("The prior strongly influences ", if (!alone) "a combination of ", paste(named, collapse = ", "), if (more > 0L) paste(" and", more, "more"),
         ": a slightly weaker or stronger prior moves ", if (alone && length(found) > 1L) "each" else "it", " by more than a tenth of its posterior sd.")
}

# The total with the most noise for what it can be, where totals differ in that.
blame_line <- function(fit) {
  release <- if (is_of_groups(fit)) fit$problem$groups$release else fit$release
  if (!inherits(release, "noiseaware_release")) return(NULL)
  noise <- relative_noise(release)
  if (length(noise) < 2L || max(noise) <= 2 * min(noise)) return(NULL)
  sprintf("Relative to its range, the noisiest total is %s, with %s times as much noise as %s.", names(which.max(noise)),
                        format_number(max(noise) / min(noise), 2), names(which.min(noise)))
}

# sd of the noise over the range of a record's contribution, of components that are not exact
relative_noise <- function(release) {
  unlist(lapply(release_parts(release), function(part) {
    limits <- component_limits(part$statistic)
    if (is.null(limits) || is_exact(part$mechanism) || part$statistic$kind == "records") return(NULL)
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), nrow(limits))
    noise <- stats::setNames(sd / (limits[, 2L] - limits[, 1L]), names(release$value)[part$index])
    noise[is.finite(noise)]
  }))
}

# for a print
decided_lines <- function(fit) {
  alone <- decided_alone(fit)
  together <- setdiff(attr(fit$decided, "together"), alone)
  said <- c(if (length(alone)) shorten_list(alone, 5L), if (length(together)) paste("a combination of", shorten_list(together, 5L)))
  if (length(said)) c(paste0("  prior      strongly influences ", said), paste0("             ", blame_line(fit), recycle0 = TRUE))
}
