# All troubles of a fit: the warnings of sampling.

with_troubles <- function(fit, call = caller_env()) {
  if (session$quiet) return(fit)
  found <- function(what, code) try_diagnostic(what, code, call)
  of_release <- found("what the release can be", release_troubles(fit$release))
  # totals that no records within the bounds have say nothing of records beyond them
  fit$clamping <- if (length(of_release) == 0L) found("clamping", compare_clamping(fit))
  fit$shapes <- found("the covariates' distribution", compare_shapes(fit))
  fit$troubles <- c(found("convergence", convergence_trouble(fit)), found("trajectories", trajectory_troubles(fit)),
                    found("bounds", bounds_trouble(fit)), found("few records", few_records_trouble(fit)), found("clamping", clamping_trouble(fit)),
                    found("the covariates' distribution", shape_trouble(fit)),
                    found("mirror images", mirror_trouble(fit)), of_release)
  possible <- !"impossible" %in% vapply(of_release, `[[`, "", "kind")
  fit$troubles <- c(fit$troubles, if (possible) found("whether the release contradicts the model", contradiction_trouble(fit)))
  tell_troubles(fit, call)
  fit$decided <- found("what the prior decides", prior_decides(fit)) %||% character()
  found("what the prior decides", tell_decided(fit))
  found("what inference about the number of records relies on", tell_size(fit))
  fit
}

# `refit`: a function of releases, a run, and how they are pooled
with_pool_troubles <- function(fit, refit, call = caller_env()) {
  if (session$quiet) return(fit)
  found <- function(what, code) try_diagnostic(what, code, call)
  of_releases <- found("what the releases can be", if (is_of_groups(fit)) release_troubles(fit$problem$groups$release) else site_troubles(fit$release))
  if (length(of_releases) == 0L) fit$clamping <- found("clamping", compare_clamping(fit, refit))
  if (length(of_releases) == 0L) fit$contextual <- found("contextual effects", compare_contextual(fit, refit))
  fit$troubles <- c(found("convergence", convergence_trouble(fit)), found("trajectories", trajectory_troubles(fit)),
                    found("bounds", bounds_trouble(fit)), found("few records", few_records_trouble(fit)), found("clamping", clamping_trouble(fit)),
                    found("contextual effects", contextual_trouble(fit)), found("covariates within groups", hidden_trouble(fit)), of_releases)
  if (length(of_releases) == 0L) fit$troubles <- c(fit$troubles, found("whether the releases contradict the model", contradiction_trouble(fit)))
  tell_troubles(fit, call)
  fit$decided <- try_diagnostic("what the prior decides", prior_decides(fit), call) %||% character()
  try_diagnostic("what the prior decides", tell_decided(fit), call)
  fit
}

# what is odd about each site's release, with the names of the sites of which the same is true
site_troubles <- function(releases) {
  found <- lapply(releases, release_troubles)
  each <- unlist(unname(found), recursive = FALSE)
  said <- vapply(each, function(trouble) trouble$text[[1L]], "")
  site <- rep(names(releases), lengths(found))
  lapply(unname(split(seq_along(each), factor(said, unique(said)))), function(same) {
    trouble <- each[[same[1L]]]
    trouble$text[[1L]] <- paste0(if (length(same) == 1L) "Site " else "Sites ", shorten_list(site[same], 5L), ": ", trouble$text[[1L]])
    trouble
  })
}
