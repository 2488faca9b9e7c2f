# Partial pooling and walks by a normal distribution for the totals of each site: see src/pool/site_clt.c.

clt_sites_problem <- function(releases, bound, words, chains, prior_n, call) {
  each <- lapply(stats::setNames(nm = names(releases)), function(name) clt_site(releases[[name]], bound, words, chains, prior_n[[name]], call))
  move_sd <- prior_sd(bound, words, chains)
  sites <- lapply(each, function(site) {
    alone <- c(site[c("n", "released", "scale", "kernel", "ridge")],
               list(method = "clt", model = bound$spec, moments = with_innovations(site$distribution, bound), sampler = "nuts",
                    conjugate = 0, passes = 1, move_sd = move_sd, search = 200, given = 0), site$size)
    list(components = site$components, index = site$index, alone = alone, fields = list())
  })
  width <- vapply(sites, `[[`, 0L, "components")
  first <- cumsum(width) - width
  list(method = "pool", exact = FALSE, model = bound$spec, family = "clt", n = sum(vapply(each, `[[`, 0, "n")), size_prior = NULL,
       released = unlist(lapply(each, `[[`, "released"), use.names = FALSE), sites = sites, where = seq_len(sum(width)), summed = seq_len(sum(width)),
       first = first, names = bound$parameters, drowned = all(vapply(each, `[[`, TRUE, "drowned")), ridge = unlist(lapply(each, `[[`, "ridge")),
       site_priors = prior_n)
}

# Moments with innovations, from a factor of the covariance (src/clt/cholesky_innovations.c) if they have none of their own.
with_innovations <- function(distribution, bound) {
  if (isTRUE(distribution$innovations)) return(distribution$spec)
  list(name = distribution$spec$name, factored = distribution$spec, model = bound$spec)
}

# What sites have in common of the covariates' distribution: "shared", all of it; "pooled", see src/contract/model_pooled_scatter.h; "separate".
common_covariates <- function(asked, problem, bound, call) {
  pools <- problem$family == "totals" && is_regression(bound) && .Call(ffi_model_shape, bound$spec)$pools_scatter
  if (asked == "default") return(if (pools) "pooled" else "separate")
  if (asked == "pooled" && !pools) {
    stop_classed("pool", c("The covariates' distribution can be pooled in linear regressions of numbers by method {.val collapse} alone.",
                           i = "Their mean and covariance must be unknown, and their prior not truncated."), call = call)
  }
  asked
}

# All sites have one distribution of covariates, in the model's own coordinates.
share_covariates <- function(problem, bound, call) {
  if (problem$family != "clt" || !is_regression(bound)) {
    stop_classed("pool", c("The covariates' distribution can be shared in regressions that are pooled by method {.val clt} alone.",
                           i = if (problem$family == "totals") "{.code method = \"clt\"} asks for that method."), call = call)
  }
  if (bound_is_cut(bound)) {
    stop_classed("pool", c("The covariates' distribution cannot be shared if its prior is truncated, because its moves use the gradient of the prior.",
                           i = "Leave out {.arg within}, or {.code covariates = \"shared\"}."), call = call)
  }
  problem$sites <- lapply(problem$sites, function(site) {
    site$alone$undivided <- TRUE
    site
  })
  problem
}

# The mode of each site and the curvature there: `at` and `se` of the parameters, and `fields`, the coordinates of everything else.
spread_of_clt <- function(problem, bound) {
  stream <- new_stream(c(1, 2))
  own <- match(problem$partial$place, bound$unknown)
  each <- lapply(problem$sites, function(site) {
    prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
    alone <- site$alone
    alone["size_prior"] <- list(NULL) # n as it is expected
    state <- .Call(ffi_start, alone, as.double(prior$theta), prior$state)
    stream <<- state$rng
    told_by_mode(.Call(ffi_clt_mode, alone, state), alone$move_sd, own)
  })
  list(at = do.call(rbind, lapply(each, `[[`, "at")), se = do.call(rbind, lapply(each, `[[`, "se")), fields = lapply(each, `[[`, "fields"))
}

# `own`: the parameters among the coordinates that move
told_by_mode <- function(mode, prior_sd, own, hair = 1e-4) {
  curvature <- mode$information
  moving <- seq_along(prior_sd)
  rest <- setdiff(moving, own)
  diag(curvature)[rest] <- diag(curvature)[rest] + 1 / prior_sd[rest]^2
  root <- chol(curvature[-own, -own, drop = FALSE])
  slope <- -backsolve(root, backsolve(root, curvature[-own, own, drop = FALSE], transpose = TRUE))
  told <- curvature[own, own] + crossprod(curvature[-own, own, drop = FALSE], slope)
  covariance <- solve((told + t(told)) / 2 + diag(hair / prior_sd[own]^2, length(own)))
  rows <- backsolve(root, diag(nrow(root))) # a column is a row of the map
  list(at = mode$point[own], se = sqrt(diag(covariance)),
       fields = list(centre = mode$point[own], reference = mode$point[-own], slope = as.double(t(slope)), map = rows[upper.tri(rows, TRUE)]))
}
