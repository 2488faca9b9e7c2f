# A release: the published totals and the public facts around them.
#   value      named totals with noise
#   statistic, mechanism, n
#   scale      noise scale of every component
#   granularity  of every component: its value is a multiple of it; 0 if that is
#              not known
#   noise      where the noise came from: "entropy", "simulation", "published"
#   neighbours, missing  what the guarantee is about, and the rule for missing values

neighbours_rule <- "one record replaced"
missing_rule <- "refused"

new_release <- function(value, statistic, mechanism, n, scale, granularity, noise) {
  structure(list(value = value, statistic = statistic, mechanism = mechanism, n = n,
                 scale = stats::setNames(scale, names(value)),
                 granularity = stats::setNames(rep_len(granularity, length(value)), names(value)),
                 noise = noise, neighbours = neighbours_rule, missing = missing_rule),
            class = "noiseaware_release")
}

#' Make a private release
#'
#' The owner's verb: sums the statistic over the confidential records and adds
#' noise from the operating system's entropy. The result holds the noisy totals,
#' the declared facts (bounds, levels, number of records) and nothing else of
#' the data.
#'
#' @param data A data frame, one record a row, with every variable of the
#'   statistic and no missing value in them.
#' @param statistic What is summed, such as [stat_crossprod()]; or a named list
#'   of statistics of the same data.
#' @param mechanism How noise is added, such as [mech_laplace()]; with a list of
#'   statistics, a list of mechanisms with the same names, each with its share of
#'   the budget.
#' @param budget `NULL`, or a [budget()] from which the cost is taken; a release
#'   that would exceed it is refused.
#'
#' @details Neighbouring databases differ in one replaced record, so the number
#'   of records n is public and is published with the totals.
#'
#'   **Integer arithmetic.** Noise that is added in floating-point arithmetic leaks
#'   through the last bits of the sums (Mironov 2012; Haney et al. 2022;
#'   Casacuberta et al. 2022). So each record's values are rounded to multiples of a
#'   unit, the release's `granularity`, and added as 64-bit integers; the noise is a
#'   discrete Laplace or discrete Gaussian number of units, drawn exactly by
#'   integer arithmetic (Canonne, Kamath & Steinke 2020) from the operating
#'   system's entropy; the result becomes a double once, at the end. The possible
#'   outputs are the same for all data.
#'
#'   The unit is a power of two, computed from public facts: the noise scale is
#'   2^23 units or more where the bounds and n allow it, never less than 2^10.
#'   Rounding can move the difference of two records by one unit a component; that is
#'   counted in the sensitivity, and the scale is rounded up to whole units, so the
#'   release's noise is larger than that of [simulate_release()] by a factor of
#'   about 1 + 2^-20. The log density of the continuous noise, which [sample_posterior()] uses, is
#'   that of the discrete noise up to a constant; rounding the records moves a
#'   total by sqrt(n) / 4 units or so, at n = 10^6 a 30,000th part of the noise scale.
#'
#'   Discrete Gaussian noise has the zero-concentrated guarantee exactly; for `mu`
#'   and for `epsilon` with `delta` it differs from continuous noise, rounded, by a
#'   total variation below 1e-13 at that granularity, which adds to `delta`.
#'
#'   **Not protected** against: who times a release (sampling takes a random time); who
#'   reads the machine's memory or disk, which are not wiped; who learns that a
#'   release was refused, and why. Sensitivities that users declare
#'   ([stat_custom()]) are trusted. [release_objective()] draws and minimises in
#'   floating-point arithmetic, so its last bits are not safe in this sense. The
#'   proofs are in the help pages and the tests; nobody outside has verified them.
#'   The file `SECURITY.md` of the sources has the whole list.
#'
#' @references
#' Mironov, I. (2012). On significance of the least significant bits for
#' differential privacy. \doi{10.1145/2382196.2382264}
#'
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#'
#' Casacuberta, S., Shoemate, M., Vadhan, S. and Wagaman, C. (2022). Widespread
#' underestimation of sensitivity in differentially private libraries and how to
#' fix it. \doi{10.1145/3548606.3560708}
#'
#' Haney, S., Desfontaines, D., Hartman, L., Shrestha, R. and Hay, M. (2022).
#' Precision-based attacks and interval refining: how to break, then fix,
#' differential privacy on finite computers. \doi{10.48550/arXiv.2207.13793}
#' @return A release: an object of class `noiseaware_release`, whose `value` is
#'   the named vector of noisy totals.
#' @section Errors: `noiseaware_error_data`, `noiseaware_error_missing` (says
#'   how many values are missing, and in which rows), `noiseaware_error_levels`,
#'   `noiseaware_error_mechanism`, `noiseaware_error_budget`,
#'   `noiseaware_error_entropy`.
#' @seealso [as_release()] for numbers that someone else has published,
#'   [write_release()] to publish, [sample_posterior()] to analyse.
#' @examples
#' st <- stat_crossprod(bwt ~ age + lwt,
#'   bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
#' release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' @export
release <- function(data, statistic, mechanism, budget = NULL) {
  check_given()
  check_design(statistic, mechanism)
  parts <- design_parts(statistic, mechanism)
  check_exact(parts)
  lock <- hold_budget(budget)
  on.exit(unlock_budget(lock))
  check_affordable(budget, design_privacy(parts))
  result <- make_release(data, statistic, mechanism, exact_part, "entropy")
  cost <- privacy(result)
  check_affordable(budget, cost) # rounding counted
  spend(budget, cost, paste(vapply(parts, function(p) describe_statistic(p$statistic), ""), collapse = "; "))
  result
}

