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
#' @param records Size of the largest database that is drawn. For more records, widths are scaled; see Details.
#'
#' @return A data frame with a row for each parameter: `variable`; `width` of the equal-tailed interval; `without`, the geometric mean of the widths over the databases;
#'   `ratio`, `width` divided by `without`. `without_mcse` and `ratio_mcse` are Monte Carlo standard errors. The comparison costs no privacy,
#'   because only the release is used.
#' @details
#' `without` is not the width for the actual confidential records, but the expected width for records that are plausible under the fit; if the model is wrong,
#' so is the comparison. The mean is geometric because a parameter that the release hardly determines, such as a standard deviation if only a mean was
#' published, differs by orders of magnitude between plausible databases. A few of them would dominate an arithmetic mean. `ratio` includes the loss from
#' clamping the records to their bounds and summing them, in addition to the noise. An unknown number of records has no row, because anyone with the records
#' would know it. A database without records has the intervals of the prior.
#'
#' **Many records.** A release of more records than `records` is compared with databases of this size, and `without` is their width times sqrt(`records` / n):
#' with many records, intervals narrow with the root of their number. This is checked with a quarter of each database. If the scaled width changes by more than 10
#' per cent, as for rare levels, `without` and `ratio` are `NA`, and a message of class `noiseaware_message_scaled` suggests larger databases.
#' @section Errors: `noiseaware_error_argument`, also if the number of records in a database times `databases` exceeds 10^8; `noiseaware_error_pool` for sites
#'   that share some of their parameters (partial pooling, walks); `noiseaware_error_model` if records cannot be drawn.
#' @seealso [compare_analyses()] for owners, who have the records; [design()] before a release is made.
#' @family checks and tests
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' noise_cost(fit, databases = 5, seed = 1)
#' @export
noise_cost <- function(fit, databases = 20, level = 0.95, seed = NULL, records = 10000) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  if (is.null(fit$release)) stop_classed("argument", "{.arg fit} must be a fit to a release.")
  databases <- check_count(databases, "databases", lower = 2)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  seed <- check_seed(seed) %||% new_seed()
  records <- check_count(records, "records", lower = 100)
  finished <- function(table) tell_unscaled(structure(table, level = level, class = c("noiseaware_cost", "data.frame")), records)
  if (!inherits(fit, "noiseaware_pool")) return(finished(cost_of_one(fit, databases, level, seed, records)))
  if (fit$pool == "complete") return(finished(cost_of_one(fit, databases, level, seed, records, names(fit$release))))
  if (!fit$pool %in% c("none", "separate")) {
    stop_classed("pool", c("{.arg fit} must have sites that share all parameters or none: otherwise each database would have to be pooled again.",
                           i = "{.code pool = \"none\"} shows the cost of the noise for each site separately."))
  }
  sites <- names(fit$release)
  each <- Map(function(site, seed) {
    table <- cost_of_one(as_fit_of_site(fit, site), databases, level, seed, records)
    table$variable <- site_variables(table$variable, site)
    table
  }, sites, replicate_seeds(seed, length(sites)))
  finished(do.call(rbind, unname(each)))
}

#' @export
print.noiseaware_cost <- function(x, ...) {
  if (is.null(attr(x, "level")) || !all(c("width", "without", "without_mcse", "ratio", "ratio_mcse") %in% names(x))) return(NextMethod())
  cat("<cost of the noise> widths of ", format_number(100 * attr(x, "level")), "% intervals; ratio_mcse: Monte Carlo error of the ratio\n\n", sep = "")
  number <- function(v) formatC(v, digits = 3, format = "fg", flag = "#", big.mark = ",")
  print(data.frame(variable = x$variable, lapply(as.list(x)[c("width", "without")], number), ratio = formatC(x$ratio, digits = 2, format = "f"),
                   ratio_mcse = formatC(x$ratio_mcse, digits = 2, format = "f")), row.names = FALSE)
  invisible(x)
}

