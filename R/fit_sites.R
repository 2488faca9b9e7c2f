# The draws of one site, taken from the draws of a pool.

check_site <- function(fit, site, call = caller_env()) check_names_of(site, "site", "sites of the fit", names(fit$release), call)

is_new_site <- function(fit, site) fit$pool %in% names(new_sites) && identical(site, new_sites[[fit$pool]])

# parameters of a site, those that do not vary among them
draws_of_site <- function(fit, site) {
  parameters <- fit$problem$partial$reported
  own <- site_variables(parameters, site)
  draws <- exactly(fit$draws, ifelse(own %in% fit$problem$names, own, parameters))
  posterior::variables(draws) <- parameters
  draws
}

# iterations x chains of an unknown number of records; otherwise NULL
site_size_draws <- function(fit, site) {
  if (!is.null(fit$release[[site]]$n)) return(NULL)
  name <- size_names(site)
  if (name %in% posterior::variables(fit$draws)) return(posterior::extract_variable_matrix(fit$draws, name))
  if (isTRUE(fit$problem$sized)) return(vapply(fit$chains, function(chain) chain$statistic[, fit$problem$first[[site]] + 2L], numeric(nrow(fit$draws))))
}

# draws x variables as chains again
as_chains <- function(values, fit) {
  posterior::as_draws_array(array(values, c(dim(fit$draws)[1:2], ncol(values)), list(NULL, NULL, colnames(values))))
}

# draws x components of the site's release
site_totals <- function(problem, name, statistic) {
  site <- problem$sites[[name]]
  first <- problem$first[[name]]
  if (is.null(site$slope)) {
    values <- statistic[, first + seq_len(site$components), drop = FALSE]
    return(if (is.null(site$times)) values else values * rep(site$times, each = nrow(values)))
  }
  values <- outer(statistic[, first + 1L], site$slope) + rep(site$constant, each = nrow(statistic))
  if (is.null(site$size_slope)) values else values + outer(statistic[, first + 2L], site$size_slope)
}

# `of()` and `natural()`: from a site's natural values to the coordinates in which sites are normal, and back
coordinates_of_fit <- function(fit) {
  if (inherits(engine_of(fit), c("engine_pool_records", "engine_pool_tables"))) return(record_coordinates(fit))
  list(of = function(values) site_coordinates(fit$bound, values), natural = function(values) site_natural(fit$bound, values))
}

# A site that released nothing, or the next of a walk: draws x parameters.
new_site_draws <- function(fit, sites = NULL, call = caller_env()) {
  partial <- fit$problem$partial
  x <- fit$problem$sign * new_covariates(partial$design, sites, call)
  coordinates <- coordinates_of_fit(fit)
  draws <- parameter_matrix(fit)
  of <- function(values) coordinates$of(matrix(posterior::as_draws_matrix(values), nrow(draws)))
  of_last <- function(back) of(draws_of_site(fit, names(fit$release)[length(fit$release) - back]))
  centre <- switch(partial$walk + 1L, of(exactly(fit$draws, partial$reported)), of_last(0L), 2 * of_last(0L) - of_last(1L))
  first <- length(partial$heads)
  varying <- length(partial$vary)
  sd <- draws[, first + seq_len(varying), drop = FALSE]
  first <- first + varying
  effects <- draws[, first + seq_len(varying * length(x)), drop = FALSE]
  correlations <- draws[, first + ncol(effects) + seq_len(fit$problem$begin$pairs), drop = FALSE]
  for (v in seq_len(varying)) {
    at <- partial$which[v] + 1L
    centre[, at] <- centre[, at] + drop(effects[, (v - 1L) * length(x) + seq_along(x), drop = FALSE] %*% x)
  }
  values <- draw_inside(seq_len(nrow(centre)), centre, coordinates$inside, call, function(rows) {
    z <- correlated(matrix(stats::rnorm(length(rows) * varying), length(rows)), correlations[rows, , drop = FALSE])
    at <- partial$which + 1L
    one <- centre[rows, , drop = FALSE]
    one[, at] <- one[, at] + sd[rows, ] * z
    one
  })
  values <- coordinates$natural(values)
  colnames(values) <- partial$reported
  values
}

# names of what varies, as in sd[...]
spread_coordinates <- function(fit) {
  partial <- fit$problem$partial
  sub("^sd\\[(.*)\\]$", "\\1", fit$problem$names[length(partial$heads) + seq_along(partial$vary)])
}

# names of parameters in draws: groups of model_normal() have a mean and an sd instead of an intercept and sigma
reported_as <- function(fit, parameters) fit$problem$partial$reported[match(parameters, fit$problem$partial$parameters)]
