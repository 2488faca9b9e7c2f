# What a fit reports about an unknown number of records.

# parameters that n goes with, by rank correlations of the draws
size_partners <- function(fit, most = 2L) {
  draws <- parameter_matrix(fit)
  names <- intersect(fit$bound$parameters, colnames(draws))
  names <- names[apply(draws[, names, drop = FALSE], 2L, function(x) diff(range(x)) > 0)]
  if (length(names) == 0L || diff(range(draws[, "n"])) == 0) return(character())
  with_n <- abs(drop(stats::cor(draws[, names, drop = FALSE], draws[, "n"], method = "spearman")))
  utils::head(names[order(-with_n)][sort(with_n, decreasing = TRUE) > 0.3], most)
}

# one sentence, or NULL
no_size_line <- function(fit) {
  if (!lacks_size(fit)) return(NULL)
  partners <- size_partners(fit)
  ends <- draws_interval(parameter_matrix(fit)[, "n", drop = FALSE], 0.95)
  ends <- format_size(round(ends))
  ratios <- if (length(fit$release$value) > 1L) "the ratios of the totals and on "
  sprintf("No released number is a size: inference about n, %s to %s, relies on %spriors%s.", trimws(ends[1L]), trimws(ends[2L]), ratios %||% "",
          if (length(partners)) paste(", most strongly on", paste(partners, collapse = " and ")) else "")
}

tell_size <- function(fit) {
  line <- no_size_line(fit)
  if (is.null(line)) return(invisible())
  cli::cli_inform(c(escape_braces(line), i = "Release a noisy size with {.fn stat_size}, or give a prior for the number of records, {.arg prior_n}."),
                  class = "noiseaware_message_size")
}

# If n is far from its published total, the priors decide, which is easily overlooked. Not for releases with hidden numbers, which have no total.
size_gap_line <- function(fit, far = 0.5) {
  if (is.null(fit$problem$prior_n) || is.null(fit$release) || anyNA(fit$release$value)) return(NULL)
  told <- published_sizes(fit$release)
  if (is.null(told) || any(told[2L, ] == 0)) return(NULL)
  told <- average_size(told)
  n <- parameter_matrix(fit)[, "n"]
  if (abs(told[1L] - mean(n)) <= far * stats::sd(n)) return(NULL)
  lower <- mean(n) < told[1L]
  sprintf("published: %s, noise sd %s; n is %s because of the priors for n and the %s%s", format_number(told[1L], 4), format_number(told[2L], 3),
          if (lower) "lower" else "higher", if (inherits(fit$bound, c("bound_table", "bound_categorical"))) "cells" else "parameters",
          if (lower) "" else ", and because counts are not negative")
}
