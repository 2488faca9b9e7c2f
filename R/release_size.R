# What a release contains about its number of records.

# mean and sd, where there is a scale to speak of
size_moments <- function(prior) {
  if (!is.null(prior$mean)) return(c(prior$mean, sqrt(prior$mean + if (is.null(prior$size)) 0 else prior$mean^2 / prior$size)))
  if (inherits(prior, "prior_n_uniform")) return(c(prior$lower + prior$upper, max(prior$upper - prior$lower, 1) / sqrt(3)) / 2)
  NULL
}

# Where n is by a release and the prior, and how well that is known: averages with the weights of
# their precision. A released n is one estimate, the sum of each margin another; if there are none, the limits of what a record
# adds to a total give one.
typical_size <- function(release, prior) {
  told <- cbind(published_sizes(release), size_moments(prior))
  if (is.null(told)) told <- size_by_limits(release)
  within <- function(n) min(max(round(n), size_range(prior)[1L], 1), size_range(prior)[2L])
  average <- average_size(told)
  list(n = within(average[1L]), sd = average[2L])
}

average_size <- function(told) {
  weight <- 1 / told[2L, ]^2
  c(sum(weight * told[1L, ]) / sum(weight), 1 / sqrt(sum(weight)))
}

# estimates of n and their sd, a column each, or NULL
published_sizes <- function(release) {
  do.call(cbind, lapply(release_parts(release), function(part) {
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    margin <- size_groups(part$statistic)
    if (is.null(margin) || anyNA(sd) || is_exact(part$mechanism)) return(NULL)
    ends <- noisy_ends(part)
    # what was hidden or clipped is from 0 to about where that began
    lower <- pmax(ends$lower, pmin(0, ends$upper))
    upper <- ifelse(is.finite(ends$upper), ends$upper, lower)
    rbind(tapply((lower + upper) / 2, margin, sum), sqrt(tapply(sd^2 + (upper - lower)^2 / 12, margin, sum)))
  }))
}

# The same, n and its sd, from totals alone. Where every record adds something between two limits of the same sign to a total, its share
# is treated as uniform between them, on average. n must be a number of records that every total allows.
size_by_limits <- function(release) {
  totals <- do.call(rbind, lapply(release_parts(release), function(part) {
    ends <- noisy_ends(part)
    limits <- component_limits(part$statistic)
    if (is.null(limits)) return(NULL)
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    data.frame(value = (ends$lower + ends$upper) / 2, sd = sd, lower = limits[, 1L], upper = limits[, 2L])
  }))
  if (is.null(totals)) return(cbind(rep(max(10, 2 * sum(abs(release$value), na.rm = TRUE)), 2L))) # nothing is known of them
  totals <- totals[is.finite(totals$value) & is.finite(totals$sd) & totals$upper > totals$lower, ]
  # of totals that fall with n the negative
  down <- totals$upper <= 0
  totals[down, ] <- cbind(-totals$value, totals$sd, -totals$upper, -totals$lower)[down, ]
  farthest <- with(totals, ifelse(value > 0, upper, -lower))
  least <- with(totals, max(1, ((abs(value) - 3 * sd) / farthest)[farthest > 0]))
  most <- with(totals, max(least, min(Inf, ((value + 3 * sd) / lower)[lower > 0])))
  told <- totals[totals$lower >= 0 & totals$value > totals$sd, ]
  if (nrow(told) == 0L) return(cbind(rep(min(max(10, 2 * least), most), 2L))) # wild
  middle <- (told$lower + told$upper) / 2
  weight <- 1 / ((told$sd / told$value)^2 + ((told$upper - told$lower) / middle)^2 / 12)
  n <- exp(sum(weight * log(told$value / middle)) / sum(weight))
  n <- min(max(n, least), most)
  cbind(c(n, max(1, n / sqrt(sum(weight)))))
}

# names of the components that are n itself
size_components <- function(release) {
  unlist(lapply(release_parts(release), function(p) if (inherits(p$statistic, "stat_size")) names(release$value)[p$index]))
}

# Is a published number n, or do some add up to it?
has_size <- function(release) {
  any(vapply(release_parts(release), function(part) {
    statistic <- part$statistic
    if (statistic$kind == "records" || (statistic$kind == "cells" && !inherits(statistic, "stat_linear"))) return(TRUE)
    limits <- component_limits(statistic)
    !is.null(limits) && any(limits[, 1L] == limits[, 2L] & limits[, 1L] != 0)
  }, TRUE))
}

lacks_size <- function(fit) !is.null(fit$problem$prior_n) && !is.null(fit$release) && !has_size(fit$release)

# A group for each component, the components of a group adding up to n; NULL if there is none.
size_groups <- function(statistic) UseMethod("size_groups")

#' @export
size_groups.default <- function(statistic) NULL

#' @export
size_groups.stat_size <- function(statistic) 1L

#' @export
size_groups.stat_counts <- function(statistic) {
  rep(seq_along(statistic$margins), vapply(statistic$margins, function(m) prod(lengths(statistic$levels)[m]), 0))
}

# What stat_means(n = NULL) describes: n and means of totals, which are what had noise. Of totals of deviations the means are of the variables themselves.
totals_of_means <- function(value, statistic, mechanism, call = caller_env()) {
  whole <- statistic$total
  value <- unlist(value)
  names(value) <- sub("^mean\\((.*)\\)$", "\\1", names(value))
  centre <- centre_of(whole)
  names(value) <- ifelse(names(value) %in% names(centre), paste0("(", names(value), ")"), names(value))
  named <- c("n", whole$components)
  if (!is.numeric(value) || !setequal(names(value), named) || length(value) != length(named)) {
    stop_argument("value", paste0("numbers named n, the noisy number of records, and ", shorten_list(whole$components)), describe(value), "value", call)
  }
  n <- value[["n"]]
  if (!isTRUE(n > 0)) stop_argument("value", "a positive number n, by which the means were divided, and the means", paste("n =", format_number(n)), "value", call)
  for (one in if (is.object(mechanism)) list(mechanism) else mechanism) if (!is.null(one$after)) {
    stop_argument("mechanism", "noise without later processing: totals are recovered from means, and were not rounded or hidden themselves", format(one), call = call)
  }
  centre <- if (is.null(centre)) 0 else centre[gsub("^\\(|\\)$", "", whole$components)]
  list(size = c(n = n), total = stats::setNames(n * (value[whole$components] - centre), whole$components))
}

# the centres of totals of deviations, by variable
centre_of <- function(statistic) if (inherits(statistic, "stat_linear")) statistic$statistic$centre else statistic$centre