# `most`: records of a database; `sites`: those whose records are drawn together
cost_of_one <- function(fit, databases, level, seed, most, sites = NULL, call = caller_env()) {
  own <- reported_parameters(fit$bound)
  with_noise <- interval_widths(fit, level)[own]
  records_of <- if (is.null(sites)) list(fit) else lapply(sites, function(site) as_fit_of_site(fit, site, call))
  check_records_distribution(fit$bound, call)
  draws <- lapply(records_of, all_parameters)
  if (databases * most > 1e8) for (one in records_of) check_simulated_size(databases, "databases", one, call)
  # one at a time: a database may be large
  without <- vapply(replicate_seeds(seed, databases), function(seed) {
    made <- with_seed(seed, {
      i <- sample.int(nrow(draws[[1L]]), 1L) # all sites have the parameters of the same draw
      each <- lapply(draws, function(draws) draws[i, ])
      sizes <- mapply(size_of_draw, records_of, each)
      share <- min(1, most / sum(sizes))
      list(n = sum(sizes), data = do.call(rbind, Map(simulated_records, records_of, each, ceiling(share * sizes))))
    })
    if (made$n == 0) return(cbind(with_seed(seed, widths_of_prior(fit$bound, level, own)), NA))
    scaled <- function(data) {
      interval_widths(fit_records(fit$bound, data, check_run(2, 1200, 200, 1, seed)), level)[own] * sqrt(nrow(data) / made$n)
    }
    size <- nrow(made$data)
    cbind(scaled(made$data), if (size < made$n) scaled(made$data[seq(1L, size, 4L), , drop = FALSE]) else NA)
  }, cbind(with_noise, NA))
  dim(without) <- c(length(own), 2L, databases)
  logs <- log(without[, 1L, ])
  dim(logs) <- c(length(own), databases)
  change <- rowMeans(log(without[, 2L, , drop = FALSE]) - log(without[, 1L, , drop = FALSE]))
  middle <- ifelse(is.na(change) | abs(change) < 0.1, exp(rowMeans(logs)), NA)
  error <- apply(logs, 1L, stats::sd) / sqrt(databases) # relative
  ratio <- unname(with_noise) / middle
  data.frame(variable = own, width = unname(with_noise), without = middle, without_mcse = middle * error, ratio = ratio,
             ratio_mcse = ratio * sqrt((width_errors(fit$draws, own, level) / unname(with_noise))^2 + error^2))
}

# of a database without records
widths_of_prior <- function(bound, level, own) {
  draws <- reported(bound, .Call(ffi_model_prior, bound$spec, new_stream(), 2000L)$theta)[, own, drop = FALSE]
  drop(diff(draws_quantiles(draws, (1 + c(-level, level)) / 2)))
}

# Monte Carlo errors of the widths of intervals; the errors of two ends far apart are nearly independent
width_errors <- function(draws, variables, level) {
  vapply(variables, function(v) sqrt(sum(posterior::mcse_quantile(posterior::extract_variable_matrix(draws, v), (1 + c(-level, level)) / 2)^2)), 0, USE.NAMES = FALSE)
}

tell_unscaled <- function(cost, records) {
  unknown <- cost$variable[is.na(cost$without)]
  if (length(unknown)) {
    cli::cli_inform(c("Intervals of {shorten_list(unknown, 5L)} from {format_size(records)} records do not scale with the root of the number of records.",
                      i = "Use larger databases, for example {.code records = {format(100 * records, scientific = TRUE)}}; {.code databases = 5} saves time."),
                    class = "noiseaware_message_scaled")
  }
  cost
}

# of a report: sites without pooling are simulated one after the other
cost_page <- function(fit, databases, seed, most = 6L) {
  if (inherits(fit, "noiseaware_pool") && fit$pool %in% c("none", "separate") && length(fit$release) > most) {
    stop_classed("size", "For {length(fit$release)} sites this takes long: {.code noise_cost(fit)} computes it.")
  }
  noise_cost(fit, databases, seed = seed)
}

interval_widths <- function(fit, level) {
  table <- interval_table(fit, level)
  stats::setNames(table$upper - table$lower, table$variable)
}