# every part's values by noisy_part(part, data, call)
make_release <- function(data, statistic, mechanism, noisy_part, noise, call = caller_env()) {
  parts <- design_parts(statistic, mechanism)
  for (p in parts) mechanism_scale(p$mechanism, p$statistic, call) # refuses before data are touched
  made <- lapply(parts, function(p) {
    part <- noisy_part(p, data, call)
    part$value <- stats::setNames(part$value, part_components(p$statistic, nrow(data), p$name))
    part
  })
  all_of <- function(field) unlist(lapply(made, `[[`, field))
  new_release(all_of("value"), statistic, mechanism, as.double(nrow(data)), all_of("scale"), all_of("unit"), noise)
}

# noise by inversion of uniform(count), in floating-point arithmetic
simulated_part <- function(part, data, call, uniform = stats::runif) UseMethod("simulated_part", part$mechanism)

#' @export
simulated_part.default <- function(part, data, call, uniform = stats::runif) {
  total <- statistic_total(part$statistic, data, call, confidential = TRUE)
  scale <- mechanism_scale(part$mechanism, part$statistic, call)
  scale <- rep(scale, each = length(total) / length(scale))
  list(value = unname(add_noise(part$mechanism, part$statistic, total, uniform(length(total)), scale)),
       scale = scale, unit = numeric(length(total)))
}

# what is summed; with one value a record, component after component
statistic_total <- function(statistic, data, call = caller_env(), confidential = FALSE) {
  x <- record_matrix(data, statistic$columns, statistic$levels, call)
  spec <- statistic_spec(statistic, confidential, call)
  if (statistic$kind == "records") return(as.vector(.Call(ffi_stat_eval, spec, x)))
  stats::setNames(.Call(ffi_stat_total, spec, x), statistic$components)
}

mechanism_noise <- function(mechanism, uniform, scale) {
  .Call(ffi_mech_quantile, mechanism$name, as.double(uniform), as.double(scale))
}

#' Simulate a release for a study
#'
#' Fast, from R's random number generator: **not for publication**.
#'
#' @param x A model, or a data frame of records.
#' @param statistic,mechanism As in [release()].
#' @param n Number of records to simulate; with a data frame, its rows.
#' @param parameters For a model: named vector of its unknown parameters, named
#'   as in `names(coef(fit))` and the draws, or of some of them; the others are drawn
#'   from the prior, without regard to those given. `NULL` draws all of them.
#' @param ... Must be empty.
#' @return A release. With a model, its attribute `truth` is a list of
#'   `parameters` (named vector) and `data` (the simulated records); it is not
#'   written by [write_release()].
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' set.seed(1)
#' rel <- simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 100)
#' attr(rel, "truth")$parameters
#' @export
simulate_release <- function(x, statistic, mechanism, ...) UseMethod("simulate_release")

#' @rdname simulate_release
#' @export
simulate_release.data.frame <- function(x, statistic, mechanism, ...) {
  check_given()
  check_no_dots(...)
  check_design(statistic, mechanism)
  make_release(x, statistic, mechanism, simulated_part, "simulation")
}

#' @rdname simulate_release
#' @export
simulate_release.noiseaware_model <- function(x, statistic, mechanism, n, parameters = NULL, ...) {
  check_given()
  check_no_dots(...)
  check_design(statistic, mechanism)
  n <- check_count(n, "n")
  for (p in design_parts(statistic, mechanism)) mechanism_scale(p$mechanism, p$statistic) # refuses before anything is drawn
  bound <- bind_model(x, statistic)
  check_records_law(bound)
  if (!is.null(parameters)) check_some_parameters(parameters, bound)
  truth <- draw_truth(bound, parameters, new_stream())
  theta <- truth$theta
  records <- .Call(ffi_model_records, bound$spec, theta, n, truth$state)$records
  data <- record_frame(records, bound$columns, bound$levels)
  result <- simulate_release(data, statistic, mechanism)
  attr(result, "truth") <- list(parameters = reported(bound, theta)[1L, ], data = data)
  result
}

