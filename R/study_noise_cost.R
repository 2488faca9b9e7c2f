# What the noise cost: intervals against those that records would give. The analyst has no records, so
# they are drawn from the fitted model.

#' What the noise cost: intervals with it, and without
#'
#' Compares the width of the posterior intervals with those that an analyst would have who could see the records. Nobody but
#' the owner can compute the latter, so they are an expectation under the fit: databases are drawn from its posterior predictive
#' distribution, and each is analysed from its records ([nonprivate_posterior()]).
#'
#' @param fit A fit from [sample_posterior()], of one release.
#' @param databases Number of databases.
#' @param level Probability inside the intervals.
#' @param seed Fixes the databases and their analyses; see [sample_posterior()].
#'
#' @return A data frame with a row for each parameter: `variable`; `width`, of the equal-tailed interval; `without`, the mean
#'   width over the databases; `without_mcse`, its Monte Carlo standard error; `ratio`, `width` over `without`. It costs no privacy:
#'   only the release is used.
#' @details
#' `without` is not the width that the confidential records would give, but the one to expect of records like
#' those that the fit holds plausible; where the model is wrong, so is the comparison. Besides the noise, `ratio` has what was lost when
#' the records were clamped to their bounds and summed up. The number of records, where it is not known, has no row: records show it.
#' @section Errors: `noiseaware_error_argument`, also where the number of records times `databases` is more than 10^8; `noiseaware_error_pool` for
#'   a fit of several sites; `noiseaware_error_model` where records cannot be drawn.
#' @seealso [compare_analyses()] for the owner, who has the records; [design()] before a release is made.
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' noise_cost(fit, databases = 5, seed = 1)
#' @export
noise_cost <- function(fit, databases = 20, level = 0.95, seed = NULL) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  if (is.null(fit$release)) stop_classed("argument", "{.arg fit} must be a fit to a release.")
  databases <- check_count(databases, "databases", lower = 2)
  check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  check_simulated_size(databases, "databases", fit)
  seeds <- replicate_seeds(check_seed(seed) %||% new_seed(), databases)
  with_noise <- interval_widths(fit, level)[fit$bound$parameters]
  # one at a time: a database may be large
  without <- vapply(seeds, function(seed) {
    data <- stats::simulate(fit, 1, seed)[[1L]]
    interval_widths(fit_records(fit$bound, data, check_run(2, 1200, 200, 1, seed)), level)[fit$bound$parameters]
  }, with_noise)
  without <- matrix(without, ncol = databases)
  data.frame(variable = fit$bound$parameters, width = unname(with_noise), without = rowMeans(without),
             without_mcse = apply(without, 1L, stats::sd) / sqrt(databases), ratio = unname(with_noise) / rowMeans(without))
}

interval_widths <- function(fit, level) {
  table <- interval_table(fit, level)
  stats::setNames(table$upper - table$lower, table$variable)
}
