# Messages of as_release() about numbers with more than one possible meaning.

# ---- which number is which -----------------------------------------------------------------

# Numbers without names, of several variables: an exchange of rows and columns of a table would not be seen.
tell_order <- function(value, statistic, listed) {
  if (session$quiet) return(invisible())
  each <- if (listed) Map(list, value[names(statistic)], statistic) else list(list(value, statistic))
  for (one in each) if (!is_several(one[[2L]]) && lacks_order(one[[1L]], one[[2L]])) {
    cli::cli_inform(c("{.arg value} has no names: its numbers are assumed to be in the statistic's order, {shorten_list(one[[2L]]$components, 8L)}.",
                      i = "With names, the order does not matter."), class = "noiseaware_message_order")
  }
}

lacks_order <- function(value, statistic) {
  is.null(names(value)) && is.null(dim(value)) && is.numeric(value) && length(value) > 1L && statistic$kind != "records" &&
    length(unique(statistic$columns$variable %||% statistic$columns$name)) > 1L
}

# ---- what a budget was spent on ------------------------------------------------------------

# `at`: the published ones of the statistic's components; NULL: all of them.
tell_fewer <- function(mechanism, statistic, at, neighbours, call) {
  if (is.null(at) || session$quiet || length(intersect(c("scale", "sd"), names(Filter(Negate(is.null), unclass(mechanism)))))) return(invisible())
  noise <- function(of) mechanism_sd(mechanism, mechanism_scale(mechanism, of, call, neighbours = neighbours))
  part <- noise(published_statistic(statistic, at))
  whole <- noise(statistic)[at]
  if (anyNA(c(part, whole)) || isTRUE(all.equal(part, whole))) return(invisible())
  # the same of many sites is said once
  key <- rlang::hash(list(at, part, whole))
  if (key %in% session$told) return(invisible())
  session$told <- c(session$told, key)
  shown <- lapply(list(part = part, whole = whole), function(sd) format_number(unique(signif(sd, 6)), 4))
  cli::cli_inform(c("The budget is assumed to be spent on {cli::qty(length(at))}{?the one number/the {length(at)} numbers} given: noise with sd {shown$part}.",
                    i = "If it was spent on all {length(statistic$components)} components of the statistic, the noise has sd {shown$whole}.",
                    i = "In that case give the mechanism the size of the noise, {.or {.arg {intersect(c('scale', 'sd'), names(unclass(mechanism)))}}}."),
                  class = "noiseaware_message_fewer")
}

# ---- in which units ------------------------------------------------------------------------

# Of variables that are clearly inside their bounds and spread over a part of these, in units of half their range: a
# mean is about so far from the middle, and the log of a standard deviation about so far from the log of this one.
usual_mean <- 0.5
usual_sd <- 0.4
usual_log_sd <- 0.6

# so many times likelier in the variables' units
other_units <- 1000

units_trouble <- function(release) {
  if (is.null(release$n)) return(NULL)
  odd <- unlist(lapply(release_parts(release), function(part) {
    ratio <- units_ratio(part, release$n)
    if (is.null(ratio) || sum(ratio) < log(other_units)) return(NULL)
    names(ratio)[ratio > 0]
  }))
  if (length(odd) == 0L) return(NULL)
  list(list(kind = "units", text = c(
    sprintf("Totals of %s appear to be in the variables' units, not rescaled to [-1, 1] as the statistic says.", shorten_list(unique(odd), 5L)),
    i = "Use rescale = FALSE in the statistic for totals in the variables' units.")))
}

# For each variable whose total and square are known well: how much likelier its mean and standard deviation are if the numbers are in its
# own units, as a logarithm.
units_ratio <- function(part, n) {
  statistic <- part$statistic
  if (!inherits(statistic, c("stat_crossprod", "stat_sums")) || inherits(statistic, "stat_centred") || !isTRUE(statistic$rescale) || is_dropped(statistic)) return(NULL)
  columns <- statistic$columns
  noise <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value)) / n
  moments <- function(names) (part$value / n)[match(names, statistic$components)]
  first <- moments(columns$name)
  second <- moments(paste0(columns$name, "^2"))
  variance <- second - first^2
  half <- (columns$upper - columns$lower) / 2
  loud <- noise[match(paste0(columns$name, "^2"), statistic$components)]
  log_density <- function(mean, sd) {
    stats::dnorm(mean, 0, usual_mean, log = TRUE) + stats::dnorm(log(sd), log(usual_sd), usual_log_sd, log = TRUE)
  }
  told <- !is.na(variance) & is.na(columns$level) & variance > 4 * loud & loud < 0.1
  ratio <- log_density((first - (columns$upper + columns$lower) / 2) / half, sqrt(pmax(variance, 0)) / half) -
    log_density(first, sqrt(pmax(variance, 0)))
  # the noise of mech_custom() may have no known size
  stats::setNames(ratio, columns$name)[which(told)]
}

published_statistic <- function(statistic, at) if (is.null(at)) statistic else subset_of(statistic, statistic$components[at])