# theta with the given parameters, the others from the prior; the stream's state
draw_truth <- function(bound, parameters, stream, call = caller_env()) {
  if (!is.null(parameters) && length(parameters) == length(bound$parameters)) return(list(theta = bound_theta(bound, parameters, call), state = stream))
  prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
  theta <- drop(prior$theta)
  if (!is.null(parameters)) {
    values <- reported(bound, theta)[1L, ]
    values[names(parameters)] <- parameters
    theta <- bound_theta(bound, values, call)
  }
  list(theta = theta, state = prior$state)
}

#' @export
simulate_release.default <- function(x, statistic, mechanism, ...) {
  check_given()
  stop_classed("argument", "{.arg x} must be a model or a data frame, but is {describe_shape(x)}.")
}

# a data frame of numeric records, codes and dummy columns turned back into
# factors
record_frame <- function(records, columns, levels) {
  out <- lapply(stats::setNames(nm = unique(columns$variable)), function(v) {
    at <- which(columns$variable == v)
    if (is.null(levels[[v]])) return(records[, at])
    code <- if (is.na(columns$level[at[1L]])) records[, at] else drop(records[, at, drop = FALSE] %*% seq_along(at))
    factor(levels[[v]][1 + code], levels[[v]])
  })
  as.data.frame(out, optional = TRUE)
}

noise_source <- c(
  entropy = "the operating system's entropy",
  floating = "the operating system's entropy, in floating-point arithmetic (its last bits are not protected)",
  simulation = "R's generator (a simulation: not for publication)",
  published = "published by someone else"
)

#' @export
summary.noiseaware_release <- function(object, ...) {
  sd <- noise_sd(object)
  table <- data.frame(component = names(object$value), value = unname(object$value), noise_sd = unname(sd),
                      signal_to_noise = unname(abs(object$value) / sd))
  structure(list(release = object, table = table), class = "summary_noiseaware_release")
}

release_header <- function(release) {
  parts <- release_parts(release)
  label <- function(p) if (p$name == "") "" else paste0(p$name, ": ")
  c("<release>",
    paste0("  records    ", format(release$n, big.mark = ",", scientific = FALSE), " (public)"),
    vapply(parts, function(p) paste0("  statistic  ", label(p), describe_statistic(p$statistic)), ""),
    vapply(parts, function(p) paste0("  mechanism  ", label(p), format(p$mechanism)), ""),
    paste0("  guarantee  ", format_privacy(privacy(release)), "; one replaced record"),
    paste0("  noise      ", noise_source[[release$noise]], describe_granularity(release$granularity)))
}

describe_granularity <- function(unit) {
  unit <- range(unit[unit > 0], -Inf)[2L]
  if (unit > 0) paste0("; exact, in units of ", if (unit == 1) "1" else paste0("2^", log2(unit)))
}

#' @export
print.noiseaware_release <- function(x, ...) {
  cat(release_header(x), sep = "\n")
  cat("\n")
  table <- summary(x)$table
  print_table(utils::head(table, 12L))
  if (nrow(table) > 12L) cat("... and", nrow(table) - 12L, "more components; see summary()\n")
  release_marks(x)
  invisible(x)
}

#' @export
print.summary_noiseaware_release <- function(x, ...) {
  cat(release_header(x$release), sep = "\n")
  cat("\n")
  print_table(x$table)
  release_marks(x$release)
  invisible(x)
}

print_table <- function(table) {
  shown <- data.frame(component = table$component, value = format(table$value, digits = 5))
  # perturbed objectives and answers have no noise that is added
  if (!all(is.na(table$noise_sd))) {
    shown$`noise sd` <- format(table$noise_sd, digits = 4)
    shown$`signal/noise` <- ifelse(table$signal_to_noise < 1e6, formatC(table$signal_to_noise, digits = 2, format = "f"),
                                   formatC(table$signal_to_noise, digits = 2, format = "e"))
  }
  print(shown, row.names = FALSE)
}

#' @rdname privacy
#' @export
privacy.noiseaware_release <- function(x, ...) design_privacy(release_parts(x))

design_privacy <- function(parts) {
  rows <- lapply(parts, function(p) privacy(p$mechanism, statistic = p$statistic, unit = p$granularity %||% 0))
  if (length(rows) == 1L) return(rows[[1L]])
  # all parts see the same records: basic composition, and for mu Dong, Roth & Su
  total <- do.call(rbind, rows)
  privacy_row(sum(total$epsilon), sum(total$delta), sum(total$rho), sqrt(sum(total$mu^2)))
}
