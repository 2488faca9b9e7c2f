# Public covariates in models, see engine_public.R.

# Are the covariates known for each record, so that they have no distribution?
are_public <- function(model) !is.null(model$covariates$public)

# Of a bound regression its design, whose bounds scale the default priors: those of public covariates are two standard deviations about the mean of what
# they are, which leave a normal covariate and a uniform one about the same slope for the same spread.
scaled_design <- function(bound, call) {
  design <- bound$design
  if (!are_public(bound$model)) return(design)
  x <- record_matrix(bound$model$covariates$public, bound$base[-1L, ], bound$levels, call, "public")
  x <- term_values(bound, x)
  number <- which(is.na(design$level[-1L]))
  sd <- apply(x[, number, drop = FALSE], 2L, function(v) sqrt(mean((v - mean(v))^2)))
  varies <- is.finite(sd) & sd > 0
  at <- number[varies]
  middle <- colMeans(x[, at, drop = FALSE])
  design$lower[at + 1L] <- middle - 2 * sd[varies]
  design$upper[at + 1L] <- middle + 2 * sd[varies]
  design
}
