# The cost of the noise: intervals compared with those from the records. The analyst has no records, so they are drawn from the fitted model.

#' Cost of the noise: interval widths with and without it
#'
#' Compares the width of the posterior intervals with the width that an analyst with access to the records would obtain. Only the owner can compute the latter,
#' so its expectation under the fit is used: databases are drawn from the posterior predictive distribution, and each is analysed from its records
#' ([nonprivate_posterior()]).
#'
#' @param fit A fit from [sample_posterior()].
#' @param databases Number of databases.
#' @param level Probability inside the intervals.
#' @param seed Fixes the databases and their analyses; see [sample_posterior()].
#'
#' @return A data frame with a row for each parameter: `variable`; `width` of the equal-tailed interval; `without`, the geometric mean of the widths over the databases;
#'   `without_mcse`, its Monte Carlo standard error; `ratio`, `width` divided by `without`. It costs no privacy, because only the release is used.
#' @details
#' `without` is not the width for the actual confidential records, but the expected width for records that are plausible under the fit; if the model is wrong,
#' so is the comparison. The mean is geometric because a parameter that the release hardly determines, such as a standard deviation if only a mean was
#' published, differs by orders of magnitude between plausible databases. A few of them would decide an arithmetic mean. `ratio` includes the loss from
#' clamping the records to their bounds and summing them, in addition to the noise. An unknown number of records has no row, because the records would reveal
#' it.
#' @section Errors: `noiseaware_error_argument`, also if the number of records times `databases` exceeds 10^8; `noiseaware_error_pool` for sites that share some
#'   of their parameters (partial pooling, walks); `noiseaware_error_model` if records cannot be drawn.
#' @seealso [compare_analyses()] for owners, who have the records; [design()] before a release is made.
#' @family checks and tests
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
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  seed <- check_seed(seed) %||% new_seed()
  if (!inherits(fit, "noiseaware_pool")) return(cost_of_one(fit, databases, level, seed))
  if (fit$pool == "complete") return(cost_of_one(fit, databases, level, seed, names(fit$release)))
  if (!fit$pool %in% c("none", "separate")) {
    stop_classed("pool", c("{.arg fit} must have sites that share all parameters or none: otherwise each database would have to be pooled again.",
                           i = "{.code pool = \"none\"} shows the cost of the noise for each site separately."))
  }
  sites <- names(fit$release)
  each <- Map(function(site, seed) {
    table <- cost_of_one(as_fit_of_site(fit, site), databases, level, seed)
    table$variable <- site_variables(table$variable, site)
    table
  }, sites, replicate_seeds(seed, length(sites)))
  do.call(rbind, unname(each))
}

# `sites`: those whose records are drawn together
cost_of_one <- function(fit, databases, level, seed, sites = NULL, call = caller_env()) {
  own <- reported_parameters(fit$bound)
  with_noise <- interval_widths(fit, level)[own]
  records_of <- if (is.null(sites)) list(fit) else lapply(sites, function(site) as_fit_of_site(fit, site, call))
  check_records_distribution(fit$bound, call)
  draws <- lapply(records_of, all_parameters)
  for (one in records_of) check_simulated_size(databases, "databases", one, call)
  # one at a time: a database may be large
  without <- vapply(replicate_seeds(seed, databases), function(seed) {
    data <- with_seed(seed, {
      i <- sample.int(nrow(draws[[1L]]), 1L) # all sites have the parameters of the same draw
      do.call(rbind, Map(function(one, draws) simulated_records(one, draws[i, ]), records_of, draws))
    })
    interval_widths(fit_records(fit$bound, data, check_run(2, 1200, 200, 1, seed)), level)[own]
  }, with_noise)
  without <- matrix(without, ncol = databases)
  middle <- exp(rowMeans(log(without)))
  data.frame(variable = own, width = unname(with_noise), without = middle,
             without_mcse = middle * apply(log(without), 1L, stats::sd) / sqrt(databases), ratio = unname(with_noise) / middle)
}

interval_widths <- function(fit, level) {
  table <- interval_table(fit, level)
  stats::setNames(table$upper - table$lower, table$variable)
}
