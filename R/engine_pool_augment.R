# Complete pooling by imputing the records of all sites: method "augment" for several releases, see src/records/augment_chain.c.

pool_augment_problem <- function(releases, bound, words, chains, prior_n, call) {
  check_records_distribution(bound, call)
  each <- lapply(stats::setNames(nm = names(releases)), function(name) {
    release <- releases[[name]]
    check_noise_on_totals("augment", release, call)
    site <- augment_parts(release, bound, call)
    size <- augment_size(release, prior_n[[name]])
    c(site, size, list(components = length(site$summed), index = site$summed, times = released_times(component_parts(release))[site$summed]))
  })
  check_room(sum(vapply(each, function(site) site$room %||% site$n, 0)), known = all(vapply(each, function(site) is.null(site$room), TRUE)))
  laid <- vapply(each, function(site) length(site$released) - site$untold, 0L)
  width <- vapply(each, `[[`, 0L, "components")
  list(method = "augment", family = "records", exact = TRUE, model = bound$spec, n = sum(vapply(each, `[[`, 0, "n")), size_prior = NULL,
       move_sd = move_sd(bound, words, chains), theta_sd = walk_sd(bound, words, chains), surrogate = list(), passes = -1,
       released = unlist(lapply(each, `[[`, "released"), use.names = FALSE), untold = sum(vapply(each, `[[`, 0L, "untold")), sites = each,
       where = unlist(Map(function(site, from) from + site$where, each, cumsum(laid) - laid), use.names = FALSE), summed = seq_len(sum(width)),
       first = cumsum(width) - width, names = c(bound$parameters, size_names(names(prior_n))), site_priors = prior_n)
}

# The seconds that imputing records takes for 1,000 effective draws: Inf if it is impossible.
pool_augment_cost <- function(releases, bound, partial) {
  able <- without_refusal(check_records_distribution(bound)) && !has_exact_sites(releases)
  if (!able) return(Inf)
  features <- pool_cost_features(releases, bound)
  at <- c(1, log(length(releases)), log(features$n / length(releases)), log(features$size), features$engine != "sweeps")
  predict_cost(features)$thousand * exp(sum(pool_cost_constants[[if (partial) "partial" else "complete"]] * at))
}

# The log of the time of a pool for 1,000 effective draws, relative to a single release with as many records, as measured by bench/pool_cost.R: a constant,
# the slopes in the logs of the numbers of sites, of records per site and of the engine's size, and an addition for records that come one by one (responses, levels).
pool_cost_constants <- list(complete = c(-1, 0.48, 0.053, 2.1, 0.39), partial = c(1.8, 0.39, -0.17, 1.2, 0.88))

# as cost_features(), of all sites together
pool_cost_features <- function(releases, bound) {
  list(engine = records_engine(bound), size = bound$sizes$columns, n = sum(site_sizes(releases)), noise = stats::median(vapply(releases, noise_ratio, 0)),
       levels = sum(lengths(bound$levels) - 1))
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_pool_records <- function(engine) " (exact: the records of all sites are imputed)"

#' @export
engine_method.engine_pool_records <- function(engine) "augment"

#' @export
engine_imputes.engine_pool_records <- function(engine) TRUE

#' @export
engine_clamps.engine_pool_records <- function(engine, bound) TRUE

#' @export
engine_lines.engine_pool_records <- function(engine, fit) cost_line(fit)

#' @export
engine_diagnostics.engine_pool_records <- function(engine, fit, told) {
  guarantees <- lapply(fit$release, function(release) design_privacy(release_parts(release)))
  pure <- all(vapply(guarantees, function(g) identical(g$delta, 0), TRUE))
  augment_counts(told, if (pure) exp(-max(vapply(guarantees, `[[`, 0, "epsilon"))) else NA_real_)
}

#' @export
engine_moves.engine_pool_records <- function(engine, fit, rows) c(acceptance_lines(fit, rows), records_moves(rows))

records_moves <- function(a) {
  if (is.null(a$carried)) return(NULL)
  same <- if (!is.null(a$carried_same)) paste0("; what all sites have the same, alone: ", format_number(mean(a$carried_same), 2))
  carried <- paste0(format_number(mean(a$carried), 2), same)
  if (!is.null(a$together)) {
    return(sprintf("sites    shared and site parameters given the records: Hamiltonian, %s steps per trajectory, acceptance %s; with the records following: %s",
                   format_number(mean(a$together_steps), 2), format_number(mean(a$together), 2), carried))
  }
  sprintf("sites    shared parameters: accepted given the sites' parameters %s, with these following %s, and with the records following %s",
          format_number(mean(a$given), 2), format_number(mean(a$held), 2), carried)
}
